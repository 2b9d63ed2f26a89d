// Partial dependence: the mean raw score of rows if a feature had one value in all of them, for every value of the
// feature. It is exact and takes one pass over the rows: for each leaf and each feature on the way to it, the rows that
// pass all tests of other features are counted. Implemented by frontend/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Values of a feature among which the model does not distinguish.
struct DependencePiece {
  double from;  ///< Least number of the piece, which ends before the next piece; -inf in the first piece.
  double at;    ///< A number of the piece: a threshold of the model if the piece has one; a category's code.
  double mean;  ///< The mean raw score with this value.
};

struct Dependence {
  /// True if the pieces are categories: each code that some split names, then a code that none names. Otherwise the
  /// pieces are all numbers, in ascending order.
  bool categories = false;
  std::vector<DependencePiece> pieces;
  double missing = 0;  ///< The mean raw score if the feature's value is missing.
};

class PartialDependence {
 public:
  /// The most counts that are kept, one for each leaf and each feature on the way to it.
  static constexpr std::size_t kMaxCounts = std::size_t{1} << 27;

  /// Prepares a model, which must have passed check_model, and must outlive the object. Refused, with tree and node:
  /// linear leaves, more than 512 splits or 64 columns on the way to a leaf, more than kMaxCounts counts.
  static Result<PartialDependence> make(const Model& model);

  PartialDependence(PartialDependence&&) noexcept;
  PartialDependence& operator=(PartialDependence&&) noexcept;
  ~PartialDependence();

  /// Counts more rows: row-major values, model.num_features for each row. They are rounded to float32 if the model
  /// compares in float32. `hashed_rows` is true if hashed features hold codes of categories; otherwise they hold whole
  /// numbers, which stand for their decimal text (see Model::hashed_features). Usage error for a part of a row;
  /// refused: values that are no categories in hashed features.
  Result<void> add(std::span<const double> rows, bool hashed_rows = false);

  std::uint64_t rows() const;

  /// Returns whether the model tests this feature itself, and no column that is computed from features reads it: of
  /// other features there is no partial dependence.
  bool has(std::uint32_t feature) const;

  /// Returns the dependence of a raw score on a feature that has one. There must have been rows.
  Dependence of(std::uint32_t feature, std::uint32_t output) const;

  /// Returns the mean raw score of the rows.
  double mean(std::uint32_t output) const;

 private:
  struct Parts;
  explicit PartialDependence(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace forestvm
