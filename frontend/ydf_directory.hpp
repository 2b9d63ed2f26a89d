// Reads the files of a YDF model directory. In: a path. Out: the bytes of each file that is asked for, unpacked, all
// within one limit.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// The bytes of a file of nodes, unpacked. Blobs begin at the offset `begin`; each is preceded by its length.
struct YdfBlobs {
  std::vector<std::byte> bytes;
  std::size_t begin = 0;
};

class YdfDirectory {
 public:
  /// Opens the directory. Refuses one that holds no YDF model, or several. TF-DF gives all files of a model a prefix.
  static Result<YdfDirectory> open(const std::string& path, const LoadLimits& limits);

  /// Reads the file with this name behind the prefix.
  Result<std::vector<std::byte>> read(const std::string& name);
  Result<YdfBlobs> read_blobs(const std::string& name);
  /// Returns `error` with the file's name before its place.
  Error in_file(const std::string& name, Error error) const;

 private:
  YdfDirectory(std::string path, std::string prefix, const LoadLimits& limits)
      : path_(std::move(path)), prefix_(std::move(prefix)), limits_(limits), bytes_left_(limits.max_bytes) {}

  std::string path_, prefix_;
  LoadLimits limits_;
  std::size_t bytes_left_;
};

}  // namespace forestvm::frontend
