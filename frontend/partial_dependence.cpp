// See forestvm/partial_dependence.hpp. Counts 64 rows at a time, with a bit of a word for each. On the way down a tree,
// each column that was tested has a word of the rows that pass all tests of the other columns. At a leaf the bits of
// these words are counted. The mean with a value of feature f is then a sum over leaves: the leaf's value, times the
// rows that pass the tests of other columns, if the value passes those of f.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/partial_dependence.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "frontend/dependence_pieces.hpp"
#include "frontend/split_tests.hpp"

namespace forestvm {
namespace {

using frontend::FeaturePoints;
using frontend::FeatureTest;
using frontend::PointRuns;
using frontend::SplitTests;

constexpr std::size_t kMaxDepth = 512, kMaxColumns = 64;

Error too_large(std::size_t tree, const std::string& what) {
  return refused(formatted("tree {}", tree), what);
}

}  // namespace

struct PartialDependence::Parts {
  /// A tree as it is counted.
  struct CountedTree {
    /// First counter of each leaf. It counts all rows; the counters behind it count the rows for each column that is
    /// tested above the leaf.
    std::vector<std::size_t> counters;
    std::vector<std::uint32_t> columns;  ///< Columns that the tree tests, ascending.
  };

  /// The words at a node: the rows that pass all tests, then for each column on the way the rows that pass all tests of
  /// the other columns.
  using Words = std::array<std::uint64_t, kMaxColumns + 1>;

  explicit Parts(const Model& its_model) : model(its_model), tests(its_model) {}

  const Model& model;
  SplitTests tests;
  std::vector<CountedTree> trees;
  std::vector<std::uint64_t> counters;
  std::vector<std::uint8_t> has;  ///< See PartialDependence::has.
  std::uint64_t rows = 0;
  std::vector<Words> words;        ///< The words at each depth.
  std::vector<std::uint32_t> way;  ///< The columns on the way to the current node.

  Result<void> prepare();
  Result<void> give_counters(std::size_t t, std::size_t at, std::size_t depth, std::size_t& next);
  void count_word(std::uint64_t present);
  void count(std::size_t t, std::size_t at, std::size_t depth);
  double leaf_value(const Tree& tree, const Node& leaf, std::uint32_t output) const;

  /// Calls visit(leaf, first counter) for each leaf of a tree that some way leads to.
  template <class Visit>
  void each_leaf(std::size_t t, const Visit& visit) const {
    for (std::size_t i = 0; i < model.trees[t].nodes.size(); ++i)
      if (model.trees[t].nodes[i].kind == NodeKind::Leaf && trees[t].counters[i] != 0)
        visit(model.trees[t].nodes[i], trees[t].counters[i]);
  }

  /// The sum, over leaves, of what each adds at each point of a feature. `steps` are the differences from point to
  /// point.
  struct Sum {
    std::uint32_t feature, output;
    const std::map<std::uint32_t, PointRuns>& left;  ///< Points that go left at each of the feature's tests.
    std::vector<double>& steps;
    double constant = 0;  ///< Sum of the leaves whose ways do not test the feature.
  };
  void add_leaves(Sum& sum, std::size_t t, std::size_t at, const PointRuns& points, std::size_t index,
                  std::vector<std::uint32_t>& columns_here) const;
};

Result<void> PartialDependence::Parts::prepare() {
  has.assign(model.num_features, 0);
  words.resize(kMaxDepth + 2);
  std::size_t next = 1;  // 0 stands for a leaf that no way leads to.
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const Tree& tree = model.trees[t];
    if (!tree.linear_leaves.empty())
      return too_large(t, "its leaves are linear functions of the row, which have no partial dependence");
    CountedTree& counted = trees.emplace_back();
    counted.counters.resize(tree.nodes.size());
    for (const Node& node : tree.nodes)
      if (node.kind != NodeKind::Leaf && node.kind != NodeKind::Unused)
        counted.columns.push_back(node.feature);
    std::sort(counted.columns.begin(), counted.columns.end());
    counted.columns.erase(std::unique(counted.columns.begin(), counted.columns.end()), counted.columns.end());
    FVM_TRY(give_counters(t, 0, 0, next));
  }
  counters.resize(next);
  for (std::uint32_t f = 0; f < model.num_features; ++f) has[f] = tests.tests(f) ? 1 : 0;
  const auto has_none = [&](std::uint32_t feature) { has[feature] = 0; };
  for (const Lookup& lookup : model.lookups) {
    for (const std::uint32_t feature : lookup.categories) has_none(feature);
    for (const ValueTest& test : lookup.value_tests) has_none(test.feature);
    for (const CodeTest& test : lookup.code_tests) has_none(test.feature);
  }
  for (const ComputedColumn& column : model.computed_columns)
    for (const ColumnTerm& term : column.terms)
      if (term.feature < model.num_features) has_none(term.feature);
  return {};
}

/// Gives the leaves below a node their counters.
Result<void> PartialDependence::Parts::give_counters(std::size_t t, std::size_t at, std::size_t depth,
                                                     std::size_t& next) {
  const Node& node = model.trees[t].nodes[at];
  if (node.kind == NodeKind::Leaf) {
    trees[t].counters[at] = next;
    next += way.size() + 1;
    return next <= kMaxCounts
               ? Result<void>()
               : too_large(t,
                           formatted("the leaves up to here need more than {} counts for partial dependence",
                                     kMaxCounts));
  }
  if (depth == kMaxDepth)
    return too_large(t, formatted("has more than {} splits on the way to a leaf", kMaxDepth));
  const bool is_new = std::find(way.begin(), way.end(), node.feature) == way.end();
  if (is_new && way.size() == kMaxColumns)
    return too_large(t, formatted("tests more than {} columns on the way to a leaf", kMaxColumns));
  if (is_new) way.push_back(node.feature);
  for (const std::int32_t child : {node.left, node.right})
    FVM_TRY(give_counters(t, static_cast<std::size_t>(child), depth + 1, next));
  if (is_new) way.pop_back();
  return {};
}

void PartialDependence::Parts::count_word(std::uint64_t present) {
  for (std::size_t t = 0; t < trees.size(); ++t) {
    words[0][0] = present;
    count(t, 0, 0);
  }
  rows += static_cast<std::uint64_t>(std::popcount(present));
}

void PartialDependence::Parts::count(std::size_t t, std::size_t at, std::size_t depth) {
  const Words& here = words[depth];
  const std::size_t width = way.size() + 1;
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < width; ++i) any |= here[i];
  if (any == 0) return;
  const Node& node = model.trees[t].nodes[at];
  if (node.kind == NodeKind::Leaf) {
    std::uint64_t* const counts = counters.data() + trees[t].counters[at];
    for (std::size_t i = 0; i < width; ++i) counts[i] += static_cast<std::uint64_t>(std::popcount(here[i]));
    return;
  }
  const auto found = static_cast<std::size_t>(std::find(way.begin(), way.end(), node.feature) - way.begin());
  const bool is_new = found == way.size();
  if (is_new) way.push_back(node.feature);
  const std::uint64_t left = tests.left(tests.numbers()[t][at]);
  for (const bool goes_left : {true, false}) {
    const std::uint64_t passed = goes_left ? left : ~left;
    Words& next = words[depth + 1];
    for (std::size_t i = 0; i < width; ++i) next[i] = here[i] & passed;
    next[found + 1] = is_new ? here[0] : here[found + 1];
    count(t, static_cast<std::size_t>(goes_left ? node.left : node.right), depth + 1);
  }
  if (is_new) way.pop_back();
}

double PartialDependence::Parts::leaf_value(const Tree& tree, const Node& leaf, std::uint32_t output) const {
  if (tree.leaf_width == 1 && tree.output != output) return 0;
  const double value = tree.leaf_width == 1
                           ? leaf.value
                           : tree.leaf_vectors[std::size_t{leaf.payload} * tree.leaf_width + output];
  if (model.score_type == ScalarType::Float64) return static_cast<double>(tree.weight) * value;
  return static_cast<double>(tree.weight * static_cast<float>(value));
}

void PartialDependence::Parts::add_leaves(Sum& sum, std::size_t t, std::size_t at, const PointRuns& points,
                                          std::size_t index, std::vector<std::uint32_t>& columns_here) const {
  const Tree& tree = model.trees[t];
  const Node& node = tree.nodes[at];
  if (node.kind == NodeKind::Leaf) {
    // Counter 0 of a leaf counts all rows; each of the others counts the rows for one column.
    const double value =
        leaf_value(tree, node, sum.output) * static_cast<double>(counters[trees[t].counters[at] + index]);
    if (index == 0) {
      sum.constant += value;
      return;
    }
    for (const auto& [begin, end] : points) {
      sum.steps[begin] += value;
      sum.steps[end] -= value;
    }
    return;
  }
  const bool is_mine = node.feature == sum.feature;
  const bool is_new = std::find(columns_here.begin(), columns_here.end(), node.feature) == columns_here.end();
  if (is_new) columns_here.push_back(node.feature);
  const std::size_t my_index = is_mine && is_new ? columns_here.size() : index;
  for (const bool goes_left : {true, false}) {
    const auto child = static_cast<std::size_t>(goes_left ? node.left : node.right);
    if (!is_mine) {
      add_leaves(sum, t, child, points, my_index, columns_here);
      continue;
    }
    const PointRuns& left = sum.left.at(tests.numbers()[t][at]);
    const PointRuns side = goes_left ? left : frontend::others_of(left, sum.steps.size() - 1);
    add_leaves(sum, t, child, frontend::both_of(points, side), my_index, columns_here);
  }
  if (is_new) columns_here.pop_back();
}

PartialDependence::PartialDependence(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PartialDependence::PartialDependence(PartialDependence&&) noexcept = default;
PartialDependence& PartialDependence::operator=(PartialDependence&&) noexcept = default;
PartialDependence::~PartialDependence() = default;

Result<PartialDependence> PartialDependence::make(const Model& model) {
  auto parts = std::make_unique<Parts>(model);
  FVM_TRY(parts->prepare());
  return PartialDependence(std::move(parts));
}

Result<void> PartialDependence::add(std::span<const double> rows, bool hashed_rows) {
  return parts_->tests.each_word(rows, hashed_rows,
                                 [&](std::uint64_t present) { parts_->count_word(present); });
}

std::uint64_t PartialDependence::rows() const { return parts_->rows; }

bool PartialDependence::has(std::uint32_t feature) const { return parts_->has[feature] != 0; }

Dependence PartialDependence::of(std::uint32_t feature, std::uint32_t output) const {
  const Parts& parts = *parts_;
  std::vector<FeatureTest> splits;
  for (std::size_t i = 0; i < parts.tests.count(); ++i)
    if (parts.tests.split(i).node->feature == feature) splits.push_back(parts.tests.split(i));
  FeaturePoints points = frontend::points_of(parts.model, splits);
  std::map<std::uint32_t, PointRuns> left;
  for (std::uint32_t i = 0; i < parts.tests.count(); ++i)
    if (parts.tests.split(i).node->feature == feature)
      left.emplace(i, points.left_of(parts.model, parts.tests.split(i)));
  std::vector<double> steps(points.count() + 1);
  Parts::Sum sum{feature, output, left, steps};
  const PointRuns all{{0, points.count()}};
  std::vector<std::uint32_t> columns_here;
  for (std::size_t t = 0; t < parts.trees.size(); ++t) {
    const std::vector<std::uint32_t>& tested = parts.trees[t].columns;
    if (std::binary_search(tested.begin(), tested.end(), feature))
      parts.add_leaves(sum, t, 0, all, 0, columns_here);
    else
      parts.each_leaf(t, [&](const Node& leaf, std::size_t counter) {
        sum.constant += parts.leaf_value(parts.model.trees[t], leaf, output) *
                        static_cast<double>(parts.counters[counter]);
      });
  }
  const auto mean_of = [&](double total) {
    return parts.model.scale * (sum.constant + total) / static_cast<double>(parts.rows) +
           parts.model.base[output];
  };
  Dependence dependence{points.categories, std::move(points.pieces)};
  double total = 0;
  for (std::size_t i = 0; i < dependence.pieces.size(); ++i) {
    total += steps[i];
    dependence.pieces[i].mean = mean_of(total);
  }
  dependence.missing = mean_of(total + steps[dependence.pieces.size()]);
  return dependence;
}

double PartialDependence::mean(std::uint32_t output) const {
  const Parts& parts = *parts_;
  double total = 0;
  for (std::size_t t = 0; t < parts.trees.size(); ++t)
    parts.each_leaf(t, [&](const Node& leaf, std::size_t counter) {
      total +=
          parts.leaf_value(parts.model.trees[t], leaf, output) * static_cast<double>(parts.counters[counter]);
    });
  return parts.model.scale * total / static_cast<double>(parts.rows) + parts.model.base[output];
}

}  // namespace forestvm
