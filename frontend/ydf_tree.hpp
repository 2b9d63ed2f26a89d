// Makes Trees of YDF's nodes, which come in the order of the file: a node precedes its negative child, which precedes
// its positive child. Splits come first in Tree::nodes and leaves follow, so that leaves have YDF's numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/ydf_columns.hpp"
#include "frontend/ydf_node.hpp"

namespace forestvm::frontend {

/// The features of a model: columns that trees may test.
struct YdfFeatures {
  std::vector<YdfColumn> columns;          ///< Column of each feature.
  std::vector<std::int32_t> of_attribute;  ///< Feature of each column of the data specification; -1 if none.
};

/// The kinds of splits in all trees. They decide which of its engines YDF predicts with.
struct YdfSplits {
  bool oblique = false;
  bool missing_tests = false;
  // The places of the first splits, outside the subtrees of oblique splits, that do not treat a missing value as YDF's
  // global imputation does: other_missing_number for tests of numbers, other_missing for other tests. Empty if there is
  // none.
  std::string other_missing, other_missing_number;
};

/// Sets the output of a leaf: its value, or its row of Tree::leaf_vectors. `depth` counts the splits above it.
using YdfLeafRule =
    std::function<Result<void>(const YdfNode& leaf, std::size_t depth, Node& node, Tree& tree)>;

/// Makes trees one after the other.
class YdfTreeMaker {
 public:
  YdfTreeMaker(const YdfFeatures& features, YdfLeafRule leaf_rule,
               std::vector<ComputedColumn>& computed_columns)
      : features_(features), leaf_rule_(std::move(leaf_rule)), computed_columns_(computed_columns) {
    begin();
  }

  /// Adds the next node of the file. Refuses conditions that do not fit the type of their column.
  Result<void> add(const YdfNode& node);
  bool tree_is_whole() const { return waiting_.empty(); }
  /// Returns the tree, which must be whole, and begins the next.
  Tree take();

  const YdfSplits& splits() const { return splits_; }

 private:
  /// A child that the file has not reached yet.
  struct Child {
    std::size_t parent = 0;
    bool positive = false;
    bool below_oblique = false;
    std::size_t depth = 0;
  };

  void begin();
  Result<const YdfColumn*> column_of(const YdfNode& node, std::int64_t attribute, Node& split) const;
  Result<void> set_split(const YdfNode& node, bool below_oblique, Node& split);
  Result<void> set_condition(const YdfNode& node, const YdfColumn& column, Node& split);
  Result<void> set_oblique(const YdfNode& node, Node& split);
  void set_category(std::vector<std::uint32_t> codes, Node& split);
  void note_missing(const YdfNode& node, const YdfColumn& column, float threshold);

  const YdfFeatures& features_;
  YdfLeafRule leaf_rule_;
  std::vector<ComputedColumn>& computed_columns_;
  Tree tree_;
  std::size_t number_ = 0;  ///< Number of the tree.
  std::vector<Child> waiting_;
  YdfSplits splits_;
};

}  // namespace forestvm::frontend
