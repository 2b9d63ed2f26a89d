// Writes how sure a forest is of a row: mean and variance of its trees' scores, or the scores of virtual ensembles and
// what follows from them. Operations and their order are those of the host, so the numbers have the host's bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/entropy.hpp>
#include <forestvm/core/transform.hpp>
#include <forestvm/core/uncertainty.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/kind_rows.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Writes the mean and the variance of the trees' scores of a row, for the outputs that the thread has.
template <class Score, class Value>
FVM_DEVICE void store_spread(const Launch& launch, const Score* leaves, std::uint32_t row, Value* to) {
  const LaunchProgram& program = launch.program;
  const LaunchPass& pass = launch.pass;
  to += std::size_t{row} * pass.value_width;
  FVM_NO_UNROLL
  for (std::uint32_t k = Device::index(1); k < program.num_outputs; k += Device::extent(1)) {
    const TreesOfOutput trees = trees_of_output(program, pass, k);
    Score sum = 0;
    FVM_NO_UNROLL
    for (std::uint32_t t = 0; t < trees.count; ++t) sum += added_by_leaf(launch, row, k, leaves[trees[t]]);
    const Score mean = trees.count == 0 ? sum : sum / static_cast<Score>(trees.count);
    double squares = 0;
    FVM_NO_UNROLL
    for (std::uint32_t t = 0; t < trees.count; ++t) {
      const double distance =
          static_cast<double>(added_by_leaf(launch, row, k, leaves[trees[t]])) - static_cast<double>(mean);
      squares += distance * distance;
    }
    to[2 * k] = static_cast<Value>(mean);
    to[2 * k + 1] = static_cast<Value>(trees.count == 0 ? squares : squares / trees.count);
  }
}

/// The scores of a row's virtual ensembles, one ensemble at a time. Scores are float64, as those of all models that
/// have such ensembles.
class RowMembers {
 public:
  FVM_DEVICE RowMembers(const Launch& launch, const double* leaves, std::uint32_t row)
      : launch_(launch),
        leaves_(leaves),
        row_(row),
        period_(launch.pass.end_round / 2 / launch.pass.ensembles),
        numbers_{reinterpret_cast<double*>(launch.pass.workspace) + row, launch.pass.row_count} {}

  /// Begins with the rounds before those that the first ensemble adds.
  FVM_DEVICE void begin() {
    end_ = launch_.pass.end_round - period_ * launch_.pass.ensembles;
    left_ = launch_.pass.ensembles;
    const double* const base = launch_.pass.base + std::size_t{row_} * launch_.pass.base_stride;
    add_rounds(0, [&](std::uint32_t k) { return base[k]; });
  }

  /// Goes on to the next ensemble. Returns false if there is none.
  FVM_DEVICE bool next() {
    if (left_ == 0) return false;
    --left_;
    const std::uint32_t first = end_;
    end_ += period_;
    add_rounds(first, [&](std::uint32_t k) { return numbers_[k]; });
    const double factor = launch_.program.kinds->ensemble_factors[period_ * left_];
    const std::uint32_t outputs = launch_.program.num_outputs;
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < outputs; ++k) {
      double score = numbers_[k] * factor;
      // The second score is the logarithm of a standard deviation.
      if (k == 1 && launch_.program.kinds->uncertainty == UncertaintyRule::Gaussian)
        score = exp_f64(2 * score);
      numbers_[outputs + k] = score;
    }
    return true;
  }

  /// Returns score `k` of the ensemble.
  FVM_DEVICE double& score(std::uint32_t k) const { return numbers_[launch_.program.num_outputs + k]; }
  /// Returns a number that is kept for output `k` from one ensemble to the next.
  FVM_DEVICE double& kept(std::uint32_t k) const { return numbers_[2 * launch_.program.num_outputs + k]; }

  /// Turns the raw scores of the ensemble into the probabilities of classes.
  FVM_DEVICE void predict_classes() const {
    const std::uint32_t outputs = launch_.program.num_outputs;
    if (launch_.program.kinds->uncertainty == UncertaintyRule::Binary) {
      score(0) = 1 / (1 + exp_f64(-score(0)));
      return;
    }
    double most = score(0), sum = 0;
    FVM_NO_UNROLL
    for (std::uint32_t k = 1; k < outputs; ++k)
      if (most < score(k)) most = score(k);
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < outputs; ++k) sum += score(k) = exp_f64(score(k) - most);
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < outputs; ++k) score(k) /= sum;
  }

  /// Returns the entropy of the ensemble's probabilities.
  FVM_DEVICE double entropy() const {
    const bool binary = launch_.program.kinds->uncertainty == UncertaintyRule::Binary;
    double sum = binary ? entropy_term(1 - score(0)) : 0;
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < launch_.program.num_outputs; ++k) sum += entropy_term(score(k));
    return sum;
  }

 private:
  /// Sets each output's number to before(output) and the scores of the trees of rounds [first, end_).
  template <class Before>
  FVM_DEVICE void add_rounds(std::uint32_t first, const Before& before) const {
    const LaunchProgram& program = launch_.program;
    const std::uint32_t* const begins = program.kinds->round_begins;
    const TreeRange range{begins[first], begins[end_]};
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < program.num_outputs; ++k) {
      const TreesOfOutput trees = trees_of_output(program, range, range.begin % program.num_outputs, k);
      double sum = 0;
      FVM_NO_UNROLL
      for (std::uint32_t t = 0; t < trees.count; ++t)
        sum += added_by_leaf(launch_, row_, k, leaves_[trees[t]]);
      numbers_[k] = sum * program.score_scale + before(k);
    }
  }

  const Launch& launch_;
  const double* leaves_;
  std::uint32_t row_, period_;
  std::uint32_t left_ = 0;  ///< ensembles that follow
  std::uint32_t end_ = 0;   ///< end of the ensemble's rounds
  /// For each output the sum of its trees so far, then the ensemble's scores, then kept().
  ThreadNumbers<double> numbers_;
};

/// Writes the mean and the variance of the ensembles' first scores, and for models that predict variances the mean of
/// these.
template <class Value>
FVM_DEVICE void store_variances(RowMembers& members, double count, bool gaussian, Value* to) {
  double sum = 0, variances = 0, squares = 0;
  members.begin();
  while (members.next()) {
    sum += members.score(0);
    if (gaussian) variances += members.score(1);
  }
  const double mean = sum / count;
  members.begin();
  while (members.next()) squares += (members.score(0) - mean) * (members.score(0) - mean);
  to[0] = static_cast<Value>(mean);
  to[1] = static_cast<Value>(squares / count);
  if (gaussian) to[2] = static_cast<Value>(variances / count);
}

/// Writes the mean entropy of the ensembles' probabilities, and the entropy of the mean probabilities.
template <class Value>
FVM_DEVICE void store_entropies(RowMembers& members, double count, std::uint32_t outputs, Value* to) {
  double sum = 0;
  FVM_NO_UNROLL
  for (std::uint32_t k = 0; k < outputs; ++k) members.kept(k) = 0;
  members.begin();
  while (members.next()) {
    members.predict_classes();
    sum += members.entropy();
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < outputs; ++k) members.kept(k) += members.score(k);
  }
  FVM_NO_UNROLL
  for (std::uint32_t k = 0; k < outputs; ++k) members.score(k) = members.kept(k) / count;
  to[0] = static_cast<Value>(sum / count);
  to[1] = static_cast<Value>(members.entropy());
}

/// Writes the scores of a row's virtual ensembles, or the uncertainty that follows from them.
template <class Value>
FVM_DEVICE void store_members(const Launch& launch, const double* leaves, std::uint32_t row, Value* to) {
  const std::uint32_t outputs = launch.program.num_outputs;
  const UncertaintyRule rule = launch.program.kinds->uncertainty;
  const double count = launch.pass.ensembles;
  RowMembers members(launch, leaves, row);
  to += std::size_t{row} * launch.pass.value_width;
  if (launch.pass.output == OutputKind::VirtEnsembles) {
    members.begin();
    for (; members.next(); to += outputs) {
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < outputs; ++k) to[k] = static_cast<Value>(members.score(k));
    }
    return;
  }
  if (rule == UncertaintyRule::Scores || rule == UncertaintyRule::Gaussian)
    store_variances(members, count, rule == UncertaintyRule::Gaussian, to);
  else
    store_entropies(members, count, outputs, to);
}

}  // namespace forestvm::kernels
