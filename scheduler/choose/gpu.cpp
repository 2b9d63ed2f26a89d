// The automatic schedule for GPUs. A block takes R rows, and each of T threads per row a part of the trees, up to four
// at a time. The rows of a block are in shared memory if they fit, as values or as rank codes. Each range of rows has
// the candidate that costs least: a form of kShapes with values or, if trees lie in level order, with codes.
// A cost is the time of a call on a GPU with 132 multiprocessors, by gpu_costs.hpp: the time in which loads pass, and
// the latencies of a block. The accounting (kernels/account) estimates calls by the same costs. With T > 1 each thread
// has sums of its own, which are added after the walks. Where the contract wants sums in the model's order, the block
// keeps the leaf of every tree instead, and a thread adds them in that order. In calls of few rows, several blocks may
// share the trees of the same rows: the last of them adds what all have made.
#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/layout/sparse8.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/gpu_banks.hpp>
#include <forestvm/internal/gpu_costs.hpp>
#include <forestvm/internal/statistics.hpp>

#include "scheduler/choose/model_schedules.hpp"
#include "scheduler/exact_sums.hpp"
#include "scheduler/layouts/builder.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {
namespace {

/// The form of a block: its rows, and the threads over which it spreads its trees of a row. `blocks` is the number of
/// blocks that share all trees of a row.
struct Shape {
  std::uint32_t rows, tree_threads, blocks = 1;

  double warps() const { return std::ceil(rows * tree_threads / 32.0); }
};
constexpr Shape kShapes[] = {{256, 1}, {128, 1}, {64, 1},  {32, 1},  {16, 1},  {8, 1},   {4, 1},   {1, 1},
                             {1, 32},  {1, 64},  {4, 64},  {8, 64},  {8, 32},  {16, 32}, {32, 32}, {32, 16},
                             {32, 8},  {32, 4},  {1, 128}, {1, 256}, {1, 512}, {1, 1024}};

/// Numbers of blocks that may share the trees of a row, if that leaves no more than kMostBlocks blocks.
constexpr std::uint32_t kTreeBlocks[] = {1, 4, 16, 64};
constexpr double kMostBlocks = 264;

/// The most blocks of rows that linking lets join with others: passes of more take several launches, whose costs are
/// not known here.
constexpr std::uint32_t kMostJoined = 1024;

/// A later shape of kShapes is taken if it costs less than this part of what the best one before it costs. Costs
/// differ from times by 16 % in the geometric mean.
constexpr double kGain = 0.9;

constexpr double kFewBlockRows = 32;  ///< blocks of up to this many rows are candidates for all calls

/// The most accumulators of plans: a program has as many beside the scores.
constexpr std::size_t kMaxPlanAccumulators = kAccumulators - 1;

/// The numbers of rows for which shapes are compared; each is the most rows of a plan. The last one is BATCH.
constexpr std::uint32_t kCalls[] = {1, 16, 64, 512, 2048, 16384, 65536, 1u << 20};

/// Most bytes of a block's shared memory for rows, as values or codes, and for sums. On GPUs that have less, linking
/// takes the plan of fewer rows that is nearest and fits.
constexpr std::size_t kSharedBytes = kPlannedShared;
/// Most bytes of these in the plan for the fewest rows, which runs on every GPU: each has 48 kB, of which a block has
/// other things, too.
constexpr std::size_t kSharedEverywhere = 40u << 10;

constexpr std::uint32_t kLockstep = 4;  ///< the most trees that a thread walks in lockstep

constexpr std::uint32_t kMaxArrayDepth = 12;  ///< greatest depth of a tree for the array layout
constexpr double kMaxArrayPadding = 2;        ///< largest ratio of slots to nodes for the array layout
/// Largest ratio of the deepest tree's depth to the mean depth with which walks are unrolled.
constexpr double kMaxWalkPadding = 1.25;

// The sizes of a GPU of compute capability 9.0.
constexpr double kMultiprocessors = 132;
constexpr double kResidentBytes = 200u << 10;  ///< shared memory of the blocks of a multiprocessor

/// Returns the columns of codes that the model's tests read; std::nullopt if there are too many.
std::optional<std::size_t> code_columns(const Model& model) {
  RankTable ranks;
  for (const Tree& tree : model.trees)
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const NodeKind kind = tree.nodes[i].kind;
      if (kind == NodeKind::Leaf || kind == NodeKind::Unused) continue;
      ranks.add(test_of(tree, static_cast<std::int32_t>(i)));
    }
  if (!ranks.seal().ok()) return std::nullopt;
  return ranks.columns().size();
}

/// Returns true if the trees fill level order well enough. That order takes the fewest instructions a step.
bool suits_array(const Model& model, const ForestStatistics& forest) {
  if (forest.max_depth > kMaxArrayDepth) return false;
  const std::uint64_t slots = model.trees.size() * ((std::uint64_t{2} << forest.max_depth) - 1);
  return static_cast<double>(slots) <= kMaxArrayPadding * static_cast<double>(forest.nodes);
}

/// Returns true if the sparse layout with nodes of 8 bytes holds the trees. Nodes that hold codes take 4 bytes.
bool fits_sparse8(const Model& model) {
  return num_columns(model) <= std::size_t{1} << Sparse8View::kFeatureBits &&
         std::all_of(model.trees.begin(), model.trees.end(),
                     [](const Tree& tree) { return tree.nodes.size() <= Sparse8View::kDistanceMask; });
}

/// The facts about the model by which shapes are compared.
struct Facts {
  ForestStatistics forest;
  double trees, outputs;
  std::size_t values;                ///< values of a row
  std::optional<std::size_t> codes;  ///< columns of codes of a row, if codes may be walked
  bool array;                        ///< true if trees lie in level order
  bool small_nodes;                  ///< true if nodes have at most 8 bytes
  bool float32_scores;               ///< true if raw scores are float32
  bool exact_sums;                   ///< true if threads that share the trees of a row have exact sums
  bool float32_sums;    ///< true if the thread that walks all trees of a row adds leaves to float32 sums
  double trees_of_sum;  ///< trees that add to an output
  bool vectors;         ///< true if leaves are vectors, of which each has an element for each output
  bool keeps_leaves;    ///< true if threads that share the trees of a row keep every tree's leaf
  double leaf_bytes;    ///< bytes of a leaf that is kept
  double sum_bytes;     ///< bytes of a sum of threads that share the trees of a row
};

Facts facts_of(const Model& model, Contract contract) {
  const ForestStatistics forest = statistics(model);
  const AccumulatorKind exact = exact_sums(model).kind, plain = sum_kind(model.score_type);
  const bool array = suits_array(model, forest);
  return {forest,
          static_cast<double>(model.trees.size()),
          static_cast<double>(model.num_outputs),
          num_columns(model),
          array || forest.category_splits != 0 ? code_columns(model) : std::nullopt,
          array,
          array || fits_sparse8(model),
          model.score_type == ScalarType::Float32,
          contract == Contract::Reproducible,
          contract != Contract::Reproducible && model.score_type == ScalarType::Float32,
          std::ceil(static_cast<double>(model.trees.size()) / static_cast<double>(trees_per_round(model))),
          trees_per_round(model) != model.num_outputs,
          contract == Contract::Trainer || is_per_tree(exact),
          static_cast<double>(element_size(plain)),
          static_cast<double>(element_size(contract == Contract::Reproducible ? exact : plain))};
}

/// Returns the bytes that the leaves take that are kept of a row.
double kept_bytes(const Facts& facts) {
  const auto trees = static_cast<std::uint64_t>(facts.trees),
             bytes = static_cast<std::uint64_t>(facts.leaf_bytes);
  return static_cast<double>(kept_leaves(trees, bytes) * bytes);
}

/// Where a block keeps the leaves of trees that several threads of a row share.
enum class Leaves { NotKept, Shared, Global };

/// A shape, and where its rows and leaves are.
struct Candidate {
  Shape shape;
  bool staged, coded;  ///< whether rows are in shared memory, and whether they are codes
  Leaves leaves;
  double needed;  ///< shared memory that a block needs
  double bytes;   ///< shared memory that a block has: leaves for which it has not enough are in global memory
};

/// Returns the trees that each thread of a shape walks.
std::uint32_t trees_of_thread(const Facts& facts, const Shape& shape) {
  const auto trees = static_cast<std::uint32_t>(std::ceil(facts.trees / shape.tree_threads / shape.blocks));
  return trees < kLockstep ? trees : (trees + kLockstep - 1) / kLockstep * kLockstep;
}

/// Returns the trees that each block of a shape walks.
double trees_of_block(const Facts& facts, const Shape& shape) {
  return std::min<double>(facts.trees, trees_of_thread(facts, shape) * shape.tree_threads);
}

/// Returns the blocks that share the trees of a row: those that have trees to walk.
double blocks_of_row(const Facts& facts, const Shape& shape) {
  return std::ceil(facts.trees / trees_of_block(facts, shape));
}

/// Returns the threads of a block that share the trees of a row: those that have trees to walk.
std::uint32_t threads_of_row(const Facts& facts, const Shape& shape) {
  return static_cast<std::uint32_t>(std::ceil(trees_of_block(facts, shape) / trees_of_thread(facts, shape)));
}

/// Returns the candidate for a shape, with rows as codes or as values; std::nullopt where `most` bytes of a block's
/// memory do not hold its rows and sums.
std::optional<Candidate> candidate(const Facts& facts, const Shape& shape, bool codes, std::size_t most) {
  const bool spread = shape.tree_threads != 1;
  const bool joins = shape.blocks != 1;
  if (spread && facts.trees <= shape.tree_threads * shape.blocks / 2.0) return std::nullopt;
  if (joins && blocks_of_row(facts, shape) == 1) return std::nullopt;
  const bool categories = facts.forest.category_splits != 0;
  const bool keeps = spread && facts.keeps_leaves;
  const double sums =
      spread && !keeps && !joins ? threads_of_row(facts, shape) * facts.outputs * facts.sum_bytes : 0;
  const auto bytes = [&](const StagedPlaces& places) {
    return static_cast<double>(places.words) * sizeof(float) + shape.rows * sums;
  };
  const double of_codes =
      bytes(staged_codes(shape.rows, static_cast<std::uint32_t>(facts.codes.value_or(0))));
  const bool one_tree = !spread || shape.rows % 32 == 0;  // all lanes of a warp walk one tree
  // Calls of encoded rows take no plan that walks values, so that linking has no other plan for them.
  if (codes && (!one_tree || of_codes > kSharedEverywhere)) return std::nullopt;
  const bool coded = codes || categories;
  const double used = coded ? of_codes
                            : bytes(staged_values(shape.rows, static_cast<std::uint32_t>(facts.values),
                                                  shape.rows * shape.tree_threads));
  if (used > static_cast<double>(most) && spread) return std::nullopt;
  if (used > static_cast<double>(most)) return Candidate{shape, false, coded, Leaves::NotKept, 0, 0};
  if (!keeps) return Candidate{shape, true, coded, Leaves::NotKept, used, used};
  const double leaves = shape.rows * kept_bytes(facts);
  const std::uint64_t most_beside =
      unrequested_shared(static_cast<std::uint64_t>(used),
                         std::uint64_t{shape.rows} * threads_of_row(facts, shape), kSharedBytes);
  if (joins || used + leaves > static_cast<double>(most_beside))
    return Candidate{shape, true, coded, Leaves::Global, used, used};
  return Candidate{shape, true, coded, Leaves::Shared, used, used + leaves};
}

/// Returns what the lanes of a warp read.
gpu_costs::Lanes lanes_of(const Candidate& one) {
  using enum gpu_costs::Lanes;
  if (!one.staged) return Far;
  if (one.shape.tree_threads != 1 && one.shape.rows % 32 != 0) return Trees;
  return one.coded ? Codes : Values;
}

/// Returns the latency of adding the sums, or leaves, of the threads and blocks that share the trees of a row.
double adding_latency(const Facts& facts, const Candidate& one) {
  if (one.shape.tree_threads == 1) return 0;
  const double copies = threads_of_row(facts, one.shape), threads = one.shape.rows * copies;
  if (one.leaves == Leaves::NotKept) {
    const bool joins = one.shape.blocks != 1;
    const double of_block = one.shape.rows * facts.outputs;
    const double of_threads = gpu_costs::reduce_latency(of_block, copies, threads, true, !joins);
    if (!joins) return of_threads;
    return gpu_costs::kJoinLatency + of_threads +
           gpu_costs::reduce_latency(of_block, blocks_of_row(facts, one.shape), threads, true, false);
  }
  const double sums = std::ceil(facts.outputs / copies);  // that a thread adds
  const double of_sum = gpu_costs::adding_latency(
      {facts.trees_of_sum, one.leaves == Leaves::Shared, facts.outputs == 1, facts.vectors});
  return sums * of_sum + (one.shape.blocks == 1 ? 0 : gpu_costs::kJoinLatency);
}

/// Returns the clocks in which the stores of a warp's leaves of one tree pass.
double storing_clocks(const Facts& facts, const Candidate& one) {
  if (one.leaves == Leaves::NotKept) return 0;
  // Lanes store leaves of several rows, which lie as many leaves apart as there are trees, or of every fourth tree.
  const auto words = static_cast<std::uint32_t>(kept_bytes(facts) / sizeof(float));
  const double conflicts =
      one.shape.rows % 32 == 0 ? static_cast<double>(std::gcd(words, kBanks)) : kLockstep;
  return gpu_costs::leaf_passing(one.leaves == Leaves::Shared, conflicts);
}

/// Returns the clocks in which a block's kept leaves pass to the threads that add them, in the mean of the blocks that
/// share the trees of its rows.
double added_clocks(const Facts& facts, const Candidate& one, double rows) {
  if (one.leaves == Leaves::NotKept) return 0;
  return gpu_costs::adding_passing(one.leaves == Leaves::Shared, rows * kept_bytes(facts)) /
         blocks_of_row(facts, one.shape);
}

/// Returns how many walks of a thread with `trees` trees go in lockstep: see kernels/device/walk.hpp. Where leaves are
/// not simply added to float32 sums, only walks of small nodes do.
std::uint32_t walks_together(const Facts& facts, const Candidate& one, std::uint32_t trees) {
  const bool adds = facts.float32_sums && one.leaves == Leaves::NotKept;
  if (!adds) return facts.small_nodes && trees >= kLockstep ? kLockstep : 1;
  return std::min(std::bit_floor(std::max(trees, 1u)), one.staged ? kLockstep : kLockstep / 2);
}

/// Returns whether a shape's code is one that kernels know: see kernels/link/known_code.hpp.
bool is_known(const Facts& facts, const Candidate& one) {
  const bool joins = one.shape.blocks != 1;
  return facts.float32_scores && one.shape.tree_threads != 1 && one.staged && !one.coded &&
         (!joins || one.leaves == Leaves::NotKept);
}

/// Returns the clocks that a pass of `rows` rows takes.
double pass_clocks(const Facts& facts, const Candidate& one, double rows) {
  using namespace gpu_costs;
  const std::uint32_t trees = trees_of_thread(facts, one.shape);
  const double threads = threads_of_row(facts, one.shape);
  const double here = std::min<double>(one.shape.rows, rows);  // rows of a block
  // Lanes are rows where a block has whole warps of them, otherwise rows and parts of the trees.
  const double warps =
      one.shape.rows % 32 == 0 ? std::ceil(here / 32) * threads : std::ceil(here * threads / 32);
  const double block_warps = std::ceil(here * threads / 32);
  const double staged = one.staged ? here * static_cast<double>(facts.values) * sizeof(float) : 0;
  const double features = std::max(1u, facts.forest.features_used);
  const double thresholds = static_cast<double>(facts.forest.thresholds) / features;
  const Sums sums = one.leaves != Leaves::NotKept ? Sums::Leaves
                    : facts.exact_sums            ? Sums::Others
                                                  : Sums::Float32;
  const CodeCosts& code = code_costs(kKernels, sums, is_known(facts, one), one.shape.blocks != 1);
  const bool whole = !one.coded && one.shape.rows < kBanks;
  const Copying copies = copying(one.coded ? kTimedKernels : kKernels, staged, here * threads, whole);
  const double staging = one.coded ? features * rank_latency(thresholds) : copies.latency;
  const double encoding = one.coded ? std::ceil(here / kBanks) * features * rank_passing(thresholds) : 0;
  const double depth = facts.forest.mean_depth * (facts.array ? 1 : kSparse);
  const double visit = visit_passing(lanes_of(one), static_cast<double>(facts.values));
  return gpu_costs::clocks(
      {.count = std::ceil(rows / one.shape.rows) * blocks_of_row(facts, one.shape),
       .resident = std::max(
           1.0, std::floor(std::min(kResidentWarps / warps, kResidentBytes / std::max(one.bytes, 1.0)))),
       .latency = block_latency(code, block_warps) + adding_latency(facts, one) +
                  depth * level_latency(trees, walks_together(facts, one, trees)) + staging,
       .passing = warps * trees * (depth * visit + storing_clocks(facts, one)) + copies.passing + encoding +
                  added_clocks(facts, one, here),
       .code = block_warps * warp_passing(code)},
      kMultiprocessors);
}

/// Returns the rows that a pass may have: leaves in global memory, and sums of blocks that join, limit them.
double most_rows(const Facts& facts, const Candidate& one) {
  double bytes = 0;
  if (one.leaves == Leaves::Global)
    bytes = kept_bytes(facts);
  else if (one.shape.blocks != 1)
    bytes =
        blocks_of_row(facts, one.shape) * threads_of_row(facts, one.shape) * facts.outputs * facts.sum_bytes;
  return bytes == 0 ? INFINITY : std::floor(static_cast<double>(gpu_costs::kPassBytes) / bytes);
}

/// Returns the clocks that a call of `rows` rows takes.
double clocks(const Facts& facts, const Candidate& one, double rows) {
  const double most = most_rows(facts, one);
  if (rows <= most) return pass_clocks(facts, one, rows);
  const double whole = std::floor(rows / most), rest = rows - whole * most;
  return whole * pass_clocks(facts, one, most) + (rest == 0 ? 0 : pass_clocks(facts, one, rest));
}

/// Returns the candidate that costs least. Blocks share the trees of a row only if `joins`.
Candidate cheapest(const Facts& facts, double rows, bool joins) {
  // The plan of the fewest rows runs on every GPU, so that linking has it for the calls of others.
  const std::size_t most = rows == kCalls[0] ? kSharedEverywhere : kSharedBytes;
  std::optional<Candidate> best;
  double least = 0;
  const auto compare = [&](const Shape& shape) {
    for (const bool codes : {false, true}) {
      if (codes && !(facts.array && facts.codes)) continue;
      const std::optional<Candidate> one = candidate(facts, shape, codes, most);
      if (!one) continue;
      const double cost = clocks(facts, *one, rows);
      if (best && cost > kGain * least) continue;
      best = one;
      least = cost;
    }
  };
  for (const std::uint32_t blocks : kTreeBlocks)
    for (Shape shape : kShapes) {
      // Larger blocks are for calls that fill blocks on half of the multiprocessors.
      if (shape.rows > std::max(rows / (kMultiprocessors / 2), kFewBlockRows)) continue;
      const double all_blocks = std::ceil(rows / shape.rows) * blocks;
      if (blocks != 1 && (!joins || shape.tree_threads == 1 || all_blocks > kMostBlocks)) continue;
      shape.blocks = blocks;
      compare(shape);
    }
  return *best;
}

/// Says why a plan has its shape.
std::string why(const Facts& facts, const Candidate& one, double rows) {
  const std::string blocks =
      one.shape.blocks == 1
          ? ""
          : formatted(" of {} blocks each", static_cast<unsigned>(blocks_of_row(facts, one.shape)));
  const std::string threads =
      one.shape.tree_threads == 1
          ? "a thread walks the trees of a row in the model's order"
          : formatted("{} threads{} share the trees of a row{}", threads_of_row(facts, one.shape), blocks,
                      one.leaves == Leaves::NotKept ? "" : " and keep their leaves");
  return formatted("blocks of {} rows, {}, {} {}: {} rows cost {} clocks", one.shape.rows, threads,
                   one.coded ? "codes" : "values", one.staged ? "in shared memory" : "in global memory",
                   static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(clocks(facts, one, rows)));
}

void add_plan(Schedule& schedule, const Facts& facts, const Candidate& one) {
  const std::uint32_t threads = one.shape.tree_threads;
  const bool spread = threads != 1, joins = one.shape.blocks != 1;
  schedule.tile("batch", "b0", "b1", one.shape.rows);
  if (spread) {
    const std::uint32_t trees = trees_of_thread(facts, one.shape);
    if (joins) schedule.tile("tree", "g0", "g", trees * threads).gpuDimension("g0", "grid.y");
    schedule.tile(joins ? "g" : "tree", "t0", "t", trees).tile("t", "t1", "t2", std::min(trees, kLockstep));
    schedule.gpuDimension("t0", "block.y");
    if (joins)
      schedule.reorder("b0", "g0", "t0", "b1", "t1", "t2");
    else
      schedule.reorder("b0", "t0", "b1", "t1", "t2");
    if (one.leaves != Leaves::NotKept)
      schedule.accumulate("leaves");
    else if (!joins)
      schedule.sharedReduce("t0");
  } else {
    schedule.tile("tree", "t0", "t2", kLockstep).reorder("b0", "b1", "t0", "t2");
  }
  schedule.gpuDimension("b0", "grid.x")
      .gpuDimension("b1", "block.x")
      .layout(joins ? "g0" : "t0", facts.array ? "array" : "sparse")
      .interleave("t2");
  if (one.coded) schedule.encode("u8");
  if (one.staged) schedule.cache("b0");
  if (facts.array && facts.forest.max_depth <= kMaxWalkPadding * facts.forest.mean_depth)
    schedule.unrollWalk("t2");
}

/// A candidate for each of kCalls. Neighbours with the same shape form a run, which becomes one plan.
using Choice = std::vector<Candidate>;

bool same_shape(const Candidate& one, const Candidate& other) {
  return one.shape.rows == other.shape.rows && one.shape.tree_threads == other.shape.tree_threads &&
         one.shape.blocks == other.shape.blocks && one.coded == other.coded && one.staged == other.staged;
}

/// Returns the end of the run of one shape that begins at `begin`.
std::size_t run_end(const Choice& choice, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end != choice.size() && same_shape(choice[end], choice[begin])) ++end;
  return end;
}

/// Returns the accumulators that private sums take, of threads and of blocks, and sums that are not float32. Plans with
/// as many of both share theirs. Leaves that are kept take one or two for all plans, which then have no private sums.
std::size_t plan_accumulators(const Facts& facts, const Choice& choice) {
  std::set<std::pair<std::uint32_t, double>> copies;
  std::size_t count = 0;
  for (const Candidate& one : choice) {
    if (one.shape.tree_threads == 1 || one.leaves != Leaves::NotKept) continue;
    if (!copies.emplace(threads_of_row(facts, one.shape), blocks_of_row(facts, one.shape)).second) continue;
    count += 1 + std::size_t{!facts.float32_sums} + std::size_t{one.shape.blocks != 1};
  }
  return count;
}

/// Returns whether a call of `rows` rows may take another call's candidate.
bool may_take(const Facts& facts, const Candidate& one, std::uint32_t rows) {
  if (rows == kCalls[0] && one.needed > kSharedEverywhere) return false;
  return one.shape.blocks == 1 ||
         std::min<double>(rows, most_rows(facts, one)) <= one.shape.rows * kMostJoined;
}

/// Keeps no more candidates than a program has accumulators for: those with which all calls together cost least. Calls
/// whose candidates are not kept take others.
Choice affordable(const Facts& facts, const Choice& wanted) {
  constexpr std::size_t kCount = std::size(kCalls);
  double costs[kCount][kCount];  // of a call with the candidate of another one, at least its own candidate's
  for (std::size_t i = 0; i != kCount; ++i)
    for (std::size_t j = 0; j != kCount; ++j)
      costs[i][j] =
          may_take(facts, wanted[j], kCalls[i])
              ? std::log(std::max(clocks(facts, wanted[i], kCalls[i]), clocks(facts, wanted[j], kCalls[i])))
              : INFINITY;
  Choice best;
  double least = INFINITY;
  for (std::uint32_t kept = (1u << kCount) - 1; kept != 0; --kept) {  // bit j: candidate j is kept
    Choice choice;
    double all = 0;
    for (std::size_t i = 0; i != kCount; ++i) {
      std::size_t taken = i;
      double cost = (kept >> i & 1) != 0 ? costs[i][i] : INFINITY;
      for (std::size_t j = 0; j != kCount; ++j)
        if ((kept >> j & 1) != 0 && costs[i][j] < cost) cost = costs[i][taken = j];
      choice.push_back(wanted[taken]);
      all += cost;
    }
    if (all >= least || plan_accumulators(facts, choice) > kMaxPlanAccumulators) continue;
    best = std::move(choice);
    least = all;
  }
  return best;
}

/// Returns the candidates of all calls. The calls in which blocks share the trees of a row are the fewest ones, and as
/// many as cost least together: shapes take accumulators, and where these run out, other calls would have shapes that
/// suit them less.
Choice cheapest_of_calls(const Facts& facts) {
  Choice best;
  double least = 0;
  for (std::size_t joined = 0; joined <= std::size(kCalls); ++joined) {
    Choice choice;
    for (std::size_t i = 0; i != std::size(kCalls); ++i)
      choice.push_back(cheapest(facts, kCalls[i], i < joined));
    choice = affordable(facts, choice);
    double cost = 0;
    for (std::size_t i = 0; i != std::size(kCalls); ++i)
      cost += std::log(clocks(facts, choice[i], kCalls[i]));
    if (!best.empty() && cost >= least) continue;
    best = std::move(choice);
    least = cost;
  }
  return best;
}

}  // namespace

Schedule gpu(const Model& model, Contract contract) {
  const Facts facts = facts_of(model, contract);
  const Choice choice = cheapest_of_calls(facts);
  Schedule schedule;
  for (std::size_t begin = 0; begin != choice.size(); begin = run_end(choice, begin)) {
    const std::size_t last = run_end(choice, begin) - 1;
    schedule.plan(last + 1 == choice.size() ? Argument(kBatchSizeName) : Argument(kCalls[last]))
        .directives.back()
        .remark = why(facts, choice[last], kCalls[last]);
    add_plan(schedule, facts, choice[last]);
  }
  return schedule;
}

}  // namespace forestvm::scheduler
