// Program -> its tables in a device's memory, as kernels read them.
#pragma once

#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/buffer.hpp"
#include "kernels/backend/runtime.hpp"
#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

class DeviceProgram {
 public:
  static Result<DeviceProgram> make(const Program& program, const Runtime& runtime);

  const LaunchProgram& tables() const { return tables_; }
  const LaunchWalker& walker(std::uint32_t number) const { return walkers_[number]; }
  const LaunchGroup& group(std::uint32_t number) const { return groups_[number]; }

 private:
  std::vector<Buffer> buffers_;
  LaunchProgram tables_{};
  std::vector<LaunchGroup> groups_;  ///< as they are on the device
  std::vector<LaunchWalker> walkers_;
};

}  // namespace forestvm::kernels
