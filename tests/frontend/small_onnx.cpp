// See small_onnx.hpp.
#include "small_onnx.hpp"

#include <cstring>

namespace forestvm::test {
namespace {

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

template <class Number>
std::string bytes_in(Number value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string tensor(const std::string& name, std::int64_t type, std::size_t size, const std::string& data) {
  return wire_number(1, static_cast<std::int64_t>(size)) + wire_number(2, type) + data + wire_text(8, name);
}

std::string value_info(const std::string& name, std::int64_t type, const std::vector<std::int64_t>& dims) {
  std::string shape;
  for (const std::int64_t dim : dims)
    shape += wire_text(1, dim < 0 ? wire_text(2, "N") : wire_number(1, dim));
  return wire_text(1, name) + wire_text(2, wire_text(1, wire_number(1, type) + wire_text(2, shape)));
}

}  // namespace

std::string wire_number(std::uint32_t number, std::int64_t value) {
  return varint(number << 3) + varint(static_cast<std::uint64_t>(value));
}

std::string wire_text(std::uint32_t number, const std::string& value) {
  return varint(number << 3 | 2) + varint(value.size()) + value;
}

std::string wire_float(std::uint32_t number, float value) {
  return varint(number << 3 | 5) + bytes_in(value);
}

std::string onnx_integer(std::int64_t value) { return wire_number(3, value) + wire_number(20, 2); }
std::string onnx_real(float value) { return wire_float(2, value) + wire_number(20, 1); }
std::string onnx_string(const std::string& value) { return wire_text(4, value) + wire_number(20, 3); }
std::string onnx_tensor_attribute(const std::string& tensor) {
  return wire_text(5, tensor) + wire_number(20, 4);
}

std::string onnx_integers(const std::vector<std::int64_t>& values) {
  std::string out;
  for (const std::int64_t value : values) out += wire_number(8, value);
  return out + wire_number(20, 7);
}

std::string onnx_reals(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += wire_float(7, value);
  return out + wire_number(20, 6);
}

std::string onnx_strings(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += wire_text(9, value);
  return out + wire_number(20, 8);
}

std::string onnx_floats(const std::string& name, const std::vector<float>& values) {
  std::string data;
  for (const float value : values) data += bytes_in(value);
  return tensor(name, 1, values.size(), wire_text(4, data));
}

std::string onnx_doubles(const std::string& name, const std::vector<double>& values) {
  std::string data;
  for (const double value : values) data += bytes_in(value);
  return tensor(name, 11, values.size(), wire_text(9, data));
}

std::string onnx_int64s(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string data;
  for (const std::int64_t value : values) data += varint(static_cast<std::uint64_t>(value));
  return tensor(name, 7, values.size(), wire_text(7, data));
}

std::string onnx_uint8s(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string data;
  for (const std::int64_t value : values) data += static_cast<char>(value);
  return tensor(name, 2, values.size(), wire_text(9, data));
}

std::string OnnxNodeText::text() const {
  std::string out;
  for (const std::string& input : inputs) out += wire_text(1, input);
  for (const std::string& output : outputs) out += wire_text(2, output);
  out += wire_text(3, "n_" + outputs.front()) + wire_text(4, type);
  for (const auto& [name, value] : attributes) out += wire_text(5, wire_text(1, name) + value);
  return out + wire_text(7, domain);
}

OnnxNodeText onnx_regressor() {
  return {"TreeEnsembleRegressor",
          "ai.onnx.ml",
          {"X"},
          {"Y"},
          {{"base_values", onnx_reals({0.5f})},
           {"n_targets", onnx_integer(1)},
           {"nodes_falsenodeids", onnx_integers({2, 0, 4, 0, 0, 0})},
           {"nodes_featureids", onnx_integers({0, 0, 1, 0, 0, 0})},
           {"nodes_missing_value_tracks_true", onnx_integers({0, 0, 1, 0, 0, 0})},
           {"nodes_modes", onnx_strings({"BRANCH_LEQ", "LEAF", "BRANCH_LT", "LEAF", "LEAF", "LEAF"})},
           {"nodes_nodeids", onnx_integers({0, 1, 2, 3, 4, 0})},
           {"nodes_treeids", onnx_integers({0, 0, 0, 0, 0, 1})},
           {"nodes_truenodeids", onnx_integers({1, 0, 3, 0, 0, 0})},
           {"nodes_values", onnx_reals({1.5f, 0, -2, 0, 0, 0})},
           {"target_ids", onnx_integers({0, 0, 0, 0})},
           {"target_nodeids", onnx_integers({1, 3, 4, 0})},
           {"target_treeids", onnx_integers({0, 0, 0, 1})},
           {"target_weights", onnx_reals({1, 2, 4, 8})}}};
}

OnnxNodeText onnx_classifier() {
  return {"TreeEnsembleClassifier",
          "ai.onnx.ml",
          {"X"},
          {"L", "Y"},
          {{"class_ids", onnx_integers({0, 1, 0, 1})},
           {"class_nodeids", onnx_integers({1, 1, 2, 2})},
           {"class_treeids", onnx_integers({0, 0, 0, 0})},
           {"class_weights", onnx_reals({0.25f, 0.5f, 0.75f, 0.125f})},
           {"classlabels_strings", onnx_strings({"no", "yes"})},
           {"nodes_falsenodeids", onnx_integers({2, 0, 0})},
           {"nodes_featureids", onnx_integers({0, 0, 0})},
           {"nodes_modes", onnx_strings({"BRANCH_LEQ", "LEAF", "LEAF"})},
           {"nodes_nodeids", onnx_integers({0, 1, 2})},
           {"nodes_treeids", onnx_integers({0, 0, 0})},
           {"nodes_truenodeids", onnx_integers({1, 0, 0})},
           {"nodes_values", onnx_reals({1.5f, 0, 0})},
           {"post_transform", onnx_string("NONE")}}};
}

OnnxNodeText onnx_ensemble() {
  return {"TreeEnsemble",
          "ai.onnx.ml",
          {"X"},
          {"Y"},
          {{"aggregate_function", onnx_integer(1)},
           {"leaf_targetids", onnx_integers({0, 0, 0})},
           {"leaf_weights", onnx_tensor_attribute(onnx_floats("w", {1, 2, 4}))},
           {"membership_values", onnx_tensor_attribute(onnx_floats("m", {1, 3, __builtin_nanf("")}))},
           {"n_targets", onnx_integer(1)},
           {"nodes_falseleafs", onnx_integers({0, 1})},
           {"nodes_falsenodeids", onnx_integers({1, 2})},
           {"nodes_featureids", onnx_integers({0, 1})},
           {"nodes_modes", onnx_tensor_attribute(onnx_uint8s("o", {3, 6}))},
           {"nodes_splits", onnx_tensor_attribute(onnx_floats("s", {2, 0}))},
           {"nodes_trueleafs", onnx_integers({1, 1})},
           {"nodes_truenodeids", onnx_integers({0, 1})},
           {"post_transform", onnx_integer(0)},
           {"tree_roots", onnx_integers({0})}}};
}

std::string SmallOnnx::text() const {
  std::string graph;
  for (const OnnxNodeText& node : nodes) graph += wire_text(1, node.text());
  for (const std::string& initializer : initializers) graph += wire_text(5, initializer);
  for (const auto& [name, dims] : inputs) graph += wire_text(11, value_info(name, input_type, dims));
  for (const std::string& output : outputs) graph += wire_text(12, value_info(output, 1, {}));
  return wire_number(1, 8) + wire_text(2, "tests") + wire_text(3, "1.0") + wire_text(7, graph) +
         wire_text(8, wire_text(1, "ai.onnx.ml") + wire_number(2, 3));
}

}  // namespace forestvm::test
