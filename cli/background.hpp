// Reads the option --background: the rows of an NPY array with which contributions compare a model's rows.
#pragma once

#include <memory>
#include <string>

#include <forestvm/background.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"

namespace forestvm::cli {

extern const Option kBackgroundOption;

/// Reads an NPY array of shape (rows, features). Refuses an array without rows or of other columns, what the reader of
/// NPY refuses, and what Background::make refuses.
Result<std::shared_ptr<const Background>> read_background(const std::string& path, const Model& model);

}  // namespace forestvm::cli
