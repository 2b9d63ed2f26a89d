// The instructions of a phase, and everything that follows from the rows of linked_operands.def. In: a
// program's instruction. Out: LinkedInst, which keeps the operands that its row lists and has room for the
// fields that linking adds; cut_phases.cpp and measure_phase.hpp fill these in, the kernels read them. Every access
// names the opcode and the field, and compiles only if the row lists it.
#pragma once

#include <cstdint>
#include <type_traits>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm::kernels {

/// A field of a linked instruction: an operand of a program's instruction, which has the same number here, or
/// a row of linked_fields.def.
enum class LinkedField : std::uint8_t {
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning) Kind,
#include <forestvm/core/operands.def>
#define FVM_LINKED_FIELD(Field, size, meaning) Field,
#include "kernels/link/linked_fields.def"
};

/// One instruction of a phase. It is no larger than an instruction of a program, because a launch hands its code
/// over by value, in at most 4096 bytes of arguments.
struct LinkedInst {
  Op op;
  std::uint8_t small[kSmallOperands];
  std::uint32_t wide[kWideOperands];

  bool operator==(const LinkedInst&) const = default;
};
static_assert(sizeof(LinkedInst) == 16 && std::is_trivially_copyable_v<LinkedInst>);

namespace linked_rows {

inline constexpr OperandSize kSizes[] = {
#define FVM_OPERAND(Kind, name, Type, size, prefix, meaning) OperandSize::size,
#include <forestvm/core/operands.def>
#define FVM_LINKED_FIELD(Field, size, meaning) OperandSize::size,
#include "kernels/link/linked_fields.def"
};
inline constexpr unsigned kFieldCount = sizeof(kSizes) / sizeof(OperandSize);

struct FieldList {
  std::uint8_t count = 0;
  LinkedField fields[kMaxOperands] = {};
};

template <class... Fields>
constexpr FieldList list(Fields... fields) {
  return {static_cast<std::uint8_t>(sizeof...(fields)), {fields...}};
}

struct Row {
  bool linked = false;
  FieldList fields = {}, left_out = {};
};

/// Returns the row of an opcode. The compiler warns of an opcode without a row, and warnings are errors.
constexpr Row row_of(Op op) {
  using enum LinkedField;
#define FVM_FIELDS(...) list(__VA_ARGS__)
#define FVM_LEFT_OUT(...) list(__VA_ARGS__)
  switch (op) {
#define FVM_LINKED(Name, fields, left_out) \
  case Op::Name:                           \
    return {true, fields, left_out};
#define FVM_NOT_LINKED(Name) \
  case Op::Name:             \
    return {};
#include "kernels/link/linked_operands.def"
  }
#undef FVM_LEFT_OUT
#undef FVM_FIELDS
  return {};
}

/// The fields of all opcodes, by their numbers, for code that does not know the opcode when it is compiled: the rows
/// themselves would be more code.
struct AllFields {
  FieldList of[kOpCount] = {};

  constexpr AllFields() {
    for (const OpInfo& row : bytecode_rows::kOpInfo)
      of[static_cast<unsigned>(row.op)] = row_of(row.op).fields;
  }
};
inline constexpr AllFields kAllFields;

}  // namespace linked_rows

/// Returns the fields of an opcode's linked instruction, in their order.
constexpr const linked_rows::FieldList& fields_of(Op op) {
  return linked_rows::kAllFields.of[static_cast<unsigned>(op)];
}

constexpr OperandSize size_of(LinkedField field) { return linked_rows::kSizes[static_cast<unsigned>(field)]; }
constexpr LinkedField field_of(OperandKind kind) { return static_cast<LinkedField>(kind); }

/// Returns true if a phase may contain instructions of this opcode.
constexpr bool is_linked(Op op) { return linked_rows::row_of(op).linked; }

/// The position of a field in an instruction: small[index] or wide[index].
struct FieldPosition {
  OperandSize size;
  unsigned index;
  unsigned matches;  ///< number of times that the row lists the field

  bool operator==(const FieldPosition&) const = default;
};

constexpr FieldPosition position_of(Op op, LinkedField field) {
  FieldPosition found{OperandSize::Small, 0, 0};
  unsigned small = 0, wide = 0;
  const linked_rows::FieldList& fields = fields_of(op);
  for (unsigned i = 0; i < fields.count; ++i) {
    const OperandSize size = size_of(fields.fields[i]);
    unsigned& next = size == OperandSize::Small ? small : wide;
    if (fields.fields[i] == field) found = {size, next, found.matches + 1};
    ++next;
  }
  return found;
}

namespace linked_rows {

constexpr unsigned times_listed(const FieldList& list, LinkedField field) {
  unsigned times = 0;
  for (unsigned i = 0; i < list.count; ++i) times += list.fields[i] == field;
  return times;
}

/// Returns true if no two fields of the opcode's row share a byte or a word, and all lie in the instruction.
constexpr bool fields_are_apart(Op op) {
  bool taken[2][kMaxOperands] = {};
  const FieldList& fields = fields_of(op);
  for (unsigned i = 0; i < fields.count; ++i) {
    const FieldPosition at = position_of(op, fields.fields[i]);
    const bool small = at.size == OperandSize::Small;
    if (at.matches != 1 || at.index >= (small ? kSmallOperands : kWideOperands)) return false;
    if (taken[small][at.index]) return false;
    taken[small][at.index] = true;
  }
  return true;
}

/// Returns true if the row lists each operand of the program's instruction exactly once, as kept or as left
/// out, and leaves out nothing else.
constexpr bool accounts_for_operands(Op op) {
  const Row row = row_of(op);
  const OperandList& operands = info(op).operands;
  unsigned left_out = 0;
  for (unsigned i = 0; i < operands.count; ++i) {
    const LinkedField field = field_of(operands.kinds[i]);
    left_out += times_listed(row.left_out, field);
    if (times_listed(row.fields, field) + times_listed(row.left_out, field) != 1) return false;
  }
  return left_out == row.left_out.count;
}

/// Returns true if the row lists the partner of an instruction that opens or closes a block.
constexpr bool knows_its_partner(Op op) {
  const OpRole role = info(op).role;
  const bool bounds_block = role == OpRole::Open || role == OpRole::Close;
  return !bounds_block || position_of(op, LinkedField::Partner).matches == 1;
}

constexpr bool all_rows(bool (*holds)(Op)) {
  for (const OpInfo& row : bytecode_rows::kOpInfo)
    if (is_linked(row.op) && !holds(row.op)) return false;
  return true;
}
static_assert(all_rows(fields_are_apart));
static_assert(all_rows(accounts_for_operands));
static_assert(all_rows(knows_its_partner));

}  // namespace linked_rows

/// Returns a field of an instruction of this opcode, whose row must list the field (checked at compile time).
template <Op op, LinkedField field>
FVM_HOST_DEVICE constexpr std::uint32_t linked(const LinkedInst& inst) {
  constexpr FieldPosition at = position_of(op, field);
  static_assert(at.matches == 1, "the opcode's row in linked_operands.def does not list this field");
  if constexpr (at.size == OperandSize::Small)
    return inst.small[at.index];
  else
    return inst.wide[at.index];
}

constexpr void set_at(LinkedInst& inst, const FieldPosition& at, std::uint32_t value) {
  if (at.size == OperandSize::Small)
    inst.small[at.index] = static_cast<std::uint8_t>(value);
  else
    inst.wide[at.index] = value;
}

/// Sets a field of an instruction of this opcode, whose row must list the field (checked at compile time).
template <Op op, LinkedField field>
constexpr void set_linked(LinkedInst& inst, std::uint32_t value) {
  constexpr FieldPosition at = position_of(op, field);
  static_assert(at.matches == 1, "the opcode's row in linked_operands.def does not list this field");
  set_at(inst, at, value);
}

/// Calls visit(field, value) for each field, in the order of the row.
template <class Visit>
constexpr void for_each_field(const LinkedInst& inst, Visit&& visit) {
  const linked_rows::FieldList& fields = fields_of(inst.op);
  unsigned small = 0, wide = 0;
  for (unsigned i = 0; i < fields.count; ++i) {
    const LinkedField field = fields.fields[i];
    visit(field,
          size_of(field) == OperandSize::Small ? std::uint32_t{inst.small[small++]} : inst.wide[wide++]);
  }
}

/// Returns the instruction with the operands that its row keeps; the fields that linking adds are 0.
constexpr LinkedInst keep_operands(const Inst& inst) {
  LinkedInst kept{inst.op, {}, {}};
  for_each_operand(inst, [&](unsigned, OperandKind kind, std::uint32_t value) {
    const FieldPosition at = position_of(inst.op, field_of(kind));
    if (at.matches != 0) set_at(kept, at, value);
  });
  return kept;
}

/// Gives interpret() the operands of linked code by the names that they have in the program's code.
template <Op op, OperandKind kind>
FVM_HOST_DEVICE constexpr std::uint32_t operand(const LinkedInst& inst) {
  return linked<op, static_cast<LinkedField>(kind)>(inst);
}

/// Returns the operands of a loop of this opcode. Linked is a type of which linked() knows the fields.
template <Op op, class Linked>
FVM_HOST_DEVICE constexpr LoopOperands loop_operands(const Linked& inst) {
  return {linked<op, LinkedField::RangeOut>(inst), linked<op, LinkedField::RangeIn>(inst),
          linked<op, LinkedField::Step>(inst), linked<op, LinkedField::Partner>(inst)};
}

/// The fields that ReduceDim and ReduceInplace have.
struct ReductionFields {
  std::uint32_t to, from;       ///< numbers of the accumulators
  std::uint32_t rows;           ///< number of the range register of the rows
  std::uint32_t reduced, step;  ///< RangeIn and Step of the loop that made the copies
  ReductionForm form;
};

/// Returns the fields of a reduction of this opcode.
template <Op op, class Linked>
FVM_HOST_DEVICE constexpr ReductionFields reduction_fields(const Linked& inst) {
  return {
      linked<op, LinkedField::AccOut>(inst), linked<op, LinkedField::AccIn>(inst),
      linked<op, LinkedField::Rows>(inst),   linked<op, LinkedField::Reduced>(inst),
      linked<op, LinkedField::Step>(inst),   static_cast<ReductionForm>(linked<op, LinkedField::Form>(inst))};
}

}  // namespace forestvm::kernels
