// Model files made in a test: loaded from memory, packed, damaged.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <forestvm/load.hpp>

namespace forestvm::test {

std::span<const std::byte> bytes_of(const std::string& text);
Result<Model> load_text(const std::string& text, const LoadLimits& limits = {});
/// Returns the model; a refusal fails the test.
Model loaded(const std::string& text);
std::string gzip(const std::string& text);
/// Returns `text` with the first `from` replaced by `to`; `from` must occur.
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace forestvm::test
