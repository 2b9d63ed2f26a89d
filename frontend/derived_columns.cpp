// See derived_columns.hpp.
#include "frontend/derived_columns.hpp"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <unordered_map>

#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

using ColumnValues = std::vector<double>;

/// Computes a model's columns.
class DerivedColumns {
 public:
  DerivedColumns(const Model& model, bool hashed_rows);

  /// Appends the columns to a row of features.
  Result<void> append_to(ColumnValues& row) const;

 private:
  using Keys = std::unordered_map<std::uint64_t, std::size_t>;

  Result<std::int32_t> code_of(const ColumnValues& row, std::uint32_t feature) const;
  Result<void> append_lookup(const Lookup& lookup, const Keys& keys, ColumnValues& row) const;

  const Model& model_;
  bool hashed_rows_;
  std::vector<Keys> keys_;  ///< For each lookup, the row of its table for each key.
};

Error not_a_category(std::uint32_t feature, double x, const char* expected) {
  std::ostringstream number;
  number << x;
  return refused(formatted("feature {}", feature), "expected {}, found {}", expected, number.str());
}

DerivedColumns::DerivedColumns(const Model& model, bool hashed_rows)
    : model_(model), hashed_rows_(hashed_rows) {
  for (const Lookup& lookup : model.lookups) {
    Keys& keys = keys_.emplace_back();
    for (std::size_t i = 0; i < lookup.keys.size(); ++i) keys.emplace(lookup.keys[i], i);
  }
}

Result<std::int32_t> DerivedColumns::code_of(const ColumnValues& row, std::uint32_t feature) const {
  const double x = row[feature];
  if (!hashed_rows_) {
    if (std::abs(x) <= kMaxCategoryNumber && x == std::trunc(x))
      return category_code(std::to_string(static_cast<std::int64_t>(x)));
    return not_a_category(feature, x, "a whole number, which stands for a category");
  }
  constexpr double least = std::numeric_limits<std::int32_t>::min(),
                   most = std::numeric_limits<std::int32_t>::max();
  if (x >= least && x <= most && x == std::trunc(x)) return static_cast<std::int32_t>(x);
  return not_a_category(feature, x, "the code of a category");
}

Result<void> DerivedColumns::append_lookup(const Lookup& lookup, const Keys& keys, ColumnValues& row) const {
  std::uint64_t key = 0;
  for (const std::uint32_t feature : lookup.categories) {
    FVM_ASSIGN(const std::int32_t code, code_of(row, feature));
    key = extend_key(key, code);
  }
  for (const ValueTest& test : lookup.value_tests) {
    const auto x = static_cast<float>(row[test.feature]);
    key = extend_key(key, std::isnan(x) ? test.nan_above : x > test.border);
  }
  for (const CodeTest& test : lookup.code_tests) {
    FVM_ASSIGN(const std::int32_t code, code_of(row, test.feature));
    key = extend_key(key, code == test.code);
  }
  const auto found = keys.find(key);
  const std::size_t at = found == keys.end() ? lookup.keys.size() : found->second;
  for (std::size_t i = 0; i < lookup.width; ++i) row.push_back(lookup.values[at * lookup.width + i]);
  return {};
}

/// Returns the column's number after one more term, if the terms before it made `so_far`.
float with_term(ColumnKind kind, const ColumnTerm& term, float x, float so_far) {
  const bool missing = std::isnan(x);
  float part = x;
  switch (kind) {
    case ColumnKind::Sum:
      part = term.first * x;
      return so_far + part;
    case ColumnKind::SumReplaced:
      part = term.first * (missing ? term.second : x);
      return so_far + part;
    case ColumnKind::SizeSum:
      return so_far + std::fabs(x);
    case ColumnKind::SquareSum:
      part = x * x;
      return so_far + part;
    case ColumnKind::Largest:
      return std::fmax(so_far, x);
    case ColumnKind::Scaled:
      part = x - term.first;
      return part * term.second;
    case ColumnKind::Divided:
      return x / term.first;
    case ColumnKind::Replaced:
      return (std::isnan(term.first) ? missing : x == term.first) ? term.second : x;
    case ColumnKind::Clipped:
      return missing ? x : std::fmin(std::fmax(x, term.first), term.second);
    case ColumnKind::Share:
    case ColumnKind::RootShare:
      break;
  }
  return x;
}

/// Returns the part's share of the whole, or for RootShare the root of its square's share, with the part's sign.
float share(ColumnKind kind, float part, float whole) {
  if (whole == 0) return part;
  if (kind == ColumnKind::Share) return part / whole;
  const float square = part * part;
  const float root = std::sqrt(square / whole);
  return part < 0 ? -root : root;
}

void append_computed(const ComputedColumn& column, ColumnValues& row) {
  const auto value = [&](std::size_t term) { return static_cast<float>(row[column.terms[term].feature]); };
  float result = column.kind == ColumnKind::Largest ? std::numeric_limits<float>::lowest() : 0;
  if (column.kind == ColumnKind::Share || column.kind == ColumnKind::RootShare)
    result = share(column.kind, value(0), value(1));
  else
    for (std::size_t i = 0; i < column.terms.size(); ++i)
      result = with_term(column.kind, column.terms[i], value(i), result);
  row.push_back(result);
}

Result<void> DerivedColumns::append_to(ColumnValues& row) const {
  for (std::size_t i = 0; i < model_.lookups.size(); ++i)
    FVM_TRY(append_lookup(model_.lookups[i], keys_[i], row));
  for (const ComputedColumn& column : model_.computed_columns) append_computed(column, row);
  return {};
}

}  // namespace

Result<std::vector<double>> with_derived_columns(const Model& model, std::span<const double> rows,
                                                 std::size_t row_count, bool hashed_rows) {
  const DerivedColumns columns(model, hashed_rows);
  std::vector<double> out;
  ColumnValues row;
  for (std::size_t r = 0; r < row_count; ++r) {
    const std::span<const double> features = rows.subspan(r * model.num_features, model.num_features);
    row.assign(features.begin(), features.end());
    if (const Result<void> appended = columns.append_to(row); !appended.ok())
      return refused(formatted("row {}, {}", r, appended.error().where), appended.error().message);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

}  // namespace forestvm::frontend
