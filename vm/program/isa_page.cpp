// Prints the ISA page: opcodes.def and operands.def as Markdown. docs/ISA.md is this text; a test compares
// them.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

namespace forestvm {
namespace {

struct OperandRow {
  const char* kind;
  const char* meaning;
};

constexpr OperandRow kOperandRows[] = {
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning) {#Kind, meaning},
#include <forestvm/core/operands.def>
};

std::string operands_text(const OperandList& operands) {
  std::string text;
  for (unsigned i = 0; i < operands.count; ++i)
    text += std::string(i == 0 ? "" : ", ") + kOperandRows[static_cast<unsigned>(operands.kinds[i])].kind;
  return text;
}

}  // namespace

std::string isa_page() {
  std::string page =
      "# The instruction set\n\n"
      "Generated from `include/forestvm/core/opcodes.def` and `operands.def` by `forestvm dump --isa`.\n\n"
      "An instruction is 16 bytes: the opcode, three one-byte operands, three 32-bit operands. r0 holds the "
      "rows of "
      "the call, r1 the trees of the model; a0 is the result. Blocks nest and close with `end`.\n\n"
      "| opcode | operands | meaning |\n|---|---|---|\n";
  for (const OpInfo& op : bytecode_rows::kOpInfo)
    page += formatted("| `{}` | {} | {} |\n", op.text, operands_text(op.operands), op.meaning);
  page += "\n| operand | size | meaning |\n|---|---|---|\n";
  for (const OperandInfo& operand : kOperandInfo)
    page += formatted("| {} | {} | {} |\n", kOperandRows[static_cast<unsigned>(operand.kind)].kind,
                      operand.size == OperandSize::Small ? "byte" : "word", operand.meaning);
  return page;
}

}  // namespace forestvm
