// See ydf_tree.hpp.
#include "frontend/ydf_tree.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

Error node_error(const YdfNode& node, std::string_view message) {
  return refused(byte_location(node.offset), message);
}

const char* name_of(YdfType type) {
  switch (type) {
    case YdfType::Numerical:
      return "numerical";
    case YdfType::Categorical:
      return "categorical";
    case YdfType::Boolean:
      return "boolean";
    case YdfType::Discretized:
      return "discretized numerical";
  }
  return "";
}

/// Returns the type of column that a condition tests.
YdfType tested_type(YdfCondition condition) {
  switch (condition) {
    case YdfCondition::True:
      return YdfType::Boolean;
    case YdfCondition::In:
      return YdfType::Categorical;
    case YdfCondition::Discretized:
      return YdfType::Discretized;
    case YdfCondition::None:
    case YdfCondition::IsMissing:
    case YdfCondition::Higher:
    case YdfCondition::Oblique:
      break;
  }
  return YdfType::Numerical;
}

Error wrong_type(const YdfNode& node, const YdfColumn& column) {
  return node_error(node, formatted("a condition that does not fit the {} column {}", name_of(column.type),
                                    in_quotes(column.name)));
}

}  // namespace

void YdfTreeMaker::begin() {
  tree_ = {};
  waiting_.assign(1, Child{});
}

Result<void> YdfTreeMaker::add(const YdfNode& node) {
  FVM_CHECK(!waiting_.empty());
  const Child child = waiting_.back();
  waiting_.pop_back();
  const std::size_t index = tree_.nodes.size();
  if (index == std::numeric_limits<std::int32_t>::max()) return node_error(node, "a tree of too many nodes");
  if (index != 0) {
    Node& parent = tree_.nodes[child.parent];
    (child.positive ? parent.right : parent.left) = static_cast<std::int32_t>(index);
  }
  Node& added = tree_.nodes.emplace_back();
  added.cover = node.cover;
  tree_.gains.push_back(node.gain);
  if (node.condition == YdfCondition::None) return leaf_rule_(node, child.depth, added, tree_);
  FVM_TRY(set_split(node, child.below_oblique, added));
  const bool below_oblique = child.below_oblique || node.condition == YdfCondition::Oblique;
  waiting_.push_back({index, true, below_oblique, child.depth + 1});
  waiting_.push_back({index, false, below_oblique, child.depth + 1});
  return {};
}

Tree YdfTreeMaker::take() {
  FVM_CHECK(tree_is_whole());
  std::vector<Node>& nodes = tree_.nodes;
  const auto is_split = [](const Node& node) { return node.kind != NodeKind::Leaf; };
  std::int32_t splits = 0,
               leaves = static_cast<std::int32_t>(std::count_if(nodes.begin(), nodes.end(), is_split));
  tree_.first_leaf = static_cast<std::uint32_t>(leaves);
  std::vector<std::int32_t> numbers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) numbers[i] = is_split(nodes[i]) ? splits++ : leaves++;
  for (Node& node : nodes)
    if (is_split(node))
      for (std::int32_t* child : {&node.left, &node.right})
        *child = numbers[static_cast<std::size_t>(*child)];
  std::vector<float> gains(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) gains[static_cast<std::size_t>(numbers[i])] = tree_.gains[i];
  tree_.gains = std::move(gains);
  std::stable_partition(nodes.begin(), nodes.end(), is_split);
  Tree whole = std::move(tree_);
  ++number_;
  begin();
  return whole;
}

/// Returns the column of an attribute, and sets the feature that the split tests.
Result<const YdfColumn*> YdfTreeMaker::column_of(const YdfNode& node, std::int64_t attribute,
                                                 Node& split) const {
  const std::vector<std::int32_t>& features = features_.of_attribute;
  if (attribute < 0 || static_cast<std::uint64_t>(attribute) >= features.size() ||
      features[static_cast<std::size_t>(attribute)] < 0)
    return node_error(node, formatted("column {} is not an input of the model", attribute));
  split.feature = static_cast<std::uint32_t>(features[static_cast<std::size_t>(attribute)]);
  return &features_.columns[split.feature];
}

/// Sets the split. The negative child is the left one: x < t goes left.
Result<void> YdfTreeMaker::set_split(const YdfNode& node, bool below_oblique, Node& split) {
  split.missing_left = !node.na_value;
  if (node.condition == YdfCondition::Oblique) return set_oblique(node, split);
  FVM_ASSIGN(const YdfColumn* const column, column_of(node, node.attribute, split));
  FVM_TRY(set_condition(node, *column, split));
  if (!below_oblique) note_missing(node, *column, static_cast<float>(split.threshold));
  return {};
}

Result<void> YdfTreeMaker::set_condition(const YdfNode& node, const YdfColumn& column, Node& split) {
  split.kind = NodeKind::Less;
  if (node.condition != YdfCondition::IsMissing && column.type != tested_type(node.condition))
    return wrong_type(node, column);
  switch (node.condition) {
    case YdfCondition::Higher:
      split.threshold = static_cast<double>(node.threshold);
      break;
    case YdfCondition::True:
      split.threshold = 0.5;  // rows hold 0 for false and 1 for true
      break;
    case YdfCondition::Discretized:
      if (node.bin < 1 || static_cast<std::uint64_t>(node.bin) > column.boundaries.size())
        return node_error(node, formatted("bin {} of column {} has no lower bound: there are {}", node.bin,
                                          in_quotes(column.name), column.boundaries.size()));
      split.threshold = static_cast<double>(column.boundaries[static_cast<std::size_t>(node.bin) - 1]);
      break;
    case YdfCondition::In:
      set_category(node.categories, split);
      break;
    case YdfCondition::IsMissing:
      // All that is not missing goes left.
      splits_.missing_tests = true;
      split.missing_left = false;
      if (column.type == YdfType::Categorical) {
        set_category({}, split);
      } else {
        split.kind = NodeKind::LessEqual;
        split.threshold = std::numeric_limits<double>::infinity();
      }
      break;
    case YdfCondition::None:
    case YdfCondition::Oblique:
      break;
  }
  return {};
}

void YdfTreeMaker::set_category(std::vector<std::uint32_t> codes, Node& split) {
  split.kind = NodeKind::Category;
  split.payload = static_cast<std::uint32_t>(tree_.category_sets.size());
  CategorySet set;
  set.codes = std::move(codes);
  tree_.category_sets.push_back(std::move(set));
}

Result<void> YdfTreeMaker::set_oblique(const YdfNode& node, Node& split) {
  splits_.oblique = true;
  const std::size_t terms = node.attributes.size();
  if (terms == 0 || node.weights.size() != terms ||
      (!node.replacements.empty() && node.replacements.size() != terms))
    return node_error(
        node,
        formatted("an oblique condition with {} attributes, {} weights and {} replacements of missing values",
                  terms, node.weights.size(), node.replacements.size()));
  ComputedColumn sum;
  sum.kind = ColumnKind::SumReplaced;
  for (std::size_t i = 0; i < terms; ++i) {
    FVM_ASSIGN(const YdfColumn* const column, column_of(node, node.attributes[i], split));
    if (column->type != YdfType::Numerical) return wrong_type(node, *column);
    // YDF's fast engines put the mean in place of a missing value, whatever the node says.
    const float replacement =
        node.replacements.empty() ? static_cast<float>(column->mean) : node.replacements[i];
    sum.terms.push_back({split.feature, node.weights[i], replacement});
  }
  split.missing_left = true;  // the sum is NaN only if infinities cancel, and NaN is not >= the threshold
  split.kind = NodeKind::Less;
  split.threshold = static_cast<double>(node.threshold);
  split.feature = static_cast<std::uint32_t>(features_.columns.size() + computed_columns_.size());
  computed_columns_.push_back(std::move(sum));
  return {};
}

/// Notes whether a missing value goes where YDF's global imputation, by the column's mean or its most frequent value,
/// would send it.
void YdfTreeMaker::note_missing(const YdfNode& node, const YdfColumn& column, float threshold) {
  bool imputed = node.na_value;
  switch (node.condition) {
    case YdfCondition::Higher:
      imputed = static_cast<float>(column.mean) >= threshold;
      break;
    case YdfCondition::Discretized:
      imputed = column.mean >= static_cast<double>(threshold);
      break;
    case YdfCondition::True:
      imputed = column.mostly_true;
      break;
    case YdfCondition::In:
      imputed = std::any_of(node.categories.begin(), node.categories.end(),
                            [&](std::uint32_t code) { return code == column.most_frequent; });
      break;
    case YdfCondition::None:
    case YdfCondition::IsMissing:
    case YdfCondition::Oblique:
      break;
  }
  if (imputed == node.na_value) return;
  const bool number = node.condition == YdfCondition::Higher || node.condition == YdfCondition::Discretized;
  std::string& first = number ? splits_.other_missing_number : splits_.other_missing;
  if (first.empty()) first = formatted("tree {}, column {}", number_, in_quotes(column.name));
}

}  // namespace forestvm::frontend
