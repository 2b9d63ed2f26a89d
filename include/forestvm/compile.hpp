// Model + Schedule -> Program. Implemented by scheduler/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/contract.hpp>
#include <forestvm/model.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>
#include <forestvm/schedule.hpp>
#include <forestvm/statistics.hpp>

namespace forestvm {

/// The in-between forms that a compilation can show, in order.
enum class Stage { Model, Tiled, Loops, Legalized, Program };
inline constexpr std::string_view kStageNames[] = {"model", "tiled", "loops", "legalized", "program"};

struct CompileOptions {
  Contract contract = Contract::Trainer;
  bool strict = false;  ///< refuse what would otherwise be a warning
  /// If set, called after each pass that completes a printable form, with the means to print it.
  std::function<void(Stage, const std::function<std::string()>& print)> on_stage;
};

/// What a pass of the pipeline cost.
struct PassTime {
  std::string_view pass;
  double seconds;
};

struct Compiled {
  Program program;
  std::vector<std::string> warnings;  ///< where the schedule changes what the contract asks for
  std::vector<PassTime> passes;
};

/// Compiles. Refused, with the directive's place in the schedule, when a directive cannot be honoured; or
/// with the tree and node when the model needs what no backend runs yet.
Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options = {});

/// The same for a model that is not needed any more: its trees are rewritten where they lie, which takes less
/// memory.
Result<Compiled> compile(Model&& model, const Schedule& schedule, const CompileOptions& options = {});

/// What runs a schedule: one that maps loops to a GPU (gpuDimension) runs on GPUs only, any other on the host
/// only.
enum class ScheduleBackend { Host, Gpu };

/// A schedule that has a name. What it says may depend on the model: schedule_by_name gives it.
struct NamedSchedule {
  std::string_view name;
  ScheduleBackend backend;
  std::string_view meaning;
};

/// All of them; `auto` is not among them.
std::span<const NamedSchedule> named_schedules();

/// A fixed choice that suits this model on the host: rows in parallel, interleaved, array or sparse by shape.
Schedule automatic_schedule(const Model& model);

/// The schedule that `name` asks for: auto, or one of named_schedules(). Refused with the list otherwise.
Result<Schedule> schedule_by_name(const Model& model, std::string_view name);

/// How the reproducible contract sums a model's leaves: in a 64- or 128-bit count of 2^unit, or (PerTree,
/// PerTree64) leaf by leaf in the model's order.
struct ReproducibleSums {
  AccumulatorKind kind = AccumulatorKind::PerTree;
  int unit = 0;
};
ReproducibleSums reproducible_sums(const Model& model);

ForestStatistics statistics(const Model& model);

/// Distinct thresholds of each feature that has some.
std::vector<FeatureCount> thresholds_per_feature(const Model& model);

/// Distinct sets of categories of each feature that has some.
std::vector<FeatureCount> category_sets_per_feature(const Model& model);

}  // namespace forestvm
