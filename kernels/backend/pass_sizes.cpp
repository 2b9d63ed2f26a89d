// See pass_sizes.hpp.
#include "kernels/backend/pass_sizes.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/backend/device_calls.hpp"

namespace forestvm::kernels {
Result<std::uint32_t> rows_of_grid(const Linker& linker, const LinkRequest& request,
                                   const DeviceLimits& limits) {
  if (linker.link(request, limits).ok()) return request.rows;
  LinkRequest fewer = request;
  fewer.any_grid = true;
  FVM_TRY(linker.link(fewer, limits));
  fewer.any_grid = false;
  fewer.rows = 1;
  FVM_TRY(linker.link(fewer, limits));
  std::uint32_t too_many = request.rows;
  while (too_many - fewer.rows > 1) {
    LinkRequest middle = request;
    middle.rows = std::midpoint(fewer.rows, too_many);
    if (linker.link(middle, limits).ok())
      fewer = middle;
    else
      too_many = middle.rows;
  }
  return fewer.rows;
}

Result<PassSizes> PassSizes::make(const Linker& linker, const DeviceLimits& limits) {
  PassSizes sizes;
  for (std::uint32_t first = 1, most = 0; most != kMaxPassRows; first = most + 1) {
    most = end_of_plans(linker.map(), first);
    Plans& plans = sizes.plans_.emplace_back();
    plans.most = most;
    for (const OutputKind output : kOutputKinds) {
      const Program& program = linker.program();
      if (!has_on_device(program, output)) continue;
      // The width of outputs of trees depends on the options of a call.
      if (!is_of_trees(output) && output_width(program, output) == 0) continue;
      LinkRequest request{most, most, output};
      FVM_ASSIGN(request.rows, rows_of_grid(linker, request, limits));
      FVM_ASSIGN(const LinkedCall linked, linker.link(request, limits));
      const std::size_t bytes =
          std::accumulate(linked.global_bytes.begin(), linked.global_bytes.end(), linked.workspace_bytes);
      plans.sizes[static_cast<std::size_t>(output)] = {request.rows, bytes / request.rows};
    }
  }
  return sizes;
}

const PassSize& PassSizes::of(std::uint32_t plan_rows, OutputKind output) const {
  auto of_call = plans_.begin();
  while (of_call->most != kMaxPassRows && of_call->most < plan_rows) ++of_call;
  return of_call->sizes[static_cast<std::size_t>(output)];
}

}  // namespace forestvm::kernels
