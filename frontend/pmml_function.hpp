// Reads the expressions of a PMML document's DerivedFields, as far as they are functions of one field. In: the elements
// of an expression. Out: the function as steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/cut.hpp"
#include "frontend/xml_events.hpp"

namespace forestvm::frontend {

/// Returns the number that std::from_chars reads from the whole text; nothing if the text is no number.
std::optional<double> pmml_number(std::string_view text);

/// An element of an expression, with all that is in it.
struct PmmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string text;
  std::vector<PmmlElement> children;

  std::optional<std::string_view> find(std::string_view attribute) const;
};

/// Collects the elements of one expression.
class PmmlExpressionReader {
 public:
  void begin(std::string_view name, const XmlAttributes& attributes);
  void text(std::string_view text);
  /// Returns whether the expression has ended.
  bool end();
  bool is_open() const { return !open_.empty(); }

  /// Returns the expression, or nothing if it has too many elements to be kept.
  std::optional<PmmlElement> take();

 private:
  std::vector<PmmlElement> open_;
  PmmlElement whole_;
  std::size_t count_ = 0;
};

/// The kinds of steps. x is the number before the step. A missing value stays missing unless the step says otherwise.
enum class PmmlStepKind : std::uint8_t {
  Add,           ///< x + number
  SubtractFrom,  ///< number - x
  Multiply,      ///< x * number
  Divide,        ///< x / number
  Threshold,     ///< 1 if x > number, otherwise 0
  Round,         ///< x, rounded to float32
  IsMissing,     ///< 1 if x is missing, otherwise 0
  IsPresent,     ///< 0 if x is missing, otherwise 1
  Replace,       ///< `other` if x is `number`, otherwise x
  FillMissing,   ///< `number` if x is missing, otherwise x
  Bins,          ///< The value of the bin in which x lies.
  Norm,          ///< The value of x on the lines between points.
  Map,           ///< The value of x in a table of texts.
};

/// A part of Bins.
struct PmmlBin {
  Cut end;  ///< Values above it belong to the bins after this one.
  double value = 0;
};

/// An end of a line: the value `norm` of the number `orig`.
struct PmmlPoint {
  double orig = 0, norm = 0;
};

/// A step of a function, with the numbers that its kind takes.
struct PmmlStep {
  PmmlStepKind kind = PmmlStepKind::Round;
  double number = 0, other = 0;
  bool whole = false;  ///< True if the number is of the type integer.
  std::vector<PmmlBin> bins;
  std::vector<std::pair<std::string, double>> table;
  std::optional<double> otherwise;  ///< Value of texts that the table lacks (Map).
  std::vector<PmmlPoint> points;    ///< Points in ascending order (Norm).
  bool extends =
      false;  ///< True if the first and the last line go on beyond the points (Norm), otherwise false.
};

/// The steps of a function, one after the other.
using PmmlSteps = std::span<const PmmlStep* const>;

/// A function of one field.
struct PmmlFunction {
  std::string source;  ///< Name of the field, which may be a derived field, too.
  std::vector<PmmlStep> steps;
};

/// Returns the function that an expression computes. Errors say why the expression is not supported.
Result<PmmlFunction> pmml_function(const PmmlElement& expression);

/// Returns the number that the steps make of x. std::nullopt stands for a missing value. There must be no Map among the
/// steps.
std::optional<double> pmml_value(PmmlSteps steps, std::optional<double> x);

/// Returns whether a function of numbers falls with its argument, instead of rising.
bool pmml_falls(PmmlSteps steps);

/// Returns whether rounding keeps the order of numbers on neighbouring lines, as far as the steps can tell them apart.
bool pmml_keeps_order(PmmlSteps steps);

}  // namespace forestvm::frontend
