// The C ABI of include/forestvm/forestvm.h over the host backend and the GPU backends: handles that carry
// their type, status codes with an error message per thread, and no exception that leaves this file.
#include <pthread.h>

#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>

#include "bindings/c/rows.hpp"
#include "bindings/c/structs.hpp"

namespace {

using namespace forestvm;
using namespace forestvm::c_api;

/// The first word of a handle, which tells programs and contexts apart.
enum class Tag : std::uint64_t { Program = 0x6d6172676f727076, Context = 0x74786574'6e6f6376 };

}  // namespace

struct fvm_program {
  static constexpr Tag kTag = Tag::Program;
  static constexpr const char* kName = "program";

  const Tag tag = kTag;
  std::shared_ptr<const Predictor> predictor;
  std::shared_ptr<const Names> names;
  std::string description;
  std::string fingerprint;
};

struct fvm_context {
  static constexpr Tag kTag = Tag::Context;
  static constexpr const char* kName = "context";

  const Tag tag = kTag;
  std::atomic<bool> in_use = false;
  std::shared_ptr<const Predictor> predictor;
  std::shared_ptr<const Names> names;
  std::unique_ptr<Context> memory;
  ColumnMemory columns;
};

namespace {

char out_of_memory[] = "out of memory";

/// The pthread key for the calling thread's last error: a text from malloc, or out_of_memory. A thread_local
/// variable would not do: where there is no memory for one, the C library ends the process.
struct LastError {
  LastError() : failed(::pthread_key_create(&key, forget)) {}

  static void forget(void* text) {
    if (text != out_of_memory) std::free(text);
  }

  ::pthread_key_t key{};
  int failed;
};
const LastError last_error;

void set_last_error(const char* function, const char* text) {
  if (last_error.failed != 0) return;
  LastError::forget(::pthread_getspecific(last_error.key));
  const std::size_t size = std::strlen(function) + std::strlen(": ") + std::strlen(text) + 1;
  auto* message = static_cast<char*>(std::malloc(size));
  if (message != nullptr)
    std::snprintf(message, size, "%s: %s", function, text);
  else
    message = out_of_memory;
  if (::pthread_setspecific(last_error.key, message) != 0) LastError::forget(message);
}

fvm_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Refused:
      return FVM_REFUSED;
    case ErrorCode::Usage:
      return FVM_USAGE;
    case ErrorCode::Environment:
      return FVM_ENVIRONMENT;
    case ErrorCode::Internal:
      break;
  }
  return FVM_INTERNAL;
}

fvm_status failed(fvm_status status, const char* function, const char* text) {
  set_last_error(function, text);
  return status;
}

/// Runs `work`, a function that returns Result<void>, for the C function called `function`.
template <class Work>
fvm_status guarded(const char* function, const Work& work) noexcept {
  try {
    const Result<void> done = work();
    if (done) return FVM_OK;
    return failed(status_of(done.error().code), function, done.error().text().c_str());
  } catch (const std::bad_alloc&) {
    return failed(FVM_ENVIRONMENT, function, "out of memory");
  } catch (const std::system_error& error) {  // a thread cannot be started
    return failed(FVM_ENVIRONMENT, function, error.what());
  } catch (const std::exception& bug) {
    return failed(FVM_INTERNAL, function, bug.what());
  } catch (...) {
    return failed(FVM_INTERNAL, function, "an exception of unknown type");
  }
}

template <class Handle>
Result<void> check_handle(const Handle* handle) {
  if (handle == nullptr) return usage(std::string("the ") + Handle::kName + " is null");
  Tag tag;  // read as bytes: there may be no Handle
  std::memcpy(&tag, static_cast<const void*>(handle), sizeof tag);
  if (tag != Handle::kTag) return usage(std::string("the handle is not a ") + Handle::kName);
  return {};
}

Result<void> known_verification(fvm_verification verification) {
  if (verification == FVM_VERIFY_FULL || verification == FVM_VERIFY_TRUST) return {};
  return usage("options.verification is " + std::to_string(verification) +
               ", not FVM_VERIFY_FULL or FVM_VERIFY_TRUST");
}

Result<fvm_open_options> known_options(const fvm_open_options* options) {
  if (options == nullptr) return fvm_open_options FVM_OPEN_OPTIONS_INIT;
  FVM_ASSIGN(const fvm_open_options known,
             known_fields(options, "options", "fvm_open_options", "FVM_OPEN_OPTIONS_INIT"));
  FVM_TRY(known_verification(known.verification));
  return known;
}

Result<GpuVendor> known_vendor(fvm_gpu_vendor vendor) {
  if (vendor == FVM_GPU_CUDA) return GpuVendor::Cuda;
  if (vendor == FVM_GPU_HIP) return GpuVendor::Hip;
  return usage("the vendor is " + std::to_string(vendor) + ", not FVM_GPU_CUDA or FVM_GPU_HIP");
}

Result<fvm_gpu_options> known_options(const fvm_gpu_options* options) {
  if (options == nullptr) return fvm_gpu_options FVM_GPU_OPTIONS_INIT;
  FVM_ASSIGN(const fvm_gpu_options known,
             known_fields(options, "options", "fvm_gpu_options", "FVM_GPU_OPTIONS_INIT"));
  FVM_TRY(known_verification(known.verification));
  FVM_TRY(known_vendor(known.vendor));
  return known;
}

// Rows, outputs and types as C callers name them.

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
  }
  __builtin_unreachable();  // these are all
}

Result<OutputKind> known_output(fvm_output output) {
#define FVM_OUTPUT(number, Name, text, meaning) \
  if (output == c_output(OutputKind::Name)) return OutputKind::Name;
#include <forestvm/core/outputs.def>
  return usage("there is no output " + std::to_string(output));
}

/// Returns the type that an output is written in; Usage if it would lose digits there.
Result<ResultType> known_result_type(OutputKind output, fvm_type type) {
  const bool scores = output == OutputKind::Raw || output == OutputKind::Value;
  if (type == FVM_TYPE_FLOAT32 && scores) return ResultType::Float32;
  if (type == FVM_TYPE_FLOAT64 && scores) return ResultType::Float64;
  if (type == FVM_TYPE_INT32 && !scores) return ResultType::Int32;
  if (type == FVM_TYPE_INT64 && !scores) return ResultType::Int64;
  FVM_TRY(check_type("type", type));
  return usage("type is " + std::to_string(type) +
               (scores
                    ? "; raw scores and values are FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64, and would lose "
                      "digits in others"
                    : "; classes and leaves are FVM_TYPE_INT32 or FVM_TYPE_INT64, and could lose digits in "
                      "others"));
}

// Backends as C callers name them.

Result<std::unique_ptr<Predictor>> backend(const Program& program, const fvm_open_options& options) {
  BackendOptions host;
  host.threads = options.threads;
  if (options.target != nullptr) host.target = options.target;
  return host_backend(program, host);
}

Result<std::unique_ptr<Predictor>> backend(const Program& program, const fvm_gpu_options& options) {
  FVM_ASSIGN(const GpuVendor vendor, known_vendor(options.vendor));
  return gpu_backend(program, {vendor, options.device});
}

std::string fingerprint_text(const Program& program) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, program.meta().fingerprint);
  return text;
}

/// Opens a program, for all functions that do: `load` makes the Program, given how much to verify.
template <class Options, class Load>
Result<void> open_program(const Options* given, fvm_program** program, const Load& load) {
  if (program == nullptr) return usage("there is nowhere to put the program: its pointer is null");
  *program = nullptr;
  FVM_ASSIGN(const Options options, known_options(given));
  FVM_ASSIGN(const Program loaded,
             load(options.verification == FVM_VERIFY_FULL ? Verification::Full : Verification::Trust));
  FVM_ASSIGN(std::shared_ptr<const Predictor> predictor, backend(loaded, options));
  auto opened = std::make_unique<fvm_program>();
  opened->description = predictor->describe();
  opened->fingerprint = fingerprint_text(predictor->program());
  opened->names = std::make_shared<const Names>(predictor->program());
  opened->predictor = std::move(predictor);
  *program = opened.release();
  return {};
}

template <class Options>
fvm_status open_file(const char* function, const char* path, const Options* options, fvm_program** program) {
  const auto load = [&](Verification verification) -> Result<Program> {
    if (path == nullptr) return usage("the path is null");
    auto loaded = Program::load(path, verification);
    if (loaded) return loaded;
    return Error{loaded.error().code, path, loaded.error().text()};
  };
  return guarded(function, [&] { return open_program(options, program, load); });
}

Result<std::span<const std::byte>> image_bytes(const void* image, std::size_t size) {
  if (image == nullptr) return usage("the image is null");
  if (size > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()))
    return usage("an image of " + std::to_string(size) + " bytes is more than memory holds");
  return std::span(static_cast<const std::byte*>(image), size);
}

template <class Options>
fvm_status open_memory(const char* function, const void* image, std::size_t size, const Options* options,
                       fvm_program** program) {
  const auto load = [&](Verification verification) -> Result<Program> {
    FVM_ASSIGN(const auto bytes, image_bytes(image, size));
    return Program::from_bytes(bytes, verification);
  };
  return guarded(function, [&] { return open_program(options, program, load); });
}

/// Sets a caller's pointer and size to the text that `find` finds in the program.
template <class Find>
fvm_status give_text(const char* function, const fvm_program* program, const char** text, std::size_t* size,
                     const Find& find) {
  return guarded(function, [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (text == nullptr || size == nullptr)
      return usage("there is nowhere to put the text: a pointer is null");
    FVM_ASSIGN(const std::string_view found, find(program->names->program()));
    *text = found.data();
    *size = found.size();
    return {};
  });
}

/// Returns Usage if a number is not below the count of things that messages call `things`.
Result<void> check_below(std::uint32_t number, std::uint32_t count, const std::string& things) {
  if (number < count) return {};
  return usage("number " + std::to_string(number) + ", and there are " + std::to_string(count) + " " +
               things);
}

/// A context while a call uses it. No other call may use it meanwhile.
class ContextInUse {
 public:
  static Result<ContextInUse> take(fvm_context* context) {
    FVM_TRY(check_handle(context));
    if (context->in_use.exchange(true, std::memory_order_acquire))
      return usage("another call is using the context: each thread needs its own");
    return ContextInUse(context);
  }

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
  explicit ContextInUse(fvm_context* context) : context_(context) {}

  fvm_context* context_;
};

Result<void> check_room(std::size_t row_count, std::size_t width, std::size_t capacity) {
  if (width == 0 || row_count <= capacity / width) return {};
  return usage("the output has room for " + std::to_string(capacity) + " numbers; " +
               std::to_string(row_count) + " rows of " + std::to_string(width) + " do not fit");
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
    return usage("base_margin_type is " + std::to_string(known.base_margin_type) +
                 "; margins are FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64");
  options.base_margin = {known.base_margin, known.base_margin_rows, known.base_margin_outputs,
                         known.base_margin_type == FVM_TYPE_FLOAT64};
  if (known.early_stop_every != 0) options.early_stop = {known.early_stop_margin, known.early_stop_every};
  return options;
}

/// Predicts the rows that `rows_for(used)` returns, given the context. `options` may be null.
template <class RowsFor>
fvm_status predict(const char* function, fvm_context* context, const RowsFor& rows_for, fvm_output output,
                   fvm_type type, const fvm_call_options* options, void* out, std::size_t capacity) {
  return guarded(function, [&]() -> Result<void> {
    FVM_ASSIGN(const OutputKind kind, known_output(output));
    FVM_ASSIGN(const ResultType result, known_result_type(kind, type));
    FVM_ASSIGN(const CallOptions call, known_call_options(options));
    FVM_ASSIGN(const ContextInUse used, ContextInUse::take(context));
    const ProgramMeta& meta = used.predictor().program().meta();
    FVM_ASSIGN(const AnyRows rows, rows_for(used));
    const std::size_t count = row_count(rows), width = output_width(meta, kind);
    FVM_TRY(check_room(count, width, capacity));
    if (out == nullptr && count != 0 && width != 0) return usage("the output is null");
    return used.predictor().predict_with(used.memory(), rows, kind, result, call, out);
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

const char* fvm_version(void) { return FORESTVM_VERSION; }

const char* fvm_last_error(void) {
  if (last_error.failed != 0) return "no messages: the process has no pthread_key_t left for them";
  const void* const text = ::pthread_getspecific(last_error.key);
  return text == nullptr ? "" : static_cast<const char*>(text);
}

fvm_status fvm_program_open(const char* path, const fvm_open_options* options, fvm_program** program) {
  return open_file("fvm_program_open", path, options, program);
}

fvm_status fvm_program_open_memory(const void* image, size_t size, const fvm_open_options* options,
                                   fvm_program** program) {
  return open_memory("fvm_program_open_memory", image, size, options, program);
}

fvm_status fvm_program_open_borrowed(const void* image, size_t size, void (*release)(void* user), void* user,
                                     const fvm_open_options* options, fvm_program** program) {
  return guarded("fvm_program_open_borrowed", [&]() -> Result<void> {
    const auto give_back = [release, user](const void*) {
      if (release != nullptr) release(user);
    };
    const std::shared_ptr<const void> owner(image, give_back);  // calls it if it throws
    const auto load = [&](Verification verification) -> Result<Program> {
      FVM_ASSIGN(const auto bytes, image_bytes(image, size));
      return Program::borrow(bytes, owner, verification);
    };
    return open_program(options, program, load);
  });
}

fvm_status fvm_program_open_gpu(const char* path, const fvm_gpu_options* options, fvm_program** program) {
  return open_file("fvm_program_open_gpu", path, options, program);
}

fvm_status fvm_program_open_gpu_memory(const void* image, size_t size, const fvm_gpu_options* options,
                                       fvm_program** program) {
  return open_memory("fvm_program_open_gpu_memory", image, size, options, program);
}

fvm_status fvm_gpu_count(fvm_gpu_vendor vendor, uint32_t* count) {
  return guarded("fvm_gpu_count", [&]() -> Result<void> {
    if (count == nullptr) return usage("there is nowhere to put the count: its pointer is null");
    FVM_ASSIGN(const GpuVendor known, known_vendor(vendor));
    FVM_ASSIGN(const auto devices, gpu_devices(known));
    *count = static_cast<std::uint32_t>(devices.size());
    return {};
  });
}

fvm_status fvm_program_close(fvm_program* program) {
  return guarded("fvm_program_close", [&]() -> Result<void> {
    if (program == nullptr) return {};
    FVM_TRY(check_handle(program));
    delete program;
    return {};
  });
}

fvm_status fvm_program_shape(const fvm_program* program, uint32_t* num_features, uint32_t* num_outputs,
                             uint32_t* num_trees) {
  return guarded("fvm_program_shape", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    const ProgramMeta& meta = program->predictor->program().meta();
    if (num_features != nullptr) *num_features = meta.num_features;
    if (num_outputs != nullptr) *num_outputs = meta.num_outputs;
    if (num_trees != nullptr) *num_trees = meta.num_trees;
    return {};
  });
}

fvm_status fvm_program_width(const fvm_program* program, fvm_output output, uint32_t* width) {
  return guarded("fvm_program_width", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    FVM_ASSIGN(const OutputKind kind, known_output(output));
    if (width == nullptr) return usage("there is nowhere to put the width: its pointer is null");
    *width = output_width(program->predictor->program().meta(), kind);
    return {};
  });
}

const char* fvm_program_description(const fvm_program* program) {
  const auto check = [&] { return check_handle(program); };
  return guarded("fvm_program_description", check) == FVM_OK ? program->description.c_str() : nullptr;
}

fvm_status fvm_program_text(const fvm_program* program, fvm_text which, const char** text, size_t* size) {
  static constexpr StringId kStrings[] = {StringId::Format, StringId::Trainer, StringId::Version,
                                          StringId::Objective, StringId::Schedule};
  const auto find = [&](const Program& known) -> Result<std::string_view> {
    if (which == FVM_TEXT_FINGERPRINT) return std::string_view(program->fingerprint);
    if (which < 0 || which > FVM_TEXT_FINGERPRINT) return usage("there is no text " + std::to_string(which));
    return known.text(kStrings[which]);
  };
  return give_text("fvm_program_text", program, text, size, find);
}

fvm_status fvm_program_name_counts(const fvm_program* program, uint32_t* feature_names,
                                   uint32_t* class_labels) {
  return guarded("fvm_program_name_counts", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    const ProgramMeta& meta = program->names->program().meta();
    if (feature_names != nullptr) *feature_names = meta.num_feature_names;
    if (class_labels != nullptr) *class_labels = meta.num_class_labels;
    return {};
  });
}

fvm_status fvm_program_feature_name(const fvm_program* program, uint32_t feature, const char** name,
                                    size_t* size) {
  return give_text("fvm_program_feature_name", program, name, size,
                   [&](const Program& known) -> Result<std::string_view> {
                     FVM_TRY(check_below(feature, known.meta().num_feature_names, "names of features"));
                     return known.feature_name(feature);
                   });
}

fvm_status fvm_program_class_label(const fvm_program* program, uint32_t label, const char** text,
                                   size_t* size) {
  return give_text("fvm_program_class_label", program, text, size,
                   [&](const Program& known) -> Result<std::string_view> {
                     FVM_TRY(check_below(label, known.meta().num_class_labels, "class labels"));
                     return known.class_label(label);
                   });
}

fvm_status fvm_program_categories(const fvm_program* program, uint32_t feature, uint32_t* count,
                                  double* unseen) {
  return guarded("fvm_program_categories", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (count == nullptr || unseen == nullptr)
      return usage("there is nowhere to put the answer: a pointer is null");
    const Program& known = program->names->program();
    FVM_TRY(check_below(feature, known.meta().num_features, "features"));
    const CategoryNames* const named = known.named_categories(feature);
    *count = named == nullptr ? 0 : named->count;
    *unseen = named == nullptr || named->refuses_unseen != 0 ? -1 : named->unseen;
    return {};
  });
}

fvm_status fvm_program_category_name(const fvm_program* program, uint32_t feature, uint32_t category,
                                     const char** name, size_t* size) {
  return give_text("fvm_program_category_name", program, name, size,
                   [&](const Program& known) -> Result<std::string_view> {
                     FVM_TRY(check_below(feature, known.meta().num_features, "features"));
                     const CategoryNames* const named = known.named_categories(feature);
                     FVM_TRY(check_below(category, named == nullptr ? 0 : named->count,
                                         "names of categories of feature " + std::to_string(feature)));
                     return known.category_name(feature, category);
                   });
}

fvm_status fvm_program_category_code(const fvm_program* program, uint32_t feature, const char* name,
                                     size_t size, double* code) {
  return guarded("fvm_program_category_code", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (code == nullptr || (name == nullptr && size != 0)) return usage("the name or the code is null");
    FVM_TRY(check_below(feature, program->names->program().meta().num_features, "features"));
    const CategoryTexts& texts = program->names->categories();
    if (!texts.takes(feature))
      return usage("feature " + std::to_string(feature) +
                   " has no names of categories, and is not compared as text");
    FVM_ASSIGN(*code, texts.number_of(feature, std::string_view(name, size)));
    return {};
  });
}

fvm_status fvm_context_create(const fvm_program* program, fvm_context** context) {
  return guarded("fvm_context_create", [&]() -> Result<void> {
    if (context == nullptr) return usage("there is nowhere to put the context: its pointer is null");
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
    if (byte_count == nullptr) return usage("there is nowhere to put the size: its pointer is null");
    const std::size_t columns = program->predictor->program().section_Columns().size();
    *byte_count = coded_bytes(row_count, columns);
    if (*byte_count != std::numeric_limits<std::size_t>::max()) return {};
    return usage(std::to_string(row_count) + " rows of " + std::to_string(columns) +
                 " columns are more than memory holds");
  });
}

fvm_status fvm_predict(fvm_context* context, const fvm_rows* rows, fvm_output output, fvm_type type,
                       void* out, size_t capacity) {
  const auto rows_for = [&](const ContextInUse& used) { return used.known_rows(rows); };
  return predict("fvm_predict", context, rows_for, output, type, nullptr, out, capacity);
}

fvm_status fvm_predict_with(fvm_context* context, const fvm_rows* rows, fvm_output output, fvm_type type,
                            const fvm_call_options* options, void* out, size_t capacity) {
  const auto rows_for = [&](const ContextInUse& used) { return used.known_rows(rows); };
  return predict("fvm_predict_with", context, rows_for, output, type, options, out, capacity);
}

fvm_status fvm_predict_f32(fvm_context* context, const float* rows, size_t row_count, size_t row_stride,
                           fvm_output output, float* out, size_t capacity) {
  const auto rows_for = [&](const ContextInUse&) -> Result<AnyRows> {
    return AnyRows(RowBlock{rows, row_count, row_stride});
  };
  return predict("fvm_predict_f32", context, rows_for, output, FVM_TYPE_FLOAT32, nullptr, out, capacity);
}

fvm_status fvm_encode(fvm_context* context, const fvm_rows* rows, uint8_t* out, size_t capacity,
                      fvm_rows* encoded) {
  return guarded("fvm_encode", [&]() -> Result<void> {
    FVM_ASSIGN(const ContextInUse used, ContextInUse::take(context));
    FVM_ASSIGN(const AnyRows known, used.known_rows(rows));
    if (out == nullptr && row_count(known) != 0) return usage("the output is null");
    if (encoded == nullptr) return usage("there is nowhere to put the encoded rows: their pointer is null");
    FVM_TRY(check_size(encoded, "encoded", "fvm_rows", "FVM_ROWS_INIT"));
    FVM_ASSIGN(const CodedRows coded, used.predictor().encode(used.memory(), known, {out, capacity}));
    set_rows(coded, encoded);
    return {};
  });
}
