// See rank_table.hpp.
#include "scheduler/rank_table.hpp"

#include <algorithm>

#include <forestvm/result.hpp>

namespace forestvm::scheduler {
namespace {

void sort_and_unite(std::vector<float>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

bool missing_left(const Test& test) { return (test.feature & kMissingLeft) != 0; }

}  // namespace

void RankTable::add(const Test& test) {
  // Adding zero makes one zero of both.
  by_feature_[test.feature & kFeatureMask].thresholds[missing_left(test)].push_back(test.threshold + 0.0f);
}

std::uint32_t RankTable::rank_of(const Feature& feature, float threshold) {
  const auto at = std::lower_bound(feature.sorted.begin(), feature.sorted.end(), threshold);
  FVM_CHECK(at != feature.sorted.end() && *at == threshold);
  return static_cast<std::uint32_t>(at - feature.sorted.begin());
}

void RankTable::seal() {
  for (auto& [number, feature] : by_feature_) {
    for (auto& side : feature.thresholds) {
      sort_and_unite(side);
      feature.sorted.insert(feature.sorted.end(), side.begin(), side.end());
    }
    sort_and_unite(feature.sorted);
    for (const bool left : {false, true})
      for (const float threshold : feature.thresholds[left])
        feature.columns.emplace(Window{!left, rank_of(feature, threshold) / kColumnThresholds}, 0);
    EncodedFeature encoded{};
    encoded.feature = number;
    encoded.first_threshold = static_cast<std::uint32_t>(ranks_.size());
    encoded.threshold_count = static_cast<std::uint32_t>(feature.sorted.size());
    encoded.first_column = static_cast<std::uint32_t>(columns_.size());
    encoded.column_count = static_cast<std::uint32_t>(feature.columns.size());
    for (auto& [window, column] : feature.columns) {
      column = static_cast<std::uint32_t>(columns_.size());
      const std::uint32_t first = window.number * kColumnThresholds;
      const std::uint32_t count = std::min(kColumnThresholds, encoded.threshold_count - first);
      columns_.push_back({first, static_cast<std::uint16_t>(count), window.missing_highest, 0});
    }
    features_.push_back(encoded);
    ranks_.insert(ranks_.end(), feature.sorted.begin(), feature.sorted.end());
  }
}

CodedTest RankTable::find(const Test& test) const {
  const Feature& feature = by_feature_.at(test.feature & kFeatureMask);
  const std::uint32_t rank = rank_of(feature, test.threshold);
  return {feature.columns.at({!missing_left(test), rank / kColumnThresholds}),
          static_cast<std::uint8_t>(rank % kColumnThresholds)};
}

}  // namespace forestvm::scheduler
