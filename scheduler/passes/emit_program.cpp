// Loop nest and tiled forest -> program: registers for loops, one walk instruction for each site, the groups'
// nodes, the tables. The program is verified before it is handed on.
#include <algorithm>
#include <map>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

/// Instructions that a schedule may unroll to.
constexpr std::size_t kMaxInstructions = 1 << 16;

class CodeEmitter {
 public:
  CodeEmitter(const Lowering& lowering, ProgramParts& parts) : lowering_(lowering), parts_(parts) {
    for (const WalkSite& site : lowering.sites)
      if (site.top != kNoLoop) site_at_top_[site.top] = &site;
  }

  Result<void> run() {
    FVM_TRY(emit(lowering_.nest.body));
    add(Op::Halt, {});
    return {};
  }

 private:
  using enum Statement::Kind;

  std::uint32_t add(Op op, std::initializer_list<std::uint32_t> operands) {
    parts_.code.push_back(encode(op, operands.begin()));
    return static_cast<std::uint32_t>(parts_.code.size() - 1);
  }

  /// Closes the block opened at `open`, whose operands but for the partner are given again.
  void close(std::uint32_t open, Op op, std::initializer_list<std::uint32_t> operands) {
    const std::uint32_t end = add(Op::End, {open});
    std::uint32_t values[kMaxOperands] = {};
    std::copy(operands.begin(), operands.end(), values);
    values[operands.size()] = end;
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
        return emit_walk(lowering_.sites[s.site], s.accumulator);
      case Init:
        add(Op::Init, {s.accumulator, rows_of(s)});
        break;
      case Zero:
        add(Op::Zero, {s.accumulator, rows_of(s)});
        break;
      case AddBase:
        add(Op::AddBase, {s.accumulator, rows_of(s)});
        break;
      case Privatize:
        add(Op::Privatize, {s.accumulator, register_of(s.loop, Axis::Trees), rows_of(s)});
        break;
      case ReduceDim:
        add(Op::ReduceDim, {s.accumulator, s.accumulator + 1, rows_of(s), last_loop_.at(s.loop)});
        break;
      case When:
        return emit_when(s);
      case Transform:
        add(Op::Transform,
            {s.accumulator, rows_of(s), static_cast<std::uint32_t>(lowering_.model.transform)});
        break;
      case Store:
        add(Op::Store, {s.accumulator, rows_of(s)});
        break;
      case Label:
        add(Op::Label, {s.accumulator, rows_of(s), static_cast<std::uint32_t>(lowering_.model.class_rule)});
        break;
    }
    return {};
  }

  Result<void> emit_when(const Statement& s) {
    const std::uint32_t kind = static_cast<std::uint32_t>(s.output);
    const std::uint32_t open = add(Op::When, {kind, 0});
    FVM_TRY(emit(s.body));
    close(open, Op::When, {kind});
    return {};
  }

  Result<void> emit_loop(const Statement& s) {
    if (const auto site = site_at_top_.find(s.loop); site != site_at_top_.end())
      return emit_walk(*site->second, walk_of(s).accumulator);
    if (lowering_.loops[s.loop].unroll) return emit_unrolled(s);
    const std::uint32_t saved = next_register_;
    FVM_ASSIGN(const std::uint32_t over, range_of(s.loop));
    // A slice that is no longer needed may be replaced by another slice of its block, but not by a loop.
    const std::uint32_t slices_end = slices_end_;
    next_register_ = std::max(next_register_, slices_end);
    FVM_ASSIGN(const std::uint32_t out, new_register());
    const auto step = static_cast<std::uint32_t>(lowering_.loops[s.loop].step);
    const Op op = s.parallel ? Op::Par : Op::For;
    const std::uint32_t open = add(op, {out, over, step, 0});
    registers_[s.loop] = out;
    last_loop_[s.loop] = open;
    FVM_TRY(emit(s.body));
    close(open, op, {out, over, step});
    slices_end_ = slices_end;
    // A later slice may replace this loop's, but not before the reduction that counts its iterations.
    const bool reduced = s.parallel && lowering_.loops[s.loop].axis == Axis::Trees;
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

  /// The walk inside a chain of absorbed loops.
  const Statement& walk_of(const Statement& s) const { return s.kind == Walk ? s : walk_of(s.body.back()); }

  std::uint32_t innermost(const WalkSite& site, Axis axis) const {
    LoopId at = site.leaf;
    while (at != kNoLoop && lowering_.loops[at].axis != axis) at = lowering_.loops[at].parent;
    return register_of(at, axis);
  }

  Result<void> emit_walk(const WalkSite& site, std::uint32_t accumulator) {
    if (site.tree_begin == site.tree_end) return {};
    const auto range = [&](LoopId top, Axis axis) -> Result<std::uint32_t> {
      if (top == kNoLoop) return innermost(site, axis);
      return range_of(top);
    };
    const std::uint32_t saved = next_register_;
    FVM_ASSIGN(const std::uint32_t trees, range(site.trees_top, Axis::Trees));
    FVM_ASSIGN(const std::uint32_t rows, range(site.rows_top, Axis::Rows));
    next_register_ = saved;
    add(Op::Walk, {accumulator, trees, rows, walker(site.walker)});
    return {};
  }

  std::uint32_t walker(const WalkerDesc& wanted) {
    const auto same = [&](const WalkerDesc& w) {
      return w.group == wanted.group && w.hops == wanted.hops && w.end == wanted.end &&
             w.order == wanted.order && w.interleaved_trees == wanted.interleaved_trees &&
             w.interleaved_rows == wanted.interleaved_rows;
    };
    const auto found = std::find_if(parts_.walkers.begin(), parts_.walkers.end(), same);
    const auto index = static_cast<std::uint32_t>(found - parts_.walkers.begin());
    if (found == parts_.walkers.end()) parts_.walkers.push_back(wanted);
    return index;
  }

  const Lowering& lowering_;
  ProgramParts& parts_;
  std::map<LoopId, const WalkSite*> site_at_top_;
  std::map<LoopId, std::uint32_t> registers_;  ///< that hold the loops' current iterations
  std::map<LoopId, std::uint32_t> last_loop_;  ///< pc of each loop's latest instruction
  std::uint32_t next_register_ = 2;
  std::uint32_t slices_end_ = 0;  ///< registers from here on hold no slice of an open block
};

void emit_forest(const Lowering& lowering, ProgramParts& parts) {
  for (const TreeGroup& group : lowering.forest.groups) {
    GroupDesc desc{};
    desc.layout = group.layout;
    desc.tree_begin = group.tree_begin;
    desc.tree_end = group.tree_end;
    desc.first_tree = static_cast<std::uint32_t>(parts.trees.size());
    parts.nodes.resize((parts.nodes.size() + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment);
    desc.node_offset = parts.nodes.size();
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
      const Tree& tree = lowering.model.trees[t];
      const TreeShape& shape = lowering.forest.shapes[t];
      TreeDesc record{};
      switch (group.layout) {
#define FVM_LAYOUT(Name, text, View, meaning)                         \
  case Layout::Name:                                                  \
    record = build_##Name(tree, shape, group.pad_depth, parts.nodes); \
    break;
#include <forestvm/core/layouts.def>
      }
      record.first_node = static_cast<std::uint32_t>(desc.node_count);
      desc.node_count += record.node_count;
      parts.trees.push_back(record);
    }
    parts.groups.push_back(desc);
  }
}

/// FNV-1a over what decides a prediction.
std::uint64_t fingerprint(const Model& model) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
  const auto mix_double = [&](double value) { mix(std::bit_cast<std::uint64_t>(value)); };
  mix(model.num_features);
  mix(model.num_outputs);
  mix(static_cast<std::uint64_t>(model.transform));
  mix(model.base_last);
  for (const double base : model.base) mix_double(base);
  for (const Tree& tree : model.trees) {
    mix(tree.output);
    mix_double(static_cast<double>(tree.weight));
    for (const Node& node : tree.nodes) {
      mix(static_cast<std::uint64_t>(node.kind) << 1 | node.missing_left);
      mix(std::uint64_t{node.feature} << 32 | static_cast<std::uint32_t>(node.left));
      mix(static_cast<std::uint32_t>(node.right));
      mix_double(node.threshold);
      mix_double(node.value);
    }
  }
  return hash;
}

void emit_tables(const Lowering& lowering, ProgramParts& parts) {
  const Model& model = lowering.model;
  const ForestStatistics forest = statistics(model);
  ProgramMeta& meta = parts.meta;
  meta.num_features = model.num_features;
  meta.num_outputs = model.num_outputs;
  meta.num_trees = static_cast<std::uint32_t>(model.trees.size());
  meta.transform = model.transform;
  meta.class_rule = model.class_rule;
  meta.contract = lowering.options.contract;
  meta.sums_in_model_order = lowering.sums_in_model_order;
  meta.fingerprint = fingerprint(model);
  meta.forest_nodes = forest.nodes;
  meta.forest_leaves = forest.leaves;
  meta.mean_depth = forest.mean_depth;
  meta.min_depth = forest.min_depth;
  meta.max_depth = forest.max_depth;
  meta.num_feature_names = static_cast<std::uint32_t>(model.feature_names.size());
  meta.num_class_labels = static_cast<std::uint32_t>(model.class_labels.size());

  parts.base = model.base;
  parts.thresholds = thresholds_per_feature(model);
  parts.strings = {model.format, model.trainer, model.version, model.objective, print(lowering.schedule)};
  parts.strings.insert(parts.strings.end(), model.feature_names.begin(), model.feature_names.end());
  parts.strings.insert(parts.strings.end(), model.class_labels.begin(), model.class_labels.end());

  std::uint32_t copies = 1;
  const auto& iterations = lowering.nest.accumulators;
  for (std::uint32_t i = 0; i < iterations.size(); ++i) {
    copies *= static_cast<std::uint32_t>(iterations[i]);
    parts.accumulators.push_back({i == 0 ? 0 : i - 1, static_cast<std::uint32_t>(iterations[i]), copies});
  }
}

}  // namespace

Result<void> emit_program(Lowering& lowering) {
  ProgramParts parts;
  FVM_TRY(CodeEmitter(lowering, parts).run());
  emit_forest(lowering, parts);
  emit_tables(lowering, parts);
  FVM_ASSIGN(lowering.program, encode_program(parts));
  return {};
}

}  // namespace forestvm::scheduler
