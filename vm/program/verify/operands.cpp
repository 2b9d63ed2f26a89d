// The verifier's rules for single instructions: opcodes, enumerations, registers and table rows exist, and
// what an opcode does not use is zero.
#include <algorithm>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

/// The sizes of the tables whose rows operands name.
struct TableSizes {
  std::size_t accumulators, groups, walkers, code;
};

/// Returns what is wrong with an operand; null if nothing is.
const char* operand_rule(const TableSizes& sizes, OperandKind kind, std::uint32_t value) {
  using enum OperandKind;
  const auto rule = [](bool good, const char* otherwise) { return good ? nullptr : otherwise; };
  switch (kind) {
    case RangeOut:
    case RangeIn:
    case Rows:
    case Trees:
    case Select:
      return rule(value < kRangeRegisters, "no such range register");
    case AccOut:
    case AccIn:
      return rule(value < sizes.accumulators, "no such accumulator");
    case Output:
      return rule(is_declared(static_cast<OutputKind>(value)), "unknown output");
    case TransformKind:
      return rule(is_declared(static_cast<Transform>(value)), "unknown transform");
    case Rule:
      return rule(is_declared(static_cast<ClassRule>(value)), "unknown class rule");
    case Dimension:
      return rule(is_declared(static_cast<LaunchDimension>(value)), "unknown dimension");
    case Targets:
      return rule(is_declared(static_cast<TargetSet>(value)), "no such set of targets");
    case Form:
      return rule(value <= UINT8_MAX && is_declared(static_cast<ReductionForm>(value)),
                  "unknown form of reduction");
    case Group:
      return rule(value < sizes.groups, "no such group");
    case Walker:
      return rule(value < sizes.walkers, "no such walker");
    case BaseLast:
      return rule(value <= 1, "the base scores are neither first nor last");
    case Step:
      return rule(value != 0, "a step of 0");
    case Partner:
    case Loop:
      return rule(value < sizes.code, "the other end lies outside the code");
    case From:
    case To:
    case Least:
    case Most:
    case Ahead:
    case Width:
      return nullptr;
  }
  return "unknown kind of operand";
}

/// Returns what is wrong with an instruction of a known opcode; null if nothing is.
const char* instruction_rule(const TableSizes& sizes, const Inst& inst) {
  std::uint32_t values[kMaxOperands] = {};
  const char* problem = nullptr;
  for_each_operand(inst, [&](unsigned i, OperandKind kind, std::uint32_t value) {
    values[i] = value;
    if (problem == nullptr) problem = operand_rule(sizes, kind, value);
  });
  if (problem != nullptr) return problem;
  const Inst again = pack(inst.op, values);
  const bool canonical = std::equal(again.small, again.small + kSmallOperands, inst.small) &&
                         std::equal(again.wide, again.wide + kWideOperands, inst.wide);
  return canonical ? nullptr : "an unused operand field is not zero";
}

}  // namespace

Failure record_error(const char* section, std::size_t record, CText what) {
  return refused(formatted("{} section: record {}", section, record), what);
}

Failure code_error(const Program& program, std::size_t pc, CText what) {
  const Op op = program.code()[pc].op;
  return refused(formatted("pc {}{}", pc, known(op) ? formatted(" ({})", info(op).text) : ""), what);
}

Result<void> verify_operands(const Program& program) {
  const auto code = program.code();
  if (code.empty()) return refused("code section", "no instructions");
  if (code.size() > kMaxInstructions)
    return refused("code section", "{} instructions, at most {}", code.size(), kMaxInstructions);
  const TableSizes sizes{program.accumulators().size(), program.groups().size(), program.walkers().size(),
                         code.size()};
  for (std::size_t pc = 0; pc < code.size(); ++pc) {
    if (!known(code[pc].op))
      return code_error(program, pc, formatted("unknown opcode {}", static_cast<unsigned>(code[pc].op)));
    if (const char* rule = instruction_rule(sizes, code[pc])) return code_error(program, pc, rule);
  }
  return {};
}

}  // namespace forestvm::bytecode
