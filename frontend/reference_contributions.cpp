// Computes reference contributions and interactions, with which those of programs are compared: for each leaf, the sum
// over all coalitions of the features on the way to it, by products of polynomials.
//
// A leaf of value v adds v times the product of o(j) over the features j that take part and z(j) over those that do
// not: o(j) is 1 if the row takes the leaf's way at all splits of the feature, otherwise 0; z(j) is the product of the
// shares of the training rows that take it. Take one of d features. The coefficient of x^s in the product of (z(j) +
// o(j) x) over the other features is the sum over the coalitions of s of them, each of which weighs s! (d - 1 - s)! /
// d! in a Shapley value. The interaction of two features is half of the sum over the coalitions of the other d - 2,
// with the weights of d - 1 features.
#include <forestvm/internal/column_features.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/reference.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "frontend/derived_columns.hpp"
#include "frontend/reference_walk.hpp"

namespace forestvm {
namespace {

/// A feature that is tested on the way to a leaf, with its share z and its outcome o (see the top of this file).
struct Player {
  std::uint32_t feature;
  long double share = 1;  ///< z(j)
  bool taken = true;      ///< o(j)
};

struct Leaf {
  std::size_t node;
  std::vector<Player> players;
};

template <class Scalar>
class Explainer {
 public:
  Explainer(const Model& model, std::vector<std::uint32_t> features)
      : model_(model), features_(std::move(features)) {}

  /// Adds a row's contributions to `out`, outputs x (features + 1) numbers; or if `pairs` its interactions, features +
  /// 1 times as many numbers.
  void add(std::span<const double> row, bool pairs, std::vector<long double>& out) const {
    for (const Tree& tree : model_.trees) {
      std::vector<Leaf> leaves;
      if (is_symmetric(tree))
        find_symmetric(tree, row, leaves);
      else
        find(tree, row, 0, {}, leaves);
      for (const Leaf& leaf : leaves) add(tree, leaf, pairs, out);
    }
  }

 private:
  /// Returns whether a tree is one of CatBoost's symmetric ones, whose levels have one split each.
  bool is_symmetric(const Tree& tree) const {
    if (model_.trainer != "catboost" || tree.nodes.size() < 7) return false;
    for (std::size_t begin = 0, end = 1; end <= tree.nodes.size(); begin = 2 * begin + 1, end = 2 * end + 1)
      for (std::size_t n = begin; n < end; ++n) {
        const Node &first = tree.nodes[begin], &node = tree.nodes[n];
        const std::size_t left = 2 * begin + 1 + (n - begin), right = left + (end - begin);
        const bool whole = end == tree.nodes.size();
        if ((node.kind == NodeKind::Leaf) != whole) return false;
        if (whole) continue;
        if (node.feature != first.feature || node.threshold != first.threshold || node.kind != first.kind ||
            node.payload != first.payload || static_cast<std::size_t>(node.left) != left ||
            static_cast<std::size_t>(node.right) != right)
          return false;
      }
    return true;
  }

  bool goes_left(const Tree& tree, const Node& node, std::span<const double> row) const {
    return frontend::row_goes_left<Scalar>(model_, tree, node, row);
  }

  /// Returns the share of the training rows at a split that take the branch with cover `cover`; `other` is the cover of
  /// the other branch, and `all` the cover of the split.
  long double share(long double cover, long double other, long double all) const {
    const long double least = model_.trainer == "xgboost" ? 1e-12L : 0x1p-53L, sum = cover + other;
    if (all == 0) return 0.5L;
    if (std::abs(sum - all) > 0x1p-20L * std::max(sum, all)) return std::max(cover / all, least);
    return std::clamp(cover / sum, least, 1 - least);
  }

  void pass(std::vector<Player>& players, std::uint32_t column, long double share, bool taken) const {
    const std::uint32_t feature = features_[column];
    auto at =
        std::find_if(players.begin(), players.end(), [&](const Player& p) { return p.feature == feature; });
    if (at == players.end()) at = players.insert(players.end(), Player{feature});
    at->share *= share;
    at->taken = at->taken && taken;
  }

  void find(const Tree& tree, std::span<const double> row, std::size_t n, const std::vector<Player>& players,
            std::vector<Leaf>& leaves) const {
    const Node& node = tree.nodes[n];
    if (node.kind == NodeKind::Leaf) {
      leaves.push_back({n, players});
      return;
    }
    const bool left = goes_left(tree, node, row);
    const auto child = [&](std::int32_t to, std::int32_t other, bool taken) {
      std::vector<Player> below = players;
      const auto cover = [&](std::int32_t i) {
        return static_cast<long double>(tree.nodes[static_cast<std::size_t>(i)].cover);
      };
      pass(below, node.feature, share(cover(to), cover(other), static_cast<long double>(node.cover)), taken);
      find(tree, row, static_cast<std::size_t>(to), below, leaves);
    };
    child(node.left, node.right, left);
    child(node.right, node.left, !left);
  }

  /// Finds the leaves of a symmetric tree as if its last split were the root, as CatBoost does. The cover of a branch
  /// is the sum of the covers of all leaves whose numbers agree in the bits of the branch's split and of later splits.
  void find_symmetric(const Tree& tree, std::span<const double> row, std::vector<Leaf>& leaves) const {
    const std::size_t count = (tree.nodes.size() + 1) / 2, first = count - 1;
    const auto cover = [&](std::size_t bits, std::size_t level) {
      long double sum = 0;
      for (std::size_t leaf = 0; leaf < count; ++leaf)
        if (leaf >> level == bits >> level) sum += static_cast<long double>(tree.nodes[first + leaf].cover);
      return sum;
    };
    for (std::size_t leaf = 0; leaf < count; ++leaf) {
      Leaf found{first + leaf, {}};
      for (std::size_t level = 0; std::size_t{1} << level < count; ++level) {
        const Node& split = tree.nodes[(std::size_t{1} << level) - 1];
        const std::size_t bit = std::size_t{1} << level;
        const bool right = (leaf & bit) != 0;
        const long double taken = cover(leaf, level), other = cover(leaf ^ bit, level);
        pass(found.players, split.feature, share(taken, other, taken + other),
             goes_left(tree, split, row) != right);
      }
      leaves.push_back(found);
    }
  }

  void add(const Tree& tree, const Leaf& leaf, bool pairs, std::vector<long double>& out) const {
    const std::size_t features = model_.num_features, width = features + 1;
    long double mean = 1;
    for (const Player& player : leaf.players) mean *= player.share;
    for (std::size_t k = 0; k < tree.leaf_width; ++k) {
      const std::size_t begin = (tree.leaf_width == 1 ? tree.output : k) * (pairs ? width * width : width);
      const std::size_t step = pairs ? width + 1 : 1;  // from a number on the diagonal to the next
      const long double value = value_of(tree, leaf.node, k);
      out[begin + features * step] += value * mean;
      for (std::size_t i = 0; i < leaf.players.size(); ++i)
        out[begin + leaf.players[i].feature * step] += value * part_of(leaf.players, {i});
      if (pairs) add_pairs(leaf.players, value / 2, out.data() + begin);
    }
  }

  /// Adds what each two players contribute together, half of it at each of the two places in the matrix, and subtracts
  /// it from what each contributes alone.
  void add_pairs(const std::vector<Player>& players, long double value, long double* out) const {
    const std::size_t width = std::size_t{model_.num_features} + 1;
    for (std::size_t i = 0; i < players.size(); ++i)
      for (std::size_t j = 0; j < players.size(); ++j) {
        if (i == j) continue;
        const long double part = value * part_of(players, {i, j});
        out[players[i].feature * width + players[j].feature] += part;
        out[players[i].feature * (width + 1)] -= part;
      }
  }

  long double value_of(const Tree& tree, std::size_t n, std::size_t k) const {
    const Node& node = tree.nodes[n];
    if (model_.trainer == "catboost" && node.cover == 0 && n != 0)
      return 0;  // CatBoost leaves such leaves out
    return frontend::weighted_output(model_, tree, node, k);
  }

  /// Returns the Shapley value of a player, or the Shapley interaction of two, in the game of a leaf of value 1.
  static long double part_of(const std::vector<Player>& players, std::initializer_list<std::size_t> of) {
    std::vector<long double> sums{1};  // sums[s]: over the coalitions of s other players
    for (std::size_t j = 0; j < players.size(); ++j) {
      if (std::find(of.begin(), of.end(), j) != of.end()) continue;
      sums.push_back(0);
      for (std::size_t s = sums.size(); s-- > 0;)
        sums[s] = players[j].share * sums[s] + (s > 0 && players[j].taken ? sums[s - 1] : 0);
    }
    const std::size_t d = sums.size();
    long double part = 0, weight = 1 / static_cast<long double>(d);  // s! (d - 1 - s)! / d!
    for (std::size_t s = 0; s < d; ++s) {
      part += weight * sums[s];
      if (s + 1 < d) weight *= static_cast<long double>(s + 1) / static_cast<long double>(d - 1 - s);
    }
    for (const std::size_t i : of) part *= (players[i].taken ? 1 : 0) - players[i].share;
    return part;
  }

  const Model& model_;
  std::vector<std::uint32_t> features_;
};

template <class Scalar>
std::vector<double> explain(const Model& model, std::vector<std::uint32_t> features,
                            std::span<const double> rows, std::size_t row_count, bool pairs) {
  const Explainer<Scalar> explainer(model, std::move(features));
  const auto columns = static_cast<std::size_t>(num_columns(model));
  const std::size_t width = std::size_t{model.num_features} + 1;
  std::vector<double> all;
  for (std::size_t r = 0; r < row_count; ++r) {
    const std::size_t numbers =
        pairs ? width * width : width;  // numbers of an output; the last is the expected score
    std::vector<long double> sums(model.num_outputs * numbers);
    for (std::size_t k = 0; k < model.num_outputs; ++k)
      sums[(k + 1) * numbers - 1] = static_cast<long double>(model.base[k]);
    explainer.add(rows.subspan(r * columns, columns), pairs, sums);
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return all;
}

Result<std::vector<double>> explain(const Model& model, std::span<const double> rows, std::size_t row_count,
                                    const ReferenceOptions& options, bool pairs) {
  if (rows.size() != row_count * model.num_features)
    return refused("rows", "{} values for {} rows of {} features", rows.size(), row_count,
                   model.num_features);
  if (has_linear_leaves(model)) return refused("model", "its leaves are linear functions of the row");
  std::vector<std::uint32_t> features = features_of_columns(model);
  if (const auto several = std::ranges::find(features, kSeveralFeatures); several != features.end())
    return refused(formatted("column {}", several - features.begin()), "is computed from several features");
  std::vector<double> wide(rows.begin(), rows.end());
  if (num_columns(model) != model.num_features) {
    FVM_ASSIGN(wide, frontend::with_derived_columns(model, std::move(wide), row_count, options.hashed_rows));
  }
  return model.row_type == ScalarType::Float32
             ? explain<float>(model, std::move(features), wide, row_count, pairs)
             : explain<double>(model, std::move(features), wide, row_count, pairs);
}

}  // namespace

Result<std::vector<double>> reference_contributions(const Model& model, std::span<const double> rows,
                                                    std::size_t row_count, const ReferenceOptions& options) {
  return explain(model, rows, row_count, options, false);
}

Result<std::vector<double>> reference_interactions(const Model& model, std::span<const double> rows,
                                                   std::size_t row_count, const ReferenceOptions& options) {
  return explain(model, rows, row_count, options, true);
}

}  // namespace forestvm
