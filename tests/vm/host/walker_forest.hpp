// Forests for the test of the walkers, in each layout and with each ending of walks, and the leaves that a
// plain loop over the model's trees finds for their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/program.hpp>

namespace forestvm::test {

/// A row of layouts.def.
struct LayoutRow {
  Layout layout;
  const char* name;  ///< the layout's name in the row
  const char* text;
  const char* word;
  unsigned tile_width;
};
const std::vector<LayoutRow>& layout_rows();

/// The leaf of a tree in which a row ends.
struct PlainLeaf {
  float narrow;  ///< output of the leaf in float32
  double wide;   ///< output of the leaf in float64, which has more bits in forests of that type
  std::uint32_t number;
};

/// Exponent of the unit: leaves' outputs and sums are multiples of 2 to this power.
inline constexpr int kLeafUnit = -45;

/// One group of trees, and rows.
struct WalkerForest {
  std::string what;
  Model model;
  Program program;
  std::vector<TreeDesc> trees;  ///< the group's records, whose tree numbers differ from their positions
  std::size_t row_count;
  std::vector<float> rows;
  std::vector<std::uint8_t> codes;  ///< whole blocks of rows; empty if the layout takes no codes
  std::vector<PlainLeaf> leaves;    ///< leaves of the rows, by row, then tree

  const GroupDesc& group() const { return program.groups()[0]; }
  const WalkerDesc& walker() const { return program.walkers()[0]; }
  std::size_t columns() const { return program.columns().size(); }
};

struct WalkerForestOptions {
  std::uint32_t features = 4;
  std::uint32_t outputs = 1;
  std::uint32_t trees = 43;      ///< no multiple of 5, nor of any number of walks in lockstep
  std::uint32_t depth = 5;       ///< depth of the deepest tree
  std::uint32_t shallowest = 0;  ///< depth above which there is no leaf
  std::string ending = {};       ///< directive that sets the ending of walks
  ScalarType type = ScalarType::Float32;
  /// True if outputs are 1, 2 or 3, so that sums of a few million of them are exact in any order.
  bool whole_leaves = false;
  bool odd_shapes = true;  ///< true: there are chains, single leaves, oblivious and ragged trees
  std::size_t row_count = 736;
};

/// Returns a forest with these properties. Throws if the layout refuses every such forest.
WalkerForest walker_forest(const LayoutRow& layout, const WalkerForestOptions& options, std::uint64_t seed);

/// Returns forests of a layout that together have every ending, numbers of outputs and columns on both sides
/// of what walkers distinguish, and leaves of both types.
std::vector<WalkerForest> walker_forests(const LayoutRow& layout);

/// Returns forests of the layout sparse4, of depths on both sides of those that ByteTests distinguish, and with more
/// trees than are walked together.
std::vector<WalkerForest> forests_of_byte_tests();

}  // namespace forestvm::test
