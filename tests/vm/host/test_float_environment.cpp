// A host process may flush denormals or use another rounding mode: predictions keep their bits, and the
// process keeps its settings.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "vm/float_settings.hpp"
#include "vm/host/executor.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_float_environment {
namespace {

constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

/// Returns trees that compare with denormal thresholds and add numbers that must be rounded.
Model sensitive_forest() {
  Model model = small_forest({.trees = 12, .features = 3, .outputs = 3, .depth = 4});
  model.transform = Transform::Softmax;
  model.base = {0.1, 1e-40, -1.0 / 3};  // no float32 values: rounded when the program is loaded
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes) {
      if (node.kind == NodeKind::Leaf)
        node.value = static_cast<double>(static_cast<float>(node.value / 3));
      else if (node.feature == 0)
        node.threshold = static_cast<double>(kDenormal);
    }
  return model;
}

std::vector<float> sensitive_rows() {
  std::vector<float> rows = small_rows(100, 3);
  for (std::size_t i = 0; i < 20; ++i) rows[3 * i] = i % 2 == 0 ? kDenormal : 2 * kDenormal;
  for (std::size_t i = 20; i < 30; ++i) rows[3 * i] = -kDenormal;
  return rows;
}

void expect_same_bits(const std::string& schedule, unsigned threads) {
  const Program program = compiled(sensitive_forest(), schedule);
  const std::vector<float> rows = sensitive_rows();
  const auto predictor = host_backend(program, {.threads = threads});
  ASSERT_TRUE(predictor.ok());
  const Answers expected = answers(**predictor, RowBlock{rows.data(), 100, 3});
  for (const Setting& setting : kSettings) {
    SCOPED_TRACE(setting.name + ", " + std::to_string(threads) + " threads");
    Answers found;
    unsigned controls_before = 0, controls_after = 0;
    under(setting, [&] {
      controls_before = controls_now();
      found = answers(**predictor, RowBlock{rows.data(), 100, 3});
      controls_after = controls_now();
    });
    EXPECT_TRUE(found == expected);
    EXPECT_EQ(controls_after, controls_before) << "the caller's settings were not put back";
  }
}

TEST(FloatEnvironment, InlinePredictionsKeepTheirBits) { expect_same_bits("", 1); }

TEST(FloatEnvironment, ParallelPredictionsKeepTheirBits) {
  expect_same_bits("tile(batch, b0, b1, 4); parallel(b0)", 3);
  expect_same_bits("tile(tree, t0, t1, 3); parallel(t0)", 3);
}

/// Base scores are rounded when a program is loaded, and threads start with the settings of the thread that
/// starts them.
void expect_loading_keeps_bits(const std::string& schedule, unsigned threads) {
  const Program program = compiled(sensitive_forest(), schedule);
  const std::vector<float> rows = sensitive_rows();
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 100, 3});
  for (const Setting& setting : kSettings) {
    SCOPED_TRACE(setting.name);
    Answers found;
    under(setting, [&] {
      const auto predictor = host_backend(program, {.threads = threads});
      for (int i = 0; i < 10; ++i) found = answers(**predictor, RowBlock{rows.data(), 100, 3});
    });
    EXPECT_TRUE(found == expected) << threads << " threads";
  }
}

TEST(FloatEnvironment, LoadingKeepsItsBits) {
  expect_loading_keeps_bits("", 1);
  expect_loading_keeps_bits("tile(batch, b0, b1, 1); parallel(b0)", 4);
}

/// The threads of the caller's own loops have the caller's settings and also run the predictions' loops.
TEST(FloatEnvironment, ThreadsOfTheCallerKeepTheBits) {
  const Program program = compiled(sensitive_forest(), "tile(batch, b0, b1, 1); parallel(b0)");
  const std::vector<float> rows = sensitive_rows();
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 100, 3});
  for (const Setting& setting : kSettings) {
    SCOPED_TRACE(setting.name);
    std::vector<Answers> found(20);
    std::thread caller([&] {
      under(setting, [&] {
        auto nothing = [](std::uint32_t) {};
        const host::Executor* const executor = *host::shared_executor(0);
        if (executor != nullptr) executor->run(1000, nothing);
        const auto predictor = host_backend(program, {.threads = 0});
        for (Answers& one : found) one = answers(**predictor, RowBlock{rows.data(), 100, 3});
      });
    });
    caller.join();
    for (const Answers& one : found) EXPECT_TRUE(one == expected);
  }
}

TEST(FloatEnvironment, DenormalsDecideTheseRows) {
  // Otherwise the tests above would pass under any environment.
  const Program program = compiled(sensitive_forest(), "");
  std::vector<float> rows = sensitive_rows();
  const Answers with = answers(**host_backend(program), RowBlock{rows.data(), 20, 3});
  for (std::size_t i = 0; i < 20; ++i) rows[3 * i] = 0;
  EXPECT_FALSE(with == answers(**host_backend(program), RowBlock{rows.data(), 20, 3}));
}

}  // namespace
}  // namespace forestvm::test::test_float_environment
