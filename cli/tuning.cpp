// See tuning.hpp.
#include "cli/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>

#include "cli/printed.hpp"
#include "kernels/account/accounting.hpp"
#include "scheduler/choose/algorithm_1.hpp"
#include "scheduler/choose/host_heuristic.hpp"
#include "scheduler/choose/race.hpp"
#include "scheduler/choose/schedule_space.hpp"
#include "scheduler/choose/walk_prediction.hpp"
#include "scheduler/plan_ranges.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kHeat = 8;       ///< Schedules that are sampled in turns, beside `auto`.
constexpr std::size_t kHeatTurns = 3;  ///< Samples of each schedule in a heat.
constexpr std::size_t kFinalists = 8;  ///< Schedules of a batch's race, beside `auto`.
/// Schedules of each batch and target that the strategy `predict` measures.
constexpr std::size_t kPredicted = 3;
constexpr Seconds kHeatSample{1e-4}, kRaceSample{5e-4};
/// The part of the budget that compiling for a heat may take; after it the heat begins even if it is not full.
constexpr double kCompileShare = 0.05;
constexpr double kHeatShare = 0.6;    ///< Largest part of the budget that heats take.
constexpr double kHopeless = 4;       ///< A schedule that takes this many times auto's time is not sampled.
constexpr double kWorthwhile = 1.02;  ///< `auto` is kept unless a schedule is this many times as fast.
constexpr std::uint64_t kMaxCalls = 10'000;  ///< Most calls of a sample.

/// A compiled schedule with its predictor, and its times for calls of each batch. The vectors have one entry per batch.
struct Runner {
  std::string name;
  Schedule schedule;
  std::size_t point;  ///< Its number in the space; SIZE_MAX for `auto`.
  Program program;
  std::unique_ptr<Predictor> predictor{};
  std::vector<Caller> callers{};     ///< Empty if times are estimated.
  std::vector<Seconds> once{};       ///< Time of a call.
  std::vector<double> us_per_row{};  ///< Least time in the heat, microseconds per row; 0: not measured.
  std::vector<double> of_auto{};     ///< us_per_row divided by auto's in the same heat.

  /// Makes `calls` calls of batch number `b`, or estimates them, and returns their time.
  Result<Seconds> spend(std::size_t b, std::uint64_t calls) {
    if (callers.empty()) return once[b] * static_cast<double>(calls);
    return callers[b].time(calls);
  }

  /// Takes a sample: calls of batch number `b` for about `time`. Returns microseconds per row. As many calls before it
  /// are not timed: they bring the trees back into the caches, where those of other programs have been since.
  Result<double> sample(std::size_t b, std::uint64_t batch, Seconds time) {
    const auto calls =
        static_cast<std::uint64_t>(std::clamp(time / once[b], 1.0, static_cast<double>(kMaxCalls)));
    FVM_TRY(spend(b, calls));
    FVM_ASSIGN(const Seconds spent, spend(b, calls));
    return spent.count() * 1e6 / static_cast<double>(calls * batch);
  }
};
using RunnerRef = std::shared_ptr<Runner>;

/// A plan of a schedule: the directives for calls of `least` to `most` rows.
struct PlanText {
  std::uint64_t least, most;
  std::string target;  ///< The target that the plan names; empty: it names none.
  std::vector<Directive> directives;
  std::string remark;
};

std::vector<PlanText> plans_of(const Schedule& schedule) {
  std::vector<PlanText> plans;
  for (const scheduler::PlanRange& plan : scheduler::plan_ranges(schedule)) {
    const auto first = schedule.directives.begin();
    plans.push_back(
        {plan.least,
         plan.most,
         plan.target,
         {first + static_cast<std::ptrdiff_t>(plan.begin), first + static_cast<std::ptrdiff_t>(plan.end)},
         plan.directive == nullptr ? std::string() : plan.directive->remark});
  }
  return plans;
}

Schedule joined(const std::vector<PlanText>& plans) {
  Schedule schedule;
  for (const PlanText& plan : plans) {
    std::vector<Argument> arguments{plan.most == scheduler::kAnyRows ? Argument(kBatchSizeName)
                                                                     : Argument(plan.most)};
    if (!plan.target.empty()) arguments.emplace_back(plan.target);
    schedule.directives.push_back({DirectiveKind::Plan, std::move(arguments), {}, plan.remark});
    schedule.directives.insert(schedule.directives.end(), plan.directives.begin(), plan.directives.end());
  }
  return schedule;
}

/// The search. `b` is always the index of a batch in options.batches.
class Search {
 public:
  Search(const Model& model, const TuningOptions& options, const RepeatedRows& rows,
         const std::function<bool()>& interrupted, const std::function<void(const TuningProgress&)>& show)
      : model_(model),
        options_(options),
        rows_(rows),
        interrupted_(interrupted),
        show_(show),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(options.budget)),
        best_(options.batches.size()) {}

  Result<Tuning> run(const Automatic& automatic) {
    if (options_.strategy == Strategy::Predict) FVM_TRY(predict_points());
    FVM_ASSIGN(automatic_, loaded({automatic.name, automatic.schedule, SIZE_MAX, automatic.program}));
    tuning_.tried = 1;
    for (std::size_t b = 0; b < best_.size(); ++b) FVM_TRY(warm_up(*automatic_, b));
    FVM_TRY(run_heats());
    FVM_TRY(run_races());
    plan();
    return std::move(tuning_);
  }

 private:
  bool is_over(Clock::time_point end) const { return interrupted_() || Clock::now() >= end; }

  /// Compiles a schedule. Returns std::nullopt if it is refused.
  Result<std::optional<Program>> compiled(const Schedule& schedule) const {
    auto result = compile(model_, schedule, options_.compile);
    if (result) return std::optional<Program>(std::move(result->program));
    if (result.error().code == ErrorCode::Refused) return std::optional<Program>();
    return result.error();
  }

  Result<RunnerRef> loaded(Runner runner) const {
    auto ref = std::make_shared<Runner>(std::move(runner));
    ref->once.resize(best_.size());
    if (options_.device != nullptr) {
      for (std::size_t b = 0; b < best_.size(); ++b) {
        FVM_ASSIGN(ref->once[b], estimated_call(ref->program, options_.batches[b], *options_.device));
      }
    } else {
      FVM_ASSIGN(ref->predictor, make_predictor(options_.backend, ref->program, ref->name));
      for (const std::uint64_t batch : options_.batches)
        ref->callers.emplace_back(*ref->predictor, rows_, batch);
    }
    ref->us_per_row.resize(best_.size());
    ref->of_auto.resize(best_.size());
    return ref;
  }

  static Result<void> warm_up(Runner& runner, std::size_t b) {
    if (runner.callers.empty()) return {};
    FVM_TRY(runner.callers[b].call());
    FVM_ASSIGN(const Seconds time, runner.callers[b].time(1));
    runner.once[b] = std::max(time, Seconds(1e-9));
    return {};
  }

  Result<void> run_heats() {
    FVM_TRY(heats_of(best_of_earlier()));
    if (options_.strategy == Strategy::Predict) return heats_of(predicted_);
    std::vector<std::size_t> points;
    for (const std::uint64_t batch : options_.batches) add_first_points(batch, points);
    FVM_TRY(heats_of(points));
    points.clear();
    for (const auto& best : best_)
      for (std::size_t i = 0; i < std::min(best.size(), tried_variants()); ++i)
        add_variants(best[i]->point, points);
    FVM_TRY(heats_of(points));
    if (options_.strategy == Strategy::Heuristic) return {};
    points.resize(options_.space().points);
    std::iota(points.begin(), points.end(), std::size_t{0});
    std::shuffle(points.begin(), points.end(), std::mt19937_64(1));
    return heats_of(points);
  }

  /// Adds the points that the heuristic measures first for calls of `batch` rows.
  void add_first_points(std::uint64_t batch, std::vector<std::size_t>& points) const {
    if (options_.backend.on_host()) {
      for (const auto& point : scheduler::host_heuristic_points(batch, options_.backend.host.threads))
        points.push_back(scheduler::host_point_number(point));
    } else {
      for (const auto& point : scheduler::algorithm_1_points(batch, model_.num_features))
        points.push_back(scheduler::gpu_point_number(point));
    }
  }

  /// Returns the number of best points whose variants the heuristic measures next.
  std::size_t tried_variants() const {
    return options_.backend.on_host() ? scheduler::kTriedVariants : scheduler::kTriedWithSharedReduction;
  }

  void add_variants(std::size_t best, std::vector<std::size_t>& points) const {
    if (options_.backend.on_host()) {
      for (const auto& variant : scheduler::host_variants(scheduler::host_template_point(best)))
        points.push_back(scheduler::host_point_number(variant));
    } else {
      scheduler::GpuTemplatePoint variant = scheduler::gpu_template_point(best);
      variant.shared_reduce = true;
      points.push_back(scheduler::gpu_point_number(variant));
    }
  }

  /// Finds the points of least predicted cost for each batch.
  Result<void> predict_points() {
    if (!options_.backend.on_host())
      return refused("--strategy predict", "costs are predicted for the host's schedules only");
    const scheduler::ForestFacts facts = scheduler::facts_of(model_);
    if (const std::string why = scheduler::why_not_predicted(facts); !why.empty())
      return refused("--strategy predict", "the costs of this model's schedules cannot be predicted: {}",
                     why);
    for (const std::uint64_t batch : options_.batches)
      for (const auto& point :
           scheduler::predicted_points(facts, static_cast<std::uint32_t>(batch), kPredicted))
        predicted_.push_back(scheduler::host_point_number(point));
    return {};
  }

  /// Takes over the trials of an earlier search. Returns the points that are measured again: the best ones of each
  /// batch, because they take part in the races, and those that were not measured for all batches.
  std::vector<std::size_t> best_of_earlier() {
    const std::vector<Trial>& earlier = options_.earlier;
    std::set<std::size_t> again;
    for (std::size_t b = 0; b < best_.size(); ++b) {
      std::vector<const Trial*> order;
      for (const Trial& trial : earlier)
        if (trial.of_auto[b] > 0) order.push_back(&trial);
      std::sort(order.begin(), order.end(),
                [b](const Trial* mine, const Trial* other) { return mine->of_auto[b] < other->of_auto[b]; });
      for (std::size_t i = 0; i < std::min(order.size(), kFinalists); ++i) again.insert(order[i]->point);
    }
    for (const Trial& trial : earlier)
      if (std::find(trial.of_auto.begin(), trial.of_auto.end(), 0.0) != trial.of_auto.end())
        again.insert(trial.point);
    for (const Trial& trial : earlier) {
      if (again.contains(trial.point)) continue;
      seen_.insert(print(options_.space().schedule(model_, trial.point)));
      tuning_.trials.push_back(trial);
    }
    return {again.begin(), again.end()};
  }

  /// Runs heats with the points whose schedules were not tried yet.
  Result<void> heats_of(const std::vector<std::size_t>& points) {
    const auto heats_end =
        end_ - std::chrono::duration_cast<Clock::duration>((1 - kHeatShare) * options_.budget);
    std::vector<std::pair<std::size_t, Schedule>> fresh;
    for (const std::size_t point : points) {
      Schedule schedule = options_.space().schedule(model_, point);
      if (seen_.insert(print(schedule)).second) fresh.emplace_back(point, std::move(schedule));
    }
    tuning_.planned += fresh.size();
    std::vector<RunnerRef> heat;
    Clock::time_point begin = Clock::now();
    for (auto& [point, schedule] : fresh) {
      if (is_over(heats_end)) break;
      FVM_ASSIGN(std::optional<Program> program, compiled(schedule));
      if (!program) {
        ++tuning_.refused;
        continue;
      }
      std::string name = scheduler::point_name(options_.space(), point);
      auto runner = loaded({std::move(name), std::move(schedule), point, std::move(*program)});
      if (!runner && !options_.backend.on_host() && runner.error().code == ErrorCode::Refused) {
        ++tuning_.refused;  // the GPU has not enough of something
        continue;
      }
      FVM_TRY(runner);
      heat.push_back(std::move(*runner));
      if (heat.size() == kHeat || Clock::now() - begin > options_.budget * kCompileShare) {
        FVM_TRY(run_heat(heat, heats_end));
        heat.clear();
        begin = Clock::now();
      }
    }
    return run_heat(heat, heats_end);
  }

  Result<void> run_heat(const std::vector<RunnerRef>& heat, Clock::time_point heats_end) {
    if (heat.empty()) return {};
    std::size_t b = 0;
    for (; b < best_.size() && !is_over(heats_end); ++b) {
      FVM_TRY(run_heat(heat, b));
      for (const RunnerRef& runner : heat) {
        auto& best = best_[b];
        const auto worse = std::upper_bound(best.begin(), best.end(), runner,
                                            [b](const RunnerRef& mine, const RunnerRef& other) {
                                              return mine->of_auto[b] < other->of_auto[b];
                                            });
        best.insert(worse, runner);
        if (best.size() > kFinalists) best.pop_back();
      }
    }
    if (b == 0) return {};
    for (const RunnerRef& runner : heat)
      tuning_.trials.push_back({runner->point, runner->us_per_row, runner->of_auto});
    tuning_.tried += heat.size();
    if (b < best_.size()) tuning_.partial += heat.size();
    show_({tuning_.tried + tuning_.refused - 1, tuning_.planned, best_text()});
    return {};
  }

  /// Samples the schedules of a heat and `auto` in turns for one batch, and sets us_per_row and of_auto.
  Result<void> run_heat(const std::vector<RunnerRef>& heat, std::size_t b) {
    const std::uint64_t batch = options_.batches[b];
    double automatic = INFINITY;
    std::vector<bool> is_hopeless;
    for (const RunnerRef& runner : heat) {
      FVM_TRY(warm_up(*runner, b));
      runner->us_per_row[b] = runner->once[b].count() * 1e6 / static_cast<double>(batch);
      is_hopeless.push_back(runner->once[b] > kHopeless * automatic_->once[b]);
    }
    for (std::size_t turn = 0; turn < kHeatTurns; ++turn) {
      FVM_ASSIGN(const double time, automatic_->sample(b, batch, kHeatSample));
      automatic = std::min(automatic, time);
      for (std::size_t i = 0; i < heat.size(); ++i) {
        if (is_hopeless[i]) continue;
        FVM_ASSIGN(const double mine, heat[i]->sample(b, batch, kHeatSample));
        heat[i]->us_per_row[b] = std::min(heat[i]->us_per_row[b], mine);
      }
    }
    if (automatic_->us_per_row[b] == 0 || automatic < automatic_->us_per_row[b])
      automatic_->us_per_row[b] = automatic;
    for (const RunnerRef& runner : heat) runner->of_auto[b] = runner->us_per_row[b] / automatic;
    return {};
  }

  /// Says which schedule gains most over auto so far.
  std::string best_text() const {
    std::size_t most = 0;  // the first batch has been measured
    for (std::size_t b = 1; b < best_.size(); ++b)
      if (!best_[b].empty() && best_[b].front()->of_auto[b] < best_[most].front()->of_auto[most]) most = b;
    const Runner& best = *best_[most].front();
    return printed("best %.2fx %s at %llu rows: ", 1 / best.of_auto[most], automatic_->name.c_str(),
                   static_cast<unsigned long long>(options_.batches[most])) +
           best.name;
  }

  Result<void> run_races() {
    for (std::size_t b = 0; b < best_.size(); ++b) {
      std::vector<RunnerRef> runners{automatic_};
      runners.insert(runners.end(), best_[b].begin(), best_[b].end());
      const Clock::time_point begin = Clock::now();
      const auto slot = (end_ - begin) / static_cast<std::int64_t>(best_.size() - b);
      FVM_ASSIGN(scheduler::RaceResult result, race(b, runners, begin + slot * 7 / 10));
      // `auto` may have left the race early, after few turns. Its time and the winner's are measured again, in turns.
      scheduler::Standing& winner = result.standings.front();
      if (winner.candidate != 0 && !winner.times.empty()) {
        FVM_ASSIGN(const scheduler::RaceResult duel,
                   race(b, {automatic_, runners[winner.candidate]}, begin + slot));
        for (const scheduler::Standing& standing : duel.standings)
          for (scheduler::Standing& mine : result.standings)
            if (mine.candidate == (standing.candidate == 0 ? 0 : winner.candidate) && !standing.times.empty())
              mine.times = standing.times;
      }
      tuning_.batches.push_back(outcome(b, runners, result));
    }
    return {};
  }

  Result<scheduler::RaceResult> race(std::size_t b, const std::vector<RunnerRef>& runners,
                                     Clock::time_point end) const {
    return scheduler::race(
        runners.size(),
        [&](std::size_t i) { return runners[i]->sample(b, options_.batches[b], kRaceSample); },
        [&] { return is_over(end); });
  }

  TunedBatch outcome(std::size_t b, const std::vector<RunnerRef>& runners,
                     const scheduler::RaceResult& result) const {
    TunedBatch tuned{options_.batches[b], {}, 0, result.is_separated};
    for (const scheduler::Standing& standing : result.standings) {
      const Runner& runner = *runners[standing.candidate];
      const double time = standing.times.empty() ? runner.us_per_row[b] : standing.typical();
      tuned.finalists.push_back({runner.name, print(runner.schedule), time, standing.times.size()});
      if (&runner == automatic_.get()) tuned.auto_us_per_row = time;
    }
    // If the race did not take place, the heats decide: runners[1] has the least of_auto of all.
    if (result.standings.front().times.empty() && runners.size() > 1 && runners[1]->of_auto[b] < 1)
      std::swap(tuned.finalists[0], tuned.finalists[1]);
    const auto mine =
        std::find_if(tuned.finalists.begin(), tuned.finalists.end(),
                     [&](const Finalist& finalist) { return finalist.name == automatic_->name; });
    if (mine->us_per_row <= kWorthwhile * tuned.finalists.front().us_per_row)
      std::rotate(tuned.finalists.begin(), mine, mine + 1);
    return tuned;
  }

  /// Makes the schedule with a plan for each batch. The plan of a batch holds up to the geometric mean of its number of
  /// rows and the next batch's.
  void plan() {
    std::vector<PlanText> plans;
    const std::vector<PlanText> automatic = plans_of(automatic_->schedule);
    std::uint64_t least = 1;
    for (std::size_t b = 0; b < tuning_.batches.size(); ++b) {
      const bool is_last = b + 1 == tuning_.batches.size();
      const std::uint64_t most =
          is_last ? scheduler::kAnyRows : middle(options_.batches[b], options_.batches[b + 1]);
      const TunedBatch& tuned = tuning_.batches[b];
      const std::string remark = remark_of(tuned);
      if (tuned.finalists.front().name != automatic_->name) {
        const Schedule schedule = *parse_schedule(tuned.finalists.front().schedule);
        add(plans, {least, most, {}, schedule.directives, remark});
      } else {
        const PlanText* const measured = scheduler::plan_for(automatic, tuned.batch, cpu());
        for (const PlanText& mine : automatic)
          if (mine.most >= least && mine.least <= most)
            add(plans, {std::max(mine.least, least), std::min(mine.most, most), mine.target, mine.directives,
                        &mine != measured     ? mine.remark
                        : mine.remark.empty() ? remark
                                              : mine.remark + "; " + remark});
      }
      least = most + 1;
    }
    tuning_.schedule = joined(plans);
  }

  /// Returns the CPU that was measured.
  CpuTarget cpu() const {
    if (!options_.backend.on_host()) return CpuTarget::Baseline;
    const auto target = host::find_target(options_.backend.host.target);
    FVM_CHECK(target.ok());  // predictors were made for it
    return (*target)->cpu();
  }

  static std::uint64_t middle(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
  }

  /// Adds a plan, or lengthens the last one if it has the same directives. Plans of several targets for the same rows
  /// stay as they are.
  static void add(std::vector<PlanText>& plans, PlanText plan) {
    const std::size_t last = plans.size() - 1;
    const bool shares_rows = plans.size() > 1 && plans[last - 1].most == plans[last].most;
    if (plans.empty() || shares_rows || !plans[last].target.empty() || !plan.target.empty() ||
        plans[last].directives != plan.directives)
      return plans.push_back(std::move(plan));
    plans.back().most = plan.most;
    if (plans.back().remark != plan.remark) plans.back().remark += "; " + plan.remark;
  }

  std::string remark_of(const TunedBatch& tuned) const {
    const Finalist& best = tuned.finalists.front();
    return printed(
        "%s at %llu %s: %.4f us a row, %s %.4f, on %s", options_.device == nullptr ? "measured" : "estimated",
        static_cast<unsigned long long>(tuned.batch), tuned.batch == 1 ? "row" : "rows", best.us_per_row,
        automatic_->name.c_str(), tuned.auto_us_per_row, options_.machine.c_str());
  }

  const Model& model_;
  const TuningOptions& options_;
  const RepeatedRows& rows_;
  const std::function<bool()>& interrupted_;
  const std::function<void(const TuningProgress&)>& show_;
  Clock::time_point end_;
  RunnerRef automatic_;
  // for each batch, the best schedules of all heats, the best first
  std::vector<std::vector<RunnerRef>> best_;
  std::vector<std::size_t> predicted_;  ///< With the strategy `predict`, the points to measure.
  std::set<std::string> seen_;          // texts of the schedules that were tried
  Tuning tuning_;
};

}  // namespace

Result<Seconds> estimated_call(const Program& program, std::uint64_t rows,
                               const kernels::DeviceModel& device) {
  const auto count = static_cast<std::uint32_t>(rows);
  FVM_ASSIGN(const kernels::CallAccount call,
             kernels::account(program, {count, count, OutputKind::Raw}, device));
  if (!call.counted) return refused("estimate", "the costs of a layout's walks were not counted");
  return Seconds(call.seconds);
}

Result<Tuning> tune(const Model& model, const Automatic& automatic, const TuningOptions& options,
                    const RepeatedRows& rows, const std::function<bool()>& interrupted,
                    const std::function<void(const TuningProgress&)>& show) {
  return Search(model, options, rows, interrupted, show).run(automatic);
}

}  // namespace forestvm::cli
