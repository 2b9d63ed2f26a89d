// The host machine's instructions.
#include "vm/host/machine.hpp"

#include <algorithm>

#include <forestvm/backend.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/float_environment.hpp>

#include "vm/call/read_column.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm::host {

namespace {

void read_numbers(const void* rules, const Column& column, std::uint32_t feature, std::size_t row,
                  std::size_t count, float* out) {
  read_column(*static_cast<const ValueRules*>(rules), column, feature, row, count, out);
}

void read_doubles(const void* rules, std::uint32_t feature, const double* values, std::size_t stride,
                  std::size_t count, float* out) {
  const ValueRules& known = *static_cast<const ValueRules*>(rules);
  const ValueRules::Special* const special = known.special(feature);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = compared(known, feature, special, value_at<double>(values, i * stride));
}

}  // namespace

void encode_range(const LoadedProgram& loaded, const Pass& pass, const Range& rows) {
  if (pass.encode_to == nullptr) return;
  if (pass.csr != nullptr) return loaded.csr_encoder.encode(*pass.csr, rows, pass.encode_to);
  const std::size_t columns = loaded.columns;
  const std::span<const FeatureCategories> categories = loaded.encoder.categories;
  const std::uint32_t* const words = loaded.category_words;
  const ValueRules& value_rules = loaded.row_reader->rules();
  const EncoderRules rules{&value_rules, loaded.special_features.get(), value_rules.wide(), read_numbers,
                           read_doubles};
  if (pass.columns != nullptr)
    return loaded.target->encode_columns({loaded.encoder.searches, categories, words, columns, rows,
                                          pass.columns->columns, pass.columns->first_row, &rules,
                                          pass.encode_to});
  if (pass.doubles != nullptr)
    return loaded.target->encode_doubles({loaded.encoder.strips, categories, words, columns,
                                          loaded.meta.num_features, rows, pass.doubles, pass.row_stride,
                                          &rules, pass.encode_to});
  loaded.target->encode({loaded.encoder.tiles, columns, rows, pass.rows, pass.row_stride, pass.encode_to});
  if (!categories.empty())
    loaded.target->encode_categories(
        {categories, words, columns, rows, pass.rows, pass.row_stride, pass.encode_to});
}

Machine::Machine(const LoadedProgram& loaded, const Pass& pass)
    : plan_rows(pass.plan_rows), loaded_(&loaded), pass_(&pass), outputs_(loaded.meta.num_outputs) {
  ranges[kRowsRegister] = {0, pass.row_count, 0};
  ranges[kTreesRegister] = {0, loaded.meta.num_trees, 0};
}

void Machine::parallel(const Inst& loop, std::uint32_t body) {
  const LoopOperands operands = loop_operands(loop);
  const Range over = ranges[operands.in];
  const unsigned limit = thread_limit();
  if (loaded_->executor == nullptr || limit == 1) return run_inline(operands, body);
  Grain* const grain = loaded_->grains[body - 1].get();
  if (grain == nullptr) return run_shared(operands, operands.step, body);
  const unsigned all = loaded_->executor->threads();
  const Grain::Tasks tasks =
      grain->divide(over.size(), operands.step, limit == 0 ? all : std::min(all, limit));
  const auto begin = tasks.timed ? Grain::Clock::now() : Grain::Clock::time_point();
  if (tasks.shared)
    run_shared(operands, tasks.rows, body);
  else
    run_inline(operands, body);
  if (tasks.timed) grain->record(over.size(), tasks.shared, Grain::Clock::now() - begin);
}

/// Runs the iterations on this machine itself, because nothing runs beside them.
void Machine::run_inline(const LoopOperands& loop, std::uint32_t body) {
  const Range over = ranges[loop.in];
  for (std::uint32_t i = 0; i < iterations(over.size(), loop.step); ++i) {
    ranges[loop.out] = chunk(over, loop.step, i);
    interpret(loaded_->code, body, *this);
  }
}

void Machine::run_shared(const LoopOperands& loop, std::uint32_t step, std::uint32_t body) {
  const Range over = ranges[loop.in];
  const std::uint32_t count = iterations(over.size(), step);
  if (count <= 1) return run_inline(loop, body);
  auto iteration = [&](std::uint32_t i) {
    const FloatEnvironment environment;
    Machine machine = *this;
    machine.ranges[loop.out] = chunk(over, step, i);
    interpret(loaded_->code, body, machine);
  };
  loaded_->executor->run(count, iteration);
}

/// Returns the range that a loop reaches `iterations` iterations after the current one; empty beyond its end.
Range Machine::ahead(std::uint32_t loop, std::uint32_t iterations) const {
  const LoopOperands operands = loop_operands(loaded_->code[loop]);
  const Range& over = ranges[operands.in];
  const std::uint64_t from =
      ranges[operands.out].begin - over.begin + std::uint64_t{iterations} * operands.step;
  const auto cut = [&](std::uint64_t at) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(at, over.size()));
  };
  return slice(over, cut(from), cut(from + operands.step));
}

namespace {

/// The most bytes that an instruction prefetches. More would push data that is needed earlier out of the
/// first-level cache.
constexpr std::size_t kMaxPrefetched = std::size_t{32} << 10;
constexpr std::size_t kCacheLine = 64;

/// Prefetches the cache lines of a stretch of memory, at most `budget` bytes, and subtracts them from `budget`. No
/// result depends on it.
void prefetch(const void* begin, std::size_t size, std::size_t& budget) {
  size = std::min(size, budget);
  budget -= size;
  const char* at = static_cast<const char*>(begin);
  for (std::size_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(at + i);
}

}  // namespace

void Machine::cache_rows(const Inst& inst) {
  const auto args = operands<Op::CacheRows>(inst);
  if (pass_->rows == nullptr) return;
  const Range rows = ahead(args.loop, args.ahead);
  std::size_t budget = kMaxPrefetched;
  for (std::uint32_t row = rows.begin; row < rows.end && budget != 0; ++row)
    prefetch(pass_->rows + row * pass_->row_stride, row_width(loaded_->meta) * sizeof(float), budget);
}

void Machine::cache_trees(const Inst& inst) {
  const auto args = operands<Op::CacheTrees>(inst);
  const Range trees = ahead(args.loop, args.ahead);
  const GroupDesc& group = loaded_->groups[args.group];
  const std::uint32_t begin = std::max(trees.begin, group.tree_begin),
                      end = std::min(trees.end, group.tree_end);
  if (begin >= end) return;
  const std::size_t node_bytes = node_size(group.layout);
  const GroupData& data = loaded_->group_data[args.group];
  std::size_t budget = kMaxPrefetched;
  for (std::uint32_t tree = begin; tree < end && budget != 0; ++tree) {
    const TreeDesc& desc = data.trees[tree - group.tree_begin];
    prefetch(data.nodes + desc.first_node * node_bytes, desc.node_count * node_bytes, budget);
  }
}

/// Gives a task the rows of the pass.
void Machine::give_rows(WalkTask& task) const {
  task.rows = pass_->rows;
  task.row_stride = pass_->row_stride;
  task.codes = pass_->codes;
  task.columns = loaded_->columns;
  task.row_count = pass_->row_count;
}

void Machine::encode(const Inst& inst) {
  const auto args = operands<Op::Encode>(inst);
  encode_range(*loaded_, *pass_, ranges[args.rows]);
}

/// Returns the trees among `trees` that the call's rounds want, as the program counts them. The trees of each group
/// must be in the model's order.
[[gnu::cold]] Range Machine::wanted_trees(const WalkTask& task, const Range& trees) const {
  const Range& wanted = pass_->trees;
  const TreeDesc* const first = task.group.trees;
  const auto tree_from = [&](std::uint32_t number) {
    const auto* const found =
        std::lower_bound(first, first + task.group.tree_count, number,
                         [](const TreeDesc& tree, std::uint32_t n) { return tree.number < n; });
    return task.first_tree + static_cast<std::uint32_t>(found - first);
  };
  const std::uint32_t begin = std::max(trees.begin, tree_from(wanted.begin));
  return {begin, std::max(begin, std::min(trees.end, tree_from(wanted.end))), trees.iteration};
}

/// Lets a walk write the leaves of the trees for which an accumulator has room.
[[gnu::cold]] void Machine::keep_leaves(WalkTask& task, std::uint32_t accumulator) const {
  task.width = pass_->kept.size();
  task.first_kept = pass_->kept.begin;
  const bool wide = loaded_->accumulators[accumulator].kind == AccumulatorKind::PerTree64;
  task.out = wide ? reinterpret_cast<std::byte*>(leaves_of<double>(accumulator))
                  : reinterpret_cast<std::byte*>(leaves_of<float>(accumulator));
}

/// Makes the task of a walk instruction. Returns false if no trees are to be walked.
bool Machine::make_task(const Inst& inst, WalkTask& task) const {
  const auto args = operands<Op::Walk>(inst);
  const LoadedWalker& walker = selected_walker(args.walker, args.select);
  task = walker.task;
  task.tree_range = ranges[args.trees];
  if (pass_->trees.size() != loaded_->meta.num_trees && walker.trees_ascend) {
    task.tree_range = wanted_trees(task, task.tree_range);
    if (task.tree_range.size() == 0) return false;
  }
  task.row_range = ranges[args.rows];
  task.delivery = delivery_of(loaded_->accumulators[args.acc_out].kind);
  if (is_per_tree(loaded_->accumulators[args.acc_out].kind)) {
    keep_leaves(task, args.acc_out);
  } else {
    task.width = loaded_->memory[args.acc_out].width;
    with_element(args.acc_out, [&]<class Element>() {
      task.out = reinterpret_cast<std::byte*>(accumulator_row<Element>(args.acc_out, 0));
    });
  }
  give_rows(task);
  return true;
}

void Machine::walk(const Inst& inst) {
  if (ready_ != nullptr) {
    ready_->task.rows = pass_->rows;
    if (ready_->adds_to_results) ready_->task.out = pass_->accumulators[kResult];
    return ready_->walk(ready_->task);
  }
  const auto args = operands<Op::Walk>(inst);
  const LoadedWalker& walker = selected_walker(args.walker, args.select);
  WalkTask task;
  if (!make_task(inst, task)) return;
  pass_->walks_stages ? walk_stages(walker, task, args.acc_out) : walker.walk(task);
}

void Machine::keep_ready(const Inst* init, const Inst& walk, ReadySteps& ready) {
  const auto args = operands<Op::Walk>(walk);
  if (!make_task(walk, ready.task)) return;
  ready.walk = selected_walker(args.walker, args.select).walk;
  ready.adds_to_results = pass_->in_place && loaded_->memory[args.acc_out].storage == kResult;
  ready.first_bytes = init == nullptr ? 0 : first_sums(*init, ready.first);
  ready_ = &ready;
}

bool Machine::stores_nothing(const Inst& inst) const {
  return pass_->wide_values == nullptr &&
         (pass_->values == nullptr || (pass_->in_place && operands<Op::Store>(inst).acc_in == kResult));
}

void Machine::leaves(const Inst& inst) {
  const auto args = operands<Op::Leaves>(inst);
  if (pass_->leaves == nullptr) return;
  const LoadedWalker& walker = selected_walker(args.walker, args.select);
  WalkTask task = walker.task;
  task.tree_range = ranges[args.trees];
  task.row_range = ranges[args.rows];
  task.delivery = Delivery::LeafNumber;
  const std::uint32_t trees = loaded_->meta.num_trees;
  task.width = reads_leaf_numbers(pass_->output) ? kept_numbers(trees) : trees;
  task.out = reinterpret_cast<std::byte*>(pass_->leaves);
  give_rows(task);
  walker.walk(task);
}

template <class Value>
void Machine::store_rows(std::uint32_t accumulator, const Range& rows, Value* values) const {
  const auto width = static_cast<std::uint32_t>(pass_->width);
  const Pair pair = pass_->output == OutputKind::Raw ? Pair::None : loaded_->meta.pair;
  with_scores(accumulator, [&]<class Score>() {
    const auto store_each = [&](auto value) {
      for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
        const Score* scores = accumulator_row<Score>(accumulator, row);
        for (std::uint32_t k = 0; k < width; ++k)
          values[std::size_t{row} * width + k] = static_cast<Value>(value(scores, k));
      }
    };
    // Most models have no pairs: their loop has no branch.
    if (pair == Pair::None) return store_each([](const Score* scores, std::uint32_t k) { return scores[k]; });
    store_each([pair](const Score* scores, std::uint32_t k) { return value_of(pair, scores, k); });
  });
}

void Machine::store(const Inst& inst) {
  const auto args = operands<Op::Store>(inst);
  const Range& rows = ranges[args.rows];
  if (adds_chunk()) return keep_sums(args.acc_in, rows);
  if (pass_->walks_stages || stores_nothing(inst)) return;
  if (pass_->wide_values != nullptr)
    store_rows(args.acc_in, rows, pass_->wide_values);
  else
    store_rows(args.acc_in, rows, pass_->values);
}

}  // namespace forestvm::host
