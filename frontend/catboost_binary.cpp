// Reads CatboostParts from CatBoost's binary format (.cbm). A file is "CBM1", a FlatBuffers message with the model, and
// the parts that the message names. The message and the parts begin with their sizes. A part that is not a list of
// counters' tables is refused.
#include <algorithm>
#include <bit>
#include <limits>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/catboost_document.hpp"
#include "frontend/catboost_parts.hpp"
#include "frontend/catboost_tree.hpp"
#include "frontend/flat_buffer.hpp"

namespace forestvm::frontend {
namespace {

// The numbers of the fields in CatBoost's messages.
namespace core {
enum : unsigned { kFormatVersion, kModelTrees, kInfoMap, kModelPartIds };
}
namespace info {
enum : unsigned { kKey, kValue };
}
namespace trees {
enum : unsigned {
  kDimension,
  kTreeSplits,
  kTreeSizes,
  kTreeStartOffsets,
  kCatFeatures,
  kFloatFeatures,
  kOneHotFeatures,
  kCtrFeatures,
  kLeafValues,
  kLeafWeights,
  kStepNodes,
  kNodeToLeaf,
  kTextFeatures,
  kEstimatedFeatures,
  kScale,
  kBias,
  kMultiBias,
  kRepackedBins,
  kEmbeddingFeatures
};
}
namespace float_feature {
enum : unsigned { kHasNans, kIndex, kFlatIndex, kBorders, kName, kNanTreatment };
constexpr std::int8_t kAsTrue = 2;
}  // namespace float_feature
namespace cat_feature {
enum : unsigned { kIndex, kFlatIndex, kName };
}
namespace one_hot {
enum : unsigned { kIndex, kValues };
}
namespace ctr_feature {
enum : unsigned { kCtr, kBorders };
}
namespace ctr {
enum : unsigned { kBase, kTargetBorder, kPrior, kPriorDenominator, kShift, kScale };
}
namespace ctr_base {
enum : unsigned { kCombination, kType, kClassifier };
}
namespace combination {
enum : unsigned { kCategories, kValueTests, kCodeTests };
}
namespace table {
enum : unsigned { kBase, kIndex, kBlob, kDenominator, kClasses };
}

/// Reads the sizes and bytes of the file one after the other.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }
  Result<std::uint64_t> size() {
    FVM_ASSIGN(const auto small, number<std::uint32_t>());
    if (small != std::numeric_limits<std::uint32_t>::max()) return std::uint64_t{small};
    return number<std::uint64_t>();
  }
  Result<std::span<const std::byte>> take(std::uint64_t size) {
    const std::size_t left = bytes_.size() - at_;
    if (size > left)
      return refused(formatted("byte {}", at_),
                     "a part of {} bytes, but only {} are left: the file is cut short", size, left);
    const auto out = bytes_.subspan(at_, static_cast<std::size_t>(size));
    at_ += out.size();
    return out;
  }

 private:
  template <class Number>
  Result<Number> number() {
    FVM_ASSIGN(const auto bytes, take(sizeof(Number)));
    Number out = 0;
    std::memcpy(&out, bytes.data(), sizeof(Number));
    return out;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

Error in_trees(const char* field, std::string_view message) {
  return refused(std::string("ModelTrees.") + field, message);
}

void add_features(const FlatTable& model, CatboostParts& parts) {
  const FlatTables floats = model.tables(trees::kFloatFeatures),
                   categories = model.tables(trees::kCatFeatures);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const FlatTable row = floats[i];
    CatboostFloatFeature& feature = parts.float_features.emplace_back();
    feature.index = row.number<std::int32_t>(float_feature::kIndex, -1);
    feature.flat_index = row.number<std::int32_t>(float_feature::kFlatIndex, -1);
    feature.has_nans = row.number<std::uint8_t>(float_feature::kHasNans) != 0;
    feature.nan_above = row.number<std::int8_t>(float_feature::kNanTreatment) == float_feature::kAsTrue;
    feature.name = row.text(float_feature::kName);
    feature.borders = row.numbers<float>(float_feature::kBorders);
  }
  for (std::size_t i = 0; i < categories.size(); ++i) {
    const FlatTable row = categories[i];
    CatboostCategorical& feature = parts.categorical_features.emplace_back();
    feature.index = row.number<std::int32_t>(cat_feature::kIndex, -1);
    feature.flat_index = row.number<std::int32_t>(cat_feature::kFlatIndex, -1);
    feature.name = row.text(cat_feature::kName);
  }
}

/// A test of a combination in the file: a feature's index, and a border or a code.
template <class Number>
struct Test {
  std::int32_t index;
  Number number;
};

template <class Number>
std::vector<std::pair<std::int64_t, Number>> tests_of(const FlatTable& row, unsigned field) {
  std::vector<std::pair<std::int64_t, Number>> out;
  for (const Test<Number>& test : row.numbers<Test<Number>>(field)) out.emplace_back(test.index, test.number);
  return out;
}

/// Identifies a table: a counter and its table have equal bases.
struct CtrBase {
  CatboostCombination combination;
  std::int8_t type = 0;
  std::int32_t classifier = 0;

  /// Returns a text that differs for different bases.
  std::string name() const {
    std::string out = std::to_string(type) + ' ' + std::to_string(classifier);
    for (const std::int64_t category : combination.categories) out += formatted(" c{}", category);
    for (const auto& [index, border] : combination.value_tests)
      out += formatted(" v{}>{}", index, std::bit_cast<std::uint32_t>(border));
    for (const auto& [index, code] : combination.code_tests) out += formatted(" o{}={}", index, code);
    return out;
  }
};

CtrBase base_of(const FlatTable& row) {
  const FlatTable parts = row.table(ctr_base::kCombination);
  CtrBase base;
  for (const std::int32_t category : parts.numbers<std::int32_t>(combination::kCategories))
    base.combination.categories.push_back(category);
  base.combination.value_tests = tests_of<float>(parts, combination::kValueTests);
  base.combination.code_tests = tests_of<std::int32_t>(parts, combination::kCodeTests);
  base.type = row.number<std::int8_t>(ctr_base::kType);
  base.classifier = row.number<std::int32_t>(ctr_base::kClassifier);
  return base;
}

Result<CtrType> type_of(const CtrBase& base, const std::string& where) {
  if (base.type < 0 || base.type > static_cast<std::int8_t>(CtrType::FeatureFreq))
    return refused(where, "unknown type of counter {}", base.type);
  return static_cast<CtrType>(base.type);
}

Result<void> add_ctrs(const FlatTable& model, CatboostParts& parts) {
  const FlatTables one_hots = model.tables(trees::kOneHotFeatures), ctrs = model.tables(trees::kCtrFeatures);
  for (std::size_t i = 0; i < one_hots.size(); ++i) {
    const FlatTable row = one_hots[i];
    parts.one_hots.push_back(
        {row.number<std::int32_t>(one_hot::kIndex, -1), row.numbers<std::int32_t>(one_hot::kValues)});
  }
  for (std::size_t i = 0; i < ctrs.size(); ++i) {
    const FlatTable row = ctrs[i], values = row.table(ctr_feature::kCtr);
    CatboostCtr& counter = parts.ctrs.emplace_back();
    CtrBase base = base_of(values.table(ctr::kBase));
    FVM_ASSIGN(counter.type, type_of(base, formatted("ModelTrees.CtrFeatures[{}]", i)));
    counter.table = base.name();
    counter.combination = std::move(base.combination);
    counter.target_border = values.number<std::int32_t>(ctr::kTargetBorder);
    counter.prior = values.number<float>(ctr::kPrior);
    counter.prior_denominator = values.number<float>(ctr::kPriorDenominator, 1);
    counter.shift = values.number<float>(ctr::kShift);
    counter.scale = values.number<float>(ctr::kScale, 1);
    counter.borders = row.numbers<float>(ctr_feature::kBorders);
  }
  return {};
}

/// The lists of numbers that describe all trees.
struct Forest {
  struct Step {
    std::uint16_t left;
    std::uint16_t right;
  };
  std::vector<std::int32_t> splits;
  std::vector<std::int32_t> sizes;
  std::vector<double> values;
  std::vector<double> weights;  ///< One for each leaf, or none.
  std::vector<Step> steps;
  std::vector<std::uint32_t> leaves;
};

Error in_tree(std::size_t tree, std::string_view message) {
  return refused(formatted("ModelTrees: tree {}", tree), message);
}

/// Removes the first `count` leaves from `left` and returns them.
CatboostLeaves take_leaves(std::size_t count, CatboostLeaves& left) {
  CatboostLeaves out = left;
  out.values = left.values.first(count * left.width);
  left.values = left.values.subspan(count * left.width);
  if (left.weights.empty()) return out;
  out.weights = left.weights.first(count);
  left.weights = left.weights.subspan(count);
  return out;
}

/// Makes a tree of the `size` splits from `begin` on, and removes its leaves from `left`.
Result<Tree> read_oblivious(const Forest& forest, std::size_t number, std::size_t begin, std::size_t size,
                            CatboostLeaves& left) {
  if (size > 31 || (left.values.size() / left.width) >> size == 0)
    return in_tree(number, formatted("there are not enough leaf values for {} levels", size));
  std::vector<std::uint32_t> splits;
  for (std::size_t i = begin; i < begin + size; ++i)
    splits.push_back(static_cast<std::uint32_t>(forest.splits[i]));
  return oblivious_tree(splits, take_leaves(std::size_t{1} << size, left));
}

/// Makes a tree of the `size` nodes from `begin` on. A node's children lie some steps after it; a step of 0 means that
/// the node itself is the leaf on that side, with the first of its values at the index that the file gives.
Result<Tree> read_branching(const Forest& forest, std::size_t number, std::size_t begin, std::size_t size,
                            CatboostLeaves& left) {
  const std::uint32_t width = left.width;
  std::vector<std::uint32_t> leaves;  // nodes that are leaves, or split and are the leaf on one side
  std::vector<std::int32_t> branch_of(size, -1);
  std::int32_t branches = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const Forest::Step step = forest.steps[begin + i];
    if (step.left == 0 || step.right == 0) leaves.push_back(static_cast<std::uint32_t>(i));
    if (step.left != 0 || step.right != 0) branch_of[i] = branches++;
  }
  if (leaves.size() != static_cast<std::size_t>(branches) + 1 || leaves.size() > left.values.size() / width)
    return in_tree(number, formatted("{} leaves for {} splits and {} more leaf values", leaves.size(),
                                     branches, left.values.size() / width));
  const auto value_of = [&](std::uint32_t node) { return std::uint64_t{forest.leaves[begin + node]}; };
  std::sort(leaves.begin(), leaves.end(), [&](auto a, auto b) { return value_of(a) < value_of(b); });
  const std::size_t first = forest.values.size() - left.values.size();
  std::vector<std::int32_t> leaf_of(size, -1);
  for (std::size_t l = 0; l < leaves.size(); ++l) {
    if (value_of(leaves[l]) != first + l * width)
      return in_tree(number,
                     formatted("leaf values at {} instead of {}", value_of(leaves[l]), first + l * width));
    leaf_of[leaves[l]] = static_cast<std::int32_t>(l);
  }
  std::vector<CatboostBranch> out;
  for (std::size_t i = 0; i < size; ++i) {
    if (branch_of[i] < 0) continue;
    const Forest::Step step = forest.steps[begin + i];
    if (std::max<std::size_t>(step.left, step.right) >= size - i)
      return in_tree(number, formatted("a child of node {} lies behind the tree's {} nodes", i, size));
    const auto child = [&](std::size_t steps) {
      const std::size_t to = i + steps;
      return steps != 0 && branch_of[to] >= 0 ? branch_of[to] : -1 - leaf_of[to];
    };
    out.push_back(
        {static_cast<std::uint32_t>(forest.splits[begin + i]), child(step.left), child(step.right)});
  }
  return branching_tree(out, take_leaves(leaves.size(), left));
}

Result<void> add_trees(const Forest& forest, const LoadLimits& limits, CatboostParts& parts) {
  if (forest.sizes.size() > limits.max_trees)
    return in_trees("TreeSizes", formatted("more trees than the limit of {}", limits.max_trees));
  CatboostLeaves left{forest.values, forest.weights, parts.num_outputs};
  if (!left.weights.empty() && left.weights.size() * left.width != left.values.size())
    return in_trees("LeafWeights", formatted("{} weights for {} leaves", left.weights.size(),
                                             left.values.size() / left.width));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < forest.sizes.size(); ++i) {
    const std::int32_t size = forest.sizes[i];
    if (size < 0 || static_cast<std::size_t>(size) > forest.splits.size() - begin)
      return in_tree(i,
                     formatted("a size of {}, but {} splits are left", size, forest.splits.size() - begin));
    const auto count = static_cast<std::size_t>(size);
    FVM_ASSIGN(Tree tree, forest.steps.empty() ? read_oblivious(forest, i, begin, count, left)
                                               : read_branching(forest, i, begin, count, left));
    parts.trees.push_back(std::move(tree));
    begin += count;
  }
  if (begin != forest.splits.size())
    return in_trees("TreeSplits", formatted("{} splits belong to no tree", forest.splits.size() - begin));
  if (!left.values.empty())
    return in_trees("LeafValues", formatted("{} leaf values belong to no tree", left.values.size()));
  return {};
}

Result<void> add_forest(const FlatTable& model, const LoadLimits& limits, CatboostParts& parts) {
  Forest forest;
  forest.splits = model.numbers<std::int32_t>(trees::kTreeSplits);
  forest.sizes = model.numbers<std::int32_t>(trees::kTreeSizes);
  forest.values = model.numbers<double>(trees::kLeafValues);
  forest.weights = model.numbers<double>(trees::kLeafWeights);
  forest.steps = model.numbers<Forest::Step>(trees::kStepNodes);
  forest.leaves = model.numbers<std::uint32_t>(trees::kNodeToLeaf);
  if (!forest.steps.empty() && forest.steps.size() != forest.splits.size())
    return in_trees("NonSymmetricStepNodes",
                    formatted("{} steps for {} nodes", forest.steps.size(), forest.splits.size()));
  if (forest.leaves.size() != forest.steps.size())
    return in_trees("NonSymmetricNodeIdToLeafId",
                    formatted("{} leaves for {} nodes", forest.leaves.size(), forest.steps.size()));
  const std::vector<std::int32_t> starts = model.numbers<std::int32_t>(trees::kTreeStartOffsets);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (i >= forest.sizes.size() || starts[i] != start)
      return in_trees("TreeStartOffsets", formatted("tree {} does not follow the tree before it", i));
    start += forest.sizes[i];
  }
  return add_trees(forest, limits, parts);
}

Result<void> add_outputs(const FlatTable& model, const LoadLimits& limits, CatboostParts& parts) {
  const auto outputs = model.number<std::int32_t>(trees::kDimension);
  if (outputs < 1 || static_cast<std::uint32_t>(outputs) > limits.max_outputs)
    return in_trees("ApproxDimension",
                    formatted("{} outputs are not within 1 and {}", outputs, limits.max_outputs));
  parts.num_outputs = static_cast<std::uint32_t>(outputs);
  parts.scale = model.number<double>(trees::kScale, 1);
  parts.bias = model.numbers<double>(trees::kMultiBias);
  if (parts.bias.empty()) parts.bias.push_back(model.number<double>(trees::kBias));
  return {};
}

Result<void> refuse_features(const FlatTable& model) {
  const std::pair<unsigned, const char*> kinds[] = {{trees::kTextFeatures, "text"},
                                                    {trees::kEmbeddingFeatures, "embedding"},
                                                    {trees::kEstimatedFeatures, "estimated"}};
  for (const auto& [field, name] : kinds)
    if (model.tables(field).size() != 0)
      return refused("ModelTrees", "the model has {} features, which cannot be computed here", name);
  return {};
}

Result<void> add_info(const FlatTable& core_table, const LoadLimits& limits, CatboostParts& parts) {
  const FlatTables entries = core_table.tables(core::kInfoMap);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const FlatTable entry = entries[i];
    FVM_TRY(add_catboost_info(entry.text(info::kKey), entry.text(info::kValue), limits, parts));
  }
  return {};
}

/// Reads the hash map from keys to rows: slots of a key and a row number, in which all bits of an empty slot's key are
/// 1.
Result<void> add_keys(std::span<const std::byte> slots, std::size_t rows, CatboostTable& out) {
  constexpr std::size_t slot_bytes = 12;
  constexpr std::uint64_t empty = std::numeric_limits<std::uint64_t>::max();
  if (slots.size() % slot_bytes != 0 || !std::has_single_bit(slots.size() / slot_bytes))
    return refused(out.where, "a hash map of {} bytes", slots.size());
  std::vector<bool> taken(rows);
  for (std::size_t at = 0; at < slots.size(); at += slot_bytes) {
    std::uint64_t key = 0;
    std::uint32_t row = 0;
    std::memcpy(&key, slots.data() + at, sizeof(key));
    std::memcpy(&row, slots.data() + at + sizeof(key), sizeof(row));
    if (key == empty) continue;
    if (row >= rows || taken[row])
      return refused(out.where, "row {} of {} does not exist or has two keys", row, rows);
    taken[row] = true;
    out.keys.push_back(key);
    out.rows.push_back(row);
  }
  return {};
}

/// Reads the numbers of all rows.
Result<void> add_numbers(std::span<const std::byte> blob, bool means, CatboostTable& out) {
  constexpr std::size_t size = sizeof(std::int32_t);
  if (blob.size() % (size * out.width) != 0)
    return refused(out.where, "rows of {} numbers do not fill {} bytes", out.width, blob.size());
  out.numbers.reserve(blob.size() / size);
  for (std::size_t at = 0; at < blob.size(); at += size) {
    std::int32_t count = 0;
    std::memcpy(&count, blob.data() + at, size);
    const bool sum = means && at / size % 2 == 0;
    out.numbers.push_back(sum ? static_cast<double>(std::bit_cast<float>(count)) : count);
  }
  return {};
}

Result<void> add_table(std::span<const std::byte> bytes, std::size_t offset, CatboostParts& parts) {
  FlatBuffer buffer(bytes, offset);
  const FlatTable root = buffer.root();
  const CtrBase base = base_of(root.table(table::kBase));
  const std::span<const std::byte> index = root.bytes(table::kIndex), blob = root.bytes(table::kBlob);
  const auto classes = root.number<std::int32_t>(table::kClasses);
  const auto denominator = root.number<std::int32_t>(table::kDenominator);
  FVM_TRY(buffer.state());
  CatboostTable out;
  out.name = base.name();
  out.where = formatted("the table of counters at byte {}", offset);
  out.denominator = denominator;
  FVM_ASSIGN(const CtrType type, type_of(base, out.where));
  const bool counts = type == CtrType::Counter || type == CtrType::FeatureFreq;
  const bool means = type == CtrType::BinarizedTargetMeanValue || type == CtrType::FloatTargetMeanValue;
  if (!counts && !means && (classes < 1 || classes > std::numeric_limits<std::int16_t>::max()))
    return refused(out.where, "{} classes", classes);
  out.width = counts ? 1 : means ? 2 : static_cast<std::uint32_t>(classes);
  FVM_TRY(add_numbers(blob, means, out));
  FVM_TRY(add_keys(index, out.numbers.size() / out.width, out));
  parts.tables.push_back(std::move(out));
  return {};
}

Result<void> add_tables(Cursor& cursor, CatboostParts& parts) {
  FVM_ASSIGN(const std::uint64_t tables, cursor.size());
  for (std::uint64_t i = 0; i < tables; ++i) {
    FVM_ASSIGN(const std::uint64_t size, cursor.size());
    const std::size_t offset = cursor.at();
    FVM_ASSIGN(const auto bytes, cursor.take(size));
    FVM_TRY(add_table(bytes, offset, parts));
  }
  return {};
}

/// Reads the message with the model; returns the names of the parts after it.
Result<std::vector<std::string_view>> read_core(std::span<const std::byte> bytes, std::size_t offset,
                                                const LoadLimits& limits, CatboostParts& parts) {
  FlatBuffer buffer(bytes, offset);
  const FlatTable root = buffer.root();
  const std::string_view version = root.text(core::kFormatVersion);
  FVM_TRY(buffer.state());
  if (version != "FlabuffersModel_v1")  // CatBoost spells it so.
    return refused("FormatVersion", "expected \"FlabuffersModel_v1\", found {}", in_quotes(version));
  const FlatTable model = root.table(core::kModelTrees);
  FVM_TRY(refuse_features(model));
  FVM_TRY(add_outputs(model, limits, parts));
  add_features(model, parts);
  FVM_TRY(add_ctrs(model, parts));
  FVM_TRY(buffer.state());
  FVM_TRY(add_forest(model, limits, parts));
  FVM_TRY(add_info(root, limits, parts));
  std::vector<std::string_view> names = root.texts(core::kModelPartIds);
  FVM_TRY(buffer.state());
  return names;
}

}  // namespace

Result<CatboostParts> read_catboost_binary(std::span<const std::byte> bytes, const LoadLimits& limits) {
  constexpr std::size_t signature = 4;
  Cursor cursor(bytes);
  FVM_TRY(cursor.take(signature));
  FVM_ASSIGN(const std::uint64_t size, cursor.size());
  const std::size_t offset = cursor.at();
  FVM_ASSIGN(const auto message, cursor.take(size));
  CatboostParts parts;
  parts.format = "catboost-cbm";
  FVM_ASSIGN(const std::vector<std::string_view> names, read_core(message, offset, limits, parts));
  for (const std::string_view name : names) {
    if (name != "static_provider_v1")
      return refused("ModelPartIds", "a part that cannot be read: {}", in_quotes(name, 40));
    FVM_TRY(add_tables(cursor, parts));
  }
  if (!cursor.at_end()) return refused(formatted("byte {}", cursor.at()), "bytes after the end of the model");
  return parts;
}

}  // namespace forestvm::frontend
