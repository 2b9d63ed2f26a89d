// The parts of an exported file, each made by a file of this folder.
#pragma once

#include <string>
#include <vector>

#include <forestvm/export.hpp>

#include "vm/program/decode_forest.hpp"

namespace forestvm::bytecode::export_c {

/// What every part needs to know.
struct Job {
  const Program& program;
  const ExportOptions& options;
  AccumulatorKind sums = AccumulatorKind::F32;  ///< what leaves are added to
  std::vector<DecodedGroup> groups{};

  /// A name of the file: PREFIX_name.
  std::string name(const std::string& own) const { return options.prefix + "_" + own; }
};

/// C text of numbers: exact, and nothing that a compiler warns of.
std::string number(std::uint64_t value);               ///< 12u, or 12ull where that is needed
std::string literal(float value);                      ///< 0x1.8p+1f
std::string literal(double value);                     ///< 0x1.8p+1
std::string sum_literal(const Job& job, float value);  ///< a leaf or base as what sums are made of

/// The C type of a sum.
std::string sum_type(const Job& job, AccumulatorKind kind);

/// A table: `static const TYPE NAME[N] = {…};`, and its bytes added to `bytes`.
std::string table(const std::string& type, std::size_t element, const std::string& name,
                  const std::vector<std::string>& values, std::uint64_t& bytes);

/// Tables of the groups, those that `code` names, and the functions PREFIX_walk_gN(tree, row) -> number of a
/// leaf.
std::string forest_text(const Job& job, const std::string& code, std::uint64_t& table_bytes);

/// The function that runs the program's code on a few rows; `rows_at_a_time` of them.
std::string code_text(const Job& job, std::uint32_t rows_at_a_time);

/// Types and functions that the code uses: ranges, comparisons, sums, transforms. Only those that `body`
/// names.
std::string runtime_text(const Job& job, const std::string& body);

/// Bytes that the code's accumulators take for a row.
std::uint64_t bytes_per_row(const Program& program);

}  // namespace forestvm::bytecode::export_c
