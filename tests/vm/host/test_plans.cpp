// Plans: each call runs the plan for its number of rows and no other; all plans give the same bits; each pass
// of a long call runs the plan for its remaining rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/reference.hpp>

#include "support/floats.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_plans {
namespace {

using Limits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Returns the least and the most rows of each plan of a program.
Limits limits_of(const Program& program) {
  Limits limits;
  for (const Inst& inst : program.code())
    if (inst.op == Op::Plan)
      limits.emplace_back(operands<Op::Plan>(inst).least, operands<Op::Plan>(inst).most);
  return limits;
}

TEST(Plans, LeaveNoNumberOfRowsOut) {
  const Model model = small_forest();
  EXPECT_EQ(limits_of(compiled(model, "")), Limits{});
  EXPECT_EQ(limits_of(compiled(model, "plan(BATCH)")), Limits{});
  EXPECT_EQ(limits_of(compiled(model, "plan(BATCH); interleave(batch)")), Limits{});
  EXPECT_EQ(limits_of(compiled(model, "plan(1); plan(BATCH)")), (Limits{{0, 1}, {2, UINT32_MAX}}));
  EXPECT_EQ(limits_of(compiled(model, "plan(7); plan(8); interleave(batch); plan(1000); plan(BATCH)")),
            (Limits{{0, 7}, {8, 8}, {9, 1000}, {1001, UINT32_MAX}}));
  EXPECT_EQ(limits_of(compiled(model, "plan(4294967294); plan(BATCH)")),
            (Limits{{0, 4294967294}, {4294967295, UINT32_MAX}}));
}

Inst inst(Op op, std::initializer_list<std::uint32_t> values) {
  std::uint32_t all[kMaxOperands] = {};
  std::copy(values.begin(), values.end(), all);
  return pack(op, all);
}

/// Returns a program that adds its trees once in calls of up to 3 rows, twice for 4 to 6 rows, three times
/// for more.
Program counting_program() {
  ProgramParts parts = parts_of(compiled(support::model_of({support::leaf(1)}), ""));
  const Inst walk = inst(Op::Walk, {0, 1, 0, 0, 1});
  parts.base = {0};
  parts.code = {inst(Op::Zero, {0, 0})};
  Limits limits{{0, 3}, {4, 6}, {7, UINT32_MAX}};
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto open = static_cast<std::uint32_t>(parts.code.size());
    const auto walks = static_cast<std::uint32_t>(i + 1);
    parts.code.push_back(inst(Op::Plan, {limits[i].first, limits[i].second, open + walks + 1}));
    parts.code.insert(parts.code.end(), walks, walk);
    parts.code.push_back(inst(Op::End, {open}));
  }
  const auto at = static_cast<std::uint32_t>(parts.code.size());
  parts.meta.class_rule = ClassRule::None;
  for (const Inst& one : {inst(Op::When, {0, at + 2}), inst(Op::Store, {0, 0}), inst(Op::End, {at}),
                          inst(Op::When, {1, at + 5}), inst(Op::Store, {0, 0}), inst(Op::End, {at + 3}),
                          inst(Op::When, {3, at + 8}), inst(Op::Leaves, {1, 0, 0, 1}),
                          inst(Op::End, {at + 6}), inst(Op::Halt, {})})
    parts.code.push_back(one);
  return build_program(parts).value();
}

/// Plans for some targets lie in blocks of their own; plans for one number of rows share it, and leave no target out.
TEST(Plans, OfSeveralTargetsShareNumbersOfRows) {
  const Program program =
      compiled(small_forest(),
               "plan(8); plan(64, avx512); interleave(batch); plan(64, avx2); plan(64); "
               "plan(BATCH, avx512fp16); interleave(batch); plan(BATCH, avx512); plan(BATCH)");
  EXPECT_EQ(
      limits_of(program),
      (Limits{{0, 8}, {9, 64}, {9, 64}, {9, 64}, {65, UINT32_MAX}, {65, UINT32_MAX}, {65, UINT32_MAX}}));
  std::vector<TargetSet> sets;
  for (const Inst& inst : program.code())
    if (inst.op == Op::On) sets.push_back(operands<Op::On>(inst).targets);
  using enum TargetSet;
  EXPECT_EQ(sets, (std::vector{Avx512Up, Avx2, Baseline, Fp16, Avx512, BelowAvx512}));
}

/// Each set has the targets that its number says. In sets of earlier builds, whose numbers are below 8, CPUs with
/// avx512fp16 belong where avx512 belongs.
TEST(Plans, SetsOfTargets) {
  std::set<std::vector<bool>> all;
  for (unsigned number = 0; number < 16; ++number) {
    const auto set = static_cast<TargetSet>(number);
    std::vector<bool> members;
    for (const CpuTarget target : kCpuTargets) members.push_back(contains(set, target));
    EXPECT_EQ(members[0], (number & 1) == 0);
    EXPECT_EQ(members[1], (number & 2) == 0);
    EXPECT_EQ(members[2], (number & 4) == 0);
    EXPECT_EQ(members[3] == members[2], number < 8);
    all.insert(members);
  }
  EXPECT_EQ(all.size(), 16u);
}

/// A schedule that is split by targets alone has no limits of rows.
TEST(Plans, OfTargetsAloneHaveNoLimits) {
  const Program program = compiled(small_forest(), "plan(BATCH, avx2); interleave(batch); plan(BATCH)");
  EXPECT_EQ(limits_of(program), Limits{});
}

/// Each target runs the plan that is for it: the trees are added once on baseline, twice on avx2, three times on
/// avx512.
TEST(Plans, EachTargetRunsItsOwn) {
  ProgramParts parts = parts_of(counting_program());
  const TargetSet sets[] = {TargetSet::Baseline, TargetSet::Avx2, TargetSet::Avx512Up};
  std::size_t plans = 0;
  for (Inst& one : parts.code)
    if (one.op == Op::Plan) {
      const std::uint32_t end = operands<Op::Plan>(one).partner;
      one = inst(Op::On, {static_cast<std::uint32_t>(sets[plans++]), end});
    }
  const Program program = build_program(parts).value();
  const float row[4] = {1, 1, 1, 1};
  for (const std::string& target : support::targets_here()) {
    BackendOptions options;
    options.target = target;
    const auto predictor = host_backend(program, options);
    const auto context = (*predictor)->make_context();
    float sum = 0;
    const RowBlock one{row, 1, program.meta().num_features};
    ASSERT_TRUE((*predictor)->predict(*context, one, OutputKind::Raw, &sum).ok());
    EXPECT_EQ(sum, target == "baseline" ? 1 : target == "avx2" ? 2 : 3) << target;
  }
}

TEST(Plans, EachCallRunsOne) {
  const Program program = counting_program();
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows(4 * 20, 1.0f);
  for (std::size_t count = 1; count <= 20; ++count) {
    std::vector<float> raw(count);
    ASSERT_TRUE(
        (*predictor)->predict(*context, RowBlock{rows.data(), count, 4}, OutputKind::Raw, raw.data()).ok());
    EXPECT_EQ(raw, std::vector<float>(count, count <= 3   ? 1.0f
                                             : count <= 6 ? 2.0f
                                                          : 3.0f))
        << count << " rows";
  }
}

TEST(Plans, CompiledOnesAreWhatRuns) {
  // The walk of the small plan is replaced with zeros: only calls of few rows have raw scores of zero.
  const Model model = small_forest();
  const std::vector<float> rows = small_rows(20, 3);
  ProgramParts parts = parts_of(compiled(model, "plan(5); layout(tree, sparse16); plan(BATCH); encode(u8)"));
  const auto walk =
      std::find_if(parts.code.begin(), parts.code.end(), [](const Inst& one) { return one.op == Op::Walk; });
  *walk = inst(Op::Zero, {0, operands<Op::Walk>(*walk).rows});
  const auto predictor = host_backend(build_program(parts).value());
  const auto context = (*predictor)->make_context();
  for (const std::size_t count : {4u, 5u, 6u, 7u}) {
    std::vector<float> raw(count * 3, -1.0f);
    ASSERT_TRUE(
        (*predictor)->predict(*context, RowBlock{rows.data(), count, 3}, OutputKind::Raw, raw.data()).ok());
    EXPECT_EQ(std::count(raw.begin(), raw.end(), 0.0f) == std::ssize(raw), count <= 5) << count << " rows";
  }
}

/// Schedules whose plans differ in everything in which plans can differ.
constexpr const char* kSchedules[] = {
    "plan(1); plan(2); plan(BATCH)",
    "plan(7); layout(tree, sparse8); tile(tree, t0, t1, 4); interleave(t1); plan(64); encode(u8); plan(65); "
    "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0); interleave(b1); plan(BATCH); layout(tree, "
    "tables); tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0)",
    "plan(1); encode(u8); plan(63); layout(tree, reorg); plan(64); layout(tree, array); unrollWalk(tree); "
    "plan(BATCH); split(tree, ta, tb, 5); layout(ta, tables); layout(tb, sparse16)",
    "plan(3); tileTree(tree, 4, uniform); layout(tree, sparse); plan(BATCH); tile(tree, t0, t1, 3); "
    "reorder(t0, "
    "batch, t1); specialize(t0); encode(u8)",
};

/// Numbers of rows around every limit above and around blocks of codes.
constexpr std::size_t kCounts[] = {0, 1, 2, 3, 4, 6, 7, 8, 9, 62, 63, 64, 65, 66, 67, 127, 128, 129, 200};

TEST(Plans, GiveTheSameBits) {
  const Model model = small_forest({.trees = 20, .features = 5, .outputs = 3, .depth = 5});
  const std::vector<float> rows = small_rows(200, 6);
  const Program plain = compiled(model, "");
  for (const char* schedule : kSchedules) {
    const Program program = compiled(model, schedule);
    for (const std::string& target : support::targets_here())
      for (const unsigned threads : {1u, 3u}) {
        SCOPED_TRACE(std::string(schedule) + ", target " + target + ", threads " + std::to_string(threads));
        const auto predictor = host_backend(program, {threads, target});
        const auto judge = host_backend(plain);
        const auto context = (*predictor)->make_context();
        for (const std::size_t count : kCounts)
          ASSERT_TRUE(answers(**predictor, *context, RowBlock{rows.data(), count, 6}) ==
                      answers(**judge, RowBlock{rows.data(), count, 6}))
              << count << " rows";
      }
  }
}

TEST(Plans, GiveTheSameBitsWithSumsOfTheirOwn) {
  const Model model = small_forest({.trees = 20, .features = 5, .outputs = 3, .depth = 5});
  const std::vector<float> rows = small_rows(200, 5);
  const char* const parallel =
      "plan(2); interleave(tree); plan(9); tile(tree, t0, t1, 5); parallel(t0); plan(64); tile(tree, t0, t1, "
      "6); "
      "reorder(t0, batch, t1); tile(t1, t2, t3, 2); parallel(t0); parallel(t2); vectorReduce(t2, 2); "
      "plan(BATCH); "
      "encode(u8); tile(tree, t0, t1, 5); reorder(t0, batch, t1); parallel(t0)";
  // Multiples of 1/1024 have the same sum in any order.
  const auto judge = host_backend(compiled(model, ""));
  for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast}) {
    const auto predictor = host_backend(compiled(model, parallel, contract), {2, "auto"});
    const auto context = (*predictor)->make_context();
    for (const std::size_t count : kCounts)
      ASSERT_TRUE(answers(**predictor, *context, RowBlock{rows.data(), count, 5}) ==
                  answers(**judge, RowBlock{rows.data(), count, 5}))
          << count << " rows";
  }
}

TEST(Plans, TypesOfSumsMayDifferFromPlanToPlan) {
  const Model model = small_forest();
  const std::vector<float> rows = small_rows(30, 3);
  const auto judge = host_backend(compiled(model, ""));
  const auto predictor = host_backend(compiled(
      model,
      "plan(3); accumulate(f64); plan(6); accumulate(exact); plan(9); plan(BATCH); accumulate(exact); "
      "parallel(tree)",
      Contract::Fast));
  const auto context = (*predictor)->make_context();
  for (std::size_t count = 1; count <= 30; ++count)
    EXPECT_TRUE(answers(**predictor, *context, RowBlock{rows.data(), count, 3}) ==
                answers(**judge, RowBlock{rows.data(), count, 3}))
        << count << " rows";
}

/// A long call of wide rows is cut into passes of 4096 rows; the last one has few rows and its own plan.
TEST(Plans, PassesOfALongCallHaveTheirs) {
  constexpr std::uint32_t kFeatures = 2100;  // one column each: 8 MiB of codes are fewer than 4096 rows
  std::vector<Tree> trees;
  for (std::uint32_t f = 0; f < kFeatures; ++f)
    trees.push_back(support::split(f, 0.5, support::leaf(f % 7), support::leaf(-1), f % 2 == 0));
  Model model = support::model_of(std::move(trees));
  model.num_features = kFeatures;
  const Program program = compiled(model, "plan(5); layout(tree, sparse16); plan(BATCH); encode(u8)");
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  for (const std::size_t count : {4096u, 4097u, 4101u, 4102u}) {
    const std::vector<float> rows = small_rows(count, kFeatures, static_cast<std::uint32_t>(count));
    const Reference judge = reference_predict(model, rows, count, {.leaves = false}).value();
    std::vector<float> raw(count);
    ASSERT_TRUE((*predictor)
                    ->predict(*context, RowBlock{rows.data(), count, kFeatures}, OutputKind::Raw, raw.data())
                    .ok());
    for (std::size_t row = 0; row < count; ++row)
      ASSERT_TRUE(support::same_bits(raw[row], static_cast<float>(judge.raw[row]))) << "row " << row;
  }
}

TEST(Plans, RunOneOrderOfTrees) {
  const Model model = small_forest();
  const std::vector<float> rows = small_rows(20, 3);
  const auto judge = host_backend(compiled(model, ""));
  const auto predictor =
      host_backend(compiled(model, "plan(4); orderTrees(depth); plan(BATCH); orderTrees(depth); encode(u8)"));
  for (const std::size_t count : {4u, 5u})
    EXPECT_TRUE(answers(**predictor, RowBlock{rows.data(), count, 3}) ==
                answers(**judge, RowBlock{rows.data(), count, 3}));
}

}  // namespace
}  // namespace forestvm::test::test_plans
