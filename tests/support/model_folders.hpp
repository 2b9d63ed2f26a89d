// Folders with a trainer's model and the trainer's own answers: those that the repository carries and those
// of the zoo. In: nothing. Out: models to load, rows as the trainer saw them, what it said of them.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

struct ModelFile {
  std::string name;  ///< folder and file, as tests are named after it
  std::filesystem::path path;

  /// GoogleTest's listing shows the name.
  friend void PrintTo(const ModelFile& file, std::ostream* out) { *out << file.name; }
};

/// Model files, of any trainer that we read, of the folders inside `parent` whose names start with `prefix`,
/// in order; empty without it.
std::vector<ModelFile> model_files(const std::filesystem::path& parent, const std::string& prefix);

/// The zoo; FORESTVM_ZOO of the environment, or of the build. May not exist.
std::filesystem::path zoo();

/// Score is the trainer's type: float for XGBoost, double for LightGBM.
template <class Score>
struct AnswersOf {
  std::size_t count = 0, features = 0;
  std::vector<float> rows;  ///< NaN where the trainer took a value as missing
  std::size_t raw_width = 0, value_width = 0;
  std::vector<Score> raw, value;
};
using Answers = AnswersOf<float>;

/// Reads what lies beside a model file; throws std::runtime_error if it is damaged, or of another type.
template <class Score = float>
AnswersOf<Score> read_answers(const std::filesystem::path& model_file);

/// The same for a model of any type of scores: float64 answers rounded once, as float32 output is.
Answers read_float_answers(const std::filesystem::path& model_file, ScalarType type);

}  // namespace forestvm::support
