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

/// Loops over rows run over whole groups, whose number of rows the compiler knows.
inline constexpr unsigned kGroupRows = 16;
static_assert(kCodeRows % kGroupRows == 0);

template <class Visit>
FVM_INLINE void for_rows(unsigned rows, const Visit& visit) {
  for (unsigned begin = 0; begin < rows; begin += kGroupRows)
    for (unsigned i = 0; i < kGroupRows; ++i) visit(begin + i);
}

/// Writes the outcome of a test for each row of a block.
FVM_INLINE void write_outcomes(const KeyPart& test, const float* values, unsigned rows, std::uint8_t* out) {
  const auto border = std::bit_cast<float>(test.operand);
  if (test.kind == KeyPartKind::HasCode)
    for_rows(rows, [&](unsigned r) { out[r] = std::bit_cast<std::uint32_t>(values[r]) == test.operand; });
  else if (test.kind == KeyPartKind::Above)
    for_rows(rows, [&](unsigned r) { out[r] = values[r] > border; });
  else
    for_rows(rows, [&](unsigned r) { out[r] = !(values[r] <= border); });
}

/// A block of rows: the values of its features, and the outcomes of its tests, kCodeRows of each.
struct DerivedBlock {
  float* values;
  std::uint8_t* outcomes;
  unsigned rows;  ///< Whole groups.
};

/// Writes the slot of each row's key.
FVM_INLINE void find_slots(const LookupSet& set, const DerivedBlock& block, std::uint32_t* slots) {
  alignas(64) std::uint64_t keys[kCodeRows] = {};
  for (const SetPart& part : set.parts)
    if (part.category) {
      const float* const values = block.values + std::size_t{part.number} * kCodeRows;
      for_rows(block.rows,
               [&](unsigned r) { keys[r] = key_with(keys[r], std::bit_cast<std::int32_t>(values[r])); });
    } else {
      const std::uint8_t* const outcomes = block.outcomes + std::size_t{part.number} * kCodeRows;
      for_rows(block.rows, [&](unsigned r) { keys[r] = key_with(keys[r], outcomes[r]); });
    }
  const KeySlots table = set.slots;
  for_rows(block.rows, [&](unsigned r) { slots[r] = find_slot(table, keys[r]); });
}

/// Writes the codes of a lookup's columns.
FVM_INLINE void write_codes(const LookupColumns& lookup, const DerivedBlock& block,
                            const std::uint32_t* slots, std::uint8_t* codes) {
  alignas(64) std::uint32_t places[kCodeRows];
  if (!lookup.tests.empty()) {
    alignas(64) std::uint8_t bits[kCodeRows] = {};
    unsigned shift = 0;
    for (const std::uint32_t test : lookup.tests) {
      const std::uint8_t* const outcomes = block.outcomes + std::size_t{test} * kCodeRows;
      for_rows(block.rows,
               [&](unsigned r) { bits[r] = static_cast<std::uint8_t>(bits[r] | outcomes[r] << shift); });
      ++shift;
    }
    for_rows(block.rows, [&](unsigned r) { places[r] = slots[r] << shift | bits[r]; });
    slots = places;
  }
  for (const CodeColumn& column : lookup.columns) {
    std::uint8_t* const to = codes + std::size_t{column.column} * kCodeRows;
    const std::uint8_t* const from = column.codes;
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
      for (unsigned r = 0; r < block.rows; ++r)  // the last row stands for those that a group lacks
        values[i * kCodeRows + r] = rows[std::min(r, count - 1) * task.stride + task.features[i]];
    for (std::size_t i = 0; i < task.tests.size(); ++i)
      write_outcomes(task.tests[i], values + std::size_t{task.tests[i].feature} * kCodeRows, block.rows,
                     outcomes + i * kCodeRows);
    std::uint8_t* const codes = task.codes + code_offset(begin, task.columns);
    for (const LookupSet& set : task.sets) {
      alignas(64) std::uint32_t slots[kCodeRows];
      find_slots(set, block, slots);
      for (const LookupColumns& lookup : set.lookups) write_codes(lookup, block, slots, codes);
    }
  }
}

}  // namespace forestvm::host
