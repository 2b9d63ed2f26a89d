// Damaged ONNX files: each is refused with its place and one sentence; nothing crashes, hangs or takes much memory.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "damaged.hpp"
#include "small_onnx.hpp"

namespace forestvm::test::test_damaged_onnx {
namespace {

SmallOnnx with(OnnxNodeText node) {
  SmallOnnx small;
  small.outputs = node.outputs;
  small.nodes = {std::move(node)};
  return small;
}

struct Damage {
  const char* attribute;
  std::string value;
  std::string sentence;  ///< After the node's place.
};

void expect_refused(const OnnxNodeText& good, const std::vector<Damage>& cases) {
  for (const Damage& damage : cases) {
    OnnxNodeText node = good;
    node.attributes[damage.attribute] = damage.value;
    const std::optional<Error> error = refusal_of(damage.attribute, with(node).text());
    const std::string where = "node \"n_" + good.outputs[0] + "\" (" + good.type + ")";
    if (!error) continue;
    EXPECT_EQ(error->text(), where + damage.sentence);
  }
}

TEST(DamagedOnnx, NumberedTrees) {
  const auto six = [](std::int64_t x) { return onnx_integers({0, 0, x, 0, 0, 0}); };
  expect_refused(
      onnx_regressor(),
      {{"nodes_treeids", onnx_integers({}), ", nodes_treeids: no nodes"},
       {"nodes_treeids", six(-1), ", nodes_treeids: value 2 is -1, which is not within 0 and 2147483647"},
       {"nodes_treeids", six(99999), ", nodes_treeids: the nodes of tree 0 do not follow one another"},
       {"nodes_nodeids", onnx_integers({0, 1, 1, 3, 4, 0}),
        ", nodes_nodeids: node 1 is given twice in one tree"},
       {"nodes_nodeids", onnx_integers({0, 1}), ", nodes_nodeids: 2 values, expected 6"},
       {"nodes_truenodeids", six(2147483647),
        ", nodes_truenodeids: value 2: its tree has no node 2147483647"},
       {"nodes_truenodeids", six(-1), ", nodes_truenodeids: value 2: its tree has no node -1"},
       {"nodes_truenodeids", six(0), ", entry 0 of its nodes: the node is its own descendant"},
       {"nodes_truenodeids", onnx_integers({2, 0, 3, 0, 0, 0}),
        ", entry 1 of its nodes: the node belongs to no tree"},
       {"nodes_featureids", six(99999), ", entry 2 of its nodes: feature 99999 does not exist: there are 3"},
       {"nodes_modes", onnx_strings({"LEAF", "LEAF", "BRANCH", "LEAF", "LEAF", "LEAF"}),
        ", nodes_modes: value 2: \"BRANCH\" is unknown"},
       {"nodes_values", onnx_reals({1}), ", nodes_values: 1 values, expected 6"},
       {"nodes_values", onnx_integers({1}), ", nodes_values: attribute type 7, expected 6"},
       {"nodes_values_as_tensor", onnx_tensor_attribute(onnx_floats("v", {1})),
        ", nodes_values: given twice: as a list and as a tensor"},
       {"nodes_missing_value_tracks_true", six(2),
        ", nodes_missing_value_tracks_true: value 2 is 2, which is not within 0 and 1"},
       {"target_ids", onnx_integers({0, 0, 0, 1}), ", target_ids: value 3 is 1, which is not within 0 and 0"},
       {"target_treeids", onnx_integers({0, 0, 0, 2}), ", target_treeids: there is no tree 2"},
       {"target_nodeids", onnx_integers({1, 3, 9, 0}), ", target_nodeids: value 2: its tree has no node 9"},
       {"target_weights", onnx_reals({1, 2, 4}), ", target_weights: 3 values, expected 4"},
       {"target_weights", onnx_reals({1, 2, 4, __builtin_inff()}),
        ", target_weights: weight 3 is not finite"},
       {"n_targets", onnx_integer(0), ", n_targets: 0 is not within 1 and 65536"},
       {"n_targets", onnx_integer(2147483647), ", n_targets: 2147483647 is not within 1 and 65536"},
       {"base_values", onnx_reals({1, 2}), ", base_values: more numbers than outputs"},
       {"aggregate_function", onnx_string("MEDIAN"), ", aggregate_function: \"MEDIAN\" is unknown"},
       {"nodes_weather", onnx_integer(1),
        ", nodes_weather: the attribute is unknown: predictions may depend on it"}});
  expect_refused(
      onnx_classifier(),
      {{"classlabels_strings", onnx_strings({"no"}), ", classlabels: fewer than two classes"},
       {"classlabels_int64s", onnx_integers({0, 1}), ", classlabels: given twice: as texts and as numbers"},
       {"class_ids", onnx_integers({0, 1, 0, 2}), ", class_ids: value 3 is 2, which is not within 0 and 1"}});
}

TEST(DamagedOnnx, ListedTrees) {
  const auto tensor = [](const std::string& text) { return onnx_tensor_attribute(text); };
  expect_refused(
      onnx_ensemble(),
      {{"tree_roots", onnx_integers({2}), ", tree_roots: value 0 is 2, which is not within 0 and 1"},
       {"tree_roots", onnx_integers({0, 1}), ", entry 1 of its nodes: the node belongs to two trees"},
       {"tree_roots", onnx_integers({1}), ", entry 0 of its nodes: the node belongs to no tree"},
       {"nodes_trueleafs", onnx_integers({0, 1}), ", entry 0 of its nodes: the node is its own descendant"},
       {"nodes_truenodeids", onnx_integers({0, 3}), ", nodes_truenodeids: value 1: there is no leaf 3"},
       {"nodes_falsenodeids", onnx_integers({2, 2}), ", nodes_falsenodeids: value 0: there is no node 2"},
       {"nodes_falsenodeids", onnx_integers({1, 1}), ", entry 4 of its nodes: the node belongs to no tree"},
       {"nodes_modes", tensor(onnx_uint8s("o", {3, 7})), ", nodes_modes: value 1: mode 7 is unknown"},
       {"nodes_modes", tensor(onnx_uint8s("o", {3})), ", nodes_modes: 1 values, expected 2"},
       {"membership_values", tensor(onnx_floats("m", {1, __builtin_nanf(""), 2})),
        ", membership_values: 2 values, expected 1"},
       {"leaf_targetids", onnx_integers({0, 0, 1}),
        ", leaf_targetids: value 2 is 1, which is not within 0 and 0"},
       {"leaf_weights", tensor(onnx_floats("w", {1, 2})), ", leaf_weights: 2 values, expected 3"},
       {"leaf_weights", tensor(onnx_doubles("w", {1, 2, 4})),
        ": double thresholds or weights for columns of float"},
       {"aggregate_function", onnx_integer(4), ", aggregate_function: 4 is not within 0 and 3"},
       {"post_transform", onnx_integer(-1), ", post_transform: -1 is not within 0 and 4"}});
  OnnxNodeText node = onnx_ensemble();
  node.attributes.erase("nodes_splits");
  EXPECT_EQ(load_text(with(node).text()).error().text(),
            "node \"n_Y\" (TreeEnsemble), nodes_splits: the tensor is missing");
}

TEST(DamagedOnnx, Tensors) {
  const auto refusal = [](const std::string& tensor) {
    SmallOnnx small;
    small.initializers = {tensor};
    return load_text(small.text()).error().message;
  };
  const std::string good = onnx_floats("t", {1});
  EXPECT_EQ(refusal(good + wire_text(13, wire_text(1, "location") + wire_text(2, "/etc/passwd"))),
            "tensor \"t\": its data lie in another file, which is never opened: save the model as one file");
  EXPECT_EQ(refusal(good + wire_number(14, 1)),
            "tensor \"t\": its data lie in another file, which is never opened: save the model as one file");
  EXPECT_EQ(refusal(good + wire_text(3, "")), "tensor \"t\": it is only a segment");
  EXPECT_EQ(refusal(good + wire_number(1, 1LL << 40)),
            "tensor \"t\": 1 elements, but its dimensions say 1099511627776");
  EXPECT_EQ(refusal(good + wire_number(1, 1LL << 40) + wire_number(1, 1LL << 40)),
            "tensor \"t\": its dimensions are negative or too large");
  EXPECT_EQ(refusal(good + wire_number(1, -1)), "tensor \"t\": its dimensions are negative or too large");
  EXPECT_EQ(refusal(onnx_doubles("t", {1}) + wire_text(9, "123")),
            "tensor \"t\": its raw data end within an element");
  SmallOnnx twice;
  twice.initializers = {good, good};
  EXPECT_EQ(load_text(twice.text()).error().message, "two initializers are named \"t\"");
}

TEST(DamagedOnnx, Files) {
  EXPECT_EQ(load_text("\x08").error().text(), "byte 1: a protobuf number that is damaged or cut off");
  EXPECT_EQ(load_text(wire_number(1, 8)).error().text(), "byte 2: the ONNX model has no graph");
  const std::string good = SmallOnnx{}.text();
  EXPECT_EQ(load_text(good + good).error().message, "a second graph");
  // Not ONNX: another field first, or one that ModelProto does not have.
  for (const std::string& other :
       {wire_number(2, 8), wire_number(1, 8) + wire_number(9, 1), std::string("\x08\x00", 2)})
    EXPECT_TRUE(load_text(other).error().message.starts_with("not a model file of a known format")) << other;
}

std::vector<std::string> small_files() {
  SmallOnnx scaled;
  scaled.nodes = {
      {"Scaler", "ai.onnx.ml", {"X"}, {"S"}, {{"offset", onnx_reals({1})}, {"scale", onnx_reals({-2})}}},
      onnx_ensemble()};
  scaled.nodes[1].inputs = {"S"};
  return {SmallOnnx{}.text(), with(onnx_classifier()).text(), scaled.text()};
}

TEST(DamagedOnnx, GoodFilesLoad) {
  for (const std::string& file : small_files()) loaded(file);
}

TEST(DamagedOnnx, FlippedBits) { survive_bit_flips(small_files()); }

TEST(DamagedOnnx, OtherBytes) { survive_bytes_replaced(small_files(), {'\0', '\1', '\x7f', '\x80', '\xff'}); }

TEST(DamagedOnnx, CutShort) {
  for (const std::string& file : small_files())
    for (std::size_t size = 0; size < file.size(); ++size) survive(file.substr(0, size));
}

/// Replaces each number of each list.
TEST(DamagedOnnx, OtherNumbers) {
  const auto replaced_in = [](const OnnxNodeText& good, const char* list, std::vector<std::int64_t> numbers) {
    for (std::int64_t& number : numbers) {
      const std::int64_t before = number;
      for (const std::int64_t other : {std::int64_t{-1}, std::int64_t{2}, std::int64_t{99999},
                                       std::int64_t{2147483647}, std::int64_t{1} << 40, INT64_MIN}) {
        number = other;
        OnnxNodeText node = good;
        node.attributes[list] = onnx_integers(numbers);
        survive(with(node).text());
      }
      number = before;
    }
  };
  for (const char* list : {"nodes_falsenodeids", "nodes_featureids", "nodes_missing_value_tracks_true",
                           "nodes_nodeids", "nodes_treeids", "nodes_truenodeids"})
    replaced_in(onnx_regressor(), list, {0, 1, 2, 3, 4, 0});
  for (const char* list : {"target_ids", "target_nodeids", "target_treeids"})
    replaced_in(onnx_regressor(), list, {0, 0, 0, 1});
  for (const char* list : {"nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids", "nodes_trueleafs",
                           "nodes_truenodeids", "tree_roots"})
    replaced_in(onnx_ensemble(), list, {0, 1});
}

}  // namespace
}  // namespace forestvm::test::test_damaged_onnx
