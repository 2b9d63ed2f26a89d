// See grid.hpp.
#include "kernels/vendor/emulator/grid.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>

#include <forestvm/internal/float_environment.hpp>
#include <forestvm/internal/formatted.hpp>

#include "kernels/vendor/emulator/bulk_copies.hpp"
#include "kernels/vendor/emulator/sanitizers.hpp"

namespace forestvm::kernels::emulator {
namespace {

namespace context = boost::context;

/// Bytes of a thread's stack. Sanitizers make large frames, and only pages that are used take memory.
constexpr std::size_t kStackBytes = 256u << 10;

/// Most blocks whose threads take turns at the same time, and most threads of these blocks.
constexpr std::size_t kBlocksTogether = 4, kThreadsTogether = 2048;

struct NoStacks {
  void deallocate(context::stack_context&) const {}
};

/// The state of a thread between its turns.
enum class State { Ready, AtBarrier, AtShuffle, AtBulkCopies, Done };

/// An asynchronous copy that its thread has not waited for.
struct PendingCopy {
  std::byte* to;
  const std::byte* from;
  unsigned bytes;
};

struct Fiber {
  Thread thread{};
  State state = State::Done;
  std::uint32_t barrier = 0;  ///< number of the barrier or shuffle at which it waits
  std::array<std::byte, kMaxShuffled> given{}, taken{};
  unsigned by = 0;  ///< lanes from its own to the one whose value it takes
  std::vector<PendingCopy> copies;
  BulkCopies* bulk = nullptr;      ///< bulk copies of its block
  std::size_t number = 0;          ///< number of the thread in its block
  std::uint32_t bulk_barrier = 0;  ///< offset of the barrier at which it waits for bulk copies
  std::string fault;               ///< rule that the thread broke by itself; empty if it broke none
  std::size_t shared_bytes = 0;    ///< Grid::shared_bytes
  std::uint32_t forgotten = 0;     ///< Grid::forgotten
  context::fiber fiber;
  context::fiber back;
  FiberSwitch switching;

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (!fiber) return;
    switching.begin_upkeep();
    fiber = {};
    switching.end_upkeep();
  }
};

/// The thread whose turn it is. Each thread of the host has its own, because a fiber always runs on the same one.
thread_local Fiber* current = nullptr;

thread_local std::uint64_t atomics = 0;

std::string name_of(const Thread& thread) {
  const auto triple = [&](std::size_t from) {
    return formatted("({}, {}, {})", thread.index[from], thread.index[from + 1], thread.index[from + 2]);
  };
  return formatted("thread {} of block {}", triple(3), triple(0));
}

std::string waits_at(const Fiber& fiber) {
  switch (fiber.state) {
    case State::Ready:
      return "runs";
    case State::AtBarrier:
      return formatted("waits at instruction {}", fiber.barrier);
    case State::AtShuffle:
      return formatted("waits at the shuffle of instruction {}", fiber.barrier);
    case State::AtBulkCopies:
      return formatted("waits for bulk copies at instruction {}", fiber.barrier);
    case State::Done:
      return "has left";
  }
  return {};
}

bool together(const Fiber& one, const Fiber& other) {
  return one.state == other.state && (one.state == State::Done || one.barrier == other.barrier);
}

Error apart(const std::string& what, const Fiber& one, const Fiber& other) {
  return fail(ErrorCode::Internal, formatted("{}: {} {}, {} {}", what, name_of(one.thread), waits_at(one),
                                             name_of(other.thread), waits_at(other)));
}

/// Ends the current thread's turn.
void wait(State state, std::uint32_t barrier) {
  Fiber& fiber = *current;
  fiber.state = state;
  fiber.barrier = barrier;
  fiber.switching.leave_fiber();
  fiber.back = std::move(fiber.back).resume();
  fiber.switching.arrive_in_fiber();
}

bool is_aligned(const std::byte* address, unsigned bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace

const Thread& this_thread() { return current->thread; }

void sync(std::uint32_t barrier) {
  if (barrier != current->forgotten) wait(State::AtBarrier, barrier);
}

void shuffle_down(void* value, std::size_t bytes, unsigned by, std::uint32_t barrier) {
  std::memcpy(current->given.data(), value, bytes);
  current->by = by;
  wait(State::AtShuffle, barrier);
  std::memcpy(value, current->taken.data(), bytes);
}

void copy_async(std::byte* to, const std::byte* from, unsigned bytes) {
  Fiber& fiber = *current;
  const std::byte* const shared = fiber.thread.shared;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    fiber.fault = formatted("copies {} bytes at once: 4, 8 or 16 can be", bytes);
  else if (!is_aligned(to, bytes) || !is_aligned(from, bytes))
    fiber.fault = formatted("copies {} bytes between addresses that are not aligned to as many", bytes);
  else if (to < shared || to + bytes > shared + fiber.shared_bytes)
    fiber.fault = "copies to an address outside the block's shared memory";
  else
    fiber.copies.push_back({to, from, bytes});
  if (fiber.fault.empty()) std::memset(to, kPoison, bytes);
}

void wait_copies() {
  for (const PendingCopy& copy : current->copies) std::memcpy(copy.to, copy.from, copy.bytes);
  current->copies.clear();
}

void make_bulk_barrier(std::uint32_t barrier) {
  Fiber& fiber = *current;
  if (fiber.fault.empty()) fiber.fault = fiber.bulk->make_barrier(barrier);
}

void expect_bulk(std::uint32_t barrier, std::uint32_t bytes) {
  Fiber& fiber = *current;
  if (fiber.fault.empty()) fiber.fault = fiber.bulk->expect(barrier, bytes);
}

void copy_bulk(std::uint32_t to, const std::byte* from, std::uint32_t bytes, std::uint32_t barrier) {
  Fiber& fiber = *current;
  if (fiber.fault.empty()) fiber.fault = fiber.bulk->copy(to, from, bytes, barrier);
}

void wait_bulk(std::uint32_t bulk_barrier, std::uint32_t parity, std::uint32_t barrier) {
  Fiber& fiber = *current;
  if (fiber.fault.empty()) fiber.fault = fiber.bulk->begin_wait(bulk_barrier, parity, fiber.number);
  fiber.bulk_barrier = bulk_barrier;
  if (fiber.fault.empty() && !fiber.bulk->arrived(bulk_barrier, fiber.number))
    wait(State::AtBulkCopies, barrier);
}

void note_misaligned(std::size_t bytes, unsigned alignment) {
  if (current->fault.empty())
    current->fault = formatted("loads {} bytes from an address that is not aligned to {}", bytes, alignment);
}

void count_atomic() { ++atomics; }
std::uint64_t atomics_counted() { return atomics; }

/// Memory for the stacks of the most fibers that a block has had.
class Emulator::Stacks {
 public:
  Stacks() = default;
  ~Stacks() { release(); }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  std::byte* of(std::size_t fiber) const { return memory_ + fiber * kStackBytes; }

  Result<void> reserve(std::size_t fibers) {
    if (fibers * kStackBytes <= bytes_) return {};
    release();
    void* const memory = mmap(nullptr, fibers * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return fail(ErrorCode::Environment, formatted("out of memory: stacks of {} threads", fibers));
    memory_ = static_cast<std::byte*>(memory);
    bytes_ = fibers * kStackBytes;
    return {};
  }

 private:
  void release() {
    if (memory_ != nullptr) {
      forget_stacks(memory_, bytes_);
      munmap(memory_, bytes_);
    }
    memory_ = nullptr;
    bytes_ = 0;
  }

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace {

/// One block's threads, from their first instruction to their last.
class Block {
 public:
  Block(const Grid& grid, const std::function<void()>& kernel, std::size_t threads)
      : grid_(grid),
        kernel_(kernel),
        shared_(grid.shared_bytes, std::byte{kPoison}),
        bulk_(shared_, threads),
        fibers_(threads),
        order_(threads) {
    std::iota(order_.begin(), order_.end(), 0u);
  }

  template <class StackOf>
  void start(const std::array<std::uint32_t, 3>& at, const StackOf& stack_of) {
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      Fiber& fiber = fibers_[i];
      const auto n = static_cast<std::uint32_t>(i);
      const auto& extent = grid_.extent;
      fiber.thread = {
          {at[0], at[1], at[2], n % extent[3], n / extent[3] % extent[4], n / extent[3] / extent[4]},
          extent,
          shared_.data(),
          grid_.warp,
          grid_.bulk_copies};
      fiber.state = State::Ready;
      fiber.bulk = &bulk_;
      fiber.number = i;
      fiber.shared_bytes = shared_.size();
      fiber.forgotten = grid_.forgotten;
      std::byte* const stack = stack_of(i);
      fiber.switching.set_stack(stack, kStackBytes);
      context::stack_context stack_context;
      stack_context.size = kStackBytes;
      stack_context.sp = stack + kStackBytes;
      const context::preallocated memory(stack_context.sp, stack_context.size, stack_context);
      fiber.switching.begin_upkeep();
      fiber.fiber =
          context::fiber(std::allocator_arg, memory, NoStacks{}, [this, &fiber](context::fiber&& back) {
            fiber.back = std::move(back);
            fiber.switching.arrive_in_fiber();
            kernel_();
            fiber.state = State::Done;
            fiber.switching.end_fiber();
            return std::move(fiber.back);
          });
      fiber.switching.end_upkeep();
    }
  }

  /// Gives some threads a turn: other blocks may take theirs before the others do. Returns true if all are done.
  Result<bool> take_turns(std::mt19937_64& orders) {
    std::shuffle(order_.begin(), order_.end(), orders);
    std::size_t turns = 1 + orders() % order_.size();
    for (const std::uint32_t i : order_) {
      if (fibers_[i].state != State::Ready) continue;
      if (turns-- == 0) return false;
      FVM_TRY(resume(fibers_[i]));
    }
    if (end_bulk_waits()) return false;
    FVM_ASSIGN(const bool shuffled, end_shuffles());
    if (shuffled) return false;
    FVM_TRY(end_barrier());
    return fibers_.front().state == State::Done;
  }

 private:
  static Result<void> resume(Fiber& fiber) {
    current = &fiber;
    fiber.switching.leave_host();
    fiber.fiber = std::move(fiber.fiber).resume();
    fiber.switching.arrive_in_host();
    current = nullptr;
    if (fiber.fault.empty()) return {};
    return fail(ErrorCode::Internal, formatted("{} {}", name_of(fiber.thread), fiber.fault));
  }

  /// Lets the threads go on whose bulk copies have arrived. Returns false if there is none.
  bool end_bulk_waits() {
    bool ended = false;
    for (Fiber& fiber : fibers_) {
      if (fiber.state != State::AtBulkCopies || !bulk_.arrived(fiber.bulk_barrier, fiber.number)) continue;
      fiber.state = State::Ready;
      ended = true;
    }
    return ended;
  }

  /// Gives the threads of each warp that have come to a shuffle the values that they take. Returns false if there
  /// is none.
  Result<bool> end_shuffles() {
    bool shuffled = false;
    for (std::size_t begin = 0; begin < fibers_.size(); begin += grid_.warp) {
      const std::span<Fiber> warp =
          std::span(fibers_).subspan(begin, std::min<std::size_t>(grid_.warp, fibers_.size() - begin));
      const auto there = std::find_if(warp.begin(), warp.end(),
                                      [](const Fiber& fiber) { return fiber.state == State::AtShuffle; });
      if (there == warp.end()) continue;
      FVM_TRY(shuffle(warp, *there));
      shuffled = true;
    }
    return shuffled;
  }

  /// Makes the shuffle of a warp, of which `there` is a thread that waits at it.
  static Result<void> shuffle(std::span<Fiber> warp, const Fiber& there) {
    for (const Fiber& other : warp)
      if (!together(there, other))
        return apart("a shuffle that not all threads of a warp come to", there, other);
    for (std::size_t lane = 0; lane < warp.size(); ++lane) {
      Fiber& fiber = warp[lane];
      if (fiber.by >= warp.size() - lane)
        return fail(
            ErrorCode::Internal,
            formatted(
                "a shuffle from a lane that is not there: {}, lane {} of {}, reads {} lanes on at instruction {}",
                name_of(fiber.thread), lane, warp.size(), fiber.by, fiber.barrier));
      fiber.taken = warp[lane + fiber.by].given;
    }
    for (Fiber& fiber : warp) fiber.state = State::Ready;
    return {};
  }

  /// Checks that all threads are done or wait at one barrier, and lets those that wait go on.
  Result<void> end_barrier() {
    const Fiber& first = fibers_.front();
    for (const Fiber& fiber : fibers_)
      if (fiber.state == State::AtBulkCopies)
        return fail(ErrorCode::Internal,
                    formatted("{} {}, of which fewer or more bytes are under way than are expected",
                              name_of(fiber.thread), waits_at(fiber)));
    for (const Fiber& other : fibers_)
      if (!together(first, other)) return apart("a barrier that not all threads come to", first, other);
    if (first.state == State::Done) return {};
    for (Fiber& fiber : fibers_) fiber.state = State::Ready;
    return {};
  }

  const Grid& grid_;
  const std::function<void()>& kernel_;
  std::vector<std::byte> shared_;
  BulkCopies bulk_;
  std::vector<Fiber> fibers_;  ///< their destructors end those that an error left behind
  std::vector<std::uint32_t> order_;
};

}  // namespace

Emulator::Emulator() : stacks_(std::make_unique<Stacks>()) {}
Emulator::~Emulator() = default;

Result<void> Emulator::run(const Grid& grid, const std::function<void()>& kernel) {
  const FloatEnvironment floats;  // the caller's rounding does not reach kernels
  const std::size_t threads = std::size_t{grid.extent[3]} * grid.extent[4] * grid.extent[5];
  const std::size_t together =
      std::clamp<std::size_t>(kThreadsTogether / std::max<std::size_t>(threads, 1), 1, kBlocksTogether);
  FVM_TRY(stacks_->reserve(threads * together));
  std::mt19937_64 orders(grid.seed);
  const std::uint32_t across = grid.extent[0], down = grid.extent[1], deep = grid.extent[2];
  std::vector<std::uint32_t> order(std::size_t{across} * down * deep);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), orders);
  std::vector<std::unique_ptr<Block>> blocks(std::min(together, order.size()));  // each in a place for stacks
  const auto next = [&](std::size_t place) {
    blocks[place] = nullptr;
    if (order.empty()) return;
    const std::uint32_t number = order.back();
    order.pop_back();
    blocks[place] = std::make_unique<Block>(grid, kernel, threads);
    blocks[place]->start({number % across, number / across % down, number / across / down},
                         [&](std::size_t i) { return stacks_->of(place * threads + i); });
  };
  std::size_t running = blocks.size();
  for (std::size_t place = 0; place < blocks.size(); ++place) next(place);
  while (running != 0) {
    const std::size_t place = orders() % blocks.size();
    if (blocks[place] == nullptr) continue;
    FVM_ASSIGN(const bool done, blocks[place]->take_turns(orders));
    if (!done) continue;
    next(place);
    running -= std::size_t{blocks[place] == nullptr};
  }
  return {};
}

}  // namespace forestvm::kernels::emulator
