// See pmml_model.hpp. Engines of PMML differ; the model answers as JPMML-Evaluator does.
#include "frontend/pmml_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/pmml_document.hpp"

namespace forestvm::frontend {
namespace {

/// The logarithm of 2.7182817, which JPMML uses as e in float32.
const double kSlope = std::log(2.7182817);

bool is_average(PmmlMethod method) { return method == PmmlMethod::Average; }

/// Makes a Model of a document.
class Assembly {
 public:
  explicit Assembly(PmmlDocument& document, Model& model) : document_(document), model_(model) {}

  Result<void> run();

 private:
  Result<void> add_classes();
  Result<void> add_number();
  Result<void> add_chain();
  Result<void> set_isolation(const PmmlScorer& scorer);
  Result<void> set_target(const PmmlScorer& scorer, std::size_t output);
  Result<void> set_table(const PmmlTable& table, const PmmlScorer& scorer, std::size_t output);
  Result<void> set_normalization();
  Result<void> set_softmax();
  Result<void> set_divisor(const PmmlScorer& scorer);
  Result<const PmmlScorer*> scorer_of(const PmmlTable& table);
  Result<void> check_tables();
  Result<void> check_types() const;
  void add_trees();
  Result<void> set_row_type();
  static void widen(const PmmlField& field, Node& node);

  bool is_float() const { return document_.scorers.front().is_float; }
  bool is_logistic() const {
    return document_.regression->normalization == "logit" || document_.regression->normalization == "softmax";
  }
  PmmlRegression& regression() { return *document_.regression; }

  PmmlDocument& document_;
  Model& model_;
  /// The scorers of a chain by the names of the fields that hold their scores.
  std::unordered_map<std::string_view, const PmmlScorer*> scorers_by_output_;
  std::vector<std::uint32_t> output_of_;  ///< Output of each scorer.
};

/// Sets the number by which the sum of a scorer's trees is divided.
Result<void> Assembly::set_divisor(const PmmlScorer& scorer) {
  if (scorer.method == PmmlMethod::Average || scorer.method == PmmlMethod::Vote) {
    model_.averaged = true;
    model_.transform = Transform::Average;
  } else if (scorer.method == PmmlMethod::WeightedAverage || scorer.method == PmmlMethod::WeightedVote) {
    if (!(scorer.weight_sum > 0)) return refused(scorer.where, "the sum of the weights is 0");
    model_.divisor = scorer.weight_sum;
    model_.transform = Transform::Average;
  }
  return {};
}

Result<void> Assembly::add_classes() {
  const PmmlScorer& scorer = document_.scorers.front();
  if (scorer.has_target) return refused(scorer.where, "a Target of a classification is not supported");
  model_.num_outputs = static_cast<std::uint32_t>(document_.classes.labels.size());
  model_.class_labels = document_.classes.labels;
  model_.base.assign(model_.num_outputs, 0.0);
  output_of_ = {0};
  FVM_TRY(set_divisor(scorer));
  const bool votes = scorer.method == PmmlMethod::Vote || scorer.method == PmmlMethod::WeightedVote;
  if (votes && !scorer.whole_weights)
    return refused(scorer.where, "weightedMajorityVote with weights that are not whole numbers below 4096");
  // Among classes with equally many votes, JPMML takes the one for which a tree voted first: no ClassRule does that.
  const std::uint32_t count = scorer.end_tree - scorer.first_tree;
  const bool ties =
      votes && (scorer.method == PmmlMethod::WeightedVote || model_.num_outputs > 2 || count % 2 == 0);
  if (ties)
    model_.class_labels.clear();
  else
    model_.class_rule = ClassRule::Argmax;
  return {};
}

/// Sets the factor and the constant by which a Target rescales the score of an output.
Result<void> Assembly::set_target(const PmmlScorer& scorer, std::size_t output) {
  if (scorer.factor == 1 && scorer.constant == 0) return {};
  if (model_.transform == Transform::Average)
    return refused(scorer.where, "a Target that rescales an average is not supported");
  const auto rounded = [&](double x) { return is_float() ? static_cast<double>(static_cast<float>(x)) : x; };
  model_.base_last = true;
  model_.scale = rounded(scorer.factor);
  model_.base[output] = rounded(scorer.constant);
  if (model_.scale == 0) return refused(scorer.where, "a rescaleFactor that float32 rounds to 0");
  return {};
}

/// Recognises the output that sklearn2pmml writes for IsolationForest.
Result<void> Assembly::set_isolation(const PmmlScorer& scorer) {
  const auto other = [&](const PmmlOutput& output) {
    return refused(scorer.where,
                   "output {} is computed from the prediction, which is supported for IsolationForest only",
                   in_quotes(output.name));
  };
  std::string score, ratio, decision, outlier;
  for (const PmmlOutput& output : scorer.outputs) {
    if (output.expression.empty()) {
      if (output.feature == "predictedValue") score = output.name;
      continue;
    }
    const std::string& text = output.expression;
    const std::string division = formatted("(/ {} ", score);
    if (!score.empty() && ratio.empty() && text.starts_with(division) && text.ends_with(")")) {
      const auto divisor =
          pmml_number(std::string_view(text).substr(division.size(), text.size() - division.size() - 1));
      if (!divisor || !(*divisor > 0) || !std::isfinite(*divisor)) return other(output);
      model_.slope = *divisor;
      ratio = output.name;
    } else if (!ratio.empty() && text.starts_with("(- ") && decision.empty() &&
               text.ends_with(formatted(" (pow 2.0 (* -1 {})))", ratio))) {
      const auto half = pmml_number(std::string_view(text).substr(3, text.find(' ', 3) - 3));
      if (!half || !std::isfinite(*half)) return other(output);
      model_.offset = -*half;
      decision = output.name;
    } else if (!decision.empty() && text == formatted("(lessOrEqual {} 0.0)", decision)) {
      outlier = output.name;
    } else if (outlier.empty() || text != formatted("(if {} -1 1)", outlier)) {
      return other(output);
    }
  }
  if (ratio.empty()) return {};
  if (outlier.empty() || !is_average(scorer.method) || scorer.is_float)
    return refused(scorer.where, "outputs that begin as those of IsolationForest and end otherwise");
  model_.transform = Transform::AnomalyDecision;
  model_.class_rule = ClassRule::NotPositive;
  model_.class_labels = {"1", "-1"};
  return {};
}

Result<void> Assembly::add_number() {
  const PmmlScorer& scorer = document_.scorers.front();
  model_.base.assign(1, 0.0);
  output_of_ = {0};
  FVM_TRY(set_divisor(scorer));
  FVM_TRY(set_target(scorer, 0));
  return set_isolation(scorer);
}

/// Returns the scorer whose score is the only term of a table.
Result<const PmmlScorer*> Assembly::scorer_of(const PmmlTable& table) {
  if (table.terms.size() != 1)
    return refused(regression().where, "a RegressionTable of {} predictors instead of one score of trees",
                   table.terms.size());
  const std::string& name = table.terms[0].name;
  const auto found = scorers_by_output_.find(name);
  if (found == scorers_by_output_.end())
    return refused(regression().where, "predictor {} is not a score of trees", in_quotes(name));
  const PmmlScorer& scorer = *found->second;
  for (const PmmlOutput& output : scorer.outputs)
    if (output.name == name && output.type != (is_float() ? "float" : "double") && !output.type.empty())
      return refused(scorer.where, "a score of another type than its sum: {}", in_quotes(output.type));
  return &scorer;
}

/// Sets an output from a table: coefficient * score + intercept, where the score may have a Target.
Result<void> Assembly::set_table(const PmmlTable& table, const PmmlScorer& scorer, std::size_t output) {
  const PmmlTerm& term = table.terms[0];
  if (scorer.has_classes || scorer.method == PmmlMethod::Average ||
      scorer.method == PmmlMethod::WeightedAverage)
    return refused(scorer.where, "a RegressionModel of anything but sums of trees is not supported");
  if (regression().is_float != is_float())
    return refused(regression().where, "x-mathContext is not that of the scores");
  PmmlScorer whole = scorer;
  const bool plain = scorer.factor == 1 && scorer.constant == 0;
  if (plain) {
    whole.factor = term.coefficient;
    whole.constant = table.intercept;
  } else if (term.coefficient != 1 || table.intercept != 0) {
    // A transform has one slope, and each of several scores may have a coefficient of its own.
    if (!is_logistic() || is_float() || table.intercept != 0 || model_.num_outputs > 1)
      return refused(regression().where,
                     "a coefficient or an intercept of a score that a Target rescales is not supported");
    model_.slope = term.coefficient;
  }
  if (term.coefficient == 0) return refused(regression().where, "a coefficient of 0");
  FVM_TRY(set_target(whole, output));
  const double factor = is_float() ? static_cast<double>(static_cast<float>(whole.factor)) : whole.factor;
  if (model_.scale != factor)
    return refused(regression().where, "scores of different rescaleFactor or coefficient are not supported");
  return {};
}

Result<void> Assembly::set_softmax() {
  model_.num_outputs = static_cast<std::uint32_t>(regression().tables.size());
  model_.base.assign(model_.num_outputs, 0.0);
  output_of_.assign(document_.scorers.size(), UINT32_MAX);
  for (std::size_t k = 0; k < model_.num_outputs; ++k) {
    const PmmlTable& table = regression().tables[k];
    FVM_ASSIGN(const PmmlScorer* scorer, scorer_of(table));
    std::uint32_t& output = output_of_[static_cast<std::size_t>(scorer - document_.scorers.data())];
    if (output != UINT32_MAX) return refused(regression().where, "one score in two RegressionTables");
    output = static_cast<std::uint32_t>(k);
    FVM_TRY(set_table(table, *scorer, k));
    model_.class_labels.push_back(table.category);
  }
  model_.transform = is_float() ? Transform::PowerSoftmax : Transform::Softmax;
  model_.class_rule = ClassRule::Argmax;
  return {};
}

/// Sets the transform of a chain's one score.
Result<void> Assembly::set_normalization() {
  const std::string& name = regression().normalization;
  if (is_logistic())
    model_.transform = is_float() ? Transform::PowerSigmoid : Transform::PlainSigmoid;
  else if (name == "exp" && !regression().has_classes)
    model_.transform = is_float() ? Transform::PowerExp : Transform::Exp;
  else if (name == "none")
    model_.transform = regression().has_classes ? Transform::Clamp : Transform::Identity;
  else
    return refused(regression().where, "normalizationMethod {} is not supported", in_quotes(name));
  return {};
}

/// Checks that the tables of a chain's last model are one for each class, or one for a number.
Result<void> Assembly::check_tables() {
  const std::vector<PmmlTable>& tables = regression().tables;
  if (regression().has_classes != document_.outermost.has_classes)
    return refused(regression().where, "functionName is not that of the model around it");
  if (document_.outermost.has_target || document_.outermost.skips_missing)
    return refused(document_.outermost.where,
                   "a Target, or missingPredictionTreatment=\"skipSegment\", of a "
                   "modelChain is not supported");
  if (tables.size() !=
      (regression().has_classes ? std::max<std::size_t>(document_.classes.labels.size(), 2) : 1))
    return refused(regression().where, "{} RegressionTable elements", tables.size());
  std::unordered_set<std::string_view> categories;
  for (const PmmlTable& table : tables)
    if (regression().has_classes &&
        (!categories.insert(table.category).second || !document_.classes.numbers.contains(table.category)))
      return refused(regression().where,
                     "targetCategory {} is not one of the target's values, or comes twice",
                     in_quotes(table.category));
  return {};
}

Result<void> Assembly::add_chain() {
  if (!document_.regression)
    return refused(document_.outermost.where, "a modelChain that does not end in a RegressionModel");
  FVM_TRY(check_tables());
  const std::vector<PmmlTable>& tables = regression().tables;
  for (const PmmlScorer& scorer : document_.scorers)
    for (const PmmlOutput& output : scorer.outputs)
      if (output.feature == "predictedValue" && output.expression.empty())
        scorers_by_output_.emplace(output.name, &scorer);
  if (is_float()) model_.slope = kSlope;
  const bool default_second = tables.size() == 2 && tables[1].terms.empty() && tables[1].intercept == 0;
  if (regression().normalization == "softmax" && regression().has_classes && !default_second)
    return set_softmax();
  if (tables.size() > 2)
    return refused(regression().where, "normalizationMethod {} of {} classes is not supported",
                   in_quotes(regression().normalization), tables.size());
  FVM_ASSIGN(const PmmlScorer* scorer, scorer_of(tables[0]));
  if (document_.scorers.size() != 1)
    return refused(scorer->where, "scores that nothing uses are not supported");
  if (tables.size() == 2 && !default_second)
    return refused(regression().where, "a second RegressionTable that is not empty");
  model_.base.assign(1, 0.0);
  output_of_ = {0};
  FVM_TRY(set_table(tables[0], *scorer, 0));
  FVM_TRY(set_normalization());
  if (!regression().has_classes) return {};
  model_.pair = Pair::Complement;
  // JPMML takes the first table's class if both are equally probable.
  model_.class_rule = ClassRule::HalfOrMore;
  model_.class_labels = {tables[1].category, tables[0].category};
  return {};
}

/// Checks that JPMML rounds no score to another type on its way.
Result<void> Assembly::check_types() const {
  const char* type = is_float() ? "float" : "double";
  const PmmlFields& fields = document_.fields;
  for (const PmmlScorer& scorer : document_.scorers) {
    if (scorer.is_float != is_float()) return refused(scorer.where, "sums in float32 and in float64");
    const bool known = !scorer.target.empty() && fields.is_declared(scorer.target);
    if (!scorer.has_classes && known && fields.type_of(scorer.target) != type)
      return refused(scorer.where, "scores are rounded to the target's type, {}, which is not supported",
                     in_quotes(fields.type_of(scorer.target)));
  }
  const std::string_view target = fields.target_type();
  if (!document_.outermost.has_classes && !target.empty() && target != type)
    return refused(document_.outermost.where,
                   "predictions are rounded to the target's type, {}, which is not supported",
                   in_quotes(target));
  return {};
}

/// Moves the trees to the model, round by round: each round has the next tree of every output.
void Assembly::add_trees() {
  std::size_t rounds = 0, used = 0;
  bool equal = true;
  for (const PmmlScorer& scorer : document_.scorers) {
    const std::size_t count = scorer.end_tree - scorer.first_tree;
    equal = equal && (used == 0 || count == rounds);
    rounds = std::max(rounds, count);
    ++used;
    model_.may_lack_answers = model_.may_lack_answers || scorer.may_lack_answers;
  }
  std::vector<std::size_t> order(document_.scorers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[output_of_[i]] = i;
  std::vector<std::size_t> lines;
  for (std::size_t r = 0; r < rounds; ++r) {
    if (equal || r == 0) model_.round_begins.push_back(static_cast<std::uint32_t>(model_.trees.size()));
    for (const std::size_t i : order) {
      const std::size_t tree = document_.scorers[i].first_tree + r;
      if (tree >= document_.scorers[i].end_tree) continue;
      model_.trees.push_back(std::move(document_.trees[tree]));
      model_.trees.back().output = output_of_[i];
      lines.push_back(document_.lines[tree]);
    }
  }
  model_.round_begins.push_back(static_cast<std::uint32_t>(model_.trees.size()));
  document_.lines = std::move(lines);
}

/// Changes a split of numbers that are rounded to float32 to the split of float64 numbers that has the same outcome.
void Assembly::widen(const PmmlField& field, Node& node) {
  if (field.kind != PmmlKind::Float || !std::isfinite(node.threshold)) return;
  auto bound = static_cast<float>(node.threshold);
  if (node.kind == NodeKind::LessEqual) bound = std::nextafter(bound, std::numeric_limits<float>::infinity());
  if (std::isinf(bound)) {
    // Numbers round to infinity from halfway between the largest float32 number and the next power of two.
    node.kind = NodeKind::Less;
    node.threshold = 0x1.ffffffp127;
    return;
  }
  // A number rounds to one below `bound` if it is below the middle, or is the middle and that rounds down.
  const float below = std::nextafter(bound, -std::numeric_limits<float>::infinity());
  if (std::isinf(below)) {
    node.kind = NodeKind::LessEqual;
    node.threshold = -0x1.ffffffp127;
    return;
  }
  const double middle = (static_cast<double>(below) + static_cast<double>(bound)) / 2;
  node.threshold = middle;
  node.kind = static_cast<float>(middle) < bound ? NodeKind::LessEqual : NodeKind::Less;
}

Result<void> Assembly::set_row_type() {
  const auto is_wide = [&](const Node& node) {
    const PmmlFields& fields = document_.fields;
    // Programs can tell whole numbers from fractions only in float64.
    if (node.kind == NodeKind::Category)
      return fields.categories(fields.field(node.feature)).numbers && !is_float();
    if (node.kind != NodeKind::Less && node.kind != NodeKind::LessEqual) return false;
    const PmmlKind kind = fields.field(node.feature).kind;
    if (kind == PmmlKind::Double) return true;
    // float32 has all whole numbers up to 2^24. Above 2^31 - 1 there is only infinity.
    return kind == PmmlKind::Integer && std::isfinite(node.threshold) && std::abs(node.threshold) >= 0x1p24 &&
           node.threshold != 0x1p31;
  };
  for (const Tree& tree : model_.trees)
    if (std::any_of(tree.nodes.begin(), tree.nodes.end(), is_wide)) model_.row_type = ScalarType::Float64;
  if (model_.row_type == ScalarType::Float64 && is_float())
    return refused(document_.outermost.where,
                   "splits of fields of type double, or of large whole numbers, and sums in float32");
  for (Tree& tree : model_.trees)
    for (Node& node : tree.nodes) {
      if (node.kind == NodeKind::Leaf) continue;
      const PmmlField& field = document_.fields.field(node.feature);
      node.feature = field.feature;
      if (model_.row_type == ScalarType::Float64 && node.kind != NodeKind::Category) widen(field, node);
    }
  return {};
}

Result<void> Assembly::run() {
  model_.format = "pmml";
  model_.trainer = document_.application;
  model_.version = document_.version;
  model_.objective = document_.algorithm;
  model_.score_type = is_float() ? ScalarType::Float32 : ScalarType::Float64;
  FVM_TRY(check_types());
  FVM_TRY(document_.fields.add_features(model_));
  if (document_.outermost.method == PmmlMethod::Chain)
    FVM_TRY(add_chain());
  else if (document_.outermost.has_classes)
    FVM_TRY(add_classes());
  else
    FVM_TRY(add_number());
  for (const std::uint32_t output : output_of_)
    if (output == UINT32_MAX)
      return refused(document_.outermost.where, "scores that nothing uses are not supported");
  add_trees();
  return set_row_type();
}

}  // namespace

bool sniff_pmml(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), kModelOpening));
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '<') return false;
  const std::size_t at = text.find("<PMML");
  return at != std::string_view::npos && at + 5 < text.size() &&
         std::string_view(" \t\r\n>").find(text[at + 5]) != std::string_view::npos;
}

Result<ParsedModel> read_pmml(std::span<const std::byte> bytes, const LoadLimits& limits) {
  FVM_ASSIGN(PmmlDocument document, read_pmml_document(bytes, limits));
  ParsedModel parsed;
  FVM_TRY(Assembly(document, parsed.model).run());
  parsed.tree_location = [lines = std::move(document.lines)](std::size_t tree) {
    return formatted("line {}", lines[tree]);
  };
  return parsed;
}

}  // namespace forestvm::frontend
