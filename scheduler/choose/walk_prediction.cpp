// See walk_prediction.hpp.
#include "scheduler/choose/walk_prediction.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>

#include "scheduler/choose/walk_costs.hpp"

namespace forestvm::scheduler {
namespace {

/// The numbers of rows for which costs were measured.
constexpr std::uint32_t kMeasuredRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024};
constexpr double kWorthAChange = 1.03;  ///< The least ratio of costs for which calls get a further plan.
/// The mean gain over all calls from which one more layout is worth its memory.
constexpr double kWorthALayout = 0.03;
/// The most plans by predicted costs: a schedule may have 16, of which one is for float64 rows.
constexpr std::size_t kMostPlans = 14;

/// Names the ways to walk by what they read. All walks of one way share one copy of the trees in memory.
constexpr std::string_view kWays[] = {"values",
                                      "codes",
                                      "tables of codes",
                                      "tree tables of codes",
                                      "values in complete trees",
                                      "codes in complete trees",
                                      "tables of codes at the top of trees"};
unsigned way_of(const WalkChoice& walk) {
  switch (walk.layout) {
    case WalkLayout::Sparse:
      return walk.coded ? 1 : 0;
    case WalkLayout::Tables:
      return 2;
    case WalkLayout::TreeTables:
      return 3;
    case WalkLayout::Array:
      return walk.coded ? 5 : 4;
    case WalkLayout::TopTables:
      return 6;
  }
  return 0;
}

constexpr std::size_t kCpuCount = std::size(kCpusOfPlans);

/// The walks for calls of a number of rows on a target, with their costs.
struct Cell {
  WalkCall call;
  std::vector<WalkChoice> walks{};
  std::vector<double> costs{};

  /// Returns the cost of a walk, which may have another block where blocks make no difference; infinite if it is not
  /// among the walks.
  double cost_of(const WalkChoice& walk) const {
    for (std::size_t i = 0; i < walks.size(); ++i) {
      const WalkChoice& mine = walks[i];
      const bool same_blocks = call.rows <= kMostRowsOfSmallestBlock && mine.lanes == Lanes::Rows;
      if (mine == walk ||
          (same_blocks && mine.lanes == walk.lanes && mine.layout == walk.layout && mine.coded == walk.coded))
        return costs[i];
    }
    return std::numeric_limits<double>::infinity();
  }

  /// Returns the index of the walk of least cost among the ways in `ways`, a bit for each; walks.size() if there is
  /// none.
  std::size_t best(unsigned ways) const {
    std::size_t found = walks.size();
    for (std::size_t i = 0; i < walks.size(); ++i)
      if ((ways >> way_of(walks[i]) & 1) != 0 && (found == walks.size() || costs[i] < costs[found]))
        found = i;
    return found;
  }
};

/// Throws std::bad_alloc if an error says that memory ran out.
void expect_memory(const Error& error) {
  if (error.message.starts_with("out of memory")) throw std::bad_alloc();
}

/// Returns the predictor; null if this CPU runs no target of the build. It runs on the least target, and not on the one
/// that FORESTVM_TARGET names, which may not exist. The program is verified, although the build made it, because what
/// verification allocates would otherwise be allocated in std::call_once, which cannot report that memory ran out.
const Predictor* walk_costs() {
  static const std::unique_ptr<Predictor> predictor = [] {
    auto program = Program::borrow(walk_costs_image(), nullptr, Verification::Full);
    FVM_CHECK(program.ok());
    BackendOptions options;
    options.target = host_targets().back();
    auto loaded = host_backend(*program, options);
    if (!loaded) expect_memory(loaded.error());
    return loaded ? std::move(*loaded) : nullptr;
  }();
  return predictor.get();
}

/// Writes microseconds with two significant digits.
std::string microseconds(double time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), time < 10 ? "%.2g" : "%.0f", time);
  return text.data();
}

std::vector<Cell> cells_of(const ForestFacts& facts, std::span<const std::uint32_t> rows) {
  std::vector<Cell> cells;
  std::vector<WalkOfCall> walks;
  for (const std::uint32_t count : rows)
    for (const CpuOfPlan& cpu : kCpusOfPlans) {
      cells.push_back({call_on(cpu.cpu, count), walks_for(facts, count)});
      for (const WalkChoice& walk : cells.back().walks) walks.push_back({cells.back().call, walk});
    }
  const std::vector<double> costs = predicted_costs(facts, walks);
  auto next = costs.begin();
  for (Cell& cell : cells) {
    const auto end = next + static_cast<std::ptrdiff_t>(cell.walks.size());
    cell.costs.assign(next, end);
    next = end;
  }
  return cells;
}

/// Returns the set of ways, a bit for each, whose mean cost is least if each way has a price.
unsigned best_ways(const std::vector<Cell>& cells) {
  unsigned best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned ways = 1; ways < 1u << std::size(kWays); ++ways) {
    double sum = 0;
    for (const Cell& cell : cells) {
      const std::size_t walk = cell.best(ways);
      sum += walk == cell.walks.size() ? std::numeric_limits<double>::infinity() : std::log(cell.costs[walk]);
    }
    const double cost =
        sum / static_cast<double>(cells.size()) + kWorthALayout * static_cast<double>(std::popcount(ways));
    if (cost < least) {
      least = cost;
      best = ways;
    }
  }
  return best;
}

/// Says what a walk of a cell costs, and what the best walks of the other ways cost.
std::string why(const Cell& cell, const WalkChoice& walk) {
  const unsigned way = way_of(walk);
  const double mine = cell.cost_of(walk);
  std::string others;
  bool is_least = true;
  for (unsigned other = 0; other < std::size(kWays); ++other) {
    const std::size_t best = cell.best(1u << other);
    if (other == way || best == cell.walks.size()) continue;
    is_least = is_least && mine <= cell.costs[best];
    const std::string cost = microseconds(cell.costs[best]);
    const std::string_view what = kWays[other];
    others += others.empty() ? formatted("; {} would take {}", what, cost) : formatted(", {} {}", what, cost);
  }
  if (!is_least) others += "; what would be faster is not worth a further plan or copy of the trees";
  return formatted("walks {}, predicted to take {} us a row at {} row{}{}", kWays[way], microseconds(mine),
                   cell.call.rows, cell.call.rows == 1 ? "" : "s", others);
}

/// Chooses the walk of each cell, from the largest calls to the smallest. `cells` has kCpuCount cells for each number
/// of rows.
std::vector<WalkChoice> chosen_walks(const std::vector<Cell>& cells, double tolerance) {
  const unsigned ways = best_ways(cells);
  std::vector<WalkChoice> chosen(cells.size());
  for (std::size_t i = cells.size(); i-- > 0;) {
    const Cell& cell = cells[i];
    const std::size_t best = cell.best(ways);
    const auto is_good = [&](const WalkChoice& walk) {
      return cell.cost_of(walk) <= tolerance * cell.costs[best];
    };
    const bool is_last_cpu = i % kCpuCount == kCpuCount - 1;
    const std::size_t above = i + kCpuCount;  // this CPU's cell for more rows
    if (!is_last_cpu && is_good(chosen[i + 1]))
      chosen[i] = chosen[i + 1];
    else if (above < cells.size() && is_good(chosen[above]))
      chosen[i] = chosen[above];
    else
      chosen[i] = cell.walks[best];
  }
  return chosen;
}

std::vector<PlanChoice> plans_of(const std::vector<Cell>& cells, const std::vector<WalkChoice>& chosen) {
  std::vector<PlanChoice> plans;
  for (std::size_t i = 0; i < cells.size(); i += kCpuCount) {
    const std::size_t above = i + kCpuCount;
    const auto mine = chosen.begin() + static_cast<std::ptrdiff_t>(i);
    if (above < cells.size() && std::equal(mine, mine + kCpuCount, mine + kCpuCount)) continue;
    const Argument calls = above < cells.size()
                               ? Argument(static_cast<std::uint32_t>(
                                     std::sqrt(double{1} * cells[i].call.rows * cells[above].call.rows)))
                               : Argument(kBatchSizeName);
    for (std::size_t cpu = 0; cpu < kCpuCount; ++cpu) {
      const std::size_t at = i + cpu;
      if (cpu + 1 == kCpuCount)
        plans.push_back({{calls}, chosen[at], why(cells[at], chosen[at])});
      else if (chosen[at] != chosen[at + 1])  // otherwise the next plan serves this CPU, too
        plans.push_back(
            {{calls, std::string(kCpusOfPlans[cpu].target)}, chosen[at], why(cells[at], chosen[at])});
    }
  }
  return plans;
}

/// A feature whose measured range bounds the models that are predicted.
struct Range {
  std::string_view name;
  std::uint32_t least, most;
};

}  // namespace

std::string why_not_predicted(const ForestFacts& facts) {
  if (facts.has_categories()) return "the model has categorical splits";
  if (facts.has_made_columns) return "the model computes columns";
  if (facts.oblivious) return "the trees are oblivious";
  if (walk_costs() == nullptr) return "this CPU cannot run the predictor";
  if (facts.has_vectors) return "leaves are vectors or functions";
  const WalkFeatures features = walk_features(facts, {}, {});
  std::size_t at = 0;
  for (const auto& [name, least, most] : {
#define FVM_WALK_RANGE(name, least, most) Range{#name, least, most},
#include "scheduler/choose/walk_ranges.def"
       }) {
    while (kWalkFeatureNames[at] != name) ++at;
    const double value{features[at]};
    if (value < least || value > most)
      return formatted("{} {} is outside of {} to {}", name, static_cast<std::uint64_t>(features[at]), least,
                       most);
  }
  return {};
}

std::vector<double> predicted_costs(const ForestFacts& facts, std::span<const WalkOfCall> walks) {
  std::vector<WalkFeatures> rows;
  rows.reserve(walks.size());
  for (const WalkOfCall& entry : walks) rows.push_back(walk_features(facts, entry.call, entry.walk));
  const Predictor& predictor = *walk_costs();
  const std::unique_ptr<Context> context = predictor.make_context();
  std::vector<float> scores(walks.size());
  const auto done = predictor.predict(*context, RowBlock{rows.data(), rows.size(), kWalkFeatures},
                                      OutputKind::Raw, scores.data());
  if (!done) expect_memory(done.error());
  FVM_CHECK(done.ok());
  // The forest predicts the logarithm to base 2 of nanoseconds per step.
  std::vector<double> costs;
  costs.reserve(walks.size());
  for (const float score : scores)
    costs.push_back(std::exp2(double{score}) * 1e-3 * std::max(facts.steps(), 1.0));
  return costs;
}

std::vector<HostTemplatePoint> predicted_points(const ForestFacts& facts, std::uint32_t rows,
                                                std::size_t count) {
  std::vector<WalkChoice> found;
  for (const Cell& cell : cells_of(facts, {&rows, 1})) {
    std::vector<std::size_t> order(cell.walks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return cell.costs[a] < cell.costs[b]; });
    order.resize(std::min(order.size(), count));
    for (const std::size_t i : order)
      if (std::find(found.begin(), found.end(), cell.walks[i]) == found.end()) found.push_back(cell.walks[i]);
  }
  std::vector<HostTemplatePoint> points;
  points.reserve(found.size());
  for (const WalkChoice& walk : found) points.push_back(template_point(walk, facts));
  return points;
}

std::vector<PlanChoice> plans_by_prediction(const ForestFacts& facts, std::span<const std::uint32_t> rows) {
  const std::vector<Cell> cells = cells_of(facts, rows.empty() ? std::span(kMeasuredRows) : rows);
  for (double tolerance = kWorthAChange;; tolerance *= kWorthAChange)
    if (auto plans = plans_of(cells, chosen_walks(cells, tolerance)); plans.size() <= kMostPlans)
      return plans;
}

}  // namespace forestvm::scheduler
