// The times of the parts of calls, for `bench --parts`. A part's time is the difference between the program and copies
// of it that leave the part out, so that the virtual machine needs no clocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <forestvm/backend.hpp>

#include "cli/repeated_rows.hpp"

namespace forestvm::cli {

/// The parts of a call. Walks include adding leaves to sums. Reducing is all that is left when rows are neither encoded
/// nor walked: the call begins, loops run, and sums are begun, added over parallel loops, and stored.
enum class CallPart : std::uint8_t { Encode, Walk, Reduce, Transform };
inline constexpr std::array<std::string_view, 4> kCallParts = {"encode", "walk", "reduce", "transform"};

/// The microseconds per row that each CallPart takes.
using PartTimes = std::array<double, kCallParts.size()>;

/// A program with copies that leave out walks, and walks and encoding, all loaded on the host.
class PartPrograms {
 public:
  static Result<PartPrograms> make(const Program& program, const BackendOptions& options);

  /// Times calls of `batch` rows in turns, and returns the least times of the parts.
  Result<PartTimes> times(const RepeatedRows& rows, std::uint64_t batch, Seconds budget) const;
  const Predictor& whole() const { return *whole_; }

 private:
  std::unique_ptr<Predictor> whole_, encoding_, bare_;
};

}  // namespace forestvm::cli
