// What tests of damaged files share: what every refusal is like, and what is done to every byte of good
// files.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::test {

/// Why `text` is refused: with a place and one line of a sensible length, or the test fails, as it does if it
/// is not refused. `name`: what failures call it.
std::optional<Error> refusal_of(const std::string& name, const std::string& text);

/// Loads; what loads must also predict.
void survive(const std::string& text);

/// Every file with every bit of it the other way.
void survive_bit_flips(const std::vector<std::string>& files);

/// Every file with each of `bytes` in every place.
void survive_bytes_replaced(const std::vector<std::string>& files, std::initializer_list<char> bytes);

}  // namespace forestvm::test
