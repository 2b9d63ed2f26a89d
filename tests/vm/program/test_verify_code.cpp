// The verifier's rules for code and walkers, one by one.
#include <gtest/gtest.h>

#include <forestvm/internal/code_map.hpp>

#include "vm/hand_program.hpp"

namespace forestvm::test::test_verify_code {
namespace {

TEST(VerifyCode, RefusesInstructionsThatAreNone) {
  const Breach breaches[] = {
      {"unknown opcode", [](ProgramParts& p) { p.code[1].op = static_cast<Op>(kOpCount); }, "pc 1",
       "unknown opcode 31"},
      {"opcode 255", [](ProgramParts& p) { p.code.back().op = static_cast<Op>(255); }, "pc 28",
       "unknown opcode 255"},
      {"unused small field", [](ProgramParts& p) { p.code[1].small[2] = 1; }, "pc 1 (init)",
       "unused operand field"},
      {"unused wide field", [](ProgramParts& p) { p.code[1].wide[0] = 1; }, "pc 1 (init)",
       "unused operand field"},
      {"halt with an operand", [](ProgramParts& p) { p.code.back().wide[2] = 7; }, "pc 28 (halt)",
       "unused operand field"},
      {"register 16", at(1, inst(Op::Init, {0, 16})), "pc 1 (init)", "no such range register"},
      {"register 255", at(2, inst(Op::Slice, {255, 1, 0, 4})), "pc 2 (slice)", "no such range register"},
      {"accumulator 2", at(1, inst(Op::Init, {2, 2})), "pc 1 (init)", "no such accumulator"},
      {"output 12", at(10, inst(Op::When, {12, 13})), "pc 10 (when)", "unknown output"},
      {"transform 99", at(11, inst(Op::Transform, {0, 2, 99})), "pc 11 (transform)", "unknown transform"},
      {"variances of one output",
       at(11, inst(Op::Transform, {0, 2, static_cast<std::uint32_t>(Transform::Uncertainty)})),
       "pc 11 (transform)", "for two outputs"},
      {"a median of one output",
       at(11, inst(Op::Transform, {0, 2, static_cast<std::uint32_t>(Transform::WeightedMedian)})),
       "pc 11 (transform)", "for pairs of outputs"},
      {"rule 99", at(12, inst(Op::Label, {0, 2, 99})), "pc 12 (label)", "unknown class rule"},
      {"walker 2", at(5, inst(Op::Walk, {1, 4, 2, 2, 1})), "pc 5 (walk)", "no such walker"},
      {"step 0", at(3, inst(Op::Par, {4, 3, 0, 6})), "pc 3 (par)", "a step of 0"},
      {"partner outside", at(0, inst(Op::Par, {2, 0, 4, 29})), "pc 0 (par)", "outside the code"},
      {"loop outside", at(7, inst(Op::ReduceDim, {0, 1, 2, 29, 0, 1})), "pc 7 (reduce_dim)",
       "outside the code"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, RefusesBlocksThatDoNotNest) {
  const Breach breaches[] = {
      {"no code", [](ProgramParts& p) { p.code.clear(); }, "code section", "no instructions"},
      {"no halt", [](ProgramParts& p) { p.code.pop_back(); }, "code section", "does not end with halt"},
      {"halt in a block", at(1, inst(Op::Halt, {})), "pc 1 (halt)", "still open"},
      {"code after halt", [](ProgramParts& p) { p.code.push_back(inst(Op::Halt, {})); }, "pc 28 (halt)",
       "after the end"},
      {"partner is no end", at(0, inst(Op::Par, {2, 0, 4, 12})), "pc 0 (par)", "its end does not name it"},
      {"another's end", at(0, inst(Op::Par, {2, 0, 4, 13})), "pc 0 (par)", "its end does not name it"},
      {"partner before", at(3, inst(Op::Par, {4, 3, 2, 3})), "pc 3 (par)", "its end does not name it"},
      {"end of another", at(6, inst(Op::End, {0})), "pc 3 (par)", "its end does not name it"},
      {"end of nothing", before(28, inst(Op::End, {0})), "pc 28 (end)", "does not close"},
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

/// Returns `depth` nested blocks, then what a program needs.
ProgramParts nested(std::uint32_t depth) {
  ProgramParts parts = by_hand();
  parts.code.clear();
  for (std::uint32_t i = 0; i < depth; ++i) parts.code.push_back(inst(Op::When, {0, 2 * depth - 1 - i}));
  for (std::uint32_t i = 0; i < depth; ++i) parts.code.push_back(inst(Op::End, {depth - 1 - i}));
  parts.code.push_back(inst(Op::Init, {0, 0}));
  add_outputs(parts);
  return parts;
}

TEST(VerifyCode, RefusesDeepNests) {
  ASSERT_TRUE(build_program(nested(kMaxBlockDepth)).ok());
  const auto program = build_program(nested(kMaxBlockDepth + 1));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().text(), "pc 16 (when): more than 16 nested blocks");
}

TEST(VerifyCode, BoundsTheNumbersOfInstructionsAndWalkers) {
  ProgramParts parts = by_hand();
  const std::size_t last = parts.code.size() - 1;
  parts.code.insert(parts.code.begin() + static_cast<std::ptrdiff_t>(last), kMaxInstructions - last - 1,
                    inst(Op::Zero, {0, 0}));
  parts.walkers.resize(kMaxWalkers, parts.walkers[0]);
  ASSERT_TRUE(build_program(parts).ok()) << build_program(parts).error().text();
  expect_refusal(parts, {"instructions", [](ProgramParts& p) { p.code.push_back(p.code.back()); },
                         "code section", "65537 instructions, at most 65536"});
  expect_refusal(parts, {"walkers", [](ProgramParts& p) { p.walkers.push_back(p.walkers.back()); },
                         "walkers section", "65537 walkers, at most 65536"});
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
      {"the first of each iteration's",
       [](ProgramParts& p) {
         insert(p, 10, inst(Op::End, {10}));
         insert(p, 10, inst(Op::Walk, {0, 6, 2, 0, 1}));
         insert(p, 10, inst(Op::Slice, {6, 5, 0, 1}));
         insert(p, 10, inst(Op::For, {5, 1, 2, 13}));
         p.code[13] = inst(Op::End, {10});
       },
       "pc 12 (walk)", "trees 0 to 6 are not all in group 0"},
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
       "r2 is not the innermost parallel loop over trees"},
      {"for the trees' register", at(4, inst(Op::Privatize, {1, 4, 4})), "pc 4 (privatize)",
       "r4 holds trees, expected rows"},
      {"for all rows, in a loop over rows", at(4, inst(Op::Privatize, {1, 4, 0})), "pc 4 (privatize)",
       "r0 is not part of the innermost enclosing loop over rows"},
      {"in a serial loop", at(3, inst(Op::For, {4, 3, 2, 6})), "pc 4 (privatize)",
       "not the innermost parallel loop over trees"},
      {"too few copies", at(3, inst(Op::Par, {4, 3, 1, 6})), "pc 4 (privatize)",
       "the loop has more iterations than a1's 2"},
      {"more trees than copies", at(2, inst(Op::Slice, {3, 1, 0, 6})), "pc 4 (privatize)", "more iterations"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

/// A privatize in a block of its own may not run, or may run in another machine's copy: iterations would then
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

/// Two parallel loops over trees, one after the other; the second uses an accumulator that the first made.
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

/// The register with the loop's range is reused after its block has ended: the reduction would count the
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
  const auto program = build_program(parts);
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
      {"array: steps beyond the shallowest tree", [](ProgramParts& p) { p.walkers[0].steps = 2; },
       "walkers section: w0", "2 steps without a leaf check in trees of 1"},
      {"array: 65535 steps", [](ProgramParts& p) { p.walkers[0].steps = 65535; }, "walkers section: w0",
       "65535 steps"},
      {"sparse: steps beyond the deepest tree", [](ProgramParts& p) { p.walkers[1].steps = 9; },
       "walkers section: w1", "9 steps"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

/// The rules for sums of other kinds, tested on the program by hand with two more accumulators.
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
       "r2 is not a loop over known trees"},
      {"chosen by a slice", at(5, inst(Op::Walk, {1, 4, 2, 0, 3})), "pc 5 (walk)",
       "r3 is not a loop over known trees"},
      {"chosen by nothing", at(5, inst(Op::Walk, {1, 4, 2, 0, 9})), "pc 5 (walk)",
       "r9 is not a loop over known trees"},
      {"chosen by a loop that the trees are no part of", at(9, inst(Op::Walk, {0, 4, 2, 1, 4})),
       "pc 9 (walk)", "r4 is not a loop"},
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
      {"atomic to copies that are not there",
       [&](ProgramParts& p) {
         atomic(p);
         p.code[4] = inst(Op::Slice, {5, 4, 0, 1});
       },
       "pc 5 (walk)", "a1 is not privatized here"},
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
  EXPECT_TRUE(build_program(good).ok()) << build_program(good).error().text();
}

TEST(VerifyCode, RefusesCachesAndMappings) {
  const Breach breaches[] = {
      {"of a loop that has ended", at(7, inst(Op::CacheTrees, {3, 1, 0})), "pc 7 (cache_trees)",
       "pc 3 is not a loop around it"},
      {"of no loop", at(1, inst(Op::CacheRows, {2, 1})), "pc 1 (cache_rows)", "pc 2 is not a loop around it"},
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
      {"vectors of a mapped loop",
       [](ProgramParts& p) {
         p.code[3] = inst(Op::Map, {4, 3, 3, 2, 6});
         p.code[7] = inst(Op::ReduceDim, {0, 1, 2, 3, 1, 4});
       },
       "pc 7 (reduce_dim)", "vectors add the copies of a loop on the host only"},
      {"shared on the host", at(7, inst(Op::ReduceDim, {0, 1, 2, 3, 2, 1})), "pc 7 (reduce_dim)",
       "mapped loop only"},
      {"in place, elsewhere", at(7, inst(Op::ReduceInplace, {0, 1, 2, 3, 0, 1})), "pc 7 (reduce_inplace)",
       "a0 does not lie in a1"},
  };
  for (const Breach& breach : breaches) expect_refusal(by_hand(), breach);
}

TEST(VerifyCode, MapsTheMemoryOfAccumulators) {
  ProgramParts parts = by_hand();
  ASSERT_EQ(parts.meta.num_outputs, 3u);
  ASSERT_EQ(parts.meta.num_trees, 6u);
  // a1 lies in the first copies of a2, and a2 in those of a3.
  parts.accumulators = {shared(0),
                        copies(0, 3, 3, 2),
                        copies(1, 2, 6, 3),
                        copies(2, 5, 30, 3),
                        copies(0, 7, 7, 4),
                        shared(5, AccumulatorKind::PerTree),
                        shared(6, AccumulatorKind::Exact128)};
  parts.code = {inst(Op::Init, {0, 0})};
  add_outputs(parts);
  const auto program = build_program(parts);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const AccumulatorMemory expected[] = {{0, 1, 3, 12, false},  {3, 10, 3, 0, false}, {3, 5, 3, 0, false},
                                        {3, 1, 3, 360, false}, {4, 1, 3, 84, false}, {5, 1, 6, 24, true},
                                        {6, 1, 3, 48, false}};
  const auto& found = code_map(*program).accumulators;
  ASSERT_EQ(found.size(), std::size(expected));
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].storage, expected[i].storage);
    EXPECT_EQ(found[i].copy_stride, expected[i].copy_stride);
    EXPECT_EQ(found[i].width, expected[i].width);
    EXPECT_EQ(found[i].copy_bytes, expected[i].copy_bytes);
    EXPECT_EQ(found[i].of_trees, expected[i].of_trees);
  }
}

}  // namespace
}  // namespace forestvm::test::test_verify_code
