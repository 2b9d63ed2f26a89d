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

/// Returns the model files of every format that is read, in the folders inside `parent`, in order; none if `parent`
/// does not exist.
std::vector<ModelFile> every_model(const std::filesystem::path& parent);

/// Returns the models of tests/data, of every format that is read. Models that are refused are left out.
std::vector<ModelFile> repository_models();

/// Returns the files of XGBoost and LightGBM in the folders inside `parent` whose names start with `prefix`, in order.
std::vector<ModelFile> model_files(const std::filesystem::path& parent, const std::string& prefix);

/// Returns the ONNX files in the folders inside `parent`, in order.
std::vector<ModelFile> onnx_files(const std::filesystem::path& parent);

/// Returns CatBoost's model files, binary and JSON, in the folders inside `parent` whose names start with `prefix`.
std::vector<ModelFile> catboost_files(const std::filesystem::path& parent, const std::string& prefix);

/// Returns the Treelite checkpoints in the folders inside `parent`, in order.
std::vector<ModelFile> treelite_files(const std::filesystem::path& parent);

/// Returns the YDF model directories in the folders inside `parent`, in order.
std::vector<ModelFile> ydf_folders(const std::filesystem::path& parent);

/// Returns scikit-learn's models in the folders inside `parent`, in order.
std::vector<ModelFile> skops_files(const std::filesystem::path& parent);

/// Returns the zoo's folder: FORESTVM_ZOO of the environment, otherwise of the build. It may not exist.
std::filesystem::path zoo();

/// Rows as the trainer saw them. float64 holds the numbers of every type.
struct Rows {
  std::size_t count = 0;
  std::vector<double> values;  ///< NaN where the trainer took a value as missing.
  bool hashed = false;         ///< True if hashed features hold codes of texts: see Model::hashed_features.
};

/// Reads the rows beside a model file. Throws std::runtime_error if they are damaged.
Rows read_rows(const std::filesystem::path& model_file, const Model& model);

/// A trainer's answers. Score is the trainer's type: float for XGBoost, double for LightGBM. Raw scores may be
/// absent.
template <class Score>
struct AnswersOf {
  std::size_t count = 0, features = 0;
  std::vector<float> rows;    ///< NaN where the trainer took a value as missing.
  std::vector<double> codes;  ///< Used instead of `rows` if rows hold codes of texts: see Rows::hashed.
  std::size_t raw_width = 0, value_width = 0;
  std::vector<Score> raw, value;
};
using Answers = AnswersOf<float>;

/// Reads the answers beside a model file. Throws std::runtime_error if they are damaged or of another type.
template <class Score = float>
AnswersOf<Score> read_answers(const std::filesystem::path& model_file, const Model& model);

/// Reads the answers of a model with scores of either type; float64 scores are rounded once, as float32
/// output is.
Answers read_float_answers(const std::filesystem::path& model_file, const Model& model);

}  // namespace forestvm::support
