// See pmml_function.hpp.
#include "frontend/pmml_function.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::size_t kMaxElements = 200'000;
constexpr std::string_view kAdvice = ", which is not supported: apply it before the rows are given";

Error unsupported(const std::string& what) {
  return refused(formatted("it is computed by {}{}", what, kAdvice));
}

/// Refuses attributes that are not in the list.
Result<void> check_attributes(const PmmlElement& element, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : element.attributes)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return unsupported(formatted("{} with attribute {}", printable(element.name), in_quotes(name)));
  return {};
}

Result<double> number_in(const PmmlElement& element, std::optional<std::string_view> text) {
  const std::optional<double> number = pmml_number(text.value_or(""));
  if (!number || !std::isfinite(*number))
    return unsupported(formatted("{} of {}", printable(element.name), in_quotes(text.value_or(""))));
  return *number + 0.0;
}

bool is_function(const PmmlElement& element, std::string_view name, std::size_t arguments) {
  return element.name == "Apply" && element.find("function") == name && element.children.size() == arguments;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

/// A number in an expression.
struct Constant {
  double number = 0;
  bool whole = false;  ///< True if it is of the type integer, otherwise double.
};

Result<Constant> constant_in(const PmmlElement& element) {
  if (element.name != "Constant") return unsupported(printable(element.name) + " of several fields");
  FVM_TRY(check_attributes(element, {"dataType"}));
  const std::string_view type = element.find("dataType").value_or("");
  if (type != "double" && type != "integer")
    return unsupported("a Constant that is neither double nor integer");
  FVM_ASSIGN(const double number, number_in(element, trimmed(element.text)));
  return Constant{number, type == "integer"};
}

Result<PmmlFunction> field_in(const PmmlElement& element, std::string_view attribute) {
  const auto source = element.find(attribute);
  if (!source) return unsupported(printable(element.name) + " without a field");
  return PmmlFunction{std::string(*source), {}};
}

Result<PmmlFunction> applied(const PmmlElement& element);

PmmlStep step_of(PmmlStepKind kind, double number = 0, double other = 0) {
  PmmlStep step;
  step.kind = kind;
  step.number = number;
  step.other = other;
  return step;
}

Result<PmmlFunction> with_step(const PmmlElement& argument, PmmlStep step) {
  FVM_ASSIGN(PmmlFunction function, pmml_function(argument));
  function.steps.push_back(std::move(step));
  return function;
}

/// Returns whether both elements are references to one field.
bool same_field(const PmmlElement& a, const PmmlElement& b) {
  return a.name == "FieldRef" && b.name == "FieldRef" && a.attributes == b.attributes;
}

/// Reads `if` where it replaces a number or a missing value, as JPMML writes imputers.
Result<PmmlFunction> chosen(const PmmlElement& element) {
  const std::vector<PmmlElement>& parts = element.children;
  if (is_function(element, "if", 3) && is_function(parts[0], "isMissing", 1) &&
      same_field(parts[0].children[0], parts[2])) {
    FVM_ASSIGN(const Constant constant, constant_in(parts[1]));
    return with_step(parts[2], step_of(PmmlStepKind::FillMissing, constant.number));
  }
  const bool keeps_missing = is_function(element, "if", 2) && is_function(parts[0], "isNotMissing", 1) &&
                             is_function(parts[1], "if", 3);
  if (!keeps_missing) return unsupported("Apply of \"if\"");
  const std::vector<PmmlElement>& inner = parts[1].children;
  if (!is_function(inner[0], "equal", 2) || !same_field(parts[0].children[0], inner[2]) ||
      !same_field(inner[0].children[0], inner[2]))
    return unsupported("Apply of \"if\"");
  FVM_ASSIGN(const Constant key, constant_in(inner[0].children[1]));
  FVM_ASSIGN(const Constant value, constant_in(inner[1]));
  return with_step(inner[2], step_of(PmmlStepKind::Replace, key.number, value.number));
}

/// Reads arithmetic of a field and a constant.
Result<PmmlFunction> arithmetic(const PmmlElement& element, std::string_view name) {
  const bool constant_first = element.children[0].name == "Constant";
  const PmmlElement& argument = element.children[constant_first ? 1 : 0];
  FVM_ASSIGN(const Constant constant, constant_in(element.children[constant_first ? 0 : 1]));
  const double number = constant.number;
  PmmlStep step;
  step.number = number;
  step.whole = constant.whole;
  if (name == "+") {
    step.kind = PmmlStepKind::Add;
  } else if (name == "-") {
    step.kind = constant_first ? PmmlStepKind::SubtractFrom : PmmlStepKind::Add;
    if (!constant_first) step.number = -number;
  } else {
    step.kind = name == "*" ? PmmlStepKind::Multiply : PmmlStepKind::Divide;
    if (number == 0) return unsupported(formatted("Apply of {} and 0", in_quotes(name)));
    if (name == "/" && constant_first) return unsupported("a Constant divided by a field");
  }
  return with_step(argument, std::move(step));
}

Result<PmmlFunction> applied(const PmmlElement& element) {
  FVM_TRY(check_attributes(element, {"function"}));
  const std::string_view name = element.find("function").value_or("");
  for (const std::string_view sign : {"+", "-", "*", "/"})
    if (name == sign && element.children.size() == 2) return arithmetic(element, name);
  if (is_function(element, "threshold", 2)) {
    FVM_ASSIGN(const Constant constant, constant_in(element.children[1]));
    return with_step(element.children[0], step_of(PmmlStepKind::Threshold, constant.number));
  }
  if (is_function(element, "isMissing", 1))
    return with_step(element.children[0], step_of(PmmlStepKind::IsMissing));
  if (is_function(element, "isNotMissing", 1))
    return with_step(element.children[0], step_of(PmmlStepKind::IsPresent));
  if (name == "if") return chosen(element);
  return unsupported("Apply of " + in_quotes(name));
}

/// Reads bins that follow one another and together hold all numbers.
Result<PmmlFunction> discretized(const PmmlElement& element) {
  FVM_TRY(check_attributes(element, {"field", "dataType"}));
  FVM_ASSIGN(PmmlFunction function, field_in(element, "field"));
  PmmlStep step;
  step.kind = PmmlStepKind::Bins;
  for (const PmmlElement& bin : element.children) {
    const bool plain =
        bin.name == "DiscretizeBin" && bin.children.size() == 1 && bin.children[0].name == "Interval";
    if (!plain) return unsupported("Discretize of other elements than bins of one Interval");
    const PmmlElement& interval = bin.children[0];
    const std::string_view closure = interval.find("closure").value_or("");
    const auto left = interval.find("leftMargin"), right = interval.find("rightMargin");
    Cut begin{-std::numeric_limits<double>::infinity(), false},
        end{std::numeric_limits<double>::infinity(), true};
    if (left) {
      FVM_ASSIGN(begin.number, number_in(interval, left));
      begin.after = closure.starts_with("open");
    }
    if (right) {
      FVM_ASSIGN(end.number, number_in(interval, right));
      end.after = closure.ends_with("Closed");
    }
    FVM_ASSIGN(const double value, number_in(bin, bin.find("binValue")));
    const bool follows = step.bins.empty() ? !left : left && begin == step.bins.back().end;
    if (!follows || end < begin || (!step.bins.empty() && value < step.bins.back().value))
      return unsupported("Discretize whose bins do not ascend, or leave numbers out");
    step.bins.push_back({end, value});
  }
  if (step.bins.empty() || step.bins.back().end.number < std::numeric_limits<double>::infinity())
    return unsupported("Discretize whose bins do not ascend, or leave numbers out");
  function.steps.push_back(std::move(step));
  return function;
}

/// Reads a table of one column.
Result<PmmlFunction> mapped(const PmmlElement& element) {
  FVM_TRY(check_attributes(element, {"outputColumn", "defaultValue", "dataType"}));
  const std::vector<PmmlElement>& parts = element.children;
  if (parts.size() != 2 || parts[0].name != "FieldColumnPair" || parts[1].name != "InlineTable")
    return unsupported("MapValues of other elements than one FieldColumnPair and an InlineTable");
  FVM_ASSIGN(PmmlFunction function, field_in(parts[0], "field"));
  PmmlStep step;
  step.kind = PmmlStepKind::Map;
  if (const auto text = element.find("defaultValue")) {
    FVM_ASSIGN(step.otherwise, number_in(element, text));
  }
  const std::string_view from = parts[0].find("column").value_or(""),
                         to = element.find("outputColumn").value_or("");
  for (const PmmlElement& row : parts[1].children) {
    const bool plain = row.name == "row" && row.children.size() == 2 && row.children[0].name == from &&
                       row.children[1].name == to;
    if (!plain) return unsupported("MapValues with a row of other columns");
    FVM_ASSIGN(const double value, number_in(element, row.children[1].text));
    step.table.emplace_back(row.children[0].text, value);
  }
  function.steps.push_back(std::move(step));
  return function;
}

/// Reads the points of lines that rise.
Result<PmmlFunction> normalized(const PmmlElement& element) {
  FVM_TRY(check_attributes(element, {"field", "outliers"}));
  FVM_ASSIGN(PmmlFunction function, field_in(element, "field"));
  PmmlStep step;
  step.kind = PmmlStepKind::Norm;
  const std::string_view outliers = element.find("outliers").value_or("asIs");
  if (outliers != "asIs" && outliers != "asExtremeValues")
    return unsupported("NormContinuous with outliers " + in_quotes(outliers));
  step.extends = outliers == "asIs";
  for (const PmmlElement& child : element.children) {
    if (child.name != "LinearNorm") return unsupported("NormContinuous of other elements than LinearNorm");
    PmmlPoint point;
    FVM_ASSIGN(point.orig, number_in(child, child.find("orig")));
    FVM_ASSIGN(point.norm, number_in(child, child.find("norm")));
    if (!step.points.empty() &&
        (point.orig <= step.points.back().orig || point.norm < step.points.back().norm))
      return unsupported("NormContinuous whose points do not ascend");
    step.points.push_back(point);
  }
  if (step.points.size() < 2) return unsupported("NormContinuous of fewer than two points");
  function.steps.push_back(std::move(step));
  return function;
}

/// Reads an indicator of one value.
Result<PmmlFunction> indicated(const PmmlElement& element) {
  FVM_TRY(check_attributes(element, {"field", "value"}));
  FVM_ASSIGN(PmmlFunction function, field_in(element, "field"));
  PmmlStep step;
  step.kind = PmmlStepKind::Map;
  step.table.emplace_back(element.find("value").value_or(""), 1);
  step.otherwise = 0;
  function.steps.push_back(std::move(step));
  return function;
}

/// Returns the value of x on the lines between points, by JPMML's operations in its order.
double on_lines(const PmmlStep& step, double x) {
  const std::vector<PmmlPoint>& points = step.points;
  if (!step.extends && x < points.front().orig) return points.front().norm;
  if (!step.extends && x > points.back().orig) return points.back().norm;
  const auto after =
      std::upper_bound(points.begin() + 1, points.end() - 1, x,
                       [](double wanted, const PmmlPoint& point) { return wanted < point.orig; });
  const PmmlPoint &begin = *(after - 1), &end = *after;
  return (x - begin.orig) / (end.orig - begin.orig) * (end.norm - begin.norm) + begin.norm;
}

/// Returns what a step makes of x. std::nullopt stands for a missing value.
std::optional<double> stepped(const PmmlStep& step, std::optional<double> x) {
  if (step.kind == PmmlStepKind::IsMissing) return x ? 0 : 1;
  if (step.kind == PmmlStepKind::IsPresent) return x ? 1 : 0;
  if (!x) return step.kind == PmmlStepKind::FillMissing ? std::optional(step.number) : std::nullopt;
  switch (step.kind) {
    case PmmlStepKind::Add:
      return *x + step.number;
    case PmmlStepKind::SubtractFrom:
      return step.number - *x;
    case PmmlStepKind::Multiply:
      return *x * step.number;
    case PmmlStepKind::Divide:
      return *x / step.number;
    case PmmlStepKind::Threshold:
      return *x > step.number ? 1 : 0;
    case PmmlStepKind::Round:
      return static_cast<double>(static_cast<float>(*x));
    case PmmlStepKind::Replace:
      return *x == step.number ? step.other : *x;
    case PmmlStepKind::Bins:
      return std::partition_point(step.bins.begin(), step.bins.end() - 1,
                                  [&](const PmmlBin& bin) {
                                    return bin.end < Cut{*x, false} || bin.end == Cut{*x, false};
                                  })
          ->value;
    case PmmlStepKind::Norm:
      return on_lines(step, *x);
    default:
      return x;
  }
}

}  // namespace

std::optional<std::string_view> PmmlElement::find(std::string_view attribute) const {
  for (const auto& [known, value] : attributes)
    if (known == attribute) return value;
  return std::nullopt;
}

void PmmlExpressionReader::begin(std::string_view name, const XmlAttributes& attributes) {
  PmmlElement element;
  if (++count_ <= kMaxElements) {
    element.name = name;
    attributes.each_name([&](std::string_view attribute) {
      element.attributes.emplace_back(attribute, attributes.find(attribute).value_or(""));
      return true;
    });
  }
  open_.push_back(std::move(element));
}

void PmmlExpressionReader::text(std::string_view text) {
  if (!open_.empty() && count_ <= kMaxElements) open_.back().text += text;
}

bool PmmlExpressionReader::end() {
  PmmlElement element = std::move(open_.back());
  open_.pop_back();
  if (open_.empty()) {
    whole_ = std::move(element);
  } else if (count_ <= kMaxElements) {
    open_.back().children.push_back(std::move(element));
  }
  return open_.empty();
}

std::optional<PmmlElement> PmmlExpressionReader::take() {
  const bool kept = count_ <= kMaxElements;
  count_ = 0;
  PmmlElement whole = std::exchange(whole_, {});
  return kept ? std::optional(std::move(whole)) : std::nullopt;
}

Result<PmmlFunction> pmml_function(const PmmlElement& expression) {
  if (expression.name == "FieldRef") {
    FVM_TRY(check_attributes(expression, {"field"}));
    return field_in(expression, "field");
  }
  if (expression.name == "Apply") return applied(expression);
  if (expression.name == "Discretize") return discretized(expression);
  if (expression.name == "MapValues") return mapped(expression);
  if (expression.name == "NormContinuous") return normalized(expression);
  if (expression.name == "NormDiscrete") return indicated(expression);
  return unsupported(printable(expression.name));
}

std::optional<double> pmml_value(PmmlSteps steps, std::optional<double> x) {
  for (const PmmlStep* step : steps) x = stepped(*step, x);
  return x;
}

bool pmml_falls(PmmlSteps steps) {
  bool falls = false;
  for (const PmmlStep* step : steps) {
    const bool scales = step->kind == PmmlStepKind::Multiply || step->kind == PmmlStepKind::Divide;
    if (step->kind == PmmlStepKind::SubtractFrom || (scales && step->number < 0)) falls = !falls;
  }
  return falls;
}

bool pmml_keeps_order(PmmlSteps steps) {
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (std::size_t p = 1; p < steps[i]->points.size(); ++p) {
      const PmmlPoint &begin = steps[i]->points[p - 1], &end = steps[i]->points[p];
      const double reached = end.norm - begin.norm + begin.norm;
      const PmmlSteps rest = steps.subspan(i + 1);
      if (reached > end.norm && pmml_value(rest, reached) != pmml_value(rest, end.norm)) return false;
    }
  return true;
}

}  // namespace forestvm::frontend
