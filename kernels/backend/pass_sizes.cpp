// See pass_sizes.hpp.
#include "kernels/backend/pass_sizes.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace forestvm::kernels {
namespace {

/// Splits the numbers of rows up to kMaxPassRows into runs that take the same plans: returns the last of each
/// run.
std::set<std::uint32_t> ends_of_plans(const Program& program) {
  std::set<std::uint32_t> ends = {kMaxPassRows};
  for (const Inst& inst : program.code()) {
    if (inst.op != Op::Plan) continue;
    const std::uint32_t least = operand<Op::Plan, OperandKind::Least>(inst);
    if (least > 1) ends.insert(std::min(least - 1, kMaxPassRows));
    ends.insert(std::min(operand<Op::Plan, OperandKind::Most>(inst), kMaxPassRows));
  }
  return ends;
}

}  // namespace

Result<std::uint32_t> rows_of_grid(const Program& program, const LinkRequest& request,
                                   const DeviceLimits& limits) {
  if (link(program, request, limits).ok()) return request.rows;
  DeviceLimits endless = limits;
  endless.grid.fill(UINT32_MAX);
  endless.grid_threads = UINT64_MAX;
  FVM_TRY(link(program, request, endless));
  LinkRequest fewer = request;
  fewer.rows = 1;
  FVM_TRY(link(program, fewer, limits));
  std::uint32_t too_many = request.rows;
  while (too_many - fewer.rows > 1) {
    LinkRequest middle = request;
    middle.rows = std::midpoint(fewer.rows, too_many);
    if (link(program, middle, limits).ok())
      fewer = middle;
    else
      too_many = middle.rows;
  }
  return fewer.rows;
}

Result<PassSizes> PassSizes::make(const Program& program, const DeviceLimits& limits) {
  PassSizes sizes;
  for (const std::uint32_t most : ends_of_plans(program)) {
    if (most == 0) continue;
    Plans& plans = sizes.plans_.emplace_back();
    plans.most = most;
    for (const OutputKind output : kOutputs) {
      LinkRequest request{most, most, output};
      FVM_ASSIGN(request.rows, rows_of_grid(program, request, limits));
      FVM_ASSIGN(const LinkedCall linked, link(program, request, limits));
      const std::size_t bytes =
          std::accumulate(linked.global_bytes.begin(), linked.global_bytes.end(), std::size_t{0});
      plans.sizes[static_cast<std::size_t>(output)] = {request.rows, bytes / request.rows};
    }
  }
  return sizes;
}

const PassSize& PassSizes::of(std::uint32_t plan_rows, OutputKind output) const {
  const auto of_call = std::find_if(plans_.begin(), plans_.end() - 1,
                                    [&](const Plans& plans) { return plan_rows <= plans.most; });
  return of_call->sizes[static_cast<std::size_t>(output)];
}

}  // namespace forestvm::kernels
