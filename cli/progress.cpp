// See progress.hpp.
#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr const char* kEraseRest = "\x1b[K";  ///< code that erases the rest of the terminal's line
constexpr std::size_t kWidth = 40;            ///< columns of the bar if there is room for them
constexpr std::size_t kMinWidth = 10;         ///< fewest columns of a bar; with less room there is none
constexpr std::size_t kUsualColumns = 80;     ///< width of a terminal that does not tell it

/// Returns the terminal's current width, which may have changed since the last call.
std::size_t columns_of(int stream) {
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : kUsualColumns;
}

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
  if (drawn_) put(stream_, std::string("\r") + kEraseRest);
}

void Progress::show(std::size_t done, const std::string& note) {
  if (!on_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kRedraw;
  drawn_ = true;
  put(stream_, '\r' + line(done, note) + kEraseRest);
}

/// Returns a line shorter than the terminal is wide: in the last column the cursor would move to the next
/// line.
std::string Progress::line(std::size_t done, const std::string& note) const {
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const std::string percent = formatted("{}%", static_cast<int>(share * 100));
  const std::string text = formatted("{}  {} of {} {}", percent, done, total_, unit_);
  const std::size_t room = columns_of(stream_) - 1, around = std::string_view("[] ").size();
  if (room < text.size()) return percent.substr(0, room);
  if (!note.empty()) return (formatted("{}  {}", text, note)).substr(0, room);
  if (room < text.size() + around + kMinWidth) return text;
  const std::size_t width = std::min(kWidth, room - text.size() - around);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return formatted("[{}{}] {}", std::string(filled, '#'), std::string(width - filled, ' '), text);
}

}  // namespace forestvm::cli
