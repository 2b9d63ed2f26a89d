// Finds models and reads the trainers' answers.
#include "support/model_folders.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <utility>

#include "support/npy.hpp"

namespace forestvm::support {

namespace fs = std::filesystem;

namespace {

std::vector<ModelFile> files_named(const fs::path& parent, const std::string& prefix,
                                   std::initializer_list<const char*> names) {
  std::vector<ModelFile> files;
  if (!fs::exists(parent)) return files;
  for (const fs::directory_entry& folder : fs::directory_iterator(parent)) {
    const std::string name = folder.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    for (const char* file : names)
      if (fs::exists(folder.path() / file))
        files.push_back({name + "_" + std::string(file).substr(6), folder.path() / file});
  }
  std::sort(files.begin(), files.end(),
            [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace

std::vector<ModelFile> model_files(const fs::path& parent, const std::string& prefix) {
  return files_named(parent, prefix, {"model.json", "model.ubj", "model.ubj.gz", "model.txt"});
}

std::vector<ModelFile> onnx_files(const fs::path& parent) {
  return files_named(parent, "", {"model.onnx", "model_v5.onnx"});
}

std::vector<ModelFile> catboost_files(const fs::path& parent, const std::string& prefix) {
  return files_named(parent, prefix, {"model.cbm", "model.json"});
}

fs::path zoo() {
  const char* given = std::getenv("FORESTVM_ZOO");
  return given == nullptr ? FORESTVM_ZOO : given;
}

template <class Score>
AnswersOf<Score> read_answers(const fs::path& model_file) {
  const fs::path folder = model_file.parent_path();
  const auto rows = read_npy<float>(folder / "rows.npy");
  const auto raw = read_npy<Score>(folder / "expected_raw.npy");
  const auto value = read_npy<Score>(folder / "expected.npy");
  AnswersOf<Score> answers{rows.rows(),     rows.columns(), rows.data, raw.columns(),
                           value.columns(), raw.data,       value.data};
  std::ifstream file(folder / "meta.json");
  const std::string meta(std::istreambuf_iterator<char>(file), {});
  const std::size_t at = meta.find("\"missing\": \"");
  if (at == std::string::npos) return answers;
  const float missing = std::strtof(meta.c_str() + at + 12, nullptr);
  for (float& x : answers.rows)
    if (x == missing) x = std::numeric_limits<float>::quiet_NaN();
  return answers;
}

template AnswersOf<float> read_answers(const fs::path& model_file);
template AnswersOf<double> read_answers(const fs::path& model_file);

Answers read_float_answers(const fs::path& model_file, ScalarType type) {
  if (type == ScalarType::Float32) return read_answers<float>(model_file);
  AnswersOf<double> wide = read_answers<double>(model_file);
  return {wide.count,
          wide.features,
          std::move(wide.rows),
          wide.raw_width,
          wide.value_width,
          {wide.raw.begin(), wide.raw.end()},
          {wide.value.begin(), wide.value.end()}};
}

}  // namespace forestvm::support
