// See lightgbm_header.hpp.
#include "frontend/lightgbm_header.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/pandas_categories.hpp"

namespace forestvm::frontend {
namespace {

enum class Parameters { None, Sqrt, Sigmoid, Classes, ClassesAndSigmoid };

struct LightgbmObjective {
  std::string_view name;
  Transform transform;
  ClassRule class_rule;
  Parameters parameters;
  EarlyStopRule early_stop;

  bool takes_sqrt() const { return parameters == Parameters::Sqrt; }
  bool takes_sigmoid() const {
    return parameters == Parameters::Sigmoid || parameters == Parameters::ClassesAndSigmoid;
  }
  bool takes_classes() const {
    return parameters == Parameters::Classes || parameters == Parameters::ClassesAndSigmoid;
  }
};

constexpr LightgbmObjective kLightgbmObjectives[] = {
#define FVM_LIGHTGBM_OBJECTIVE(name, transform, class_rule, parameters, early_stop) \
  {name, Transform::transform, ClassRule::class_rule, Parameters::parameters, EarlyStopRule::early_stop},
#include "frontend/lightgbm_objectives.def"
};

/// The parameters after the objective's name: "sqrt", "sigmoid:1", "num_class:4".
struct Given {
  bool sqrt = false;
  std::optional<double> sigmoid;
  std::optional<std::int64_t> classes;
};

template <class Number>
bool read_whole(std::string_view text, std::optional<Number>& number) {
  Number read = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (number || code != std::errc() || end != text.data() + text.size()) return false;
  number = read;
  return true;
}

bool read_parameter(const LightgbmObjective& row, std::string_view word, Given& given) {
  constexpr std::string_view sigmoid = "sigmoid:", classes = "num_class:";
  if (row.takes_sigmoid() && word.starts_with(sigmoid))
    return read_whole(word.substr(sigmoid.size()), given.sigmoid);
  if (row.takes_classes() && word.starts_with(classes))
    return read_whole(word.substr(classes.size()), given.classes);
  if (!row.takes_sqrt() || word != "sqrt" || given.sqrt) return false;
  return given.sqrt = true;
}

/// Reads the objective and its parameters; sets the transform.
Result<void> add_objective(const LightgbmEntry& entry, Model& model) {
  const std::vector<std::string_view> words = words_of(entry.text);
  if (words.empty()) return {};  // a user-defined objective: raw scores
  const auto wrong = [&](std::string_view message) {
    return refused(location_of(entry), "objective {}: {}", in_quotes(words[0]), message);
  };
  const auto* row = std::find_if(std::begin(kLightgbmObjectives), std::end(kLightgbmObjectives),
                                 [&](const LightgbmObjective& known) { return known.name == words[0]; });
  if (row == std::end(kLightgbmObjectives)) return wrong("not one that LightGBM has");
  Given given;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!read_parameter(*row, words[i], given)) return wrong("unexpected or damaged: " + in_quotes(words[i]));
  if (row->takes_sigmoid()) {
    if (!given.sigmoid) return wrong("sigmoid: is missing");
    if (!(std::isfinite(*given.sigmoid) && *given.sigmoid > 0)) return wrong("sigmoid: must be positive");
    model.slope = *given.sigmoid;
  }
  if (row->takes_classes() && given.classes != model.num_outputs)
    return wrong(formatted("num_class: must be there and be the header's {}", model.num_outputs));
  model.objective = words[0];
  model.transform = given.sqrt ? Transform::SignedSquare : row->transform;
  model.class_rule = row->class_rule;
  // LightGBM stops a row early by the distance of its one score from 0, or by the lead of the largest of several
  // scores.
  const bool has_rule = (row->early_stop == EarlyStopRule::Lead) == (model.num_outputs > 1);
  model.early_stop = has_rule ? row->early_stop : EarlyStopRule::None;
  return {};
}

std::size_t count_words(std::string_view text) {
  std::size_t count = 0;
  while (!take_word(text).empty()) ++count;
  return count;
}

/// Reads the names of features. Names that LightGBM itself gave (Column_0, Column_1, ...) are left out.
Result<void> add_feature_names(const LightgbmEntry& entry, Model& model) {
  if (const std::size_t names = count_words(entry.text); names != model.num_features)
    return refused(location_of(entry), "feature_names: {} names for {} features", names, model.num_features);
  if (!is_utf8(entry.text)) return refused(location_of(entry), "feature_names: not UTF-8");
  bool own = false;
  std::string_view text = entry.text;
  for (std::uint32_t i = 0; i < model.num_features && !own; ++i)
    own = take_word(text) != formatted("Column_{}", i);
  if (!own) return {};
  text = entry.text;
  model.feature_names.reserve(model.num_features);
  for (std::uint32_t i = 0; i < model.num_features; ++i) model.feature_names.emplace_back(take_word(text));
  return {};
}

/// Reads average_output: a random forest's sums are divided by the number of rounds before the transform.
Result<void> add_average(const LightgbmEntry& entry, Model& model) {
  if (!entry.given()) return {};
  if (!entry.text.empty()) return refused(location_of(entry), "average_output: takes no value");
  if (model.trees.empty()) return refused(location_of(entry), "average_output: an average over no trees");
  model.averaged = true;
  model.takes_margins = false;
  model.early_stop = EarlyStopRule::None;
  if (model.transform == Transform::Identity) model.transform = Transform::Average;
  return {};
}

/// Checks tree_sizes. LightGBM finds the trees by these lengths, so a file in which they are wrong is
/// damaged.
Result<void> check_tree_sizes(const LightgbmHeader& header) {
  if (!header.tree_sizes.given()) return {};
  FVM_ASSIGN(const std::vector<std::int64_t> sizes, integers_of(header.tree_sizes, header.tree_bytes.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 0 || static_cast<std::size_t>(sizes[i]) != header.tree_bytes[i])
      return refused(location_of(header.tree_sizes), "tree_sizes[{}]: says {} bytes, but the tree has {}", i,
                     sizes[i], header.tree_bytes[i]);
  return {};
}

Result<void> add_outputs(const LightgbmHeader& header, const LoadLimits& limits, Model& model) {
  FVM_ASSIGN(const std::int64_t outputs, number_of(header.num_tree_per_iteration, 1, limits.max_outputs));
  FVM_ASSIGN(const std::int64_t classes, number_of(header.num_class, 1, limits.max_outputs));
  if (outputs != classes)
    return refused(location_of(header.num_tree_per_iteration), "num_tree_per_iteration: {}, but num_class {}",
                   outputs, classes);
  model.num_outputs = static_cast<std::uint32_t>(outputs);
  model.base.assign(model.num_outputs, 0.0);
  if (model.trees.size() % model.num_outputs != 0)
    return refused(location_of(header.num_tree_per_iteration), "{} trees are not whole rounds of {}",
                   model.trees.size(), outputs);
  for (std::size_t i = 0; i < model.trees.size(); ++i) {
    model.trees[i].output = static_cast<std::uint32_t>(i % model.num_outputs);
    if (model.trees[i].output == 0) model.round_begins.push_back(static_cast<std::uint32_t>(i));
  }
  model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
  return {};
}

}  // namespace

Result<void> add_lightgbm_header(const LightgbmHeader& header, const LoadLimits& limits, Model& model) {
  model.trainer = "lightgbm";
  model.version = header.version.text;
  if (model.version != "v2" && model.version != "v3" && model.version != "v4")
    return refused(location_of(header.version),
                   "version: the format is v2 (LightGBM 2.0), v3 or v4, found {}",
                   in_quotes(header.version.text));
  model.row_type = model.score_type = ScalarType::Float64;
  model.tiny_is_zero = true;
  model.takes_margins = true;
  FVM_TRY(add_outputs(header, limits, model));
  FVM_ASSIGN(const std::int64_t last_feature,
             number_of(header.max_feature_idx, 0, std::int64_t{limits.max_features} - 1));
  model.num_features = static_cast<std::uint32_t>(last_feature + 1);
  FVM_TRY(add_feature_names(header.feature_names, model));
  if (count_words(header.feature_infos.text) != model.num_features)
    return refused(location_of(header.feature_infos), "feature_infos: not one for each of {} features",
                   model.num_features);
  FVM_TRY(add_objective(header.objective, model));
  FVM_TRY(add_average(header.average_output, model));
  FVM_TRY(check_tree_sizes(header));
  return add_pandas_categories(header, limits, model);
}

}  // namespace forestvm::frontend
