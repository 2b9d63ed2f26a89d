// The kernel of kinds: where threads keep what contributions need, calls that repeat or are cut into passes, options of
// calls that come again with others, and code that it does not run.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/loaded_paths.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/samples.hpp>

#include "kernels/backend/device_kinds.hpp"
#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"
#include "kernels/emulator/stream.hpp"
#include "kernels/link/cut_phases.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"

namespace forestvm::kernels::test_kinds {
namespace {

constexpr std::size_t kRows = 300;

class Kinds : public testing::Test {
 protected:
  Kinds() {
    model_ = support::small_model("covered");
    model_.takes_margins = true;
    for (std::size_t i = 0; i < kRows * model_.num_features; ++i)
      rows_.push_back(static_cast<float>(i * 7 % 31) * 0.3f - 3);
    for (std::size_t i = 0; i < kRows * model_.num_outputs; ++i)
      margins_.push_back(static_cast<float>(i % 9));
  }

  Program program(const std::string& schedule) const {
    CompileOptions options;
    options.contributions = options.keeps_leaves = samples_ == nullptr;
    options.samples = samples_;
    const auto done = compile(model_, *schedule_by_name(model_, schedule), options);
    EXPECT_TRUE(done.ok()) << done.error().text();
    return done->program;
  }

  std::unique_ptr<Predictor> emulated(const EmulatorSettings& settings, const PassBounds& bounds = {}) const {
    auto predictor = make_predictor(program("gpu"), make_emulator_runtime(settings), "it", bounds);
    EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
    return std::move(predictor).value();
  }

  CallOptions with_margins() const {
    CallOptions call;
    call.base_margin = {margins_.data(), kRows, model_.num_outputs, false};
    return call;
  }

  std::vector<double> predicted(const Predictor& predictor, Context& context, OutputKind output,
                                const CallOptions& call) const {
    std::vector<double> out(kRows * output_width(predictor.program(), output, call));
    const auto done = predictor.predict_with(context, RowBlock{rows_.data(), kRows, model_.num_features},
                                             output, ResultType::Float64, call, out.data());
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
    return out;
  }
  std::vector<double> predicted(const Predictor& predictor, OutputKind output,
                                const CallOptions& call) const {
    return predicted(predictor, *predictor.make_context(), output, call);
  }

  Model model_;
  std::vector<float> rows_, margins_;
  std::shared_ptr<const Samples> samples_;  ///< if programs are to give quantiles
};

TEST_F(Kinds, ContributionsTakeGlobalMemoryWhereABlockHasTooLittle) {
  const auto host = host_backend(program("auto"));
  const std::vector<double> expected = predicted(**host, OutputKind::Contributions, {});
  EmulatorSettings settings;
  const std::size_t bytes = explain_sizes(device_paths(program("gpu"))).thread_bytes;
  ASSERT_GT(bytes, 0u);
  for (const std::size_t shared : {std::size_t{227} << 10, 128 * bytes, 32 * bytes, 31 * bytes}) {
    settings.limits.shared_bytes = static_cast<std::uint32_t>(shared);
    const auto linked = Linker(program("gpu"), explain_sizes(device_paths(program("gpu"))))
                            .link({kRows, kRows, OutputKind::Contributions}, settings.limits);
    ASSERT_TRUE(linked.ok()) << linked.error().text();
    std::size_t kinds = 0;
    for (const LinkedPhase& phase : linked->phases) kinds += phase.of_kinds ? 1 : 0;
    EXPECT_EQ(kinds, 2u);
    const bool fits = shared >= 32 * bytes;
    EXPECT_EQ(linked->phases[linked->phases.size() - 2].shared_bytes != 0, fits) << shared;
  }
  // Schedule gpu needs shared memory for its sums, so the emulated device has enough for these.
  for (const std::uint32_t shared : {227u << 10, 1u << 10}) {
    settings.limits.shared_bytes = shared;
    CompileOptions options;
    options.contributions = true;
    const auto plain = compile(
        model_,
        *parse_schedule("tile(batch, b0, b1, 32); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)"),
        options);
    ASSERT_TRUE(plain.ok()) << plain.error().text();
    auto predictor = make_predictor(plain->program, make_emulator_runtime(settings), "it");
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    support::expect_same_bits(predicted(**predictor, OutputKind::Contributions, {}), expected,
                              "contributions");
  }
}

TEST_F(Kinds, OfCallsThatRepeatAndAreCut) {
  const auto host = host_backend(program("auto"));
  for (const std::size_t slab : {std::size_t{1} << 24, std::size_t{4096}}) {
    const auto predictor = emulated({}, {.slab_bytes = slab, .fewest_rows = 16});
    const auto context = predictor->make_context();
    CallOptions some = with_margins(), others;
    some.rounds = Rounds{1, 4};
    some.every = 2;
    others.rounds = Rounds{0, 2};
    for (int call = 0; call < 3; ++call)
      for (const CallOptions& options : {CallOptions(), some, others, with_margins()})
        for (const OutputKind output :
             {OutputKind::Raw, OutputKind::Trees, OutputKind::Staged, OutputKind::Contributions}) {
          if (output == OutputKind::Trees && options.base_margin.data != nullptr) continue;
          support::expect_same_bits(predicted(*predictor, *context, output, options),
                                    predicted(**host, output, options),
                                    "output " + std::to_string(static_cast<int>(output)));
          if (HasFailure()) return;
        }
  }
}

TEST_F(Kinds, OfEarlyStopsThatRepeat) {
  model_.score_type = ScalarType::Float64;
  model_.early_stop = EarlyStopRule::Distance;
  ASSERT_EQ(model_.num_outputs, 1u);
  const auto host = host_backend(program("auto"));
  const auto predictor = emulated({}, {.slab_bytes = 4096, .fewest_rows = 16});
  const auto context = predictor->make_context();
  CallOptions soon, late, rare, staged;
  soon.early_stop = {0.5, 1};
  late.early_stop = {4, 1};
  rare.early_stop = {0.5, 2};
  for (int call = 0; call < 3; ++call) {
    for (const CallOptions& options : {soon, late, rare})
      for (const OutputKind output : {OutputKind::Raw, OutputKind::Value})
        support::expect_same_bits(predicted(*predictor, *context, output, options),
                                  predicted(**host, output, options), "call " + std::to_string(call));
    support::expect_same_bits(predicted(*predictor, *context, OutputKind::Staged, staged),
                              predicted(**host, OutputKind::Staged, staged), "stages");
    if (HasFailure()) return;
  }
  EXPECT_NE(predicted(**host, OutputKind::Raw, soon), predicted(**host, OutputKind::Raw, late));
}

TEST_F(Kinds, OfQuantilesThatRepeat) {
  ASSERT_EQ(model_.num_outputs, 1u);
  model_.averaged = true;
  model_.takes_margins = false;
  std::vector<double> targets;
  for (std::size_t i = 0; i < kRows; ++i) targets.push_back(static_cast<double>(i * 13 % 101));
  const std::vector<double> values(rows_.begin(), rows_.end());
  const auto samples = Samples::make(model_, values, model_.num_features, targets);
  ASSERT_TRUE(samples.ok()) << samples.error().text();
  samples_ = std::make_shared<const Samples>(*samples);
  const auto host = host_backend(program("auto"));
  const auto predictor = emulated({}, {.slab_bytes = 4096, .fewest_rows = 16});
  const auto context = predictor->make_context();
  const std::vector<double> some{0.2}, others{0.4, 0.1, 1};
  CallOptions first, second;
  first.quantiles = some;
  second.quantiles = others;
  for (int call = 0; call < 3; ++call)
    for (const CallOptions& options : {first, second, CallOptions()})
      support::expect_same_bits(predicted(*predictor, *context, OutputKind::Quantile, options),
                                predicted(**host, OutputKind::Quantile, options),
                                "call " + std::to_string(call));
  emulator::Stream stream;
  std::vector<double> out(kRows * 3);
  const auto refused =
      predictor->predict_with(*context, DeviceRows{rows_.data(), kRows, model_.num_features, 0, &stream},
                              OutputKind::Quantile, ResultType::Float64, {}, out.data());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().text(),
            "output quantile: is computed for rows of the host only, not for rows in a GPU's memory");
}

TEST_F(Kinds, OfRowsOnTheDevice) {
  const auto predictor = emulated({});
  const auto context = predictor->make_context();
  const auto host = host_backend(program("auto"));
  emulator::Stream stream;
  const DeviceRows rows{rows_.data(), kRows, model_.num_features, 0, &stream};
  for (const OutputKind output : {OutputKind::Trees, OutputKind::Staged, OutputKind::Contributions}) {
    std::vector<double> out(kRows * output_width(predictor->program(), output));
    const auto done = predictor->predict_with(*context, rows, output, ResultType::Float64, {}, out.data());
    ASSERT_TRUE(done.ok()) << done.error().text();
    ASSERT_TRUE(stream.wait().ok());
    support::expect_same_bits(out, predicted(**host, output, {}), "on the device");
  }
  std::vector<double> out(kRows * model_.num_outputs);
  const auto refused = predictor->predict_with(*context, rows, OutputKind::Raw, ResultType::Float64,
                                               with_margins(), out.data());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().text(),
            "base margins: are taken with rows of the host only, not with rows in a GPU's memory");
  CallOptions some;
  some.rounds = Rounds{0, 1};
  std::vector<double> parts(kRows * output_width(predictor->program(), OutputKind::Contributions));
  const auto rounds = predictor->predict_with(*context, rows, OutputKind::Contributions, ResultType::Float64,
                                              some, parts.data());
  ASSERT_FALSE(rounds.ok());
  EXPECT_EQ(rounds.error().text(),
            "rounds of a call: are chosen for contributions of rows of the host only, not of rows in a GPU's "
            "memory");
}

Inst inst(Op op, std::vector<std::uint32_t> operands) {
  operands.resize(kMaxOperands);
  return pack(op, operands.data());
}

std::string cut(std::vector<Inst> code) {
  const auto phases = cut_phases(code, {10, 10, OutputKind::Trees});
  return phases.ok() ? std::to_string(phases->size()) : phases.error().text();
}

TEST(KindsInCode, ArePhasesOfTheirOwn) {
  const Inst halt = inst(Op::Halt, {}), store = inst(Op::StoreTrees, {1, kRowsRegister});
  EXPECT_EQ(cut({store, halt}), "1");
  EXPECT_EQ(cut({inst(Op::Encode, {kRowsRegister}), inst(Op::Explain, {kRowsRegister}), halt}), "3");
  const std::string refusal =
      "store_trees for some of the rows, or inside a loop: a GPU runs it for all rows of a call at once";
  EXPECT_EQ(cut({inst(Op::Slice, {2, kRowsRegister, 0, 5}), inst(Op::StoreTrees, {1, 2}), halt}),
            "pc 1: " + refusal);
  const auto mapped = [&](LaunchDimension dimension) {
    return cut({inst(Op::Map, {2, kRowsRegister, static_cast<std::uint32_t>(dimension), 4, 2}), store,
                inst(Op::End, {0}), halt});
  };
  EXPECT_EQ(mapped(LaunchDimension::GridX), "pc 1: " + refusal);
  EXPECT_EQ(mapped(LaunchDimension::BlockX), "pc 1: " + refusal);
  EXPECT_EQ(cut({inst(Op::Quantiles, {kRowsRegister}), halt}), "1");
}

}  // namespace
}  // namespace forestvm::kernels::test_kinds
