// See foreign_formats.hpp.
#include "frontend/foreign_formats.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace forestvm::frontend {
namespace {

using Bytes = std::span<const std::byte>;

struct ForeignFile {
  std::size_t offset;
  std::string_view bytes;
  /// True if the file's first characters are compared without blanks, quotes and backslashes.
  bool as_text;
  bool (*sniff)(Bytes);  ///< Recognizes the file; null if `bytes` do.
  const char* sentence;
};

constexpr ForeignFile kFiles[] = {
#define FVM_FOREIGN(first_bytes, sentence) FVM_FOREIGN_AT(0, first_bytes, sentence)
#define FVM_FOREIGN_AT(offset, bytes, sentence) \
  {offset, std::string_view(bytes, sizeof(bytes) - 1), false, nullptr, sentence},
#define FVM_FOREIGN_TEXT(characters, sentence) {0, characters, true, nullptr, sentence},
#define FVM_FOREIGN_FORMAT(mark, sniff, sentence) {0, "", false, sniff, sentence},
#include "frontend/formats.def"
};

/// A file in a directory or an archive whose name tells what the whole is.
struct ForeignEntry {
  std::string_view name;
  const char* sentence;
};

constexpr ForeignEntry kDirectories[] = {
#define FVM_FOREIGN_DIRECTORY(entry, sentence) {entry, sentence},
#include "frontend/formats.def"
};

constexpr ForeignEntry kArchives[] = {
#define FVM_FOREIGN_ARCHIVE(entry, sentence) {entry, sentence},
#include "frontend/formats.def"
};

/// Returns the first characters of a text without blanks, quotes and backslashes, which programs write differently.
std::string bare_opening(std::string_view text) {
  std::string bare;
  for (const char c : text.substr(0, 256))
    if (std::string_view(" \t\r\n\"\\").find(c) == std::string_view::npos) bare += c;
  return bare;
}

/// Skips a number in protobuf's encoding. Returns false at the end of the bytes.
bool skip_varint(std::string_view& text) {
  const auto last = std::find_if(text.begin(), text.end(),
                                 [](char c) { return (static_cast<unsigned char>(c) & 0x80) == 0; });
  if (last == text.end()) return false;
  text.remove_prefix(static_cast<std::size_t>(last - text.begin()) + 1);
  return true;
}

/// Skips a byte if it is `tag`, the number and type of a field of protobuf, and the number after it, which is the
/// field's value or length.
bool skip_field(std::string_view& text, char tag) {
  if (!text.starts_with(tag)) return false;
  text.remove_prefix(1);
  return skip_varint(text);
}

/// Returns whether the bytes are a protobuf message whose field 1 is a number, whose field 2 is a message, and whose
/// field 2 begins with a message that begins with one of these tags.
bool has_nested_message(Bytes bytes, std::string_view first_tags) {
  constexpr char kNumber1 = '\x08', kMessage1 = '\x0a', kMessage2 = '\x12';
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return skip_field(text, kNumber1) && skip_field(text, kMessage2) && skip_field(text, kMessage1) &&
         !text.empty() && first_tags.find(text.front()) != std::string_view::npos;
}

}  // namespace

bool is_core_ml(Bytes bytes) {
  return has_nested_message(bytes,
                            "\x0a");  // the description of an input feature, which begins with its name
}

bool is_saved_model(Bytes bytes) {
  return has_nested_message(bytes, "\x12\x1a\x22\x2a");  // operators, tags or the version of TensorFlow
}

const char* foreign_file(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string bare = bare_opening(text);
  const auto matches = [&](const ForeignFile& file) {
    if (file.sniff != nullptr) return file.sniff(bytes);
    if (file.as_text) return bare.starts_with(file.bytes);
    return text.substr(std::min(file.offset, text.size())).starts_with(file.bytes);
  };
  const auto found = std::find_if(std::begin(kFiles), std::end(kFiles), matches);
  return found == std::end(kFiles) ? nullptr : found->sentence;
}

const char* foreign_directory(const std::string& path) {
  const auto exists = [&](const ForeignEntry& row) {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::path(path) / row.name, ignored);
  };
  const auto found = std::find_if(std::begin(kDirectories), std::end(kDirectories), exists);
  return found == std::end(kDirectories) ? nullptr : found->sentence;
}

const char* foreign_archive(const std::function<bool(std::string_view name)>& has_file) {
  const auto found = std::find_if(std::begin(kArchives), std::end(kArchives),
                                  [&](const ForeignEntry& row) { return has_file(row.name); });
  return found == std::end(kArchives) ? nullptr : found->sentence;
}

}  // namespace forestvm::frontend
