// Writes and reads operands in assembly: what disassembler and assembler share, so that they cannot
// disagree. In: a row of operands.def and a value, or a text. Out: the text, or the value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <forestvm/core/bytecode.hpp>

namespace forestvm::bytecode {

/// Returns the row's prefix and the number, or the enumerator's name.
std::string operand_text(OperandKind kind, std::uint32_t value);

/// Returns the value for which operand_text writes `text`, in which blanks may have any width; nothing if there is
/// no such value that fits the operand's size.
std::optional<std::uint32_t> operand_value(OperandKind kind, std::string_view text);

/// Returns the form that operand_value takes, for messages: "step and a number up to 4294967295 (elements per
/// iteration)".
std::string operand_form(OperandKind kind);

/// Returns the meaning of an operand in words: its row in operands.def. Defined beside the page of the instruction set.
const char* meaning_of(OperandKind kind);

}  // namespace forestvm::bytecode
