// Columns that a program computes from a row's features before its encoder and its walks see the row: values that
// are looked up in tables by keys of hashed categories, and numbers that are computed from others. A converted row
// holds the features, then the columns of the lookups, then the computed columns. Where a hashed feature stands it
// holds the code of the category, an int32, which only lookups read.
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
  Category = 0,    ///< The code of a hashed feature.
  Above = 1,       ///< 1 if the feature's value is above `operand`, else 0; 0 for NaN.
  AboveOrNan = 2,  ///< 1 if the value is above `operand` or NaN, else 0.
  HasCode = 3,     ///< 1 if the code of a hashed feature is `operand`, else 0.
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

/// The rules of computed columns. x is the value of a term's column, a and b are the term's numbers; x0 and x1 are the
/// values of the first and the second term. All is computed in float32, and each operation is rounded.
enum class ColumnKind : std::uint32_t {
  Sum = 0,          ///< Sum of a * x, from 0 on, in the order of the terms.
  SumReplaced = 1,  ///< The same sum, with b in place of an x that is NaN.
  Scaled = 2,       ///< (x - a) * b
  Divided = 3,      ///< x / a
  Replaced = 4,     ///< b if x is a, or if both are NaN; otherwise x.
  Clipped = 5,      ///< x, but at least a and at most b; NaN stays NaN.
  SizeSum = 6,      ///< Sum of |x|.
  SquareSum = 7,    ///< Sum of x * x.
  Largest = 8,      ///< The largest x; NaN and -inf count as the least finite number.
  Share = 9,        ///< x0 / x1, or x0 if x1 is 0.
  RootShare = 10,   ///< sqrt(x0 * x0 / x1) with the sign of x0, or x0 if x1 is 0.
};
inline constexpr std::uint32_t kColumnKinds = 11;

/// Returns whether columns of this kind are weighted sums.
constexpr bool is_sum(ColumnKind kind) { return kind <= ColumnKind::SumReplaced; }

/// The least and the largest number of terms that a kind of columns takes.
struct TermCounts {
  std::uint32_t least, most;
};

constexpr TermCounts term_counts(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::Sum:
    case ColumnKind::SumReplaced:
    case ColumnKind::SizeSum:
    case ColumnKind::SquareSum:
    case ColumnKind::Largest:
      return {0, UINT32_MAX};
    case ColumnKind::Scaled:
    case ColumnKind::Divided:
    case ColumnKind::Replaced:
    case ColumnKind::Clipped:
      return {1, 1};
    case ColumnKind::Share:
    case ColumnKind::RootShare:
      return {2, 2};
  }
  return {1, 0};
}

/// A column that is computed from others.
struct ComputedDesc {
  std::uint32_t first_term;  ///< Index of its first term in the column_terms section.
  std::uint32_t term_count;
  ColumnKind kind;

  bool operator==(const ComputedDesc&) const = default;
};
static_assert(sizeof(ComputedDesc) == 12);

/// A term of a computed column.
struct ColumnTerm {
  std::uint32_t feature;  ///< A feature that is a number, or a computed column before this one.
  float first, second;    ///< The numbers a and b of its rule; 0 where the rule has none.

  bool operator==(const ColumnTerm&) const = default;
};
static_assert(sizeof(ColumnTerm) == 12);

}  // namespace forestvm
