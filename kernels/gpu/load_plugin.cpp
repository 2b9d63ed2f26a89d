// Implements the GPU backends of forestvm/backend.hpp: finds the vendor's library, loads it, and asks it for a device.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
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

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Returns the path of the library or program that contains this code, or nothing if it is unknown. The path comes from
/// the kernel, because dladdr() would give the path by which the loader was asked, which may be relative to a folder
/// that the process has left since. Streams would add symbols and so a page to small libraries.
fs::path own_file() {
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

/// Returns the folders of the library that contains this code, and of the program.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  if (const fs::path file = own_file(); !file.empty()) folders.push_back(file.parent_path());
  std::error_code failed;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", failed); !failed)
    folders.push_back(program.parent_path());
  return folders;
}

/// Returns the path of the vendor's library, or its name alone if the loader has to look for it.
Result<std::string> find_library(const VendorLibrary& library) {
  std::error_code ignored;
  if (const char* const chosen = secure_getenv("FORESTVM_PLUGINS"); chosen != nullptr && *chosen != '\0') {
    const fs::path path = fs::path(chosen) / library.file;
    if (fs::exists(path, ignored)) return fs::absolute(path).string();
    return absent(library,
                  formatted("there is no {}; the environment variable FORESTVM_PLUGINS names its folder",
                            path.string()));
  }
  for (const fs::path& folder : own_folders())
    for (const fs::path& candidate : {folder, folder / FORESTVM_PLUGIN_FOLDER})
      if (fs::exists(candidate / library.file, ignored)) return (candidate / library.file).string();
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
