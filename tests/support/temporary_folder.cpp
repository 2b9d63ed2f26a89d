// See temporary_folder.hpp.
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

namespace forestvm::support {

TemporaryFolder::TemporaryFolder() {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = "forestvm_";
  if (test != nullptr) name += std::string(test->test_suite_name()) + "_" + test->name() + "_";
  std::replace(name.begin(), name.end(), '/', '_');  // tests with parameters have a / in their names
  std::string path = (std::filesystem::temp_directory_path() / (name + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path);
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!kept_) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, std::string_view content) const {
  std::ofstream(file(name), std::ios::binary) << content;
  return file(name);
}

std::string TemporaryFolder::keep() {
  kept_ = true;
  return path_.string();
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace forestvm::support
