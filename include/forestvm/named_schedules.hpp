// Schedules to choose from: the automatic choice and the named schedules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <forestvm/core/contract.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm {

/// The backends that run a schedule: one that maps loops to a GPU (gpuDimension) runs on GPUs only, any other
/// on the host only.
enum class ScheduleBackend { Host, Gpu };

/// A named schedule. Its directives may depend on the model and the contract: schedule_by_name makes them.
struct NamedSchedule {
  std::string_view name;
  ScheduleBackend backend;
  std::string_view meaning;
};

/// Returns all named schedules, without `auto`.
std::span<const NamedSchedule> named_schedules();

/// Returns a schedule that suits the model on the host. Its plans are those of least predicted cost, or chosen by rules
/// where a model is unlike those from which the predictor has learned; remarks say why. It measures nothing, so that a
/// model always gets the same one. If `rows` has numbers of rows per call, ascending, the schedule suits calls of
/// these: it has fewer plans, and the program fewer copies of the trees. Calls of other sizes run, too. If several
/// `threads` are to predict, they share calls of few rows where these take long.
Schedule automatic_schedule(const Model& model, std::span<const std::uint32_t> rows = {},
                            unsigned threads = 1);

/// Returns the schedule called `name`: auto, or one of named_schedules(). Refused with the list otherwise. `contract`
/// is the one that the schedule is to be compiled under: one that adds trees in any order suits no other contract.
Result<Schedule> schedule_by_name(const Model& model, std::string_view name,
                                  Contract contract = Contract::Trainer);

}  // namespace forestvm
