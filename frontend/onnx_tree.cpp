// See onnx_tree.hpp. Nothing here is recursive over the depth of trees.
#include "frontend/onnx_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "frontend/onnx_split.hpp"

namespace forestvm::frontend {
namespace {

/// The most nodes that repeated subtrees may add to all trees together, beyond two for each node of the file.
constexpr std::size_t kMaxRepeatedNodes = std::size_t{1} << 19;
/// The most numbers in leaf vectors, beyond four for each weight of the file.
constexpr std::size_t kMaxVectorNumbers = std::size_t{1} << 22;
/// The most reads of nodes and members for repeated subtrees, beyond eight for each node and member of the file.
constexpr std::size_t kMaxRepeatedReads = std::size_t{1} << 22;
/// The most ancestors whose tests are used to narrow the range of a feature at a node.
constexpr int kMaxAncestors = 64;

class TreeWalk {
 public:
  TreeWalk(const OnnxForest& forest, std::uint32_t columns)
      : forest_(forest),
        columns_(columns),
        state_(forest.nodes.size(), 0),
        last_leaf_(forest.num_outputs, 0),
        leaves_adding_(forest.num_outputs, 0) {
    shape_.always.resize(forest.num_outputs);
  }

  Result<OnnxShape> walk() {
    for (std::uint32_t t = 0; t < forest_.roots.size(); ++t) FVM_TRY(walk_tree(t));
    for (std::size_t i = 0; i < state_.size(); ++i)
      if (state_[i] == 0) return refused(forest_.location_of_node(i), "the node belongs to no tree");
    return std::move(shape_);
  }

 private:
  struct Visit {
    std::uint32_t node;
    bool children_done;
  };

  // The states of a node in the walk of tree t; 0 before any walk.
  static std::uint64_t open(std::uint32_t t) { return 2 * std::uint64_t{t} + 1; }
  static std::uint64_t closed(std::uint32_t t) { return 2 * std::uint64_t{t} + 2; }

  Result<void> walk_tree(std::uint32_t t) {
    output_ = kNoOutput;
    tree_leaves_ = 0;
    waiting_.push_back({forest_.roots[t], false});
    while (!waiting_.empty()) {
      const Visit visit = waiting_.back();
      waiting_.pop_back();
      FVM_TRY(enter(visit, t));
    }
    shape_.outputs.push_back(output_ == kNoOutput ? 0 : output_);
    shape_.leaves += tree_leaves_;
    for (const std::uint32_t output : adding_) {
      if (leaves_adding_[output] == tree_leaves_) shape_.always[output] = true;
      leaves_adding_[output] = 0;
    }
    adding_.clear();
    return {};
  }

  Result<void> enter(Visit visit, std::uint32_t t) {
    const OnnxNode& node = forest_.nodes[visit.node];
    std::uint64_t& state = state_[visit.node];
    if (visit.children_done) {
      state = closed(t);
      return {};
    }
    const auto wrong = [&](const std::string& what) {
      return refused(forest_.location_of_node(visit.node), what);
    };
    if (state == open(t)) return wrong("the node is its own descendant");
    if (state == closed(t)) return {};
    if (node.mode == OnnxMode::Leaf) {
      state = closed(t);
      add_leaf(node);
      return {};
    }
    if (state != 0) return wrong("the node belongs to two trees");
    if (node.column >= columns_)
      return wrong(formatted("feature {} does not exist: there are {}", node.column, columns_));
    state = open(t);
    waiting_.push_back({visit.node, true});
    waiting_.push_back({node.no, false});
    waiting_.push_back({node.yes, false});
    return {};
  }

  void add_leaf(const OnnxNode& leaf) {
    ++tree_leaves_;
    const auto first = forest_.targets.begin() + leaf.yes, last = forest_.targets.begin() + leaf.no;
    for (auto target = first; target != last; ++target) {
      output_ = output_ == kNoOutput || output_ == *target ? *target : kManyOutputs;
      const std::size_t leaf_number = shape_.leaves + tree_leaves_;
      if (std::exchange(last_leaf_[*target], leaf_number) == leaf_number) continue;
      if (leaves_adding_[*target]++ == 0) adding_.push_back(*target);
    }
  }

  static constexpr std::uint32_t kNoOutput = UINT32_MAX - 1;

  const OnnxForest& forest_;
  std::uint32_t columns_;
  OnnxShape shape_;
  std::vector<std::uint64_t> state_;
  std::vector<Visit> waiting_;
  std::vector<std::size_t> last_leaf_;  ///< Number, from 1 on, of the last leaf that added to each output.
  std::vector<std::size_t> leaves_adding_;  ///< Leaves of the tree that add to each output.
  std::vector<std::uint32_t> adding_;       ///< Outputs to which the tree adds.
  std::uint32_t output_ = kNoOutput;
  std::size_t tree_leaves_ = 0;
};

class TreeBuilder {
 public:
  TreeBuilder(const OnnxForest& forest, const OnnxColumns& columns, std::uint32_t leaf_width,
              const LoadLimits& limits)
      : forest_(forest), columns_(columns), leaf_width_(leaf_width) {
    nodes_left_ = std::min(
        {limits.max_nodes, std::uint64_t{kMaxOnnxIndex}, 3 * forest.nodes.size() + kMaxRepeatedNodes});
    numbers_left_ = 4 * forest.weights.size() + kMaxVectorNumbers;
    reads_left_ = 8 * (forest.nodes.size() + forest.members.size()) + kMaxRepeatedReads;
  }

  /// Makes one tree of the trees with the given roots. Several trees are combined by minimum or maximum.
  Result<Tree> build(std::span<const std::uint32_t> roots, std::uint32_t output) {
    tree_ = Tree();
    tree_.output = output;
    tree_.leaf_width = leaf_width_;
    roots_ = roots;
    parents_.clear();
    extremes_.clear();
    waiting_.push_back({roots[0], 0, -1, -1, false});
    while (!waiting_.empty()) {
      const Position position = waiting_.back();
      waiting_.pop_back();
      FVM_TRY(fill(position));
    }
    tree_.nodes.shrink_to_fit();
    return std::move(tree_);
  }

 private:
  /// A node of the forest for a position in the tree.
  struct Position {
    std::uint32_t node;
    std::uint32_t root;  ///< Number of the root in `roots_` to whose tree the node belongs.
    std::int32_t
        extremes;         ///< Index in `extremes_` of the extremes of the trees before; -1 in the first tree.
    std::int32_t parent;  ///< -1 for the tree's root.
    bool left;
  };

  /// The values that a feature may have at a node, by the tests of the nodes above it.
  struct Range {
    Cut lower = kLowestCut;
    Cut upper = kHighestCut;
    bool nan = true;  ///< True if NaN can come here.
  };

  Error too_long(const std::string& what) const {
    return refused(forest_.where,
                   "the trees share so many parts that they are too long when written out: more than {}",
                   what);
  }

  bool combines_extremes() const {
    return forest_.aggregate == OnnxAggregate::Min || forest_.aggregate == OnnxAggregate::Max;
  }

  /// Fills a position with a leaf, or with a split whose children become new positions.
  Result<void> fill(Position position) {
    for (;;) {
      const OnnxNode& node = forest_.nodes[position.node];
      if (node.mode == OnnxMode::Leaf) {
        if (!combines_extremes()) return add_leaf(position, sums_of(node));
        std::vector<double> extremes = extremes_of(position, node);
        if (position.root + 1 == roots_.size()) return add_leaf(position, std::move(extremes));
        FVM_TRY(spend(extremes.size(), numbers_left_, "leaf numbers"));
        position.extremes = static_cast<std::int32_t>(extremes_.size() / leaf_width_);
        extremes_.insert(extremes_.end(), extremes.begin(), extremes.end());
        position.node = roots_[++position.root];
        continue;
      }
      OnnxSplit split = onnx_split(forest_, columns_, position.node);
      FVM_TRY(spend(split.nodes, reads_left_, "reads of its nodes"));
      const Range range = range_of(split.feature, position);
      keep_between(split, range.lower, range.upper);
      // Only NaN is above the highest cut.
      if (!(range.lower < kHighestCut)) split.targets = {split.nan_target};
      if (!range.nan) split.nan_target = split.targets.front();
      if (split.cuts.empty() && split.nan_target == split.targets.front()) {
        position.node = split.nan_target;
        continue;
      }
      return add_splits(position, split);
    }
  }

  Range range_of(std::uint32_t feature, const Position& position) const {
    Range range;
    std::int32_t at = position.parent;
    bool left = position.left;
    for (int i = 0; at >= 0 && i < kMaxAncestors; ++i) {
      const Node& node = tree_.nodes[static_cast<std::size_t>(at)];
      if (node.feature == feature) {
        const Cut cut{node.threshold, node.kind == NodeKind::LessEqual};
        if (left && cut < range.upper) range.upper = cut;
        if (!left && range.lower < cut) range.lower = cut;
        range.nan = range.nan && node.missing_left == left;
      }
      const std::int32_t parent = parents_[static_cast<std::size_t>(at)];
      left = parent >= 0 && tree_.nodes[static_cast<std::size_t>(parent)].left == at;
      at = parent;
    }
    return range;
  }

  template <class Number>
  Result<void> spend(Number number, std::uint64_t& left, const std::string& what) const {
    if (number > left) return too_long("the limit of " + what);
    left -= number;
    return {};
  }

  /// Adds a node and makes it its parent's child.
  Result<std::int32_t> add_node(const Node& node, std::int32_t parent, bool left) {
    FVM_TRY(spend(1u, nodes_left_, "nodes"));
    const auto index = static_cast<std::int32_t>(tree_.nodes.size());
    tree_.nodes.push_back(node);
    parents_.push_back(parent);
    if (parent >= 0) {
      Node& above = tree_.nodes[static_cast<std::size_t>(parent)];
      (left ? above.left : above.right) = index;
    }
    return index;
  }

  /// Adds the nodes that find a number's part of the line. NaN goes along with a part that has the same target; if
  /// there is none, the first node separates NaN from all numbers.
  Result<void> add_splits(Position position, const OnnxSplit& split) {
    const auto found = std::find(split.targets.begin(), split.targets.end(), split.nan_target);
    std::size_t nan_part = static_cast<std::size_t>(found - split.targets.begin());
    if (found == split.targets.end()) {
      FVM_ASSIGN(position.parent,
                 add_node(node_at(split.feature, kHighestCut, false), position.parent, position.left));
      waiting_.push_back({split.nan_target, position.root, position.extremes, position.parent, false});
      position.left = true;
      nan_part = 0;
    }
    return add_parts(position, split, 0, split.targets.size() - 1, nan_part);
  }

  /// Adds a balanced tree over the parts from `first` to `last`. Its depth is the logarithm of their number.
  Result<void> add_parts(const Position& position, const OnnxSplit& split, std::size_t first,
                         std::size_t last, std::size_t nan_part) {
    if (first == last) {
      waiting_.push_back(
          {split.targets[first], position.root, position.extremes, position.parent, position.left});
      return {};
    }
    const std::size_t middle = first + (last - first) / 2;
    Position below = position;
    FVM_ASSIGN(below.parent, add_node(node_at(split.feature, split.cuts[middle], nan_part <= middle),
                                      position.parent, position.left));
    // The position that is added last is filled first: left before right.
    below.left = false;
    FVM_TRY(add_parts(below, split, middle + 1, last, nan_part));
    below.left = true;
    return add_parts(below, split, first, middle, nan_part);
  }

  static Node node_at(std::uint32_t feature, Cut cut, bool nan_left) {
    Node node;
    node.kind = cut.after ? NodeKind::LessEqual : NodeKind::Less;
    node.threshold = cut.number;
    node.feature = feature;
    node.missing_left = nan_left;
    return node;
  }

  std::size_t slot_of(std::uint32_t target) const { return leaf_width_ == 1 ? 0 : target; }

  std::vector<double> sums_of(const OnnxNode& leaf) const {
    std::vector<double> sums(leaf_width_);
    for (std::uint32_t i = leaf.yes; i < leaf.no; ++i)
      sums[slot_of(forest_.targets[i])] += forest_.weights[i];
    return sums;
  }

  /// Returns the least or greatest value of each output among the trees before and this leaf; NaN where no tree has had
  /// a value yet.
  std::vector<double> extremes_of(const Position& position, const OnnxNode& leaf) const {
    std::vector<double> extremes(leaf_width_, std::numeric_limits<double>::quiet_NaN());
    if (position.extremes >= 0) {
      const auto first = extremes_.begin() + static_cast<std::ptrdiff_t>(position.extremes) * leaf_width_;
      extremes.assign(first, first + leaf_width_);
    }
    for (std::uint32_t i = leaf.yes; i < leaf.no; ++i) {
      double& extreme = extremes[slot_of(forest_.targets[i])];
      extreme = forest_.aggregate == OnnxAggregate::Min ? std::fmin(extreme, forest_.weights[i])
                                                        : std::fmax(extreme, forest_.weights[i]);
    }
    return extremes;
  }

  Result<void> add_leaf(const Position& position, std::vector<double> values) {
    for (double& value : values)
      if (std::isnan(value)) value = 0;  // no tree has a number for the output
    Node node;
    node.kind = NodeKind::Leaf;
    if (leaf_width_ == 1) {
      node.value = values.front();
    } else {
      FVM_TRY(spend(values.size(), numbers_left_, "leaf numbers"));
      node.payload = static_cast<std::uint32_t>(tree_.leaf_vectors.size() / leaf_width_);
      tree_.leaf_vectors.insert(tree_.leaf_vectors.end(), values.begin(), values.end());
    }
    FVM_TRY(add_node(node, position.parent, position.left));
    return {};
  }

  const OnnxForest& forest_;
  const OnnxColumns& columns_;
  std::uint32_t leaf_width_;
  std::uint64_t nodes_left_ = 0;
  std::uint64_t numbers_left_ = 0;
  std::uint64_t reads_left_ = 0;
  std::span<const std::uint32_t> roots_;
  Tree tree_;
  std::vector<std::int32_t> parents_;
  std::vector<Position> waiting_;
  std::vector<double> extremes_;
};

}  // namespace

Result<OnnxShape> check_onnx_trees(const OnnxForest& forest, std::uint32_t columns) {
  return TreeWalk(forest, columns).walk();
}

Result<std::vector<Tree>> onnx_trees(const OnnxForest& forest, const OnnxShape& shape,
                                     const OnnxColumns& columns, const LoadLimits& limits) {
  const bool extremes = forest.aggregate == OnnxAggregate::Min || forest.aggregate == OnnxAggregate::Max;
  const bool many =
      (extremes && forest.num_outputs > 1) ||
      std::find(shape.outputs.begin(), shape.outputs.end(), kManyOutputs) != shape.outputs.end();
  TreeBuilder builder(forest, columns, many ? forest.num_outputs : 1, limits);
  const std::span<const std::uint32_t> roots = forest.roots;
  std::vector<Tree> trees;
  for (std::size_t t = 0; t < roots.size(); ++t) {
    FVM_ASSIGN(Tree tree, builder.build(extremes ? roots : roots.subspan(t, 1), many ? 0 : shape.outputs[t]));
    trees.push_back(std::move(tree));
    if (extremes) break;
  }
  return trees;
}

}  // namespace forestvm::frontend
