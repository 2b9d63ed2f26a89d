// The forestvm program. Everything but main is in a library, so that tests can call it.
#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/io/unfinished.hpp"

namespace {

/// A file opened while 0, 1 or 2 is closed would get that number and then be read or overwritten as a
/// standard stream. Each gets a stand-in on which its real use fails.
void occupy_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (::fcntl(stream, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace

int main(int count, char** words) {
  occupy_standard_streams();
  forestvm::cli::remove_unfinished_on_signals();
  return forestvm::cli::forestvm_main({words + (count > 0 ? 1 : 0), words + count});
}
