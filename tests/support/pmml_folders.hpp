// Folders with a PMML model and JPMML-Evaluator's answers, in the repository and the zoo.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

struct PmmlFolder {
  std::string name;
  std::filesystem::path path;

  /// Prints the name in GoogleTest's listing.
  friend void PrintTo(const PmmlFolder& folder, std::ostream* out) { *out << folder.name; }
};

/// Returns the folders inside `parent`, in order, except those with CatBoost's export; none if `parent` does not exist.
std::vector<PmmlFolder> pmml_folders(const std::filesystem::path& parent);

/// Returns the folders of the repository, then those of the zoo if it is there.
std::vector<PmmlFolder> pmml_folders();

struct PmmlAnswers {
  std::vector<double> rows;
  std::size_t count = 0;
  std::vector<double> value;        ///< NaN where a row has no answer.
  std::vector<std::string> labels;  ///< Text of each row's label; none if the model is a regression.
};

/// Reads the rows and JPMML's answers as values of the model. Throws std::runtime_error if they are damaged.
PmmlAnswers read_pmml_answers(const PmmlFolder& folder, const Model& model);

/// Says how the reference predictor's answers differ from JPMML's, for all rows; an empty text if they do not.
std::string difference_from_jpmml(const PmmlFolder& folder, const Model& model);

}  // namespace forestvm::support
