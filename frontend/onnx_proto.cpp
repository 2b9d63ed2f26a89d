// See onnx_proto.hpp. Field numbers are those of onnx-ml.proto.
#include "frontend/onnx_proto.hpp"

#include <algorithm>
#include <optional>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::size_t kMaxDims = 16;
// AttributeProto.AttributeType
constexpr std::int64_t kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kFloats = 6, kInts = 7, kStrings = 8;

using FieldReceiver = std::function<Result<void>(const WireField&)>;

Result<void> visit_fields(WireMessage message, const FieldReceiver& receive) {
  WireReader reader(message);
  while (!reader.at_end()) {
    FVM_ASSIGN(const WireField field, reader.next());
    FVM_TRY(receive(field));
  }
  return {};
}

/// Refuses `field` if `limit` parts of its kind were already read. `what` is the kind's name in the message.
Result<void> check_count(std::size_t count, const WireField& field, const char* what,
                         std::size_t limit = kMaxOnnxParts) {
  if (count < limit) return {};
  return refused(byte_location(field.offset), "more {} than the limit of {}", what, limit);
}

Result<void> read_dims(const WireField& shape, std::vector<std::int64_t>& dims) {
  FVM_ASSIGN(const WireMessage message, message_of(shape));
  return visit_fields(message, [&](const WireField& field) -> Result<void> {
    if (field.number != 1) return {};
    FVM_TRY(check_count(dims.size(), field, "dimensions", kMaxDims));
    dims.push_back(-1);
    FVM_ASSIGN(const WireMessage dim, message_of(field));
    return visit_fields(dim, [&](const WireField& part) -> Result<void> {
      if (part.number != 1) return {};
      FVM_ASSIGN(dims.back(), integer_of(part));
      return {};
    });
  });
}

/// Reads a TypeProto.Tensor. Other types leave the value's type undefined.
Result<void> read_type(const WireField& type, OnnxValue& value) {
  FVM_ASSIGN(const WireMessage message, message_of(type));
  return visit_fields(message, [&](const WireField& kind) -> Result<void> {
    if (kind.number != 1) return {};
    FVM_ASSIGN(const WireMessage tensor, message_of(kind));
    return visit_fields(tensor, [&](const WireField& field) -> Result<void> {
      if (field.number == 2) return read_dims(field, value.dims);
      if (field.number != 1) return {};
      FVM_ASSIGN(const std::int64_t number, integer_of(field));
      value.type = static_cast<OnnxType>(static_cast<std::int32_t>(number));
      return {};
    });
  });
}

Result<void> add_value(const WireField& info, std::vector<OnnxValue>& values) {
  FVM_TRY(check_count(values.size(), info, "inputs or outputs"));
  OnnxValue value;
  FVM_ASSIGN(const WireMessage message, message_of(info));
  FVM_TRY(visit_fields(message, [&](const WireField& field) -> Result<void> {
    if (field.number == 2) return read_type(field, value);
    if (field.number != 1) return {};
    FVM_ASSIGN(value.name, text_of(field));
    return {};
  }));
  values.push_back(std::move(value));
  return {};
}

Result<void> add_initializer(const WireField& field, OnnxGraph& graph) {
  FVM_TRY(check_count(graph.initializers.size(), field, "initializers"));
  FVM_ASSIGN(const WireMessage message, message_of(field));
  FVM_ASSIGN(OnnxTensor tensor, read_onnx_tensor(message));
  const std::string_view name = tensor.name;
  if (!graph.initializers.emplace(name, std::move(tensor)).second)
    return refused(byte_location(field.offset), "two initializers are named {}", in_quotes(name));
  return {};
}

Result<OnnxGraph> read_graph(WireMessage message) {
  OnnxGraph graph;
  graph.message = message;
  FVM_TRY(visit_fields(message, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 5:
        return add_initializer(field, graph);
      case 11:
      case 12:
        return add_value(field, field.number == 11 ? graph.inputs : graph.outputs);
      case 15:
        return refused(byte_location(field.offset), "a sparse initializer, which trees do not need");
      default:
        return {};
    }
  }));
  // Files before IR version 4 name their initializers among the inputs.
  std::erase_if(graph.inputs,
                [&](const OnnxValue& input) { return graph.initializers.contains(input.name); });
  return graph;
}

/// Reads OperatorSetIdProto.
Result<void> read_opset(const WireField& opset, OnnxModel& model) {
  std::string_view domain;
  std::int64_t version = 0;
  FVM_ASSIGN(const WireMessage message, message_of(opset));
  FVM_TRY(visit_fields(message, [&](const WireField& field) -> Result<void> {
    if (field.number == 1) {
      FVM_ASSIGN(domain, text_of(field));
    } else if (field.number == 2) {
      FVM_ASSIGN(version, integer_of(field));
    }
    return {};
  }));
  if (domain == "ai.onnx.ml") model.ml_version = version;
  return {};
}

Result<void> add_attribute(const WireField& attribute, OnnxOperation& operation) {
  std::string_view name;
  FVM_ASSIGN(const WireMessage message, message_of(attribute));
  FVM_TRY(visit_fields(message, [&](const WireField& field) -> Result<void> {
    if (field.number != 1) return {};
    FVM_ASSIGN(name, text_of(field));
    return {};
  }));
  FVM_TRY(check_count(operation.attributes.size(), attribute, "attributes"));
  if (!operation.attributes.emplace(name, message).second)
    return refused(byte_location(attribute.offset), "attribute {} is given twice", in_quotes(name));
  return {};
}

/// Returns the field of TensorProto that holds the elements of a type if raw_data does not.
std::uint32_t data_field(OnnxType type) {
  switch (type) {
    case OnnxType::Float:
      return 4;
    case OnnxType::Uint8:
    case OnnxType::Int32:
      return 5;
    case OnnxType::Int64:
      return 7;
    case OnnxType::Double:
      return 10;
    case OnnxType::Undefined:
    case OnnxType::String:
      break;
  }
  return 0;
}

/// Returns the size of an element of a type in raw_data; 0 for types that are not read.
std::size_t element_size(OnnxType type) {
  switch (type) {
    case OnnxType::Uint8:
      return 1;
    case OnnxType::Float:
    case OnnxType::Int32:
      return 4;
    case OnnxType::Int64:
    case OnnxType::Double:
      return 8;
    case OnnxType::Undefined:
    case OnnxType::String:
      break;
  }
  return 0;
}

Error tensor_error(const OnnxTensor& tensor, const std::string& message) {
  return refused(byte_location(tensor.message.offset), "tensor {}: {}", in_quotes(tensor.name), message);
}

/// Calls `receive` for raw_data's elements, as fields of the element's wire type.
Result<void> visit_raw(const OnnxTensor& tensor, const WireField& raw, const FieldReceiver& receive) {
  const std::size_t size = element_size(tensor.type);
  FVM_ASSIGN(const std::span<const std::byte> bytes, bytes_of(raw));
  if (bytes.size() % size != 0) return tensor_error(tensor, "its raw data end within an element");
  WireField part = raw;
  part.bytes = {};
  part.type = tensor.type == OnnxType::Float    ? WireType::Fixed32
              : tensor.type == OnnxType::Double ? WireType::Fixed64
                                                : WireType::Varint;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    part.bits = 0;
    for (std::size_t i = 0; i < size; ++i)
      part.bits |= std::to_integer<std::uint64_t>(bytes[at + i]) << 8 * i;
    if (tensor.type == OnnxType::Int32)
      part.bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(part.bits)));
    FVM_TRY(receive(part));
  }
  return {};
}

/// Calls `receive` for each field that holds elements of the tensor: one, or packed ones.
Result<void> visit_data(const OnnxTensor& tensor, const FieldReceiver& receive) {
  return visit_fields(tensor.message, [&](const WireField& field) -> Result<void> {
    if (field.number == 9) return visit_raw(tensor, field, receive);
    return field.number == data_field(tensor.type) ? receive(field) : Result<void>();
  });
}

Result<void> check_size(OnnxTensor& tensor) {
  for (const std::int64_t dim : tensor.dims)
    if (dim < 0 || __builtin_mul_overflow(tensor.size, static_cast<std::size_t>(dim), &tensor.size))
      return tensor_error(tensor, "its dimensions are negative or too large");
  if (element_size(tensor.type) == 0) return {};  // the data are never read
  std::size_t elements = 0;
  const auto count = [&](auto) -> Result<void> { return ++elements, Result<void>(); };
  if (tensor.type == OnnxType::Float || tensor.type == OnnxType::Double) {
    FVM_TRY(visit_reals(tensor, count));
  } else {
    FVM_TRY(visit_integers(tensor, count));
  }
  if (elements != tensor.size)
    return tensor_error(tensor, formatted("{} elements, but its dimensions say {}", elements, tensor.size));
  return {};
}

}  // namespace

std::string name_of(OnnxType type) {
  switch (type) {
    case OnnxType::Undefined:
      return "an undefined type";
    case OnnxType::Float:
      return "float";
    case OnnxType::Uint8:
      return "uint8";
    case OnnxType::Int32:
      return "int32";
    case OnnxType::Int64:
      return "int64";
    case OnnxType::String:
      return "string";
    case OnnxType::Double:
      return "double";
  }
  return formatted("ONNX's type {}", static_cast<std::int32_t>(type));
}

Result<OnnxTensor> read_onnx_tensor(WireMessage message) {
  OnnxTensor tensor;
  tensor.message = message;
  bool external = false, segment = false;
  FVM_TRY(visit_fields(message, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 1:
        return visit_integers(field, [&](std::int64_t dim) -> Result<void> {
          tensor.dims.push_back(dim);
          return check_count(tensor.dims.size(), field, "dimensions", kMaxDims + 1);
        });
      case 2: {
        FVM_ASSIGN(const std::int64_t type, integer_of(field));
        tensor.type = static_cast<OnnxType>(static_cast<std::int32_t>(type));
        return {};
      }
      case 8: {
        FVM_ASSIGN(tensor.name, text_of(field));
        return {};
      }
      case 3:
        segment = true;
        return {};
      case 13:
        external = true;
        return {};
      case 14:
        external = external || field.bits != 0;
        return {};
      default:
        return {};
    }
  }));
  if (external)
    return tensor_error(tensor,
                        "its data lie in another file, which is never opened: save the model as one file");
  if (segment) return tensor_error(tensor, "it is only a segment");
  FVM_TRY(check_size(tensor));
  return tensor;
}

Result<void> visit_reals(const OnnxTensor& tensor, const std::function<Result<void>(double)>& receive) {
  if (tensor.type == OnnxType::Float)
    return visit_data(tensor, [&](const WireField& field) {
      return visit_floats(field, [&](float x) { return receive(static_cast<double>(x)); });
    });
  if (tensor.type == OnnxType::Double)
    return visit_data(tensor, [&](const WireField& field) { return visit_doubles(field, receive); });
  return tensor_error(tensor, "float or double numbers are expected, found " + name_of(tensor.type));
}

Result<void> visit_integers(const OnnxTensor& tensor,
                            const std::function<Result<void>(std::int64_t)>& receive) {
  if (tensor.type != OnnxType::Uint8 && tensor.type != OnnxType::Int32 && tensor.type != OnnxType::Int64)
    return tensor_error(tensor, "whole numbers are expected, found " + name_of(tensor.type));
  return visit_data(tensor, [&](const WireField& field) { return visit_integers(field, receive); });
}

Result<OnnxOperation> read_onnx_operation(WireMessage message) {
  OnnxOperation operation;
  FVM_TRY(visit_fields(message, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 1:
      case 2: {
        std::vector<std::string_view>& names = field.number == 1 ? operation.inputs : operation.outputs;
        FVM_ASSIGN(const std::string_view name, text_of(field));
        names.push_back(name);
        return check_count(names.size(), field, "inputs or outputs", kMaxOnnxParts + 1);
      }
      case 3: {
        FVM_ASSIGN(operation.name, text_of(field));
        return {};
      }
      case 4: {
        FVM_ASSIGN(operation.type, text_of(field));
        return {};
      }
      case 5:
        return add_attribute(field, operation);
      case 7: {
        FVM_ASSIGN(operation.domain, text_of(field));
        return {};
      }
      default:
        return {};
    }
  }));
  if (operation.domain == "ai.onnx") operation.domain = "";
  return operation;
}

std::string location_of(const OnnxOperation& operation) {
  return formatted("node {} ({})", in_quotes(operation.name), printable(operation.type));
}

Error OnnxAttributes::error(std::string_view name, std::string_view message) const {
  return refused(formatted("{}, {}", location_of(operation_), printable(name)), message);
}

Result<void> OnnxAttributes::visit(std::string_view name, std::int64_t type, std::uint32_t number,
                                   const FieldReceiver& receive) const {
  const auto found = operation_.attributes.find(name);
  if (found == operation_.attributes.end()) return {};
  std::int64_t given = type;
  const Result<void> done = visit_fields(found->second, [&](const WireField& field) -> Result<void> {
    if (field.number == number) return receive(field);
    if (field.number == 20) {
      FVM_ASSIGN(given, integer_of(field));
    }
    if (field.number == 21) return error(name, "it refers to a function's attribute");
    return {};
  });
  if (!done && done.error().where.starts_with(location_of(operation_))) return done;
  if (!done) return error(name, done.error().text());
  if (given != type) return error(name, formatted("attribute type {}, expected {}", given, type));
  return {};
}

Result<std::int64_t> OnnxAttributes::integer(std::string_view name, std::int64_t otherwise) const {
  std::int64_t value = has(name) ? 0 : otherwise;
  FVM_TRY(visit(name, kInt, 3, [&](const WireField& field) -> Result<void> {
    FVM_ASSIGN(value, integer_of(field));
    return {};
  }));
  return value;
}

Result<double> OnnxAttributes::real(std::string_view name, double otherwise) const {
  double value = has(name) ? 0 : otherwise;
  FVM_TRY(visit(name, kFloat, 2, [&](const WireField& field) -> Result<void> {
    FVM_ASSIGN(const float read, float_of(field));
    value = static_cast<double>(read);
    return {};
  }));
  return value;
}

Result<std::string_view> OnnxAttributes::text(std::string_view name, std::string_view otherwise) const {
  std::string_view value = has(name) ? "" : otherwise;
  FVM_TRY(visit(name, kString, 4, [&](const WireField& field) -> Result<void> {
    FVM_ASSIGN(value, text_of(field));
    return {};
  }));
  return value;
}

Result<OnnxTensor> OnnxAttributes::tensor(std::string_view name) const {
  std::optional<OnnxTensor> value;
  FVM_TRY(visit(name, kTensor, 5, [&](const WireField& field) -> Result<void> {
    FVM_ASSIGN(const WireMessage message, message_of(field));
    FVM_ASSIGN(value, read_onnx_tensor(message));
    return {};
  }));
  if (!value) return error(name, "the tensor is missing");
  return std::move(*value);
}

Result<std::size_t> OnnxAttributes::integers(
    std::string_view name, const std::function<Result<void>(std::size_t, std::int64_t)>& receive) const {
  std::size_t count = 0;
  FVM_TRY(visit(name, kInts, 8, [&](const WireField& field) {
    return visit_integers(field, [&](std::int64_t x) { return receive(count++, x); });
  }));
  return count;
}

Result<std::size_t> OnnxAttributes::reals(
    std::string_view name, const std::function<Result<void>(std::size_t, double)>& receive) const {
  std::size_t count = 0;
  FVM_TRY(visit(name, kFloats, 7, [&](const WireField& field) {
    return visit_floats(field, [&](float x) { return receive(count++, static_cast<double>(x)); });
  }));
  return count;
}

Result<std::size_t> OnnxAttributes::texts(
    std::string_view name, const std::function<Result<void>(std::size_t, std::string_view)>& receive) const {
  std::size_t count = 0;
  FVM_TRY(visit(name, kStrings, 9, [&](const WireField& field) -> Result<void> {
    FVM_ASSIGN(const std::string_view text, text_of(field));
    return receive(count++, text);
  }));
  return count;
}

Result<void> OnnxAttributes::check_known(std::initializer_list<std::string_view> names,
                                         std::span<const std::string_view> more) const {
  const auto is_among = [](const auto& known, std::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (const auto& [name, message] : operation_.attributes)
    if (!is_among(names, name) && !is_among(more, name))
      return error(name, "the attribute is unknown: predictions may depend on it");
  return {};
}

Result<OnnxModel> read_onnx_file(std::span<const std::byte> bytes) {
  OnnxModel model;
  bool found = false;
  FVM_TRY(visit_fields({bytes, 0}, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 2: {
        FVM_ASSIGN(model.producer, text_of(field));
        return {};
      }
      case 3: {
        FVM_ASSIGN(model.producer_version, text_of(field));
        return {};
      }
      case 7: {
        if (found) return refused(byte_location(field.offset), "a second graph");
        found = true;
        FVM_ASSIGN(const WireMessage message, message_of(field));
        FVM_ASSIGN(model.graph, read_graph(message));
        return {};
      }
      case 8:
        return read_opset(field, model);
      default:
        return {};
    }
  }));
  if (!found) return refused(byte_location(bytes.size()), "the ONNX model has no graph");
  return model;
}

Result<void> visit_operations(const OnnxGraph& graph,
                              const std::function<Result<void>(const OnnxOperation&)>& receive) {
  std::size_t count = 0;
  return visit_fields(graph.message, [&](const WireField& field) -> Result<void> {
    if (field.number != 1) return {};
    FVM_TRY(check_count(count++, field, "nodes"));
    FVM_ASSIGN(const WireMessage message, message_of(field));
    FVM_ASSIGN(const OnnxOperation operation, read_onnx_operation(message));
    return receive(operation);
  });
}

}  // namespace forestvm::frontend
