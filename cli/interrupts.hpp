// Lets work that has something to show end early: Ctrl-C and SIGTERM ask for that, instead of ending the program.
#pragma once

#include <signal.h>

#include <array>

namespace forestvm::cli {

/// While one exists, the first SIGINT or SIGTERM only sets a flag; a second one ends the program. Ignored signals stay
/// ignored. The earlier handlers return with the destructor. There is at most one at a time.
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
