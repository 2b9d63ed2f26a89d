// See leaf_attributions.hpp.
#include "vm/host/leaf_attributions.hpp"

#include <optional>
#include <span>
#include <type_traits>

namespace forestvm::host {
namespace {

/// The most terms of zero that a leaf gets, on average over the leaves of a tree: about as many as are added in the
/// time in which the processor recovers from a wrong guess.
constexpr std::uint64_t kMostPadding = 8;

/// Returns the number of terms that each leaf with attributions is to have in a tree whose lists end at `ends`, the
/// first of which begins at ends[0]; 0 if their lengths differ too much.
std::uint32_t common_length(std::span<const std::uint32_t> ends) {
  std::uint32_t longest = 0;
  std::uint64_t lists = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    longest = std::max(longest, ends[i] - ends[i - 1]);
    lists += ends[i] != ends[i - 1];
  }
  const std::uint64_t padded = lists * longest, terms = ends.back() - ends.front();
  return padded - terms <= kMostPadding * lists ? longest : 0;
}

/// The most numbers of a leaf for each term that it has on average: adding a number takes about a sixth of the time of
/// adding a term to the sum that it names.
constexpr std::uint64_t kMostNumbers = 6;

/// Returns the output to whose sums a tree's leaves add, if it is one, and each leaf has at most one term for a
/// feature.
std::optional<std::uint32_t> only_output(const Program& program, const NumberedLeaves& tree) {
  const auto attributions = program.attributions();
  const auto ends = program.attributed_leaves().subspan(tree.first_leaf, std::size_t{tree.leaf_count} + 1);
  const std::uint32_t features = program.meta().num_features;
  std::optional<std::uint32_t> output;
  std::vector<std::size_t> last_leaf(features, SIZE_MAX);
  for (std::size_t i = 1; i < ends.size(); ++i)
    for (std::uint32_t a = ends[i - 1]; a < ends[i]; ++a) {
      const std::uint32_t of = attributions[a].index / (features + 1),
                          feature = attributions[a].index % (features + 1);
      if (feature == features || last_leaf[feature] == i || output.value_or(of) != of) return std::nullopt;
      last_leaf[feature] = i;
      output = of;
    }
  return output.value_or(0);
}

template <class Score>
class Loader {
 public:
  Loader(const Program& program, LeafAttributions<Score>& to) : program_(program), to_(to) {}

  void run() {
    if (!can_have_numbers()) return load_terms();
    to_.numbers.resize(to_.leaf_lines);  // zeros, for the leaves that no row reaches
    for (const NumberedLeaves& tree : program_.attributed_trees()) load_numbers(tree);
    to_.leaves.push_back(0);
  }

 private:
  /// Returns whether each leaf gets a number for every feature. If so, sets `leaf_lines` and `outputs`.
  bool can_have_numbers() {
    const auto ends = program_.attributed_leaves();
    std::size_t lists = 0;
    for (std::size_t i = 1; i < ends.size(); ++i) lists += ends[i] != ends[i - 1] ? 1u : 0u;
    const std::size_t lines = whole_lines(program_.meta().num_features * sizeof(Score)) / sizeof(Line);
    const std::size_t numbers = lists * lines * (sizeof(Line) / sizeof(Score));
    if (numbers > kMostNumbers * program_.attributions().size() || numbers > UINT32_MAX) return false;
    for (const NumberedLeaves& tree : program_.attributed_trees()) {
      const auto output = only_output(program_, tree);
      if (!output) return false;
      to_.outputs.push_back(*output);
    }
    to_.leaf_lines = lines;
    return lines != 0;
  }

  void load_numbers(const NumberedLeaves& tree) {
    const auto attributions = program_.attributions();
    const auto ends = program_.attributed_leaves().subspan(tree.first_leaf, std::size_t{tree.leaf_count} + 1);
    const std::uint32_t sums = program_.meta().num_features + 1;
    for (std::size_t i = 1; i < ends.size(); ++i) {
      const bool reached = ends[i] != ends[i - 1];
      to_.leaves.push_back(reached ? static_cast<std::uint32_t>(to_.numbers.size()) : 0);
      if (!reached) continue;
      to_.numbers.resize(to_.numbers.size() + to_.leaf_lines);
      auto* const numbers = reinterpret_cast<Score*>(to_.numbers.data() + to_.leaves.back());
      for (std::uint32_t a = ends[i - 1]; a < ends[i]; ++a)
        numbers[attributions[a].index % sums] = static_cast<Score>(attributions[a].value);
    }
  }

  void load_terms() {
    to_.outputs.clear();
    const auto attributions = program_.attributions();
    const auto nowhere = static_cast<std::uint32_t>(attributed_sums(program_.meta()) - 1);
    for (const NumberedLeaves& tree : program_.attributed_trees()) {
      const auto ends =
          program_.attributed_leaves().subspan(tree.first_leaf, std::size_t{tree.leaf_count} + 1);
      std::uint32_t length = common_length(ends);
      // Indices of terms have 32 bits. The terms of later trees must fit too, at least without zeros.
      const std::size_t others = attributions.size() - ends.back();
      if (to_.terms.size() + std::uint64_t{tree.leaf_count} * length + others > UINT32_MAX) length = 0;
      for (std::size_t i = 1; i < ends.size(); ++i) {
        to_.leaves.push_back(static_cast<std::uint32_t>(to_.terms.size()));
        for (std::uint32_t a = ends[i - 1]; a < ends[i]; ++a)
          to_.terms.push_back({static_cast<Score>(attributions[a].value), attributions[a].index});
        if (ends[i] == ends[i - 1]) continue;  // no row reaches it
        to_.terms.resize(std::max(to_.terms.size(), std::size_t{to_.leaves.back()} + length), {0, nowhere});
      }
    }
    to_.leaves.push_back(static_cast<std::uint32_t>(to_.terms.size()));
  }

  const Program& program_;
  LeafAttributions<Score>& to_;
};

}  // namespace

template <class Score>
[[gnu::cold]] LeafAttributions<Score>::LeafAttributions(const Program& program) {
  const bool wide = program.meta().score_type == ScalarType::Float64;
  if (program.attribution_base().empty() || wide != std::is_same_v<Score, double>) return;
  Loader<Score>(program, *this).run();
}

template struct LeafAttributions<float>;
template struct LeafAttributions<double>;

}  // namespace forestvm::host
