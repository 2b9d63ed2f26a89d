// Finds the features that a program reads.
#include <vector>

#include <forestvm/internal/program_tools.hpp>

#include "vm/program/decode_forest.hpp"

namespace forestvm {

std::vector<bool> features_read(const Program& program) {
  std::vector<bool> read(row_width(program.meta()));
  for (const GroupDesc& group : program.groups())
    for (const bytecode::DecodedTree& tree : bytecode::decode_group(program, group).trees)
      for (const bytecode::DecodedTile& tile : tree.tiles)
        for (const bytecode::DecodedTest& test : tile.tests) read[test.feature & kFeatureMask] = true;
  for (const EncodedFeature& feature : program.encoded_features()) read[feature.feature] = true;
  for (const CategoryColumn& column : program.category_columns()) read[column.feature] = true;
  for (const std::uint32_t feature : program.hashed_features()) read[feature] = true;
  for (const KeyPart& part : program.key_parts()) read[part.feature] = true;
  for (const ColumnTerm& term : program.column_terms()) read[term.feature] = true;
  for (const LeafTerm& term : program.leaf_terms()) read[term.feature] = true;
  read.resize(program.meta().num_features);
  return read;
}

}  // namespace forestvm
