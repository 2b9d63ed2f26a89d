#include "hand_program.hpp"

namespace forestvm::test {
namespace {

void add_scores_and_leaves(ProgramParts& parts) {
  append(parts, {inst(Op::When, {0, 2}), inst(Op::Store, {0, 0}), inst(Op::End, {0}), inst(Op::When, {1, 6}),
                 inst(Op::Transform, {0, 0, 2}), inst(Op::Store, {0, 0}), inst(Op::End, {3}),
                 inst(Op::When, {3, 12}), inst(Op::Slice, {2, 1, 0, 4}), inst(Op::Leaves, {2, 0, 0, 1}),
                 inst(Op::Slice, {2, 1, 4, 6}), inst(Op::Leaves, {2, 0, 1, 1}), inst(Op::End, {7}),
                 inst(Op::Halt, {})});
}

}  // namespace

void append(ProgramParts& parts, std::initializer_list<Inst> code) {
  const auto first = static_cast<std::uint32_t>(parts.code.size());
  for (Inst added : code) {
    std::uint32_t values[kMaxOperands] = {};
    for_each_operand(added, [&](unsigned i, OperandKind kind, std::uint32_t value) {
      values[i] = kind == OperandKind::Partner ? value + first : value;
    });
    parts.code.push_back(pack(added.op, values));
  }
}

ProgramParts by_hand() {
  ProgramParts parts = parts_of(rich_program());
  parts.code.clear();
  append(parts, {inst(Op::Par, {2, 0, 4, 14}), inst(Op::Init, {0, 2}), inst(Op::Slice, {3, 1, 0, 4}),
                 inst(Op::Par, {4, 3, 2, 6}), inst(Op::Privatize, {1, 4, 2}), inst(Op::Walk, {1, 4, 2, 0, 1}),
                 inst(Op::End, {3}), inst(Op::ReduceDim, {0, 1, 2, 3, 0, 1}), inst(Op::Slice, {4, 1, 4, 6}),
                 inst(Op::Walk, {0, 4, 2, 1, 1}), inst(Op::When, {2, 13}), inst(Op::Transform, {0, 2, 2}),
                 inst(Op::Label, {0, 2, 3}), inst(Op::End, {10}), inst(Op::End, {0})});
  add_scores_and_leaves(parts);
  return parts;
}

void add_outputs(ProgramParts& parts) {
  append(parts, {inst(Op::When, {2, 3}), inst(Op::Transform, {0, 0, 2}), inst(Op::Label, {0, 0, 3}),
                 inst(Op::End, {0})});
  add_scores_and_leaves(parts);
}

void insert(ProgramParts& parts, std::uint32_t pc, Inst with) {
  for (Inst& other : parts.code) {
    std::uint32_t values[kMaxOperands] = {};
    for_each_operand(other, [&](unsigned i, OperandKind kind, std::uint32_t value) {
      const bool names_pc = kind == OperandKind::Partner || kind == OperandKind::Loop;
      values[i] = names_pc && value >= pc ? value + 1 : value;
    });
    other = pack(other.op, values);
  }
  parts.code.insert(parts.code.begin() + pc, with);
}

}  // namespace forestvm::test
