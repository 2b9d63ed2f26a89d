// Tiles: up to 8 nodes of a tree that are tested at once; the outcomes, as bits, and the tile's shape say
// by which of its exits a walk leaves it. Source: Treebeard (MICRO 2022), section on tree tiling.
#pragma once

#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/split.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Returns the exit that a shape gives for these outcomes (bit i: node i goes left).
FVM_HOST_DEVICE constexpr unsigned tile_exit(const TileShape& shape, unsigned outcomes) {
  if (shape.size == 0) return 0;
  unsigned at = 0;
  for (;;) {
    const std::uint8_t next = (outcomes >> at & 1) != 0 ? shape.left[at] : shape.right[at];
    if ((next & kTileExit) != 0) return next & ~unsigned{kTileExit};
    at = next;
  }
}

/// Tests the nodes of a tile one after the other. CPU targets have comparisons of their own.
struct ScalarCompare {
  template <unsigned Width, class Row>
  FVM_INLINE static unsigned outcomes(const float* thresholds, const std::uint32_t* features, Row row) {
    unsigned bits = 0;
    for (unsigned i = 0; i < Width; ++i)
      bits |= static_cast<unsigned>(goes_left(thresholds[i], features[i], row)) << i;
    return bits;
  }
};

// A view lists the rules that its nodes obey and returns the rules that a node breaks, as bits. For small
// nodes it does so without branches, so that a verifier checks vectors of them at the speed of memory. Only
// if some rule is broken does the verifier look for the first bad node and the first rule that it breaks.

/// Returns all bits if `is` is true, otherwise none. The result is as wide as the words of nodes, so that
/// vectors need no conversions.
FVM_HOST_DEVICE constexpr std::uint32_t all_bits(bool is) { return is ? ~std::uint32_t{0} : 0; }

/// Returns the bit of a rule if it is broken, otherwise 0.
FVM_HOST_DEVICE constexpr std::uint32_t rule_bit(unsigned rule, std::uint32_t broken) {
  return broken & std::uint32_t{1} << rule;
}

/// The facts that a verifier needs besides a node and its tree.
struct NodeFacts {
  std::uint32_t num_features;
  std::uint32_t tile_size;
  const TileShape* shapes;
  std::uint32_t shape_count;
  std::uint32_t num_columns;  ///< Number of columns of the encoder.
  /// Number of thresholds of each column of the encoder; 0 for any other column that a node may name.
  const std::uint8_t* column_codes;
};

/// The rules that the tests of a tile obey.
#define FVM_TILE_RULES \
  "a feature lies outside the row", "there is no such tile shape", "its shape has more nodes than its tiles"
inline constexpr unsigned kTileRules = 3;

/// Returns the number of nodes of a tile of this shape; 0 if there is no such shape.
inline unsigned shape_size(std::uint32_t shape, const NodeFacts& facts) {
  return shape < facts.shape_count ? facts.shapes[shape].size : 0;
}

template <unsigned Width>
std::uint32_t broken_tile_rules(const std::uint32_t (&features)[Width], std::uint32_t shape,
                                const NodeFacts& facts) {
  bool outside = false;
  for (const std::uint32_t feature : features) outside |= (feature & kFeatureMask) >= facts.num_features;
  return rule_bit(0, all_bits(outside)) | rule_bit(1, all_bits((shape == 0) | (shape >= facts.shape_count))) |
         rule_bit(2, all_bits(shape_size(shape, facts) > facts.tile_size));
}

}  // namespace forestvm
