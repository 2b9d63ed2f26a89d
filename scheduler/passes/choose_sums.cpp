// Contract, accumulate directive and order of additions -> the type of the sums.
//
//   trainer       The model's type, in the model's order. If orderTrees changed the order, or accumulate(leaves)
//                 asks for it, leaves are kept and added in the model's order. Otherwise trees in parallel
//                 change the order of additions: that is a warning, or a refusal under --strict.
//   reproducible  Exact sums. If a model's leaves have no exact sums, leaves are kept and added in the model's
//                 order.
//   fast          Any order, in the type that is requested; with accumulate(leaves) as under trainer.
//
// Leaves that are numbers of vectors or functions are always kept, and what the numbers stand for is added in the
// model's order. A program that keeps leaves (CompileOptions::keeps_leaves) adds in the model's order under every
// contract. Where walks add in that order by themselves, they keep leaves only for outputs of single trees.
#include <algorithm>

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "scheduler/exact_sums.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

class SumsChoice {
 public:
  explicit SumsChoice(Lowering& lowering) : lowering_(lowering) {}

  Result<void> run() {
    for (const LoopId root : lowering_.loops.roots()) find_reductions(root);
    lowering_.sums.kind = lowering_.sums.scores = sum_kind(type());
    const auto& order = lowering_.forest.order;
    permuted_ = !std::is_sorted(order.begin(), order.end());
    FVM_TRY(check_conflict());
    if (keeps_leaves()) FVM_TRY(check_nothing_reduced());
    if (lowering_.numbered || lowering_.options.keeps_leaves) return choose_per_tree();
    switch (lowering_.options.contract) {
      case Contract::Trainer:
        return choose_for_trainer();
      case Contract::Reproducible:
        return choose_reproducible();
      case Contract::Fast:
        return choose_fast();
    }
    return {};
  }

 private:
  ScalarType type() const { return lowering_.model.score_type; }
  const std::optional<Requested<std::string>>& requested() const {
    return lowering_.loops.program.accumulate;
  }
  bool keeps_leaves() const { return requested() && requested()->value == "leaves"; }

  void find_reductions(LoopId loop) {
    if (lowering_.is_reduction(loop)) reductions_.push_back(loop);
    for (const LoopId child : lowering_.loops[loop].children) find_reductions(child);
  }

  Result<void> check_conflict() const {
    const Contract contract = lowering_.options.contract;
    if (!requested() || contract == Contract::Fast) return {};
    const std::string& wanted = requested()->value;
    const std::string trainers(name_of(sum_kind(type())));
    if (keeps_leaves() && contract == Contract::Reproducible && !lowering_.numbered &&
        !is_per_tree(exact_sums(lowering_.model).kind))
      return lowering_.refuse(
          requested()->directive,
          "contract reproducible adds this model's leaves exactly, which gives other bits than "
          "adding them in the model's order");
    if (keeps_leaves()) return {};
    if (contract == Contract::Trainer && wanted != trainers)
      return lowering_.refuse(
          requested()->directive,
          formatted("contract trainer sums as the model's trainer does, in {} and in its order", trainers));
    if (contract == Contract::Reproducible && wanted != "exact")
      return lowering_.refuse(
          requested()->directive,
          formatted("contract reproducible needs exact sums: those in {} depend on the order of additions",
                    wanted));
    return {};
  }

  /// Refuses directives about the reduction of private sums, of which there are none where leaves are kept.
  Result<void> check_nothing_reduced() const {
    for (const LoopId id : reductions_)
      if (const auto& reduction = lowering_.loops[id].reduction)
        return lowering_.refuse(
            reduction->directive,
            "accumulate(leaves) keeps every tree's leaf: there are no private sums to reduce");
    return {};
  }

  Result<void> choose_per_tree() {
    if (requested() && !keeps_leaves() && requested()->value != name_of(sum_kind(type())))
      return lowering_.refuse(
          requested()->directive,
          "leaves that are kept are summed in the model's type, " + std::string(name_of(sum_kind(type()))));
    lowering_.sums.leaves_apart = !lowering_.numbered && !permuted_ && reductions_.empty() && !keeps_leaves();
    if (!lowering_.sums.leaves_apart) lowering_.sums.kind = per_tree_kind(type());
    return {};
  }

  Result<void> choose_for_trainer() {
    Sums& sums = lowering_.sums;
    if (permuted_ || keeps_leaves()) {
      sums.kind = per_tree_kind(type());
      return {};
    }
    sums.in_model_order = reductions_.empty();
    for (const LoopId loop : reductions_) FVM_TRY(warn(loop));
    return {};
  }

  Result<void> warn(LoopId id) {
    const Loop& loop = lowering_.loops[id];
    const std::size_t directive = *loop.parallel_by();
    std::string what =
        "trees in parallel are summed in another order than the trainer's, so raw scores may differ from the "
        "trainer's in the last bits";
    if (loop.reduction && loop.reduction->value.atomic)
      what += ", and atomically, so that they may differ from call to call";
    if (lowering_.options.strict) return lowering_.refuse(directive, what + ", which strict refuses");
    std::string warning = formatted("{}: {}: {}", location_of(lowering_.schedule, directive),
                                    print(lowering_.schedule.directives[directive]), what);
    auto& warnings = lowering_.warnings;  // one warning for all copies of a loop
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(std::move(warning));
    return {};
  }

  Result<void> choose_reproducible() {
    Sums& sums = lowering_.sums;
    const ReproducibleSums exact = exact_sums(lowering_.model);
    const bool per_tree = is_per_tree(exact.kind);
    if (per_tree && requested() && !keeps_leaves()) return no_exact_sums();
    // In the model's order a plain sum has the bits that keeping the leaves would give.
    const bool plain = per_tree && !permuted_ && reductions_.empty() && !keeps_leaves();
    if (!plain) sums.kind = exact.kind;
    sums.unit = exact.unit;
    sums.in_model_order = per_tree;
    return {};
  }

  Result<void> choose_fast() {
    Sums& sums = lowering_.sums;
    if (keeps_leaves()) {
      sums.kind = per_tree_kind(type());
      return {};
    }
    const std::string wanted = requested() ? requested()->value : "f32";
    const bool trainers_type = wanted == name_of(sum_kind(type()));
    sums.in_model_order = trainers_type && !permuted_ && reductions_.empty();
    sums.kind = wanted == "f32" ? AccumulatorKind::F32 : AccumulatorKind::F64;
    if (sums.kind == AccumulatorKind::F32) sums.scores = sums.kind;
    if (wanted != "exact") return {};
    const ReproducibleSums exact = exact_sums(lowering_.model);
    if (is_per_tree(exact.kind)) return no_exact_sums();
    sums.kind = exact.kind;
    sums.unit = exact.unit;
    return {};
  }

  Error no_exact_sums() const {
    return lowering_.refuse(requested()->directive,
                            lowering_.model.may_lack_answers
                                ? "rows may have no answer, for which sums of integers have no number"
                                : "the model's leaves are too far apart in size for sums in 128 bits");
  }

  Lowering& lowering_;
  std::vector<LoopId> reductions_;  ///< see Lowering::is_reduction
  bool permuted_ = false;
};

}  // namespace

Result<void> choose_sums(Lowering& lowering) { return SumsChoice(lowering).run(); }

}  // namespace forestvm::scheduler
