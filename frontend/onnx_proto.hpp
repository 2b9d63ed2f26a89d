// Reads ONNX's messages (onnx-ml.proto), as far as models of decision trees have them. In: a message's bytes. Out:
// views into them. Attributes and tensors are read number by number, and never from another file (external data).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/protobuf_wire.hpp"

namespace forestvm::frontend {

/// The element types of tensors that matter here; the numbers are ONNX's.
enum class OnnxType : std::int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Double = 11
};

/// Returns "float" and the like, or "type 9".
std::string name_of(OnnxType type);

/// Limit on the parts of a graph: nodes, and inputs and outputs of the graph and of a node.
inline constexpr std::size_t kMaxOnnxParts = 65'536;

/// A constant: an initializer or a tensor in an attribute.
struct OnnxTensor {
  std::string_view name;
  OnnxType type = OnnxType::Undefined;
  std::vector<std::int64_t> dims;
  std::size_t size = 1;  ///< Number of elements, which the data have.
  WireMessage message;
};

/// Reads a TensorProto. Refuses data in another file, segments, and a number of elements that `dims` does not give.
Result<OnnxTensor> read_onnx_tensor(WireMessage message);

/// Calls `receive` for each element. The type must be Float or Double, or Uint8, Int32 or Int64.
Result<void> visit_reals(const OnnxTensor& tensor, const std::function<Result<void>(double)>& receive);
Result<void> visit_integers(const OnnxTensor& tensor,
                            const std::function<Result<void>(std::int64_t)>& receive);

/// A node of the graph: an operation on tensors.
struct OnnxOperation {
  std::string_view name;
  std::string_view type;    ///< "TreeEnsembleClassifier"
  std::string_view domain;  ///< "ai.onnx.ml"; empty for ONNX's own.
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::unordered_map<std::string_view, WireMessage> attributes;
};

Result<OnnxOperation> read_onnx_operation(WireMessage message);

/// Returns the place of an operation for messages: `node "scaler" (Scaler)`.
std::string location_of(const OnnxOperation& operation);

/// The attributes of an operation. Every error names the operation and the attribute.
class OnnxAttributes {
 public:
  explicit OnnxAttributes(const OnnxOperation& operation) : operation_(operation) {}

  bool has(std::string_view name) const { return operation_.attributes.contains(name); }
  Result<std::int64_t> integer(std::string_view name, std::int64_t otherwise) const;
  Result<double> real(std::string_view name, double otherwise) const;
  Result<std::string_view> text(std::string_view name, std::string_view otherwise) const;
  Result<OnnxTensor> tensor(std::string_view name) const;

  // Each calls `receive` for each value of a list, with its number, and returns the number of values: 0 if the
  // attribute is absent.
  Result<std::size_t> integers(std::string_view name,
                               const std::function<Result<void>(std::size_t, std::int64_t)>& receive) const;
  Result<std::size_t> reals(std::string_view name,
                            const std::function<Result<void>(std::size_t, double)>& receive) const;
  Result<std::size_t> texts(std::string_view name,
                            const std::function<Result<void>(std::size_t, std::string_view)>& receive) const;

  /// Refuses attributes that are neither among `names` nor among `more`.
  Result<void> check_known(std::initializer_list<std::string_view> names,
                           std::span<const std::string_view> more = {}) const;

  Error error(std::string_view name, std::string_view message) const;

 private:
  /// Calls `receive` for each field `number` of the attribute, which must have ONNX's type `type`.
  Result<void> visit(std::string_view name, std::int64_t type, std::uint32_t number,
                     const std::function<Result<void>(const WireField&)>& receive) const;

  const OnnxOperation& operation_;
};

/// An input or output of the graph.
struct OnnxValue {
  std::string_view name;
  OnnxType type = OnnxType::Undefined;  ///< Undefined if it is not a tensor, or its type is not given.
  std::vector<std::int64_t> dims;       ///< -1 where the size is not given.
};

/// The graph without its nodes, which are read one by one.
struct OnnxGraph {
  WireMessage message;
  std::unordered_map<std::string_view, OnnxTensor> initializers;
  std::vector<OnnxValue> inputs;  ///< The inputs that are not initializers.
  std::vector<OnnxValue> outputs;
};

struct OnnxModel {
  std::string_view producer;
  std::string_view producer_version;
  std::int64_t ml_version = 0;  ///< Version of the operator set ai.onnx.ml; 0 if the model does not have it.
  OnnxGraph graph;
};

/// Reads a ModelProto without the graph's nodes.
Result<OnnxModel> read_onnx_file(std::span<const std::byte> bytes);

/// Calls `receive` for each node of the graph, in order.
Result<void> visit_operations(const OnnxGraph& graph,
                              const std::function<Result<void>(const OnnxOperation&)>& receive);

}  // namespace forestvm::frontend
