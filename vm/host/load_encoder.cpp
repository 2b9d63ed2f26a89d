// See load_encoder.hpp.
#include "vm/host/load_encoder.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

namespace forestvm::host {
namespace {

constexpr std::size_t kLine = 64;  // bytes to which vectors are best aligned

unsigned bits_of(const EncodedFeature& feature) {
  return static_cast<unsigned>(std::bit_width(feature.threshold_count));
}

/// Returns the number of floats of the splitters of a search of `bits` steps. Searches load at least 32 splitters.
std::size_t splitters_size(unsigned bits) {
  return std::max(std::size_t{32}, std::size_t{1} << std::min(bits, FeatureSearch::kSplitSteps));
}

/// Returns the number of bits of a rank of `bits` bits that the root of the search of one value settles.
unsigned top_bits(unsigned bits) { return (bits - 1) % FeatureSearch::kNodeBits + 1; }

/// Writes the separators of all levels above the thresholds, from `to` on, whose memory is NaN. Returns their end.
float* set_separators(std::span<const float> thresholds, unsigned bits, float* to) {
  for (unsigned known = top_bits(bits); known < bits; known += FeatureSearch::kNodeBits) {
    const unsigned below = bits - known;
    for (std::size_t i = 1; i << below <= thresholds.size(); ++i) to[i - 1] = thresholds[(i << below) - 1];
    to += std::max(std::size_t{FeatureSearch::kNode}, std::size_t{1} << known);
  }
  return to;
}

/// See FeatureSearch::ranks_are_codes.
bool ranks_are_codes(std::span<const ColumnDesc> columns, std::size_t thresholds) {
  for (const ColumnDesc& column : columns)
    if (column.first != 0 || column.count != thresholds) return false;
  return columns.size() <= 2;
}

/// Returns the number of floats of the thresholds of a search of `bits` steps. They are whole cache lines, so that
/// all splitters are aligned.
std::size_t thresholds_size(unsigned bits) { return std::max(kLine / sizeof(float), std::size_t{1} << bits); }

void set_splitters(const float* thresholds, unsigned bits, float* splitters) {
  for (unsigned step = 0; step < std::min(bits, FeatureSearch::kSplitSteps); ++step)
    for (std::size_t i = 0; i < std::size_t{1} << step; ++i)
      splitters[(std::size_t{1} << step) + i] = thresholds[(((2 * i + 1) << (bits - step)) >> 1) - 1];
}

/// Returns the tile of the first features that lie close enough together, or of the first feature alone.
FeatureTile first_tile(std::span<const FeatureSearch> features, std::uint32_t row_values) {
  const std::uint32_t first = features[0].feature, most = std::min(kTileValues, row_values / 4 * 4);
  std::size_t count = 1;
  while (count < features.size() && features[count].feature - first < most) ++count;
  const std::uint32_t values = (features[count - 1].feature - first + 4) / 4 * 4;
  // Transposing four values of each row, needed or not, takes as long as gathering one value of each row.
  if (count <= values / 4) return {features.first(1), 0, 0};
  // The rows' memory may end behind a row's last value.
  return {features.first(count), std::min(first, row_values - values), values};
}

std::vector<FeatureTile> tiles_of(std::span<const FeatureSearch> features, std::uint32_t row_values) {
  std::vector<FeatureTile> tiles;
  while (!features.empty()) {
    const FeatureTile tile = first_tile(features, row_values);
    features = features.subspan(tile.features.size());
    if (tile.value_count == 0 && !tiles.empty() && tiles.back().value_count == 0)
      tiles.back().features = {tiles.back().features.data(), tiles.back().features.size() + 1};
    else
      tiles.push_back(tile);
  }
  return tiles;
}

/// Returns the steps that pick the values of features, which ascend, one after the other.
std::vector<PickStep> steps_of(std::span<const FeatureSearch> features, std::uint32_t row_values) {
  const std::uint32_t last = row_values > kWindow ? row_values - kWindow : 0;  // where the last window begins
  std::vector<PickStep> steps;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::uint32_t feature = features[i].feature;
    const bool full = i % kStripFeatures == 0 || steps.back().count == kPickedAtOnce;
    if (full || feature - steps.back().first >= kWindow) steps.push_back({{}, std::min(feature, last), 0});
    PickStep& step = steps.back();
    step.indices[step.count++] = feature - step.first;
  }
  return steps;
}

std::vector<PickStrip> strips_of(std::span<const FeatureSearch> features, std::span<const PickStep> steps) {
  std::vector<PickStrip> strips;
  while (!features.empty()) {
    const auto here = features.first(std::min<std::size_t>(kStripFeatures, features.size()));
    std::size_t count = 0;
    for (std::size_t picked = 0; picked < here.size(); ++count) picked += steps[count].count;
    strips.push_back({here, steps.first(count)});
    features = features.subspan(here.size());
    steps = steps.subspan(count);
  }
  return strips;
}

/// Groups columns that follow one another by their feature and their rule for fractions.
std::vector<FeatureCategories> categories_of(std::span<const CategoryColumn> categories,
                                             std::span<const ColumnDesc> columns) {
  const std::size_t first = columns.size() - categories.size();
  std::vector<FeatureCategories> features;
  for (std::size_t begin = 0, end = 0; begin < categories.size(); begin = end) {
    const CategoryColumn& first_of_feature = categories[begin];
    do ++end;
    while (end < categories.size() && categories[end].feature == first_of_feature.feature &&
           categories[end].fractions == first_of_feature.fractions);
    features.push_back({first_of_feature.feature, least_category(first_of_feature),
                        categories.subspan(begin, end - begin), columns.subspan(first + begin, end - begin),
                        static_cast<std::uint32_t>(first + begin)});
  }
  return features;
}

}  // namespace

LoadedEncoder load_encoder(std::span<const EncodedFeature> features, std::span<const float> ranks,
                           std::span<const ColumnDesc> columns, std::span<const CategoryColumn> categories,
                           std::uint32_t row_values) {
  LoadedEncoder loaded;
  std::size_t size = kLine / sizeof(float);  // room to align the thresholds of the first search
  for (const EncodedFeature& feature : features) {
    const unsigned bits = bits_of(feature);
    size += splitters_size(bits) + thresholds_size(bits);
    // A level of separators has a sixteenth of the entries of the level below, but at least a node.
    if (bits > FeatureSearch::kNodeBits)
      size += std::size_t{2} * FeatureSearch::kNode + thresholds_size(bits) / 8;
  }
  // No number reaches NaN, so that searches do not go on behind a feature's last threshold.
  loaded.thresholds.assign(size, std::numeric_limits<float>::quiet_NaN());
  void* start = loaded.thresholds.data();
  std::size_t space = size * sizeof(float);
  float* at = static_cast<float*>(std::align(kLine, space - kLine, start, space));
  std::vector<FeatureSearch>(features.size()).swap(loaded.searches);  // a vector that grows takes more code
  FeatureSearch* search = loaded.searches.data();
  for (const EncodedFeature& feature : features) {
    const unsigned bits = bits_of(feature);
    float* const splitters = at;
    float* const separators = splitters + splitters_size(bits);
    const auto mine = ranks.subspan(feature.first_threshold, feature.threshold_count);
    float* const thresholds = set_separators(mine, bits, separators);
    at = thresholds + thresholds_size(bits);
    std::copy(mine.begin(), mine.end(), thresholds);
    set_splitters(thresholds, bits, splitters);
    const auto its_columns = columns.subspan(feature.first_column, feature.column_count);
    *search++ = {thresholds,
                 splitters,
                 separators,
                 feature.feature,
                 feature.first_column,
                 its_columns,
                 bits,
                 static_cast<std::uint8_t>(top_bits(bits)),
                 ranks_are_codes(its_columns, mine.size())};
  }
  loaded.tiles = tiles_of(loaded.searches, row_values);
  loaded.steps = steps_of(loaded.searches, row_values);
  loaded.strips = strips_of(loaded.searches, loaded.steps);
  loaded.categories = categories_of(categories, columns);
  return loaded;
}

}  // namespace forestvm::host
