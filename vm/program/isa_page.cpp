// Prints the ISA page: opcodes.def and operands.def as Markdown. docs/ISA.md is this text; a test compares
// them.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "vm/program/operand_text.hpp"

namespace forestvm {
namespace {

/// A row's name and its meaning, which only pages and error texts need.
struct Words {
  const char* name;
  const char* meaning;
};

constexpr Words kOperandWords[] = {
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning) {#Kind, meaning},
#include <forestvm/core/operands.def>
};

const char* meaning_of(Op op) {
  switch (op) {
#define FVM_OPCODE(number, Name, text, role, operands, meaning) \
  case Op::Name:                                                \
    return meaning;
#include <forestvm/core/opcodes.def>
  }
  return "";
}

std::string operands_text(const OperandList& operands) {
  std::string text;
  for (unsigned i = 0; i < operands.count; ++i)
    text += std::string(i == 0 ? "" : ", ") + kOperandWords[static_cast<unsigned>(operands.kinds[i])].name;
  return text;
}

}  // namespace

const char* bytecode::meaning_of(OperandKind kind) {
  return kOperandWords[static_cast<unsigned>(kind)].meaning;
}

std::string isa_page() {
  std::string page =
      "# The instruction set\n\n"
      "Generated from `include/forestvm/core/opcodes.def` and `operands.def` by `forestvm dump --isa`.\n\n"
      "An instruction is 16 bytes: the opcode, three one-byte operands, three 32-bit operands. r0 holds the "
      "rows of "
      "the call, r1 the trees of the model; a0 is the result. Blocks nest and close with `end`.\n\n"
      "| opcode | operands | meaning |\n|---|---|---|\n";
  for (const OpInfo& op : bytecode_rows::kOpInfo)
    page += formatted("| `{}` | {} | {} |\n", op.text, operands_text(op.operands), meaning_of(op.op));
  page += "\n| operand | size | meaning |\n|---|---|---|\n";
  for (const OperandInfo& operand : kOperandInfo)
    page +=
        formatted("| {} | {} | {} |\n", kOperandWords[static_cast<unsigned>(operand.kind)].name,
                  operand.size == OperandSize::Small ? "byte" : "word", bytecode::meaning_of(operand.kind));
  return page;
}

}  // namespace forestvm
