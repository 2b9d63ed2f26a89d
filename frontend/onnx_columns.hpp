// The columns of numbers that reach a tree ensemble: the row's features, after the nodes in front of the ensemble have
// changed each number (Scaler, Imputer, Add, Sub, Mul, Div, Clip, Cast). Changes that keep or reverse the order of all
// numbers are steps of a column, which are folded into the thresholds of the trees. Other changes make computed
// columns.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/transform.hpp>
#include <forestvm/model.hpp>

#include "frontend/onnx_proto.hpp"

namespace forestvm::frontend {

enum class OnnxStepKind : std::uint8_t {
  Scale,     ///< Scaler: (x - first) * second.
  Replace,   ///< Imputer: `first` instead of `second`, or of NaN if there is no `second`.
  Add,       ///< x + first
  Subtract,  ///< x - first
  Multiply,  ///< x * first
  Divide,    ///< x / first
  Clip,      ///< At least `first` and at most `second`.
  Round,     ///< x itself, in the step's type.
};

/// The change that a node makes to each number, computed in `type`. A list has one number for all columns, or one for
/// each.
struct OnnxStep {
  OnnxStepKind kind = OnnxStepKind::Scale;
  ScalarType type = ScalarType::Float32;
  std::vector<double> first, second;
};

/// Returns whether a step keeps or reverses the order of all numbers, so that it can be folded into thresholds.
bool folds(const OnnxStep& step);

/// Consecutive columns that come from consecutive features.
struct OnnxSegment {
  std::uint32_t column = 0;
  std::uint32_t count = 0;
  std::uint32_t feature = 0;  ///< Feature, or computed column: see OnnxComputed.
  std::vector<OnnxStep> steps;
};

/// One column: a feature and the steps that change it.
struct OnnxColumn {
  std::uint32_t feature = 0;
  const OnnxSegment* segment = nullptr;
  std::uint32_t index = 0;  ///< Number of the column within its segment.

  /// Returns whether the column is more than the feature itself.
  bool changed() const { return !segment->steps.empty(); }
  /// Returns the column's number for a feature's. It rises, or falls, monotonically with x.
  double apply(double x) const;
  bool falls() const;
};

/// The columns of a tensor of rows and columns.
struct OnnxColumns {
  OnnxType type = OnnxType::Float;
  ScalarType row_type = ScalarType::Float32;  ///< Type to which a row's numbers are rounded first.
  std::uint32_t width = 0;
  std::vector<OnnxSegment> segments;

  /// Returns the column with number `column`, below `width`.
  OnnxColumn at(std::uint32_t column) const;
  /// Adds a step to every segment; each takes its own part of the numbers.
  void add_step(const OnnxStep& step);
  /// Rounds doubles to float32, whether they are the row's own numbers or results of steps.
  void round_to_float32();
  /// Returns whether every step computes in float32.
  bool all_float32() const;
};

/// The columns that are computed before trees see a row. Their numbers as features follow those of the row's features.
class OnnxComputed {
 public:
  explicit OnnxComputed(std::uint32_t num_features) : num_features_(num_features) {}

  /// Returns computed columns with the numbers of `columns` after a step that need not keep their order.
  OnnxColumns after(const OnnxColumns& columns, const OnnxStep& step);
  /// Returns the columns that Normalizer makes: each number divided by the norm of its row (maximum, L1 or L2). `whole`
  /// computes the norm, or for L2 its square, and `share` a column's part of it; for L2 that is the root of the
  /// squares' share.
  OnnxColumns shares(const OnnxColumns& columns, ColumnKind whole, ColumnKind share);

  std::vector<ComputedColumn>& columns() { return columns_; }

 private:
  std::uint32_t add(ColumnKind kind, std::vector<ColumnTerm> terms);
  std::uint32_t add_step(std::uint32_t feature, const OnnxStep& step, std::uint32_t index);
  std::vector<std::uint32_t> features_of(const OnnxColumns& columns);

  std::uint32_t num_features_;
  std::vector<ComputedColumn> columns_;
};

}  // namespace forestvm::frontend
