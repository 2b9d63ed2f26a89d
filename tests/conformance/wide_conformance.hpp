// Models and rows of float64 numbers, compiled: the reference predictor's answers, which other tests compare with the
// trainers', under schedules that are drawn differently for each model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::test {

/// Compiles the model in several ways and compares all outputs for `count` rows on every CPU target of this machine,
/// and for the first of them on the emulator of GPUs. `name` chooses the random schedules.
void check_wide_rows(const Model& model, const std::string& name, const std::vector<double>& rows,
                     std::size_t count);

}  // namespace forestvm::test
