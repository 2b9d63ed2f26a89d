// Implements the GPU backends of forestvm/backend.hpp: finds the vendor's library, loads it, and asks it for a device.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/gpu/plugin.hpp"
#include "kernels/gpu/vendor_libraries.hpp"

namespace forestvm {
namespace kernels {
namespace {

// Paths are strings here, and files are read without streams: std::filesystem and streams would each add symbols, and
// so a page or more, to small libraries.

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct Free {
  void operator()(char* text) const { std::free(text); }
};

/// Returns the path of the library or program that contains this code, or nothing if it is unknown. The path comes from
/// the kernel, because dladdr() would give the path by which the loader was asked, which may be relative to a folder
/// that the process has left since.
std::string own_file() {
  constexpr std::size_t kLongestLine = 8192;  // a path has at most 4,096 bytes
  static const char kHere = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&kHere);
  const std::unique_ptr<std::FILE, CloseFile> maps(std::fopen("/proc/self/maps", "re"));
  std::array<char, kLongestLine> line{};
  while (maps != nullptr && std::fgets(line.data(), static_cast<int>(line.size()), maps.get()) != nullptr) {
    // Each line begins with the first address and the one behind the last: 7f35a2c00000-7f35a2c28000
    char* rest = nullptr;
    const std::uintptr_t begin = std::strtoul(line.data(), &rest, 16);
    const std::uintptr_t end = *rest == '-' ? std::strtoul(rest + 1, &rest, 16) : 0;
    if (here < begin || here >= end) continue;
    rest[std::strcspn(rest, "\n")] = '\0';
    const char* const path = std::strchr(rest, '/');
    return path == nullptr ? "" : path;
  }
  return {};
}

/// Returns the path of the program that the process runs, or nothing if it is unknown.
std::string program_file() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return {path.data(), length < 0 ? 0 : static_cast<std::size_t>(length)};
}

bool is_there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// Returns a path that stays valid when the process leaves its folder.
std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  const std::unique_ptr<char, Free> folder(getcwd(nullptr, 0));
  return folder == nullptr ? path : formatted("{}/{}", folder.get(), path);
}

/// Returns the path of the vendor's library, or its name alone if the loader has to look for it.
Result<std::string> find_library(const VendorLibrary& library) {
  if (const char* const chosen = secure_getenv("FORESTVM_PLUGINS"); chosen != nullptr && *chosen != '\0') {
    const std::string path = formatted("{}/{}", chosen, library.file);
    if (is_there(path)) return absolute(path);
    return absent(
        library,
        formatted("there is no {}; the environment variable FORESTVM_PLUGINS names its folder", path));
  }
  for (const std::string& file : {own_file(), program_file()}) {
    const std::size_t folder_ends = file.rfind('/');
    if (folder_ends == std::string::npos) continue;
    for (const char* const beside : {"", FORESTVM_PLUGIN_FOLDER "/"}) {
      const std::string path =
          formatted("{}/{}{}", std::string_view(file).substr(0, folder_ends), beside, library.file);
      if (is_there(path)) return path;
    }
  }
  return std::string(library.file);
}

/// Loads the vendor's library. It stays loaded, because objects that belong to it may outlive each predictor.
Result<const GpuPlugin*> load_plugin(GpuVendor vendor) {
  const VendorLibrary& file = library_of(vendor);
  FVM_ASSIGN(const std::string path, find_library(file));
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return absent(file,
                  formatted("{}; the environment variable FORESTVM_PLUGINS may name its folder", dlerror()));
  auto* const entry = reinterpret_cast<GpuPluginEntry*>(dlsym(library, kGpuPluginEntry));
  if (entry == nullptr)
    return absent(file, formatted("{} is of another version of forestvm; install both from one build", path));
  const char* theirs = nullptr;
  const std::string ours = plugin_interface();
  const GpuPlugin* const plugin = entry(ours.c_str(), &theirs);
  if (plugin != nullptr) return plugin;
  return absent(
      file, formatted("{} is of another build of forestvm: {}; this one is {}; install both from one build",
                      path, theirs, ours));
}

}  // namespace
}  // namespace kernels

Result<std::unique_ptr<Predictor>> gpu_backend(const Program& program, const GpuOptions& options) {
  FVM_ASSIGN(const kernels::GpuPlugin* const plugin, kernels::load_plugin(options.vendor));
  FVM_ASSIGN(std::unique_ptr<kernels::Runtime> runtime, plugin->open(options.device));
  return kernels::make_predictor(program, std::move(runtime),
                                 formatted("a {} device", kernels::library_of(options.vendor).vendor));
}

Result<std::vector<std::string>> gpu_devices(GpuVendor vendor) {
  FVM_ASSIGN(const kernels::GpuPlugin* const plugin, kernels::load_plugin(vendor));
  return plugin->devices();
}

}  // namespace forestvm
