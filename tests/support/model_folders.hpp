// Folders with a trainer's model and the trainer's own answers, from the repository and the zoo. Out: models
// to load, rows as the trainer saw them, and its answers.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

struct ModelFile {
  std::string name;  ///< folder and file, used in the names of tests
  std::filesystem::path path;

  /// Prints the name in GoogleTest's listing.
  friend void PrintTo(const ModelFile& file, std::ostream* out) { *out << file.name; }
};

/// Returns the model files, of all supported trainers, in the folders inside `parent` whose names
/// start with `prefix`, in order; none if `parent` does not exist.
std::vector<ModelFile> model_files(const std::filesystem::path& parent, const std::string& prefix);

/// Returns the ONNX files in the folders inside `parent`, in order.
std::vector<ModelFile> onnx_files(const std::filesystem::path& parent);

/// Returns CatBoost's model files, binary and JSON, in the folders inside `parent` whose names start with `prefix`.
std::vector<ModelFile> catboost_files(const std::filesystem::path& parent, const std::string& prefix);

/// Returns the Treelite checkpoints in the folders inside `parent`, in order.
std::vector<ModelFile> treelite_files(const std::filesystem::path& parent);

/// Returns the YDF model directories in the folders inside `parent`, in order.
std::vector<ModelFile> ydf_folders(const std::filesystem::path& parent);

/// Returns the zoo's folder: FORESTVM_ZOO of the environment, otherwise of the build. It may not exist.
std::filesystem::path zoo();

/// A trainer's answers. Score is the trainer's type: float for XGBoost, double for LightGBM. Raw scores may be
/// absent.
template <class Score>
struct AnswersOf {
  std::size_t count = 0, features = 0;
  std::vector<float> rows;  ///< NaN where the trainer took a value as missing
  std::size_t raw_width = 0, value_width = 0;
  std::vector<Score> raw, value;
};
using Answers = AnswersOf<float>;

/// Reads the answers beside a model file. Rows of text become numbers as the model says, which is needed for them only.
/// Throws std::runtime_error if they are damaged or of another type.
template <class Score = float>
AnswersOf<Score> read_answers(const std::filesystem::path& model_file, const Model* model = nullptr);

/// Reads the answers of a model with scores of either type; float64 scores are rounded once, as float32
/// output is.
Answers read_float_answers(const std::filesystem::path& model_file, const Model& model);

}  // namespace forestvm::support
