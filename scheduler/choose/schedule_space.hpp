// The spaces in which schedules are searched, as data: parameters with their values, from the rows of spaces.def. A
// point chooses a value of each parameter; the space's template makes its schedule. Source: SilvanForge, section 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

struct SpaceParameter {
  std::string_view name;
  std::span<const std::string_view> values;
  std::string_view meaning;
};

struct ScheduleSpace {
  std::string_view name;
  ScheduleBackend backend;
  std::span<const SpaceParameter> parameters;
  std::size_t points;  ///< the product of the parameters' numbers of values
  /// Makes the schedule of a point for a model. Points may have equal schedules. The compiler decides which are legal.
  Schedule (*schedule)(const Model& model, std::size_t point);
};

/// Returns the spaces of the host and of GPUs.
std::span<const ScheduleSpace> schedule_spaces();
const ScheduleSpace& host_space();
const ScheduleSpace& gpu_space();

/// Returns a value of each parameter for a number below the space's `points`. The last parameter changes fastest.
std::vector<std::string_view> point_values(const ScheduleSpace& space, std::size_t point);

/// Returns the number of the point that has these values, one of each parameter.
std::size_t point_of(const ScheduleSpace& space, std::span<const std::string_view> values);

/// Returns the number that a parameter's value spells, such as 64 for "64".
std::uint32_t value_number(std::string_view value);

/// Returns a point's values with their parameters' names: "parallel=rows block=64 ...".
std::string point_name(const ScheduleSpace& space, std::size_t point);

/// The indices of the parameters in a point's values.
namespace host_parameters {
enum HostParameter : std::size_t {
#define FVM_HOST_PARAMETER(Name, name, values, meaning) Name,
#define FVM_GPU_PARAMETER(Name, name, values, meaning)
#include "scheduler/choose/spaces.def"
  Count
};
}  // namespace host_parameters
namespace gpu_parameters {
enum GpuParameter : std::size_t {
#define FVM_HOST_PARAMETER(Name, name, values, meaning)
#define FVM_GPU_PARAMETER(Name, name, values, meaning) Name,
#include "scheduler/choose/spaces.def"
  Count
};
}  // namespace gpu_parameters

}  // namespace forestvm::scheduler
