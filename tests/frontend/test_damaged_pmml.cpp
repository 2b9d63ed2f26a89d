// PMML documents that are damaged or that say what no Model does: each is refused with its place and one sentence;
// nothing crashes, hangs or takes much memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "damaged.hpp"
#include "load_text.hpp"
#include "small_pmml.hpp"

namespace forestvm::test::test_damaged_pmml {
namespace {

struct Damage {
  const char* name;
  std::string file, sentence;
};

void expect_refusals(const std::vector<Damage>& cases) {
  for (const Damage& row : cases) {
    const auto error = refusal_of(row.name, row.file);
    if (error) {
      EXPECT_NE(error->text().find(row.sentence), std::string::npos) << row.name << ": " << error->text();
    }
  }
}

/// Returns the small document after a change.
std::string changed(const std::string& from, const std::string& to) {
  return replaced(SmallPmml{}.file(), from, to);
}

/// Returns the small document with another predicate in its first split.
std::string with_predicate(const std::string& predicate) {
  return changed(simple("a", "lessThan", "0.5"), predicate);
}

/// Returns a document of 60,000 classes with a tree of 500 leaves, each of which has `more` after its predicate.
std::string with_many_classes(const std::string& more) {
  SmallPmml small;
  small.function = "classification";
  std::string values, leaves;
  for (int i = 0; i < 60'000; ++i) values += "<Value value=\"" + std::to_string(i) + "\"/>";
  for (int i = 0; i < 500; ++i)
    leaves += leaf(std::to_string(i), simple("i", "equal", std::to_string(i)) + more);
  small.fields = replaced(small.fields, "optype=\"continuous\" dataType=\"double\"/>",
                          "optype=\"categorical\" dataType=\"integer\">" + values + "</DataField>");
  small.nodes = "<Node score=\"0\"><True/>" + leaves + "</Node>";
  return small.file();
}

/// Returns a predicate for a set of categories, given its Array.
std::string set_of(const std::string& array) {
  return "<SimpleSetPredicate field=\"k\" booleanOperator=\"isIn\">" + array + "</SimpleSetPredicate>";
}

/// Returns the small document with a test of a field "f" that is derived by `derivation`.
std::string with_derived_field(const std::string& derivation) {
  SmallPmml small;
  small.transformations =
      "<TransformationDictionary><DerivedField name=\"f\" optype=\"continuous\" dataType=\"float\">" +
      derivation + "</DerivedField></TransformationDictionary>\n";
  small.nodes = "<Node score=\"3\"><True/>" + leaf("1", simple("f", "equal", "0.1")) + "</Node>";
  return small.file();
}

/// Returns a function of field a and a constant.
std::string arithmetic(const std::string& function, const std::string& number) {
  return "<Apply function=\"" + function + "\"><FieldRef field=\"a\"/><Constant dataType=\"double\">" +
         number + "</Constant></Apply>";
}

TEST(DamagedPmml, Xml) {
  expect_refusals({
      {"a document type", changed("<PMML", "<!DOCTYPE PMML [<!ENTITY a \"b\">]>\n<PMML"),
       ": a document type declaration, which is never read: remove it"},
      {"an entity", changed("\"hand\"", "\"&hand;\""), ": the document is damaged: undefined entity"},
      {"an element that does not end", changed("</Node>\n<Node", "\n<Node"),
       "the document is damaged: mismatched tag"},
      {"text after the end", SmallPmml{}.file() + "more",
       "the document is damaged: junk after document element"},
      {"bytes that are no UTF-8", changed("\"hand\"", "\"\xff\""),
       "the document is damaged: not well-formed"},
      {"another encoding", changed("UTF-8", "EBCDIC"), "the document is damaged: unknown encoding"},
      {"an attribute twice", changed("score=\"1\"", "score=\"1\" score=\"2\""),
       "the document is damaged: duplicate attribute"},
      {"an element that is not known", changed("<Header>", "<Heater>"),
       "line 3: PMML: element \"Heater\" is not supported"},
      {"an element in another place", changed("<True/>", "<DataField/>"),
       "line 16: Node: element \"DataField\" does not belong here"},
      {"an attribute that is not known", changed("score=\"1\"", "scores=\"1\""),
       "line 17: Node: attribute \"scores\" is not supported"},
      {"no model", SmallPmml{}.document(""), "PMML: the document has no model of trees"},
      {"two models", SmallPmml{}.document(SmallPmml{}.tree() + SmallPmml{}.tree()),
       "a document of more than one model"},
      {"a model after one without trees",
       SmallPmml{}.document("<MiningModel functionName=\"regression\"><MiningSchema/>"
                            "<Segmentation multipleModelMethod=\"modelChain\"/></MiningModel>" +
                            SmallPmml{}.tree()),
       "a document of more than one model"},
      {"two schemas", changed("</MiningSchema>", "</MiningSchema><MiningSchema/>"),
       "line 15: MiningSchema: a model with two MiningSchema elements"},
  });
}

TEST(DamagedPmml, Bombs) {
  const auto nested = [](std::size_t depth) {
    SmallPmml small;
    small.nodes.clear();
    for (std::size_t i = 0; i < depth; ++i) small.nodes += "<Node score=\"1\"><True/>";
    for (std::size_t i = 0; i < depth; ++i) small.nodes += "</Node>";
    return small.file();
  };
  EXPECT_TRUE(load_text(nested(4000)).ok());
  expect_refusals({
      {"depth", nested(1'000'000), "elements inside one another"},
      {"a long tag", changed("score=\"1\"", "score=\"" + std::string(5u << 20, '1') + "\""),
       "a tag or text of more than"},
      {"names without end",
       [] {
         std::string names;
         for (int i = 0; i < 2000; ++i) names += "<n" + std::to_string(i) + "/>";
         return changed("<Header>", "<Header><Extension>" + names + "</Extension>");
       }(),
       "more than 1000 different names in extensions"},
      {"categories without end",
       [] {
         std::string values;
         for (int i = 0; i < 70'000; ++i) values += "<Value value=\"" + std::to_string(i) + "\"/>";
         return changed("<Value value=\"red\"/>", values);
       }(),
       "a field of more than 65536 categories"},
      {"wide leaves", with_many_classes(""), "the leaves' values for each class would take much more memory"},
      {"wide distributions", with_many_classes("<ScoreDistribution value=\"0\" recordCount=\"1\"/>"),
       "the ScoreDistribution elements would take much more memory than the document"},
      {"comparisons without end",
       [] {
         // Rows with numbers below a test's go on to all tests after it.
         SmallPmml small;
         small.nodes = "<Node score=\"3\"><True/>";
         for (int i = 0; i < 20'000; ++i) small.nodes += leaf("1", simple("a", "equal", std::to_string(i)));
         small.nodes += "</Node>";
         return small.file();
       }(),
       "each of many children of a node is tested for many sets of rows"},
      {"splits without end",
       [] {
         // Numbers below and above 1 go on through all of the rest.
         SmallPmml small;
         small.fields.clear();
         small.schema.clear();
         small.nodes = "<Node score=\"3\"><True/>";
         for (int i = 0; i < 40; ++i) {
           const std::string name = "f" + std::to_string(i);
           small.fields += "<DataField name=\"" + name + "\" optype=\"continuous\" dataType=\"double\"/>";
           small.schema += "<MiningField name=\"" + name + "\"/>";
           small.nodes += leaf("1", simple(name, "equal", "1"));
         }
         small.nodes += "</Node>";
         return small.file();
       }(),
       "the tree needs too many splits of two sides"},
  });
}

TEST(RefusedPmml, Fields) {
  const std::string field = "<MiningField name=\"a\"/>";
  const auto treated = [&](const std::string& attribute) {
    return changed(field, "<MiningField name=\"a\" " + attribute + "/>");
  };
  expect_refusals({
      {"no such field", with_predicate(simple("z", "lessThan", "1")),
       "line 17: SimplePredicate: field \"z\" is not one that the model takes"},
      {"a field that the model does not take", changed(field, ""),
       "field \"a\" is not one that the model takes"},
      {"a field that is not declared", changed(field, field + "<MiningField name=\"z\"/>"),
       "line 12: MiningField: field \"z\" is not in the DataDictionary"},
      {"a field twice", changed(field, field + field), "the model takes field \"a\" twice"},
      {"two fields of one name", changed("name=\"i\"", "name=\"a\""), "two fields have the name \"a\""},
      {"a text that means missing",
       replaced(with_predicate(simple("k", "equal", "red")), "<Value value=\"green\"/>",
                "<Value value=\"green\" property=\"missing\"/>"),
       "field \"k\" cannot be tested: its value \"green\" counts as missing"},
      {"a number that means missing and replaces it",
       replaced(changed(field, "<MiningField name=\"a\" missingValueReplacement=\"0.1\"/>"),
                "dataType=\"float\"/>",
                "dataType=\"float\"><Value value=\"0.1\" property=\"missing\"/></DataField>"),
       "field \"a\" cannot be tested: its missingValueReplacement counts as missing"},
      {"outliers", treated("outliers=\"asExtremeValues\""),
       "its outliers are replaced, which is not supported"},
      {"missing values are invalid", treated("missingValueTreatment=\"returnInvalid\""),
       "rows without its value are invalid, which is not supported"},
      {"another treatment", treated("invalidValueTreatment=\"asValue\""), "\"asValue\" is not supported"},
      {"a replacement that is no integer",
       changed("<MiningField name=\"i\"/>",
               "<MiningField name=\"i\" missingValueReplacement=\"3000000000\"/>"),
       "missingValueReplacement \"3000000000\" is not a number of the field"},
      {"a replacement that is not a number", treated("missingValueReplacement=\"x\""),
       "missingValueReplacement \"x\" is not a number of the field"},
      {"a date",
       changed("name=\"a\" optype=\"continuous\" dataType=\"float\"",
               "name=\"a\" optype=\"continuous\" dataType=\"date\""),
       "its numbers are of type \"date\""},
      {"a computed field", with_derived_field("<Apply function=\"ln\"><FieldRef field=\"a\"/></Apply>"),
       "field \"f\" cannot be tested: it is computed by Apply of \"ln\", which is not supported: apply it before the rows are given"},
      {"a computed field of several fields",
       with_derived_field("<Apply function=\"+\"><FieldRef field=\"a\"/><FieldRef field=\"i\"/></Apply>"),
       "it is computed by FieldRef of several fields, which is not supported"},
      {"a scale of 0", with_derived_field(arithmetic("*", "0")), "it is computed by Apply of \"*\" and 0"},
      {"a constant that is no number", with_derived_field(arithmetic("+", "x")),
       "it is computed by Constant of \"x\""},
      {"a threshold in a tree that answers for missing values",
       with_derived_field(arithmetic("threshold", "1")), "\"threshold\" of a value that may be missing"},
      {"bins with a gap between them",
       with_derived_field(
           "<Discretize field=\"a\"><DiscretizeBin binValue=\"0\"><Interval closure=\"openOpen\" "
           "rightMargin=\"0\"/></DiscretizeBin><DiscretizeBin binValue=\"1\"><Interval closure=\"openOpen\" "
           "leftMargin=\"0\"/></DiscretizeBin></Discretize>"),
       "Discretize whose bins do not ascend, or leave numbers out"},
      {"lines that do not rise",
       with_derived_field("<NormContinuous field=\"a\"><LinearNorm orig=\"0\" norm=\"1\"/><LinearNorm "
                          "orig=\"1\" norm=\"0\"/></NormContinuous>"),
       "NormContinuous whose points do not ascend"},
      {"a table for numbers", with_derived_field("<NormDiscrete field=\"a\" value=\"1\"/>"),
       "tables of values are supported for fields of categories, and arithmetic for numbers"},
      {"a value for missing categories",
       with_derived_field("<NormDiscrete field=\"k\" value=\"red\" mapMissingTo=\"0\"/>"),
       "it is computed by NormDiscrete with attribute \"mapMissingTo\""},
      {"a field of two expressions",
       with_derived_field("<Apply function=\"ln\"><FieldRef field=\"a\"/></Apply><FieldRef field=\"a\"/>"),
       "a DerivedField of two expressions"},
      {"a cast that goes round", with_derived_field("<FieldRef field=\"f\"/>"),
       "field \"f\" is not one that the model takes"},
      {"negative categories",
       changed("dataType=\"string\"><Value value=\"red\"/>", "dataType=\"integer\"><Value value=\"-1\"/>"),
       "category \"-1\", which is not a whole number from 0 to 16777215"},
      {"an Interval without a closure",
       changed(
           "name=\"a\" optype=\"continuous\" dataType=\"float\"/>",
           "name=\"a\" optype=\"continuous\" dataType=\"float\"><Interval leftMargin=\"0\"/></DataField>"),
       "line 6: Interval: closure \"\""},
      {"an Interval that ends before it begins",
       changed("name=\"a\" optype=\"continuous\" dataType=\"float\"/>",
               "name=\"a\" optype=\"continuous\" dataType=\"float\">"
               "<Interval closure=\"openOpen\" leftMargin=\"1\" rightMargin=\"0\"/></DataField>"),
       "line 6: Interval: a leftMargin above the rightMargin"},
  });
}

TEST(RefusedPmml, Trees) {
  const std::string strategy = SmallPmml{}.strategy;
  expect_refusals({
      {"no predicate", with_predicate(""), "line 17: Node: a Node without a predicate"},
      {"two predicates", with_predicate("<True/><True/>"), "line 17: True: a Node with two predicates"},
      {"two roots", changed("</TreeModel>", "<Node><True/></Node></TreeModel>"), "a tree with two roots"},
      {"no nodes",
       [] {
         SmallPmml small;
         small.nodes.clear();
         return small.file();
       }(),
       "a tree without nodes"},
      {"a value that is not a number", with_predicate(simple("a", "lessThan", "1x")),
       "line 17: SimplePredicate: value \"1x\" is not a finite number of the field's type"},
      {"infinity", with_predicate(simple("a", "lessThan", "inf")), "is not a finite number"},
      {"beyond float32", with_predicate(simple("a", "lessThan", "1e39")), "is not a finite number"},
      {"an order of categories", with_predicate(simple("k", "lessThan", "red")), "categories have no order"},
      {"an operator", with_predicate(simple("a", "like", "1")), "unknown operator \"like\""},
      {"a set of numbers",
       with_predicate(
           "<SimpleSetPredicate field=\"a\" booleanOperator=\"isIn\"><Array>1 2</Array></SimpleSetPredicate>"),
       "a set of values of a continuous field is not supported"},
      {"a set without an array", with_predicate(set_of("")), "a SimpleSetPredicate without an Array"},
      {"a set of two arrays", with_predicate(set_of("<Array>red</Array><Array>green</Array>")),
       "a SimpleSetPredicate with two arrays"},
      {"an array that is cut short", with_predicate(set_of("<Array n=\"2\">red</Array>")),
       "an Array of 1 values, whose n is another number"},
      {"compounds of compounds",
       with_predicate("<CompoundPredicate booleanOperator=\"or\"><CompoundPredicate booleanOperator=\"and\">"
                      "<True/><True/></CompoundPredicate><True/></CompoundPredicate>"),
       "a CompoundPredicate inside another is not supported: write it as one, or as nodes"},
      {"a compound of one",
       with_predicate("<CompoundPredicate booleanOperator=\"or\"><True/></CompoundPredicate>"),
       "a CompoundPredicate of fewer than two predicates"},
      {"a score that is not a number", changed("score=\"1\"", "score=\"one\""),
       "line 17: Node: score \"one\" is not a finite number"},
      {"no score", changed(" score=\"1\"", ""), ", node 2: rows end at a node without a score"},
      {"no default", changed(strategy, "missingValueStrategy=\"defaultChild\""),
       ", node 1: no defaultChild, which its missing values need"},
      {"a default that is not a child",
       replaced(changed(strategy, "missingValueStrategy=\"defaultChild\""), "score=\"3\"",
                "score=\"3\" defaultChild=\"9\""),
       "defaultChild \"9\" is not a child of the Node"},
      {"weighted confidences", changed(strategy, "missingValueStrategy=\"weightedConfidence\""),
       "line 10: TreeModel: missingValueStrategy \"weightedConfidence\" is not supported"},
      {"a float32 sum",
       changed("functionName=\"regression\"", "functionName=\"regression\" x-mathContext=\"float\""),
       "are rounded to the target's type, \"double\", which is not supported"},
      {"rounded predictions",
       changed("name=\"y\" optype=\"continuous\" dataType=\"double\"",
               "name=\"y\" optype=\"continuous\" dataType=\"integer\""),
       "are rounded to the target's type, \"integer\", which is not supported"},
      {"clusters", changed("functionName=\"regression\"", "functionName=\"clustering\""),
       "functionName \"clustering\" is not supported"},
      {"an embedded model", changed("<True/>\n", "<True/>\n<Regression/>"),
       "element \"Regression\" is not supported"},
  });
}

TEST(RefusedPmml, Ensembles) {
  const std::string forest = SmallPmml{}.forest("sum"), chain = SmallPmml{}.chain();
  const std::string lacking = replaced(forest, SmallPmml{}.strategy, "");
  expect_refusals({
      {"a median", SmallPmml{}.forest("median"), "multipleModelMethod \"median\" is not supported"},
      {"votes of numbers", SmallPmml{}.forest("majorityVote"),
       "multipleModelMethod \"majorityVote\" of a regression"},
      {"a predicate of a segment",
       replaced(forest, "<Segment weight=\"2\"><True/>",
                "<Segment weight=\"2\">" + simple("a", "lessThan", "1")),
       "a Segment with a predicate other than True is not supported"},
      {"segments that are skipped",
       replaced(lacking, "multipleModelMethod",
                "missingPredictionTreatment=\"skipSegment\" multipleModelMethod"),
       "trees that may have no answer are left out of the sum"},
      {"a negative weight", replaced(SmallPmml{}.forest("weightedSum"), "weight=\"2\"", "weight=\"-2\""),
       "a negative weight"},
      {"no weights", replaced(SmallPmml{}.forest("weightedAverage", 1), "weight=\"2\"", "weight=\"0\""),
       "the sum of the weights is 0"},
      {"a rescaled average",
       replaced(SmallPmml{}.forest("average"), "<Segmentation",
                "<Targets><Target rescaleFactor=\"2\"/></Targets><Segmentation"),
       "a Target that rescales an average is not supported"},
      {"rounded scores",
       replaced(forest, "<Segmentation", "<Targets><Target castInteger=\"round\"/></Targets><Segmentation"),
       "attribute \"castInteger\" is not supported"},
      {"an output that is computed",
       replaced(forest, "<Segmentation",
                "<Output><OutputField name=\"o\" feature=\"transformedValue\"><Apply function=\"exp\">"
                "<FieldRef field=\"p\"/></Apply></OutputField></Output><Segmentation"),
       "output \"o\" is computed from the prediction, which is supported for IsolationForest only"},
      {"a chain without an end",
       replaced(chain,
                chain.substr(chain.find("<RegressionModel"),
                             chain.find("</RegressionModel>") + 18 - chain.find("<RegressionModel")),
                ""),
       "a modelChain that does not end in a RegressionModel"},
      {"another transform", replaced(chain, "\"logit\"", "\"probit\""),
       "normalizationMethod \"probit\" is not supported"},
      {"another predictor", replaced(chain, "NumericPredictor name=\"score\"", "NumericPredictor name=\"a\""),
       "predictor \"a\" is not a score of trees"},
      {"an exponent", replaced(chain, "coefficient=\"1\"", "coefficient=\"1\" exponent=\"2\""),
       "an exponent other than 1 is not supported"},
      {"an intercept of a rescaled score",
       replaced(chain, "intercept=\"0\" targetCategory=\"yes\"", "intercept=\"1\" targetCategory=\"yes\""),
       "a coefficient or an intercept of a score that a Target rescales is not supported"},
      {"coefficients of two rescaled scores",
       replaced(SmallPmml{}.softmax_chain(), "\"other\" coefficient=\"1\"", "\"other\" coefficient=\"3\""),
       "a coefficient or an intercept of a score that a Target rescales is not supported"},
      {"a category that is not declared",
       replaced(chain, "targetCategory=\"no\"", "targetCategory=\"maybe\""),
       "targetCategory \"maybe\" is not one of the target's values"},
      {"CatBoost", changed("name=\"hand\"", "name=\"CatBoost\""),
       "line 3: Application: CatBoost's PMML has lost digits: save the model as .cbm or JSON"},
      {"neurons", SmallPmml{}.document("<NeuralNetwork/>"), "element \"NeuralNetwork\" is not supported"},
  });
}

TEST(SweepPmml, EveryTruncationIsRefused) {
  const std::string good = SmallPmml{}.file();
  for (std::size_t length = 0; length + 1 < good.size(); ++length)
    refusal_of(std::to_string(length), good.substr(0, length));
}

std::vector<std::string> good_files() {
  SmallPmml small;
  small.nodes =
      "<Node score=\"3\" defaultChild=\"b\"><True/>\n" + leaf("1", simple("i", "equal", "2")) +
      leaf("2", "<CompoundPredicate booleanOperator=\"xor\">" + simple("k", "equal", "red") +
                    "<SimpleSetPredicate field=\"k\" booleanOperator=\"isIn\"><Array>red \"x y\"</Array>"
                    "</SimpleSetPredicate></CompoundPredicate>") +
      "</Node>\n";
  return {SmallPmml{}.file(), small.file(), SmallPmml{}.chain()};
}

TEST(SweepPmml, EveryBitFlipIsRefusedOrSafe) { survive_bit_flips(good_files()); }

TEST(SweepPmml, EveryByteReplacedIsRefusedOrSafe) {
  survive_bytes_replaced(good_files(), {'\0', '<', '>', '"', '9', '-', '&'});
}

TEST(SweepPmml, NumbersReplaced) {
  for (const std::string& good : good_files())
    for (std::size_t at = good.find("<Header"); (at = good.find("=\"", at)) != std::string::npos;) {
      at += 2;
      const std::size_t end = good.find('"', at);
      for (const char* number : {"-1", "99999", "2147483647", "1e308", "nan", ""})
        survive(good.substr(0, at) + number + good.substr(end));
    }
}

}  // namespace
}  // namespace forestvm::test::test_damaged_pmml
