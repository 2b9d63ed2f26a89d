// See catboost_document.hpp.
#include "frontend/catboost_document.hpp"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/catboost_tree.hpp"
#include "frontend/json_events.hpp"

namespace forestvm::frontend {
namespace {

/// The objects and arrays of the document that are read.
enum class Container : std::uint8_t {
  Skipped,
  Root,
  CtrData,
  Table,
  HashMap,
  FeaturesInfo,
  Floats,
  Float,
  FloatBorders,
  Categories,
  Category,
  Codes,
  Ctrs,
  Ctr,
  CtrBorders,
  Elements,
  Element,
  ModelInfo,
  ClassParams,
  ClassNames,
  ClassLabels,
  Params,
  Boosting,
  Loss,
  CounterParams,
  FeatureOptions,
  CounterOptions,
  CounterOption,
  TargetClasses,
  ObliviousTrees,
  ObliviousTree,
  Splits,
  Split,
  Trees,
  Branch,
  BranchSplit,
  LeafValues,
  LeafWeights,
  ScaleAndBias,
  Bias
};

/// A value that is neither an object nor an array.
struct Scalar {
  enum class Kind : std::uint8_t { Null, Flag, Whole, Real, Text } kind = Kind::Null;
  std::int64_t whole = 0;
  double real = 0;
  std::string_view text;
};

/// A node of the tree that is being read, in the order of the document.
struct BranchRecord {
  std::int64_t split = -1;
  std::int32_t left = -1;
  std::int32_t right = -1;
  std::size_t first_value = 0;
  std::size_t values = 0;
  double weight = 0;
};

/// The parts that have been read so far, and the objects that are not complete yet.
struct CatboostReading {
  CatboostParts& parts;
  const LoadLimits& limits;
  std::size_t table_rows = 0;
  std::int64_t table_stride = 0;
  std::size_t option_lists = 0;
  struct {
    std::string kind;
    std::int64_t category = -1, number = -1, code = 0;
    float border = 0;
  } element;
  std::int64_t split = -1;
  std::vector<std::uint32_t> splits;
  std::vector<BranchRecord> branches;
  std::vector<double> values;
  std::vector<double> weights;
  std::size_t scale_and_bias = 0;
};

bool set_whole(const Scalar& s, std::int64_t& out) {
  out = s.whole;
  return s.kind == Scalar::Kind::Whole;
}
bool set_flag(const Scalar& s, bool& out) {
  out = s.whole != 0;
  return s.kind == Scalar::Kind::Flag;
}
bool set_text(const Scalar& s, std::string& out) {
  out = s.text;
  return s.kind == Scalar::Kind::Text;
}
bool set_real(const Scalar& s, double& out) {
  out = s.kind == Scalar::Kind::Whole ? static_cast<double>(s.whole) : s.real;
  return s.kind == Scalar::Kind::Whole || s.kind == Scalar::Kind::Real;
}
bool add_real(const Scalar& s, std::vector<double>& out) { return set_real(s, out.emplace_back()); }
bool set_float(const Scalar& s, float& out) {
  double real = 0;
  if (!set_real(s, real) || std::abs(real) > std::numeric_limits<float>::max()) return false;
  out = static_cast<float>(real);
  return true;
}
bool add_float(const Scalar& s, std::vector<float>& out) { return set_float(s, out.emplace_back()); }
bool add_code(const Scalar& s, std::vector<std::int32_t>& out) {
  out.push_back(static_cast<std::int32_t>(s.whole));
  return s.kind == Scalar::Kind::Whole && s.whole == out.back();
}

/// Takes a hash, which is a text, or a number of the latest hash's row. A hash whose bits are all 1 stands for an empty
/// slot.
bool add_hash(CatboostReading& r, const Scalar& s) {
  CatboostTable& table = r.parts.tables.back();
  if (s.kind != Scalar::Kind::Text) return r.table_rows != 0 && add_real(s, table.numbers);
  if (r.table_rows == 1) table.width = static_cast<std::uint32_t>(table.numbers.size());
  if (table.numbers.size() != r.table_rows * table.width) return false;
  std::uint64_t key = 0;
  const auto [end, code] = std::from_chars(s.text.data(), s.text.data() + s.text.size(), key);
  if (code != std::errc() || end != s.text.data() + s.text.size()) return false;
  if (key != std::numeric_limits<std::uint64_t>::max()) {
    table.keys.push_back(key);
    table.rows.push_back(static_cast<std::uint32_t>(r.table_rows));
  }
  ++r.table_rows;
  return true;
}

bool set_ctr_type(CtrType& out, const Scalar& s) {
  constexpr std::string_view names[] = {
      "Borders", "Buckets", "BinarizedTargetMeanValue", "FloatTargetMeanValue", "Counter", "FeatureFreq"};
  const auto* found = std::find(std::begin(names), std::end(names), s.text);
  out = static_cast<CtrType>(found - std::begin(names));
  return s.kind == Scalar::Kind::Text && found != std::end(names);
}

bool set_nan_treatment(CatboostReading& r, const Scalar& s) {
  r.parts.float_features.back().nan_above = s.text == "AsTrue";
  return s.text == "AsTrue" || s.text == "AsFalse" || s.text == "AsIs";
}

/// Takes the name of a class: a text as it is, a number as Python writes it.
bool add_class_name(CatboostReading& r, const Scalar& s) {
  std::string& name = r.parts.class_names.emplace_back(s.text);
  if (s.kind == Scalar::Kind::Flag) name = s.whole != 0 ? "True" : "False";
  if (s.kind == Scalar::Kind::Whole) name = std::to_string(s.whole);
  if (s.kind == Scalar::Kind::Real) {
    char text[32];
    name.assign(text, std::to_chars(text, text + sizeof(text), s.real).ptr);
  }
  return s.kind != Scalar::Kind::Null;
}

bool add_scale_or_bias(CatboostReading& r, const Scalar& s) {
  return r.scale_and_bias++ == 0 ? set_real(s, r.parts.scale) : add_real(s, r.parts.bias);
}

bool add_leaf_value(CatboostReading& r, const Scalar& s) {
  if (!r.branches.empty()) ++r.branches.back().values;
  return add_real(s, r.values);
}

enum class Shape : std::uint8_t { Object, Array, Scalar };

/// A value that is read: see catboost_fields.def.
struct KeyRow {
  Container parent;
  std::string_view key;
  Shape shape;
  Container container = Container::Skipped;  ///< objects and arrays
  bool (*store)(CatboostReading&, const Scalar&) = nullptr;
  const char* expected = "";
};

constexpr KeyRow kKeyRows[] = {
#define FVM_OBJECT(parent, key, container) {Container::parent, key, Shape::Object, Container::container},
#define FVM_ARRAY(parent, key, container) {Container::parent, key, Shape::Array, Container::container},
#define FVM_SCALAR(parent, key, call, expected)                                            \
  {Container::parent, key, Shape::Scalar, {}, [](CatboostReading& r, const Scalar& s) { return call; }, \
   expected},
#include "frontend/catboost_fields.def"
};

class Sink final : public EventSink {
 public:
  /// `root` is the container that the whole document is.
  Sink(Container root, const LoadLimits& limits, CatboostParts& parts)
      : root_(root),
        reading_{.parts = parts,
                 .limits = limits,
                 .element = {},
                 .splits = {},
                 .branches = {},
                 .values = {},
                 .weights = {}} {}

  bool on_null() override { return scalar({}, "null"); }
  bool on_flag(bool value) override {
    return scalar({Scalar::Kind::Flag, value ? 1 : 0, 0, {}}, value ? "true" : "false");
  }
  bool on_integer(std::int64_t value) override {
    return scalar({Scalar::Kind::Whole, value, 0, {}}, std::to_string(value));
  }
  bool on_real(double value, std::string_view text) override {
    return scalar({Scalar::Kind::Real, 0, value, {}}, text);
  }
  bool on_text(std::string& value) override { return scalar({Scalar::Kind::Text, 0, 0, value}, value); }
  bool on_key(const std::string& name) override;
  bool on_object_begin() override { return open(Shape::Object); }
  bool on_object_end() override { return close(); }
  bool on_array_begin() override { return open(Shape::Array); }
  bool on_array_end() override { return close(); }
  Error error() const override { return error_; }
  std::string path() const override;

 private:
  /// An open object or array.
  struct Frame {
    Container container = Container::Skipped;
    bool array = false;
    std::string key;                        // object: the latest key
    std::size_t count = 0;                  // array: values so far, the latest included
    std::size_t branch = 0;                 // Branch: its number
    std::bitset<std::size(kKeyRows)> seen;  // object: rows whose key was read
  };

  static const KeyRow* key_row(Container parent, std::string_view key, Shape shape);
  bool scalar(const Scalar& value, std::string_view found);
  bool open(Shape shape);
  bool close();
  bool begin(Container container);
  bool end(const Frame& frame);
  bool end_table();
  bool end_element();
  bool begin_branch();
  bool end_oblivious_tree();
  bool end_tree();
  bool accepts(std::size_t width);
  bool refuse(std::string_view message) {
    error_ = refused(path(), message);
    return false;
  }

  Container root_;
  CatboostReading reading_;
  std::vector<Frame> frames_;
  Error error_;
};

const KeyRow* Sink::key_row(Container parent, std::string_view key, Shape shape) {
  for (const KeyRow& row : kKeyRows)
    if (row.parent == parent && row.shape == shape && (row.key == key || row.key == "*")) return &row;
  return nullptr;
}

/// Takes a value. CatBoost writes null for some empty arrays.
bool Sink::scalar(const Scalar& value, std::string_view found) {
  if (frames_.empty()) return refuse("expected an object, found " + in_quotes(found, 40));
  Frame& frame = frames_.back();
  ++frame.count;
  if (frame.container == Container::Skipped) return true;
  const std::string_view key = frame.array ? std::string_view("[]") : frame.key;
  if (const KeyRow* row = key_row(frame.container, key, Shape::Scalar)) {
    if (row->store(reading_, value)) return true;
    return refuse(formatted("expected {}, found {}", row->expected, in_quotes(found, 40)));
  }
  const bool known = key_row(frame.container, key, Shape::Array) != nullptr ||
                     key_row(frame.container, key, Shape::Object) != nullptr;
  return !known || value.kind == Scalar::Kind::Null ||
         refuse("expected an object or an array, found " + in_quotes(found, 40));
}

bool Sink::on_key(const std::string& name) {
  Frame& frame = frames_.back();
  frame.key = name;
  if (frame.container == Container::Skipped) return true;
  bool known = false;
  for (std::size_t i = 0; i < std::size(kKeyRows); ++i) {
    if (kKeyRows[i].parent != frame.container || (kKeyRows[i].key != name && kKeyRows[i].key != "*"))
      continue;
    if (kKeyRows[i].key != "*" && frame.seen[i]) return refuse("given twice");
    known = frame.seen[i] = true;
  }
  if (frame.container == Container::Branch && (name == "value" || name == "weight") &&
      frame.branch + 1 != reading_.branches.size())
    return refuse("a node that is neither a split nor a leaf");
  if (frame.container == Container::FeaturesInfo && !known)
    return refuse("features of this kind cannot be read: only numbers, categories and their counters");
  if (frame.container == Container::Root && !known) return refuse("a part of the model that cannot be read");
  return true;
}

bool Sink::open(Shape shape) {
  Container container = Container::Skipped;
  if (frames_.empty()) {
    if (shape == Shape::Array) return refuse("expected an object, found an array");
    container = root_;
  } else {
    Frame& frame = frames_.back();
    ++frame.count;
    const std::string_view key = frame.array ? std::string_view("[]") : frame.key;
    const KeyRow* row = key_row(frame.container, key, shape);
    if (row != nullptr) container = row->container;
    for (const Shape other : {Shape::Scalar, Shape::Array, Shape::Object})
      if (frame.container != Container::Skipped && row == nullptr &&
          key_row(frame.container, key, other) != nullptr)
        return refuse(shape == Shape::Array ? "an array is not expected here"
                                            : "an object is not expected here");
  }
  if (!begin(container)) return false;
  frames_.emplace_back();
  frames_.back().container = container;
  frames_.back().array = shape == Shape::Array;
  if (container == Container::Branch) frames_.back().branch = reading_.branches.size() - 1;
  return true;
}

bool Sink::close() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  return end(frame);
}

/// Prepares the object or array, whose parent is the last frame.
bool Sink::begin(Container container) {
  CatboostReading& r = reading_;
  switch (container) {
    case Container::Table:
      r.parts.tables.emplace_back();
      r.parts.tables.back().name = frames_.back().key;
      r.parts.tables.back().where = formatted("ctr_data: table {}", r.parts.tables.size() - 1);
      r.table_rows = 0;
      r.table_stride = 0;
      return true;
    case Container::Float:
      r.parts.float_features.emplace_back();
      return true;
    case Container::Category:
      r.parts.categorical_features.emplace_back();
      return true;
    case Container::Codes:
      r.parts.one_hots.emplace_back();
      return true;
    case Container::Ctr:
      r.parts.ctrs.emplace_back();
      return true;
    case Container::CounterOptions:
      ++r.option_lists;
      return true;
    case Container::CounterOption:
      r.parts.ctr_options.emplace_back();
      r.parts.ctr_options.back().list = r.option_lists;
      r.parts.ctr_options.back().of_combinations = frames_[frames_.size() - 2].key == "combinations_ctrs";
      return true;
    case Container::Element:
      r.element = {};
      return true;
    case Container::Split:
    case Container::BranchSplit:
      r.split = -1;
      return true;
    case Container::ObliviousTree:
      r.branches.clear();
      r.splits.clear();
      r.values.clear();
      r.weights.clear();
      return true;
    case Container::Branch:
      return begin_branch();
    default:
      return true;
  }
}

/// Completes an object or array that has just been closed.
bool Sink::end(const Frame& frame) {
  switch (frame.container) {
    case Container::Table:
      return end_table();
    case Container::Category:
      if (!reading_.parts.one_hots.empty() && reading_.parts.one_hots.back().category < 0)
        reading_.parts.one_hots.back().category = reading_.parts.categorical_features.back().index;
      return true;
    case Container::Element:
      return end_element();
    case Container::Split:
      if (reading_.split < 0 || reading_.split > std::numeric_limits<std::int32_t>::max())
        return refuse("split_index is missing or does not exist");
      reading_.splits.push_back(static_cast<std::uint32_t>(reading_.split));
      return true;
    case Container::BranchSplit:
      reading_.branches[frames_.back().branch].split = reading_.split;
      return true;
    case Container::ObliviousTree:
      return end_oblivious_tree();
    case Container::Branch:
      return frame.branch != 0 || end_tree();
    default:
      return true;
  }
}

bool Sink::end_table() {
  CatboostTable& table = reading_.parts.tables.back();
  if (reading_.table_rows <= 1) table.width = static_cast<std::uint32_t>(table.numbers.size());
  if (table.numbers.size() != reading_.table_rows * table.width)
    return refuse("hash_map: the last hash has fewer or more numbers than the others");
  if (reading_.table_rows != 0 && reading_.table_stride != std::int64_t{table.width} + 1)
    return refuse(formatted("hash_stride: says {}, but the hash map has {} numbers after each hash",
                            reading_.table_stride, table.width));
  return true;
}

bool Sink::end_element() {
  const auto& element = reading_.element;
  CatboostCombination& combination = reading_.parts.ctrs.back().combination;
  if (element.kind == "cat_feature_value")
    combination.categories.push_back(element.category);
  else if (element.kind == "float_feature")
    combination.value_tests.emplace_back(element.number, element.border);
  else if (element.kind == "cat_feature_exact_value" &&
           element.code == static_cast<std::int32_t>(element.code))
    combination.code_tests.emplace_back(element.category, static_cast<std::int32_t>(element.code));
  else
    return refuse("unknown or damaged element of a combination: " + in_quotes(element.kind, 40));
  return true;
}

bool Sink::begin_branch() {
  std::vector<BranchRecord>& branches = reading_.branches;
  const Frame& parent = frames_.back();
  if (parent.container == Container::Trees) {
    branches.clear();
    reading_.values.clear();
  } else {
    const auto number = static_cast<std::int32_t>(branches.size());
    (parent.key == "left" ? branches[parent.branch].left : branches[parent.branch].right) = number;
  }
  branches.emplace_back();
  branches.back().first_value = reading_.values.size();
  return true;
}

bool Sink::end_oblivious_tree() {
  const std::size_t levels = reading_.splits.size(), values = reading_.values.size();
  const std::size_t width = levels > 31 ? 0 : values >> levels;
  if (width == 0 || width << levels != values)
    return refuse(formatted("{} leaf values for {} splits", values, levels));
  if (!reading_.weights.empty() && reading_.weights.size() != std::size_t{1} << levels)
    return refuse(formatted("{} leaf weights for {} splits", reading_.weights.size(), levels));
  if (!accepts(width)) return false;
  reading_.parts.trees.push_back(oblivious_tree(
      reading_.splits, {reading_.values, reading_.weights, static_cast<std::uint32_t>(width)}));
  return true;
}

/// Numbers splits and leaves depth-first, left before right, as CatBoost does when it loads the document.
bool Sink::end_tree() {
  const std::vector<BranchRecord>& branches = reading_.branches;
  std::vector<CatboostBranch> splits;
  std::vector<double> values, weights;
  std::int32_t leaves = 0;
  std::size_t width = 0;
  struct Waiting {
    std::int32_t branch;
    std::int32_t parent;
    bool left;
  };
  std::vector<Waiting> waiting = {{0, -1, false}};
  while (!waiting.empty()) {
    const Waiting at = waiting.back();
    waiting.pop_back();
    if (at.branch < 0) return refuse("a split without two children");
    const BranchRecord& record = branches[static_cast<std::size_t>(at.branch)];
    const bool leaf = record.split < 0 && record.left < 0 && record.right < 0;
    if (!leaf &&
        (record.split < 0 || record.split > std::numeric_limits<std::int32_t>::max() || record.values != 0))
      return refuse("a node that is neither a split nor a leaf");
    if (at.parent >= 0) {
      CatboostBranch& parent = splits[static_cast<std::size_t>(at.parent)];
      (at.left ? parent.left : parent.right) = leaf ? -1 - leaves : static_cast<std::int32_t>(splits.size());
    }
    if (leaf) {
      if (leaves++ == 0) width = record.values;
      if (width == 0 || record.values != width)
        return refuse("leaves with different numbers of values, or none");
      const auto first = reading_.values.begin() + static_cast<std::ptrdiff_t>(record.first_value);
      values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(width));
      weights.push_back(record.weight);
      continue;
    }
    const auto number = static_cast<std::int32_t>(splits.size());
    splits.push_back({static_cast<std::uint32_t>(record.split), -1, -1});
    waiting.push_back({record.right, number, false});
    waiting.push_back({record.left, number, true});
  }
  if (!accepts(width)) return false;
  reading_.parts.trees.push_back(
      branching_tree(splits, {values, weights, static_cast<std::uint32_t>(width)}));
  return true;
}

/// Returns whether one more tree, with `width` values per leaf, fits the model.
bool Sink::accepts(std::size_t width) {
  CatboostParts& parts = reading_.parts;
  if (width > reading_.limits.max_outputs)
    return refuse(formatted("more outputs than the limit of {}", reading_.limits.max_outputs));
  if (parts.trees.size() >= reading_.limits.max_trees)
    return refuse(formatted("more trees than the limit of {}", reading_.limits.max_trees));
  if (parts.trees.empty()) parts.num_outputs = static_cast<std::uint32_t>(width);
  return width == parts.num_outputs ||
         refuse(formatted("{} values per leaf, but the trees before it have {}", width, parts.num_outputs));
}

std::string Sink::path() const {
  std::string out;
  for (const Frame& frame : frames_) {
    if (frame.array) {
      if (frame.count > 0) out.append("[").append(std::to_string(frame.count - 1)).append("]");
    } else if (!frame.key.empty()) {
      out.append(out.empty() ? "" : ".").append(printable(frame.key, 40));
    }
  }
  return out.empty() ? "document" : out;
}

}  // namespace

Result<CatboostParts> read_catboost_document(std::span<const std::byte> bytes, const LoadLimits& limits) {
  CatboostParts parts;
  parts.format = "catboost-json";
  Sink sink(Container::Root, limits, parts);
  FVM_TRY(read_events(bytes, Syntax::Json, limits.max_depth, sink));
  if (parts.trees.empty() && !parts.bias.empty())
    parts.num_outputs = static_cast<std::uint32_t>(parts.bias.size());
  return parts;
}

Result<void> add_catboost_info(std::string_view key, std::string_view value, const LoadLimits& limits,
                               CatboostParts& parts) {
  if (key == "catboost_version_info") parts.version = value;
  if (key == "binclass_probability_threshold") parts.probability_threshold = value;
  if (key != "params" && key != "class_params") return {};
  Sink sink(key == "params" ? Container::Params : Container::ClassParams, limits, parts);
  const Result<void> read =
      read_events(std::as_bytes(std::span(value)), Syntax::Json, limits.max_depth, sink);
  if (!read.ok())
    return Error{read.error().code, formatted("InfoMap.{}: {}", key, read.error().where),
                 read.error().message};
  return {};
}

}  // namespace forestvm::frontend
