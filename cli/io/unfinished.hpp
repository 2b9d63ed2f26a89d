// Removes the file that is being written if a signal ends the program. Only SIGKILL and a power failure leave it
// behind.
#pragma once

#include <string>

namespace forestvm::cli {

/// Lets the signals that end a program (SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ) first
/// remove the unfinished file. Signals that are ignored, as nohup asks, stay ignored.
void remove_unfinished_on_signals();

/// A file that exists but is not complete, until the destructor or finished(). If there are several at a time, signals
/// remove only the first.
class Unfinished {
 public:
  Unfinished() = default;
  explicit Unfinished(const std::string& path);
  Unfinished(Unfinished&& other) noexcept;
  Unfinished& operator=(Unfinished&& other) noexcept;
  /// Removes the file, unless finished() was called.
  ~Unfinished();

  bool exists() const { return !path_.empty(); }
  const std::string& path() const { return path_; }

  /// Declares the file complete, so that it is not removed any more.
  void finished();

 private:
  std::string path_;
  bool watched_ = false;
};

}  // namespace forestvm::cli
