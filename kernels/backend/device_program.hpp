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

 private:
  std::vector<Buffer> buffers_;
  LaunchProgram tables_{};
};

}  // namespace forestvm::kernels
