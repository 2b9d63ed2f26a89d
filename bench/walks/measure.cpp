// Times the walks among which `auto` chooses: bench_walks MODEL [ROWS.npy] [--rows 1,2,4]. Prints one line of JSON: the
// names of the predictor's features, and for each number of rows and CPU target the features and the time of each walk,
// and the time of `auto`. Times are microseconds per row, of one thread. Without ROWS.npy rows are drawn between the
// model's thresholds, as `forestvm bench` does.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "cli/repeated_rows.hpp"
#include "scheduler/choose/walk_features.hpp"
#include "vm/host/targets/target.hpp"

namespace {

using namespace forestvm;
using cli::Seconds;
using scheduler::WalkChoice;

constexpr std::uint32_t kRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024};
constexpr const char* kTargets[] = {"avx512", "avx2"};
constexpr int kFirstTurns = 3, kTurnsOfLongCalls = 6, kTurns = 12;
constexpr Seconds kSample{1e-4}, kLongCall{3e-3};
/// The time of the calls before each sample. They bring the program's trees back into the caches, where those of other
/// programs have been since.
constexpr Seconds kWarmUp{3e-4};
/// A walk that takes this many times the least time takes part in the first turns only.
constexpr double kHopeless = 2;

/// A caller for a number of rows, with its time per row in each turn.
struct Runner {
  std::unique_ptr<cli::Caller> caller;
  double calls = 1;
  std::vector<double> times{};

  Result<void> sample(std::uint32_t rows) {
    for (Seconds warm{0}; warm < kWarmUp;) {
      FVM_ASSIGN(const Seconds time, caller->time(static_cast<std::uint64_t>(calls)));
      warm += std::max(time, Seconds(1e-9));
    }
    FVM_ASSIGN(const Seconds time, caller->time(static_cast<std::uint64_t>(calls)));
    times.push_back(time.count() * 1e6 / (calls * rows));
    return {};
  }
};

/// Returns the time that a fifth of the samples did not exceed: disturbances only lengthen times, but the smallest of
/// many may be luck.
double typical(const Runner& runner) {
  std::vector<double> times = runner.times;
  const auto rank = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 5);
  std::nth_element(times.begin(), rank, times.end());
  return *rank;
}

/// Times all runners in turns. The order within a turn is drawn anew each time: with a fixed order, a disturbance that
/// comes at regular intervals meets the same runners each time.
Result<std::vector<double>> times_of(std::vector<Runner>& runners, std::uint32_t rows, std::mt19937& random) {
  std::vector<Runner*> order;
  for (Runner& runner : runners) {
    FVM_TRY(runner.caller->call());
    FVM_ASSIGN(const Seconds once, runner.caller->time(1));
    runner.calls = std::floor(std::clamp(kSample / std::max(once, Seconds(1e-9)), 1.0, 1e4));
    order.push_back(&runner);
  }
  double least = INFINITY;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn == kFirstTurns) {
      for (const Runner& runner : runners) least = std::min(least, typical(runner));
      std::erase_if(order, [&](const Runner* runner) { return typical(*runner) > kHopeless * least; });
    }
    if (turn == kTurnsOfLongCalls && least * rows > kLongCall.count() * 1e6) break;
    std::shuffle(order.begin(), order.end(), random);
    for (Runner* const runner : order) FVM_TRY(runner->sample(rows));
  }
  std::vector<double> times;
  times.reserve(runners.size());
  for (const Runner& runner : runners) times.push_back(typical(runner));
  return times;
}

/// Prints the features and times of walks as JSON, with the time of `auto`, which is the last of `times`.
void print_cell(const scheduler::ForestFacts& facts, const scheduler::WalkCall& call, const char* target,
                const std::vector<WalkChoice>& walks, const std::vector<double>& times) {
  std::printf("{\"rows\":%u,\"target\":\"%s\",\"auto\":%.6g,\"walks\":[", call.rows, target, times.back());
  for (std::size_t i = 0; i < walks.size(); ++i) {
    std::printf("%s{\"us\":%.6g,\"features\":[", i == 0 ? "" : ",", times[i]);
    const scheduler::WalkFeatures features = scheduler::walk_features(facts, call, walks[i]);
    for (std::size_t at = 0; at < features.size(); ++at)
      std::printf("%s%.9g", at == 0 ? "" : ",", double{features[at]});
    std::printf("]}");
  }
  std::printf("]}");
}

/// A walk with its program, and the program's predictor for a target.
struct Loaded {
  WalkChoice walk;
  Program program;
  std::unique_ptr<Predictor> predictor;
};

Result<Loaded*> loaded(std::vector<std::unique_ptr<Loaded>>& all, const Model& model,
                       const scheduler::ForestFacts& facts, const WalkChoice& walk,
                       const BackendOptions& host) {
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry->walk == walk; });
  if (known != all.end()) return known->get();
  FVM_ASSIGN(Compiled compiled, compile(model, host_template_schedule(template_point(walk, facts))));
  FVM_ASSIGN(auto predictor, host_backend(compiled.program, host));
  all.push_back(std::make_unique<Loaded>(Loaded{walk, std::move(compiled.program), std::move(predictor)}));
  return all.back().get();
}

Result<void> measure(const std::string& path, const std::string& rows_path,
                     const std::vector<std::uint32_t>& row_counts) {
  FVM_ASSIGN(const Model model, load_model(path));
  const scheduler::ForestFacts facts = scheduler::facts_of(model);
  FVM_ASSIGN(const Compiled automatic, compile(model, automatic_schedule(model)));
  FVM_ASSIGN(const cli::RepeatedRows rows,
             cli::repeated_rows(rows_path, {}, automatic.program, *std::rbegin(kRows)));
  std::printf("{\"names\":[");
  for (const std::string_view name : scheduler::kWalkFeatureNames)
    std::printf("%s\"%s\"", name == scheduler::kWalkFeatureNames[0] ? "" : ",", std::string(name).c_str());
  std::printf("],\"cells\":[");
  std::vector<std::unique_ptr<Loaded>> all;
  std::mt19937 random(1);
  FVM_ASSIGN(const host::Target* const best_target, host::find_target(kTargets[0]));
  const bool fast_gathers = best_target->cpu() == CpuTarget::Avx512Fp16;
  for (const char* target : kTargets) {
    BackendOptions host;
    host.target = target;
    FVM_ASSIGN(const auto of_auto, host_backend(automatic.program, host));
    for (const auto& entry : all) {
      FVM_ASSIGN(entry->predictor, host_backend(entry->program, host));
    }
    for (const std::uint32_t count : row_counts) {
      const std::vector<WalkChoice> walks = scheduler::walks_for(facts, count);
      std::vector<Runner> runners(walks.size() + 1);
      for (std::size_t i = 0; i < walks.size(); ++i) {
        FVM_ASSIGN(const Loaded* const walk, loaded(all, model, facts, walks[i], host));
        runners[i].caller = std::make_unique<cli::Caller>(*walk->predictor, rows, count);
      }
      runners.back().caller = std::make_unique<cli::Caller>(*of_auto, rows, count);
      FVM_ASSIGN(const std::vector<double> times, times_of(runners, count, random));
      if (target != kTargets[0] || count != row_counts[0]) std::printf(",");
      print_cell(facts, {count, std::string_view(target) == "avx512", fast_gathers}, target, walks, times);
    }
  }
  std::printf("]}\n");
  return {};
}

/// Returns numbers of rows, separated by commas; none if one of them is not among kRows.
std::vector<std::uint32_t> counts_in(const std::string& text) {
  std::vector<std::uint32_t> counts;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto known = std::find_if(std::begin(kRows), std::end(kRows),
                                    [&](std::uint32_t rows) { return std::to_string(rows) == word; });
    if (known == std::end(kRows)) return {};
    counts.push_back(*known);
  }
  return counts;
}

}  // namespace

int main(int count, char** arguments) try {
  std::vector<std::string> files;
  std::vector<std::uint32_t> row_counts(std::begin(kRows), std::end(kRows));
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--rows" && i + 1 < count)
      row_counts = counts_in(arguments[++i]);
    else
      files.emplace_back(arguments[i]);
  }
  if (files.empty() || files.size() > 2 || row_counts.empty()) {
    std::fputs("usage: bench_walks MODEL [ROWS.npy] [--rows 1,2,4]\n", stderr);
    return 2;
  }
  const Result<void> result = measure(files[0], files.size() == 2 ? files[1] : "", row_counts);
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    return 1;
  }
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
