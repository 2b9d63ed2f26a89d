// See pmml_values.hpp.
#include "frontend/pmml_values.hpp"

#include <algorithm>
#include <cmath>

namespace forestvm::frontend {
namespace {

Outcome outcome(bool truth) { return truth ? Outcome::True : Outcome::False; }

bool asks_for_missing(PmmlOperator op) {
  return op == PmmlOperator::Missing || op == PmmlOperator::NotMissing;
}

bool any(const PmmlValues& values) {
  return std::any_of(values.categories.begin(), values.categories.end(),
                     [](std::uint64_t w) { return w != 0; });
}

}  // namespace

PmmlValues PmmlEvaluator::all(std::uint32_t number) const {
  PmmlValues values;
  if (!is_category(number)) return values;
  const PmmlCategories& categories = fields_.categories(fields_.field(number));
  values.categories.assign(categories.count() / 64 + 1, ~std::uint64_t{0});
  for (std::uint32_t i = categories.count(); i < values.categories.size() * 64; ++i) values.set(i, false);
  values.set(0, categories.other_possible || categories.other_invalid);
  return values;
}

PmmlValues PmmlEvaluator::only(std::uint32_t number, double value) const {
  PmmlValues values;
  const bool whole = fields_.field(number).kind == PmmlKind::Integer;
  values.low = whole ? Cut{value - 1, true} : Cut{value, false};
  values.high = {value, true};
  values.missing = false;
  return values;
}

PmmlValues PmmlEvaluator::missing(std::uint32_t number) const {
  const std::optional<double>& replacement = fields_.field(number).replacement;
  PmmlValues values = only(number, replacement.value_or(0));
  if (!replacement) values.high = values.low;
  values.missing = true;
  return values;
}

bool PmmlEvaluator::is_member(const PmmlPredicate& predicate, std::uint32_t category) const {
  const auto begin = tree_.members.begin() + predicate.begin;
  return std::binary_search(begin, begin + predicate.count, category);
}

/// Returns the cut at which the outcome of the predicate changes; for Equal, the cut below which it is false. Cuts of
/// fields of whole numbers always lie just above a whole number, so that equal cuts compare equal.
Cut PmmlEvaluator::first_cut(const PmmlPredicate& predicate) const {
  const PmmlOperator op = predicate.op;
  const bool after = op == PmmlOperator::LessEqual || op == PmmlOperator::Greater;
  if (fields_.field(predicate.field).kind != PmmlKind::Integer) return {predicate.value, after};
  return {after ? std::floor(predicate.value) : std::ceil(predicate.value) - 1, true};
}

/// Returns the cut above which Equal is false again.
Cut PmmlEvaluator::second_cut(const PmmlPredicate& predicate) const {
  if (fields_.field(predicate.field).kind != PmmlKind::Integer) return {predicate.value, true};
  return {std::floor(predicate.value), true};
}

/// Returns the outcome for the values that are not missing, if it is the same for all of them.
std::optional<Outcome> PmmlEvaluator::of_numbers(const PmmlPredicate& predicate,
                                                 const PmmlValues& values) const {
  const PmmlOperator op = predicate.op;
  if (asks_for_missing(op)) return outcome(op == PmmlOperator::NotMissing);
  const Cut first = first_cut(predicate);
  const bool above = op == PmmlOperator::Greater || op == PmmlOperator::GreaterEqual;
  if (op == PmmlOperator::Equal || op == PmmlOperator::NotEqual) {
    const Cut second = second_cut(predicate);
    const bool equal = op == PmmlOperator::Equal;
    if (values.high <= first || values.low >= second || first >= second) return outcome(!equal);
    return values.low >= first && values.high <= second ? std::optional(outcome(equal)) : std::nullopt;
  }
  if (values.high <= first) return outcome(!above);
  return values.low >= first ? std::optional(outcome(above)) : std::nullopt;
}

std::optional<Outcome> PmmlEvaluator::decide(const PmmlPredicate& predicate, const PmmlValues& values) const {
  const PmmlOperator op = predicate.op;
  if (op == PmmlOperator::True || op == PmmlOperator::False) return outcome(op == PmmlOperator::True);
  const PmmlField& field = fields_.field(predicate.field);
  const bool missing_apart = values.missing && !field.replacement;
  const Outcome of_missing = asks_for_missing(op) ? outcome(op == PmmlOperator::Missing) : Outcome::Unknown;
  if (is_category(predicate.field)) {
    const PmmlParts parts = split_categories(predicate, values);
    if (parts.empty[0] + parts.empty[1] + parts.empty[2] < 2) return std::nullopt;
    if (!parts.empty[2]) return of_missing;
    return outcome(parts.empty[0] == (op == PmmlOperator::NotIn));
  }
  if (values.low >= values.high) return of_missing;
  const std::optional<Outcome> of_rest = of_numbers(predicate, values);
  return missing_apart && of_rest != of_missing ? std::nullopt : of_rest;
}

PmmlParts PmmlEvaluator::split_numbers(const PmmlPredicate& predicate, const PmmlValues& values) const {
  PmmlParts parts;
  const PmmlField& field = fields_.field(predicate.field);
  for (PmmlValues& part : parts.parts) {
    part = values;
    part.missing = false;
  }
  parts.parts[2].high = parts.parts[2].low;
  parts.parts[2].missing = values.missing && !field.replacement;
  parts.empty[2] = !parts.parts[2].missing;
  if (of_numbers(predicate, values)) {
    parts.empty[0] = values.low >= values.high;
    return parts;
  }
  parts.cut = first_cut(predicate);
  if (parts.cut <= values.low) parts.cut = second_cut(predicate);
  parts.empty[0] = parts.empty[1] = false;
  parts.parts[0].high = parts.cut;
  parts.parts[1].low = parts.cut;
  if (field.replacement && values.missing)
    parts.parts[Cut{*field.replacement, false} < parts.cut ? 0 : 1].missing = true;
  return parts;
}

PmmlParts PmmlEvaluator::split_categories(const PmmlPredicate& predicate, const PmmlValues& values) const {
  PmmlParts parts;
  const PmmlField& field = fields_.field(predicate.field);
  for (PmmlValues& part : parts.parts) {
    part.missing = false;
    part.categories.assign(values.categories.size(), 0);
  }
  if (asks_for_missing(predicate.op)) {
    // NotMissing is true for all values that are not missing.
    parts.parts[predicate.op == PmmlOperator::NotMissing ? 0 : 1].categories = values.categories;
  } else {
    parts.parts[1].categories = values.categories;
    for (std::uint32_t i = 0; i < predicate.count; ++i) {
      const std::uint32_t category = tree_.members[predicate.begin + i];
      parts.parts[0].set(category, values.has(category));
      parts.parts[1].set(category, false);
    }
  }
  if (fields_.categories(field).other_missing) {
    parts.parts[0].set(0, false);
    parts.parts[1].set(0, false);
    parts.parts[2].set(0, values.has(0));
  }
  if (!field.replacement) {
    parts.parts[2].missing = values.missing;
  } else if (values.missing || parts.parts[2].has(0)) {
    const auto replacement = static_cast<std::uint32_t>(*field.replacement);
    PmmlValues& home = parts.parts[parts.parts[0].has(replacement) ? 0 : 1];
    home.missing = values.missing;
    // Values that are not listed count as missing here, so they go where the replacement goes.
    if (parts.parts[2].has(0)) home.set(0, true);
    parts.parts[2].set(0, false);
  }
  for (int i = 0; i < 3; ++i) parts.empty[i] = !any(parts.parts[i]) && !parts.parts[i].missing;
  return parts;
}

PmmlParts PmmlEvaluator::split(const PmmlPredicate& predicate, const PmmlValues& values) const {
  return is_category(predicate.field) ? split_categories(predicate, values)
                                      : split_numbers(predicate, values);
}

}  // namespace forestvm::frontend
