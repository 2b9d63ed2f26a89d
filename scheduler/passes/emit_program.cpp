// Loop nest and tiled forest -> program: registers for loops, one walk instruction for each site, the groups'
// nodes, the tables. The program is verified before it is handed on.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <forestvm/core/interpret.hpp>

#include <forestvm/internal/names.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

/// What the numbers of a plan's own groups and accumulators are in the program.
struct PlanNumbers {
  std::vector<std::uint32_t> groups;
  std::vector<std::uint32_t> accumulators;
};

class CodeEmitter {
 public:
  CodeEmitter(const Lowering& lowering, const PlanNumbers& numbers, ProgramParts& parts)
      : lowering_(lowering), numbers_(numbers), parts_(parts) {
    for (const WalkSite& site : lowering.sites)
      if (site.top != kNoLoop) site_at_top_[site.top] = &site;
  }

  /// The plan's code: a block of its own unless it is the only one.
  Result<void> run() {
    const Plan& plan = lowering_.plan;
    if (plan.least == 0 && plan.most == UINT32_MAX) return emit(lowering_.nest.body);
    const std::uint32_t open = add(Op::Plan, {plan.least, plan.most, 0});
    FVM_TRY(emit(lowering_.nest.body));
    close(open, Op::Plan, {plan.least, plan.most});
    return {};
  }

 private:
  using enum Statement::Kind;

  using Operands = std::vector<std::uint32_t>;

  std::uint32_t add(Op op, const Operands& operands) {
    std::uint32_t values[kMaxOperands] = {};
    std::copy(operands.begin(), operands.end(), values);
    parts_.code.push_back(encode(op, values));
    return static_cast<std::uint32_t>(parts_.code.size() - 1);
  }

  /// Closes the block opened at `open`, whose operands but for the partner are given again.
  void close(std::uint32_t open, Op op, Operands operands) {
    operands.push_back(add(Op::End, {open}));
    std::uint32_t values[kMaxOperands] = {};
    std::copy(operands.begin(), operands.end(), values);
    parts_.code[open] = encode(op, values);
  }

  Result<std::uint32_t> new_register() {
    if (next_register_ == kRangeRegisters)
      return refused("schedule",
                     "its loops need more than " + std::to_string(kRangeRegisters) + " range registers");
    return next_register_++;
  }

  std::uint32_t register_of(LoopId loop, Axis axis) const {
    return loop == kNoLoop ? (axis == Axis::Rows ? 0u : 1u) : registers_.at(loop);
  }

  std::uint32_t accumulator(std::uint32_t number) const { return numbers_.accumulators[number]; }

  std::uint32_t rows_of(const Statement& s) const { return register_of(s.rows, Axis::Rows); }

  void add_slice(std::uint32_t part, std::uint32_t whole, std::uint64_t from, std::uint64_t to) {
    add(Op::Slice, {part, whole, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
    slices_end_ = std::max(slices_end_, part + 1);
  }

  /// The register that holds what a loop steps through; a part of it is sliced off first.
  Result<std::uint32_t> range_of(LoopId id) {
    const auto& loop = lowering_.loops[id];
    const std::uint32_t whole = register_of(loop.source, loop.axis);
    if (loop.from == 0 && loop.to == kAll) return whole;
    FVM_ASSIGN(const std::uint32_t part, new_register());
    add_slice(part, whole, loop.from, loop.to);
    return part;
  }

  Result<void> emit(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      if (parts_.code.size() > kMaxInstructions)
        return refused("schedule",
                       "it unrolls to more than " + std::to_string(kMaxInstructions) + " instructions");
      FVM_TRY(emit(s));
    }
    return {};
  }

  Result<void> emit(const Statement& s) {
    switch (s.kind) {
      case Loop:
        return emit_loop(s);
      case Walk:
      case Leaves:
        return emit_walk(lowering_.sites[s.site], s);
      case Cache:
        emit_cache(s);
        break;
      case Init:
        add(Op::Init, {accumulator(s.accumulator), rows_of(s)});
        break;
      case Zero:
        add(Op::Zero, {accumulator(s.accumulator), rows_of(s)});
        break;
      case AddBase:
        add(Op::AddBase, {accumulator(s.accumulator), rows_of(s)});
        break;
      case Privatize:
        add(Op::Privatize, {accumulator(s.accumulator), register_of(s.loop, Axis::Trees), rows_of(s)});
        break;
      case ReduceDim:
      case ReduceInplace:
        add(s.kind == ReduceDim ? Op::ReduceDim : Op::ReduceInplace,
            {accumulator(s.accumulator), accumulator(s.from), rows_of(s), last_loop_.at(s.loop),
             static_cast<std::uint32_t>(s.reduction.form), s.reduction.width});
        break;
      case Round:
        add(Op::Round, {accumulator(s.accumulator), accumulator(s.from), rows_of(s)});
        break;
      case SumTrees:
        add(Op::SumTrees, {accumulator(s.accumulator), accumulator(s.from), rows_of(s)});
        break;
      case Encode:
        add(Op::Encode, {rows_of(s)});
        break;
      case When:
      case Unless:
        return emit_when(s);
      case Transform:
        add(Op::Transform,
            {accumulator(s.accumulator), rows_of(s), static_cast<std::uint32_t>(lowering_.model.transform)});
        break;
      case Store:
        add(Op::Store, {accumulator(s.accumulator), rows_of(s)});
        break;
      case Label:
        add(Op::Label,
            {accumulator(s.accumulator), rows_of(s), static_cast<std::uint32_t>(lowering_.model.class_rule)});
        break;
    }
    return {};
  }

  Result<void> emit_when(const Statement& s) {
    const Op op = s.kind == When ? Op::When : Op::Unless;
    const std::uint32_t kind = static_cast<std::uint32_t>(s.output);
    const std::uint32_t registers = next_register_, slices_end = slices_end_;
    const std::uint32_t open = add(op, {kind, 0});
    FVM_TRY(emit(s.body));
    close(open, op, {kind});
    next_register_ = registers;
    slices_end_ = slices_end;
    return {};
  }

  /// Trees are cached group by group: those of every walk inside the loop.
  void emit_cache(const Statement& s) {
    const std::uint32_t loop = last_loop_.at(s.loop);
    if (lowering_.loops[s.loop].axis == Axis::Rows) {
      add(Op::CacheRows, {loop, s.ahead});
      return;
    }
    std::vector<std::uint32_t> groups;
    for (const WalkSite& site : lowering_.sites) {
      const bool inside = site.leaf == s.loop || lowering_.loops.inside(site.leaf, s.loop);
      if (!inside || site.tree_begin == site.tree_end) continue;
      for (const WalkerDesc& walker : site.walkers)
        if (std::find(groups.begin(), groups.end(), walker.group) == groups.end())
          groups.push_back(walker.group);
    }
    for (const std::uint32_t group : groups) add(Op::CacheTrees, {loop, s.ahead, numbers_.groups[group]});
  }

  Result<void> emit_loop(const Statement& s) {
    if (const auto site = site_at_top_.find(s.loop); site != site_at_top_.end())
      return emit_walk(*site->second, walk_of(s));
    if (lowering_.loops[s.loop].unroll) return emit_unrolled(s);
    const std::uint32_t saved = next_register_;
    FVM_ASSIGN(const std::uint32_t over, range_of(s.loop));
    // A slice that is no longer needed may be replaced by another slice of its block, but not by a loop.
    const std::uint32_t slices_end = slices_end_;
    next_register_ = std::max(next_register_, slices_end);
    FVM_ASSIGN(const std::uint32_t out, new_register());
    const auto step = static_cast<std::uint32_t>(lowering_.loops[s.loop].step);
    const auto& dimension = lowering_.loops[s.loop].dimension;
    const Op op = dimension ? Op::Map : s.parallel ? Op::Par : Op::For;
    std::vector<std::uint32_t> operands{out, over};
    if (dimension) operands.push_back(static_cast<std::uint32_t>(dimension->value));
    operands.push_back(step);
    const std::uint32_t open = add(op, operands);
    registers_[s.loop] = out;
    last_loop_[s.loop] = open;
    FVM_TRY(emit(s.body));
    close(open, op, operands);
    slices_end_ = slices_end;
    // A later slice may replace this loop's, but not before the reduction that counts its iterations.
    const bool reduced = is_parallel(op) && lowering_.loops[s.loop].axis == Axis::Trees;
    next_register_ = reduced && over >= saved ? saved + 1 : saved;
    return {};
  }

  Result<void> emit_unrolled(const Statement& s) {
    const auto& loop = lowering_.loops[s.loop];
    const std::uint64_t count = lowering_.loops.iterations(s.loop);
    if (count > kMaxInstructions)
      return lowering_.refuse(loop.unroll->directive,
                              count * loop.step >= kAll
                                  ? "the loop has no known number of iterations: tile it first"
                                  : "the loop has " + std::to_string(count) + " iterations, more than " +
                                        std::to_string(kMaxInstructions) + " instructions");
    FVM_ASSIGN(const std::uint32_t over, range_of(s.loop));
    FVM_ASSIGN(const std::uint32_t part, new_register());
    registers_[s.loop] = part;
    const std::uint32_t saved = next_register_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto cut = [&](std::uint64_t at) { return std::min(kAll, at * loop.step); };
      add_slice(part, over, cut(i), cut(i + 1));
      FVM_TRY(emit(s.body));
      next_register_ = saved;
    }
    return {};
  }

  /// The walk, or leaves, statement inside a chain of absorbed loops.
  const Statement& walk_of(const Statement& s) const { return s.kind != Loop ? s : walk_of(s.body.back()); }

  std::uint32_t innermost(const WalkSite& site, Axis axis) const {
    LoopId at = site.leaf;
    while (at != kNoLoop && lowering_.loops[at].axis != axis) at = lowering_.loops[at].parent;
    return register_of(at, axis);
  }

  /// One instruction for the walk, or leaves, statement of a site.
  Result<void> emit_walk(const WalkSite& site, const Statement& s) {
    if (site.tree_begin == site.tree_end) return {};
    const auto range = [&](LoopId top, Axis axis) -> Result<std::uint32_t> {
      if (top == kNoLoop) return innermost(site, axis);
      return range_of(top);
    };
    const std::uint32_t saved = next_register_;
    FVM_ASSIGN(const std::uint32_t trees, range(site.trees_top, Axis::Trees));
    FVM_ASSIGN(const std::uint32_t rows, range(site.rows_top, Axis::Rows));
    next_register_ = saved;
    const std::uint32_t first = walkers(site.walkers, s.atomic);
    const std::uint32_t select = site.specialized == kNoLoop ? 1 : registers_.at(site.specialized);
    if (s.kind == Leaves)
      add(Op::Leaves, {trees, rows, first, select});
    else
      add(Op::Walk, {accumulator(s.accumulator), trees, rows, first, select});
    return {};
  }

  /// The first of these walkers, which follow one another in the table.
  std::uint32_t walkers(std::vector<WalkerDesc> wanted, bool atomic) {
    for (WalkerDesc& walker : wanted) {
      walker.atomic = atomic;
      walker.group = numbers_.groups[walker.group];
    }
    const auto found =
        std::search(parts_.walkers.begin(), parts_.walkers.end(), wanted.begin(), wanted.end());
    const auto first = static_cast<std::uint32_t>(found - parts_.walkers.begin());
    if (found == parts_.walkers.end())
      parts_.walkers.insert(parts_.walkers.end(), wanted.begin(), wanted.end());
    return first;
  }

  const Lowering& lowering_;
  const PlanNumbers& numbers_;
  ProgramParts& parts_;
  std::map<LoopId, const WalkSite*> site_at_top_;
  std::map<LoopId, std::uint32_t> registers_;  ///< that hold the loops' current iterations
  std::map<LoopId, std::uint32_t> last_loop_;  ///< pc of each loop's latest instruction
  std::uint32_t next_register_ = 2;
  std::uint32_t slices_end_ = 0;  ///< registers from here on hold no slice of an open block
};

void emit_group(const TiledForest& forest, const TreeGroup& group, ProgramParts& parts) {
  const BuiltGroup built = build(forest, group);
  GroupDesc desc{};
  desc.layout = group.layout;
  desc.tile_size = static_cast<std::uint8_t>(group.tiling.size);
  desc.tree_begin = group.tree_begin;
  desc.tree_end = group.tree_end;
  desc.first_tree = static_cast<std::uint32_t>(parts.trees.size());
  parts.nodes.resize((parts.nodes.size() + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment);
  desc.node_offset = parts.nodes.size();
  desc.node_count = built.node_count;
  desc.leaf_count = built.leaf_count;
  desc.first_number = parts.leaf_numbers.size();
  parts.groups.push_back(desc);
  parts.trees.insert(parts.trees.end(), built.trees.begin(), built.trees.end());
  parts.nodes.insert(parts.nodes.end(), built.nodes.begin(), built.nodes.end());
  parts.leaf_numbers.insert(parts.leaf_numbers.end(), built.numbers.begin(), built.numbers.end());
  parts.wide_leaves.insert(parts.wide_leaves.end(), built.wide_leaves.begin(), built.wide_leaves.end());
}

/// The plans' groups: those of one layout and the same trees once. Tiles mean the same in all of them,
/// because check_plans has seen to it that plans with tiles have equal tables of shapes.
Result<void> emit_forest(const std::vector<Lowering>& plans, ProgramParts& parts,
                         std::vector<PlanNumbers>& numbers) {
  std::vector<TreeGroup> emitted;
  for (std::size_t p = 0; p < plans.size(); ++p)
    for (const TreeGroup& group : plans[p].forest.groups) {
      const auto same = std::find(emitted.begin(), emitted.end(), group);
      numbers[p].groups.push_back(static_cast<std::uint32_t>(same - emitted.begin()));
      if (same != emitted.end()) continue;
      // Asked again: only now the number of columns is known.
      if (const auto reason = misfit(plans[p].forest, group))
        return refused("schedule", "layout " + std::string(name_of(group.layout)) + ": " + *reason);
      emit_group(plans[p].forest, group, parts);
      emitted.push_back(group);
    }
  return {};
}

/// The program has one order of trees and one table of tile shapes.
Result<void> check_plans(const std::vector<Lowering>& plans, ProgramParts& parts) {
  for (const Lowering& plan : plans) {
    if (plan.forest.order != plans.front().forest.order) {
      const Lowering& ordering = plan.loops.program.order ? plan : plans.front();
      return ordering.refuse(ordering.loops.program.order->directive, "plans must have one order of trees");
    }
    for (const TreeGroup& group : plan.forest.groups) {
      if (group.tiling.size == 1) continue;
      if (!parts.tile_shapes.empty() && parts.tile_shapes != plan.forest.shapes())
        return refused("schedule", "only one plan of a schedule can have tiled trees");
      parts.tile_shapes = plan.forest.shapes();
    }
  }
  return {};
}

/// The plans' accumulators. a0 is every plan's; others are shared where they are alike.
Result<void> emit_accumulators(const std::vector<Lowering>& plans, ProgramParts& parts,
                               std::vector<PlanNumbers>& numbers) {
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const auto& mine = plans[p].nest.accumulators;
    std::vector<std::uint32_t>& number = numbers[p].accumulators;
    std::vector<AccumulatorDesc> wanted;
    // Alike as a whole, or new as a whole: they refer to each other.
    const auto place = [&](std::uint32_t first) {
      number.assign(mine.size(), 0);
      for (std::uint32_t i = 1; i < mine.size(); ++i) number[i] = first + i - 1;
      wanted.clear();
      for (std::uint32_t i = 0; i < mine.size(); ++i) {
        const auto iterations = static_cast<std::uint32_t>(mine[i].iterations);
        const std::uint32_t copies = mine[i].parent == i ? 1 : iterations * wanted[mine[i].parent].copies;
        wanted.push_back(
            {number[mine[i].parent], iterations, copies, number[mine[i].stored_in], mine[i].kind, {}});
      }
    };
    place(0);
    if (parts.accumulators.empty()) parts.accumulators.push_back(wanted.front());
    const auto count = static_cast<std::uint32_t>(parts.accumulators.size());
    std::uint32_t first = 1;
    for (; first < count; ++first) {
      place(first);
      if (wanted.size() - 1 <= count - first &&
          std::equal(wanted.begin() + 1, wanted.end(), parts.accumulators.begin() + first))
        break;
    }
    if (first < count || mine.size() == 1) continue;
    place(count);
    parts.accumulators.insert(parts.accumulators.end(), wanted.begin() + 1, wanted.end());
    if (parts.accumulators.size() > kAccumulators)
      return refused("schedule",
                     "its plans need more than " + std::to_string(kAccumulators) + " accumulators");
  }
  return {};
}

void emit_tables(SourceFacts source, const std::vector<Lowering>& plans, ProgramParts& parts) {
  const Lowering& lowering = plans.front();
  const Model& model = lowering.model;
  const ForestStatistics forest = statistics(model);
  ProgramMeta& meta = parts.meta;
  meta.num_features = model.num_features;
  meta.num_outputs = model.num_outputs;
  meta.num_trees = static_cast<std::uint32_t>(model.trees.size());
  meta.transform = model.transform;
  meta.class_rule = model.class_rule;
  meta.score_type = model.score_type;
  const TransformParameters parameters = parameters_of(model, model.trees.size());
  meta.divisor = parameters.divisor;
  meta.slope = parameters.slope;
  meta.contract = lowering.options.contract;
  meta.sums_in_model_order = 1;
  for (const Lowering& plan : plans) {
    if (!plan.sums.in_model_order) meta.sums_in_model_order = 0;
    if (plan.sums.unit != 0) meta.sum_unit = plan.sums.unit;  // of the model: all that have one have this
  }
  meta.fingerprint = source.fingerprint;
  meta.forest_nodes = forest.nodes;
  meta.forest_leaves = forest.leaves;
  meta.category_splits = forest.category_splits;
  meta.mean_depth = forest.mean_depth;
  meta.min_depth = forest.min_depth;
  meta.max_depth = forest.max_depth;
  meta.num_feature_names = static_cast<std::uint32_t>(source.feature_names.size());
  meta.num_class_labels = static_cast<std::uint32_t>(model.class_labels.size());

  parts.base = model.base;
  parts.thresholds = thresholds_per_feature(model);
  parts.zero_missing = std::move(source.zero_missing);
  parts.strings = std::move(source.feature_names);
  parts.strings.insert(parts.strings.begin(), {model.format, model.trainer, model.version, model.objective,
                                               print(lowering.schedule)});
  parts.strings.insert(parts.strings.end(), model.class_labels.begin(), model.class_labels.end());
}

}  // namespace

std::uint64_t fingerprint(const Model& model) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
  const auto mix_double = [&](double value) { mix(std::bit_cast<std::uint64_t>(value)); };
  mix(model.num_features);
  mix(model.num_outputs);
  mix(static_cast<std::uint64_t>(model.class_rule) << 8 | static_cast<std::uint64_t>(model.transform));
  mix(model.base_last);
  mix(static_cast<std::uint64_t>(model.score_type) << 2 | std::uint64_t{model.tiny_is_zero} << 1 |
      model.averaged);
  mix_double(model.slope);
  for (const double base : model.base) mix_double(base);
  for (const Tree& tree : model.trees) {
    mix(tree.output);
    mix_double(static_cast<double>(tree.weight));
    mix(tree.first_leaf);
    for (const Node& node : tree.nodes) {
      mix(static_cast<std::uint64_t>(node.missing) << 8 | static_cast<std::uint64_t>(node.kind) << 1 |
          node.missing_left);
      mix(std::uint64_t{node.feature} << 32 | static_cast<std::uint32_t>(node.left));
      mix(static_cast<std::uint32_t>(node.right));
      mix_double(node.threshold);
      mix_double(node.value);
      if (node.kind == NodeKind::Category) mix(node.payload);
    }
    for (const CategorySet& set : tree.category_sets) {
      mix(std::uint64_t{set.codes.size()} << 2 | std::uint64_t{set.fractions} << 1 | set.members_left);
      for (const std::uint32_t code : set.codes) mix(code);
    }
  }
  return hash;
}

Result<Program> emit_program(SourceFacts source, const std::vector<Lowering>& plans, RankTable& ranks) {
  FVM_TRY(ranks.seal());
  ProgramParts parts;
  parts.encoded_features = ranks.features();
  parts.columns = ranks.columns();
  parts.ranks = ranks.ranks();
  parts.category_columns = ranks.categories();
  parts.category_words = ranks.category_words();
  std::vector<PlanNumbers> numbers(plans.size());
  FVM_TRY(check_plans(plans, parts));
  FVM_TRY(emit_accumulators(plans, parts, numbers));
  FVM_TRY(emit_forest(plans, parts, numbers));
  for (std::size_t p = 0; p < plans.size(); ++p) FVM_TRY(CodeEmitter(plans[p], numbers[p], parts).run());
  parts.code.push_back(encode(Op::Halt, std::array<std::uint32_t, kMaxOperands>{}.data()));
  emit_tables(std::move(source), plans, parts);
  return encode_program(parts);
}

}  // namespace forestvm::scheduler
