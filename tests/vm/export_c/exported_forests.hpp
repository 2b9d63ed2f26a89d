// Compares exported C with the VM: the system's compiler compiles it with every warning an error, and what its
// functions write must have the VM's bits. Several programs share a source file, so that the compiler starts only a
// few times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/export.hpp>

namespace forestvm::test {

/// Compiles a model with exact and approximate contributions, or without them where the model has none.
Result<Compiled> compile_with_kinds(const Model& model, const Schedule& schedule,
                                    CompileOptions options = {});

/// Returns whether a compiler with its options, such as "cc -O1", makes programs.
bool compiles(const std::string& command);

class ExportedForests {
 public:
  /// Adds a program and rows for it: rows x num_features numbers, with codes of categories in hashed features. A
  /// program that compares in float32 gets them rounded. Fails the current test if the program is not exported.
  void add(const Program& program, ExportOptions options, const std::string& what, std::vector<double> rows);

  std::size_t size() const { return entries_.size(); }
  /// Returns the size of the C source in bytes.
  std::size_t source_bytes() const { return source_.size(); }

  /// Compiles and runs the code, and fails the current test where it differs from the VM.
  void compare(const std::string& compiler = "cc -O1") const;

 private:
  struct Entry {
    Program program;
    std::string prefix, what;
    std::vector<double> rows;
  };

  static std::string calls(const Entry& entry);

  std::string source_;
  std::vector<Entry> entries_;
};

}  // namespace forestvm::test
