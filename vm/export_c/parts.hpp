// The parts of an exported file, each made by a file of this folder.
#pragma once

#include <string>
#include <vector>

#include <forestvm/export.hpp>

#include "vm/program/decode_forest.hpp"

namespace forestvm::bytecode::export_c {

/// The inputs of every part.
struct Job {
  const Program& program;
  const ExportOptions& options;
  AccumulatorKind sums = AccumulatorKind::F32;  ///< Kind of the sums to which leaves are added.
  std::vector<DecodedGroup> groups{};

  /// Returns a name in the exported file: PREFIX_name.
  std::string name(const std::string& own) const { return options.prefix + "_" + own; }
};

/// Return numbers as C text that is exact and of which no compiler warns.
std::string number(std::uint64_t value);               ///< For example 12u, or 5000000000ull.
std::string literal(float value);                      ///< For example 0x1.8p+1f.
std::string literal(double value);                     ///< For example 0x1.8p+1.
std::string sum_literal(const Job& job, float value);  ///< Leaf or base score as the initializer of a sum.

/// Returns the C type of a sum of this kind.
std::string sum_type(const Job& job, AccumulatorKind kind);

/// Returns a table, `static const TYPE NAME[N] = {…};`, and adds its bytes to `bytes`.
std::string table(const std::string& type, std::size_t element, const std::string& name,
                  const std::vector<std::string>& values, std::uint64_t& bytes);

/// Returns the tables of the groups and the functions PREFIX_walk_gN(tree, row), which return the number of a
/// leaf. Tables of the leaves' numbers, outputs and trees are left out if `code` does not name them. Adds the
/// tables' bytes to `table_bytes`.
std::string forest_text(const Job& job, const std::string& code, std::uint64_t& table_bytes);

/// Returns the function that runs the program's code on up to `rows_at_a_time` rows.
std::string code_text(const Job& job, std::uint32_t rows_at_a_time);

/// Returns the types and functions that the code uses (ranges, comparisons, sums, transforms), as far as
/// `body` names them.
std::string runtime_text(const Job& job, const std::string& body);

/// Returns whether exported code can have a transform.
bool has_transform(Transform transform);

/// Returns the bytes that the code's accumulators take for a row.
std::uint64_t bytes_per_row(const Program& program);

}  // namespace forestvm::bytecode::export_c
