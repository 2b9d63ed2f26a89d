// Derived columns of a model -> sections of the program: keys of lookups become tables of slots.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include <forestvm/core/derived_columns.hpp>

#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {
namespace {

/// Slots of a table for each of its keys. With two, a search looks at one or two slots, most of them in one cache line.
constexpr std::size_t kSlotsPerKey = 2;

KeyPart part_of(const ValueTest& test) {
  return {test.feature,
          std::bit_cast<std::uint32_t>(test.border),
          test.nan_above ? KeyPartKind::AboveOrNan : KeyPartKind::Above,
          {}};
}

std::uint32_t size32(std::size_t size) { return static_cast<std::uint32_t>(size); }

/// Returns the rows of a lookup's table, ordered by their keys.
std::vector<std::uint32_t> ordered_rows(const Lookup& lookup) {
  std::vector<std::uint32_t> rows(lookup.keys.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::sort(rows.begin(), rows.end(),
            [&](std::uint32_t a, std::uint32_t b) { return lookup.keys[a] < lookup.keys[b]; });
  return rows;
}

/// Returns the least number that is no key.
std::uint64_t unused_key(const Lookup& lookup, const std::vector<std::uint32_t>& rows) {
  std::uint64_t unused = 0;
  for (const std::uint32_t row : rows) {
    if (lookup.keys[row] != unused) break;
    ++unused;
  }
  return unused;
}

/// Appends a table to `words`: each key, in order, goes to its home slot or, if that is taken, behind the key
/// before it.
void emit_table(const Lookup& lookup, LookupDesc& desc, std::vector<std::uint32_t>& words) {
  const std::vector<std::uint32_t> rows = ordered_rows(lookup);
  desc.unused_key = unused_key(lookup, rows);
  desc.home_count = size32(std::max<std::size_t>(1, rows.size() * kSlotsPerKey));
  std::vector<std::uint64_t> slots;
  for (const std::uint32_t row : rows) {
    const std::uint64_t home = home_slot(lookup.keys[row], desc.home_count);
    slots.push_back(slots.empty() ? home : std::max(home, slots.back() + 1));
  }
  desc.slot_count = size32(std::max<std::size_t>(desc.home_count, slots.empty() ? 0 : slots.back() + 1) + 1);
  const auto put = [&](std::uint64_t slot, std::uint64_t key, std::size_t row) {
    std::uint32_t* const to = words.data() + desc.first_word + slot * slot_words(desc);
    std::memcpy(to, &key, sizeof key);
    std::memcpy(to + kKeyWords, lookup.values.data() + row * lookup.width, lookup.width * sizeof(float));
  };
  words.resize(desc.first_word + desc.slot_count * slot_words(desc));
  for (std::uint64_t slot = 0; slot < desc.slot_count; ++slot) put(slot, desc.unused_key, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) put(slots[i], lookup.keys[rows[i]], rows[i]);
}

void emit_lookup(const Lookup& lookup, ProgramParts& parts) {
  LookupDesc desc{};
  desc.first_part = size32(parts.key_parts.size());
  for (const std::uint32_t feature : lookup.categories)
    parts.key_parts.push_back({feature, 0, KeyPartKind::Category, {}});
  for (const ValueTest& test : lookup.value_tests) parts.key_parts.push_back(part_of(test));
  for (const CodeTest& test : lookup.code_tests)
    parts.key_parts.push_back(
        {test.feature, std::bit_cast<std::uint32_t>(test.code), KeyPartKind::HasCode, {}});
  desc.part_count = size32(parts.key_parts.size()) - desc.first_part;
  desc.first_word = parts.lookup_words.size();
  desc.width = lookup.width;
  emit_table(lookup, desc, parts.lookup_words);
  parts.lookups.push_back(desc);
}

void emit_computed(const ComputedColumn& column, ProgramParts& parts) {
  parts.computed_columns.push_back(
      {size32(parts.column_terms.size()), size32(column.terms.size()), column.kind});
  parts.column_terms.insert(parts.column_terms.end(), column.terms.begin(), column.terms.end());
}

}  // namespace

void emit_columns(const Model& model, ProgramParts& parts) {
  parts.meta.derived_columns = size32(num_columns(model)) - model.num_features;
  parts.hashed_features = model.hashed_features;
  for (const Lookup& lookup : model.lookups) emit_lookup(lookup, parts);
  for (const ComputedColumn& column : model.computed_columns) emit_computed(column, parts);
}

}  // namespace forestvm::scheduler
