// A CatBoost file, binary or JSON, and the Model made of it: trees, missing values, one-hot tests, counters, outputs,
// classes; what is not supported is refused by name.
#include <gtest/gtest.h>

#include <forestvm/internal/reference.hpp>
#include <forestvm/rounds.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "frontend/derived_columns.hpp"
#include "small_catboost.hpp"

namespace forestvm::test::test_catboost_load {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Reference judged(const Model& model, const std::vector<double>& rows) {
  Result<Reference> out =
      reference_predict(model, rows, rows.size() / model.num_features, {.hashed_rows = true});
  EXPECT_TRUE(out.ok()) << out.error().text();
  return out.ok() ? std::move(out).value() : Reference{};
}

TEST(CatboostLoad, SaysWhatTheFileSaid) {
  const std::string text = SmallCatboost{}.cbm();
  for (const std::string& form : {text, gzip(text)}) {
    const Model model = loaded(form);
    EXPECT_EQ(model.format, "catboost-cbm");
    EXPECT_EQ(model.trainer, "catboost");
    EXPECT_EQ(model.version, "1.2.10");
    EXPECT_EQ(model.objective, "RMSE");
    EXPECT_EQ(model.num_features, 3u);
    EXPECT_EQ(model.feature_names, (std::vector<std::string>{"age", "1", "city"}));
    EXPECT_EQ(model.hashed_features, std::vector<std::uint32_t>{2});
    EXPECT_TRUE(model.lookups.empty());
    EXPECT_EQ(model.row_type, ScalarType::Float32);
    EXPECT_EQ(model.score_type, ScalarType::Float64);
    EXPECT_EQ(model.base, std::vector<double>{0.25});
    EXPECT_TRUE(model.base_last);
    EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 1}));
  }
}

TEST(CatboostLoad, BitsOfAnObliviousLeafAreTheSplitsOfItsLevels) {
  const Model model = loaded(SmallCatboost{}.cbm());
  // f0 > 0.5 is bit 0, f1 > -1 is bit 1. Thresholds go left, as NaN does.
  const Reference out = judged(model, {0.5, -1, 0, 0.75, -1, 0, 0.5, 0, 0, 0.75, 0, 0, nan, nan, 0});
  EXPECT_EQ(out.leaf, (std::vector<std::int32_t>{0, 1, 2, 3, 0}));
  EXPECT_EQ(out.raw, (std::vector<double>{1.25, 2.25, 4.25, 8.25, 1.25}));
}

TEST(CatboostLoad, NanGoesRightOnlyIfTrainingHadSome) {
  SmallCatboost small;
  small.nan_treatment = 2;
  EXPECT_EQ(judged(loaded(small.cbm()), {nan, -2, 0}).leaf, std::vector<std::int32_t>{1});
  small.has_nans = false;
  EXPECT_EQ(judged(loaded(small.cbm()), {nan, -2, 0}).leaf, std::vector<std::int32_t>{0});
}

TEST(CatboostLoad, ATreeWithoutSplitsIsOneLeaf) {
  SmallCatboost small;
  small.splits = {};
  small.sizes = {0, 0};
  small.starts = {};
  small.leaf_values = {3, 4};
  small.scale = 0.5;
  EXPECT_EQ(judged(loaded(small.cbm()), {1, 1, 0}).raw, std::vector<double>{3.75});
}

TEST(CatboostLoad, TheBiasBelongsToTheFirstRound) {
  SmallCatboost small;
  small.splits = {};
  small.sizes = {0, 0};
  small.starts = {};
  small.leaf_values = {3, 4};
  for (const auto& [rounds, raw] : {std::pair(Rounds{0, 1}, 3.25), std::pair(Rounds{1, 2}, 4.0)}) {
    Model model = loaded(small.cbm());
    ASSERT_TRUE(keep_rounds(model, rounds).ok());
    EXPECT_EQ(judged(model, {1, 1, 0}).raw, std::vector<double>{raw});
  }
}

/// Returns a branching tree whose root has leaf 1 on its left side. Its other leaves are nodes 2 and 3.
SmallCatboost branching() {
  SmallCatboost small;
  small.splits = {0, 1, 0, 0};
  small.sizes = {4};
  small.steps = {{0, 1}, {1, 2}, {0, 0}, {0, 0}};
  small.leaf_values = {1, 2, 4};
  small.leaves = {1, 7, 0, 2};
  return small;
}

TEST(CatboostLoad, ANodeWithAStepOfZeroIsALeafOnThatSide) {
  const Reference out = judged(loaded(branching().cbm()), {0, 0, 0, 1, 0, 0, 2, 0, 0});
  EXPECT_EQ(out.leaf, (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(out.raw, (std::vector<double>{2.25, 1.25, 4.25}));
}

TEST(CatboostLoad, LeavesOfSeveralOutputsAreVectors) {
  SmallCatboost small = branching();
  small.dimension = 2;
  small.leaf_values = {1, 10, 2, 20, 4, 40};
  small.leaves = {2, 7, 0, 4};
  small.bias = {0.25, 0.5};
  small.loss = "RMSEWithUncertainty";
  const Model model = loaded(small.cbm());
  EXPECT_EQ(model.transform, Transform::Uncertainty);
  const Reference out = judged(model, {0, 0, 0, 1, 0, 0, 2, 0, 0});
  EXPECT_EQ(out.leaf, (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(out.raw, (std::vector<double>{2.25, 20.5, 1.25, 10.5, 4.25, 40.5}));
}

std::vector<float> covers(const std::string& text) {
  const Model model = loaded(text);
  std::vector<float> out;
  for (const Node& node : model.trees.at(0).nodes) out.push_back(node.cover);
  return out;
}

TEST(CatboostLoad, CoversAreTheWeightsOfLeaves) {
  SmallCatboost small;
  EXPECT_EQ(covers(small.cbm()), std::vector<float>(7));
  small.leaf_weights = {1, 2, 3, 4};
  EXPECT_EQ(covers(small.cbm()), (std::vector<float>{10, 4, 6, 1, 2, 3, 4}));
  EXPECT_EQ(covers(small_catboost_json()), (std::vector<float>{4, 2, 2, 1, 1, 1, 1}));
  EXPECT_EQ(covers(branching_catboost_json()), (std::vector<float>{3, 0, 3, 0, 0}));
  small = branching();
  small.leaf_weights = {1, 2, 4};
  EXPECT_EQ(covers(small.cbm()), (std::vector<float>{7, 5, 1, 2, 4}));
}

TEST(CatboostLoad, OneHotTestsAreColumns) {
  SmallCatboost small;
  small.codes = {7, -8};
  small.splits = {3, 4};
  const Model model = loaded(small.cbm());
  ASSERT_EQ(model.lookups.size(), 1u);
  EXPECT_EQ(model.lookups[0].keys,
            (std::vector<std::uint64_t>{frontend::extend_key(0, 7), frontend::extend_key(0, -8)}));
  EXPECT_EQ(model.lookups[0].values, (std::vector<float>{0, 1, -1}));
  EXPECT_EQ(judged(model, {0, 0, 7, 0, 0, -8, 0, 0, 9}).leaf, (std::vector<std::int32_t>{1, 2, 0}));
}

/// Returns a model with a counter of two keys, whose value is (good + 0.5) / (total + 1).
SmallCatboost counting(std::int8_t type, std::int32_t target_border, std::int32_t classes) {
  SmallCatboost small;
  small.splits = {3};
  small.sizes = {1};
  small.leaf_values = {1, 2};
  small.counter = true;
  small.counter_type = type;
  small.target_border = target_border;
  small.classes = classes;
  small.slots = {{frontend::extend_key(0, 5), 1},
                 {~std::uint64_t{0}, 0},
                 {frontend::extend_key(0, -6), 0},
                 {~std::uint64_t{0}, 0}};
  return small;
}

/// Returns the values for the codes -6 and 5, and for all others.
std::vector<float> values_of(const SmallCatboost& small) {
  const Model model = loaded(small.cbm());
  if (model.lookups.size() != 1) return {};
  const Lookup& lookup = model.lookups[0];
  EXPECT_EQ(lookup.width, 1u);
  const auto at = [&](std::int32_t code) {
    for (std::size_t i = 0; i < lookup.keys.size(); ++i)
      if (lookup.keys[i] == frontend::extend_key(0, code)) return lookup.values[i];
    return lookup.values.back();
  };
  return {at(-6), at(5), at(1)};
}

TEST(CatboostLoad, CountersAreComputedInFloat32) {
  SmallCatboost small = counting(0, 0, 2);  // Borders: the second class
  small.counts = {3, 1, 0, 4};
  EXPECT_EQ(values_of(small), (std::vector<float>{1.5f / 5, 4.5f / 5, 0.5f}));
  small.target_border = 1;  // with two classes, Borders counts the second whatever the border
  EXPECT_EQ(values_of(small), (std::vector<float>{1.5f / 5, 4.5f / 5, 0.5f}));
  small = counting(0, 1, 3);  // Borders: the classes above 1
  small.counts = {3, 1, 2, 0, 4, 5};
  EXPECT_EQ(values_of(small), (std::vector<float>{2.5f / 7, 5.5f / 10, 0.5f}));
  small.counter_type = 1;  // Buckets: class 1
  EXPECT_EQ(values_of(small), (std::vector<float>{1.5f / 7, 4.5f / 10, 0.5f}));
  small = counting(4, 0, 0);  // Counter
  small.counts = {3, 1};
  small.denominator = 9;
  EXPECT_EQ(values_of(small), (std::vector<float>{3.5f / 10, 1.5f / 10, 0.5f / 10}));
  small = counting(2, 0, 0);  // BinarizedTargetMeanValue: a sum in float32 and a count
  small.counts = {0x40200000, 4, 0x3f000000, 1};
  EXPECT_EQ(values_of(small), (std::vector<float>{3.0f / 5, 1.0f / 2, 0.5f}));
}

TEST(CatboostLoad, NodesTestCounters) {
  SmallCatboost small = counting(0, 0, 2);
  small.counts = {3, 1, 0, 4};
  EXPECT_EQ(judged(loaded(small.cbm()), {0, 0, 5, 0, 0, -6, 0, 0, 1}).leaf,
            (std::vector<std::int32_t>{1, 0, 0}));
}

TEST(CatboostLoad, NumbersStandForTheirDecimalText) {
  SmallCatboost small;
  small.codes = {1121341681};  // the hash of the text "1"
  small.splits = {0, 3};
  const Model model = loaded(small.cbm());
  const std::vector<float> rows = {0, 0, 1, 0, 0, 2};
  const Result<Reference> out = reference_predict(model, rows, 2);
  ASSERT_TRUE(out.ok()) << out.error().text();
  EXPECT_EQ(out->leaf, (std::vector<std::int32_t>{2, 0}));
  const Result<Reference> fraction = reference_predict(model, std::vector<float>{0, 0, 1.5f}, 1);
  ASSERT_FALSE(fraction.ok());
  EXPECT_EQ(fraction.error().text(),
            "row 0, feature 2: expected a whole number, which stands for a category, found 1.5");
}

TEST(CatboostLoad, LossesSayWhatIsPredicted) {
  SmallCatboost small;
  small.loss = "Logloss";
  small.class_params = R"({"class_label_type":"String","class_names":["no","yes"],"class_to_label":[0,1]})";
  const Model model = loaded(small.cbm());
  EXPECT_EQ(model.transform, Transform::Sigmoid);
  EXPECT_EQ(model.pair, Pair::Complement);
  EXPECT_EQ(model.class_rule, ClassRule::RawPositive);
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"no", "yes"}));
  const Reference out = judged(model, {0, -2, 0});
  EXPECT_EQ(out.value, (std::vector<double>{1 - 1 / (1 + std::exp(-1.25)), 1 / (1 + std::exp(-1.25))}));
  EXPECT_EQ(out.label, std::vector<std::int64_t>{1});
  small.loss = "Tweedie";
  EXPECT_EQ(loaded(small.cbm()).transform, Transform::TableExp);
  small.loss = "SomebodysOwn";
  EXPECT_EQ(loaded(small.cbm()).transform, Transform::Identity);
}

std::vector<std::string> labels_of(const std::string& class_params) {
  SmallCatboost small;
  small.loss = "CrossEntropy";
  small.class_params = class_params;
  return loaded(small.cbm()).class_labels;
}

TEST(CatboostLoad, LabelsAreWrittenAsPythonWritesThem) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels_of(R"({"class_label_type":"Integer","class_names":[1,2],"class_to_label":[0,1]})"),
            (Labels{"1", "2"}));
  EXPECT_EQ(labels_of(R"({"class_label_type":"Float","class_names":[1,2.5],"class_to_label":[0,1]})"),
            (Labels{"1.0", "2.5"}));
  EXPECT_EQ(labels_of(R"({"class_label_type":"Boolean","class_names":[false,true],"class_to_label":[0,1]})"),
            (Labels{"False", "True"}));
  EXPECT_EQ(labels_of(R"({"class_label_type":"Integer","class_names":[0,1],"class_to_label":[0,1]})"),
            Labels{});
  EXPECT_EQ(labels_of(R"({"class_label_type":"Integer","class_names":[],"class_to_label":[3,4]})"),
            (Labels{"3", "4"}));
}

TEST(CatboostLoad, JsonSaysTheSame) {
  const Model model = loaded(small_catboost_json());
  EXPECT_EQ(model.format, "catboost-json");
  EXPECT_EQ(model.version, "1.2.10");
  EXPECT_EQ(model.feature_names, (std::vector<std::string>{"age", "1", "city"}));
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"no", "yes"}));
  ASSERT_EQ(model.lookups.size(), 2u);
  EXPECT_EQ(model.lookups[1].keys, std::vector<std::uint64_t>{7});
  EXPECT_EQ(model.lookups[1].values, (std::vector<float>{3.5f / 5, 0.5f}));
  // Splits: f0 > 0.5, f0 > 1.5, city is 5, city is -6, the counter. NaN is above the borders.
  const Reference out = judged(model, {nan, 0, 5, 0, 0, -6, 2, 0, -6});
  EXPECT_EQ(out.leaf, (std::vector<std::int32_t>{1, 0, 0, 2, 0, 0, 3, 0, 0}));
  EXPECT_EQ(out.raw, (std::vector<double>{50.25, 52.25, 56.25}));
}

TEST(CatboostLoad, NamesInTheJsonOfRelease10) {
  const std::string text =
      replaced(replaced(small_catboost_json(), R"("feature_id":"age")", R"("feature_name":"age")"),
               R"("feature_id":"city")", R"("feature_name":"city")");
  EXPECT_EQ(loaded(text).feature_names, (std::vector<std::string>{"age", "1", "city"}));
}

TEST(CatboostLoad, JsonTreesAreNumberedDepthFirst) {
  const Model model = loaded(branching_catboost_json());
  const Reference out = judged(model, {0, 1, 2});
  EXPECT_EQ(out.leaf, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(out.raw, (std::vector<double>{2.5, 20.25, 4.5, 40.25, 6.5, 60.25}));
}

/// Returns the JSON of a model of two outputs for some of the declared classes.
std::string with_classes(const std::string& class_params) {
  return replaced(branching_catboost_json(), "{\"features_info\"",
                  R"({"model_info":{"class_params":)" + class_params +
                      R"(,"params":{"loss_function":{"params":{},"type":"MultiClass"}}},"features_info")");
}

TEST(CatboostLoad, ClassesThatTrainingDidNotSeeAreNeverChosen) {
  const double never = -std::numeric_limits<double>::infinity();
  const Model model = loaded(with_classes(R"({"class_names":["a","b","c","d"],"class_to_label":[1,3]})"));
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(model.base, (std::vector<double>{never, 0.5, never, 0.25}));
  const Reference out = judged(model, {0, 2});
  EXPECT_EQ(out.raw, (std::vector<double>{never, 2.5, never, 20.25, never, 6.5, never, 60.25}));
  EXPECT_EQ(out.label, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(out.value[0], 0);
  EXPECT_EQ(out.value[3], 1 / (1 + std::exp(2.5 - 20.25)));
  for (const char* wrong : {"[1]", "[3,1]", "[1,4]", "[-1,1]", "[0.5,1]", "[]"})
    EXPECT_FALSE(
        load_text(with_classes(R"({"classes_count":4,"class_to_label":)" + std::string(wrong) + "}")).ok())
        << wrong;
  EXPECT_FALSE(load_text(with_classes(R"({"classes_count":65537,"class_to_label":[0,1]})")).ok());
}

TEST(CatboostLoad, CombinationsHoldComparisonsOfNumbersAndCodes) {
  std::string text = replaced(
      small_catboost_json(), R"([{"cat_feature_index":0,"combination_element":"cat_feature_value"}])",
      R"([{"cat_feature_index":0,"combination_element":"cat_feature_value"},)"
      R"({"border":1.5,"combination_element":"float_feature","float_feature_index":0},)"
      R"({"cat_feature_index":0,"combination_element":"cat_feature_exact_value","value":5}])");
  using frontend::extend_key;
  const std::uint64_t key = extend_key(extend_key(extend_key(0, 5), 1), 1);
  text = replaced(text, "\"7\"", '"' + std::to_string(key) + '"');
  // The third tree tests the counter, which is above its border for code 5 and numbers above 1.5, such as NaN.
  const Reference out = judged(loaded(text), {2, 0, 5, 1, 0, 5, nan, 0, 5, 2, 0, -6});
  EXPECT_EQ(out.leaf[2], 1);
  EXPECT_EQ(out.leaf[5], 0);
  EXPECT_EQ(out.leaf[8], 1);
  EXPECT_EQ(out.leaf[11], 0);
}

/// A counter's key is the hash of texts, which whole numbers in rows stand for.
TEST(CatboostLoad, WholeNumbersAreCategories) {
  const Result<Model> model = load_model(FORESTVM_TEST_DATA "/catboost/1.2.10_numbers/model.cbm");
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(model->hashed_features, (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_FALSE(model->lookups.empty());
}

}  // namespace
}  // namespace forestvm::test::test_catboost_load
