// The template of schedules for the host, and its eight parameters (spaces.def). It is SilvanForge's space for CPUs
// (section 8.3: parallel over rows, trees or both, with walks in lockstep), to which blocks, layouts, tiles, rank codes
// and unrolled walks are added.
//
//   parallel rows   lanes rows    for b0 in rows step block: for tree in trees: for b1 in b0: walk
//                   lanes trees   for b0 in rows step block: for b1 in b0: for tree in trees: walk
//   parallel trees  lanes rows    for t0 in trees step block: for t1 in t0: for batch in rows: walk
//                   lanes trees   for t0 in trees step block: for batch in rows: for t1 in t0: walk
//   parallel both   lanes rows    for b0 in rows step block: for t0 in trees step 64: for t1 in t0: for b1 in b0: walk
//                   lanes trees   for b0 in rows step block: for t0 in trees step 64: for b1 in b0: for t1 in t0: walk
//
// With `none` in parallel, the loops are those of parallel rows, but run in one thread; with lanes of trees there are
// no blocks then. With a lockstep above 1 the innermost loop is cut into pieces of that length, which are interleaved.
// Tables are walked in a lockstep of their own, without steps to unroll, so points that differ only in interleave and
// walker have one schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

/// A point of the host's space: a value of each parameter, as a word or number of spaces.def.
struct HostTemplatePoint {
  std::string_view parallel = "none";
  std::uint32_t block = 64;
  std::string_view lanes = "rows";
  std::uint32_t interleave = 1;
  std::string_view layout = "array";
  std::string_view tiling = "none";
  std::string_view encode = "none";
  std::string_view walker = "checked";
};

/// Returns the point with this number, which is below the number of points of the host's space.
HostTemplatePoint host_template_point(std::size_t index);

Schedule host_template_schedule(const HostTemplatePoint& point);

}  // namespace forestvm::scheduler
