// See gpu_account.hpp.
#include "cli/gpu_account.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "kernels/account/accounting.hpp"

namespace forestvm::cli {
namespace {

using Json = nlohmann::ordered_json;
using namespace kernels;

/// Rounds to three significant digits.
double about(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value * (1 / unit)) / (1 / unit);
}

/// Adds the bound that a part of the GPU sets on the rate, in million rows per second; the text "not counted" if the
/// part's work was not counted. A part without work sets no bound and is left out.
void add_rate(Json& rates, const char* part, double rate, bool counted = true) {
  if (!counted)
    rates[part] = "not counted";
  else if (std::isfinite(rate))
    rates[part] = about(rate / 1e6);
}

std::string extents(const std::array<std::uint32_t, kDimensions>& extent, unsigned first) {
  return formatted("{} x {} x {}", extent[first], extent[first + 1], extent[first + 2]);
}

/// Returns the estimated times of a launch, and what they consist of.
Json times_of(const PhaseAccount& account, const DeviceModel& device) {
  const gpu_costs::Parts parts = gpu_costs::parts(account.blocks, device.sms);
  Json times = Json::object();
  times["latencies"] = about(parts.waves * account.blocks.latency / device.clock_mhz);
  times["loads"] = about(parts.passing / device.clock_mhz);
  times["in all"] = about(account.seconds * 1e6);
  return times;
}

Json phase_of(const PhaseAccount& account, const DeviceModel& device) {
  Json phase = Json::object();
  Json layouts = Json::array();
  for (const Layout layout : account.layouts) layouts.push_back(name_of(layout));
  phase["layouts"] = layouts.empty() ? Json("none walked") : layouts;
  phase["grid"] = extents(account.extent, 0);
  phase["block"] = extents(account.extent, kGridDimensions);
  phase["threads"] = account.threads;
  phase["shared bytes"] = account.shared_bytes;
  phase["registers per thread"] = account.registers;
  phase["lanes per warp"] = about(account.lanes);
  const Occupancy& occupancy = account.occupancy;
  phase["blocks per SM"] = occupancy.blocks;
  phase["warps per SM"] = occupancy.warps;
  phase["warps per SM at most"] = occupancy.most_warps;
  phase["occupancy limit"] = name_of(occupancy.limit);
  if (account.visits != 0) {
    phase["node visits per row"] = about(account.visits);
    if (account.counted) phase["instructions per warp"] = about(account.warp_instructions);
    if (account.counted) phase["wavefronts per visit"] = about(account.wavefronts);
  }
  phase["bytes per row"] = {{"rows", about(account.bytes.rows)},
                            {"nodes", about(account.bytes.nodes)},
                            {"results", about(account.bytes.results)},
                            {"sums", about(account.bytes.sums)}};
  Json rates = Json::object();
  add_rate(rates, "issue", account.rates.issue, account.counted);
  add_rate(rates, "load", account.rates.load, account.counted);
  add_rate(rates, "memory", account.rates.memory);
  phase["million rows per second at most"] = rates;
  if (is_estimated(device)) {
    phase["waves of blocks"] = about(account.blocks.count / account.blocks.resident / device.sms);
    phase["estimated microseconds"] = times_of(account, device);
  }
  return phase;
}

/// Returns the name of the part of the GPU that sets the lowest bound. The bus between host and device counts only
/// `with_bus`.
std::string binding(const RowRates& rates, bool counted, bool with_bus) {
  std::array<std::pair<double, const char*>, 4> parts = {
      {{rates.issue, "issue"}, {rates.load, "load"}, {rates.memory, "memory"}, {rates.bus, "bus"}}};
  if (!with_bus) parts[3].first = INFINITY;
  const auto* const least = std::min_element(parts.begin(), parts.end());
  if (!counted && least->second != std::string("bus")) return "not counted";
  return std::isfinite(least->first) ? least->second : "nothing";
}

}  // namespace

void add_gpu_account(Json& document, const Program& program, std::uint32_t rows, const DeviceModel& device) {
  const ArchitectureInfo& architecture = info(device.architecture);
  document["device"] = formatted("{} ({}), on paper", device.text, architecture.name);
  document["call rows"] = rows;
  const Result<CallAccount> call = account(program, {rows, rows, OutputKind::Value}, device);
  if (!call.ok()) {
    document["refused"] = call.error().text();
    return;
  }
  document["plan rows"] = call->plan_rows;
  document["passes"] = call->passes;
  document["node visits per row"] = about(call->visits);
  Json phases = Json::array();
  for (const PhaseAccount& phase : call->phases) phases.push_back(phase_of(phase, device));
  document["phases"] = std::move(phases);
  Json rates = Json::object();
  add_rate(rates, "issue", call->rates.issue, call->counted);
  add_rate(rates, "load", call->rates.load, call->counted);
  add_rate(rates, "memory", call->rates.memory);
  add_rate(rates, "bus", call->rates.bus);
  document["million rows per second at most"] = rates;
  if (is_estimated(device)) document["estimated microseconds"] = about(call->seconds * 1e6);
  document["limit for rows on the device"] = binding(call->rates, call->counted, false);
  document["limit for rows from the host"] = binding(call->rates, call->counted, true);
}

std::string device_notes() {
  std::string text = "\nGPUs that are known (--device-model), as their data sheets describe them:\n";
  for (const DeviceModel& device : device_models()) {
    std::string name(device.name);
    name.resize(10, ' ');
    text += formatted("  {}{}\n", name, device.text);
  }
  return text;
}

}  // namespace forestvm::cli
