// The host's counterpart of SilvanForge's algorithm 1: the few points of the host's space that are worth measuring
// for calls of some number of rows. It searches parameters that depend on each other first, as algorithm 1 does,
// and tries orthogonal ones on the best points only. Source: SilvanForge, sections 8.2 and 8.3; the points come
// from measurements (bench/results/auto.md).
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/choose/host_template.hpp"

namespace forestvm::scheduler {

/// The number of points whose variants are tried.
inline constexpr std::size_t kTriedVariants = 3;

/// Returns the points to measure first for calls of `batch` rows on `threads` threads.
std::vector<HostTemplatePoint> host_heuristic_points(std::size_t batch, std::size_t threads);

/// Returns the variants of a point: points with other values of the orthogonal parameters, tiling (without tiles of
/// several nodes) and walker.
std::vector<HostTemplatePoint> host_variants(const HostTemplatePoint& point);

/// Returns the number of a point in the host's space.
std::size_t host_point_number(const HostTemplatePoint& point);

}  // namespace forestvm::scheduler
