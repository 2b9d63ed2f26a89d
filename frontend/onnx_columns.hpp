// The columns of numbers that reach a tree ensemble: the row's features, after the nodes in front of it that change
// each number (Scaler, Imputer, Add, Sub, Mul, Div, Clip, Cast).
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/transform.hpp>

#include "onnx_proto.hpp"

namespace forestvm::frontend {

enum class OnnxStepKind : std::uint8_t {
  Scale,     ///< Scaler: (x - first) * second.
  Replace,   ///< Imputer: `first` instead of NaN.
  Add,       ///< x + first
  Subtract,  ///< x - first
  Multiply,  ///< x * first
  Divide,    ///< x / first
  Clip,      ///< At least `first` and at most `second`.
};

/// A node: the change that it makes to each number, in float32. A list has one number for all columns, or one for each.
struct OnnxStep {
  OnnxStepKind kind = OnnxStepKind::Scale;
  std::vector<float> first, second;
};

/// Columns that follow one another and come from features that follow one another.
struct OnnxSegment {
  std::uint32_t column = 0;
  std::uint32_t count = 0;
  std::uint32_t feature = 0;
  std::vector<OnnxStep> steps;
};

/// One column: a feature and what happens to it.
struct OnnxColumn {
  std::uint32_t feature = 0;
  const OnnxSegment* segment = nullptr;
  std::uint32_t index = 0;  ///< Number of the column within its segment.

  /// Returns whether the column is more than the feature itself.
  bool changed() const { return !segment->steps.empty(); }
  /// Returns the column's number for a feature's, a float32. It rises, or falls, monotonically with x.
  float apply(float x) const;
  bool falls() const;
};

/// A tensor of rows and columns.
struct OnnxColumns {
  OnnxType type = OnnxType::Float;
  ScalarType row_type = ScalarType::Float32;  ///< Type to which a row's numbers are rounded first.
  std::uint32_t width = 0;
  std::vector<OnnxSegment> segments;

  /// Returns the column with number `column`, below `width`.
  OnnxColumn at(std::uint32_t column) const;
};

}  // namespace forestvm::frontend
