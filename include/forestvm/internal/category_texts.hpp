// The numbers that texts stand for in the features of a program: codes of categories by their names, and hash codes.
// Implemented by vm/call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Finds the numbers for texts, by tables that the constructor makes. Any number of threads may use one at once.
class CategoryTexts {
 public:
  /// Reads the sections of `program`. Some copy of the program must live as long as this object.
  explicit CategoryTexts(const Program& program);

  /// Returns whether a feature's values may be texts.
  bool takes(std::uint32_t feature) const { return hashes(feature) || named(feature) != nullptr; }
  /// Returns the error for a text of a feature that takes none.
  static Failure wants_number(std::string_view text);
  /// Checks that a feature takes texts, for a column of `count` texts. Refused, naming the first text, if not.
  Result<void> check_texts(std::uint32_t feature, const Column& column, std::size_t count) const;
  /// Returns whether a feature's texts are compared by hash codes.
  bool hashes(std::uint32_t feature) const;

  /// Returns whether a number may be meant as the name of one category or as the code of another, as 7 may where the
  /// categories are 5, 6, 7 and 8 and so have the codes 0 to 3.
  bool has_ambiguous_numbers(std::uint32_t feature) const;

  /// Returns the number for a text of a feature that takes texts; NaN if the text is missing. Refused if the trainer
  /// refuses texts that are no category.
  Result<double> number_of(std::uint32_t feature, std::string_view text) const;
  /// Returns the number for a category that is a number: finds the name that is equal, or hashes the decimal text of a
  /// whole number. In a feature that takes no texts the number stands for itself.
  Result<double> number_of(std::uint32_t feature, double number) const;

  /// Writes the numbers for the `count` values of a dictionary, a column of texts or numbers: NaN for a missing value,
  /// and kRefusedCategory for one that the trainer refuses. Returns whether it refuses any. Usage, naming the value,
  /// for an integer that is no float64; Usage for a text that leaves its memory.
  Result<bool> numbers_of(std::uint32_t feature, const Column& dictionary, std::size_t count,
                          double* out) const;

 private:
  struct Named {
    std::uint32_t feature;
    std::optional<double> unseen;  ///< See FeatureCategories::unseen.
    std::unordered_map<std::string_view, std::uint32_t> codes;
    std::unordered_map<double, std::uint32_t> numbers;  ///< Codes by those names that are numbers.
    bool has_ambiguous_numbers = false;                 ///< Whether such a number is not its own code.
  };
  const Named* named(std::uint32_t feature) const;

  std::vector<Named> named_;  ///< Ascending by feature.
  std::span<const std::uint32_t> hashed_;
};

}  // namespace forestvm
