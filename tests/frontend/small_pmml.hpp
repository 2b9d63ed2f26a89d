// Small PMML documents, put together from parts that tests change.
#pragma once

#include <string>

namespace forestvm::test {

struct SmallPmml {
  /// Fields of the dictionary: a and b are numbers, i is a whole number, k has the categories red, green and "x y".
  std::string fields =
      "<DataField name=\"y\" optype=\"continuous\" dataType=\"double\"/>\n"
      "<DataField name=\"a\" optype=\"continuous\" dataType=\"float\"/>\n"
      "<DataField name=\"i\" optype=\"continuous\" dataType=\"integer\"/>\n"
      "<DataField name=\"k\" optype=\"categorical\" dataType=\"string\">"
      "<Value value=\"red\"/><Value value=\"green\"/><Value value=\"x y\"/></DataField>\n";
  std::string transformations;
  std::string function = "regression";
  std::string schema =
      "<MiningField name=\"y\" usageType=\"target\"/>\n<MiningField name=\"a\"/>\n<MiningField name=\"i\"/>\n"
      "<MiningField name=\"k\"/>\n";
  std::string strategy = "noTrueChildStrategy=\"returnLastPrediction\"";
  std::string nodes =
      "<Node score=\"3\"><True/>\n"
      "<Node score=\"1\"><SimplePredicate field=\"a\" operator=\"lessThan\" value=\"0.5\"/></Node>\n"
      "<Node score=\"2\"><SimplePredicate field=\"a\" operator=\"greaterOrEqual\" value=\"1.5\"/></Node>\n"
      "</Node>\n";

  std::string tree() const;
  /// Returns a document with the one tree.
  std::string file() const;
  /// Returns a document with the tree once in each of `count` segments.
  std::string forest(const std::string& method, int count = 2) const;
  /// Returns a document with a chain of a sum of two such trees and a RegressionModel, of classes "no" and "yes".
  std::string chain() const;
  /// Returns such a chain with two scores, "score" for class "yes" and "other" for class "no", and a softmax of them.
  std::string softmax_chain() const;
  /// Returns a document with another model; `model` stands for all of it.
  std::string document(const std::string& model) const;
};

/// Returns a Node with a score and a predicate.
std::string leaf(const std::string& score, const std::string& predicate);
/// Returns a SimplePredicate.
std::string simple(const std::string& field, const std::string& op, const std::string& value);

}  // namespace forestvm::test
