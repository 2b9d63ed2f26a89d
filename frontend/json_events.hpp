// Reads a JSON or UBJSON document as events, within limits: nesting, and no more values than the input has bytes. In:
// bytes and a sink. Out: the sink's calls, in the order of the document. No other file of frontend uses nlohmann_json.
// Only its SAX interface is used, because its DOM recurses and allocates whatever a damaged file asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// The largest limit of nesting that a caller may set for UBJSON, whose reader in the library recurses.
constexpr std::uint32_t kDeepestNesting = 512;

/// JsonWithNan is JSON in which NaN may stand in place of a number, as XGBoost 1.7 to 2.1 write it. The sink is told
/// NaN.
enum class Syntax { Json, JsonWithNan, Ubjson };

/// Receives the events. A call that returns false ends the reading; error() then says why.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual bool on_null() = 0;
  virtual bool on_flag(bool value) = 0;
  virtual bool on_integer(std::int64_t value) = 0;
  /// `text` is the number as the document writes it, or empty when the document is binary or the value NaN.
  virtual bool on_real(double value, std::string_view text) = 0;
  /// `value` is UTF-8, and may be moved from.
  virtual bool on_text(std::string& value) = 0;
  virtual bool on_key(const std::string& name) = 0;
  virtual bool on_object_begin() = 0;
  virtual bool on_object_end() = 0;
  virtual bool on_array_begin() = 0;
  virtual bool on_array_end() = 0;

  /// Returns the error of the call that returned false.
  virtual Error error() const = 0;
  /// Returns the path of the latest event, e.g. "learner.objective.name"; may be empty.
  virtual std::string path() const = 0;
};

/// Reads the whole document. Returns the sink's errors, and refuses a document that it cannot read with the byte
/// offset (and line and column of a JSON text).
Result<void> read_events(std::span<const std::byte> bytes, Syntax syntax, std::uint32_t max_depth,
                         EventSink& sink);

}  // namespace forestvm::frontend
