// The result of a format's reader: a model, and the location of each of its trees in the file.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <forestvm/model.hpp>

namespace forestvm::frontend {

/// Returns the location of a tree in the file, by its number: "learner.trees[3]", "line 52".
using TreeLocation = std::function<std::string(std::size_t tree)>;

struct ParsedModel {
  Model model;
  TreeLocation tree_location;
};

}  // namespace forestvm::frontend
