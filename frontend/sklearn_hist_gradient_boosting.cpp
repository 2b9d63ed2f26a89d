// Reads HistGradientBoosting: sums of the trees' values from a stored start, all in float64. scikit-learn encodes the
// rows of models with categorical features: categorical columns move to the front, each category becomes its number in
// a list, and a value that is not in the list becomes missing. The file's nodes use the encoded columns and numbers.
// The Model uses the user's columns and categories, so that rows need no encoding. Before release 1.4 scikit-learn
// encodes nothing: C converts the numbers of categorical columns to bytes, which are the categories.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/sklearn_estimator.hpp"

namespace forestvm::frontend {
namespace {

constexpr std::size_t kBitsetWords = 8;
/// The least size of a node in bytes: the size of the fields that are read.
constexpr std::uint32_t kMinHistNodeSize = 40;

/// A categorical feature.
struct Categories {
  std::vector<std::uint32_t> codes;  ///< The user's code of each category, ascending.
  std::vector<std::uint32_t> bits;   ///< The bit of each category in the trees' sets.
  bool named =
      false;  ///< True if the categories are texts, whose codes are their numbers in the encoder's list.
  CategoryRule rule = CategoryRule::Whole;
};

/// The columns, whose numbers the trees use as features. Where rows are encoded, categorical columns come first.
struct Encoding {
  std::vector<std::uint32_t> features;                ///< The user's feature in each column.
  std::vector<std::optional<Categories>> categories;  ///< Categories of each column, if it has some.
};

/// Returns the code for a number in a list of categories; nothing for a missing value, which is not a category.
Result<std::optional<std::uint32_t>> code_of(const PythonRef& list, double x) {
  if (std::isnan(x)) return std::optional<std::uint32_t>();
  if (!(x >= 0 && x < kMaxCategories) || x != std::floor(x))
    return list.error(
        formatted("the category {}: only texts and whole numbers from 0 to {} are supported as categories",
                  python_text(x), kMaxCategories - 1));
  return std::optional(static_cast<std::uint32_t>(x));
}

/// Reads the categories of a list of Python objects: texts, or numbers; the last may be None or NaN.
Result<void> read_objects(const PythonRef& list, Categories& out, std::vector<std::string>& names) {
  FVM_ASSIGN(const std::vector<PythonRef> items, list.items());
  for (const PythonRef& item : items) {
    if (const Result<std::string> text = item.text(); text.ok()) {
      out.codes.push_back(static_cast<std::uint32_t>(names.size()));
      names.push_back(*text);
      continue;
    }
    if (item.is_none()) continue;
    FVM_ASSIGN(const double x, item.number());
    FVM_ASSIGN(const std::optional<std::uint32_t> code, code_of(list, x));
    if (code) out.codes.push_back(*code);
  }
  out.named = !names.empty();
  if (out.named && names.size() != out.codes.size())
    return list.error("texts and numbers as categories of one feature");
  return {};
}

Result<Categories> read_categories(const PythonRef& list, std::vector<std::string>& names) {
  Categories out;
  if (list.kind() == PythonKind::Sequence) {
    FVM_TRY(read_objects(list, out, names));
  } else {
    FVM_ASSIGN(const NumpyArray values, list.array());
    const Result<NumpyColumn> column = values.column("", NumpyArray::Wanted::Any);
    if (!column.ok() || column->size() > kMaxCategories) return list.error("expected an array of categories");
    out.named = column->is_text();
    for (std::size_t i = 0; i < column->size(); ++i) {
      if (out.named) {
        out.codes.push_back(static_cast<std::uint32_t>(i));
        names.push_back(column->text(i));
        continue;
      }
      FVM_ASSIGN(const std::optional<std::uint32_t> code, code_of(list, column->real(i)));
      if (code) out.codes.push_back(*code);
    }
  }
  if (std::adjacent_find(out.codes.begin(), out.codes.end(), std::greater_equal<>()) != out.codes.end())
    return list.error("categories that do not ascend");
  out.bits.resize(out.codes.size());
  std::iota(out.bits.begin(), out.bits.end(), 0u);
  if (out.named) out.rule = CategoryRule::WholePart;
  return out;
}

/// Reads the categories of a release before 1.4, whose sets have a bit for each number from 0 to 255.
Result<Categories> read_bytes(const PythonRef& list, SklearnVersion version) {
  Categories out;
  FVM_ASSIGN(const std::vector<double> numbers, list.numbers(kBitsetWords * 32));
  for (const double x : numbers) {
    FVM_ASSIGN(const std::optional<std::uint32_t> code, code_of(list, x));
    if (!code) continue;
    if (*code >= kBitsetWords * 32 || (!out.codes.empty() && *code <= out.codes.back()))
      return list.error("expected categories from 0 to 255 that ascend");
    out.codes.push_back(*code);
  }
  out.bits = out.codes;
  out.rule = version < SklearnVersion{1, 2, 0} ? CategoryRule::SignedByte : CategoryRule::Byte;
  return out;
}

/// Returns the lists of categories that the encoder of categorical columns has learnt.
Result<std::vector<PythonRef>> category_lists(const PythonRef& estimator) {
  FVM_ASSIGN(const PythonRef preprocessor, estimator.get("_preprocessor"));
  FVM_ASSIGN(const PythonRef fitted, preprocessor.get("transformers_"));
  FVM_ASSIGN(const std::vector<PythonRef> transformers, fitted.items());
  for (const PythonRef& transformer : transformers) {
    FVM_ASSIGN(const std::vector<PythonRef> parts, transformer.items());
    if (parts.size() < 2 || parts[1].type() != "sklearn.preprocessing._encoders.OrdinalEncoder") continue;
    FVM_ASSIGN(const PythonRef lists, parts[1].get("categories_"));
    return lists.items();
  }
  return fitted.error("no OrdinalEncoder of the categorical columns");
}

/// Reads the encoding of a release before 1.4, where columns keep their places. `mask` says which are categorical.
Result<Encoding> read_byte_encoding(const SklearnReader& reader, const std::vector<std::int64_t>& mask) {
  FVM_ASSIGN(const PythonRef mapper, reader.estimator.get("_bin_mapper"));
  FVM_ASSIGN(const PythonRef thresholds, mapper.get("bin_thresholds_"));
  FVM_ASSIGN(const std::vector<PythonRef> lists, thresholds.items());
  if (lists.size() != mask.size())
    return thresholds.error(formatted("{} lists for {} features", lists.size(), mask.size()));
  Encoding encoding;
  encoding.categories.resize(mask.size());
  for (std::uint32_t feature = 0; feature < mask.size(); ++feature) {
    encoding.features.push_back(feature);
    if (mask[feature] == 0) continue;
    FVM_ASSIGN(encoding.categories[feature], read_bytes(lists[feature], reader.version));
  }
  return encoding;
}

Result<Encoding> read_encoding(SklearnReader& reader) {
  Model& model = reader.model;
  Encoding encoding;
  const auto mask_ref = reader.estimator.find("is_categorical_");
  std::vector<std::int64_t> mask(model.num_features);
  if (mask_ref) {
    FVM_ASSIGN(mask, mask_ref->integers(model.num_features));
    if (mask.size() != model.num_features)
      return mask_ref->error(formatted("{} flags for {} features", mask.size(), model.num_features));
  }
  if (reader.version < SklearnVersion{1, 4, 0} && mask_ref) return read_byte_encoding(reader, mask);
  for (const bool categorical : {true, false})
    for (std::uint32_t feature = 0; feature < model.num_features; ++feature)
      if ((mask[feature] != 0) == categorical) encoding.features.push_back(feature);
  encoding.categories.resize(model.num_features);
  const auto count =
      static_cast<std::size_t>(std::count_if(mask.begin(), mask.end(), [](auto flag) { return flag != 0; }));
  if (count == 0) return encoding;
  FVM_ASSIGN(const std::vector<PythonRef> lists, category_lists(reader.estimator));
  if (lists.size() != count)
    return reader.estimator.error(formatted("categories of {} features instead of {}", lists.size(), count));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> names;
    FVM_ASSIGN(Categories categories, read_categories(lists[i], names));
    if (categories.named)
      model.categories.push_back(
          {encoding.features[i], std::move(names), std::numeric_limits<double>::quiet_NaN()});
    encoding.categories[i] = std::move(categories);
  }
  return encoding;
}

/// Reads one tree from a TreePredictor's nodes and sets of categories.
class HistTree {
 public:
  HistTree(const PythonRef& predictor, const Encoding& encoding)
      : predictor_(predictor), encoding_(encoding) {}

  Result<void> read();
  std::size_t size() const { return nodes_.count; }
  Result<Tree> tree() const;

 private:
  Error error(std::size_t node, std::string_view message) const {
    return refused(formatted("{}, node {}", predictor_.place(), node), message);
  }
  Result<void> read_split(std::size_t number, Node& node, Tree& tree) const;
  Result<CategorySet> set_of(std::size_t number, std::size_t column, bool missing_left) const;

  PythonRef predictor_;
  const Encoding& encoding_;
  NumpyArray nodes_, bitsets_;
  NumpyColumn value_, count_, gain_, feature_, threshold_, missing_left_, left_, right_, is_leaf_,
      is_category_, set_, words_;
};

Result<void> HistTree::read() {
  using Wanted = NumpyArray::Wanted;
  FVM_ASSIGN(const PythonRef nodes, predictor_.get("nodes"));
  FVM_ASSIGN(nodes_, nodes.array());
  if (nodes_.count == 0 || nodes_.count > std::size_t{1} << 30 || nodes_.item_size < kMinHistNodeSize)
    return nodes.error("expected a tree's nodes");
  FVM_ASSIGN(value_, nodes.column(nodes_, "value", Wanted::Numbers));
  FVM_ASSIGN(count_, nodes.column(nodes_, "count", Wanted::Integers));
  FVM_ASSIGN(gain_, nodes.column(nodes_, "gain", Wanted::Numbers));
  FVM_ASSIGN(feature_, nodes.column(nodes_, "feature_idx", Wanted::Integers));
  FVM_ASSIGN(threshold_, nodes.column(nodes_, "num_threshold", Wanted::Numbers));
  FVM_ASSIGN(missing_left_, nodes.column(nodes_, "missing_go_to_left", Wanted::Integers));
  FVM_ASSIGN(left_, nodes.column(nodes_, "left", Wanted::Integers));
  FVM_ASSIGN(right_, nodes.column(nodes_, "right", Wanted::Integers));
  FVM_ASSIGN(is_leaf_, nodes.column(nodes_, "is_leaf", Wanted::Integers));
  FVM_ASSIGN(is_category_, nodes.column(nodes_, "is_categorical", Wanted::Integers));
  FVM_ASSIGN(set_, nodes.column(nodes_, "bitset_idx", Wanted::Integers));
  FVM_ASSIGN(const PythonRef bitsets, predictor_.get("raw_left_cat_bitsets"));
  FVM_ASSIGN(bitsets_, bitsets.array());
  const Result<NumpyColumn> words = bitsets_.column("", Wanted::Integers);
  if (!words.ok() || bitsets_.shape.size() != 2 || bitsets_.shape[1] != kBitsetWords)
    return bitsets.error("expected sets of 256 bits");
  words_ = *words;
  return {};
}

/// Returns the categories that go to the side where missing values do not go. All other numbers count as missing.
Result<CategorySet> HistTree::set_of(std::size_t number, std::size_t column, bool missing_left) const {
  const std::int64_t set = set_.integer(number);
  if (set < 0 || static_cast<std::uint64_t>(set) >= words_.size() / kBitsetWords)
    return error(number, "its set of categories does not exist");
  const Categories& categories = *encoding_.categories[column];
  CategorySet out;
  out.members_left = !missing_left;
  out.rule = categories.rule;
  for (std::size_t k = 0; k < categories.codes.size(); ++k) {
    const std::uint32_t bit = categories.bits[k];
    const bool in_left =
        bit / 32 < kBitsetWords &&
        (words_.integer(static_cast<std::size_t>(set) * kBitsetWords + bit / 32) >> bit % 32 & 1) != 0;
    if (in_left == out.members_left) out.codes.push_back(categories.codes[k]);
  }
  return out;
}

Result<void> HistTree::read_split(std::size_t number, Node& node, Tree& tree) const {
  const auto count = static_cast<std::int64_t>(size());
  for (const std::int64_t child : {left_.integer(number), right_.integer(number)})
    if (child < 0 || child >= count) return error(number, formatted("child {} does not exist", child));
  node.left = static_cast<std::int32_t>(left_.integer(number));
  node.right = static_cast<std::int32_t>(right_.integer(number));
  const std::int64_t column = feature_.integer(number);
  if (column < 0 || static_cast<std::uint64_t>(column) >= encoding_.features.size())
    return error(number, formatted("feature {} does not exist", column));
  const auto at = static_cast<std::size_t>(column);
  node.feature = encoding_.features[at];
  node.missing_left = missing_left_.integer(number) != 0;
  if (is_category_.integer(number) == 0) {
    if (encoding_.categories[at]) return error(number, "compares a categorical feature with a number");
    node.kind = NodeKind::LessEqual;
    node.threshold = threshold_.real(number);
    return {};
  }
  if (!encoding_.categories[at]) return error(number, "a set of categories of a feature that has none");
  node.kind = NodeKind::Category;
  node.payload = static_cast<std::uint32_t>(tree.category_sets.size());
  FVM_ASSIGN(CategorySet set, set_of(number, at, node.missing_left));
  tree.category_sets.push_back(std::move(set));
  return {};
}

Result<Tree> HistTree::tree() const {
  Tree tree;
  tree.nodes.resize(size());
  tree.gains.resize(size());
  for (std::size_t i = 0; i < size(); ++i) {
    Node& node = tree.nodes[i];
    node.cover = static_cast<float>(count_.real(i));
    tree.gains[i] = static_cast<float>(gain_.real(i));
    if (is_leaf_.integer(i) != 0)
      node.value = value_.real(i);
    else
      FVM_TRY(read_split(i, node, tree));
  }
  return tree;
}

/// Sets the transform and the labels.
Result<void> read_values(SklearnReader& reader, std::size_t outputs) {
  Model& model = reader.model;
  FVM_ASSIGN(const PythonRef given, reader.estimator.get("loss"));
  FVM_ASSIGN(const std::string loss, given.text());
  model.objective += formatted("(loss='{}')", printable(loss, 40));
  if (!reader.is_classifier()) {
    if (loss == "poisson" || loss == "gamma") {
      model.transform = Transform::Exp;
      return {};
    }
    for (const char* known :
         {"squared_error", "least_squares", "absolute_error", "least_absolute_deviation", "quantile"})
      if (loss == known) return {};
    return given.error("unknown loss " + in_quotes(loss, 40));
  }
  if (loss != "log_loss" && loss != "auto" && loss != "binary_crossentropy" &&
      loss != "categorical_crossentropy")
    return given.error("unknown loss " + in_quotes(loss, 40));
  FVM_ASSIGN(const std::vector<std::vector<std::string>> classes, reader.classes());
  model.class_labels = classes[0];
  if (classes.size() != 1 || classes[0].size() != (outputs == 1 ? 2 : outputs))
    return reader.estimator.error(formatted("{} classes for {} outputs", classes[0].size(), outputs));
  const bool from_values = reader.version < SklearnVersion{1, 5, 0};
  if (outputs > 1) {
    model.transform = Transform::Softmax;
    model.class_rule = from_values ? ClassRule::Argmax : ClassRule::RawArgmax;
    return {};
  }
  model.transform = Transform::Sigmoid;
  model.pair = Pair::Complement;
  model.class_rule = from_values ? ClassRule::AboveHalf : ClassRule::RawPositive;
  return {};
}

}  // namespace

Result<void> read_sklearn_hist_gradient_boosting(SklearnReader& reader) {
  Model& model = reader.model;
  const PythonRef& estimator = reader.estimator;
  model.row_type = ScalarType::Float64;
  FVM_ASSIGN(const PythonRef start_ref, estimator.get("_baseline_prediction"));
  FVM_ASSIGN(std::vector<double> start, start_ref.numbers(reader.limits.max_outputs));
  const std::size_t outputs = start.size();
  if (outputs == 0) return start_ref.error("no outputs");
  FVM_TRY(reader.set_outputs(outputs, std::move(start)));
  FVM_TRY(read_values(reader, outputs));
  FVM_ASSIGN(const Encoding encoding, read_encoding(reader));
  FVM_ASSIGN(const PythonRef list, estimator.get("_predictors"));
  FVM_ASSIGN(const std::vector<PythonRef> stages, list.items());
  for (const PythonRef& stage : stages) {
    FVM_ASSIGN(const std::vector<PythonRef> trees, stage.items());
    if (trees.size() != outputs)
      return stage.error(formatted("{} trees for {} outputs", trees.size(), outputs));
    for (std::size_t k = 0; k < outputs; ++k) {
      HistTree tree(trees[k], encoding);
      FVM_TRY(tree.read());
      FVM_TRY(reader.count_nodes(tree.size()));
      FVM_ASSIGN(Tree made, tree.tree());
      made.output = static_cast<std::uint32_t>(k);
      reader.add(std::move(made));
    }
  }
  reader.set_rounds(static_cast<std::uint32_t>(outputs), "_predictors", true);
  return {};
}

}  // namespace forestvm::frontend
