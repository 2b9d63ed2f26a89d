// Program -> launches. In: a verified program, the rows and the output of a call, a device's limits. Out: the
// phases that one after the other give the predictions: for each its code, the size of its launch, what lies
// in shared memory and where. A program that the device cannot hold is refused with the numbers, unless a plan of fewer
// rows takes less shared memory.
//
// A phase is what blocks can run without waiting for each other: it ends wherever a loop that is mapped to
// the grid begins or ends. It begins with copies of the loops around it and of the instructions that set what
// it needs. Where few blocks of rows have blocks for parts of the trees inside them, there is one phase: the block
// of the same rows that comes to the end of its trees last goes on alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/target_quantile.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/gpu_banks.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

inline constexpr std::uint32_t kMaxPassRows = 1u << 24;

/// A kernel that walks trees of one layout.
struct LayoutKernel {
  Layout layout;
  std::uint32_t threads;  ///< most threads of a block: there are not enough registers for more
};

/// Returns whether node i of each tree lies beside node i of the others.
constexpr bool interleaves_trees(Layout layout) {
  return with_view(layout, [&]<class View>() { return kInterleavesTrees<View>; });
}

/// Returns the elements of an accumulator from a row to the next one.
inline std::size_t row_elements(const AccumulatorMemory& memory, AccumulatorKind kind) {
  return is_per_tree(kind) ? kept_leaves(memory.width, element_size(kind)) : memory.width;
}

/// The limits that a device sets for launches.
struct DeviceLimits {
  std::uint32_t threads = 1024;             ///< most threads of a block
  std::uint32_t shared_bytes = 227u << 10;  ///< most bytes of shared memory of a block
  /// Most blocks in each dimension.
  std::array<std::uint32_t, kGridDimensions> grid = {INT32_MAX, 65535, 65535};
  std::uint64_t grid_threads = UINT64_MAX;  ///< most threads of all blocks in a dimension together
  std::vector<LayoutKernel> kernels;  ///< one kernel for each layout; empty: one kernel walks all layouts
};

/// Returns whether the kernel of kinds writes an output.
constexpr bool is_written_by_kinds(OutputKind output) {
  return explains_scores(output) || is_of_trees(output) || output == OutputKind::Quantile;
}

/// Returns the bytes of LaunchPass::workspace for a row's virtual ensembles: three numbers for each output.
inline std::size_t member_bytes(const ProgramMeta& meta) { return 3 * meta.num_outputs * sizeof(double); }

/// Returns the bytes of a row's sums of approximate contributions, or counts for quantiles, which come first in
/// LaunchPass::workspace. Behind those of all rows are the numbers of the leaves that the rows reach.
inline std::size_t bytes_before_leaves(const Program& program, OutputKind output) {
  const ProgramMeta& meta = program.meta();
  if (output == OutputKind::ApproxContributions)
    return meta.num_outputs * (std::size_t{meta.num_features} + 1) * size_of(meta.score_type);
  const auto targets = static_cast<std::uint32_t>(program.targets().size());
  return (std::size_t{targets} + target_blocks(targets)) * sizeof(std::uint32_t);
}

/// A call, as far as linking depends on it.
struct LinkRequest {
  std::uint32_t rows = 0;
  std::uint32_t plan_rows = 0;  ///< number of rows by which the plan is chosen
  OutputKind output = OutputKind::Raw;
  bool any_grid = false;  ///< true if the device's limits of grids do not matter

  /// Choose the blocks that the call takes: see guarded_block. A GPU takes what a CPU of target baseline does.
  bool wants(OutputKind other) const { return output == other; }
  static bool runs_on(TargetSet targets) { return contains(targets, CpuTarget::Baseline); }

  bool operator==(const LinkRequest&) const = default;
};

struct LinkedAccumulator {
  bool shared = false;
  std::uint32_t offset = 0;  ///< bytes from the beginning of shared memory, if `shared`
  std::uint32_t copy_rows = 0;
};

struct LinkedPhase {
  std::vector<LinkedInst> code;
  std::vector<std::uint32_t> pcs;  ///< pc in the program of each instruction: see PhaseCode
  std::array<std::uint32_t, kDimensions> extent{};
  std::optional<Layout> layout;  ///< layout of the trees that the phase walks; none: any kernel can run it
  bool of_kinds = false;         ///< true if the kernel of kinds runs it, and no other
  std::uint32_t shared_bytes = 0;
  std::uint32_t peers = 0;  ///< Sharing::word() before the first instruction
  std::uint32_t block_rows = 0;
  std::uint32_t rows_per_block = 0;
  KnownPhase known;    ///< its code, if that is one which kernels know
  bool joins = false;  ///< true if blocks of grid.y join at an end: see LaunchPass::arrived
  std::array<LinkedAccumulator, kAccumulators> accumulators{};
  std::array<LaunchCopy, kStagedTrees> copies{};  ///< copies of trees into shared memory: copy_count
  std::uint32_t copy_count = 0;

  std::uint32_t threads() const { return extent[3] * extent[4] * extent[5]; }
};

struct LinkedCall {
  std::vector<LinkedPhase> phases;
  std::uint32_t plan_rows = 0;  ///< number of rows by which the plan was chosen: see Linker::link
  bool reads_values = false;    ///< true if a walk reads values of rows
  /// Bytes of each accumulator in global memory, for all rows: 0 if no phase needs it there.
  std::array<std::size_t, kAccumulators> global_bytes{};
  std::size_t workspace_bytes = 0;  ///< bytes of LaunchPass::workspace
};

/// The sizes of what contributions are computed from.
struct ExplainSizes {
  std::uint32_t batches = 0;      ///< KindTables::batch_count
  std::size_t thread_bytes = 0;   ///< path_bytes() of the tables
  std::size_t row_sum_bytes = 0;  ///< bytes of all batches' sums of a row

  /// Returns the bytes of LaunchPass::workspace for a row.
  std::size_t row_bytes(ExplainPart part) const {
    return row_sum_bytes + (part == ExplainPart::SumInGlobal ? thread_bytes : 0);
  }
};

/// Returns the most rows, up to kMaxPassRows, that take the same plans as `rows` rows.
std::uint32_t end_of_plans(const CodeMap& map, std::uint32_t rows);

/// Links calls of one program. Without the sizes of contributions, calls for these are linked as if there were none.
class Linker {
 public:
  explicit Linker(const Program& program, const ExplainSizes& sizes = {})
      : program_(program), map_(code_map(program)), sizes_(sizes) {}

  /// Links the plan of the request. Where a block needs more shared memory for it than the device has, links the plan
  /// of fewer rows that is nearest and fits instead. The blocks of the most rows that take the plan decide, so that
  /// passes of one plan never take different ones. A plan that walks rank codes alone is never replaced by one that
  /// walks values: calls of encoded rows have no values.
  Result<LinkedCall> link(const LinkRequest& request, const DeviceLimits& limits) const;

  const Program& program() const { return program_; }
  const CodeMap& map() const { return map_; }
  const ExplainSizes& explain_sizes() const { return sizes_; }

 private:
  /// Links the plan of the request, and no other, for blocks of up to `shared_bytes` bytes of shared memory.
  Result<void> link_plan(const LinkRequest& request, const DeviceLimits& limits, std::uint32_t shared_bytes,
                         LinkedCall& call) const;

  Program program_;
  const CodeMap& map_;  ///< The map of `program_`, which keeps it.
  ExplainSizes sizes_;
};

}  // namespace forestvm::kernels
