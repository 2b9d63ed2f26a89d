// Loads a program's encoder: makes the tables with which encode_rows works.
#pragma once

#include <span>
#include <vector>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_rows.hpp"
#include "vm/host/picked_values.hpp"

namespace forestvm::host {

struct LoadedEncoder {
  std::vector<float> thresholds{};  ///< Thresholds and splitters, to which `searches` points.
  std::vector<FeatureSearch> searches{};
  std::vector<FeatureTile> tiles{};  ///< Tiles of `searches`.
  std::vector<PickStep> steps{};     ///< Steps of `strips`.
  std::vector<PickStrip> strips{};   ///< Strips of `searches`.
  std::vector<FeatureCategories> categories{};
};

/// Loads an encoder. `features` ascend, and their rows have `row_values` values. `categories` describe the
/// last of `columns`. The memory of `columns` and `categories` must live as long as the result.
LoadedEncoder load_encoder(std::span<const EncodedFeature> features, std::span<const float> ranks,
                           std::span<const ColumnDesc> columns, std::span<const CategoryColumn> categories,
                           std::uint32_t row_values);

}  // namespace forestvm::host
