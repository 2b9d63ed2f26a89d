// See pmml_derived.hpp. Functions of numbers rise or fall with their argument, except where they replace one value. So
// a comparison of the function is one of its argument with a number, which is found by bisection.
#include "frontend/pmml_derived.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

namespace forestvm::frontend {
namespace {

/// Returns whether a comparison of the derived field's value `y` holds.
bool holds(PmmlOperator op, double y, double value) {
  switch (op) {
    case PmmlOperator::Less:
      return y < value;
    case PmmlOperator::LessEqual:
      return y <= value;
    case PmmlOperator::Greater:
      return y > value;
    case PmmlOperator::GreaterEqual:
      return y >= value;
    default:
      return (y == value) == (op == PmmlOperator::Equal);
  }
}

std::int64_t order_of(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}

double number_at(std::int64_t order) {
  const auto size = std::bit_cast<double>(order < 0 ? -order : order);
  return order < 0 ? -size : size;
}

/// Returns the cut between the numbers for which `is_low` holds, which are all numbers up to some number, and those
/// above them.
template <class IsLow>
Cut last_low(const IsLow& is_low) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (!is_low(-kInf)) return {-kInf, false};
  std::int64_t low = order_of(-kInf), high = order_of(kInf) + 1;
  while (low + 1 < high) {
    const std::int64_t middle = std::midpoint(low, high);
    (is_low(number_at(middle)) ? low : high) = middle;
  }
  return {number_at(low), true};
}

/// Returns the comparison of the source with a number that has the outcome of `predicate`, which compares the
/// function's value by order. `kind` is the kind of the source's numbers.
PmmlPredicate ordered(PmmlSteps steps, const PmmlPredicate& predicate, std::uint32_t source, PmmlKind kind) {
  const bool less = predicate.op == PmmlOperator::Less || predicate.op == PmmlOperator::LessEqual;
  const bool down = less != pmml_falls(steps);
  const Cut cut = last_low([&](double x) {
    return holds(predicate.op, pmml_value(steps, x).value_or(0), predicate.value) == down;
  });
  PmmlPredicate result;
  result.field = source;
  // If the source is float32, the steps begin by rounding, so the rounded number has the same outcome.
  result.value = kind == PmmlKind::Float ? static_cast<double>(static_cast<float>(cut.number)) : cut.number;
  result.op = cut.after ? (down ? PmmlOperator::LessEqual : PmmlOperator::Greater)
                        : (down ? PmmlOperator::Less : PmmlOperator::GreaterEqual);
  return result;
}

class Rewriter {
 public:
  Rewriter(PmmlFields& fields, const PmmlPredicate& predicate, std::vector<std::uint32_t>& members,
           const std::string& where)
      : fields_(fields),
        predicate_(predicate),
        members_(members),
        where_(where),
        source_(*fields.field(predicate.field).source),
        steps_(fields.function(fields.field(predicate.field))) {}

  Result<std::vector<PmmlPredicate>> run() {
    if (steps_.front()->kind == PmmlStepKind::Map) return of_categories();
    const auto asks = [](const PmmlStep* step) {
      return step->kind == PmmlStepKind::IsMissing || step->kind == PmmlStepKind::IsPresent;
    };
    if (std::any_of(steps_.begin(), steps_.end(), asks)) return of_presence();
    return of_numbers();
  }

 private:
  using Predicates = std::vector<PmmlPredicate>;

  Error error(const std::string& message) const { return refused(where_, message); }

  static PmmlPredicate compound(PmmlOperator op) {
    PmmlPredicate whole;
    whole.op = op;
    return whole;
  }

  PmmlPredicate simple(PmmlOperator op, double value = 0) const {
    PmmlPredicate part;
    part.op = op;
    part.field = source_;
    part.value = value;
    return part;
  }

  bool asks_for_missing() const {
    return predicate_.op == PmmlOperator::Missing || predicate_.op == PmmlOperator::NotMissing;
  }

  /// Rewrites a comparison of a function that asks whether its source is missing.
  Result<Predicates> of_presence() const {
    const auto missing = pmml_value(steps_, std::nullopt), present = pmml_value(steps_, 0.0);
    if (asks_for_missing() || !missing || !present) return error("a test whether an indicator is missing");
    const bool if_missing = holds(predicate_.op, *missing, predicate_.value);
    const bool if_present = holds(predicate_.op, *present, predicate_.value);
    if (if_missing == if_present)
      return Predicates{compound(if_missing ? PmmlOperator::True : PmmlOperator::False)};
    return Predicates{simple(if_missing ? PmmlOperator::Missing : PmmlOperator::NotMissing)};
  }

  Result<Predicates> of_numbers() const {
    const std::optional<double> filled = pmml_value(steps_, std::nullopt);
    if (asks_for_missing()) {
      if (filled) return error("a test whether a field is missing whose missing values are replaced");
      return Predicates{simple(predicate_.op)};
    }
    const bool replaces = steps_.front()->kind == PmmlStepKind::Replace;
    const PmmlKind kind = fields_.field(source_).kind;
    const auto rising = steps_.subspan(replaces ? 1 : 0);
    if (predicate_.op == PmmlOperator::Equal || predicate_.op == PmmlOperator::NotEqual) {
      if (replaces || filled || predicate_.op == PmmlOperator::NotEqual)
        return error("a field that is computed cannot be tested so: only comparisons by order are supported");
      PmmlPredicate part = predicate_;
      Predicates parts = {compound(PmmlOperator::And)};
      for (const PmmlOperator op : {PmmlOperator::GreaterEqual, PmmlOperator::LessEqual}) {
        part.op = op;
        parts.push_back(ordered(rising, part, source_, kind));
      }
      return parts;
    }
    Predicates parts = {compound(PmmlOperator::And), ordered(rising, predicate_, source_, kind)};
    if (replaces) add_replaced(rising, parts);
    if (filled && !add_filled(*filled, parts))
      return error("a field of which a number and missing values are replaced");
    if (parts.size() == 2) parts.erase(parts.begin());
    return parts;
  }

  /// Adds a test of the number that is replaced, if its outcome differs from that of the numbers around it.
  void add_replaced(PmmlSteps rising, Predicates& parts) const {
    const PmmlStep& step = *steps_.front();
    const auto truth = [&](double x) {
      return holds(predicate_.op, pmml_value(rising, x).value_or(0), predicate_.value);
    };
    if (truth(step.number) == truth(step.other)) return;
    parts[0].op = truth(step.other) ? PmmlOperator::Or : PmmlOperator::And;
    parts.push_back(simple(truth(step.other) ? PmmlOperator::Equal : PmmlOperator::NotEqual, step.number));
  }

  /// Adds a test for missing values. Returns false if it cannot be combined with the parts that are there.
  bool add_filled(double filled, Predicates& parts) const {
    const bool truth = holds(predicate_.op, filled, predicate_.value);
    const PmmlOperator op = truth ? PmmlOperator::Or : PmmlOperator::And;
    if (parts.size() > 2 && parts[0].op != op) return false;
    parts[0].op = op;
    parts.push_back(simple(truth ? PmmlOperator::Missing : PmmlOperator::NotMissing));
    return true;
  }

  /// Rewrites a comparison of a value that a table has for categories. A missing category has no value in the table.
  Result<Predicates> of_categories() {
    if (asks_for_missing()) return error("a test whether the value of a table is missing is not supported");
    const PmmlField field = fields_.field(source_);
    if (field.kind != PmmlKind::Category)
      return error("a table of values that are not categories is not supported");
    const PmmlCategories& categories = fields_.categories(field);
    if (pmml_value(steps_.subspan(1), std::nullopt))
      return error("a value for missing categories is not supported");
    if (!fields_.may_visit(categories.count()))
      return error("too many tests of values that tables have for many categories");
    const std::vector<std::optional<double>>& values = fields_.table(fields_.field(predicate_.field));
    const std::optional<double> otherwise = pmml_value(steps_.subspan(1), steps_.front()->otherwise);
    const bool others = categories.other_possible && !categories.other_missing;
    std::vector<std::uint32_t> chosen[2];
    for (std::uint32_t i = others ? 0 : 1; i < categories.count(); ++i) {
      const std::optional<double> y = i < values.size() ? values[i] : otherwise;
      if (!y)
        return error("a table that lacks values of its field, and gives no defaultValue, is not supported");
      chosen[holds(predicate_.op, *y, predicate_.value) ? 1 : 0].push_back(i);
    }
    const bool fewer = chosen[0].size() < chosen[1].size();
    const bool lists_false = others ? !chosen[1].empty() && chosen[1].front() == 0 : fewer;
    PmmlPredicate part = simple(lists_false ? PmmlOperator::NotIn : PmmlOperator::In);
    part.begin = static_cast<std::uint32_t>(members_.size());
    const std::vector<std::uint32_t>& listed = chosen[lists_false ? 0 : 1];
    members_.insert(members_.end(), listed.begin(), listed.end());
    part.count = static_cast<std::uint32_t>(listed.size());
    return Predicates{part};
  }

  PmmlFields& fields_;
  const PmmlPredicate& predicate_;
  std::vector<std::uint32_t>& members_;
  const std::string& where_;
  std::uint32_t source_;
  PmmlSteps steps_;
};

}  // namespace

bool pmml_needs_value(const PmmlFields& fields, std::uint32_t field) {
  const PmmlSteps steps = fields.function(fields.field(field));
  const auto at = std::find_if(steps.begin(), steps.end(),
                               [](const PmmlStep* step) { return step->kind == PmmlStepKind::Threshold; });
  const auto before = static_cast<std::size_t>(at - steps.begin());
  return at != steps.end() && !pmml_value(steps.first(before), std::nullopt);
}

Result<std::vector<PmmlPredicate>> pmml_source_predicates(PmmlFields& fields, const PmmlPredicate& predicate,
                                                          std::vector<std::uint32_t>& members,
                                                          const std::string& where) {
  return Rewriter(fields, predicate, members, where).run();
}

}  // namespace forestvm::frontend
