// Writes the outputs of leaves that are linear functions of the row: the functions' tables, and the C function that
// computes one. Its arithmetic repeats that of core/leaf_outputs.hpp.
#include <forestvm/core/transform.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// Computes the output of a function. A number that no function has, which occurs only in a damaged program, gives
/// the first function.
constexpr const char* kOutput = R"(static double @leaf_output(double number, const @ROW *x) {
  const uint32_t leaf = number >= 0 && number < @COUNT ? (uint32_t)number : 0u;
  double sum = @leaf_constants[leaf];
  uint32_t i;
  for (i = @leaf_terms[leaf][0]; i < @leaf_terms[leaf][1]; ++i) {
    const double value = x[@leaf_features[i]];
    if (value != value) return @leaf_values[leaf];
    sum += @leaf_coefficients[i] * (value >= -@TINY && value <= @TINY ? 0.0 : value);
  }
  return sum;
}
)";

}  // namespace

std::string leaf_functions_text(const Job& job, std::uint64_t& table_bytes) {
  std::vector<std::string> constants, values, features, coefficients;
  std::vector<std::vector<std::uint64_t>> terms;
  for (const LeafFunction& function : job.program.leaf_functions()) {
    constants.push_back(literal(function.constant));
    values.push_back(literal(function.value));
    terms.push_back({function.first_term, std::uint64_t{function.first_term} + function.term_count});
  }
  for (const LeafTerm& term : job.program.leaf_terms()) {
    features.push_back(number(term.feature));
    coefficients.push_back(literal(term.coefficient));
  }
  const std::string output = replaced(
      kOutput, {{"@TINY", literal(kTiny)}, {"@COUNT", literal(static_cast<double>(constants.size()))}});
  return "/* Leaves that are linear functions of the row: constant, output if a value is missing, first term, end of the\n"
         " * terms. */\n" +
         table("double", 8, job.name("leaf_constants"), constants, table_bytes) +
         table("double", 8, job.name("leaf_values"), values, table_bytes) +
         record_table(job, "leaf_terms", terms, table_bytes) +
         table("uint32_t", 4, job.name("leaf_features"), features, table_bytes) +
         table("double", 8, job.name("leaf_coefficients"), coefficients, table_bytes) + in_file(job, output);
}

}  // namespace forestvm::bytecode::export_c
