// See schedule_space.hpp.
#include "scheduler/choose/schedule_space.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/choose/gpu_template.hpp"
#include "scheduler/choose/host_template.hpp"

namespace forestvm::scheduler {
namespace {

#define FVM_VALUES(...) \
  { __VA_ARGS__ }
#define FVM_HOST_PARAMETER(Name, name, values, meaning) constexpr std::string_view kHost##Name[] = values;
#define FVM_GPU_PARAMETER(Name, name, values, meaning) constexpr std::string_view kGpu##Name[] = values;
#include "scheduler/choose/spaces.def"

constexpr SpaceParameter kHostParameters[] = {
#define FVM_HOST_PARAMETER(Name, name, values, meaning) {name, kHost##Name, meaning},
#define FVM_GPU_PARAMETER(Name, name, values, meaning)
#include "scheduler/choose/spaces.def"
};
constexpr SpaceParameter kGpuParameters[] = {
#define FVM_HOST_PARAMETER(Name, name, values, meaning)
#define FVM_GPU_PARAMETER(Name, name, values, meaning) {name, kGpu##Name, meaning},
#include "scheduler/choose/spaces.def"
};
#undef FVM_VALUES

constexpr std::size_t count_points(std::span<const SpaceParameter> parameters) {
  std::size_t points = 1;
  for (const SpaceParameter& parameter : parameters) points *= parameter.values.size();
  return points;
}
static_assert(count_points(kGpuParameters) == kGpuTemplatePoints);

Schedule gpu_schedule(const Model& model, std::size_t point) {
  return gpu_template_schedule(model, gpu_template_point(point));
}

Schedule host_schedule(const Model&, std::size_t point) {
  return host_template_schedule(host_template_point(point));
}

constexpr ScheduleSpace kSpaces[] = {
    {"host", ScheduleBackend::Host, kHostParameters, count_points(kHostParameters), host_schedule},
    {"gpu", ScheduleBackend::Gpu, kGpuParameters, count_points(kGpuParameters), gpu_schedule},
};

}  // namespace

std::span<const ScheduleSpace> schedule_spaces() { return kSpaces; }
const ScheduleSpace& host_space() { return kSpaces[0]; }
const ScheduleSpace& gpu_space() { return kSpaces[1]; }

std::vector<std::string_view> point_values(const ScheduleSpace& space, std::size_t point) {
  FVM_CHECK(point < space.points);
  std::vector<std::string_view> values(space.parameters.size());
  for (std::size_t i = values.size(); i-- > 0;) {
    const auto choices = space.parameters[i].values;
    values[i] = choices[point % choices.size()];
    point /= choices.size();
  }
  return values;
}

std::size_t point_of(const ScheduleSpace& space, std::span<const std::string_view> values) {
  FVM_CHECK(values.size() == space.parameters.size());
  std::size_t point = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto choices = space.parameters[i].values;
    const auto found = std::find(choices.begin(), choices.end(), values[i]);
    FVM_CHECK(found != choices.end());
    point = point * choices.size() + static_cast<std::size_t>(found - choices.begin());
  }
  return point;
}

std::uint32_t value_number(std::string_view value) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  FVM_CHECK(error == std::errc() && end == value.data() + value.size());
  return number;
}

std::string point_name(const ScheduleSpace& space, std::size_t point) {
  const std::vector<std::string_view> values = point_values(space, point);
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += formatted("{}{}={}", i == 0 ? "" : " ", space.parameters[i].name, values[i]);
  return text;
}

}  // namespace forestvm::scheduler
