// Program -> C: a forest as source code, for devices without this library, and for comparing it with itself.
#pragma once

#include <cstdint>
#include <string>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

struct ExportOptions {
  enum class Trees {
    Tables,   ///< `static const` tables in the form of the program's layouts, and a loop that walks them
    Branches  ///< nested if and else, tree by tree
  };
  enum class Thresholds {
    Float,   ///< rows are compared as float32
    Integer  ///< rows' bits are compared as integers that have the same order: no floating-point unit is
             ///< needed
  };

  Trees trees = Trees::Tables;
  Thresholds thresholds = Thresholds::Float;
  std::string prefix = "forest";  ///< of every name in the file; a C identifier
};

struct ExportedC {
  std::string text;
  std::uint64_t table_bytes = 0;  ///< of constant tables
  std::uint64_t stack_bytes = 0;  ///< of a call, for the rows that it takes at a time
  std::uint32_t rows_at_a_time = 0;
};

/// C99 without dependencies that answers as the program does, bit for bit (built with -ffp-contract=off).
/// Loops, layouts and sums are the program's; parallel loops run one iteration after the other. Refused: a
/// program whose loops are mapped to a GPU; Usage: a prefix that is no identifier.
Result<ExportedC> export_c(const Program& program, const ExportOptions& options = {});

}  // namespace forestvm
