// Forests with covers, and the contributions and interactions that their programs give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/model.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "dice.hpp"

namespace forestvm::test {

/// Compiles a model to a program with contributions, and with interactions unless that makes large matrices.
Result<Program> compiled(const Model& model, const std::string& schedule = "auto");

/// Predicts rows in float64.
std::vector<double> explained(const Program& program, OutputKind kind, const AnyRows& rows,
                              const BackendOptions& options = {});
std::vector<double> contributions(const Program& program, const AnyRows& rows,
                                  const BackendOptions& options = {});
std::vector<double> interactions(const Program& program, const AnyRows& rows,
                                 const BackendOptions& options = {});

/// Gives every node a cover: whole numbers that add up, sometimes zero. If `odd`, some do not add up.
void cover(Dice& dice, Tree& tree, std::size_t at, std::size_t rows, bool odd = false);

/// Returns a bound on the sums of an output. The allowed error is a fraction of it.
double scale_of(const Model& model);

/// Returns the allowed error of a program's contributions.
double tolerance_of(const Model& model);

/// Expects numbers that differ by at most `tolerance`; `what` names them in the message of a failure.
void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                 const std::string& what);

/// A random forest that has contributions, and rows.
struct Drawn {
  Model model;
  std::vector<float> rows;
  std::size_t count;
};

Drawn drawn(std::uint64_t seed, std::uint32_t max_features = 40);

}  // namespace forestvm::test
