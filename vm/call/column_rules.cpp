// See forestvm/internal/column_rules.hpp. In: converted rows with the codes of their hashed features. Out: their derived
// columns. Rows are taken a block at a time and lookups one after the other, so that a table stays in the caches for a
// block, and the slots of its rows are fetched together.
#include <forestvm/internal/column_rules.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

#include "vm/call/hashed_values.hpp"

namespace forestvm {
namespace {

constexpr std::size_t kBlockRows = 64;

/// Returns the part of a row's key for a value, or a code, of its feature.
template <KeyPartKind kKind>
std::int32_t part_of(const KeyPart& part, float value) {
  if constexpr (kKind == KeyPartKind::Category) return std::bit_cast<std::int32_t>(value);
  if constexpr (kKind == KeyPartKind::Above) return value > std::bit_cast<float>(part.operand);
  if constexpr (kKind == KeyPartKind::AboveOrNan)
    return value > std::bit_cast<float>(part.operand) || std::isnan(value);
  return std::bit_cast<std::uint32_t>(value) == part.operand;
}

template <KeyPartKind kKind>
void add_part(const KeyPart& part, const float* rows, std::size_t count, std::size_t width,
              std::uint64_t* keys) {
  for (std::size_t r = 0; r < count; ++r)
    keys[r] = key_with(keys[r], part_of<kKind>(part, rows[r * width + part.feature]));
}

void add_part(const KeyPart& part, const float* rows, std::size_t count, std::size_t width,
              std::uint64_t* keys) {
  switch (part.kind) {
    case KeyPartKind::Category:
      return add_part<KeyPartKind::Category>(part, rows, count, width, keys);
    case KeyPartKind::Above:
      return add_part<KeyPartKind::Above>(part, rows, count, width, keys);
    case KeyPartKind::AboveOrNan:
      return add_part<KeyPartKind::AboveOrNan>(part, rows, count, width, keys);
    case KeyPartKind::HasCode:
      return add_part<KeyPartKind::HasCode>(part, rows, count, width, keys);
  }
}

float sum_of(const LinearDesc& column, std::span<const LinearTerm> terms, const float* row) {
  float sum = 0;
  for (const LinearTerm& term : terms) {
    const float value = row[term.feature];
    sum += term.weight * (column.replaces != 0 && std::isnan(value) ? term.replacement : value);
  }
  return sum;
}

}  // namespace

ColumnRules::ColumnRules(const Program& program)
    : num_features_(program.meta().num_features),
      width_(row_width(program.meta())),
      hashed_(program.section_HashedFeatures()),
      lookups_(program.section_Lookups()),
      parts_(program.section_KeyParts()),
      words_(program.section_LookupWords()),
      linear_(program.section_LinearColumns()),
      terms_(program.section_LinearTerms()) {}

template <class Rows>
Result<void> ColumnRules::complete(const Rows& rows, std::size_t begin, std::size_t count, float* out) const {
  FVM_TRY(host::fill_codes(hashed_, rows, begin, count, width_, out));
  derive(count, out);
  return {};
}

template Result<void> ColumnRules::complete(const RowBlock&, std::size_t, std::size_t, float*) const;
template Result<void> ColumnRules::complete(const CsrRows&, std::size_t, std::size_t, float*) const;

void ColumnRules::look_up(const LookupDesc& lookup, std::size_t column, std::size_t count,
                          float* rows) const {
  std::uint64_t keys[kBlockRows];
  const std::uint32_t* slots[kBlockRows];
  std::fill_n(keys, count, 0);
  for (const KeyPart& part : parts_.subspan(lookup.first_part, lookup.part_count))
    add_part(part, rows, count, width_, keys);
  const std::uint32_t* const table = words_.data() + lookup.first_word;
  const std::size_t slot_size = slot_words(lookup);
  for (std::size_t r = 0; r < count; ++r) {
    slots[r] = table + home_slot(keys[r], lookup.home_count) * slot_size;
    __builtin_prefetch(slots[r]);
  }
  for (std::size_t r = 0; r < count; ++r) {
    const std::uint32_t* slot = slots[r];
    for (std::uint64_t key = key_at(slot); key != keys[r] && key != lookup.unused_key; key = key_at(slot))
      slot += slot_size;
    float* const to = rows + r * width_ + column;
    to[0] =
        std::bit_cast<float>(slot[kKeyWords]);  // most lookups have one column, for which a loop takes longer
    for (std::uint32_t i = 1; i < lookup.width; ++i) to[i] = std::bit_cast<float>(slot[kKeyWords + i]);
  }
}

void ColumnRules::derive(std::size_t count, float* rows) const {
  for (std::size_t begin = 0; begin < count; begin += kBlockRows, rows += kBlockRows * width_) {
    const std::size_t in_block = std::min(kBlockRows, count - begin);
    std::size_t column = num_features_;
    for (const LookupDesc& lookup : lookups_) {
      look_up(lookup, column, in_block, rows);
      column += lookup.width;
    }
    for (std::size_t r = 0; r < in_block; ++r)
      for (std::size_t i = 0; i < linear_.size(); ++i)
        rows[r * width_ + column + i] = sum_of(
            linear_[i], terms_.subspan(linear_[i].first_term, linear_[i].term_count), rows + r * width_);
  }
}

}  // namespace forestvm
