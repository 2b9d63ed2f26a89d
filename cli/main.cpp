// The forestvm program. Everything except main is in a library, so that tests can call it.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/io/unfinished.hpp"

namespace {

/// Returns whether the program ends for lack of memory. Either the exception that nothing caught says so, or there was
/// no memory for an exception, and then allocating still fails.
bool out_of_memory() noexcept {
  if (std::current_exception() == nullptr)
    return std::unique_ptr<void, decltype(&std::free)>(std::malloc(4096), &std::free) == nullptr;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Reports that memory ran out where no command can report it: before and after a command, in destructors (those of
/// nlohmann_json allocate), and in oneTBB's threads.
[[noreturn]] void end_without_memory() noexcept {
  constexpr std::string_view text = "forestvm: out of memory\n";
  if (!out_of_memory()) std::abort();
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()) != 0);
  ::_exit(forestvm::cli::exit_code(forestvm::ErrorCode::Environment));
}

/// Opens a stand-in for each closed standard stream. Otherwise a file could get the number 0, 1 or 2 and be
/// read or overwritten as a standard stream. Real use of a stand-in fails.
void occupy_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (::fcntl(stream, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace

int main(int count, char** words) {
  std::set_terminate(end_without_memory);
  occupy_standard_streams();
  forestvm::cli::remove_unfinished_on_signals();
  return forestvm::cli::forestvm_main({words + (count > 0 ? 1 : 0), words + count});
}
