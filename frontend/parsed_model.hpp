// What a format's reader returns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <forestvm/model.hpp>

namespace forestvm::frontend {

/// Where the file has a tree, by the tree's number: "learner.trees[3]", "line 52".
using TreePlace = std::function<std::string(std::size_t tree)>;

struct ParsedModel {
  Model model;
  TreePlace tree_place;
};

}  // namespace forestvm::frontend
