// Program -> its tables in a device's memory, as kernels read them.
#pragma once

#include <list>
#include <vector>

#include <forestvm/internal/loaded_paths.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/buffer.hpp"
#include "kernels/backend/runtime.hpp"
#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

class DeviceProgram {
 public:
  /// `paths` are device_paths(program).
  static Result<DeviceProgram> make(const Program& program, const LoadedPaths& paths, const Runtime& runtime);

  const LaunchProgram& tables() const { return tables_; }
  const double* base() const { return base_; }        ///< base scores, one for each output
  const double* no_base() const { return no_base_; }  ///< as many zeros: base scores of rounds without a base
  /// Whether the program counts trees as the model does.
  bool counts_as_model() const { return counts_as_model_; }
  const LaunchWalker& walker(std::uint32_t number) const { return walkers_[number]; }
  const LaunchGroup& group(std::uint32_t number) const { return groups_[number]; }

 private:
  std::list<Buffer> buffers_;  ///< not moved when their number grows
  LaunchProgram tables_{};
  const double* base_ = nullptr;
  const double* no_base_ = nullptr;
  bool counts_as_model_ = true;
  std::vector<LaunchGroup> groups_;  ///< as they are on the device
  std::vector<LaunchWalker> walkers_;
};

}  // namespace forestvm::kernels
