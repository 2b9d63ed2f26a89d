// See leaf_attributions.hpp.
#include "vm/host/leaf_attributions.hpp"

#include <cstring>
#include <optional>
#include <span>

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
[[gnu::cold]] std::optional<std::uint32_t> only_output(const Program& program, const NumberedLeaves& tree) {
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

/// Gives each leaf the list of its terms.
[[gnu::cold]] void load_terms(const Program& program, LeafAttributions& to) {
  const auto attributions = program.attributions();
  const bool wide = program.meta().score_type == ScalarType::Float64;
  std::size_t terms = 0;
  const auto add = [&](double value, std::uint32_t sum) {
    ++terms;
    if (wide)
      to.doubles.push_back({value, sum});
    else
      to.singles.push_back({static_cast<float>(value), sum});
  };
  const auto nowhere = static_cast<std::uint32_t>(attributed_sums(program.meta()) - 1);
  for (const NumberedLeaves& tree : program.attributed_trees()) {
    const auto ends = program.attributed_leaves().subspan(tree.first_leaf, std::size_t{tree.leaf_count} + 1);
    std::uint32_t length = common_length(ends);
    // Indices of terms have 32 bits. The terms of later trees must fit too, at least without zeros.
    const std::size_t others = attributions.size() - ends.back();
    if (terms + std::uint64_t{tree.leaf_count} * length + others > UINT32_MAX) length = 0;
    for (std::size_t i = 1; i < ends.size(); ++i) {
      to.leaves.push_back(static_cast<std::uint32_t>(terms));
      for (std::uint32_t a = ends[i - 1]; a < ends[i]; ++a) add(attributions[a].value, attributions[a].index);
      if (ends[i] == ends[i - 1]) continue;  // no row reaches it
      while (terms < std::size_t{to.leaves.back()} + length) add(0, nowhere);
    }
  }
  to.leaves.push_back(static_cast<std::uint32_t>(terms));
}

/// Returns the lines that a leaf takes if it gets a number for every feature; 0 if it is to have a list.
[[gnu::cold]] std::size_t lines_of_numbers(const Program& program, std::vector<std::uint32_t>& outputs) {
  const auto ends = program.attributed_leaves();
  std::size_t lists = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) lists += ends[i] != ends[i - 1] ? 1u : 0u;
  const std::size_t size = size_of(program.meta().score_type);
  const std::size_t lines = whole_lines(program.meta().num_features * size) / sizeof(Line);
  const std::size_t numbers = lists * lines * (sizeof(Line) / size);
  if (numbers > kMostNumbers * program.attributions().size() || numbers > UINT32_MAX) return 0;
  for (const NumberedLeaves& tree : program.attributed_trees()) {
    const auto output = only_output(program, tree);
    if (!output) return 0;
    outputs.push_back(*output);
  }
  return lines;
}

/// Gives each leaf a number for every feature.
[[gnu::cold]] void load_numbers(const Program& program, LeafAttributions& to) {
  const auto attributions = program.attributions();
  const auto ends = program.attributed_leaves();
  const std::uint32_t sums = program.meta().num_features + 1;
  const bool wide = program.meta().score_type == ScalarType::Float64;
  to.numbers.resize(to.leaf_lines);  // zeros, for the leaves that no row reaches
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const bool reached = ends[i] != ends[i - 1];
    to.leaves.push_back(reached ? static_cast<std::uint32_t>(to.numbers.size()) : 0);
    if (reached) to.numbers.resize(to.numbers.size() + to.leaf_lines);
    std::byte* const numbers = to.numbers[to.leaves.back()].bytes;
    for (std::uint32_t a = ends[i - 1]; a < ends[i]; ++a) {
      const std::uint32_t feature = attributions[a].index % sums;
      const auto single = static_cast<float>(attributions[a].value);
      if (wide)
        std::memcpy(numbers + feature * sizeof(double), &attributions[a].value, sizeof(double));
      else
        std::memcpy(numbers + feature * sizeof single, &single, sizeof single);
    }
  }
  to.leaves.push_back(0);
}

}  // namespace

[[gnu::cold]] LeafAttributions::LeafAttributions(const Program& program) {
  if (program.attribution_base().empty()) return;
  leaf_lines = lines_of_numbers(program, outputs);
  if (leaf_lines != 0)
    load_numbers(program, *this);
  else
    load_terms(program, *this);
}

}  // namespace forestvm::host
