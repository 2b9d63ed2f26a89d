// The verifier's rules for derived columns: features that they read lie inside the row, parts, tables and terms inside
// their sections, and each table ends with an unused slot, where every search ends at the latest.
#include <algorithm>
#include <string>

#include <forestvm/core/derived_columns.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

constexpr const char* kOutsideRow = "its feature lies outside the row";

Result<void> verify_hashed_features(const Program& program) {
  const auto features = program.hashed_features();
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i] >= program.meta().num_features) return record_error("hashed_features", i, kOutsideRow);
    if (i != 0 && features[i] <= features[i - 1])
      return record_error("hashed_features", i, "its feature does not ascend");
  }
  return {};
}

/// Returns what is wrong with a part of a key; null if nothing is.
const char* part_rule(const KeyPart& part, std::span<const std::uint32_t> hashed,
                      std::uint32_t num_features) {
  if (static_cast<std::uint8_t>(part.kind) >= kKeyPartKinds) return "its kind is unknown";
  if (part.reserved[0] != 0 || part.reserved[1] != 0 || part.reserved[2] != 0)
    return "a reserved byte is not zero";
  if (part.feature >= num_features) return kOutsideRow;
  const bool codes = part.kind == KeyPartKind::Category || part.kind == KeyPartKind::HasCode;
  if (codes != std::binary_search(hashed.begin(), hashed.end(), part.feature))
    return codes ? "its feature has no codes" : "its feature has codes instead of numbers";
  return part.kind == KeyPartKind::Category && part.operand != 0 ? "a category has no operand" : nullptr;
}

/// Returns what is wrong with a lookup's table, which begins at `words`; null if nothing is.
const char* table_rule(const LookupDesc& lookup, std::span<const std::uint32_t> words) {
  if (lookup.reserved != 0) return "a reserved field is not zero";
  if (lookup.width == 0) return "it has no columns";
  if (lookup.home_count == 0 || lookup.home_count > lookup.slot_count)
    return "searches begin outside its table";
  if (lookup.slot_count > words.size() / slot_words(lookup))
    return "its table leaves the lookup_words section";
  const std::uint64_t last = (lookup.slot_count - std::uint64_t{1}) * slot_words(lookup);
  return key_at(words.data() + last) == lookup.unused_key ? nullptr : "the last slot of its table is in use";
}

/// Checks the lookups, and adds their columns to `columns`.
Result<void> verify_lookups(const Program& program, std::uint64_t& columns) {
  const auto lookups = program.lookups();
  const auto words = program.lookup_words();
  std::uint64_t parts = 0, taken = 0;
  for (std::size_t i = 0; i < lookups.size(); ++i) {
    const LookupDesc& lookup = lookups[i];
    const auto wrong = [i](const char* what) { return record_error("lookups", i, what); };
    if (lookup.first_part != parts) return wrong("its parts do not follow the record before");
    parts += lookup.part_count;
    if (parts > program.key_parts().size()) return wrong("its parts leave the key_parts section");
    if (lookup.first_word != taken) return wrong("its table does not follow the record before");
    if (const char* rule = table_rule(lookup, words.subspan(taken))) return wrong(rule);
    taken += lookup.slot_count * slot_words(lookup);
    columns += lookup.width;
  }
  if (parts != program.key_parts().size())
    return refused("key_parts section", "{} parts, but the lookups have {}", program.key_parts().size(),
                   parts);
  if (taken != words.size())
    return refused("lookup_words section", "{} words, but the tables have {}", words.size(), taken);
  const auto key_parts = program.key_parts();
  for (std::size_t i = 0; i < key_parts.size(); ++i)
    if (const char* rule = part_rule(key_parts[i], program.hashed_features(), program.meta().num_features))
      return record_error("key_parts", i, rule);
  return {};
}

Result<void> verify_computed_columns(const Program& program) {
  const auto columns = program.computed_columns();
  const auto terms = program.column_terms();
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (static_cast<std::uint32_t>(columns[i].kind) >= kColumnKinds)
      return record_error("computed_columns", i, "its kind is unknown");
    const auto [least, most] = term_counts(columns[i].kind);
    if (columns[i].term_count < least || columns[i].term_count > most)
      return record_error("computed_columns", i, "its kind has another number of terms");
    if (columns[i].first_term != taken)
      return record_error("computed_columns", i, "its terms do not follow the record before");
    taken += columns[i].term_count;
    if (taken > terms.size())
      return record_error("computed_columns", i, "its terms leave the column_terms section");
  }
  if (taken != terms.size())
    return refused("column_terms section", "{} terms, but the columns have {}", terms.size(), taken);
  const auto hashed = program.hashed_features();
  const std::uint32_t first = row_width(program.meta()) - static_cast<std::uint32_t>(columns.size());
  for (std::uint32_t c = 0; c < columns.size(); ++c)
    for (std::uint32_t i = columns[c].first_term; i < columns[c].first_term + columns[c].term_count; ++i) {
      const std::uint32_t feature = terms[i].feature;
      const bool computed_before = feature >= first && feature < first + c;
      if (feature >= program.meta().num_features && !computed_before)
        return record_error("column_terms", i, "its column is no feature, nor computed before");
      if (std::binary_search(hashed.begin(), hashed.end(), feature))
        return record_error("column_terms", i, "its feature has codes instead of numbers");
    }
  return {};
}

}  // namespace

Result<void> verify_derived_columns(const Program& program) {
  const ProgramMeta& meta = program.meta();
  FVM_TRY(verify_hashed_features(program));
  std::uint64_t columns = program.computed_columns().size();
  FVM_TRY(verify_lookups(program, columns));
  if (columns != meta.derived_columns)
    return refused("meta section", "{} derived columns, but the lookups and computed columns have {}",
                   meta.derived_columns, columns);
  FVM_TRY(verify_computed_columns(program));
  const bool derives = columns != 0 || !program.hashed_features().empty();
  if (derives && (meta.row_type != ScalarType::Float32 || !program.zero_missing().empty()))
    return refused("meta section",
                   "derived columns of rows that are compared in float64, or whose zeros are missing");
  return {};
}

}  // namespace forestvm::bytecode
