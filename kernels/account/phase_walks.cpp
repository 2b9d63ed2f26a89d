// Counts the walks of a phase, and the leaves that they keep: see phase_counter.hpp. walk_costs.def has the costs of a
// layout's visits, and instruction_costs.def those of walks besides their visits.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/account/phase_counter.hpp"

namespace forestvm::kernels::counting {

struct WalkCost {
  Layout layout;
  double shared_instructions, global_instructions, wavefronts;
};
namespace {

constexpr double kLineBytes = 128;        ///< bytes of a line of L1
constexpr double kSectorBytes = 32;       ///< bytes that are read from L2 at once
constexpr double kStepsBetweenTests = 2;  ///< of walks until a leaf, see kernels/device/walk.hpp
constexpr double kFewConflicts = 4;       ///< of stores of the leaves of several trees

constexpr WalkCost kWalkCosts[] = {
#define FVM_WALK_COST(layout, ...) {Layout::layout, __VA_ARGS__},
#include "kernels/account/walk_costs.def"
};

bool is_level_order(Layout layout) {
  return layout == Layout::Array || layout == Layout::Array4 || layout == Layout::Reorg;
}

const WalkCost* cost_of(Layout layout) {
  const auto* const row = std::find_if(std::begin(kWalkCosts), std::end(kWalkCosts),
                                       [&](const WalkCost& cost) { return cost.layout == layout; });
  return row == std::end(kWalkCosts) ? nullptr : row;
}

/// Returns the expected number of distinct words in `draws` draws from `of` words.
double distinct_words(double draws, double of) { return of * (1 - std::pow(1 - 1 / of, draws)); }

}  // namespace

gpu_costs::Sums PhaseCounter::sums_of_code() const {
  using enum gpu_costs::Sums;
  gpu_costs::Sums sums = Float32;
  for (const LinkedInst& inst : phase_.code) {
    if (inst.op != Op::Walk) continue;
    const AccumulatorKind kind = program_.accumulators()[linked<Op::Walk, AccOut>(inst)].kind;
    if (kind != AccumulatorKind::F32) sums = is_per_tree(kind) ? Leaves : Others;
  }
  return sums;
}

void PhaseCounter::walk(const LinkedInst& inst, const Repeats& repeats) {
  const Range& trees = range<Op::Walk, Trees>(inst);
  const Chunk& rows = chunks_[linked<Op::Walk, Rows>(inst)];
  const WalkerDesc& walker =
      program_.walkers()[linked<Op::Walk, Walker>(inst) + range<Op::Walk, Select>(inst).iteration];
  const std::uint32_t accumulator = linked<Op::Walk, AccOut>(inst);
  const AccumulatorKind kind = program_.accumulators()[accumulator].kind;
  const bool adds = kind == AccumulatorKind::F32 && walker.atomic == 0;
  visit_nodes(
      walker, trees, rows, repeats,
      {adds, !is_per_tree(kind), kind == AccumulatorKind::PerTree64 || !program_.wide_leaves().empty()});
  if (is_per_tree(kind)) keep_leaves(accumulator, trees, rows, repeats);
  double leaves = trees.size();
  if (kind == AccumulatorKind::F32 && walker.atomic == 0 && walker.order == WalkOrder::RowsOuter)
    leaves = std::min<double>(trees.size(), program_.meta().num_outputs);
  else if (kind == AccumulatorKind::F32 && walker.atomic == 0)
    leaves = iterations(trees.size(), walker.interleaved_trees);
  const double sums = repeats.threads * rows.range.size();
  if (known_ && !is_per_tree(kind))  // stored when all leaves have been added
    add_sums(accumulator, sums * width_of(accumulator));
  else
    add_sums(accumulator, sums * leaves * (is_per_tree(kind) ? 1 : 2));
}

void PhaseCounter::leaves(const LinkedInst& inst, const Repeats& repeats) {
  const Range& trees = range<Op::Leaves, Trees>(inst);
  const Chunk& rows = chunks_[linked<Op::Leaves, Rows>(inst)];
  const WalkerDesc& walker =
      program_.walkers()[linked<Op::Leaves, Walker>(inst) + range<Op::Leaves, Select>(inst).iteration];
  visit_nodes(walker, trees, rows, repeats, {.wide = true});
  account_.bytes.results += repeats.threads * rows.range.size() * trees.size() * sizeof(std::int32_t);
}

void PhaseCounter::visit_nodes(const WalkerDesc& walker, const Range& trees, const Chunk& rows,
                               const Repeats& repeats, const Leaves& leaves) {
  const GroupDesc& group = program_.groups()[walker.group];
  const double steps = walker.end == WalkEnd::Exact
                           ? walker.steps
                           : std::max<double>(walker.steps, program_.meta().mean_depth);
  const double visits = repeats.threads * rows.range.size() * trees.size() * steps;
  if (visits == 0) return;
  const bool staged = walker.group < staged_groups_.size() && staged_groups_[walker.group];
  if (!staged)
    for_trees(group, trees, [&](const TreeDesc& tree) {
      account_.bytes.nodes += repeats.blocks * std::min(static_cast<double>(tree.node_count) *
                                                            static_cast<double>(node_size(group.layout)),
                                                        rows.block_rows * (steps + 1) * kSectorBytes);
    });
  if (std::find(account_.layouts.begin(), account_.layouts.end(), group.layout) == account_.layouts.end())
    account_.layouts.push_back(group.layout);
  const bool coded = takes_codes(group.layout);
  const bool staged_row = staged_stride_ != 0 && (staged_as_ == StagedAs::Values) != coded;
  if (!staged_row) (coded ? reads_codes_ : reads_values_) = true;
  account_.visits += visits;
  const WalkCost* const cost = cost_of(group.layout);
  if (cost == nullptr) {
    account_.counted = false;
    return;
  }
  account_.wavefronts += visits * (node_wavefronts(*cost) + (coded && !staged_row ? 1 : value_wavefronts()));
  const double rows_here = rows.of_thread ? rows.range.size() : std::ceil(rows.range.size() / sharing_);
  const Tiles tiles = tiles_of(walker, group, trees.size(), rows_here, staged_row, leaves);
  time_walks(group, tiles, staged_row, coded, repeats);
  const double of_visit = staged ? cost->shared_instructions : cost->global_instructions;
  Leaves delivered = leaves;
  delivered.wide |= staged || !staged_row;  // see kernels/device/walk.hpp
  issue_walks(walker, group, tiles, of_visit + (staged_row ? 0 : kFarStep), repeats, delivered);
}

/// Returns the walks of a thread as kernels/device/walk.hpp makes them and nvcc compiles it.
PhaseCounter::Tiles PhaseCounter::tiles_of(const WalkerDesc& walker, const GroupDesc& group, double trees,
                                           double rows, bool staged_row, const Leaves& leaves) {
  const std::uint32_t wide = std::min<std::uint32_t>(walker.interleaved_trees, 4);
  const std::uint32_t high = std::min<std::uint32_t>(walker.interleaved_rows, 4 / wide);
  const std::size_t node = node_size(group.layout);
  const bool lean = node != 12 && group.layout != Layout::Sparse4;
  std::uint32_t together = std::min<std::uint32_t>(wide * high, staged_row && lean ? 4 : 2);
  if (!leaves.adds) together = node <= 8 && wide * high == 4 ? 4 : 1;
  if (trees < wide || rows < high) together = 1;
  return {trees * rows, together};
}

void PhaseCounter::time_walks(const GroupDesc& group, const Tiles& tiles, bool staged_row, bool coded,
                              const Repeats& repeats) {
  using namespace gpu_costs;
  const double lanes = std::min(double{kBanks}, walking_threads());
  const Lanes reads = !staged_row                   ? Lanes::Far
                      : rows_across_lanes() < lanes ? Lanes::Trees
                      : coded                       ? Lanes::Codes
                                                    : Lanes::Values;
  const double depth = program_.meta().mean_depth * (is_level_order(group.layout) ? 1 : kSparse);
  const auto walks = static_cast<std::uint32_t>(tiles.walks);
  wait(BlockPart::Walks, repeats, depth * level_latency(walks, tiles.together));
  pass(BlockPart::Walks, repeats,
       walking_warps() * tiles.walks * depth * visit_passing(reads, row_width(program_.meta())));
}

void PhaseCounter::issue_walks(const WalkerDesc& walker, const GroupDesc& group, const Tiles& tiles,
                               double of_visit, const Repeats& repeats, const Leaves& leaves) {
  const double steps = walker.steps, depth = program_.meta().mean_depth;
  if (!leaves.adds && leaves.wide) {
    const double of_walk = kDelivered + (leaves.sums ? kDeliveredSum : 0) +
                           kDeliveredStep * (walker.end == WalkEnd::Exact ? steps : std::max(steps, depth));
    issue(repeats, kDeliver + as_many(tiles.walks * of_walk));
    return;
  }
  if (tiles.together == 1) of_visit += kVisitAlone;
  double of_walk = kWalkOfTile + steps * of_visit;
  if (!leaves.adds) of_walk += kDeliveredValue + (leaves.sums ? kDeliveredSum : 0);
  if (walker.end == WalkEnd::UntilLeaf) {
    const double tests = std::ceil(std::max(0.0, depth - steps) / kStepsBetweenTests);
    of_walk += kUntilLeaf + (tests + 1) * (is_level_order(group.layout) ? kLeafTest : kSparseTest) +
               tests * kStepsBetweenTests * of_visit;
  }
  const double whole = leaves.adds ? kWalk : phase_.known.code != KnownCode::None ? 0 : kDeliver;
  issue(repeats, whole + tiles.walks / tiles.together * kTile + as_many(tiles.walks * of_walk));
}

/// Adds what storing a tree's leaf of each row costs.
void PhaseCounter::keep_leaves(std::uint32_t accumulator, const Range& trees, const Chunk& rows,
                               const Repeats& repeats) {
  const bool shared = in_shared_memory(accumulator);
  const std::size_t leaf = element_size(program_.accumulators()[accumulator].kind);
  const auto words =
      static_cast<std::uint32_t>(kept_leaves(program_.meta().num_trees, leaf) * leaf / sizeof(float));
  const double conflicts = rows_across_lanes() == kBanks ? std::gcd(words, kBanks) : kFewConflicts;
  const double rows_here = rows.of_thread ? rows.range.size() : rows_of_warp(rows);
  pass(BlockPart::Sums, repeats,
       walking_warps() * trees.size() * rows_here * gpu_costs::leaf_passing(shared, conflicts));
}

/// Adds what adding the leaves of rows in the order of trees costs.
void PhaseCounter::sum_trees(const LinkedInst& inst, const Repeats& repeats) {
  const std::uint32_t from = linked<Op::SumTrees, AccIn>(inst);
  const double leaves = elements(from, linked<Op::SumTrees, Rows>(inst), repeats);
  const ProgramMeta& meta = program_.meta();
  const bool vectors = !program_.leaf_vectors().empty();
  const double trees = vectors ? meta.num_trees : iterations(meta.num_trees, meta.num_outputs);  // of a sum
  const double own = rows_of_warp(chunks_[linked<Op::SumTrees, Rows>(inst)], meta.num_outputs);
  const bool shared = in_shared_memory(from), successive = meta.num_outputs == 1;
  issue(repeats, kSumTrees + own * (kSumOfTrees +
                                    as_many(trees * (successive && !vectors ? kAddNextLeaf : kAddLeaf))));
  wait(BlockPart::Sums, repeats,
       std::ceil(own) * gpu_costs::adding_latency({trees, shared, successive, vectors}));
  const double of_block = chunks_[linked<Op::SumTrees, Rows>(inst)].range.size() * width_of(from);
  const auto leaf_bytes = static_cast<double>(element_size(program_.accumulators()[from].kind));
  pass(BlockPart::Sums, repeats, gpu_costs::adding_passing(shared, of_block * leaf_bytes) / joined_);
  add_sums(from, leaves);
  const double added = vectors ? leaves * meta.num_outputs : leaves;
  if (vectors) account_.bytes.nodes += added * size_of(meta.score_type);
  if (const auto functions = program_.leaf_functions(); !functions.empty()) {
    const auto terms = static_cast<double>(program_.leaf_terms().size());
    const double function_bytes =
        sizeof(LeafFunction) + terms / static_cast<double>(functions.size()) * sizeof(IndexedTerm);
    account_.bytes.nodes += leaves * function_bytes;
    account_.bytes.rows += leaves / std::max(1u, meta.num_trees) * leaf_value_bytes_;
  }
  if (!known_) add_sums(linked<Op::SumTrees, AccOut>(inst), 2 * added);
}

/// Returns the wavefronts of a node load of a warp. A load of w words is done for 32 / w lanes at a time.
double PhaseCounter::node_wavefronts(const WalkCost& cost) const {
  const double words = static_cast<double>(node_size(cost.layout)) / 4.0;
  const double lanes = std::min(double{kBanks}, walking_threads());
  const bool own_trees = rows_across_lanes() < lanes;
  return own_trees ? words * fullest_bank(lanes / words, double{kBanks} / words) : cost.wavefronts;
}

double PhaseCounter::value_wavefronts() const {
  const double rows = rows_across_lanes(), features = row_width(program_.meta());
  const double trees = std::min(double{kBanks}, walking_threads()) / rows;
  const double values = distinct_words(trees, features);  // of each row
  if (staged_stride_ == 0) {
    const double row_lines = std::ceil(row_bytes() / kLineBytes);
    return std::min(rows * std::min(values, row_lines), std::max(1.0, rows * row_bytes() / kLineBytes));
  }
  // The values of a feature lie side by side, and the next feature begins `stride` words further on.
  const double apart = std::max<double>(rows, std::gcd(staged_stride_, 32u));
  return fullest_bank(values, double{kBanks} / apart);
}

}  // namespace forestvm::kernels::counting
