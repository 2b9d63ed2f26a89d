// See pmml_leaves.hpp.
#include "frontend/pmml_leaves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

constexpr double kNoAnswer = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Error PmmlLeaves::error(const PmmlNode& node, const char* message) const {
  return refused(formatted("{}, node {}", tree_.where, &node - tree_.nodes.data() + 1), message);
}

/// Returns the value times the weight, rounded to the type of the scorer's sums.
double PmmlLeaves::weighted(double value) const {
  if (weight_ == 1) return value;
  return scorer_.is_float ? static_cast<double>(static_cast<float>(weight_) * static_cast<float>(value))
                          : weight_ * value;
}

/// Appends the probabilities of a node: its counts, or its probabilities, divided by their sum.
Result<void> PmmlLeaves::append_shares(const PmmlNode& node, Tree& tree) {
  const auto counts = tree_.distributions.begin() + node.distribution;
  double sum = 0;
  bool all = true;
  for (std::size_t i = 0; i < classes_; ++i)
    if (std::isnan(counts[static_cast<std::ptrdiff_t>(i)]))
      all = false;
    else
      sum = rounded(sum + rounded(counts[static_cast<std::ptrdiff_t>(i)]));
  if (sum == 0) return error(node, "the counts of its ScoreDistribution elements are all 0");
  if (!all && scorer_.method != PmmlMethod::Single)
    return error(node, "no ScoreDistribution for some of the target's values");
  const std::size_t begin = tree.leaf_vectors.size();
  for (std::size_t i = 0; i < classes_; ++i) {
    const double count = counts[static_cast<std::ptrdiff_t>(i)];
    const double share = std::isnan(count) ? 0 : rounded(rounded(count) / sum);
    tree.leaf_vectors.push_back(weighted(share));
  }
  const auto shares = tree.leaf_vectors.begin() + static_cast<std::ptrdiff_t>(begin);
  if (scorer_.method == PmmlMethod::Single &&
      std::max_element(shares, tree.leaf_vectors.end()) - shares != static_cast<std::ptrdiff_t>(node.score))
    return error(node, "its score is not the first of its most probable values");
  return {};
}

Result<void> PmmlLeaves::append_row(const PmmlNode* node, Tree& tree) {
  if (room_ < classes_)
    return refused(tree_.where,
                   "the leaves' values for each class would take much more memory than the document");
  room_ -= classes_;
  if (node == nullptr) {
    tree.leaf_vectors.insert(tree.leaf_vectors.end(), classes_, kNoAnswer);
    return {};
  }
  const bool votes = scorer_.method == PmmlMethod::Vote || scorer_.method == PmmlMethod::WeightedVote;
  if (!votes && node->distribution != UINT32_MAX) return append_shares(*node, tree);
  if (!votes && scorer_.method != PmmlMethod::Single)
    return error(*node, "no ScoreDistribution elements, of which the model gives the average");
  tree.leaf_vectors.insert(tree.leaf_vectors.end(), classes_, 0.0);
  tree.leaf_vectors[tree.leaf_vectors.size() - classes_ + static_cast<std::size_t>(node->score)] =
      weighted(1);
  return {};
}

Result<void> PmmlLeaves::operator()(const PmmlNode* node, Node& leaf, Tree& tree) {
  std::int64_t& row =
      node == nullptr ? rows_.back() : rows_[static_cast<std::size_t>(node - tree_.nodes.data())];
  if (classes_ == 0) {
    row = 0;
    leaf.value = node == nullptr ? kNoAnswer : weighted(rounded(node->score));
    return {};
  }
  tree.leaf_width = static_cast<std::uint32_t>(classes_);
  if (row < 0) {
    row = static_cast<std::int64_t>(tree.leaf_vectors.size() / classes_);
    FVM_TRY(append_row(node, tree));
  }
  leaf.payload = static_cast<std::uint32_t>(row);
  return {};
}

}  // namespace forestvm::frontend
