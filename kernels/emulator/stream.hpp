// A stream of an emulated device. Its work is done in order, but not before somebody waits for it: if nobody
// does, it stays undone, so that tests see a wait that is missing. A stream whose owner captures it does none of
// the work that it is given meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::kernels::emulator {

/// A queue of work. It is used by one thread of the host at a time.
class Stream {
 public:
  using Work = std::function<Result<void>()>;

  void add(Work work) {
    if (captured_) {
      captures_.push_back(std::move(work));
      return;
    }
    work_.push_back(std::move(work));
    ++added_;
  }

  /// Returns the number of pieces of work that were ever added.
  std::uint64_t added() const { return added_; }

  /// Does the work up to the first `count` pieces that were ever added. If one fails, those after it
  /// are never done.
  Result<void> wait_for(std::uint64_t count) {
    while (!work_.empty() && added_ - work_.size() < count) {
      const Result<void> done = work_.front()();
      work_.pop_front();
      if (done.ok()) continue;
      work_.clear();
      return done;
    }
    return {};
  }
  Result<void> wait() { return wait_for(added_); }

  void begin_capture() { captured_ = true; }
  /// Ends the capture. Returns the work that was added meanwhile, which the owner may add at any time.
  std::vector<Work> end_capture() {
    captured_ = false;
    return std::exchange(captures_, {});
  }
  bool is_captured() const { return captured_; }

  /// The stream's number: no other stream has it, and none has 0, which stands for the default stream.
  std::uint64_t id() const { return id_; }

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
  }

  std::deque<Work> work_;
  std::uint64_t added_ = 0;
  bool captured_ = false;
  std::uint64_t id_ = next_id();
  std::vector<Work> captures_;
};

}  // namespace forestvm::kernels::emulator
