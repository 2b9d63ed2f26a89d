// Checks that loops which are mapped to a GPU make a possible launch: nested loops have different dimensions; the
// grid is outside the block, and nothing serial is outside the grid; a block has at most 1,024 threads. A schedule
// with a mapped loop is for GPUs, any other for the host. Refuses directives that only the other kind of schedule
// can have.
#include <array>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "scheduler/explained_forest.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

constexpr std::uint64_t kMaxThreads = 1024, kMaxThreadsZ = 64;
constexpr std::size_t kDimensions = 6;

bool is_grid(LaunchDimension dimension) { return dimension <= LaunchDimension::GridZ; }

class MappingCheck {
 public:
  explicit MappingCheck(const Lowering& lowering)
      : lowering_(lowering), loops_(lowering.loops), mapped_(lowering.is_mapped()) {}

  Result<void> run() {
    for (const LoopId root : loops_.roots()) FVM_TRY(check(root));
    return {};
  }

 private:
  Result<void> check(LoopId id) {
    const Loop& loop = loops_[id];
    FVM_TRY(mapped_ ? check_for_gpu(id) : check_for_host(id));
    if (loop.reduction && !loop.parallel_by())
      return lowering_.refuse(
          loop.reduction->directive,
          formatted("loop '{}' is not parallel, so its sums need no reduction", loop.name));
    for (const LoopId child : loop.children) FVM_TRY(check(child));
    return {};
  }

  Result<void> check_for_host(LoopId id) const {
    const Loop& loop = loops_[id];
    if (loop.reduction && loop.reduction->value.form == ReductionForm::Shared)
      return lowering_.refuse(loop.reduction->directive,
                              "the host has no shared memory of a thread block: only a schedule mapped by "
                              "gpuDimension has");
    return {};
  }

  Result<void> check_for_gpu(LoopId id) {
    const Loop& loop = loops_[id];
    if (loop.parallel)
      return lowering_.refuse(
          loop.parallel->directive,
          "this schedule is mapped to a GPU, where gpuDimension says what runs in parallel");
    if (loop.reduction && loop.reduction->value.form == ReductionForm::Vector)
      return lowering_.refuse(loop.reduction->directive,
                              "this schedule is mapped to a GPU, whose reductions have no vectors");
    FVM_TRY(check_distance(loop));
    if (!loop.dimension) return {};
    if (lowering_.plan.targets != TargetSet::Any)
      return lowering_.refuse(loop.dimension->directive,
                              "a GPU has no CPU target: leave the targets of plans out");
    return check_dimension(id);
  }

  /// Checks the distance of cache: each iteration ahead takes another buffer of shared memory; there are two.
  Result<void> check_distance(const Loop& loop) const {
    if (!loop.cache || loop.cache->value == 0) return {};
    if (loop.axis != Axis::Trees || loop.dimension)
      return lowering_.refuse(
          loop.cache->directive,
          "on a GPU a distance is for a loop over trees that is not mapped: a block takes its "
          "iterations in turn, and copies the next one's trees to shared memory ahead of time");
    if (loop.cache->value > 1)
      return lowering_.refuse(
          loop.cache->directive,
          "a GPU copies trees one iteration ahead at most: each takes another buffer of shared "
          "memory");
    return {};
  }

  Result<void> check_dimension(LoopId id) {
    const LaunchDimension dimension = loops_[id].dimension->value;
    const auto wrong = [&](const std::string& what) {
      return lowering_.refuse(loops_[id].dimension->directive,
                              formatted("loop '{}' {}", loops_[id].name, what));
    };
    for (LoopId above = loops_[id].parent; above != kNoLoop; above = loops_[above].parent) {
      const auto& other = loops_[above].dimension;
      if (!other && is_grid(dimension))
        return wrong(
            formatted("is mapped to the grid inside loop '{}', which is not mapped: a launch has one grid",
                      loops_[above].name));
      if (other && other->value == dimension)
        return wrong(formatted("is inside loop '{}', which is mapped to {} already", loops_[above].name,
                               name_of(dimension)));
      if (other && is_grid(dimension) && !is_grid(other->value))
        return wrong(formatted(
            "is mapped to the grid inside loop '{}', which is mapped to a block: blocks are inside the grid",
            loops_[above].name));
    }
    if (is_grid(dimension)) return {};
    const std::uint64_t threads = loops_.iterations(id);
    if (threads >= kAll) return wrong("has no known number of iterations to be threads: tile it first");
    std::uint64_t& most = threads_[static_cast<std::size_t>(dimension)];
    most = std::max(most, threads);
    std::uint64_t block = 1;
    for (const std::uint64_t size : threads_) block = std::min<std::uint64_t>(UINT32_MAX, block * size);
    if (block > kMaxThreads)
      return wrong(formatted("makes blocks of {} threads, at most {}: tile it smaller", block, kMaxThreads));
    if (dimension == LaunchDimension::BlockZ && threads > kMaxThreadsZ)
      return wrong(formatted("has {} iterations, at most {} in block.z", threads, kMaxThreadsZ));
    return {};
  }

  const Lowering& lowering_;
  const LoopTree& loops_;
  const bool mapped_;
  /// Number of threads in each dimension of a block; dimensions of the grid stay 1.
  std::array<std::uint64_t, kDimensions> threads_{1, 1, 1, 1, 1, 1};
};

}  // namespace

Result<void> check_mapping(Lowering& lowering) { return MappingCheck(lowering).run(); }

}  // namespace forestvm::scheduler
