// PMML documents and the Model made of them: fields, predicates, strategies for missing values, sums and transforms.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/internal/reference.hpp>

#include "load_text.hpp"
#include "small_pmml.hpp"

namespace forestvm::test::test_pmml_load {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNone = kNan;  // no answer

/// Returns the predicted values. Rows have the fields a, i and k.
std::vector<double> values(const std::string& file, const std::vector<double>& rows) {
  const Model model = loaded(file);
  const auto answers = reference_predict(model, rows, rows.size() / 3);
  EXPECT_TRUE(answers.ok()) << answers.error().text();
  return answers.ok() ? answers->value : std::vector<double>();
}

/// Compares lists in which NaN equals NaN.
void expect_values(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
        << "value " << i << ": " << actual[i] << " instead of " << expected[i];
}

/// Returns the predicted values of a tree whose root has these children. Each row has one value, for `field`.
std::vector<double> of_children(const std::string& children, const std::vector<double>& column,
                                const std::string& strategy = SmallPmml{}.strategy, std::size_t field = 0) {
  SmallPmml small;
  small.strategy = strategy;
  small.nodes = "<Node score=\"3\" defaultChild=\"chosen\"><True/>\n" + children + "</Node>\n";
  std::vector<double> rows;
  for (const double x : column)
    for (std::size_t k = 0; k < 3; ++k) rows.push_back(k == field ? x : 0);
  return values(small.file(), rows);
}

TEST(PmmlLoad, SaysWhatTheFileSaid) {
  const Model model = loaded(SmallPmml{}.file());
  EXPECT_EQ(model.format, "pmml");
  EXPECT_EQ(model.trainer, "hand");
  EXPECT_EQ(model.version, "1");
  EXPECT_EQ(model.objective, "regression");
  EXPECT_EQ(model.feature_names, (std::vector<std::string>{"a", "i", "k"}));
  ASSERT_EQ(model.categories.size(), 1u);
  EXPECT_EQ(model.categories[0].feature, 2u);
  EXPECT_EQ(model.categories[0].names, (std::vector<std::string>{"red", "green", "x y"}));
  EXPECT_EQ(model.categories[0].unseen, std::nullopt);
  EXPECT_EQ(model.row_type, ScalarType::Float32);
  EXPECT_EQ(model.score_type, ScalarType::Float64);
  EXPECT_FALSE(model.may_lack_answers);
  // Two splits, as the tests need: the second test says nothing of numbers below 0.5.
  EXPECT_EQ(model.trees[0].nodes.size(), 5u);
}

TEST(PmmlLoad, ChildrenAreTriedInOrder) {
  expect_values(values(SmallPmml{}.file(), {0.4, 0, 0, 0.5, 0, 0, 1.5, 0, 0, kNan, 0, 0}), {1, 3, 2, 3});
}

TEST(PmmlLoad, TheComplementOfATestIsNoSplit) {
  SmallPmml small;
  small.nodes = "<Node><True/>" + leaf("1", simple("a", "lessOrEqual", "0.1")) +
                leaf("2", simple("a", "greaterThan", "0.1")) + "</Node>";
  small.strategy = "missingValueStrategy=\"defaultChild\"";
  small.nodes = replaced(replaced(small.nodes, "<Node>", "<Node defaultChild=\"b\">"), "<Node score=\"2\"",
                         "<Node id=\"b\" score=\"2\"");
  const Model model = loaded(small.file());
  ASSERT_EQ(model.trees[0].nodes.size(), 3u);
  EXPECT_EQ(model.trees[0].nodes[0].kind, NodeKind::LessEqual);
  EXPECT_EQ(model.trees[0].nodes[0].threshold, static_cast<double>(0.1f));
  EXPECT_FALSE(model.trees[0].nodes[0].missing_left);
}

TEST(PmmlLoad, MissingValueStrategies) {
  const std::string children =
      leaf("1", simple("a", "lessThan", "0")) +
      replaced(leaf("2", simple("a", "lessThan", "1")), "<Node", "<Node id=\"chosen\"") +
      leaf("4", "<True/>");
  const std::vector<double> column = {-1, 0, 1, kNan};
  expect_values(of_children(children, column, "missingValueStrategy=\"none\""), {1, 2, 4, 4});
  expect_values(of_children(children, column, "missingValueStrategy=\"nullPrediction\""), {1, 2, 4, kNone});
  expect_values(of_children(children, column, "missingValueStrategy=\"lastPrediction\""), {1, 2, 4, 3});
  expect_values(of_children(children, column, "missingValueStrategy=\"defaultChild\""), {1, 2, 4, 2});
}

TEST(PmmlLoad, NoTrueChild) {
  const std::string children = leaf("1", simple("a", "lessThan", "0"));
  expect_values(of_children(children, {-1, 0}, "noTrueChildStrategy=\"returnLastPrediction\""), {1, 3});
  expect_values(of_children(children, {-1, 0}, ""), {1, kNone});
  SmallPmml small;
  small.nodes = "<Node score=\"3\">" + simple("a", "lessThan", "0") + "</Node>";
  expect_values(values(small.file(), {-1, 0, 0, 1, 0, 0}), {3, kNone});
  EXPECT_TRUE(loaded(small.file()).may_lack_answers);
}

TEST(PmmlLoad, Operators) {
  const std::vector<double> column = {-1, -0.0, 1, kNan};
  const auto of = [&](const char* op) { return of_children(leaf("1", simple("a", op, "-0.0")), column); };
  expect_values(of("lessThan"), {1, 3, 3, 3});
  expect_values(of("lessOrEqual"), {1, 1, 3, 3});
  expect_values(of("greaterThan"), {3, 3, 1, 3});
  expect_values(of("greaterOrEqual"), {3, 1, 1, 3});
  expect_values(of("equal"), {3, 1, 3, 3});
  expect_values(of("notEqual"), {1, 3, 1, 3});
  const auto missing = [&](const char* op) {
    return of_children(leaf("1", std::string("<SimplePredicate field=\"a\" operator=\"") + op + "\"/>"),
                       column);
  };
  expect_values(missing("isMissing"), {3, 3, 3, 1});
  expect_values(missing("isNotMissing"), {1, 1, 1, 3});
  expect_values(of_children(leaf("1", "<False/>"), column), {3, 3, 3, 3});
}

TEST(PmmlLoad, CompoundPredicates) {
  const std::vector<double> column = {-1, 0, 1, kNan};
  const auto of = [&](const std::string& op, const std::string& second) {
    return of_children(leaf("1", "<CompoundPredicate booleanOperator=\"" + op + "\">" +
                                     simple("a", "lessThan", "1") + second + "</CompoundPredicate>"),
                       column);
  };
  const std::string above = simple("a", "greaterThan", "-1"),
                    missing = "<SimplePredicate field=\"a\" operator=\"isMissing\"/>";
  expect_values(of("and", above), {3, 1, 3, 3});
  expect_values(of("or", missing), {1, 1, 3, 1});
  expect_values(of("xor", above), {1, 3, 1, 3});
  expect_values(of("surrogate", "<True/>"), {1, 1, 3, 1});
}

TEST(PmmlLoad, WholeNumbers) {
  const std::vector<double> column = {1, 2, 3};
  expect_values(of_children(leaf("1", simple("i", "lessThan", "2.5")), column, SmallPmml{}.strategy, 1),
                {1, 1, 3});
  expect_values(of_children(leaf("1", simple("i", "greaterOrEqual", "2")), column, SmallPmml{}.strategy, 1),
                {3, 1, 1});
  expect_values(of_children(leaf("1", simple("i", "equal", "2")), column, SmallPmml{}.strategy, 1),
                {3, 1, 3});
  expect_values(of_children(leaf("1", simple("i", "equal", "2.5")), column, SmallPmml{}.strategy, 1),
                {3, 3, 3});
  const std::vector<double> others = {2.5, 2147483647, -2147483648, 2147483648, -2147483649, 1e300, kNan};
  const std::string children = leaf("1", simple("i", "lessOrEqual", "2"));
  expect_values(of_children(children, others, SmallPmml{}.strategy, 1),
                {kNone, 3, 1, kNone, kNone, kNone, 3});
  // The field is looked at only where a test asks for it.
  expect_values(of_children(leaf("4", simple("a", "equal", "0")) + children, others, SmallPmml{}.strategy, 1),
                {4, 4, 4, 4, 4, 4, 4});
  EXPECT_EQ(loaded(SmallPmml{}.file()).whole_features, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(loaded(replaced(SmallPmml{}.file(), simple("a", "lessThan", "0.5"),
                            simple("i", "lessThan", "99999999")))
                .row_type,
            ScalarType::Float64);
}

TEST(PmmlLoad, Categories) {
  const std::vector<double> column = {0, 1, 2, kNan};
  const auto of_set = [&](const char* op, const char* n, const char* array) {
    return of_children(
        leaf("1", std::string("<SimpleSetPredicate field=\"k\" booleanOperator=\"") + op + "\"><Array n=\"" +
                      n + "\" type=\"string\">" + array + "</Array></SimpleSetPredicate>"),
        column, SmallPmml{}.strategy, 2);
  };
  expect_values(of_set("isIn", "2", "red \"x y\""), {1, 3, 1, 3});
  expect_values(of_set("isNotIn", "1", " \"red\" "), {3, 1, 1, 3});
  expect_values(of_set("isIn", "1", "unknown"), {3, 3, 3, 3});
  expect_values(of_children(leaf("1", simple("k", "equal", "green")), column, SmallPmml{}.strategy, 2),
                {3, 1, 3, 3});
  expect_values(of_children(leaf("1", simple("k", "notEqual", "green")), column, SmallPmml{}.strategy, 2),
                {1, 3, 1, 3});
}

TEST(PmmlLoad, CategoriesThatAreNotDeclared) {
  SmallPmml small;
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("k", "notEqual", "green")) + "</Node>";
  const std::string file = small.file(), field = "<MiningField name=\"k\"/>";
  const std::string as_is = replaced(file, field, "<MiningField name=\"k\" invalidValueTreatment=\"asIs\"/>");
  EXPECT_EQ(loaded(as_is).categories[0].unseen, 3.0);
  expect_values(values(as_is, {0, 0, 3, 0, 0, 1, 0, 0, kNan}), {1, 3, 3});
  const std::string missing =
      replaced(file, field, "<MiningField name=\"k\" invalidValueTreatment=\"asMissing\"/>");
  EXPECT_TRUE(std::isnan(*loaded(missing).categories[0].unseen));
  expect_values(values(missing, {0, 0, 3, 0, 0, 1, 0, 0, 0}), {3, 3, 1});
}

TEST(PmmlLoad, CategoriesThatAreNumbers) {
  SmallPmml small;
  small.fields =
      replaced(small.fields, "<Value value=\"red\"/><Value value=\"green\"/><Value value=\"x y\"/>",
               "<Value value=\"7\"/><Value value=\"30\"/>");
  small.fields = replaced(small.fields, "dataType=\"string\"", "dataType=\"integer\"");
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("k", "equal", "30.0")) + "</Node>";
  EXPECT_TRUE(loaded(small.file()).categories.empty());
  const std::vector<double> rows = {0, 0, 7, 0, 0, 30, 0, 0, 30.5, 0, 0, 8, 0, 0, -1, 0, 0, kNan};
  expect_values(values(small.file(), rows), {3, 1, kNone, kNone, kNone, 3});
  // Where rows without a value have no answer, one split does for both.
  const SmallPmml guarded = small;
  small.strategy = "missingValueStrategy=\"nullPrediction\" noTrueChildStrategy=\"returnLastPrediction\"";
  expect_values(values(small.file(), rows), {3, 1, kNone, kNone, kNone, kNone});
  EXPECT_EQ(loaded(small.file()).trees[0].nodes.size(), loaded(guarded.file()).trees[0].nodes.size());
  small = guarded;
  small.schema = replaced(small.schema, "name=\"k\"", "name=\"k\" invalidValueTreatment=\"asMissing\"");
  expect_values(values(small.file(), rows), {3, 1, 3, 3, 3, 3});
  small = guarded;
  small.schema = replaced(small.schema, "name=\"k\"", "name=\"k\" missingValueReplacement=\"30\"");
  expect_values(values(small.file(), rows), {3, 1, kNone, kNone, kNone, 1});
}

TEST(PmmlLoad, TruthValues) {
  SmallPmml small;
  small.fields =
      replaced(small.fields,
               "><Value value=\"red\"/><Value value=\"green\"/><Value value=\"x y\"/></DataField>", "/>");
  small.fields = replaced(small.fields, "dataType=\"string\"", "dataType=\"boolean\"");
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("k", "equal", "true")) + "</Node>";
  const std::vector<double> rows = {0, 0, 0, 0, 0, 1, 0, 0, 0.5, 0, 0, 2, 0, 0, -1, 0, 0, kNan};
  expect_values(values(small.file(), rows), {3, 1, kNone, kNone, kNone, 3});
  EXPECT_FALSE(loaded(small.file()).categories[0].unseen);
  // JPMML reads "TRUE" as true, so texts that are no names are not taken for missing values.
  small.schema = replaced(small.schema, "name=\"k\"", "name=\"k\" invalidValueTreatment=\"asMissing\"");
  expect_values(values(small.file(), rows), {3, 1, 3, 3, 3, 3});
  EXPECT_FALSE(loaded(small.file()).categories[0].unseen);
}

TEST(PmmlLoad, MissingValuesAreReplaced) {
  const std::string children = leaf("1", simple("a", "lessThan", "0.5")) +
                               leaf("2", "<SimplePredicate field=\"a\" operator=\"isMissing\"/>");
  SmallPmml small;
  small.strategy += " missingValueStrategy=\"nullPrediction\"";
  small.nodes = "<Node score=\"3\"><True/>" + children + "</Node>";
  small.schema = replaced(small.schema, "name=\"a\"", "name=\"a\" missingValueReplacement=\"0.25\"");
  expect_values(values(small.file(), {0, 0, 0, 1, 0, 0, kNan, 0, 0}), {1, 3, 1});
  EXPECT_EQ(loaded(small.file()).trees[0].nodes.size(), 3u);
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("k", "equal", "green")) + "</Node>";
  small.schema = replaced(small.schema, "name=\"k\"", "name=\"k\" missingValueReplacement=\"green\"");
  expect_values(values(small.file(), {0, 0, 0, 0, 0, 1, 0, 0, kNan}), {3, 1, 1});
}

TEST(PmmlLoad, NumbersOutsideOfAnIntervalHaveNoAnswer) {
  SmallPmml small;
  small.fields =
      replaced(small.fields, "name=\"a\" optype=\"continuous\" dataType=\"float\"/>",
               "name=\"a\" optype=\"continuous\" dataType=\"float\">"
               "<Interval closure=\"closedOpen\" leftMargin=\"0\" rightMargin=\"2\"/></DataField>");
  const std::vector<double> rows = {-0.1, 0, 0, 0, 0, 0, 1.9, 0, 0, 2, 0, 0, kNan, 0, 0};
  expect_values(values(small.file(), rows), {kNone, 1, 2, kNone, 3});
  small.schema = replaced(small.schema, "name=\"a\"", "name=\"a\" invalidValueTreatment=\"asIs\"");
  expect_values(values(small.file(), rows), {1, 1, 2, 2, 3});
}

/// Numbers that are not valid, or that the dictionary lists, count as missing, and may be replaced as such.
TEST(PmmlLoad, NumbersThatCountAsMissing) {
  SmallPmml small;
  small.fields = replaced(
      small.fields, "name=\"a\" optype=\"continuous\" dataType=\"float\"/>",
      "name=\"a\" optype=\"continuous\" dataType=\"float\">"
      "<Interval closure=\"closedOpen\" leftMargin=\"0\" rightMargin=\"2\"/>"
      "<Value value=\"0.1\" property=\"missing\"/><Value value=\"-9\" property=\"missing\"/></DataField>");
  small.nodes =
      replaced(small.nodes, "</Node>\n</Node>",
               "</Node>\n" + leaf("4", "<SimplePredicate field=\"a\" operator=\"isMissing\"/>") + "</Node>");
  std::vector<double> rows;
  for (const double a : {-9.0, -1.0, 0.0, 0.09, static_cast<double>(0.1F), 0.11, 1.9, 2.0, kNan})
    rows.insert(rows.end(), {a, 0, 0});
  expect_values(values(small.file(), rows), {4, kNone, 1, 1, 4, 1, 2, kNone, 4});
  const std::string field = "<MiningField name=\"a\"",
                    missing = field + " invalidValueTreatment=\"asMissing\"";
  const std::string as_missing = replaced(small.file(), field, missing);
  expect_values(values(as_missing, rows), {4, 4, 1, 1, 4, 1, 2, 4, 4});
  expect_values(values(replaced(as_missing, missing, missing + " missingValueReplacement=\"1.5\""), rows),
                {2, 2, 1, 1, 2, 1, 2, 2, 2});
  const std::string as_is = replaced(small.file(), field, field + " invalidValueTreatment=\"asIs\"");
  expect_values(values(as_is, rows), {4, 1, 1, 1, 4, 1, 2, 2, 4});
}

TEST(PmmlLoad, NumbersThatAreNotWholeCountAsMissing) {
  SmallPmml small;
  small.fields = replaced(small.fields, "dataType=\"integer\"/>",
                          "dataType=\"integer\"><Value value=\"7\" property=\"missing\"/></DataField>");
  small.schema = replaced(small.schema, "name=\"i\"", "name=\"i\" invalidValueTreatment=\"asMissing\"");
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("i", "lessThan", "8")) +
                leaf("4", "<SimplePredicate field=\"i\" operator=\"isMissing\"/>") + "</Node>";
  std::vector<double> rows;
  for (const double i : {6.0, 6.5, 7.0, 8.0, 1e300, kNan}) rows.insert(rows.end(), {0, i, 0});
  expect_values(values(small.file(), rows), {1, 4, 4, 3, 4, 4});
}

/// An Interval without a margin contains infinity.
TEST(PmmlLoad, IntervalsWithOneMargin) {
  SmallPmml small;
  small.fields = replaced(small.fields, "dataType=\"float\"/>",
                          "dataType=\"float\"><Interval closure=\"openOpen\" leftMargin=\"0\"/></DataField>");
  const double infinity = std::numeric_limits<double>::infinity();
  expect_values(values(small.file(), {0, 0, 0, 0.25, 0, 0, infinity, 0, 0, -infinity, 0, 0}),
                {kNone, 1, 2, kNone});
}

/// Fields of type float are rounded before they are compared, also beside fields of type double.
TEST(PmmlLoad, FloatsAmongDoubles) {
  SmallPmml small;
  small.fields = replaced(small.fields, "name=\"i\" optype=\"continuous\" dataType=\"integer\"",
                          "name=\"i\" optype=\"continuous\" dataType=\"double\"");
  const double tenth = 0.1f, above = std::nextafter(0.1f, 1.0f), middle = (tenth + above) / 2;
  for (const char* op : {"lessThan", "lessOrEqual", "greaterThan", "greaterOrEqual", "equal"}) {
    small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("a", op, "0.1")) +
                  leaf("2", simple("i", "equal", "0.1")) + "</Node>";
    const Model wide = loaded(small.file());
    EXPECT_EQ(wide.row_type, ScalarType::Float64);
    SmallPmml narrow;
    narrow.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("a", op, "0.1")) + "</Node>";
    std::vector<double> rows;
    for (const double around : {tenth, above, middle, 3.5e38, -3.5e38})
      for (const double x : {around, std::nextafter(around, 1e300), std::nextafter(around, -1e300)})
        rows.insert(rows.end(), {x, 0, 0});
    expect_values(values(small.file(), rows), values(narrow.file(), rows));
  }
  expect_values(values(small.file(), {9, 0.1, 0, 9, tenth, 0}), {2, 3});
}

TEST(PmmlLoad, CastsToFloat) {
  SmallPmml small;
  small.fields = replaced(small.fields, "name=\"a\" optype=\"continuous\" dataType=\"float\"",
                          "name=\"a\" optype=\"continuous\" dataType=\"double\"");
  small.transformations =
      "<TransformationDictionary><DerivedField name=\"f\" optype=\"continuous\" dataType=\"float\">"
      "<FieldRef field=\"a\"/></DerivedField></TransformationDictionary>\n";
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("f", "equal", "0.1")) + "</Node>";
  EXPECT_EQ(loaded(small.file()).row_type, ScalarType::Float32);
  expect_values(values(small.file(), {0.1, 0, 0, 0.2, 0, 0}), {1, 3});
}

TEST(PmmlLoad, Sums) {
  const SmallPmml small;
  EXPECT_EQ(values(small.forest("sum", 3), {0, 0, 0}), (std::vector<double>{3}));
  EXPECT_EQ(values(small.forest("average", 3), {0, 0, 0}), (std::vector<double>{1}));
  EXPECT_EQ(values(small.forest("weightedSum", 3), {0, 0, 0}), (std::vector<double>{6}));
  EXPECT_EQ(values(small.forest("x-weightedSum", 3), {0, 0, 0}), (std::vector<double>{6}));
  EXPECT_EQ(values(small.forest("weightedAverage", 3), {0, 0, 0}), (std::vector<double>{1}));
  const std::string target = "<Targets><Target rescaleFactor=\"0.1\" rescaleConstant=\"7\"/></Targets>";
  EXPECT_EQ(values(replaced(small.forest("sum", 3), "<Segmentation", target + "<Segmentation"), {0, 0, 0}),
            (std::vector<double>{3 * 0.1 + 7}));
}

/// A document of classes: "no" below 0, "yes" from 0 to 1, no answer for missing values.
SmallPmml classes() {
  SmallPmml small;
  small.function = "classification";
  small.fields = replaced(small.fields, "<DataField name=\"y\" optype=\"continuous\" dataType=\"double\"/>",
                          "<DataField name=\"y\" optype=\"categorical\" dataType=\"string\">"
                          "<Value value=\"no\"/><Value value=\"yes\"/></DataField>");
  small.strategy = "missingValueStrategy=\"nullPrediction\"";
  small.nodes =
      "<Node><True/>\n<Node score=\"no\">" + simple("a", "lessThan", "0") +
      "<ScoreDistribution value=\"no\" recordCount=\"3\"/><ScoreDistribution value=\"yes\" recordCount=\"1\"/>"
      "</Node>\n<Node score=\"yes\">" +
      simple("a", "lessOrEqual", "1") +
      "<ScoreDistribution value=\"no\" recordCount=\"0\"/><ScoreDistribution value=\"yes\" recordCount=\"9\"/>"
      "</Node>\n</Node>\n";
  return small;
}

TEST(PmmlLoad, Classes) {
  const std::vector<double> rows = {-1, 0, 0, 1, 0, 0, 2, 0, 0, kNan, 0, 0};
  const std::vector<double> shares = {0.75, 0.25, 0, 1, kNone, kNone, kNone, kNone};
  const Model model = loaded(classes().file());
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(model.class_rule, ClassRule::Argmax);
  expect_values(values(classes().file(), rows), shares);
  expect_values(values(classes().forest("average"), rows), shares);
  expect_values(values(classes().forest("weightedAverage"), rows), shares);
  const auto returning = [](const std::string& file) {
    return replaced(file, "multipleModelMethod",
                    "missingPredictionTreatment=\"returnMissing\" multipleModelMethod");
  };
  expect_values(values(returning(classes().forest("majorityVote")), rows),
                {1, 0, 0, 1, kNone, kNone, kNone, kNone});
  // JPMML decides ties by the order of the trees' votes, which no rule for sums does.
  EXPECT_EQ(loaded(returning(classes().forest("majorityVote", 2))).class_rule, ClassRule::None);
  EXPECT_EQ(loaded(returning(classes().forest("majorityVote", 3))).class_rule, ClassRule::Argmax);
}

TEST(PmmlLoad, Chains) {
  const Model model = loaded(SmallPmml{}.chain());
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(model.transform, Transform::PlainSigmoid);
  EXPECT_TRUE(model.base_last);
  EXPECT_EQ(model.base, std::vector<double>{-2});
  // Between two classes that are equally probable JPMML takes the one of the first table.
  const auto even = reference_predict(model, std::vector<double>{0, 0, 0}, 1);
  EXPECT_EQ(even->value, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(even->label, std::vector<std::int64_t>{1});
  EXPECT_EQ(values(SmallPmml{}.chain(), {9, 0, 0})[1], 1 / (1 + std::exp(-2.0)));
}

TEST(PmmlLoad, ChainsOfTwoScores) {
  const std::string file = SmallPmml{}.softmax_chain();
  const Model model = loaded(file);
  EXPECT_EQ(model.transform, Transform::Softmax);
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(values(file, {0, 0, 0}), (std::vector<double>{0.5, 0.5}));
}

TEST(PmmlLoad, WhereverTheRootElementIs) {
  const std::string file = SmallPmml{}.file();
  EXPECT_TRUE(load_text("<!-- made by hand -->\n" + file.substr(file.find("<PMML"))).ok());
  EXPECT_TRUE(load_text(gzip(file)).ok());
  EXPECT_TRUE(
      load_text(replaced(file, "<Header>", "<Header><Extension><x:any y=\"1\">text</x:any></Extension>"))
          .ok());
}

}  // namespace
}  // namespace forestvm::test::test_pmml_load
