// Runs a program as native code: exports it to C, compiles that with the system's compiler, and loads it into this
// process. forestvm diff compares the VM with it. Nothing else needs a compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/io/rows.hpp"

namespace forestvm::cli {

class NativeForest {
 public:
  /// Exports, compiles and loads the program. Returns an Environment error if there is no C compiler called cc, or
  /// if it fails.
  static Result<NativeForest> build(const Program& program);

  /// Returns rows x num_outputs raw scores. Float64 scores are rounded to float32.
  std::vector<float> raw(const Rows& rows) const;
  /// Returns rows x num_trees leaf numbers.
  std::vector<std::int32_t> leaves(const Rows& rows) const;

 private:
  struct Library;
  NativeForest(Program program, std::shared_ptr<Library> library)
      : program_(std::move(program)), library_(std::move(library)) {}

  Program program_;
  std::shared_ptr<Library> library_;
};

}  // namespace forestvm::cli
