// Small ONNX files for tests, written field by field.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "load_text.hpp"

namespace forestvm::test {

// Fields of a protobuf message.
std::string wire_number(std::uint32_t number, std::int64_t value);
std::string wire_text(std::uint32_t number, const std::string& value);
std::string wire_float(std::uint32_t number, float value);

// Values of attributes, to which OnnxNodeText gives their names.
std::string onnx_integer(std::int64_t value);
std::string onnx_real(float value);
std::string onnx_string(const std::string& value);
std::string onnx_integers(const std::vector<std::int64_t>& values);
std::string onnx_reals(const std::vector<float>& values);
std::string onnx_strings(const std::vector<std::string>& values);
std::string onnx_tensor_attribute(const std::string& tensor);

// Tensors.
std::string onnx_floats(const std::string& name, const std::vector<float>& values);
std::string onnx_doubles(const std::string& name, const std::vector<double>& values);
std::string onnx_int64s(const std::string& name, const std::vector<std::int64_t>& values);
std::string onnx_uint8s(const std::string& name, const std::vector<std::int64_t>& values);

/// A node of the graph.
struct OnnxNodeText {
  std::string type;
  std::string domain;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, std::string> attributes;

  std::string text() const;
};

/// Returns a regressor with two trees: x0 <= 1.5 ? 1 : (x1 < -2 ? 2 : 4), and a leaf of 8; its base value is 0.5.
OnnxNodeText onnx_regressor();
/// Returns a classifier with one tree: x0 <= 1.5 ? (0.25, 0.5) : (0.75, 0.125), for classes "no" and "yes".
OnnxNodeText onnx_classifier();
/// Returns a TreeEnsemble with one tree: x0 > 2 ? 1 : (x1 in {1, 3} ? 2 : 4).
OnnxNodeText onnx_ensemble();

struct SmallOnnx {
  std::vector<OnnxNodeText> nodes{onnx_regressor()};
  std::vector<std::string> initializers;
  std::map<std::string, std::vector<std::int64_t>> inputs{{"X", {-1, 3}}};
  std::int64_t input_type = 1;
  std::vector<std::string> outputs{"Y"};

  std::string text() const;
};

}  // namespace forestvm::test
