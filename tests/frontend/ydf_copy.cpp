// See ydf_copy.hpp.
#include "ydf_copy.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace forestvm::test {

namespace fs = std::filesystem;

YdfCopy::YdfCopy(const std::string& name) {
  for (const fs::directory_entry& file :
       fs::directory_iterator(fs::path(FORESTVM_TEST_DATA) / "ydf" / ("0.16.1_" + name) / "model"))
    write(file.path().filename().string(), support::content_of(file.path()));
}

std::string YdfCopy::bytes(const std::string& file) const {
  return support::content_of(folder_.path() / file);
}

void YdfCopy::write(const std::string& file, const std::string& bytes) const {
  remove(file);  // a file that is cut and written again is flushed to the disk at once by some file systems
  folder_.write(file, bytes);
}

void YdfCopy::remove(const std::string& file) const { fs::remove(folder_.path() / file); }

std::string YdfCopy::refusal() const {
  const Result<Model> model = load();
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : model.error().text();
}

}  // namespace forestvm::test
