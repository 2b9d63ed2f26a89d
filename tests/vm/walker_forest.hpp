// Forests for the test of the walkers: in each layout, with each way in which walks can end, and what a plain
// loop over the model's trees says of their rows.
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
  const char* name;  ///< of the row
  const char* text;
  const char* word;
  unsigned tile_width;
};
const std::vector<LayoutRow>& layout_rows();

/// Where a row ends in a tree.
struct PlainLeaf {
  float narrow;  ///< the leaf's output
  double wide;   ///< the same in float64, which has more bits in forests of that type
  std::uint32_t number;
};

/// Outputs of leaves are multiples of this, and so are sums.
inline constexpr int kLeafUnit = -45;

/// One group of trees, and rows.
struct WalkerForest {
  std::string what;
  Model model;
  Program program;
  std::vector<TreeDesc> trees;  ///< the group's records, with other numbers than their places
  std::size_t row_count;
  std::vector<float> rows;
  std::vector<std::uint8_t> codes;  ///< of whole blocks of rows; empty if the layout takes none
  std::vector<PlainLeaf> leaves;    ///< by row, then tree

  const GroupDesc& group() const { return program.section_Groups()[0]; }
  const WalkerDesc& walker() const { return program.section_Walkers()[0]; }
  std::size_t columns() const { return program.section_Columns().size(); }
};

struct WalkerForestWishes {
  std::uint32_t features = 4;
  std::uint32_t outputs = 1;
  std::uint32_t depth = 5;       ///< of the deepest tree
  std::uint32_t shallowest = 0;  ///< no leaf is above this depth
  std::string ending = {};       ///< a directive
  ScalarType type = ScalarType::Float32;
  bool whole_leaves = false;  ///< outputs are 1, 2 or 3: sums of a few million of them are exact in any order
  bool odd_shapes = true;     ///< chains, single leaves, oblivious and ragged trees among the others
  std::size_t row_count = 736;
};

/// Throws if the layout refuses every such forest.
WalkerForest walker_forest(const LayoutRow& layout, const WalkerForestWishes& wishes, std::uint64_t seed);

/// Forests of a layout that between them have every ending, numbers of outputs and of columns on both sides
/// of what walkers distinguish, and leaves of both types.
std::vector<WalkerForest> walker_forests(const LayoutRow& layout);

}  // namespace forestvm::test
