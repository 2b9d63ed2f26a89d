// The steps of parts of a program: bounds on the work of a row, which the verifier adds up on each way through the
// code.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm::bytecode {

/// Returns a + b, or UINT64_MAX if that is larger.
std::uint64_t add_capped(std::uint64_t a, std::uint64_t b);
/// Returns a * b, or UINT64_MAX if that is larger.
std::uint64_t multiply_capped(std::uint64_t a, std::uint64_t b);

/// The costs of walks through a group's trees.
struct GroupCosts {
  std::vector<std::uint64_t> before;  ///< Steps of all trees before each one.
  std::uint64_t most = 0;             ///< Steps of the tree that takes the most.
  /// True if walks read codes. Walks through trees of one leaf do not.
  bool reads_codes = false;
};

GroupCosts costs_of(const Program& program, const GroupDesc& group);

/// Returns the most steps in which a row's derived columns are computed: parts of keys, slots and terms.
std::uint64_t derive_steps(const Program& program);

/// Returns the most steps in which the functions of a row's leaves are computed: each feature's value is copied, and
/// each tree has a function.
std::uint64_t function_steps(const Program& program);

/// Returns the most steps in which a row's contributions or interactions, whichever `output` is, are computed from the
/// paths of all trees and written.
std::uint64_t explain_steps(const Program& program, OutputKind output);

/// Returns the most steps in which what a row's leaves attribute to features is added and written.
std::uint64_t attribute_steps(const Program& program);

/// Returns the most steps that a row takes in the instruction `quantiles`, for each quantile of a call.
std::uint64_t quantile_steps(const Program& program);

}  // namespace forestvm::bytecode
