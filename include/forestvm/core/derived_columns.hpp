// Columns that a program computes from a row's features before its encoder and its walks see the row: values that
// are looked up in tables by keys of hashed categories, and weighted sums. A converted row holds the features, then
// the columns of the lookups, then the linear columns. Where a hashed feature stands it holds the code of the
// category, an int32, which only lookups read.
#pragma once

#include <cstdint>
#include <cstring>

namespace forestvm {

inline constexpr std::uint64_t kKeyFactor = 0x4906ba494954cb65;

/// Returns the key of a list of parts that ends with `part`. `key` is the key of the parts before it, 0 if there
/// are none.
inline std::uint64_t key_with(std::uint64_t key, std::int32_t part) {
  return kKeyFactor * (key + kKeyFactor * static_cast<std::uint64_t>(std::int64_t{part}));
}

enum class KeyPartKind : std::uint8_t {
  Category,    ///< The code of a hashed feature.
  Above,       ///< 1 if the feature's value is above `operand`, else 0; 0 for NaN.
  AboveOrNan,  ///< 1 if the value is above `operand` or NaN, else 0.
  HasCode,     ///< 1 if the code of a hashed feature is `operand`, else 0.
};
inline constexpr std::uint8_t kKeyPartKinds = 4;

/// A part of a lookup's key.
struct KeyPart {
  std::uint32_t feature;
  std::uint32_t operand;  ///< Bits of the border (a float32) or of the code; 0 for Category.
  KeyPartKind kind;
  std::uint8_t reserved[3];  ///< Zero.

  bool operator==(const KeyPart&) const = default;
};
static_assert(sizeof(KeyPart) == 12);

/// A lookup. Its table consists of slots, each 2 + width words: the key, lower half first, and a float32 for each
/// column. A search begins at home_slot and ends at the first slot with its key or with unused_key, which is no key of
/// the table; unused slots hold the values for keys that the table does not have. The last slot is unused.
struct LookupDesc {
  std::uint32_t first_part;  ///< Index of its first part in the key_parts section.
  std::uint32_t part_count;
  std::uint64_t first_word;  ///< Index of its first slot's key in the lookup_words section.
  std::uint32_t slot_count;
  std::uint32_t home_count;  ///< Number of slots, the first ones, where searches begin.
  std::uint32_t width;       ///< Number of columns.
  std::uint32_t reserved;    ///< Zero.
  std::uint64_t unused_key;

  bool operator==(const LookupDesc&) const = default;
};
static_assert(sizeof(LookupDesc) == 40);

/// The number of words of a slot before its values.
inline constexpr std::uint32_t kKeyWords = 2;

/// Returns the number of words of a lookup's slot.
inline std::uint64_t slot_words(const LookupDesc& lookup) { return std::uint64_t{lookup.width} + kKeyWords; }

/// Returns the slot where the search for a key begins. Its order is that of the keys, so that a table is made by
/// sorting them, however many share a slot.
inline std::uint64_t home_slot(std::uint64_t key, std::uint32_t home_count) {
  return (key >> 32) * home_count >> 32;
}

inline std::uint64_t key_at(const std::uint32_t* slot) {
  std::uint64_t key = 0;
  std::memcpy(&key, slot, sizeof key);
  return key;
}

/// A column that is a weighted sum of features, see Model's LinearColumn.
struct LinearDesc {
  std::uint32_t first_term;  ///< Index of its first term in the linear_terms section.
  std::uint32_t term_count;
  std::uint32_t replaces;  ///< 1 if missing values are replaced; 0 if they make the sum missing.

  bool operator==(const LinearDesc&) const = default;
};
static_assert(sizeof(LinearDesc) == 12);

struct LinearTerm {
  std::uint32_t feature;
  float weight;
  float replacement;  ///< Number that stands for a missing value.

  bool operator==(const LinearTerm&) const = default;
};
static_assert(sizeof(LinearTerm) == 12);

}  // namespace forestvm
