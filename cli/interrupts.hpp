// Takes Ctrl-C and SIGTERM as requests to end work early and keep its results, instead of ending the program.
#pragma once

#include <signal.h>

#include <array>

namespace forestvm::cli {

/// Catches signals while it exists: the first SIGINT or SIGTERM only sets a flag, and a second one ends the program.
/// Ignored signals stay ignored. The destructor restores the earlier handlers. At most one object may exist at a time.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  /// Returns whether a signal came.
  static bool came();

 private:
  std::array<struct sigaction, 2> earlier_{};
};

}  // namespace forestvm::cli
