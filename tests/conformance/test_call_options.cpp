// Options of calls against the trainers' own answers: sums that start from margins of the rows (XGBoost's base_margin,
// LightGBM's init_score), and LightGBM's early stop. Bit for bit, under several schedules and batches.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>

#include "support/npy.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;

const char* const kSchedules[] = {
    "", "reorder(tree, batch)", "orderTrees(depth); layout(tree, reorg)",
    "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0); encode(u8)",
    "plan(3); layout(tree, sparse); plan(BATCH); tile(batch, b0, b1, 8); reorder(b0, tree, b1); parallel(b0)"};

Program program_of(const fs::path& path, const char* schedule, bool keeps_leaves) {
  const auto model = load_model(path.string());
  EXPECT_TRUE(model.ok()) << model.error().text();
  CompileOptions options;
  options.keeps_leaves = keeps_leaves;
  auto compiled = compile(*model, *parse_schedule(schedule), options);
  EXPECT_TRUE(compiled.ok()) << compiled.error().text();
  return compiled->program;
}

/// Returns raw scores, predicted `batch` rows at a time. `margins` has one for each score, or none.
template <class Score>
std::vector<Score> raw_scores(const Program& program, const support::Npy<float>& rows, std::size_t batch,
                              const std::vector<Score>& margins, std::optional<EarlyStop> stop) {
  const auto predictor = host_backend(program, {.threads = 2});
  const auto context = (*predictor)->make_context();
  const std::size_t outputs = program.meta().num_outputs, width = rows.columns();
  constexpr bool kWide = sizeof(Score) == sizeof(double);
  std::vector<Score> raw(rows.rows() * outputs);
  for (std::size_t begin = 0; begin < rows.rows(); begin += batch) {
    const std::size_t count = std::min(batch, rows.rows() - begin);
    CallOptions options{{}, stop};
    if (!margins.empty()) options.base_margin = {margins.data() + begin * outputs, count, outputs, kWide};
    const auto done = (*predictor)
                          ->predict_with(*context, RowBlock{rows.data.data() + begin * width, count, width},
                                         OutputKind::Raw, kWide ? ResultType::Float64 : ResultType::Float32,
                                         options, raw.data() + begin * outputs);
    EXPECT_TRUE(done.ok()) << done.error().text();
  }
  return raw;
}

template <class Score>
void check_margins(const fs::path& folder, const char* model) {
  SCOPED_TRACE(folder);
  const auto rows = support::read_npy<float>(folder / "rows.npy");
  const auto margins = support::read_npy<Score>(folder / "margin.npy").data;
  const auto expected = support::read_npy<Score>(folder / "expected_raw.npy").data;
  for (const char* schedule : kSchedules)
    for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, rows.rows()}) {
      const Program program = program_of(folder / model, schedule, false);
      EXPECT_EQ(raw_scores(program, rows, batch, margins, std::nullopt), expected) << schedule;
      EXPECT_NE(raw_scores<Score>(program, rows, batch, {}, std::nullopt), expected);
    }
}

TEST(CallOptions, MarginsGiveXgboostsBits) {
  const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "margins";
  for (const char* name : {"binary", "classes", "vectors", "dart"})
    check_margins<float>(folder / name, "model.json");
}

TEST(CallOptions, MarginsGiveTheBitsOfLightgbmsTraining) {
  check_margins<double>(fs::path(FORESTVM_TEST_DATA) / "margins" / "lightgbm", "model.txt");
}

TEST(CallOptions, EarlyStopGivesLightgbmsBits) {
  struct Stop {
    EarlyStop stop;
    const char* file;
  };
  const Stop stops[] = {{{0.5, 1}, "raw_1_0.5.npy"},
                        {{1, 3}, "raw_3_1.npy"},
                        {{0, 7}, "raw_7_0.npy"},
                        {{10, 10}, "raw_10_10.npy"}};
  for (const char* name : {"binary", "classes", "ova", "ranks"}) {
    const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "early_stop" / name;
    const auto rows = support::read_npy<float>(folder / "rows.npy");
    for (const char* schedule : kSchedules) {
      const Program program = program_of(folder / "model.txt", schedule, true);
      for (const Stop& stop : stops)
        for (const std::size_t batch : {std::size_t{3}, rows.rows()})
          EXPECT_EQ(raw_scores<double>(program, rows, batch, {}, stop.stop),
                    support::read_npy<double>(folder / stop.file).data)
              << name << ", " << schedule << ", " << stop.file;
    }
  }
}

}  // namespace
}  // namespace forestvm::test
