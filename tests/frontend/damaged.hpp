// Support for the tests of damaged files: checks of every refusal, and damage to every byte of good files.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::test {

/// Returns why `text` is refused. Fails the test if it is not refused, if the error has no place, or if its message is
/// not one line of a sensible length. Failures call the file `name`.
std::optional<Error> refusal_of(const std::string& name, const std::string& text);

/// Loads a file; a model that loads must also predict.
void survive(const std::string& text);

/// Loads every file with each of its bits flipped.
void survive_bit_flips(const std::vector<std::string>& files);

/// Loads every file with each of `bytes` at every offset.
void survive_bytes_replaced(const std::vector<std::string>& files, std::initializer_list<char> bytes);

}  // namespace forestvm::test
