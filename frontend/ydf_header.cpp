// See ydf_header.hpp. Field numbers are those of YDF's abstract_model.proto and of the headers of its models.
#include "frontend/ydf_header.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

Result<YdfTask> task_of(const WireField& field) {
  FVM_ASSIGN(const std::int64_t number, integer_of(field));
  const auto unsupported = [&](const std::string& what) {
    return refused(byte_location(field.offset), "{} models are not supported", what);
  };
  switch (number) {
    case 1:
    case 2:
    case 3:
    case 6:
      return static_cast<YdfTask>(number);
    case 4:
    case 5:
      return unsupported("uplift");
    case 7:
      return unsupported("survival analysis");
    default:
      return refused(byte_location(field.offset), "unknown task {}", number);
  }
}

Result<std::string> string_of(const WireField& field) {
  FVM_ASSIGN(const std::string_view text, text_of(field));
  return std::string(text);
}

Result<bool> flag_of(const WireField& field) {
  FVM_ASSIGN(const std::int64_t number, integer_of(field));
  return number != 0;
}

/// Calls `read` with every field of a message.
template <class Read>
Result<void> visit(WireMessage message, Read read) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    FVM_TRY(read(field));
  }
  return {};
}

/// Sets a value to that of a field.
template <class Value>
Result<void> set(Value& value, Result<Value> read) {
  FVM_ASSIGN(value, std::move(read));
  return {};
}

}  // namespace

Result<YdfHeader> read_ydf_header(WireMessage message) {
  YdfHeader header;
  bool task = false;
  FVM_TRY(visit(message, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 1:
        return set(header.kind, string_of(field));
      case 2:
        task = true;
        return set(header.task, task_of(field));
      case 3:
        return set(header.label, integer_of(field));
      case 5:
        return visit_integers(field, [&](std::int64_t input) -> Result<void> {
          header.inputs.push_back(input);
          return {};
        });
      case 8:
        return set(header.gives_probabilities, flag_of(field));
      default:
        return {};
    }
  }));
  if (!task) return refused(byte_location(message.offset), "the model has no task");
  return header;
}

namespace {

/// Says how to read the header message of one kind of forest. Fields 1 and 2 are the same for all kinds.
struct ForestMessage {
  std::uint32_t node_format;  ///< Number of the field that names the format of nodes.
  /// Takes a field that is specific to the kind.
  Result<void> (*take)(YdfForestHeader& header, const WireField& field);
};

Result<YdfForestHeader> read_forest_header(WireMessage message, const ForestMessage& kind) {
  YdfForestHeader header;
  FVM_TRY(visit(message, [&](const WireField& field) -> Result<void> {
    if (field.number == 1) return set(header.num_shards, integer_of(field));
    if (field.number == 2) return set(header.num_trees, integer_of(field));
    if (field.number == kind.node_format) return set(header.node_format, string_of(field));
    return kind.take(header, field);
  }));
  return header;
}

Result<void> take_boosted(YdfForestHeader& header, const WireField& field) {
  switch (field.number) {
    case 3:
      return set(header.loss, integer_of(field));
    case 4:
      return visit_floats(field, [&](float initial) -> Result<void> {
        header.initial_predictions.push_back(initial);
        return {};
      });
    case 5:
      return set(header.trees_per_iteration, integer_of(field));
    case 9:
      return set(header.output_logits, flag_of(field));
    default:
      return {};
  }
}

Result<void> take_random(YdfForestHeader& header, const WireField& field) {
  return field.number == 3 ? set(header.winner_takes_all, flag_of(field)) : Result<void>();
}

Result<void> take_isolation(YdfForestHeader& header, const WireField& field) {
  return field.number == 4 ? set(header.examples_per_tree, integer_of(field)) : Result<void>();
}

}  // namespace

Result<YdfForestHeader> read_boosted_header(WireMessage message) {
  return read_forest_header(message, {7, take_boosted});
}

Result<YdfForestHeader> read_random_header(WireMessage message) {
  return read_forest_header(message, {7, take_random});
}

Result<YdfForestHeader> read_isolation_header(WireMessage message) {
  return read_forest_header(message, {3, take_isolation});
}

}  // namespace forestvm::frontend
