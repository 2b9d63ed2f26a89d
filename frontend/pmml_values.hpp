// Sets of values that rows may have in a field at some node of a tree, and the outcomes of predicates for them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "frontend/pmml_tree.hpp"

namespace forestvm::frontend {

/// A set of values of one field. A missing value that is replaced by another one belongs to the same sets as that one.
struct PmmlValues {
  Cut low{-std::numeric_limits<double>::infinity(), false};
  Cut high{std::numeric_limits<double>::infinity(), true};  ///< Numbers lie between the cuts.
  std::vector<std::uint64_t> categories;                    ///< A bit for each category; 1: it is in the set.
  bool missing = true;                                      ///< True if missing values are in the set.

  bool has(std::uint32_t category) const { return (categories[category / 64] >> category % 64 & 1) != 0; }
  void set(std::uint32_t category, bool inside) {
    const std::uint64_t bit = std::uint64_t{1} << category % 64;
    categories[category / 64] = inside ? categories[category / 64] | bit : categories[category / 64] & ~bit;
  }
};

enum class Outcome : std::uint8_t { False, True, Unknown };

/// The parts of a set in which a predicate has different outcomes, or must still be tested. The first two parts hold
/// numbers (below a cut, and above it) or categories (members, and others); the third part holds missing values. Parts
/// may be empty.
struct PmmlParts {
  PmmlValues parts[3];
  bool empty[3] = {true, true, true};
  Cut cut;  ///< The cut between the first two parts of numbers.
};

/// Evaluates the predicates of a tree on sets of values.
class PmmlEvaluator {
 public:
  PmmlEvaluator(const PmmlTree& tree, const PmmlFields& fields) : tree_(tree), fields_(fields) {}

  /// Returns all values that rows may have.
  PmmlValues all(std::uint32_t number) const;

  /// Returns a set of the missing values alone of a field whose values are numbers.
  PmmlValues missing(std::uint32_t number) const;

  /// Returns the numbers that equal one number of a field, as a set without missing values.
  PmmlValues only(std::uint32_t number, double value) const;

  /// Returns the predicate's outcome if it is the same for all values of the set. The predicate is not compound.
  std::optional<Outcome> decide(const PmmlPredicate& predicate, const PmmlValues& values) const;

  /// Splits a set for which the outcome is not decided.
  PmmlParts split(const PmmlPredicate& predicate, const PmmlValues& values) const;

  bool is_category(std::uint32_t field) const { return fields_.field(field).kind == PmmlKind::Category; }
  const PmmlFields& fields() const { return fields_; }

 private:
  Cut first_cut(const PmmlPredicate& predicate) const;
  Cut second_cut(const PmmlPredicate& predicate) const;
  bool is_member(const PmmlPredicate& predicate, std::uint32_t category) const;
  std::optional<Outcome> of_numbers(const PmmlPredicate& predicate, const PmmlValues& values) const;
  PmmlParts split_numbers(const PmmlPredicate& predicate, const PmmlValues& values) const;
  PmmlParts split_categories(const PmmlPredicate& predicate, const PmmlValues& values) const;

  const PmmlTree& tree_;
  const PmmlFields& fields_;
};

}  // namespace forestvm::frontend
