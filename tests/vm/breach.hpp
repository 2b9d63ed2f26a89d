// Support for the tests of the verifier's rules: a good program is broken in exactly one way, and the refusal
// must name the place and the rule.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "small_program.hpp"

namespace forestvm::test {

struct Breach {
  const char* name;
  std::function<void(ProgramParts&)> damage;
  const char* where;  ///< the beginning of the error's place
  const char* rule;   ///< a part of the error's message
};

/// Expects that `parts` are refused with this place and this rule.
inline void expect_refusal(const ProgramParts& parts, const char* where, const char* rule) {
  const auto program = build_program(parts);
  ASSERT_FALSE(program.ok()) << "accepted:\n" << program->disassemble();
  EXPECT_EQ(program.error().code, ErrorCode::Refused);
  EXPECT_EQ(program.error().where.substr(0, std::string(where).size()), where) << program.error().text();
  EXPECT_NE(program.error().message.find(rule), std::string::npos) << program.error().text();
}

/// Expects that `good` passes, and is refused after the breach.
inline void expect_refusal(const ProgramParts& good, const Breach& breach) {
  SCOPED_TRACE(breach.name);
  const auto before = build_program(good);
  ASSERT_TRUE(before.ok()) << before.error().text();
  ProgramParts parts = good;
  breach.damage(parts);
  expect_refusal(parts, breach.where, breach.rule);
}

inline void expect_refusals(const ProgramParts& good, std::initializer_list<Breach> breaches) {
  for (const Breach& breach : breaches) expect_refusal(good, breach);
}

template <class Node>
Node* nodes_of(ProgramParts& parts, std::size_t group) {
  return reinterpret_cast<Node*>(parts.nodes.data() + parts.groups.at(group).node_offset);
}

inline AccumulatorDesc shared(std::uint32_t number, AccumulatorKind kind = AccumulatorKind::F32) {
  return {number, 1, 1, number, kind, {}};
}

inline AccumulatorDesc copies(std::uint32_t parent, std::uint32_t iterations, std::uint32_t count,
                              std::uint32_t stored_in) {
  return {parent, iterations, count, stored_in, AccumulatorKind::F32, {}};
}

/// Makes an instruction. Operands that are not given are zero.
inline Inst inst(Op op, std::initializer_list<std::uint32_t> values) {
  std::uint32_t all[kMaxOperands] = {};
  std::copy(values.begin(), values.end(), all);
  return pack(op, all);
}

}  // namespace forestvm::test
