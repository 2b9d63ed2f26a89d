// See rank_table.hpp.
#include "scheduler/rank_table.hpp"

#include <algorithm>
#include <string>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/statistics.hpp>

namespace forestvm::scheduler {
namespace {

/// The limit of words for sets of categories as bits. Bits are faster than lists, but run from a set's least
/// category to its greatest, so that a small file could demand much memory. Beyond the limit, a set is bits
/// only if that takes no more memory than a list.
constexpr std::size_t kMaxSpareWords = std::size_t{1} << 20;

void sort_and_unite(std::vector<float>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

bool missing_left(const Test& test) { return (test.feature & kMissingLeft) != 0; }

}  // namespace

std::uint64_t most_columns(const ForestStatistics& forest) {
  // A column may be needed twice: missing values go left in some tests, right in others.
  return 2 * (forest.category_sets + forest.threshold_columns);
}

void RankTable::add(const Test& test) {
  Feature& feature = by_feature_[test.feature & kFeatureMask];
  if (test.set != nullptr)
    feature.memberships.emplace(Membership{!missing_left(test), test.set}, 0);
  else  // adding zero turns -0 into 0, so that both are one threshold
    feature.thresholds[missing_left(test)].push_back(test.threshold + 0.0f);
}

std::uint32_t RankTable::rank_of(const Feature& feature, float threshold) {
  const auto at = std::lower_bound(feature.sorted.begin(), feature.sorted.end(), threshold);
  FVM_CHECK(at != feature.sorted.end() && *at == threshold);
  return static_cast<std::uint32_t>(at - feature.sorted.begin());
}

void RankTable::seal_ranks(std::uint32_t number, Feature& feature) {
  for (auto& side : feature.thresholds) {
    sort_and_unite(side);
    feature.sorted.insert(feature.sorted.end(), side.begin(), side.end());
  }
  if (feature.sorted.empty()) return;
  sort_and_unite(feature.sorted);
  EncodedFeature encoded{};
  encoded.feature = number;
  encoded.first_threshold = static_cast<std::uint32_t>(ranks_.size());
  encoded.threshold_count = static_cast<std::uint32_t>(feature.sorted.size());
  encoded.first_column = static_cast<std::uint32_t>(columns_.size());
  for (const bool missing_highest : {false, true}) {
    std::vector<std::uint32_t>& columns = feature.columns[missing_highest];
    columns.assign((feature.sorted.size() + kColumnThresholds - 1) / kColumnThresholds, kNoColumn);
    for (const float threshold : feature.thresholds[!missing_highest]) {  // ascending, and so are the columns
      const std::uint32_t window = rank_of(feature, threshold) / kColumnThresholds;
      if (columns[window] != kNoColumn) continue;
      columns[window] = static_cast<std::uint32_t>(columns_.size());
      const std::uint32_t first = window * kColumnThresholds;
      const std::uint32_t count = std::min(kColumnThresholds, encoded.threshold_count - first);
      columns_.push_back({first, static_cast<std::uint16_t>(count), missing_highest, 0});
    }
  }
  encoded.column_count = static_cast<std::uint32_t>(columns_.size()) - encoded.first_column;
  features_.push_back(encoded);
  ranks_.insert(ranks_.end(), feature.sorted.begin(), feature.sorted.end());
}

void RankTable::add_column(std::uint32_t number, const Membership& membership) {
  const std::vector<std::uint32_t>& codes = membership.set->codes;
  CategoryColumn column{};
  column.feature = number;
  column.first_word = static_cast<std::uint32_t>(category_words_.size());
  column.first_category = codes.empty() ? 0 : codes.front() / 32 * 32;
  column.word_count = codes.empty() ? 1 : (codes.back() - column.first_category) / 32 + 1;
  column.fractions = membership.set->rule == CategoryRule::AboveMinusOne ? 1 : 0;
  if (column.word_count > codes.size() && category_words_.size() + column.word_count > kMaxSpareWords &&
      !codes.empty()) {
    column.listed = 1;
    column.first_category = 0;
    column.word_count = static_cast<std::uint32_t>(codes.size());
    category_words_.insert(category_words_.end(), codes.begin(), codes.end());
  } else {
    category_words_.resize(category_words_.size() + column.word_count);
    for (const std::uint32_t code : codes) {
      const std::uint32_t bit = code - column.first_category;
      category_words_[column.first_word + bit / 32] |= std::uint32_t{1} << bit % 32;
    }
  }
  categories_.push_back(column);
  columns_.push_back({0, 1, membership.missing_highest, 0});
}

Result<void> RankTable::seal() {
  for (auto& [number, feature] : by_feature_) seal_ranks(number, feature);
  for (auto& [number, feature] : by_feature_)
    for (auto& [membership, column] : feature.memberships) {
      column = static_cast<std::uint32_t>(columns_.size());
      add_column(number, membership);
    }
  if (columns_.size() > kMaxColumns)
    return refused("model", "its splits need {} columns of codes, at most {}", columns_.size(), kMaxColumns);
  return {};
}

CodedTest RankTable::find(const Test& test) const {
  const Feature& feature = by_feature_.at(test.feature & kFeatureMask);
  if (test.set != nullptr) return {feature.memberships.at({!missing_left(test), test.set}), 0};
  const std::uint32_t rank = rank_of(feature, test.threshold);
  const std::uint32_t column = feature.columns[!missing_left(test)][rank / kColumnThresholds];
  FVM_CHECK(column != kNoColumn);
  return {column, static_cast<std::uint8_t>(rank % kColumnThresholds)};
}

}  // namespace forestvm::scheduler
