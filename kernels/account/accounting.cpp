// See accounting.hpp. phase_counter.hpp counts the phases.
#include "kernels/account/accounting.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <forestvm/internal/leaf_functions.hpp>

#include "kernels/account/phase_counter.hpp"
#include "kernels/backend/pass_sizes.hpp"

namespace forestvm::kernels {
namespace {

/// Returns the bytes of a row's values that functions of leaves read.
double leaf_value_bytes(const Program& program) {
  return static_cast<double>(leaf_features(program).size() * sizeof(double));
}

/// Returns the rate of two parts that run one after the other.
double in_turn(double before, double rate) { return 1 / (1 / before + 1 / rate); }

}  // namespace

double fullest_bank(double words, double bins) {
  if (bins <= 1 || words <= 1) return std::max(1.0, words);
  // The number of a bank's words is taken as Poisson distributed: that gives 3.52 wavefronts for 32 words in 32 banks,
  // where drawing at random gives 3.53.
  const double mean = words / bins;
  double wavefronts = 0, term = std::exp(-mean), below = term;
  for (int k = 1; k < 64; ++k) {
    wavefronts += 1 - std::pow(below, bins);
    term *= mean / k;
    below = std::min(1.0, below + term);
  }
  return wavefronts;
}

namespace {

/// Returns the most rows that a pass has, of a call whose rows are on the device: PassBounds and the grid set limits.
Result<std::uint32_t> rows_of_pass(const Linker& linker, const LinkRequest& request,
                                   const DeviceLimits& limits) {
  LinkRequest pass = request;
  pass.rows = std::min(request.rows, kMaxPassRows);
  FVM_ASSIGN(pass.rows, rows_of_grid(linker, pass, limits));
  if (pass.rows == 0) return pass.rows;
  FVM_ASSIGN(const LinkedCall linked, linker.link(pass, limits));
  const std::size_t sums =
      std::accumulate(linked.global_bytes.begin(), linked.global_bytes.end(), std::size_t{0});
  const std::size_t row_bytes = sums / pass.rows + linker.program().columns().size();
  if (row_bytes == 0) return pass.rows;
  const std::size_t held = std::max<std::size_t>(PassBounds{}.pass_bytes / row_bytes, 1);
  return static_cast<std::uint32_t>(std::min<std::size_t>(pass.rows, held));
}

/// The accounts of a pass's launches.
struct PassAccount {
  std::vector<PhaseAccount> phases;
  std::uint32_t plan_rows;  ///< LinkedCall::plan_rows

  double seconds() const {
    double seconds = 0;
    for (const PhaseAccount& phase : phases) seconds += phase.seconds;
    return seconds;
  }
};

Result<PassAccount> account_pass(const Linker& linker, const LinkRequest& request, const DeviceModel& device,
                                 const gpu_costs::Kernels& kernels) {
  FVM_ASSIGN(const LinkedCall linked, linker.link(request, limits_of(device)));
  const double value_bytes = leaf_value_bytes(linker.program());
  PassAccount pass{{}, linked.plan_rows};
  for (const LinkedPhase& phase : linked.phases)
    pass.phases.push_back(counting::PhaseCounter(linker, request, device, kernels, phase, value_bytes).run());
  return pass;
}

}  // namespace

Result<CallAccount> account(const Program& program, const LinkRequest& call_request,
                            const DeviceModel& device, const gpu_costs::Kernels& kernels) {
  LinkRequest request = call_request;
  const Linker linker(program);
  FVM_ASSIGN(request.rows, rows_of_pass(linker, call_request, limits_of(device)));
  CallAccount call;
  FVM_ASSIGN(PassAccount whole_pass, account_pass(linker, request, device, kernels));
  const double pass_seconds = whole_pass.seconds();
  call.phases = std::move(whole_pass.phases);
  call.plan_rows = whole_pass.plan_rows;
  call.rates = {counting::kNever, counting::kNever, counting::kNever, counting::kNever};
  call.pass_rows = request.rows;
  double results = 0;
  for (const PhaseAccount& account : call.phases) {
    call.visits += account.visits;
    call.counted = call.counted && account.counted;
    call.rates.issue = in_turn(call.rates.issue, account.rates.issue);
    call.rates.load = in_turn(call.rates.load, account.rates.load);
    call.rates.memory = in_turn(call.rates.memory, account.rates.memory);
    results += account.bytes.results;
  }
  const double rows = row_width(program.meta()) * double{sizeof(float)} + leaf_value_bytes(program);
  if (std::max(rows, results) > 0) call.rates.bus = device.bus_gbs * 1e9 / std::max(rows, results);
  if (request.rows == 0) return call;
  const std::uint32_t whole = call_request.rows / request.rows;
  call.passes = whole;
  call.seconds = whole * pass_seconds;
  request.rows = call_request.rows - whole * request.rows;
  if (request.rows != 0) {
    FVM_ASSIGN(const PassAccount last, account_pass(linker, request, device, kernels));
    ++call.passes;
    call.seconds += last.seconds();
  }
  return call;
}

}  // namespace forestvm::kernels
