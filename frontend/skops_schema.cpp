// See skops_schema.hpp. In schema.json an object is {"__class__", "__module__", "__loader__", ...}; what it consists of
// is in further members, most often "content": objects, arrays of objects, or plain JSON objects whose members are
// objects.
#include "frontend/skops_schema.hpp"

#include <optional>
#include <utility>

#include <forestvm/internal/printable.hpp>

#include "frontend/json_events.hpp"

namespace forestvm::frontend {
namespace {

SkopsLoader loader_of(std::string_view name) {
  constexpr std::pair<std::string_view, SkopsLoader> known[] = {
      {"JsonNode", SkopsLoader::Json},     {"DictNode", SkopsLoader::Dict},
      {"ListNode", SkopsLoader::List},     {"TupleNode", SkopsLoader::List},
      {"ObjectNode", SkopsLoader::Object}, {"NdArrayNode", SkopsLoader::Array},
      {"TreeNode", SkopsLoader::Tree},
  };
  for (const auto& [text, loader] : known)
    if (text == name) return loader;
  return SkopsLoader::Other;
}

class SchemaSink : public EventSink {
 public:
  explicit SchemaSink(std::span<const std::byte> json) {
    const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
    constexpr std::string_view mark = "\"__loader__\"";
    std::size_t count = 0;
    for (std::size_t at = text.find(mark); at != std::string_view::npos;
         at = text.find(mark, at + mark.size()))
      ++count;
    schema.nodes.reserve(count);
  }

  SkopsSchema schema;

  bool on_null() override { return !needs_object() || fail("expected an object, found null"); }
  bool on_flag(bool) override { return !needs_object() || fail("expected an object, found a boolean"); }
  bool on_real(double, std::string_view) override {
    return !needs_object() || fail("expected an object, found a number");
  }
  bool on_integer(std::int64_t value) override {
    if (needs_object()) return fail("expected an object, found a number");
    if (!skipping() && frames_.size() == 1 && frames_.back().key == "protocol") schema.protocol = value;
    return true;
  }
  bool on_text(std::string& value) override;
  bool on_key(const std::string& name) override;
  bool on_object_begin() override {
    if (skipping() || skips_this()) return ++skipped_ != 0;
    frames_.push_back({});
    return true;
  }
  bool on_object_end() override;
  bool on_array_begin() override {
    if (skipping() || skips_this()) return ++skipped_ != 0;
    if (frames_.empty() || in_list()) return fail("expected an object, found an array");
    frames_.push_back({Kind::List, kNoSkopsNode, kNoSkopsNode, "", 0});
    return true;
  }
  bool on_array_end() override {
    if (skipping()) return skipped_-- != 0;
    frames_.pop_back();
    return true;
  }
  Error error() const override { return *error_; }
  std::string path() const override;

 private:
  /// The kinds of JSON values. A Node describes a Python object; a Plain object has such objects as members. The first
  /// key of a JSON object tells them apart.
  enum class Kind { Unknown, Node, Plain, List };
  struct Frame {
    Kind kind = Kind::Unknown;
    std::uint32_t node = kNoSkopsNode, last_child = kNoSkopsNode;
    std::string key;
    std::size_t count = 0;
  };

  bool fail(std::string_view message) {
    error_ = refused(path(), message);
    return false;
  }
  bool skipping() const { return skipped_ != 0; }
  bool in_list() const { return !frames_.empty() && frames_.back().kind == Kind::List; }
  /// Returns true if only objects may stand here: elements of lists, and values of dictionaries.
  bool needs_object() const {
    if (skipping()) return false;
    if (frames_.empty() || in_list()) return true;
    return frames_.back().kind == Kind::Plain &&
           schema.nodes[frames_[frames_.size() - 2].node].loader == SkopsLoader::Dict;
  }
  /// Returns true if the value that begins is to be skipped, because it holds the types of a dictionary's keys.
  bool skips_this() const {
    return !frames_.empty() && frames_.back().kind == Kind::Node && frames_.back().key == "key_types";
  }
  SkopsText put(std::string_view text) {
    const SkopsText part{static_cast<std::uint32_t>(schema.texts.size()),
                         static_cast<std::uint32_t>(text.size())};
    schema.texts += text;
    return part;
  }
  bool begin_node();

  std::vector<Frame> frames_;
  std::size_t skipped_ = 0;  ///< Number of open values that are skipped.
  std::optional<Error> error_;
};

std::string SchemaSink::path() const {
  std::string out = "schema.json";
  for (const Frame& frame : frames_)
    if (frame.kind == Kind::List)
      out += '[' + std::to_string(frame.count) + ']';
    else if (!frame.key.empty() && frame.key != "content")
      out += (out == "schema.json" ? ": " : ".") + printable(frame.key, 40);
  return out;
}

/// Makes the last frame a node, and makes it a child of the nearest frame around it that is a node.
bool SchemaSink::begin_node() {
  const auto number = static_cast<std::uint32_t>(schema.nodes.size());
  SkopsNode node;
  if (frames_.size() > 1) {
    Frame& holder = frames_[frames_.size() - 2];
    std::size_t owner = frames_.size() - 2;
    while (frames_[owner].kind != Kind::Node) --owner;
    Frame& parent = frames_[owner];
    if (holder.kind == Kind::List)
      ++holder.count;
    else
      node.name = put(holder.key);
    node.parent = parent.node;
    std::uint32_t& link = parent.last_child == kNoSkopsNode ? schema.nodes[parent.node].first_child
                                                            : schema.nodes[parent.last_child].next_sibling;
    link = parent.last_child = number;
  }
  schema.nodes.push_back(node);
  frames_.back().kind = Kind::Node;
  frames_.back().node = number;
  return true;
}

bool SchemaSink::on_key(const std::string& name) {
  if (skipping()) return true;
  Frame& frame = frames_.back();
  if (frame.kind == Kind::Unknown) {
    const bool in_node = frames_.size() > 1 && frames_[frames_.size() - 2].kind == Kind::Node;
    if (name == "__class__")
      begin_node();
    else if (in_node)
      frame.kind = Kind::Plain;
    else
      return fail("not a file that skops wrote: an object has no __class__");
  }
  frame.key = name;
  return true;
}

bool SchemaSink::on_text(std::string& value) {
  if (needs_object()) return fail("expected an object, found a text");
  if (skipping() || frames_.back().kind != Kind::Node) return true;
  const Frame& frame = frames_.back();
  SkopsNode& node = schema.nodes[frame.node];
  if (frame.key == "__class__")
    node.class_name = put(value);
  else if (frame.key == "__module__")
    node.module = put(value);
  else if (frame.key == "__loader__")
    node.loader = loader_of(value);
  else if (frame.key == "content" || frame.key == "file")
    node.text = put(value);
  else if (frame.key == "_skops_version" && frames_.size() == 1)
    schema.version = value;
  return true;
}

bool SchemaSink::on_object_end() {
  if (skipping()) return skipped_-- != 0;
  const Frame& frame = frames_.back();
  const bool in_node = frames_.size() > 1 && frames_[frames_.size() - 2].kind == Kind::Node;
  if (frame.kind == Kind::Unknown && !in_node) return fail("not a file that skops wrote: an object is empty");
  if (frame.kind == Kind::Node && schema.nodes[frame.node].loader == SkopsLoader::None)
    return fail("not a file that skops wrote: an object has no __loader__");
  frames_.pop_back();
  return true;
}

}  // namespace

Result<SkopsSchema> read_skops_schema(std::span<const std::byte> json, std::uint32_t max_depth) {
  SchemaSink sink(json);
  FVM_TRY(read_events(json, Syntax::Json, max_depth, sink));
  if (sink.schema.nodes.empty())
    return refused("schema.json", "not a file that skops wrote: it holds no object");
  return std::move(sink.schema);
}

}  // namespace forestvm::frontend
