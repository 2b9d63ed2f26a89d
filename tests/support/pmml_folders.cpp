// See pmml_folders.hpp.
#include "support/pmml_folders.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include <forestvm/internal/reference.hpp>

#include "support/floats.hpp"
#include "support/model_folders.hpp"
#include "support/text_rows.hpp"

namespace forestvm::support {
namespace {

namespace fs = std::filesystem;

/// Returns the columns that hold the model's values, in its order.
std::vector<std::size_t> value_columns(const std::vector<std::string>& names, const Model& model) {
  const auto is_probability = [](const std::string& name) {
    return name.starts_with("probability") || name.starts_with("Probability");
  };
  std::vector<std::size_t> columns;
  if (model.pair != Pair::None || model.num_outputs > 1) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (is_probability(names[i])) columns.push_back(i);
    const auto index = [&](std::size_t column) {
      for (std::size_t k = 0; k < model.class_labels.size(); ++k)
        if (names[column].ends_with("(" + model.class_labels[k] + ")")) return k;
      return column;
    };
    std::sort(columns.begin(), columns.end(),
              [&](std::size_t a, std::size_t b) { return index(a) < index(b); });
    return columns;
  }
  const auto decision = std::find(names.begin(), names.end(), "decisionFunction");
  return {decision == names.end() ? 0 : static_cast<std::size_t>(decision - names.begin())};
}

/// Returns how far apart two values are, in units in the last place of the scores' type.
std::int64_t units_apart(ScalarType score, double a, double b) {
  return score == ScalarType::Float32 ? ulps(static_cast<float>(a), static_cast<float>(b)) : ulps(a, b);
}

/// Returns whether a label of the model and a cell of JPMML's are one: JPMML writes whole numbers as 1 or 1.0.
bool same_label(const std::string& label, const std::string& cell) {
  return label == cell || label + ".0" == cell;
}

}  // namespace

std::vector<PmmlFolder> pmml_folders(const fs::path& parent) {
  std::vector<PmmlFolder> out;
  if (!fs::exists(parent)) return out;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent))
    if (fs::exists(entry.path() / "model.pmml") && entry.path().filename() != "pmml_cat_regr")
      out.push_back({entry.path().filename().string(), entry.path()});
  std::sort(out.begin(), out.end(), [](const PmmlFolder& a, const PmmlFolder& b) { return a.name < b.name; });
  return out;
}

std::vector<PmmlFolder> pmml_folders() {
  std::vector<PmmlFolder> out = pmml_folders(fs::path(FORESTVM_TEST_DATA) / "pmml");
  for (PmmlFolder& folder : pmml_folders(zoo() / "formats")) out.push_back(std::move(folder));
  return out;
}

PmmlAnswers read_pmml_answers(const PmmlFolder& folder, const Model& model) {
  PmmlAnswers answers;
  answers.rows = read_text_rows(folder.path / "rows.csv", model);
  answers.count = answers.rows.size() / model.num_features;
  std::ifstream file(folder.path / "expected.csv");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::size_t at = 0;
  const std::vector<std::string> names = take_csv_line(text, at);
  const std::vector<std::size_t> columns = value_columns(names, model);
  const auto label = std::find(names.begin(), names.end(), "predict(outlier)");
  while (at < text.size()) {
    const std::vector<std::string> cells = take_csv_line(text, at);
    for (const std::size_t column : columns)
      answers.value.push_back(cells.at(column).empty() ? std::numeric_limits<double>::quiet_NaN()
                                                       : std::stod(cells[column]));
    if (model.class_rule != ClassRule::None)
      answers.labels.push_back(label == names.end() ? cells[0]
                                                    : cells[static_cast<std::size_t>(label - names.begin())]);
  }
  const std::size_t width = model.pair == Pair::None ? model.num_outputs : 2;
  if (answers.value.size() != answers.count * width)
    throw std::runtime_error("other answers than the model's in " + folder.path.string());
  return answers;
}

std::string difference_from_jpmml(const PmmlFolder& folder, const Model& model) {
  const PmmlAnswers expected = read_pmml_answers(folder, model);
  const auto actual = reference_predict(model, expected.rows, expected.count);
  if (!actual.ok()) return actual.error().text();
  if (actual->value.size() != expected.value.size() || actual->label.size() != expected.labels.size())
    return "other numbers of values or labels than JPMML's";
  // JPMML's exp, and pow in its float32, are Java's: they may differ by 1 unit, and what follows by one more.
  const bool exact = model.transform == Transform::Identity || model.transform == Transform::Average;
  for (std::size_t i = 0; i < expected.value.size(); ++i)
    if (units_apart(model.score_type, actual->value[i], expected.value[i]) > (exact ? 0 : 2))
      return "row " + std::to_string(i / actual->value_width) + ": " + std::to_string(actual->value[i]) +
             " instead of " + std::to_string(expected.value[i]);
  for (std::size_t i = 0; i < expected.labels.size(); ++i) {
    const std::string& label = model.class_labels[static_cast<std::size_t>(actual->label[i])];
    if (!std::isnan(expected.value[i * actual->value_width]) && !same_label(label, expected.labels[i]))
      return "row " + std::to_string(i) + ": " + label + " instead of " + expected.labels[i];
  }
  return "";
}

}  // namespace forestvm::support
