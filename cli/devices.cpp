// forestvm devices: lists the GPUs that --backend and --device can name, or says why there are none.
#include <string>

#include <forestvm/backend.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

Result<void> run_devices(const Arguments&) {
  std::string text;
  for (const GpuVendor vendor : {GpuVendor::Cuda, GpuVendor::Hip}) {
    const auto devices = gpu_devices(vendor);
    if (!devices) {
      text += escaped(devices.error().text()) + '\n';
      continue;
    }
    for (const std::string& device : *devices) text += escaped(device) + '\n';
  }
  return write_output("-", text);
}

}  // namespace

const Command kDevices = {
    "devices",   "lists the GPUs that run can use", {"devices"}, {}, {}, "  forestvm devices\n", nullptr,
    run_devices,
};

}  // namespace forestvm::cli
