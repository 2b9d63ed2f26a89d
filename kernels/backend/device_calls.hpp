// The calls that devices take: their outputs and options, and what these change in launches.
#pragma once

#include <cstddef>
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

/// Returns the output whose code a call runs: that of stages keeps each tree's leaf, which an early stop needs.
inline OutputKind run_output(OutputKind output, const CallOptions& options) {
  return options.early_stop ? OutputKind::Staged : output;
}

/// Refuses outputs and options that are for the host only. `on_device`: the rows lie in the device's memory.
Result<void> check_device_call(const Program& program, OutputKind output, const CallOptions& options,
                               bool on_device);

/// A call's options, as far as launches depend on them.
struct LaunchOptions {
  bool base = false;  ///< each row brings numbers of LaunchPass::base
  std::optional<Rounds> rounds;
  std::uint32_t every = 0;      ///< 0 unless the output is Staged, or the call stops early
  std::uint32_t ensembles = 0;  ///< 0 unless the output is VirtEnsembles or Uncertainty
  double margin = 0;            ///< EarlyStop::margin
  std::size_t quantiles = 0;    ///< number of quantiles; 0 unless the output is Quantile

  static LaunchOptions of(OutputKind output, const CallOptions& options) {
    const bool explains = explains_scores(output);
    const bool members = output == OutputKind::VirtEnsembles || output == OutputKind::Uncertainty;
    const EarlyStop stop = options.early_stop.value_or(EarlyStop{0, 0});
    return {options.base_margin.data != nullptr || (explains && options.rounds),
            options.rounds,
            output == OutputKind::Staged ? options.every : stop.every,
            members ? options.ensembles : 0,
            stop.margin,
            output == OutputKind::Quantile ? options.quantiles.size() : 0};
  }
  bool operator==(const LaunchOptions&) const = default;
};

/// Writes what the rows of a pass, which begin at row `begin` of the call, bring of LaunchPass::base: margins, or
/// expected scores, or the quantiles of the call.
void write_base(const Program& program, OutputKind output, const CallOptions& options, std::size_t begin,
                std::size_t rows, double* to);

/// Sets what launches need to know of a call's options. `base` is what the pass's rows bring; null if they bring
/// nothing.
void set_options(const Program& program, const DeviceProgram& device, const LaunchOptions& options,
                 const double* base, Launch& launch);

}  // namespace forestvm::kernels
