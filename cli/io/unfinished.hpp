// The file that is being written, removed when a signal ends the program: what only an end by SIGKILL or a
// power failure leaves behind.
#pragma once

#include <string>

namespace forestvm::cli {

/// Lets the signals that end a program (SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ) remove
/// the unfinished file first, and end it all the same. Those that are ignored, as nohup asks, stay ignored.
void remove_unfinished_on_signals();

/// A file that is there from now on and not complete; the destructor, or finished(), ends that. Of several at
/// a time, signals remove the first.
class Unfinished {
 public:
  Unfinished() = default;
  explicit Unfinished(const std::string& path);
  Unfinished(Unfinished&& other) noexcept;
  Unfinished& operator=(Unfinished&& other) noexcept;
  ~Unfinished();  ///< removes the file

  bool exists() const { return !path_.empty(); }
  const std::string& path() const { return path_; }

  /// The file has got its name: it is left where it is.
  void finished();

 private:
  std::string path_;
  bool watched_ = false;
};

}  // namespace forestvm::cli
