// The verifier: nothing else checks a program. In: an image. Out: nothing, or the first rule it
// breaks, with the section, offset or pc. What it lets through cannot read or write out of bounds, loop for
// ever, race, or use more memory than it declares, whatever its bytes are; interpreters rely on that and
// check nothing again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <forestvm/internal/code_map.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm::bytecode {

/// Verifies the header and the section table, after which sections can be found. Takes constant time, apart from
/// the checksum.
Result<void> verify_container(std::span<const std::byte> image, bool with_checksum);

/// Verifies meta, base, thresholds, accumulators and texts: sizes agree, and enumerators exist.
Result<void> verify_tables(const Program& program);

/// Verifies hashed features, lookups and computed columns: all that they read lies inside the row and their sections,
/// and every search of a table ends.
Result<void> verify_derived_columns(const Program& program);

/// Verifies encoded features, columns and ranks: codes stay within their columns.
Result<void> verify_encoder(const Program& program);

/// Verifies the paths of contributions: the nodes of each tree are one tree in preorder, columns, features and
/// outputs exist, shares are shares, and no way is longer than the code that computes contributions allows.
Result<void> verify_explained_trees(const Program& program);

/// Lists of records for each leaf of the model's trees, and the names of their sections.
struct LeafLists {
  std::span<const NumberedLeaves> trees;
  std::span<const std::uint32_t> leaves;  ///< Index of each leaf's first record, then the number of records.
  std::size_t records;
  const char *trees_name, *leaves_name, *records_name;
};

/// Checks the lists of a program that has some.
Result<void> verify_leaf_lists(const Program& program, const LeafLists& lists);

/// Checks what leaves attribute to features.
Result<void> verify_attributions(const Program& program);

/// Checks the targets that leaves keep.
Result<void> verify_samples(const Program& program);

/// Returns what is wrong with a feature's thresholds; null if nothing is.
const char* ranks_rule(std::span<const float> ranks);

/// Verifies groups, trees and nodes: every walk stays inside its tree and the row, and ends.
Result<void> verify_forest(const Program& program);

/// Verifies walkers: their groups exist, and they take no more unchecked steps than the groups' trees allow.
Result<void> verify_walkers(const Program& program);

/// Verifies single instructions: opcodes, operands and the rows of tables that they name exist.
Result<void> verify_operands(const Program& program);

/// Verifies code of verified walkers and operands: blocks nest, registers are set before use, ranges stay
/// inside groups, accumulators inside their copies, and parallel iterations apart from each other.
Result<CodeMap> verify_code(const Program& program);

/// Verifies the ways that calls take through verified code, one for each output and choice of plans: whatever
/// is read was written in the same call, every row of the output is written, and the work is bounded. Returns
/// the most steps that a call takes for each of its rows: see steps_per_row in program_tools.hpp.
Result<std::uint64_t> verify_paths(const Program& program, const CodeMap& map);

/// The address of a text that ends with a zero: a literal, or a string that lives until a call returns. It spares
/// callers, the verifier's many refusals among them, the code that makes a view.
class CText {
 public:
  CText(const char* text) : text_(text) {}
  CText(const std::string& text) : text_(text.c_str()) {}
  operator const char*() const { return text_; }
  const char* text() const { return text_; }

 private:
  const char* text_;
};

/// Returns a refusal of a record of a section.
Failure record_error(const char* section, std::size_t record, CText what);

/// Returns a refusal of the instruction at `pc`.
Failure code_error(const Program& program, std::size_t pc, CText what);

}  // namespace forestvm::bytecode
