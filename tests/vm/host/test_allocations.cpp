// predict allocates nothing once its context has grown. Counts every allocation of this process.
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "support/allocations.hpp"
#include "support/small_models.hpp"
#include "vm/derived_model.hpp"
#include "vm/host/executor.hpp"
#include "vm/host/load_program.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_allocations {
namespace {

using support::allocations_of;
using support::take_largest_allocation;

TEST(Allocations, AreCounted) {
  // A compiler may leave out the allocation of a vector that nothing reads, but not this one.
  EXPECT_EQ(allocations_of([] { ::operator delete(::operator new(3)); }), 1u);
  EXPECT_EQ(allocations_of([] {}), 0u);
}

TEST(Allocations, NoneInPredictAfterTheFirst) {
  Model argmax = small_forest();
  argmax.transform = Transform::Argmax;
  const std::vector<float> rows = small_rows(100, 3);
  for (Model model : {small_forest(), argmax})
    for (const RichCase& rich : rich_cases()) {
      SCOPED_TRACE(rich.schedule);
      model.row_type = model.score_type = rich.score_type;
      const auto predictor = host_backend(compiled(model, rich.schedule, rich.contract));
      const auto context = (*predictor)->make_context();
      std::vector<float> out(300);
      std::vector<double> wide(300);
      std::vector<std::int64_t> labels(100);
      std::vector<std::int32_t> leaves(600);
      const auto all_outputs = [&](std::size_t count) {
        const RowBlock block{rows.data(), count, 3};
        EXPECT_TRUE((*predictor)->predict(*context, block, OutputKind::Raw, out.data()).ok());
        EXPECT_TRUE((*predictor)->predict(*context, block, OutputKind::Value, out.data()).ok());
        EXPECT_TRUE((*predictor)->predict_wide(*context, block, OutputKind::Value, wide.data()).ok());
        EXPECT_TRUE((*predictor)->predict_class(*context, block, labels.data()).ok());
        EXPECT_TRUE((*predictor)->predict_leaf(*context, block, leaves.data()).ok());
      };
      all_outputs(100);
      EXPECT_EQ(allocations_of([&] { all_outputs(100); }), 0u);
      EXPECT_EQ(allocations_of([&] { all_outputs(1); }), 0u);
      EXPECT_EQ(allocations_of([&] { all_outputs(0); }), 0u);
    }
}

TEST(Allocations, NoneForContributionsAfterTheFirst) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const std::vector<float> rows = small_rows(200, 3);
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    model.score_type = type;
    for (const unsigned threads : {1u, 2u}) {
      const auto predictor = host_backend(interacting(model, "parallel(batch)"), {.threads = threads});
      const auto context = (*predictor)->make_context();
      std::vector<double> out(200 * 3 * 4 * 4);
      const auto explain = [&](std::size_t count) {
        const RowBlock block{rows.data(), count, 3};
        for (const OutputKind kind : {OutputKind::Interactions, OutputKind::Contributions})
          EXPECT_TRUE((*predictor)->predict_wide(*context, block, kind, out.data()).ok());
      };
      explain(200);
      if (threads == 1) {
        EXPECT_EQ(allocations_of([&] { explain(200); }), 0u);
      }
      EXPECT_EQ(allocations_of([&] { explain(1); }), 0u);
    }
  }
}

TEST(Allocations, NoneForLinearLeavesAndOptionsAfterTheFirst) {
  Model model = small_forest();
  support::make_linear(model);
  model.takes_margins = true;
  model.early_stop = EarlyStopRule::Lead;
  model.score_type = ScalarType::Float64;
  const auto predictor = host_backend(compiled(model, "encode(u8)"));
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows = small_rows(100, 3), margins(300, 0.5f);
  std::vector<double> out(300);
  const CallOptions options{{margins.data(), 100, 3, false}, EarlyStop{0.5, 1}};
  const auto predict = [&] {
    EXPECT_TRUE((*predictor)
                    ->predict_with(*context, RowBlock{rows.data(), 100, 3}, OutputKind::Raw,
                                   ResultType::Float64, options, out.data())
                    .ok());
  };
  predict();
  EXPECT_EQ(allocations_of(predict), 0u);
}

TEST(Allocations, NoneForDerivedColumnsAfterTheFirst) {
  const std::vector<double> rows = derived_rows(1, 700);
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> columns;
  for (std::size_t i = 0; i < rows.size(); ++i) columns.push_back(static_cast<std::int32_t>(i % 6));
  for (std::size_t i = 1; i <= 700; ++i) offsets.push_back(static_cast<std::int64_t>(6 * i));
  const RowBlock block{rows.data(), 700, 6, RowType::Float64};
  const CsrRows csr{700,         offsets.data(), columns.data(),  rows.data(),
                    rows.size(), Absent::Zero,   RowType::Float64};
  const auto predictor = host_backend(compiled(derived_model(1), "encode(u8)"));
  const auto context = (*predictor)->make_context();
  std::vector<float> out(700);
  const auto predict = [&] {
    for (const AnyRows& given : {AnyRows(block), AnyRows(csr)})
      EXPECT_TRUE((*predictor)->predict(*context, given, OutputKind::Raw, out.data()).ok());
  };
  predict();
  EXPECT_EQ(allocations_of(predict), 0u);
}

TEST(Allocations, CodesOfManyColumnsComeInPasses) {
  const Model model = small_forest();
  ProgramParts parts = parts_of(compiled(model, "encode(u8)"));
  constexpr std::uint32_t kMore = 70'000;  // columns that no split of the trees reads
  parts.columns.resize(parts.columns.size() + kMore, ColumnDesc{0, 1, 0, 0});
  parts.encoded_features.back().column_count += kMore;
  const auto predictor = host_backend(build_program(parts).value());
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows = small_rows(2000, 3);
  std::vector<float> found(2000 * 3), expected(2000 * 3);
  const RowBlock block{rows.data(), 2000, 3};
  take_largest_allocation();
  ASSERT_TRUE((*predictor)->predict(*context, block, OutputKind::Raw, found.data()).ok());
  EXPECT_LE(take_largest_allocation(), kMaxScratchBytes);
  const auto judge = host_backend(compiled(model, ""));
  ASSERT_TRUE((*judge)->predict(*(*judge)->make_context(), block, OutputKind::Raw, expected.data()).ok());
  EXPECT_EQ(found, expected);
}

TEST(Allocations, NoneInTheThreadExecutorsLoops) {
  const auto executor = host::make_thread_executor(4);
  std::atomic<std::uint32_t> sum = 0;
  auto inner = [&](std::uint32_t i) { sum.fetch_add(i, std::memory_order_relaxed); };
  auto outer = [&](std::uint32_t) { executor->run(10, inner); };
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) executor->run(10, outer);
  };
  work();
  EXPECT_EQ(allocations_of(work), 0u);
}

/// Tests the machine on the std::thread executor, whichever executor this build's backend uses.
TEST(Allocations, NoneInTheMachineOnThreads) {
  const Program program = rich_program();
  const auto target = host::find_target("auto");
  ASSERT_TRUE(target.ok());
  const auto executor = host::make_thread_executor(3);
  const auto loading = host::load_program(program, **target, executor.get());
  const host::LoadedProgram& loaded = **loading;
  const std::vector<float> rows = small_rows(40, 3);
  std::vector<float> out(120), expected(120);
  std::vector<std::byte> scratch(loaded.accumulator_bytes(1, OutputKind::Raw, 40, program.meta().num_trees));
  host::Pass pass{};
  pass.rows = rows.data();
  pass.row_stride = 3;
  pass.row_count = 40;
  pass.output = OutputKind::Value;
  pass.trees = {0, program.meta().num_trees, 0};
  pass.base = loaded.base.data();
  pass.parameters = loaded.parameters;
  pass.values = out.data();
  pass.in_place = true;
  const CallOptions options{};
  pass.options = &options;
  pass.accumulators[0] = reinterpret_cast<std::byte*>(out.data());
  pass.accumulators[1] = scratch.data();
  const auto work = [&] {
    host::Machine machine(loaded, pass);
    interpret(program.code().data(), 0, machine);
  };
  work();
  EXPECT_EQ(allocations_of(work), 0u);
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  ASSERT_TRUE(
      (*predictor)->predict(*context, RowBlock{rows.data(), 40, 3}, OutputKind::Value, expected.data()).ok());
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace forestvm::test::test_allocations
