// Damaged LightGBM files: each is refused with its line and one sentence; nothing crashes, hangs or takes
// much memory.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "damaged.hpp"
#include "small_lightgbm.hpp"

namespace forestvm::test::test_damaged_lightgbm {
namespace {

void expect_refused(const std::string& name, const std::string& text, const std::string& sentence = "") {
  const std::optional<Error> error = refusal_of(name, text);
  if (!error) return;
  EXPECT_TRUE(error->where.starts_with("line ") || error->where == "byte 0") << name << ": " << error->text();
  if (!sentence.empty()) {
    EXPECT_EQ(error->text(), sentence) << name;
  }
}

struct Damage {
  const char* name;
  std::string from, to;
  std::string sentence;
};

TEST(DamagedLightgbm, Text) {
  const Damage cases[] = {
      {"no version", "version=v4\n", "", "line 10: version is missing"},
      {"no names", "feature_names=", "names=", "line 11: feature_names is missing"},
      {"version twice", "label_index=0", "version=v4", "line 5: version is given twice: first in line 2"},
      {"a word for a count", "num_class=1", "num_class=one",
       "line 3: num_class[0]: expected a number, found \"one\""},
      {"no count", "num_class=1", "num_class=", "line 3: num_class: 0 numbers instead of 1"},
      {"no '='", "num_class=1", "num_class", "line 3: expected key=value, found \"num_class\""},
      {"no classes", "num_class=1", "num_class=0", "line 3: num_class: 0 is not within 1 and 65536"},
      {"too many classes", "num_class=1", "num_class=65537",
       "line 3: num_class: 65537 is not within 1 and 65536"},
      {"trees per round disagree", "num_class=1", "num_class=2",
       "line 4: num_tree_per_iteration: 1, but num_class 2"},
      {"features without end", "max_feature_idx=2", "max_feature_idx=4000000000",
       "line 6: max_feature_idx: 4000000000 is not within 0 and 16777215"},
      {"features beyond 64 bits", "max_feature_idx=2", "max_feature_idx=99999999999999999999",
       "line 6: max_feature_idx[0]: out of range: \"99999999999999999999\""},
      {"more features than names", "max_feature_idx=2", "max_feature_idx=3",
       "line 8: feature_names: 3 names for 4 features"},
      {"a name too many", "age height", "age high height", "line 8: feature_names: 4 names for 3 features"},
      {"a name not UTF-8", "age height", "age h\xff", "line 8: feature_names: not UTF-8"},
      {"an info too few", " none", "", "line 9: feature_infos: not one for each of 3 features"},
      {"an objective's parameter", "=regression", "=regression alpha:1",
       "line 7: objective \"regression\": unexpected or damaged: \"alpha:1\""},
      {"sqrt twice", "=regression", "=regression sqrt sqrt",
       "line 7: objective \"regression\": unexpected or damaged: \"sqrt\""},
      {"no sigmoid", "=regression", "=binary", "line 7: objective \"binary\": sigmoid: is missing"},
      {"sigmoid garbage", "=regression", "=binary sigmoid:1x",
       "line 7: objective \"binary\": unexpected or damaged: \"sigmoid:1x\""},
      {"sigmoid twice", "=regression", "=binary sigmoid:1 sigmoid:2",
       "line 7: objective \"binary\": unexpected or damaged: \"sigmoid:2\""},
      {"sigmoid negative", "=regression", "=binary sigmoid:-1",
       "line 7: objective \"binary\": sigmoid: must be positive"},
      {"sigmoid NaN", "=regression", "=binary sigmoid:nan",
       "line 7: objective \"binary\": sigmoid: must be positive"},
      {"classes disagree", "=regression", "=multiclass num_class:2",
       "line 7: objective \"multiclass\": num_class: must be there and be the header's 1"},
      {"a value for a flag", "label_index=0", "average_output=yes", "line 5: average_output: takes no value"},
      {"trees out of order", "Tree=1", "Tree=2", "line 30: tree 1: expected \"Tree=1\", found \"Tree=2\""},
      {"not a tree", "Tree=0", "Tree=", "line 11: tree 0: expected \"Tree=0\", found \"Tree=\""},
      {"no leaves", "num_leaves=3", "num_leaves=0",
       "line 12: tree 0: num_leaves: 0 is not within 1 and 1073741824"},
      {"leaves without end", "num_leaves=3", "num_leaves=1073741824",
       "line 20: tree 0: leaf_value: 3 numbers instead of 1073741824"},
      {"more leaves than that", "num_leaves=3", "num_leaves=1073741825",
       "line 12: tree 0: num_leaves: 1073741825 is not within 1 and 1073741824"},
      {"leaves disagree", "num_leaves=3", "num_leaves=2", "line 20: tree 0: leaf_value: more than 2 numbers"},
      {"a value too few", "leaf_value=0.125 ",
       "leaf_value=", "line 20: tree 0: leaf_value: 2 numbers instead of 3"},
      {"a split too few", "threshold=0.5 ",
       "threshold=", "line 16: tree 0: threshold: 1 numbers instead of 2"},
      {"a gain too few", "split_gain=3 1", "split_gain=3",
       "line 15: tree 0: split_gain: 1 numbers instead of 2"},
      {"a key missing", "threshold=", "thresholds=", "line 11: tree 0: threshold is missing"},
      {"a key twice", "split_gain=3 1", "threshold=1 2",
       "line 16: tree 0: threshold is given twice: first in line 15"},
      {"NaN threshold", "threshold=0.5", "threshold=nan",
       "line 16: tree 0: threshold[0]: not a number: \"nan\""},
      {"infinite leaf", "leaf_value=0.125", "leaf_value=-inf",
       "line 20: tree 0, node 2: the leaf value is not finite"},
      {"a number beyond a double", "threshold=0.5", "threshold=1e999",
       "line 16: tree 0: threshold[0]: out of range: \"1e999\""},
      {"a comma", "threshold=0.5", "threshold=0,5",
       "line 16: tree 0: threshold[0]: expected a number, found \"0,5\""},
      {"hexadecimal", "threshold=0.5", "threshold=0x1p-1",
       "line 16: tree 0: threshold[0]: expected a number, found \"0x1p-1\""},
      {"a fraction for a child", "left_child=-2", "left_child=-2.5",
       "line 18: tree 0: left_child[0]: expected a number, found \"-2.5\""},
      {"unknown kind of missing", "decision_type=2", "decision_type=12",
       "line 17: tree 0, node 0: unknown decision type 12"},
      {"negative decision", "decision_type=2", "decision_type=-2",
       "line 17: tree 0, node 0: unknown decision type -2"},
      {"categories that are none", "num_cat=0", "num_cat=2",
       "line 13: tree 0: num_cat: 2 categorical splits, but the tree has 0"},
      {"is_linear of 2", "is_linear=0", "is_linear=2", "line 26: tree 0: is_linear: 2 is not within 0 and 1"},
      {"feature too large", "split_feature=0 2", "split_feature=0 3",
       "line 11: tree 0, node 1: feature 3 does not exist: the model has 3"},
      {"feature negative", "split_feature=0 2", "split_feature=0 -1",
       "line 14: tree 0, node 1: feature -1 does not exist"},
      {"feature beyond 32 bits", "split_feature=0 2", "split_feature=0 4294967298",
       "line 14: tree 0, node 1: feature 4294967298 does not exist"},
      {"split out of range", "right_child=1", "right_child=2",
       "line 19: tree 0, node 0: child 2 does not exist: the tree has 2 splits and leaves to -3"},
      {"leaf out of range", "right_child=1 -3", "right_child=1 -4",
       "line 19: tree 0, node 1: child -4 does not exist: the tree has 2 splits and leaves to -3"},
      {"child of 64 bits", "right_child=1", "right_child=-9223372036854775808",
       "line 19: tree 0, node 0: child -9223372036854775808 does not exist: the tree has 2 splits and "
       "leaves to -3"},
      {"cycle", "left_child=-2 -1", "left_child=-2 0",
       "line 11: tree 0, node 1: child 0 is reached twice: a cycle or a shared subtree"},
      {"leaf twice", "left_child=-2 -1", "left_child=-2 -2",
       "line 11: tree 0, node 1: child 3 is reached twice: a cycle or a shared subtree"},
      {"orphan", "right_child=1", "right_child=-1", ""},
      {"negative count", "leaf_count=30", "leaf_count=-30",
       "line 22: tree 0, node 2: a negative count of training rows"},
      {"counts disagree", "leaf_count=30 ",
       "leaf_count=", "line 22: tree 0: leaf_count: 2 numbers instead of 3"},
      {"entries after an empty line", "is_linear=0\n", "\nis_linear=0\n",
       "line 27: tree 0: after an empty line, expected the next tree or \"end of trees\", found "
       "\"is_linear=0\""},
      {"a Windows line end", "num_class=1\n", "num_class=1\r\n",
       "line 3: a Windows line end (CR LF), which LightGBM cannot read: convert the file"},
      {"text in a tree", "is_linear=0", "\x1b[31m",
       "line 26: tree 0: expected key=value, found \"\\x1b[31m\""},
  };
  SmallLightgbm small;
  small.tree_sizes = false;  // tree_sizes would have to be damaged too
  for (const Damage& row : cases) {
    expect_refused(row.name, replaced(small.text(), row.from, row.to), row.sentence);
  }
}

TEST(DamagedLightgbm, TreeSizes) {
  SmallLightgbm small;
  const std::string size = std::to_string(small.trees[0].text(0).size());
  const std::string both = "tree_sizes=" + size + " " + size;
  expect_refused("one too few", replaced(small.text(), both, "tree_sizes=" + size),
                 "line 10: tree_sizes: 1 numbers instead of 2");
  expect_refused("one too many", replaced(small.text(), both, both + " 7"),
                 "line 10: tree_sizes: more than 2 numbers");
  expect_refused("another", replaced(small.text(), both, "tree_sizes=" + size + " 7"),
                 "line 10: tree_sizes[1]: says 7 bytes, but the tree has " + size);
  expect_refused("negative", replaced(small.text(), both, "tree_sizes=-1 " + size));
  expect_refused("a tree that was edited", replaced(small.text(), "shrinkage=0.1", "shrinkage=0.10"),
                 "line 10: tree_sizes[0]: says " + size + " bytes, but the tree has " +
                     std::to_string(small.trees[0].text(0).size() + 1));
}

TEST(DamagedLightgbm, Rounds) {
  SmallLightgbm small;
  small.num_class = small.num_tree_per_iteration = "2";
  small.trees.resize(3);
  expect_refused("half a round", small.text(), "line 4: 3 trees are not whole rounds of 2");
  small.trees.clear();
  small.average_output = "average_output\n";
  expect_refused("an average of nothing", small.text(), "line 8: average_output: an average over no trees");
}

TEST(DamagedLightgbm, OverTheLimits) {
  const std::string text = SmallLightgbm{}.text();
  LoadLimits limits;
  limits.max_trees = 1;
  EXPECT_EQ(load_text(text, limits).error().text(), "line 31: tree 1: more trees than the limit of 1");
  limits = {};
  limits.max_nodes = 9;
  EXPECT_EQ(load_text(text, limits).error().text(), "line 31: tree 1: more nodes than the limit of 9");
  limits.max_nodes = 10;
  EXPECT_TRUE(load_text(text, limits).ok());
  limits = {};
  limits.max_features = 2;
  EXPECT_FALSE(load_text(text, limits).ok());
}

TEST(DamagedLightgbm, WindowsLineEnds) {
  std::string text;
  for (const char c : SmallLightgbm{}.text()) text += c == '\n' ? "\r\n" : std::string(1, c);
  expect_refused("everywhere", text);
  EXPECT_NE(load_text(text).error().message.find("Windows line ends"), std::string::npos);
}

/// Files up to their "end of trees". The rest is not read.
std::vector<std::string> small_files() {
  SmallLightgbm classes;
  classes.num_class = classes.num_tree_per_iteration = "2";
  classes.objective = "objective=multiclassova num_class:2 sigmoid:0.7\n";
  classes.average_output = "average_output\n";
  classes.tree_sizes = false;
  SmallLightgbm linear;
  linear.tree_sizes = false;
  linear.trees.resize(1);
  linear.trees[0].more =
      "is_linear=1\nleaf_const=1 2 3\nnum_features=2 0 1\nleaf_features=2 0   1 \nleaf_coeff=0.5 -4   8 \n";
  std::vector<std::string> files = {SmallLightgbm{}.text(), classes.text(), linear.text()};
  for (std::string& file : files) file.resize(file.find("end of trees") + std::string("end of trees").size());
  return files;
}

TEST(SweepLightgbm, EveryTruncationIsRefused) {
  for (const std::string& good : small_files()) {
    ASSERT_TRUE(load_text(good).ok());
    for (std::size_t length = 0; length < good.size(); ++length)
      expect_refused(std::to_string(length), good.substr(0, length));
  }
}

TEST(SweepLightgbm, EveryBitFlipIsRefusedOrSafe) { survive_bit_flips(small_files()); }

TEST(SweepLightgbm, EveryByteReplacedIsRefusedOrSafe) {
  survive_bytes_replaced(small_files(), {'\0', '\xff', '\r', '\n', ' ', '=', '-', '9', 'e', '.'});
}

/// Names of categories follow the trees.
TEST(SweepLightgbm, DamagedNamesAreRefusedOrSafe) {
  SmallLightgbm small;
  small.trees.resize(1);
  small.feature_infos = "[-1:1] 0:2:1 -1:3";
  const std::string text = small.text() + "[categorical_feature: 1,2]\npandas_categorical:";
  const std::string names = R"([["red", "gr\u00fcn", ""], [-5, 0.1, true]])";
  ASSERT_EQ(loaded(text + names + "\n").categories.size(), 2u);
  for (std::size_t at = 0; at < names.size(); ++at) {
    survive(text + names.substr(0, at));
    for (const char odd : {'\0', '\xff', '\n', '[', '{', ']', ',', '9', '-', '"', '\\'})
      survive(text + names.substr(0, at) + odd + names.substr(at + 1));
  }
}

TEST(SweepLightgbm, EveryLineLeftOutIsRefusedOrSafe) {
  for (const std::string& good : small_files())
    for (std::size_t begin = 0; begin < good.size(); begin = good.find('\n', begin) + 1) {
      const std::size_t end = good.find('\n', begin);
      if (end == std::string::npos) break;
      survive(good.substr(0, begin) + good.substr(end + 1));
      survive(good.substr(0, end + 1) + good.substr(begin));
    }
}

}  // namespace
}  // namespace forestvm::test::test_damaged_lightgbm
