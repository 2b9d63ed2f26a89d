// Names of one feature's categories, as every reader adds them to a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Appends a name. Returns false if a name of the list is repeated and that was noticed: the list is looked through
/// whenever its length is a power of two, so that many short and equal names cannot take much memory.
bool append_name(std::vector<std::string>& names, std::string name);

/// Adds the names of a feature's categories, whose codes are 0, 1, ..., to the model; no names add nothing. Features
/// come in ascending order. Refuses, at `where`, two categories of one name. `unseen` is FeatureCategories::unseen.
Result<void> add_category_names(std::uint32_t feature, std::vector<std::string> names,
                                std::optional<double> unseen, const std::string& where, Model& model);

}  // namespace forestvm::frontend
