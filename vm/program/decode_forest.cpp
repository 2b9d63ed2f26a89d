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
  const auto features = program.wide_features();
  const auto at =
      std::lower_bound(features.begin(), features.end(), feature,
                       [](const WideFeature& wide, std::uint32_t wanted) { return wide.feature < wanted; });
  if (at == features.end() || at->feature != feature) return static_cast<double>(number);
  return bound_of(*at, program.wide_bounds().subspan(at->first_bound, at->bound_count),
                  static_cast<double>(number));
}

DecodedTest number_test(const Program& program, std::uint32_t feature_word, float number) {
  return {restored(program, feature_word & kFeatureMask, number),
          feature_word & (kFeatureMask | kMissingLeft)};
}

/// A node or leaf of a tree, in terms that all layouts share.
struct Slot {
  struct Test {
    std::uint32_t at;   ///< Feature word; in layouts that take codes the column.
    float number;       ///< Threshold; in layouts that take codes unused.
    std::uint8_t code;  ///< Code, in layouts that take codes.
  };
  static constexpr unsigned kMaxTests = 8;

  bool is_leaf;
  float value;           ///< Output of a leaf.
  std::uint64_t number;  ///< Number of a leaf among its group's.
  unsigned shape;        ///< Shape of a tile; 0 in layouts of single nodes.
  unsigned size;         ///< Number of tests.
  Test tests[kMaxTests];
  std::uint32_t children[kMaxTests + 1];  ///< Slots, by branch.
};

template <class View>
void read_slot(const GroupData& group, std::span<const TileShape> shapes, std::uint32_t index,
               std::uint32_t at, Slot& slot) {
  static_assert(View::kTileWidth <= Slot::kMaxTests);
  const typename View::Tree tree = View::tree(group, index);
  slot.is_leaf = View::is_leaf(tree, at);
  if (slot.is_leaf) {
    slot.value = View::value(tree, at);
    slot.number = View::number_at(tree, group.trees[index], at);
    return;
  }
  slot.shape = 0;
  slot.size = 1;
  if constexpr (View::kTileWidth > 1) {
    slot.shape = View::shape(tree, at);
    slot.size = shapes[slot.shape].size;
  }
  for (unsigned i = 0; i < slot.size; ++i) {
    if constexpr (kTakesCodes<View>)
      slot.tests[i] = {View::column(tree, at), 0, View::code(tree, at)};
    else
      slot.tests[i] = {View::feature_word(tree, at, i), View::threshold(tree, at, i), 0};
  }
  for (unsigned branch = 0; branch <= slot.size; ++branch)
    slot.children[branch] = View::child(tree, at, branch);
}

class GroupDecoder {
 public:
  GroupDecoder(const Program& program, const GroupDesc& group)
      : program_(program),
        group_(group),
        data_(group_data(program, group)),
        takes_codes_(takes_codes(group.layout)) {}

  DecodedGroup run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t t = begin; t < end; ++t) add_tree(t);
    return std::move(result_);
  }

 private:
  Slot slot_at(std::uint32_t index, std::uint32_t at) const {
    Slot slot;
    with_view(group_.layout,
              [&]<class View>() { read_slot<View>(data_, program_.tile_shapes(), index, at, slot); });
    return slot;
  }

  DecodedChild child_at(std::uint32_t index, std::uint32_t at, std::vector<std::uint32_t>& slots) {
    Slot slot = slot_at(index, at);
    while (takes_codes_ && !slot.is_leaf && slot.tests[0].code == kNeverRight) {  // a leaf is repeated below
      at = slot.children[0];
      slot = slot_at(index, at);
    }
    if (slot.is_leaf) {
      const std::uint64_t number = group_.first_number + slot.number;
      const auto wide = program_.wide_leaves();
      result_.leaves.push_back({slot.value, wide.empty() ? static_cast<double>(slot.value) : wide[number],
                                program_.leaf_numbers()[number]});
      return ~static_cast<DecodedChild>(result_.leaves.size() - 1);
    }
    slots.push_back(at);
    return static_cast<DecodedChild>(slots.size() - 1);
  }

  DecodedTest test_of(const Slot::Test& test) const {
    return takes_codes_ ? decode_test(program_, test.at, test.code)
                        : number_test(program_, test.at, test.number);
  }

  void add_tree(std::uint32_t index) {
    DecodedTree decoded;
    std::vector<std::uint32_t> slots;  // slots of the tiles in the view
    decoded.root = child_at(index, 0, slots);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Slot slot = slot_at(index, slots[i]);
      DecodedTile tile{};
      tile.shape = slot.shape;
      for (unsigned k = 0; k < slot.size; ++k) tile.tests.push_back(test_of(slot.tests[k]));
      for (unsigned branch = 0; branch <= slot.size; ++branch)
        tile.children.push_back(child_at(index, slot.children[branch], slots));
      decoded.tiles.push_back(std::move(tile));
    }
    result_.trees.push_back(std::move(decoded));
  }

  const Program& program_;
  const GroupDesc& group_;
  GroupData data_;
  bool takes_codes_;
  DecodedGroup result_;
};

}  // namespace

DecodedTest decode_test(const Program& program, std::uint32_t column, std::uint8_t code) {
  const ColumnDesc& desc = program.columns()[column];
  const std::uint32_t missing = desc.missing_highest != 0 ? 0 : kMissingLeft;
  const auto categories = program.category_columns();
  const std::size_t first_category = program.columns().size() - categories.size();
  if (column >= first_category) {
    const CategoryColumn& category = categories[column - first_category];
    return {0, category.feature | missing, &category};
  }
  const auto features = program.encoded_features();
  const auto after = std::upper_bound(
      features.begin(), features.end(), column,
      [](std::uint32_t number, const EncodedFeature& feature) { return number < feature.first_column; });
  const EncodedFeature& feature = *(after - 1);
  return number_test(program, feature.feature | missing,
                     program.ranks()[feature.first_threshold + desc.first + code]);
}

DecodedGroup decode_group(const Program& program, const GroupDesc& group) {
  return GroupDecoder(program, group).run(0, group.tree_end - group.tree_begin);
}

DecodedGroup decode_tree(const Program& program, const GroupDesc& group, std::uint32_t index) {
  return GroupDecoder(program, group).run(index, index + 1);
}

}  // namespace forestvm::bytecode
