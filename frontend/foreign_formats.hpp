// Recognizes files and directories that are known but not read. In: the first bytes of a file, or a directory. Out:
// what it is and what to do instead, for the error message. formats.def lists them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace forestvm::frontend {

/// Returns the sentence of formats.def about a file, or null if nothing is known of it. `bytes` may be only the first
/// bytes of the file.
const char* foreign_file(std::span<const std::byte> bytes);

/// Returns the sentence about a directory that has no model of YDF, or null if nothing is known of it.
const char* foreign_directory(const std::string& path);

/// Returns the sentence about a zip archive that has no schema.json, from the names of its files; null if none matches.
const char* foreign_archive(const std::function<bool(std::string_view name)>& has_file);

// How formats.def recognizes files whose first bytes are not always the same.
bool is_core_ml(std::span<const std::byte> bytes);      ///< A Core ML model (.mlmodel).
bool is_saved_model(std::span<const std::byte> bytes);  ///< TensorFlow's saved_model.pb.

}  // namespace forestvm::frontend
