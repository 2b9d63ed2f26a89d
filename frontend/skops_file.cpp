// See skops_file.hpp.
#include "frontend/skops_file.hpp"

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/foreign_formats.hpp"
#include "frontend/json_events.hpp"
#include "frontend/python_objects.hpp"
#include "frontend/sklearn_estimator.hpp"
#include "frontend/skops_schema.hpp"
#include "frontend/zip_file.hpp"

namespace forestvm::frontend {
namespace {

constexpr std::string_view kSchema = "schema.json";
constexpr std::int64_t kLastProtocol = 2;

/// Takes the one text of a JSON document.
class TextSink : public EventSink {
 public:
  std::string text;

  bool on_null() override { return false; }
  bool on_flag(bool) override { return false; }
  bool on_integer(std::int64_t) override { return false; }
  bool on_real(double, std::string_view) override { return false; }
  bool on_text(std::string& value) override {
    text = std::move(value);
    return true;
  }
  bool on_key(const std::string&) override { return false; }
  bool on_object_begin() override { return false; }
  bool on_object_end() override { return false; }
  bool on_array_begin() override { return false; }
  bool on_array_end() override { return false; }
  Error error() const override { return refused("expected a text"); }
  std::string path() const override { return ""; }
};

template <class Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

/// Reads a text as Python's json module writes it.
Result<PythonScalar> text_of(std::string_view json) {
  TextSink sink;
  FVM_TRY(read_events(std::as_bytes(std::span(json)), Syntax::Json, 1, sink));
  return PythonScalar(std::move(sink.text));
}

/// Reads a value other than a text as Python's json module writes it, which has NaN and Infinity.
std::optional<PythonScalar> scalar_of(std::string_view json) {
  if (json == "null") return PythonScalar();
  if (json == "true" || json == "false") return PythonScalar(json == "true");
  if (json == "NaN") return PythonScalar(std::numeric_limits<double>::quiet_NaN());
  if (json == "Infinity" || json == "-Infinity")
    return PythonScalar(std::numeric_limits<double>::infinity() * (json.front() == '-' ? -1 : 1));
  std::int64_t whole = 0;
  double number = 0;
  if (read_whole(json, whole)) return PythonScalar(whole);
  if (read_whole(json, number)) return PythonScalar(number);
  return std::nullopt;
}

class SkopsObjects : public PythonObjects {
 public:
  SkopsObjects(SkopsSchema schema, ZipFile& zip) : schema_(std::move(schema)), zip_(zip) {}

  PythonKind kind(Id object) const override {
    const SkopsNode& node = schema_.nodes[object];
    switch (node.loader) {
      case SkopsLoader::Json:
        return PythonKind::Scalar;
      case SkopsLoader::Dict:
        return PythonKind::Mapping;
      case SkopsLoader::List:
        return PythonKind::Sequence;
      case SkopsLoader::Object:
      case SkopsLoader::Tree:
        return PythonKind::Object;
      case SkopsLoader::Array:
        return node.text.size != 0 ? PythonKind::Array : PythonKind::Sequence;
      case SkopsLoader::None:
      case SkopsLoader::Other:
        break;
    }
    return PythonKind::Other;
  }

  std::string type(Id object) const override {
    const SkopsNode& node = schema_.nodes[object];
    return std::string(schema_.text(node.module)).append(".").append(schema_.text(node.class_name));
  }

  std::optional<Id> member(Id object, std::string_view name) const override {
    if (kind(object) == PythonKind::Object) {
      const std::optional<Id> attributes = child(object, "content");
      if (!attributes || kind(*attributes) != PythonKind::Mapping) return std::nullopt;
      object = *attributes;
    }
    return kind(object) == PythonKind::Mapping ? child(object, name) : std::nullopt;
  }

  std::vector<Id> items(Id object) const override {
    std::vector<Id> out;
    for (Id at = schema_.nodes[object].first_child; at != kNoSkopsNode; at = schema_.nodes[at].next_sibling)
      if (schema_.nodes[at].name.size == 0) out.push_back(at);
    return out;
  }

  Result<PythonScalar> scalar(Id object) const override {
    const std::string_view json = schema_.text(schema_.nodes[object].text);
    if (json.starts_with('"')) {
      Result<PythonScalar> text = text_of(json);
      if (text.ok() || text.error().code == ErrorCode::Environment) return text;
    } else if (const std::optional<PythonScalar> value = scalar_of(json)) {
      return *value;
    }
    return refused(place(object), "not a value that Python writes: {}", in_quotes(json, 40));
  }

  Result<NumpyArray> array(Id object) const override {
    const std::string_view entry = schema_.text(schema_.nodes[object].text);
    FVM_ASSIGN(std::vector<std::byte> file, zip_.read(entry));
    Result<NumpyArray> array = read_npy(std::move(file));
    if (!array.ok())
      return refused(formatted("{} ({})", place(object), printable(entry, 40)), array.error().message);
    return array;
  }

  std::string place(Id object) const override;

 private:
  std::optional<Id> child(Id object, std::string_view name) const {
    for (Id at = schema_.nodes[object].first_child; at != kNoSkopsNode; at = schema_.nodes[at].next_sibling)
      if (schema_.text(schema_.nodes[at].name) == name) return at;
    return std::nullopt;
  }

  SkopsSchema schema_;
  ZipFile& zip_;
};

std::string SkopsObjects::place(Id object) const {
  std::string path;
  for (Id at = object; schema_.nodes[at].parent != kNoSkopsNode; at = schema_.nodes[at].parent) {
    const SkopsNode& node = schema_.nodes[at];
    if (node.name.size == 0) {
      std::size_t index = 0;
      for (Id before = schema_.nodes[node.parent].first_child; before != at;
           before = schema_.nodes[before].next_sibling)
        index += schema_.nodes[before].name.size == 0;
      path.insert(0, '[' + std::to_string(index) + ']');
    } else if (schema_.text(node.name) != "content") {
      path.insert(0, '.' + printable(schema_.text(node.name), 40));
    }
  }
  if (path.empty()) return std::string(kSchema);
  return formatted("{}: {}", kSchema, path.substr(path.front() == '.'));
}

}  // namespace

bool sniff_skops(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with("PK\x03\x04");
}

Result<ParsedModel> read_skops(std::span<const std::byte> bytes, const LoadLimits& limits) {
  FVM_ASSIGN(ZipFile zip, ZipFile::open(bytes, limits));
  if (!zip.has(kSchema)) {
    const char* const known = foreign_archive([&](std::string_view name) { return zip.has(name); });
    if (known != nullptr) return refused("byte 0", known);
    return refused("byte 0", "a zip archive without schema.json, so no .skops file: unpack it first");
  }
  SkopsSchema schema;
  {
    FVM_ASSIGN(const std::vector<std::byte> json, zip.read(kSchema));
    FVM_ASSIGN(schema, read_skops_schema(json, limits.max_depth));
  }
  if (schema.protocol < 0 || schema.protocol > kLastProtocol)
    return refused(std::string(kSchema), "protocol {} of skops: 0 to {} are known", schema.protocol,
                   kLastProtocol);
  const SkopsObjects objects(std::move(schema), zip);
  FVM_ASSIGN(ParsedModel parsed, read_sklearn_estimator(objects, 0, limits));
  parsed.model.format = "skops";
  return parsed;
}

}  // namespace forestvm::frontend
