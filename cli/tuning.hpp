// The search of forestvm tune. In: a model, rows, and batches (numbers of rows per call). Out: the fastest schedules
// measured for each batch, and one schedule with a plan for each batch. Candidates are compiled once and sampled in
// turns with `auto` for all batches (a heat); the best candidates of each batch then race (scheduler/choose/race.hpp).
// A search on GPUs compares with `gpu` and goes on in the space of GPU schedules. Instead of a GPU's times it may have
// those that the accounting estimates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/model.hpp>

#include "cli/backend.hpp"
#include "cli/repeated_rows.hpp"
#include "kernels/account/device_model.hpp"
#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::cli {

/// The schedules that a search measures. Heuristic: a few dozen that rules choose. Exhaustive: these, then all others
/// of the space. Predict: those of least predicted cost.
enum class Strategy { Heuristic, Exhaustive, Predict };

/// A schedule of the space, with the times that heats measured.
struct Trial {
  std::size_t point = 0;             ///< Number of the schedule in the space.
  std::vector<double> us_per_row{};  ///< Microseconds per row, for each batch; 0: not measured.
  std::vector<double> of_auto{};     ///< us_per_row divided by auto's in the same heat; 0: not measured.
};

struct TuningOptions {
  std::vector<std::uint64_t> batches;  ///< Ascending, without repeats.
  BackendChoice backend{};
  const kernels::DeviceModel* device =
      nullptr;            ///< The GPU whose times are estimated; null: times are measured.
  std::string machine{};  ///< Describes, for plans, where times hold.
  CompileOptions compile{};
  Strategy strategy = Strategy::Heuristic;
  Seconds budget{30};
  /// Trials of an earlier search for the same program, machine and batches. The best ones of each batch, and those that
  /// were not measured for all batches, are measured again; the others are taken as they are.
  std::vector<Trial> earlier{};

  const scheduler::ScheduleSpace& space() const {
    return backend.on_host() ? scheduler::host_space() : scheduler::gpu_space();
  }
};

/// A schedule's time in a batch's race.
struct Finalist {
  std::string name;      ///< "auto" or "gpu", or the values of the point's parameters.
  std::string schedule;  ///< Text of the schedule.
  double us_per_row = 0;
  std::size_t turns = 0;  ///< Samples in the race; 0: us_per_row was measured in a heat.
};

/// The outcome of the search for calls of `batch` rows.
struct TunedBatch {
  std::uint64_t batch = 0;
  std::vector<Finalist> finalists;  ///< The fastest first.
  double auto_us_per_row = 0;       ///< Time of `auto`, or of `gpu`; 0 if nothing was measured.
  bool is_separated = false;        ///< True if the first finalist is ahead of the second beyond chance.
};

struct Tuning {
  std::vector<TunedBatch> batches;
  Schedule schedule;          ///< A plan for each batch, with remarks.
  std::vector<Trial> trials;  ///< All trials of this and an earlier search, without `auto`.
  std::size_t tried = 0;      ///< Schedules that this search measured, `auto` included.
  std::size_t partial = 0;    ///< Schedules among these that it measured for some of the batches only.
  std::size_t refused = 0;    ///< Schedules that the compiler refused.
  std::size_t planned = 0;    ///< Schedules that the search would compile if it had the time, without `auto`.

  /// Returns whether all planned schedules were measured for all batches, or refused.
  bool is_complete() const { return partial == 0 && tried + refused == planned + 1; }
};

/// The progress that is shown while tuning runs.
struct TuningProgress {
  std::size_t done, planned;  ///< schedules
  std::string best;           ///< The schedule with the largest gain over auto so far, and its batch.
};

/// The schedule that `auto` or `gpu` stands for, and the model's program with it.
struct Automatic {
  std::string name;
  Schedule schedule;
  Program program;
};

/// Returns the seconds of a call for raw scores that the accounting estimates. Refuses programs that it cannot count.
Result<Seconds> estimated_call(const Program& program, std::uint64_t rows,
                               const kernels::DeviceModel& device);

/// Searches until all schedules are tried, the budget is spent, or `interrupted` returns true.
Result<Tuning> tune(const Model& model, const Automatic& automatic, const TuningOptions& options,
                    const RepeatedRows& rows, const std::function<bool()>& interrupted,
                    const std::function<void(const TuningProgress&)>& show);

}  // namespace forestvm::cli
