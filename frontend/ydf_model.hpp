// Makes a Model of a YDF model directory. In: the path of a directory that YDF or TF-DF wrote. Out: a Model whose
// predictions are those of YDF's predict(), which takes the fastest of YDF's engines that can run the model.
#pragma once

#include <string>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

Result<ParsedModel> read_ydf_directory(const std::string& path, const LoadLimits& limits);

}  // namespace forestvm::frontend
