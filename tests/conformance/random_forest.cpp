// See random_forest.hpp.
#include "random_forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "support/small_models.hpp"

namespace forestvm::test {
namespace {

enum class TreeShape { Leaf, Complete, Ragged, Chain };

class ForestMaker {
 public:
  ForestMaker(Dice& dice, const ForestOptions& options) : dice_(dice), options_(options) {}

  Model run() {
    Model model =
        support::model_of({}, static_cast<std::uint32_t>(dice_.from_to(1, dice_.percent(8) ? 50 : 6)));
    // Few features with many thresholds have rank codes of several columns.
    const bool many_thresholds = dice_.percent(5);
    model.num_features =
        static_cast<std::uint32_t>(dice_.from_to(1, many_thresholds    ? 3
                                                    : dice_.percent(5) ? options_.max_features
                                                                       : 40));
    features_ = model.num_features;
    wild_leaves_ = dice_.percent(20);
    if (options_.float64 != 0 && dice_.percent(options_.float64)) model.score_type = ScalarType::Float64;
    float64_ = model.score_type == ScalarType::Float64;
    const bool linear = float64_ && options_.linear != 0 && dice_.percent(options_.linear);
    if (linear || (float64_ && dice_.percent(60))) model.row_type = ScalarType::Float64;
    model.tiny_is_zero = linear;
    const bool covered = dice_.percent(50);
    make_thresholds(dice_.from_to(1, many_thresholds ? 900 : 12));
    if (dice_.percent(options_.categories)) make_sets(dice_.from_to(1, dice_.percent(10) ? 150 : 12));
    for (double& base : model.base) base = leaf_value();
    model.base_last = dice_.percent(30);
    make_outputs(model);
    const bool vectors = !linear && model.num_outputs > 1 && dice_.percent(30);
    if (model.base_last && dice_.percent(30)) model.scale = dice_.real() * 4 - 2;
    const bool dart = !linear && dice_.percent(20);
    const std::size_t trees = !linear && dice_.percent(2) ? 0 : dice_.from_to(1, options_.max_trees);
    for (std::size_t t = 0; t < trees; ++t) {
      Tree tree = make_tree();
      if (covered) cover(tree, 0, static_cast<float>(dice_.from_to(1, 100'000)));
      model.trees.push_back(renumbered(tree));
      model.trees.back().output = static_cast<std::uint32_t>(dice_.below(model.num_outputs));
      if (vectors)  // some numbers are equal
        support::make_vectors(model.trees.back(), model.num_outputs, [this](const Node&, std::uint32_t) {
          return dice_.percent(40) ? 0.25 : leaf_value();
        });
      if (linear && (t == 0 || !dice_.percent(20))) make_linear(model.trees.back());
      if (dart) model.trees.back().weight = weight();
      model.round_begins.push_back(static_cast<std::uint32_t>(t + 1));
    }
    return model;
  }

 private:
  /// Makes the leaves linear functions, some of them of the same feature twice, some constant.
  void make_linear(Tree& tree) {
    for (Node& node : tree.nodes) {
      if (node.kind != NodeKind::Leaf) continue;
      node.payload = static_cast<std::uint32_t>(tree.linear_leaves.size());
      LinearLeaf leaf{leaf_value(), {}, {}};
      for (std::size_t terms = dice_.below(4); terms > 0; --terms) {
        leaf.features.push_back(static_cast<std::uint32_t>(dice_.below(features_)));
        leaf.coefficients.push_back(leaf_value());
      }
      tree.linear_leaves.push_back(std::move(leaf));
    }
  }

  void make_thresholds(std::size_t count) {
    const std::vector<double> special{0.0,     -0.0,     0x1p-149, -0x1p-149,    0x1p-126,
                                      0x1p127, -0x1p127, 1.0,      1.0 + 0x1p-23};
    for (; count > 0; --count)
      thresholds_.push_back(dice_.percent(25)
                                ? dice_.pick(special)
                                : static_cast<double>(static_cast<float>(dice_.real() * 8 - 4)));
  }

  /// Makes sets of few or many codes, near zero or at the end of the range. They vary in the side of their members and
  /// in the rule for numbers between -1 and 0. Some sets are empty.
  void make_sets(std::size_t count) {
    categorical_ = static_cast<unsigned>(dice_.from_to(1, 100));
    const bool fractions = dice_.percent(50);
    for (; count > 0; --count) {
      CategorySet set;
      set.members_left = dice_.percent(50);
      set.rule = fractions != dice_.percent(5) ? CategoryRule::AboveMinusOne : CategoryRule::WholePart;
      const std::uint32_t last = dice_.percent(5) ? kMaxCategories - 1 : dice_.percent(20) ? 2000 : 40;
      const std::size_t codes = dice_.percent(40) ? 1 : dice_.from_to(0, 30);
      for (std::size_t i = 0; i < codes; ++i)
        set.codes.push_back(last - static_cast<std::uint32_t>(dice_.below(std::min(last, 3000u) + 1)));
      std::sort(set.codes.begin(), set.codes.end());
      set.codes.erase(std::unique(set.codes.begin(), set.codes.end()), set.codes.end());
      sets_.push_back(std::move(set));
    }
  }

  /// Makes some splits categorical.
  void choose_kind(Node& node) {
    if (!dice_.percent(categorical_)) return;
    node.kind = NodeKind::Category;
    node.threshold = 0;
    node.payload = static_cast<std::uint32_t>(dice_.below(sets_.size()));
  }

  void make_outputs(Model& model) {
    const std::vector<std::pair<Transform, ClassRule>> one{{Transform::Identity, ClassRule::None},
                                                           {Transform::Identity, ClassRule::Positive},
                                                           {Transform::Sigmoid, ClassRule::AboveHalf},
                                                           {Transform::Exp, ClassRule::None},
                                                           {Transform::Step, ClassRule::Value},
                                                           {Transform::Sigmoid, ClassRule::RawPositive},
                                                           {Transform::Logistic, ClassRule::RawNotNegative},
                                                           {Transform::Clamp, ClassRule::RawAboveHalf},
                                                           {Transform::Sigmoid, ClassRule::RawAboveOffset}};
    const std::vector<std::pair<Transform, ClassRule>> many{
        {Transform::Identity, ClassRule::None},         {Transform::Sigmoid, ClassRule::AboveHalf},
        {Transform::Softmax, ClassRule::Argmax},        {Transform::Softmax, ClassRule::RawArgmax},
        {Transform::Identity, ClassRule::ArgmaxOfEach}, {Transform::TableSoftmax, ClassRule::RawArgmax},
        {Transform::Argmax, ClassRule::Value},          {Transform::Sorted, ClassRule::None}};
    std::tie(model.transform, model.class_rule) = dice_.pick(model.num_outputs == 1 ? one : many);
    if (model.class_rule == ClassRule::ArgmaxOfEach)
      model.group_ends = std::uint64_t{1} << (model.num_outputs - 1) |
                         dice_.below(std::size_t{1} << (model.num_outputs - 1));
    if (model.class_rule == ClassRule::RawAboveOffset) model.offset = dice_.real() - 0.5;
    if (float64_ && model.class_rule == ClassRule::RawArgmax) model.divisor = 3, model.slope = 7;
    if (model.num_outputs == 1 && dice_.percent(20))
      model.pair = dice_.percent(70) ? Pair::Complement : Pair::Negation;
  }

  double leaf_value() {
    if (options_.integer_leaves) return static_cast<double>(dice_.below(33)) - 16;
    const std::vector<double> special{0.0, -0.0, 0x1p-149, -0x1p-126, 0x1p100, -0x1p100, 1.0};
    if (wild_leaves_ && dice_.percent(10)) return dice_.pick(special);
    const double scale = dice_.percent(80) ? 1.0 : 1e-6;
    const double value = (dice_.real() - 0.5) * scale;
    return float64_ ? value : static_cast<double>(static_cast<float>(value));
  }

  float weight() {
    if (options_.integer_leaves) return 0.5f * static_cast<float>(dice_.from_to(1, 4));
    return static_cast<float>(dice_.real() * 2);
  }

  Tree make_tree() {
    if (options_.oblivious != 0 && dice_.percent(options_.oblivious))
      return oblivious(dice_.from_to(0, std::min<std::size_t>(options_.max_depth, 8)));
    if (options_.leaf_wise != 0 && dice_.percent(options_.leaf_wise))
      return leaf_wise(dice_.from_to(50, options_.most_leaves));
    const auto shape = static_cast<TreeShape>(dice_.below(4));
    const std::size_t depth = dice_.from_to(0, options_.max_depth);
    if (shape == TreeShape::Chain && dice_.percent(10)) return grown(shape, depth + 30);
    nodes_left_ = 400;
    if (shape == TreeShape::Ragged && dice_.percent(10)) return grown(shape, 30);
    return grown(shape, shape == TreeShape::Complete ? std::min<std::size_t>(depth, 6) : depth);
  }

  Tree grown(TreeShape shape, std::size_t depth) {
    if (depth == 0 || shape == TreeShape::Leaf) return support::leaf(leaf_value());
    if (shape == TreeShape::Ragged && (dice_.percent(35) || nodes_left_ == 0))
      return support::leaf(leaf_value());
    if (nodes_left_ > 0) --nodes_left_;
    Tree left = grown(shape, depth - 1);
    Tree right = shape == TreeShape::Chain ? support::leaf(leaf_value()) : grown(shape, depth - 1);
    if (dice_.percent(50)) std::swap(left, right);
    return split(any_test(), left, right);
  }

  static Tree split(const Node& test, const Tree& left, const Tree& right) {
    Tree tree = support::split(test.feature, test.threshold, left, right, test.missing_left);
    tree.nodes[0].kind = test.kind;
    tree.nodes[0].payload = test.payload;
    return tree;
  }

  /// Makes an oblivious tree. In some, one level has different tests, or a leaf is above the last level.
  Tree oblivious(std::size_t depth) {
    const std::size_t odd_level = dice_.percent(20) ? dice_.from_to(1, 8) : 0;
    const bool odd_leaf = dice_.percent(10);
    std::vector<Tree> below;
    for (std::size_t i = 0; i < std::size_t{1} << depth; ++i) below.push_back(support::leaf(leaf_value()));
    for (std::size_t level = depth; level > 0; --level) {
      Node test = any_test();
      for (std::size_t i = 0; i < below.size() / 2; ++i) {
        if (level == odd_level) test = any_test();
        below[i] = split(test, below[2 * i], below[2 * i + 1]);
      }
      below.resize(below.size() / 2);
      if (odd_leaf && level == 3) below[dice_.below(below.size())] = support::leaf(leaf_value());
    }
    return below.front();
  }

  /// Grows a tree as LightGBM does: it always splits one leaf, often a new one.
  Tree leaf_wise(std::size_t leaves) {
    Tree tree = support::leaf(leaf_value());
    std::vector<std::size_t> open{0};
    while (open.size() < leaves) {
      std::size_t& at = dice_.percent(30) ? open.back() : open[dice_.below(open.size())];
      const std::size_t left = tree.nodes.size();
      for (int i = 0; i < 2; ++i) tree.nodes.push_back(support::leaf(leaf_value()).nodes[0]);
      Node& node = tree.nodes[at] = any_test();
      node.left = static_cast<std::int32_t>(left);
      node.right = static_cast<std::int32_t>(left + 1);
      at = left;
      open.push_back(left + 1);
    }
    return tree;
  }

  Node any_test() {
    Node node;
    node.kind = NodeKind::Less;
    node.feature = static_cast<std::uint32_t>(dice_.below(features_));
    node.threshold = dice_.pick(thresholds_);
    node.missing_left = dice_.percent(50);
    choose_kind(node);
    return node;
  }

  /// Sets covers: training rows go either way at a split, sometimes none.
  void cover(Tree& tree, std::size_t at, float rows) {
    Node& node = tree.nodes[at];
    node.cover = rows;
    if (node.kind == NodeKind::Leaf) return;
    const auto left = dice_.percent(10) ? 0.0f : std::floor(rows * static_cast<float>(dice_.real()));
    cover(tree, static_cast<std::size_t>(node.left), left);
    cover(tree, static_cast<std::size_t>(tree.nodes[at].right), rows - left);
  }

  /// Returns the same tree with its nodes in another order and a few unused slots; the root stays first.
  Tree renumbered(const Tree& tree) {
    std::vector<std::int32_t> moved_to(tree.nodes.size() + dice_.below(3));
    std::iota(moved_to.begin(), moved_to.end(), 0);
    for (std::size_t i = moved_to.size() - 1; i > 1; --i)
      std::swap(moved_to[i], moved_to[dice_.from_to(1, i)]);
    Tree result;
    result.category_sets = sets_;
    result.nodes.resize(moved_to.size());
    for (Node& node : result.nodes) node.kind = NodeKind::Unused;
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      Node node = tree.nodes[i];
      if (node.left >= 0) node.left = moved_to[static_cast<std::size_t>(node.left)];
      if (node.right >= 0) node.right = moved_to[static_cast<std::size_t>(node.right)];
      result.nodes[static_cast<std::size_t>(moved_to[i])] = node;
    }
    return result;
  }

  Dice& dice_;
  ForestOptions options_;
  std::uint32_t features_ = 1;
  std::vector<double> thresholds_;
  std::vector<CategorySet> sets_;
  unsigned categorical_ = 0;    ///< percent of the splits that are categorical
  std::size_t nodes_left_ = 0;  ///< nodes that the ragged tree being grown may still have
  bool float64_ = false;
  bool wild_leaves_ = false;  ///< true: leaves' sizes are so far apart that no integer counts their sum
};

}  // namespace

Model random_forest(Dice& dice, const ForestOptions& options) { return ForestMaker(dice, options).run(); }

std::vector<float> random_rows(Dice& dice, const Model& model, std::size_t count) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0.0f, -0.0f, infinity, -infinity, 0x1p-149f, -0x1p-149f, 0x1p-126f};
  bool categories = false;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes) {
      if (node.kind == NodeKind::Category) {
        categories = true;
        const CategorySet& set = tree.category_sets[node.payload];
        for (std::size_t i = 0; i < std::min<std::size_t>(set.codes.size(), 5); ++i)
          for (const float x : {0.0f, 0.7f, 1.0f, -1.0f})
            values.push_back(static_cast<float>(dice.pick(set.codes)) + x);
      }
      if (node.kind != NodeKind::Less) continue;
      const auto threshold = static_cast<float>(node.threshold);
      for (const float x :
           {threshold, std::nextafter(threshold, infinity), std::nextafter(threshold, -infinity)})
        values.push_back(x);
    }
  if (categories)
    values.insert(values.end(), {-0.5f, -0x1.fffffep-1f, -1.0f, -7.0f, 3.7f, 31.0f, 32.0f, 63.5f, 0x1p24f,
                                 0x1p24f - 1, 0x1p31f, 0x1p32f, -0x1p31f, 3e38f});
  std::vector<float> rows(count * model.num_features);
  for (float& x : rows) {
    const std::size_t kind = dice.below(10);
    if (kind == 0) x = std::numeric_limits<float>::quiet_NaN();
    if (kind >= 1 && kind <= 5) x = dice.pick(values);
    if (kind > 5) x = static_cast<float>(dice.real() * 10 - 5);
  }
  return rows;
}

double largest_sum(const Model& model) {
  double sum = 0;
  for (const double base : model.base) sum = std::max(sum, std::abs(base));
  for (const Tree& tree : model.trees) {
    double largest = 0;
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Leaf) largest = std::max(largest, std::abs(node.value));
    sum += largest * std::abs(static_cast<double>(tree.weight));
  }
  return sum;
}

}  // namespace forestvm::test
