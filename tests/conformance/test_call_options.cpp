// Options of calls against the trainers' own answers: sums that start from margins of the rows (XGBoost's base_margin,
// LightGBM's init_score), and LightGBM's early stop. Bit for bit, under several schedules and batches. Contributions
// and interactions that start from margins, too: to a tolerance where XGBoost computes them in another way.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/load.hpp>

#include "support/npy.hpp"

namespace forestvm::test::test_call_options {
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

/// The contributions or interactions of a folder's rows: a program that computes them, and the shape of a row's.
class Explained {
 public:
  Explained(const fs::path& folder, const char* model, OutputKind output, const char* schedule)
      : output_(output),
        rows_(support::read_npy<float>(folder / "rows.npy")),
        program_(compiled(folder / model, output, schedule)) {}

  /// Returns the numbers of all rows, `batch` rows at a time. `margins` has one for each score, or none.
  template <class Score>
  std::vector<Score> numbers(std::size_t batch, const std::vector<Score>& margins) const {
    constexpr bool kWide = sizeof(Score) == sizeof(double);
    const auto predictor = host_backend(program_, {.threads = 2});
    const auto context = (*predictor)->make_context();
    const std::size_t outputs = program_.meta().num_outputs, width = output_width(program_, output_);
    std::vector<Score> all(rows_.rows() * width);
    for (std::size_t begin = 0; begin < rows_.rows(); begin += batch) {
      const std::size_t count = std::min(batch, rows_.rows() - begin);
      CallOptions options;
      if (!margins.empty()) options.base_margin = {margins.data() + begin * outputs, count, outputs, kWide};
      const auto done =
          (*predictor)
              ->predict_with(*context,
                             RowBlock{rows_.data.data() + begin * rows_.columns(), count, rows_.columns()},
                             output_, kWide ? ResultType::Float64 : ResultType::Float32, options,
                             all.data() + begin * width);
      EXPECT_TRUE(done.ok()) << done.error().text();
    }
    return all;
  }

  /// Returns the numbers of an output of the model for a row, of which the expected score is the last.
  std::size_t terms() const { return output_width(program_, output_) / program_.meta().num_outputs; }
  const Program& program() const { return program_; }

 private:
  static Program compiled(const fs::path& path, OutputKind output, const char* schedule) {
    const auto model = load_model(path.string());
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().text());
    CompileOptions options;
    options.contributions = output == OutputKind::Contributions;
    options.interactions = output == OutputKind::Interactions;
    options.approx_contributions = output == OutputKind::ApproxContributions;
    const auto done = compile(*model, *parse_schedule(schedule), options);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
    return done->program;
  }

  OutputKind output_;
  support::Npy<float> rows_;
  Program program_;
};

/// Checks that numbers with margins differ from those without in the expected scores alone, which are the margins and
/// the means of the trees. Exact contributions have XGBoost's means, which are rounded to float32 first.
template <class Score>
void check_expected_scores(const Explained& explained, OutputKind output, const std::vector<Score>& margins,
                           std::vector<Score> found) {
  const std::size_t outputs = explained.program().meta().num_outputs, terms = explained.terms();
  std::vector<double> means = tree_means(explained.program(), output);
  if (output != OutputKind::ApproxContributions)
    for (double& mean : means) mean = static_cast<double>(static_cast<Score>(mean));
  const std::vector<Score> without = explained.numbers<Score>(40, {});
  for (std::size_t i = 0; i < margins.size(); ++i) {
    Score& last = found[(i + 1) * terms - 1];
    EXPECT_EQ(last, static_cast<Score>(means[i % outputs] + static_cast<double>(margins[i])));
    EXPECT_NE(last, without[(i + 1) * terms - 1]);
    last = without[(i + 1) * terms - 1];
  }
  EXPECT_EQ(found, without);
}

TEST(CallOptions, ContributionsStartFromXgboostsMargins) {
  struct Kind {
    OutputKind output;
    const char* file;
    float tolerance;
  };
  const Kind kinds[] = {{OutputKind::Contributions, "expected_contributions.npy", 1e-6f},
                        {OutputKind::Interactions, "expected_interactions.npy", 2e-6f},
                        {OutputKind::ApproxContributions, "expected_approx.npy", 0}};
  for (const char* name : {"binary", "classes", "dart"})
    for (const Kind& kind : kinds) {
      const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "margins" / name;
      SCOPED_TRACE(std::string(name) + ", " + kind.file);
      const auto margins = support::read_npy<float>(folder / "margin.npy").data;
      const auto expected = support::read_npy<float>(folder / kind.file).data;
      for (const char* schedule : {"", "tile(batch, b0, b1, 16); parallel(b0); encode(u8)"}) {
        const Explained explained(folder, "model.json", kind.output, schedule);
        const std::vector<float> found = explained.numbers<float>(7, margins);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_LE(std::abs(found[i] - expected[i]), kind.tolerance) << i;
        EXPECT_EQ(explained.numbers<float>(1, margins), found);
        EXPECT_EQ(explained.numbers<float>(40, margins), found);
        check_expected_scores(explained, kind.output, margins, found);
      }
    }
}

TEST(CallOptions, ContributionsFromLightgbmsMarginsAddUpToItsScores) {
  const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "margins" / "lightgbm";
  const auto margins = support::read_npy<double>(folder / "margin.npy").data;
  const auto raw = support::read_npy<double>(folder / "expected_raw.npy").data;
  for (const OutputKind output :
       {OutputKind::Contributions, OutputKind::Interactions, OutputKind::ApproxContributions}) {
    const Explained explained(folder, "model.txt", output, "");
    const std::vector<double> found = explained.numbers<double>(9, margins);
    for (std::size_t row = 0; row < raw.size(); ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < explained.terms(); ++i) sum += found[row * explained.terms() + i];
      EXPECT_NEAR(sum, raw[row], 1e-14) << row;
    }
    check_expected_scores(explained, output, margins, found);
  }
}

TEST(CallOptions, ContributionsOfExactSumsTakeMargins) {
  const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "margins" / "binary";
  const auto loaded = load_model((folder / "model.json").string());
  CompileOptions options;
  options.contract = Contract::Reproducible;
  options.contributions = true;
  const Program program = compile(*loaded, *parse_schedule(""), options)->program;
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  const std::vector<float> row(program.meta().num_features, 0.5f), margin{0.25f};
  std::vector<float> numbers(output_width(program, OutputKind::Contributions));
  CallOptions call;
  call.base_margin = {margin.data(), 1, 1, false};
  const auto predict = [&](OutputKind output) {
    return (*predictor)
        ->predict_with(*context, RowBlock{row.data(), 1, row.size()}, output, ResultType::Float32, call,
                       numbers.data());
  };
  EXPECT_TRUE(predict(OutputKind::Contributions).ok());
  EXPECT_EQ(numbers.back(),
            static_cast<float>(tree_means(program, OutputKind::Contributions)[0]) + margin[0]);
  EXPECT_FALSE(predict(OutputKind::Raw).ok());
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
}  // namespace forestvm::test::test_call_options
