// See forestvm/internal/derived_tables.hpp.
#include <forestvm/internal/derived_tables.hpp>

#include <algorithm>

#include <forestvm/core/layout/tile.hpp>

namespace forestvm {

std::vector<std::uint8_t> tile_exits(const Program& program) {
  std::vector<std::uint8_t> exits;
  for (const TileShape& shape : program.tile_shapes())
    for (unsigned outcomes = 0; outcomes < 256; ++outcomes)
      exits.push_back(static_cast<std::uint8_t>(tile_exit(shape, outcomes)));
  exits.resize(std::max<std::size_t>(exits.size(), 256));
  return exits;
}

std::vector<std::uint32_t> tree_outputs(const Program& program) {
  std::vector<std::uint32_t> outputs(program.meta().num_trees);
  for (const TreeDesc& tree : program.trees()) outputs[tree.number] = tree.output;
  return outputs;
}

LeafVectors leaf_vectors(const Program& program) {
  const ProgramMeta& meta = program.meta();
  const auto bytes = program.leaf_vectors();
  const std::size_t size = std::size_t{meta.num_outputs} * size_of(meta.score_type);
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size() / size), meta.num_outputs};
}

TransformParameters parameters_of(const ProgramMeta& meta) {
  return {meta.divisor, meta.slope, meta.offset, meta.group_ends};
}

}  // namespace forestvm
