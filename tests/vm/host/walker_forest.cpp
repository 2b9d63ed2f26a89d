// See walker_forest.hpp.
#include "vm/host/walker_forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <forestvm/compile.hpp>
#include <forestvm/core/layouts.hpp>

#include "conformance/dice.hpp"

namespace forestvm::test {
namespace {

constexpr std::uint32_t kThresholds = 9;

enum class Shape { Bushy, Ragged, Chain, Oblivious, Leaf };

class ForestMaker {
 public:
  ForestMaker(const WalkerForestOptions& options, Dice& dice, std::uint32_t most_leaves, bool padded)
      : options_(options), dice_(dice), most_leaves_(most_leaves), padded_(padded) {}

  Model run() {
    Model model;
    model.format = model.trainer = "by hand";
    model.objective = "none";
    model.num_features = options_.features;
    model.num_outputs = options_.outputs;
    model.row_type = model.score_type = options_.type;
    model.base.assign(options_.outputs, 0);
    for (std::uint32_t t = 0; t < options_.trees; ++t) {
      model.trees.push_back(tree(t));
      model.trees.back().output = static_cast<std::uint32_t>(dice_.below(options_.outputs));
      model.round_begins.push_back(t);
    }
    model.round_begins.push_back(options_.trees);
    return model;
  }

 private:
  Tree tree(std::uint32_t number) {
    Tree tree;
    tree.nodes.resize(1);
    leaves_ = 1;
    tests_.clear();
    const Shape shape = shape_of(number);
    // Consecutive oblivious trees have different depths.
    const std::uint32_t depth = shape == Shape::Oblivious ? 1 + number % std::min(options_.depth, 6u)
                                : shape == Shape::Chain   ? options_.depth + number % 9
                                                          : options_.depth;
    grow(tree, 0, 0, depth, shape, number % 4 == 0);
    return tree;
  }

  Shape shape_of(std::uint32_t number) const {
    if (!options_.odd_shapes) return Shape::Bushy;
    if (number % 16 >= 10 && number % 16 < 15) return Shape::Oblivious;
    if (number % 16 == 3) return Shape::Leaf;
    // Other shapes would need too much padding.
    if (padded_ || number % 3 == 0) return Shape::Bushy;
    return number % 3 == 1 ? Shape::Ragged : Shape::Chain;
  }

  /// Grows a tree. If `deepest` is true, some leaf below is at the full depth.
  void grow(Tree& tree, std::size_t at, std::uint32_t level, std::uint32_t depth, Shape shape, bool deepest) {
    if (shape == Shape::Leaf || level == depth || (level >= options_.shallowest && ends(shape, deepest))) {
      tree.nodes[at].kind = NodeKind::Leaf;
      tree.nodes[at].value = output();
      return;
    }
    ++leaves_;
    const std::size_t left = tree.nodes.size();
    tree.nodes.resize(left + 2);
    Node& node = tree.nodes[at] = shape == Shape::Oblivious ? level_test(level) : test();
    node.left = static_cast<std::int32_t>(left);
    node.right = static_cast<std::int32_t>(left + 1);
    const bool down = dice_.percent(50);
    for (unsigned side = 0; side < 2; ++side) {
      const bool goes_down = down == (side == 0);
      if (shape == Shape::Chain && !goes_down)
        grow(tree, left + side, depth, depth, shape, false);
      else
        grow(tree, left + side, level + 1, depth, shape, deepest && goes_down);
    }
  }

  bool ends(Shape shape, bool deepest) {
    if (shape == Shape::Oblivious || shape == Shape::Chain || deepest) return false;
    return leaves_ >= most_leaves_ || dice_.percent(shape == Shape::Ragged ? 35 : 8);
  }

  Node test() {
    Node node;
    node.kind = NodeKind::Less;
    node.feature = next_feature_++ % options_.features;
    node.threshold = static_cast<double>(dice_.below(kThresholds)) * 0.5 - 2;
    node.missing_left = dice_.percent(50);
    return node;
  }

  const Node& level_test(std::uint32_t level) {
    while (tests_.size() <= level) tests_.push_back(test());
    return tests_[level];
  }

  double output() {
    if (options_.whole_leaves) return static_cast<double>(dice_.from_to(1, 3));
    // Uses all bits of a float32; sums are rounded at almost every addition.
    const double narrow = (static_cast<double>(dice_.below(1u << 25)) - 0x1p24) * 0x1p-20;
    if (options_.type == ScalarType::Float32) return static_cast<double>(static_cast<float>(narrow));
    return narrow + static_cast<double>(dice_.below(1u << 20)) * 0x1p-45;
  }

  const WalkerForestOptions& options_;
  Dice& dice_;
  std::uint32_t most_leaves_;
  bool padded_;
  std::uint32_t next_feature_ = 0;
  std::uint32_t leaves_ = 0;  ///< number of leaves of the tree being grown
  std::vector<Node> tests_;   ///< tests of an oblivious tree's levels
};

float value(Dice& dice) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (dice.percent(15)) return std::numeric_limits<float>::quiet_NaN();
  if (dice.percent(3)) return dice.percent(50) ? infinity : -infinity;
  const float threshold = static_cast<float>(dice.below(kThresholds)) * 0.5f - 2;
  return dice.percent(40) ? threshold : threshold + static_cast<float>(dice.real()) - 0.5f;
}

/// Returns every row's code in every column; rows that only fill the last block have arbitrary codes.
std::vector<std::uint8_t> encoded(const WalkerForest& forest, Dice& dice) {
  const Program& program = forest.program;
  std::vector<std::uint8_t> codes(code_bytes(forest.row_count, forest.columns()));
  for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(dice.below(256));
  for (std::size_t row = 0; row < forest.row_count; ++row)
    for (const EncodedFeature& feature : program.encoded_features()) {
      const float x = forest.rows[row * forest.model.num_features + feature.feature];
      std::uint32_t rank = 0;
      for (std::uint32_t i = 0; i < feature.threshold_count; ++i)
        rank += program.ranks()[feature.first_threshold + i] <= x;
      for (std::uint32_t c = feature.first_column; c < feature.first_column + feature.column_count; ++c)
        codes[code_offset(row, forest.columns()) + c * kCodeRows] =
            column_code(program.columns()[c], rank, std::isnan(x));
    }
  return codes;
}

PlainLeaf leaf_of(const Tree& tree, const float* row) {
  std::size_t at = 0;
  while (tree.nodes[at].kind != NodeKind::Leaf) {
    const Node& node = tree.nodes[at];
    const float x = row[node.feature];
    const bool left = std::isnan(x) ? node.missing_left : static_cast<double>(x) < node.threshold;
    at = static_cast<std::size_t>(left ? node.left : node.right);
  }
  const double value = tree.nodes[at].value;
  return {static_cast<float>(value), value, static_cast<std::uint32_t>(leaf_number(tree, at))};
}

std::uint32_t most_leaves(Layout layout) {
  if (layout == Layout::TreeTables) return kMaxTreeSlots + 1;
  return layout == Layout::Tables ? kMaxTableLeaves : UINT32_MAX;
}

bool is_padded(Layout layout) {
  return with_view(layout, []<class View>() { return !View::kLeavesHoldStill || View::kTileWidth > 1; });
}

std::string schedule_of(const LayoutRow& layout, const std::string& ending, std::uint64_t seed) {
  if (layout.tile_width == 1) return "layout(tree, " + std::string(layout.text) + "); " + ending;
  const std::uint64_t size = layout.tile_width - seed % (layout.tile_width / 2);
  return "layout(tree, " + std::string(layout.word) + "); tileTree(tree, " + std::to_string(size) +
         ", uniform); " + ending;
}

}  // namespace

const std::vector<LayoutRow>& layout_rows() {
  static const std::vector<LayoutRow> rows{
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  {Layout::Name, #Name, text, word, View::kTileWidth},
#include <forestvm/core/layouts.def>
  };
  return rows;
}

WalkerForest walker_forest(const LayoutRow& layout, const WalkerForestOptions& options, std::uint64_t seed) {
  const std::string schedule = schedule_of(layout, options.ending, seed);
  std::string refusal;
  for (unsigned attempt = 0; attempt < 20; ++attempt) {
    Dice dice(seed * 1000 + attempt);
    Model model = ForestMaker(options, dice, most_leaves(layout.layout), is_padded(layout.layout)).run();
    const auto compiled = compile(model, *parse_schedule(schedule));
    if (!compiled.ok()) {  // some random trees need too much padding
      refusal = compiled.error().text();
      continue;
    }
    const std::string what = std::string(layout.text) + " forest " + std::to_string(seed) + " (" + schedule +
                             "), " + std::to_string(options.features) + " features, " +
                             std::to_string(options.outputs) + " outputs";
    WalkerForest forest{what, std::move(model), compiled->program, {}, 0, {}, {}, {}};
    forest.trees.assign(forest.program.trees().begin(), forest.program.trees().end());
    for (std::uint32_t t = 0; t < options.trees; ++t) {
      if (forest.trees[t].number != t) throw std::logic_error("the trees' order is not the model's");
      forest.trees[t].number = (t * 5 + 7) % options.trees;
    }
    forest.row_count = options.row_count;
    for (std::size_t i = 0; i < options.row_count * options.features; ++i) forest.rows.push_back(value(dice));
    for (std::size_t row = 0; row < options.row_count; ++row)
      for (const Tree& tree : forest.model.trees)
        forest.leaves.push_back(leaf_of(tree, forest.rows.data() + row * options.features));
    forest.codes = encoded(forest, dice);
    return forest;
  }
  throw std::runtime_error(schedule + ": " + refusal);
}

std::vector<WalkerForest> walker_forests(const LayoutRow& layout) {
  const bool tiles = layout.tile_width > 1;
  const bool tables = most_leaves(layout.layout) != UINT32_MAX;
  const std::uint32_t deepest = layout.layout == Layout::TreeTables || tiles ? 5 : tables ? 7 : 9;
  std::vector<WalkerForest> forests;
  const auto add = [&](const WalkerForestOptions& options) {
    forests.push_back(walker_forest(layout, options, forests.size()));
  };
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    // Walks to a leaf: all shapes of trees, and numbers of outputs that walkers of tables keep together or
    // apart.
    for (const std::uint32_t outputs : {1u, 2u, 3u, 40u, 300u})
      add({.features = 5, .outputs = outputs, .type = type});
    // Walks with some steps that do not check for leaves.
    add({.outputs = 2,
         .shallowest = 2,
         .ending = tiles ? "peelWalk(tree, 1)" : "peelWalk(tree, 2)",
         .type = type,
         .odd_shapes = false});
    if (!tiles)
      add({.outputs = 2,
           .depth = deepest,
           .ending = "unrollWalk(tree, 3)",
           .type = type,
           .odd_shapes = false});
  }
  // Walks with a fixed number of steps, the depth of the deepest tree: compiled for depths up to a limit.
  for (std::uint32_t depth = 1; depth <= deepest; ++depth)
    add({.outputs = 1 + depth % 3,
         .depth = depth,
         .ending = "unrollWalk(tree)",
         .type = depth % 2 == 0 ? ScalarType::Float32 : ScalarType::Float64,
         .odd_shapes = depth > 4 && !is_padded(layout.layout)});
  // Trees of tables with so many leaves that these are looked up in several registers.
  if (layout.layout == Layout::Tables)
    for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64})
      for (const std::uint32_t depth : {6u, 7u, 8u})
        add({.depth = depth, .shallowest = depth - 1, .type = type, .odd_shapes = false});
  // Tables at the top of trees with no, one and several levels of nodes below them, and leaves in all of these.
  if (layout.layout == Layout::TopTables)
    for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64})
      for (const std::uint32_t depth : {8u, 9u, 11u})
        for (const std::uint32_t shallowest : {depth - 1, depth - 4})
          add({.outputs = 2, .depth = depth, .shallowest = shallowest, .type = type, .odd_shapes = false});
  // Rank codes, with numbers of columns on both sides of the number kept in registers.
  if (takes_codes(layout.layout))
    for (const std::uint32_t features : {3u, 4u, 7u, 8u, 14u, 20u, 40u, 70u, 130u, 300u})
      add({.features = features, .row_count = 200});
  return forests;
}

std::vector<WalkerForest> forests_of_byte_tests() {
  std::vector<WalkerForest> forests;
  for (const LayoutRow& layout : layout_rows()) {
    if (layout.layout != Layout::Sparse4) continue;
    for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64})
      for (const std::uint32_t depth : {1u, 5u, 6u, 7u, 8u, 9u, 10u})
        for (const std::uint32_t features : {30u, 60u, 120u})
          forests.push_back(walker_forest(layout,
                                          {.features = features,
                                           .outputs = 1 + features / 60,
                                           .trees = depth == 8 ? 193u : 71u,
                                           .depth = depth,
                                           .ending = depth == 9 ? "" : "unrollWalk(tree)",
                                           .type = type,
                                           .odd_shapes = false,
                                           .row_count = 70},
                                          forests.size()));
  }
  return forests;
}

}  // namespace forestvm::test
