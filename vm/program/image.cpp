// The memory of a program: a private mapping of a file, or an aligned copy. In: a path or bytes. Out: a
// Program that has been verified.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/leaf_functions.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "vm/program/format.hpp"
#include "vm/program/verify/verify.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm {

struct Program::Image {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  enum class Memory { Allocated, Mapped, Borrowed } memory = Memory::Allocated;
  std::shared_ptr<const void> owner{};  ///< Borrowed: keeps the memory alive.
  mutable std::once_flag code_followed{};
  mutable CodeMap code{};  ///< Set once `code_followed` is.

  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() {
    // This process does not write to the memory after it is filled, so `data` points to constants.
    if (memory == Memory::Mapped) ::munmap(const_cast<std::byte*>(data), size);
    if (memory == Memory::Allocated) std::free(const_cast<std::byte*>(data));
  }
};

/// Builds Programs. It is the one friend of Program.
class ProgramImage {
 public:
  static Result<Program> finish(std::shared_ptr<const Program::Image> image, Verification verification) {
    const std::span<const std::byte> bytes{image->data, image->size};
    FVM_TRY(bytecode::verify_container(bytes, verification == Verification::Full));
    Program program{std::move(image)};
    FVM_TRY(bytecode::verify_tables(program));
    FVM_TRY(bytecode::verify_derived_columns(program));
    FVM_TRY(bytecode::verify_encoder(program));
    if (verification == Verification::Full) {
      FVM_TRY(bytecode::verify_explained_trees(program));
      FVM_TRY(bytecode::verify_attributions(program));
      FVM_TRY(bytecode::verify_samples(program));
      FVM_TRY(bytecode::verify_forest(program));
      FVM_TRY(bytecode::verify_walkers(program));
      FVM_TRY(bytecode::verify_operands(program));
      FVM_ASSIGN(CodeMap map, bytecode::verify_code(program));
      FVM_TRY(bytecode::verify_paths(program, map));
      std::call_once(program.image_->code_followed, [&] { program.image_->code = std::move(map); });
    }
    return program;
  }

  static const CodeMap& code(const Program& program) {
    const Program::Image& image = *program.image_;
    std::call_once(image.code_followed, [&] {
      auto map = bytecode::verify_code(program);
      FVM_CHECK(map.ok());
      image.code = std::move(*map);
    });
    return image.code;
  }

  template <class Write>
  static Result<Program> written(std::size_t size, const Write& write, Verification verification) {
    auto image = std::make_shared<Program::Image>();
    const std::size_t room = bytecode::align_up(size + 1);
    auto* const data = static_cast<std::byte*>(std::aligned_alloc(kSectionAlignment, room));
    if (data == nullptr)
      return fail(ErrorCode::Environment, formatted("out of memory: the program needs {} bytes", room));
    image->data = data;
    image->size = size;
    write(std::span(data, size));
    return finish(std::move(image), verification);
  }

  static Result<Program> map(int file, std::size_t size, Verification verification) {
    auto image = std::make_shared<Program::Image>();
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED)
      return fail(ErrorCode::Environment, formatted("cannot map the file: {}", std::strerror(errno)));
    image->data = static_cast<std::byte*>(data);
    image->size = size;
    image->memory = Program::Image::Memory::Mapped;
    return finish(std::move(image), verification);
  }

  static Result<Program> borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                Verification verification) {
    auto image = std::make_shared<Program::Image>();
    image->data = bytes.data();
    image->size = bytes.size();
    image->memory = Program::Image::Memory::Borrowed;
    image->owner = std::move(owner);
    return finish(std::move(image), verification);
  }
};

namespace {

/// Closes a file descriptor at the end of a scope.
struct File {
  int descriptor;
  explicit File(int value) : descriptor(value) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

Failure io_error(std::string_view what) {
  return fail(ErrorCode::Environment, formatted("{}: {}", what, std::strerror(errno)));
}

/// Returns the file behind a chain of links, so that saving replaces the file and not the link.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

/// Creates a file of a new name beside `path`, with the permissions that any program's output gets (mkstemp's
/// are the owner's alone, and the process's mask cannot be read without changing it for all threads).
int create_beside(const std::string& path, std::string& name) {
  constexpr int kAttempts = 1000;  // names in use by other threads, or left by a process that was killed
  int descriptor = -1;
  for (int attempt = 0; attempt < kAttempts && descriptor < 0; ++attempt) {
    name = formatted("{}.{}-{}", path, ::getpid(), attempt);
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  return descriptor;
}

Result<void> write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

const CodeMap& code_map(const Program& program) { return ProgramImage::code(program); }

std::uint64_t encoder_id(const Program& program) {
  std::uint64_t id = checksum(std::as_bytes(program.encoded_features()));
  id = checksum(std::as_bytes(program.columns()), id);
  id = checksum(std::as_bytes(program.ranks()), id);
  id = checksum(std::as_bytes(program.category_columns()), id);
  id = checksum(std::as_bytes(program.category_words()), id);
  id = checksum(std::as_bytes(program.zero_missing()), id);
  id = checksum(std::as_bytes(program.wide_features()), id);
  id = checksum(std::as_bytes(program.wide_bounds()), id);
  id = checksum(std::as_bytes(program.hashed_features()), id);
  id = checksum(std::as_bytes(program.lookups()), id);
  id = checksum(std::as_bytes(program.key_parts()), id);
  id = checksum(std::as_bytes(program.lookup_words()), id);
  id = checksum(std::as_bytes(program.computed_columns()), id);
  id = checksum(std::as_bytes(program.column_terms()), id);
  const std::vector<std::uint32_t> features = leaf_features(program);
  return features.empty() ? id : checksum(std::as_bytes(std::span(features)), id);
}

Result<Program> Program::load(const std::string& path, Verification verification) {
  // Opening a FIFO would wait for a writer. O_NONBLOCK opens it at once, and it is refused below.
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.descriptor < 0) return io_error("cannot open");
  struct stat status;
  if (::fstat(file.descriptor, &status) != 0) return io_error("cannot read");
  if (S_ISDIR(status.st_mode)) return fail(ErrorCode::Environment, "is a directory");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::Environment, "is not a regular file, so it cannot be mapped");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size < sizeof(bytecode::FileHeader)) {
    std::byte bytes[sizeof(bytecode::FileHeader)];
    const ssize_t got = ::pread(file.descriptor, bytes, size, 0);
    if (got < 0) return io_error("cannot read");
    return from_bytes({bytes, static_cast<std::size_t>(got)}, verification);
  }
  return ProgramImage::map(file.descriptor, size, verification);
}

Result<Program> Program::from_bytes(std::span<const std::byte> bytes, Verification verification) {
  const auto copy = [bytes](std::span<std::byte> to) { std::copy(bytes.begin(), bytes.end(), to.begin()); };
  return ProgramImage::written(bytes.size(), copy, verification);
}

Result<Program> Program::borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                Verification verification) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(bytes.data()) % kSectionAlignment;
  if (beyond != 0)
    return usage(formatted("the image begins {} bytes after a multiple of {}, where only a copy can be used",
                           beyond, kSectionAlignment));
  return ProgramImage::borrow(bytes, std::move(owner), verification);
}

Result<Program> bytecode::make_program(std::size_t size,
                                       const std::function<void(std::span<std::byte>)>& write) {
  return ProgramImage::written(size, write, Verification::Full);
}

Result<void> Program::save(const std::string& path) const {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    return fail(ErrorCode::Environment, "is not a regular file, so it cannot be replaced");
  const std::string target = exists ? resolved(path) : path;
  std::string temporary;
  const File file{create_beside(target, temporary)};
  if (file.descriptor < 0) return io_error("cannot create a file beside it");
  const auto write = [&]() -> Result<void> {
    FVM_TRY(write_all(file.descriptor, image()));
    // The old file's permissions are kept if the process may set them.
    if (exists) static_cast<void>(::fchmod(file.descriptor, old.st_mode & 0777));
    if (::fsync(file.descriptor) != 0) return io_error("cannot write");
    if (::rename(temporary.c_str(), target.c_str()) != 0) return io_error("cannot replace the file");
    return {};
  };
  auto done = write();
  if (!done.ok()) ::unlink(temporary.c_str());
  return done;
}

std::span<const std::byte> Program::image() const { return {image_->data, image_->size}; }

std::span<const std::byte> Program::section(Section section) const {
  // Calls look sections up, so only the numbers that this needs are read.
  std::uint32_t count;
  std::memcpy(&count, image_->data + offsetof(bytecode::FileHeader, section_count), sizeof count);
  if (static_cast<std::size_t>(section) >= count) return {};
  const std::byte* const entry = image_->data + sizeof(bytecode::FileHeader) +
                                 static_cast<std::size_t>(section) * sizeof(bytecode::SectionEntry);
  std::uint64_t offset, size;
  std::memcpy(&offset, entry + offsetof(bytecode::SectionEntry, offset), sizeof offset);
  std::memcpy(&size, entry + offsetof(bytecode::SectionEntry, size), sizeof size);
  return image().subspan(offset, size);
}

const ProgramMeta& Program::meta() const { return records<ProgramMeta>(Section::Meta).front(); }

bool Program::mapped() const {
  return std::ranges::any_of(code(), [](const Inst& inst) { return inst.op == Op::Map; });
}

std::string_view Program::string(std::size_t index) const {
  const StringRef ref = strings()[index];
  return {text().data() + ref.offset, ref.size};
}

std::string_view Program::feature_name(std::uint32_t feature) const {
  if (feature >= meta().num_feature_names) return {};
  return string(static_cast<std::size_t>(StringId::Count) + feature);
}

std::string_view Program::class_label(std::uint32_t label) const {
  if (label >= meta().num_class_labels) return {};
  return string(static_cast<std::size_t>(StringId::Count) + meta().num_feature_names + label);
}

std::size_t Program::first_category_string(std::uint32_t feature) const {
  std::size_t first =
      static_cast<std::size_t>(StringId::Count) + meta().num_feature_names + meta().num_class_labels;
  for (const CategoryNames& named : category_names())
    if (named.feature < feature) first += named.count;
  return first;
}

const CategoryNames* Program::named_categories(std::uint32_t feature) const {
  const auto records = category_names();
  const auto at =
      std::lower_bound(records.begin(), records.end(), feature,
                       [](const CategoryNames& named, std::uint32_t f) { return named.feature < f; });
  return at == records.end() || at->feature != feature ? nullptr : &*at;
}

std::string_view Program::category_name(std::uint32_t feature, std::uint32_t code) const {
  return string(first_category_string(feature) + code);
}

std::vector<std::string_view> Program::category_names(std::uint32_t feature) const {
  std::vector<std::string_view> names;
  const CategoryNames* const named = named_categories(feature);
  if (named == nullptr) return names;
  const std::size_t first = first_category_string(feature);
  for (std::uint32_t code = 0; code < named->count; ++code) names.push_back(string(first + code));
  return names;
}

bool is_program(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof bytecode::kMagic &&
         std::memcmp(bytes.data(), bytecode::kMagic, sizeof bytecode::kMagic) == 0;
}

}  // namespace forestvm
