// Calculates what a call costs on a GPU, without running it. In: a program, what a call asks for, a description
// of the GPU. Out: for each phase its launch, how many of its blocks an SM holds, what it reads and writes, and
// the rows a second that no run of it can exceed, by each of the GPU's parts; or what linking refuses.
//
//   issue    instructions of warps that the SMs begin: those of the whole kernel
//   load     the 128 bytes a clock that shared memory and L1 give an SM: visits x wavefronts of a visit
//   memory   rows, results and sums in global memory, and the nodes where L2 does not hold them
//   bus      rows that come from the host, results that go back
//
// The time of a call is estimated with the costs by which the schedule `gpu` chooses (gpu_costs.hpp): latencies of a
// block, loads that pass, waves of blocks of which the last may be short, and passes. These costs are a GPU's of
// compute capability 9.0; for others the estimate is not meant.
//
// Phases and rates are those of a pass, of which a call of many rows has several.
//
// A walk until its leaf is counted as deep as trees are on average: a warp goes on until its deepest row has
// reached a leaf.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <forestvm/internal/gpu_costs.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/account/device_model.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Rows a second; infinite where a part has nothing to do.
struct RowRates {
  double issue, load, memory, bus;
};

/// Bytes, per row of the call.
struct RowBytes {
  double rows = 0;     ///< values and codes that are read, and codes that are written
  double nodes = 0;    ///< nodes that blocks read of L2, at most, or copy to shared memory
  double results = 0;  ///< results that are written for the caller
  double sums = 0;     ///< sums that are read and written in global memory
};

/// What a block spends its clocks on.
enum class BlockPart : std::uint8_t {
  Code,    ///< fetching and running code besides walks
  Copies,  ///< copies of rows and trees to shared memory, and codes of rows
  Walks,   ///< visits of nodes
  Sums,    ///< sums of threads and blocks, and leaves that are kept and added in order
};
inline constexpr std::size_t kBlockParts = 4;

/// A part of gpu_costs::Blocks' latency, and of its passing.
struct BlockClocks {
  double latency = 0, passing = 0;
};

struct PhaseAccount {
  std::vector<Layout> layouts;  ///< layouts of the trees that are walked
  std::array<std::uint32_t, kDimensions> extent{};
  std::uint32_t threads = 0;
  std::uint32_t shared_bytes = 0;
  std::uint32_t registers = 0;  ///< registers of a thread, see layout_kernels.def
  Occupancy occupancy;
  double visits = 0;             ///< visits of nodes per row
  double warp_instructions = 0;  ///< instructions that a warp issues in the whole kernel
  double lanes = 0;              ///< lanes of a warp that walk; without walks, that have a thread
  double wavefronts = 0;         ///< wavefronts of a warp's loads per visit
  bool counted = true;  ///< false: walk_costs.def lacks a layout, and the rates of issue and load are void
  RowBytes bytes;
  RowRates rates{};  ///< rates of the phase; the bus, which only calls use, is infinite
  gpu_costs::Blocks blocks{};
  std::array<BlockClocks, kBlockParts> parts{};  ///< for each BlockPart, its clocks in `blocks`
  double clocks = 0;                             ///< clocks that the launch takes by the costs of `blocks`
  double seconds = 0;                            ///< the larger of that time and the memory's
};

struct CallAccount {
  std::vector<PhaseAccount> phases;
  double visits = 0;
  bool counted = true;
  RowRates rates{};
  std::uint32_t pass_rows = 0,
                passes = 0;     ///< rows of a pass, and passes of the call, with rows on the device
  std::uint32_t plan_rows = 0;  ///< number of rows by which the plan was chosen: see Linker::link
  double seconds = 0;           ///< time of all launches of the call
};

/// Returns the costs of a call. Refuses what Linker::link refuses for such a device. Instructions and bytes are those
/// of today's kernels; `kernels` says for which the time is estimated.
Result<CallAccount> account(const Program& program, const LinkRequest& request, const DeviceModel& device,
                            const gpu_costs::Kernels& kernels = gpu_costs::kKernels);

/// Returns the expected number of words in the fullest of `bins` banks, when `words` different words lie in banks
/// drawn at random.
double fullest_bank(double words, double bins);

}  // namespace forestvm::kernels
