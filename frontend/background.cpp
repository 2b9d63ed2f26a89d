// See forestvm/background.hpp.
#include <forestvm/background.hpp>
#include <forestvm/internal/formatted.hpp>

#include <algorithm>

#include "frontend/split_tests.hpp"

namespace forestvm {

Result<Background> Background::make(const Model& model, std::span<const double> rows, std::size_t columns,
                                    bool hashed_rows) {
  const std::size_t count = columns == 0 ? 0 : rows.size() / columns;
  if (columns != model.num_features || count == 0 || count * columns != rows.size())
    return refused("background", "its shape is ({}, {}), but it must be (rows, {}) with a row or more", count,
                   columns, model.num_features);
  frontend::SplitTests tests(model);
  const std::size_t words = (count + 63) / 64;
  if (words > kMaxBytes / sizeof(std::uint64_t) / std::max<std::size_t>(1, tests.count()))
    return refused("background", "{} rows at {} different tests take more than {} bytes; give fewer rows",
                   count, tests.count(), kMaxBytes);
  Background background;
  background.rows_ = count;
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    std::vector<TestOfSplit>& splits = background.tests_.emplace_back();
    for (std::size_t n = 0; n < model.trees[t].nodes.size(); ++n) {
      const Node& node = model.trees[t].nodes[n];
      splits.push_back({tests.numbers()[t][n], node.left < node.right});
    }
  }
  background.left_.resize(tests.count() * words);
  std::size_t word = 0;
  FVM_TRY(tests.each_word(rows, hashed_rows, [&](std::uint64_t present) {
    for (std::size_t i = 0; i < tests.count(); ++i)
      background.left_[i * words + word] = tests.left(i) & present;
    ++word;
  }));
  return background;
}

}  // namespace forestvm
