// The automatic schedule for GPUs. A block takes R rows, and each of T threads per row a part of the trees, four at a
// time. The rows of a block are in shared memory if they fit: as rank codes where features are tested often enough to
// pay for encoding, otherwise as values. Each range of rows has the candidate of kShapes that costs least.
// A cost is the time of a call on a GPU with 132 multiprocessors: the time in which loads pass, and the latency of the
// walks of a thread, as if nothing hid it. Its constants come from machine code and data sheets (bench/results/gpu.md),
// not from measurements. T > 1 changes the order of sums, and is a candidate only where the contract has sums that no
// order changes, or promises no bits.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/statistics.hpp>

#include "scheduler/choose/model_schedules.hpp"
#include "scheduler/exact_sums.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {
namespace {

/// The form of a block: its rows, and the threads over which it spreads the trees of a row.
struct Shape {
  std::uint32_t rows, tree_threads;

  double warps() const { return std::ceil(rows * tree_threads / 32.0); }
};
constexpr Shape kShapes[] = {{256, 1}, {128, 1}, {64, 1},  {32, 1},  {16, 1}, {8, 1},
                             {4, 1},   {1, 1},   {1, 32},  {1, 64},  {4, 64}, {8, 64},
                             {8, 32},  {16, 32}, {32, 32}, {32, 16}, {32, 8}, {32, 4}};

/// A later shape of kShapes is taken if it costs less than this part of what the best one before it costs.
constexpr double kGain = 0.95;

constexpr double kFewRows = 32;  ///< blocks of up to this many rows are candidates for calls of fewer rows

/// The numbers of rows for which shapes are compared; each is the most rows of a plan. The last one is BATCH.
constexpr std::uint32_t kCalls[] = {1, 16, 64, 512, 2048, 16384, 65536, 1u << 20};

/// Bytes of shared memory for rows, at 4 bytes a value or code, and for sums. On every GPU a block has that much.
constexpr std::size_t kSharedBytes = 40u << 10;
constexpr std::size_t kSumBytes = 16;  ///< largest size of a sum: Exact128

constexpr std::uint32_t kLockstep = 4;

/// Codes pay from this many steps of a row through all trees for each feature. Visiting an 8-byte node
/// takes 3.7 cycles of shared memory and L1, a 4-byte node 2.2; searching a feature's 8 levels of thresholds
/// takes about 55.
constexpr double kStepsPerCodedFeature = 64;

constexpr std::uint32_t kMaxArrayDepth = 12;
constexpr double kMaxArrayPadding = 2;  ///< largest ratio of slots to nodes for the array layout
/// Largest ratio of the deepest tree's depth to the mean depth with which walks are unrolled.
constexpr double kMaxWalkPadding = 1.25;

// Clocks of a multiprocessor (sm_90). A visit is that of a warp whose walks go in lockstep.
constexpr double kMultiprocessors = 132;
constexpr double kResidentWarps = 32;          ///< warps that 64 registers a thread allow
constexpr double kResidentBytes = 200u << 10;  ///< shared memory of the blocks of a multiprocessor
constexpr double kVisitNear = 30;              ///< latency of a visit, rows in shared memory
constexpr double kVisitFar = 88;               ///< latency of a visit, rows in global memory
constexpr double kLoadsOfCodes = 2.2;          ///< wavefronts of a visit: all lanes walk one tree, by codes
constexpr double kLoadsOfValues = 3.7;         ///< wavefronts of a visit: all lanes walk one tree, by values
constexpr double kLoadsOfTrees = 8.5;          ///< wavefronts of a visit: the lanes walk several trees
constexpr double kLoadsFar = 34.7;             ///< wavefronts of a visit: rows in global memory
constexpr double kClocksOfReducing = 30;       ///< clocks of adding the sum of one thread to that of the row

bool pays_for_codes(const Model& model, const ForestStatistics& forest) {
  return static_cast<double>(model.trees.size()) * forest.mean_depth >=
         kStepsPerCodedFeature * forest.features_used;
}

/// Returns true if the trees fill level order well enough. That order takes the fewest instructions a step.
bool suits_array(const Model& model, const ForestStatistics& forest) {
  if (forest.max_depth > kMaxArrayDepth) return false;
  const std::uint64_t slots = model.trees.size() * ((std::uint64_t{2} << forest.max_depth) - 1);
  return static_cast<double>(slots) <= kMaxArrayPadding * static_cast<double>(forest.nodes);
}

/// The facts about the model by which shapes are compared.
struct Facts {
  ForestStatistics forest;
  double trees, outputs;
  std::size_t values, codes;  ///< values, and most columns of codes, of a row
  bool array, coded;
  bool any_order;  ///< true if the contract's bits do not depend on the order of trees
};

Facts facts_of(const Model& model, Contract contract) {
  const ForestStatistics forest = statistics(model);
  const bool array = suits_array(model, forest);
  return {forest,
          static_cast<double>(model.trees.size()),
          static_cast<double>(model.num_outputs),
          num_columns(model),
          most_columns(model, forest),
          array,
          array && pays_for_codes(model, forest),
          contract != Contract::Trainer && !is_per_tree(exact_sums(model).kind)};
}

/// A shape, and where its rows are.
struct Candidate {
  Shape shape;
  bool staged, coded;
  double bytes;  ///< shared memory of a block
};

/// Returns the candidate for a shape; std::nullopt where the contract forbids it or a block's memory does not hold it.
std::optional<Candidate> candidate(const Facts& facts, const Shape& shape) {
  const bool spread = shape.tree_threads != 1;
  if (spread && (!facts.any_order || facts.trees < 2.0 * shape.tree_threads)) return std::nullopt;
  const bool categories = facts.forest.category_splits != 0;
  const double sums = spread ? shape.tree_threads * facts.outputs * kSumBytes : 0;
  const auto bytes = [&](std::size_t values) {
    return shape.rows * (static_cast<double>(values) * sizeof(float) + sums);
  };
  const bool one_tree = !spread || shape.rows % 32 == 0;  // for all lanes of a warp
  const bool coded = categories || (facts.coded && one_tree && bytes(facts.codes) <= kSharedBytes);
  const double used = bytes(coded ? facts.codes : facts.values);
  if (used <= kSharedBytes) return Candidate{shape, true, coded, used};
  if (spread) return std::nullopt;
  return Candidate{shape, false, coded, 0};
}

/// Returns the clocks that a call of `rows` rows takes.
double clocks(const Facts& facts, const Candidate& one, double rows) {
  const double visits = facts.trees * facts.forest.mean_depth / one.shape.tree_threads;  // of a thread
  const bool several_trees = one.shape.tree_threads != 1 && one.shape.rows % 32 != 0;
  const double loads = !one.staged     ? kLoadsFar
                       : several_trees ? kLoadsOfTrees
                       : one.coded     ? kLoadsOfCodes
                                       : kLoadsOfValues;
  const double here = std::min<double>(one.shape.rows, rows);  // rows of a block
  // Lanes are rows where a block has whole warps of them, otherwise rows and parts of the trees.
  const double warps = one.shape.rows % 32 == 0 ? std::ceil(here / 32) * one.shape.tree_threads
                                                : std::ceil(here * one.shape.tree_threads / 32);
  const double latency =
      visits * (one.staged ? kVisitNear : kVisitFar) + kClocksOfReducing * one.shape.tree_threads;
  const double blocks = std::ceil(std::ceil(rows / one.shape.rows) / kMultiprocessors);
  const double resident = std::max(1.0, std::floor(std::min(kResidentWarps / one.shape.warps(),
                                                            kResidentBytes / std::max(one.bytes, 1.0))));
  return std::ceil(blocks / resident) * latency + blocks * warps * visits * loads;
}

/// Returns the candidate that costs least.
Candidate cheapest(const Facts& facts, double rows) {
  std::optional<Candidate> best;
  double least = 0;
  for (const Shape& shape : kShapes) {
    if (shape.rows > std::max(rows, kFewRows)) continue;  // no call would fill the block
    const std::optional<Candidate> one = candidate(facts, shape);
    if (!one) continue;
    const double cost = clocks(facts, *one, rows);
    if (best && cost > kGain * least) continue;
    best = one;
    least = cost;
  }
  return *best;
}

/// Says why a plan has its shape.
std::string why(const Facts& facts, const Candidate& one, double rows) {
  const std::string threads = one.shape.tree_threads == 1
                                  ? "a thread walks the trees of a row in the model's order"
                                  : formatted("{} threads share the trees of a row", one.shape.tree_threads);
  return formatted("blocks of {} rows, {}, {} {}: {} rows cost {} clocks", one.shape.rows, threads,
                   one.coded ? "codes" : "values", one.staged ? "in shared memory" : "in global memory",
                   static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(clocks(facts, one, rows)));
}

void add_plan(Schedule& schedule, const Facts& facts, const Candidate& one) {
  const std::uint32_t threads = one.shape.tree_threads;
  const bool spread = threads != 1;
  schedule.tile("batch", "b0", "b1", one.shape.rows);
  if (spread) {
    const auto steps = static_cast<std::uint32_t>(std::ceil(facts.trees / threads / kLockstep));
    schedule.tile("tree", "t0", "t", steps * kLockstep).tile("t", "t1", "t2", kLockstep);
    schedule.reorder("b0", "t0", "b1", "t1", "t2").gpuDimension("t0", "block.y").sharedReduce("t0");
  } else {
    schedule.tile("tree", "t0", "t2", kLockstep).reorder("b0", "b1", "t0", "t2");
  }
  schedule.gpuDimension("b0", "grid.x")
      .gpuDimension("b1", "block.x")
      .layout("t0", facts.array ? "array" : "sparse")
      .interleave("t2");
  if (one.coded) schedule.encode("u8");
  if (one.staged) schedule.cache("b0");
  if (facts.array && facts.forest.max_depth <= kMaxWalkPadding * facts.forest.mean_depth)
    schedule.unrollWalk("t2");
}

}  // namespace

Schedule gpu(const Model& model, Contract contract) {
  const Facts facts = facts_of(model, contract);
  Schedule schedule;
  for (std::size_t i = 0; i < std::size(kCalls); ++i) {
    const bool last = i + 1 == std::size(kCalls);
    const Candidate one = cheapest(facts, kCalls[i]);
    if (!last) {
      const Candidate next = cheapest(facts, kCalls[i + 1]);
      if (next.shape.rows == one.shape.rows && next.shape.tree_threads == one.shape.tree_threads) continue;
    }
    schedule.plan(last ? Argument(kBatchSizeName) : Argument(kCalls[i])).directives.back().remark =
        why(facts, one, kCalls[i]);
    add_plan(schedule, facts, one);
  }
  return schedule;
}

}  // namespace forestvm::scheduler
