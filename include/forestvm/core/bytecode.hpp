// The instruction format and everything that follows from the rows of opcodes.def and operands.def.
// In: the rows. Out: Op, OperandKind, Inst, OpInfo, and operand access that encoder, verifier, disassembler
// and interpreters share, so that they cannot disagree.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

enum class Op : std::uint8_t {
#define FVM_OPCODE(Name, text, role, operands, meaning) Name,
#include <forestvm/core/opcodes.def>
};

enum class OpRole : std::uint8_t { Plain, Open, Close, Stop };

enum class OperandSize : std::uint8_t { Small, Wide };

enum class OperandKind : std::uint8_t {
#define FVM_OPERAND(Kind, size, prefix, meaning) Kind,
#include <forestvm/core/operands.def>
};

/// What a caller asks for; rows in outputs.def.
enum class OutputKind : std::uint8_t {
#define FVM_OUTPUT(Name, text, meaning) Name,
#include <forestvm/core/outputs.def>
};

/// How trees lie in memory; rows in layouts.def.
enum class Layout : std::uint8_t {
#define FVM_LAYOUT(Name, text, word, View, meaning) Name,
#include <forestvm/core/layouts.def>
};

/// A dimension of a GPU launch; rows in dimensions.def.
enum class LaunchDimension : std::uint8_t {
#define FVM_DIMENSION(Name, text, meaning) Name,
#include <forestvm/core/dimensions.def>
};

/// How private copies are added up; rows in reduction_forms.def.
enum class ReductionForm : std::uint8_t {
#define FVM_REDUCTION_FORM(Name, text, meaning) Name,
#include <forestvm/core/reduction_forms.def>
};

/// What an accumulator holds; rows in accumulator_kinds.def.
enum class AccumulatorKind : std::uint8_t {
#define FVM_ACCUMULATOR_KIND(Name, text, Element, meaning) Name,
#include <forestvm/core/accumulator_kinds.def>
};

inline constexpr unsigned kSmallOperands = 3;
inline constexpr unsigned kWideOperands = 3;
inline constexpr unsigned kMaxOperands = kSmallOperands + kWideOperands;
inline constexpr unsigned kRangeRegisters = 16;  ///< r0 … r15
inline constexpr unsigned kAccumulators = 8;     ///< a0 … a7
inline constexpr unsigned kMaxBlockDepth = 16;   ///< nested blocks in a program
inline constexpr unsigned kMaxInstructions = 1 << 16;
inline constexpr unsigned kMaxWalkers = 1 << 16;  ///< rows of a program's walker table
inline constexpr unsigned kMaxPlanBlocks = 64;    ///< blocks that run for some numbers of rows only
inline constexpr unsigned kMaxSpecialized = 256;  ///< iterations that select walkers of their own
inline constexpr unsigned kMaxReductionWidth = 16;

/// One instruction: 16 bytes, little-endian in files. Operands that an opcode does not list are zero.
struct Inst {
  Op op;
  std::uint8_t small[kSmallOperands];
  std::uint32_t wide[kWideOperands];
};
static_assert(sizeof(Inst) == 16);

struct OperandInfo {
  OperandKind kind;
  OperandSize size;
  const char* prefix;
  const char* meaning;
};

inline constexpr OperandInfo kOperandInfo[] = {
#define FVM_OPERAND(Kind, size, prefix, meaning) {OperandKind::Kind, OperandSize::size, prefix, meaning},
#include <forestvm/core/operands.def>
};

constexpr const OperandInfo& info(OperandKind kind) { return kOperandInfo[static_cast<unsigned>(kind)]; }

struct OperandList {
  unsigned count = 0;
  OperandKind kinds[kMaxOperands] = {};
};

namespace bytecode_rows {
using enum OperandKind;
template <class... Kinds>
constexpr OperandList list(Kinds... kinds) {
  return {sizeof...(kinds), {kinds...}};
}
}  // namespace bytecode_rows

struct OpInfo {
  Op op;
  const char* text;
  OpRole role;
  OperandList operands;
  const char* meaning;
};

namespace bytecode_rows {
#define FVM_OPERANDS(...) list(__VA_ARGS__)
inline constexpr OpInfo kOpInfo[] = {
#define FVM_OPCODE(Name, text, role, operands, meaning) {Op::Name, text, OpRole::role, operands, meaning},
#include <forestvm/core/opcodes.def>
};
#undef FVM_OPERANDS
}  // namespace bytecode_rows

inline constexpr std::size_t kOpCount = sizeof(bytecode_rows::kOpInfo) / sizeof(OpInfo);

constexpr bool known(Op op) { return static_cast<std::size_t>(op) < kOpCount; }
constexpr const OpInfo& info(Op op) { return bytecode_rows::kOpInfo[static_cast<unsigned>(op)]; }

/// Calls visit(index, kind, value) for each operand of a known opcode, in the order of its row.
template <class Visit>
constexpr void for_each_operand(const Inst& inst, Visit&& visit) {
  const OperandList& operands = info(inst.op).operands;
  unsigned small = 0, wide = 0;
  for (unsigned i = 0; i < operands.count; ++i) {
    const bool is_small = info(operands.kinds[i]).size == OperandSize::Small;
    visit(i, operands.kinds[i], is_small ? std::uint32_t{inst.small[small++]} : inst.wide[wide++]);
  }
}

/// Places operand values, in the order of the opcode's row, into an instruction.
constexpr Inst encode(Op op, const std::uint32_t* values) {
  Inst inst{op, {}, {}};
  const OperandList& operands = info(op).operands;
  unsigned small = 0, wide = 0;
  for (unsigned i = 0; i < operands.count; ++i) {
    if (info(operands.kinds[i]).size == OperandSize::Small)
      inst.small[small++] = static_cast<std::uint8_t>(values[i]);
    else
      inst.wide[wide++] = values[i];
  }
  return inst;
}

/// The value of the operand of this kind; the opcode's row must list it once (checked at compile time).
template <Op op, OperandKind kind>
FVM_HOST_DEVICE constexpr std::uint32_t operand(const Inst& inst) {
  constexpr auto place = [] {
    struct Place {
      OperandSize size;
      unsigned index;
      unsigned matches;
    } found{OperandSize::Small, 0, 0};
    unsigned small = 0, wide = 0;
    const OperandList& operands = info(op).operands;
    for (unsigned i = 0; i < operands.count; ++i) {
      const bool is_small = info(operands.kinds[i]).size == OperandSize::Small;
      if (operands.kinds[i] == kind) found = {info(kind).size, is_small ? small : wide, found.matches + 1};
      is_small ? ++small : ++wide;
    }
    return found;
  }();
  static_assert(place.matches == 1, "the opcode's row does not list this operand once");
  if constexpr (place.size == OperandSize::Small)
    return inst.small[place.index];
  else
    return inst.wide[place.index];
}

}  // namespace forestvm
