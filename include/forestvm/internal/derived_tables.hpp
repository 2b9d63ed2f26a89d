// Tables that backends make of a program when they load it. Implemented by vm/program.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm {

/// For each tile shape and each of 256 outcomes, the way out: see GroupData. Never empty.
std::vector<std::uint8_t> tile_exits(const Program& program);

/// By the tree's number in the model, the raw output that its leaves add to.
std::vector<std::uint32_t> tree_outputs(const Program& program);

/// The base scores, exact in the type of the scores: rounded to it in the rounding mode that is set.
std::vector<double> base_scores(const Program& program);

}  // namespace forestvm
