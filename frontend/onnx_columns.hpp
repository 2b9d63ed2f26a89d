// The columns of numbers that reach a tree ensemble: the row's features, after the Scaler, Imputer and Cast nodes in
// front of it.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/transform.hpp>

#include "onnx_proto.hpp"

namespace forestvm::frontend {

/// A Scaler or Imputer node: the change that it makes to each number. A list has one number for all columns, or one for
/// each.
struct OnnxStep {
  std::vector<float> offsets, scales;  ///< Scaler: (x - offset) * scale, in float32.
  std::vector<float> replacements;     ///< Imputer: the number instead of NaN.
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
