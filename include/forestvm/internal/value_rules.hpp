// Turns the values of a call's rows into the float32 numbers that walks compare. Implemented by vm/call.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/category_rules.hpp>
#include <forestvm/core/round_values.hpp>
#include <forestvm/core/wide_values.hpp>
#include <forestvm/internal/column_rules.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

/// A program's rules for values. Trainers that compare in float32 round values to the nearest float32; for other
/// trainers see core/wide_values.hpp. A value is given as float64, which holds every type but the largest integers.
class ValueRules {
 public:
  /// Makes the rules of a program that compares in float32.
  ValueRules();
  /// Reads the sections of `program`. Some copy of the program must live as long as this object. `function` rounds
  /// values; null stands for the function that runs on any CPU.
  explicit ValueRules(const Program& program, RoundFunction function = nullptr);

  /// Returns whether the program compares in float64.
  bool wide() const { return wide_; }

  /// Returns whether some float32 values are not compared as they are, or columns are derived from them.
  bool change_float32() const { return changes_float32_ || !columns_.empty(); }

  /// Returns the rules for the columns after the features.
  const ColumnRules& columns() const { return columns_; }

  /// A feature for whose values round(feature, x) is not enough.
  struct Special {
    std::uint32_t feature;
    bool zero_missing;               ///< True if numbers with |x| <= kTiny are missing.
    WideCategories categories;       ///< WideFeature::categories
    bool ranked;                     ///< WideFeature::ranked
    std::span<const double> bounds;  ///< Bounds of the feature if it is ranked; otherwise none.
  };
  /// Returns the special features, ascending.
  std::span<const Special> specials() const { return specials_; }
  /// Returns the special feature of this number; null if it is none.
  const Special* special(std::uint32_t feature) const;

  /// Returns what walks compare for a value of any feature that is not special.
  float round(std::uint32_t feature, double x) const {
    if (!wide_) return static_cast<float>(x);  // to nearest; beyond the range ±inf
    const Neighbours around = neighbours(x);
    return around.down != around.up && is_above_bound(feature, around.up, x) ? around.up : around.down;
  }
  /// Rounds a value of each of `features`, of which there are at most kRoundedAtOnce, in a program that compares in
  /// float64.
  void round(std::span<const std::uint32_t> features, const double* values, float* out) const {
    round({values, static_cast<std::uint32_t>(features.size()), features.data(), filter_.data(), filter_mask_,
           out, false});
  }
  /// Does what round() does for features that follow one another.
  void round_run(std::span<const std::uint32_t> features, const double* values, float* out) const;
  /// Rounds the values of these features in a row, which need no alignment, and writes them to their places in `out`.
  void round_picked(std::span<const std::uint32_t> features, const double* row, float* out) const {
    round({row, static_cast<std::uint32_t>(features.size()), features.data(), filter_.data(), filter_mask_,
           out, true});
  }
  /// Returns what walks compare for a value of a special feature; NaN if it is missing.
  float round(const Special& special, double x) const;

 private:
  void round(const RoundTask& task) const;
  /// Returns whether the feature has a bound just below `up`, and x is not below it.
  bool is_above_bound(std::uint32_t feature, float up, double x) const;

  struct Slot {
    std::uint32_t feature = UINT32_MAX;  ///< UINT32_MAX: the slot is free
    std::uint32_t bound = 0;             ///< Index in the wide_bounds section.
  };

  ColumnRules columns_;
  bool wide_ = false;
  bool changes_float32_ = false;
  std::span<const double> bounds_;
  std::vector<Special> specials_;
  RoundFunction round_;
  std::vector<std::uint32_t> filter_ = {0};  ///< RoundTask::filter
  std::uint32_t filter_mask_ = 0;
  std::vector<std::uint32_t> run_tests_;  ///< RoundTask::run_tests of all features
  std::vector<Slot> slots_;  ///< Hash table of the bounds that are no float32, with linear probing.
};

}  // namespace forestvm
