// See share_few_rows.hpp. bench/results/auto.md says where the numbers come from.
#include "scheduler/choose/share_few_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/choose/walk_prediction.hpp"
#include "scheduler/plan_ranges.hpp"

namespace forestvm::scheduler {
namespace {

/// The fewest steps of a row through all trees for which blocks of rows are worth their loop: such a row takes two
/// microseconds. In smaller forests rows take up to 1.2 times as long in blocks of four.
constexpr double kFewestSharedSteps = 2500;
/// Returns the rows of a block: four, so that two threads can share eight rows, or one where a row takes longer than
/// threads take to start.
std::uint32_t shared_block(const ForestFacts& facts) {
  constexpr double kStepsOfLongRows = 40'000;
  return facts.steps() < kStepsOfLongRows ? 4 : 1;
}
/// Calls of up to `most` rows, which are judged by calls of `rows` rows. Larger calls are cut into blocks of rows that
/// the host shares among threads.
struct JudgedCalls {
  std::uint32_t rows, most;
};
constexpr JudgedCalls kJudgedCalls[] = {{8, 11}, {16, 22}, {32, 45}};
/// The shortest call, in microseconds in one thread, that threads gain by sharing.
constexpr double kShortestSharedCall = 40;
/// The part of its time in which each thread walks: two threads need 1 / 1.6 of the time of one.
constexpr double kEfficiency = 0.8;
/// The largest ratio of times (shared rows to a block of rows) at which rows are shared.
constexpr double kWorthSharing = 0.9;
/// The most plans: a schedule may have 16, of which one is for float64 rows.
constexpr std::size_t kMostSharedPlans = 15;

std::uint64_t most_rows(const PlanChoice& plan) {
  const Argument& calls = plan.calls.front();
  return calls.is_number() ? calls.number() : std::numeric_limits<std::uint64_t>::max();
}

/// Returns the end of the plans for the same numbers of rows as plans[begin].
std::size_t group_end(const std::vector<PlanChoice>& plans, std::size_t begin) {
  std::size_t end = begin;
  while (end < plans.size() && plans[end].calls.front() == plans[begin].calls.front()) ++end;
  return end;
}

/// Inserts plans that end at `most` rows, as copies of the plans that calls of `most` rows have, unless some end there.
void split(std::vector<PlanChoice>& plans, std::uint32_t most) {
  std::size_t begin = 0;
  while (most_rows(plans[begin]) < most) ++begin;
  if (most_rows(plans[begin]) == most) return;
  const auto first = plans.begin() + static_cast<std::ptrdiff_t>(begin);
  std::vector<PlanChoice> copies(first, plans.begin() + static_cast<std::ptrdiff_t>(group_end(plans, begin)));
  for (PlanChoice& plan : copies) plan.calls.front() = most;
  plans.insert(first, copies.begin(), copies.end());
}

/// Drops plans that have the same walks as the plans for the next larger calls.
void unite(std::vector<PlanChoice>& plans) {
  for (std::size_t begin = 0; begin < plans.size();) {
    const std::size_t next = group_end(plans, begin);
    const bool alike = next < plans.size() && group_end(plans, next) - next == next - begin &&
                       std::equal(plans.begin() + static_cast<std::ptrdiff_t>(begin),
                                  plans.begin() + static_cast<std::ptrdiff_t>(next),
                                  plans.begin() + static_cast<std::ptrdiff_t>(next),
                                  [](const PlanChoice& mine, const PlanChoice& other) {
                                    return mine.walk == other.walk && mine.calls.size() == other.calls.size();
                                  });
    if (alike)
      plans.erase(plans.begin() + static_cast<std::ptrdiff_t>(begin),
                  plans.begin() + static_cast<std::ptrdiff_t>(next));
    else
      begin = next;
  }
}

/// Returns the kinds of calls of `rows` rows that each of `plans` serves, which are all for the same numbers of rows. A
/// plan serves the CPUs of its target that no plan before it takes.
std::vector<std::vector<WalkCall>> calls_of(std::span<const PlanChoice> plans, std::uint32_t rows) {
  std::vector<std::vector<WalkCall>> calls(plans.size());
  for (const CpuOfPlan& cpu : kCpusOfPlans) {
    const auto plan = std::find_if(plans.begin(), plans.end(), [&](const PlanChoice& candidate) {
      return candidate.calls.size() == 1 || contains(targets_of_plan(candidate.calls[1].name()), cpu.cpu);
    });
    calls[static_cast<std::size_t>(plan - plans.begin())].push_back(call_on(cpu.cpu, rows));
  }
  return calls;
}

/// Lets a plan that walks blocks of rows walk rows one by one instead, if threads that share the rows of `calls` are
/// predicted to take clearly less time.
void share(const ForestFacts& facts, std::span<const WalkChoice> candidates, std::span<const WalkCall> calls,
           unsigned threads, PlanChoice& plan) {
  const std::uint32_t rows = calls.front().rows;
  const double workers = std::min(threads, rows / shared_block(facts));
  std::vector<WalkOfCall> walks;
  for (const WalkCall& call : calls) {
    walks.push_back({call, plan.walk});
    for (const WalkChoice& walk : candidates) walks.push_back({call, walk});
  }
  const std::vector<double> costs = predicted_costs(facts, walks);
  const std::size_t stride = candidates.size() + 1;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    bool worth = true;
    for (std::size_t i = 0; i < costs.size(); i += stride) {
      const double one_by_one = costs[i + 1 + c];
      worth &= one_by_one * rows >= kShortestSharedCall &&
               one_by_one / (kEfficiency * workers) < kWorthSharing * costs[i];
    }
    if (!worth) continue;
    plan.walk = candidates[c];
    plan.walk.block = shared_block(facts);
    plan.why = formatted(
        "walks rows one by one, because {} threads share them; at {} rows, a row is predicted to take {} ns in one "
        "thread, and {} ns in a block of rows",
        threads, rows, std::llround(costs[1 + c] * 1e3), std::llround(costs[0] * 1e3));
    return;
  }
}

/// Returns the number of rows by which a plan for calls of more than `before` and up to `most` rows is judged;
/// std::nullopt if it is not for calls that threads may share.
std::optional<std::uint32_t> judged_rows(std::span<const std::uint32_t> rows, std::uint64_t before,
                                         std::uint64_t most) {
  std::optional<std::uint32_t> found;
  if (rows.empty()) {
    for (const JudgedCalls& calls : kJudgedCalls)
      if (calls.rows > before && calls.most <= most) found = calls.rows;
    return most <= std::prev(std::end(kJudgedCalls))->most ? found : std::nullopt;
  }
  for (const std::uint32_t count : rows)
    if (count > before && count <= most) found = count;
  return found && *found >= kJudgedCalls[0].rows && *found <= std::prev(std::end(kJudgedCalls))->most
             ? found
             : std::nullopt;
}

}  // namespace

void share_few_rows(const ForestFacts& facts, std::span<const std::uint32_t> rows, unsigned threads,
                    std::vector<PlanChoice>& plans) {
  if (facts.steps() < kFewestSharedSteps) return;
  if (why_not_predicted(facts).empty()) {
    std::vector<PlanChoice> shared = plans;
    if (rows.empty())
      for (const JudgedCalls& calls : kJudgedCalls) split(shared, calls.most);
    // Trees that lie in the program for other calls need not lie there a second time.
    std::vector<WalkChoice> candidates;
    for (const PlanChoice& plan : plans)
      if (plan.walk.lanes != Lanes::Rows) candidates.push_back(plan.walk);
    std::uint64_t before = 0;
    for (std::size_t begin = 0; begin < shared.size();) {
      const std::size_t end = group_end(shared, begin);
      const std::uint64_t most = most_rows(shared[begin]);
      if (const auto judged = judged_rows(rows, before, most)) {
        const std::vector<WalkChoice> all = candidates.empty() ? walks_for(facts, *judged) : candidates;
        std::vector<WalkChoice> one_by_one;
        std::copy_if(all.begin(), all.end(), std::back_inserter(one_by_one),
                     [](const WalkChoice& walk) { return walk.lanes == Lanes::Trees; });
        const auto calls = calls_of(std::span(shared).subspan(begin, end - begin), *judged);
        for (std::size_t i = begin; i < end; ++i)
          if (shared[i].walk.lanes == Lanes::Rows && shared[i].walk.layout != WalkLayout::TopTables)
            share(facts, one_by_one, calls[i - begin], threads, shared[i]);
      }
      before = most;
      begin = end;
    }
    unite(shared);
    if (shared.size() <= kMostSharedPlans) plans = std::move(shared);
  }
  for (PlanChoice& plan : plans)
    if (plan.walk.lanes != Lanes::Rows && plan.walk.block == 0) plan.walk.block = shared_block(facts);
}

}  // namespace forestvm::scheduler
