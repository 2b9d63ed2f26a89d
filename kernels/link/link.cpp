// See link.hpp. Each of the program's phases is measured (measure_phase.hpp), then accumulators are allocated.
#include "kernels/link/link.hpp"

#include <algorithm>
#include <bitset>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "kernels/link/cut_phases.hpp"
#include "kernels/link/measure_phase.hpp"

namespace forestvm::kernels {
namespace {

/// Allocates shared memory of the blocks for accumulators of a phase. Only accumulators that no other phase uses, and
/// that no block hands over to another, can lie there; the copies of a reduction of form Shared must lie there.
Result<void> allocate_accumulators(PhaseMeasurer& phase, const std::bitset<kAccumulators>& elsewhere,
                                   const DeviceLimits& limits) {
  const std::bitset<kAccumulators> own = phase.used() & ~elsewhere & ~phase.handed_over();
  const std::bitset<kAccumulators> shared = phase.reduced_in_shared();
  for (std::uint32_t a = 0; a < kAccumulators; ++a) {
    if (!shared[a]) continue;
    if (!own[a])
      return refused(
          "schedule",
          "sharedReduce: the sums of several blocks are to be added, which share no memory: use it "
          "for loops that are mapped to the block");
    if (!phase.take_accumulator(a, limits.shared_bytes))
      return phase.too_much("the private sums", phase.block_bytes(a));
  }
  for (std::uint32_t a = kAccumulators; a-- > 0;)
    if (own[a] && !shared[a]) phase.take_accumulator(a, std::min(limits.shared_bytes, kUnrequestedShared));
  return {};
}

}  // namespace

Result<LinkedCall> Linker::link(const LinkRequest& request, const DeviceLimits& limits) const {
  FVM_ASSIGN(std::vector<PhaseCode> cut, cut_phases(program_.code(), request));
  const auto is_kind = [](const PhaseCode& phase) { return is_of_kinds(phase.code[0].op); };
  if (is_written_by_kinds(request.output) && std::none_of(cut.begin(), cut.end(), is_kind))
    return refused(formatted("output {}", name_of(request.output)),
                   "the program's code does not write it in calls of {} rows", request.plan_rows);
  std::vector<PhaseMeasurer> phases;
  for (PhaseCode& code : cut) {
    phases.emplace_back(*this, request, limits, std::move(code));
    FVM_TRY(phases.back().run());
  }
  const auto readers = std::count_if(phases.begin(), phases.end(),
                                     [](const PhaseMeasurer& phase) { return phase.reads_codes(); });
  for (PhaseMeasurer& phase : phases)
    FVM_TRY(phase.allocate_caches(readers > static_cast<std::ptrdiff_t>(phase.reads_codes())));
  LinkedCall call;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    std::bitset<kAccumulators> elsewhere;
    for (std::size_t other = 0; other < phases.size(); ++other)
      if (other != i) elsewhere |= phases[other].used();
    FVM_TRY(allocate_accumulators(phases[i], elsewhere, limits));
    call.workspace_bytes = std::max(call.workspace_bytes, phases[i].workspace_bytes());
    phases[i].find_known();
    LinkedPhase& phase = phases[i].phase();
    for (std::uint32_t a = 0; a < kAccumulators; ++a)
      if (phases[i].used()[a] && !phase.accumulators[a].shared)
        call.global_bytes[a] = map_.accumulators[a].copy_bytes * request.rows;
    call.phases.push_back(std::move(phase));
  }
  return call;
}

}  // namespace forestvm::kernels
