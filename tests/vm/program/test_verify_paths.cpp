// The verifier's rules for the paths of calls through the code: memory is written before it is read, outputs
// are written completely, work is bounded.
#include <gtest/gtest.h>

#include <forestvm/compile.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "support/small_models.hpp"
#include "vm/hand_program.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_verify_paths {
namespace {

std::uint32_t lines(const std::string& text) {
  return static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Returns `text`, one instruction per line, with a block of `body` after it.
std::string with_block(const std::string& text, const std::string& head, const std::string& body) {
  const std::uint32_t open = lines(text), end = open + lines(body) + 1;
  return text + head + ", @" + std::to_string(end) + "\n" + body + "end @" + std::to_string(open) + "\n";
}

/// Returns code that sets a0 for all rows, followed by the outputs; `raw` writes raw scores.
std::string with_outputs(std::string text, const std::string& raw = "store a0, r0\n") {
  text = with_block(text, "when raw", raw);
  text = with_block(text, "when value", "store a0, r0\n");
  text = with_block(text, "when class", "label a0, r0, argmax\n");
  text = with_block(text, "when leaf",
                    "slice r15, r1, from 0, to 4\nleaves r15, r0, w0, by r1\n"
                    "slice r15, r1, from 4, to 6\nleaves r15, r0, w1, by r1\n");
  return text + "halt\n";
}

/// Returns the program by hand with other accumulators and little code.
Program data_with(std::vector<AccumulatorDesc> accumulators) {
  ProgramParts parts = by_hand();
  parts.accumulators = std::move(accumulators);
  parts.code = {inst(Op::Init, {0, 0})};
  add_outputs(parts);
  return *build_program(parts);
}

const Program& data() {
  static const Program program = *build_program(by_hand());
  return program;
}

void expect_accepted(const std::string& code, const Program& over = data()) {
  const auto program = assemble(code, over);
  EXPECT_TRUE(program.ok()) << program.error().text() << "\n" << code;
}

void expect_refused(const std::string& code, const std::string& where, const std::string& what,
                    const Program& over = data()) {
  const auto program = assemble(code, over);
  ASSERT_FALSE(program.ok()) << code;
  EXPECT_EQ(program.error().where, where) << program.error().text() << "\n" << code;
  EXPECT_NE(program.error().message.find(what), std::string::npos) << program.error().text();
}

TEST(VerifyPaths, RefusesSumsThatAreReadBeforeTheyAreSet) {
  const std::string nothing = "which holds nothing of these rows";
  expect_accepted(with_outputs("init a0, r0\n"));
  expect_refused(with_outputs("slice r2, r1, from 0, to 4\nwalk a0, r2, r0, w0, by r1\n"), "pc 1 (walk)",
                 "it adds to a0, " + nothing);
  expect_refused(with_outputs("add_base a0, r0\n"), "pc 0 (add_base)", "a0 is read for rows");
  expect_refused(with_outputs("transform a0, r0, softmax\n"), "pc 0 (transform)", "a0 is read for rows");
  expect_refused(with_outputs(""), "pc 1 (store)", "a0 is read for rows");
  // a0 is set in a block that some calls skip.
  expect_refused(with_outputs("when raw, @2\ninit a0, r0\nend @0\n"), "pc 7 (store)", "(output value, ");
  expect_refused(with_outputs("plan from 2, to 4294967295, @2\ninit a0, r0\nend @0\n"), "pc 4 (store)",
                 "(output raw, calls of 1 row)");
  // a0 is set in a loop over trees that may be empty.
  expect_accepted(with_outputs("for r2, r1, step 1, @2\ninit a0, r0\nend @0\n"));
  expect_refused(with_outputs("slice r3, r1, from 6, to 9\nfor r2, r3, step 1, @3\ninit a0, r0\nend @1\n"),
                 "pc 5 (store)", "a0 is read for rows");
}

TEST(VerifyPaths, RefusesSumsThatAreSetForSomeRowsOnly) {
  const std::string all = "4294967295\n";
  expect_accepted(with_outputs("slice r2, r0, from 0, to 64\ninit a0, r2\nslice r3, r0, from 64, to " + all +
                               "init a0, r3\n"));
  expect_accepted(with_outputs("slice r3, r0, from 64, to " + all +
                               "slice r2, r0, from 0, to 80\ninit a0, r3\n" + "zero a0, r2\n"));
  expect_refused(with_outputs("slice r2, r0, from 0, to 64\ninit a0, r2\nslice r3, r0, from 65, to " + all +
                              "init a0, r3\n"),
                 "pc 5 (store)", "a0 is read for rows");
  expect_refused(with_outputs("slice r2, r0, from 0, to 4294967294\ninit a0, r2\n"), "pc 3 (store)",
                 "a0 is read for rows");
  expect_refused(with_outputs("slice r2, r0, from 1, to " + all + "init a0, r2\n"), "pc 3 (store)",
                 "a0 is read for rows");
  // a0 is set by loops: what an iteration sets for all its rows is set for all rows of the loop.
  expect_accepted(with_outputs("for r2, r0, step 4, @2\ninit a0, r2\nend @0\n"));
  expect_accepted(
      with_outputs("par r2, r0, step 64, @4\nfor r3, r2, step 8, @3\ninit a0, r3\nend @1\nend @0\n"));
  expect_accepted(
      with_outputs("for r2, r0, step 4, @5\nslice r3, r2, from 0, to 3\ninit a0, r3\n"
                   "slice r4, r2, from 3, to 4\ninit a0, r4\nend @0\n"));
  expect_refused(with_outputs("for r2, r0, step 4, @3\nslice r3, r2, from 0, to 3\ninit a0, r3\nend @0\n"),
                 "pc 5 (store)", "a0 is read for rows");
  expect_refused(with_outputs("slice r3, r0, from 0, to 64\nfor r2, r3, step 4, @3\ninit a0, r2\nend @1\n"),
                 "pc 5 (store)", "a0 is read for rows");
  // Memory that is set before a loop is also set inside it.
  expect_accepted(
      with_outputs("init a0, r0\nfor r2, r0, step 4, @4\nslice r3, r1, from 0, to 4\n"
                   "walk a0, r3, r2, w0, by r1\nend @1\n"));
  expect_refused(with_outputs("slice r4, r0, from 0, to 4\ninit a0, r4\nfor r2, r0, step 4, @5\n"
                              "slice r3, r1, from 0, to 4\nwalk a0, r3, r2, w0, by r1\nend @2\n"),
                 "pc 4 (walk)", "it adds to a0");
}

/// An accumulator that is stored in its copies holds what they leave, not its earlier content.
TEST(VerifyPaths, RefusesCopiesThatAreReadBeforeTheyAreAdded) {
  const Program over = data_with({shared(0), copies(0, 2, 2, 2), copies(1, 2, 4, 2)});
  const auto code = [](const std::string& between) {
    return "init a0, r0\nslice r2, r1, from 0, to 4\npar r3, r2, step 2, @" +
           std::to_string(9 + lines(between)) + "\nprivatize a1, r3, r0\n" + between +
           "par r4, r3, step 1, @" + std::to_string(7 + lines(between)) +
           "\nprivatize a2, r4, r0\nwalk a2, r4, r0, w0, by r1\nend @" + std::to_string(4 + lines(between)) +
           "\nreduce_inplace a1, a2, r0, @" + std::to_string(4 + lines(between)) +
           ", plain, width 1\nend @2\n";
  };
  const std::string end = "reduce_dim a0, a1, r0, @2, plain, width 1\n";
  expect_accepted(with_outputs(code("") + end), over);
  expect_refused(with_outputs(code("zero a1, r0\n") + end), "pc 4 (zero)",
                 "a1 lies in a2: only reduce_inplace writes it", over);
  std::string without = code("");
  without.replace(without.find("reduce_inplace a1, a2, r0, @4, plain, width 1"), 45,
                  "slice r5, r3, from 0, to 1");
  expect_refused(with_outputs(without + end), "pc 10 (reduce_dim)", "a1 is read for rows", over);
  // A copy that iterations make is zeroed only for the rows that privatize names.
  expect_refused(
      with_outputs("init a0, r0\nslice r2, r1, from 0, to 4\nslice r4, r0, from 0, to 8\n"
                   "par r3, r2, step 2, @6\nprivatize a1, r3, r4\nwalk a1, r3, r0, w0, by r1\nend @3\n"),
      "pc 5 (walk)", "it adds to a1");
  expect_refused(with_outputs("init a0, r0\nslice r2, r1, from 0, to 4\nslice r4, r0, from 0, to 8\n"
                              "par r3, r2, step 2, @5\nprivatize a1, r3, r4\nend @3\n"
                              "reduce_dim a0, a1, r0, @3, plain, width 1\n"),
                 "pc 6 (reduce_dim)", "a1 is read for rows");
}

TEST(VerifyPaths, RefusesSumsOfTreesThatWereNotWalked) {
  const Program over = data_with({shared(0), shared(1), shared(2, AccumulatorKind::PerTree)});
  const std::string g0 = "slice r2, r1, from 0, to 4\nwalk a2, r2, r0, w0, by r1\n";
  const std::string g1 = "slice r2, r1, from 4, to 6\nwalk a2, r2, r0, w1, by r1\n";
  const std::string sum = "sum_trees a0, a2, r0\n", init = "init a0, r0\n";
  expect_accepted(with_outputs(init + g0 + g1 + sum), over);
  expect_accepted(with_outputs(init + "zero a2, r0\n" + g0 + sum), over);
  expect_refused(with_outputs(g0 + g1 + sum), "pc 4 (sum_trees)", "a0 is read for rows", over);
  expect_refused(with_outputs(init + g0 + sum), "pc 3 (sum_trees)", "does not hold every tree's leaf", over);
  expect_refused(with_outputs(init + g0 + "slice r2, r1, from 5, to 6\nwalk a2, r2, r0, w1, by r1\n" + sum),
                 "pc 5 (sum_trees)", "does not hold every tree's leaf", over);
  // Parts of trees and parts of rows, each with all of the other axis.
  expect_accepted(with_outputs(init +
                               "for r3, r0, step 4, @6\nslice r2, r1, from 0, to 4\n"
                               "walk a2, r2, r3, w0, by r1\nslice r2, r1, from 4, to 6\n"
                               "walk a2, r2, r3, w1, by r1\nend @1\n" +
                               sum),
                  over);
  expect_accepted(with_outputs(init +
                               "slice r2, r1, from 0, to 4\npar r3, r2, step 1, @6\n"
                               "for r4, r0, step 4, @5\nwalk a2, r3, r4, w0, by r1\nend @3\nend @2\n" +
                               g1 + sum),
                  over);
  expect_accepted(with_outputs(init +
                               "slice r2, r1, from 0, to 4\nslice r3, r0, from 0, to 8\n"
                               "slice r4, r0, from 8, to 4294967295\nwalk a2, r2, r3, w0, by r1\n"
                               "walk a2, r2, r4, w0, by r1\n" +
                               g1 + sum),
                  over);
  expect_refused(with_outputs(init +
                              "slice r2, r1, from 0, to 4\nslice r3, r0, from 0, to 8\n"
                              "walk a2, r2, r3, w0, by r1\n" +
                              g1 + sum),
                 "pc 6 (sum_trees)", "does not hold every tree's leaf", over);
  expect_refused(with_outputs(init +
                              "slice r2, r1, from 0, to 4\npar r3, r2, step 2, @5\n"
                              "slice r4, r3, from 0, to 1\nwalk a2, r4, r0, w0, by r1\nend @2\n" +
                              g1 + sum),
                 "pc 8 (sum_trees)", "does not hold every tree's leaf", over);
}

TEST(VerifyPaths, RefusesOutputsThatAreNotWritten) {
  const auto without = [](std::size_t pc, const char* output) {
    ProgramParts parts = by_hand();
    parts.code.at(pc) = inst(Op::Zero, {0, parts.code[pc].op == Op::Label ? 2u : 0u});
    expect_refusal(parts, "code section",
                   ("the output is not written for every row (output " + std::string(output)).c_str());
  };
  without(12, "class");
  without(16, "raw");
  without(20, "value");
  without(24, "leaf");
  without(26, "leaf");
}

TEST(VerifyPaths, RefusesOutputsThatAreWrittenForSomeRowsOnly) {
  const auto stored = [](const std::string& text) { return with_outputs("init a0, r0\n", text); };
  const std::string all = "4294967295\n",
                    missing = "the output is not written for every row (output raw, calls of ";
  expect_accepted(stored("store a0, r0\n"));
  expect_accepted(
      stored("slice r2, r0, from 0, to 9\nstore a0, r2\nslice r2, r0, from 9, to " + all + "store a0, r2\n"));
  expect_refused(
      stored("slice r2, r0, from 0, to 9\nstore a0, r2\nslice r2, r0, from 10, to " + all + "store a0, r2\n"),
      "code section", missing + "1 row)");
  expect_accepted(stored("par r2, r0, step 8, @4\nstore a0, r2\nend @2\n"));
  expect_refused(stored("par r2, r0, step 8, @5\nslice r3, r2, from 0, to 7\nstore a0, r3\nend @2\n"),
                 "code section", missing + "1 row)");
  expect_accepted(
      stored("plan from 1, to 3, @4\nstore a0, r0\nend @2\nplan from 4, to 4294967295, @7\n"
             "store a0, r0\nend @5\n"));
  expect_refused(stored("plan from 1, to 3, @4\nstore a0, r0\nend @2\nplan from 5, to 4294967295, @7\n"
                        "store a0, r0\nend @5\n"),
                 "code section", missing + "4 rows)");
  expect_refused(stored("plan from 1, to 3, @4\nstore a0, r0\nend @2\nplan from 4, to 4294967294, @7\n"
                        "store a0, r0\nend @5\n"),
                 "code section", missing + "4294967295 rows)");
}

TEST(VerifyPaths, AProgramWithoutClassesWritesNone) {
  ProgramParts parts = by_hand();
  parts.meta.class_rule = ClassRule::None;
  parts.code[12] = inst(Op::Zero, {0, 2});
  const auto program = build_program(parts);
  EXPECT_TRUE(program.ok()) << program.error().text();
}

/// The ways of all targets are followed.
TEST(VerifyPaths, EveryTargetWritesTheOutput) {
  const auto stored = [](const std::string& text) { return with_outputs("init a0, r0\n", text); };
  expect_accepted(stored("on avx512, @4\nstore a0, r0\nend @2\non below-avx512, @7\nstore a0, r0\nend @5\n"));
  expect_refused(stored("on avx512, @4\nstore a0, r0\nend @2\non baseline, @7\nstore a0, r0\nend @5\n"),
                 "code section", "on avx2");
  expect_refused(stored("on avx2-up, @4\nstore a0, r0\nend @2\n"), "code section", "on baseline");
  expect_refused(stored("on below-avx512, @4\nstore a0, r0\nend @2\n"), "code section", "on avx512");
}

TEST(VerifyPaths, BoundsTheBlocksOfPlans) {
  const auto plans = [](std::uint32_t count) {
    std::string text = "init a0, r0\n";
    for (std::uint32_t i = 0; i < count; ++i)
      text +=
          "plan from 1, to 4, @" + std::to_string(2 * i + 2) + "\nend @" + std::to_string(2 * i + 1) + "\n";
    return with_outputs(text);
  };
  expect_accepted(plans(kMaxPlanBlocks));
  expect_refused(plans(kMaxPlanBlocks + 1), "code section", "more than 64 blocks of plans");
}

TEST(VerifyPaths, RefusesInstructionsOfAnotherOutput) {
  const std::string first = "init a0, r0\n";
  expect_refused(with_outputs(first + "store a0, r0\n"), "pc 1 (store)",
                 "it writes scores or values (output class,");
  expect_refused(with_outputs(first + "label a0, r0, argmax\n"), "pc 1 (label)",
                 "it writes classes (output raw,");
  expect_refused(with_outputs(first + "slice r2, r1, from 0, to 4\nleaves r2, r0, w0, by r1\n"),
                 "pc 2 (leaves)", "it writes the numbers of leaves (output raw,");
}

/// Codes must be written before they are read, like any other memory.
TEST(VerifyPaths, RefusesCodesThatAreNotWritten) {
  const Program over = compiled(small_forest(), "tile(batch, b0, b1, 64); reorder(b0, tree, b1); encode(u8)");
  const std::string code = over.disassemble();
  expect_accepted(code, over);
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string text = code;
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << text;
    return text.replace(at, what.size(), by);
  };
  expect_refused(replaced("encode r2", "init a0, r2"), "pc 4 (walk)", "these rows are not encoded here",
                 over);
}

TEST(VerifyPaths, BoundsTheStepsOfARow) {
  ProgramParts parts = by_hand();
  parts.meta.num_outputs = 65536;
  parts.base.resize(65536);
  // Two nested loops over the 6 trees pass 6 times over 65,536 outputs.
  const std::string loop = "for r2, r1, step 1, @", body = "add_base a0, r0\n";
  const Program over = *build_program(parts);
  const auto code = [&](std::uint32_t count) {
    std::string text = "init a0, r0\n" + loop + std::to_string(2 + count) + "\n";
    for (std::uint32_t i = 0; i < count; ++i) text += body;
    return with_outputs(text + "end @1\n");
  };
  // Each added instruction takes one step and one more for each output, for each of 6 trees.
  const auto few = assemble(code(1), over), more = assemble(code(2), over);
  ASSERT_TRUE(few.ok() && more.ok()) << few.error().text();
  EXPECT_EQ(steps_per_row(*more) - steps_per_row(*few), 6u * 65537);
  const std::uint64_t allowed = (std::uint64_t{1} << 22) + 64 * few->image().size();
  const auto most = static_cast<std::uint32_t>(allowed / (6 * 65537));
  expect_refused(code(most + 1000), "code section", " steps, more than the ", over);
}

/// Walks trees by the number of steps of the deepest one, repeatedly.
TEST(VerifyPaths, BoundsStepsThatAreNotChecked) {
  constexpr std::uint32_t kTrees = 2000, kDepth = 600;
  Model model = small_forest({.trees = kTrees, .depth = 1});
  model.trees[0] = chain_of(kDepth);
  ProgramParts parts = parts_of(compiled(model, "layout(tree, sparse)"));
  const std::uint64_t before = steps_per_row(*build_program(parts));
  parts.walkers[0].steps = kDepth;
  EXPECT_EQ(steps_per_row(*build_program(parts)) - before, std::uint64_t{kTrees} * kDepth);
  const auto first = std::find_if(parts.code.begin(), parts.code.end(),
                                  [](const Inst& inst) { return inst.op == Op::Walk; });
  const auto pc = static_cast<std::uint32_t>(first - parts.code.begin());
  const Inst walk = *first;
  for (int i = 0; i < 1000; ++i) insert(parts, pc, walk);
  expect_refusal(parts, "code section", " steps, more than the ");
}

/// Each of many trees in turn is walked for the parts of the rows: together they are all trees and all rows.
TEST(VerifyPaths, PartsOfRowsOfUnrolledTreesAreAllPairs) {
  Model model = small_forest({.trees = 12});
  for (Tree& tree : model.trees) support::make_vectors(tree, model.num_outputs);
  const auto program =
      compile(model, *parse_schedule("reorder(tree, batch); split(batch, b0, b1, 2); unroll(tree)"));
  EXPECT_TRUE(program.ok()) << program.error().text();
}

}  // namespace
}  // namespace forestvm::test::test_verify_paths
