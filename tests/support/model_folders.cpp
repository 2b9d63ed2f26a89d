// Finds models and reads the trainers' answers.
#include "support/model_folders.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "support/npy.hpp"
#include "support/text_rows.hpp"

namespace forestvm::support {

namespace fs = std::filesystem;

namespace {

/// Folders of YDF's models that are refused. tests/frontend/test_ydf_load.cpp reads them.
constexpr std::string_view kRefused[] = {"0.16.1_multinomial_two", "0.16.1_slow_only"};

std::vector<ModelFile> files_named(const fs::path& parent, const std::string& prefix,
                                   std::initializer_list<const char*> names) {
  std::vector<ModelFile> files;
  if (!fs::exists(parent)) return files;
  for (const fs::directory_entry& folder : fs::directory_iterator(parent)) {
    const std::string name = folder.path().filename().string();
    if (!name.starts_with(prefix) ||
        std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused))
      continue;
    for (const char* file : names)
      if (fs::exists(folder.path() / file)) {
        const std::string ending = fs::path(file).extension().string();
        files.push_back(
            {ending.empty() ? name : name + "_" + std::string(file).substr(6), folder.path() / file});
      }
  }
  std::sort(files.begin(), files.end(),
            [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace

std::vector<ModelFile> every_model(const fs::path& parent) {
  return files_named(parent, "",
                     {"model.json", "model.ubj", "model.ubj.gz", "model.txt", "model.cbm", "model.skops",
                      "model.onnx", "model_v5.onnx", "model.treelite", "model"});
}

std::vector<ModelFile> repository_models() {
  std::vector<ModelFile> files;
  for (const char* folder :
       {"", "xgboost_versions", "lightgbm", "catboost", "skops", "onnx", "treelite", "ydf"})
    for (ModelFile& file : every_model(fs::path(FORESTVM_TEST_DATA) / folder))
      files.push_back(std::move(file));
  return files;
}

std::vector<ModelFile> model_files(const fs::path& parent, const std::string& prefix) {
  return files_named(parent, prefix, {"model.json", "model.ubj", "model.ubj.gz", "model.txt"});
}

std::vector<ModelFile> onnx_files(const fs::path& parent) {
  return files_named(parent, "", {"model.onnx", "model_v5.onnx"});
}

std::vector<ModelFile> catboost_files(const fs::path& parent, const std::string& prefix) {
  return files_named(parent, prefix, {"model.cbm", "model.json"});
}

std::vector<ModelFile> treelite_files(const fs::path& parent) {
  return files_named(parent, "", {"model.treelite"});
}

std::vector<ModelFile> skops_files(const fs::path& parent) {
  return files_named(parent, "", {"model.skops"});
}

std::vector<ModelFile> ydf_folders(const fs::path& parent) { return files_named(parent, "", {"model"}); }

fs::path zoo() {
  const char* given = std::getenv("FORESTVM_ZOO");
  return given == nullptr ? FORESTVM_ZOO : given;
}

Rows read_rows(const fs::path& model_file, const Model& model) {
  const fs::path folder = model_file.parent_path();
  Rows rows;
  if (fs::exists(folder / "rows.npy")) {
    rows.values = read_numbers(folder / "rows.npy");
  } else {
    rows.values = read_text_rows(folder / "rows.csv", model);
    rows.hashed = !model.hashed_features.empty();
  }
  rows.count = rows.values.size() / model.num_features;
  std::ifstream file(folder / "meta.json");
  const std::string meta(std::istreambuf_iterator<char>(file), {});
  const std::size_t at = meta.find("\"missing\": \"");
  if (at == std::string::npos) return rows;
  const auto missing = static_cast<double>(std::strtof(meta.c_str() + at + 12, nullptr));
  for (double& x : rows.values)
    if (x == missing) x = std::numeric_limits<double>::quiet_NaN();
  return rows;
}

template <class Score>
AnswersOf<Score> read_answers(const fs::path& model_file, const Model& model) {
  const fs::path folder = model_file.parent_path();
  const bool treelite = model_file.extension() == ".treelite";
  AnswersOf<Score> answers;
  Rows rows = read_rows(model_file, model);
  answers.count = rows.count;
  answers.features = model.num_features;
  if (rows.hashed)
    answers.codes = std::move(rows.values);
  else
    answers.rows.assign(rows.values.begin(), rows.values.end());
  auto value = read_npy<Score>(folder / (treelite ? "expected_treelite.npy" : "expected.npy"));
  answers.value_width = value.columns();
  answers.value = std::move(value.data);
  // The zoo's raw scores of YDF are the trainer's for boosted trees only.
  const bool trainers =
      !fs::is_directory(model_file) || fs::exists(model_file / "gradient_boosted_trees_header.pb");
  if (!treelite && trainers && fs::exists(folder / "expected_raw.npy")) {
    auto raw = read_npy<Score>(folder / "expected_raw.npy");
    answers.raw_width = raw.columns();
    answers.raw = std::move(raw.data);
  }
  return answers;
}

template AnswersOf<float> read_answers(const fs::path& model_file, const Model& model);
template AnswersOf<double> read_answers(const fs::path& model_file, const Model& model);

Answers read_float_answers(const fs::path& model_file, const Model& model) {
  if (model.score_type == ScalarType::Float32) return read_answers<float>(model_file, model);
  AnswersOf<double> wide = read_answers<double>(model_file, model);
  return {wide.count,
          wide.features,
          std::move(wide.rows),
          std::move(wide.codes),
          wide.raw_width,
          wide.value_width,
          {wide.raw.begin(), wide.raw.end()},
          {wide.value.begin(), wide.value.end()}};
}

}  // namespace forestvm::support
