// See onnx_columns.hpp.
#include "onnx_columns.hpp"

#include <algorithm>
#include <cmath>

namespace forestvm::frontend {
namespace {

float pick(const std::vector<float>& numbers, std::uint32_t index) {
  return numbers[numbers.size() == 1 ? 0 : index];
}

}  // namespace

float OnnxColumn::apply(float x) const {
  for (const OnnxStep& step : segment->steps) {
    if (step.replacements.empty()) {
      x = (x - pick(step.offsets, index)) * pick(step.scales, index);
    } else if (std::isnan(x)) {
      x = pick(step.replacements, index);
    }
  }
  return x;
}

bool OnnxColumn::falls() const {
  bool falls = false;
  for (const OnnxStep& step : segment->steps)
    if (step.replacements.empty() && pick(step.scales, index) < 0) falls = !falls;
  return falls;
}

OnnxColumn OnnxColumns::at(std::uint32_t column) const {
  const auto after = std::upper_bound(segments.begin(), segments.end(), column,
                                      [](std::uint32_t c, const OnnxSegment& s) { return c < s.column; });
  const OnnxSegment& segment = *(after - 1);
  return {segment.feature + (column - segment.column), &segment, column - segment.column};
}

}  // namespace forestvm::frontend
