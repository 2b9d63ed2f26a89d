// See treelite_tree.hpp.
#include "frontend/treelite_tree.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

// Treelite's numbers of node kinds and comparisons.
constexpr std::int8_t kNumerical = 1, kCategorical = 2;
constexpr std::int8_t kEqual = 1, kLess = 2, kLessEqual = 3, kGreater = 4, kGreaterEqual = 5;

class TreeliteTreeMaker {
 public:
  TreeliteTreeMaker(const TreeliteTree& columns, std::uint32_t leaf_width) : columns_(columns) {
    tree_.leaf_width = leaf_width;
  }

  Result<Tree> make() && {
    tree_.nodes.reserve(columns_.nodes());
    tree_.gains.reserve(columns_.nodes());
    for (std::size_t i = 0; i < columns_.nodes(); ++i) {
      Node node;
      FVM_TRY(columns_.is_leaf(i) ? set_leaf(i, node) : set_split(i, node));
      node.cover = cover_of(i);
      tree_.nodes.push_back(node);
      tree_.gains.push_back(has(i, columns_.gain, columns_.has_gain)
                                ? static_cast<float>(columns_.gain[i])
                                : std::numeric_limits<float>::quiet_NaN());
    }
    return std::move(tree_);
  }

 private:
  Error error(std::size_t node, std::string_view message) const {
    return refused(formatted("byte {}: tree {}, node {}", columns_.offset, columns_.number, node), message);
  }

  /// Returns whether a column that need not have a number for each node has one for node `i`.
  template <class T>
  static bool has(std::size_t i, const FileColumn<T>& numbers, const FileColumn<std::uint8_t>& flags) {
    return i < numbers.size() && i < flags.size() && flags[i] != 0;
  }

  float cover_of(std::size_t i) const {
    if (has(i, columns_.sum_hess, columns_.has_sum_hess)) return static_cast<float>(columns_.sum_hess[i]);
    if (!has(i, columns_.data_count, columns_.has_data_count)) return 0;
    return static_cast<float>(columns_.data_count[i]);
  }

  /// Returns end - begin. Refuses a segment that does not lie in a list of `size` entries, or that makes the segments
  /// of this and earlier nodes, which have `taken` entries together, longer than the list: a tree may not take more
  /// memory than the file.
  Result<std::size_t> segment_size(std::size_t node, const char* what, std::uint64_t begin, std::uint64_t end,
                                   std::size_t size, std::size_t& taken) const {
    if (begin > end || end > size)
      return error(node, formatted("{} from {} to {} do not lie in the tree's {}", what, begin, end, size));
    const auto count = static_cast<std::size_t>(end - begin);
    if (count > size - taken) return error(node, std::string(what) + " that belong to several nodes");
    taken += count;
    return count;
  }

  Result<void> set_leaf(std::size_t i, Node& node) {
    const std::uint64_t begin = columns_.vector_begin[i], end = columns_.vector_end[i];
    FVM_ASSIGN(const std::size_t width,
               segment_size(i, "leaf values", begin, end, columns_.leaf_vectors.size(), values_taken_));
    if (width != tree_.leaf_width && !(width == 0 && tree_.leaf_width == 1))
      return error(i, formatted("a leaf with a vector of {} values, in a tree whose leaves have {}", width,
                                tree_.leaf_width));
    if (width <= 1) {
      node.value =
          width == 0 ? columns_.leaf_value[i] : columns_.leaf_vectors[static_cast<std::size_t>(begin)];
      return {};
    }
    node.payload = static_cast<std::uint32_t>(tree_.leaf_vectors.size() / width);
    for (std::size_t k = 0; k < width; ++k)
      tree_.leaf_vectors.push_back(columns_.leaf_vectors[static_cast<std::size_t>(begin) + k]);
    return {};
  }

  Result<void> set_split(std::size_t i, Node& node) {
    node.left = columns_.left[i];
    node.right = columns_.right[i];
    node.feature = columns_.feature_of(i);
    node.missing_left = columns_.goes_left_by_default(i);
    switch (columns_.kind[i]) {
      case kNumerical:
        return set_comparison(i, node);
      case kCategorical:
        return set_categories(i, node);
      default:
        return error(i, formatted("unknown kind of node {}", columns_.kind[i]));
    }
  }

  Result<void> set_comparison(std::size_t i, Node& node) const {
    node.threshold = columns_.threshold[i];
    const std::int8_t comparison = columns_.comparison[i];
    switch (comparison) {
      case kEqual:
        return error(i, "the comparison == is not supported");
      case kLess:
      case kGreaterEqual:
        node.kind = NodeKind::Less;
        break;
      case kLessEqual:
      case kGreater:
        node.kind = NodeKind::LessEqual;
        break;
      default:
        return error(i, formatted("unknown comparison {}", comparison));
    }
    if (comparison != kGreater && comparison != kGreaterEqual) return {};
    // The comparisons > and >= are made as <= and < with the children exchanged.
    std::swap(node.left, node.right);
    node.missing_left = !node.missing_left;
    return {};
  }

  Result<void> set_categories(std::size_t i, Node& node) {
    const std::uint64_t begin = columns_.categories_begin[i], end = columns_.categories_end[i];
    FVM_ASSIGN(const std::size_t count,
               segment_size(i, "categories", begin, end, columns_.categories.size(), categories_taken_));
    CategorySet set;
    set.members_left = columns_.members_right[i] == 0;
    set.codes.reserve(count);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t code = columns_.categories[static_cast<std::size_t>(begin) + k];
      if (code >= kMaxCategories)
        return error(i, formatted("category {} is over the limit of {}", code, kMaxCategories - 1));
      set.codes.push_back(code);
    }
    std::sort(set.codes.begin(), set.codes.end());
    set.codes.erase(std::unique(set.codes.begin(), set.codes.end()), set.codes.end());
    node.kind = NodeKind::Category;
    node.payload = static_cast<std::uint32_t>(tree_.category_sets.size());
    tree_.category_sets.push_back(std::move(set));
    return {};
  }

  const TreeliteTree& columns_;
  Tree tree_;
  std::size_t values_taken_ = 0, categories_taken_ = 0;
};

}  // namespace

Result<Tree> tree_of(const TreeliteTree& columns, std::uint32_t leaf_width) {
  return TreeliteTreeMaker(columns, leaf_width).make();
}

}  // namespace forestvm::frontend
