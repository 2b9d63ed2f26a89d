// Writes the outputs of PMML trees' leaves in the form in which the model sums them up.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/pmml_document.hpp"

namespace forestvm::frontend {

/// Writes the leaves of one tree: each leaf's score, or its vector of probabilities or votes, times the tree's weight.
class PmmlLeaves {
 public:
  /// `room` is the number of values that the vectors of all trees may still hold.
  PmmlLeaves(const PmmlTree& tree, const PmmlScorer& scorer, std::size_t classes, double weight,
             std::size_t& room)
      : tree_(tree),
        scorer_(scorer),
        classes_(classes),
        weight_(weight),
        room_(room),
        rows_(tree.nodes.size() + 1, -1) {}

  /// Writes the outputs of the leaf for `node`; null stands for the leaf of rows without an answer.
  Result<void> operator()(const PmmlNode* node, Node& leaf, Tree& tree);

  /// Returns whether the tree has a leaf of rows without an answer.
  bool lacks_answers() const { return rows_.back() >= 0; }

 private:
  Result<void> append_row(const PmmlNode* node, Tree& tree);
  Result<void> append_shares(const PmmlNode& node, Tree& tree);
  Error error(const PmmlNode& node, const char* message) const;
  double rounded(double value) const {
    return scorer_.is_float ? static_cast<double>(static_cast<float>(value)) : value;
  }
  double weighted(double value) const;

  const PmmlTree& tree_;
  const PmmlScorer& scorer_;
  std::size_t classes_;
  double weight_;
  std::size_t& room_;
  std::vector<std::int64_t>
      rows_;  ///< Row of each node's vector, and of the one without an answer; -1 if none.
};

}  // namespace forestvm::frontend
