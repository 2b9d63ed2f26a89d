// LightGBM's early stop of predictions: trees are added to a row's raw scores until these are far enough apart.
#pragma once

#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The ways in which a model's raw scores show that a row is decided.
enum class EarlyStopRule : std::uint8_t {
  None = 0,      ///< No rule: the model needs all its trees (regression).
  Distance = 1,  ///< The score is far from 0: 2 * |raw| > margin.
  Lead = 2,      ///< The best score is far ahead of the second: best - second > margin.
};
inline constexpr std::uint8_t kEarlyStopRules = 3;

/// Returns how far the best raw score is ahead of the second, of at least two. score_of(k) returns that of output k: a
/// number, or a vector of the numbers of several rows.
template <class Score, class ScoreOf>
FVM_HOST_DEVICE inline Score lead_of(std::uint32_t outputs, const ScoreOf& score_of) {
  // Nothing branches on the scores: no processor would foresee which is the best. The two conditions differ, because
  // compilers make one branch of two choices by one condition.
  const Score first = score_of(0), other = score_of(1);
  Score best = first < other ? other : first;
  Score second = other < first ? other : first;
  for (std::uint32_t k = 2; k < outputs; ++k) {
    const Score score = score_of(k), lower = score > second ? score : second;
    second = score > best ? best : lower;
    best = score > best ? score : best;
  }
  return best - second;
}

/// Returns whether the raw scores of a row are decided.
FVM_HOST_DEVICE inline bool is_decided(EarlyStopRule rule, const double* scores, std::uint32_t outputs,
                                       double margin) {
  if (rule != EarlyStopRule::Lead) return 2 * (scores[0] < 0 ? -scores[0] : scores[0]) > margin;
  return lead_of<double>(outputs, [scores](std::uint32_t k) { return scores[k]; }) > margin;
}

}  // namespace forestvm
