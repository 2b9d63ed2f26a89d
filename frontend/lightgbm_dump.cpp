// See lightgbm_dump.hpp. The sink keeps the header's members, and the nodes of one tree at a time, which it turns into
// a Tree at the tree's end.
#include "frontend/lightgbm_dump.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/json_events.hpp"
#include "frontend/lightgbm_dump_tree.hpp"
#include "frontend/lightgbm_header.hpp"
#include "frontend/pandas_categories.hpp"

namespace forestvm::frontend {
namespace {

/// The least number of bytes that a node takes in a document, as in {"leaf_index":0,"leaf_value":1}. A file with more
/// nodes than its size allows is refused, so that a small file of empty nodes cannot take much memory.
constexpr std::size_t kMinNodeBytes = 31;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// An entry of feature_infos: the largest value of a feature in training, or that it is categorical.
struct FeatureInfo {
  double largest = kNoLimit;
  bool categorical = false;
};

/// The members of the document's object that are used; finish() turns them into entries of a text model.
struct Members {
  std::string name, version, objective;
  std::optional<std::int64_t> num_class, num_tree_per_iteration, max_feature_idx;
  std::optional<bool> average_output;
  std::vector<std::string> feature_names;
  std::unordered_map<std::string, FeatureInfo> infos;
  bool has_infos = false;
};

class DumpSink final : public EventSink {
 public:
  DumpSink(std::size_t bytes, const LoadLimits& limits, Model& model)
      : most_nodes_(bytes / kMinNodeBytes + 1), limits_(limits), model_(model) {}

  bool on_null() override {
    if (in_pandas()) return told(pandas_.on_null());
    return !in_column() || wrong("null");
  }
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

  /// Sets everything but the trees.
  Result<void> finish();

 private:
  enum class Kind {
    Skipped,
    Document,
    Names,
    Infos,
    Info,
    InfoValues,
    Trees,
    Tree,
    Node,
    Features,
    Coefficients
  };
  /// An open object or array. `key` is the latest one of an object, `node` the number of a node.
  struct Frame {
    Kind kind = Kind::Skipped;
    std::string key;
    std::size_t node = 0;
  };

  Kind kind() const { return frames_.empty() ? Kind::Skipped : frames_.back().kind; }
  const std::string& key() const { return frames_.back().key; }
  bool in_pandas() const {
    return kind() == Kind::Document && key() == "pandas_categorical" && !pandas_.done();
  }
  bool in_column() const {
    return kind() == Kind::Names || kind() == Kind::Features || kind() == Kind::Coefficients;
  }
  bool told(bool accepted) {
    if (!accepted) error_ = pandas_.error();
    return accepted;
  }
  bool refuse(std::string_view message) {
    error_ = refused(path(), message);
    return false;
  }
  bool wrong(const std::string& found) {
    return refuse(formatted("found {}, which does not belong here", found));
  }
  LightgbmDumpNode& node() { return nodes_[frames_.back().node]; }
  LightgbmDumpExtras& extras() {
    if (!node().extras) node().extras = std::make_unique<LightgbmDumpExtras>();
    return *node().extras;
  }
  bool set_kind(const std::string& text) {
    if (text != "<=" && text != "==") return refuse("unknown: " + in_quotes(text));
    node().kind = text == "<=" ? NodeKind::LessEqual : NodeKind::Category;
    return true;
  }
  bool set_missing(const std::string& text) {
    if (text != "None" && text != "Zero" && text != "NaN") return refuse("unknown: " + in_quotes(text));
    node().missing = text == "None" ? Missing::None : text == "Zero" ? Missing::Zero : Missing::Nan;
    return true;
  }
  bool open(Kind kind) {
    // Nodes are nested in their parents, so they do not count.
    if (kind != Kind::Node && ++depth_ > limits_.max_depth)
      return refuse(formatted("nested deeper than {} levels", limits_.max_depth));
    frames_.push_back({kind, "", nodes_.empty() ? 0 : nodes_.size() - 1});
    return true;
  }
  Kind close() {
    const Kind ended = kind();
    if (ended != Kind::Node) --depth_;
    frames_.pop_back();
    return ended;
  }
  bool open_node();
  bool end_tree();
  bool member_integer(std::int64_t value);
  bool node_number(double value);
  std::vector<double> largest_values() const;

  std::uint64_t most_nodes_;
  const LoadLimits& limits_;
  Model& model_;
  std::vector<Frame> frames_;
  std::uint32_t depth_ = 0;              // the number of open frames that are not nodes
  std::vector<LightgbmDumpNode> nodes_;  // the current tree's nodes
  std::vector<double> largest_;          // largest training values, from the first tree on
  std::uint64_t all_nodes_ = 0;
  Members members_;
  PandasCategories pandas_;
  Error error_;
};

std::string DumpSink::path() const {
  std::string out;
  for (const Frame& frame : frames_) {
    // Shows only the last step of the way to a node, because the way may be long.
    if (frame.kind == Kind::Node && !frame.key.empty() &&
        (&frame == &frames_.back() || (frame.key != "left_child" && frame.key != "right_child")))
      out += "." + printable(frame.key, 40);
    if (frame.kind == Kind::Trees) out += formatted("[{}]", model_.trees.size());
    if (frame.kind == Kind::Document || frame.kind == Kind::Infos || frame.kind == Kind::Info)
      out += (out.empty() ? "" : ".") + printable(frame.key, 40);
  }
  return out;
}

bool DumpSink::on_flag(bool value) {
  if (in_pandas()) return told(pandas_.on_flag(value));
  if (in_column()) return wrong("true or false");
  if (kind() == Kind::Node && key() == "default_left") node().default_left = value;
  if (kind() == Kind::Document && key() == "average_output") members_.average_output = value;
  return true;
}

bool DumpSink::member_integer(std::int64_t value) {
  const std::pair<std::string_view, std::optional<std::int64_t> Members::*> counts[] = {
      {"num_class", &Members::num_class},
      {"num_tree_per_iteration", &Members::num_tree_per_iteration},
      {"max_feature_idx", &Members::max_feature_idx}};
  for (const auto& [name, member] : counts)
    if (key() == name) members_.*member = value;
  return true;
}

/// Stores a real number of a node. Integers come here too, because a real number may be written without a decimal
/// point.
bool DumpSink::node_number(double value) {
  const std::pair<std::string_view, std::optional<double> LightgbmDumpNode::*> reals[] = {
      {"threshold", &LightgbmDumpNode::threshold}, {"leaf_value", &LightgbmDumpNode::leaf_value}};
  for (const auto& [name, member] : reals)
    if (key() == name) node().*member = value;
  if (key() == "leaf_const") extras().leaf_const = value;
  if (key() == "split_gain") node().gain = static_cast<float>(value);
  if (key() == "internal_count" || key() == "leaf_count") node().count = static_cast<float>(value);
  return true;
}

bool DumpSink::on_integer(std::int64_t value) {
  if (in_pandas()) return told(pandas_.on_integer(value));
  if (kind() == Kind::Document) return member_integer(value);
  if (kind() == Kind::Node) {
    const std::pair<std::string_view, std::optional<std::int64_t> LightgbmDumpNode::*> integers[] = {
        {"split_index", &LightgbmDumpNode::split_index},
        {"leaf_index", &LightgbmDumpNode::leaf_index},
        {"split_feature", &LightgbmDumpNode::split_feature}};
    for (const auto& [name, member] : integers)
      if (key() == name) node().*member = value;
  }
  if (kind() == Kind::Features) {
    extras().leaf_features.push_back(value);
    return true;
  }
  return on_real(static_cast<double>(value), "");
}

bool DumpSink::on_real(double value, std::string_view text) {
  if (in_pandas()) return told(pandas_.on_real(value, text));
  switch (kind()) {
    case Kind::Node:
      return node_number(value);
    case Kind::Coefficients:
      extras().leaf_coeff.push_back(value);
      return true;
    case Kind::Info:
      if (key() == "max_value") members_.infos[frames_[frames_.size() - 2].key].largest = value;
      return true;
    case Kind::InfoValues:
      members_.infos[frames_[frames_.size() - 3].key].categorical = true;
      return true;
    case Kind::Names:
    case Kind::Features:
      return wrong("a number");
    default:
      return true;
  }
}

bool DumpSink::on_text(std::string& value) {
  if (in_pandas()) return told(pandas_.on_text(value));
  if (in_column() && kind() != Kind::Names) return wrong("a text");
  if (kind() == Kind::Names) members_.feature_names.push_back(value);
  if (kind() == Kind::Document) {
    const std::pair<std::string_view, std::string Members::*> texts[] = {
        {"name", &Members::name}, {"version", &Members::version}, {"objective", &Members::objective}};
    for (const auto& [name, member] : texts)
      if (key() == name) members_.*member = value;
  }
  if (kind() != Kind::Node) return true;
  if (key() == "threshold") extras().categories = value;
  if (key() == "decision_type") return set_kind(value);
  if (key() == "missing_type") return set_missing(value);
  return true;
}

bool DumpSink::on_key(const std::string& name) {
  if (in_pandas()) return told(pandas_.on_key(name));
  frames_.back().key = name;
  return true;
}

/// Begins a node: the tree's root, or a child, which its parent must not have yet.
bool DumpSink::open_node() {
  const std::size_t number = nodes_.size();
  if (kind() == Kind::Node) {
    std::int32_t& child = key() == "left_child" ? node().left : node().right;
    if (child >= 0) return refuse("a node with two of these");
    child = static_cast<std::int32_t>(number);
  } else if (number != 0) {
    return refuse("a tree with two roots");
  }
  if (all_nodes_ >= most_nodes_) return refuse("more nodes than the file has room for");
  if (++all_nodes_ > limits_.max_nodes)
    return refuse(formatted("more nodes than the limit of {}", limits_.max_nodes));
  nodes_.emplace_back();
  return open(Kind::Node);
}

bool DumpSink::on_object_begin() {
  if (frames_.empty()) return open(Kind::Document);
  if (in_pandas()) return told(pandas_.on_object_begin());
  if (in_column()) return wrong("an object");
  if (kind() == Kind::Document && key() == "feature_infos") {
    members_.has_infos = true;
    return open(Kind::Infos);
  }
  if (kind() == Kind::Infos) return open(Kind::Info);
  if (kind() == Kind::Trees) {
    if (model_.trees.size() >= limits_.max_trees)
      return refuse(formatted("more trees than the limit of {}", limits_.max_trees));
    nodes_.clear();
    return open(Kind::Tree);
  }
  const bool root = kind() == Kind::Tree && key() == "tree_structure";
  const bool child = kind() == Kind::Node && (key() == "left_child" || key() == "right_child");
  return root || child ? open_node() : open(Kind::Skipped);
}

/// Returns the largest training value of each feature; infinity for a feature whose range the document does not give.
std::vector<double> DumpSink::largest_values() const {
  std::vector<double> largest;
  for (const std::string& name : members_.feature_names) {
    const auto info = members_.infos.find(name);
    largest.push_back(info == members_.infos.end() ? kNoLimit : info->second.largest);
  }
  return largest;
}

bool DumpSink::end_tree() {
  const std::string number = std::to_string(model_.trees.size());
  if (largest_.empty()) largest_ = largest_values();
  Result<Tree> tree = tree_of(nodes_, largest_, formatted("tree_info[{}]: tree {}", number, number));
  if (!tree) {
    error_ = tree.error();
    return false;
  }
  model_.trees.push_back(std::move(tree).value());
  return true;
}

bool DumpSink::on_object_end() {
  const Kind ended = close();
  return ended != Kind::Tree || end_tree();
}

bool DumpSink::on_array_begin() {
  if (frames_.empty()) return open(Kind::Skipped);
  if (in_pandas()) return told(pandas_.on_array_begin());
  if (in_column()) return wrong("an array");
  if (kind() == Kind::Document && key() == "feature_names") return open(Kind::Names);
  if (kind() == Kind::Document && key() == "tree_info") return open(Kind::Trees);
  if (kind() == Kind::Info && key() == "values") return open(Kind::InfoValues);
  const std::size_t number = frames_.back().node;
  if (kind() == Kind::Node && (key() == "leaf_features" || key() == "leaf_coeff")) {
    if (!open(key() == "leaf_features" ? Kind::Features : Kind::Coefficients)) return false;
    frames_.back().node = number;
    return true;
  }
  return open(Kind::Skipped);
}

bool DumpSink::on_array_end() {
  if (in_pandas()) return told(pandas_.on_array_end());
  close();
  return true;
}

/// Joins words by blanks.
std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

Result<void> DumpSink::finish() {
  if (members_.name != "tree") return refused("name", "expected \"tree\": not a LightGBM model");
  if (!members_.average_output)
    return refused(
        "average_output",
        "missing: a dump of LightGBM before 2.2, which does not say the objective: load the model in "
        "LightGBM and save it as text (Booster.save_model)");
  const auto text = [](const std::optional<std::int64_t>& number) {
    return number ? std::to_string(*number) : "";
  };
  const std::string counts[] = {text(members_.num_class), text(members_.num_tree_per_iteration),
                                text(members_.max_feature_idx)};
  std::vector<std::string> infos;
  for (const std::string& name : members_.feature_names) {
    const auto info = members_.infos.find(name);
    const bool categorical = info != members_.infos.end() && info->second.categorical;
    infos.emplace_back(categorical ? "0:1" : "none");
  }
  const std::string names = line_of(members_.feature_names), info_line = line_of(infos);
  const auto entry = [](std::string_view key, std::string_view line) {
    return LightgbmEntry{key, line, LightgbmEntry::kNoLine};
  };
  LightgbmHeader header;
  header.version = entry("version", members_.version);
  header.num_class = entry("num_class", counts[0]);
  header.num_tree_per_iteration = entry("num_tree_per_iteration", counts[1]);
  header.max_feature_idx = entry("max_feature_idx", counts[2]);
  header.objective = entry("objective", members_.objective);
  if (*members_.average_output) header.average_output = entry("average_output", "");
  header.feature_names = entry("feature_names", names);
  header.feature_infos = entry("feature_infos", info_line);
  header.pandas_categorical = entry("pandas_categorical", "");
  header.pandas_lists = std::move(pandas_.lists());
  return add_lightgbm_header(header, limits_, model_);
}

}  // namespace

bool sniff_lightgbm_json(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto skip = [&](std::string_view expected) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    const bool found = text.starts_with(expected);
    if (found) text.remove_prefix(expected.size());
    return found;
  };
  if (!skip("{")) return false;
  // A document whose members are sorted by name begins with "average_output".
  return skip("\"average_output\"") || (skip("\"name\"") && skip(":") && skip("\"tree\""));
}

Result<ParsedModel> read_lightgbm_json(std::span<const std::byte> bytes, const LoadLimits& limits) {
  ParsedModel parsed;
  parsed.model.format = "lightgbm-json";
  DumpSink sink(bytes.size(), limits, parsed.model);
  // The sink limits the nesting itself, because the depth of a tree is nesting too.
  FVM_TRY(read_events(bytes, Syntax::Json, std::numeric_limits<std::uint32_t>::max(), sink));
  FVM_TRY(sink.finish());
  parsed.tree_location = [](std::size_t tree) { return formatted("tree_info[{}]", tree); };
  return parsed;
}

}  // namespace forestvm::frontend
