// A test's own folder for the files that it writes. Its name holds the test's name, for whoever finds one
// that a crash left behind, and letters that no other process uses, so that the same test can run twice at
// once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace forestvm::support {

/// Exists, under the folder for temporary files (TMPDIR, or else /tmp), until the object is destroyed.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The path of a file in it.
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view content) const;
  /// Lets the folder stay, to be looked at, and returns its path.
  std::string keep();

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

/// The bytes of a file; empty if there is none.
std::string content_of(const std::filesystem::path& path);

}  // namespace forestvm::support
