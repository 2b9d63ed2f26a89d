// See backend.hpp.
#include "cli/backend.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array<std::string_view, 5> kBackendNames = {"auto", "host", "emulator", "cuda", "hip"};
constexpr std::uint64_t kMaxDevices = 1024;

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names = host_targets();
  names.insert(names.begin(), "auto");
  return names;
}

Result<std::unique_ptr<Predictor>> made(const BackendChoice& choice, const Program& program) {
  switch (choice.kind) {
    case BackendKind::Emulator:
      return emulator_backend(program);
    case BackendKind::Cuda:
      return gpu_backend(program, {GpuVendor::Cuda, choice.device});
    case BackendKind::Hip:
      return gpu_backend(program, {GpuVendor::Hip, choice.device});
    case BackendKind::Auto:
    case BackendKind::Host:
      break;
  }
  return host_backend(program, choice.host);
}

}  // namespace

constinit const Option kBackendOption = {
    "backend",
    '\0',
    "B",
    "auto (default: the host), host, cuda or hip (GPUs, see forestvm devices), or emulator (a GPU, emulated thread "
    "by thread, far slower than the host); cuda, hip and emulator run schedules for GPUs (default: gpu)",
    {listed<kBackendNames>}};
constinit const Option kDeviceOption = {"device", '\0', "N",
                                        "the number of the GPU in forestvm devices, default 0"};
constinit const Option kTargetOption = {
    "target",
    '\0',
    "T",
    "auto (default: FORESTVM_TARGET, otherwise the best that this CPU runs), or a name from the list below",
    {target_names}};

Result<BackendChoice> choose_backend(const Arguments& arguments) {
  BackendChoice choice;
  FVM_ASSIGN(const std::size_t kind, arguments.choice("backend", kBackendNames, 0));
  choice.kind = static_cast<BackendKind>(kind);
  const std::string name(kBackendNames[kind]);
  for (const char* const hosts : {"target", "threads"})
    if (!choice.on_host() && arguments.has(hosts))
      return usage_error(formatted("--{} is for the host: --backend {} has none", hosts, name));
  const bool is_gpu = choice.kind == BackendKind::Cuda || choice.kind == BackendKind::Hip;
  if (!is_gpu && arguments.has("device"))
    return usage_error(formatted("--device is for GPUs: --backend {} has none", name));
  FVM_ASSIGN(const std::uint64_t device, arguments.number("device", 0, kMaxDevices, 0));
  choice.device = static_cast<int>(device);
  choice.host.target = arguments.get("target", "auto");
  return choice;
}

Result<std::unique_ptr<Predictor>> make_predictor(const BackendChoice& choice, const Program& program,
                                                  const std::string& model) {
  auto predictor = made(choice, program);
  if (predictor || choice.on_host() || predictor.error().code != ErrorCode::Refused) return predictor;
  return in_file(model, predictor.error());
}

std::string target_notes() {
  std::string text = "Targets of this build, best first:";
  for (const std::string_view target : host_targets()) text += " " + std::string(target);
  return text + '\n';
}

}  // namespace forestvm::cli
