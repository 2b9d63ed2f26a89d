// What a program says of its encoder -> what encode_rows works with.
#pragma once

#include <span>
#include <vector>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_rows.hpp"

namespace forestvm::host {

struct LoadedEncoder {
  std::vector<float> thresholds{};  ///< with the splitters: what `searches` points to
  std::vector<FeatureSearch> searches{};
  std::vector<FeatureTile> tiles{};  ///< of `searches`
  std::vector<FeatureCategories> categories{};
};

/// `features`: ascending; of rows of `row_values`. `categories`: of the last of `columns`. All of them but
/// `features` outlive the result.
LoadedEncoder load_encoder(std::span<const EncodedFeature> features, std::span<const float> ranks,
                           std::span<const ColumnDesc> columns, std::span<const CategoryColumn> categories,
                           std::uint32_t row_values);

}  // namespace forestvm::host
