// Passes nlohmann_json's SAX calls to an EventSink, and applies the limits before anything is stored.
#include "frontend/json_events.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

using nlohmann::json;

/// The number by which NaN is replaced in the text that the library reads, because its JSON has no NaN. A document that
/// holds this very number is read as NaN, too.
constexpr std::string_view kNanNumber = "0e-7777777", kNan = "NaN";

/// A JSON text with a number in place of each NaN.
struct TextWithoutNan {
  std::string text;
  std::vector<std::size_t> offsets;  ///< Where these numbers begin in `text`, ascending.

  /// Returns the offset in the document of an offset in `text`.
  std::size_t in_document(std::size_t position) const {
    const auto end = std::partition_point(offsets.begin(), offsets.end(), [&](std::size_t offset) {
      return offset + kNanNumber.size() <= position;
    });
    return position - static_cast<std::size_t>(end - offsets.begin()) * (kNanNumber.size() - kNan.size());
  }
};

/// Replaces each NaN that is a whole value. Any other NaN stays, and the library refuses it.
TextWithoutNan without_nan(std::string_view document) {
  TextWithoutNan out;
  const auto ends_value = [](char c, std::string_view others) {
    return std::string_view(" \t\r\n,").find(c) != std::string_view::npos ||
           others.find(c) != std::string_view::npos;
  };
  bool in_string = false;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    const bool is_nan = !in_string && c == 'N' && document.substr(i).starts_with(kNan) && i > 0 &&
                        ends_value(document[i - 1], "[:") && i + kNan.size() < document.size() &&
                        ends_value(document[i + kNan.size()], "]}");
    if (is_nan) {
      out.offsets.push_back(out.text.size());
      out.text += kNanNumber;
      i += kNan.size() - 1;
      continue;
    }
    out.text += c;
    if (in_string && c == '\\' && i + 1 < document.size())
      out.text += document[++i];
    else if (c == '"')
      in_string = !in_string;
  }
  return out;
}

/// Passes events on. It is called through its base class, so that a program has the library's parsers only once,
/// although other classes take their events too.
class SaxAdapter final : public nlohmann::json_sax<json> {
 public:
  SaxAdapter(std::span<const std::byte> bytes, Syntax syntax, std::uint32_t max_depth,
             const TextWithoutNan& replaced, EventSink& sink)
      : bytes_(bytes),
        syntax_(syntax),
        max_depth_(max_depth),
        values_left_(bytes.size()),
        replaced_(replaced),
        sink_(sink) {}

  // Called by sax_parse; the names are nlohmann_json's.
  bool null() override { return spend() && told(sink_.on_null()); }
  bool boolean(bool value) override { return spend() && told(sink_.on_flag(value)); }
  bool number_integer(std::int64_t value) override { return spend() && told(sink_.on_integer(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return number_integer(static_cast<std::int64_t>(value));
    return spend() && told(sink_.on_real(static_cast<double>(value), std::to_string(value)));
  }
  bool number_float(double value, const std::string& text) override {
    if (!replaced_.offsets.empty() && text == kNanNumber)
      return spend() && told(sink_.on_real(std::numeric_limits<double>::quiet_NaN(), {}));
    return spend() && told(sink_.on_real(value, text));
  }
  bool string(std::string& value) override {
    const bool good = is_text(value);
    return spend() && told(sink_.on_text(value)) && (good || fail("text that is not UTF-8"));
  }
  bool binary(json::binary_t&) override { return fail("binary data"); }
  bool key(std::string& name) override {
    return spend() && told(sink_.on_key(name)) && (is_text(name) || fail("a name that is not UTF-8"));
  }
  bool start_object(std::size_t count) override { return enter(count) && told(sink_.on_object_begin()); }
  bool start_array(std::size_t count) override { return enter(count) && told(sink_.on_array_begin()); }
  bool end_object() override { return leave() && told(sink_.on_object_end()); }
  bool end_array() override { return leave() && told(sink_.on_array_end()); }
  bool parse_error(std::size_t position, const std::string&, const json::exception& problem) override;

  Error error() const { return error_.value_or(refused("the document cannot be read")); }

 private:
  bool told(bool accepted) {
    if (!accepted) error_ = sink_.error();
    return accepted;
  }
  bool fail(std::string_view message) {
    error_ = refused(sink_.path().empty() ? "document" : sink_.path(), message);
    return false;
  }
  // Counts a value or key. Each takes at least a byte, but a binary array may claim more of them than the file can
  // hold.
  bool spend() { return values_left_-- > 0 || fail("more values than the file has bytes"); }
  bool enter(std::size_t count) {
    constexpr auto unknown = std::numeric_limits<std::size_t>::max();
    if (!spend()) return false;
    if (count != unknown && count > values_left_)
      return fail(formatted("declares {} elements, more than the file has bytes", count));
    return ++depth_ <= max_depth_ || fail(formatted("nested deeper than {} levels", max_depth_));
  }
  bool leave() {
    --depth_;
    return true;
  }
  bool is_text(const std::string& text) const { return syntax_ != Syntax::Ubjson || is_utf8(text); }
  std::string location(std::size_t position) const;
  bool at_non_finite(std::size_t position) const;

  std::span<const std::byte> bytes_;
  Syntax syntax_;
  std::uint32_t max_depth_;
  std::size_t values_left_;
  const TextWithoutNan& replaced_;
  EventSink& sink_;
  std::uint32_t depth_ = 0;
  std::optional<Error> error_;
};

/// Returns a place for messages, such as "byte 57 (line 3, column 9), in learner.objective".
std::string SaxAdapter::location(std::size_t position) const {
  const std::size_t at = std::min(position == 0 ? 0 : position - 1, bytes_.size());
  std::string out = formatted("byte {}", at);
  if (syntax_ != Syntax::Ubjson) {
    const auto before = bytes_.first(at);
    const auto lines = std::count(before.begin(), before.end(), std::byte{'\n'});
    const auto line_start = std::find(before.rbegin(), before.rend(), std::byte{'\n'});
    out += formatted(" (line {}, column {})", lines + 1, line_start - before.rbegin() + 1);
  }
  const std::string path = sink_.path();
  return path.empty() ? out : formatted("{}, in {}", out, path);
}

/// Returns true if the JSON text stops at NaN or Infinity, which some writers use and JSON does not have.
bool SaxAdapter::at_non_finite(std::size_t position) const {
  if (syntax_ == Syntax::Ubjson || position == 0 || position > bytes_.size()) return false;
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  const std::string_view here = text.substr(position - 1);
  const std::string_view earlier = text.substr(position >= 2 ? position - 2 : 0);
  return here.starts_with("NaN") || earlier.starts_with("NaN") || here.starts_with("Infinity");
}

bool SaxAdapter::parse_error(std::size_t position, const std::string&, const json::exception& problem) {
  position = replaced_.in_document(position);
  if (at_non_finite(position)) {
    error_ = refused(location(position), "a number that is not finite (NaN or Infinity)");
    return false;
  }
  // Removes the library's prefix, which says nothing new: "[json.exception.parse_error.101] parse error at line 1,
  // column 2: ".
  std::string_view message = problem.what();
  if (const auto bracket = message.find("] "); bracket != std::string_view::npos)
    message.remove_prefix(bracket + 2);
  if (message.starts_with("parse error at "))
    if (const auto colon = message.find(": "); colon != std::string_view::npos)
      message.remove_prefix(colon + 2);
  error_ = refused(location(position), printable(message, 200));
  return false;
}

}  // namespace

Result<void> read_events(std::span<const std::byte> bytes, Syntax syntax, std::uint32_t max_depth,
                         EventSink& sink) {
  const std::uint32_t deepest = syntax == Syntax::Ubjson ? std::min(max_depth, kDeepestNesting) : max_depth;
  const auto format = syntax == Syntax::Ubjson ? json::input_format_t::ubjson : json::input_format_t::json;
  try {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    TextWithoutNan replaced;
    if (syntax == Syntax::JsonWithNan && text.find(kNan) != std::string_view::npos) {
      replaced = without_nan(text);
      text = replaced.text;
    }
    SaxAdapter adapter(bytes, syntax, deepest, replaced, sink);
    nlohmann::json_sax<json>* const events = &adapter;
    if (!json::sax_parse(text.data(), text.data() + text.size(), events, format)) return adapter.error();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::Environment, sink.path(), "out of memory while reading the document");
  } catch (const std::length_error&) {
    return refused(sink.path().empty() ? "document" : sink.path(), "a length that no memory can hold");
  } catch (const json::exception& problem) {
    return refused(sink.path().empty() ? "document" : sink.path(), printable(problem.what(), 200));
  }
  return {};
}

}  // namespace forestvm::frontend
