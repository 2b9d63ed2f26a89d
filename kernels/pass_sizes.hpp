// How many rows of a call go through a device at once. In: a program, a device's limits. Out: of each plan
// and output, the rows that the grids of its launches take, and the device's memory that a row takes in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/link.hpp"

namespace forestvm::kernels {

inline constexpr std::uint32_t kMaxPassRows = 1u << 24;

/// Of the request's rows as many as the device's grid takes: fewer where a loop over rows is mapped to a
/// dimension of it that has not as many blocks. Refused: what linking refuses however many blocks there are,
/// or of a single row.
Result<std::uint32_t> rows_of_grid(const Program& program, const LinkRequest& request,
                                   const DeviceLimits& limits);

struct PassSize {
  std::uint32_t rows;     ///< at most
  std::size_t row_bytes;  ///< of sums in the device's memory
};

class PassSizes {
 public:
  /// Refused: calls of some plan, of as many rows as the plan takes.
  static Result<PassSizes> make(const Program& program, const DeviceLimits& limits);

  /// Of calls for whose rows the plan is chosen, of which there are not 0.
  const PassSize& of(std::uint32_t plan_rows, OutputKind output) const;

 private:
#define FVM_OUTPUT(Name, text, meaning) OutputKind::Name,
  static constexpr std::array kOutputs = {
#include <forestvm/core/outputs.def>
  };

  /// Numbers of rows for which the same plans are chosen.
  struct Plans {
    std::uint32_t most;
    std::array<PassSize, kOutputs.size()> sizes;  ///< by output
  };

  std::vector<Plans> plans_;  ///< ascending, the last up to kMaxPassRows
};

}  // namespace forestvm::kernels
