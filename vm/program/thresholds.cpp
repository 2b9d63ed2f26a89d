// Finds the thresholds with which a program's forest compares each feature.
#include <algorithm>
#include <span>

#include "vm/program/decode_forest.hpp"

namespace forestvm {
namespace {

/// Replaces the numbers that nodes have by the bounds they stand for: in a ranked feature they are the ranks of
/// bounds, otherwise the least float32 numbers that are not below them.
void restore_bounds(const WideFeature& wide, std::span<const double> bounds,
                    std::vector<double>& thresholds) {
  for (double& threshold : thresholds) {
    if (wide.ranked != 0) {
      const auto rank = static_cast<std::size_t>(threshold);
      if (rank >= 1 && rank <= bounds.size()) threshold = bounds[rank - 1];
      continue;
    }
    const auto at = std::lower_bound(bounds.begin(), bounds.end(), threshold);
    if (at != bounds.begin() && static_cast<double>(neighbours(*(at - 1)).up) == threshold)
      threshold = *(at - 1);
  }
}

}  // namespace

std::map<std::uint32_t, std::vector<double>> thresholds(const Program& program) {
  std::map<std::uint32_t, std::vector<double>> result;
  for (const GroupDesc& group : program.section_Groups())
    for (const bytecode::DecodedTree& tree : bytecode::decode_group(program, group).trees)
      for (const bytecode::DecodedTile& tile : tree.tiles)
        for (const bytecode::DecodedTest& test : tile.tests)
          if (test.category_set == nullptr)
            result[test.feature & kFeatureMask].push_back(static_cast<double>(test.threshold));
  for (const WideFeature& wide : program.section_WideFeatures())
    if (const auto at = result.find(wide.feature); at != result.end())
      restore_bounds(wide, program.section_WideBounds().subspan(wide.first_bound, wide.bound_count),
                     at->second);
  for (auto& [feature, values] : result) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  return result;
}

}  // namespace forestvm
