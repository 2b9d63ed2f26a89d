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
    const float first = pick(step.first, index);
    switch (step.kind) {
      case OnnxStepKind::Scale:
        x = (x - first) * pick(step.second, index);
        break;
      case OnnxStepKind::Replace:
        if (std::isnan(x)) x = first;
        break;
      case OnnxStepKind::Add:
        x += first;
        break;
      case OnnxStepKind::Subtract:
        x -= first;
        break;
      case OnnxStepKind::Multiply:
        x *= first;
        break;
      case OnnxStepKind::Divide:
        x /= first;
        break;
      case OnnxStepKind::Clip:
        if (!std::isnan(x)) x = std::min(std::max(x, first), pick(step.second, index));
        break;
    }
  }
  return x;
}

bool OnnxColumn::falls() const {
  bool falls = false;
  for (const OnnxStep& step : segment->steps) {
    const bool by_first = step.kind == OnnxStepKind::Multiply || step.kind == OnnxStepKind::Divide;
    if (by_first && pick(step.first, index) < 0) falls = !falls;
    if (step.kind == OnnxStepKind::Scale && pick(step.second, index) < 0) falls = !falls;
  }
  return falls;
}

OnnxColumn OnnxColumns::at(std::uint32_t column) const {
  const auto after = std::upper_bound(segments.begin(), segments.end(), column,
                                      [](std::uint32_t c, const OnnxSegment& s) { return c < s.column; });
  const OnnxSegment& segment = *(after - 1);
  return {segment.feature + (column - segment.column), &segment, column - segment.column};
}

}  // namespace forestvm::frontend
