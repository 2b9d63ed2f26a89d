// Adds the names of a feature's categories to a model, for every reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Appends a name. Returns false if it finds that a name of the list is repeated. It looks only when the list's length
/// is a power of two, which is enough to keep many short and equal names from taking much memory.
bool append_name(std::vector<std::string>& names, std::string name);

/// Adds the names of a feature's categories, whose codes are 0, 1, ..., to the model; no names add nothing. Features
/// come in ascending order. Refuses, at `where`, two categories of one name. `unseen` is FeatureCategories::unseen.
Result<void> add_category_names(std::uint32_t feature, std::vector<std::string> names,
                                std::optional<double> unseen, const std::string& where, Model& model);

}  // namespace forestvm::frontend
