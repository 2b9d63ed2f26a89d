// Finds how many rows of a call can go through a device at once. In: a program, a device's limits. Out: for
// each plan and output, the most rows that the grids of the launches take, and the bytes of the device's
// memory that the sums of a row take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Returns the most rows that the device's grid takes, at most the number in the request. The grid takes fewer if a
/// loop over rows is mapped to a dimension that does not have enough blocks. Refuses what Linker::link refuses for
/// other reasons, and a grid that is too small for a single row.
Result<std::uint32_t> rows_of_grid(const Linker& linker, const LinkRequest& request,
                                   const DeviceLimits& limits);

struct PassSize {
  std::uint32_t rows;     ///< most rows that a pass may have
  std::size_t row_bytes;  ///< bytes of the device's memory that a row's sums take
};

class PassSizes {
 public:
  /// Refuses a program if the device refuses one of its plans, for the most rows that take the plan.
  static Result<PassSizes> make(const Linker& linker, const DeviceLimits& limits);

  /// Returns the size for calls whose plan is chosen by this number of rows, which is not 0.
  const PassSize& of(std::uint32_t plan_rows, OutputKind output) const;

 private:
  /// A run of numbers of rows that take the same plans.
  struct Plans {
    std::uint32_t most;                                   ///< largest number of rows in the run
    std::array<PassSize, std::size(kOutputKinds)> sizes;  ///< size for each output, indexed by OutputKind
  };

  /// Runs in ascending order; the last ends at kMaxPassRows. Code that moves runs, which vectors have, is not needed.
  std::list<Plans> plans_;
};

}  // namespace forestvm::kernels
