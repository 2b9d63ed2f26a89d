// Computes reference contributions against a background, with which the contributions of programs are compared: each
// row is compared with each row of the background, leaf by leaf.
//
// A coalition of features reaches a leaf if the row passes the tests of its features, and the background row those of
// all others. Let a be the number of features whose tests only the row passes, and b the number of those whose tests
// only the background row passes. If no feature has tests that both rows fail, the leaf is reached by the coalitions
// that hold all of the a features and none of the b features. When features join one after the other, this is so from
// the moment when the last of the a has come until the first of the b comes.
#include <forestvm/internal/column_features.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/reference.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "frontend/derived_columns.hpp"
#include "frontend/reference_walk.hpp"

namespace forestvm {
namespace {

/// A feature on the way to a leaf, and which of the two rows pass all its tests so far.
struct BackgroundPlayer {
  std::uint32_t feature;
  bool row = true, background = true;
};

template <class Scalar>
class Comparer {
 public:
  Comparer(const Model& model, std::vector<std::uint32_t> features)
      : model_(model), features_(std::move(features)), width_(std::size_t{model.num_features} + 1) {}

  /// Adds `share` times the contributions of a row, compared with one background row.
  void add(std::span<const double> row, std::span<const double> background, long double share,
           std::vector<long double>& out) const {
    for (const Tree& tree : model_.trees) {
      const Pair pair{tree, row, background, share};
      add(pair, 0, {}, out);
      const std::size_t leaf = frontend::leaf_in<Scalar>(model_, tree, background);
      for (std::size_t k = 0; k < tree.leaf_width; ++k)
        out[output(tree, k) * width_ + width_ - 1] +=
            share * frontend::weighted_output(model_, tree, tree.nodes[leaf], k);
    }
  }

 private:
  struct Pair {
    const Tree& tree;
    std::span<const double> row, background;
    long double share;
  };

  static std::size_t output(const Tree& tree, std::size_t k) {
    return tree.leaf_width == 1 ? tree.output : k;
  }

  void add(const Pair& pair, std::size_t n, const std::vector<BackgroundPlayer>& players,
           std::vector<long double>& out) const {
    const Node& node = pair.tree.nodes[n];
    if (node.kind == NodeKind::Leaf) return add_leaf(pair, n, players, out);
    const auto goes_left = [&](std::span<const double> values) {
      return frontend::row_goes_left<Scalar>(model_, pair.tree, node, values);
    };
    const bool row_left = goes_left(pair.row), background_left = goes_left(pair.background);
    for (const bool left : {true, false}) {
      std::vector<BackgroundPlayer> below = players;
      auto at = std::ranges::find(below, features_[node.feature], &BackgroundPlayer::feature);
      if (at == below.end()) at = below.insert(at, BackgroundPlayer{features_[node.feature]});
      at->row = at->row && row_left == left;
      at->background = at->background && background_left == left;
      if (at->row || at->background)
        add(pair, static_cast<std::size_t>(left ? node.left : node.right), below, out);
    }
  }

  void add_leaf(const Pair& pair, std::size_t n, const std::vector<BackgroundPlayer>& players,
                std::vector<long double>& out) const {
    const auto only_row = [](const BackgroundPlayer& player) { return player.row && !player.background; };
    const auto only_background = [](const BackgroundPlayer& player) {
      return player.background && !player.row;
    };
    const auto a = static_cast<long double>(std::ranges::count_if(players, only_row));
    const auto b = static_cast<long double>(std::ranges::count_if(players, only_background));
    // The share of the orders in which all of the a features come before all of the b features is a! b! / (a + b)!. In
    // 1 / a of these orders a given one of the a is the last; in 1 / b of them a given one of the b is the first.
    const long double orders = std::tgamma(a + 1) * std::tgamma(b + 1) / std::tgamma(a + b + 1);
    for (std::size_t k = 0; k < pair.tree.leaf_width; ++k) {
      const long double value =
          pair.share * orders * frontend::weighted_output(model_, pair.tree, pair.tree.nodes[n], k);
      long double* const to = out.data() + output(pair.tree, k) * width_;
      for (const BackgroundPlayer& player : players) {
        if (only_row(player)) to[player.feature] += value / a;
        if (only_background(player)) to[player.feature] -= value / b;
      }
    }
  }

  const Model& model_;
  std::vector<std::uint32_t> features_;
  std::size_t width_;
};

template <class Scalar>
std::vector<double> compare(const Model& model, std::vector<std::uint32_t> features,
                            std::span<const double> rows, std::span<const double> background) {
  const Comparer<Scalar> comparer(model, std::move(features));
  const auto columns = static_cast<std::size_t>(num_columns(model));
  const std::size_t width = std::size_t{model.num_features} + 1;
  const std::size_t count = background.size() / columns;
  std::vector<double> all;
  for (std::size_t row = 0; row < rows.size(); row += columns) {
    std::vector<long double> sums(model.num_outputs * width);
    for (std::size_t k = 0; k < model.num_outputs; ++k)
      sums[(k + 1) * width - 1] = static_cast<long double>(model.base[k]);
    for (std::size_t other = 0; other < background.size(); other += columns)
      comparer.add(rows.subspan(row, columns), background.subspan(other, columns),
                   1 / static_cast<long double>(count), sums);
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return all;
}

/// Returns rows with the model's derived columns.
Result<std::vector<double>> with_columns(const Model& model, std::span<const double> rows,
                                         const ReferenceOptions& options) {
  if (model.num_features == 0 || rows.empty() || rows.size() % model.num_features != 0)
    return refused("rows", "{} values are no rows of {} features", rows.size(), model.num_features);
  if (num_columns(model) == model.num_features) return std::vector<double>(rows.begin(), rows.end());
  return frontend::with_derived_columns(model, rows, rows.size() / model.num_features, options.hashed_rows);
}

}  // namespace

Result<std::vector<double>> reference_contributions_against(const Model& model, std::span<const double> rows,
                                                            std::span<const double> background,
                                                            const ReferenceOptions& options) {
  if (has_linear_leaves(model)) return refused("model", "its leaves are linear functions of the row");
  std::vector<std::uint32_t> features = features_of_columns(model);
  if (const auto several = std::ranges::find(features, kSeveralFeatures); several != features.end())
    return refused(formatted("column {}", several - features.begin()), "is computed from several features");
  FVM_ASSIGN(const std::vector<double> wide, with_columns(model, rows, options));
  FVM_ASSIGN(const std::vector<double> others, with_columns(model, background, options));
  return model.row_type == ScalarType::Float32 ? compare<float>(model, std::move(features), wide, others)
                                               : compare<double>(model, std::move(features), wide, others);
}

}  // namespace forestvm
