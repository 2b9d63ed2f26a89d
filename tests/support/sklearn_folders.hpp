// Folders with a scikit-learn model as .skops and scikit-learn's answers, in the repository and the zoo.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace forestvm::support {

struct SklearnFolder {
  std::string name;
  std::filesystem::path model;
  std::vector<double> rows;  ///< count x features
  std::size_t count = 0, features = 0;
  std::vector<double> value,
      raw;  ///< Answers of predict_proba, predict or decision_function, row by row; may be empty.
  std::vector<std::int64_t> leaves, labels;  ///< May be empty. Labels are indices.

  /// Prints the name in GoogleTest's listing.
  friend void PrintTo(const SklearnFolder& folder, std::ostream* out) { *out << folder.name; }
};

/// Reads all folders: those of the repository, then those of the zoo if it is there.
std::vector<SklearnFolder> sklearn_folders();

}  // namespace forestvm::support
