// The linear functions of a program's leaves, as backends compute them: see core/leaf_outputs.hpp. The values that some
// function reads are copied once for each row, for all trees. Implemented by vm/program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/leaf_outputs.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

/// Returns the features that some leaf's function reads, ascending.
std::vector<std::uint32_t> leaf_features(const Program& program);

class LeafFunctions {
 public:
  /// Makes an object without functions.
  LeafFunctions() = default;
  /// Reads the sections of `program`. Some copy of the program must live as long as this object.
  explicit LeafFunctions(const Program& program);

  bool empty() const { return functions_.empty(); }

  /// Returns the features that functions read, ascending.
  std::span<const std::uint32_t> features() const { return features_; }
  /// Returns the terms of all functions.
  std::span<const IndexedTerm> terms() const { return terms_; }
  /// Returns the functions in the form from which leaf_output computes. The result refers to this object.
  LeafOutputs outputs() const {
    return {functions_.data(), terms_.data(), static_cast<std::uint32_t>(functions_.size()),
            static_cast<std::uint32_t>(features_.size())};
  }

 private:
  std::span<const LeafFunction> functions_;
  std::vector<IndexedTerm> terms_;
  std::vector<std::uint32_t> features_;
};

}  // namespace forestvm
