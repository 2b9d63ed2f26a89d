// The named schedules, from the rows of named_schedules.def.
#include <forestvm/compile.hpp>

namespace forestvm {
namespace {

constexpr NamedSchedule kSchedules[] = {
#define FVM_SCHEDULE(name, text, meaning) {name, text, meaning},
#include "scheduler/choose/named_schedules.def"
};

}  // namespace

std::span<const NamedSchedule> named_schedules() { return kSchedules; }

Result<Schedule> schedule_by_name(const Model& model, std::string_view name) {
  if (name == "auto") return automatic_schedule(model);
  std::string known = "auto";
  for (const NamedSchedule& schedule : kSchedules) {
    if (schedule.name == name) return parse_schedule(schedule.text);
    known += ", " + std::string(schedule.name);
  }
  return refused("schedule '" + std::string(name) + "'",
                 "unknown; there are " + known + ", or a file (a value with '/' or '.')");
}

}  // namespace forestvm
