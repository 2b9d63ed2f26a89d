// The instruction format and everything that follows from the rows of opcodes.def and operands.def.
// In: the rows. Out: Op, OperandKind, Inst, OpInfo, and operand access that assembler, verifier, disassembler
// and interpreters share, so that they cannot disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <forestvm/core/platform.hpp>

namespace forestvm {

enum class Op : std::uint8_t {
#define FVM_OPCODE(number, Name, text, role, operands, meaning) Name = number,
#include <forestvm/core/opcodes.def>
};

enum class OpRole : std::uint8_t { Plain, Open, Close, Stop };

enum class OperandSize : std::uint8_t { Small, Wide };

/// Declares enumerations that operands name; transform.hpp defines them.
enum class Transform : std::uint8_t;
enum class ClassRule : std::uint8_t;

enum class OperandKind : std::uint8_t {
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning) Kind,
#include <forestvm/core/operands.def>
};

/// The outputs that a caller can ask for; rows in outputs.def.
enum class OutputKind : std::uint8_t {
#define FVM_OUTPUT(number, Name, text, meaning) Name = number,
#include <forestvm/core/outputs.def>
};

/// All outputs, by their numbers.
inline constexpr OutputKind kOutputKinds[] = {
#define FVM_OUTPUT(number, Name, text, meaning) OutputKind::Name,
#include <forestvm/core/outputs.def>
};

/// Returns whether an output says what features contribute to raw scores.
constexpr bool explains_scores(OutputKind output) {
  return output == OutputKind::Contributions || output == OutputKind::Interactions ||
         output == OutputKind::ApproxContributions;
}

/// Returns whether an output is computed from the leaves of single trees.
constexpr bool is_of_trees(OutputKind output) {
  return output == OutputKind::Trees || output == OutputKind::Staged || output == OutputKind::VirtEnsembles ||
         output == OutputKind::Uncertainty;
}

/// Returns whether an output is computed from the numbers of all leaves that a row reaches.
constexpr bool reads_leaf_numbers(OutputKind output) {
  return output == OutputKind::ApproxContributions || output == OutputKind::Quantile;
}

/// The layouts of trees in memory; rows in layouts.def.
enum class Layout : std::uint8_t {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) Name = number,
#include <forestvm/core/layouts.def>
};

/// The dimensions of a GPU launch; rows in dimensions.def.
enum class LaunchDimension : std::uint8_t {
#define FVM_DIMENSION(number, Name, text, meaning) Name = number,
#include <forestvm/core/dimensions.def>
};

/// The sets of CPU targets for which a block can be; rows in target_sets.def.
enum class TargetSet : std::uint8_t {
#define FVM_TARGET_SET(number, Name, text, meaning) Name = number,
#include <forestvm/core/target_sets.def>
};

/// The CPUs that blocks tell apart, each with the bits of a set's number that say whether it is left out: it is if an
/// odd number of them is set. GPUs count as Baseline. Avx512Fp16 runs the walkers of the target avx512: CPUs with its
/// instructions (Intel's Xeons from the fourth generation on) gather so fast that other schedules suit them.
enum class CpuTarget : std::uint8_t { Baseline = 1, Avx2 = 2, Avx512 = 4, Avx512Fp16 = 4 + 8 };
inline constexpr CpuTarget kCpuTargets[] = {CpuTarget::Baseline, CpuTarget::Avx2, CpuTarget::Avx512,
                                            CpuTarget::Avx512Fp16};

FVM_HOST_DEVICE constexpr bool contains(TargetSet set, CpuTarget target) {
  const unsigned bits = static_cast<unsigned>(set) & static_cast<unsigned>(target);
  return bits == 0 || bits == static_cast<unsigned>(CpuTarget::Avx512Fp16);
}

/// The forms in which private copies are added up; rows in reduction_forms.def.
enum class ReductionForm : std::uint8_t {
#define FVM_REDUCTION_FORM(number, Name, text, meaning) Name = number,
#include <forestvm/core/reduction_forms.def>
};

/// The kinds of accumulators; rows in accumulator_kinds.def.
enum class AccumulatorKind : std::uint8_t {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) Name = number,
#include <forestvm/core/accumulator_kinds.def>
};

inline constexpr unsigned kSmallOperands = 3;
inline constexpr unsigned kWideOperands = 3;
inline constexpr unsigned kMaxOperands = kSmallOperands + kWideOperands;
inline constexpr unsigned kRangeRegisters = 16;  ///< Range registers: r0 … r15.
inline constexpr unsigned kAccumulators = 8;     ///< Most accumulators: a0 … a7.
inline constexpr unsigned kRowsRegister = 0;     ///< Range register that holds the rows of the call.
inline constexpr unsigned kTreesRegister = 1;    ///< Range register that holds all trees.
inline constexpr unsigned kResult = 0;           ///< Accumulator of the result.
/// Value of operand Select if no loop selects walkers.
inline constexpr unsigned kNoSelect = kTreesRegister;
inline constexpr unsigned kMaxBlockDepth = 16;  ///< Most nested blocks in a program.
inline constexpr unsigned kMaxInstructions = 1 << 16;
inline constexpr unsigned kMaxWalkers = 1 << 16;  ///< Most rows of a program's walker table.
inline constexpr unsigned kMaxPlanBlocks = 64;    ///< Most blocks that run only for some numbers of rows.
inline constexpr unsigned kMaxSpecialized = 256;  ///< Most iterations of a loop that selects walkers.
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
};

inline constexpr OperandInfo kOperandInfo[] = {
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning) {OperandKind::Kind, OperandSize::size, prefix},
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
};

namespace bytecode_rows {
#define FVM_OPERANDS(...) list(__VA_ARGS__)
inline constexpr OpInfo kOpInfo[] = {
#define FVM_OPCODE(number, Name, text, role, operands, meaning) {Op::Name, text, OpRole::role, operands},
#include <forestvm/core/opcodes.def>
};
#undef FVM_OPERANDS
}  // namespace bytecode_rows

inline constexpr std::size_t kOpCount = sizeof(bytecode_rows::kOpInfo) / sizeof(OpInfo);
static_assert(
    [] {
      for (std::size_t i = 0; i < kOpCount; ++i)
        if (static_cast<std::size_t>(bytecode_rows::kOpInfo[i].op) != i) return false;
      return true;
    }(),
    "the rows of opcodes.def stand in the order of their numbers, without gaps");

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

/// Packs operand values, in the order of the opcode's row, into an instruction.
constexpr Inst pack(Op op, const std::uint32_t* values) {
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

/// The field of an instruction that holds an operand.
struct OperandField {
  OperandSize size;
  unsigned index;  ///< Index among the bytes, or among the words.
};

/// Returns the field of the operand at `position` of the opcode's row.
constexpr OperandField field(const OperandList& operands, unsigned position) {
  unsigned index = 0;
  const OperandSize size = info(operands.kinds[position]).size;
  for (unsigned i = 0; i < position; ++i)
    if (info(operands.kinds[i]).size == size) ++index;
  return {size, index};
}

/// Returns the position of the operand of a kind in the opcode's row; kMaxOperands unless the row lists it
/// once.
constexpr unsigned position(const OperandList& operands, OperandKind kind) {
  unsigned found = kMaxOperands, matches = 0;
  for (unsigned i = 0; i < operands.count; ++i) {
    if (operands.kinds[i] != kind) continue;
    found = i;
    ++matches;
  }
  return matches == 1 ? found : kMaxOperands;
}

namespace bytecode_rows {

template <Op op, unsigned position>
FVM_HOST_DEVICE constexpr std::uint32_t value(const Inst& inst) {
  constexpr OperandField at = field(info(op).operands, position);
  if constexpr (at.size == OperandSize::Small)
    return inst.small[at.index];
  else
    return inst.wide[at.index];
}

/// The operand of a kind, as a member with the name and the type that the kind's row gives it.
template <OperandKind kind>
struct Member;
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning)    \
  template <>                                                   \
  struct Member<OperandKind::Kind> {                            \
    Type name;                                                  \
    FVM_HOST_DEVICE constexpr Type get() const { return name; } \
  };
#include <forestvm/core/operands.def>

}  // namespace bytecode_rows

/// The operands of the opcodes that list these kinds, in this order: members by the names of operands.def,
/// which structured bindings take in the order of the row.
template <OperandKind... kinds>
struct Operands : bytecode_rows::Member<kinds>... {
  static constexpr OperandKind kKinds[sizeof...(kinds) + 1] = {kinds...};

  template <std::size_t position>
  FVM_HOST_DEVICE constexpr auto get() const {
    return bytecode_rows::Member<kKinds[position]>::get();
  }
};

namespace bytecode_rows {

template <Op op, std::size_t... positions>
FVM_HOST_DEVICE constexpr auto all_operands([[maybe_unused]] const Inst& inst,
                                            std::index_sequence<positions...>) {
  using List = Operands<info(op).operands.kinds[positions]...>;
  return List{{static_cast<decltype(List().template get<positions>())>(value<op, positions>(inst))}...};
}

}  // namespace bytecode_rows

/// Returns all operands of an instruction of this opcode.
template <Op op>
FVM_HOST_DEVICE constexpr auto operands(const Inst& inst) {
  return bytecode_rows::all_operands<op>(inst, std::make_index_sequence<info(op).operands.count>());
}

/// The type that operands<op>() returns. Opcodes whose rows list the same operands have the same type.
template <Op op>
using OperandsOf = decltype(operands<op>(Inst()));

/// Returns the value of one operand, by its kind; the opcode's row must list it once (checked at compile
/// time).
template <Op op, OperandKind kind>
FVM_HOST_DEVICE constexpr std::uint32_t operand(const Inst& inst) {
  constexpr unsigned at = position(info(op).operands, kind);
  static_assert(at < kMaxOperands, "the opcode's row does not list this operand once");
  return bytecode_rows::value<op, at>(inst);
}

}  // namespace forestvm

template <forestvm::OperandKind... kinds>
struct std::tuple_size<forestvm::Operands<kinds...>> : std::integral_constant<std::size_t, sizeof...(kinds)> {
};

template <std::size_t position, forestvm::OperandKind... kinds>
struct std::tuple_element<position, forestvm::Operands<kinds...>> {
  using type = decltype(forestvm::Operands<kinds...>().template get<position>());
};
