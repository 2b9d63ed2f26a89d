// The progress bar: when it is drawn, and that it stays within the terminal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <forestvm/compile.hpp>

#include "cli/batches.hpp"
#include "cli/progress.hpp"
#include "support/small_models.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_progress {
namespace {

std::string read_some(int from) {
  std::string text(1000, '\0');
  const ssize_t size = ::read(from, text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

/// Returns what a progress bar writes into a pipe.
std::string drawn(std::chrono::milliseconds delay, bool always) {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
  {
    Progress progress(ends[1], 200, delay, always);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    progress.show(50);
    progress.show(51);  // too soon after the first
  }
  const std::string text = read_some(ends[0]);
  ::close(ends[0]);
  ::close(ends[1]);
  return text;
}

TEST(ProgressBar, IsDrawnLateAndWiped) {
  EXPECT_EQ(drawn(std::chrono::milliseconds(1), true),
            "\r[##########                              ] 25%  50 of 200 rows\x1b[K\r\x1b[K");
}

TEST(ProgressBar, IsNotDrawnForShortWorkOrWithoutATerminal) {
  EXPECT_EQ(drawn(std::chrono::seconds(60), true), "");
  EXPECT_EQ(drawn(std::chrono::milliseconds(0), false), "");
}

/// A pseudo-terminal.
struct Terminal {
  int master = -1, slave = -1;

  Terminal() { EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(master);
    ::close(slave);
  }

  void resize(unsigned short columns) const {
    winsize size{};
    size.ws_col = columns;
    EXPECT_EQ(::ioctl(slave, TIOCSWINSZ, &size), 0);
  }
};

/// The width of the terminal changes between two drawings.
TEST(ProgressBar, StaysWithinTheTerminalAlsoWhenItChanges) {
  const Terminal terminal;
  Progress progress(terminal.slave, 100'000'000, std::chrono::milliseconds(0));
  const auto shown = [&](unsigned short columns) {
    terminal.resize(columns);
    std::this_thread::sleep_for(std::chrono::milliseconds(101));  // bars are drawn at most every 100 ms
    progress.show(12'345'678);
    const std::string text = read_some(terminal.master);
    EXPECT_TRUE(text.starts_with("\r") && text.ends_with("\x1b[K")) << text;
    return text.size() < 4 ? text : text.substr(1, text.size() - 4);
  };
  const std::string text = "12%  12345678 of 100000000 rows";
  EXPECT_EQ(shown(200), "[####" + std::string(36, ' ') + "] " + text);
  EXPECT_EQ(shown(75), "[####" + std::string(36, ' ') + "] " + text);
  EXPECT_EQ(shown(74), "[####" + std::string(35, ' ') + "] " + text);
  EXPECT_EQ(shown(45), "[#" + std::string(9, ' ') + "] " + text);
  EXPECT_EQ(shown(44), text);
  EXPECT_EQ(shown(32), text);
  EXPECT_EQ(shown(31), "12%");
  EXPECT_EQ(shown(2), "1");
  EXPECT_EQ(shown(0), "[####" + std::string(36, ' ') + "] " + text);  // the terminal does not tell its width
}

/// Redirects a standard stream until the destructor runs.
class Redirected {
 public:
  Redirected(int stream, int to) : stream_(stream), saved_(::dup(stream)) { ::dup2(to, stream); }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  ~Redirected() {
    ::dup2(saved_, stream_);
    ::close(saved_);
  }

 private:
  int stream_, saved_;
};

/// Predictions on the terminal and a bar would mix on one line.
TEST(ProgressBar, IsNotDrawnWherePredictionsAreSeen) {
  const support::TemporaryFolder folder;
  const Model model = support::small_model("small");
  const auto compiled = compile(model, {});
  ASSERT_TRUE(compiled.ok());
  std::string row;
  for (std::uint32_t i = 0; i < model.num_features; ++i) row += i == 0 ? "0.5" : ",0.5";
  const auto batches =
      Batches::open({folder.write("rows.csv", row + "\n" + row + "\n"), 1, {}}, compiled->program, 4);
  ASSERT_TRUE(batches.ok()) << batches.error().text();
  const Terminal terminal;
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const auto has_bar = [&](int out, const char* output) {
    const Redirected output_stream(STDOUT_FILENO, out), error_stream(STDERR_FILENO, terminal.slave);
    return batches->progress(output).is_on();
  };
  EXPECT_FALSE(has_bar(terminal.slave, "-"));
  EXPECT_TRUE(has_bar(terminal.slave, "predictions.csv"));
  EXPECT_TRUE(has_bar(file, "-"));
  ::close(file);
}

}  // namespace
}  // namespace forestvm::cli::test_progress
