// Writes the functions that say how sure a model is by the scores of its virtual ensembles. They repeat the arithmetic
// of vm/host/member_uncertainty.cpp, but take one ensemble after the other, because nothing has memory for all; tests
// check that both give the same bits.
#include <forestvm/internal/calls.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// Variances need the mean, so the ensembles are gone through twice.
constexpr const char* kScores =
    R"(/* Adds what an ensemble says: in pass 0 to the means, in pass 1 to the variance. */
static void @add_member(const double *scores, uint32_t pass, uint32_t count, double *totals) {
  const double distance = scores[0] - totals[0] / count;
  if (pass != 0u) totals[1] += distance * distance;
  if (pass != 0u) return;
  totals[0] += scores[0];
@VARIANCE}
static void @uncertainty_of(const double *totals, uint32_t count, double *out) {
  uint32_t i;
  for (i = 0u; i < @WIDTH; ++i) out[i] = totals[i] / count;
}
)";

constexpr const char* kEntropies = R"(static double @entropy(const double *chances) {
  double sum = @OTHER;
  uint32_t k;
  for (k = 0u; k < @OUTPUTS; ++k) sum += @entropy_term(chances[k]);
  return sum;
}
/* Adds the entropy of an ensemble's probabilities, and then these, to the totals. */
static void @add_member(double *scores, uint32_t pass, uint32_t count, double *totals) {
  uint32_t k;
@CHANCES  (void)pass;
  (void)count;
  totals[0] += @entropy(scores);
  for (k = 0u; k < @OUTPUTS; ++k) totals[1u + k] += scores[k];
}
static void @uncertainty_of(double *totals, uint32_t count, double *out) {
  uint32_t k;
  for (k = 0u; k < @OUTPUTS; ++k) totals[1u + k] /= count;
  out[0] = totals[0] / count;
  out[1] = @entropy(totals + 1);
}
)";

constexpr const char* kSoftmax = R"(  double most = scores[0], sum = 0;
  for (k = 1u; k < @OUTPUTS; ++k) most = most < scores[k] ? scores[k] : most;
  for (k = 0u; k < @OUTPUTS; ++k) sum += scores[k] = @exp_f64(scores[k] - most);
  for (k = 0u; k < @OUTPUTS; ++k) scores[k] /= sum;
)";

UncertaintyRule rule_of(const Program& program) {
  const auto all = program.uncertainty();
  return all.empty() ? UncertaintyRule::None : all[0].rule;
}

}  // namespace

bool has_members(const Program& program) {
  const UncertaintyRule rule = rule_of(program);
  return rule != UncertaintyRule::None && rule != UncertaintyRule::Trees;
}

std::uint32_t uncertainty_width(const Program& program) {
  const UncertaintyRule rule = rule_of(program);
  return rule == UncertaintyRule::Trees ? 2 * program.meta().num_outputs
                                        : (rule == UncertaintyRule::Gaussian ? 3 : 2);
}

std::uint32_t member_passes(const Program& program) {
  const UncertaintyRule rule = rule_of(program);
  return rule == UncertaintyRule::Scores || rule == UncertaintyRule::Gaussian ? 2 : 1;
}

std::string uncertainty_text(const Job& job, std::uint64_t& table_bytes) {
  const UncertaintyRule rule = rule_of(job.program);
  const bool binary = rule == UncertaintyRule::Binary;
  const std::string text = replaced(
      member_passes(job.program) == 2 ? kScores : kEntropies,
      {{"@VARIANCE", rule == UncertaintyRule::Gaussian ? "  totals[2] += @exp_f64(2 * scores[1]);\n" : ""},
       {"@WIDTH", number(uncertainty_width(job.program))},
       {"@OTHER", binary ? "@entropy_term(1 - chances[0])" : "0"},
       {"@CHANCES", binary ? "  scores[0] = 1 / (1 + @exp_f64(-scores[0]));\n" : kSoftmax}});
  if (job.program.uncertainty()[0].shrinkage == 0) return in_file(job, text);
  std::vector<std::string> factors;
  for (std::uint32_t left = 0; left + 1 < job.program.round_begins().size(); ++left)
    factors.push_back(literal(ensemble_factor(job.program, left)));
  return "/* The factor of an ensemble that ends some rounds before the last. */\n" +
         table("double", 8, job.name("ensemble_factors"), factors, table_bytes) + in_file(job, text);
}

}  // namespace forestvm::bytecode::export_c
