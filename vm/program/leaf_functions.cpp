// See forestvm/internal/leaf_functions.hpp.
#include <forestvm/internal/leaf_functions.hpp>

namespace forestvm {

std::vector<std::uint32_t> leaf_features(const Program& program) {
  const auto terms = program.leaf_terms();
  std::vector<bool> reads(terms.empty() ? 0 : program.meta().num_features);
  for (const LeafTerm& term : terms) reads[term.feature] = true;
  std::vector<std::uint32_t> features;
  for (std::uint32_t feature = 0; feature < reads.size(); ++feature)
    if (reads[feature]) features.push_back(feature);
  return features;
}

LeafFunctions::LeafFunctions(const Program& program)
    : functions_(program.leaf_functions()), features_(leaf_features(program)) {
  if (functions_.empty()) return;
  std::vector<std::uint32_t> indices(program.meta().num_features);
  for (std::uint32_t index = 0; index < features_.size(); ++index) indices[features_[index]] = index;
  terms_.reserve(program.leaf_terms().size());
  for (const LeafTerm& term : program.leaf_terms())
    terms_.push_back({term.coefficient, term.feature, indices[term.feature]});
}

}  // namespace forestvm
