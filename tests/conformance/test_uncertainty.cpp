// Virtual ensembles and uncertainty: programs against CatBoost's stored answers, and against trees that the reference
// predictor walks one by one, for every target, batch and number of threads; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>

#include "support/model_folders.hpp"
#include "support/npy.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_uncertainty {
namespace {

const std::filesystem::path kData = FORESTVM_TEST_DATA;

Model loaded(const std::filesystem::path& path) {
  auto model = load_model(path.string());
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().text());
  return *model;
}

Program compiled(const Model& model, const std::string& schedule = "auto") {
  CompileOptions options;
  options.keeps_leaves = true;
  const Schedule chosen = schedule == "auto" ? *schedule_by_name(model, schedule) : *parse_schedule(schedule);
  const auto done = compile(model, chosen, options);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return done->program;
}

Result<std::vector<double>> predicted(const Program& program, OutputKind kind, const RowBlock& rows,
                                      const CallOptions& call = {}, const BackendOptions& options = {},
                                      std::size_t batch = SIZE_MAX) {
  FVM_ASSIGN(const auto predictor, host_backend(program, options));
  const auto context = predictor->make_context();
  const std::size_t width = output_width(program, kind, call);
  std::vector<double> out(rows.count * width, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t begin = 0; begin < rows.count;) {
    RowBlock some = rows;
    some.data = static_cast<const double*>(rows.data) + begin * rows.stride;
    some.count = std::min(batch, rows.count - begin);
    FVM_TRY(
        predictor->predict_with(*context, some, kind, ResultType::Float64, call, out.data() + begin * width));
    begin += some.count;
  }
  return out;
}

/// Expects numbers that differ by at most `ulps` units in the last place.
void expect_near(const Result<std::vector<double>>& got, const std::vector<double>& expected,
                 std::int64_t ulps, const std::string& what) {
  ASSERT_TRUE(got.ok()) << what << ": " << got.error().text();
  ASSERT_EQ(got->size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto distance = std::bit_cast<std::int64_t>((*got)[i]) - std::bit_cast<std::int64_t>(expected[i]);
    ASSERT_LE(std::abs(distance), ulps) << what << ", number " << i << " of " << expected.size() << ": "
                                        << (*got)[i] << " and " << expected[i];
  }
}

/// The rows of CatBoost's answers, as float64.
std::vector<double> stored_rows() { return support::read_numbers((kData / "uncertainty/rows.npy").string()); }

std::vector<double> stored(const std::string& name) {
  return support::read_numbers((kData / "uncertainty" / (name + ".npy")).string());
}

struct Case {
  const char* name;
  const char* file;
  /// The most units in the last place between uncertainty and CatBoost's.
  std::int64_t ulps;
};
constexpr Case kCases[] = {{"plain", "plain.json", 4},          {"sampled", "sampled.json", 4},
                           {"shrunk", "shrunk.cbm", 4},         {"gaussian", "gaussian.json", 4},
                           {"binary", "binary.json", 4},        {"classes", "classes.json", 4},
                           {"one_vs_all", "one_vs_all.json", 4}};

TEST(Uncertainty, IsCatboosts) {
  const std::vector<double> rows = stored_rows();
  const RowBlock block{rows.data(), rows.size() / 4, 4, RowType::Float64};
  for (const Case& c : kCases) {
    const std::string name = c.name;
    Model model = loaded(kData / "uncertainty" / c.file);
    const Program program = compiled(model);
    CallOptions all, some;
    all.ensembles = 4;
    some.ensembles = 3;
    some.rounds = Rounds{0, 17};
    // The second score of a Gaussian model is the exponential of a score.
    const std::int64_t ulps = name == "gaussian" ? 2 : 0;
    expect_near(predicted(program, OutputKind::VirtEnsembles, block, all), stored(name + ".members"), ulps,
                name);
    expect_near(predicted(program, OutputKind::VirtEnsembles, block, some), stored(name + ".members_17"),
                ulps, name);
    expect_near(predicted(program, OutputKind::Uncertainty, block, all), stored(name + ".uncertainty"),
                c.ulps, name);
    expect_near(predicted(program, OutputKind::Uncertainty, block, some), stored(name + ".uncertainty_17"),
                c.ulps, name);
    ASSERT_TRUE(keep_rounds(model, {0, 17}).ok());
    some.rounds.reset();
    expect_near(predicted(compiled(model), OutputKind::VirtEnsembles, block, some),
                stored(name + ".members_17"), ulps, name);
  }
}

TEST(Uncertainty, HasTheSameBitsOnEveryWay) {
  const std::vector<double> rows = stored_rows();
  const RowBlock block{rows.data(), rows.size() / 4, 4, RowType::Float64};
  for (const Case& c : kCases) {
    const Model model = loaded(kData / "uncertainty" / c.file);
    const Program program = compiled(model);
    for (const OutputKind kind : {OutputKind::VirtEnsembles, OutputKind::Uncertainty}) {
      const std::vector<double> expected = *predicted(program, kind, block);
      for (const std::string& target : support::targets_here())
        for (const unsigned threads : {1u, 3u})
          for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, SIZE_MAX})
            expect_near(predicted(program, kind, block, {}, {threads, target}, batch), expected, 0,
                        c.name + (" on " + target));
      for (const char* schedule : {"tile(batch, b0, b1, 3)", "reorder(tree, batch)", "parallel(batch)"})
        expect_near(predicted(compiled(model, schedule), kind, block), expected, 0, schedule);
    }
  }
}

/// Returns the mean and the variance of the scores that single trees give, for each output of each row.
std::vector<double> spread_of_trees(const Model& model, std::span<const double> rows, std::size_t count) {
  const std::size_t outputs = model.num_outputs, step = trees_per_round(model);
  std::vector<std::vector<long double>> scores(count * outputs);
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    ReferenceOptions options;
    options.first_tree = t;
    options.last_tree = t + 1;
    const auto reference = reference_predict(model, rows, count, options);
    EXPECT_TRUE(reference.ok());
    for (std::size_t i = 0; i < count * outputs; ++i)
      if (step == 1 || t % outputs == i % outputs)
        scores[i].push_back(static_cast<long double>(reference->raw[i]));
  }
  std::vector<double> out;
  for (const std::vector<long double>& all : scores) {
    long double mean = 0, variance = 0;
    for (const long double score : all) mean += score / static_cast<long double>(all.size());
    for (const long double score : all)
      variance += (score - mean) * (score - mean) / static_cast<long double>(all.size());
    out.push_back(static_cast<double>(mean));
    out.push_back(static_cast<double>(variance));
  }
  return out;
}

TEST(Uncertainty, OfAveragedForestsIsTheSpreadOfTheirTrees) {
  std::size_t tried = 0;
  for (const char* folder :
       {"lightgbm/4.7.0_forest", "skops/1.5_forest", "skops/1.5_bagging", "treelite/4.7.0_forest"}) {
    std::filesystem::path file;
    if (!std::filesystem::is_directory(kData / folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(kData / folder))
      if (entry.path().stem() == "model") file = entry.path();
    const Model model = loaded(file);
    if (!model.averaged) continue;
    ++tried;
    const support::Rows rows = support::read_rows(file, model);
    const std::size_t count = std::min<std::size_t>(rows.values.size() / model.num_features, 50);
    const RowBlock block{rows.values.data(), count, model.num_features, RowType::Float64};
    const Program program = compiled(model);
    const std::size_t width = 2 * model.num_outputs;
    ASSERT_EQ(output_width(program, OutputKind::Uncertainty), width);
    const auto got = predicted(program, OutputKind::Uncertainty, block);
    ASSERT_TRUE(got.ok()) << got.error().text();
    const std::vector<double> expected =
        spread_of_trees(model, std::span(rows.values).first(count * model.num_features), count);
    ASSERT_EQ(got->size(), expected.size());
    const double bound = model.score_type == ScalarType::Float64 ? 1e-14 : 1e-6;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR((*got)[i], expected[i], bound * std::max(1.0, std::abs(expected[i]))) << folder << " " << i;
    if (model.transform == Transform::Average) {
      const auto values = predicted(program, OutputKind::Value, block);
      for (std::size_t i = 0; i < values->size(); ++i)
        EXPECT_EQ((*values)[i], (*got)[2 * i]) << folder << " " << i;
    }
    CallOptions call;
    EXPECT_NE(
        predicted(program, OutputKind::VirtEnsembles, block, call).error().text().find("averages its trees"),
        std::string::npos);
    call.ensembles = UINT32_MAX;  // forests have none, so that their number takes no memory
    call.rounds = Rounds{1, 2};
    const auto one = predicted(program, OutputKind::Uncertainty, block, call);
    for (std::size_t i = 1; i < one->size(); i += 2) EXPECT_EQ((*one)[i], 0);
  }
  EXPECT_GE(tried, 2u);
}

TEST(Uncertainty, IsRefusedByName) {
  const std::vector<double> rows = stored_rows();
  const RowBlock block{rows.data(), rows.size() / 4, 4, RowType::Float64};
  const auto expect_error = [&](const Program& program, const CallOptions& call, ErrorCode code,
                                const std::string& text) {
    for (const OutputKind kind : {OutputKind::VirtEnsembles, OutputKind::Uncertainty}) {
      const auto answer = predicted(program, kind, block, call);
      ASSERT_FALSE(answer.ok());
      EXPECT_EQ(answer.error().code, code);
      EXPECT_NE(answer.error().text().find(text), std::string::npos) << answer.error().text();
      EXPECT_EQ(output_width(program, kind, call), 0u);
    }
  };
  Model model = loaded(kData / "uncertainty/plain.json");
  const Program program = compiled(model);
  CallOptions call;
  call.ensembles = 12;
  expect_error(program, call, ErrorCode::Usage, "12 of them: expected 1 to 11, half of the 23 rounds");
  call.ensembles = 0;
  expect_error(program, call, ErrorCode::Usage, "0 of them: expected 1 to 11");
  call.ensembles = 3;
  call.rounds = Rounds{2, 20};
  expect_error(program, call, ErrorCode::Usage, "the rounds 2:20 do not begin with the first");
  const auto plain = compile(model, *schedule_by_name(model, "auto"));
  expect_error(plain->program, {}, ErrorCode::Refused, "compile the model with --with ");
  ASSERT_TRUE(keep_rounds(model, {2, 20}).ok());
  expect_error(compiled(model), {}, ErrorCode::Refused,
               "for most of CatBoost's models if their rounds begin with the first");
  const Model other = loaded(kData / "breast_cancer/model.json");
  const Program boosted = compiled(other);
  std::vector<double> wide(other.num_features);
  EXPECT_NE(predicted(boosted, OutputKind::Uncertainty, {wide.data(), 1, wide.size(), RowType::Float64})
                .error()
                .text()
                .find("this one is of xgboost (binary:logistic)"),
            std::string::npos);
}

}  // namespace
}  // namespace forestvm::test::test_uncertainty
