// See pmml_document.hpp. The reader keeps only what the model needs, and a tree's nodes until the tree ends.
#include "frontend/pmml_document.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/pmml_leaves.hpp"
#include "frontend/xml_events.hpp"

namespace forestvm::frontend {
namespace {

/// The most levels of a tree, whose nodes are elements inside one another.
constexpr std::uint32_t kDeepestTree = 4096;
/// The most different names in elements that are skipped, because Expat keeps every name in memory.
constexpr std::size_t kMaxNames = 1000;

enum class Element : std::uint8_t {
#define FVM_PMML_ELEMENT(Name, parents, attributes) Name,
#include "frontend/pmml_elements.def"
};

struct ElementRow {
  std::string_view name, parents, attributes;
};

constexpr ElementRow kElements[] = {
#define FVM_PMML_ELEMENT(Name, parents, attributes) {#Name, parents, attributes},
#include "frontend/pmml_elements.def"
};

constexpr std::string_view kSkipped[] = {
#define FVM_PMML_SKIPPED(name) name,
#include "frontend/pmml_elements.def"
};

/// Returns whether a list of words, with spaces between them, has a word.
bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

struct MethodRow {
  std::string_view text;
  PmmlMethod method;
};

constexpr MethodRow kMethods[] = {{"sum", PmmlMethod::Sum},
                                  {"weightedSum", PmmlMethod::WeightedSum},
                                  {"x-weightedSum", PmmlMethod::WeightedSum},
                                  {"average", PmmlMethod::Average},
                                  {"weightedAverage", PmmlMethod::WeightedAverage},
                                  {"majorityVote", PmmlMethod::Vote},
                                  {"weightedMajorityVote", PmmlMethod::WeightedVote},
                                  {"modelChain", PmmlMethod::Chain}};

bool is_weighted(PmmlMethod method) {
  return method == PmmlMethod::WeightedSum || method == PmmlMethod::WeightedAverage ||
         method == PmmlMethod::WeightedVote;
}

class Reader final : public XmlSink {
 public:
  Reader(const LoadLimits& limits, std::size_t size)
      : limits_(limits),
        document_(limits),
        room_(size / 4 + (1u << 22)),
        trees_(document_.fields, document_.classes, room_) {
    for (std::size_t i = 0; i < std::size(kElements); ++i)
      elements_.emplace(kElements[i].name, static_cast<Element>(i));
  }

  Result<void> on_begin(std::string_view name, const XmlAttributes& attributes, std::size_t line) override;
  Result<void> on_end(std::size_t line) override;
  Result<void> on_text(std::string_view text) override {
    if (expression_.is_open()) expression_.text(text);
    if (skipped_ == 0 && !open_.empty() &&
        (open_.back() == Element::Array || open_.back() == Element::Constant))
      text_ += text;
    return {};
  }

  Result<PmmlDocument> take();

 private:
  /// A model that is being read.
  struct OpenModel {
    Element element;
    PmmlScorer scorer;
    std::size_t line = 0;
    bool has_schema = false;
    bool has_method = false;
    bool has_segment_model = false;
    double weight = 1;  ///< Weight of the segment that is being read.
  };

  std::string where() const {
    return formatted(
        "line {}{}", line_,
        open_.empty() ? "" : ": " + std::string(kElements[static_cast<std::size_t>(open_.back())].name));
  }
  Error error(std::string_view message) const { return refused(where(), message); }
  bool outermost() const { return models_.size() == 1; }
  /// Returns whether the model that is being read is one of the trees of another.
  bool is_member() const {
    return models_.size() > 1 && models_.back().element == Element::TreeModel &&
           models_[models_.size() - 2].scorer.method != PmmlMethod::Chain;
  }

  Result<double> number(const XmlAttributes& attributes, const char* name,
                        std::optional<double> otherwise) const;
  Result<void> skip(std::string_view name, const XmlAttributes& attributes);
  Result<void> begin(Element element, const XmlAttributes& attributes);
  Result<void> begin_model(Element element, const XmlAttributes& attributes);
  Result<void> begin_predicate(Element element, const XmlAttributes& attributes);
  Result<void> begin_segmentation(const XmlAttributes& attributes);
  Result<void> begin_segment(const XmlAttributes& attributes);
  Result<void> begin_target(const XmlAttributes& attributes);
  Result<void> begin_expression(Element element, const XmlAttributes& attributes);
  Result<void> begin_table(Element element, const XmlAttributes& attributes);
  Result<void> end(Element element);
  Result<void> end_model();
  Result<void> end_tree();
  Result<void> set_classes();

  const LoadLimits& limits_;
  PmmlDocument document_;
  std::size_t room_;  ///< The number of values that the leaves' vectors may still hold.
  PmmlTreeReader trees_;
  std::uint64_t nodes_ = 0;
  std::unordered_map<std::string_view, Element> elements_;
  std::vector<Element> open_;
  std::vector<OpenModel> models_;
  std::size_t skipped_ = 0;  ///< Number of open elements that are not read.
  std::unordered_set<std::string> skipped_names_;
  PmmlExpressionReader expression_;  ///< The expression of the DerivedField that is being read.
  std::size_t line_ = 0;
  std::string text_;
};

Result<double> Reader::number(const XmlAttributes& attributes, const char* name,
                              std::optional<double> otherwise) const {
  const auto text = attributes.find(name);
  if (!text && otherwise) return *otherwise;
  const std::optional<double> value = pmml_number(text.value_or(""));
  if (!value || !std::isfinite(*value))
    return error(formatted("{} {} is not a finite number", name, in_quotes(text.value_or(""))));
  return *value;
}

Result<void> Reader::skip(std::string_view name, const XmlAttributes& attributes) {
  ++skipped_;
  skipped_names_.emplace(name);
  attributes.each_name([&](std::string_view attribute) {
    skipped_names_.emplace(attribute);
    return skipped_names_.size() <= kMaxNames;
  });
  if (skipped_names_.size() > kMaxNames)
    return error(formatted("more than {} different names in extensions", kMaxNames));
  return {};
}

Result<void> Reader::on_begin(std::string_view name, const XmlAttributes& attributes, std::size_t line) {
  line_ = line;
  if (expression_.is_open()) expression_.begin(name, attributes);
  if (skipped_ != 0) return skip(name, attributes);
  const auto known = elements_.find(name);
  const bool derived = !open_.empty() && open_.back() == Element::DerivedField;
  if (known == elements_.end() || derived) {
    if (std::find(std::begin(kSkipped), std::end(kSkipped), name) != std::end(kSkipped))
      return skip(name, attributes);
    if (derived) {
      expression_.begin(name, attributes);
      return skip(name, attributes);
    }
    return error(formatted("element {} is not supported", in_quotes(name)));
  }
  const ElementRow& row = kElements[static_cast<std::size_t>(known->second)];
  const std::string_view parent =
      open_.empty() ? std::string_view() : kElements[static_cast<std::size_t>(open_.back())].name;
  if (open_.empty() ? !row.parents.empty() : !has_word(row.parents, parent))
    return error(formatted("element {} does not belong here", in_quotes(name)));
  open_.push_back(known->second);
  std::string unknown;
  attributes.each_name([&](std::string_view attribute) {
    if (!has_word(row.attributes, attribute) && !attribute.starts_with("xmlns") &&
        !attribute.starts_with("xsi:"))
      unknown = attribute;
    return unknown.empty();
  });
  if (!unknown.empty()) return error(formatted("attribute {} is not supported", in_quotes(unknown)));
  return begin(known->second, attributes);
}

Result<void> Reader::on_end(std::size_t line) {
  line_ = line;
  if (skipped_ != 0) {
    --skipped_;
    const bool whole = expression_.is_open() && expression_.end();
    return whole ? document_.fields.set_expression(expression_.take(), where()) : Result<void>();
  }
  FVM_TRY(end(open_.back()));
  open_.pop_back();
  return {};
}

Result<void> Reader::begin(Element element, const XmlAttributes& attributes) {
  switch (element) {
    case Element::Application:
      document_.application = attributes.find("name").value_or("");
      document_.version = attributes.find("version").value_or("");
      if (document_.application != "CatBoost") return {};
      return error("CatBoost's PMML has lost digits: save the model as .cbm or JSON");
    case Element::DataField:
      return document_.fields.begin_data_field(attributes, where());
    case Element::Value:
      return open_[open_.size() - 2] == Element::DataField ? document_.fields.add_value(attributes, where())
                                                           : Result<void>();
    case Element::Interval:
      return document_.fields.add_interval(attributes, where());
    case Element::DerivedField:
      return document_.fields.begin_derived_field(attributes, where());
    case Element::MiningModel:
    case Element::TreeModel:
    case Element::RegressionModel:
      return begin_model(element, attributes);
    case Element::MiningField: {
      const std::string_view usage = attributes.find("usageType").value_or("active");
      if (usage == "target" || usage == "predicted")
        models_.back().scorer.target = attributes.find("name").value_or("");
      return document_.fields.add_mining_field(attributes, outermost(), where());
    }
    case Element::Target:
      return begin_target(attributes);
    case Element::Segmentation:
      return begin_segmentation(attributes);
    case Element::Segment:
      return begin_segment(attributes);
    case Element::True:
    case Element::False:
    case Element::SimplePredicate:
    case Element::SimpleSetPredicate:
    case Element::CompoundPredicate:
      return begin_predicate(element, attributes);
    case Element::Array:
      text_.clear();
      return trees_.begin_array(attributes, where());
    case Element::MiningSchema:
      return std::exchange(models_.back().has_schema, true) ? error("a model with two MiningSchema elements")
                                                            : Result<void>();
    case Element::Node: {
      const bool classes = models_.back().scorer.has_classes;
      return trees_.begin_node(attributes, classes, where());
    }
    case Element::ScoreDistribution:
      return trees_.add_distribution(attributes, where());
    case Element::OutputField:
    case Element::Apply:
    case Element::FieldRef:
    case Element::Constant:
      return begin_expression(element, attributes);
    case Element::RegressionTable:
    case Element::NumericPredictor:
      return begin_table(element, attributes);
    case Element::PMML:
    case Element::Header:
    case Element::DataDictionary:
    case Element::TransformationDictionary:
    case Element::LocalTransformations:
    case Element::Output:
    case Element::Targets:
      return {};
  }
  return {};
}

Result<void> Reader::begin_model(Element element, const XmlAttributes& attributes) {
  if (models_.empty() && !document_.outermost.where.empty())
    return error("a document of more than one model");
  OpenModel model;
  model.element = element;
  model.line = line_;
  model.scorer.where = where();
  const std::string_view function = attributes.find("functionName").value_or("");
  if (function != "regression" && function != "classification")
    return error(formatted("functionName {} is not supported", in_quotes(function)));
  model.scorer.has_classes = function == "classification";
  if (attributes.find("isScorable").value_or("true") != "true")
    return error("the model is not meant for scoring");
  const std::string_view context = attributes.find("x-mathContext").value_or("double");
  if (context != "double" && context != "float")
    return error(formatted("x-mathContext {} is not supported", in_quotes(context)));
  model.scorer.is_float = context == "float";
  if (models_.empty()) {
    document_.algorithm = attributes.find("algorithmName").value_or(function);
  } else {
    OpenModel& parent = models_.back();
    if (std::exchange(parent.has_segment_model, true)) return error("a Segment of two models");
    const bool chain = parent.scorer.method == PmmlMethod::Chain;
    if (document_.regression) return error("a model after the RegressionModel of a chain");
    if (element == Element::RegressionModel ? !chain : (element == Element::MiningModel && !chain))
      return error("a model inside another that is not a modelChain: only TreeModel is supported");
    if (!chain && model.scorer.has_classes != parent.scorer.has_classes)
      return error("functionName is not that of the model around it");
    if (!chain && model.scorer.is_float != parent.scorer.is_float)
      return error("x-mathContext is not that of the model around it");
  }
  if (element == Element::RegressionModel) {
    PmmlRegression& regression = document_.regression.emplace();
    regression.where = where();
    regression.has_classes = model.scorer.has_classes;
    regression.is_float = model.scorer.is_float;
    regression.normalization = attributes.find("normalizationMethod").value_or("none");
  }
  models_.push_back(std::move(model));
  return element == Element::TreeModel ? trees_.begin_tree(attributes, where()) : Result<void>();
}

Result<void> Reader::begin_predicate(Element element, const XmlAttributes& attributes) {
  if (open_[open_.size() - 2] == Element::Segment)
    return element == Element::True
               ? Result<void>()
               : error(
                     "a Segment with a predicate other than True is not supported: make it a node of its tree");
  switch (element) {
    case Element::SimplePredicate:
      return trees_.add_simple(attributes, where());
    case Element::SimpleSetPredicate:
      return trees_.begin_set(attributes, where());
    case Element::CompoundPredicate:
      return trees_.begin_compound(attributes, where());
    default:
      return trees_.add_constant(element == Element::True, where());
  }
}

Result<void> Reader::begin_segmentation(const XmlAttributes& attributes) {
  OpenModel& model = models_.back();
  if (std::exchange(model.has_method, true)) return error("a model with two Segmentation elements");
  const std::string_view text = attributes.find("multipleModelMethod").value_or("");
  const auto* row = std::find_if(std::begin(kMethods), std::end(kMethods),
                                 [&](const MethodRow& known) { return known.text == text; });
  if (row == std::end(kMethods))
    return error(formatted("multipleModelMethod {} is not supported", in_quotes(text)));
  PmmlScorer& scorer = model.scorer;
  scorer.method = row->method;
  if (scorer.method == PmmlMethod::Chain && !outermost())
    return error("a modelChain inside another model is not supported");
  const bool votes = scorer.method == PmmlMethod::Vote || scorer.method == PmmlMethod::WeightedVote;
  const bool sums = scorer.method == PmmlMethod::Sum || scorer.method == PmmlMethod::WeightedSum;
  if (scorer.method != PmmlMethod::Chain && (scorer.has_classes ? sums : votes))
    return error(formatted("multipleModelMethod {} of a {}", in_quotes(text),
                           scorer.has_classes ? "classification" : "regression"));
  const std::string_view missing = attributes.find("missingPredictionTreatment").value_or("continue");
  if (missing != "continue" && missing != "returnMissing" && missing != "skipSegment")
    return error(formatted("missingPredictionTreatment {} is not supported", in_quotes(missing)));
  scorer.skips_missing = missing == "skipSegment" || (missing == "continue" && votes);
  scorer.first_tree = static_cast<std::uint32_t>(document_.trees.size());
  return {};
}

Result<void> Reader::begin_segment(const XmlAttributes& attributes) {
  OpenModel& model = models_.back();
  model.has_segment_model = false;
  FVM_ASSIGN(model.weight, number(attributes, "weight", 1));
  if (!is_weighted(model.scorer.method)) {
    model.weight = 1;
    return {};
  }
  if (model.weight < 0) return error("a negative weight");
  PmmlScorer& scorer = model.scorer;
  scorer.whole_weights =
      scorer.whole_weights && model.weight == std::floor(model.weight) && model.weight < 4096;
  const double sum = scorer.weight_sum + model.weight;
  scorer.weight_sum =
      scorer.is_float
          ? static_cast<double>(static_cast<float>(scorer.weight_sum) + static_cast<float>(model.weight))
          : sum;
  return {};
}

Result<void> Reader::begin_target(const XmlAttributes& attributes) {
  PmmlScorer& scorer = models_.back().scorer;
  if (std::exchange(scorer.has_target, true)) return error("more than one Target is not supported");
  FVM_ASSIGN(scorer.factor, number(attributes, "rescaleFactor", 1));
  FVM_ASSIGN(scorer.constant, number(attributes, "rescaleConstant", 0));
  if (scorer.factor == 0) return error("a rescaleFactor of 0");
  return {};
}

/// Begins an OutputField, or adds a part to the expression of the latest one.
Result<void> Reader::begin_expression(Element element, const XmlAttributes& attributes) {
  std::vector<PmmlOutput>& outputs = models_.back().scorer.outputs;
  const auto text = [&](const char* name) { return std::string(attributes.find(name).value_or("")); };
  if (element == Element::OutputField) {
    if (is_member()) outputs.clear();  // outputs of single trees are not used
    outputs.push_back({text("name"), text("dataType"),
                       std::string(attributes.find("feature").value_or("predictedValue")), ""});
    return {};
  }
  std::string& expression = outputs.back().expression;
  if (!expression.empty() && expression.back() != '(') expression += ' ';
  if (element == Element::Apply)
    expression += "(" + text("function");
  else if (element == Element::FieldRef)
    expression += text("field");
  else
    text_.clear();
  return {};
}

Result<void> Reader::begin_table(Element element, const XmlAttributes& attributes) {
  std::vector<PmmlTable>& tables = document_.regression->tables;
  if (element == Element::RegressionTable) {
    PmmlTable table;
    table.category = attributes.find("targetCategory").value_or("");
    FVM_ASSIGN(table.intercept, number(attributes, "intercept", {}));
    tables.push_back(std::move(table));
    return {};
  }
  if (attributes.find("exponent").value_or("1") != "1")
    return error("an exponent other than 1 is not supported");
  PmmlTerm term;
  term.name = attributes.find("name").value_or("");
  FVM_ASSIGN(term.coefficient, number(attributes, "coefficient", {}));
  tables.back().terms.push_back(std::move(term));
  return {};
}

/// Sets the classes of a classification, once the outermost model's MiningSchema has named the target.
Result<void> Reader::set_classes() {
  if (!models_.back().scorer.has_classes) return {};
  PmmlClasses& classes = document_.classes;
  classes.labels = document_.fields.target_categories();
  if (classes.labels.size() < 2)
    return error("a classification whose target has no two values in the DataDictionary");
  if (classes.labels.size() > limits_.max_outputs)
    return error(formatted("more classes than the limit of {}", limits_.max_outputs));
  for (const std::string& label : classes.labels)
    if (!classes.numbers.emplace(label, static_cast<std::uint32_t>(classes.numbers.size())).second)
      return error("two classes have the name " + in_quotes(label));
  return {};
}

Result<void> Reader::end(Element element) {
  switch (element) {
    case Element::MiningSchema:
      return outermost() ? set_classes() : Result<void>();
    case Element::Node:
      return trees_.end_node(where());
    case Element::SimpleSetPredicate:
      return trees_.end_set(text_, where());
    case Element::CompoundPredicate:
      return trees_.end_compound(where());
    case Element::Apply:
      models_.back().scorer.outputs.back().expression += ')';
      return {};
    case Element::Constant:
      models_.back().scorer.outputs.back().expression += text_;
      return {};
    case Element::TreeModel:
      FVM_TRY(end_tree());
      return end_model();
    case Element::MiningModel:
    case Element::RegressionModel:
      return end_model();
    default:
      return {};
  }
}

/// Compiles the tree that has just ended. If it is one of the trees of another model, its leaves have the form in which
/// that model combines them.
Result<void> Reader::end_tree() {
  const std::string place = where();
  if (document_.trees.size() >= limits_.max_trees)
    return error(formatted("more trees than the limit of {}", limits_.max_trees));
  const OpenModel& owner = is_member() ? models_[models_.size() - 2] : models_.back();
  OpenModel& model = models_.back();
  if (!is_member()) model.scorer.first_tree = static_cast<std::uint32_t>(document_.trees.size());
  if (is_member() && model.scorer.has_target)
    return error("a Target of one tree among others is not supported");
  FVM_ASSIGN(const PmmlTree source, trees_.take(place));
  PmmlLeaves leaves(source, owner.scorer, owner.scorer.has_classes ? document_.classes.labels.size() : 0,
                    owner.weight, room_);
  FVM_ASSIGN(Tree tree, compile_pmml_tree(source, document_.fields, std::ref(leaves)));
  nodes_ += tree.nodes.size();
  if (nodes_ > limits_.max_nodes)
    return error(formatted("more nodes than the limit of {}", limits_.max_nodes));
  model.scorer.may_lack_answers = leaves.lacks_answers();
  document_.trees.push_back(std::move(tree));
  document_.lines.push_back(model.line);
  return {};
}

Result<void> Reader::end_model() {
  const std::string place = where();
  const bool member = is_member(), whole = outermost();
  OpenModel model = std::move(models_.back());
  models_.pop_back();
  PmmlScorer& scorer = model.scorer;
  if (member) {
    PmmlScorer& parent = models_.back().scorer;
    parent.may_lack_answers = parent.may_lack_answers || scorer.may_lack_answers;
    if (!scorer.target.empty()) parent.target = scorer.target;
    return {};
  }
  if (model.element == Element::MiningModel && !model.has_method)
    return refused(place, "a MiningModel without a Segmentation");
  scorer.end_tree = static_cast<std::uint32_t>(document_.trees.size());
  if (scorer.skips_missing && scorer.may_lack_answers)
    return refused(place,
                   "trees that may have no answer are left out of the sum, which is not supported: give "
                   "missingPredictionTreatment=\"returnMissing\"");
  if (model.element != Element::RegressionModel && scorer.method != PmmlMethod::Chain) {
    if (scorer.first_tree == scorer.end_tree) return refused(place, "a model without trees");
    document_.scorers.push_back(scorer);
  }
  if (model.element == Element::RegressionModel && scorer.has_target)
    return refused(place, "a Target of a RegressionModel is not supported");
  if (whole) document_.outermost = std::move(scorer);
  return {};
}

Result<PmmlDocument> Reader::take() {
  if (document_.scorers.empty()) return refused("PMML", "the document has no model of trees");
  return std::move(document_);
}

}  // namespace

Result<PmmlDocument> read_pmml_document(std::span<const std::byte> bytes, const LoadLimits& limits) {
  Reader reader(limits, bytes.size());
  FVM_TRY(read_xml(bytes, limits.max_depth + kDeepestTree, reader));
  return reader.take();
}

}  // namespace forestvm::frontend
