// Damaged model files: each is refused with a place and one line; nothing crashes, hangs or takes much
// memory.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "damaged.hpp"
#include "small_xgboost.hpp"

namespace forestvm::test::test_damaged {
namespace {

void expect_refused(const std::string& name, const std::string& text, const std::string& where = "") {
  const std::optional<Error> error = refusal_of(name, text);
  if (error && !where.empty()) {
    EXPECT_EQ(error->where, where) << name << ": " << error->text();
  }
}

const std::string forest = "learner.gradient_booster.model.";
const std::string params = "learner.learner_model_param.";

struct TextDamage {
  const char* name;
  std::string from, to;
  std::string where;
};

TEST(Damaged, JsonText) {
  const TextDamage cases[] = {
      {"a word for a count", R"("num_nodes":"3")", R"("num_nodes":"three")",
       forest + "trees[0].tree_param.num_nodes"},
      {"num_nodes disagrees", R"("num_nodes":"3")", R"("num_nodes":"4")",
       forest + "trees[0].tree_param.num_nodes: tree 0"},
      {"string for an array", R"("left_children":[1,-1,-1])", R"("left_children":"1")",
       forest + "trees[0].left_children"},
      {"object for an array", R"("left_children":[1,-1,-1])", R"("left_children":{})",
       forest + "trees[0].left_children"},
      {"null for an array", R"("left_children":[1,-1,-1])", R"("left_children":null)",
       forest + "trees[0].left_children"},
      {"array in an array", R"("left_children":[1,)", R"("left_children":[1,[])",
       forest + "trees[0].left_children[1]"},
      {"string in an array", R"("left_children":[1,)", R"("left_children":[1,"2",)",
       forest + "trees[0].left_children[1]"},
      {"fraction for an index", R"("left_children":[1,)", R"("left_children":[1.5,)",
       forest + "trees[0].left_children[0]"},
      {"index beyond 32 bits", R"("left_children":[1,)", R"("left_children":[4294967297,)",
       forest + "trees[0].left_children[0]"},
      {"index beyond 64 bits", R"("left_children":[1,)", R"("left_children":[99999999999999999999,)",
       forest + "trees[0].left_children[0]"},
      {"flag of 2", R"("default_left":[1,)", R"("default_left":[2,)", forest + "trees[0].default_left[0]"},
      {"array too short", R"("left_children":[1,-1,-1])", R"("left_children":[1,-1])", ""},
      {"array too long", R"("split_indices":[0,)", R"("split_indices":[0,0,)",
       forest + "trees[0].split_indices: tree 0"},
      {"child out of range", R"("left_children":[1,)", R"("left_children":[3,)",
       forest + "trees[0]: tree 0, node 0"},
      {"child below -1", R"("left_children":[1,)", R"("left_children":[-7,)",
       forest + "trees[0]: tree 0, node 0"},
      {"cycle", R"("left_children":[1,)", R"("left_children":[0,)", forest + "trees[0]: tree 0, node 0"},
      {"child twice", R"("left_children":[1,)", R"("left_children":[2,)",
       forest + "trees[0]: tree 0, node 0"},
      {"orphan", R"("left_children":[1,)", R"("left_children":[-1,)", forest + "trees[0]: tree 0, node 1"},
      {"feature too large", R"("split_indices":[2,)", R"("split_indices":[3,)",
       forest + "trees[1]: tree 1, node 0"},
      {"feature negative", R"("split_indices":[2,)", R"("split_indices":[-2,)",
       forest + "trees[1].split_indices[0]: tree 1, node 0"},
      {"deleted root", R"("split_indices":[2,)", R"("split_indices":[2147483647,)",
       forest + "trees[1]: tree 1, node 0"},
      {"deleted child", R"("split_indices":[2,0)", R"("split_indices":[2,2147483647)",
       forest + "trees[1]: tree 1, node 0"},
      {"unknown split type", R"("split_type":[0,)", R"("split_type":[9,)",
       forest + "trees[0].split_type[0]: tree 0, node 0"},
      {"threshold overflows a float", "5e-01,", "5e+101,",
       forest + "trees[0].split_conditions[0]: tree 0, node 0"},
      {"number overflows a double", "5e-01,", "5e+999,", ""},
      {"NaN literal", "5e-01,", "NaN,", forest + "trees[0].split_conditions[0]: tree 0, node 0"},
      {"NaN behind a sign", "5e-01,", "-NaN,", ""},
      {"NaN behind a digit", "5e-01,", "1NaN,", ""},
      {"NaN for an index", R"("split_indices":[2,)", R"("split_indices":[NaN,)",
       forest + "trees[1].split_indices[0]"},
      {"Infinity literal", "5e-01,", "-Infinity,", ""},
      {"num_trees disagrees", R"("num_trees":"2")", R"("num_trees":"3")",
       forest + "gbtree_model_param.num_trees"},
      {"num_trees negative", R"("num_trees":"2")", R"("num_trees":"-2")",
       forest + "gbtree_model_param.num_trees"},
      {"tree_info too short", R"("tree_info":[0,0])", R"("tree_info":[0])", forest + "tree_info"},
      {"tree_info out of range", R"("tree_info":[0,0])", R"("tree_info":[0,1])",
       forest + "tree_info[1]: tree 1"},
      {"tree_info negative", R"("tree_info":[0,0])", R"("tree_info":[0,-1])",
       forest + "tree_info[1]: tree 1"},
      {"rounds go back", R"("iteration_indptr":[0,1,2])", R"("iteration_indptr":[0,2,1,2])",
       forest + "iteration_indptr"},
      {"rounds stop early", R"("iteration_indptr":[0,1,2])", R"("iteration_indptr":[0,1])",
       forest + "iteration_indptr"},
      {"num_class negative", R"("num_class":"0")", R"("num_class":"-3")", params + "num_class"},
      {"num_class huge", R"("num_class":"0")", R"("num_class":"4000000000")", params + "num_class"},
      {"num_class beyond 64 bits", R"("num_class":"0")", R"("num_class":"99999999999999999999")",
       params + "num_class"},
      {"num_target huge", R"("num_target":"1")", R"("num_target":"65537")", params + "num_target"},
      {"num_feature huge", R"("num_feature":"3")", R"("num_feature":"2147483647")", params + "num_feature"},
      {"num_feature too small", R"("num_feature":"3")", R"("num_feature":"2")",
       forest + "trees[1]: tree 1, node 0"},
      {"num_feature blank", R"("num_feature":"3")", R"("num_feature":" 3")", params + "num_feature"},
      {"base_score garbage", "[5E-1]", "half", params + "base_score"},
      {"base_score an array", R"("[5E-1]")", "[0.5]", params + "base_score"},
      {"objective missing", R"("objective":)", R"("objection":)", "learner.objective.name"},
      {"learner missing", R"("learner":)", R"("learned":)", "learner.objective.name"},
      {"field missing", R"("default_left":)", R"("default_right":)", forest + "trees[0].default_left"},
      {"trees missing", R"("trees":)", R"("bushes":)", forest + "trees"},
      {"field twice", R"("split_type":)", R"("split_indices":)", forest + "trees[0].split_indices"},
      {"learner twice", R"("version":)", R"("learner":)", "learner"},
      {"tree of another type", R"("trees":[)", R"("trees":[7,)", forest + "trees[0]"},
      {"feature names of another number", R"("feature_names":[])", R"("feature_names":["a"])",
       "learner.feature_names"},
      {"feature name not a string", R"("feature_names":[])", R"("feature_names":[1])",
       "learner.feature_names[0]"},
      {"not UTF-8", R"("feature_names":[])", "\"feature_names\":[\"\xff\"]", ""},
      {"control character", R"("feature_names":[])", "\"feature_names\":[\"\x01\"]", ""},
      {"a booster of another kind", R"("name":"gbtree")", R"("name":"forest\n\u001b")",
       "learner.gradient_booster.name"},
      {"text after the end", R"("version":[3,2,0]})", R"("version":[3,2,0]}x)", ""},
      {"version of words", R"("version":[3,2,0]})", R"("version":["3"]})", "version[0]"},
  };
  for (const TextDamage& row : cases) {
    expect_refused(row.name, replaced(SmallXgboost{}.json(), row.from, row.to), row.where);
  }
}

TEST(Damaged, Dart) {
  SmallXgboost small;
  small.booster = "dart";
  small.weight_drop = {1.0f};
  expect_refused("a weight missing", small.json(), "learner.gradient_booster.weight_drop");
  small.weight_drop = {1.0f, std::numeric_limits<float>::infinity()};
  expect_refused("a weight not finite", small.ubj(), "learner.gradient_booster.weight_drop[1]: tree 1");
  small.weight_drop = {1.0f, 1.0f};
  expect_refused("two models", replaced(small.json(), R"("weight_drop")", R"("model":{},"weight_drop")"));
  expect_refused("two nested models",
                 replaced(small.json(), R"("weight_drop")", R"("gbtree":{},"weight_drop")"));
  const std::string plain = SmallXgboost{}.json();
  for (const char* weights : {R"("weight_drop":[1],"trees")", R"("weight_drop":[1,1,1],"trees")"})
    expect_refused("another number of weights", replaced(plain, R"("trees")", weights),
                   "learner.gradient_booster.model.weight_drop");
}

TEST(Damaged, PlacesBehindNan) {
  const std::string text = replaced(replaced(SmallXgboost{}.json(), "5e-01,", "NaN,"), R"("split_type":[0,)",
                                    R"("split_type":[x,)");
  const std::size_t at = text.find("[x,") + 1;
  ASSERT_LT(text.find("NaN"), at);
  const Result<Model> model = load_text(text);
  ASSERT_FALSE(model.ok());
  EXPECT_TRUE(model.error().where.starts_with("byte " + std::to_string(at) + " ")) << model.error().text();
}

TEST(Damaged, Ubjson) {
  SmallXgboost small;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  small.trees[1].condition[0] = nan;
  expect_refused("NaN threshold", small.ubj(), forest + "trees[1].split_conditions[0]: tree 1, node 0");
  small.trees[1].condition = {1, nan, 1};
  expect_refused("NaN leaf", small.ubj(), forest + "trees[1].split_conditions[1]: tree 1, node 1");
  small = {};
  small.trees[1].condition[0] = -std::numeric_limits<float>::infinity();
  expect_refused("infinite threshold", small.ubj(), forest + "trees[1].split_conditions[0]: tree 1, node 0");
  small = {};
  small.feature_names = {"a", "b\xc0\xaf", "c"};
  expect_refused("not UTF-8", small.ubj(), "learner.feature_names[1]");

  const std::string good = SmallXgboost{}.ubj();
  const std::string seven(7, '\0');
  const std::string three = "#L" + seven + '\x03';
  const std::string huge = std::string("#L\x00\xff\xff\xff\xff\xff\xff\xff", 10);
  expect_refused("a count beyond the file", replaced(good, "[$l" + three, "[$l" + huge),
                 forest + "iteration_indptr");
  expect_refused("nulls without end", replaced(good, "[$l" + three, "[$Z" + huge),
                 forest + "iteration_indptr");
  expect_refused("no-ops without end", replaced(good, "[$l" + three, "[$N" + huge),
                 forest + "iteration_indptr");
  expect_refused("an unknown type", replaced(good, "[$l" + three, "[$q" + three));
  expect_refused("a type of arrays", replaced(good, "[$l" + three, "[$[" + three));
  expect_refused("a type without a count", replaced(good, "[$l" + three, "[$li"));
  expect_refused("a negative count",
                 replaced(good, "[$l" + three, std::string("[$l#L\xff\xff\xff\xff\xff\xff\xff\xff", 13)));
  expect_refused("a string beyond the file",
                 replaced(good, "L" + seven + "\x07learner", std::string("L\x7f") + seven + "learner"));
  expect_refused("an object that claims too much", "{" + huge);
  expect_refused("the 8-byte bomb", std::string("{i\x01"
                                                "a[$Z") +
                                        huge);
}

/// The limit of values is the number of bytes of the file, but nulls in an array with a count take no bytes. Each array
/// of 20 nulls adds 9 bytes and 22 values, so that only about a hundred values are left for the 200 that follow.
TEST(Damaged, ArraysThatTogetherClaimMoreThanTheFile) {
  const std::string good = SmallXgboost{}.ubj();
  const std::string key = std::string("L") + std::string(7, '\0') + "\x0a" + "attributes{";
  const std::string nulls =
      "i\x01"
      "n[$Z#i\x14";
  const std::string more =
      "i\x01"
      "m[" +
      std::string(200, 'Z') + "]";
  EXPECT_TRUE(load_text(replaced(good, key, key + nulls + more)).ok());
  std::string arrays;
  for (std::size_t i = 0; i < (good.size() + 100) / (22 - nulls.size()); ++i) arrays += nulls;
  const std::optional<Error> error = refusal_of("nulls", replaced(good, key, key + arrays + more));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "more values than the file has bytes");
}

TEST(Damaged, ColumnsThatMayBeAbsentAreWholeIfTheyAreThere) {
  for (const auto& [from, to, where] :
       {std::tuple{R"("sum_hessian":[4e+00,4e+00,4e+00])", R"("sum_hessian":[4e+00,4e+00])", "sum_hessian"},
        {R"("sum_hessian":[4e+00,4e+00,4e+00])", R"("sum_hessian":[4e+00,4e+00,4e+00],"loss_changes":[1,0])",
         "loss_changes"},
        {R"("split_type":[0,0,0])", R"("split_type":[0,0])", "split_type"},
        {R"("split_type":[0,0,0])", R"("split_type":[0,0,0,0])", "split_type"}})
    expect_refused(where, replaced(SmallXgboost{}.json(), from, to),
                   forest + "trees[0]." + where + ": tree 0");
}

TEST(Damaged, ClassesTimesTargetsOverTheLimit) {
  SmallXgboost small;
  small.num_class = "256";
  small.num_target = "257";
  const std::optional<Error> error = refusal_of("outputs", small.json());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->text(), params + "num_target: 65792 outputs are over the limit of 65536");
}

TEST(Damaged, NestedTooDeep) {
  constexpr std::size_t deep = 100'000;
  std::string objects;
  std::string ubj_objects;
  for (std::size_t i = 0; i < deep; ++i) {
    objects += "{\"a\":";
    ubj_objects +=
        "{i\x01"
        "a";
  }
  expect_refused("JSON arrays", "{\"a\":" + std::string(deep, '['));
  expect_refused("JSON arrays in a column",
                 replaced(SmallXgboost{}.json(), "\"trees\":[", "\"trees\":" + std::string(deep, '[')));
  expect_refused("JSON objects", objects);
  expect_refused("UBJSON arrays",
                 "{i\x01"
                 "a" +
                     std::string(deep, '['));
  expect_refused("UBJSON objects", ubj_objects);
  LoadLimits boundless;
  boundless.max_depth = 0xffffffff;
  EXPECT_FALSE(load_text(ubj_objects, boundless).ok());
  EXPECT_FALSE(load_text(objects, boundless).ok());
}

TEST(Damaged, OverTheLimits) {
  LoadLimits limits;
  limits.max_trees = 1;
  EXPECT_EQ(load_text(SmallXgboost{}.json(), limits).error().where, forest + "trees[1]");
  limits = {};
  limits.max_nodes = 5;
  EXPECT_EQ(load_text(SmallXgboost{}.json(), limits).error().where, forest + "trees[1]");
  limits = {};
  limits.max_features = 2;
  EXPECT_EQ(load_text(SmallXgboost{}.json(), limits).error().where, params + "num_feature");
}

TEST(Damaged, SyntaxErrorsNameLineAndColumn) {
  const Result<Model> model = load_text("{\n \"learner\": {\n  \"objective\" 3}}");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().where, "byte 30 (line 3, column 15), in learner.objective");
}

std::vector<std::string> small_files() {
  SmallXgboost dart;
  dart.booster = "dart";
  dart.weight_drop = {0.5f, 1.0f};
  dart.feature_names = {"a", "b", "c"};
  SmallXgboost vectors;
  vectors.num_target = "2";
  for (SmallTree& tree : vectors.trees) tree.size_leaf_vector = "2";
  vectors.trees[0].right = {2, 1, 0};
  vectors.trees[0].leaf_weights = {1, 2, 3, 4};
  vectors.trees[1].base_weights = {1, 2, 3, 4, 5, 6};
  vectors.categories = {{{0, 3, 5}, {'r', 'e', 'd', 'a', 'b'}}, {{0}, {}}, {{}, {30, -7}}};
  vectors.best_iteration = "1";
  return {SmallXgboost{}.json(), SmallXgboost{}.ubj(), dart.json(), dart.ubj(),
          vectors.json(),        vectors.ubj()};
}

TEST(Sweep, EveryTruncationIsRefused) {
  for (const std::string& good : small_files()) {
    ASSERT_TRUE(load_text(good).ok());
    for (std::size_t length = 0; length < good.size(); ++length)
      expect_refused(std::to_string(length), good.substr(0, length));
  }
}

TEST(Sweep, EveryBitFlipIsRefusedOrSafe) { survive_bit_flips(small_files()); }

TEST(Sweep, EveryByteReplacedIsRefusedOrSafe) {
  survive_bytes_replaced(small_files(),
                         {'\0', '\xff', '\x7f', '[', '{', 'H', 'Z', 'N', '$', '#', '9', '-', '"'});
}

}  // namespace
}  // namespace forestvm::test::test_damaged
