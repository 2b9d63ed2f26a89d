// See forestvm/internal/leaf_functions.hpp.
#include <forestvm/internal/leaf_functions.hpp>

namespace forestvm {

std::vector<std::uint32_t> leaf_features(const Program& program) {
  const auto terms = program.section_LeafTerms();
  std::vector<bool> reads(terms.empty() ? 0 : program.meta().num_features);
  for (const LeafTerm& term : terms) reads[term.feature] = true;
  std::vector<std::uint32_t> features;
  for (std::uint32_t feature = 0; feature < reads.size(); ++feature)
    if (reads[feature]) features.push_back(feature);
  return features;
}

LeafFunctions::LeafFunctions(const Program& program)
    : functions_(program.section_LeafFunctions()), features_(leaf_features(program)) {
  if (functions_.empty()) return;
  std::vector<std::uint32_t> places(program.meta().num_features);
  for (std::uint32_t place = 0; place < features_.size(); ++place) places[features_[place]] = place;
  terms_.reserve(program.section_LeafTerms().size());
  for (const LeafTerm& term : program.section_LeafTerms())
    terms_.push_back({term.coefficient, term.feature, places[term.feature]});
}

}  // namespace forestvm
