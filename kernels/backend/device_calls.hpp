// The calls that devices take: their outputs and options, and what these change in launches.
#pragma once

#include <cstdint>
#include <optional>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/device_program.hpp"
#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

/// Returns whether devices compute an output of a program. The host computes all.
bool has_on_device(const Program& program, OutputKind output);

/// Refuses outputs and options that are for the host only. `on_device`: the rows lie in the device's memory.
Result<void> check_device_call(const Program& program, OutputKind output, const CallOptions& options,
                               bool on_device);

/// A call's options, as far as launches depend on them.
struct LaunchOptions {
  bool margins = false;
  std::optional<Rounds> rounds;
  std::uint32_t every = 0;  ///< 0 unless the output is Staged

  static LaunchOptions of(OutputKind output, const CallOptions& options) {
    return {options.base_margin.data != nullptr, options.rounds,
            output == OutputKind::Staged ? options.every : 0};
  }
  bool operator==(const LaunchOptions&) const = default;
};

/// Sets what launches need to know of a call's options. `margins` are those of the pass's rows, if it has some.
void set_options(const Program& program, const DeviceProgram& device, const LaunchOptions& options,
                 const double* margins, Launch& launch);

}  // namespace forestvm::kernels
