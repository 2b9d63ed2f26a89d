// Functions of many scores, in vectors. They have the bits that transform_row gives one score.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/exp.hpp>
#include <forestvm/core/table_exp.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm {

/// The vectors of `kBytes` bytes of numbers, and of half as many bytes of float32 numbers.
template <std::size_t kBytes>
struct ScoreVectors {
  typedef double Doubles __attribute__((vector_size(kBytes)));
  typedef std::uint64_t Longs __attribute__((vector_size(kBytes)));
  typedef float Floats __attribute__((vector_size(kBytes / 2)));
};

template <>
struct LongsOf<ScoreVectors<32>::Doubles> {
  using Type = ScoreVectors<32>::Longs;
};
template <>
struct LongsOf<ScoreVectors<64>::Doubles> {
  using Type = ScoreVectors<64>::Longs;
};

namespace host {

enum class ScoreFunction : std::uint8_t { Exp, CutSigmoid, PlainSigmoid, TableExp };

/// Holds all numbers that root_power computes; vectors of table_exp look them up.
struct RootPowers {
  RootPowers() {
    for (std::uint32_t i = 0; i < kCount; ++i) powers[i] = root_power(i);
  }

  static constexpr std::uint32_t kCount = 2048;
  double powers[kCount];
};

/// Scores that are replaced by a function of each; sigmoids are of the product of `slope` and the score.
struct ScoresTask {
  ScoreFunction function;  ///< CutSigmoid is for float32 scores, TableExp for float64 ones.
  bool wide;               ///< Whether scores are of type double, otherwise float.
  void* scores;
  std::size_t count;
  double slope;
  const RootPowers* root_powers = nullptr;  ///< for TableExp
};

using ScoresFunction = void (*)(const ScoresTask&);

/// Replaces scores by a function of each, a vector at a time. The last ones are copied to a vector that zeros fill up.
template <class Vector, class Function>
FVM_INLINE void replace_scores(const ScoresTask& task, Function function) {
  constexpr std::size_t kScore = sizeof(Vector{}[0]);
  auto* const bytes = static_cast<std::byte*>(task.scores);
  for (std::size_t done = 0, size = task.count * kScore; done < size; done += sizeof(Vector)) {
    const std::size_t now = std::min(sizeof(Vector), size - done);
    Vector scores{};
    if (now == sizeof scores)
      std::memcpy(&scores, bytes + done, sizeof scores);
    else
      std::memcpy(&scores, bytes + done, now);
    scores = function(scores);
    if (now == sizeof scores)
      std::memcpy(bytes + done, &scores, sizeof scores);
    else
      std::memcpy(bytes + done, &scores, now);
  }
}

/// Returns table_exp of each number of a vector.
template <class Doubles>
FVM_INLINE Doubles table_exps(Doubles x, const RootPowers& roots) {
  const TableExpTerms<Doubles> terms(x);
  const auto indices = terms.whole.integer & (RootPowers::kCount - 1);
  Doubles powers;
  for (std::size_t i = 0; i < sizeof x / sizeof(double); ++i) powers[i] = roots.powers[indices[i]];
  return terms.result(x, powers);
}

template <class Target>
void transform_scores(const ScoresTask& task) {
  using Doubles = typename ScoreVectors<Target::Codes::kLanes>::Doubles;
  using Floats = typename ScoreVectors<Target::Codes::kLanes>::Floats;
  const auto exp_of_doubles = [](Doubles x) __attribute__((always_inline)) { return exp_for_f64(x); };
  const auto exp_of_floats = [](Floats x) __attribute__((always_inline)) {
    return __builtin_convertvector(exp_for_f32(__builtin_convertvector(x, Doubles)), Floats);
  };
  const double slope = task.slope;
  const auto narrow = static_cast<float>(slope);
  switch (task.function) {
    case ScoreFunction::Exp:
      if (task.wide) return replace_scores<Doubles>(task, exp_of_doubles);
      return replace_scores<Floats>(task, exp_of_floats);
    case ScoreFunction::CutSigmoid:
      return replace_scores<Floats>(
          task, [&](Floats x)
                    __attribute__((always_inline)) { return cut_sigmoid(narrow * x, exp_of_floats); });
    case ScoreFunction::PlainSigmoid:
      if (task.wide)
        return replace_scores<Doubles>(
            task, [&](Doubles x)
                      __attribute__((always_inline)) { return plain_sigmoid(slope * x, exp_of_doubles); });
      return replace_scores<Floats>(
          task, [&](Floats x)
                    __attribute__((always_inline)) { return plain_sigmoid(narrow * x, exp_of_floats); });
    case ScoreFunction::TableExp:
      return replace_scores<Doubles>(
          task, [&](Doubles x) __attribute__((always_inline)) { return table_exps(x, *task.root_powers); });
  }
}

/// Returns the target's function, if it has vectors of more than two float64 numbers; otherwise null.
template <class Target>
ScoresFunction scores_function_for() {
  if constexpr (Target::Codes::kLanes > 16) return transform_scores<Target>;
  return nullptr;
}

}  // namespace host
}  // namespace forestvm
