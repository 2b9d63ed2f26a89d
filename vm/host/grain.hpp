// How finely a parallel loop over rows is cut among threads. In: how long calls of about as many rows took,
// shared and not. Out: the rows of a task. Long calls are always shared; of short ones both ways are tried,
// and the faster is taken: what starting a task costs beside the work in it depends on the model, the machine
// and what else runs there, so it is measured.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace forestvm::host {

/// The number of rows of a task is a multiple of this, except in the last task.
inline constexpr std::uint32_t kGrainRows = 32;

/// What is known of one parallel loop over rows. All threads that predict share it.
class Grain {
 public:
  using Clock = std::chrono::steady_clock;

  /// How one run of the loop is divided into tasks.
  struct Cut {
    std::uint32_t rows;  ///< of a task
    bool shared;
    bool timed;  ///< record() is to be told how long it took
  };

  /// Chooses for `rows` rows, of which a task takes at most `most`.
  Cut cut(std::uint32_t rows, std::uint32_t most, unsigned threads);

  void record(std::uint32_t rows, bool shared, Clock::duration taken);

 private:
  /// What is known of calls whose row counts have the same number of bits.
  struct Calls {
    std::atomic<std::uint32_t> count = 0;
    std::atomic<float> alone = 0, shared = 0;  ///< nanoseconds of a row; 0: not known
  };
  std::array<Calls, 33> calls_;
};

}  // namespace forestvm::host
