// Estimates kernel times of an H200 for calls of a schedule and of nvForest: estimates [--timed] MODEL CONTRACT
// SCHEDULE ROWS... SCHEDULE is a name or a text. --timed: for the kernels that the H200 timed, not for today's. Prints
// a line of columns, between tabs, for each number of rows: rows, microseconds, what binds (latencies, loads, memory),
// nvForest's microseconds, what binds it, its rows of a block, its instructions over the schedule's, what a block waits
// for most or loads most, if that binds (code, copies, walks, sums).
//
// Both are estimated with gpu_costs.hpp. nvForest's kernel is taken as counted in its machine code: 23 instructions of
// a warp's visit of a node and 80 of a tree, 64 warps on a multiprocessor in blocks of 256 threads, which share the
// pairs of a tree and of a row of the block and walk one at a time. Steps and loads of its visits cost what they cost
// sparse layouts here: lanes of blocks of 32 rows walk one tree, those of others several. Of the numbers of rows that
// a block may have, the best one is taken, as its `optimize` does.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <forestvm/compile.hpp>
#include <forestvm/internal/gpu_costs.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "kernels/account/accounting.hpp"

namespace {

using namespace forestvm;
using kernels::DeviceModel;

struct Estimate {
  double seconds;
  const char* bound;
  double issued;           ///< instructions of all warps
  const char* part = "-";  ///< what takes most of the latencies, or of the loads, if they bind
};

const char* name_of(kernels::BlockPart part) {
  using enum kernels::BlockPart;
  return part == Code ? "code" : part == Copies ? "copies" : part == Walks ? "walks" : "sums";
}

/// Returns the part of a block that takes most of what binds: latencies or loads.
const char* most_of(const kernels::PhaseAccount& phase, double kernels::BlockClocks::*clocks) {
  const auto& parts = phase.parts;
  const auto* const most =
      std::max_element(parts.begin(), parts.end(),
                       [&](const auto& one, const auto& other) { return one.*clocks < other.*clocks; });
  return name_of(static_cast<kernels::BlockPart>(most - parts.begin()));
}

/// Fitted to nvForest's time for one row of higgs on the H200 (bench/results/h200.md).
constexpr double kNvForestBlock = 5300;  ///< latency of a block without its walks
/// Bytes of rows that it copies in a clock: fitted to its time for 1,048,576 rows of epsilon there.
constexpr double kNvForestBytesPerClock = 5.6;

Estimate nvforest(const Model& model, double rows, const DeviceModel& device, double& best_rows) {
  constexpr double kOfVisit = 23, kOfTree = 80, kThreads = 256, kWarps = 64, kIssue = 4, kLanes = 32;
  constexpr double kLatencyOfInstruction =
      5;  // dependent instructions follow each other after so many clocks
  constexpr double kSharedBytes = 227 << 10;
  const ForestShape forest = shape_of(model);
  const double trees = static_cast<double>(model.trees.size()), values = model.num_features;
  const double row_bytes = values * sizeof(float);
  Estimate best{INFINITY, "", 0};
  for (double block_rows = 1; block_rows <= 32; block_rows *= 2) {
    const double here = std::min(block_rows, rows), pairs = here * trees;
    const double bytes = here * row_bytes;
    if (bytes > kSharedBytes) break;
    const double walk =
        forest.mean_depth * gpu_costs::kSparse * gpu_costs::step_latency(1) + kOfTree * kLatencyOfInstruction;
    const gpu_costs::Lanes lanes = block_rows < kLanes ? gpu_costs::Lanes::Trees : gpu_costs::Lanes::Values;
    const double visit =
        std::max(kOfVisit / kIssue, gpu_costs::kSparse * gpu_costs::visit_passing(lanes, values));
    const gpu_costs::Blocks blocks{
        .count = std::ceil(rows / block_rows),
        .resident = std::min(kWarps * kLanes / kThreads, std::max(1.0, std::floor(kSharedBytes / bytes))),
        .latency = kNvForestBlock + std::ceil(pairs / kThreads) * walk,
        .passing = std::ceil(pairs / kLanes) * (forest.mean_depth * visit + kOfTree / kIssue) +
                   bytes / kNvForestBytesPerClock,
        .code = 0};
    const double clocks = gpu_costs::clocks(blocks, device.sms) / (device.clock_mhz * 1e6);
    const double memory = rows * row_bytes / (device.memory_gbs * 1e9);
    const double seconds = std::max(clocks, memory);
    if (seconds >= best.seconds) continue;
    const auto [waves, passing] = gpu_costs::parts(blocks, device.sms);
    best = {seconds,
            memory > clocks                    ? "memory"
            : waves * blocks.latency > passing ? "latencies"
                                               : "loads",
            blocks.count * std::ceil(pairs / kLanes) * (forest.mean_depth * kOfVisit + kOfTree)};
    best_rows = block_rows;
  }
  return best;
}

Estimate estimate(const Program& program, std::uint32_t rows, const DeviceModel& device,
                  const gpu_costs::Kernels& kernels) {
  const auto call = kernels::account(program, {rows, rows, OutputKind::Raw}, device, kernels);
  if (!call.ok()) return {NAN, "refused", NAN};
  const kernels::PhaseAccount* slowest = call->phases.data();
  double issued = 0;
  for (const kernels::PhaseAccount& phase : call->phases) {
    if (phase.seconds > slowest->seconds) slowest = &phase;
    issued += phase.blocks.count * std::ceil(phase.threads / 32.0) * phase.warp_instructions;
  }
  const auto [waves, passing] = gpu_costs::parts(slowest->blocks, device.sms);
  issued *= static_cast<double>(rows) / call->pass_rows;
  if (slowest->seconds > slowest->clocks / (device.clock_mhz * 1e6)) return {call->seconds, "memory", issued};
  if (waves * slowest->blocks.latency > passing)
    return {call->seconds, "latencies", issued, most_of(*slowest, &kernels::BlockClocks::latency)};
  return {call->seconds, "loads", issued, most_of(*slowest, &kernels::BlockClocks::passing)};
}

Schedule schedule_of(const Model& model, const std::string& name, Contract contract) {
  const bool named = name.find('(') == std::string::npos;
  auto schedule = named ? schedule_by_name(model, name, contract) : parse_schedule(name);
  if (!schedule.ok()) throw std::runtime_error(schedule.error().text());
  return std::move(schedule).value();
}

void run(int argc, char** argv, const gpu_costs::Kernels& kernels) {
  const auto devices = kernels::device_models();
  const DeviceModel& device = *std::find_if(devices.begin(), devices.end(),
                                            [](const DeviceModel& one) { return one.name == "h200"; });
  const auto model = load_model(argv[1]);
  if (!model.ok()) throw std::runtime_error(model.error().text());
  CompileOptions options;
  options.contract = std::strcmp(argv[2], "fast") == 0      ? Contract::Fast
                     : std::strcmp(argv[2], "trainer") == 0 ? Contract::Trainer
                                                            : Contract::Reproducible;
  const auto compiled = compile(*model, schedule_of(*model, argv[3], options.contract), options);
  if (!compiled.ok()) throw std::runtime_error(compiled.error().text());
  for (int i = 4; i < argc; ++i) {
    const auto rows = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    double block_rows = 0;
    const Estimate ours = estimate(compiled->program, rows, device, kernels);
    const Estimate theirs = nvforest(*model, rows, device, block_rows);
    std::printf("%u\t%.6g\t%s\t%.6g\t%s\t%.0f\t%.4g\t%s\n", rows, ours.seconds * 1e6, ours.bound,
                theirs.seconds * 1e6, theirs.bound, block_rows, theirs.issued / ours.issued, ours.part);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool timed = argc > 1 && std::strcmp(argv[1], "--timed") == 0;
  if (timed) --argc, ++argv;
  if (argc < 5) {
    std::fprintf(stderr, "usage: estimates [--timed] MODEL CONTRACT SCHEDULE ROWS...\n");
    return 2;
  }
  try {
    run(argc, argv, timed ? gpu_costs::kTimedKernels : gpu_costs::kKernels);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "estimates: %s: %s\n", argv[1], error.what());
    return 1;
  }
}
