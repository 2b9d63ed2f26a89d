// See onnx_forest.hpp. Lists are read directly into the nodes. All lists about nodes must be as long as the first one.
#include "frontend/onnx_forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

struct ModeName {
  std::string_view name;
  OnnxMode mode;
};

constexpr ModeName kModeNames[] = {
    {"BRANCH_LEQ", OnnxMode::LessEqual},
    {"BRANCH_LT", OnnxMode::Less},
    {"BRANCH_GTE", OnnxMode::GreaterEqual},
    {"BRANCH_GT", OnnxMode::Greater},
    {"BRANCH_EQ", OnnxMode::Equal},
    {"BRANCH_NEQ", OnnxMode::NotEqual},
    {"LEAF", OnnxMode::Leaf},
};

constexpr std::string_view kAggregateNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};

/// The number of a tree or node in the file, and the index that it stands for.
struct Numbered {
  std::uint32_t number = 0;
  std::uint32_t index = 0;

  bool operator<(const Numbered& other) const { return number < other.number; }
};

/// Sorts [begin, end) unless it is sorted. Returns a number that is there twice.
std::optional<std::uint32_t> sort_numbers(std::vector<Numbered>& list, std::size_t begin, std::size_t end) {
  const auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = list.begin() + static_cast<std::ptrdiff_t>(end);
  if (!std::is_sorted(first, last)) std::sort(first, last);
  const auto twice = std::adjacent_find(
      first, last, [](const Numbered& a, const Numbered& b) { return a.number == b.number; });
  return twice == last ? std::nullopt : std::optional(twice->number);
}

/// Returns the index for which a number in [begin, end) stands; nothing if the number is not there.
std::optional<std::uint32_t> find_number(const std::vector<Numbered>& list, std::size_t begin,
                                         std::size_t end, std::uint32_t number) {
  if (number < end - begin && list[begin + number].number == number) return list[begin + number].index;
  const auto last = list.begin() + static_cast<std::ptrdiff_t>(end);
  const auto found =
      std::lower_bound(list.begin() + static_cast<std::ptrdiff_t>(begin), last, Numbered{number, 0});
  return found == last || found->number != number ? std::nullopt : std::optional(found->index);
}

/// The attributes that classifiers and regressors of versions 1 to 4 share.
constexpr std::string_view kFlatAttributes[] = {"base_values",
                                                "base_values_as_tensor",
                                                "nodes_falsenodeids",
                                                "nodes_featureids",
                                                "nodes_hitrates",
                                                "nodes_hitrates_as_tensor",
                                                "nodes_missing_value_tracks_true",
                                                "nodes_modes",
                                                "nodes_nodeids",
                                                "nodes_treeids",
                                                "nodes_truenodeids",
                                                "nodes_values",
                                                "nodes_values_as_tensor",
                                                "post_transform"};

/// Reads lists of a known length, with errors that name them, for both forms of ensembles.
class ListReader {
 public:
  ListReader(const OnnxOperation& operation, const LoadLimits& limits)
      : attributes_(operation), limits_(limits) {
    forest_.where = location_of(operation);
  }

 protected:
  Error error(std::string_view name, std::string_view message) const {
    return attributes_.error(name, message);
  }

  Result<void> check_count(std::string_view name, std::size_t count, std::size_t expected) const {
    if (count == expected) return {};
    return error(name, formatted("{} values, expected {}", count, expected));
  }

  /// Reads `count` whole numbers from 0 to `max`.
  template <class Receive>
  Result<void> integers(std::string_view name, std::size_t count, std::int64_t max, Receive receive) const {
    FVM_ASSIGN(const std::size_t found,
               attributes_.integers(name, [&](std::size_t i, std::int64_t x) -> Result<void> {
                 if (i >= count) return {};
                 if (x < 0 || x > max)
                   return error(name, formatted("value {} is {}, which is not within 0 and {}", i, x, max));
                 return receive(i, static_cast<std::uint32_t>(x));
               }));
    return check_count(name, found, count);
  }

  Result<std::size_t> count_integers(std::string_view name, std::uint64_t limit) const {
    FVM_ASSIGN(const std::size_t count,
               attributes_.integers(name, [](std::size_t, std::int64_t) { return Result<void>(); }));
    const std::uint64_t most = std::min(limit, static_cast<std::uint64_t>(kMaxOnnxIndex));
    if (count > most) return error(name, formatted("more values than the limit of {}", most));
    return count;
  }

  /// Reads `count` real numbers from the list `name` or the tensor `name`_as_tensor; returns whether they are float64
  /// numbers.
  template <class Receive>
  Result<bool> reals(const std::string& name, std::size_t count, Receive receive) const {
    const std::string tensor_name = name + "_as_tensor";
    if (attributes_.has(tensor_name)) {
      if (attributes_.has(name)) return error(name, "given twice: as a list and as a tensor");
      return tensor_reals(tensor_name, count, receive);
    }
    FVM_ASSIGN(const std::size_t found, attributes_.reals(name, [&](std::size_t i, double x) -> Result<void> {
      return i < count ? receive(i, x) : Result<void>();
    }));
    FVM_TRY(check_count(name, found, count));
    return false;
  }

  template <class Receive>
  Result<bool> tensor_reals(const std::string& name, std::size_t count, Receive receive) const {
    FVM_ASSIGN(const OnnxTensor tensor, attributes_.tensor(name));
    FVM_TRY(check_count(name, tensor.size, count));
    std::size_t i = 0;
    FVM_TRY(visit_reals(tensor, [&](double x) { return receive(i++, x); }));
    return tensor.type == OnnxType::Double;
  }

  Result<void> add_weight(std::string_view name, std::size_t i, double x) {
    if (!std::isfinite(x)) return error(name, formatted("weight {} is not finite", i));
    forest_.weights.push_back(x);
    return {};
  }

  Result<void> read_missing() {
    const std::string_view name = "nodes_missing_value_tracks_true";
    if (!attributes_.has(name)) return {};
    return integers(name, splits_, 1, [&](std::size_t i, std::uint32_t x) -> Result<void> {
      forest_.nodes[i].nan_yes = x != 0;
      return {};
    });
  }

  OnnxAttributes attributes_;
  const LoadLimits& limits_;
  OnnxForest forest_;
  std::size_t splits_ = 0;  ///< Length of the lists about nodes.
};

/// Reads versions 1 to 4: numbers of trees and nodes name the nodes, leaves stand among the nodes, and weights are in a
/// list of their own.
class NumberedForest : ListReader {
 public:
  using ListReader::ListReader;

  Result<OnnxForest> read(bool classifier) {
    forest_.classifier = classifier;
    prefix_ = classifier ? "class_" : "target_";
    FVM_TRY(check_names());
    FVM_TRY(read_outputs());
    FVM_TRY(read_trees());
    FVM_TRY(read_numbers());
    FVM_TRY(read_nodes());
    FVM_TRY(read_children());
    FVM_TRY(read_weights());
    return std::move(forest_);
  }

 private:
  Result<void> check_names() const {
    if (forest_.classifier)
      return attributes_.check_known({"class_ids", "class_nodeids", "class_treeids", "class_weights",
                                      "class_weights_as_tensor", "classlabels_int64s", "classlabels_strings"},
                                     kFlatAttributes);
    return attributes_.check_known({"aggregate_function", "n_targets", "target_ids", "target_nodeids",
                                    "target_treeids", "target_weights", "target_weights_as_tensor"},
                                   kFlatAttributes);
  }

  template <class Enum, std::size_t size>
  Result<void> read_name(std::string_view attribute, std::string_view otherwise,
                         const std::string_view (&names)[size], Enum& value) const {
    FVM_ASSIGN(const std::string_view text, attributes_.text(attribute, otherwise));
    const auto* found = std::find(std::begin(names), std::end(names), text);
    if (found == std::end(names)) return error(attribute, in_quotes(text) + " is unknown");
    value = static_cast<Enum>(found - std::begin(names));
    return {};
  }

  Result<void> read_outputs() {
    FVM_TRY(read_name("post_transform", "NONE", kOnnxPostNames, forest_.post));
    if (forest_.classifier) {
      FVM_TRY(read_labels());
    } else {
      FVM_TRY(read_name("aggregate_function", "SUM", kAggregateNames, forest_.aggregate));
      FVM_ASSIGN(const std::int64_t targets, attributes_.integer("n_targets", 1));
      if (targets < 1 || targets > std::int64_t{limits_.max_outputs})
        return error("n_targets", formatted("{} is not within 1 and {}", targets, limits_.max_outputs));
      forest_.num_outputs = static_cast<std::uint32_t>(targets);
    }
    return read_base();
  }

  Result<void> read_labels() {
    std::vector<std::string>& labels = forest_.class_labels;
    const auto add = [&](std::string label) -> Result<void> {
      if (labels.size() == limits_.max_outputs)
        return error("classlabels", formatted("more classes than the limit of {}", limits_.max_outputs));
      labels.push_back(std::move(label));
      return {};
    };
    FVM_ASSIGN(const std::size_t texts,
               attributes_.texts("classlabels_strings",
                                 [&](std::size_t, std::string_view text) { return add(std::string(text)); }));
    FVM_ASSIGN(const std::size_t numbers,
               attributes_.integers("classlabels_int64s",
                                    [&](std::size_t, std::int64_t x) { return add(std::to_string(x)); }));
    if (texts != 0 && numbers != 0) return error("classlabels", "given twice: as texts and as numbers");
    if (labels.size() < 2) return error("classlabels", "fewer than two classes");
    forest_.num_outputs = static_cast<std::uint32_t>(labels.size());
    return {};
  }

  Result<void> read_base() {
    const auto add = [&](std::size_t, double x) -> Result<void> {
      if (!std::isfinite(x)) return error("base_values", "a number that is not finite");
      if (forest_.base.size() == forest_.num_outputs)
        return error("base_values", "more numbers than outputs");
      forest_.base.push_back(x);
      return {};
    };
    if (!attributes_.has("base_values_as_tensor")) {
      FVM_TRY(attributes_.reals("base_values", add));
      return {};
    }
    FVM_ASSIGN(const OnnxTensor tensor, attributes_.tensor("base_values_as_tensor"));
    return visit_reals(tensor, [&](double x) { return add(0, x); });
  }

  /// Reads nodes_treeids: the nodes of a tree follow one another.
  Result<void> read_trees() {
    FVM_ASSIGN(splits_, count_integers("nodes_treeids", limits_.max_nodes));
    if (splits_ == 0) return error("nodes_treeids", "no nodes");
    FVM_TRY(integers(
        "nodes_treeids", splits_, kMaxOnnxIndex, [&](std::size_t i, std::uint32_t number) -> Result<void> {
          if (!trees_.empty() && trees_.back().number == number) return {};
          if (trees_.size() == limits_.max_trees)
            return error("nodes_treeids", formatted("more trees than the limit of {}", limits_.max_trees));
          trees_.push_back({number, static_cast<std::uint32_t>(trees_.size())});
          forest_.roots.push_back(static_cast<std::uint32_t>(i));
          return {};
        }));
    begins_ = forest_.roots;
    begins_.push_back(static_cast<std::uint32_t>(splits_));
    if (const auto twice = sort_numbers(trees_, 0, trees_.size()))
      return error("nodes_treeids", formatted("the nodes of tree {} do not follow one another", *twice));
    return {};
  }

  /// Reads nodes_nodeids, whose numbers begin anew in each tree.
  Result<void> read_numbers() {
    numbers_.resize(splits_);
    FVM_TRY(integers("nodes_nodeids", splits_, kMaxOnnxIndex,
                     [&](std::size_t i, std::uint32_t x) -> Result<void> {
                       numbers_[i] = {x, static_cast<std::uint32_t>(i)};
                       return {};
                     }));
    for (std::size_t t = 0; t + 1 < begins_.size(); ++t)
      if (const auto twice = sort_numbers(numbers_, begins_[t], begins_[t + 1]))
        return error("nodes_nodeids", formatted("node {} is given twice in one tree", *twice));
    return {};
  }

  Result<void> read_nodes() {
    forest_.nodes.resize(splits_);
    FVM_ASSIGN(const std::size_t modes,
               attributes_.texts("nodes_modes", [&](std::size_t i, std::string_view text) -> Result<void> {
                 if (i >= splits_) return {};
                 const auto* row = std::find_if(std::begin(kModeNames), std::end(kModeNames),
                                                [&](const ModeName& known) { return known.name == text; });
                 if (row == std::end(kModeNames))
                   return error("nodes_modes", formatted("value {}: {} is unknown", i, in_quotes(text)));
                 forest_.nodes[i].mode = row->mode;
                 return {};
               }));
    FVM_TRY(check_count("nodes_modes", modes, splits_));
    FVM_TRY(integers("nodes_featureids", splits_, kMaxOnnxIndex,
                     [&](std::size_t i, std::uint32_t x) -> Result<void> {
                       forest_.nodes[i].column = x;
                       return {};
                     }));
    FVM_ASSIGN(forest_.doubles, reals("nodes_values", splits_, [&](std::size_t i, double x) -> Result<void> {
                 forest_.nodes[i].value = x;
                 return {};
               }));
    return read_missing();
  }

  Result<void> read_children() {
    FVM_TRY(read_child("nodes_truenodeids", &OnnxNode::yes));
    return read_child("nodes_falsenodeids", &OnnxNode::no);
  }

  Result<void> read_child(std::string_view name, std::uint32_t OnnxNode::*side) {
    std::size_t tree = 0;
    // The list has entries for leaves too, which mean nothing.
    FVM_ASSIGN(const std::size_t count,
               attributes_.integers(name, [&](std::size_t i, std::int64_t x) -> Result<void> {
                 if (i >= splits_) return {};
                 if (i >= begins_[tree + 1]) ++tree;
                 OnnxNode& node = forest_.nodes[i];
                 if (node.mode == OnnxMode::Leaf) return {};
                 const auto child = x < 0 || x > kMaxOnnxIndex
                                        ? std::nullopt
                                        : find_number(numbers_, begins_[tree], begins_[tree + 1],
                                                      static_cast<std::uint32_t>(x));
                 if (!child) return error(name, formatted("value {}: its tree has no node {}", i, x));
                 node.*side = *child;
                 return {};
               }));
    return check_count(name, count, splits_);
  }

  Result<void> read_weights() {
    FVM_ASSIGN(const std::size_t count, count_integers(prefix_ + "treeids", kMaxOnnxIndex));
    // Each entry is at first the index of a tree, then that of a node.
    std::vector<std::uint32_t> leaves(count);
    FVM_TRY(integers(prefix_ + "treeids", count, kMaxOnnxIndex,
                     [&](std::size_t i, std::uint32_t x) -> Result<void> {
                       const auto tree = find_number(trees_, 0, trees_.size(), x);
                       if (!tree) return error(prefix_ + "treeids", formatted("there is no tree {}", x));
                       leaves[i] = *tree;
                       return {};
                     }));
    FVM_TRY(integers(
        prefix_ + "nodeids", count, kMaxOnnxIndex, [&](std::size_t i, std::uint32_t x) -> Result<void> {
          const auto node = find_number(numbers_, begins_[leaves[i]], begins_[leaves[i] + 1], x);
          if (!node) return error(prefix_ + "nodeids", formatted("value {}: its tree has no node {}", i, x));
          leaves[i] = *node;
          return {};
        }));
    forest_.targets.resize(count);
    FVM_TRY(integers(prefix_ + "ids", count, std::int64_t{forest_.num_outputs} - 1,
                     [&](std::size_t i, std::uint32_t x) -> Result<void> {
                       forest_.targets[i] = x;
                       return {};
                     }));
    forest_.weights.reserve(count);
    FVM_ASSIGN(const bool doubles, reals(prefix_ + "weights", count, [&](std::size_t i, double x) {
                 return add_weight(prefix_ + "weights", i, x);
               }));
    forest_.doubles = forest_.doubles || doubles;
    give_weights(leaves);
    return {};
  }

  /// Brings the weights into the order of the leaves, and gives each leaf its range of them. Weights of nodes that are
  /// not leaves are ignored.
  void give_weights(const std::vector<std::uint32_t>& leaves) {
    std::vector<std::uint32_t> order(leaves.size());
    std::iota(order.begin(), order.end(), 0);
    if (!std::is_sorted(leaves.begin(), leaves.end())) {
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return leaves[a] < leaves[b]; });
      std::vector<std::uint32_t> targets;
      std::vector<double> weights;
      for (const std::uint32_t i : order) {
        targets.push_back(forest_.targets[i]);
        weights.push_back(forest_.weights[i]);
      }
      forest_.targets = std::move(targets);
      forest_.weights = std::move(weights);
    }
    for (OnnxNode& node : forest_.nodes)
      if (node.mode == OnnxMode::Leaf) node.yes = node.no = 0;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      OnnxNode& node = forest_.nodes[leaves[order[i]]];
      if (node.mode != OnnxMode::Leaf) continue;
      if (node.no == 0) node.yes = i;
      node.no = i + 1;
    }
  }

  std::string prefix_;
  std::vector<Numbered> trees_;        ///< Number of each tree, sorted.
  std::vector<std::uint32_t> begins_;  ///< First node of each tree, then the number of nodes.
  std::vector<Numbered> numbers_;      ///< Number of each node, sorted within its tree.
};

/// Reads version 5: nodes and leaves are in lists of their own, and their indices in these lists name them.
class ListedForest : ListReader {
 public:
  using ListReader::ListReader;

  Result<OnnxForest> read() {
    FVM_TRY(attributes_.check_known(
        {"aggregate_function", "leaf_targetids", "leaf_weights", "membership_values", "n_targets",
         "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates",
         "nodes_missing_value_tracks_true", "nodes_modes", "nodes_splits", "nodes_trueleafs",
         "nodes_truenodeids", "post_transform", "tree_roots"}));
    FVM_ASSIGN(const std::int64_t outputs, within("n_targets", 1, 1, limits_.max_outputs));
    forest_.num_outputs = static_cast<std::uint32_t>(outputs);
    FVM_ASSIGN(const std::int64_t aggregate, within("aggregate_function", 1, 0, 3));
    forest_.aggregate = static_cast<OnnxAggregate>(aggregate);
    FVM_ASSIGN(const std::int64_t post, within("post_transform", 0, 0, 4));
    forest_.post = static_cast<OnnxPost>(post);
    FVM_TRY(read_nodes());
    FVM_TRY(read_leaves());
    FVM_TRY(read_children("nodes_truenodeids", "nodes_trueleafs", &OnnxNode::yes));
    FVM_TRY(read_children("nodes_falsenodeids", "nodes_falseleafs", &OnnxNode::no));
    FVM_TRY(read_members());
    FVM_ASSIGN(const std::size_t trees, count_integers("tree_roots", limits_.max_trees));
    FVM_TRY(integers("tree_roots", trees, static_cast<std::int64_t>(splits_) - 1,
                     [&](std::size_t, std::uint32_t x) -> Result<void> {
                       forest_.roots.push_back(x);
                       return {};
                     }));
    return std::move(forest_);
  }

 private:
  Result<std::int64_t> within(std::string_view name, std::int64_t otherwise, std::int64_t least,
                              std::int64_t most) const {
    FVM_ASSIGN(const std::int64_t value, attributes_.integer(name, otherwise));
    if (value < least || value > most)
      return error(name, formatted("{} is not within {} and {}", value, least, most));
    return value;
  }

  Result<void> read_nodes() {
    FVM_ASSIGN(splits_, count_integers("nodes_featureids", limits_.max_nodes));
    FVM_ASSIGN(leaves_, count_integers("leaf_targetids", limits_.max_nodes - splits_));
    forest_.nodes.resize(splits_ + leaves_);
    FVM_TRY(integers("nodes_featureids", splits_, kMaxOnnxIndex,
                     [&](std::size_t i, std::uint32_t x) -> Result<void> {
                       forest_.nodes[i].column = x;
                       return {};
                     }));
    FVM_ASSIGN(const OnnxTensor modes, attributes_.tensor("nodes_modes"));
    FVM_TRY(check_count("nodes_modes", modes.size, splits_));
    std::size_t at = 0;
    FVM_TRY(visit_integers(modes, [&](std::int64_t mode) -> Result<void> {
      if (mode < 0 || mode > static_cast<std::int64_t>(OnnxMode::Member))
        return error("nodes_modes", formatted("value {}: mode {} is unknown", at, mode));
      forest_.nodes[at++].mode = static_cast<OnnxMode>(mode);
      return {};
    }));
    FVM_ASSIGN(forest_.doubles,
               tensor_reals("nodes_splits", splits_, [&](std::size_t i, double x) -> Result<void> {
                 forest_.nodes[i].value = x;
                 return {};
               }));
    return read_missing();
  }

  Result<void> read_leaves() {
    forest_.targets.resize(leaves_);
    FVM_TRY(integers("leaf_targetids", leaves_, std::int64_t{forest_.num_outputs} - 1,
                     [&](std::size_t i, std::uint32_t x) -> Result<void> {
                       forest_.targets[i] = x;
                       return {};
                     }));
    forest_.weights.reserve(leaves_);
    FVM_ASSIGN(const bool doubles, tensor_reals("leaf_weights", leaves_, [&](std::size_t i, double x) {
                 return add_weight("leaf_weights", i, x);
               }));
    forest_.doubles = forest_.doubles || doubles;
    for (std::uint32_t i = 0; i < leaves_; ++i) {
      forest_.nodes[splits_ + i].yes = i;
      forest_.nodes[splits_ + i].no = i + 1;
    }
    return {};
  }

  Result<void> read_children(std::string_view name, std::string_view kinds, std::uint32_t OnnxNode::*side) {
    std::vector<bool> leaf(splits_);
    FVM_TRY(integers(kinds, splits_, 1, [&](std::size_t i, std::uint32_t x) -> Result<void> {
      leaf[i] = x != 0;
      return {};
    }));
    return integers(name, splits_, kMaxOnnxIndex, [&](std::size_t i, std::uint32_t x) -> Result<void> {
      if (x >= (leaf[i] ? leaves_ : splits_))
        return error(name, formatted("value {}: there is no {}{}", i, leaf[i] ? "leaf " : "node ", x));
      forest_.nodes[i].*side = x + static_cast<std::uint32_t>(leaf[i] ? splits_ : 0);
      return {};
    });
  }

  /// Reads the sets of the Member nodes, each of which ends with NaN.
  Result<void> read_members() {
    for (std::uint32_t i = 0; i < splits_; ++i)
      if (forest_.nodes[i].mode == OnnxMode::Member) forest_.member_nodes.push_back(i);
    forest_.member_begins.push_back(0);
    if (attributes_.has("membership_values")) {
      FVM_ASSIGN(const OnnxTensor tensor, attributes_.tensor("membership_values"));
      FVM_TRY(visit_reals(tensor, [&](double x) -> Result<void> {
        if (!std::isnan(x)) {
          forest_.members.push_back(x);
        } else {
          forest_.member_begins.push_back(static_cast<std::uint32_t>(forest_.members.size()));
        }
        return {};
      }));
    }
    // The NaN after the last set may be missing.
    if (forest_.members.size() > forest_.member_begins.back())
      forest_.member_begins.push_back(static_cast<std::uint32_t>(forest_.members.size()));
    return check_count("membership_values", forest_.member_begins.size() - 1, forest_.member_nodes.size());
  }

  std::size_t leaves_ = 0;
};

}  // namespace

bool is_tree_ensemble(const OnnxOperation& operation) {
  return operation.domain == "ai.onnx.ml" &&
         (operation.type == "TreeEnsembleClassifier" || operation.type == "TreeEnsembleRegressor" ||
          operation.type == "TreeEnsemble");
}

Result<OnnxForest> read_onnx_forest(const OnnxOperation& operation, const LoadLimits& limits) {
  if (operation.type == "TreeEnsemble") return ListedForest(operation, limits).read();
  return NumberedForest(operation, limits).read(operation.type == "TreeEnsembleClassifier");
}

}  // namespace forestvm::frontend
