// A test's own folder for the files that it writes. Its name has the test's name, to identify a folder that a
// crash left behind, and letters that no other process uses, so that two runs of one test can be under way at
// once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace forestvm::support {

/// A folder for temporary files (in TMPDIR, otherwise /tmp) that exists until the object is destroyed.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Returns the path of a file in the folder.
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view content) const;
  /// Keeps the folder for inspection and returns its path.
  std::string keep();

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

/// Returns the bytes of a file; empty if there is none.
std::string content_of(const std::filesystem::path& path);

}  // namespace forestvm::support
