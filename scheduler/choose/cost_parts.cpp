// See cost_parts.hpp. bench/results/auto.md#parts says where the numbers come from.
#include "scheduler/choose/cost_parts.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <forestvm/core/transform.hpp>

#include "scheduler/choose/walk_prediction.hpp"
#include "scheduler/plan_ranges.hpp"

namespace forestvm::scheduler {
namespace {

/// The most rows of the calls that the predictor knows. In larger calls a row is taken to cost as much as in these.
constexpr std::uint32_t kMostMeasuredRows = 1024;

/// The nanoseconds of encoding. Each column costs time for each row; each feature, each of its thresholds and the call
/// itself cost time once in a call.
struct EncodeCosts {
  double column, feature, threshold, call;
};
constexpr EncodeCosts kAvx512Encodes{0.48, 3.4, 0.016, 15};
constexpr EncodeCosts kOtherEncodes{0.74, 6.2, 0.045, 23};

constexpr double kCall = 150;     ///< Nanoseconds of a call besides encoding and walking.
constexpr double kOutput = 0.8;   ///< Nanoseconds of beginning and storing the sum of an output.
constexpr double kOperation = 1;  ///< Nanoseconds of comparing or scaling an output.
constexpr double kFunction = 20;  ///< Nanoseconds of an exponential or a logarithm of an output.
/// Nanoseconds of an exponential of an output in vectors, with AVX-512 and AVX2.
constexpr double kAvx512Function = 3.5, kAvx2Function = 6;

double encode_cost(const ForestFacts& facts, const WalkCall& call) {
  const EncodeCosts& costs = call.has_avx512 ? kAvx512Encodes : kOtherEncodes;
  const double of_call = costs.feature * facts.forest.features_used +
                         costs.threshold * static_cast<double>(facts.forest.thresholds) + costs.call;
  return costs.column * static_cast<double>(facts.forest.threshold_columns) + of_call / call.rows;
}

/// The transforms that do without exponentials and logarithms.
constexpr Transform kOperations[] = {Transform::Argmax, Transform::Step, Transform::Average,
                                     Transform::SignedSquare, Transform::Clamp};

/// The transforms whose exponentials are computed in vectors where a call has a few scores at least.
constexpr Transform kVectorFunctions[] = {Transform::Sigmoid,  Transform::PlainSigmoid,
                                          Transform::Exp,      Transform::Softmax,
                                          Transform::TableExp, Transform::TableSoftmax};
constexpr std::uint32_t kScoresForVectors = 4;

bool is_among(std::span<const Transform> transforms, Transform transform) {
  return std::ranges::find(transforms, transform) != transforms.end();
}

double transform_cost(const Model& model, CpuTarget cpu, std::uint32_t rows) {
  if (model.transform == Transform::Identity) return 0;
  double cost = kFunction;
  if (is_among(kOperations, model.transform))
    cost = kOperation;
  else if (cpu != CpuTarget::Baseline && is_among(kVectorFunctions, model.transform) &&
           std::uint64_t{rows} * model.num_outputs >= kScoresForVectors)
    cost = cpu >= CpuTarget::Avx512 ? kAvx512Function : kAvx2Function;
  return model.num_outputs * cost;
}

/// Returns the walk of a plan's directives, if it is one of those among which `auto` chooses. Calls that have no more
/// rows than the smallest block cost the same with every larger one.
std::optional<WalkChoice> walk_of(const Schedule& plan, const ForestFacts& facts, std::uint32_t rows) {
  const std::string text = print(plan);
  for (const std::uint32_t of_rows : {rows, kMostMeasuredRows})
    for (WalkChoice walk : walks_for(facts, of_rows)) {
      if (print(host_template_schedule(template_point(walk, facts))) != text) continue;
      if (walk.lanes == Lanes::Rows && rows <= kMostRowsOfSmallestBlock)
        walk.block = kMostRowsOfSmallestBlock;
      return walk;
    }
  return std::nullopt;
}

}  // namespace

std::optional<CostParts> predicted_parts(const Model& model, const Schedule& schedule, std::uint32_t rows,
                                         CpuTarget cpu) {
  const ForestFacts facts = facts_of(model);
  if (!why_not_predicted(facts).empty()) return std::nullopt;
  const std::vector<PlanRange> plans = plan_ranges(schedule);
  const PlanRange* const plan = plan_for(plans, rows, cpu);
  if (plan == nullptr) return std::nullopt;
  const auto first = schedule.directives.begin();
  Schedule mine;
  mine.directives.assign(first + static_cast<std::ptrdiff_t>(plan->begin),
                         first + static_cast<std::ptrdiff_t>(plan->end));
  rows = std::min(rows, kMostMeasuredRows);
  const std::optional<WalkChoice> walk = walk_of(mine, facts, rows);
  if (!walk) return std::nullopt;
  const WalkCall call = call_on(cpu, rows);
  const double all = predicted_costs(facts, std::vector<WalkOfCall>{{call, *walk}}).front();
  constexpr double kMicroseconds = 1e-3;
  CostParts parts;
  parts.encode = walk->coded ? encode_cost(facts, call) * kMicroseconds : 0;
  parts.reduce = (kCall / rows + kOutput * facts.outputs) * kMicroseconds;
  parts.transform = transform_cost(model, cpu, rows) * kMicroseconds;
  parts.walk = std::max(all - parts.encode - parts.reduce, 0.0);
  return parts;
}

}  // namespace forestvm::scheduler
