// A Treelite checkpoint and the Model made of it, and what is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "load_text.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::test::test_treelite_load {
namespace {

std::string checkpoint(const std::string& name) {
  std::string bytes =
      support::content_of(std::filesystem::path(FORESTVM_TEST_DATA) / "treelite" / name / "model.treelite");
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

template <class Number>
std::string with_number(std::string bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
  return bytes;
}

std::string refusal(const std::string& bytes) {
  const Result<Model> model = load_text(bytes);
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : model.error().text();
}

// The offsets of the header's fields in a checkpoint of version 4 with one target.
constexpr std::size_t kTypes = 12, kNumTrees = 14, kNumFeatures = 22, kAveraged = 27, kNumTargets = 28,
                      kNumClasses = 40;

TEST(TreeliteLoad, SaysWhatTheFileSaid) {
  const Model model = loaded(checkpoint("4.8.1_sigmoid"));
  EXPECT_EQ(model.format, "treelite");
  EXPECT_EQ(model.trainer, "treelite");
  EXPECT_EQ(model.version, "4.8.1");
  EXPECT_EQ(model.objective, "sigmoid");
  EXPECT_EQ(model.num_features, 5u);
  EXPECT_EQ(model.row_type, ScalarType::Float32);
  EXPECT_EQ(model.score_type, ScalarType::Float32);
  EXPECT_EQ(model.base, std::vector<double>{0.3123456789});
  EXPECT_TRUE(model.base_last);
  EXPECT_EQ(model.slope, static_cast<double>(0.7f));
  EXPECT_EQ(model.class_rule, ClassRule::AboveHalf);
  EXPECT_EQ(model.round_begins.size(), 7u);
  EXPECT_EQ(model.trees[0].nodes[0].cover, 10.0f);
}

TEST(TreeliteLoad, Kinds) {
  const Model forest = loaded(checkpoint("4.8.1_forest"));
  EXPECT_EQ(forest.score_type, ScalarType::Float64);
  EXPECT_EQ(forest.trees[0].leaf_width, 3u);
  EXPECT_TRUE(forest.averaged);
  EXPECT_EQ(forest.class_rule, ClassRule::Argmax);
  EXPECT_EQ(loaded(checkpoint("4.8.1_isolation")).slope, static_cast<double>(5.3f));
  EXPECT_EQ(loaded(checkpoint("4.8.1_softmax")).transform, Transform::Softmax);
  EXPECT_EQ(loaded(checkpoint("4.8.1_softmax_wide")).transform, Transform::RoundedSoftmax);
  EXPECT_EQ(loaded(checkpoint("4.8.1_softmax")).round_begins, (std::vector<std::uint32_t>{0, 3, 6}));
  const Model old = loaded(checkpoint("3.9.1_forest"));
  EXPECT_EQ(old.version, "3.9.1");
  EXPECT_EQ(old.trees[0].leaf_width, 3u);
}

TEST(TreeliteLoad, VersionsAreRefusedByName) {
  const std::string good = checkpoint("4.8.1_sigmoid");
  EXPECT_EQ(
      refusal(with_number(good, 0, 5)),
      "byte 0: version: a checkpoint of Treelite 5.8.1: those of 3 and 4 can be read; load the model with such "
      "a release, and save it there");
  EXPECT_TRUE(
      refusal(with_number(good, 0, 2)).starts_with("byte 0: version: a checkpoint of Treelite 2.8.1"));
}

TEST(TreeliteLoad, Header) {
  const std::string good = checkpoint("4.8.1_sigmoid");
  EXPECT_EQ(
      refusal(with_number(good, kTypes, std::uint8_t{3})),
      "byte 12: threshold type: thresholds of type 3 and leaves of type 2: Treelite has no such models");
  EXPECT_EQ(refusal(with_number(good, kTypes + 1, std::uint8_t{1})),
            "byte 13: leaf type: integer leaves are not supported");
  EXPECT_EQ(
      refusal(with_number(good, kNumTrees, std::uint64_t{1} << 40)),
      "byte 14: num_tree: 1099511627776 trees are more than the limit of 10000000, or than the file has room for");
  EXPECT_EQ(refusal(with_number(good, kNumFeatures, -1)),
            "header: num_feature: -1 is not within 0 and 16777216");
  EXPECT_EQ(refusal(with_number(good, kNumFeatures, 2)).substr(0, 5), "byte ");
  EXPECT_EQ(refusal(with_number(good, kAveraged, std::uint8_t{1})),
            "header: base_scores: base scores beside an average of trees are not supported");
  EXPECT_EQ(refusal(with_number(good, kAveraged, std::uint8_t{2})),
            "byte 27: average_tree_output: 2 is neither 0 nor 1");
  EXPECT_EQ(refusal(with_number(good, kNumTargets, 2)),
            "byte 28: num_target: 2 targets, but num_class has 1 entries");
  EXPECT_EQ(refusal(with_number(good, kNumClasses, 2)), "header: base_scores: 1 base scores for 2 outputs");
  EXPECT_EQ(refusal(replaced(good, "sigmoid", "sigmoiD")),
            "header: postprocessor: \"sigmoiD\" is not one that Treelite has");
  EXPECT_EQ(refusal(good + "x"),
            "byte " + std::to_string(good.size()) + ": end: 1 bytes follow the last tree");
}

TEST(TreeliteLoad, TreesOfAnotherClass) {
  const std::string good = checkpoint("4.8.1_softmax");
  const std::size_t first_class = kNumClasses + 4 + 16 + 8 + 6 * 4 + 8;
  EXPECT_EQ(refusal(with_number(good, first_class, 3)),
            "header: target_id: tree 0: target 0 and class 3 do not exist");
  EXPECT_EQ(refusal(with_number(good, first_class, -1)),
            "header: target_id: tree 0: target 0 and class -1 do not fit leaf_vector_shape");
  // Trees out of turn are one round, and an average over them is refused.
  const std::string shuffled = with_number(good, first_class, 1);
  EXPECT_EQ(loaded(shuffled).round_begins, (std::vector<std::uint32_t>{0, 6}));
  EXPECT_EQ(
      refusal(with_number(shuffled, kAveraged, std::uint8_t{1})),
      "header: average_tree_output: an average over trees that are not one for each output in turn is not "
      "supported");
}

}  // namespace
}  // namespace forestvm::test::test_treelite_load
