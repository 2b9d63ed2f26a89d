// Tables that backends derive from a program when they load it. Implemented by vm/program.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

/// Returns, for each tile shape and each of 256 outcomes, the exit of the tile: see GroupData. Never empty.
std::vector<std::uint8_t> tile_exits(const Program& program);

/// Returns, for each tree of the model, the raw output that its leaves add to.
std::vector<std::uint32_t> tree_outputs(const Program& program);

/// Returns the vectors of the program's leaves, which lie in its image.
LeafVectors leaf_vectors(const Program& program);

}  // namespace forestvm
