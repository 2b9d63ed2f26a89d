#include "support/pmml_folders.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "support/model_folders.hpp"
#include "support/text_rows.hpp"

namespace forestvm::support {
namespace {

namespace fs = std::filesystem;

void append(const fs::path& parent, std::vector<PmmlFolder>& out) {
  if (!fs::exists(parent)) return;
  const std::size_t before = out.size();
  for (const fs::directory_entry& entry : fs::directory_iterator(parent))
    if (fs::exists(entry.path() / "model.pmml") && entry.path().filename() != "pmml_cat_regr")
      out.push_back({entry.path().filename().string(), entry.path()});
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
            [](const PmmlFolder& a, const PmmlFolder& b) { return a.name < b.name; });
}

/// Returns the columns that hold the model's values, in its order.
std::vector<std::size_t> value_columns(const std::vector<std::string>& names, const Model& model) {
  const auto is_probability = [](const std::string& name) {
    return name.starts_with("probability") || name.starts_with("Probability");
  };
  std::vector<std::size_t> columns;
  if (model.pair != Pair::None || model.num_outputs > 1) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (is_probability(names[i])) columns.push_back(i);
    const auto place = [&](std::size_t column) {
      for (std::size_t k = 0; k < model.class_labels.size(); ++k)
        if (names[column].ends_with("(" + model.class_labels[k] + ")")) return k;
      return column;
    };
    std::sort(columns.begin(), columns.end(),
              [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    return columns;
  }
  const auto decision = std::find(names.begin(), names.end(), "decisionFunction");
  return {decision == names.end() ? 0 : static_cast<std::size_t>(decision - names.begin())};
}

}  // namespace

std::vector<PmmlFolder> pmml_folders() {
  std::vector<PmmlFolder> out;
  append(fs::path(FORESTVM_TEST_DATA) / "pmml", out);
  append(zoo() / "formats", out);
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

}  // namespace forestvm::support
