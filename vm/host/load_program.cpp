// See load_program.hpp.
#include "vm/host/load_program.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/derived_tables.hpp>
#include <forestvm/internal/float_environment.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>

namespace forestvm::host {
namespace {

/// Copies the roots of a group's trees if the layout is one whose trees lanes walk.
RootNodes root_nodes(Layout layout, const GroupData& group) {
  RootNodes roots;
  with_view(layout, [&]<class View>() {
    if constexpr (requires { View::kLeafWord; }) roots = RootNodes::of<View>(group, group.tree_count);
  });
  return roots;
}

/// Returns whether walks come to a leaf in every tree. An exact walk may end before.
bool comes_to_leaves(const WalkerDesc& desc, const GroupData& group) {
  const std::span trees(group.trees, group.tree_count);
  return desc.end != WalkEnd::Exact ||
         std::ranges::all_of(trees, [&](const TreeDesc& tree) { return tree.depth <= desc.steps; });
}

/// Returns the walker of a group's walks.
Walker find_walker(const Target& target, const GroupDesc& group, WalkerDesc wanted) {
  // Lanes hold slots of the group as signed words.
  if (group.node_count > INT32_MAX) wanted.interleaved_trees = wanted.interleaved_rows = 1;
  const Walker walker = target.find_walker(group.layout, wanted);
  const auto in_lanes = [](const Walker& w) { return w && w.interleaving.tiles == nullptr; };
  const std::uint64_t trees = group.tree_end - group.tree_begin;
  if (!in_lanes(walker) || 4 * trees > 3ULL * wanted.interleaved_trees) return walker;
  // A vector takes as long for few trees as for all of its lanes: scalar walks of up to three quarters as many trees
  // take less.
  wanted.interleaved_trees /= 2;
  const Walker scalar = target.find_walker(group.layout, wanted);
  return in_lanes(scalar) ? walker : scalar;
}

Result<LoadedWalker> load_walker(const Program& program, LoadedProgram& loaded, const WalkerDesc& desc,
                                 const Target& target) {
  const GroupDesc& group = loaded.groups[desc.group];
  LoadedWalker walker{};
  walker.walk = find_walker(target, group, desc);
  if (!walker.walk)
    return fail(ErrorCode::Environment,
                formatted("this library was built without the layout {} (CMake's FORESTVM_LAYOUTS)",
                          name_of(group.layout)));
  walker.task.group = loaded.group_data[desc.group];
  if (walker.walk.interleaving.tiles ==
      nullptr) {  // the walks of these layouts that have no tiles are in lanes
    TreesInLanes& trees = loaded.in_lanes[desc.group];
    trees.roots = root_nodes(group.layout, walker.task.group);
    walker.task.roots = &trees.roots;
    if (group.layout == Layout::Sparse4 && comes_to_leaves(desc, walker.task.group)) {
      if (trees.byte_tests == nullptr)
        trees.byte_tests = target.byte_tests(walker.task.group, walker.task.group.tree_count, loaded.columns,
                                             !program.wide_leaves().empty());
      walker.task.byte_tests = trees.byte_tests.get();
    }
  }
  walker.task.first_tree = group.tree_begin;
  walker.task.numbers = program.leaf_numbers().data() + group.first_number;
  const auto wide_leaves = program.wide_leaves();
  walker.task.wide_leaves = wide_leaves.empty() ? nullptr : wide_leaves.data() + group.first_number;
  walker.task.scale = loaded.scale;
  walker.task.steps = desc.steps;
  walker.task.order = desc.order;
  walker.task.atomic = desc.atomic != 0;
  walker.task.exact = desc.end == WalkEnd::Exact;
  walker.trees_ascend = loaded.trees_ascend[desc.group] != 0;
  return walker;
}

/// Returns a Grain for each parallel loop over rows, by pc. Such a loop may be cut anywhere: only loops over
/// trees make copies of accumulators and select walkers, so nothing depends on which iteration a row is in.
std::vector<std::unique_ptr<Grain>> grains(const Program& program) {
  std::vector<std::unique_ptr<Grain>> grains(program.code().size());
  const CodeMap& map = code_map(program);
  for (std::size_t pc = 0; pc < grains.size(); ++pc)
    if (is_parallel(program.code()[pc].op) && map.ranges[map.insts[pc].in].axis == Axis::Rows)
      grains[pc] = std::make_unique<Grain>();
  return grains;
}

/// Returns Leaves unless the sums of walks for raw scores are those of the first rounds whenever these are walked: then
/// the program says that it adds in the model's order, and nothing but walks changes scores.
StageRule stage_rule(const Program& program) {
  const ProgramMeta& meta = program.meta();
  if (program.round_begins().empty() || meta.sums_in_model_order == 0 || !counts_as_model(program))
    return StageRule::Leaves;
  const bool wide = meta.score_type == ScalarType::Float64;
  const AccumulatorKind scores = wide ? AccumulatorKind::F64 : AccumulatorKind::F32;
  StageRule rule = StageRule::Walks;
  for (std::size_t pc = 0; pc < program.code().size(); ++pc) {
    const Inst& inst = program.code()[pc];
    const std::uint32_t sums = code_map(program).insts[pc].walk_sums;
    const AccumulatorKind kind = sums == kNoAccumulator ? scores : program.accumulators()[sums].kind;
    const bool moves_sums = inst.op == Op::SumTrees || inst.op == Op::Round || inst.op == Op::ReduceDim ||
                            inst.op == Op::ReduceInplace;
    if (moves_sums || (kind != scores && !is_per_tree(kind))) return StageRule::Leaves;
    if (inst.op == Op::StoreStages && operands<Op::StoreStages>(inst).base_last != 0)
      rule = StageRule::WalksToBase;
  }
  return rule;
}

}  // namespace

Result<std::unique_ptr<const LoadedProgram>> load_program(const Program& program, const Target& target,
                                                          const Executor* executor) {
  // Is allocated on the heap and never moved: a move constructor for all these tables would be larger than this
  // function.
  auto made = std::make_unique<LoadedProgram>(program);
  LoadedProgram& loaded = *made;
  loaded.groups = program.groups();
  loaded.columns = program.columns().size();
  loaded.category_words = program.category_words().data();
  loaded.accumulators = program.accumulators();
  loaded.memory = code_map(program).accumulators.data();
  loaded.tile_exits = tile_exits(program);
  loaded.tree_outputs = tree_outputs(program);
  loaded.stages = stage_rule(program);
  loaded.vectors = leaf_vectors(program);
  target.add_levels(loaded.paths);
  loaded.parameters = parameters_of(program.meta());
  loaded.encoder = load_encoder(program.encoded_features(), program.ranks(), program.columns(),
                                program.category_columns(), row_width(program.meta()));
  loaded.target = &target;
  loaded.cpu = target.cpu();
  loaded.scale = SumScale(program.meta().sum_unit);
  for (const GroupDesc& group : loaded.groups) {
    loaded.group_data.push_back(group_data(program, group, loaded.tile_exits.data()));
    loaded.trees_ascend.push_back(has_trees_in_order(program, group) ? 1 : 0);
  }
  loaded.in_lanes.resize(loaded.groups.size());
  for (const WalkerDesc& desc : program.walkers()) {
    FVM_ASSIGN(const LoadedWalker walker, load_walker(program, loaded, desc, target));
    loaded.walkers.push_back(walker);
  }
  const FloatEnvironment environment;  // for CsrEncoder, which compares zero with thresholds
  loaded.row_reader =
      std::make_unique<RowReader>(loaded.program, target.round, std::nullopt, target.picks_doubles());
  loaded.csr_encoder = CsrEncoder(loaded.program, loaded.row_reader->rules());
  loaded.special_features = std::make_unique<bool[]>(program.meta().num_features);
  for (const ValueRules::Special& special : loaded.row_reader->rules().specials())
    loaded.special_features[special.feature] = true;
  loaded.base.assign(program.base().begin(), program.base().end());
  loaded.no_base.assign(loaded.base.size(), 0);
  if (executor != nullptr) loaded.grains = grains(program);
  loaded.executor = executor;
  return std::unique_ptr<const LoadedProgram>(std::move(made));
}

}  // namespace forestvm::host
