// Program and its paths -> the tables that the kernel of kinds reads, in a device's memory.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/internal/loaded_paths.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/table_uploads.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Returns the paths from which a device computes contributions: none if it does not.
LoadedPaths device_paths(const Program& program);

ExplainSizes explain_sizes(const LoadedPaths& paths);

/// Tables that are derived from paths, which must live until they are copied.
class DeviceKinds {
 public:
  DeviceKinds(const Program& program, const LoadedPaths& paths);

  /// Begins to copy the tables. Sets `to` to where they will lie.
  void put(TableUploads& uploads, const KindTables*& to);

 private:
  void find_above_depths();
  void find_terms();
  void find_interacting();
  void find_looked_up();

  const Program& program_;
  const LoadedPaths& paths_;
  std::vector<std::uint16_t> above_depths_, pair_depths_;
  std::vector<double> expected_, ensemble_factors_;
  std::vector<std::uint32_t> term_begins_, terms_, interacting_begins_, pair_begins_, pair_terms_;
  std::vector<InteractingFeature> interacting_;
  std::vector<LookedUpLeaf> looked_up_leaves_;
  std::vector<std::uint32_t> looked_up_begins_;
  std::vector<LookedUpFeature> looked_up_;
  KindTables tables_{};
};

}  // namespace forestvm::kernels
