// Makes a Model of XGBoost's header and trees: outputs, base margins, rounds, DART weights, objective.
#include "frontend/xgboost_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/xgboost_categories.hpp"
#include "frontend/xgboost_document.hpp"
#include "frontend/xgboost_tree.hpp"

namespace forestvm::frontend {
namespace {

/// The function that turns base_score into the margin at which each sum starts.
enum class Link { Identity, Logit, Log };
enum class Outputs { Any, Classes, Quantiles, Expectiles };

struct XgboostObjective {
  std::string_view name;
  Transform transform;
  ClassRule class_rule;
  Outputs outputs;
  Link link;
  Link old_link;
};

constexpr XgboostObjective kXgboostObjectives[] = {
#define FVM_XGBOOST_OBJECTIVE(name, transform, class_rule, outputs, link, old_link) \
  {name, Transform::transform, ClassRule::class_rule, Outputs::outputs, Link::link, Link::old_link},
#include "frontend/xgboost_objectives.def"
};

/// Returns true if the file was written by a release before this one. The releases at which something changed were
/// found by trying them: see tests/data/xgboost_versions.
bool written_before(const std::vector<std::int32_t>& version, std::int32_t major, std::int32_t minor) {
  const std::array<std::int32_t, 2> release = {major, minor};
  return std::lexicographical_compare(version.begin(), version.end(), release.begin(), release.end());
}
bool has_old_link(const XgboostHeader& header) { return written_before(header.version, 1, 3); }
/// Returns true if the base margin is added after the trees, as releases before 1.3 do, and releases before 1.4 for
/// DART.
bool adds_base_last(const XgboostHeader& header) {
  return written_before(header.version, 1, header.booster == "dart" ? 4 : 3);
}

Result<XgboostObjective> objective_of(std::string_view name) {
  for (const XgboostObjective& row : kXgboostObjectives)
    if (row.name == name) return row;
  return refused("learner.objective.name",
                 "{} is no objective of XGBoost 1.0 to 3.4: what its scores mean is not known",
                 in_quotes(name));
}

constexpr const char* kParamPath = "learner.learner_model_param.";

Error bad_param(const char* name, std::string_view message) {
  return refused(std::string(kParamPath) + name, message);
}

/// Returns a count of the header. Refuses one outside [least, most].
Result<std::uint32_t> count_of(const char* name, std::int64_t value, std::int64_t least, std::uint32_t most) {
  if (value < least) return bad_param(name, formatted("{} is too small: at least {}", value, least));
  if (value > most) return bad_param(name, formatted("{} is over the limit of {}", value, most));
  return static_cast<std::uint32_t>(value);
}

/// Computes the margin in float32, as XGBoost does. A logarithm that is computed in double and rounded to float is
/// correctly rounded.
Result<float> margin_of(float base_score, Link link) {
  const auto log32 = [](float x) { return static_cast<float>(std::log(static_cast<double>(x))); };
  switch (link) {
    case Link::Identity:
      break;
    case Link::Logit:
      if (!(base_score > 0 && base_score < 1))
        return bad_param("base_score", formatted("a probability must lie between 0 and 1, found {}",
                                                 std::to_string(base_score)));
      return -log32(1.0f / base_score - 1.0f);
    case Link::Log:
      if (!(base_score > 0))
        return bad_param("base_score", formatted("must be positive, found {}", std::to_string(base_score)));
      return log32(base_score);
  }
  return base_score;
}

/// Returns the numbers in "5E-1", "[5E-1]" or "[1E0,2E0]".
Result<std::vector<float>> base_scores_of(std::string_view text) {
  const Error garbage =
      bad_param("base_score", "expected a number or a list of numbers, found " + in_quotes(text));
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return garbage;
    text = text.substr(1, text.size() - 2);
  }
  std::vector<float> scores;
  while (true) {
    float score = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), score);
    if (code != std::errc() || !std::isfinite(score)) return garbage;
    scores.push_back(score);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return scores;
    if (!text.starts_with(',')) return garbage;
    text.remove_prefix(1);
  }
}

/// Returns the probability that a release takes for a base score. From 3.2 on, scores near 0 and 1, which constant
/// labels give, are moved away from 0 and 1.
float taken_probability(float score, const XgboostHeader& header) {
  constexpr float kLeast = 1e-6f;
  if (written_before(header.version, 3, 2) || !(score >= 0 && score <= 1)) return score;
  return std::clamp(score, kLeast, 1 - kLeast);
}

Result<std::vector<double>> base_of(const XgboostHeader& header, Link link, std::uint32_t num_outputs) {
  FVM_ASSIGN(const std::vector<float> scores, base_scores_of(header.base_score));
  if (scores.size() != 1 && scores.size() != num_outputs)
    return bad_param("base_score", formatted("{} numbers for {} outputs", scores.size(), num_outputs));
  std::vector<double> base;
  for (const float score : scores) {
    const float taken = link == Link::Logit ? taken_probability(score, header) : score;
    FVM_ASSIGN(const float margin, margin_of(taken, link));
    base.push_back(margin);
  }
  base.resize(num_outputs, base.front());
  return base;
}

/// Turns base scores into the margins from which the transform SoftplusSteps computes these scores again. Computes in
/// float32 as XGBoost 3.4 does.
void make_steps(std::vector<double>& base) {
  for (std::size_t i = base.size() - 1; i > 0; --i) {
    constexpr float kMinStep = 1e-6f;
    const float step =
        std::max(static_cast<float>(base[i]) - static_cast<float>(base[i - 1]) - kMinStep, kMinStep);
    base[i] = step + std::log(-std::expm1(-step));
  }
}

/// Sets the output of each tree and its DART weight.
Result<void> assign_outputs(const XgboostHeader& header, Model& model) {
  const std::string& path = header.model_path;
  if (header.num_trees != static_cast<std::int64_t>(model.trees.size()))
    return refused(path + ".gbtree_model_param.num_trees", "says {} trees, but the file has {}",
                   *header.num_trees, model.trees.size());
  if (header.tree_info.size() != model.trees.size())
    return refused(path + ".tree_info", "{} entries for {} trees", header.tree_info.size(),
                   model.trees.size());
  const bool dart = header.booster == "dart";
  const std::vector<float>& weights = dart ? header.weight_drop : header.model_weight_drop;
  const std::string weights_path = dart ? "learner.gradient_booster.weight_drop" : path + ".weight_drop";
  if ((dart || !weights.empty()) && weights.size() != model.trees.size())
    return refused(weights_path, "{} weights for {} trees", weights.size(), model.trees.size());
  for (std::size_t i = 0; i < model.trees.size(); ++i) {
    const std::int32_t output = header.tree_info[i];
    if (output < 0 || static_cast<std::uint32_t>(output) >= model.num_outputs)
      return refused(formatted("{}.tree_info[{}]: tree {}", path, i, i), "output {} of a model with {}",
                     output, model.num_outputs);
    model.trees[i].output = static_cast<std::uint32_t>(output);
    if (weights.empty()) continue;
    if (!std::isfinite(weights[i]))
      return refused(formatted("{}[{}]: tree {}", weights_path, i, i), "the weight is not finite");
    model.trees[i].weight = weights[i];
  }
  return {};
}

/// Returns the first tree of each boosting round, and the number of trees. If the file does not say it, a round has
/// num_parallel_tree trees for each output.
Result<std::vector<std::uint32_t>> rounds_of(const XgboostHeader& header, const Model& model) {
  const auto trees = static_cast<std::uint32_t>(model.trees.size());
  std::vector<std::uint32_t> begins;
  if (!header.iteration_indptr.empty()) {
    const std::string path = header.model_path + ".iteration_indptr";
    std::int32_t last = 0;
    for (const std::int32_t begin : header.iteration_indptr) {
      if (begin < last) return refused(path, "the rounds are not in ascending order");
      begins.push_back(static_cast<std::uint32_t>(last = begin));
    }
    if (begins.front() != 0 || begins.back() != trees)
      return refused(path, "runs from {} to {}, but the trees from 0 to {}", begins.front(), begins.back(),
                     trees);
    return begins;
  }
  const std::int64_t parallel = header.num_parallel_tree.value_or(1);
  if (parallel < 0 || parallel > 0xffff'ffff)
    return refused(header.model_path + ".gbtree_model_param.num_parallel_tree", "out of range: {}", parallel);
  const std::uint64_t per_round =
      static_cast<std::uint64_t>(parallel == 0 ? 1 : parallel) * trees_per_round(model);
  for (std::uint64_t begin = 0; begin < trees; begin += per_round)
    begins.push_back(static_cast<std::uint32_t>(begin));
  begins.push_back(trees);
  return begins;
}

/// Returns the round at which early stopping found its best score. Attributes are texts that users may set too, so a
/// text that is not a round of the model is ignored.
std::optional<std::uint32_t> best_round_of(const XgboostHeader& header, const Model& model) {
  const std::string& text = header.best_iteration;
  std::uint32_t round = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), round);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (!whole || std::size_t{round} + 1 >= model.round_begins.size()) return {};
  return round;
}

std::string version_text(const std::vector<std::int32_t>& version) {
  std::string out;
  for (const std::int32_t part : version) out.append(out.empty() ? "" : ".").append(std::to_string(part));
  return out;
}

/// Reads everything but the trees.
Result<void> add_header(XgboostHeader& header, const LoadLimits& limits, Model& model) {
  model.trainer = "xgboost";
  model.version = version_text(header.version);
  model.objective = header.objective;
  FVM_ASSIGN(const XgboostObjective objective, objective_of(header.objective));
  model.transform = objective.transform;
  model.class_rule = objective.class_rule;

  FVM_ASSIGN(model.num_features, count_of("num_feature", *header.num_feature, 0, limits.max_features));
  FVM_ASSIGN(const std::uint32_t classes, count_of("num_class", *header.num_class, 0, limits.max_outputs));
  FVM_ASSIGN(const std::uint32_t targets,
             count_of("num_target", header.num_target.value_or(1), 0, limits.max_outputs));
  if (objective.outputs == Outputs::Classes && classes == 0)
    return bad_param("num_class",
                     formatted("the objective {} needs the number of classes", in_quotes(header.objective)));
  const std::uint64_t outputs = std::uint64_t{std::max(classes, 1u)} * std::max(targets, 1u);
  if (outputs > limits.max_outputs)
    return bad_param("num_target",
                     formatted("{} outputs are over the limit of {}", outputs, limits.max_outputs));
  model.num_outputs = static_cast<std::uint32_t>(outputs);
  const bool has_steps = objective.outputs == Outputs::Expectiles && outputs > 1;
  if (has_steps) model.transform = Transform::SoftplusSteps;
  if (objective.outputs == Outputs::Quantiles && outputs > 1 && !written_before(header.version, 3, 4))
    model.transform = Transform::Sorted;

  if (!header.feature_names.empty() && header.feature_names.size() != model.num_features)
    return refused("learner.feature_names", "{} names for {} features", header.feature_names.size(),
                   model.num_features);
  model.feature_names = std::move(header.feature_names);
  const Link link = has_old_link(header) ? objective.old_link : objective.link;
  FVM_ASSIGN(model.base, base_of(header, link, model.num_outputs));
  if (has_steps) make_steps(model.base);
  model.base_last = adds_base_last(header);
  model.takes_margins = true;
  return {};
}

Result<ParsedModel> read_xgboost(std::span<const std::byte> bytes, const LoadLimits& limits, Syntax syntax,
                                 std::string format) {
  ParsedModel parsed;
  Model& model = parsed.model;
  std::uint64_t nodes = 0;
  const auto receive = [&](const XgboostTree& columns, std::size_t number,
                           const std::string& path) -> Result<void> {
    nodes += columns.left_children.size();
    if (number >= limits.max_trees) return refused(path, "more trees than the limit of {}", limits.max_trees);
    if (nodes > limits.max_nodes) return refused(path, "more nodes than the limit of {}", limits.max_nodes);
    FVM_ASSIGN(Tree tree, tree_of(columns, number, path));
    model.trees.push_back(std::move(tree));
    return {};
  };
  FVM_ASSIGN(XgboostHeader header, read_xgboost_document(bytes, syntax, limits.max_depth, receive));
  model.format = std::move(format);
  FVM_TRY(add_header(header, limits, model));
  FVM_TRY(assign_outputs(header, model));
  FVM_ASSIGN(model.round_begins, rounds_of(header, model));
  model.best_round = best_round_of(header, model);
  FVM_TRY(add_xgboost_categories(header.categories, header.model_path, model));
  parsed.tree_location = [path = header.model_path + ".trees["](std::size_t tree) {
    return path + std::to_string(tree) + ']';
  };
  return parsed;
}

bool one_of(std::byte byte, std::string_view choices) {
  return choices.find(static_cast<char>(byte)) != std::string_view::npos;
}

}  // namespace

bool sniff_xgboost_json(std::span<const std::byte> bytes) {
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t at = 0;
  while (at < bytes.size() && one_of(bytes[at], blanks)) ++at;
  if (at == bytes.size() || bytes[at] != std::byte{'{'}) return false;
  do ++at;
  while (at < bytes.size() && one_of(bytes[at], blanks));
  if (at == bytes.size()) return true;
  // Leaves out two other kinds of JSON objects: Apache Spark's metadata, and XGBoost's dump of a tree.
  const std::string_view member(reinterpret_cast<const char*>(bytes.data()) + at, bytes.size() - at);
  return one_of(bytes[at], "\"}") && !member.starts_with("\"class\"") && !member.starts_with("\"nodeid\"");
}

bool sniff_xgboost_ubj(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{'{'} && one_of(bytes[1], "iUIlL#$N");
}

Result<ParsedModel> read_xgboost_json(std::span<const std::byte> bytes, const LoadLimits& limits) {
  return read_xgboost(bytes, limits, Syntax::JsonWithNan, "xgboost-json");
}

Result<ParsedModel> read_xgboost_ubj(std::span<const std::byte> bytes, const LoadLimits& limits) {
  return read_xgboost(bytes, limits, Syntax::Ubjson, "xgboost-ubj");
}

}  // namespace forestvm::frontend
