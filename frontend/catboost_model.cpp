// Makes a Model of CatBoost's parts: splits, outputs, loss, classes.
#include "frontend/catboost_model.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/catboost_columns.hpp"
#include "frontend/catboost_parts.hpp"

namespace forestvm::frontend {
namespace {

struct CatboostLoss {
  std::string_view name;
  Transform transform;
  Pair pair;
  ClassRule class_rule;
  std::uint32_t outputs;  ///< 0: any number
};

constexpr CatboostLoss kCatboostLosses[] = {
#define FVM_CATBOOST_LOSS(name, transform, pair, class_rule, outputs) \
  {name, Transform::transform, Pair::pair, ClassRule::class_rule, outputs},
#include "frontend/catboost_losses.def"
};

/// Returns "1.2.10" for the text "... Branch: tags/v1.2.10 ...", and "" for texts without such a version.
std::string version_of(std::string_view info) {
  constexpr std::string_view before = "tags/v";
  const std::size_t at = info.find(before);
  if (at == std::string_view::npos) return {};
  info.remove_prefix(at + before.size());
  return std::string(info.substr(0, info.find_first_not_of("0123456789.")));
}

/// Replaces the number of CatBoost's split in each split of the tree by what that split compares.
Result<void> resolve_splits(const std::vector<CatboostSplit>& splits, std::size_t number, Tree& tree) {
  for (Node& node : tree.nodes) {
    if (node.kind == NodeKind::Leaf) continue;
    if (node.payload >= splits.size())
      return refused(formatted("tree {}", number), "split {} does not exist: the features have {}",
                     node.payload, splits.size());
    const CatboostSplit& split = splits[node.payload];
    node.kind = split.kind;
    node.feature = split.feature;
    node.threshold = split.threshold;
    node.missing_left = split.missing_left;
    node.payload = 0;
    if (split.kind != NodeKind::Category) continue;
    node.payload = static_cast<std::uint32_t>(tree.category_sets.size());
    tree.category_sets.push_back({.codes = {split.code}});
  }
  return {};
}

Result<void> add_trees(CatboostParts& parts, const std::vector<CatboostSplit>& splits,
                       const LoadLimits& limits, Model& model) {
  std::uint64_t nodes = 0;
  for (std::size_t i = 0; i < parts.trees.size(); ++i) {
    nodes += parts.trees[i].nodes.size();
    if (nodes > limits.max_nodes)
      return refused(formatted("tree {}", i), "more nodes than the limit of {}", limits.max_nodes);
    FVM_TRY(resolve_splits(splits, i, parts.trees[i]));
    model.round_begins.push_back(static_cast<std::uint32_t>(i));
  }
  model.trees = std::move(parts.trees);
  model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
  return {};
}

Result<void> add_bias(CatboostParts& parts, Model& model) {
  model.num_outputs = parts.num_outputs;
  model.scale = parts.scale;
  model.base_last = true;
  model.base_of_first_round = true;
  const bool none = std::all_of(parts.bias.begin(), parts.bias.end(), [](double bias) { return bias == 0; });
  if (none && parts.bias.size() <= 1) parts.bias.assign(model.num_outputs, 0.0);
  if (parts.bias.size() != model.num_outputs)
    return refused("bias", "{} numbers for {} outputs", parts.bias.size(), model.num_outputs);
  model.base = std::move(parts.bias);
  return {};
}

/// The most numbers that leaves may have once outputs of unseen classes are added. These outputs are zeros that the
/// file does not hold, so its size sets no limit.
constexpr std::uint64_t kMaxSpreadNumbers = std::uint64_t{1} << 22;

Error bad_classes(std::string_view message) { return refused("class_params", message); }

/// Returns a label as Python writes it.
std::string label_text(const std::string& text, const std::string& type) {
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return type == "Float" && whole ? text + ".0" : text;
}

/// Returns the declared classes that the trees' outputs stand for, ascending.
Result<std::vector<std::size_t>> seen_classes(const CatboostParts& parts, std::size_t declared) {
  std::vector<std::size_t> seen;
  for (const double number : parts.class_to_label) {
    const std::size_t after = seen.empty() ? 0 : seen.back() + 1;
    if (!(number >= static_cast<double>(after) && number < static_cast<double>(declared)) ||
        number != std::floor(number))
      return bad_classes(formatted("class_to_label: {} is not one of the {} classes, or does not ascend",
                                   std::to_string(number), declared));
    seen.push_back(static_cast<std::size_t>(number));
  }
  if (seen.size() != parts.num_outputs)
    return bad_classes(formatted("{} classes, of which the trees know {}: class_to_label has to name these",
                                 declared, parts.num_outputs));
  return seen;
}

/// Adds outputs for classes that were declared but that training did not see, at their indices. Their scores are minus
/// infinity, as in CatBoost.
Result<void> add_unseen_classes(CatboostParts& parts, std::size_t declared, const LoadLimits& limits,
                                Model& model) {
  FVM_ASSIGN(const std::vector<std::size_t> seen, seen_classes(parts, declared));
  const std::uint32_t width = parts.num_outputs;
  std::uint64_t numbers = 0;
  for (const Tree& tree : parts.trees) numbers += tree.leaf_vectors.size() / width * declared;
  if (declared > limits.max_outputs || numbers > kMaxSpreadNumbers)
    return bad_classes(formatted("{} classes, which is too many for a model of {}", declared, width));
  std::vector<double> base(declared, -std::numeric_limits<double>::infinity());
  for (std::size_t k = 0; k < width; ++k) base[seen[k]] = model.base[k];
  model.base = std::move(base);
  model.num_outputs = static_cast<std::uint32_t>(declared);
  for (Tree& tree : parts.trees) {
    std::vector<double> spread(tree.leaf_vectors.size() / width * declared);
    for (std::size_t i = 0; i < tree.leaf_vectors.size(); ++i)
      spread[i / width * declared + seen[i % width]] = tree.leaf_vectors[i];
    tree.leaf_vectors = std::move(spread);
    tree.leaf_width = model.num_outputs;
  }
  return {};
}

/// Sets the labels of `classes` classes, unless they are the numbers of the classes.
Result<void> add_labels(CatboostParts& parts, std::uint32_t classes, const LoadLimits& limits, Model& model) {
  std::vector<std::string> labels;
  const bool named = !parts.class_names.empty();
  const std::size_t declared = named                     ? parts.class_names.size()
                               : parts.classes_count > 0 ? static_cast<std::size_t>(parts.classes_count)
                                                         : parts.class_to_label.size();
  if (declared == 0) return {};
  if (declared < classes || (declared > classes && (model.pair != Pair::None || classes == 1)))
    return bad_classes(formatted(
        "{} classes, of which the trees know {}: classes that training did not see cannot be predicted",
        declared, classes));
  const bool all_seen = declared == classes;
  if (!all_seen) FVM_TRY(add_unseen_classes(parts, declared, limits, model));
  for (std::size_t i = 0; i < declared; ++i) {
    const bool given = all_seen && i < parts.class_to_label.size();
    const double label = given ? parts.class_to_label[i] : static_cast<double>(i);
    const auto number = static_cast<double>(i);
    if ((named || parts.classes_count > 0) && label != number)
      return bad_classes(formatted("class_to_label: class {} has another number", i));
    char text[32];
    const auto end = std::to_chars(text, text + sizeof(text), label).ptr;
    labels.push_back(label_text(named ? parts.class_names[i] : std::string(text, end), parts.label_type));
    if (!is_utf8(labels.back()))
      return bad_classes("a name that is not UTF-8: " + in_quotes(labels.back(), 40));
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != std::to_string(i)) model.class_labels = labels;
  return {};
}

/// Sets the rule for labels if the model's threshold for the probability of the second class is not 0.5.
Result<void> set_threshold(const CatboostParts& parts, Model& model) {
  if (parts.probability_threshold.empty()) return {};
  const std::string& text = parts.probability_threshold;
  double threshold = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), threshold);
  if (code != std::errc() || end != text.data() + text.size() || !(threshold > 0 && threshold < 1))
    return refused("binclass_probability_threshold", "no number between 0 and 1: {}", in_quotes(text, 40));
  if (threshold == 0.5) return {};
  model.class_rule = ClassRule::RawAboveOffset;
  model.offset = -std::log(1 / threshold - 1);  // CatBoost's logit, in its order of operations
  return {};
}

/// The losses whose uncertainty CatBoost computes, and its rule. Their models have one output, except models of several
/// classes, and Gaussian ones, which have two.
struct UncertainLoss {
  std::string_view name;
  UncertaintyRule rule;
};
constexpr UncertainLoss kUncertainLosses[] = {{"RMSE", UncertaintyRule::Scores},
                                              {"MAE", UncertaintyRule::Scores},
                                              {"MAPE", UncertaintyRule::Scores},
                                              {"Quantile", UncertaintyRule::Scores},
                                              {"Huber", UncertaintyRule::Scores},
                                              {"Expectile", UncertaintyRule::Scores},
                                              {"Tweedie", UncertaintyRule::Scores},
                                              {"LogLinQuantile", UncertaintyRule::Scores},
                                              {"Lq", UncertaintyRule::Scores},
                                              {"LogCosh", UncertaintyRule::Scores},
                                              {"Poisson", UncertaintyRule::Scores},
                                              {"RMSEWithUncertainty", UncertaintyRule::Gaussian},
                                              {"Logloss", UncertaintyRule::Binary},
                                              {"CrossEntropy", UncertaintyRule::Binary},
                                              {"Focal", UncertaintyRule::Binary},
                                              {"MultiClass", UncertaintyRule::Classes},
                                              {"MultiClassOneVsAll", UncertaintyRule::Classes}};

/// Sets the rule of uncertainty, unless the file does not say how training shrank the model.
void add_uncertainty(const CatboostParts& parts, Model& model) {
  const auto shrinkage = static_cast<float>(parts.shrink_rate * parts.learning_rate);
  if (!(shrinkage >= 0 && shrinkage < 1)) return;
  for (const UncertainLoss& loss : kUncertainLosses) {
    if (loss.name != parts.loss) continue;
    const std::uint32_t outputs = loss.rule == UncertaintyRule::Gaussian ? 2 : 1;
    if (loss.rule != UncertaintyRule::Classes && model.num_outputs != outputs) return;
    model.uncertainty = loss.rule;
    model.shrinkage = shrinkage;
  }
}

/// Sets what is computed from raw scores.
Result<void> add_loss(CatboostParts& parts, const LoadLimits& limits, Model& model) {
  model.objective = parts.loss;
  const auto* loss = std::find_if(std::begin(kCatboostLosses), std::end(kCatboostLosses),
                                  [&](const CatboostLoss& known) { return known.name == parts.loss; });
  if (loss == std::end(kCatboostLosses)) return {};
  if (loss->outputs != 0 && loss->outputs != model.num_outputs)
    return refused("loss_function", "{} with {} outputs", in_quotes(parts.loss), model.num_outputs);
  model.transform = loss->transform;
  model.pair = loss->pair;
  model.class_rule = loss->class_rule;
  if (loss->class_rule == ClassRule::RawPositive) FVM_TRY(set_threshold(parts, model));
  if (loss->pair == Pair::Complement) return add_labels(parts, 2, limits, model);
  return loss->class_rule == ClassRule::RawArgmax ? add_labels(parts, model.num_outputs, limits, model)
                                                  : Result<void>();
}

Result<ParsedModel> model_of(CatboostParts parts, std::size_t file_bytes, const LoadLimits& limits) {
  ParsedModel parsed;
  Model& model = parsed.model;
  model.format = parts.format;
  model.trainer = "catboost";
  model.version = version_of(parts.version);
  model.score_type = ScalarType::Float64;
  FVM_TRY(add_bias(parts, model));
  FVM_TRY(add_loss(parts, limits, model));
  add_uncertainty(parts, model);
  FVM_ASSIGN(const std::vector<CatboostSplit> splits, add_columns(parts, file_bytes, limits, model));
  FVM_TRY(add_trees(parts, splits, limits, model));
  parsed.tree_location = [](std::size_t) { return std::string("trees"); };
  return parsed;
}

}  // namespace

bool sniff_catboost_cbm(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with("CBM1");
}

bool sniff_catboost_json(std::span<const std::byte> bytes) {
  constexpr std::string_view blanks = " \t\r\n";
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto skip_blanks = [&] { text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size())); };
  skip_blanks();
  if (!text.starts_with('{')) return false;
  text.remove_prefix(1);
  skip_blanks();
  constexpr std::string_view names[] = {"\"ctr_data\"",        "\"features_info\"",  "\"model_info\"",
                                        "\"oblivious_trees\"", "\"scale_and_bias\"", "\"trees\""};
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view name) { return text.starts_with(name); });
}

Result<ParsedModel> read_catboost_cbm(std::span<const std::byte> bytes, const LoadLimits& limits) {
  FVM_ASSIGN(CatboostParts parts, read_catboost_binary(bytes, limits));
  return model_of(std::move(parts), bytes.size(), limits);
}

Result<ParsedModel> read_catboost_json(std::span<const std::byte> bytes, const LoadLimits& limits) {
  FVM_ASSIGN(CatboostParts parts, read_catboost_document(bytes, limits));
  return model_of(std::move(parts), bytes.size(), limits);
}

}  // namespace forestvm::frontend
