// Damaged CatBoost files: each is refused with its place and one sentence; nothing crashes, hangs or takes much memory.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "damaged.hpp"
#include "small_catboost.hpp"

namespace forestvm::test::test_damaged_catboost {
namespace {

void expect_refused(const std::string& name, const std::string& text, const std::string& sentence) {
  const std::optional<Error> error = refusal_of(name, text);
  if (!error) return;
  EXPECT_EQ(error->text(), sentence) << name;
}

SmallCatboost branching() {
  SmallCatboost small;
  small.splits = {0, 1, 0, 0, 0};
  small.sizes = {5};
  small.steps = {{1, 2}, {2, 3}, {0, 0}, {0, 0}, {0, 0}};
  small.leaf_values = {1, 2, 4};
  small.leaves = {9, 9, 0, 1, 2};
  return small;
}

SmallCatboost counting() {
  SmallCatboost small;
  small.codes = {7, 8};
  small.counter = true;
  small.slots = {{11, 0}, {12, 1}};
  small.counts = {3, 1, 0, 4};
  small.splits = {3, 5};
  small.loss = "Logloss";
  small.class_params = R"({"class_names":["a","b"],"class_to_label":[0,1]})";
  return small;
}

struct Damage {
  const char* name;
  std::function<void(SmallCatboost&)> damage;
  std::string sentence;
};

TEST(DamagedCatboost, Oblivious) {
  const Damage cases[] = {
      {"another format", [](auto& s) { s.format_version = "FlatbuffersModel_v9"; },
       "FormatVersion: expected \"FlabuffersModel_v1\", found \"FlatbuffersModel_v9\""},
      {"text features", [](auto& s) { s.refused_features = 12; },
       "ModelTrees: the model has text features, which cannot be computed here"},
      {"estimated features", [](auto& s) { s.refused_features = 13; },
       "ModelTrees: the model has estimated features, which cannot be computed here"},
      {"embedding features", [](auto& s) { s.refused_features = 18; },
       "ModelTrees: the model has embedding features, which cannot be computed here"},
      {"an unknown part", [](auto& s) { s.part_ids = {"text_processing_collection"}; },
       "ModelPartIds: a part that cannot be read: \"text_processing_collection\""},
      {"no outputs", [](auto& s) { s.dimension = 0; },
       "ModelTrees.ApproxDimension: 0 outputs are not within 1 and 65536"},
      {"outputs beyond the limit", [](auto& s) { s.dimension = 65537; },
       "ModelTrees.ApproxDimension: 65537 outputs are not within 1 and 65536"},
      {"biases disagree",
       [](auto& s) {
         s.bias = {1, 2};
       },
       "bias: 2 numbers for 1 outputs"},
      {"infinite bias", [](auto& s) { s.bias = {std::numeric_limits<double>::infinity()}; },
       "model: a base margin is not finite"},
      {"scale of zero", [](auto& s) { s.scale = 0; }, "model: the scale is zero or not finite"},
      {"infinite leaf", [](auto& s) { s.leaf_values[2] = std::numeric_limits<double>::infinity(); },
       "trees: tree 0, node 5: the leaf value is not finite, or not exact in the model's type"},
      {"a leaf too few", [](auto& s) { s.leaf_values.pop_back(); },
       "ModelTrees: tree 0: there are not enough leaf values for 2 levels"},
      {"a leaf too many", [](auto& s) { s.leaf_values.push_back(0); },
       "ModelTrees.LeafValues: 1 leaf values belong to no tree"},
      {"a weight too few",
       [](auto& s) {
         s.leaf_weights = {1, 1, 1};
       },
       "ModelTrees.LeafWeights: 3 weights for 4 leaves"},
      {"a split too few", [](auto& s) { s.sizes = {3}; },
       "ModelTrees: tree 0: a size of 3, but 2 splits are left"},
      {"a split too many", [](auto& s) { s.splits.push_back(0); },
       "ModelTrees.TreeSplits: 1 splits belong to no tree"},
      {"negative size", [](auto& s) { s.sizes = {-1}; },
       "ModelTrees: tree 0: a size of -1, but 2 splits are left"},
      {"levels without end", [](auto& s) { s.splits.assign(64, 0), s.sizes = {64}; },
       "ModelTrees: tree 0: there are not enough leaf values for 64 levels"},
      {"a start in the middle", [](auto& s) { s.starts = {1}; },
       "ModelTrees.TreeStartOffsets: tree 0 does not follow the tree before it"},
      {"split out of range", [](auto& s) { s.splits[1] = 3; },
       "tree 0: split 3 does not exist: the features have 3"},
      {"split negative", [](auto& s) { s.splits[1] = -1; },
       "tree 0: split 4294967295 does not exist: the features have 3"},
      {"NaN border", [](auto& s) { s.borders[0] = std::numeric_limits<float>::quiet_NaN(); },
       "trees: tree 0, node 0: the threshold is not finite, or not exact in the model's type"},
      {"one flat index twice", [](auto& s) { s.flat_indices[1] = 0; },
       "features: two features with the flat index 0"},
      {"flat index negative", [](auto& s) { s.flat_indices[1] = -1; },
       "features: a flat index of -1, but there are 3 features"},
      {"features without end", [](auto& s) { s.flat_indices[1] = 0x7fff'ffff; },
       "features: a flat index of 2147483647, but there are 3 features"},
      {"a threshold that is not a number", [](auto& s) { s.loss = "Logloss", s.threshold = "0.3x"; },
       "binclass_probability_threshold: no number between 0 and 1: \"0.3x\""},
      {"a threshold of 1", [](auto& s) { s.loss = "Logloss", s.threshold = "1"; },
       "binclass_probability_threshold: no number between 0 and 1: \"1\""},
      {"a loss of two outputs", [](auto& s) { s.loss = "RMSEWithUncertainty"; },
       "loss_function: \"RMSEWithUncertainty\" with 1 outputs"},
      {"classes that were not seen",
       [](auto& s) { s.loss = "MultiClass", s.class_params = R"({"classes_count":3})"; },
       "class_params: 3 classes, of which the trees know 1: classes that training did not see cannot be predicted"},
      {"classes in another order",
       [](auto& s) {
         s.loss = "Logloss", s.class_params = R"({"class_names":["a","b"],"class_to_label":[1,0]})";
       },
       "class_params: class_to_label: class 0 has another number"},
      {"parameters that are not JSON", [](auto& s) { s.class_params = "{"; },
       "InfoMap.class_params: byte 1 (line 1, column 2), in document: syntax error while parsing object key - unexpected "
       "end of input; expected string literal"},
      {"a loss that is not a text", [](auto& s) { s.loss = R"(RMSE","type":7,"x":")"; },
       "InfoMap.params: loss_function.type: given twice"},
  };
  for (const Damage& row : cases) {
    SmallCatboost small;
    row.damage(small);
    expect_refused(row.name, small.cbm(), row.sentence);
  }
}

TEST(DamagedCatboost, Branching) {
  const Damage cases[] = {
      {"a node too few", [](auto& s) { s.steps.pop_back(); },
       "ModelTrees.NonSymmetricStepNodes: 4 steps for 5 nodes"},
      {"a leaf too few", [](auto& s) { s.leaves.pop_back(); },
       "ModelTrees.NonSymmetricNodeIdToLeafId: 4 leaves for 5 nodes"},
      {"no nodes",
       [](auto& s) {
         s.sizes = {0, 5}, s.starts = {};
       },
       "ModelTrees: tree 0: 0 leaves for 0 splits and 3 more leaf values"},
      {"a child behind the tree", [](auto& s) { s.steps[1].second = 4; },
       "ModelTrees: tree 0: a child of node 1 lies behind the tree's 5 nodes"},
      {"a leaf twice", [](auto& s) { s.leaves[3] = 0; }, "ModelTrees: tree 0: leaf values at 0 instead of 1"},
      {"a leaf without values", [](auto& s) { s.leaves[4] = 0xffff'ffff; },
       "ModelTrees: tree 0: leaf values at 4294967295 instead of 2"},
      {"a shared child", [](auto& s) { s.steps[0].second = 1; },
       "trees: tree 0, node 0: child 1 is reached twice: a cycle or a shared subtree"},
      {"an inner node that nothing reaches", [](auto& s) { s.steps[0].first = 2; },
       "trees: tree 0, node 0: child 2 is reached twice: a cycle or a shared subtree"},
      {"too few values", [](auto& s) { s.leaf_values.pop_back(); },
       "ModelTrees: tree 0: 3 leaves for 2 splits and 2 more leaf values"},
  };
  for (const Damage& row : cases) {
    SmallCatboost small = branching();
    ASSERT_TRUE(load_text(small.cbm()).ok()) << load_text(small.cbm()).error().text();
    row.damage(small);
    expect_refused(row.name, small.cbm(), row.sentence);
  }
}

TEST(DamagedCatboost, Counters) {
  const Damage cases[] = {
      {"a code twice", [](auto& s) { s.codes[1] = 7; },
       "one-hot tests: categorical feature 0 has a code twice"},
      {"no table", [](auto& s) { s.leave_out_table = true; },
       "counter 0: its table is not in the file (final_ctr_computation_mode=\"Skip\"): save the model with its tables"},
      {"unknown type", [](auto& s) { s.counter_type = 6; },
       "ModelTrees.CtrFeatures[0]: unknown type of counter 6"},
      {"class out of range", [](auto& s) { s.target_border = 2; }, "counter 0: class 2 of 2"},
      {"class negative", [](auto& s) { s.target_border = -1; }, "counter 0: class -1 of 2"},
  };
  for (const Damage& row : cases) {
    SmallCatboost small = counting();
    ASSERT_TRUE(load_text(small.cbm()).ok()) << load_text(small.cbm()).error().text();
    row.damage(small);
    expect_refused(row.name, small.cbm(), row.sentence);
  }
}

TEST(DamagedCatboost, Tables) {
  const std::string table = "the table of counters at byte ";
  const Damage cases[] = {
      {"three slots",
       [](auto& s) {
         s.slots.push_back({13, 1});
       },
       "a hash map of 36 bytes"},
      {"no slots", [](auto& s) { s.slots.clear(); }, "a hash map of 0 bytes"},
      {"a row that does not exist", [](auto& s) { s.slots[1].second = 2; },
       "row 2 of 2 does not exist or has two keys"},
      {"a row with two keys", [](auto& s) { s.slots[1].second = 0; },
       "row 0 of 2 does not exist or has two keys"},
      {"a key with two rows", [](auto& s) { s.slots[1].first = 11; }, "a key twice"},
      {"half a row", [](auto& s) { s.counts.pop_back(); }, "rows of 2 numbers do not fill 12 bytes"},
      {"no classes", [](auto& s) { s.classes = 0; }, "0 classes"},
      {"negative classes", [](auto& s) { s.classes = -2; }, "-2 classes"},
  };
  for (const Damage& row : cases) {
    SmallCatboost small = counting();
    row.damage(small);
    const std::optional<Error> error = refusal_of(row.name, small.cbm());
    ASSERT_TRUE(error) << row.name;
    EXPECT_TRUE(error->where.starts_with(table)) << error->text();
    EXPECT_EQ(error->message, row.sentence) << row.name;
  }
}

TEST(DamagedCatboost, Sizes) {
  const std::string good = SmallCatboost{}.cbm();
  expect_refused("one byte more", good + '\0',
                 "byte " + std::to_string(good.size()) + ": bytes after the end of the model");
  std::string large = good;
  large.replace(4, 4, std::string("\xff\xff\xff\xfe", 4));
  EXPECT_NE(refusal_of("larger than the file", large)->text().find("the file is cut short"),
            std::string::npos);
  const std::string wide =
      "CBM1" + std::string(4, '\xff') + FlatTableText::bytes_of_number(std::uint64_t{good.size() - 8});
  EXPECT_TRUE(load_text(wide + good.substr(8)).ok());
  expect_refused("nothing but its name", "CBM1",
                 "byte 4: a part of 4 bytes, but only 0 are left: the file is cut short");
}

/// Lists that share bytes could make a small file take any memory.
TEST(DamagedCatboost, SharedLists) {
  SmallCatboost small;
  small.borders.assign(1000, 0.5f);
  std::string text = small.cbm();
  // The list of two float features refers to the first feature twice.
  const std::string indices = FlatTableText::bytes_of_number(std::uint32_t{2});
  bool found = false;
  for (std::size_t at = 8; at + 12 <= text.size() && !found; ++at) {
    if (text.compare(at, 4, indices) != 0) continue;
    std::uint32_t first = 0, second = 0;
    text.copy(reinterpret_cast<char*>(&first), 4, at + 4);
    text.copy(reinterpret_cast<char*>(&second), 4, at + 8);
    if (second < 4000 || second > 5000 || first > 100) continue;
    text.replace(at + 8, 4, FlatTableText::bytes_of_number(first - 4));
    found = true;
  }
  ASSERT_TRUE(found);
  const std::optional<Error> error = refusal_of("shared", text);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("lists that share bytes"), std::string::npos) << error->text();
}

/// Columns of one table multiply its memory.
TEST(DamagedCatboost, CountersOfMuchMemory) {
  std::string hashes, ctrs;
  for (int i = 1; i <= 20'000; ++i) hashes += (i == 1 ? "\"" : ",\"") + std::to_string(i) + "\",1,2";
  for (int i = 0; i < 3'000; ++i)
    ctrs += std::string(i == 0 ? "" : ",") +
            R"({"ctr_type":"FloatTargetMeanValue","identifier":"t","prior_numerator":)" + std::to_string(i) +
            R"(,"elements":[{"cat_feature_index":0,"combination_element":"cat_feature_value"}]})";
  expect_refused(
      "a table with thousands of counters",
      R"({"ctr_data":{"t":{"hash_map":[)" + hashes +
          R"(],"hash_stride":3}},"features_info":{"categorical_features":[{"feature_index":0,"flat_feature_index":0}],)"
          R"("ctrs":[)" +
          ctrs + R"(]},"oblivious_trees":[{"leaf_values":[1],"splits":[]}]})",
      "counter 0: the values of all counters need more memory than this file is worth");
}

TEST(DamagedCatboost, Json) {
  struct {
    const char* name;
    std::string from, to, sentence;
  } const cases[] = {
      {"text features", R"("features_info":{)", R"("features_info":{"text_features":[],)",
       "features_info.text_features: features of this kind cannot be read: only numbers, categories and their counters"},
      {"an unknown part", R"({"ctr_data")", R"({"model_info":{},"quantiles":[],"ctr_data")",
       "quantiles: a part of the model that cannot be read"},
      {"a list for an object", R"("params":{"loss)", R"("params":[],"p":{"loss)",
       "model_info.params: an array is not expected here"},
      {"a text for a list", R"("splits":[])", R"("splits":"")",
       "oblivious_trees[1].splits: expected an object or an array, found \"\""},
      {"a list for a number", R"("split_index":1,)", R"("split_index":[1],)",
       "oblivious_trees[0].splits[0].split_index: an array is not expected here"},
      {"a fraction for a number", R"("split_index":1,)", R"("split_index":1.5,)",
       "oblivious_trees[0].splits[0].split_index: expected a whole number, found \"1.5\""},
      {"no split", R"("split_index":1,)", "",
       "oblivious_trees[0].splits[0]: split_index is missing or does not exist"},
      {"a split negative", R"("split_index":1,)", R"("split_index":-1,)",
       "oblivious_trees[0].splits[0]: split_index is missing or does not exist"},
      {"a split out of range", R"("split_index":1,)", R"("split_index":5,)",
       "tree 0: split 5 does not exist: the features have 5"},
      {"a leaf too few", "[1,2,4,8]", "[1,2,4]", "oblivious_trees[0]: 3 leaf values for 2 splits"},
      {"a weight too few", "[1,1,1,1]", "[1,1,1]", "oblivious_trees[0]: 3 leaf weights for 2 splits"},
      {"no leaves", "[16]", "[]", "oblivious_trees[1]: 0 leaf values for 0 splits"},
      {"vectors in one tree", "[16]", "[16,17]",
       "oblivious_trees[1]: 2 values per leaf, but the trees before it have 1"},
      {"a leaf that is text", "[16]", R"(["16"])",
       "oblivious_trees[1].leaf_values[0]: expected a number, found \"16\""},
      {"a border beyond float32", "[0.5,1.5]", "[0.5,1e39]",
       "features_info.float_features[0].borders[1]: expected a number, found \"1e39\""},
      {"unknown treatment of NaN", "AsTrue", "AsMany",
       "features_info.float_features[0].nan_value_treatment: expected \"AsIs\", \"AsFalse\" or \"AsTrue\", found "
       "\"AsMany\""},
      {"no index", R"("feature_index":0,"flat_feature_index":0)", R"("flat_feature_index":0)",
       "number features: index -1 is missing, given twice or not below 2"},
      {"a code beyond 32 bits", "[5,-6]", "[5,2147483648]",
       "features_info.categorical_features[0].values[1]: expected a whole number of 32 bits, found \"2147483648\""},
      {"unknown counter", R"("ctr_type":"Borders")", R"("ctr_type":"Guesses")",
       "features_info.ctrs[0].ctr_type: expected a type of counters, found \"Guesses\""},
      {"a counter without its table", R"("identifier":"table of city")", R"("identifier":"x")",
       "counter 0: its table is not in the file (final_ctr_computation_mode=\"Skip\"): save the model with its tables"},
      {"a table for another type", R"("ctr_type":"Borders")", R"("ctr_type":"Counter")",
       "counter 0: a table with 2 numbers per row, for counters of another type"},
      {"an unknown element", "cat_feature_value", "text_feature",
       "features_info.ctrs[0].elements[0]: unknown or damaged element of a combination: \"text_feature\""},
      {"a category that does not exist", R"("elements":[{"cat_feature_index":0)",
       R"("elements":[{"cat_feature_index":1)", "counter 0: categorical feature 1 does not exist"},
      {"an infinite prior", R"("prior_numerator":0.5)", R"("prior_numerator":1e39)",
       "features_info.ctrs[0].prior_numerator: expected a number, found \"1e39\""},
      {"a number before the first hash", R"(["18446744073709551615",)", "[",
       "ctr_data.table of city.hash_map[0]: expected a hash as text, and equally many numbers after each, found \"0\""},
      {"a number too few", R"("7",1,3)", R"("7",1)",
       "ctr_data.table of city: hash_map: the last hash has fewer or more numbers than the others"},
      {"a number too many", R"(0,0,"7")", R"(0,0,0,"7")",
       "ctr_data.table of city: hash_map: the last hash has fewer or more numbers than the others"},
      {"another stride", R"("hash_stride":3)", R"("hash_stride":4)",
       "ctr_data.table of city: hash_stride: says 4, but the hash map has 2 numbers after each hash"},
      {"a count with a fraction", R"("7",1,3)", R"("7",1.5,3)",
       "ctr_data: table 0: row 1 holds no count, or a sum that is not finite"},
      {"a count beyond 32 bits", R"("7",1,3)", R"("7",1,3000000000)",
       "ctr_data: table 0: row 1 holds no count, or a sum that is not finite"},
      {"a key that is not a number", R"("7",1,3)", R"("7x",1,3)",
       "ctr_data.table of city.hash_map[3]: expected a hash as text, and equally many numbers after each, found \"7x\""},
      {"trees twice", R"("scale_and_bias")", R"("oblivious_trees":[],"scale_and_bias")",
       "oblivious_trees: given twice"},
      {"a bias too many", "[0.25]", "[0.25,0]", "bias: 2 numbers for 1 outputs"},
  };
  ASSERT_TRUE(load_text(small_catboost_json()).ok()) << load_text(small_catboost_json()).error().text();
  for (const auto& row : cases)
    expect_refused(row.name, replaced(small_catboost_json(), row.from, row.to), row.sentence);
}

/// CatBoost's JSON leaves out what tells the counters of several labels apart, and all but one of their tables.
TEST(DamagedCatboost, CountersThatJsonHasLost) {
  const std::string text = small_catboost_json();
  const std::size_t begin = text.find(R"({"borders":[0.5],"ctr_type")"),
                    end = text.find("}],\"float_features\"") + 1;
  const std::string ctr = text.substr(begin, end - begin);
  expect_refused(
      "two equal counters", replaced(text, ctr, ctr + ',' + ctr),
      "counter 1: equals counter 0: CatBoost's JSON has lost one of their tables; save the model as .cbm");
}

/// Training makes a table of a combination and type for each target, and for each way to turn the target into classes.
TEST(DamagedCatboost, CountersWhoseTablesJsonMayHaveLost) {
  const std::string small = small_catboost_json();
  const std::size_t begin = small.find(R"({"borders":[0.5],"ctr_type")"),
                    end = small.find("}],\"float_features\"") + 1;
  const std::string ctr = small.substr(begin, end - begin);
  const std::string two =
      replaced(small, ctr, ctr + ',' + replaced(ctr, R"("prior_numerator":0.5)", R"("prior_numerator":1)"));
  const auto option = [](int borders, const std::string& type = "Borders") {
    return R"({"ctr_type":")" + type + R"(","target_binarization":{"border_count":)" +
           std::to_string(borders) + R"(,"border_type":"MinEntropy"}})";
  };
  const auto with_options = [&](const std::string& text, const std::string& options) {
    return replaced(text, R"("params":{"loss_function")",
                    R"("params":{"cat_feature_params":{)" + options + R"(},"loss_function")");
  };
  const std::string one_way =
      R"("simple_ctrs":[)" + option(1) + "," + option(2, "Buckets") + "," + R"({"ctr_type":"Counter"}])";
  const std::string kept[] = {
      with_options(two, one_way),
      with_options(two, one_way + R"(,"combinations_ctrs":[)" + option(1) + "," + option(2) + "]"),
      with_options(two, one_way + R"(,"per_feature_ctrs":{"3":[)" + option(2) + "]}"),
      small,
      with_options(small, R"("simple_ctrs":[)" + option(1) + "," + option(2) + "]"),
  };
  for (const std::string& text : kept) EXPECT_TRUE(load_text(text).ok()) << load_text(text).error().text();
  const std::pair<const char*, std::string> lost[] = {
      {"no training parameters", two},
      {"two numbers of classes", with_options(two, R"("simple_ctrs":[)" + option(1) + "," + option(2) + "]")},
      {"two numbers of classes for one feature",
       with_options(two, one_way + R"(,"per_feature_ctrs":{"2":[)" + option(1) + "," + option(2) + "]}")},
      {"two targets",
       replaced(with_options(two, one_way), R"("type":"Logloss")", R"("type":"MultiLogloss")")},
  };
  for (const auto& [name, text] : lost)
    expect_refused(
        name, text,
        "counter 1: names the table of counter 0: CatBoost's JSON may have lost one of their tables, because "
        "training turned targets into classes in several ways, or the file does not say in which; save the "
        "model as .cbm");
}

TEST(DamagedCatboost, BranchingJson) {
  struct {
    const char* name;
    std::string from, to, sentence;
  } const cases[] = {
      {"no right child", R"("right":{"value":[3,30]},)", "", "trees[0]: a split without two children"},
      {"no split", R"(,"split":{"split_index":1})", "",
       "trees[0]: a node that is neither a split nor a leaf"},
      {"a leaf that splits", R"({"value":[3,30]})", R"({"split":{"split_index":1},"value":[3,30]})",
       "trees[0]: a node that is neither a split nor a leaf"},
      {"a value after children", R"("split":{"split_index":0}})",
       R"("split":{"split_index":0},"value":[1,2]})",
       "trees[0].value: a node that is neither a split nor a leaf"},
      {"fewer values", "[3,30]", "[3]", "trees[0]: leaves with different numbers of values, or none"},
      {"no values", R"({"value":[3,30]})", "{}",
       "trees[0]: leaves with different numbers of values, or none"},
      {"a number for a leaf", R"({"value":[3,30]})", "3",
       "trees[0].right.right: expected an object or an array, found \"3\""},
  };
  for (const auto& row : cases)
    expect_refused(row.name, replaced(branching_catboost_json(), row.from, row.to), row.sentence);
}

TEST(DamagedCatboost, OverTheLimits) {
  for (const std::string& text : {SmallCatboost{}.cbm(), small_catboost_json()}) {
    LoadLimits limits;
    limits.max_trees = 0;
    EXPECT_FALSE(load_text(text, limits).ok());
    limits = {};
    limits.max_features = 2;
    EXPECT_FALSE(load_text(text, limits).ok());
    limits = {};
    limits.max_outputs = 0;
    EXPECT_FALSE(load_text(text, limits).ok());
    limits = {};
    limits.max_nodes = 6;
    EXPECT_EQ(load_text(text, limits).error().text(), "tree 0: more nodes than the limit of 6");
  }
  LoadLimits limits;
  limits.max_depth = 5;
  EXPECT_FALSE(load_text(branching_catboost_json(), limits).ok());
}

std::vector<std::string> small_files() {
  return {SmallCatboost{}.cbm(), branching().cbm(), counting().cbm()};
}

std::vector<std::string> small_documents() { return {small_catboost_json(), branching_catboost_json()}; }

TEST(SweepCatboost, EveryTruncationIsRefused) {
  for (const auto& files : {small_files(), small_documents()})
    for (const std::string& good : files)
      for (std::size_t length = 0; length < good.size(); ++length)
        refusal_of(std::to_string(length), good.substr(0, length));
}

TEST(SweepCatboost, EveryBitFlipIsRefusedOrSafe) {
  survive_bit_flips(small_files());
  survive_bit_flips(small_documents());
}

TEST(SweepCatboost, EveryByteReplacedIsRefusedOrSafe) {
  survive_bytes_replaced(small_files(), {'\0', '\xff', '\x7f', '\x01'});
  survive_bytes_replaced(small_documents(), {'\0', '\xff', '"', '[', '{', ']', '}', ',', '-', '9', 'e', '.'});
}

TEST(SweepCatboost, EveryNumberReplacedIsRefusedOrSafe) {
  for (const std::string& good : small_files())
    for (std::size_t at = 4; at + 4 <= good.size(); ++at)
      for (const std::int32_t number : {-1, 99'999, std::numeric_limits<std::int32_t>::max(), 0, 4}) {
        std::string text = good;
        survive(text.replace(at, 4, FlatTableText::bytes_of_number(number)));
      }
}

}  // namespace
}  // namespace forestvm::test::test_damaged_catboost
