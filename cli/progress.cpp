// See progress.hpp.
#include "cli/progress.hpp"

#include <unistd.h>

#include <string>

namespace forestvm::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::size_t kWidth = 40;

void put(int stream, const std::string& text) {
  // A bar that cannot be drawn is no reason to stop.
  static_cast<void>(::write(stream, text.data(), text.size()) != 0);
}

}  // namespace

Progress::Progress(int stream, std::size_t total, std::chrono::milliseconds delay, bool always,
                   const char* unit)
    : stream_(stream),
      total_(total),
      on_(total > 0 && (always || ::isatty(stream) == 1)),
      unit_(unit),
      next_(Clock::now() + delay) {}

Progress::~Progress() {
  if (drawn_) put(stream_, "\r\x1b[K");
}

void Progress::show(std::size_t done) {
  if (!on_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kRedraw;
  drawn_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kWidth));
  put(stream_, "\r[" + std::string(filled, '#') + std::string(kWidth - filled, ' ') + "] " +
                   std::to_string(static_cast<int>(share * 100)) + "%  " + std::to_string(done) + " of " +
                   std::to_string(total_) + " " + unit_);
}

}  // namespace forestvm::cli
