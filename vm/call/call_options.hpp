// Checks the options of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Checks that a call for `rows` rows may have these options. Errors: see Predictor::predict_with.
Result<void> check_options(const Program& program, OutputKind output, std::size_t rows,
                           const CallOptions& options);

/// Returns how many numbers of a row's prediction are from single trees or stages, which may exceed kMaxContributions;
/// 0 if the program has none, or the options make no sense.
std::uint64_t width_of_rounds(const Program& program, OutputKind output, const CallOptions& options);

}  // namespace forestvm
