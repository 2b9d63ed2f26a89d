// See trainer_answers.hpp.
#include "support/trainer_answers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include <forestvm/internal/reference.hpp>

#include "support/floats.hpp"
#include "support/npy.hpp"

namespace forestvm::support {
namespace {

namespace fs = std::filesystem;

/// The largest allowed distance between values and the trainer's values.
struct Bound {
  std::int64_t ulps = 0;  ///< Units in the last place of the scores' type.
  double absolute = 0;    ///< If not 0: the largest difference, relative to values above 1; replaces `ulps`.
};

/// Returns whether the transform uses functions whose bits differ between machines, such as exp. CatBoost's own
/// exponential does not.
bool is_computed(Transform transform) {
  switch (transform) {
    case Transform::Identity:
    case Transform::Argmax:
    case Transform::Step:
    case Transform::Average:
    case Transform::Clamp:
    case Transform::TableExp:
    case Transform::TableSoftmax:
    case Transform::WeightedMedian:
    case Transform::Sorted:
    case Transform::Uncertainty:
      return false;
    default:
      return true;
  }
}

bool has_votes(const Model& model) { return model.objective == "AdaBoostClassifier"; }

/// Returns whether leaves or base are logarithms, which NumPy rounds in its own way. The name of the folder tells.
bool has_logarithms(const ModelFile& file) {
  return file.name.find("ada_logarithms") != std::string::npos ||
         file.name.find("boosting_four") != std::string::npos;
}

/// Returns the zoo's bound for ONNX Runtime, whose float32 sums depend on its threads; 0 in the repository, where sums
/// are exact.
double stated_tolerance(const fs::path& folder) {
  std::ifstream in(folder / "meta.json");
  const std::string meta(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = meta.find("\"tolerance\": ");
  return at == std::string::npos ? 0 : std::stod(meta.substr(at + 13));
}

Bound bound_of(const Model& model, const ModelFile& file) {
  if (model.format == "onnx") {
    const double stated = stated_tolerance(file.path.parent_path());
    return {0, stated != 0 ? stated : is_computed(model.transform) ? 3e-7 : 0};
  }
  // Decisions are differences of two scores near 0.5: their last places are those of the scores.
  if (model.transform == Transform::AnomalyDecision) return {0, 0x1p-52};
  if (!is_computed(model.transform)) return {};
  // The exponential's argument is up to 36 in size, where one unit makes 32 units of the exponential.
  if (has_votes(model) && has_logarithms(file)) return {32};
  return {2};
}

/// Returns AdaBoost's decision, which the trainer gives in place of sums of votes: the mean vote, or the difference of
/// the two.
std::vector<double> decisions(const Model& model, const std::vector<double>& raw) {
  std::vector<double> means = raw, differences;
  for (double& x : means) x /= model.divisor;
  if (model.num_outputs != 2) return means;
  for (std::size_t i = 0; i < means.size(); i += 2) differences.push_back(means[i + 1] - means[i]);
  return differences;
}

/// The files of a folder that have the trainer's answers for a model. A file may be absent.
struct AnswerFiles {
  fs::path raw, value, leaves, labels;
};

AnswerFiles answer_files(const Model& model, const ModelFile& file) {
  const fs::path folder = file.path.parent_path();
  AnswerFiles out{folder / "expected_raw.npy", folder / "expected.npy", folder / "expected_leaf.npy",
                  folder / "expected_class.npy"};
  const auto has = [&](const char* name) { return fs::exists(folder / name); };
  if (model.format == "treelite") {
    out.value = folder / "expected_treelite.npy";
    out.raw.clear();
  } else if (model.format == "onnx") {
    if (has("expected_onnx.npy")) out.value = folder / "expected_onnx.npy";
    if (file.path.filename() == "model_v5.onnx") out.value = folder / "expected_onnx_v5.npy";
    out.labels = folder / "expected_label.npy";
    out.raw.clear();
  } else if (model.format == "ydf" && !fs::exists(file.path / "gradient_boosted_trees_header.pb")) {
    out.raw.clear();  // YDF gives no raw scores of forests
  } else if (model.transform == Transform::AnomalyDecision && has("expected_raw.npy")) {
    out.value = out.raw;  // this file has the decisions; expected.npy has score_samples
    out.raw.clear();
  }
  // CatBoost's JSON has lost the numbers of the leaves of trees that are not oblivious.
  const bool oblivious = std::all_of(model.trees.begin(), model.trees.end(), [](const Tree& tree) {
    return ((tree.nodes.size() + 1) & tree.nodes.size()) == 0;
  });
  if (model.format == "catboost-json" && !oblivious) out.leaves.clear();
  return out;
}

std::string count_text(const char* what, std::size_t wrong, std::size_t count) {
  return std::to_string(wrong) + " " + what + " of " + std::to_string(count) + " differ";
}

/// Compares raw scores bit for bit, unless they are sums of NumPy's logarithms.
std::string compare_raw(const Model& model, const ModelFile& file, std::vector<double> raw,
                        const std::vector<double>& expected) {
  if (has_votes(model)) raw = decisions(model, raw);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong +=
        has_logarithms(file) ? !(std::abs(raw[i] - expected[i]) <= 1e-14) : !same_bits(raw[i], expected[i]);
  return wrong == 0 ? "" : count_text("raw scores", wrong, expected.size());
}

std::string compare_values(const Model& model, const ModelFile& file, const std::vector<double>& value,
                           const std::vector<double>& expected) {
  const Bound bound = bound_of(model, file);
  std::size_t wrong = 0;
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // ONNX Runtime rounds its scores to float32.
    const double x = model.format == "onnx" ? static_cast<double>(static_cast<float>(value[i])) : value[i];
    const bool narrow = model.score_type == ScalarType::Float32 || model.format == "onnx";
    const std::int64_t apart =
        narrow ? ulps(static_cast<float>(x), static_cast<float>(expected[i])) : ulps(x, expected[i]);
    const double room = bound.absolute * std::max(1.0, std::abs(expected[i]));
    const bool right = bound.absolute != 0 ? std::abs(x - expected[i]) <= room : apart <= bound.ulps;
    // CatBoost's exponential of minus infinity, the score of classes that training did not see, is 0 or nearly 0.
    const bool nearly_zero = model.trainer == "catboost" && x == 0 && expected[i] > 0 && expected[i] < 1e-307;
    if (nearly_zero) continue;
    wrong += !right;
    worst = std::max(worst, apart);
  }
  if (wrong == 0) return "";
  return count_text("values", wrong, expected.size()) + ", by up to " + std::to_string(worst) +
         " units in the last place";
}

bool is_number(const std::string& text) { return text.find_first_not_of("-0123456789") == std::string::npos; }

/// Compares labels. The trainer's are the classes' own labels, or their numbers where those are texts. Those of
/// scikit-learn are always numbers if they are not texts; anomalies are -1, and other rows 1. Labels of several outputs
/// are the classes' own.
std::string compare_labels(const Model& model, const std::vector<std::int64_t>& labels,
                           const std::vector<std::string>& expected) {
  const auto& names = model.class_labels;
  const bool signs = std::find(expected.begin(), expected.end(), "-1") != expected.end();
  const bool named = !names.empty() && !signs &&
                     (!is_number(expected[0]) || (is_number(names[0]) && model.format != "skops") ||
                      model.class_rule == ClassRule::ArgmaxOfEach);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t label = signs ? 1 - 2 * labels[i] : labels[i];
    wrong += expected[i] != (named ? names.at(static_cast<std::size_t>(label)) : std::to_string(label));
  }
  return wrong == 0 ? "" : count_text("labels", wrong, expected.size());
}

std::string compare_leaves(const std::vector<std::int32_t>& leaves, const std::vector<double>& expected) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) wrong += static_cast<double>(leaves[i]) != expected[i];
  return wrong == 0 ? "" : count_text("leaf numbers", wrong, expected.size());
}

/// Returns how many rows of a model to predict, so that large models stay quick.
std::size_t affordable_rows(const Model& model) {
  constexpr std::size_t walks = 3'000'000;
  return 100 + walks / std::max<std::size_t>(model.trees.size(), 1);
}

}  // namespace

std::string difference_from_trainer(const Model& model, const ModelFile& file) {
  const Rows rows = read_rows(file.path, model);
  const std::size_t count = std::min(rows.count, affordable_rows(model));
  const auto predicted = reference_predict(model, std::span(rows.values).first(count * model.num_features),
                                           count, {.hashed_rows = rows.hashed});
  if (!predicted.ok()) return predicted.error().text();
  const AnswerFiles files = answer_files(model, file);
  std::size_t compared_files = 0;
  // Returns how a file's answers differ from the `found` predicted numbers, by `compare`. The file may lack the last
  // rows.
  const auto compared = [&](const fs::path& path, std::size_t found, auto&& read,
                            auto&& compare) -> std::string {
    if (path.empty() || !fs::exists(path)) return "";
    ++compared_files;
    auto expected = read(path);
    const std::size_t width = found / count;
    if (width == 0 || expected.empty() || expected.size() % width != 0 ||
        expected.size() > rows.count * width)
      return path.filename().string() + " has " + std::to_string(expected.size()) + " answers for " +
             std::to_string(rows.count) + " rows of " + std::to_string(width);
    expected.resize(std::min(expected.size(), found));
    return compare(expected);
  };
  const bool pairs = has_votes(model) && model.num_outputs == 2;
  std::string out =
      compared(files.raw, predicted->raw.size() / (pairs ? 2 : 1), read_numbers,
               [&](const auto& wanted) { return compare_raw(model, file, predicted->raw, wanted); });
  if (!out.empty()) return out;
  out = compared(files.value, predicted->value.size(), read_numbers,
                 [&](const auto& wanted) { return compare_values(model, file, predicted->value, wanted); });
  if (!out.empty()) return out;
  if (model.class_rule != ClassRule::None)
    out = compared(files.labels, predicted->label.size(), read_texts,
                   [&](const auto& wanted) { return compare_labels(model, predicted->label, wanted); });
  if (!out.empty()) return out;
  out = compared(files.leaves, predicted->leaf.size(), read_numbers,
                 [&](const auto& wanted) { return compare_leaves(predicted->leaf, wanted); });
  if (!out.empty()) return out;
  return compared_files != 0 ? "" : "the folder has no answers of the trainer";
}

}  // namespace forestvm::support
