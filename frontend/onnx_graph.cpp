// See onnx_graph.hpp. Nodes are read in the file's order, in which they are computed.
#include "frontend/onnx_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

/// The most segments and steps of all columns that nodes make. It keeps many nodes with many segments each from taking
/// much memory.
constexpr std::size_t kMaxSegments = std::size_t{1} << 18;

/// The contents that a tensor behind the ensemble may have.
enum class Content {
  Labels,
  Scores,
  Maps,
  Before,  ///< Scores or maps before the transform that a node makes.
};

Error error(const OnnxOperation& operation, std::string_view message) {
  return refused(location_of(operation), message);
}

/// Reads a list of one number, or one for each column.
Result<void> read_numbers(const OnnxOperation& operation, std::string_view name, const OnnxColumns& columns,
                          std::vector<double>& numbers) {
  const OnnxAttributes attributes(operation);
  FVM_ASSIGN(const std::size_t count, attributes.reals(name, [&](std::size_t, double x) -> Result<void> {
    if (!std::isfinite(x)) return attributes.error(name, "a number that is not finite");
    numbers.push_back(x);
    return {};
  }));
  if (count != 1 && count != columns.width)
    return attributes.error(name, formatted("{} numbers for {} columns", count, columns.width));
  return {};
}

class GraphReader {
 public:
  GraphReader(const OnnxGraph& graph, const LoadLimits& limits)
      : graph_(graph), limits_(limits), constants_(graph.initializers) {}

  Result<OnnxPipeline> read() {
    FVM_TRY(add_inputs());
    FVM_TRY(visit_operations(graph_, [&](const OnnxOperation& operation) { return add(operation); }));
    if (!ensemble_) return refused("graph", "there is no tree ensemble in it");
    for (const OnnxValue& output : graph_.outputs) {
      const auto result = results_.find(output.name);
      if (result == results_.end())
        return refused("graph", "output {} is not a result of the tree ensemble", in_quotes(output.name));
      if (result->second == Content::Before)
        return refused("graph", "output {} holds the scores before their transform", in_quotes(output.name));
    }
    // A pipeline whose rows are doubles uses no computed columns.
    if (computed_ && pipeline_.columns.row_type == ScalarType::Float32)
      pipeline_.computed = std::move(computed_->columns());
    return std::move(pipeline_);
  }

 private:
  using Handler = Result<void> (GraphReader::*)(const OnnxOperation&);

  struct Row {
    std::string_view domain;
    std::string_view type;
    Handler handler;
  };

  static const Row kRows[];

  Result<void> add_inputs();
  Result<void> add_width(const OnnxValue& input, std::uint32_t& width) const;
  Result<void> add(const OnnxOperation& operation);

  // The handlers of operations.
  Result<void> add_alias(const OnnxOperation& operation);
  Result<void> add_cast(const OnnxOperation& operation);
  Result<void> add_concat(const OnnxOperation& operation);
  Result<void> add_scaler(const OnnxOperation& operation);
  Result<void> add_imputer(const OnnxOperation& operation);
  Result<void> add_normalizer(const OnnxOperation& operation);
  Result<void> add_constant(const OnnxOperation& operation);
  Result<void> add_shape(const OnnxOperation& operation);
  Result<void> add_sum(const OnnxOperation& operation);
  Result<void> add_difference(const OnnxOperation& operation);
  Result<void> add_product(const OnnxOperation& operation);
  Result<void> add_quotient(const OnnxOperation& operation);
  Result<void> add_clip(const OnnxOperation& operation);
  Result<void> add_zipmap(const OnnxOperation& operation);
  Result<void> add_argmax(const OnnxOperation& operation);
  Result<void> add_sigmoid(const OnnxOperation& operation);
  Result<void> add_softmax(const OnnxOperation& operation);
  Result<void> add_ensemble(const OnnxOperation& operation);

  const OnnxColumns* columns_of(const OnnxOperation& operation, std::size_t input = 0) const {
    const auto found =
        input < operation.inputs.size() ? columns_.find(operation.inputs[input]) : columns_.end();
    return found == columns_.end() ? nullptr : &found->second;
  }
  std::optional<Content> content_of(const OnnxOperation& operation) const {
    const auto found = operation.inputs.empty() ? results_.end() : results_.find(operation.inputs[0]);
    return found == results_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Returns whether the input holds scores, before or after a transform.
  bool takes_scores(const OnnxOperation& operation) const {
    const std::optional<Content> content = content_of(operation);
    return content == Content::Scores || content == Content::Before;
  }
  const OnnxTensor* constant_of(const OnnxOperation& operation, std::size_t input) const {
    const auto found =
        input < operation.inputs.size() ? constants_.find(operation.inputs[input]) : constants_.end();
    return found == constants_.end() ? nullptr : &found->second;
  }
  /// Stores what the operation's only output holds.
  Result<void> give(const OnnxOperation& operation, OnnxColumns columns) {
    if (operation.outputs.size() != 1) return error(operation, "expected one output");
    for (const OnnxSegment& segment : columns.segments) {
      segments_ += 1 + segment.steps.size();
      for (const OnnxStep& step : segment.steps) segments_ += (step.first.size() + step.second.size()) / 16;
    }
    if (segments_ > kMaxSegments) return error(operation, "too many nodes and columns in front of the trees");
    FVM_TRY(check_new(operation, operation.outputs[0]));
    columns_.emplace(operation.outputs[0], std::move(columns));
    return {};
  }
  Result<void> give(const OnnxOperation& operation, Content content) {
    if (operation.outputs.size() != 1) return error(operation, "expected one output");
    FVM_TRY(check_new(operation, operation.outputs[0]));
    results_.emplace(operation.outputs[0], content);
    return {};
  }
  Result<void> check_new(const OnnxOperation& operation, std::string_view name) const {
    if (!columns_.contains(name) && !results_.contains(name) && !constants_.contains(name)) return {};
    return error(operation, formatted("its output {} is there already", in_quotes(name)));
  }
  Result<std::vector<std::int64_t>> shape_of(const OnnxOperation& operation) const;
  Result<void> read_constant(const OnnxOperation& operation, std::size_t input, std::uint32_t width,
                             std::vector<double>& numbers) const;
  Result<void> add_arithmetic(const OnnxOperation& operation, OnnxStepKind kind);
  Result<OnnxComputed*> computed_for(const OnnxOperation& operation, const OnnxColumns& input);
  Result<void> give_changed(const OnnxOperation& operation, OnnxColumns columns, const OnnxStep& step);
  static Result<void> set_type(const OnnxOperation& operation, const OnnxColumns& input, OnnxStep& step);
  Result<void> add_transform(const OnnxOperation& operation, OnnxPost post);
  /// Number of values in a row of scores.
  std::uint32_t score_width() const {
    return pipeline_.forest.classifier ? static_cast<std::uint32_t>(pipeline_.forest.class_labels.size())
                                       : pipeline_.forest.num_outputs;
  }

  const OnnxGraph& graph_;
  const LoadLimits& limits_;
  OnnxPipeline pipeline_;
  bool ensemble_ = false;
  std::size_t segments_ = 0;  ///< Segments and steps of all columns.
  std::optional<OnnxComputed> computed_;
  bool known_width_ = true;  ///< False if the only input does not say how many columns it has.
  std::unordered_map<std::string_view, OnnxTensor> constants_;
  std::unordered_map<std::string_view, OnnxColumns> columns_;
  std::unordered_map<std::string_view, Content> results_;
};

const GraphReader::Row GraphReader::kRows[] = {
    {"", "Identity", &GraphReader::add_alias},
    {"", "Cast", &GraphReader::add_cast},
    {"", "Concat", &GraphReader::add_concat},
    {"", "Constant", &GraphReader::add_constant},
    {"", "Reshape", &GraphReader::add_shape},
    {"", "Squeeze", &GraphReader::add_shape},
    {"", "Flatten", &GraphReader::add_shape},
    {"", "Add", &GraphReader::add_sum},
    {"", "Sub", &GraphReader::add_difference},
    {"", "Mul", &GraphReader::add_product},
    {"", "Div", &GraphReader::add_quotient},
    {"", "Clip", &GraphReader::add_clip},
    {"", "ArgMax", &GraphReader::add_argmax},
    {"", "Sigmoid", &GraphReader::add_sigmoid},
    {"", "Softmax", &GraphReader::add_softmax},
    {"ai.onnx.ml", "Scaler", &GraphReader::add_scaler},
    {"ai.onnx.ml", "Imputer", &GraphReader::add_imputer},
    {"ai.onnx.ml", "Normalizer", &GraphReader::add_normalizer},
    {"ai.onnx.ml", "ZipMap", &GraphReader::add_zipmap},
    {"ai.onnx.ml", "TreeEnsemble", &GraphReader::add_ensemble},
    {"ai.onnx.ml", "TreeEnsembleClassifier", &GraphReader::add_ensemble},
    {"ai.onnx.ml", "TreeEnsembleRegressor", &GraphReader::add_ensemble},
};

Result<void> GraphReader::add(const OnnxOperation& operation) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& known) {
    return known.domain == operation.domain && known.type == operation.type;
  });
  if (row == std::end(kRows))
    return error(operation, "an operation that is not read" +
                                (operation.domain.empty() ? "" : ": domain " + in_quotes(operation.domain)));
  return (this->*row->handler)(operation);
}

Result<void> GraphReader::add_width(const OnnxValue& input, std::uint32_t& width) const {
  const auto wrong = [&](const std::string& what) {
    return refused("graph, input " + in_quotes(input.name), what);
  };
  if (input.dims.size() > 2)
    return wrong(formatted("{} dimensions, expected rows and columns", input.dims.size()));
  if (input.dims.size() < 2 || input.dims[1] < 0) {
    if (graph_.inputs.size() == 1) return {};
    return wrong("the number of columns is not given");
  }
  if (input.dims[1] == 0 ||
      input.dims[1] > std::int64_t{limits_.max_features} - std::int64_t{pipeline_.num_features})
    return wrong(formatted("{} columns: none, or more than the limit of {} features", input.dims[1],
                           limits_.max_features));
  width = static_cast<std::uint32_t>(input.dims[1]);
  return {};
}

/// An input that does not say its number of columns gets as many as the limit allows. Once the trees are read,
/// add_ensemble reduces it to the columns up to the last one that they test.
Result<void> GraphReader::add_inputs() {
  if (graph_.inputs.empty()) return refused("graph", "no inputs");
  for (const OnnxValue& input : graph_.inputs) {
    std::uint32_t width = 0;
    FVM_TRY(add_width(input, width));
    OnnxColumns columns;
    columns.type = input.type;
    switch (input.type) {
      case OnnxType::Double:
        columns.row_type = ScalarType::Float64;
        break;
      case OnnxType::Float:
      case OnnxType::Int32:
      case OnnxType::Int64:
        break;
      default:
        return refused("graph, input " + in_quotes(input.name),
                       "a tensor of {}; float, double, int32 and int64 are read", name_of(input.type));
    }
    known_width_ = width != 0;
    columns.width = width != 0 ? width : limits_.max_features;
    columns.segments.push_back({0, columns.width, pipeline_.num_features, {}});
    pipeline_.num_features += columns.width;
    if (!columns_.emplace(input.name, std::move(columns)).second)
      return refused("graph", "two inputs are named {}", in_quotes(input.name));
  }
  if (pipeline_.num_features != graph_.inputs.size() || !known_width_ || pipeline_.num_features == 1)
    return {};
  for (const OnnxValue& input : graph_.inputs) pipeline_.feature_names.emplace_back(input.name);
  return {};
}

Result<void> GraphReader::add_alias(const OnnxOperation& operation) {
  if (const OnnxColumns* columns = columns_of(operation)) return give(operation, *columns);
  if (const auto content = content_of(operation)) return give(operation, *content);
  return error(operation, "its input is neither the rows nor a result of trees");
}

Result<void> GraphReader::add_cast(const OnnxOperation& operation) {
  FVM_ASSIGN(const std::int64_t number, OnnxAttributes(operation).integer("to", 0));
  const auto to = static_cast<OnnxType>(static_cast<std::int32_t>(number));
  const auto wrong = [&](const std::string& what) {
    return error(operation, formatted("{} cast to {}", what, name_of(to)));
  };
  if (const OnnxColumns* columns = columns_of(operation)) {
    OnnxColumns cast = *columns;
    if (to != columns->type && to != OnnxType::Float &&
        !(to == OnnxType::Double && columns->type == OnnxType::Float))
      return wrong("columns of " + name_of(columns->type));
    cast.type = to;
    if (to == OnnxType::Float && columns->type == OnnxType::Double) cast.round_to_float32();
    return give(operation, std::move(cast));
  }
  const auto content = content_of(operation);
  const bool whole = to == OnnxType::Int32 || to == OnnxType::Int64;
  const bool real = to == OnnxType::Float || to == OnnxType::Double;
  if (content == Content::Labels && !whole) return wrong("labels");
  if (takes_scores(operation) && !real) return wrong("scores");
  return add_alias(operation);
}

Result<void> GraphReader::add_concat(const OnnxOperation& operation) {
  FVM_ASSIGN(const std::int64_t axis, OnnxAttributes(operation).integer("axis", 0));
  if (axis != 1 && axis != -1) return error(operation, formatted("axis {}, expected 1: columns", axis));
  OnnxColumns all;
  all.type = OnnxType::Undefined;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    const OnnxColumns* part = columns_of(operation, i);
    if (part == nullptr)
      return error(operation,
                   formatted("input {} is not columns of the rows", in_quotes(operation.inputs[i])));
    if (!known_width_) return error(operation, "the number of the input's columns is not given");
    if (all.type == OnnxType::Undefined) {
      all.type = part->type;
      all.row_type = part->row_type;
    }
    if (all.type != part->type || all.row_type != part->row_type)
      return error(operation, "columns of different types");
    if (part->width > limits_.max_features - all.width ||
        all.segments.size() + part->segments.size() > kMaxOnnxParts)
      return error(operation, formatted("more columns than the limit of {}", limits_.max_features));
    for (OnnxSegment segment : part->segments) {
      segment.column += all.width;
      all.segments.push_back(std::move(segment));
    }
    all.width += part->width;
  }
  if (all.width == 0) return error(operation, "no inputs");
  return give(operation, std::move(all));
}

/// Returns the computed columns, to which the operation adds its own. Refuses an input that is not float32.
Result<OnnxComputed*> GraphReader::computed_for(const OnnxOperation& operation, const OnnxColumns& input) {
  if (!known_width_) return error(operation, "the number of the input's columns is not given");
  if (input.type == OnnxType::Double || !input.all_float32())
    return error(operation,
                 "it is computed first, which is done in float32, and its input depends on doubles");
  if (!computed_) computed_.emplace(pipeline_.num_features);
  segments_ += 2 * std::size_t{input.width};
  for (const OnnxSegment& segment : input.segments) segments_ += segment.steps.size() * segment.count;
  if (segments_ > kMaxSegments) return error(operation, "too many nodes and columns in front of the trees");
  return &*computed_;
}

/// Stores the columns after a step. The step is folded into thresholds if that is exact for every number; otherwise
/// columns are computed.
Result<void> GraphReader::give_changed(const OnnxOperation& operation, OnnxColumns columns,
                                       const OnnxStep& step) {
  if (folds(step)) {
    columns.add_step(step);
    return give(operation, std::move(columns));
  }
  FVM_ASSIGN(OnnxComputed* const computed, computed_for(operation, columns));
  return give(operation, computed->after(columns, step));
}

/// Reads a Scaler, which gives floats. ONNX Runtime computes in double if its input is double.
Result<void> GraphReader::add_scaler(const OnnxOperation& operation) {
  const OnnxColumns* input = columns_of(operation);
  if (input == nullptr) return error(operation, "its input is not columns of the rows");
  OnnxStep step;
  FVM_TRY(read_numbers(operation, "offset", *input, step.first));
  FVM_TRY(read_numbers(operation, "scale", *input, step.second));
  OnnxColumns columns = *input;
  columns.type = OnnxType::Float;
  if (input->type != OnnxType::Double) return give_changed(operation, std::move(columns), step);
  step.type = ScalarType::Float64;
  if (!folds(step)) return error(operation, "a scale of 0 of doubles cannot be folded into thresholds");
  columns.add_step(step);
  columns.round_to_float32();
  return give(operation, std::move(columns));
}

Result<void> GraphReader::add_imputer(const OnnxOperation& operation) {
  const OnnxColumns* input = columns_of(operation);
  if (input == nullptr) return error(operation, "its input is not columns of the rows");
  const OnnxAttributes attributes(operation);
  FVM_ASSIGN(const double replaced, attributes.real("replaced_value_float", 0));
  if (input->type != OnnxType::Float || attributes.has("imputed_value_int64s"))
    return error(operation, formatted("columns of {}; only float columns and imputed_value_floats are read",
                                      name_of(input->type)));
  OnnxStep step;
  step.kind = OnnxStepKind::Replace;
  FVM_TRY(read_numbers(operation, "imputed_value_floats", *input, step.first));
  if (!std::isnan(replaced)) step.second = {replaced};
  return give_changed(operation, *input, step);
}

/// Reads a Normalizer, which divides each number by a sum, or by the largest number, of its row. It gives floats.
Result<void> GraphReader::add_normalizer(const OnnxOperation& operation) {
  const OnnxColumns* input = columns_of(operation);
  if (input == nullptr) return error(operation, "its input is not columns of the rows");
  FVM_ASSIGN(const std::string_view norm, OnnxAttributes(operation).text("norm", "MAX"));
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return error(operation, formatted("norm {}, expected MAX, L1 or L2", in_quotes(norm)));
  FVM_ASSIGN(OnnxComputed* const computed, computed_for(operation, *input));
  const ColumnKind whole = norm == "L1"   ? ColumnKind::SizeSum
                           : norm == "L2" ? ColumnKind::SquareSum
                                          : ColumnKind::Largest;
  return give(operation,
              computed->shares(*input, whole, norm == "L2" ? ColumnKind::RootShare : ColumnKind::Share));
}

Result<void> GraphReader::add_constant(const OnnxOperation& operation) {
  FVM_ASSIGN(OnnxTensor tensor, OnnxAttributes(operation).tensor("value"));
  if (operation.outputs.size() != 1) return error(operation, "expected one output");
  FVM_TRY(check_new(operation, operation.outputs[0]));
  constants_.emplace(operation.outputs[0], std::move(tensor));
  return {};
}

/// Returns the second input or the attribute "axes" of Reshape and Squeeze.
Result<std::vector<std::int64_t>> GraphReader::shape_of(const OnnxOperation& operation) const {
  std::vector<std::int64_t> numbers;
  const auto add = [&](std::int64_t x) -> Result<void> {
    if (numbers.size() == 4) return error(operation, "more dimensions than rows and columns have");
    numbers.push_back(x);
    return {};
  };
  if (operation.inputs.size() < 2) {
    FVM_TRY(OnnxAttributes(operation).integers("axes", [&](std::size_t, std::int64_t x) { return add(x); }));
    return numbers;
  }
  const OnnxTensor* constant = constant_of(operation, 1);
  if (constant == nullptr) return error(operation, "its shape is not a constant");
  FVM_TRY(visit_integers(*constant, add));
  return numbers;
}

/// Reads Reshape, Squeeze and Flatten where they leave the numbers of a row as they are.
Result<void> GraphReader::add_shape(const OnnxOperation& operation) {
  const OnnxColumns* columns = columns_of(operation);
  const std::int64_t width = columns != nullptr        ? columns->width
                             : takes_scores(operation) ? score_width()
                                                       : 1;
  const bool flat = columns == nullptr && width == 1;  // rows of one number may lose their second dimension
  bool keeps = false;
  if (operation.type == "Flatten") {
    FVM_ASSIGN(const std::int64_t axis, OnnxAttributes(operation).integer("axis", 1));
    keeps = axis == 1;
  } else {
    FVM_ASSIGN(const std::vector<std::int64_t> shape, shape_of(operation));
    if (operation.type == "Squeeze") {
      keeps = flat && shape.size() == 1 && (shape[0] == 1 || shape[0] == -1);
    } else {
      const bool same_columns = shape.size() == 2 && (shape[1] == width || (shape[1] == -1 && shape[0] == 0));
      keeps = (same_columns && (shape[0] == -1 || shape[0] == 0)) ||
              (flat && shape.size() == 1 && shape[0] == -1);
    }
  }
  if (!keeps) return error(operation, "it does more than to leave a row's numbers as they are");
  return add_alias(operation);
}

/// Reads a constant input of one number, or one for each of `width` columns.
Result<void> GraphReader::read_constant(const OnnxOperation& operation, std::size_t input,
                                        std::uint32_t width, std::vector<double>& numbers) const {
  const OnnxTensor* constant = constant_of(operation, input);
  if (constant == nullptr) return error(operation, "its inputs are not columns of the rows and a constant");
  const std::vector<std::int64_t>& dims = constant->dims;
  const bool row = dims.empty() || dims.size() == 1 || (dims.size() == 2 && dims[0] == 1);
  if (!row || (constant->size != 1 && constant->size != width))
    return error(operation, formatted("{} constant numbers for {} columns", constant->size, width));
  return visit_reals(*constant, [&](double x) -> Result<void> {
    if (!std::isfinite(x)) return error(operation, "a constant that is not finite");
    numbers.push_back(x);
    return {};
  });
}

/// Sets the type in which a step computes.
Result<void> GraphReader::set_type(const OnnxOperation& operation, const OnnxColumns& input, OnnxStep& step) {
  if (input.type != OnnxType::Float && input.type != OnnxType::Double)
    return error(operation,
                 formatted("columns of {}; only float and double columns are read", name_of(input.type)));
  step.type = input.type == OnnxType::Double ? ScalarType::Float64 : ScalarType::Float32;
  return {};
}

/// Reads arithmetic of columns and a constant. The columns are the first input, unless the order does not matter.
Result<void> GraphReader::add_arithmetic(const OnnxOperation& operation, OnnxStepKind kind) {
  const bool either = kind == OnnxStepKind::Add || kind == OnnxStepKind::Multiply;
  const std::size_t at = either && columns_of(operation) == nullptr ? 1 : 0;
  const OnnxColumns* input = columns_of(operation, at);
  if (input == nullptr || operation.inputs.size() != 2)
    return error(operation, "its inputs are not columns of the rows and a constant");
  OnnxStep step;
  step.kind = kind;
  FVM_TRY(set_type(operation, *input, step));
  FVM_TRY(read_constant(operation, 1 - at, input->width, step.first));
  return give_changed(operation, *input, step);
}

Result<void> GraphReader::add_sum(const OnnxOperation& operation) {
  return add_arithmetic(operation, OnnxStepKind::Add);
}

Result<void> GraphReader::add_difference(const OnnxOperation& operation) {
  return add_arithmetic(operation, OnnxStepKind::Subtract);
}

Result<void> GraphReader::add_quotient(const OnnxOperation& operation) {
  return add_arithmetic(operation, OnnxStepKind::Divide);
}

Result<void> GraphReader::add_clip(const OnnxOperation& operation) {
  const OnnxColumns* input = columns_of(operation);
  if (input == nullptr || operation.inputs.size() != 3)
    return error(operation, "its inputs are not columns of the rows and two constants");
  OnnxStep step;
  step.kind = OnnxStepKind::Clip;
  FVM_TRY(set_type(operation, *input, step));
  FVM_TRY(read_constant(operation, 1, 1, step.first));
  FVM_TRY(read_constant(operation, 2, 1, step.second));
  if (step.first[0] > step.second[0]) return error(operation, "its least number is above its largest");
  return give_changed(operation, *input, step);
}

/// Reads a multiplication of columns, or of scores by 1.
Result<void> GraphReader::add_product(const OnnxOperation& operation) {
  if (columns_of(operation) != nullptr || columns_of(operation, 1) != nullptr)
    return add_arithmetic(operation, OnnxStepKind::Multiply);
  const OnnxTensor* factor = constant_of(operation, 1);
  bool one = factor != nullptr && factor->size == 1 && content_of(operation) == Content::Scores;
  if (one)
    FVM_TRY(visit_reals(*factor, [&](double x) -> Result<void> {
      one = x == 1;
      return {};
    }));
  return one ? add_alias(operation) : error(operation, "only scores times a constant of 1 are read");
}

Result<void> GraphReader::add_zipmap(const OnnxOperation& operation) {
  if (content_of(operation) != Content::Scores)
    return error(operation, "its input is not the scores of classes");
  return give(operation, Content::Maps);
}

Result<void> GraphReader::add_argmax(const OnnxOperation& operation) {
  const OnnxAttributes attributes(operation);
  FVM_ASSIGN(const std::int64_t axis, attributes.integer("axis", 0));
  FVM_ASSIGN(const std::int64_t last, attributes.integer("select_last_index", 0));
  if (!takes_scores(operation) || pipeline_.forest.classifier || score_width() < 2)
    return error(operation, "its input is not the scores of several targets");
  if ((axis != 1 && axis != -1) || last != 0)
    return error(operation, "only the first largest score of a row is read: axis 1, select_last_index 0");
  pipeline_.argmax = true;
  return give(operation, Content::Labels);
}

/// Makes `post` the transform of the scores, which have none yet.
Result<void> GraphReader::add_transform(const OnnxOperation& operation, OnnxPost post) {
  OnnxForest& forest = pipeline_.forest;
  if (content_of(operation) != Content::Scores || forest.classifier)
    return error(operation, "its input is not the scores of targets");
  if (forest.post != OnnxPost::None) return error(operation, "a second transform of the scores");
  for (auto& [name, content] : results_)
    if (content != Content::Labels) content = Content::Before;
  forest.post = post;
  pipeline_.transformed = true;
  return give(operation, Content::Scores);
}

Result<void> GraphReader::add_sigmoid(const OnnxOperation& operation) {
  return add_transform(operation, OnnxPost::Logistic);
}

Result<void> GraphReader::add_softmax(const OnnxOperation& operation) {
  FVM_ASSIGN(const std::int64_t axis, OnnxAttributes(operation).integer("axis", -1));
  if (axis != 1 && axis != -1) return error(operation, formatted("axis {}, expected 1: columns", axis));
  return add_transform(operation, OnnxPost::Softmax);
}

Result<void> GraphReader::add_ensemble(const OnnxOperation& operation) {
  if (ensemble_) return error(operation, "a second tree ensemble: models of one are read");
  const OnnxColumns* columns = columns_of(operation);
  if (columns == nullptr) return error(operation, "its input is not columns of the rows");
  ensemble_ = true;
  pipeline_.columns = *columns;
  pipeline_.type = operation.type;
  FVM_ASSIGN(pipeline_.forest, read_onnx_forest(operation, limits_));
  if (pipeline_.forest.doubles && columns->type != OnnxType::Double)
    return error(operation, "double thresholds or weights for columns of " + name_of(columns->type));
  if (!known_width_) {
    std::uint32_t last = 0;
    for (const OnnxNode& node : pipeline_.forest.nodes)
      if (node.mode != OnnxMode::Leaf) last = std::max(last, node.column);
    pipeline_.num_features = last < limits_.max_features ? last + 1 : limits_.max_features;
    pipeline_.columns.width = pipeline_.num_features;
  }
  const std::size_t expected = pipeline_.forest.classifier ? 2 : 1;
  if (operation.outputs.empty() || operation.outputs.size() > expected)
    return error(operation, formatted("expected {} outputs", expected));
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    FVM_TRY(check_new(operation, operation.outputs[i]));
    results_.emplace(operation.outputs[i], i + 1 == expected ? Content::Scores : Content::Labels);
  }
  return {};
}

}  // namespace

Result<OnnxPipeline> read_onnx_graph(const OnnxGraph& graph, const LoadLimits& limits) {
  return GraphReader(graph, limits).read();
}

}  // namespace forestvm::frontend
