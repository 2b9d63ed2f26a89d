// See native.hpp.
#include "cli/native.hpp"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <forestvm/export.hpp>

extern char** environ;

namespace forestvm::cli {
namespace {

namespace fs = std::filesystem;

Error failed(const std::string& what) { return {ErrorCode::Environment, "native code", what}; }

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

template <class T>
using Entry = void (*)(const float*, std::size_t, std::size_t, T*);

template <class T>
Entry<T> entry(void* handle, const char* name) {
  void* const symbol = ::dlsym(handle, name);
  FVM_CHECK(symbol != nullptr);
  Entry<T> function = nullptr;
  std::memcpy(&function, &symbol, sizeof function);
  return function;
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

std::vector<float> NativeForest::raw(std::span<const float> rows, std::size_t count) const {
  std::vector<float> out(count * program_.meta().num_outputs);
  entry<float>(library_->handle, "forest_predict_raw")(rows.data(), count, program_.meta().num_features,
                                                       out.data());
  return out;
}

std::vector<std::int32_t> NativeForest::leaves(std::span<const float> rows, std::size_t count) const {
  std::vector<std::int32_t> out(count * program_.meta().num_trees);
  entry<std::int32_t>(library_->handle, "forest_predict_leaf")(rows.data(), count,
                                                               program_.meta().num_features, out.data());
  return out;
}

}  // namespace forestvm::cli
