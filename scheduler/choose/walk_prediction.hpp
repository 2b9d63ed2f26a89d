// Predicts what walks cost by a forest that was trained on the measured times of several hundred forests (bench/walks),
// and chooses the plans of least predicted cost. The forest is a program in walk_costs.fvm, which the host VM runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/choose/host_template.hpp"
#include "scheduler/choose/walk_features.hpp"

namespace forestvm::scheduler {

/// A walk of a call.
struct WalkOfCall {
  WalkCall call;
  WalkChoice walk;
};

/// Returns the predicted microseconds per row of each of `walks`, on one core of the machine on which the predictor was
/// trained; elsewhere only their ratios matter.
std::vector<double> predicted_costs(const ForestFacts& facts, std::span<const WalkOfCall> walks);

/// Returns the points of the host's space whose walks are predicted to cost least for calls of `rows` rows, the first
/// `count` for each CPU target; points that are among the first of several targets come once.
std::vector<HostTemplatePoint> predicted_points(const ForestFacts& facts, std::uint32_t rows,
                                                std::size_t count);

/// Returns why costs of the model's walks cannot be predicted; an empty text if they can.
std::string why_not_predicted(const ForestFacts& facts);

/// Returns the plans of least predicted cost for calls of `rows` rows, which ascend; none means all calls. The last
/// plan is for BATCH; each other plan reaches to the geometric mean of its number of rows and the next. Calls take the
/// walk that larger calls take where no other costs clearly less, so that there are few plans and layouts. The model's
/// costs must be predictable: why_not_predicted() is empty.
std::vector<PlanChoice> plans_by_prediction(const ForestFacts& facts, std::span<const std::uint32_t> rows);

}  // namespace forestvm::scheduler
