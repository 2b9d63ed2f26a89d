// Finds the thresholds with which a program's forest compares each feature.
#include <algorithm>

#include <forestvm/internal/program_tools.hpp>

#include "vm/program/decode_forest.hpp"

namespace forestvm {

std::map<std::uint32_t, std::vector<double>> thresholds(const Program& program) {
  std::map<std::uint32_t, std::vector<double>> result;
  for (const GroupDesc& group : program.groups())
    for (const bytecode::DecodedTree& tree : bytecode::decode_group(program, group).trees)
      for (const bytecode::DecodedTile& tile : tree.tiles)
        for (const bytecode::DecodedTest& test : tile.tests)
          if (test.category_set == nullptr) result[test.feature & kFeatureMask].push_back(test.threshold);
  for (auto& [feature, values] : result) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  return result;
}

}  // namespace forestvm
