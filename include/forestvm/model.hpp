// The Model: what a trainer's file said, checked, with nothing decided yet. Every frontend makes one; the
// scheduler reads it. It can say more than any one trainer does (float64 thresholds, <=, categories, vector
// and linear leaves); a pass or backend that cannot run something refuses it by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/derived_columns.hpp>
#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/transform.hpp>
#include <forestvm/core/uncertainty.hpp>

namespace forestvm {

/// The kinds of nodes. `x` is the row's value of `feature`.
enum class NodeKind : std::uint8_t {
  Leaf,       ///< Ends the walk.
  Less,       ///< Goes left if x < threshold.
  LessEqual,  ///< Goes left if x <= threshold.
  Category,   ///< Goes left or right by membership of trunc(x) in a set.
  /// A slot that no walk reaches (a trainer's pruned node), which keeps the trainer's node numbers.
  Unused,
};

/// The values that a split takes as missing. Node::missing_left says where they go.
enum class Missing : std::uint8_t {
  Nan,   ///< NaN.
  None,  ///< No value: NaN counts as 0.
  Zero,  ///< NaN, and every x with |x| <= kTiny.
};

/// One node. Children are indices into the same tree's `nodes`; the root is node 0. For the trainer's own
/// number of a leaf see leaf_number.
struct Node {
  /// Threshold of Less and LessEqual, exact in the model's row_type. With LessEqual it may be +-inf: LightGBM
  /// separates NaN from all numbers by x <= inf.
  double threshold = 0;
  double value = 0;        ///< Output of a leaf in a tree with leaf_width 1, before Tree::weight.
  std::int32_t left = -1;  ///< Index of the left child; -1 in leaves and unused slots.
  std::int32_t right = -1;
  std::uint32_t feature = 0;  ///< Feature or column that a split tests, below num_columns.
  /// Index in category_sets (Category), row of leaf_vectors (vector leaf) or index in linear_leaves (linear
  /// leaf).
  std::uint32_t payload = 0;
  /// Training weight that reached the node (XGBoost's sum_hessian, LightGBM's count of rows); 0 if unknown.
  float cover = 0;
  NodeKind kind = NodeKind::Leaf;
  bool missing_left = false;  ///< True if a missing value goes left.
  Missing missing = Missing::Nan;
};

/// The code that a number of a row has in a set of categories. Missing values and infinities have none.
enum class CategoryRule : std::uint8_t {
  WholePart,      ///< Its whole part; numbers below 0 have none.
  AboveMinusOne,  ///< Its whole part; numbers up to -1 have none (LightGBM's rule).
  Whole,  ///< Itself; numbers that are not whole, however small the fraction, have none (scikit-learn's rule).
  Byte,   ///< byte_of(it), see core/category_rules.hpp; numbers below 0 have none (scikit-learn 1.2 and 1.3).
  SignedByte,  ///< byte_of(it) (scikit-learn 1.1).
};
inline constexpr std::uint8_t kCategoryRules = 5;

/// The category codes of one Category node and the side on which members go. A value is a member if `rule` gives it a
/// code of the set.
struct CategorySet {
  std::vector<std::uint32_t> codes;  ///< Members, ascending, each below kMaxCategories.
  bool members_left = false;
  CategoryRule rule = CategoryRule::WholePart;
};

/// A leaf whose output is constant + sum(coefficient * x[feature]).
struct LinearLeaf {
  double constant = 0;
  std::vector<std::uint32_t> features;
  std::vector<double> coefficients;
};

struct Tree {
  std::vector<Node> nodes;       ///< At least one node; the first is the root.
  std::uint32_t output = 0;      ///< Raw output (class or target) to which a scalar leaf adds.
  std::uint32_t leaf_width = 1;  ///< Values per leaf: 1, or Model::num_outputs for vector leaves.
  float weight = 1;              ///< DART weight: each leaf counts round(weight * value).
  std::uint32_t first_leaf = 0;  ///< Node that the trainer calls leaf 0; see leaf_number.
  /// Outputs of vector leaves (leaf_width > 1): leaves x leaf_width, row-major.
  std::vector<double> leaf_vectors;
  std::vector<CategorySet> category_sets;
  std::vector<LinearLeaf> linear_leaves;
  /// Gain of the split at each node, as the file gives it; NaN at a split, or no vector: the file does not say it.
  /// Predictions do not depend on it, and only models that readers return have it.
  std::vector<float> gains;
};

/// The values of a feature with named categories that a row may hold as text. The code of a name is its index.
struct FeatureCategories {
  std::uint32_t feature = 0;
  std::vector<std::string> names;
  /// The number in a row that stands for a text which is none of the names; NaN if such a text is missing; nothing if
  /// the trainer refuses it.
  std::optional<double> unseen;
};

/// A comparison whose outcome is part of a Lookup's key: 1 if the value is above the border, else 0.
struct ValueTest {
  std::uint32_t feature = 0;
  float border = 0;
  bool nan_above = false;  ///< Outcome for NaN.
};

/// A comparison whose outcome is part of a Lookup's key: 1 if the feature's code is `code`, else 0.
struct CodeTest {
  std::uint32_t feature = 0;
  std::int32_t code = 0;
};

/// Columns that are looked up in a table by a key of hashed categories (see Model::hashed_features), as CatBoost's
/// counters are. The key starts as 0; each part c, sign-extended to 64 bits, makes it M * (key + M * c) modulo 2^64,
/// with M = 0x4906ba494954cb65. The parts are the codes of `categories`, then the outcomes of `value_tests` and of
/// `code_tests`.
struct Lookup {
  std::vector<std::uint32_t> categories;  ///< Hashed features.
  std::vector<ValueTest> value_tests;
  std::vector<CodeTest> code_tests;
  std::vector<std::uint64_t> keys;  ///< Keys of the table's rows, all different.
  std::uint32_t width = 1;          ///< Number of columns.
  std::vector<float> values;        ///< (keys + 1) x width, row-major. The last row is for all other keys.
};

/// A column that is computed in float32 from features, and from computed columns before it, by a rule such as a
/// weighted sum.
struct ComputedColumn {
  ColumnKind kind = ColumnKind::Sum;
  std::vector<ColumnTerm> terms;
};

/// Returns the trainer's own number of the leaf at nodes[index]. XGBoost numbers all nodes of a tree together
/// (first_leaf is 0). LightGBM numbers leaves separately: they follow the splits in `nodes`, in LightGBM's
/// order.
inline std::int32_t leaf_number(const Tree& tree, std::size_t index) {
  return static_cast<std::int32_t>(index - tree.first_leaf);
}

struct Model {
  std::string format;     ///< Row of formats.def that read the file, e.g. "xgboost-json".
  std::string trainer;    ///< Name of the trainer, e.g. "xgboost".
  std::string version;    ///< Version of the trainer as the file gives it, e.g. "3.2.0"; may be empty.
  std::string objective;  ///< The trainer's name of the objective, e.g. "binary:logistic".

  std::uint32_t num_features = 0;
  std::vector<std::string> feature_names;  ///< Names of the features: none, or num_features.
  /// Labels of the classes: none, or one per class. With ArgmaxOfEach there is one for every output.
  std::vector<std::string> class_labels;
  /// Features whose categories have names, ascending by feature. Other features hold numbers only.
  std::vector<FeatureCategories> categories;
  /// Features, ascending, that are compared by the hash of their text: the low 32 bits of CityHash64 (version 1.0) of
  /// its UTF-8 bytes. Whole numbers in rows stand for their decimal text. No node tests such a feature itself.
  std::vector<std::uint32_t> hashed_features;
  /// Columns that are computed from a row's features before trees see them. Nodes call them by the numbers after those
  /// of the features: first all columns of `lookups`, then `computed_columns`.
  std::vector<Lookup> lookups;
  std::vector<ComputedColumn> computed_columns;

  std::uint32_t num_outputs = 1;  ///< Raw scores per row.
  /// Type to which the trainer rounds a row's values before it compares them. Float32 with float64 sums is allowed;
  /// Float64 needs float64 sums.
  ScalarType row_type = ScalarType::Float32;
  ScalarType score_type = ScalarType::Float32;  ///< Type of leaves, sums and raw scores.
  /// Features, ascending, that take whole numbers of 32 bits only: any other number counts as infinity in all splits
  /// (PMML's fields of integers, whose trees send infinity to a leaf without an answer).
  std::vector<std::uint32_t> whole_features;
  /// True if x with |x| <= kTiny is 0 before any split sees it.
  bool tiny_is_zero = false;
  /// Base scores: num_outputs margins, one for each output's sum.
  std::vector<double> base;
  /// True if the base is added after the trees, in float64, and the sum rounded once to score_type. Otherwise each sum
  /// starts from the base, which is rounded to score_type first.
  bool base_last = false;
  bool base_of_first_round = false;  ///< True if predictions of rounds without the first have no base.
  /// True if a call may bring its own margins, which replace `base` (XGBoost's base_margin, LightGBM's init_score).
  bool takes_margins = false;
  EarlyStopRule early_stop = EarlyStopRule::None;
  /// Rule of virtual ensembles, unless `averaged`: see uncertainty_rule.
  UncertaintyRule uncertainty = UncertaintyRule::None;
  float shrinkage = 0;  ///< UncertaintyDesc::shrinkage
  double scale = 1;     ///< Factor of the trees' sum before the base is added; 1 unless base_last.
  Transform transform = Transform::Identity;
  double slope = 1;        ///< TransformParameters::slope.
  double offset = 0;       ///< TransformParameters::offset.
  double divisor = 1;      ///< TransformParameters::divisor, unless `averaged`.
  Pair pair = Pair::None;  ///< Makes two values of the one that a binary model's transform gives.
  /// True if values are computed from raw / rounds (see parameters_of); raw scores stay sums. A round is a tree of
  /// vector leaves, or a tree for each output.
  bool averaged = false;
  ClassRule class_rule = ClassRule::None;
  std::uint64_t group_ends = 0;  ///< TransformParameters::group_ends
  /// True if leaves may hold NaN (a vector leaf in all its values): a row that reaches such a leaf has no answer.
  /// Its raw scores and values are NaN, and its label means nothing.
  bool may_lack_answers = false;

  std::vector<Tree> trees;                  ///< Trees in the trainer's order.
  std::vector<std::uint32_t> round_begins;  ///< First tree of each boosting round, then trees.size().
  /// Round, counted from 0, that early stopping found best, if the file says it. Predictions use all rounds.
  std::optional<std::uint32_t> best_round;
};

/// Returns the number of columns that nodes may test: the features and the columns computed from them.
inline std::uint64_t num_columns(const Model& model) {
  std::uint64_t columns = std::uint64_t{model.num_features} + model.computed_columns.size();
  for (const Lookup& lookup : model.lookups) columns += lookup.width;
  return columns;
}

/// Returns the rule by which a model says how sure it is.
inline UncertaintyRule uncertainty_rule(const Model& model) {
  if (!model.averaged) return model.uncertainty;
  for (const double base : model.base)
    if (base != 0) return UncertaintyRule::None;
  return UncertaintyRule::Trees;
}

/// Returns whether some leaf's output is a linear function of the row.
inline bool has_linear_leaves(const Model& model) {
  for (const Tree& tree : model.trees)
    if (!tree.linear_leaves.empty()) return true;
  return false;
}

/// Returns the trees that make up one round of a model: one with vector leaves, or one for each output.
inline std::size_t trees_per_round(const Model& model) {
  const bool vectors = !model.trees.empty() && model.trees.front().leaf_width > 1;
  return vectors ? 1 : model.num_outputs;
}

/// Returns the transform's parameters for the sum of `trees` trees, which are whole rounds.
inline TransformParameters parameters_of(const Model& model, std::size_t trees) {
  const std::size_t rounds = trees / trees_per_round(model);
  return {model.averaged ? static_cast<double>(rounds) : model.divisor, model.slope, model.offset,
          model.group_ends};
}

}  // namespace forestvm
