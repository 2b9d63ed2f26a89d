// See forestvm/derived_tables.hpp.
#include <forestvm/internal/derived_tables.hpp>

#include <algorithm>

#include <forestvm/core/layout/tile.hpp>

namespace forestvm {

std::vector<std::uint8_t> tile_exits(const Program& program) {
  std::vector<std::uint8_t> exits;
  for (const TileShape& shape : program.section_TileShapes())
    for (unsigned outcomes = 0; outcomes < 256; ++outcomes)
      exits.push_back(static_cast<std::uint8_t>(tile_exit(shape, outcomes)));
  exits.resize(std::max<std::size_t>(exits.size(), 256));
  return exits;
}

std::vector<std::uint32_t> tree_outputs(const Program& program) {
  std::vector<std::uint32_t> outputs(program.meta().num_trees);
  for (const TreeDesc& tree : program.section_Trees()) outputs[tree.number] = tree.output;
  return outputs;
}

std::vector<double> base_scores(const Program& program) {
  const bool wide = program.meta().score_type == ScalarType::Float64;
  std::vector<double> scores;
  for (const double base : program.section_Base())
    scores.push_back(wide ? base : static_cast<double>(static_cast<float>(base)));
  return scores;
}

}  // namespace forestvm
