// Exports a program as C source code, for devices without this library and to check the VM against.
#pragma once

#include <cstdint>
#include <string>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

struct ExportOptions {
  enum class Trees {
    Tables,   ///< `static const` tables in the form of the program's layouts, and a loop that walks them.
    Branches  ///< Nested if and else statements, tree by tree.
  };
  enum class Thresholds {
    Float,   ///< Rows' values are compared as they are.
    Integer  ///< Rows' bits are compared as integers in the same order: no floating-point unit is needed.
  };

  Trees trees = Trees::Tables;
  Thresholds thresholds = Thresholds::Float;
  std::string prefix = "forest";  ///< Prefix of every name in the file; a C identifier.
};

struct ExportedC {
  std::string text;
  std::uint64_t table_bytes = 0;  ///< Size of the constant tables.
  std::uint64_t stack_bytes = 0;  ///< Stack that a call takes for the rows that it handles at a time.
  std::uint32_t rows_at_a_time = 0;
};

/// Returns C99 source without dependencies that gives the program's answers bit for bit when built with
/// -ffp-contract=off. Loops, layouts and sums are the program's; the iterations of parallel loops run one
/// after the other. Rows are float, or double if the program compares in float64 (ProgramMeta::row_type); scores and
/// values are of the program's score_type. Cells of hashed features hold what PREFIX_category writes. The struct
/// PREFIX_options has the options of calls: rounds, margins and early stops. Refused: programs for GPUs, and virtual
/// ensembles of trees that are no rounds of boosting. Usage: a prefix that is not a C identifier.
Result<ExportedC> export_c(const Program& program, const ExportOptions& options = {});

}  // namespace forestvm
