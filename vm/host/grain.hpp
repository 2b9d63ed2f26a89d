// Decides how finely a parallel loop over rows is cut among threads. In: the times of calls with about as many
// rows, some shared among threads and some not. Out: the rows of a task. Long calls are always shared. For short
// calls both are tried, and the faster is taken: the cost of starting a task, beside the work in it, depends
// on the model, the machine and what else runs there, so it is measured.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace forestvm::host {

/// The number of rows of a task is a multiple of this, or of the loop's step if that is less, except in the last task.
inline constexpr std::uint32_t kGrainRows = 32;

/// The measurements of one parallel loop over rows. All threads that predict share them.
class Grain {
 public:
  using Clock = std::chrono::steady_clock;

  /// The division of one run of the loop into tasks.
  struct Tasks {
    std::uint32_t rows;  ///< Rows of a task.
    bool shared;         ///< True if tasks are shared among threads; false if one thread runs them.
    bool timed;          ///< True if record() must be told how long the run took.
  };

  /// Chooses the division of `rows` rows, of which a task takes at most `most`.
  Tasks divide(std::uint32_t rows, std::uint32_t most, unsigned threads);

  void record(std::uint32_t rows, bool shared, Clock::duration taken);

 private:
  /// The measurements of calls whose row counts have the same number of bits.
  struct Calls {
    std::atomic<std::uint32_t> count = 0;
    std::atomic<float> alone = 0, shared = 0;  ///< Nanoseconds per row; 0 if not known.
  };
  std::array<Calls, 33> calls_;
};

}  // namespace forestvm::host
