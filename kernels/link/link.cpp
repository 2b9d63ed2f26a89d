// See link.hpp. Each of the program's phases is measured (measure_phase.hpp), then accumulators are allocated.
#include "kernels/link/link.hpp"

#include <algorithm>
#include <bitset>
#include <list>
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
                                   std::uint32_t shared_bytes) {
  const std::bitset<kAccumulators> own = phase.used() & ~elsewhere & ~phase.handed_over();
  const std::bitset<kAccumulators> shared = phase.reduced_in_shared();
  for (std::uint32_t a = 0; a < kAccumulators; ++a) {
    if (!shared[a]) continue;
    if (!own[a])
      return refused(
          "schedule",
          "sharedReduce: the sums of several blocks are to be added, which share no memory: use it "
          "for loops that are mapped to the block");
    if (!phase.take_accumulator(a, shared_bytes))
      return phase.too_much("the private sums", phase.block_bytes(a));
  }
  const LinkedPhase& linked = phase.phase();
  const std::uint64_t most = std::min<std::uint64_t>(
      shared_bytes, unrequested_shared(linked.shared_bytes, linked.threads(), shared_bytes));
  for (std::uint32_t a = kAccumulators; a-- > 0;)
    if (own[a] && !shared[a]) phase.take_accumulator(a, most);
  return {};
}

/// Returns the least number of rows that takes the same plans as `rows` rows.
std::uint32_t begin_of_plans(const CodeMap& map, std::uint32_t rows) {
  std::uint32_t begin = 1;
  for (const InstFacts& inst : map.insts) {
    if (inst.calls.least <= rows) begin = std::max(begin, inst.calls.least);
    if (inst.calls.most < rows) begin = std::max(begin, inst.calls.most + 1);
  }
  return begin;
}

}  // namespace

std::uint32_t end_of_plans(const CodeMap& map, std::uint32_t rows) {
  std::uint32_t end = std::max(kMaxPassRows, rows);
  for (const InstFacts& inst : map.insts) {
    if (inst.calls.least > rows) end = std::min(end, inst.calls.least - 1);
    if (inst.calls.most >= rows) end = std::min(end, inst.calls.most);
  }
  return end;
}

Result<LinkedCall> Linker::link(const LinkRequest& request, const DeviceLimits& limits) const {
  LinkedCall call;
  LinkRequest taken = request, whole = request;
  whole.rows = std::max(request.rows, end_of_plans(map_, request.plan_rows));
  whole.any_grid = true;
  const auto link_both = [&](std::uint32_t shared_bytes) -> Result<void> {
    if (whole.rows != taken.rows) FVM_TRY(link_plan(whole, limits, shared_bytes, call));
    // Blocks of fewer rows may join, which takes some more memory.
    return link_plan(taken, limits, shared_bytes, call);
  };
  Result<void> linked = link_both(limits.shared_bytes);
  if (!linked.ok() && link_both(UINT32_MAX).ok()) {
    const bool reads_values = call.reads_values;
    while ((taken.plan_rows = whole.plan_rows = begin_of_plans(map_, taken.plan_rows) - 1) != 0)
      if (link_both(limits.shared_bytes).ok() && reads_values >= call.reads_values) return call;
  }
  FVM_TRY(std::move(linked));
  return call;
}

Result<void> Linker::link_plan(const LinkRequest& request, const DeviceLimits& limits,
                               std::uint32_t shared_bytes, LinkedCall& call) const {
  FVM_ASSIGN(std::vector<PhaseCode> cut, cut_phases(program_.code(), request));
  const auto is_kind = [](const PhaseCode& phase) { return is_of_kinds(phase.code[0].op); };
  if (is_written_by_kinds(request.output) && std::ranges::none_of(cut, is_kind))
    return refused(formatted("output {}", name_of(request.output)),
                   "the program's code does not write it in calls of {} rows", request.plan_rows);
  std::list<PhaseMeasurer> phases;  // a vector could move them, which takes more code
  for (PhaseCode& code : cut) {
    phases.emplace_back(*this, request, limits, shared_bytes, std::move(code));
    FVM_TRY(phases.back().run());
  }
  const auto readers =
      std::ranges::count_if(phases, [](const PhaseMeasurer& phase) { return phase.reads_codes(); });
  for (PhaseMeasurer& phase : phases)
    FVM_TRY(phase.allocate_caches(readers > static_cast<std::ptrdiff_t>(phase.reads_codes())));
  call = {};
  call.plan_rows = request.plan_rows;
  for (PhaseMeasurer& measured : phases) {
    std::bitset<kAccumulators> elsewhere;
    for (const PhaseMeasurer& other : phases)
      if (&other != &measured) elsewhere |= other.used();
    FVM_TRY(allocate_accumulators(measured, elsewhere, shared_bytes));
    call.workspace_bytes = std::max(call.workspace_bytes, measured.workspace_bytes());
    measured.find_known();
    call.reads_values |= measured.reads_values();
    LinkedPhase& phase = measured.phase();
    for (std::uint32_t a = 0; a < kAccumulators; ++a)
      if (measured.used()[a] && !phase.accumulators[a].shared)
        call.global_bytes[a] = measured.row_bytes(a) * request.rows;
    call.phases.push_back(std::move(phase));
  }
  return {};
}

}  // namespace forestvm::kernels
