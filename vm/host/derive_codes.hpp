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

/// A set of keys, each of which has a slot of its own. The highest bits of a key choose a bucket, and the bucket's
/// number leads to the key's slot: see slot_for.
struct KeySlots {
  const std::uint16_t* buckets;
  const std::uint64_t* keys;  ///< The key of each slot; any number where a slot is unused.
  std::uint64_t multiplier;
  std::uint32_t slot_count;  ///< Number of slots. As a slot it stands for a key that is not in the set.
  std::uint8_t bucket_shift, slot_shift;
};

/// Returns the only slot where a key can be. `number` is the number of its bucket.
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
/// Tables of at most this many entries have one column, and can be read as a whole up to the next power of two, from
/// 64 on: some processors look such a table up in registers.
inline constexpr std::size_t kSmallTable = 256;
/// The most columns of a table.
inline constexpr std::size_t kTableColumns = 4;

/// A table of the codes of some columns, which are fetched together. The codes of entry i begin at `codes + i *
/// columns.size() rounded up to a power of two`. A row's entry is a number whose lowest bits are the outcomes of the
/// lookup's tests, the first test's the lowest, and whose upper bits are the slot of the row's key.
struct CodeTable {
  const std::uint8_t* codes;
  std::span<const std::uint32_t> columns;  ///< At most kTableColumns.
  std::uint32_t entries;
};

/// The tables of a lookup, and the numbers of its tests that are no part of its set's keys.
struct LookupTables {
  std::span<const std::uint32_t> tests;
  std::span<const CodeTable> tables;
};

/// A part of a set's keys: the code of a feature, or the outcome of a test. `number` is an index in the features or
/// tests of the task.
struct SetPart {
  std::uint32_t number;
  bool category;
};

/// Lookups that search for one key.
struct LookupSet {
  std::span<const SetPart> parts;
  KeySlots slots;
  std::span<const LookupTables> lookups;
};

struct DeriveTask {
  std::span<const std::uint32_t> features;  ///< The features that tests and keys read.
  std::span<const KeyPart> tests;           ///< The tests; `feature` is an index in `features`.
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

/// Loops over rows run over whole groups, so that a vectorised loop has no remainder.
inline constexpr unsigned kGroupRows = 16;
static_assert(kCodeRows % kGroupRows == 0);

/// Calls visit(r) for each row. On targets with wide vectors the compiler unrolls a group, which takes 0.8 of the
/// time; on other targets the code stays small.
template <class Target, class Visit>
FVM_INLINE void for_rows(unsigned rows, const Visit& visit) {
  const unsigned whole = rows / kGroupRows * kGroupRows;
  if constexpr (requires { typename Target::Lanes; }) {
    for (unsigned begin = 0; begin < whole; begin += kGroupRows)
      for (unsigned i = 0; i < kGroupRows; ++i) visit(begin + i);
  } else {
    for (unsigned r = 0; r < whole; ++r) visit(r);
  }
}

/// Copies a feature's values. Where the last group lacks rows, the last row's value stands for theirs.
FVM_INLINE void copy_values(const float* from, std::size_t stride, unsigned count, float* to) {
  for (unsigned r = 0; r < count; ++r) to[r] = from[r * stride];
  for (unsigned r = count; r % kGroupRows != 0; ++r) to[r] = to[count - 1];
}

/// Writes the outcome of a test for each row of a block: all bits of a byte, or none. It is a function of its own, with
/// pointers that are not aliases and loops of single comparisons, so that compilers vectorise it. A search that is
/// faster has write_outcomes(test, values, rows, out).
template <class Target>
[[gnu::noinline]] void write_outcomes(const KeyPart& test, const float* __restrict values, unsigned rows,
                                      std::uint8_t* __restrict out) {
  using Search = typename Target::Search;
  if constexpr (requires { Search::write_outcomes(test, values, rows, out); }) {
    Search::write_outcomes(test, values, rows, out);
  } else {
    const auto border = std::bit_cast<float>(test.operand);
    if (test.kind == KeyPartKind::HasCode)
      for (unsigned r = 0; r < rows / kGroupRows * kGroupRows; ++r)
        out[r] = std::bit_cast<std::uint32_t>(values[r]) == test.operand ? 0xff : 0;
    else if (test.kind == KeyPartKind::Above)
      for (unsigned r = 0; r < rows / kGroupRows * kGroupRows; ++r) out[r] = values[r] > border ? 0xff : 0;
    else
      for (unsigned r = 0; r < rows / kGroupRows * kGroupRows; ++r) out[r] = values[r] <= border ? 0 : 0xff;
  }
}

/// A block of rows: the values of its features, and the outcomes of its tests, kCodeRows of each.
struct DerivedBlock {
  float* values;
  std::uint8_t* outcomes;
  unsigned rows;  ///< Number of rows, which is whole groups.
};

/// Writes the slot of each row's key.
template <class Target>
FVM_INLINE void find_slots(const LookupSet& set, const DerivedBlock& block, std::uint32_t* slots) {
  alignas(64) std::uint64_t keys[kCodeRows];
  std::size_t next = 0;
  if (!set.parts.empty() && set.parts[0].category) {
    const float* const values = block.values + std::size_t{set.parts[next++].number} * kCodeRows;
    for_rows<Target>(block.rows,
                     [&](unsigned r) { keys[r] = key_with(0, std::bit_cast<std::int32_t>(values[r])); });
  } else {
    std::fill_n(keys, kCodeRows, 0);
  }
  for (const SetPart& part : set.parts.subspan(next)) {
    const std::size_t first = std::size_t{part.number} * kCodeRows;
    if (part.category)
      for_rows<Target>(block.rows, [&, values = block.values + first](unsigned r) {
        keys[r] = key_with(keys[r], std::bit_cast<std::int32_t>(values[r]));
      });
    else
      for_rows<Target>(block.rows, [&, outcomes = block.outcomes + first](unsigned r) {
        keys[r] = key_with(keys[r], outcomes[r] & 1);
      });
  }
  const KeySlots table = set.slots;
  for_rows<Target>(block.rows, [&](unsigned r) { slots[r] = find_slot(table, keys[r]); });
}

/// Writes the codes of a lookup's columns. A search that can fetch several entries faster than one after the other has
/// look_up(table, indices, count, codes), for whole groups. It may read kTableSlack bytes behind the end of a table.
template <class Target>
FVM_INLINE void write_codes(const LookupTables& lookup, const DerivedBlock& block, const std::uint32_t* slots,
                            std::uint8_t* codes) {
  using Search = typename Target::Search;
  alignas(64) std::uint32_t indices[kCodeRows];
  if (!lookup.tests.empty()) {
    alignas(64) std::uint8_t bits[kCodeRows] = {};
    std::uint8_t bit = 1;
    for (const std::uint32_t test : lookup.tests) {
      const std::uint8_t* const outcomes = block.outcomes + std::size_t{test} * kCodeRows;
      for_rows<Target>(block.rows, [&](unsigned r) {
        bits[r] = static_cast<std::uint8_t>(bits[r] | (outcomes[r] & bit));
      });
      bit = static_cast<std::uint8_t>(bit * 2);
    }
    for_rows<Target>(block.rows, [&](unsigned r) { indices[r] = slots[r] * bit + bits[r]; });
    slots = indices;
  }
  for (const CodeTable& table : lookup.tables) {
    if constexpr (requires { Search::look_up(table, slots, 0u, codes); }) {
      Search::look_up(table, slots, block.rows, codes);
    } else {
      const std::size_t bytes = std::bit_ceil(table.columns.size());
      const std::uint8_t* from = table.codes;
      for (const std::uint32_t column : table.columns) {
        std::uint8_t* const to = codes + std::size_t{column} * kCodeRows;
        for_rows<Target>(block.rows, [=](unsigned r) { to[r] = from[slots[r] * bytes]; });
        ++from;
      }
    }
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
      write_outcomes<Target>(task.tests[i], values + std::size_t{task.tests[i].feature} * kCodeRows,
                             block.rows, outcomes + i * kCodeRows);
    std::uint8_t* const codes = task.codes + code_offset(begin, task.columns);
    for (const LookupSet& set : task.sets) {
      alignas(64) std::uint32_t slots[kCodeRows];
      find_slots<Target>(set, block, slots);
      for (const LookupTables& lookup : set.lookups) write_codes<Target>(lookup, block, slots, codes);
    }
  }
}

}  // namespace forestvm::host
