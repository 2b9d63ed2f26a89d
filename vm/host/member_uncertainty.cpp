// See member_uncertainty.hpp.
#include "vm/host/member_uncertainty.hpp"

#include <algorithm>

#include <forestvm/core/entropy.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm::host {
namespace {

/// Turns the raw scores of a member into the probabilities of `outputs` classes.
void predict_classes(double* scores, std::size_t outputs) {
  const double most = *std::max_element(scores, scores + outputs);
  double sum = 0;
  for (std::size_t k = 0; k < outputs; ++k) sum += scores[k] = exp_f64(scores[k] - most);
  for (std::size_t k = 0; k < outputs; ++k) scores[k] /= sum;
}

}  // namespace

void predict_variances(double* members, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) members[2 * e + 1] = exp_f64(2 * members[2 * e + 1]);
}

void uncertainty_of(UncertaintyRule rule, double* members, std::size_t count, std::size_t outputs,
                    double* to) {
  const auto mean = [&](const auto& number) {
    double sum = 0;
    for (std::size_t e = 0; e < count; ++e) sum += number(members + e * outputs);
    return sum / static_cast<double>(count);
  };
  if (rule == UncertaintyRule::Scores || rule == UncertaintyRule::Gaussian) {
    const double middle = to[0] = mean([](const double* member) { return member[0]; });
    to[1] = mean([&](const double* member) { return (member[0] - middle) * (member[0] - middle); });
    if (rule == UncertaintyRule::Gaussian) to[2] = mean([](const double* member) { return member[1]; });
    return;
  }
  const bool binary = rule == UncertaintyRule::Binary;
  for (std::size_t e = 0; e < count; ++e)
    if (binary)
      members[e] = 1 / (1 + exp_f64(-members[e]));
    else
      predict_classes(members + e * outputs, outputs);
  const auto entropy = [&](const double* chances) {
    double sum = binary ? entropy_term(1 - chances[0]) : 0;
    for (std::size_t k = 0; k < outputs; ++k) sum += entropy_term(chances[k]);
    return sum;
  };
  to[0] = mean(entropy);
  for (std::size_t k = 0; k < outputs; ++k)
    members[k] = mean([&](const double* member) { return member[k]; });
  to[1] = entropy(members);
}

}  // namespace forestvm::host
