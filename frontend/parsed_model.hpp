// What a format's reader returns.
#pragma once

#include <string>

#include <forestvm/model.hpp>

namespace forestvm::frontend {

struct ParsedModel {
  Model model;
  std::string trees_path;  ///< where the file keeps its trees: tree 3 is at trees_path[3]
};

}  // namespace forestvm::frontend
