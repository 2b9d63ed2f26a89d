// Reads an XGBoost document: a table of the paths of the fields that are read, and the sink that fills these fields.
// Everything that the table does not name is skipped without being stored.
#include "frontend/xgboost_document.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <string_view>
#include <variant>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

using Header = XgboostHeader;
using Columns = XgboostTree;
using Count = std::optional<std::int64_t>;  // a number, or as XGBoost writes it, its decimal text

using Field =
    std::variant<std::monostate, std::string Header::*, Count Header::*, std::vector<std::string> Header::*,
                 std::vector<std::int32_t> Header::*, std::vector<float> Header::*, Count Columns::*,
                 std::vector<std::int32_t> Columns::*, std::vector<std::int64_t> Columns::*,
                 std::vector<float> Columns::*, std::vector<std::uint8_t> Columns::*,
                 std::vector<std::int64_t> XgboostCategories::*>;
enum class Need { Required, Optional };

struct Row {
  std::string_view path;  // [] marks an array of objects: the trees, or the features' categories
  Field field;
  Need need;
};

/// The fields. Files of DART nest "model" in one more object, "gbtree": see choose_member.
constexpr Row kRows[] = {
    {"version", &Header::version, Need::Optional},
    {"learner.attributes.best_iteration", &Header::best_iteration, Need::Optional},
    {"learner.feature_names", &Header::feature_names, Need::Optional},
    {"learner.objective.name", &Header::objective, Need::Required},
    {"learner.learner_model_param.base_score", &Header::base_score, Need::Required},
    {"learner.learner_model_param.num_feature", &Header::num_feature, Need::Required},
    {"learner.learner_model_param.num_class", &Header::num_class, Need::Required},
    {"learner.learner_model_param.num_target", &Header::num_target, Need::Optional},
    {"learner.gradient_booster.name", &Header::booster, Need::Required},
    {"learner.gradient_booster.weight_drop", &Header::weight_drop, Need::Optional},
    {"learner.gradient_booster.model.cats.enc[].offsets", &XgboostCategories::offsets, Need::Optional},
    {"learner.gradient_booster.model.cats.enc[].values", &XgboostCategories::values, Need::Required},
    {"learner.gradient_booster.model.weight_drop", &Header::model_weight_drop, Need::Optional},
    {"learner.gradient_booster.model.gbtree_model_param.num_trees", &Header::num_trees, Need::Required},
    {"learner.gradient_booster.model.gbtree_model_param.num_parallel_tree", &Header::num_parallel_tree,
     Need::Optional},
    {"learner.gradient_booster.model.tree_info", &Header::tree_info, Need::Required},
    {"learner.gradient_booster.model.iteration_indptr", &Header::iteration_indptr, Need::Optional},
    {"learner.gradient_booster.model.trees", {}, Need::Required},
    {"learner.gradient_booster.model.trees[].tree_param.num_nodes", &Columns::num_nodes, Need::Required},
    {"learner.gradient_booster.model.trees[].tree_param.size_leaf_vector", &Columns::size_leaf_vector,
     Need::Optional},
    {"learner.gradient_booster.model.trees[].left_children", &Columns::left_children, Need::Required},
    {"learner.gradient_booster.model.trees[].right_children", &Columns::right_children, Need::Required},
    {"learner.gradient_booster.model.trees[].split_indices", &Columns::split_indices, Need::Required},
    {"learner.gradient_booster.model.trees[].split_conditions", &Columns::split_conditions, Need::Required},
    {"learner.gradient_booster.model.trees[].default_left", &Columns::default_left, Need::Required},
    {"learner.gradient_booster.model.trees[].sum_hessian", &Columns::sum_hessian, Need::Optional},
    {"learner.gradient_booster.model.trees[].loss_changes", &Columns::loss_changes, Need::Optional},
    {"learner.gradient_booster.model.trees[].split_type", &Columns::split_type, Need::Optional},
    {"learner.gradient_booster.model.trees[].leaf_weights", &Columns::leaf_weights, Need::Optional},
    {"learner.gradient_booster.model.trees[].base_weights", &Columns::base_weights, Need::Optional},
    {"learner.gradient_booster.model.trees[].categories", &Columns::categories, Need::Optional},
    {"learner.gradient_booster.model.trees[].categories_nodes", &Columns::categories_nodes, Need::Optional},
    {"learner.gradient_booster.model.trees[].categories_segments", &Columns::categories_segments,
     Need::Optional},
    {"learner.gradient_booster.model.trees[].categories_sizes", &Columns::categories_sizes, Need::Optional},
};

/// The record that a field belongs to.
enum class Owner { File, Tree, Categories };

/// An object, array or value of the document that holds a field or leads to one.
struct FieldNode {
  std::string_view name;
  const FieldNode* parent = nullptr;
  Field field;
  bool required = false;
  Owner owner = Owner::File;
  std::size_t number = 0;                           // index of the field in FieldTree::all
  std::vector<std::unique_ptr<FieldNode>> members;  // members of an object
  std::unique_ptr<FieldNode> element;               // element of an array of objects
};

/// The rows of the table as a tree.
class FieldTree {
 public:
  FieldTree() {
    all_.push_back(&root_);
    for (const Row& row : kRows) {
      FieldNode* node = &root_;
      for (std::size_t at = 0; at <= row.path.size();) {
        std::string_view name = row.path.substr(at, row.path.find('.', at) - at);
        at += name.size() + 1;
        const bool array = name.ends_with("[]");
        if (array) name.remove_suffix(2);
        node = member(*node, name);
        if (array) node = element(*node);
      }
      node->field = row.field;
      node->required = row.need == Need::Required;
    }
  }

  const FieldNode& root() const { return root_; }
  const std::vector<const FieldNode*>& all() const { return all_; }

 private:
  FieldNode* add(std::unique_ptr<FieldNode>& slot, FieldNode& parent, std::string_view name) {
    slot = std::make_unique<FieldNode>();
    slot->name = name;
    slot->parent = &parent;
    slot->owner = name != "[]" ? parent.owner : parent.name == "trees" ? Owner::Tree : Owner::Categories;
    slot->number = all_.size();
    all_.push_back(slot.get());
    return slot.get();
  }
  FieldNode* member(FieldNode& parent, std::string_view name) {
    for (auto& known : parent.members)
      if (known->name == name) return known.get();
    return add(parent.members.emplace_back(), parent, name);
  }
  FieldNode* element(FieldNode& parent) {
    return parent.element ? parent.element.get() : add(parent.element, parent, "[]");
  }

  FieldNode root_;
  std::vector<const FieldNode*> all_;
};

const FieldTree& field_tree() {
  static const FieldTree table;
  return table;
}

/// Converts a decimal text to float as XGBoost does: it is rounded once, not first to double.
float float_of(double value, std::string_view text) {
  if (text.empty()) return static_cast<float>(value);
  std::string respelled(text);  // the JSON library may have written the locale's decimal point
  for (char& c : respelled)
    if ((c < '0' || c > '9') && c != '-' && c != '+' && c != 'e' && c != 'E') c = '.';
  float out = 0;
  const auto [end, code] = std::from_chars(respelled.data(), respelled.data() + respelled.size(), out);
  const bool whole = code == std::errc() && end == respelled.data() + respelled.size();
  return whole ? out : static_cast<float>(value);
}

class Sink final : public EventSink {
 public:
  explicit Sink(const TreeReceiver& receive, std::uint32_t max_depth)
      : receive_(receive), frames_(max_depth + 1), seen_(field_tree().all().size()) {}

  bool on_null() override;
  bool on_flag(bool value) override;
  bool on_integer(std::int64_t value) override;
  bool on_real(double value, std::string_view text) override;
  bool on_text(std::string& value) override;
  bool on_key(const std::string& name) override;
  bool on_object_begin() override;
  bool on_object_end() override;
  bool on_array_begin() override;
  bool on_array_end() override;
  Error error() const override { return error_; }
  std::string path() const override;

  Result<XgboostHeader> finish();

 private:
  /// An open object or array.
  struct Frame {
    const FieldNode* node = nullptr;  // null if everything inside is skipped
    bool array = false;
    const FieldNode* member = nullptr;  // object: the node of the latest key
    std::string key;                    // object: the latest key
    std::size_t count = 0;              // array: values so far, the latest included
  };

  const FieldNode* next_node();
  bool on_other(std::string_view found);
  bool wrong(std::string_view found);
  bool refuse(std::string_view message) {
    error_ = refused(path(), message);
    return false;
  }
  bool open(const FieldNode* node, bool array);
  bool choose_member(Frame& frame, const std::string& name);
  bool store_count(const FieldNode& node, std::int64_t value);
  bool missing(Owner owner, const std::string& element_path);
  std::string path_of(const FieldNode& node) const;
  template <class Value>
  Value* target(const Field& field);

  /// The array that is being filled.
  struct Column {
    enum { None, Integers, LongIntegers, Reals, Flags, Texts } which = None;
    std::vector<std::int32_t>* integers = nullptr;
    std::vector<std::int64_t>* long_integers = nullptr;
    std::vector<float>* reals = nullptr;
    std::vector<std::uint8_t>* flags = nullptr;
    std::vector<std::string>* texts = nullptr;
  };

  const TreeReceiver& receive_;
  std::vector<Frame> frames_;
  std::size_t depth_ = 0;
  Column column_;
  XgboostHeader header_;
  XgboostTree tree_;
  XgboostCategories categories_;
  std::vector<char> seen_;  // 1 for each field that was read, by FieldNode::number
  bool nested_model_ = false;
  Error error_;
};

/// Returns the node of the next value, or null if the value is skipped. Counts the elements of arrays.
const FieldNode* Sink::next_node() {
  if (depth_ == 0) return &field_tree().root();
  Frame& frame = frames_[depth_ - 1];
  if (!frame.array) return frame.member;
  ++frame.count;
  return frame.node == nullptr ? nullptr : frame.node->element.get();
}

std::string_view expected_at(const FieldNode& node) {
  if (node.element) return "an array";
  if (!node.members.empty()) return "an object";
  if (std::holds_alternative<std::string Header::*>(node.field)) return "a string";
  if (std::holds_alternative<Count Header::*>(node.field) ||
      std::holds_alternative<Count Columns::*>(node.field))
    return "an integer";
  return "an array";
}

bool Sink::wrong(std::string_view found) {
  constexpr std::array<std::string_view, 6> elements = {
      "", "integers", "integers", "numbers", "true, false, 0 or 1", "strings"};
  std::string message = "expected ";
  if (column_.which != Column::None)
    message += "an array of " + std::string(elements[column_.which]);
  else if (depth_ == 0)
    message += "an object";
  else
    message += expected_at(frames_[depth_ - 1].array ? *frames_[depth_ - 1].node->element
                                                     : *frames_[depth_ - 1].member);
  return refuse(formatted("{}, found {}", message, found));
}

template <class Value>
Value* Sink::target(const Field& field) {
  if constexpr (!std::is_same_v<Value, std::vector<std::int64_t>>)
    if (auto member = std::get_if<Value Header::*>(&field)) return &(header_.**member);
  if constexpr (!std::is_same_v<Value, std::string> && !std::is_same_v<Value, std::vector<std::string>>)
    if (auto member = std::get_if<Value Columns::*>(&field)) return &(tree_.**member);
  if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>)
    if (auto member = std::get_if<Value XgboostCategories::*>(&field)) return &(categories_.**member);
  return nullptr;
}

/// Refuses or skips a value that no column takes.
bool Sink::on_other(std::string_view found) {
  if (column_.which != Column::None) {
    ++frames_[depth_ - 1].count;
    return wrong(found);
  }
  return next_node() == nullptr || wrong(found);
}

bool Sink::on_null() { return on_other("null"); }

bool Sink::on_flag(bool value) {
  if (column_.which == Column::Flags) {
    ++frames_[depth_ - 1].count;
    column_.flags->push_back(value ? 1 : 0);
    return true;
  }
  return on_other("true or false");
}

bool Sink::on_integer(std::int64_t value) {
  if (column_.which == Column::None) {
    const FieldNode* node = next_node();
    return node == nullptr || store_count(*node, value);
  }
  ++frames_[depth_ - 1].count;
  switch (column_.which) {
    case Column::Integers:
      if (value < std::numeric_limits<std::int32_t>::min() ||
          value > std::numeric_limits<std::int32_t>::max())
        return refuse(formatted("the integer {} does not fit in 32 bits", value));
      column_.integers->push_back(static_cast<std::int32_t>(value));
      return true;
    case Column::LongIntegers:
      column_.long_integers->push_back(value);
      return true;
    case Column::Reals:
      column_.reals->push_back(static_cast<float>(value));
      return true;
    case Column::Flags:
      if (value != 0 && value != 1) return wrong(std::to_string(value));
      column_.flags->push_back(static_cast<std::uint8_t>(value));
      return true;
    default:
      return wrong("an integer");
  }
}

bool Sink::on_real(double value, std::string_view text) {
  if (column_.which != Column::Reals) return on_other("a number that is not a 32-bit integer");
  ++frames_[depth_ - 1].count;
  column_.reals->push_back(float_of(value, text));
  return true;
}

bool Sink::store_count(const FieldNode& node, std::int64_t value) {
  Count* count = target<Count>(node.field);
  if (count == nullptr) return wrong("an integer");
  *count = value;
  return true;
}

bool Sink::on_text(std::string& value) {
  if (column_.which != Column::None) {
    ++frames_[depth_ - 1].count;
    if (column_.which != Column::Texts) return wrong("a string");
    column_.texts->push_back(std::move(value));
    return true;
  }
  const FieldNode* node = next_node();
  if (node == nullptr) return true;
  if (std::string* text = target<std::string>(node->field)) {
    *text = std::move(value);
    return true;
  }
  if (target<Count>(node->field) == nullptr) return wrong("a string");
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size()) return wrong(in_quotes(value));
  return store_count(*node, number);
}

/// Finds the node of a member. DART's "gradient_booster.gbtree.model" is read as "gradient_booster.model".
bool Sink::choose_member(Frame& frame, const std::string& name) {
  frame.member = nullptr;
  if (frame.node == nullptr) return true;
  const bool inside_nested = depth_ >= 2 && frames_[depth_ - 2].node == frame.node;
  if (inside_nested && name != "model") return true;  // its "name" is not the name of the booster
  if (frame.node->name == "gradient_booster" && name == "gbtree") {
    if (nested_model_) return refuse("given twice");
    nested_model_ = true;
    frame.member = frame.node;
    return true;
  }
  for (const auto& member : frame.node->members)
    if (member->name == name) frame.member = member.get();
  if (frame.member == nullptr) return true;
  char& seen = seen_[frame.member->number];
  if (seen != 0) return refuse("given twice");
  seen = 1;
  return true;
}

bool Sink::on_key(const std::string& name) {
  Frame& frame = frames_[depth_ - 1];
  frame.key = name;
  return choose_member(frame, name);
}

bool Sink::open(const FieldNode* node, bool array) {
  Frame& frame = frames_[depth_++];
  frame.node = node;
  frame.array = array;
  frame.member = nullptr;
  frame.key.clear();
  frame.count = 0;
  return true;
}

bool Sink::on_object_begin() {
  if (column_.which != Column::None) return on_other("an object");
  const FieldNode* node = next_node();
  if (node != nullptr && node->members.empty()) return wrong("an object");
  if (node != nullptr && node->name == "[]") {
    tree_.clear();
    categories_ = {};
    for (const FieldNode* known : field_tree().all())
      if (known->owner == node->owner) seen_[known->number] = 0;
  }
  return open(node, false);
}

bool Sink::on_object_end() {
  const FieldNode* node = frames_[--depth_].node;
  if (node == nullptr || node->name != "[]") return true;
  const std::string element_path = path();
  if (missing(node->owner, element_path)) return false;
  if (node->owner == Owner::Categories) {
    header_.categories.push_back(std::move(categories_));
    return true;
  }
  const Result<void> received = receive_(tree_, frames_[depth_ - 1].count - 1, element_path);
  if (!received.ok()) error_ = received.error();
  return received.ok();
}

bool Sink::on_array_begin() {
  if (column_.which != Column::None) return on_other("an array");
  const FieldNode* node = next_node();
  if (node == nullptr || node->element) return open(node, true);
  if ((column_.integers = target<std::vector<std::int32_t>>(node->field)) != nullptr)
    column_.which = Column::Integers;
  else if ((column_.long_integers = target<std::vector<std::int64_t>>(node->field)) != nullptr)
    column_.which = Column::LongIntegers;
  else if ((column_.reals = target<std::vector<float>>(node->field)) != nullptr)
    column_.which = Column::Reals;
  else if (auto flags = std::get_if<std::vector<std::uint8_t> Columns::*>(&node->field))
    column_.which = (column_.flags = &(tree_.**flags), Column::Flags);
  else if ((column_.texts = target<std::vector<std::string>>(node->field)) != nullptr)
    column_.which = Column::Texts;
  else
    return wrong("an array");
  return open(node, true);
}

bool Sink::on_array_end() {
  column_ = {};
  --depth_;
  return true;
}

std::string Sink::path() const {
  std::string out;
  for (std::size_t i = 0; i < depth_; ++i) {
    const Frame& frame = frames_[i];
    if (frame.array) {
      if (frame.count > 0) out.append("[").append(std::to_string(frame.count - 1)).append("]");
    } else if (!frame.key.empty()) {
      out.append(out.empty() ? "" : ".").append(printable(frame.key, 40));
    }
  }
  return out;
}

std::string Sink::path_of(const FieldNode& node) const {
  if (node.parent == nullptr) return "";
  std::string out = path_of(*node.parent);
  if (node.name == "[]") return out + "[]";
  const bool nested = nested_model_ && node.name == "model";
  return out.append(out.empty() ? "" : ".").append(nested ? "gbtree." : "").append(node.name);
}

/// Returns true, and sets the error, if a required field of the record was not given.
bool Sink::missing(Owner owner, const std::string& element_path) {
  for (const FieldNode* node : field_tree().all()) {
    if (!node->required || node->owner != owner || seen_[node->number] != 0) continue;
    std::string where = path_of(*node);
    if (owner != Owner::File) where = element_path + where.substr(where.find("[]") + 2);
    error_ = refused(where, "this field is required and missing");
    return true;
  }
  return false;
}

Result<XgboostHeader> Sink::finish() {
  // Refuses a linear booster before missing fields, because it has no trees and so lacks their fields.
  if (header_.booster == "gblinear")
    return refused(
        "learner.gradient_booster.name",
        "a linear model (gblinear), which has no trees: its prediction is base_score plus the sum of "
        "gradient_booster.model.weights times the features");
  if (!header_.booster.empty() && header_.booster != "gbtree" && header_.booster != "dart")
    return refused("learner.gradient_booster.name",
                   "the booster {} is not a forest: only gbtree and dart can be read",
                   in_quotes(header_.booster));
  if (header_.objective.empty() && header_.booster.empty() && missing(Owner::File, ""))
    return refused(error_.where, "{}: not an XGBoost model", error_.message);
  if (missing(Owner::File, "")) return error_;
  header_.model_path = formatted("learner.gradient_booster.{}model", nested_model_ ? "gbtree." : "");
  return std::move(header_);
}

}  // namespace

void XgboostTree::clear() {
  left_children.clear();
  right_children.clear();
  split_indices.clear();
  split_type.clear();
  split_conditions.clear();
  sum_hessian.clear();
  loss_changes.clear();
  default_left.clear();
  leaf_weights.clear();
  base_weights.clear();
  categories.clear();
  categories_nodes.clear();
  categories_segments.clear();
  categories_sizes.clear();
  num_nodes.reset();
  size_leaf_vector.reset();
}

Result<XgboostHeader> read_xgboost_document(std::span<const std::byte> bytes, Syntax syntax,
                                            std::uint32_t max_depth, const TreeReceiver& receive) {
  const std::uint32_t depth = std::min(max_depth, kDeepestNesting);
  Sink sink(receive, depth);
  FVM_TRY(read_events(bytes, syntax, depth, sink));
  return sink.finish();
}

}  // namespace forestvm::frontend
