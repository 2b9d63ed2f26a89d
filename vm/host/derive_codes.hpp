// Writes the codes of lookups straight from a row's features: no value is written and none is encoded. In: converted
// rows without derived columns, and tables of codes (lookup_codes.hpp). Out: the codes of those rows in the columns of
// all lookups. It is one template, which is compiled for each CPU target.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/derived_columns.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// A set of keys, each of which has a slot of its own: a key's bucket has the number that leads to its slot.
struct KeySlots {
  const std::uint16_t* buckets;
  const std::uint64_t* keys;  ///< The key of each slot; any number where a slot is unused.
  std::uint64_t multiplier;
  std::uint32_t slot_count;  ///< Stands for a key that is not in the set, too.
  std::uint8_t bucket_shift, slot_shift;
};

/// Returns the only slot where a key can be if its bucket has the number `number`.
FVM_INLINE std::uint64_t slot_for(const KeySlots& slots, std::uint64_t key, std::uint64_t number) {
  return (key ^ number) * slots.multiplier >> slots.slot_shift;
}

/// Returns a key's slot, or slot_count.
FVM_INLINE std::uint32_t find_slot(const KeySlots& slots, std::uint64_t key) {
  const std::uint64_t slot = slot_for(slots, key, slots.buckets[key >> slots.bucket_shift]);
  return slots.keys[slot] == key ? static_cast<std::uint32_t>(slot) : slots.slot_count;
}

/// The bytes after a table of codes that must be readable too.
inline constexpr std::size_t kTableSlack = 3;

/// A column of codes and its table. The place of a row's code is its key's slot, in the upper bits, and the outcomes of
/// its lookup's tests, the first in the lowest bit.
struct CodeColumn {
  std::uint32_t column;
  const std::uint8_t* codes;
};

/// The code columns of a lookup, and the numbers of its tests that are no part of its set's keys.
struct LookupColumns {
  std::span<const std::uint32_t> tests;
  std::span<const CodeColumn> columns;
};

/// A part of a set's keys: a feature's code or a test's outcome, by its number among those of the task.
struct SetPart {
  std::uint32_t number;
  bool category;
};

/// Lookups that search for one key.
struct LookupSet {
  std::span<const SetPart> parts;
  KeySlots slots;
  std::span<const LookupColumns> lookups;
};

struct DeriveTask {
  std::span<const std::uint32_t> features;  ///< The features that tests and keys read.
  std::span<const KeyPart> tests;           ///< Their `feature` is a number among those of `features`.
  std::span<const LookupSet> sets;
  const float* rows;
  std::size_t stride;
  std::uint32_t row_count;
  std::size_t columns;  ///< Number of columns of codes.
  std::uint8_t* codes;  ///< The first row's code in column 0, where a block begins.
  std::byte* scratch;   ///< derive_scratch bytes, aligned to a cache line.
};

using DeriveFunction = void (*)(const DeriveTask&);

/// Returns the bytes that deriving needs for `features` features and `tests` tests.
constexpr std::size_t derive_scratch(std::size_t features, std::size_t tests) {
  return kCodeRows * (features * sizeof(float) + tests);
}

/// Loops over rows run over whole groups, so that a vectorised loop leaves none over.
inline constexpr unsigned kGroupRows = 16;
static_assert(kCodeRows % kGroupRows == 0);

template <class Visit>
FVM_INLINE void for_rows(unsigned rows, const Visit& visit) {
  const unsigned whole = rows / kGroupRows * kGroupRows;
  for (unsigned r = 0; r < whole; ++r) visit(r);
}

/// Copies a feature's values. The last row's stands for those of rows that a group lacks.
FVM_INLINE void copy_values(const float* from, std::size_t stride, unsigned count, float* to) {
  for (unsigned r = 0; r < count; ++r) to[r] = from[r * stride];
  for (unsigned r = count; r % kGroupRows != 0; ++r) to[r] = to[count - 1];
}

/// Writes the outcome of a test for each row of a block: all bits of a byte, or none.
FVM_INLINE void write_outcomes(const KeyPart& test, const float* values, unsigned rows, std::uint8_t* out) {
  const auto border = std::bit_cast<float>(test.operand);
  const auto put = [&](unsigned r, bool outcome) { out[r] = outcome ? 0xff : 0; };
  if (test.kind == KeyPartKind::HasCode)
    for_rows(rows, [&](unsigned r) { put(r, std::bit_cast<std::uint32_t>(values[r]) == test.operand); });
  else if (test.kind == KeyPartKind::Above)
    for_rows(rows, [&](unsigned r) { put(r, values[r] > border); });
  else
    for_rows(rows, [&](unsigned r) { put(r, !(values[r] <= border)); });
}

/// A block of rows: the values of its features, and the outcomes of its tests, kCodeRows of each.
struct DerivedBlock {
  float* values;
  std::uint8_t* outcomes;
  unsigned rows;  ///< Whole groups.
};

/// Calls visit(r, part) with the number of a row and its part of a key.
template <class Visit>
FVM_INLINE void for_parts(const SetPart& part, const DerivedBlock& block, const Visit& visit) {
  const std::size_t first = std::size_t{part.number} * kCodeRows;
  const float* const values = block.values + first;
  const std::uint8_t* const outcomes = block.outcomes + first;
  if (part.category)
    for_rows(block.rows, [&](unsigned r) { visit(r, std::bit_cast<std::int32_t>(values[r])); });
  else
    for_rows(block.rows, [&](unsigned r) { visit(r, outcomes[r] & 1); });
}

/// Writes the slot of each row's key.
FVM_INLINE void find_slots(const LookupSet& set, const DerivedBlock& block, std::uint32_t* slots) {
  alignas(64) std::uint64_t keys[kCodeRows];
  if (set.parts.empty())
    std::fill_n(keys, kCodeRows, 0);
  else
    for_parts(set.parts[0], block, [&](unsigned r, std::int32_t part) { keys[r] = key_with(0, part); });
  for (std::size_t i = 1; i < set.parts.size(); ++i)
    for_parts(set.parts[i], block, [&](unsigned r, std::int32_t part) { keys[r] = key_with(keys[r], part); });
  const KeySlots table = set.slots;
  for_rows(block.rows, [&](unsigned r) { slots[r] = find_slot(table, keys[r]); });
}

/// Writes the codes of a lookup's columns. A target that fetches bytes faster together has look_up(table, places, count,
/// to), for whole groups, which may read kTableSlack bytes behind a table's last.
template <class Search>
FVM_INLINE void write_codes(const LookupColumns& lookup, const DerivedBlock& block,
                            const std::uint32_t* slots, std::uint8_t* codes) {
  alignas(64) std::uint32_t places[kCodeRows];
  if (!lookup.tests.empty()) {
    alignas(64) std::uint8_t bits[kCodeRows] = {};
    std::uint8_t bit = 1;
    for (const std::uint32_t test : lookup.tests) {
      const std::uint8_t* const outcomes = block.outcomes + std::size_t{test} * kCodeRows;
      for_rows(block.rows,
               [&](unsigned r) { bits[r] = static_cast<std::uint8_t>(bits[r] | (outcomes[r] & bit)); });
      bit = static_cast<std::uint8_t>(bit * 2);
    }
    for_rows(block.rows, [&](unsigned r) { places[r] = slots[r] * bit + bits[r]; });
    slots = places;
  }
  for (const CodeColumn& column : lookup.columns) {
    std::uint8_t* const to = codes + std::size_t{column.column} * kCodeRows;
    const std::uint8_t* const from = column.codes;
    if constexpr (requires { Search::look_up(from, slots, 0u, to); })
      Search::look_up(from, slots, block.rows, to);
    else
      for_rows(block.rows, [&](unsigned r) { to[r] = from[slots[r]]; });
  }
}

template <class Target>
void derive_codes(const DeriveTask& task) {
  const auto values = reinterpret_cast<float*>(task.scratch);
  const auto outcomes = reinterpret_cast<std::uint8_t*>(values + task.features.size() * kCodeRows);
  for (std::uint32_t begin = 0; begin < task.row_count; begin += kCodeRows) {
    const unsigned count = std::min(kCodeRows, task.row_count - begin);
    const DerivedBlock block{values, outcomes, (count + kGroupRows - 1) / kGroupRows * kGroupRows};
    const float* const rows = task.rows + begin * task.stride;
    for (std::size_t i = 0; i < task.features.size(); ++i)
      copy_values(rows + task.features[i], task.stride, count, values + i * kCodeRows);
    for (std::size_t i = 0; i < task.tests.size(); ++i)
      write_outcomes(task.tests[i], values + std::size_t{task.tests[i].feature} * kCodeRows, block.rows,
                     outcomes + i * kCodeRows);
    std::uint8_t* const codes = task.codes + code_offset(begin, task.columns);
    for (const LookupSet& set : task.sets) {
      alignas(64) std::uint32_t slots[kCodeRows];
      find_slots(set, block, slots);
      for (const LookupColumns& lookup : set.lookups)
        write_codes<typename Target::Search>(lookup, block, slots, codes);
    }
  }
}

}  // namespace forestvm::host
