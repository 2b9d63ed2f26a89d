// Checks the options of a call.
#pragma once

#include <cstddef>

#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Checks that a call for `rows` rows may have these options. Errors: see Predictor::predict_with.
Result<void> check_options(const Program& program, OutputKind output, std::size_t rows,
                           const CallOptions& options);

}  // namespace forestvm
