// See unfinished.hpp.
#include "cli/io/unfinished.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <utility>

namespace forestvm::cli {
namespace {

constexpr std::array kEndingSignals = {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};

/// The path of the file that the signal handler removes, valid while is_watched is true. It is static, because a
/// handler may run at any time, even while objects are destroyed.
std::array<char, PATH_MAX> watched_path;
std::atomic<bool> is_watched{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void end_by_signal(int signal) {
  if (is_watched.load()) ::unlink(watched_path.data());
  // SA_RESETHAND has reset the handler, and the signal is blocked until the handler returns.
  ::raise(signal);
}

}  // namespace

void remove_unfinished_on_signals() {
  for (const int signal : kEndingSignals) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = end_by_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

Unfinished::Unfinished(const std::string& path) : path_(path) {
  if (is_watched.load() || path.size() >= watched_path.size()) return;
  std::memcpy(watched_path.data(), path.c_str(), path.size() + 1);
  is_watched.store(true);
  watched_ = true;
}

Unfinished::Unfinished(Unfinished&& other) noexcept
    : path_(std::exchange(other.path_, {})), watched_(std::exchange(other.watched_, false)) {}

Unfinished& Unfinished::operator=(Unfinished&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(watched_, other.watched_);
  return *this;
}

Unfinished::~Unfinished() {
  if (exists()) ::unlink(path_.c_str());
  finished();
}

void Unfinished::finished() {
  if (std::exchange(watched_, false)) is_watched.store(false);
  path_.clear();
}

}  // namespace forestvm::cli
