// See chosen_terms.hpp.
#include "cli/chosen_terms.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include <forestvm/core/path_data.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {

constinit const Option kFeaturesOption = {
    "features", '\0', "A,B,...",
    "keeps these features of contributions and interactions: names or numbers from 0, with commas between them; they "
    "are written in the model's order"};
constinit const Option kTopOption = {
    "top", '\0', "K",
    "writes the K largest contributions or interactions of each row by their absolute values: the feature or the two "
    "features, as numbers in NPY arrays, and the value; without the expected score"};
constinit const Option kSparseOption = {
    "sparse", '\0', "",
    "writes contributions and interactions without zeros, as a CSR matrix that "
    "scipy.sparse.load_npz reads; OUT ends in .npz"};
constinit const Option kAveragedOption = {
    "averaged", '\0', "",
    "divides contributions and interactions of a forest that averages its trees by the number of its rounds, so that they "
    "add up to the mean of the trees; without this option they add up to the raw score, the sum, as LightGBM's do"};

namespace {

/// Returns the feature with this name, or with this number if none has the name.
std::optional<std::uint32_t> feature_called(const Program& program, std::string_view name) {
  const std::uint32_t count = program.meta().num_features;
  for (std::uint32_t f = 0; f < program.meta().num_feature_names; ++f)
    if (program.feature_name(f) == name) return f;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number >= count) return std::nullopt;
  return number;
}

/// Returns the features that paths or patterns test, ascending.
std::vector<std::uint32_t> tested_features(const Program& program) {
  std::vector<bool> tested(program.meta().num_features);
  for (const PathNode& node : program.paths())
    if (node.split != 0) tested[node.feature] = true;
  for (const PatternTest& test : program.pattern_tests()) tested[test.feature] = true;
  std::vector<std::uint32_t> features;
  for (std::uint32_t f = 0; f < tested.size(); ++f)
    if (tested[f]) features.push_back(f);
  return features;
}

}  // namespace

Result<ChosenTerms> ChosenTerms::make(const Arguments& arguments, OutputKind output, const std::string& out) {
  ChosenTerms chosen;
  for (const char* const option : {"features", "top", "sparse", "averaged"})
    if (arguments.has(option) && !explains_scores(output))
      return usage_error(formatted("--{}: is for contributions and interactions", option));
  chosen.is_chosen_ = arguments.has("features");
  chosen.text_ = arguments.get("features");
  FVM_ASSIGN(const std::uint64_t top, arguments.number("top", 1, UINT32_MAX, 0));
  chosen.top_ = static_cast<std::size_t>(top);
  chosen.sparse_ = arguments.has("sparse");
  chosen.averaged_ = arguments.has("averaged");
  chosen.is_pair_ = output == OutputKind::Interactions;
  if (chosen.sparse_ && chosen.top_ != 0)
    return usage_error("--sparse and --top exclude each other: the strongest terms are not a matrix");
  if (chosen.sparse_ && !is_npz_name(out))
    return usage_error(formatted("-o {}: --sparse writes an .npz file", single_quoted(out, 1000)));
  return chosen;
}

Result<void> ChosenTerms::find(const Program& program, OutputKind output, const CallOptions& call,
                               const std::string& model) {
  all_features_ = program.meta().num_features;
  outputs_ = program.meta().num_outputs;
  if (averaged_) {
    divisor_ = averaged_rounds(program, call);
    if (divisor_ == 0 && output_width(program, output) != 0)
      return in_file(
          model,
          refused(formatted("--averaged: is for forests that average their trees; this one ({}, {}) does not",
                            program.text(StringId::Trainer), program.text(StringId::Objective))));
  }
  if (!is_chosen_) {
    if ((sparse_ || top_ != 0) && output != OutputKind::ApproxContributions)
      features_ = tested_features(program);
  } else {
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = std::min(text_.find(',', begin), text_.size());
      const std::string_view name = std::string_view(text_).substr(begin, end - begin);
      const auto feature = feature_called(program, name);
      if (!feature) return in_file(model, refused("--features: has no feature " + single_quoted(name)));
      features_.push_back(*feature);
      begin = end + 1;
    }
    std::sort(features_.begin(), features_.end());
    const auto twice = std::adjacent_find(features_.begin(), features_.end());
    if (twice != features_.end())
      return usage_error(formatted("--features {}: feature {} comes twice", single_quoted(text_), *twice));
  }
  const std::size_t most = is_pair_ ? called() * (called() + 1) / 2 : called();
  if (top_ <= most) return {};
  return in_file(model, refused(formatted("--top {}: a row has {}{} to choose from", top_, most,
                                          is_pair_ ? " pairs of features" : " features")));
}

std::uint64_t ChosenTerms::index(std::size_t i) const {
  if (is_chosen_ || features_.empty()) return i;
  return i == features_.size() ? all_features_ : features_[i];
}

template <class T>
void ChosenTerms::divide(std::span<T> numbers) const {
  if (divisor_ == 1) return;
  for (T& number : numbers) number /= static_cast<T>(divisor_);
}

template <class T>
void ChosenTerms::add_strongest(std::span<const T> numbers, std::vector<T>& to) const {
  struct Term {
    T value;
    std::size_t first, second;
  };
  const std::size_t width = called() + 1;
  std::vector<Term> terms;
  for (std::size_t i = 0; i + 1 < width; ++i) {
    if (!is_pair_) terms.push_back({numbers[i], i, 0});
    for (std::size_t j = i; is_pair_ && j + 1 < width; ++j) terms.push_back({numbers[i * width + j], i, j});
  }
  const auto is_before = [](const Term& a, const Term& b) {
    // NaN comes last.
    const T x = std::isnan(a.value) ? -1 : std::abs(a.value),
            y = std::isnan(b.value) ? -1 : std::abs(b.value);
    return std::tuple(-x, a.first, a.second) < std::tuple(-y, b.first, b.second);
  };
  std::partial_sort(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(top_), terms.end(), is_before);
  const auto number = [&](std::size_t i) { return static_cast<T>(features_.empty() ? i : features_[i]); };
  for (std::size_t i = 0; i < top_; ++i) {
    to.push_back(number(terms[i].first));
    if (is_pair_) to.push_back(number(terms[i].second));
    to.push_back(terms[i].value);
  }
}

template <class T>
Result<void> ChosenTerms::add_sparse(std::span<const T> numbers, SparseWriter& writer) const {
  const std::size_t width = called() + 1, rows = is_pair_ ? width : 1;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    const std::size_t output = i / (rows * width), row = i / width % rows;
    const std::uint64_t in_matrix = (is_pair_ ? index(row) * terms() : 0) + index(i % width);
    const std::uint64_t before = output * (is_pair_ ? terms() * terms() : terms());
    FVM_TRY(writer.add(before + in_matrix, static_cast<double>(numbers[i])));
  }
  return writer.end_row();
}

template void ChosenTerms::divide(std::span<float>) const;
template void ChosenTerms::divide(std::span<double>) const;
template void ChosenTerms::add_strongest(std::span<const float>, std::vector<float>&) const;
template void ChosenTerms::add_strongest(std::span<const double>, std::vector<double>&) const;
template Result<void> ChosenTerms::add_sparse(std::span<const float>, SparseWriter&) const;
template Result<void> ChosenTerms::add_sparse(std::span<const double>, SparseWriter&) const;

}  // namespace forestvm::cli
