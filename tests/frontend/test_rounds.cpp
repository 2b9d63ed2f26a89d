// keep_rounds and best_rounds: predictions of a part of the rounds are the reference's of its trees.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <forestvm/internal/reference.hpp>
#include <forestvm/rounds.hpp>

#include "support/small_models.hpp"

namespace forestvm::test_rounds {
namespace {

/// Returns three rounds of two outputs.
Model three_rounds() {
  Model model = support::small_model("two_outputs");
  model.round_begins = {0, 2, 4, 6};
  model.base = {0.25, -1};
  return model;
}

std::vector<double> raw_of(const Model& model, const ReferenceOptions& options = {}) {
  const std::vector<float> rows = {0.1f, 0.9f, 0.4f, -2, 5, 0.5f, 0, 1};
  const auto answers = reference_predict(model, rows, rows.size() / model.num_features, options);
  EXPECT_TRUE(answers.ok()) << (answers.ok() ? "" : answers.error().text());
  return answers->raw;
}

std::string error_of(const Result<void>& result) { return result.ok() ? "done" : result.error().text(); }

TEST(Rounds, ArePartsOfTheSum) {
  for (std::uint32_t begin = 0; begin < 3; ++begin)
    for (std::uint32_t end = begin + 1; end <= 3; ++end) {
      Model part = three_rounds();
      ASSERT_EQ(error_of(keep_rounds(part, {begin, end})), "done");
      EXPECT_EQ(round_count(part), end - begin);
      EXPECT_EQ(part.trees.size(), 2 * (end - begin));
      EXPECT_EQ(raw_of(part), raw_of(three_rounds(), {.first_tree = 2 * begin, .last_tree = 2 * end}));
    }
}

TEST(Rounds, WithoutTheFirstMayHaveNoBase) {
  Model part = three_rounds();
  part.base_of_first_round = true;
  ASSERT_EQ(error_of(keep_rounds(part, {1, 3})), "done");
  EXPECT_EQ(part.base, (std::vector<double>{0, 0}));
  part = three_rounds();
  part.base_of_first_round = true;
  ASSERT_EQ(error_of(keep_rounds(part, {0, 2})), "done");
  EXPECT_EQ(part.base, (std::vector<double>{0.25, -1}));
}

TEST(Rounds, AveragesAreOfTheRoundsThatAreKept) {
  Model part = three_rounds();
  part.averaged = true;
  part.transform = Transform::Average;
  ASSERT_EQ(error_of(keep_rounds(part, {0, 2})), "done");
  EXPECT_EQ(parameters_of(part, part.trees.size()).divisor, 2);
}

TEST(Rounds, ThatDoNotExistAreRefused) {
  const std::vector<Rounds> wrong{{0, 0}, {2, 1}, {0, 4}, {3, 4}, {4, 5}, {UINT32_MAX, 0}};
  for (const Rounds rounds : wrong) {
    Model model = three_rounds();
    const auto done = keep_rounds(model, rounds);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::Usage);
    EXPECT_NE(done.error().message.find("B at most 3, the model's number of rounds"), std::string::npos)
        << done.error().text();
    EXPECT_EQ(model.trees.size(), 6u);
  }
  Model forest = three_rounds();
  forest.divisor = 12.5;  // as the path lengths of isolation forests have
  EXPECT_NE(error_of(keep_rounds(forest, {0, 2})).find("not rounds of boosting"), std::string::npos);
}

TEST(Rounds, BestIsTheOneThatStoppedTraining) {
  EXPECT_FALSE(best_rounds(three_rounds()).ok());
  Model model = three_rounds();
  model.best_round = 1;
  const auto best = best_rounds(model);
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(*best, (Rounds{0, 2}));
}

}  // namespace
}  // namespace forestvm::test_rounds
