// The named schedules, from the rows of named_schedules.def.
#include <iterator>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/nearest.hpp>
#include <forestvm/named_schedules.hpp>

#include "scheduler/choose/model_schedules.hpp"

namespace forestvm {
namespace {

constexpr NamedSchedule kSchedules[] = {
#define FVM_SCHEDULE(name, backend, text, meaning) {name, ScheduleBackend::backend, meaning},
#define FVM_MODEL_SCHEDULE(name, backend, make, meaning) {name, ScheduleBackend::backend, meaning},
#include "scheduler/choose/named_schedules.def"
};

/// The source of a schedule: its text, or a function of the model and the contract.
struct Origin {
  std::string_view text;
  Schedule (*make)(const Model&, Contract);
};

constexpr Origin kOrigins[] = {
#define FVM_SCHEDULE(name, backend, text, meaning) {text, nullptr},
#define FVM_MODEL_SCHEDULE(name, backend, make, meaning) {{}, scheduler::make},
#include "scheduler/choose/named_schedules.def"
};

}  // namespace

std::span<const NamedSchedule> named_schedules() { return kSchedules; }

Result<Schedule> schedule_by_name(const Model& model, std::string_view name, Contract contract) {
  if (name == "auto") return automatic_schedule(model);
  std::vector<std::string_view> known{"auto"};
  std::string list = "auto";
  for (std::size_t i = 0; i < std::size(kSchedules); ++i) {
    const Origin& origin = kOrigins[i];
    if (kSchedules[i].name == name)
      return origin.make != nullptr ? Result<Schedule>(origin.make(model, contract))
                                    : parse_schedule(origin.text);
    known.push_back(kSchedules[i].name);
    list += ", " + std::string(kSchedules[i].name);
  }
  const std::string hint = did_you_mean(name, known);
  return refused(formatted("schedule '{}'", name), "unknown{}{} named schedules are {}", hint,
                 hint.empty() ? "; the" : " The", list);
}

}  // namespace forestvm
