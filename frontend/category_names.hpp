// Names of one feature's categories, as every reader adds them to a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Adds the names of a feature's categories, whose codes are 0, 1, ..., to the model; no names add nothing. Features
/// come in ascending order. Refuses, at `where`, two categories of one name. `unseen` is FeatureCategories::unseen.
Result<void> add_category_names(std::uint32_t feature, std::vector<std::string> names,
                                std::optional<double> unseen, const std::string& where, Model& model);

}  // namespace forestvm::frontend
