// The verifier's rules for the row encoder: features and thresholds exist, columns lie inside their feature's
// thresholds, so that every code a column can have is at most its count; sets of categories lie in their
// words.
#include <algorithm>
#include <functional>

#include "vm/program/verify/verify.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::bytecode {
namespace {

const char* column_rule(const ColumnDesc& column, std::uint32_t thresholds) {
  if (column.missing_highest > 1 || column.reserved != 0) return "a reserved bit is not zero";
  if (column.count == 0 || column.count > kColumnThresholds) return "its size is wrong";
  return std::uint64_t{column.first} + column.count <= thresholds ? nullptr
                                                                  : "it leaves its feature's thresholds";
}

/// Returns what is wrong with a column of membership codes, apart from the index of its first word; null if
/// nothing is.
const char* category_rule(const CategoryColumn& category, std::span<const std::uint32_t> words,
                          const ColumnDesc& column) {
  if (column.missing_highest > 1 || column.reserved != 0) return "a reserved bit is not zero";
  if (column.first != 0 || column.count != 1) return "its codes are not 0 and 1";
  if (category.fractions > 1) return "its rule for numbers between -1 and 0 is unknown";
  if (category.listed > 1 || category.reserved[0] != 0 || category.reserved[1] != 0)
    return "a reserved bit is not zero";
  const char* const unnamed = "it has categories that float32 numbers do not name";
  if (category.listed != 0) {
    if (category.first_category != 0) return "its categories are listed, so its first is 0";
    if (std::adjacent_find(words.begin(), words.end(), std::greater_equal<>()) != words.end())
      return "its categories do not ascend";
    return words.back() < kMaxCategories ? nullptr : unnamed;
  }
  if (category.first_category % 32 != 0) return "its first category does not begin a word";
  return std::uint64_t{category.first_category} + std::uint64_t{category.word_count} * 32 <= kMaxCategories
             ? nullptr
             : unnamed;
}

/// Checks the columns of membership codes. `first` is the number of columns before them.
Result<void> verify_categories(const Program& program, std::uint64_t first) {
  const auto categories = program.category_columns();
  const auto words = program.category_words();
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < categories.size(); ++i) {
    const CategoryColumn& category = categories[i];
    const auto wrong = [&](CText what) { return record_error("category_columns", i, what); };
    if (category.feature >= row_width(program.meta())) return wrong("its feature lies outside the row");
    if (i != 0 && category.feature < categories[i - 1].feature) return wrong("its feature descends");
    if (category.first_word != taken || category.word_count == 0)
      return wrong("its words do not follow the record before");
    taken += category.word_count;
    if (taken > words.size()) return wrong("its words leave the category_words section");
    const auto mine = words.subspan(category.first_word, category.word_count);
    if (const char* rule = category_rule(category, mine, program.columns()[first + i])) return wrong(rule);
  }
  if (taken != words.size())
    return refused("category_words section", "{} words, but the sets have {}", words.size(), taken);
  return {};
}

}  // namespace

Result<void> verify_encoder(const Program& program) {
  const auto features = program.encoded_features();
  const auto columns = program.columns();
  const auto ranks = program.ranks();
  if (columns.size() > kMaxColumns)
    return refused("columns section", "{} columns, at most {}", columns.size(), kMaxColumns);
  std::uint64_t thresholds = 0, taken = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const EncodedFeature& feature = features[i];
    const auto wrong = [&](CText what) { return record_error("encoded_features", i, what); };
    if (feature.feature >= row_width(program.meta())) return wrong("its feature lies outside the row");
    if (i != 0 && feature.feature <= features[i - 1].feature) return wrong("its feature does not ascend");
    if (feature.first_threshold != thresholds || feature.threshold_count == 0)
      return wrong("its thresholds do not follow the feature before");
    thresholds += feature.threshold_count;
    if (thresholds > ranks.size()) return wrong("its thresholds leave the ranks section");
    if (const char* rule = ranks_rule(ranks.subspan(feature.first_threshold, feature.threshold_count)))
      return wrong(rule);
    if (feature.first_column != taken || feature.column_count == 0)
      return wrong("its columns do not follow the feature before");
    taken += feature.column_count;
    if (taken > columns.size()) return wrong("its columns leave the columns section");
    for (std::uint32_t c = feature.first_column; c < taken; ++c)
      if (const char* rule = column_rule(columns[c], feature.threshold_count))
        return refused(formatted("columns section: column {}", c), rule);
  }
  const std::size_t categories = program.category_columns().size();
  if (taken + categories != columns.size())
    return refused("columns section", "{} columns, but the features have {} and the categorical splits {}",
                   columns.size(), taken, categories);
  if (thresholds != ranks.size())
    return refused("ranks section", "{} thresholds, but the features have {}", ranks.size(), thresholds);
  return verify_categories(program, taken);
}

}  // namespace forestvm::bytecode
