// Makes reductions legal. A parallel loop over trees is a reduction loop: its iterations would add to the
// same rows, so each gets a private accumulator, and the copies are reduced, in iteration order, when the
// loop ends. Several such loops inside each other are reduced one after the other, from the inside out. Then
// the result is initialised and written where each row is complete. Source: SilvanForge, section 5.
//
//   par.for t0 in trees step 50:               result[batch] = base
//     for t1 in t0:                            par.for t0 in trees step 50:
//       for batch in rows:              ->       private1[batch] = privatize(result, t0)
//         reduce(result[batch, …], p)            for t1 in t0: …  reduce(private1[batch, …], p)
//                                              result[batch] += reduce_dimension(private1, t0)
#include <algorithm>

#include <forestvm/names.hpp>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

using enum Statement::Kind;

class Legalizer {
 public:
  explicit Legalizer(Lowering& lowering) : lowering_(lowering), absorbed_(lowering.loops.size()) {
    for (const WalkSite& site : lowering.sites)
      for (const LoopId loop : site.absorbed) absorbed_[loop] = true;
  }

  Result<void> run() {
    FVM_TRY(privatize(lowering_.nest.body, kNoLoop, 0));
    FVM_TRY(check_memory());
    place_results(lowering_.nest.body, kNoLoop);
    return {};
  }

 private:
  Statement make(Statement::Kind kind, LoopId rows, std::uint32_t accumulator = 0,
                 LoopId loop = kNoLoop) const {
    Statement s;
    s.kind = kind;
    s.rows = rows;
    s.accumulator = accumulator;
    s.loop = loop;
    return s;
  }

  Result<void> privatize(std::vector<Statement>& body, LoopId rows, std::uint32_t level) {
    std::vector<Statement> legal;
    for (Statement& s : body) {
      if (s.kind == Walk) s.accumulator = level;
      if (s.kind != Loop) {
        legal.push_back(std::move(s));
        continue;
      }
      const bool over_rows = lowering_.loops[s.loop].axis == Axis::Rows;
      if (over_rows || !s.parallel) {
        FVM_TRY(privatize(s.body, over_rows ? s.loop : rows, level));
        legal.push_back(std::move(s));
        continue;
      }
      if (lowering_.loops.iterations(s.loop) <= 1) {  // nothing runs beside it
        s.parallel = false;
        FVM_TRY(privatize(s.body, rows, level));
        legal.push_back(std::move(s));
        continue;
      }
      FVM_TRY(note_order(s.loop));
      if (level + 1 == kAccumulators)
        return lowering_.refuse(lowering_.loops[s.loop].parallel->directive,
                                "more than " + std::to_string(kAccumulators - 1) +
                                    " parallel loops over trees inside each other");
      auto& iterations = lowering_.nest.accumulators;
      if (iterations.size() == level + 1) iterations.push_back(1);
      iterations[level + 1] = std::max(iterations[level + 1], lowering_.loops.iterations(s.loop));
      FVM_TRY(privatize(s.body, rows, level + 1));
      s.body.insert(s.body.begin(), make(Privatize, rows, level + 1, s.loop));
      const LoopId loop = s.loop;
      legal.push_back(std::move(s));
      legal.push_back(make(ReduceDim, rows, level, loop));
    }
    body = std::move(legal);
    return {};
  }

  /// The sums of parallel trees are added in another order than the trainer's: what does the contract say?
  Result<void> note_order(LoopId loop) {
    const std::size_t directive = lowering_.loops[loop].parallel->directive;
    lowering_.sums_in_model_order = false;
    if (lowering_.options.contract == Contract::Fast) return {};
    if (lowering_.options.contract == Contract::Reproducible)
      return lowering_.refuse(
          directive,
          "trees in parallel are summed in an order of their own, which the reproducible contract "
          "does not allow; exact sums are not lowered yet by this backend");
    const std::string what =
        "trees in parallel are summed in another order than the trainer's, so raw scores may differ "
        "from the trainer's in the last bits";
    if (lowering_.options.strict) return lowering_.refuse(directive, what + " (--strict)");
    std::string warning = place_of(lowering_.schedule, directive) + ": " +
                          print(lowering_.schedule.directives[directive]) + ": " + what;
    auto& warnings = lowering_.warnings;  // copies of a loop warn once
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(std::move(warning));
    return {};
  }

  Result<void> check_memory() const {
    std::uint64_t copies = 1, floats = 0;
    const auto& iterations = lowering_.nest.accumulators;
    for (std::size_t i = 1; i < iterations.size(); ++i) {
      copies =
          std::min<std::uint64_t>(copies * std::min<std::uint64_t>(iterations[i], UINT32_MAX), UINT32_MAX);
      floats += copies * lowering_.model.num_outputs;
    }
    const std::uint64_t bytes = floats * sizeof(float);
    if (bytes > kMaxScratchBytes)
      return refused("schedule", "its parallel loops over trees would need " + std::to_string(bytes) +
                                     " bytes of private accumulators for a single row, more than " +
                                     std::to_string(kMaxScratchBytes) + ": tile them coarser");
    return {};
  }

  /// Results belong where their rows are complete: inside the loops over rows that contain everything else.
  void place_results(std::vector<Statement>& body, LoopId rows) {
    const bool descend = body.size() == 1 && body.front().kind == Loop &&
                         lowering_.loops[body.front().loop].axis == Axis::Rows &&
                         !absorbed_[body.front().loop];
    if (descend) return place_results(body.front().body, body.front().loop);
    const Model& model = lowering_.model;
    body.insert(body.begin(), make(model.base_last ? Zero : Init, rows));
    if (model.base_last) body.push_back(make(AddBase, rows));
    body.push_back(output(OutputKind::Raw, rows, {make(Store, rows)}));
    std::vector<Statement> value;
    if (model.transform != forestvm::Transform::Identity) value.push_back(make(Transform, rows));
    std::vector<Statement> label = value;
    value.push_back(make(Store, rows));
    body.push_back(output(OutputKind::Value, rows, std::move(value)));
    if (model.class_rule == ClassRule::None) return;
    label.push_back(make(Label, rows));
    body.push_back(output(OutputKind::Class, rows, std::move(label)));
  }

  Statement output(OutputKind kind, LoopId rows, std::vector<Statement> body) const {
    Statement s = make(When, rows);
    s.output = kind;
    s.body = std::move(body);
    return s;
  }

  Lowering& lowering_;
  std::vector<bool> absorbed_;
};

}  // namespace

Result<void> legalize_reductions(Lowering& lowering) { return Legalizer(lowering).run(); }

}  // namespace forestvm::scheduler
