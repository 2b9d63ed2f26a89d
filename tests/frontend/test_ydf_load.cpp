// A YDF model directory and the Model made of it: columns, kinds of forests, files of nodes, and what is refused by
// name.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <forestvm/internal/reference.hpp>

#include "load_text.hpp"
#include "ydf_copy.hpp"

namespace forestvm::test::test_ydf_load {
namespace {

using namespace std::string_literals;

Model loaded_ydf(const std::string& name) {
  Result<Model> model = YdfCopy(name).load();
  EXPECT_TRUE(model.ok()) << model.error().text();
  return model.ok() ? std::move(model).value() : Model{};
}

/// Returns the refusal of a model after a change to one of its files.
std::string refusal_after(const std::string& name, const char* file, const std::string& from,
                          const std::string& to) {
  const YdfCopy copy(name);
  copy.write(file, replaced(copy.bytes(file), from, to));
  return copy.refusal();
}

TEST(YdfLoad, SaysWhatTheFilesSaid) {
  const Model model = loaded_ydf("binary");
  EXPECT_EQ(model.format, "ydf");
  EXPECT_EQ(model.trainer, "ydf");
  EXPECT_EQ(model.objective, "BINOMIAL_LOG_LIKELIHOOD");
  EXPECT_EQ(model.feature_names, (std::vector<std::string>{"a", "größe", "e", "c", "d", "f"}));
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(model.transform, Transform::PlainSigmoid);
  ASSERT_EQ(model.categories.size(), 3u);
  EXPECT_EQ(model.categories[0].feature, 3u);
  EXPECT_EQ(model.categories[0].names.size(), 6u);
  EXPECT_EQ(model.categories[0].names[0], "<OOD>");
  EXPECT_EQ(model.categories[0].unseen, 0.0);
  EXPECT_EQ(model.categories[2].names, (std::vector<std::string>{"false", "true"}));
  EXPECT_EQ(model.categories[2].unseen, std::nullopt);
  const Tree& tree = model.trees[0];
  EXPECT_EQ(tree.first_leaf * 2 + 1, tree.nodes.size());
  EXPECT_EQ(tree.nodes[0].cover, 400.0f);
}

TEST(YdfLoad, TheEngineDecidesWhenTheBaseIsAdded) {
  for (const char* quick : {"binary", "discretized", "regression", "ranking", "poisson"})
    EXPECT_FALSE(loaded_ydf(quick).base_last) << quick;
  for (const char* generic : {"binary_large", "binary_missing", "classes", "oblique"})
    EXPECT_TRUE(loaded_ydf(generic).base_last) << generic;
}

TEST(YdfLoad, Kinds) {
  EXPECT_EQ(loaded_ydf("classes").round_begins, (std::vector<std::uint32_t>{0, 3, 6, 9, 12}));
  EXPECT_EQ(loaded_ydf("logits").transform, Transform::Identity);
  EXPECT_EQ(loaded_ydf("poisson").transform, Transform::CutExp);
  EXPECT_EQ(loaded_ydf("forest_shares").trees[0].leaf_width, 3u);
  EXPECT_EQ(loaded_ydf("forest_votes").num_outputs, 1u);
  EXPECT_EQ(loaded_ydf("isolation").transform, Transform::Anomaly);
  const Model oblique = loaded_ydf("oblique");
  EXPECT_EQ(oblique.computed_columns.size(), 28u);
  EXPECT_EQ(oblique.trees[0].nodes[0].feature, 3u);
}

TEST(YdfLoad, TreesRunOnThroughTheFiles) {
  const YdfCopy copy("isolation");
  const std::string nodes = copy.bytes(kYdfNodes);
  // Cuts after the second node of the first tree.
  std::size_t at = 8;
  for (int i = 0; i < 2; ++i) at += 4u + static_cast<unsigned char>(nodes[at]);
  copy.remove(kYdfNodes);
  copy.write("nodes-00000-of-00002", nodes.substr(0, at));
  copy.write("nodes-00001-of-00002", "BS\x01\0\x01\0\0\0"s + gzip(nodes.substr(at)));
  const char* const header = "isolation_forest_header.pb";
  copy.write(header, replaced(copy.bytes(header), "\x08\x01\x10"s, "\x08\x02\x10"s));
  const Result<Model> model = copy.load();
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(model->trees.size(), 4u);
  copy.remove("nodes-00001-of-00002");
  EXPECT_EQ(copy.refusal(), "nodes-00001-of-00002: cannot read the file: No such file or directory");
}

TEST(YdfLoad, AllFilesShareOneLimit) {
  const YdfCopy copy("isolation");
  LoadLimits limits;
  limits.max_bytes = 0;
  for (const char* file : {"header.pb", "data_spec.pb", "isolation_forest_header.pb", kYdfNodes})
    limits.max_bytes += copy.bytes(file).size();
  EXPECT_TRUE(copy.load(limits).ok());
  --limits.max_bytes;
  EXPECT_FALSE(copy.load(limits).ok());
}

TEST(YdfLoad, OnlyTheSlowEngineRunsIt) {
  const std::string text = YdfCopy("slow_only").refusal();
  EXPECT_TRUE(text.starts_with("tree ")) << text;
  EXPECT_NE(text.find("missing values go where YDF's global imputation would not send them"),
            std::string::npos);
}

TEST(YdfLoad, LogitsOfSeveralClassesHaveNoBase) {
  const Model logits = loaded_ydf("logits_classes");
  EXPECT_EQ(logits.base, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(logits.transform, Transform::Identity);
  EXPECT_EQ(logits.class_rule, ClassRule::None);
}

TEST(YdfLoad, TheEngineDecidesWhetherPoissonGivesLogits) {
  EXPECT_EQ(loaded_ydf("logits_poisson").transform, Transform::Identity);
  EXPECT_EQ(loaded_ydf("logits_poisson_large").transform, Transform::CutExp);
}

TEST(YdfLoad, AHalfIsTheSecondClass) {
  for (const char* name : {"binary", "focal", "forest_votes", "tied"})
    EXPECT_EQ(loaded_ydf(name).class_rule, ClassRule::HalfOrMore) << name;
}

TEST(YdfLoad, TheLossForSeveralClassesWithTwo) {
  const std::string text = YdfCopy("multinomial_two").refusal();
  EXPECT_EQ(
      text,
      "gradient_boosted_trees_header.pb: loss: MULTINOMIAL_LOG_LIKELIHOOD with two classes: YDF's predict() "
      "fails for such a model, and its slow engine, which computes other bits, is not supported. Train with "
      "BINOMIAL_LOG_LIKELIHOOD");
}

TEST(YdfLoad, KindsAndTasksAreRefusedByName) {
  EXPECT_EQ(
      refusal_after("binary", kYdfHeader, "\x16GRADIENT_BOOSTED_TREES", "\x0bMULTITASKER"),
      "header.pb: name: \"MULTITASKER\" models are not supported: gradient boosted trees, random forests and "
      "isolation forests are");
  EXPECT_EQ(refusal_after("binary", kYdfHeader, "TREES\x10\x01", "TREES\x10\x04"),
            "header.pb: byte 25: uplift models are not supported");
  EXPECT_EQ(refusal_after("binary", kYdfHeader, "TREES\x10\x01", "TREES\x10\x07"),
            "header.pb: byte 25: survival analysis models are not supported");
  EXPECT_EQ(refusal_after("binary", kYdfHeader, "TREES\x10\x01", "TREES\x10\x02"),
            "gradient_boosted_trees_header.pb: loss: loss 1 of task 2 is not supported");
  EXPECT_EQ(
      refusal_after("binary", kYdfBoosted,
                    "\x3a\x0d"
                    "BLOB_SEQUENCE",
                    "\x3a\x0cTFE_RECORDIO"),
      "gradient_boosted_trees_header.pb: node_format: nodes in the format \"TFE_RECORDIO\" are not supported: save "
      "the model again with the Python package ydf");
}

TEST(YdfLoad, ColumnsAreRefusedByName) {
  const std::pair<char, const char*> types[] = {
      {'\x05', "sets or lists of categories"}, {'\x0a', "hashes"},
      {'\x0b', "sequences of vectors"},        {'\x08', "texts"},
      {'\x02', "sets or lists of numbers"},
  };
  for (const auto& [type, what] : types) {
    const std::string text = refusal_after("binary", kYdfColumns,
                                           "\x08\x01\x12\x01"
                                           "a",
                                           "\x08"s + type +
                                               "\x12\x01"
                                               "a");
    EXPECT_NE(text.find(std::string("columns of ") + what + " are not supported"), std::string::npos) << text;
  }
  // A condition that does not fit its column.
  const std::string text = refusal_after("binary", kYdfColumns,
                                         "\x08\x01\x12\x01"
                                         "a",
                                         "\x08\x07\x12\x01"
                                         "a");
  EXPECT_NE(text.find("a condition that does not fit the boolean column \"a\""), std::string::npos) << text;
}

TEST(YdfLoad, FilesOfNodes) {
  const YdfCopy copy("isolation");
  const std::string nodes = copy.bytes(kYdfNodes);
  const auto refusal_of = [&](const std::string& changed) {
    copy.write(kYdfNodes, changed);
    return copy.refusal();
  };
  EXPECT_EQ(refusal_of("BT" + nodes.substr(2)), "nodes-00000-of-00001: byte 0: not a sequence of blobs");
  EXPECT_EQ(refusal_of("BS\x02\0"s + nodes.substr(4)),
            "nodes-00000-of-00001: byte 2: version 2 of blob sequences: only 0 and 1 are known");
  EXPECT_EQ(refusal_of(nodes.substr(0, 4) + "\x02" + nodes.substr(5)),
            "nodes-00000-of-00001: byte 4: unknown compression 2");
  EXPECT_EQ(refusal_of(nodes + "\0\0\0\0"s),
            "nodes-00000-of-00001: byte " + std::to_string(nodes.size()) +
                ": tree 4: more nodes than those of the 4 trees of the header");
  EXPECT_EQ(refusal_of(nodes.substr(0, 8)), "nodes: the files end within tree 0 of 4");
  EXPECT_TRUE(refusal_of(nodes.substr(0, nodes.size() - 1)).starts_with("nodes-00000-of-00001: byte "));
}

}  // namespace
}  // namespace forestvm::test::test_ydf_load
