// Calls for contributions and interactions of features: equal bits for every target, batch, number of threads and form
// of rows; calls that choose features; programs and models without contributions.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/background.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>

#include "explained_forest.hpp"
#include "support/nightly.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_explained_calls {
namespace {

TEST(Contributions, OfChosenFeaturesAreThoseOfAll) {
  for (const std::uint64_t seed : support::sampled(40, 6, "chosen")) {
    const Drawn forest = drawn(seed);
    Dice dice(seed);
    CompileOptions options;
    options.interactions = options.approx_contributions = true;
    const auto done = compile(forest.model, *schedule_by_name(forest.model, "auto"), options);
    ASSERT_TRUE(done.ok()) << done.error().text();
    const Program& program = done->program;
    const auto predictor = host_backend(program);
    const auto context = (*predictor)->make_context();
    const std::uint32_t features = program.meta().num_features, outputs = program.meta().num_outputs;
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t f = 0; f < features; ++f)
      if (dice.percent(50)) chosen.push_back(f);
    if (chosen.empty()) chosen.push_back(features - 1);
    CallOptions call;
    call.features = chosen;
    const RowBlock block{forest.rows.data(), forest.count, features};
    for (const OutputKind kind :
         {OutputKind::Contributions, OutputKind::Interactions, OutputKind::ApproxContributions}) {
      const std::size_t order = kind == OutputKind::Interactions ? 2 : 1;
      const std::size_t all = features + 1, some = chosen.size() + 1;
      const auto size = [&](std::size_t terms) {
        return forest.count * outputs * (order == 2 ? terms * terms : terms);
      };
      ASSERT_EQ(output_width(program, kind, call) * forest.count, size(some));
      std::vector<double> whole(size(all)), part(size(some), 99);
      ASSERT_TRUE(
          (*predictor)->predict_with(*context, block, kind, ResultType::Float64, {}, whole.data()).ok());
      ASSERT_TRUE(
          (*predictor)->predict_with(*context, block, kind, ResultType::Float64, call, part.data()).ok());
      const auto number = [&](std::size_t place) {
        return place == chosen.size() ? features : chosen[place];
      };
      for (std::size_t at = 0; at < part.size(); ++at) {
        const std::size_t column = number(at % some);
        const std::size_t row = order == 2 ? number(at / some % some) : 0;
        const std::size_t before = at / (order == 2 ? some * some : some) * (order == 2 ? all * all : all);
        ASSERT_EQ(part[at], whole[before + row * all + column]) << static_cast<int>(kind) << " " << at;
      }
    }
    const auto refusal = [&](std::vector<std::uint32_t> wrong, OutputKind kind) {
      call.features = wrong;
      std::vector<double> out(forest.count * outputs * (features + 1) * (features + 1));
      const auto answer =
          (*predictor)->predict_with(*context, block, kind, ResultType::Float64, call, out.data());
      return answer.ok() ? "" : answer.error().text();
    };
    EXPECT_NE(refusal({features}, OutputKind::Contributions).find("but the model has"), std::string::npos);
    EXPECT_NE(refusal({0, 0}, OutputKind::Interactions).find("which is not above the one before it"),
              std::string::npos);
    EXPECT_NE(
        refusal({0}, OutputKind::Raw).find("are chosen for contributions and interactions, not for raw"),
        std::string::npos);
  }
}

TEST(Contributions, OfRoundsAreThoseOfAModelOfTheRounds) {
  std::size_t compared = 0;
  for (const std::uint64_t seed : support::sampled(200, 40, "rounds")) {
    Drawn forest = drawn(seed);
    Model& model = forest.model;
    if (model.divisor != 1 || model.trees.empty() || model.num_features > 300) continue;
    model.base_of_first_round = seed % 3 == 0;
    Dice dice(seed);
    CompileOptions options;
    options.keeps_leaves = options.interactions = true;
    const auto done = compile(model, *schedule_by_name(model, "auto"), options);
    ASSERT_TRUE(done.ok()) << done.error().text();
    const auto predictor = host_backend(done->program);
    const auto context = (*predictor)->make_context();
    const std::size_t features = model.num_features, count = forest.count, trees = model.trees.size();
    const auto begin = static_cast<std::uint32_t>(seed % 4 == 1 ? 0 : dice.below(trees));
    const auto end = static_cast<std::uint32_t>(dice.from_to(begin + 1, trees));
    Model some = model;
    ASSERT_TRUE(keep_rounds(some, {begin, end}).ok());
    const auto program = compiled(some);
    ASSERT_TRUE(program.ok()) << program.error().text();
    CallOptions call;
    call.rounds = Rounds{begin, end};
    const bool wide = model.score_type == ScalarType::Float64;
    for (const OutputKind kind : {OutputKind::Contributions, OutputKind::Interactions}) {
      const std::string what =
          "seed " + std::to_string(seed) + ", kind " + std::to_string(static_cast<int>(kind));
      const std::size_t width = output_width(done->program, kind, call);
      const auto ask = [&](std::size_t first, std::size_t rows) {
        std::vector<double> out(rows * width);
        const RowBlock block{forest.rows.data() + first * features, rows, features};
        const auto asked =
            (*predictor)->predict_with(*context, block, kind, ResultType::Float64, call, out.data());
        EXPECT_TRUE(asked.ok()) << asked.error().text();
        return out;
      };
      const std::vector<double> got = ask(0, count);
      const std::vector<double> expected =
          explained(*program, kind, RowBlock{forest.rows.data(), count, features});
      // In float32, trees are added in other batches than those of a model of the rounds.
      expect_near(got, expected, wide ? scale_of(model) * 0x1p-52 : tolerance_of(model), what);
      if (HasFatalFailure()) return;
      for (std::size_t i = features; kind == OutputKind::Contributions && !wide && i < got.size();
           i += features + 1)
        ASSERT_EQ(got[i], expected[i]) << what << ", expected score " << i;
      const std::vector<double> one = ask(count - 1, 1);
      support::expect_same_bits(one, {got.end() - static_cast<std::ptrdiff_t>(width), got.end()}, what);
    }
    ++compared;
  }
  EXPECT_GT(compared, 10u);
}

TEST(Contributions, OfRoundsAreRefusedWhereTheyAreOfAll) {
  Model model = support::model_of(support::six_trees());
  Dice dice(1);
  for (Tree& tree : model.trees) cover(dice, tree, 0, 1000);
  CompileOptions options;
  options.contributions = true;
  const auto refusal = [&](OutputKind kind) {
    const auto done = compile(model, *schedule_by_name(model, "auto"), options);
    const auto predictor = host_backend(done->program);
    const auto context = (*predictor)->make_context();
    const std::vector<float> row(model.num_features);
    std::vector<float> out(model.num_features + 1);
    CallOptions call;
    call.rounds = Rounds{1, 3};
    const auto answer = (*predictor)
                            ->predict_with(*context, RowBlock{row.data(), 1, row.size()}, kind,
                                           ResultType::Float32, call, out.data());
    return answer.ok() ? "" : answer.error().text();
  };
  EXPECT_NE(refusal(OutputKind::Contributions).find("compile the model with --with rounds"),
            std::string::npos);
  options.keeps_leaves = options.approx_contributions = true;
  EXPECT_EQ(refusal(OutputKind::Contributions), "");
  EXPECT_EQ(
      refusal(OutputKind::ApproxContributions),
      "rounds: the approx-contributions of a call are of all rounds of the program: compile the model for the "
      "rounds");
  const std::vector<double> rows(2 * model.num_features, 0.5);
  options.background = std::make_shared<const Background>(*Background::make(model, rows, model.num_features));
  EXPECT_EQ(
      refusal(OutputKind::Contributions),
      "rounds: contributions against a background are of all rounds of the program: compile the model for the "
      "rounds");
}

TEST(Contributions, HaveTheSameBitsHoweverTheyAreAskedFor) {
  for (const std::uint64_t seed : support::sampled(300, 25, "bits")) {
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    const std::size_t features = forest.model.num_features, count = forest.count;
    const RowBlock block{forest.rows.data(), count, features};
    const std::vector<double> all = contributions(*program, block), pairs = interactions(*program, block);
    const std::string what = "seed " + std::to_string(seed);
    for (const std::string& target : support::targets_here())
      for (const unsigned threads : {1u, 2u}) {
        const std::string where = what + ", " + target + ", " + std::to_string(threads) + " threads";
        support::expect_same_bits(contributions(*program, block, {threads, target}), all, where);
        support::expect_same_bits(interactions(*program, block, {threads, target}), pairs, "pairs, " + where);
      }
    std::vector<double> parts, pair_parts;
    for (std::size_t begin = 0, step = 1; begin < count; begin += step, step = 2 * step + 1) {
      const std::size_t rows = std::min(step, count - begin);
      const RowBlock some{forest.rows.data() + begin * features, rows, features};
      const auto part = contributions(*program, some), pair_part = interactions(*program, some);
      parts.insert(parts.end(), part.begin(), part.end());
      pair_parts.insert(pair_parts.end(), pair_part.begin(), pair_part.end());
    }
    support::expect_same_bits(parts, all, what + ", batches");
    support::expect_same_bits(pair_parts, pairs, "pairs, " + what + ", batches");
    const std::vector<double> wide(forest.rows.begin(), forest.rows.end());
    support::expect_same_bits(
        contributions(*program, RowBlock{wide.data(), count, features, RowType::Float64}), all,
        what + ", float64");
    std::vector<float> columns(forest.rows.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i % features * count + i / features] = forest.rows[i];
    // A single row in columns is a row.
    const RowBlock in_columns{columns.data(), count, count == 1 ? features : 1, RowType::Float32, count};
    support::expect_same_bits(contributions(*program, in_columns), all, what + ", columns");
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < forest.rows.size(); ++i) {
      numbers.push_back(static_cast<std::int32_t>(i % features));
      if (numbers.size() % features == 0) offsets.push_back(static_cast<std::int64_t>(numbers.size()));
    }
    const CsrRows sparse{count, offsets.data(), numbers.data(), forest.rows.data(), forest.rows.size()};
    support::expect_same_bits(contributions(*program, sparse), all, what + ", sparse");
    if (HasFatalFailure()) return;
  }
}

TEST(Contributions, HaveTheSameBitsInCallsOfAnySize) {
  std::size_t narrow = 0, wide = 0;
  for (const std::uint64_t seed : support::sampled(100, 12, "sizes")) {
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    ++(forest.model.score_type == ScalarType::Float64 ? wide : narrow);
    const std::size_t features = forest.model.num_features, count = std::min<std::size_t>(forest.count, 64);
    const std::vector<double> all = contributions(*program, RowBlock{forest.rows.data(), count, features});
    const std::size_t width = all.size() / count;
    for (const std::string& target : support::targets_here()) {
      const auto predictor = host_backend(*program, {1, target});
      ASSERT_TRUE(predictor.ok());
      const auto context = (*predictor)->make_context();
      for (std::size_t rows = 1; rows <= count; ++rows) {
        // The last rows have other places in a block than the first, when others are before them.
        const std::size_t begin = count - rows;
        const RowBlock some{forest.rows.data() + begin * features, rows, features};
        std::vector<double> out(rows * width);
        ASSERT_TRUE((*predictor)->predict_wide(*context, some, OutputKind::Contributions, out.data()).ok());
        support::expect_same_bits(
            out, {all.begin() + static_cast<std::ptrdiff_t>(begin * width), all.end()},
            "seed " + std::to_string(seed) + ", " + target + ", " + std::to_string(rows) + " rows");
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_TRUE(narrow > 0 && wide > 0)
      << narrow << " programs with float32 scores, " << wide << " with float64";
}

TEST(Contributions, OfEncodedRows) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; compared < 5; ++seed) {
    ASSERT_LT(seed, 100u) << "hardly any program reads codes";
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    const auto predictor = host_backend(*program);
    ASSERT_TRUE(predictor.ok());
    const RowBlock block{forest.rows.data(), forest.count, forest.model.num_features};
    const auto context = (*predictor)->make_context();
    std::vector<std::uint8_t> codes(coded_bytes(forest.count, (*predictor)->coded_columns()));
    const auto coded = (*predictor)->encode(*context, block, codes);
    if (!coded.ok()) continue;  // in every plan some walk reads values
    ++compared;
    support::expect_same_bits(contributions(*program, *coded), contributions(*program, block), "encoded");
  }
}

TEST(Contributions, Float32ResultsAreRoundedOnce) {
  const Drawn forest = drawn(5);
  const auto program = compiled(forest.model);
  ASSERT_TRUE(program.ok());
  const auto predictor = host_backend(*program);
  ASSERT_TRUE(predictor.ok());
  const RowBlock block{forest.rows.data(), forest.count, forest.model.num_features};
  const auto context = (*predictor)->make_context();
  const std::vector<double> wide = contributions(*program, block);
  std::vector<float> out(wide.size());
  ASSERT_TRUE((*predictor)->predict(*context, block, OutputKind::Contributions, out.data()).ok());
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(wide[i]));
}

TEST(Contributions, OtherOutputsAreTheSameWithThem) {
  const Drawn forest = drawn(7);
  const auto with = compiled(forest.model, "default");
  const auto plain = compile(forest.model, *schedule_by_name(forest.model, "default"));
  ASSERT_TRUE(with.ok() && plain.ok());
  const RowBlock block{forest.rows.data(), forest.count, forest.model.num_features};
  const auto raw = [&](const Program& program) {
    const auto predictor = host_backend(program);
    const auto context = (*predictor)->make_context();
    std::vector<double> out(forest.count * forest.model.num_outputs);
    EXPECT_TRUE((*predictor)->predict_wide(*context, block, OutputKind::Raw, out.data()).ok());
    return out;
  };
  support::expect_same_bits(raw(*with), raw(plain->program), "raw");
}

std::string refusal(const Model& model) {
  const auto program = compiled(model, "default");
  return program.ok() ? "" : program.error().text();
}

Model covered(std::vector<Tree> trees) {
  Model model = support::model_of(std::move(trees));
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  return model;
}

TEST(Contributions, ArentThereUnlessCompiledIn) {
  const Model model = support::small_model("covered");
  const auto plain = compile(model, *schedule_by_name(model, "default"));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(output_width(plain->program, OutputKind::Contributions), 0u);
  const auto predictor = host_backend(plain->program);
  const auto context = (*predictor)->make_context();
  const float row[4] = {};
  float out[5];
  const auto done = (*predictor)->predict(*context, RowBlock{row, 1, 4}, OutputKind::Contributions, out);
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().text().find("--with contributions"), std::string::npos) << done.error().text();
}

TEST(Contributions, AreRefusedByName) {
  EXPECT_NE(refusal(support::small_model("small"))
                .find("tree 0, node 0: the model does not say how many training rows"),
            std::string::npos)
      << refusal(support::small_model("small"));
  Model odd = support::small_model("covered");
  odd.trees[2].nodes[0].cover = 40;
  EXPECT_NE(refusal(odd).find("tree 2, node 0: the cover of a child, 48, is above its own, 40"),
            std::string::npos)
      << refusal(odd);
  Model many_pairs = support::small_model("covered");
  many_pairs.num_features = 9000;
  CompileOptions with_pairs;
  with_pairs.interactions = true;
  const auto done = compile(many_pairs, *schedule_by_name(many_pairs, "default"), with_pairs);
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().text().find("81018001 interactions, at most 67108864"), std::string::npos)
      << done.error().text();
  Model linear = support::small_model("covered");
  support::make_linear(linear);
  EXPECT_NE(refusal(linear).find("linear functions"), std::string::npos) << refusal(linear);
  Tree wide = support::leaf(1);
  for (std::uint32_t f = 0; f < 65; ++f) wide = support::split(f, 0.5, wide, support::leaf(0.5));
  Model many = support::model_of({wide});
  many.num_features = 65;
  Dice dice(1);
  cover(dice, many.trees[0], 0, 1000);
  EXPECT_NE(refusal(many).find("more than 64 features"), std::string::npos) << refusal(many);
  Model lacking = covered(
      {support::split(0, 0.5, support::leaf(std::numeric_limits<double>::quiet_NaN()), support::leaf(1))});
  lacking.may_lack_answers = true;
  EXPECT_NE(refusal(lacking).find("no finite number"), std::string::npos) << refusal(lacking);
}

}  // namespace
}  // namespace forestvm::test::test_explained_calls
