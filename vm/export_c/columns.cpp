// Writes the columns that tests compare in place of plain features. A row's cells are its features and, in programs
// with lookups, the columns that these find; such rows are copied first. So are rows with computed columns that are no
// weighted sums, and there all computed columns are cells. Other columns are computed where a test asks for them:
// weighted sums, features with rules, and sets of categories, in which members are 1 and others 0.
#include <algorithm>
#include <map>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/category_rules.hpp>
#include <forestvm/core/derived_columns.hpp>
#include <forestvm/core/transform.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// Rules of a column, in the first number of its record in C.
constexpr std::uint32_t kTinyMissing = 1;       ///< Numbers of at most kTiny in size are missing.
constexpr std::uint32_t kFractionsMissing = 2;  ///< Numbers that are not whole are missing.
constexpr std::uint32_t kBits = 4;              ///< A set, whose words hold a bit for each category.
constexpr std::uint32_t kListed = 8;            ///< A set, whose words are its categories.
constexpr std::uint32_t kNegative = 16;         ///< Numbers between -1 and 0 are category 0.
constexpr std::uint32_t kByte = 32;             ///< Numbers become bytes.
constexpr std::uint32_t kBelowMissing = 64;     ///< Numbers below 0 are missing.
constexpr std::uint32_t kIntegers = 128;        ///< Numbers that are no whole ones of 32 bits are infinity.

/// Returns the rules of a column by WideFeature::categories.
std::uint32_t rules_of(WideCategories categories) {
  switch (categories) {
    case WideCategories::None:
    case WideCategories::Parts:
      return 0;
    case WideCategories::Whole:
      return kFractionsMissing;
    case WideCategories::Byte:
      return kByte | kBelowMissing;
    case WideCategories::SignedByte:
      return kByte;
    case WideCategories::Integers:
      return kIntegers;
  }
  return 0;
}

/// Returns whether computed columns are cells: columns that may read one another are computed once for each row.
bool computes_cells(const Program& program) {
  const auto columns = program.computed_columns();
  return !std::all_of(columns.begin(), columns.end(), [](const ComputedDesc& c) { return is_sum(c.kind); });
}

/// Returns the number of columns that are computed where a test asks for them.
std::uint32_t late_count(const Program& program) {
  return computes_cells(program) ? 0 : static_cast<std::uint32_t>(program.computed_columns().size());
}

/// Returns the number of cells of a row.
std::uint32_t cell_count(const Program& program) { return row_width(program.meta()) - late_count(program); }

/// Returns whether tests compare more than cells and sums.
bool has_records(const Job& job) { return !job.changed.empty() || !job.program.category_columns().empty(); }

/// Finds a feature among those with rules; returns their end if it has none.
auto changed_at(const Job& job, std::uint32_t feature) {
  const auto at = std::lower_bound(
      job.changed.begin(), job.changed.end(), feature,
      [](const ChangedFeature& changed, std::uint32_t wanted) { return changed.feature < wanted; });
  return at != job.changed.end() && at->feature == feature ? at : job.changed.end();
}

std::uint32_t rules_of(const Job& job, std::uint32_t feature) {
  const auto at = changed_at(job, feature);
  return at == job.changed.end() ? 0 : at->rules;
}

constexpr const char* kSum = R"(/* The weighted sum of a row's cells. */
static float @computed(const float *x, uint32_t column) {
  uint32_t i;
  float sum = 0;
  for (i = @computed_columns[column][0]; i < @computed_columns[column][1]; ++i) {
    const float value = x[@term_cells[i]];
    sum += @term_firsts[i] * (@computed_columns[column][2] != 0u && value != value ? @term_seconds[i] : value);
  }
  return sum;
}
)";

/// The square root is within 2^-52 of itself before it is rounded. A float's root cannot be as close to the middle
/// between two floats, so that the rounded root is right.
constexpr const char* kComputed = R"(/* The float that is nearest to the square root. */
static float @root(float x) {
  double root = x, half;
  int i;
  if (x < 0) return (x - x) / (x - x);
  if (!(x > 0) || x > 3.402823466e38f) return x;
  for (half = 1; half * half < root; half *= 4) {}
  for (; half * half > root; half /= 2) {}
  for (i = 0; i < 7; ++i) half = (half + root / half) / 2;
  return (float)half;
}
/* Computes a column from a row's cells. */
static float @computed(const float *x, uint32_t column) {
  const uint32_t *const c = @computed_columns[column];
  uint32_t i;
  float value = c[2] == 8u ? -3.402823466e38f : 0, first, whole;
  for (i = c[0]; i < c[1]; ++i) {
    const float cell = x[@term_cells[i]];
    float part = cell;
    if (c[2] < 2u) part = @term_firsts[i] * (c[2] == 1u && cell != cell ? @term_seconds[i] : cell);
    if (c[2] == 6u) part = cell < 0 ? -cell : cell;
    if (c[2] == 7u) part = cell * cell;
    if (c[2] < 2u || c[2] == 6u || c[2] == 7u) value += part;
    if (c[2] == 8u && value < cell) value = cell;
  }
  if (c[2] < 2u || (c[2] >= 6u && c[2] <= 8u)) return value;
  first = x[@term_cells[c[0]]];
  value = @term_firsts[c[0]];
  whole = @term_seconds[c[0]];
  if (c[2] == 2u) {
    first -= value;
    return first * whole;
  }
  if (c[2] == 3u) return first / value;
  if (c[2] == 4u) return first == value || (first != first && value != value) ? whole : first;
  if (c[2] == 5u) return first < value ? value : first > whole ? whole : first;
  whole = x[@term_cells[c[0] + 1u]];
  if (whole == 0) return first;
  if (c[2] == 9u) return first / whole;
  value = first * first;
  value = @root(value / whole);
  return first < 0 ? -value : value;
}
)";

constexpr const char* kKinds =
    R"(/* Computed columns: first term, end of the terms, kind. With numbers a and b and the cell x of each term, kinds are
 * 0: sum of a * x; 1: the same, with b instead of a missing x; 2: (x - a) * b; 3: x / a; 4: x, with b instead of a;
 * 5: x from a to b; 6: sum of |x|; 7: sum of x * x; 8: largest x; 9: x / the second x; 10: root of x * x / the second
 * x, with the sign of x. */
)";

std::string computed_text(const Job& job, std::uint64_t& bytes) {
  std::vector<std::vector<std::uint64_t>> columns;
  std::vector<std::string> cells, firsts, seconds;
  for (const ComputedDesc& column : job.program.computed_columns())
    columns.push_back({column.first_term, std::uint64_t{column.first_term} + column.term_count,
                       static_cast<std::uint64_t>(column.kind)});
  for (const ColumnTerm& term : job.program.column_terms()) {
    cells.push_back(number(term.feature));
    firsts.push_back(literal(term.first));
    seconds.push_back(literal(term.second));
  }
  return kKinds + record_table(job, "computed_columns", columns, bytes) +
         table("uint32_t", 4, job.name("term_cells"), cells, bytes) +
         table("float", 4, job.name("term_firsts"), firsts, bytes) +
         table("float", 4, job.name("term_seconds"), seconds, bytes) +
         in_file(job, computes_cells(job.program) ? kComputed : kSum);
}

/// Returns the function that completes a copied row.
std::string complete_text(const Job& job) {
  const std::string features = number(job.program.meta().num_features);
  std::string body =
      "/* Copies a row's features and completes them. */\n"
      "static void @complete(const float *x, float *cells) {\n";
  if (computes_cells(job.program)) body += "  uint32_t i;\n";
  body += formatted("  memcpy(cells, x, {} * sizeof *cells);\n", features);
  if (looks_up(job.program)) body += formatted("  @look_up(x, cells + {});\n", features);
  if (computes_cells(job.program)) {
    const std::size_t columns = job.program.computed_columns().size();
    const std::size_t first = row_width(job.program.meta()) - columns;
    body += formatted("  for (i = 0u; i < {}; ++i) cells[{} + i] = @computed(cells, i);\n", number(columns),
                      number(first));
  }
  return in_file(job, body + "}\n");
}

constexpr const char* kMember = R"(/* Whether a category is in a column's set. */
static int @member(const uint32_t *column, uint32_t category) {
  const uint32_t *words = @words + column[2];
  uint32_t at = 0u, count = column[3];
  if ((column[0] & 4u) != 0u) {
    at = category - column[4];
    return at / 32u < count && (words[at / 32u] >> at % 32u & 1u) != 0u;
  }
  for (; count > 1u; count -= count / 2u)
    if (words[at + count / 2u] <= category) at += count / 2u;
  return words[at] == category;
}
)";

/// The rules of features. 2^53 is the least number above which all are whole.
constexpr const char* kRules =
    R"(  if ((column[0] & 1u) != 0u && (double)value >= -@TINY && (double)value <= @TINY) return (@ROW)(0.0 / 0.0);
  if ((column[0] & 2u) != 0u && value > -9007199254740992 && value < 9007199254740992 &&
      (@ROW)(int64_t)value != value)
    return (@ROW)(0.0 / 0.0);
  if ((column[0] & 64u) != 0u && value < 0) return (@ROW)(0.0 / 0.0);
  if ((column[0] & 32u) != 0u && value == value)
    value = value > -2147483649.0 && value < 2147483648.0 ? (@ROW)((uint64_t)(int64_t)value & 255u) : 0;
  if ((column[0] & 128u) != 0u && value == value &&
      !(value >= -2147483648.0 && value < 2147483648.0 && (@ROW)(int64_t)value == value))
    value = (@ROW)(1.0 / 0.0);
)";

constexpr const char* kSet = R"(  if ((column[0] & 12u) == 0u || value != value) return value;
  if (!((column[0] & 16u) != 0u ? value > -1 : value >= 0) || value >= 16777216) return 0;
  return (@ROW)@member(column, (uint32_t)(int32_t)value);
)";

std::vector<std::uint64_t> record_of(const Job& job, const CategoryColumn& set) {
  return {
      rules_of(job, set.feature) | (set.listed != 0 ? kListed : kBits) | (set.fractions != 0 ? kNegative : 0),
      set.feature, set.first_word, set.word_count, set.first_category};
}

/// Returns the value of a cell or sum.
std::string plain_value(const Job& job, const std::string& column) {
  if (late_count(job.program) == 0) return formatted("x[{}]", column);
  const std::string cells = number(cell_count(job.program));
  return formatted("({} < {} ? x[{}] : {}(x, {} - {}))", column, cells, column, job.name("computed"), column,
                   cells);
}

constexpr const char* kRecords =
    R"(/* Columns: rules, cell, and of a set its first word, number of words and first category. Bits of the rules: 1: tiny
 * numbers are missing; 2: fractions are missing; 4: a set with a bit for each category; 8: a set that lists its
 * categories; 16: numbers between -1 and 0 are category 0; 32: numbers become bytes; 64: numbers
 * below 0 are missing; 128: numbers that are no whole ones of 32 bits are infinity. */
)";

/// Returns the function that computes any column, with its tables.
std::string column_function(const Job& job, std::uint64_t& bytes) {
  const auto sets = job.program.category_columns();
  std::vector<std::vector<std::uint64_t>> records;
  for (const ChangedFeature& changed : job.changed)
    records.push_back({changed.rules, changed.feature, 0, 0, 0});
  for (const CategoryColumn& set : sets) records.push_back(record_of(job, set));
  std::string text = kRecords;
  text += record_table(job, "columns", records, bytes);
  if (!sets.empty())
    text += words_table(job, "words", job.program.category_words(), bytes) + in_file(job, kMember);
  const std::string columns = number(row_width(job.program.meta()));
  std::string body =
      "/* A column of a row; NaN is missing. */\nstatic @ROW @column(const @ROW *x, uint32_t i) {\n"
      "  const uint32_t *column;\n  @ROW value;\n  if (i < " +
      columns + ") return " + plain_value(job, "i") + ";\n  column = @columns[i - " + columns +
      "];\n  value = " + plain_value(job, "column[1]") + ";\n";
  if (!job.changed.empty()) body += kRules;
  body += sets.empty() ? "  return value;\n}\n" : std::string(kSet) + "}\n";
  return text + in_file(job, replaced(body, {{"@TINY", literal(kTiny)}}));
}

}  // namespace

bool copies_rows(const Program& program) { return looks_up(program) || computes_cells(program); }

std::vector<ChangedFeature> changed_features(const Program& program) {
  std::map<std::uint32_t, std::uint32_t> rules;
  for (const std::uint32_t feature : program.zero_missing()) rules[feature] |= kTinyMissing;
  for (const WideFeature& wide : program.wide_features())
    if (const std::uint32_t bits = rules_of(static_cast<WideCategories>(wide.categories)); bits != 0)
      rules[wide.feature] |= bits;
  std::vector<ChangedFeature> changed;
  changed.reserve(rules.size());
  for (const auto& [feature, bits] : rules) changed.push_back({feature, bits});
  return changed;
}

std::uint64_t column_count(const Job& job) {
  return std::uint64_t{row_width(job.program.meta())} + job.changed.size() +
         job.program.category_columns().size();
}

std::uint32_t column_word(const Job& job, const DecodedTest& test) {
  const std::uint32_t feature = test.feature & kFeatureMask, flags = test.feature & ~kFeatureMask;
  const std::uint32_t first_changed = row_width(job.program.meta());
  if (test.category_set != nullptr) {
    const auto set = test.category_set - job.program.category_columns().data();
    return flags |
           (first_changed + static_cast<std::uint32_t>(job.changed.size()) + static_cast<std::uint32_t>(set));
  }
  const auto at = changed_at(job, feature);
  if (at == job.changed.end()) return test.feature;
  return flags | (first_changed + static_cast<std::uint32_t>(at - job.changed.begin()));
}

std::string column_value(const Job& job, const std::string& column) {
  return has_records(job) ? formatted("{}(x, {})", job.name("column"), column) : plain_value(job, column);
}

std::string columns_text(const Job& job, std::uint64_t& table_bytes) {
  std::string text = looks_up(job.program) ? lookups_text(job, table_bytes) : "";
  if (!job.program.computed_columns().empty()) text += computed_text(job, table_bytes);
  if (copies_rows(job.program)) text += complete_text(job);
  if (has_records(job)) text += column_function(job, table_bytes);
  return text;
}

}  // namespace forestvm::bytecode::export_c
