// Costs of blocks on a GPU. The schedule `gpu` chooses by them, and kernels/account estimates calls with them.
// In: what a launch asks for, counted from a model (scheduler/choose/gpu.cpp) or from linked code. Out: clocks of a
// GPU of compute capability 9.0.
//
// Constants are fitted to 93 times that an H200 took for earlier kernels (bench/results/h200.md), from which they
// differ by 16 % in the geometric mean. Those that were not timed say so. What the kernels of today change is counted
// in their machine code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace forestvm::gpu_costs {

/// Costs of running code, besides walks and copies, as counted in machine code (bench/gpu/machine.py): for one row of
/// higgs, and where blocks join, for four rows of a model of 1,000 trees. Lines are then those of the block that comes
/// last and goes on.
struct CodeCosts {
  double instructions;  ///< instructions that a warp issues outside the loop of its walk
  double lines;         ///< lines of code, of 128 bytes, that these instructions lie in
  double stack_bytes;   ///< bytes of its threads' stacks that a warp writes
};

/// The sums of a code: what the threads that share the trees of a row make.
enum class Sums : std::uint8_t { Float32, Leaves, Others };
inline constexpr std::size_t kSums = 3;

/// The kernels that calls are estimated for, with the costs of their code for each kind of sums.
struct Kernels {
  CodeCosts interpreted[kSums];   ///< costs of interpreted code
  CodeCosts known[kSums];         ///< costs of code that kernels know (kernels/link/known_code.hpp)
  CodeCosts joined[kSums];        ///< costs of interpreted code where blocks join
  CodeCosts known_joined[kSums];  ///< costs of code that kernels know where blocks join
  double loads_at_once;           ///< loads of a thread that are under way while it copies rows
  bool copies_whole_rows;         ///< true if rows that lie one after the other are copied at once
};

/// The kernels of which an H200's times are known. Bytes of stacks were not counted in their machine code. A stack had
/// 624 bytes. Besides what loads missed, L2 moved 435 sectors for each warp in calls of few rows of higgs, without the
/// code's, and 1,169 for 16,384 rows of epsilon.
inline constexpr CodeCosts kTimedCode{1991, 250, 584 * 32};
inline constexpr Kernels kTimedKernels{{kTimedCode, kTimedCode, kTimedCode},
                                       {kTimedCode, kTimedCode, kTimedCode},
                                       {kTimedCode, kTimedCode, kTimedCode},
                                       {kTimedCode, kTimedCode, kTimedCode},
                                       1,
                                       false};

/// The kernels of today. Leaves of blocks that join are added by interpreted code.
inline constexpr Kernels kKernels{{{1209, 170, 8576}, {1845, 188, 8704}, {1944, 243, 11008}},
                                  {{285, 65, 0}, {574, 83, 0}, {381, 75, 0}},
                                  {{1370, 211, 10760}, {1245, 187, 9992}, {1858, 309, 13192}},
                                  {{319, 100, 0}, {1245, 187, 9992}, {373, 107, 0}},
                                  4,
                                  true};

/// Returns the costs of a code with such sums.
constexpr const CodeCosts& code_costs(const Kernels& kernels, Sums sums, bool known, bool joins) {
  const auto of = static_cast<std::size_t>(sums);
  if (joins) return known ? kernels.known_joined[of] : kernels.joined[of];
  return known ? kernels.known[of] : kernels.interpreted[of];
}

inline constexpr double kTimedLatency =
    18500;  ///< latency of one warp of the timed kernels, without its walks
/// Latency of a block of nvForest's kernel without its walks. Its code is the shortest that was timed.
inline constexpr double kLeastLatency = 5300;
/// The least that a call of a row runs of nvForest's kernel besides visits of nodes: the shortest path through its
/// machine code (26.10, sm_90) that walks, adds and stores.
inline constexpr CodeCosts kShortestCode{280, 48, 0};

inline constexpr double kIssue = 4;  ///< instructions that a multiprocessor issues in a clock
inline constexpr double kL2Bytes =
    22.6;  ///< bytes that a multiprocessor gets from L2 in a clock, as measured
inline constexpr double kMemoryLatency = 691;  ///< latency of the GPU's memory, as measured

/// Returns the clocks of a multiprocessor in which a warp passes, without its walks and copies: what it issues, or what
/// it writes to its stacks, which L1 hands on to L2.
constexpr double warp_passing(const CodeCosts& code) {
  return std::max(code.instructions / kIssue, code.stack_bytes / kL2Bytes);
}

/// Returns the latency of a block of `warps` warps without its walks: fetching and running code. Two codes were timed,
/// nvForest's and that of kTimedKernels. Between them, latency is taken to grow with the instructions or with the
/// lines, with the one that grows more. Instructions of further warps are issued while the first one waits, but what
/// they write to their stacks passes after what it writes: with a thread for each tree of a row, the timed kernels
/// took 10 us more for 1,000 threads than for 100.
constexpr double block_latency(const CodeCosts& code, double warps) {
  const auto growth = [&](double CodeCosts::*cost) {
    return (code.*cost - kShortestCode.*cost) / (kTimedCode.*cost - kShortestCode.*cost);
  };
  const double more = std::max({0.0, growth(&CodeCosts::instructions), growth(&CodeCosts::lines)});
  return kLeastLatency + more * (kTimedLatency - kLeastLatency) + (warps - 1) * code.stack_bytes / kL2Bytes;
}

inline constexpr double kStageLatency = 225;  ///< latency of a load into shared memory
inline constexpr double kBytesOfLoad = 16;    ///< bytes of rows that a thread loads at once

/// Clocks that a block takes to copy rows into shared memory.
struct Copying {
  double latency, passing;
};

/// Returns what it costs `threads` threads to copy `bytes` bytes of rows, if `whole` of rows that lie one after the
/// other. By Little's law copies pass at the bytes that are under way divided by the latency, until L2 gives no more.
/// In the timed kernels 2.3 bytes of a block of 100 threads were under way in a clock, a load of 16 bytes each, while
/// 3.3 and 5.3 passed (`gpu` and tahoe-shared-data, 1,048,576 rows of epsilon, without what stacks and walks take): as
/// if 1.8 blocks of a multiprocessor copied at once. kReached is the part of the memory's rate that an H200 reached
/// when it only copied.
inline Copying copying(const Kernels& kernels, double bytes, double threads, bool whole) {
  constexpr double kCopyingBlocks = 1.8, kReached = 0.83;
  if (bytes == 0) return {0, 0};
  const double loads = std::ceil(bytes / kBytesOfLoad / threads);
  double under_way = bytes, batches = 1;
  if (!whole || !kernels.copies_whole_rows) {
    under_way = std::min(bytes, threads * kBytesOfLoad * kernels.loads_at_once);
    batches = std::floor(loads / kernels.loads_at_once) + std::fmod(loads, kernels.loads_at_once);
  }
  const double rate = std::min(kReached * kL2Bytes, kCopyingBlocks * under_way / kMemoryLatency);
  return {batches * kStageLatency, bytes / rate};
}

inline constexpr double kSparse =
    1.2;  ///< factor of steps and visits of layouts other than the array layouts
inline constexpr double kResidentWarps = 32;  ///< warps of a multiprocessor that 64 registers a thread allow

/// Returns the latency of a step of a thread's walks in lockstep. A step of two was not timed: it is between the
/// others. Other numbers do not go in lockstep.
constexpr double step_latency(std::uint32_t together) {
  return together == 4 ? 632 : together == 2 ? 470 : 376;
}

/// Returns the latency of the steps of one level of a thread's walks, `together` of them in lockstep. The walks that
/// remain go one at a time.
constexpr double level_latency(std::uint32_t walks, std::uint32_t together) {
  const std::uint32_t tiles = walks / together, rest = walks % together;
  return tiles * step_latency(together) + rest * step_latency(1);
}

/// Returns the latency of finding the rank of a value among a feature's thresholds: each halving loads a threshold that
/// depends on the one before, as a step of one walk loads a node. It was not fitted.
inline double rank_latency(double thresholds) {
  return std::ceil(std::log2(1 + thresholds)) * step_latency(1);
}

/// Kinds of data that the lanes of a warp read when they visit nodes.
enum class Lanes : std::uint8_t {
  Codes,   ///< the lanes walk one tree, by rank codes in shared memory
  Values,  ///< the lanes walk one tree, by values in shared memory
  Trees,   ///< the lanes walk several trees, by codes or values in shared memory
  Far,     ///< rows are in global memory
};

/// Returns the clocks in which the loads of a warp's visit pass. Rows in global memory have `values` values.
constexpr double visit_passing(Lanes lanes, double values) {
  constexpr double kFewFeatures = 16, kMoreOfWide = 185, kWide = 2000;
  switch (lanes) {
    case Lanes::Codes:
      return 6;
    case Lanes::Values:
      return 6.5;
    case Lanes::Trees:
      return 21;
    case Lanes::Far:
      return kFewFeatures + kMoreOfWide * std::min(1.0, values / kWide);
  }
  return 0;
}

/// Returns the clocks in which the loads of a warp pass that find the ranks of a value of each lane: of the values, and
/// of a threshold for each halving, which lie apart as the values of lanes that walk different trees. For 8 halvings
/// that is what an H200 took longer with codes than with values for 1,048,576 rows of higgs: 188 clocks.
inline double rank_passing(double thresholds) {
  return (1 + std::ceil(std::log2(1 + thresholds))) * visit_passing(Lanes::Trees, 0);
}

// Storing and adding leaves was not timed.

/// Leaves that a block has kept of a row, and one of its threads adds to a sum.
struct KeptLeaves {
  double trees;     ///< how many are added
  bool shared;      ///< true if they are in shared memory, false in global memory
  bool successive;  ///< true if they are those of all trees
  bool vectors;     ///< true if they are numbers of vectors: the element that is added is loaded after them
};

/// Returns the clocks in which a warp's store of leaves passes; `conflicts`: lanes that store to the same bank.
constexpr double leaf_passing(bool shared, double conflicts) { return shared ? 2 * conflicts : 16; }

// That blocks share the trees of a row was not timed, either. These are latencies of L2: of a load, and of what the
// last block waits for until it goes on, which are two fences, an addition and two barriers.

inline constexpr double kFarLatency = 300;
/// Latency of a load from shared memory, as measured, and of an addition and a step of the loop. It was not timed.
inline constexpr double kNearLatency = 40;
inline constexpr double kJoinLatency = 1500;

/// Returns the latency of adding leaves (kernels/device/add_leaves.hpp). Additions, each of 5 clocks, wait for each
/// other. 16 leaves are under way at once, four of which a load takes, if they are successive, and 8 otherwise; a load
/// follows when the leaves of an earlier one are added. The first loads and the last ones are waited for. Elements of
/// vectors are loaded by eight before they are added.
constexpr double adding_latency(const KeptLeaves& leaves) {
  constexpr double kAddition = 5;
  const double load = leaves.shared ? kNearLatency : kFarLatency;
  if (leaves.vectors) return leaves.trees * ((leaves.shared ? 8 : 64) + 64);
  const double under_way = leaves.successive ? 16 : 8, of_load = leaves.successive ? 4 : 1;
  return 2 * load + leaves.trees * std::max(kAddition, (load + of_load * kAddition) / under_way);
}

/// Returns the clocks in which `bytes` bytes of kept leaves pass to the threads that add them.
constexpr double adding_passing(bool shared, double bytes) { return shared ? 0 : bytes / kL2Bytes; }

/// Returns true if warps add the copies of sums in any order, see adds_by_warps of kernels/device/reduction.hpp.
inline bool adds_by_warps(double sums, double copies, double threads) {
  const double warps = std::ceil(threads / 32), steps = std::ceil(copies / 32) + 5;
  return sums < threads && std::ceil(sums / warps) * steps < copies;
}

/// Returns the latency of adding the copies of `sums` sums, if `any_order` in any order. `near`: they are in shared
/// memory, otherwise in global memory.
inline double reduce_latency(double sums, double copies, double threads, bool any_order, bool near) {
  constexpr double kShuffles = 5 * 30;
  const double load = near ? kNearLatency : kFarLatency;
  if (any_order && adds_by_warps(sums, copies, threads))
    return std::ceil(sums / std::ceil(threads / 32)) * (std::ceil(copies / 32) * load + kShuffles);
  return std::ceil(sums / threads) * copies * load;
}

/// Most bytes of the device's memory that a pass of a call takes, with rows on the device: a call of more rows has
/// several passes.
inline constexpr std::size_t kPassBytes = std::size_t{1} << 28;

/// A launch, as its costs depend on it.
struct Blocks {
  double count;     ///< blocks of the launch
  double resident;  ///< blocks that a multiprocessor holds
  double latency;   ///< clocks of a block that is alone
  double passing;   ///< clocks of a multiprocessor in which the loads of a block pass
  double code;  ///< clocks of a multiprocessor in which the block's code passes: warp_passing() of its warps
};

/// The parts of the time of a launch.
struct Parts {
  double waves;    ///< blocks that follow each other in a place of a multiprocessor
  double passing;  ///< clocks in which the loads and the code of all blocks of a multiprocessor pass
};

inline Parts parts(const Blocks& blocks, double multiprocessors) {
  const double most = std::ceil(blocks.count / multiprocessors);  // most blocks of one multiprocessor
  // The latency of a block has its own code.
  return {std::ceil(most / blocks.resident), most * blocks.passing + (most - 1) * blocks.code};
}

/// Returns the clocks of a launch. Blocks that follow each other hide latencies in what passes, or the other way round;
/// one block hides neither.
inline double clocks(const Blocks& blocks, double multiprocessors) {
  const auto [waves, passing] = parts(blocks, multiprocessors);
  return std::max(waves * blocks.latency, passing) + std::min(blocks.latency, passing);
}

}  // namespace forestvm::gpu_costs
