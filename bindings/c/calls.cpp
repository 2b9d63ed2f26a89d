// C functions that run programs: contexts, predictions and encoded rows.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/core/platform.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>

#include "bindings/c/handles.hpp"

namespace {

using namespace forestvm;
using namespace forestvm::c_api;

constexpr fvm_output c_output(OutputKind output) {
  switch (output) {
    case OutputKind::Raw:
      return FVM_OUTPUT_RAW;
    case OutputKind::Value:
      return FVM_OUTPUT_VALUE;
    case OutputKind::Class:
      return FVM_OUTPUT_CLASS;
    case OutputKind::Leaf:
      return FVM_OUTPUT_LEAF;
    case OutputKind::Contributions:
      return FVM_OUTPUT_CONTRIBUTIONS;
    case OutputKind::Trees:
      return FVM_OUTPUT_TREES;
    case OutputKind::Staged:
      return FVM_OUTPUT_STAGED;
    case OutputKind::Interactions:
      return FVM_OUTPUT_INTERACTIONS;
    case OutputKind::ApproxContributions:
      return FVM_OUTPUT_APPROX_CONTRIBUTIONS;
    case OutputKind::VirtEnsembles:
      return FVM_OUTPUT_VIRT_ENSEMBLES;
    case OutputKind::Uncertainty:
      return FVM_OUTPUT_UNCERTAINTY;
    case OutputKind::Quantile:
      return FVM_OUTPUT_QUANTILE;
  }
  __builtin_unreachable();  // the cases above are all outputs
}

Result<OutputKind> known_output(fvm_output output) {
#define FVM_OUTPUT(number, Name, text, meaning) \
  if (output == c_output(OutputKind::Name)) return OutputKind::Name;
#include <forestvm/core/outputs.def>
  return usage("there is no output {}", output);
}

/// Returns the type that an output is written in; Usage if it would lose digits there.
Result<ResultType> known_result_type(OutputKind output, fvm_type type) {
  const bool scores = output != OutputKind::Class && output != OutputKind::Leaf;
  if (type == FVM_TYPE_FLOAT32 && scores) return ResultType::Float32;
  if (type == FVM_TYPE_FLOAT64 && scores) return ResultType::Float64;
  if (type == FVM_TYPE_INT32 && !scores) return ResultType::Int32;
  if (type == FVM_TYPE_INT64 && !scores) return ResultType::Int64;
  FVM_TRY(check_type("type", type));
  return usage(
      "type is {}{}", type,
      scores ? "; scores and values are FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64, and would lose digits in others"
             : "; classes and leaves are FVM_TYPE_INT32 or FVM_TYPE_INT64, and could lose digits in "
               "others");
}

/// Holds a context for a call: until it is destroyed, other calls with the context are refused.
class ContextInUse {
 public:
  static Result<ContextInUse> take(fvm_context* context) {
    FVM_TRY(check_handle(context));
    ContextInUse taken(context);
    if (!taken.is_held()) return usage("another call is using the context: each thread needs its own");
    return taken;
  }

  /// Holds a context, which is not null, unless another call holds it.
  FVM_INLINE explicit ContextInUse(fvm_context* context)
      : context_(context->in_use.exchange(true, std::memory_order_acquire) ? nullptr : context) {}

  bool is_held() const { return context_ != nullptr; }

  ContextInUse(ContextInUse&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  ContextInUse& operator=(ContextInUse&&) = delete;
  ~ContextInUse() {
    if (context_ != nullptr) context_->in_use.store(false, std::memory_order_release);
  }

  Context& memory() const { return *context_->memory; }
  const Predictor& predictor() const { return *context_->predictor; }
  Result<AnyRows> known_rows(const fvm_rows* rows) const {
    return c_api::known_rows(rows, *context_->names, context_->columns);
  }

 private:
  fvm_context* context_;  ///< Null if it is not held.
};

/// Predicts as fvm_predict_f32 does if the call is like the context's last one. Otherwise, or if something is wrong,
/// returns false. The checks and messages of other calls take as long as a small tree's walk.
bool predict_again(fvm_context* context, const float* rows, std::size_t row_count, std::size_t row_stride,
                   fvm_output output, float* out, std::size_t capacity) noexcept try {
  if ((output != FVM_OUTPUT_RAW && output != FVM_OUTPUT_VALUE) || !is_handle(context)) return false;
  const ContextInUse used(context);
  if (!used.is_held()) return false;
  // An initialiser of the whole struct becomes a string instruction, which is slow.
  RowBlock block;
  block.data = rows;
  block.count = row_count;
  block.stride = row_stride;
  const OutputKind kind = output == FVM_OUTPUT_RAW ? OutputKind::Raw : OutputKind::Value;
  return used.predictor().predict_again(used.memory(), block, kind, ResultType::Float32, out, capacity);
} catch (...) {
  return false;
}

Result<void> check_room(std::size_t row_count, std::size_t width, std::size_t capacity) {
  if (width == 0 || row_count <= capacity / width) return {};
  return usage("the output has room for {} numbers; {} rows of {} do not fit", capacity, row_count, width);
}

/// Returns the options of a call; none if `given` is null.
Result<CallOptions> known_call_options(const fvm_call_options* given) {
  CallOptions options;
  if (given == nullptr) return options;
  FVM_ASSIGN(const fvm_call_options known,
             known_fields(given, "call options", "fvm_call_options", "FVM_CALL_OPTIONS_INIT"));
  if (known.base_margin == nullptr && (known.base_margin_rows != 0 || known.base_margin_outputs != 0))
    return usage("base_margin is null, but has a shape");
  if (known.base_margin_type != FVM_TYPE_FLOAT32 && known.base_margin_type != FVM_TYPE_FLOAT64)
    return usage("base_margin_type is {}; margins are FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64",
                 known.base_margin_type);
  options.base_margin = {known.base_margin, known.base_margin_rows, known.base_margin_outputs,
                         known.base_margin_type == FVM_TYPE_FLOAT64};
  if (known.rounds_begin != 0 || known.rounds_end != 0)
    options.rounds = Rounds{known.rounds_begin, known.rounds_end};
  if (known.stage_every != 0) options.every = known.stage_every;
  if (known.ensembles != 0) options.ensembles = known.ensembles;
  if (known.features == nullptr && known.feature_count != 0)
    return usage("features is null, but feature_count is {}", known.feature_count);
  options.features = {known.features, known.feature_count};
  if (known.quantiles == nullptr && known.quantile_count != 0)
    return usage("quantiles is null, but quantile_count is {}", known.quantile_count);
  if (known.quantiles != nullptr) options.quantiles = {known.quantiles, known.quantile_count};
  if (known.early_stop_every != 0) options.early_stop = {known.early_stop_margin, known.early_stop_every};
  return options;
}

/// Predicts rows, after checking that the output has room for them.
Result<void> predict_rows(const ContextInUse& used, const AnyRows& rows, OutputKind output, ResultType type,
                          const CallOptions& options, void* out, std::size_t capacity) {
  const std::size_t count = row_count(rows),
                    width = output_width(used.predictor().program(), output, options);
  FVM_TRY(check_room(count, width, capacity));
  if (out == nullptr && count != 0 && width != 0) return usage("the output is null");
  return used.predictor().predict_with(used.memory(), rows, output, type, options, out);
}

/// Predicts the rows of a caller's struct. `options` may be null.
fvm_status predict(const char* function, fvm_context* context, const fvm_rows* rows, fvm_output output,
                   fvm_type type, const fvm_call_options* options, void* out, std::size_t capacity) {
  return guarded(function, [&]() -> Result<void> {
    FVM_ASSIGN(const OutputKind kind, known_output(output));
    FVM_ASSIGN(const ResultType result, known_result_type(kind, type));
    FVM_ASSIGN(const CallOptions call, known_call_options(options));
    FVM_ASSIGN(const ContextInUse used, ContextInUse::take(context));
    FVM_ASSIGN(const AnyRows known, used.known_rows(rows));
    return predict_rows(used, known, kind, result, call, out, capacity);
  });
}

/// Describes encoded rows in the caller's struct, which may be larger than the one that the library knows.
void set_rows(const CodedRows& coded, fvm_rows* to) {
  const std::size_t size = to->size;
  fvm_rows rows = FVM_ROWS_INIT;
  rows.size = size;
  rows.kind = FVM_ROWS_ENCODED;
  rows.row_count = coded.count;
  rows.column_count = coded.columns;
  rows.data = coded.codes;
  rows.byte_count = coded.byte_count;
  rows.encoder = coded.encoder;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(to, &rows, sizeof rows);
}

}  // namespace

fvm_status fvm_program_width(const fvm_program* program, fvm_output output, uint32_t* width) {
  return guarded("fvm_program_width", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    FVM_ASSIGN(const OutputKind kind, known_output(output));
    if (width == nullptr) return usage("the pointer to the width is null");
    *width = output_width(program->predictor->program(), kind);
    return {};
  });
}

fvm_status fvm_call_width(const fvm_program* program, fvm_output output, const fvm_call_options* options,
                          uint32_t* width) {
  return guarded("fvm_call_width", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    FVM_ASSIGN(const OutputKind kind, known_output(output));
    FVM_ASSIGN(const CallOptions call, known_call_options(options));
    if (width == nullptr) return usage("the pointer to the width is null");
    *width = output_width(program->predictor->program(), kind, call);
    return {};
  });
}

fvm_status fvm_context_create(const fvm_program* program, fvm_context** context) {
  return guarded("fvm_context_create", [&]() -> Result<void> {
    if (context == nullptr) return usage("the pointer to the context is null");
    *context = nullptr;
    FVM_TRY(check_handle(program));
    auto created = std::make_unique<fvm_context>();
    created->predictor = program->predictor;
    created->names = program->names;
    created->memory = program->predictor->make_context();
    *context = created.release();
    return {};
  });
}

fvm_status fvm_context_destroy(fvm_context* context) {
  return guarded("fvm_context_destroy", [&]() -> Result<void> {
    if (context == nullptr) return {};
    FVM_TRY(check_handle(context));
    delete context;
    return {};
  });
}

fvm_status fvm_encoded_size(const fvm_program* program, size_t row_count, size_t* byte_count) {
  return guarded("fvm_encoded_size", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (byte_count == nullptr) return usage("the pointer to the size is null");
    const std::size_t columns = program->predictor->coded_columns();
    *byte_count = coded_bytes(row_count, columns);
    if (*byte_count != std::numeric_limits<std::size_t>::max()) return {};
    return usage("{} rows of {} columns are more than memory holds", row_count, columns);
  });
}

fvm_status fvm_predict(fvm_context* context, const fvm_rows* rows, fvm_output output, fvm_type type,
                       void* out, size_t capacity) {
  return predict("fvm_predict", context, rows, output, type, nullptr, out, capacity);
}

fvm_status fvm_predict_with(fvm_context* context, const fvm_rows* rows, fvm_output output, fvm_type type,
                            const fvm_call_options* options, void* out, size_t capacity) {
  return predict("fvm_predict_with", context, rows, output, type, options, out, capacity);
}

fvm_status fvm_predict_f32(fvm_context* context, const float* rows, size_t row_count, size_t row_stride,
                           fvm_output output, float* out, size_t capacity) {
  if (predict_again(context, rows, row_count, row_stride, output, out, capacity)) return FVM_OK;
  return guarded("fvm_predict_f32", [&]() -> Result<void> {
    if (output == FVM_OUTPUT_CLASS || output == FVM_OUTPUT_LEAF)
      return usage("writes float32 numbers; fvm_predict writes classes and leaf numbers");
    FVM_ASSIGN(const OutputKind kind, known_output(output));
    FVM_ASSIGN(const ContextInUse used, ContextInUse::take(context));
    return predict_rows(used, RowBlock{rows, row_count, row_stride}, kind, ResultType::Float32, {}, out,
                        capacity);
  });
}

fvm_status fvm_encode(fvm_context* context, const fvm_rows* rows, uint8_t* out, size_t capacity,
                      fvm_rows* encoded) {
  return guarded("fvm_encode", [&]() -> Result<void> {
    FVM_ASSIGN(const ContextInUse used, ContextInUse::take(context));
    FVM_ASSIGN(const AnyRows known, used.known_rows(rows));
    if (out == nullptr && row_count(known) != 0) return usage("the output is null");
    if (encoded == nullptr) return usage("the pointer to the encoded rows is null");
    FVM_TRY(check_size(encoded->size, sizeof *encoded, "encoded", "fvm_rows", "FVM_ROWS_INIT"));
    FVM_ASSIGN(const CodedRows coded, used.predictor().encode(used.memory(), known, {out, capacity}));
    set_rows(coded, encoded);
    return {};
  });
}
