// The arguments of a CPU target's function that computes contributions and interactions: see explain.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/encoder.hpp>

#include "vm/host/paths/level_paths.hpp"

namespace forestvm::host {

struct ExplainTask {
  const HostPaths* paths;
  const PathOutput* output;
  const std::uint8_t* codes;  ///< Code of the first row in column 0.
  unsigned rows;              ///< Number of rows, up to kCodeRows; they do not leave the block of codes.
  std::byte* scratch;         ///< ExplainScratch::bytes of memory, aligned to 64 bytes.
  bool pairs;                 ///< Compute the totals of pairs of features, too.
  /// The trees that count, as a range of HostPaths::trees, unless `all_trees`.
  std::size_t first_tree, end_tree;
  bool all_trees;
};

using ExplainFunction = void (*)(const ExplainTask&);

/// The decisions of rows at a split, a bit for each row.
struct PathDecisions {
  std::uint64_t tested;  ///< 1 if the row goes left.
  std::uint64_t open;    ///< 1 if O is 1: see forestvm/internal/loaded_paths.hpp.
};

/// The bytes of a vector's LevelWalk::Decisions.
inline constexpr std::size_t kLevelDecisionBytes = 12;

/// The layout of LevelWalk's part of the memory, as of ExplainScratch.
struct LevelScratch {
  std::size_t codes, numbers, shares, added, passed, decisions, sums, bytes;

  explicit LevelScratch(const HostPaths& paths) {
    const std::size_t line = paths.level_vectors * sizeof(Line);
    codes = 0;
    numbers = codes + whole_lines(paths.level_columns + sizeof(Line));  // vectors are read of them
    shares = numbers + paths.level_points * sizeof(Line);
    added = shares + paths.level_points * sizeof(Line);
    passed = added + whole_lines(paths.level_slots * sizeof(double));
    decisions = passed + line;
    sums = decisions + whole_lines(paths.level_vectors * kLevelDecisionBytes);
    bytes = sums + whole_lines(paths.most_sums * sizeof(double));
  }
};

/// The layout of an ExplainTask's memory: the offset of each part, a multiple of 64, and the size of all, both in
/// bytes. PathWalk's members say what the parts hold.
struct ExplainScratch {
  std::size_t totals, decisions, choices, numbers[2], parts, sums, level_walk, bytes;

  explicit ExplainScratch(const HostPaths& paths) {
    const std::size_t number = paths.wide ? sizeof(double) : sizeof(float);
    const std::size_t levels = paths.most_levels * kCodeRows * number;
    totals = 0;
    decisions = totals + paths.most_totals * kCodeRows * sizeof(double);
    choices = decisions + whole_lines((paths.most_splits + 1) * sizeof(PathDecisions));
    numbers[0] = choices + paths.most_splits * kCodeRows;
    numbers[1] = numbers[0] + levels;
    parts = numbers[1] + levels;
    sums = parts + (paths.interactions ? paths.most_points * kCodeRows * number : 0);
    level_walk = sums + (paths.wide ? 0 : paths.most_sums * kCodeRows * number);
    bytes = level_walk + (paths.levels.empty() ? 0 : LevelScratch(paths).bytes);
  }
};

}  // namespace forestvm::host
