// Functions about programs that only forestvm's own libraries and tools call: the assembler, facts about the forest,
// checksums, the page of the instruction set. Implemented by vm/program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Assembles the text that Program::disassemble prints: one instruction per line; `;` begins a comment; the
/// pc before an instruction may be left out. The result is `data` with this code: its tables, forest and
/// record of the compilation are kept, so that an unedited text gives an identical image. Refused with "line
/// L, column C" if the text is not assembly, otherwise with the pc and the verifier's rule.
Result<Program> assemble(std::string_view text, const Program& data);

/// Returns the distinct thresholds of each feature that has any, ascending, read from the forest's nodes: the
/// least numbers that go right. Categorical splits have none. Slow: meant for tools.
std::map<std::uint32_t, std::vector<double>> thresholds(const Program& program);

/// Returns, for each feature, whether walks, the encoder or derived columns read it. Slow: decodes the forest.
std::vector<bool> features_read(const Program& program);

/// Returns the largest number of steps that a call takes for each of its rows, in a program loaded with full
/// verification. Steps are node visits, elements of sums read or written, thresholds compared, and
/// instructions. The verifier refuses programs of more than 2^22 + 64 x (bytes of the program) steps.
std::uint64_t steps_per_row(const Program& program);

/// Describes a computed column, for people: "0.5 * f0 + -1 * f2".
std::string computed_column_text(ColumnKind kind, std::span<const ColumnTerm> terms);

/// Describes each derived column, for people: "lookup 2 of f0, f3 in 90 slots, value 1".
std::vector<std::string> derived_column_texts(const Program& program);

/// Returns the XXH3-64 of `bytes`, the checksum of files. `seed` is the checksum of the bytes before them, or
/// 0 if there are none.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// Returns the ISA as a Markdown page, made from the rows of opcodes.def and operands.def.
std::string isa_page();

}  // namespace forestvm
