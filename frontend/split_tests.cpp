// See split_tests.hpp.
#include "frontend/split_tests.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include <forestvm/internal/formatted.hpp>

#include "frontend/derived_columns.hpp"
#include "frontend/reference_walk.hpp"

namespace forestvm::frontend {
namespace {

std::uint64_t bit_if(bool is_set, std::size_t i) { return std::uint64_t{is_set} << i; }

}  // namespace

SplitTests::SplitTests(const Model& model)
    : model_(model),
      read_(static_cast<std::size_t>(num_columns(model))),
      columns_(static_cast<std::size_t>(num_columns(model))) {
  using Key = std::tuple<std::uint32_t, NodeKind, Missing, bool, double>;
  std::map<Key, std::uint32_t> known;
  for (const Tree& tree : model.trees) {
    std::vector<std::uint32_t>& numbers = numbers_.emplace_back(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const Node& node = tree.nodes[i];
      if (node.kind == NodeKind::Leaf || node.kind == NodeKind::Unused) continue;
      read_[node.feature] = 1;
      const auto number = static_cast<std::uint32_t>(tests_.size());
      numbers[i] = number;
      if (node.kind != NodeKind::Category) {
        const Key key{node.feature, node.kind, node.missing, node.missing_left, node.threshold};
        numbers[i] = known.emplace(key, number).first->second;
      }
      if (numbers[i] == number) tests_.push_back({&tree, &node});
    }
  }
  left_.resize(tests_.size());
}

Result<std::size_t> SplitTests::count_rows(std::span<const double> rows) const {
  const std::size_t features = model_.num_features;
  if (features == 0 || rows.size() % features != 0)
    return usage("{} values are no rows of {} features", rows.size(), features);
  return rows.size() / features;
}

Result<void> SplitTests::take(std::span<const double> rows, std::size_t count, bool hashed_rows) {
  for (ColumnValues& column : columns_) column.nan = column.tiny = 0;
  std::vector<double> derived;
  std::span<const double> all = rows;
  if (columns_.size() != model_.num_features) {
    FVM_ASSIGN(derived, with_derived_columns(model_, rows, count, hashed_rows));
    all = derived;
  }
  const std::size_t width = columns_.size();
  for (std::size_t i = 0; i < count; ++i) load(all.subspan(i * width, width), i);
  for (std::size_t i = 0; i < tests_.size(); ++i) left_[i] = left_rows(tests_[i]);
  return {};
}

/// Puts a row's columns into the current word.
void SplitTests::load(std::span<const double> row, std::size_t bit) {
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (read_[c] == 0) continue;
    double x = number_compared(model_, static_cast<std::uint32_t>(c), row[c]);
    if (model_.row_type == ScalarType::Float32) x = static_cast<double>(static_cast<float>(x));
    const bool tiny = is_tiny(x);
    if (tiny && model_.tiny_is_zero) x = 0;
    ColumnValues& column = columns_[c];
    column.values[bit] = x;
    column.nan |= bit_if(std::isnan(x), bit);
    column.tiny |= bit_if(tiny, bit);
  }
}

std::uint64_t SplitTests::left_rows(const FeatureTest& split) const {
  const Node& node = *split.node;
  const ColumnValues& column = columns_[node.feature];
  std::uint64_t left = 0;
  if (node.kind == NodeKind::Category) {
    for (std::size_t i = 0; i < kRows; ++i) left |= bit_if(goes_left(*split.tree, node, column.values[i]), i);
    return left;
  }
  const double threshold = model_.row_type == ScalarType::Float64
                               ? node.threshold
                               : static_cast<double>(static_cast<float>(node.threshold));
  if (node.kind == NodeKind::Less)
    for (std::size_t i = 0; i < kRows; ++i) left |= bit_if(column.values[i] < threshold, i);
  else
    for (std::size_t i = 0; i < kRows; ++i) left |= bit_if(column.values[i] <= threshold, i);
  const std::uint64_t missing = column.nan | (node.missing == Missing::Zero ? column.tiny : 0);
  const bool missing_left =
      node.missing == Missing::None ? goes_left(*split.tree, node, 0.0) : node.missing_left;
  return missing_left ? left | missing : left & ~missing;
}

}  // namespace forestvm::frontend
