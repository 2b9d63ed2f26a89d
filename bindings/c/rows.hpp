// Converts the rows that C callers describe to the rows that backends take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/internal/category_texts.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm::c_api {

/// Returns Usage if `type` is no fvm_type; messages call it `name`.
Result<void> check_type(const char* name, fvm_type type);

/// The names in a program by which columns and their texts are found. The tables are made when they are first needed.
/// Any number of threads may use them at once.
class Names {
 public:
  explicit Names(const Program& program) : program_(program) {}

  const Program& program() const { return program_; }
  /// Returns the first feature of this name.
  std::optional<std::uint32_t> feature(std::string_view name) const;
  const CategoryTexts& categories() const;

 private:
  Program program_;
  mutable std::once_flag features_made_, categories_made_;
  mutable std::unordered_map<std::string_view, std::uint32_t> features_;
  mutable std::optional<CategoryTexts> categories_;
};

/// The feature number of a child of Arrow rows that belongs to no feature.
inline constexpr std::uint32_t kNoFeature = UINT32_MAX;

/// Columns of a call, in memory that the next call of its context uses again.
struct ColumnMemory {
  std::vector<Column> columns;
  std::vector<double> numbers;  ///< Arrow: the numbers of all dictionaries.
  /// Arrow: the feature of each child. A call starts from the features of the last call.
  std::vector<std::uint32_t> features;
  std::vector<std::uint8_t> taken;  ///< Arrow: 1 for each feature that has a child.
};

/// Returns the rows with their defaults filled in, for the program of `names`. They may refer to `memory`. Returns
/// fvm_predict's errors for fields that make no sense.
Result<AnyRows> known_rows(const fvm_rows* given, const Names& names, ColumnMemory& memory);

/// How the children of Arrow rows were matched with features. Numbers in columns that were matched by position may be
/// codes of categories; by name they are refused where they may also be the categories' names.
enum class Matched : std::uint8_t { ByName, ByPosition };

/// Returns rows of Arrow whose children were matched before: `features` has the feature of each child, or kNoFeature,
/// and each feature once. The rows refer to `memory`. Returns fvm_predict's errors for fields that make no sense.
Result<AnyRows> matched_arrow(const ArrowArray& array, const ArrowSchema& schema,
                              std::span<const std::uint32_t> features, Matched matched, const Names& names,
                              ColumnMemory& memory);

/// Does what known_rows does, for rows of FVM_ROWS_ARROW whose fields have been checked.
Result<AnyRows> known_arrow(const fvm_rows& rows, const Names& names, ColumnMemory& memory);

}  // namespace forestvm::c_api
