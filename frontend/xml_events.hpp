// Reads an XML document and calls a sink for its tags and texts, in the order of the document, of which it keeps no
// tree. It limits nesting and the length of a tag or text, and refuses document type declarations and all entities
// except XML's five. No other file of frontend uses Expat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// The attributes of an element, in UTF-8.
class XmlAttributes {
 public:
  /// `pairs` are names and values in turn, then null.
  explicit XmlAttributes(const char* const* pairs) : pairs_(pairs) {}

  std::optional<std::string_view> find(std::string_view name) const {
    for (const char* const* pair = pairs_; *pair != nullptr; pair += 2)
      if (name == *pair) return pair[1];
    return std::nullopt;
  }

  /// Calls take(name) for each attribute until one returns false.
  template <class Take>
  void each_name(const Take& take) const {
    for (const char* const* pair = pairs_; *pair != nullptr; pair += 2)
      if (!take(std::string_view(*pair))) return;
  }

 private:
  const char* const* pairs_;
};

/// Receives the tags and texts of a document. `line` is the line of the tag, counted from 1. An error ends the reading.
class XmlSink {
 public:
  virtual ~XmlSink() = default;
  virtual Result<void> on_begin(std::string_view name, const XmlAttributes& attributes, std::size_t line) = 0;
  virtual Result<void> on_end(std::size_t line) = 0;
  /// The text between two tags may come in several pieces.
  virtual Result<void> on_text(std::string_view text) = 0;
};

/// Reads the whole document. Returns the sink's errors. Refuses, with line and column, a document that is not
/// well-formed or has more than `max_depth` elements inside one another, and, with its byte, a tag or text that is too
/// long.
Result<void> read_xml(std::span<const std::byte> bytes, std::uint32_t max_depth, XmlSink& sink);

}  // namespace forestvm::frontend
