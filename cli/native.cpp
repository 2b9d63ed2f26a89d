// See native.hpp.
#include "cli/native.hpp"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <forestvm/export.hpp>
#include <forestvm/internal/city_hash.hpp>

extern char** environ;

namespace forestvm::cli {
namespace {

namespace fs = std::filesystem;

Error failed(const std::string& what) { return fail(ErrorCode::Environment, "native code", what); }

/// A temporary folder of this process, removed by the destructor.
struct Folder {
  std::string path;

  Folder() {
    std::string name = (fs::temp_directory_path() / "forestvm-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

Result<void> compile_c(const std::string& source, const std::string& library) {
  const char* const words[] = {"cc",      "-std=c99", "-O1",           "-ffp-contract=off", "-fPIC",
                               "-shared", "-o",       library.c_str(), source.c_str(),      nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "cc", nullptr, nullptr, const_cast<char* const*>(words), environ);
  if (error != 0) return failed(std::string("cannot run the C compiler cc: ") + std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return failed(std::string("lost the C compiler: ") + std::strerror(errno));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return failed(WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "there is no C compiler cc"
                                                                  : "the C compiler cc failed");
  return {};
}

template <class Function>
Function* symbol(void* handle, const char* name) {
  void* const found = ::dlsym(handle, name);
  FVM_CHECK(found != nullptr);
  Function* function = nullptr;
  std::memcpy(&function, &found, sizeof function);
  return function;
}

/// Returns the code of a hashed feature's category.
std::int32_t code_of(double value, bool hashed) {
  if (hashed) return static_cast<std::int32_t>(value);
  return category_code(std::to_string(static_cast<long long>(value)));
}

/// Returns rows in the type that the program's code takes, with codes in the cells of hashed features.
template <class Cell>
std::vector<Cell> cells_of(const Program& program, const Rows& rows) {
  std::vector<Cell> cells(rows.count * rows.width);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<Cell>(rows.value(i));
  for (const std::uint32_t feature : program.hashed_features())
    for (std::size_t i = feature; i < cells.size(); i += rows.width) {
      const std::int32_t code = code_of(rows.value(i), rows.hashed);
      std::memcpy(&cells[i], &code, sizeof code);
    }
  return cells;
}

/// Calls a function of the code with rows in the type that the program compares.
template <class Out>
std::vector<Out> called(void* handle, const char* name, const Program& program, const Rows& rows,
                        std::size_t width) {
  std::vector<Out> out(rows.count * width);
  const auto call = [&](const auto& cells) {
    using Cell = typename std::decay_t<decltype(cells)>::value_type;
    symbol<void(const Cell*, std::size_t, std::size_t, Out*)>(handle, name)(cells.data(), rows.count,
                                                                            rows.width, out.data());
  };
  if (program.meta().row_type == ScalarType::Float64)
    call(cells_of<double>(program, rows));
  else
    call(cells_of<float>(program, rows));
  return out;
}

}  // namespace

struct NativeForest::Library {
  void* handle = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) ::dlclose(handle);
  }
};

Result<NativeForest> NativeForest::build(const Program& program) {
  FVM_ASSIGN(const ExportedC exported, export_c(program));
  const Folder folder;
  if (folder.path.empty())
    return failed(std::string("cannot make a temporary folder: ") + std::strerror(errno));
  const std::string source = folder.path + "/forest.c", object = folder.path + "/forest.so";
  std::ofstream file(source, std::ios::binary);
  if (!(file << exported.text).flush()) return failed("cannot write " + source);
  FVM_TRY(compile_c(source, object));
  auto library = std::make_shared<Library>();
  library->handle = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return failed(::dlerror());
  return NativeForest(program, std::move(library));
}

std::vector<float> NativeForest::raw(const Rows& rows) const {
  const std::uint32_t width = program_.meta().num_outputs;
  const char* const name = "forest_predict_raw";
  if (program_.meta().score_type == ScalarType::Float32)
    return called<float>(library_->handle, name, program_, rows, width);
  const auto wide = called<double>(library_->handle, name, program_, rows, width);
  std::vector<float> raw(wide.size());
  std::transform(wide.begin(), wide.end(), raw.begin(),
                 [](double score) { return static_cast<float>(score); });
  return raw;
}

std::vector<std::int32_t> NativeForest::leaves(const Rows& rows) const {
  return called<std::int32_t>(library_->handle, "forest_predict_leaf", program_, rows,
                              program_.meta().num_trees);
}

}  // namespace forestvm::cli
