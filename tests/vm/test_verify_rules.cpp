// The verifier's rules, one by one: a good program broken in exactly one way is refused, and the refusal says
// where and which rule.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <limits>

#include <forestvm/core/layout/array.hpp>
#include <forestvm/core/layouts.hpp>

#include "small_program.hpp"

namespace forestvm::test {
namespace {

struct Breach {
  const char* name;
  std::function<void(ProgramParts&)> damage;
  const char* where;
  const char* rule;
};

/// `good` must pass, and be refused after the damage with this place and these words.
void expect_refusal(const ProgramParts& good, const Breach& breach) {
  SCOPED_TRACE(breach.name);
  const auto before = encode_program(good);
  ASSERT_TRUE(before.ok()) << before.error().text();
  ProgramParts parts = good;
  breach.damage(parts);
  const auto program = encode_program(parts);
  ASSERT_FALSE(program.ok()) << "accepted:\n" << program->disassemble();
  EXPECT_EQ(program.error().code, ErrorCode::Refused);
  EXPECT_EQ(program.error().where.substr(0, std::string(breach.where).size()), breach.where);
  EXPECT_NE(program.error().message.find(breach.rule), std::string::npos) << program.error().text();
}

AccumulatorDesc shared(std::uint32_t number, AccumulatorKind kind = AccumulatorKind::F32) {
  return {number, 1, 1, number, kind, {}};
}

AccumulatorDesc copies(std::uint32_t parent, std::uint32_t iterations, std::uint32_t count,
                       std::uint32_t stored_in) {
  return {parent, iterations, count, stored_in, AccumulatorKind::F32, {}};
}

Inst inst(Op op, std::initializer_list<std::uint32_t> values) { return encode(op, values.begin()); }

/// The program by hand on which the code rules are tried: private sums over trees 0 to 4, which lie in an
/// array group, then trees 4 to 6, in a sparse one.
///    0  par r2, r0, step 4, @14
///    1    init a0, r2
///    2    slice r3, r1, from 0, to 4
///    3    par r4, r3, step 2, @6
///    4      privatize a1, r4, r2
///    5      walk a1, r4, r2, w0
///    6    end @3
///    7    reduce_dim a0, a1, r2, @3
///    8    slice r4, r1, from 4, to 6
///    9    walk a0, r4, r2, w1
///   10    when class, @13
///   11      transform a0, r2, softmax
///   12      label a0, r2, argmax
///   13    end @10
///   14  end @0
///   15  halt
ProgramParts by_hand() {
  ProgramParts parts = parts_of(rich_program());
  parts.code = {inst(Op::Par, {2, 0, 4, 14}),
                inst(Op::Init, {0, 2}),
                inst(Op::Slice, {3, 1, 0, 4}),
                inst(Op::Par, {4, 3, 2, 6}),
                inst(Op::Privatize, {1, 4, 2}),
                inst(Op::Walk, {1, 4, 2, 0, 1}),
                inst(Op::End, {3}),
                inst(Op::ReduceDim, {0, 1, 2, 3, 0, 1}),
                inst(Op::Slice, {4, 1, 4, 6}),
                inst(Op::Walk, {0, 4, 2, 1, 1}),
                inst(Op::When, {2, 13}),
                inst(Op::Transform, {0, 2, 2}),
                inst(Op::Label, {0, 2, 3}),
                inst(Op::End, {10}),
                inst(Op::End, {0}),
                inst(Op::Halt, {})};
  return parts;
}

/// Replaces the instruction at `pc`.
auto at(std::size_t pc, Inst with) {
  return [=](ProgramParts& parts) { parts.code.at(pc) = with; };
}

/// Puts an instruction before `pc`, and moves what names a later one.
void insert(ProgramParts& parts, std::uint32_t pc, Inst with) {
  for (Inst& other : parts.code) {
    std::uint32_t values[kMaxOperands] = {};
    for_each_operand(other, [&](unsigned i, OperandKind kind, std::uint32_t value) {
      const bool names_pc = kind == OperandKind::Partner || kind == OperandKind::Loop;
      values[i] = names_pc && value >= pc ? value + 1 : value;
    });
    other = encode(other.op, values);
  }
  parts.code.insert(parts.code.begin() + pc, with);
}

auto before(std::uint32_t pc, Inst with) {
  return [=](ProgramParts& parts) { insert(parts, pc, with); };
}

TEST(VerifyCode, RefusesInstructionsThatAreNone) {
  const Breach breaches[] = {
      {"unknown opcode", [](ProgramParts& p) { p.code[1].op = static_cast<Op>(kOpCount); }, "pc 1",
       "unknown opcode 25"},
      {"opcode 255", [](ProgramParts& p) { p.code[15].op = static_cast<Op>(255); }, "pc 15",
       "unknown opcode 255"},
      {"unused small field", [](ProgramParts& p) { p.code[1].small[2] = 1; }, "pc 1 (init)",
       "unused operand field"},
      {"unused wide field", [](ProgramParts& p) { p.code[1].wide[0] = 1; }, "pc 1 (init)",
       "unused operand field"},
      {"halt with an operand", [](ProgramParts& p) { p.code[15].wide[2] = 7; }, "pc 15 (halt)",
       "unused operand field"},
      {"register 16", at(1, inst(Op::Init, {0, 16})), "pc 1 (init)", "no such range register"},
      {"register 255", at(2, inst(Op::Slice, {255, 1, 0, 4})), "pc 2 (slice)", "no such range register"},
      {"accumulator 2", at(1, inst(Op::Init, {2, 2})), "pc 1 (init)", "no such accumulator"},
      {"output 4", at(10, inst(Op::When, {4, 13})), "pc 10 (when)", "unknown output"},
      {"transform 9", at(11, inst(Op::Transform, {0, 2, 9})), "pc 11 (transform)", "unknown transform"},
      {"rule 5", at(12, inst(Op::Label, {0, 2, 5})), "pc 12 (label)", "unknown class rule"},
      {"walker 2", at(5, inst(Op::Walk, {1, 4, 2, 2, 1})), "pc 5 (walk)", "no such walker"},
      {"step 0", at(3, inst(Op::Par, {4, 3, 0, 6})), "pc 3 (par)", "a step of 0"},
      {"partner outside", at(0, inst(Op::Par, {2, 0, 4, 16})), "pc 0 (par)", "outside the code"},
      {"loop outside", at(7, inst(Op::ReduceDim, {0, 1, 2, 16, 0, 1})), "pc 7 (reduce_dim)",
       "outside the code"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, RefusesBlocksThatDoNotNest) {
  const Breach breaches[] = {
      {"no code", [](ProgramParts& p) { p.code.clear(); }, "code section", "no instructions"},
      {"no halt", [](ProgramParts& p) { p.code.pop_back(); }, "code section", "does not end with halt"},
      {"halt in a block", at(1, inst(Op::Halt, {})), "pc 1 (halt)", "still open"},
      {"code after halt", [](ProgramParts& p) { p.code.push_back(inst(Op::Halt, {})); }, "pc 15 (halt)",
       "after the end"},
      {"partner is no end", at(0, inst(Op::Par, {2, 0, 4, 12})), "pc 0 (par)", "its end does not name it"},
      {"another's end", at(0, inst(Op::Par, {2, 0, 4, 13})), "pc 0 (par)", "its end does not name it"},
      {"partner before", at(3, inst(Op::Par, {4, 3, 2, 3})), "pc 3 (par)", "its end does not name it"},
      {"end of another", at(6, inst(Op::End, {0})), "pc 3 (par)", "its end does not name it"},
      {"end of nothing", before(15, inst(Op::End, {0})), "pc 15 (end)", "does not close"},
      {"crossed blocks",
       [](ProgramParts& p) {
         std::swap(p.code[13], p.code[14]);
         p.code[0].wide[1] = 13;
         p.code[10].wide[0] = 14;
       },
       "pc 13 (end)", "does not close the innermost"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

ProgramParts nested(std::uint32_t depth) {
  ProgramParts parts = by_hand();
  parts.code.clear();
  for (std::uint32_t i = 0; i < depth; ++i) parts.code.push_back(inst(Op::When, {0, 2 * depth - 1 - i}));
  for (std::uint32_t i = 0; i < depth; ++i) parts.code.push_back(inst(Op::End, {depth - 1 - i}));
  parts.code.push_back(inst(Op::Halt, {}));
  return parts;
}

TEST(VerifyCode, RefusesDeepNests) {
  ASSERT_TRUE(encode_program(nested(kMaxBlockDepth)).ok());
  const auto program = encode_program(nested(kMaxBlockDepth + 1));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().text(), "pc 16 (when): more than 16 nested blocks");
}

TEST(VerifyCode, RefusesRangesOutOfPlace) {
  const Breach breaches[] = {
      {"read before set", at(5, inst(Op::Walk, {1, 9, 2, 0, 1})), "pc 5 (walk)",
       "r9 is read before it is set"},
      {"read after its reduction", at(8, inst(Op::Slice, {5, 4, 4, 6})), "pc 8 (slice)",
       "r4 is read before it is set"},
      {"a loop sets r0", at(0, inst(Op::Par, {0, 0, 4, 14})), "pc 0 (par)", "r0 is set while it is in use"},
      {"set twice", at(3, inst(Op::Par, {3, 3, 2, 6})), "pc 3 (par)", "r3 is set while it is in use"},
      {"a slice sets a loop's register", at(2, inst(Op::Slice, {2, 1, 0, 4})), "pc 2 (slice)",
       "r2 is set while it is in use"},
      {"a slice sets r1", at(2, inst(Op::Slice, {1, 1, 0, 4})), "pc 2 (slice)",
       "r1 is set while it is in use"},
      {"a slice inside sets a slice outside", before(5, inst(Op::Slice, {3, 4, 0, 1})), "pc 5 (slice)",
       "r3 is set while it is in use"},
      {"a slice in front of its reduction", at(7, inst(Op::Slice, {3, 1, 0, 6})), "pc 7 (slice)",
       "r3 is set while it is in use"},
      {"reversed slice", at(2, inst(Op::Slice, {3, 1, 4, 0})), "pc 2 (slice)", "ends before it begins"},
      {"all rows inside a loop over rows", at(1, inst(Op::Init, {0, 0})), "pc 1 (init)",
       "r0 is not part of the innermost enclosing loop over rows"},
      {"all rows walked inside a loop over rows", at(9, inst(Op::Walk, {0, 4, 0, 1, 1})), "pc 9 (walk)",
       "not part of the innermost"},
      {"all trees inside a loop over trees", at(5, inst(Op::Walk, {1, 3, 2, 0, 1})), "pc 5 (walk)",
       "r3 is not part of the innermost enclosing loop over trees"},
      {"a slice of all rows inside a loop over rows", before(1, inst(Op::Slice, {5, 0, 0, 1})),
       "pc 1 (slice)", "not part of the innermost"},
      {"a loop over all rows inside a loop over rows", at(3, inst(Op::Par, {4, 0, 2, 6})), "pc 3 (par)",
       "not part of the innermost"},
      {"trees for rows", at(1, inst(Op::Init, {0, 1})), "pc 1 (init)", "r1 holds trees, expected rows"},
      {"rows for trees", at(9, inst(Op::Walk, {0, 2, 2, 1, 1})), "pc 9 (walk)",
       "r2 holds rows, expected trees"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, RefusesTreesOutsideTheGroup) {
  const Breach breaches[] = {
      {"one too many", at(8, inst(Op::Slice, {4, 1, 3, 6})), "pc 9 (walk)", "trees 3 to 6 are not all in"},
      {"the other group", at(9, inst(Op::Walk, {0, 4, 2, 0, 1})), "pc 9 (walk)",
       "trees 4 to 6 are not all in"},
      {"all trees", at(9, inst(Op::Walk, {0, 1, 2, 1, 1})), "pc 9 (walk)", "trees 0 to 6 are not all in"},
      {"a loop over too many", at(2, inst(Op::Slice, {3, 1, 0, 5})), "pc 4 (privatize)", "iterations"},
      {"a loop over the other group", at(5, inst(Op::Walk, {1, 4, 2, 1, 1})), "pc 5 (walk)",
       "trees 0 to 4 are not all in"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, RefusesSharedAccumulators) {
  const Breach breaches[] = {
      {"a0 in a parallel loop over trees", at(5, inst(Op::Walk, {0, 4, 2, 0, 1})), "pc 5 (walk)",
       "a0 is shared by the iterations of the parallel loop over trees at pc 3"},
      {"a0 initialised there", at(5, inst(Op::Init, {0, 2})), "pc 5 (init)", "a0 is shared"},
      {"a0 transformed there", at(5, inst(Op::Transform, {0, 2, 1})), "pc 5 (transform)", "a0 is shared"},
      {"a0 reduced into there", at(5, inst(Op::ReduceDim, {0, 1, 2, 3, 0, 1})), "pc 5 (reduce_dim)",
       "a0 is shared"},
      {"stored there", before(5, inst(Op::Store, {1, 2})), "pc 5 (store)",
       "written inside a parallel loop over trees"},
      {"never private", at(4, inst(Op::Slice, {5, 4, 0, 1})), "pc 5 (walk)", "a1 is not privatized here"},
      {"written after its loop", before(7, inst(Op::Zero, {1, 2})), "pc 7 (zero)",
       "a1 belongs to the loop at pc 3, which has ended"},
      {"written after its reduction", before(8, inst(Op::Zero, {1, 2})), "pc 8 (zero)",
       "a1 is not privatized here"},
      {"read after its reduction", at(12, inst(Op::Label, {1, 2, 3})), "pc 12 (label)",
       "a1 is not privatized here"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, RefusesWrongPrivatizing) {
  const Breach breaches[] = {
      {"the result", at(4, inst(Op::Privatize, {0, 4, 2})), "pc 4 (privatize)", "a0 is not private"},
      {"twice", before(5, inst(Op::Privatize, {1, 4, 2})), "pc 5 (privatize)", "a1 is in use"},
      {"outside a loop", at(1, inst(Op::Privatize, {1, 1, 2})), "pc 1 (privatize)",
       "not the innermost parallel loop over trees"},
      {"of a slice of the loop",
       [](ProgramParts& p) {
         p.code[4] = inst(Op::Privatize, {1, 5, 2});
         insert(p, 4, inst(Op::Slice, {5, 4, 0, 1}));
       },
       "pc 5 (privatize)", "not the innermost parallel loop over trees"},
      {"by the rows' register", at(4, inst(Op::Privatize, {1, 2, 2})), "pc 4 (privatize)",
       "r2 holds rows, expected trees"},
      {"in a serial loop", at(3, inst(Op::For, {4, 3, 2, 6})), "pc 4 (privatize)",
       "not the innermost parallel loop over trees"},
      {"too few copies", at(3, inst(Op::Par, {4, 3, 1, 6})), "pc 4 (privatize)",
       "the loop has more iterations than a1's 2"},
      {"more trees than copies", at(2, inst(Op::Slice, {3, 1, 0, 6})), "pc 4 (privatize)", "more iterations"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

/// A privatize in a block of its own may not run, or run in another machine's copy: then iterations would
/// share the first copy.
TEST(VerifyCode, RefusesPrivatizingInABlockInsideTheLoop) {
  const Breach breaches[] = {
      {"in a when",
       [](ProgramParts& p) {
         insert(p, 5, inst(Op::End, {4}));
         insert(p, 4, inst(Op::When, {0, 6}));
         p.code[6] = inst(Op::End, {4});
       },
       "pc 5 (privatize)", "directly"},
      {"in a loop over rows",
       [](ProgramParts& p) {
         p.code[4] = inst(Op::Privatize, {1, 4, 5});
         insert(p, 5, inst(Op::End, {4}));
         insert(p, 4, inst(Op::Par, {5, 2, 1, 6}));
         p.code[6] = inst(Op::End, {4});
       },
       "pc 5 (privatize)", "directly"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

/// Two parallel loops over trees, one after the other; the second uses what the first made.
TEST(VerifyCode, RefusesAnAccumulatorOfAnEarlierLoop) {
  const ProgramParts good = by_hand();
  expect_refusal(good, {"walked into",
                        [](ProgramParts& p) {
                          insert(p, 7, inst(Op::End, {7}));
                          insert(p, 7, inst(Op::Walk, {1, 5, 2, 0, 1}));
                          insert(p, 7, inst(Op::Par, {5, 3, 2, 9}));
                          p.code[9] = inst(Op::End, {7});
                        },
                        "pc 8 (walk)", "a1 belongs to the loop at pc 3, which has ended"});
  expect_refusal(good, {"made a parent",
                        [](ProgramParts& p) {
                          p.accumulators.push_back(copies(1, 2, 4, 2));
                          insert(p, 7, inst(Op::End, {7}));
                          insert(p, 7, inst(Op::End, {7}));
                          insert(p, 7, inst(Op::Privatize, {2, 6, 2}));
                          insert(p, 7, inst(Op::Par, {6, 5, 1, 10}));
                          insert(p, 7, inst(Op::Par, {5, 3, 2, 11}));
                          p.code[8] = inst(Op::Par, {6, 5, 1, 10});
                          p.code[10] = inst(Op::End, {8});
                          p.code[11] = inst(Op::End, {7});
                        },
                        "pc 9 (privatize)", "its parent a1"});
}

TEST(VerifyCode, RefusesWrongReductions) {
  const Breach breaches[] = {
      {"of another loop", at(7, inst(Op::ReduceDim, {0, 1, 2, 0, 0, 1})), "pc 7 (reduce_dim)",
       "a1 is not what the loop at pc 0 made of a0"},
      {"of no loop", at(7, inst(Op::ReduceDim, {0, 1, 2, 5, 0, 1})), "pc 7 (reduce_dim)",
       "is not what the loop"},
      {"of the result", at(7, inst(Op::ReduceDim, {0, 0, 2, 3, 0, 1})), "pc 7 (reduce_dim)",
       "is not what the loop"},
      {"into a private one", at(7, inst(Op::ReduceDim, {1, 1, 2, 3, 0, 1})), "pc 7 (reduce_dim)", "a1"},
      {"twice", before(8, inst(Op::ReduceDim, {0, 1, 2, 3, 0, 1})), "pc 8 (reduce_dim)",
       "is not what the loop"},
      {"before its loop", before(3, inst(Op::ReduceDim, {0, 1, 2, 3, 0, 1})), "pc 3 (reduce_dim)",
       "is not what the loop"},
      {"of trees", at(7, inst(Op::ReduceDim, {0, 1, 1, 3, 0, 1})), "pc 7 (reduce_dim)", "r1 holds trees"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

/// The loop's range was in a register that has died and is used again: the reduction would count the
/// iterations of another range and read beyond the copies.
TEST(VerifyCode, RefusesAReductionOutsideTheBlockOfItsLoop) {
  ProgramParts parts = by_hand();
  parts.code = {inst(Op::Init, {0, 0}),
                inst(Op::When, {0, 7}),
                inst(Op::Slice, {3, 1, 0, 2}),
                inst(Op::Par, {4, 3, 1, 6}),
                inst(Op::Privatize, {1, 4, 0}),
                inst(Op::Walk, {1, 4, 0, 0, 1}),
                inst(Op::End, {3}),
                inst(Op::End, {1}),
                inst(Op::Slice, {3, 1, 0, 6}),
                inst(Op::ReduceDim, {0, 1, 0, 3, 0, 1}),
                inst(Op::Halt, {})};
  const auto program = encode_program(parts);
  ASSERT_FALSE(program.ok()) << program->disassemble();
  EXPECT_EQ(program.error().where, "pc 9 (reduce_dim)");
}

TEST(VerifyCode, RefusesAnotherLabelRule) {
  expect_refusal(by_hand(), {"above-half for argmax", at(12, inst(Op::Label, {0, 2, 1})), "pc 12 (label)",
                             "the rule is not the program's"});
  expect_refusal(by_hand(),
                 {"a program without classes", [](ProgramParts& p) { p.meta.class_rule = ClassRule::None; },
                  "pc 12 (label)", "the rule is not the program's"});
}

template <class Node>
Node* nodes_of(ProgramParts& parts, std::size_t group) {
  return reinterpret_cast<Node*>(parts.nodes.data() + parts.groups.at(group).node_offset);
}

ArrayView::Node* array_nodes(ProgramParts& parts) { return nodes_of<ArrayView::Node>(parts, 0); }
Sparse16View::Node* sparse_nodes(ProgramParts& parts) { return nodes_of<Sparse16View::Node>(parts, 1); }

/// A sparse tree's first leaf.
std::uint32_t first_leaf(ProgramParts& parts) {
  std::uint32_t slot = 0;
  while ((sparse_nodes(parts)[slot].feature & kLeaf) == 0) ++slot;
  return slot;
}

TEST(VerifyForest, RefusesNodes) {
  const Breach breaches[] = {
      {"array: feature 3 of 3", [](ProgramParts& p) { array_nodes(p)[0].feature = 3; },
       "groups section: group 0, tree 0", "node 0: its feature lies outside the row"},
      {"array: a leaf's feature", [](ProgramParts& p) { array_nodes(p)[14].feature = kLeaf | 3; },
       "groups section: group 0, tree 0", "node 14: its feature lies outside the row"},
      {"array: largest feature", [](ProgramParts& p) { array_nodes(p)[1].feature = kFeatureMask; },
       "groups section: group 0, tree 0", "node 1: its feature"},
      {"array: the last level splits", [](ProgramParts& p) { array_nodes(p)[7].feature = 0; },
       "groups section: group 0, tree 0", "node 7: a slot of the last level is no leaf"},
      {"array: the last slot splits", [](ProgramParts& p) { array_nodes(p)[14].feature = kMissingLeft; },
       "groups section: group 0, tree 0", "node 14: a slot of the last level is no leaf"},
      {"sparse: feature 3 of 3", [](ProgramParts& p) { sparse_nodes(p)[0].feature = 3; },
       "groups section: group 1, tree 4", "node 0: its feature lies outside the row"},
      {"sparse: child is itself", [](ProgramParts& p) { sparse_nodes(p)[0].left = 0; },
       "groups section: group 1, tree 4", "node 0: a child does not come after its parent"},
      {"sparse: right child is itself", [](ProgramParts& p) { sparse_nodes(p)[0].right = 0; },
       "groups section: group 1, tree 4", "node 0: a child does not come after its parent"},
      {"sparse: child outside", [](ProgramParts& p) { sparse_nodes(p)[0].left = p.trees[4].node_count; },
       "groups section: group 1, tree 4", "node 0: a child lies outside its tree"},
      {"sparse: right child far outside", [](ProgramParts& p) { sparse_nodes(p)[0].right = UINT32_MAX; },
       "groups section: group 1, tree 4", "node 0: a child lies outside its tree"},
      {"sparse: a leaf tests a feature",
       [](ProgramParts& p) { sparse_nodes(p)[first_leaf(p)].feature = kLeaf | 1; },
       "groups section: group 1, tree 4", "a leaf tests a feature"},
      {"sparse: a leaf sends missing values",
       [](ProgramParts& p) { sparse_nodes(p)[first_leaf(p)].feature = kLeaf | kMissingLeft; },
       "groups section: group 1, tree 4", "a leaf tests a feature"},
      {"sparse: a leaf goes on", [](ProgramParts& p) { sparse_nodes(p)[first_leaf(p)].left = 0; },
       "groups section: group 1, tree 4", "a leaf's children are not itself"},
      {"sparse: a leaf goes on to the right", [](ProgramParts& p) { ++sparse_nodes(p)[first_leaf(p)].right; },
       "groups section: group 1, tree 4", "a leaf's children are not itself"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyForest, RefusesTrees) {
  const Breach breaches[] = {
      {"no nodes", [](ProgramParts& p) { p.trees[4].node_count = 0; }, "groups section: group 1, tree 4",
       "it has no nodes"},
      {"beyond its group", [](ProgramParts& p) { p.trees[5].node_count += 1; },
       "groups section: group 1, tree 5", "it leaves its group"},
      {"far beyond its group", [](ProgramParts& p) { p.trees[5].first_node = UINT32_MAX; },
       "groups section: group 1, tree 5", ""},
      {"output 3 of 3", [](ProgramParts& p) { p.trees[1].output = 3; }, "groups section: group 0, tree 1",
       "output 3 does not exist"},
      {"array: depth 27", [](ProgramParts& p) { p.trees[0].depth = 27; }, "groups section: group 0, tree 0",
       "do not fill its depth"},
      {"array: depth 2^32 - 1", [](ProgramParts& p) { p.trees[0].depth = UINT32_MAX; },
       "groups section: group 0, tree 0", "do not fill its depth"},
      {"array: too deep for its slots", [](ProgramParts& p) { ++p.trees[0].depth; },
       "groups section: group 0, tree 0", "do not fill its depth"},
      {"sparse: deeper than nodes", [](ProgramParts& p) { p.trees[4].depth = p.trees[4].node_count; },
       "groups section: group 1, tree 4", "deeper than it has nodes"},
      {"the same nodes twice", [](ProgramParts& p) { p.trees[5] = p.trees[4]; },
       "groups section: group 1, tree 5", "does not follow"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyForest, RefusesGroups) {
  const Breach breaches[] = {
      {"layout 200", [](ProgramParts& p) { p.groups[0].layout = static_cast<Layout>(200); },
       "groups section: group 0", "unknown layout 200"},
      {"reserved byte", [](ProgramParts& p) { p.groups[1].reserved[1] = 1; }, "groups section: group 1",
       "reserved byte"},
      {"no trees", [](ProgramParts& p) { p.groups[0].tree_end = 0; }, "groups section: group 0",
       "trees 0 to 0"},
      {"more trees than the model", [](ProgramParts& p) { p.groups[1].tree_end = 7; },
       "groups section: group 1", "trees 4 to 7 of 6"},
      {"a tree record is missing", [](ProgramParts& p) { p.trees.pop_back(); }, "groups section: group 1",
       "its trees leave the trees section"},
      {"trees outside the section", [](ProgramParts& p) { p.groups[1].first_tree = 5; },
       "groups section: group 1", ""},
      {"trees far outside", [](ProgramParts& p) { p.groups[1].first_tree = UINT32_MAX; },
       "groups section: group 1", ""},
      {"another group's trees", [](ProgramParts& p) { p.groups[1].first_tree = 0; },
       "groups section: group 1", "do not follow"},
      {"offset not aligned", [](ProgramParts& p) { p.groups[1].node_offset += 16; },
       "groups section: group 1", "do not lie in the nodes section"},
      {"offset beyond", [](ProgramParts& p) { p.groups[1].node_offset = p.nodes.size() / 64 * 64 + 64; },
       "groups section: group 1", "do not lie in the nodes section"},
      {"huge offset", [](ProgramParts& p) { p.groups[1].node_offset = ~std::uint64_t{63}; },
       "groups section: group 1", "do not lie in the nodes section"},
      {"another group's nodes", [](ProgramParts& p) { p.groups[1].node_offset = 0; },
       "groups section: group 1", "overlap"},
      {"one node too many", [](ProgramParts& p) { ++p.groups[1].node_count; }, "groups section: group 1",
       "do not lie in the nodes section"},
      {"huge count", [](ProgramParts& p) { p.groups[1].node_count = UINT64_MAX / 16 + 1; },
       "groups section: group 1", "do not lie in the nodes section"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyWalkers, RefusesWalkers) {
  const Breach breaches[] = {
      {"no group", [](ProgramParts& p) { p.walkers[0].group = 2; }, "walkers section: w0", "no group 2"},
      {"end 2", [](ProgramParts& p) { p.walkers[1].end = static_cast<WalkEnd>(2); }, "walkers section: w1",
       "unknown end"},
      {"order 2", [](ProgramParts& p) { p.walkers[1].order = static_cast<WalkOrder>(2); },
       "walkers section: w1", "order"},
      {"reserved", [](ProgramParts& p) { p.walkers[1].reserved = 1; }, "walkers section: w1", "reserved"},
      {"0 trees", [](ProgramParts& p) { p.walkers[0].interleaved_trees = 0; }, "walkers section: w0",
       "no walker interleaves 0 x 1"},
      {"3 rows", [](ProgramParts& p) { p.walkers[0].interleaved_rows = 3; }, "walkers section: w0",
       "no walker interleaves 1 x 3"},
      {"129 rows", [](ProgramParts& p) { p.walkers[0].interleaved_rows = 129; }, "walkers section: w0",
       "no walker interleaves 1 x 129"},
      {"16 x 16",
       [](ProgramParts& p) { p.walkers[0].interleaved_rows = p.walkers[0].interleaved_trees = 16; },
       "walkers section: w0", "no walker interleaves 16 x 16"},
      {"128 x 128",
       [](ProgramParts& p) { p.walkers[0].interleaved_rows = p.walkers[0].interleaved_trees = 128; },
       "walkers section: w0", "no walker interleaves"},
      // The array group's shallowest tree has depth 1.
      {"array: hops beyond the shallowest tree", [](ProgramParts& p) { p.walkers[0].hops = 2; },
       "walkers section: w0", "2 hops without a leaf check in trees of 1"},
      {"array: 65535 hops", [](ProgramParts& p) { p.walkers[0].hops = 65535; }, "walkers section: w0",
       "65535 hops"},
      {"sparse: hops beyond the deepest tree", [](ProgramParts& p) { p.walkers[1].hops = 9; },
       "walkers section: w1", "9 hops"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

/// A forest in tiles: breadth-first tiles of 3 in the sparse form, then in level order, then interleaved.
ProgramParts in_tiles(const char* layout) {
  return parts_of(compiled(small_forest({.depth = 5}),
                           std::string("tileTree(tree, 3, uniform); layout(tree, ") + layout + ")"));
}

using SparseTile = SparseTilesView<4>::Node;
using ArrayTile = ArrayTilesView<4>::Node;

TEST(VerifyForest, RefusesSparseTiles) {
  const auto tile = [](ProgramParts& p) { return nodes_of<SparseTile>(p, 0); };
  const Breach breaches[] = {
      {"feature", [&](ProgramParts& p) { tile(p)[0].features[1] = 3; }, "groups section: group 0, tree 0",
       "node 0: a feature lies outside the row"},
      {"unused feature", [&](ProgramParts& p) { tile(p)[0].features[3] = kFeatureMask; },
       "groups section: group 0, tree 0", "node 0: a feature lies outside the row"},
      {"the leaf's shape", [&](ProgramParts& p) { tile(p)[0].shape = 0; }, "groups section: group 0, tree 0",
       "there is no such tile shape"},
      {"a shape too far", [&](ProgramParts& p) { tile(p)[0].shape = UINT16_MAX; },
       "groups section: group 0, tree 0", "there is no such tile shape"},
      {"a way that is none", [&](ProgramParts& p) { tile(p)[0].leaf_ways |= 0x100; },
       "groups section: group 0, tree 0", "a leaf stands at a way out"},
      {"a leaf too far", [&](ProgramParts& p) { tile(p)[1].leaf_ways = 1, tile(p)[1].first_leaf = 1u << 30; },
       "groups section: group 0, tree 0", "a leaf lies outside its tree"},
      {"itself its child", [&](ProgramParts& p) { tile(p)[0].first_tile = 0; },
       "groups section: group 0, tree 0", "a child does not come after its parent"},
      {"a child too far", [&](ProgramParts& p) { tile(p)[0].first_tile = p.trees[0].node_count - 1; },
       "groups section: group 0, tree 0", "a child lies outside its tree"},
      {"tiles of 2 that have 3", [](ProgramParts& p) { p.groups[0].tile_size = 2; },
       "groups section: group 0, tree 0", "its shape has more nodes than its tiles"},
      {"tiles of 5", [](ProgramParts& p) { p.groups[0].tile_size = 5; }, "groups section: group 0",
       "tiles of 5 nodes in layout sparse-tiles4"},
      {"no leaves", [](ProgramParts& p) { p.trees[0].leaf_count = 0; }, "groups section: group 0, tree 0",
       "its root is a leaf"},
      {"leaves not in sequence", [](ProgramParts& p) { ++p.trees[1].first_leaf; },
       "groups section: group 0, tree 1", "its leaves do not follow"},
      {"too many leaves", [](ProgramParts& p) { p.trees.back().leaf_count += 1; },
       "groups section: group 0, tree 5", "its leaves leave its group"},
      {"leaves beyond the section", [](ProgramParts& p) { p.groups[0].leaf_count = UINT64_MAX / 4; },
       "groups section: group 0", "leaves do not lie in the nodes section"},
      {"leaf numbers beyond the section", [](ProgramParts& p) { p.leaf_numbers.pop_back(); },
       "groups section: group 0", "leave the leaf_numbers section"},
      {"leaf numbers elsewhere", [](ProgramParts& p) { p.groups[0].first_number = 1; },
       "groups section: group 0", "do not follow the group before"},
      {"two trees of one number", [](ProgramParts& p) { p.trees[1].number = 0; },
       "groups section: group 0, tree 1", "the model's tree 0 stands elsewhere too"},
      {"a tree that the model does not have", [](ProgramParts& p) { p.trees[1].number = 6; },
       "groups section: group 0, tree 1", "the model has no tree 6"},
  };
  for (const Breach& breach : breaches) expect_refusal(in_tiles("sparse"), breach);
}

TEST(VerifyForest, RefusesLevelOrderTiles) {
  const auto tile = [](ProgramParts& p) { return nodes_of<ArrayTile>(p, 0); };
  const Breach breaches[] = {
      {"feature", [&](ProgramParts& p) { tile(p)[0].features[0] = 3; }, "groups section: group 0, tree 0",
       "node 0: a feature lies outside the row"},
      {"shape", [&](ProgramParts& p) { tile(p)[0].shape = 77; }, "groups section: group 0, tree 0",
       "there is no such tile shape"},
      {"a leaf with a shape", [&](ProgramParts& p) { tile(p)[0].shape = kLeaf | 1; },
       "groups section: group 0, tree 0", "there is no such tile shape"},
      {"a leaf that tests", [&](ProgramParts& p) { tile(p)[0].shape = kLeaf; },
       "groups section: group 0, tree 0", "a leaf tests a feature"},
      {"the last level goes on", [&](ProgramParts& p) { tile(p)[p.trees[0].node_count - 1].shape = 1; },
       "groups section: group 0, tree 0", "a slot of the last level is no leaf"},
      {"leaves aside", [](ProgramParts& p) { p.groups[0].leaf_count = 1; }, "groups section: group 0",
       "it has leaves aside"},
      {"a tree's leaves aside", [](ProgramParts& p) { p.trees[0].leaf_count = 1; },
       "groups section: group 0, tree 0", "it has leaves aside"},
      {"depth", [](ProgramParts& p) { p.trees[0].depth = 1; }, "groups section: group 0, tree 0",
       "do not fill its depth"},
  };
  for (const Breach& breach : breaches) expect_refusal(in_tiles("array"), breach);
  expect_refusal(in_tiles("reorg"), {"root", [](ProgramParts& p) { p.trees[1].first_node = 2; },
                                     "groups section: group 0, tree 1", "its root is not in its place"});
  expect_refusal(in_tiles("reorg"), {"slots", [](ProgramParts& p) { p.trees[1].node_count -= 1; },
                                     "groups section: group 0, tree 1", "its slots are not its part"});
}

TEST(VerifyForest, RefusesSparse8Nodes) {
  const auto node = [](ProgramParts& p) { return nodes_of<Sparse8View::Node>(p, 0); };
  const Breach breaches[] = {
      {"feature", [&](ProgramParts& p) { node(p)[0].word |= 3u << Sparse8View::kDistanceBits; },
       "groups section: group 0, tree 0", "node 0: its feature lies outside the row"},
      {"itself its child", [&](ProgramParts& p) { node(p)[0].word &= ~Sparse8View::kDistanceMask; },
       "groups section: group 0, tree 0", "a child does not come after its parent"},
      {"a child too far", [&](ProgramParts& p) { node(p)[0].word |= Sparse8View::kDistanceMask; },
       "groups section: group 0, tree 0", "a child lies outside its tree"},
      {"a leaf with a child", [&](ProgramParts& p) { node(p)[p.trees[0].node_count - 1].word = kLeaf | 1; },
       "groups section: group 0, tree 0", "a leaf tests a feature or has children"},
  };
  for (const Breach& breach : breaches)
    expect_refusal(parts_of(compiled(small_forest(), "layout(tree, sparse8)")), breach);
}

TEST(VerifyTables, RefusesTileShapes) {
  const std::uint8_t exit = kTileExit;
  const auto set = [](TileShape shape) { return [=](ProgramParts& p) { p.tile_shapes[1] = shape; }; };
  const Breach breaches[] = {
      {"a first shape with nodes", [](ProgramParts& p) { std::swap(p.tile_shapes[0], p.tile_shapes[1]); },
       "tile_shapes section: shape 0", "the first shape"},
      {"another without", set({0, {}, {}}), "tile_shapes section: shape 1", "the first shape"},
      {"nine nodes", set({9, {}, {}}), "tile_shapes section: shape 1", "more nodes than a tile"},
      {"a node twice", set({2, {1, exit}, {1, static_cast<std::uint8_t>(exit | 1)}}),
       "tile_shapes section: shape 1", "no binary tree"},
      {"a way out twice", set({1, {exit}, {exit}}), "tile_shapes section: shape 1", "no binary tree"},
      {"a way out too many", set({1, {exit}, {static_cast<std::uint8_t>(exit | 2)}}),
       "tile_shapes section: shape 1", "no binary tree"},
      {"a node from itself", set({1, {0}, {exit}}), "tile_shapes section: shape 1", "no binary tree"},
      {"an entry that is not used", set({1, {exit, 0}, {static_cast<std::uint8_t>(exit | 1), 1}}),
       "tile_shapes section: shape 1", "an unused entry"},
      {"too many", [](ProgramParts& p) { p.tile_shapes.resize(kMaxTileShapes + 1, p.tile_shapes[1]); },
       "tile_shapes section", "shapes, at most"},
  };
  for (const Breach& breach : breaches) expect_refusal(in_tiles("sparse"), breach);
}

/// What the code rules say of sums of other kinds, on the program by hand with two more accumulators.
TEST(VerifyCode, RefusesSumsOfTheWrongKind) {
  const auto with = [](AccumulatorKind kind, std::size_t pc, Inst wrong) {
    return [=](ProgramParts& p) {
      p.accumulators.push_back(shared(2, kind));
      p.code.at(pc) = wrong;
    };
  };
  using enum AccumulatorKind;
  const Breach breaches[] = {
      {"a transform of counts", with(Exact64, 11, inst(Op::Transform, {2, 2, 2})), "pc 11 (transform)",
       "a2 is neither float32 nor float64"},
      {"labels of counts", with(Exact128, 12, inst(Op::Label, {2, 2, 3})), "pc 12 (label)",
       "a2 is neither float32 nor float64"},
      {"a base for trees", with(PerTree, 1, inst(Op::Init, {2, 2})), "pc 1 (init)", "holds per-tree values"},
      {"a base added to trees", with(PerTree, 1, inst(Op::AddBase, {2, 2})), "pc 1 (add_base)",
       "holds per-tree values"},
      {"trees rounded", with(PerTree, 1, inst(Op::Round, {0, 2, 2})), "pc 1 (round)",
       "holds per-tree values"},
      {"rounded to counts", with(Exact64, 1, inst(Op::Round, {2, 0, 2})), "pc 1 (round)",
       "a2 is neither float32 nor float64"},
      {"sums summed", with(F64, 1, inst(Op::SumTrees, {0, 2, 2})), "pc 1 (sum_trees)",
       "a2 does not hold per-tree values"},
      {"sums of another type than the trees'", with(PerTree, 1, inst(Op::SumTrees, {2, 2, 2})),
       "pc 1 (sum_trees)", "a2 is not float32"},
      {"per-tree values rounded in a loop over trees", with(Exact64, 5, inst(Op::Round, {1, 2, 2})),
       "pc 5 (round)", "a2 is shared"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, RefusesWalksThatAreNotTheirs) {
  const auto atomic = [](ProgramParts& p) { p.walkers[0].atomic = 1; };
  const Breach breaches[] = {
      {"chosen by rows", at(5, inst(Op::Walk, {1, 4, 2, 0, 2})), "pc 5 (walk)",
       "r2 is no loop over known trees"},
      {"chosen by a slice", at(5, inst(Op::Walk, {1, 4, 2, 0, 3})), "pc 5 (walk)",
       "r3 is no loop over known trees"},
      {"chosen by nothing", at(5, inst(Op::Walk, {1, 4, 2, 0, 9})), "pc 5 (walk)",
       "r9 is no loop over known trees"},
      {"chosen by a loop that the trees are no part of", at(9, inst(Op::Walk, {0, 4, 2, 1, 4})),
       "pc 9 (walk)", "r4 is no loop"},
      {"a walker of the other group", at(5, inst(Op::Walk, {1, 4, 2, 0, 4})), "pc 5 (walk)",
       "trees 2 to 4 are not all in group 1"},
      {"more iterations than walkers", at(5, inst(Op::Walk, {1, 4, 2, 1, 4})), "pc 5 (walk)",
       "a walker for each of 2 iterations"},
      {"atomic and not",
       [](ProgramParts& p) {
         p.walkers[1] = p.walkers[0];
         p.walkers[1].atomic = 1;
         p.code[5] = inst(Op::Walk, {1, 4, 2, 0, 4});
       },
       "pc 5 (walk)", "some of its walkers are atomic"},
      {"atomic to per-tree values",
       [&](ProgramParts& p) {
         atomic(p);
         p.accumulators.push_back(shared(2, AccumulatorKind::PerTree));
         p.code[5] = inst(Op::Walk, {2, 4, 2, 0, 1});
       },
       "pc 5 (walk)", "holds per-tree values"},
      {"atomic to another loop's copies",
       [&](ProgramParts& p) {
         atomic(p);
         insert(p, 7, inst(Op::Walk, {1, 3, 2, 0, 1}));
       },
       "pc 7 (walk)", "nothing can be added to a1 here"},
      {"leaves of another group", at(9, inst(Op::Leaves, {4, 2, 0, 1})), "pc 9 (leaves)",
       "trees 4 to 6 are not all in"},
      {"leaves of all rows", at(9, inst(Op::Leaves, {4, 0, 1, 1})), "pc 9 (leaves)",
       "not part of the innermost"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
  ProgramParts good = by_hand();
  atomic(good);
  good.code[5] = inst(Op::Walk, {0, 4, 2, 0, 1});
  good.code[4] = inst(Op::Slice, {5, 4, 0, 1});
  good.code[7] = inst(Op::Slice, {5, 1, 0, 1});
  EXPECT_TRUE(encode_program(good).ok()) << encode_program(good).error().text();
}

TEST(VerifyCode, RefusesCachesAndMappings) {
  const Breach breaches[] = {
      {"of a loop that has ended", at(7, inst(Op::CacheTrees, {3, 1, 0})), "pc 7 (cache_trees)",
       "pc 3 is no loop around it"},
      {"of no loop", at(1, inst(Op::CacheRows, {2, 1})), "pc 1 (cache_rows)", "pc 2 is no loop around it"},
      {"rows of trees", at(4, inst(Op::CacheRows, {3, 1})), "pc 4 (cache_rows)", "does not go over rows"},
      {"trees of rows", at(1, inst(Op::CacheTrees, {0, 1, 0})), "pc 1 (cache_trees)",
       "does not go over trees"},
      {"no such group", at(4, inst(Op::CacheTrees, {3, 1, 2})), "pc 4 (cache_trees)", "no such group"},
      {"dimension 6", at(0, inst(Op::Map, {2, 0, 6, 4, 14})), "pc 0 (map)", "unknown dimension"},
      {"one dimension twice",
       [](ProgramParts& p) {
         p.code[0] = inst(Op::Map, {2, 0, 1, 4, 14});
         p.code[3] = inst(Op::Map, {4, 3, 1, 2, 6});
       },
       "pc 3 (map)", "the loop at pc 0 around it has the same dimension"},
      {"form 3", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 3, 1})), "pc 7 (reduce_dim)", "unknown form"},
      {"form 256", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 256, 1})), "pc 7 (reduce_dim)", "unknown form"},
      {"plain, width 4", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 0, 4})), "pc 7 (reduce_dim)", "a width of 4"},
      {"vector, width 3", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 1, 3})), "pc 7 (reduce_dim)",
       "a width of 3"},
      {"vector, width 32", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 1, 32})), "pc 7 (reduce_dim)",
       "a width of 32"},
      {"shared on the host", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 2, 1})), "pc 7 (reduce_dim)",
       "mapped loop only"},
      {"in place, elsewhere", at(7, inst(Op::ReduceInplace, {0, 1, 2, 3, 0, 1})), "pc 7 (reduce_inplace)",
       "a0 does not lie in a1"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyTables, RefusesAccumulatorsInOneAnother) {
  const Breach breaches[] = {
      {"unknown kind", [](ProgramParts& p) { p.accumulators[1].kind = static_cast<AccumulatorKind>(6); },
       "accumulators section", "a1: unknown kind"},
      {"a result of another kind", [](ProgramParts& p) { p.accumulators[0].kind = AccumulatorKind::F64; },
       "accumulators section", "a0: the result is float32"},
      {"a result elsewhere", [](ProgramParts& p) { p.accumulators[0].stored_in = 1; }, "accumulators section",
       "a0: the result is float32 and has memory of its own"},
      {"copies of another kind", [](ProgramParts& p) { p.accumulators[1].kind = AccumulatorKind::F64; },
       "accumulators section", "a1: its parent is of another kind"},
      {"private per-tree values", [](ProgramParts& p) { p.accumulators[1].kind = AccumulatorKind::PerTree; },
       "accumulators section", "a1: per-tree values are never private"},
      {"in one before", [](ProgramParts& p) { p.accumulators[1].stored_in = 0; }, "accumulators section",
       "a1: it lies in no later accumulator"},
      {"in none", [](ProgramParts& p) { p.accumulators[1].stored_in = 2; }, "accumulators section",
       "a1: it lies in no later accumulator"},
      {"in a stranger",
       [](ProgramParts& p) {
         p.accumulators[1].stored_in = 2;
         p.accumulators.push_back(copies(0, 2, 2, 2));
       },
       "accumulators section", "a1: it lies in an accumulator that is no private copy of it"},
      {"a reserved byte", [](ProgramParts& p) { p.accumulators[1].reserved[1] = 1; }, "accumulators section",
       "a1: a reserved byte"},
      {"unit 2^-1023", [](ProgramParts& p) { p.meta.sum_unit = -1023; }, "meta section", "2^-1023"},
      {"unit 2^1023", [](ProgramParts& p) { p.meta.sum_unit = 1023; }, "meta section", "2^1023"},
      {"float64 leaves that are not there",
       [](ProgramParts& p) { p.accumulators.push_back(shared(2, AccumulatorKind::PerTree64)); },
       "accumulators section", "a2: float64 leaves of a program that has none"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyTables, RefusesMeta) {
  const Breach breaches[] = {
      {"no features", [](ProgramParts& p) { p.meta.num_features = 0; }, "meta section",
       "0 features, expected 1 to"},
      {"too many features", [](ProgramParts& p) { p.meta.num_features = kMaxFeatures + 1; }, "meta section",
       "features, expected 1 to"},
      {"no outputs", [](ProgramParts& p) { p.meta.num_outputs = 0; }, "meta section", "0 outputs"},
      {"too many outputs", [](ProgramParts& p) { p.meta.num_outputs = 65537; }, "meta section",
       "65537 outputs"},
      {"more trees than there are", [](ProgramParts& p) { p.meta.num_trees = UINT32_MAX; }, "meta section",
       "trees, but the groups have 6"},
      {"transform 9", [](ProgramParts& p) { p.meta.transform = static_cast<Transform>(9); }, "meta section",
       "unknown transform"},
      {"class rule 5", [](ProgramParts& p) { p.meta.class_rule = static_cast<ClassRule>(5); }, "meta section",
       "unknown class rule"},
      {"contract 3", [](ProgramParts& p) { p.meta.contract = static_cast<Contract>(3); }, "meta section",
       "unknown numeric contract"},
      {"order 2", [](ProgramParts& p) { p.meta.sums_in_model_order = 2; }, "meta section",
       "sums_in_model_order"},
      {"zeros of no feature", [](ProgramParts& p) { p.zero_missing = {3}; }, "zero_missing section: record 0",
       "outside the row"},
      {"zeros of a feature twice",
       [](ProgramParts& p) {
         p.zero_missing = {1, 1};
       },
       "zero_missing section: record 1", "does not ascend"},
      {"scores of no type", [](ProgramParts& p) { p.meta.score_type = static_cast<ScalarType>(2); },
       "meta section", "unknown type of the scores"},
      {"divisor 0", [](ProgramParts& p) { p.meta.divisor = 0; }, "meta section", "divisor"},
      {"divisor NaN", [](ProgramParts& p) { p.meta.divisor = std::numeric_limits<double>::quiet_NaN(); },
       "meta section", "divisor"},
      {"slope inf", [](ProgramParts& p) { p.meta.slope = std::numeric_limits<double>::infinity(); },
       "meta section", "slope"},
      {"reserved", [](ProgramParts& p) { p.meta.reserved[2] = 1; }, "meta section", "reserved byte"},
      {"reserved at the end", [](ProgramParts& p) { p.meta.reserved2[39] = 1; }, "meta section",
       "reserved byte"},
      {"float64 leaves of float32 scores", [](ProgramParts& p) { p.wide_leaves.push_back(1); },
       "wide_leaves section", "1 leaves"},
      {"float64 scores without their leaves",
       [](ProgramParts& p) { p.meta.score_type = ScalarType::Float64; }, "wide_leaves section", "0 leaves"},
      {"a float64 leaf too few",
       [](ProgramParts& p) {
         p.meta.score_type = ScalarType::Float64;
         p.wide_leaves.resize(p.leaf_numbers.size() - 1);
       },
       "wide_leaves section", "one for each leaf number"},
      {"depth NaN", [](ProgramParts& p) { p.meta.mean_depth = std::numeric_limits<double>::quiet_NaN(); },
       "meta section", "mean depth"},
      {"names of some features", [](ProgramParts& p) { p.meta.num_feature_names = 2; }, "meta section",
       "2 feature names for 3 features"},
      {"labels that are not there", [](ProgramParts& p) { ++p.meta.num_class_labels; }, "strings section",
       "11 strings, expected 12"},
      {"a string too few", [](ProgramParts& p) { p.strings.pop_back(); }, "strings section", "10 strings"},
      {"no strings", [](ProgramParts& p) { p.strings.clear(); }, "strings section", "0 strings"},
      {"a base too few", [](ProgramParts& p) { p.base.pop_back(); }, "base section", "2 base scores"},
      {"a threshold count too many", [](ProgramParts& p) { p.thresholds.push_back(1); }, "thresholds section",
       "4 records for 3 features"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyTables, RefusesAccumulators) {
  const Breach breaches[] = {
      {"none", [](ProgramParts& p) { p.accumulators.clear(); }, "accumulators section", "0 accumulators"},
      {"nine", [](ProgramParts& p) { p.accumulators.resize(9, copies(0, 1, 1, 1)); }, "accumulators section",
       "9 accumulators"},
      {"two results", [](ProgramParts& p) { p.accumulators[0].copies = 2; }, "accumulators section",
       "a0: what is not private exists once"},
      {"a result with iterations", [](ProgramParts& p) { p.accumulators[0].iterations = 0; },
       "accumulators section", "a0: what is not private exists once"},
      {"its own parent", [](ProgramParts& p) { p.accumulators[1].parent = 1; }, "accumulators section",
       "a1: what is not private exists once"},
      {"parent far away", [](ProgramParts& p) { p.accumulators[1].parent = UINT32_MAX; },
       "accumulators section", "a1: its parent must come before it"},
      {"no iterations", [](ProgramParts& p) { p.accumulators[1] = copies(0, 0, 0, 1); },
       "accumulators section", "a1: no iterations"},
      {"fewer copies", [](ProgramParts& p) { p.accumulators[1].copies = 1; }, "accumulators section",
       "a1: 1 copies are not"},
      {"copies that wrap around",
       [](ProgramParts& p) {
         p.accumulators = {shared(0), copies(0, 65536, 65536, 1), copies(1, 65536, 0, 2)};
       },
       "accumulators section", "a2: 0 copies are not"},
      {"too much memory", [](ProgramParts& p) { p.accumulators[1] = copies(0, 1u << 24, 1u << 24, 1); },
       "accumulators section", "bytes of private accumulators a row"},
      {"the most memory", [](ProgramParts& p) { p.accumulators[1] = copies(0, UINT32_MAX, UINT32_MAX, 1); },
       "accumulators section", "bytes of private accumulators a row"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

/// A file's size bounds the work of its verification: looking at a large group's trees again for each of many
/// walkers would take minutes here, instead of a fraction of a second.
TEST(VerifyWalkers, TimeIsProportionalToSize) {
  ProgramParts parts =
      parts_of(compiled(small_forest({.trees = 20'000, .depth = 1}), "layout(tree, sparse)"));
  parts.walkers.resize(3'000'000, parts.walkers[0]);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(encode_program(parts).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace forestvm::test
