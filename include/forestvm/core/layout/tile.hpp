// Tiles: up to 8 nodes of a tree that are tested at once; the outcomes, as bits, and the tile's shape say
// which of its ways out a walk takes. Source: Treebeard (MICRO 2022), section on tree tiling.
#pragma once

#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/split.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The way out that a shape gives for these outcomes (bit i: node i goes left).
FVM_HOST_DEVICE constexpr unsigned tile_exit(const TileShape& shape, unsigned outcomes) {
  if (shape.size == 0) return 0;
  unsigned at = 0;
  for (;;) {
    const std::uint8_t next = (outcomes >> at & 1) != 0 ? shape.left[at] : shape.right[at];
    if ((next & kTileExit) != 0) return next & ~unsigned{kTileExit};
    at = next;
  }
}

/// Tests the nodes of a tile one after the other. CPU targets bring their own.
struct ScalarCompare {
  template <unsigned Width>
  FVM_INLINE static unsigned outcomes(const float* thresholds, const std::uint32_t* features,
                                      const float* row) {
    unsigned bits = 0;
    for (unsigned i = 0; i < Width; ++i)
      bits |= static_cast<unsigned>(goes_left(thresholds[i], features[i], row)) << i;
    return bits;
  }
};

/// What a verifier has to know beside a node and its tree.
struct NodeFacts {
  std::uint32_t num_features;
  std::uint32_t tile_size;
  const TileShape* shapes;
  std::uint32_t shape_count;
  const ColumnDesc* columns;  ///< of the encoder
  std::uint32_t num_columns;
};

/// The rules that the tests of a tile obey, as text, or null.
template <unsigned Width>
const char* tile_rule(const std::uint32_t (&features)[Width], std::uint32_t shape, const NodeFacts& facts) {
  for (const std::uint32_t feature : features)
    if ((feature & kFeatureMask) >= facts.num_features) return "a feature lies outside the row";
  if (shape == 0 || shape >= facts.shape_count) return "there is no such tile shape";
  return facts.shapes[shape].size <= facts.tile_size ? nullptr : "its shape has more nodes than its tiles";
}

}  // namespace forestvm
