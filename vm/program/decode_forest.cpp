// See decode_forest.hpp.
#include "vm/program/decode_forest.hpp"

#include <algorithm>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/groups.hpp>

namespace forestvm::bytecode {
namespace {

/// Returns the bound for which the number in a node stands: in a ranked feature the number is the rank of a bound,
/// otherwise the least float32 that is not below the bound.
double bound_of(const WideFeature& wide, std::span<const double> bounds, double number) {
  if (wide.ranked != 0) {
    const bool is_rank = number >= 1 && number <= static_cast<double>(bounds.size());
    return is_rank ? bounds[static_cast<std::size_t>(number) - 1] : number;
  }
  const auto at = std::lower_bound(bounds.begin(), bounds.end(), number);
  const bool stands = at != bounds.begin() && static_cast<double>(neighbours(*(at - 1)).up) == number;
  return stands ? *(at - 1) : number;
}

/// Returns the trainer's threshold for the number in a node.
double restored(const Program& program, std::uint32_t feature, float number) {
  const auto features = program.section_WideFeatures();
  const auto at =
      std::lower_bound(features.begin(), features.end(), feature,
                       [](const WideFeature& wide, std::uint32_t wanted) { return wide.feature < wanted; });
  if (at == features.end() || at->feature != feature) return static_cast<double>(number);
  return bound_of(*at, program.section_WideBounds().subspan(at->first_bound, at->bound_count),
                  static_cast<double>(number));
}

template <class View>
class GroupDecoder {
 public:
  GroupDecoder(const Program& program, const GroupDesc& group)
      : program_(program), group_(group), data_(group_data(program, group)) {}

  DecodedGroup run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t t = begin; t < end; ++t) add_tree(t);
    return std::move(result_);
  }

 private:
  DecodedChild child_at(const typename View::Tree& tree, std::uint32_t index, std::uint32_t at,
                        std::vector<std::uint32_t>& slots) {
    if constexpr (kTakesCodes<View>)  // goes down to a leaf that is repeated below
      while (!View::is_leaf(tree, at) && View::code(tree, at) == kNeverRight) at = View::child(tree, at, 0);
    if (View::is_leaf(tree, at)) {
      const std::uint64_t number = View::number_at(tree, data_.trees[index], at);
      const std::uint64_t place = group_.first_number + number;
      const auto wide = program_.section_WideLeaves();
      const float value = View::value(tree, at);
      result_.leaves.push_back({value, wide.empty() ? static_cast<double>(value) : wide[place],
                                program_.section_LeafNumbers()[place]});
      return ~static_cast<DecodedChild>(result_.leaves.size() - 1);
    }
    slots.push_back(at);
    return static_cast<DecodedChild>(slots.size() - 1);
  }

  DecodedTest test_at(const typename View::Tree& tree, std::uint32_t at, unsigned i) const {
    if constexpr (kTakesCodes<View>)
      return decoded_test(View::column(tree, at), View::code(tree, at));
    else
      return number_test(View::feature_word(tree, at, i), View::threshold(tree, at, i));
  }

  DecodedTest number_test(std::uint32_t feature_word, float number) const {
    return {restored(program_, feature_word & kFeatureMask, number),
            feature_word & (kFeatureMask | kMissingLeft)};
  }

  /// Returns the test of a value that is equivalent to a test of its code.
  DecodedTest decoded_test(std::uint32_t column, std::uint8_t code) const {
    const ColumnDesc& desc = program_.section_Columns()[column];
    const std::uint32_t missing = desc.missing_highest != 0 ? 0 : kMissingLeft;
    const auto categories = program_.section_CategoryColumns();
    const std::size_t first_category = program_.section_Columns().size() - categories.size();
    if (column >= first_category) {
      const CategoryColumn& category = categories[column - first_category];
      return {0, category.feature | missing, &category};
    }
    const auto features = program_.section_EncodedFeatures();
    const auto after = std::upper_bound(
        features.begin(), features.end(), column,
        [](std::uint32_t number, const EncodedFeature& feature) { return number < feature.first_column; });
    const EncodedFeature& feature = *(after - 1);
    return number_test(feature.feature | missing,
                       program_.section_Ranks()[feature.first_threshold + desc.first + code]);
  }

  void add_tree(std::uint32_t index) {
    const typename View::Tree tree = View::tree(data_, index);
    DecodedTree decoded;
    std::vector<std::uint32_t> slots;  // slots of the tiles in the view
    decoded.root = child_at(tree, index, 0, slots);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::uint32_t at = slots[i];
      DecodedTile tile{};
      unsigned size = 1;
      if constexpr (View::kTileWidth > 1) {
        tile.shape = View::shape(tree, at);
        size = program_.section_TileShapes()[tile.shape].size;
      }
      for (unsigned k = 0; k < size; ++k) tile.tests.push_back(test_at(tree, at, k));
      for (unsigned way = 0; way <= size; ++way)
        tile.children.push_back(child_at(tree, index, View::child(tree, at, way), slots));
      decoded.tiles.push_back(std::move(tile));
    }
    result_.trees.push_back(std::move(decoded));
  }

  const Program& program_;
  const GroupDesc& group_;
  GroupData data_;
  DecodedGroup result_;
};

DecodedGroup decode_trees(const Program& program, const GroupDesc& group, std::uint32_t begin,
                          std::uint32_t end) {
  return with_view(group.layout,
                   [&]<class View>() { return GroupDecoder<View>(program, group).run(begin, end); });
}

}  // namespace

DecodedGroup decode_group(const Program& program, const GroupDesc& group) {
  return decode_trees(program, group, 0, group.tree_end - group.tree_begin);
}

DecodedGroup decode_tree(const Program& program, const GroupDesc& group, std::uint32_t place) {
  return decode_trees(program, group, place, place + 1);
}

}  // namespace forestvm::bytecode
