// C functions that open, close and describe programs.
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>

#include "bindings/c/handles.hpp"

namespace {

using namespace forestvm;
using namespace forestvm::c_api;

Result<void> known_verification(fvm_verification verification) {
  if (verification == FVM_VERIFY_FULL || verification == FVM_VERIFY_TRUST) return {};
  return usage("options.verification is {}, not FVM_VERIFY_FULL or FVM_VERIFY_TRUST", verification);
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
  return usage("the vendor is {}, not FVM_GPU_CUDA or FVM_GPU_HIP", vendor);
}

Result<fvm_gpu_options> known_options(const fvm_gpu_options* options) {
  if (options == nullptr) return fvm_gpu_options FVM_GPU_OPTIONS_INIT;
  FVM_ASSIGN(const fvm_gpu_options known,
             known_fields(options, "options", "fvm_gpu_options", "FVM_GPU_OPTIONS_INIT"));
  FVM_TRY(known_verification(known.verification));
  FVM_TRY(known_vendor(known.vendor));
  return known;
}

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

/// Makes the handle of a program.
Result<void> give_handle(std::shared_ptr<const Predictor> predictor, fvm_program** program) {
  auto opened = std::make_unique<fvm_program>();
  opened->description = predictor->describe();
  opened->fingerprint = fingerprint_text(predictor->program());
  opened->names = std::make_shared<const Names>(predictor->program());
  opened->predictor = std::move(predictor);
  *program = opened.release();
  return {};
}

Result<Program> load_program(const char* path, Verification verification) {
  if (path == nullptr) return usage("the path is null");
  auto loaded = Program::load(path, verification);
  if (loaded) return loaded;
  return Error{loaded.error().code, path, loaded.error().text()};
}

/// A program's image in the caller's memory.
struct ImageBytes {
  const void* data;
  std::size_t size;
};

Result<std::span<const std::byte>> image_bytes(const ImageBytes& image) {
  if (image.data == nullptr) return usage("the image is null");
  if (image.size > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()))
    return usage("an image of {} bytes is more than memory holds", image.size);
  return std::span(static_cast<const std::byte*>(image.data), image.size);
}

Result<Program> load_program(const ImageBytes& image, Verification verification) {
  FVM_ASSIGN(const auto bytes, image_bytes(image));
  return Program::from_bytes(bytes, verification);
}

/// An image that stays in the caller's memory until the last copy of the owner is gone.
struct BorrowedImage {
  ImageBytes image;
  const std::shared_ptr<const void>& owner;
};

Result<Program> load_program(const BorrowedImage& borrowed, Verification verification) {
  FVM_ASSIGN(const auto bytes, image_bytes(borrowed.image));
  return Program::borrow(bytes, borrowed.owner, verification);
}

/// Makes the handle of a program that has been loaded.
template <class Options>
Result<void> give_program(Result<Program> loaded, const Options& options, fvm_program** program) {
  if (!loaded) return loaded.error();
  FVM_ASSIGN(std::shared_ptr<const Predictor> predictor, backend(*loaded, options));
  return give_handle(std::move(predictor), program);
}

/// Opens the program at a source: a path, an image, or a borrowed image.
template <class Options, class Source>
Result<void> open_program(const Source& source, const Options* given, fvm_program** program) {
  if (program == nullptr) return usage("the pointer to the program is null");
  *program = nullptr;
  FVM_ASSIGN(const Options options, known_options(given));
  const bool full = options.verification == FVM_VERIFY_FULL;
  return give_program(load_program(source, full ? Verification::Full : Verification::Trust), options,
                      program);
}

template <class Options, class Source>
fvm_status open_guarded(const char* function, const Source& source, const Options* options,
                        fvm_program** program) {
  return guarded(function, [&] { return open_program(source, options, program); });
}

}  // namespace

const char* fvm_version(void) { return FORESTVM_VERSION; }

fvm_status fvm_program_open(const char* path, const fvm_open_options* options, fvm_program** program) {
  return open_guarded("fvm_program_open", path, options, program);
}

fvm_status fvm_program_open_memory(const void* image, size_t size, const fvm_open_options* options,
                                   fvm_program** program) {
  return open_guarded("fvm_program_open_memory", ImageBytes{image, size}, options, program);
}

fvm_status fvm_program_open_borrowed(const void* image, size_t size, void (*release)(void* user), void* user,
                                     const fvm_open_options* options, fvm_program** program) {
  return guarded("fvm_program_open_borrowed", [&]() -> Result<void> {
    if (program != nullptr) *program = nullptr;  // also if there is no memory for the owner
    const auto give_back = [release, user](const void*) {
      if (release != nullptr) release(user);
    };
    const std::shared_ptr<const void> owner(image, give_back);  // calls give_back if it throws
    return open_program(BorrowedImage{{image, size}, owner}, options, program);
  });
}

fvm_status fvm_program_open_gpu(const char* path, const fvm_gpu_options* options, fvm_program** program) {
  return open_guarded("fvm_program_open_gpu", path, options, program);
}

fvm_status fvm_program_open_gpu_memory(const void* image, size_t size, const fvm_gpu_options* options,
                                       fvm_program** program) {
  return open_guarded("fvm_program_open_gpu_memory", ImageBytes{image, size}, options, program);
}

fvm_status fvm_gpu_count(fvm_gpu_vendor vendor, uint32_t* count) {
  return guarded("fvm_gpu_count", [&]() -> Result<void> {
    if (count == nullptr) return usage("the pointer to the count is null");
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

const char* fvm_program_description(const fvm_program* program) {
  const auto check = [&] { return check_handle(program); };
  return guarded("fvm_program_description", check) == FVM_OK ? program->description.c_str() : nullptr;
}
