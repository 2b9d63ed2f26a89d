// ONNX files become Models: trees, types, classes, and the nodes around the ensemble; the rest is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <forestvm/internal/reference.hpp>

#include "small_onnx.hpp"

namespace forestvm::test::test_onnx_load {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::string refusal(const SmallOnnx& small, const LoadLimits& limits = {}) {
  const Result<Model> model = load_text(small.text(), limits);
  return model.ok() ? "not refused" : model.error().text();
}

SmallOnnx with(OnnxNodeText node) {
  SmallOnnx small;
  small.outputs = node.outputs;
  small.nodes = {std::move(node)};
  return small;
}

std::vector<double> values(const Model& model, const std::vector<float>& rows) {
  return reference_predict(model, rows, rows.size() / model.num_features)->value;
}

TEST(OnnxLoad, Regressor) {
  const Model model = loaded(SmallOnnx{}.text());
  EXPECT_EQ(model.format, "onnx");
  EXPECT_EQ(model.version, "tests 1.0");
  EXPECT_EQ(model.objective, "TreeEnsembleRegressor NONE");
  EXPECT_EQ(model.num_features, 3u);
  EXPECT_EQ(model.row_type, ScalarType::Float32);
  EXPECT_EQ(model.score_type, ScalarType::Float64);
  EXPECT_EQ(model.base, std::vector<double>{0.5});
  EXPECT_TRUE(model.base_last);
  ASSERT_EQ(model.trees.size(), 2u);
  const std::vector<Node>& nodes = model.trees[0].nodes;
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[0].kind, NodeKind::LessEqual);
  EXPECT_EQ(nodes[0].threshold, 1.5);
  EXPECT_FALSE(nodes[0].missing_left);
  EXPECT_EQ(nodes[2].kind, NodeKind::Less);
  EXPECT_EQ(nodes[2].threshold, -2);
  EXPECT_EQ(nodes[2].feature, 1u);
  EXPECT_TRUE(nodes[2].missing_left);
  EXPECT_EQ(values(model, {1.5f, 0, 0, 2, -3, 0, 2, -2, 0, kNan, kNan, kNan}),
            (std::vector<double>{9.5, 10.5, 12.5, 10.5}));
}

TEST(OnnxLoad, Classifier) {
  OnnxNodeText node = onnx_classifier();
  Model model = loaded(with(node).text());
  EXPECT_EQ(model.num_outputs, 2u);
  EXPECT_EQ(model.trees.at(0).leaf_width, 2u);
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(model.class_rule, ClassRule::RawArgmax);
  EXPECT_EQ(values(model, {1, 0, 0, 2, 0, 0}), (std::vector<double>{0.25, 0.5, 0.75, 0.125}));

  node.attributes["class_ids"] = onnx_integers({0, 0, 0, 0});
  model = loaded(with(node).text());
  EXPECT_EQ(model.num_outputs, 1u);
  EXPECT_EQ(model.pair, Pair::Complement);
  EXPECT_EQ(model.class_rule, ClassRule::RawAboveHalf);
  EXPECT_EQ(values(model, {1, 0, 0}), (std::vector<double>{0.25, 0.75}));

  node.attributes["class_weights"] = onnx_reals({0.25f, -0.5f, 0.75f, 0.125f});
  model = loaded(with(node).text());
  EXPECT_EQ(model.pair, Pair::Negation);
  EXPECT_EQ(model.class_rule, ClassRule::RawPositive);
  node.attributes["post_transform"] = onnx_string("LOGISTIC");
  EXPECT_EQ(loaded(with(node).text()).pair, Pair::Complement);
}

TEST(OnnxLoad, EnsembleWithMembers) {
  const Model model = loaded(with(onnx_ensemble()).text());
  EXPECT_EQ(values(model, {3, 0, 0, 2, 1, 0, 2, 3, 0, 2, 2, 0, 2, 1.5f, 0, kNan, kNan, 0}),
            (std::vector<double>{1, 2, 2, 4, 4, 4}));
}

/// Compares each mode of a node with its definition, on numbers beside its value and on NaN.
TEST(OnnxLoad, EveryModeIsWhatItSays) {
  const struct {
    const char* mode;
    std::function<bool(float, float)> test;
  } cases[] = {
      {"BRANCH_LEQ", std::less_equal<float>()},    {"BRANCH_LT", std::less<float>()},
      {"BRANCH_GTE", std::greater_equal<float>()}, {"BRANCH_GT", std::greater<float>()},
      {"BRANCH_EQ", std::equal_to<float>()},       {"BRANCH_NEQ", std::not_equal_to<float>()},
  };
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> numbers = {-kInf, -largest, -2,   -1.0000001f, -1,      -0.5f, -0.0f,
                                      0,     1e-45f,   0.5f, 1,           largest, kInf,  kNan};
  for (const auto& c : cases)
    for (const float value : {-kInf, -1.0f, 0.0f, 1e-45f, largest, kInf, kNan})
      for (const bool nan_yes : {false, true}) {
        OnnxNodeText node = onnx_regressor();
        node.attributes["nodes_modes"] = onnx_strings({c.mode, "LEAF", "BRANCH_LT", "LEAF", "LEAF", "LEAF"});
        node.attributes["nodes_values"] = onnx_reals({value, 0, -kInf, 0, 0, 0});
        node.attributes["nodes_missing_value_tracks_true"] = onnx_integers({nan_yes ? 1 : 0, 0, 0, 0, 0, 0});
        const Model model = loaded(with(node).text());
        for (const float x : numbers) {
          const bool yes = c.test(x, value) || (nan_yes && x != x);
          EXPECT_EQ(values(model, {x, 0, 0}).at(0), yes ? 9.5 : 12.5)
              << c.mode << " " << value << ", x = " << x << ", NaN: " << nan_yes;
        }
      }
}

TEST(OnnxLoad, DoublesAreComparedInTheTypeOfRows) {
  OnnxNodeText node = onnx_regressor();
  node.attributes.erase("nodes_values");
  node.attributes["nodes_values_as_tensor"] = onnx_tensor_attribute(onnx_doubles("v", {0.1, 0, -2, 0, 0, 0}));
  SmallOnnx small = with(node);
  EXPECT_EQ(refusal(small),
            "node \"n_Y\" (TreeEnsembleRegressor): double thresholds or weights for columns of float");
  small.input_type = 11;
  const Model wide = loaded(small.text());
  EXPECT_EQ(wide.row_type, ScalarType::Float64);
  EXPECT_EQ(wide.trees[0].nodes[0].threshold, 0.1);
  // Float rows cast to double: the greatest float below 0.1 decides.
  small.input_type = 1;
  small.nodes[0].inputs = {"D"};
  small.nodes.insert(small.nodes.begin(), {"Cast", "", {"X"}, {"D"}, {{"to", onnx_integer(11)}}});
  const Model narrow = loaded(small.text());
  EXPECT_EQ(narrow.row_type, ScalarType::Float32);
  EXPECT_EQ(narrow.trees[0].nodes[0].threshold, static_cast<double>(0x1.999998p-4f));
}

TEST(OnnxLoad, SeveralInputs) {
  SmallOnnx small;
  small.inputs = {{"age", {-1, 1}}, {"height", {-1, 1}}, {"weight", {-1, 1}}};
  small.nodes.insert(small.nodes.begin(),
                     {"Concat", "", {"weight", "age", "height"}, {"X"}, {{"axis", onnx_integer(1)}}});
  const Model model = loaded(small.text());
  EXPECT_EQ(model.feature_names, (std::vector<std::string>{"age", "height", "weight"}));
  EXPECT_EQ(model.trees[0].nodes[0].feature, 2u);
  EXPECT_EQ(model.trees[0].nodes[2].feature, 0u);
}

TEST(OnnxLoad, AnInputWithoutWidthHasTheFeaturesThatAreTested) {
  SmallOnnx small;
  small.inputs = {{"X", {}}};
  EXPECT_EQ(loaded(small.text()).num_features, 2u);
  LoadLimits limits;
  limits.max_features = 1;
  EXPECT_EQ(
      refusal(small, limits),
      "node \"n_Y\" (TreeEnsembleRegressor), entry 2 of its nodes: feature 1 does not exist: there are 1");
}

TEST(OnnxLoad, NodesOfNoEffectAreReadAndOthersRefused) {
  const OnnxNodeText identity = {"Identity", "", {"Y"}, {"Z"}, {}};
  struct Case {
    OnnxNodeText node;
    std::string text;
  };
  const std::string where = "node \"n_Z\" ";
  const auto shape = [](const char* type, std::vector<std::string> inputs) {
    return OnnxNodeText{type, "", std::move(inputs), {"Z"}, {}};
  };
  const Case cases[] = {
      {identity, "not refused"},
      {{"Cast", "", {"Y"}, {"Z"}, {{"to", onnx_integer(11)}}}, "not refused"},
      {{"Cast", "", {"Y"}, {"Z"}, {{"to", onnx_integer(7)}}}, where + "(Cast): scores cast to int64"},
      {{"Mul", "", {"Y", "one"}, {"Z"}, {}}, "not refused"},
      {{"Mul", "", {"Y", "two"}, {"Z"}, {}}, where + "(Mul): only scores times a constant of 1 are read"},
      {{"Mul", "", {"Y", "X"}, {"Z"}, {}},
       where + "(Mul): its inputs are not columns of the rows and a constant"},
      {shape("Flatten", {"Y"}), "not refused"},
      {shape("Reshape", {"Y", "rows"}), "not refused"},
      {shape("Squeeze", {"Y", "axis"}), "not refused"},
      {shape("Reshape", {"Y", "axis"}),
       where + "(Reshape): it does more than to leave a row's numbers as they are"},
      {shape("Reshape", {"Y", "X"}), where + "(Reshape): its shape is not a constant"},
      {{"Sigmoid", "", {"Y"}, {"Z"}, {}}, "not refused"},
      {{"Sigmoid", "", {"X"}, {"Z"}, {}}, where + "(Sigmoid): its input is not the scores of targets"},
      {{"ArgMax", "", {"Y"}, {"Z"}, {{"axis", onnx_integer(1)}}},
       where + "(ArgMax): its input is not the scores of several targets"},
      {{"ZipMap", "ai.onnx.ml", {"X"}, {"Z"}, {}},
       where + "(ZipMap): its input is not the scores of classes"},
      {{"Normalizer", "ai.onnx.ml", {"Y"}, {"Z"}, {}},
       where + "(Normalizer): its input is not columns of the rows"},
      {{"Gather", "", {"Y"}, {"Z"}, {}}, where + "(Gather): an operation that is not read"},
      {{"Identity", "com.example", {"Y"}, {"Z"}, {}},
       where + "(Identity): an operation that is not read: domain \"com.example\""},
      {{"TreeEnsembleRegressor", "ai.onnx.ml", {"X"}, {"Z"}, {}},
       where + "(TreeEnsembleRegressor): a second tree ensemble: models of one are read"},
      {{"Identity", "", {"Q"}, {"Z"}, {}},
       where + "(Identity): its input is neither the rows nor a result of trees"},
  };
  for (const Case& c : cases) {
    SmallOnnx small;
    small.initializers = {onnx_floats("one", {1}), onnx_floats("two", {2}), onnx_int64s("rows", {-1, 1}),
                          onnx_int64s("axis", {1})};
    small.nodes.push_back(c.node);
    small.outputs = {"Z"};
    EXPECT_EQ(refusal(small), c.text);
  }
}

TEST(OnnxLoad, NodesInFront) {
  const auto node = [](const char* type, std::map<std::string, std::string> attributes) {
    return OnnxNodeText{type, "ai.onnx.ml", {"X"}, {"Z"}, std::move(attributes)};
  };
  const auto text_for = [](const OnnxNodeText& first, std::int64_t type = 1) {
    SmallOnnx small;
    small.input_type = type;
    small.nodes.insert(small.nodes.begin(), first);
    small.nodes[1].inputs = {"Z"};
    return refusal(small);
  };
  const std::string scaler = "node \"n_Z\" (Scaler)", imputer = "node \"n_Z\" (Imputer)";
  const std::string ones = onnx_reals({1});
  EXPECT_EQ(text_for(node("Scaler", {{"offset", ones}, {"scale", ones}})), "not refused");
  EXPECT_EQ(text_for(node("Scaler", {{"offset", ones}, {"scale", onnx_reals({1, 2, 3})}})), "not refused");
  EXPECT_EQ(text_for(node("Scaler", {{"offset", ones}, {"scale", onnx_reals({1, 2})}})),
            scaler + ", scale: 2 numbers for 3 columns");
  EXPECT_EQ(text_for(node("Scaler", {{"offset", onnx_reals({kInf})}, {"scale", ones}})),
            scaler + ", offset: a number that is not finite");
  EXPECT_EQ(text_for(node("Scaler", {{"offset", ones}, {"scale", onnx_reals({1, 0, 1})}})), "not refused");
  EXPECT_EQ(text_for(node("Scaler", {{"offset", ones}, {"scale", ones}}), 11), "not refused");
  EXPECT_EQ(text_for(node("Scaler", {{"offset", ones}, {"scale", onnx_reals({0})}}), 11),
            scaler + ": a scale of 0 of doubles cannot be folded into thresholds");
  const std::string nan = onnx_real(kNan);
  EXPECT_EQ(text_for(node("Imputer", {{"imputed_value_floats", ones}, {"replaced_value_float", nan}})),
            "not refused");
  EXPECT_EQ(text_for(node("Imputer", {{"imputed_value_floats", ones}})), "not refused");
  EXPECT_EQ(text_for(node("Imputer", {{"imputed_value_floats", ones}}), 11),
            imputer + ": columns of double; only float columns and imputed_value_floats are read");
  const std::string normalizer = "node \"n_Z\" (Normalizer)";
  EXPECT_EQ(text_for(node("Normalizer", {})), "not refused");
  EXPECT_EQ(
      text_for(node("Normalizer", {}), 11),
      normalizer + ": it is computed first, which is done in float32, and its input depends on doubles");
  EXPECT_EQ(text_for(node("Normalizer", {{"norm", onnx_string("L3")}})),
            normalizer + ": norm \"L3\", expected MAX, L1 or L2");
  EXPECT_EQ(text_for({"Cast", "", {"X"}, {"Z"}, {{"to", onnx_integer(7)}}}),
            "node \"n_Z\" (Cast): columns of float cast to int64");
}

/// MinMaxScaler is written as arithmetic with constants.
TEST(OnnxLoad, ArithmeticInFront) {
  const auto text_for = [](const char* type, std::vector<std::string> inputs) {
    SmallOnnx small;
    small.initializers = {onnx_floats("one", {1}),         onnx_floats("two", {2}),
                          onnx_floats("zero", {0}),        onnx_floats("pair", {1, 2}),
                          onnx_floats("three", {1, 2, 3}), onnx_floats("infinite", {kInf})};
    small.nodes.insert(small.nodes.begin(), {type, "", std::move(inputs), {"Z"}, {}});
    small.nodes[1].inputs = {"Z"};
    return refusal(small);
  };
  const std::string where = "node \"n_Z\" ",
                    no_constant = ": its inputs are not columns of the rows and a constant";
  EXPECT_EQ(text_for("Mul", {"X", "one"}), "not refused");
  EXPECT_EQ(text_for("Mul", {"three", "X"}), "not refused");
  EXPECT_EQ(text_for("Add", {"one", "X"}), "not refused");
  EXPECT_EQ(text_for("Sub", {"X", "three"}), "not refused");
  EXPECT_EQ(text_for("Div", {"X", "two"}), "not refused");
  EXPECT_EQ(text_for("Clip", {"X", "one", "two"}), "not refused");
  EXPECT_EQ(text_for("Mul", {"X", "X"}), where + "(Mul)" + no_constant);
  EXPECT_EQ(text_for("Sub", {"one", "X"}), where + "(Sub)" + no_constant);
  EXPECT_EQ(text_for("Add", {"X", "pair"}), where + "(Add): 2 constant numbers for 3 columns");
  EXPECT_EQ(text_for("Add", {"X", "infinite"}), where + "(Add): a constant that is not finite");
  EXPECT_EQ(text_for("Div", {"X", "zero"}), "not refused");
  EXPECT_EQ(text_for("Clip", {"X", "two", "one"}), where + "(Clip): its least number is above its largest");
  EXPECT_EQ(text_for("Clip", {"X", "one"}),
            where + "(Clip): its inputs are not columns of the rows and two constants");
}

/// Compares with float32 arithmetic on numbers whose scaled value is the threshold or next to it.
TEST(OnnxLoad, ScalersAreFoldedExactly) {
  std::mt19937 random(1);
  const auto number = [&](int least, int most) {
    const float size =
        std::ldexp(1 + static_cast<float>(random() >> 8) * 0x1p-24f,
                   least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
    return random() % 2 == 0 ? size : -size;
  };
  const struct {
    const char* mode;
    std::function<bool(float, float)> test;
  } cases[] = {{"BRANCH_LEQ", std::less_equal<float>()},    {"BRANCH_LT", std::less<float>()},
               {"BRANCH_GTE", std::greater_equal<float>()}, {"BRANCH_GT", std::greater<float>()},
               {"BRANCH_EQ", std::equal_to<float>()},       {"BRANCH_NEQ", std::not_equal_to<float>()}};
  for (int i = 0; i < 300; ++i) {
    const auto& c = cases[i % 6];
    const int range = i % 3 == 0 ? 120 : 6;  // scales that over- and underflow, and others
    const float offset = i % 5 == 0 ? 0 : number(-range, range), scale = number(-range, range),
                middle = number(-6, 6);
    const auto scaled = [&](float x) { return (x - offset) * scale; };
    SmallOnnx small = with(onnx_regressor());
    OnnxNodeText& node = small.nodes[0];
    node.inputs = {"Z"};
    node.attributes["nodes_modes"] = onnx_strings({c.mode, "LEAF", "BRANCH_LT", "LEAF", "LEAF", "LEAF"});
    node.attributes["nodes_values"] = onnx_reals({scaled(middle), 0, -kInf, 0, 0, 0});
    node.attributes.erase("nodes_missing_value_tracks_true");
    small.nodes.insert(small.nodes.begin(),
                       {"Scaler",
                        "ai.onnx.ml",
                        {"X"},
                        {"Z"},
                        {{"offset", onnx_reals({offset})}, {"scale", onnx_reals({scale})}}});
    const Model model = loaded(small.text());
    std::vector<float> numbers = {-kInf,   kInf,   kNan,  0,      1e-45f,
                                  -1e-45f, offset, 3e38f, -3e38f, number(-6, 6)};
    for (float below = middle, above = middle; numbers.size() < 60;) {
      numbers.insert(numbers.end(), {below, above});
      below = std::nextafter(below, -kInf);
      above = std::nextafter(above, kInf);
    }
    for (const float x : numbers)
      EXPECT_EQ(values(model, {x, 0, 0}).at(0), c.test(scaled(x), scaled(middle)) ? 9.5 : 12.5)
          << c.mode << ", (" << x << " - " << offset << ") * " << scale << " and " << scaled(middle);
  }
}

TEST(OnnxLoad, InputsAndOutputs) {
  SmallOnnx small;
  small.input_type = 8;
  EXPECT_EQ(refusal(small),
            "graph, input \"X\": a tensor of string; float, double, int32 and int64 are read");
  small = {};
  small.inputs = {{"X", {-1, 3, 2}}};
  EXPECT_EQ(refusal(small), "graph, input \"X\": 3 dimensions, expected rows and columns");
  small.inputs = {{"X", {-1, 3}}, {"Y", {-1, -1}}};
  EXPECT_EQ(refusal(small), "graph, input \"Y\": the number of columns is not given");
  small.inputs = {{"X", {-1, 1LL << 40}}};
  EXPECT_EQ(refusal(small),
            "graph, input \"X\": 1099511627776 columns: none, or more than the limit of 16777216 features");
  small = {};
  small.nodes.push_back({"Sigmoid", "", {"Y"}, {"Z"}, {}});
  EXPECT_EQ(refusal(small), "graph: output \"Y\" holds the scores before their transform");
  small.nodes[1] = {"Identity", "", {"Y"}, {"X"}, {}};
  EXPECT_EQ(refusal(small), "node \"n_X\" (Identity): its output \"X\" is there already");
  small.nodes[1] = {"Identity", "", {"Y"}, {"Y"}, {}};
  EXPECT_EQ(refusal(small), "node \"n_Y\" (Identity): its output \"Y\" is there already");
  small = {};
  small.outputs = {"X"};
  EXPECT_EQ(refusal(small), "graph: output \"X\" is not a result of the tree ensemble");
  small.nodes.clear();
  EXPECT_EQ(refusal(small), "graph: there is no tree ensemble in it");
}

TEST(OnnxLoad, RefusesWhatOnnxRuntimeDoesOtherwise) {
  const std::string where = "node \"n_Y\" (TreeEnsembleRegressor): ";
  const std::string advice =
      ": ONNX Runtime does not do what the standard says; use NONE and a node Sigmoid or Softmax";
  OnnxNodeText node = onnx_regressor();
  node.attributes["post_transform"] = onnx_string("LOGISTIC");
  EXPECT_EQ(refusal(with(node)), where + "a post_transform of one target" + advice);
  node.attributes["post_transform"] = onnx_string("PROBIT");
  EXPECT_EQ(refusal(with(node)), where + "post_transform PROBIT is not read");
  node = onnx_regressor();
  node.attributes["n_targets"] = onnx_integer(2);
  node.attributes["base_values"] = onnx_reals({0, 1});
  EXPECT_EQ(refusal(with(node)), where + "base_values: target 1 gets no weight on some rows");
  node = onnx_ensemble();
  node.attributes["n_targets"] = onnx_integer(2);
  node.attributes["post_transform"] = onnx_integer(2);
  EXPECT_EQ(refusal(with(node)), "node \"n_Y\" (TreeEnsemble): post_transform 2" + advice);

  const std::string classes = "node \"n_L\" (TreeEnsembleClassifier): ";
  node = onnx_classifier();
  node.attributes["class_ids"] = onnx_integers({1, 1, 1, 1});
  EXPECT_EQ(refusal(with(node)), classes + "class_ids: the one score of two classes must have id 0");
  node.attributes["class_ids"] = onnx_integers({0, 0, 0, 0});
  node.attributes["base_values"] = onnx_reals({0, 1});
  EXPECT_EQ(refusal(with(node)), classes + "base_values: two numbers for the one score of two classes");
  node = onnx_classifier();
  node.attributes["base_values"] = onnx_reals({0, 1});
  EXPECT_EQ(refusal(with(node)), classes + "base_values: 2 numbers for the scores of 2 classes");
  node = onnx_classifier();
  node.attributes["class_nodeids"] = onnx_integers({1, 1, 2, 1});
  EXPECT_EQ(refusal(with(node)), "not refused");
  node.attributes["class_weights"] = onnx_reals({1, -1, 1, 1});
  EXPECT_EQ(refusal(with(node)),
            classes + "class yes gets no score on some rows, and others may be negative");
}

/// Levels of nodes that all lead to the next level twice: a tree of 2^levels leaves.
SmallOnnx doubling(std::int64_t levels) {
  OnnxNodeText node = onnx_regressor();
  std::vector<std::int64_t> ids, features, next;
  std::vector<std::string> modes;
  for (std::int64_t i = 0; i <= levels; ++i) {
    ids.push_back(i);
    features.push_back(i);
    next.push_back(i + 1);
    modes.push_back(i == levels ? "LEAF" : "BRANCH_LEQ");
  }
  const auto count = static_cast<std::size_t>(levels) + 1;
  node.attributes["nodes_nodeids"] = onnx_integers(ids);
  node.attributes["nodes_featureids"] = onnx_integers(features);
  node.attributes["nodes_truenodeids"] = node.attributes["nodes_falsenodeids"] = onnx_integers(next);
  node.attributes["nodes_treeids"] = onnx_integers(std::vector<std::int64_t>(count, 0));
  node.attributes["nodes_values"] = onnx_reals(std::vector<float>(count, 1));
  node.attributes["nodes_modes"] = onnx_strings(modes);
  node.attributes.erase("nodes_missing_value_tracks_true");
  for (const char* list : {"target_ids", "target_treeids"}) node.attributes[list] = onnx_integers({0});
  node.attributes["target_nodeids"] = onnx_integers({levels});
  node.attributes["target_weights"] = onnx_reals({3});
  SmallOnnx small = with(node);
  small.inputs = {{"X", {-1, levels + 1}}};
  return small;
}

TEST(OnnxLoad, SharedSubtreesAreRepeatedWithinLimits) {
  // Both ways from a node lead to the same node, which is found without a test.
  EXPECT_EQ(loaded(doubling(50).text()).trees[0].nodes.size(), 1u);
  // Chains of tests for equality share what comes after a match.
  OnnxNodeText node = onnx_regressor();
  node.attributes["nodes_modes"] =
      onnx_strings({"BRANCH_EQ", "LEAF", "BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF"});
  node.attributes["nodes_featureids"] = onnx_integers({0, 0, 0, 1, 0, 0});
  node.attributes["nodes_truenodeids"] = onnx_integers({3, 0, 3, 1, 0, 0});
  node.attributes["nodes_falsenodeids"] = onnx_integers({2, 0, 4, 4, 0, 0});
  node.attributes["nodes_values"] = onnx_reals({7, 0, 5, 2, 0, 0});
  const Model model = loaded(with(node).text());
  EXPECT_EQ(values(model, {7, 2, 0, 5, 2, 0, 6, 2, 0, 5.5f, 2, 0, 5, 1, 0, kNan, 2, 0}),
            (std::vector<double>{9.5, 9.5, 12.5, 12.5, 12.5, 9.5}));
}

TEST(OnnxLoad, RefusesSharedSubtreesThatAreTooLong) {
  // Level i tests feature i and leads to level i + 1, once directly and once by a test of another feature.
  OnnxNodeText node = onnx_regressor();
  constexpr std::int64_t kLevels = 40;
  std::vector<std::int64_t> ids, features, yes, no;
  std::vector<std::string> modes;
  for (std::int64_t i = 0; i < kLevels; ++i) {
    ids.insert(ids.end(), {3 * i, 3 * i + 1, 3 * i + 2});
    features.insert(features.end(), {2 * i, 2 * i + 1, 0});
    yes.insert(yes.end(), {3 * i + 1, 3 * i + 3, 0});
    no.insert(no.end(), {3 * i + 3, 3 * i + 2, 0});
    modes.insert(modes.end(), {"BRANCH_LEQ", "BRANCH_LEQ", "LEAF"});
  }
  ids.push_back(3 * kLevels);
  for (auto* list : {&features, &yes, &no}) list->push_back(0);
  modes.emplace_back("LEAF");
  node.attributes["nodes_nodeids"] = onnx_integers(ids);
  node.attributes["nodes_featureids"] = onnx_integers(features);
  node.attributes["nodes_truenodeids"] = onnx_integers(yes);
  node.attributes["nodes_falsenodeids"] = onnx_integers(no);
  node.attributes["nodes_treeids"] = onnx_integers(std::vector<std::int64_t>(ids.size(), 0));
  node.attributes["nodes_values"] = onnx_reals(std::vector<float>(ids.size(), 1));
  node.attributes["nodes_modes"] = onnx_strings(modes);
  node.attributes.erase("nodes_missing_value_tracks_true");
  node.attributes.erase("base_values");
  for (const char* list : {"target_ids", "target_treeids"}) node.attributes[list] = onnx_integers({0});
  node.attributes["target_nodeids"] = onnx_integers({2});
  node.attributes["target_weights"] = onnx_reals({3});
  SmallOnnx small = with(node);
  small.inputs = {{"X", {-1, 2 * kLevels}}};
  EXPECT_EQ(refusal(small),
            "node \"n_Y\" (TreeEnsembleRegressor): the trees share so many parts that they are too long "
            "when written out: more than the limit of nodes");
}

TEST(OnnxLoad, Limits) {
  LoadLimits limits;
  limits.max_trees = 1;
  EXPECT_EQ(refusal({}, limits),
            "node \"n_Y\" (TreeEnsembleRegressor), nodes_treeids: more trees than the limit of 1");
  limits = {};
  limits.max_nodes = 5;
  EXPECT_EQ(refusal({}, limits),
            "node \"n_Y\" (TreeEnsembleRegressor), nodes_treeids: more values than the limit of 5");
  limits = {};
  limits.max_outputs = 1;
  EXPECT_EQ(refusal(with(onnx_classifier()), limits),
            "node \"n_L\" (TreeEnsembleClassifier), classlabels: more classes than the limit of 1");
  limits.max_nodes = 4;
  EXPECT_EQ(refusal(with(onnx_ensemble()), limits),
            "node \"n_Y\" (TreeEnsemble), leaf_targetids: more values than the limit of 2");
}

}  // namespace
}  // namespace forestvm::test::test_onnx_load
