// Copies of the repository's YDF models, to be changed.
#pragma once

#include <string>

#include <forestvm/load.hpp>

#include "support/temporary_folder.hpp"

namespace forestvm::test {

/// A copy of a model directory of tests/data/ydf, which a test may change.
class YdfCopy {
 public:
  explicit YdfCopy(const std::string& name);

  std::string bytes(const std::string& file) const;
  void write(const std::string& file, const std::string& bytes) const;
  void remove(const std::string& file) const;
  Result<Model> load(const LoadLimits& limits = {}) const {
    return load_model(folder_.path().string(), limits);
  }
  /// Returns the text of the error; a model that loads fails the test.
  std::string refusal() const;
  std::string path() const { return folder_.path().string(); }

 private:
  support::TemporaryFolder folder_;
};

// The files of most models.
inline constexpr const char* kYdfHeader = "header.pb";
inline constexpr const char* kYdfColumns = "data_spec.pb";
inline constexpr const char* kYdfBoosted = "gradient_boosted_trees_header.pb";
inline constexpr const char* kYdfNodes = "nodes-00000-of-00001";

}  // namespace forestvm::test
