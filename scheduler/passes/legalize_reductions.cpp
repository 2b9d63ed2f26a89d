// Makes reductions legal. A parallel loop over trees is a reduction loop: its iterations would add to the same
// rows, so each gets a private accumulator, and the copies are reduced, in iteration order, when the loop ends;
// unless they are added atomically, or every tree's leaf is kept. Nested loops of this kind are reduced from the
// inside out. Where the copies of an outer loop only receive the copies of an inner loop, they need no memory: the
// inner copies are reduced in place. Then the result is initialised and written where each row is complete, and the
// nest is repeated for leaf numbers, and for outputs of single trees. Source: SilvanForge, section 5.
//
//   par.for t0 in trees step 50:               result[batch] = base
//     for t1 in t0:                            par.for t0 in trees step 50:
//       for batch in rows:              ->       private1[batch] = privatize(result, t0)
//         reduce(result[batch, …], p)            for t1 in t0: …  reduce(private1[batch, …], p)
//                                              result[batch] += reduce_dimension(private1, t0)
#include <algorithm>
#include <cmath>
#include <iterator>

#include <forestvm/core/accumulators.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "scheduler/exact_sums.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

class Legalizer {
  using enum Statement::Kind;

 public:
  explicit Legalizer(Lowering& lowering) : lowering_(lowering), absorbed_(lowering.loops.size()) {
    for (const WalkSite& site : lowering.sites)
      for (const LoopId loop : site.absorbed) absorbed_[loop] = true;
  }

  Result<void> run() {
    std::vector<Statement>& nest = lowering_.nest.body;
    std::vector<Statement> leaves = nest, walks = nest;
    if (kind() != AccumulatorKind::F32) sums_ = scores_ = add_shared_accumulator(kind());
    const AccumulatorKind taken = lowering_.sums.scores;
    if (kind() != taken) scores_ = taken == AccumulatorKind::F32 ? kResult : add_shared_accumulator(taken);
    FVM_TRY(privatize(nest, kNoLoop, sums_, false));
    merge_copies();
    FVM_TRY(check_memory());
    insert_results(inside_row_loops(nest));
    if (lowering_.sums.leaves_apart || stores_at_end()) FVM_TRY(keep_leaves_apart(walks, nest));
    write_leaves(leaves);
    insert_encoder(inside_row_loops(leaves));
    const auto add_after_leaves = [&](OutputKind output, Statement::Kind statement) {
      std::vector<Statement> body = leaves;
      const RowBody end = end_of_walks(body);
      end.statements.push_back(make(statement, end.rows));
      nest = cut(output, kNoLoop, std::move(body), std::move(nest));
    };
    if (lowering_.options.approx_contributions) add_after_leaves(OutputKind::ApproxContributions, Attribute);
    if (lowering_.options.samples != nullptr) add_after_leaves(OutputKind::Quantile, Quantiles);
    nest = cut(OutputKind::Leaf, kNoLoop, std::move(leaves), std::move(nest));
    std::swap(nest[0], nest[1]);
    return {};
  }

 private:
  AccumulatorKind kind() const { return lowering_.sums.kind; }
  std::vector<NestAccumulator>& accumulators() { return lowering_.nest.accumulators; }

  std::uint32_t add_accumulator(const NestAccumulator& accumulator) {
    accumulators().push_back(accumulator);
    return static_cast<std::uint32_t>(accumulators().size() - 1);
  }

  std::uint32_t add_shared_accumulator(AccumulatorKind of) {
    const auto number = static_cast<std::uint32_t>(accumulators().size());
    return add_accumulator({of, number, 1, number});
  }

  static Statement make(Statement::Kind kind, LoopId rows, std::uint32_t accumulator = 0,
                        LoopId loop = kNoLoop) {
    Statement s;
    s.kind = kind;
    s.rows = rows;
    s.accumulator = accumulator;
    s.loop = loop;
    return s;
  }

  ReductionRequest reduction_of(LoopId loop) const {
    const auto& requested = lowering_.loops[loop].reduction;
    return requested ? requested->value : ReductionRequest{};
  }

  /// Returns true if a statement is a loop whose iterations get private copies.
  bool has_copies(const Statement& s) const {
    return s.kind == Loop && lowering_.is_reduction(s.loop) && !is_per_tree(kind()) &&
           !reduction_of(s.loop).atomic;
  }

  /// Gives each reduction loop its copies. Walks in `body` add to the accumulator `into`; if `shared`, other
  /// threads add to it too.
  Result<void> privatize(std::vector<Statement>& body, LoopId rows, std::uint32_t into, bool shared) {
    std::vector<Statement> legal;
    for (Statement& s : body) {
      if (s.kind == Walk) {
        s.accumulator = into;
        s.atomic = shared;
      }
      if (s.kind != Loop) {
        legal.push_back(std::move(s));
        continue;
      }
      const auto& loop = lowering_.loops[s.loop];
      const bool over_rows = loop.axis == Axis::Rows;
      if (s.parallel && !over_rows && lowering_.loops.iterations(s.loop) <= 1)
        s.parallel = false;  // nothing runs beside it
      if (!has_copies(s)) {
        const bool adds_atomically = lowering_.is_reduction(s.loop) && !is_per_tree(kind());
        FVM_TRY(privatize(s.body, over_rows ? s.loop : rows, into, shared || adds_atomically));
        legal.push_back(std::move(s));
        continue;
      }
      if (shared) return refuse_copies(s.loop);
      FVM_ASSIGN(const std::uint32_t copies, copies_of(into, s.loop));
      FVM_TRY(privatize(s.body, rows, copies, false));
      s.body.insert(s.body.begin(), make(Privatize, rows, copies, s.loop));
      Statement reduction = make(ReduceDim, rows, into, s.loop);
      reduction.from = copies;
      reduction.reduction = reduction_of(s.loop);
      legal.push_back(std::move(s));
      legal.push_back(std::move(reduction));
    }
    body = std::move(legal);
    return {};
  }

  /// Refuses a loop with copies inside a loop that is reduced atomically: the outer one would need copies of
  /// the copies, which its directive forbids.
  Error refuse_copies(LoopId inner) const {
    LoopId outer = lowering_.loops[inner].parent;
    while (!lowering_.is_reduction(outer) || !reduction_of(outer).atomic)
      outer = lowering_.loops[outer].parent;
    return lowering_.refuse(
        lowering_.loops[outer].reduction->directive,
        formatted("the parallel loop '{}' inside it has copies of its own: reduce that atomically too",
                  lowering_.loops[inner].name));
  }

  /// Returns the accumulator of a parallel loop's copies of `parent`; loops beside each other share one.
  Result<std::uint32_t> copies_of(std::uint32_t parent, LoopId loop) {
    // A loop without trees has no iterations; it gets one copy.
    const std::uint64_t iterations = std::max<std::uint64_t>(1, lowering_.loops.iterations(loop));
    for (std::uint32_t i = 1; i < accumulators().size(); ++i) {
      NestAccumulator& a = accumulators()[i];
      if (i == parent || a.parent != parent) continue;
      a.iterations = std::max(a.iterations, iterations);
      return i;
    }
    if (accumulators().size() == kAccumulators)
      return lowering_.refuse(*lowering_.loops[loop].parallel_by(),
                              formatted("more than {} parallel loops over trees inside each other",
                                        kAccumulators - 1 - std::max(sums_, scores_)));
    const auto number = static_cast<std::uint32_t>(accumulators().size());
    return add_accumulator({kind(), parent, iterations, number});
  }

  /// Stores the copies of an outer loop that receive nothing but one reduction of an inner loop's copies in the first
  /// of the inner copies, which are then reduced in place.
  void merge_copies() {
    for (std::uint32_t a = 1; a < accumulators().size(); ++a) {
      if (accumulators()[a].parent == a) continue;
      const auto inner = std::find_if(accumulators().begin() + a + 1, accumulators().end(),
                                      [&](const NestAccumulator& other) { return other.parent == a; });
      bool merges = inner != accumulators().end();
      for (const Statement& s : lowering_.nest.body) merges = merges && only_reduced_into(s, a);
      if (!merges) continue;
      accumulators()[a].stored_in = static_cast<std::uint32_t>(inner - accumulators().begin());
      for (Statement& s : lowering_.nest.body) reduce_in_place(s, a);
    }
  }

  /// Returns true if each loop that privatizes the accumulator uses it for a single reduction of each row, and for
  /// nothing else.
  bool only_reduced_into(const Statement& s, std::uint32_t accumulator) const {
    const bool privatizes =
        !s.body.empty() && s.body.front().kind == Privatize && s.body.front().accumulator == accumulator;
    if (privatizes) return is_one_reduction(s, accumulator);
    return std::all_of(s.body.begin(), s.body.end(),
                       [&](const Statement& inner) { return only_reduced_into(inner, accumulator); });
  }

  /// Returns true if a loop's body, apart from loops over rows and caches, is one parallel loop and the reduction
  /// after it, for all rows. If the loop were part of a split, the rows of the other part would be reduced
  /// without having been set.
  bool is_one_reduction(const Statement& loop, std::uint32_t accumulator) const {
    std::vector<const Statement*> inside;
    for (const Statement& s : loop.body)
      if (s.kind != Cache && s.kind != Privatize) inside.push_back(&s);
    if (inside.size() == 1 && inside[0]->kind == Loop && lowering_.loops[inside[0]->loop].axis == Axis::Rows)
      return is_whole(inside[0]->loop) && is_one_reduction(*inside[0], accumulator);
    return inside.size() == 2 && has_copies(*inside[0]) && inside[1]->kind == ReduceDim &&
           inside[1]->accumulator == accumulator;
  }

  bool is_whole(LoopId loop) const {
    return lowering_.loops[loop].from == 0 && lowering_.loops[loop].to == kAll;
  }

  static void reduce_in_place(Statement& s, std::uint32_t accumulator) {
    if (s.kind == ReduceDim && s.accumulator == accumulator) s.kind = ReduceInplace;
    for (Statement& inner : s.body) reduce_in_place(inner, accumulator);
  }

  /// Checks that copies of accumulators fit into memory. A program's CodeMap has the bytes of accumulators whose
  /// records fit; here loops may have more iterations than a record holds.
  Result<void> check_memory() {
    const auto& all = accumulators();
    std::vector<std::uint64_t> copies(all.size(), 1);
    std::uint64_t bytes = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const std::uint64_t most = UINT32_MAX;
      if (all[i].parent != i)
        copies[i] = std::min(most, copies[all[i].parent] * std::min(most, all[i].iterations));
      const std::uint64_t width = accumulator_width(all[i].kind, lowering_.model.num_outputs,
                                                    static_cast<std::uint32_t>(lowering_.model.trees.size()));
      if (all[i].stored_in == i) bytes += copies[i] * width * element_size(all[i].kind);
    }
    if (bytes <= kMaxScratchBytes) return {};
    const std::string what =
        formatted("would need {} bytes of private accumulators for a single row, more than {}", bytes,
                  kMaxScratchBytes);
    std::optional<LoopId> widest;
    for (LoopId id = 0; id < lowering_.loops.size(); ++id)
      if (lowering_.is_reduction(id) &&
          (!widest || lowering_.loops.iterations(id) > lowering_.loops.iterations(*widest)))
        widest = id;
    if (!widest) return refused("schedule", "its sums {}", what);
    return lowering_.refuse(*lowering_.loops[*widest].parallel_by(),
                            formatted("parallel loops over trees {}: tile them coarser", what));
  }

  /// The statements inside some loops over rows, and the innermost of these loops.
  struct RowBody {
    std::vector<Statement>& statements;
    LoopId rows;
  };

  /// Returns the inside of the loops over rows that contain everything else in a nest, apart from caches. Loops that
  /// are part of a walk are not entered.
  RowBody inside_row_loops(std::vector<Statement>& nest) const {
    std::vector<Statement>* body = &nest;
    LoopId rows = kNoLoop;
    for (;;) {
      const auto loop =
          std::find_if(body->begin(), body->end(), [](const Statement& s) { return s.kind != Cache; });
      const bool only = loop + 1 == body->end() && loop->kind == Loop &&
                        lowering_.loops[loop->loop].axis == Axis::Rows && !absorbed_[loop->loop];
      if (!only) return {*body, rows};
      rows = loop->loop;
      body = &loop->body;
    }
  }

  /// Returns where outputs are written that are computed from what all walks have found. A GPU, which has a kernel of
  /// its own for them, writes them when all rows have been walked.
  RowBody end_of_walks(std::vector<Statement>& nest) const {
    return lowering_.is_mapped() ? RowBody{nest, kNoLoop} : inside_row_loops(nest);
  }

  /// Inserts the encoding of rows: each row is encoded once.
  void insert_encoder(const RowBody& inside) const {
    if (lowering_.encodes()) inside.statements.insert(inside.statements.begin(), make(Encode, inside.rows));
  }

  /// Returns whether exact sums can begin with the base.
  static bool has_exact_base(const Model& model) {
    return std::all_of(model.base.begin(), model.base.end(), [&](double base) {
      return std::isfinite(base) && (model.score_type == ScalarType::Float64 ||
                                     static_cast<double>(static_cast<float>(base)) == base);
    });
  }

  /// Inserts the initialisation and the output of results.
  void insert_results(const RowBody& inside) {
    const auto& [body, rows] = inside;
    insert_encoder(inside);
    const Model& model = lowering_.model;
    const bool converted = sums_ != scores_;
    // Exact sums may begin with the base, because no order changes their bits, unless the scores' type cannot hold it.
    const bool exact = converted && !is_per_tree(kind());
    const bool base_last = model.base_last && (!exact || model.scale != 1 || !has_exact_base(model));
    body.insert(body.begin(), make(base_last ? Zero : Init, rows, exact ? sums_ : scores_));
    std::vector<Statement> scores;
    if (converted) {
      scores.push_back(make(exact ? Round : SumTrees, rows, scores_));
      scores.back().from = sums_;
    }
    if (base_last) scores.push_back(make(AddBase, rows, scores_));
    add_outputs(scores, rows);
    if (lowering_.options.keeps_leaves && !lowering_.sums.leaves_apart && !stores_at_end())
      for (const OutputKind kind : outputs_of_trees())
        scores = cut(kind, rows, {store_leaves(kind, rows, sums_)}, std::move(scores));
    std::move(scores.begin(), scores.end(), std::back_inserter(body));
  }

  /// Returns whether outputs of kept leaves are written when all rows have been walked: a GPU has a kernel of its own
  /// for them.
  bool stores_at_end() const { return lowering_.options.keeps_leaves && lowering_.is_mapped(); }

  /// Returns the outputs that are computed of each tree's leaf.
  std::vector<OutputKind> outputs_of_trees() const {
    const UncertaintyRule rule = uncertainty_rule(lowering_.model);
    std::vector<OutputKind> outputs;
    if (rule != UncertaintyRule::None) outputs.push_back(OutputKind::Uncertainty);
    if (rule != UncertaintyRule::None && rule != UncertaintyRule::Trees)
      outputs.push_back(OutputKind::VirtEnsembles);
    outputs.push_back(OutputKind::Staged);
    outputs.push_back(OutputKind::Trees);
    return outputs;
  }

  /// Returns the statement that writes an output of single trees, stages of rounds or uncertainty, from the leaves that
  /// an accumulator keeps.
  Statement store_leaves(OutputKind output, LoopId rows, std::uint32_t kept) const {
    if (output == OutputKind::Trees) return make(StoreTrees, rows, kept);
    Statement stages = make(StoreStages, rows, scores_);
    stages.from = kept;
    stages.base_last = lowering_.model.base_last;
    return stages;
  }

  /// Repeats the nest for each output that is computed of single trees' leaves: `walks` is the nest as it was before
  /// anything was inserted.
  Result<void> keep_leaves_apart(const std::vector<Statement>& walks, std::vector<Statement>& nest) {
    const std::uint32_t kept = lowering_.sums.leaves_apart
                                   ? add_shared_accumulator(per_tree_kind(lowering_.model.score_type))
                                   : sums_;
    for (const OutputKind output : outputs_of_trees()) {
      std::vector<Statement> body = walks;
      FVM_TRY(privatize(body, kNoLoop, kept, false));
      insert_init(inside_row_loops(body), output);
      const RowBody end = end_of_walks(body);
      end.statements.push_back(store_leaves(output, end.rows, kept));
      nest = cut(output, kNoLoop, std::move(body), std::move(nest));
    }
    return {};
  }

  /// Inserts what comes before the walks of an output that is computed of kept leaves.
  void insert_init(const RowBody& inside, OutputKind output) const {
    insert_encoder(inside);
    if (output != OutputKind::Trees)
      inside.statements.insert(inside.statements.begin(),
                               make(lowering_.model.base_last ? Zero : Init, inside.rows, scores_));
  }

  /// Returns statements that run `body` in calls for an output, and `otherwise` in others.
  static std::vector<Statement> cut(OutputKind kind, LoopId rows, std::vector<Statement> body,
                                    std::vector<Statement> otherwise) {
    Statement unless = make(Unless, rows);
    unless.output = kind;
    unless.body = std::move(otherwise);
    return {output(kind, rows, std::move(body)), std::move(unless)};
  }

  /// Adds the outputs of scores, values and classes.
  void add_outputs(std::vector<Statement>& body, LoopId rows) const {
    const Model& model = lowering_.model;
    body.push_back(output(OutputKind::Raw, rows, {make(Store, rows, scores_)}));
    std::vector<Statement> value;
    if (model.transform != forestvm::Transform::Identity) value.push_back(make(Transform, rows, scores_));
    std::vector<Statement> label = takes_raw_scores(model.class_rule) ? std::vector<Statement>() : value;
    value.push_back(make(Store, rows, scores_));
    body.push_back(output(OutputKind::Value, rows, std::move(value)));
    if (model.class_rule == ClassRule::None) return;
    label.push_back(make(Label, rows, scores_));
    body.push_back(output(OutputKind::Class, rows, std::move(label)));
  }

  static Statement output(OutputKind kind, LoopId rows, std::vector<Statement> body) {
    Statement s = make(When, rows);
    s.output = kind;
    s.body = std::move(body);
    return s;
  }

  /// Turns Walk statements into Leaves. Leaf numbers are written and not summed, so that nothing is reduced.
  static void write_leaves(std::vector<Statement>& body) {
    for (Statement& s : body) {
      if (s.kind == Walk) s.kind = Leaves;
      write_leaves(s.body);
    }
  }

  Lowering& lowering_;
  std::vector<bool> absorbed_;
  std::uint32_t sums_ = kResult;    ///< number of the accumulator of sums; kResult if they are float32
  std::uint32_t scores_ = kResult;  ///< number of the accumulator of scores; kResult if they are float32
};

}  // namespace

Result<void> legalize_reductions(Lowering& lowering) { return Legalizer(lowering).run(); }

}  // namespace forestvm::scheduler
