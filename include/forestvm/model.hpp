// The Model: what a trainer's file said, checked, with nothing decided yet. Every frontend makes one; the
// scheduler reads it. It can say more than any one trainer does (float64 thresholds, <=, categories, vector
// and linear leaves); what a later stage cannot run, that stage refuses by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm {

/// The kinds of nodes. `x` is the row's value of `feature`.
enum class NodeKind : std::uint8_t {
  Leaf,       ///< ends the walk
  Less,       ///< left if x < threshold
  LessEqual,  ///< left if x <= threshold
  Category,   ///< left or right by membership of trunc(x) in a set
  Unused,     ///< a slot that no walk reaches (a trainer's pruned node); keeps the trainer's node numbers
};

/// The values that a split takes as missing. Node::missing_left says where they go.
enum class Missing : std::uint8_t {
  Nan,   ///< NaN
  None,  ///< nothing: NaN counts as 0
  Zero,  ///< NaN, and every x with |x| <= kTiny
};

/// One node. Children are indices into the same tree's `nodes`; the root is node 0. For the trainer's own
/// number of a leaf see leaf_number.
struct Node {
  double threshold = 0;  ///< Less, LessEqual: the threshold, exact in the model's score_type; with LessEqual
                         ///< also +-inf (LightGBM separates NaN from all numbers by x <= inf)
  double value = 0;      ///< Leaf of a tree with leaf_width 1: its output, before Tree::weight
  std::int32_t left = -1;  ///< -1 in leaves and unused slots
  std::int32_t right = -1;
  std::uint32_t feature = 0;  ///< below Model::num_features in split nodes
  std::uint32_t payload = 0;  ///< Category: index in category_sets; vector leaf: row of leaf_vectors;
                              ///< linear leaf: index in linear_leaves
  float cover = 0;            ///< training weight that reached the node (XGBoost sum_hessian, LightGBM's
                              ///< count of rows); 0 unknown
  NodeKind kind = NodeKind::Leaf;
  bool missing_left = false;  ///< where a missing value goes
  Missing missing = Missing::Nan;
};

/// The category codes of one Category node and the side on which members go. A value is in the set if it is
/// not missing and its integer part is a code of the set; values below 0 and infinities have no code.
struct CategorySet {
  std::vector<std::uint32_t> codes;  ///< ascending, below kMostCategories
  bool members_left = false;
  bool fractions = false;  ///< numbers between -1 and 0 have code 0 (LightGBM's rule)
};

/// A leaf whose output is constant + sum(coefficient * x[feature]).
struct LinearLeaf {
  double constant = 0;
  std::vector<std::uint32_t> features;
  std::vector<double> coefficients;
};

struct Tree {
  std::vector<Node> nodes;           ///< never empty
  std::uint32_t output = 0;          ///< the raw output (class or target) that a scalar leaf adds to
  std::uint32_t leaf_width = 1;      ///< values per leaf: 1, or Model::num_outputs for vector leaves
  float weight = 1;                  ///< DART weight: each leaf counts round(weight * value)
  std::uint32_t first_leaf = 0;      ///< the node that the trainer calls leaf 0; see leaf_number
  std::vector<double> leaf_vectors;  ///< leaves x leaf_width, row-major, when leaf_width > 1
  std::vector<CategorySet> category_sets;
  std::vector<LinearLeaf> linear_leaves;
};

/// Returns the trainer's own number of the leaf at nodes[index]. XGBoost numbers all nodes of a tree together
/// (first_leaf is 0). LightGBM numbers leaves separately: they follow the splits in `nodes`, in LightGBM's
/// order.
inline std::int32_t leaf_number(const Tree& tree, std::size_t index) {
  return static_cast<std::int32_t>(index - tree.first_leaf);
}

struct Model {
  std::string format;     ///< the row of formats.def that read it, e.g. "xgboost-json"
  std::string trainer;    ///< e.g. "xgboost"
  std::string version;    ///< the trainer's version as the file gives it, e.g. "3.2.0"; may be empty
  std::string objective;  ///< the trainer's name for it, e.g. "binary:logistic"

  std::uint32_t num_features = 0;
  std::vector<std::string> feature_names;  ///< empty, or num_features names
  std::vector<std::string> class_labels;   ///< empty, or one per class

  std::uint32_t num_outputs = 1;                ///< raw scores per row
  ScalarType score_type = ScalarType::Float32;  ///< type of comparisons and sums
  bool tiny_is_zero = false;                    ///< x with |x| <= kTiny is 0 before any split sees it
  std::vector<double> base;                     ///< num_outputs margins, one per output's sum
  bool base_last = false;  ///< the base is added after the trees; otherwise each sum starts from it
  Transform transform = Transform::Identity;
  double slope = 1;       ///< TransformParameters::slope
  bool averaged = false;  ///< values are computed from raw / rounds; raw scores stay sums. See parameters_of
  ClassRule class_rule = ClassRule::None;

  std::vector<Tree> trees;                  ///< in the trainer's order
  std::vector<std::uint32_t> round_begins;  ///< first tree of each boosting round, then trees.size()
};

/// Returns the transform's parameters for the sum of `trees` trees: whole rounds of one tree per output.
inline TransformParameters parameters_of(const Model& model, std::size_t trees) {
  const std::size_t rounds = trees / model.num_outputs;
  return {model.averaged ? static_cast<double>(rounds) : 1.0, model.slope};
}

}  // namespace forestvm
