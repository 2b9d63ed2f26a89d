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

/// The intermediate forms that a compilation can print, in order.
enum class Stage { Model, Tiled, Loops, Legalized, Program };
inline constexpr std::string_view kStageNames[] = {"model", "tiled", "loops", "legalized", "program"};

struct CompileOptions {
  Contract contract = Contract::Trainer;
  bool strict = false;  ///< refuse what would otherwise be a warning
  /// If set, is called after each pass that completes a printable form; `print` makes its text.
  std::function<void(Stage, const std::function<std::string()>& print)> on_stage;
};

/// The time that a pass of the pipeline took.
struct PassTime {
  std::string_view pass;
  double seconds;
};

struct Compiled {
  Program program;
  std::vector<std::string> warnings;  ///< each place where the schedule changes what the contract asks for
  std::vector<PassTime> passes;
};

/// Compiles a model. Refused, with the directive's place in the schedule, if a directive cannot be honoured,
/// or, with the tree and node, if the model needs what no backend can run.
Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options = {});

/// Compiles a model that is not needed any more: its trees are rewritten in place, which takes less memory.
Result<Compiled> compile(Model&& model, const Schedule& schedule, const CompileOptions& options = {});

/// The kind of backend that runs a schedule: Gpu if it maps loops to one (gpuDimension), otherwise Host.
enum class ScheduleBackend { Host, Gpu };

/// A schedule that has a name. Its directives may depend on the model: schedule_by_name returns them.
struct NamedSchedule {
  std::string_view name;
  ScheduleBackend backend;
  std::string_view meaning;
};

/// Lists the named schedules. `auto` is not among them.
std::span<const NamedSchedule> named_schedules();

/// Returns a schedule that suits this model on the host: rows in parallel, interleaved walks, and the layout
/// array or sparse, by the trees' shape.
Schedule automatic_schedule(const Model& model);

/// Returns the schedule called `name`: auto, or one of named_schedules(). Other names are refused with the
/// list.
Result<Schedule> schedule_by_name(const Model& model, std::string_view name);

/// How the reproducible contract sums a model's leaves: as a 64- or 128-bit multiple of 2^unit, or (PerTree,
/// PerTree64) leaf by leaf in the model's order.
struct ReproducibleSums {
  AccumulatorKind kind = AccumulatorKind::PerTree;
  int unit = 0;
};
ReproducibleSums reproducible_sums(const Model& model);

ForestStatistics statistics(const Model& model);

/// Returns the number of distinct thresholds of each feature that has any.
std::vector<FeatureCount> thresholds_per_feature(const Model& model);

/// Returns the number of distinct sets of categories of each feature that has any.
std::vector<FeatureCount> category_sets_per_feature(const Model& model);

}  // namespace forestvm
