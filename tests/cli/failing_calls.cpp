// A library for LD_PRELOAD that makes a system call fail with EIO, as a disk may. FAILING_CALL names the call: fsync
// or close, of files that are not finished.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

bool fails(std::string_view call, int file) {
  const char* const failing = std::getenv("FAILING_CALL");
  if (failing == nullptr || call != failing) return false;
  char path[4096];
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return size > 0 && std::string_view(path, static_cast<std::size_t>(size)).ends_with(".unfinished");
}

int call(const char* name, int file) {
  using Call = int (*)(int);
  const auto real = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));
  const bool failing = fails(name, file);
  const int done = real(file);
  if (!failing) return done;
  errno = EIO;
  return -1;
}

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's names are reserved
extern "C" __attribute__((visibility("default"))) int fsync(int file) { return call("fsync", file); }
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's names are reserved
extern "C" __attribute__((visibility("default"))) int close(int file) { return call("close", file); }
