// See forestvm/internal/column_rules.hpp. In: converted rows with the codes of their hashed features. Out: their
// derived columns. Rows are taken a block at a time and lookups one after the other, so that a table stays in the
// caches for a block, and the slots of its rows are fetched together.
#include <forestvm/internal/column_rules.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "vm/call/hashed_values.hpp"

namespace forestvm {
namespace {

constexpr std::size_t kBlockRows = 64;
/// The number of searches whose first slots are fetched together. If there are few rows, these are searches of
/// several lookups.
constexpr std::size_t kSearches = 256;
static_assert(kSearches >= kBlockRows);

/// Returns the part of a row's key that a value, or a code, of its feature makes.
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

/// A row whose computed columns begin where those of rows with lookups do, less `left_out` columns.
struct ComputedRow {
  const float* values;
  std::size_t num_features, left_out;

  float at(const ColumnTerm& term) const {
    return values[term.feature < num_features ? term.feature : term.feature - left_out];
  }
};

float weighted_sum(std::span<const ColumnTerm> terms, const ComputedRow& row, bool replaces) {
  float sum = 0;
  for (const ColumnTerm& term : terms) {
    const float value = row.at(term);
    sum += term.first * (replaces && std::isnan(value) ? term.second : value);
  }
  return sum;
}

float share_of(float value, float whole) { return whole != 0 ? value / whole : value; }

/// Computes a column by the rule of its kind.
float computed(ColumnKind kind, std::span<const ColumnTerm> terms, const ComputedRow& row) {
  const auto total = [&](float from, auto with) {
    for (const ColumnTerm& term : terms) from = with(from, row.at(term));
    return from;
  };
  if (is_sum(kind)) return weighted_sum(terms, row, kind == ColumnKind::SumReplaced);
  if (kind == ColumnKind::SizeSum) return total(0, [](float sum, float x) { return sum + std::abs(x); });
  if (kind == ColumnKind::SquareSum) return total(0, [](float sum, float x) { return sum + x * x; });
  if (kind == ColumnKind::Largest)
    return total(std::numeric_limits<float>::lowest(), [](float y, float x) { return y < x ? x : y; });
  const auto [feature, a, b] = terms[0];
  const float x = row.at(terms[0]);
  switch (kind) {
    case ColumnKind::Scaled:
      return (x - a) * b;
    case ColumnKind::Divided:
      return x / a;
    case ColumnKind::Replaced:
      return x == a || (std::isnan(x) && std::isnan(a)) ? b : x;
    case ColumnKind::Clipped:
      return std::isnan(x) ? x : std::min(std::max(x, a), b);
    case ColumnKind::Share:
      return share_of(x, row.at(terms[1]));
    case ColumnKind::RootShare: {
      const float whole = row.at(terms[1]);
      return whole != 0 ? std::copysign(std::sqrt(x * x / whole), x < 0 ? -1.0f : 1.0f) : x;
    }
    case ColumnKind::Sum:
    case ColumnKind::SumReplaced:
    case ColumnKind::SizeSum:
    case ColumnKind::SquareSum:
    case ColumnKind::Largest:
      break;
  }
  return x;
}

}  // namespace

[[gnu::cold]] ColumnRules::ColumnRules(const Program& program)
    : num_features_(program.meta().num_features),
      width_(row_width(program.meta())),
      hashed_(program.hashed_features()),
      lookups_(program.lookups()),
      parts_(program.key_parts()),
      words_(program.lookup_words()),
      computed_(program.computed_columns()),
      terms_(program.column_terms()) {}

template <class Rows>
Result<void> ColumnRules::complete(const Rows& rows, std::size_t begin, std::size_t count, float* out,
                                   bool looks_up) const {
  const std::size_t width = looks_up ? width_ : short_width();
  FVM_TRY(host::fill_codes(hashed_, rows, begin, count, width, out));
  if (looks_up) look_up(count, out);
  compute(count, width, out);
  return {};
}

template Result<void> ColumnRules::complete(const RowBlock&, std::size_t, std::size_t, float*, bool) const;
template Result<void> ColumnRules::complete(const CsrRows&, std::size_t, std::size_t, float*, bool) const;
template Result<void> ColumnRules::complete(const ColumnRows&, std::size_t, std::size_t, float*, bool) const;

void ColumnRules::seek(const LookupDesc& lookup, const float* rows, std::size_t count,
                       Search* searches) const {
  std::uint64_t keys[kBlockRows];
  std::fill_n(keys, count, 0);
  for (const KeyPart& part : parts_.subspan(lookup.first_part, lookup.part_count))
    add_part(part, rows, count, width_, keys);
  const std::uint32_t* const table = words_.data() + lookup.first_word;
  const std::size_t slot_size = slot_words(lookup);
  for (std::size_t r = 0; r < count; ++r) {
    searches[r] = {keys[r], table + home_slot(keys[r], lookup.home_count) * slot_size};
    __builtin_prefetch(searches[r].slot);
  }
}

void ColumnRules::look_up(const LookupDesc& lookup, const Search* searches, std::size_t count,
                          float* columns) const {
  const std::size_t slot_size = slot_words(lookup);
  const std::uint64_t unused = lookup.unused_key;
  const std::uint32_t width = lookup.width;
  for (std::size_t r = 0; r < count; ++r, columns += width_) {
    const std::uint32_t* slot = searches[r].slot;
    const std::uint64_t wanted = searches[r].key;
    const auto goes_on = [&](std::uint64_t key) { return (key != wanted) & (key != unused); };
    // Most searches end at the first or second slot, which processors foresee badly: that step has no branch.
    slot += slot_size * static_cast<std::size_t>(goes_on(key_at(slot)));
    while (goes_on(key_at(slot))) slot += slot_size;
    columns[0] = std::bit_cast<float>(slot[kKeyWords]);  // most lookups have one column: a loop takes longer
    for (std::uint32_t i = 1; i < width; ++i) columns[i] = std::bit_cast<float>(slot[kKeyWords + i]);
  }
}

void ColumnRules::look_up(std::size_t count, float* rows) const {
  for (std::size_t begin = 0; begin < count; begin += kBlockRows, rows += kBlockRows * width_) {
    const std::size_t in_block = std::min(kBlockRows, count - begin);
    std::size_t column = num_features_;
    Search searches[kSearches];
    const std::size_t together = kSearches / in_block;
    for (std::size_t first = 0; first < lookups_.size(); first += together) {
      const auto some = lookups_.subspan(first, std::min(together, lookups_.size() - first));
      for (std::size_t i = 0; i < some.size(); ++i) seek(some[i], rows, in_block, searches + i * in_block);
      for (std::size_t i = 0; i < some.size(); ++i) {
        look_up(some[i], searches + i * in_block, in_block, rows + column);
        column += some[i].width;
      }
    }
  }
}

void ColumnRules::compute(std::size_t count, std::size_t width, float* rows) const {
  if (computed_.empty()) return;
  for (std::size_t r = 0; r < count; ++r, rows += width) {
    const ComputedRow row{rows, num_features_, width_ - width};
    float* to = rows + width - computed_.size();
    for (const ComputedDesc& column : computed_)
      *to++ = computed(column.kind, terms_.subspan(column.first_term, column.term_count), row);
  }
}

}  // namespace forestvm
