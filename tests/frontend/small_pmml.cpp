// See small_pmml.hpp.
#include "small_pmml.hpp"

#include <cstddef>

#include "load_text.hpp"

namespace forestvm::test {

std::string SmallPmml::tree() const {
  return "<TreeModel functionName=\"" + function + "\" " + strategy + "><MiningSchema>\n" + schema +
         "</MiningSchema>\n" + nodes + "</TreeModel>\n";
}

std::string SmallPmml::document(const std::string& model) const {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PMML xmlns=\"http://www.dmg.org/PMML-4_4\" version=\"4.4\">\n"
         "<Header><Application name=\"hand\" version=\"1\"/></Header>\n<DataDictionary>\n" +
         fields + "</DataDictionary>\n" + transformations + model + "</PMML>\n";
}

std::string SmallPmml::file() const { return document(tree()); }

std::string SmallPmml::forest(const std::string& method, int count) const {
  SmallPmml member = *this;
  member.schema = "<MiningField name=\"a\"/>";
  std::string segments;
  for (int i = 0; i < count; ++i)
    segments += "<Segment weight=\"2\"><True/>" + member.tree() + "</Segment>\n";
  return document("<MiningModel functionName=\"" + function + "\"><MiningSchema>\n" + schema +
                  "</MiningSchema>\n<Segmentation multipleModelMethod=\"" + method + "\">\n" + segments +
                  "</Segmentation></MiningModel>\n");
}

std::string SmallPmml::chain() const {
  SmallPmml member = *this;
  member.schema = "<MiningField name=\"a\"/>";
  SmallPmml whole = *this;
  whole.fields.replace(
      whole.fields.find("optype"), whole.fields.find("/>") - whole.fields.find("optype"),
      "optype=\"categorical\" dataType=\"string\"><Value value=\"no\"/><Value value=\"yes\"");
  whole.fields.insert(whole.fields.find('\n'), "</DataField>");
  std::string segments;
  for (int i = 0; i < 2; ++i) segments += "<Segment><True/>" + member.tree() + "</Segment>\n";
  return whole.document(
      "<MiningModel functionName=\"classification\"><MiningSchema>\n" + schema +
      "</MiningSchema>\n<Segmentation multipleModelMethod=\"modelChain\">\n<Segment><True/>\n"
      "<MiningModel functionName=\"regression\"><MiningSchema><MiningField name=\"a\"/></MiningSchema>\n"
      "<Output><OutputField name=\"score\" dataType=\"double\"/></Output>\n"
      "<Targets><Target rescaleConstant=\"-2\"/></Targets>\n<Segmentation multipleModelMethod=\"sum\">\n" +
      segments +
      "</Segmentation></MiningModel></Segment>\n<Segment><True/>\n"
      "<RegressionModel functionName=\"classification\" normalizationMethod=\"logit\"><MiningSchema>"
      "<MiningField name=\"score\"/></MiningSchema>\n"
      "<RegressionTable intercept=\"0\" targetCategory=\"yes\"><NumericPredictor name=\"score\" coefficient=\"1\"/>"
      "</RegressionTable>\n<RegressionTable intercept=\"0\" targetCategory=\"no\"/>\n"
      "</RegressionModel></Segment></Segmentation></MiningModel>\n");
}

std::string SmallPmml::softmax_chain() const {
  std::string text = chain();
  const std::size_t begin = text.find("<Segment><True/>\n<MiningModel"),
                    end = text.find("<Segment><True/>\n<Reg");
  const std::string other =
      replaced(text.substr(begin, end - begin), "OutputField name=\"score\"", "OutputField name=\"other\"");
  text.insert(end, other);
  text = replaced(text, "\"logit\"", "\"softmax\"");
  return replaced(
      text, "targetCategory=\"no\"/>",
      "targetCategory=\"no\"><NumericPredictor name=\"other\" coefficient=\"1\"/></RegressionTable>");
}

std::string leaf(const std::string& score, const std::string& predicate) {
  return "<Node score=\"" + score + "\">" + predicate + "</Node>\n";
}

std::string simple(const std::string& field, const std::string& op, const std::string& value) {
  return "<SimplePredicate field=\"" + field + "\" operator=\"" + op + "\" value=\"" + value + "\"/>";
}

}  // namespace forestvm::test
