// See interrupts.hpp.
#include "cli/interrupts.hpp"

#include <atomic>
#include <cstddef>

namespace forestvm::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};
std::atomic<bool> has_come{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void remember_signal(int) { has_come.store(true); }

}  // namespace

Interrupts::Interrupts() {
  has_come.store(false);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &earlier_[i]);
    if (earlier_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = remember_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &earlier_[i], nullptr);
}

bool Interrupts::came() { return has_come.load(); }

}  // namespace forestvm::cli
