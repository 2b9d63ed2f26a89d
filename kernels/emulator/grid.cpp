// See grid.hpp.
#include "kernels/emulator/grid.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>

#include <forestvm/float_environment.hpp>

#include "kernels/emulator/sanitizers.hpp"

namespace forestvm::kernels::emulator {
namespace {

namespace context = boost::context;

constexpr std::size_t kStackBytes = 256u
                                    << 10;  // sanitizers' frames are large; only what is used takes memory

struct NoStacks {
  void deallocate(context::stack_context&) const {}
};

enum class State { Running, Waiting, Done };

struct Fiber {
  Thread thread{};
  State state = State::Done;
  std::uint32_t place = 0;      ///< of the barrier at which it waits
  std::uint32_t forgotten = 0;  ///< Grid::forgotten
  context::fiber fiber;
  context::fiber back;
  FiberSwitch switching;
};

/// The thread whose turn it is. One for each thread of the host, as fibers never change those.
thread_local Fiber* current = nullptr;

std::string name_of(const Thread& thread) {
  const auto triple = [&](std::size_t from) {
    return "(" + std::to_string(thread.index[from]) + ", " + std::to_string(thread.index[from + 1]) + ", " +
           std::to_string(thread.index[from + 2]) + ")";
  };
  return "thread " + triple(3) + " of block " + triple(0);
}

std::string place_of(const Fiber& fiber) {
  return fiber.state == State::Done ? "has left" : "waits at instruction " + std::to_string(fiber.place);
}

}  // namespace

const Thread& this_thread() { return current->thread; }

void sync(std::uint32_t place) {
  Fiber& fiber = *current;
  if (place == fiber.forgotten) return;
  fiber.state = State::Waiting;
  fiber.place = place;
  fiber.switching.leave_fiber();
  fiber.back = std::move(fiber.back).resume();
  fiber.switching.arrive_in_fiber();
}

/// Memory for the stacks of as many fibers as a block ever had.
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
      return Error{ErrorCode::Environment, "",
                   "out of memory: stacks of " + std::to_string(fibers) + " threads"};
    memory_ = static_cast<std::byte*>(memory);
    bytes_ = fibers * kStackBytes;
    return {};
  }

 private:
  void release() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
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
  Block(const Grid& grid, const std::function<void()>& kernel, std::vector<std::byte>& shared)
      : grid_(grid), kernel_(kernel), shared_(shared) {}

  template <class StackOf>
  void start(const std::array<std::uint32_t, 3>& at, std::vector<Fiber>& fibers, const StackOf& stack_of) {
    std::fill(shared_.begin(), shared_.end(), std::byte{kPoison});
    for (std::size_t i = 0; i < fibers.size(); ++i) {
      Fiber& fiber = fibers[i];
      const auto n = static_cast<std::uint32_t>(i);
      const auto& extent = grid_.extent;
      fiber.thread = {
          {at[0], at[1], at[2], n % extent[3], n / extent[3] % extent[4], n / extent[3] / extent[4]},
          extent,
          shared_.data()};
      fiber.state = State::Running;
      fiber.forgotten = grid_.forgotten;
      std::byte* const stack = stack_of(i);
      fiber.switching.set_stack(stack, kStackBytes);
      context::stack_context stack_context;
      stack_context.size = kStackBytes;
      stack_context.sp = stack + kStackBytes;
      const context::preallocated memory(stack_context.sp, stack_context.size, stack_context);
      fiber.fiber =
          context::fiber(std::allocator_arg, memory, NoStacks{}, [this, &fiber](context::fiber&& back) {
            fiber.back = std::move(back);
            fiber.switching.arrive_in_fiber();
            kernel_();
            fiber.state = State::Done;
            fiber.switching.end_fiber();
            return std::move(fiber.back);
          });
    }
  }

  /// Turns until all threads are done.
  static Result<void> run(std::vector<Fiber>& fibers, std::mt19937_64& orders) {
    std::vector<std::uint32_t> order(fibers.size());
    std::iota(order.begin(), order.end(), 0u);
    for (;;) {
      std::shuffle(order.begin(), order.end(), orders);
      for (const std::uint32_t i : order) resume(fibers[i]);
      FVM_TRY(check(fibers));
      if (fibers.front().state == State::Done) return {};
    }
  }

 private:
  static void resume(Fiber& fiber) {
    current = &fiber;
    fiber.state = State::Running;
    fiber.switching.leave_host();
    fiber.fiber = std::move(fiber.fiber).resume();
    fiber.switching.arrive_in_host();
    current = nullptr;
  }

  /// All have left, or all wait at one place.
  static Result<void> check(const std::vector<Fiber>& fibers) {
    const Fiber& first = fibers.front();
    for (const Fiber& other : fibers) {
      if (other.state == first.state && (other.state == State::Done || other.place == first.place)) continue;
      return Error{ErrorCode::Internal, "",
                   "a barrier that not all threads come to: " + name_of(first.thread) + " " +
                       place_of(first) + ", " + name_of(other.thread) + " " + place_of(other)};
    }
    return {};
  }

  const Grid& grid_;
  const std::function<void()>& kernel_;
  std::vector<std::byte>& shared_;
};

}  // namespace

Emulator::Emulator() : stacks_(std::make_unique<Stacks>()) {}
Emulator::~Emulator() = default;

Result<void> Emulator::run(const Grid& grid, const std::function<void()>& kernel) {
  const FloatEnvironment floats;  // the caller's rounding does not reach kernels
  const std::size_t threads = std::size_t{grid.extent[3]} * grid.extent[4] * grid.extent[5];
  FVM_TRY(stacks_->reserve(threads));
  std::vector<std::byte> shared(grid.shared_bytes);
  std::mt19937_64 orders(grid.seed);
  Block block(grid, kernel, shared);
  for (std::uint32_t z = 0; z < grid.extent[2]; ++z)
    for (std::uint32_t y = 0; y < grid.extent[1]; ++y)
      for (std::uint32_t x = 0; x < grid.extent[0]; ++x) {
        std::vector<Fiber> fibers(threads);  // ends those that an error left behind
        block.start({x, y, z}, fibers, [&](std::size_t i) { return stacks_->of(i); });
        FVM_TRY(Block::run(fibers, orders));
      }
  return {};
}

}  // namespace forestvm::kernels::emulator
