// Sets Model::categories from the names of categories in an XGBoost file.
#pragma once

#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/xgboost_document.hpp"

namespace forestvm::frontend {

/// Sets model.categories. XGBoost 3.1 and later store the categories of a data frame's columns, texts or integers; an
/// integer's name is its decimal text. `path` is the location of the model with the trees. Texts with a byte beyond
/// ASCII give no names: XGBoost cuts them at wrong offsets, because it counts characters where it means bytes.
Result<void> add_xgboost_categories(const std::vector<XgboostCategories>& columns, const std::string& path,
                                    Model& model);

}  // namespace forestvm::frontend
