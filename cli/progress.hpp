// A progress bar. It is drawn only on a terminal, within its width, and only if the work takes longer than a delay,
// usually a second.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace forestvm::cli {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// Draws on the file descriptor `stream`, usually 2, if it is a terminal or `always` is true. `unit` names the
  /// things that are counted.
  Progress(int stream, std::size_t total, std::chrono::milliseconds delay = std::chrono::seconds(1),
           bool always = false, const char* unit = "rows");
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Erases the bar.
  ~Progress();

  /// Returns whether the bar is ever drawn.
  bool is_on() const { return on_; }

  /// Shows that `done` of `total` units are done. A note takes the place of the bar, as far as there is room.
  void show(std::size_t done, const std::string& note = {});

 private:
  std::string line(std::size_t done, const std::string& note) const;

  int stream_;
  std::size_t total_;
  bool on_;
  const char* unit_;
  bool drawn_ = false;
  Clock::time_point next_;  // Nothing is drawn before this time.
};

}  // namespace forestvm::cli
