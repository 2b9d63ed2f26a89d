// Reads one node of a YDF tree from its message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/protobuf_wire.hpp"

namespace forestvm::frontend {

enum class YdfCondition : std::uint8_t {
  None,         ///< The node is a leaf.
  IsMissing,    ///< The value is missing.
  Higher,       ///< x >= threshold
  True,         ///< x is true
  In,           ///< x is one of `categories`
  Discretized,  ///< x is in bin `bin` of the column or a later one
  Oblique,      ///< The weighted sum of `attributes` is >= threshold.
};

/// The outputs of a leaf. Each kind of model uses one of them.
enum class YdfOutput : std::uint8_t { None, Class, Number, Count };

struct YdfNode {
  std::size_t offset = 0;  ///< Offset of the message in the file.
  YdfCondition condition = YdfCondition::None;
  bool na_value = false;  ///< True if the condition holds for a missing value.
  std::int64_t attribute = 0;
  float threshold = 0;
  std::int64_t bin = 0;
  std::vector<std::uint32_t> categories;  ///< ascending
  std::vector<std::int64_t> attributes;
  std::vector<float> weights, replacements;  ///< One for each attribute; there may be no replacements.

  YdfOutput output = YdfOutput::None;
  std::int64_t top_class = 0;
  std::vector<double> class_counts;
  double count_sum = 0;
  float number = 0;
  std::int64_t num_examples = 0;  ///< Training rows in a leaf of an isolation forest.
  float cover = 0;                ///< Training rows that reached the node; 0 if unknown.
  /// Score of the split times the weight of its training rows, as in YDF's SUM_SCORE; NaN if unknown.
  float gain = std::numeric_limits<float>::quiet_NaN();
};

/// Reads a node. Refuses, by name, conditions that Model does not have.
Result<YdfNode> read_ydf_node(WireMessage message);

}  // namespace forestvm::frontend
