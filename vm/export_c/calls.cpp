// Writes the functions that callers see, and what their options change: the rounds whose trees count, the margins from
// which sums start, and early stops. The options of all files have the same fields, so that callers can declare them
// once; code is written for those that the program can honour, and the others are refused.
#include <algorithm>

#include <forestvm/backend.hpp>
#include <forestvm/core/target_quantile.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// Returns whether all walks for sums have accumulators of one of these kinds.
template <class... Kinds>
bool sums_are(const Program& program, Kinds... kinds) {
  return std::ranges::all_of(code_map(program).insts, [&](const InstFacts& inst) {
    return inst.walk_sums == kNoAccumulator ||
           ((program.accumulators()[inst.walk_sums].kind == kinds) || ...);
  });
}

bool sums_exactly(const Program& program) {
  return std::ranges::any_of(program.accumulators(), [](const AccumulatorDesc& desc) {
    return desc.kind == AccumulatorKind::Exact64 || desc.kind == AccumulatorKind::Exact128;
  });
}

/// A function that callers see.
struct Entry {
  OutputKind output;
  const char *name, *type;  ///< `type` is null if it writes scores.
  const char* what;
};

constexpr Entry kEntries[] = {
    {OutputKind::Raw, "predict_raw", nullptr, "Raw scores"},
    {OutputKind::Value, "predict", nullptr, "What the trainer's predict gives"},
    {OutputKind::Class, "predict_class", "int64_t", "Labels' indices"},
    {OutputKind::Leaf, "predict_leaf", "int32_t", "Leaf numbers"},
    {OutputKind::Trees, "predict_trees", nullptr, "What each tree adds to the raw scores"},
    {OutputKind::Staged, "predict_staged", nullptr,
     "Raw scores after every, 2 every, ... rounds and after the last"},
    {OutputKind::VirtEnsembles, "predict_virt_ensembles", nullptr, "Raw scores of virtual ensembles"},
    {OutputKind::Uncertainty, "predict_uncertainty", nullptr,
     "How sure the model is: the numbers of its rule of uncertainty"},
    {OutputKind::Contributions, "predict_contributions", nullptr,
     "What each feature contributes to each raw score, then the expected score"},
    {OutputKind::Interactions, "predict_interactions", nullptr,
     "Interactions of each pair of features, the expected score in the corner of each matrix"},
    {OutputKind::ApproxContributions, "predict_approx_contributions", nullptr,
     "What the splits of each feature change the mean score by, then the expected score"},
};

/// Returns the number of an output as C text.
std::string number_of(OutputKind output) { return number(static_cast<std::uint64_t>(output)); }

/// Returns the numbers of a row in an output, as C text; of outputs whose rows depend on the call's rounds those of a
/// stage or tree.
std::string width_of(const Job& job, OutputKind output) {
  const std::uint32_t outputs = job.program.meta().num_outputs;
  if (output == OutputKind::Staged || output == OutputKind::VirtEnsembles) return number(outputs);
  if (output == OutputKind::Uncertainty) return number(uncertainty_width(job.program));
  if (output == OutputKind::Trees && job.calls.rounds)
    return number(job.program.leaf_vectors().empty() ? 1 : outputs);
  return number(output_width(job.program, output));
}

/// Returns the size of a row in words.
std::string shape_of(const Job& job, OutputKind output) {
  const std::string width = width_of(job, output);
  const std::string rounds = number(job.program.round_begins().size() - 1);
  if (output == OutputKind::Staged) return formatted("stages x {}, of {} rounds", width, rounds);
  if (output == OutputKind::VirtEnsembles) return formatted("ensembles x {}, of {} rounds", width, rounds);
  if (output == OutputKind::Trees && job.calls.rounds)
    return formatted("{} trees x {}", number(job.program.meta().num_trees), width);
  return width;
}

/// The loop over the rows of a call. The number of all rows chooses among plans.
constexpr const char* kLoop = R"(  for (begin = 0u; begin < count; begin += @MOST) {
    const size_t left = count - begin;
    @run(rows + begin * stride, stride, (uint32_t)(left < @MOST ? left : @MOST), all, want, @CALL(char *)out + begin * row_bytes);
@NEXT  }
)";

constexpr const char* kPlainAnswer =
    R"(/* Writes an output of `row_bytes` bytes for each row. The number of all rows chooses among plans. */
static void @answer(const @ROW *rows, size_t count, size_t stride, uint32_t want, size_t row_bytes, void *out) {
  const uint32_t all = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
  size_t begin;
@LOOP}
)";

constexpr const char* kAnswerQuantiles =
    R"(/* Quantiles of the targets of training rows, each from 0 to 1: count x quantile_count. The function needs memory for
 * @COUNTS numbers, `counts`. It returns 0, or @WRONG for wrong quantiles. */
int @predict_quantile(const @ROW *rows, size_t count, size_t stride, const double *quantiles, size_t quantile_count,
    uint32_t *counts, double *out) {
  const uint32_t all = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX, want = @WANT;
  const size_t row_bytes = quantile_count * sizeof(double);
  size_t begin;
  @call call;
  if (quantile_count == 0u) return @WRONG;
  for (begin = 0u; begin < quantile_count; ++begin)
    if (!(quantiles[begin] >= 0 && quantiles[begin] <= 1)) return @WRONG;
  memset(&call, 0, sizeof call);
  memset(counts, 0, @COUNTS * sizeof *counts);
  call.quantiles = quantiles;
  call.quantile_count = quantile_count;
  call.counts = counts;
@LOOP  return 0;
}
)";

/// Options are NULL in calls without options.
constexpr const char* kAnswer =
    R"(/* Writes an output of `row_bytes` bytes for each row@UNITS. The number of all rows chooses among plans. `may` has
 * the bits of the options that the output takes. Returns 0, or the bit of an option that is wrong. */
static int @answer(const @options *options, uint32_t may, const @ROW *rows, size_t count, size_t stride, uint32_t want,
    @EVERYsize_t row_bytes, void *out) {
  const uint32_t all = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
  size_t begin;
  @call call;
@SET@CHECK@LOOP  return 0;
}
)";

constexpr const char* kCheckRounds =
    R"(  if (options != NULL && (options->rounds_begin != 0u || options->rounds_end != 0u)) {
    if ((may & 1u) == 0u || options->rounds_begin >= options->rounds_end || options->rounds_end > @ROUNDS) return 1;
    call.round_begin = options->rounds_begin;
    call.round_end = options->rounds_end;
    call.chosen = 1;
@DIVISOR  }
  call.tree_begin = @round_begin[call.round_begin];
  call.tree_end = @round_begin[call.round_end];
)";

constexpr const char* kCheckMargins = R"(  if (options != NULL && options->base_margin != NULL) {
    if ((may & 2u) == 0u) return 2;
    for (begin = 0u; begin < count * @OUTPUTS; ++begin)
      if (options->base_margin[begin] - options->base_margin[begin] != 0) return 2; /* not finite */
    call.margin = options->base_margin;
  }
)";

constexpr const char* kOptions =
    R"(/* Options of a call; a field that is zero asks for nothing. Files of other forests have the same fields. Functions that
 * take options return 0, or write nothing and return
 *   1 for wrong rounds,
 *   2 for margins that are not finite,
 *   4 for a wrong early stop,@MEMBERS
 * and the same number for an option that the output or the forest does not have. */
typedef struct {
  uint32_t rounds_begin, rounds_end; /* rounds whose trees count, from 0; both 0: all */
  const @SCORE *base_margin; /* count x @OUTPUTS numbers from which sums start; NULL: the base scores */
  uint32_t early_stop_every; /* rounds after which a row that is decided gets no more trees; 0: never */
  double early_stop_margin;  /* distance of raw scores above which a row is decided */
} @options;
)";
constexpr const char* kMembersCode =
    "\n *   @NO_ENSEMBLES if there are no virtual ensembles, or more than half the rounds,";

/// Options that the program does not have.
constexpr const char* kRefuseRounds =
    "  if (options != NULL && (options->rounds_begin != 0u || options->rounds_end != 0u)) return 1;\n";
constexpr const char* kRefuseMargins = "  if (options != NULL && options->base_margin != NULL) return 2;\n";
constexpr const char* kRefuseEarlyStop =
    "  if (options != NULL && options->early_stop_every != 0u) return 4;\n";

/// Sizes of rows follow from the rounds of a call.
constexpr const char* kRowBytes =
    R"(  if (want == @STAGED) row_bytes *= (call.round_end - call.round_begin - 1u) / call.every + 1u;
  if (want == @TREES) row_bytes *= call.tree_end - call.tree_begin;
)";

/// Virtual ensembles begin with the first round, and each has one more than the one before.
constexpr const char* kCheckMembers =
    R"(  if (want == @VIRTUAL || want == @UNCERTAINTY) {
    if (call.round_begin != 0u) return 1;
    if (call.every > call.round_end / 2u) return @NO_ENSEMBLES;
    if (want == @VIRTUAL) row_bytes *= call.every;
  }
)";

constexpr const char* kCheckEarlyStop = R"(  if (options != NULL && options->early_stop_every != 0u) {
    if ((may & 4u) == 0u || !(options->early_stop_margin >= 0)) return 4;
    for (begin = 0u; begin < count; ++begin) {
      @answer_decided(options, rows + begin * stride, stride, all, want, call, (char *)out + begin * row_bytes);
@NEXT    }
    return 0;
  }
)";

/// Does what core/early_stop.hpp says.
constexpr const char* kDistance = R"(/* Returns whether the raw scores of a row are decided. */
static int @is_decided(const double *sums, double margin) { return 2 * (sums[0] < 0 ? -sums[0] : sums[0]) > margin; }
)";
constexpr const char* kLead = R"(/* Returns whether the raw scores of a row are decided. */
static int @is_decided(const double *sums, double margin) {
  double best = sums[0] < sums[1] ? sums[1] : sums[0], second = sums[1] < sums[0] ? sums[1] : sums[0];
  uint32_t k;
  for (k = 2u; k < @OUTPUTS; ++k) {
    const double lower = sums[k] > second ? sums[k] : second;
    second = sums[k] > best ? best : lower;
    best = sums[k] > best ? sums[k] : best;
  }
  return best - second > margin;
}
)";
constexpr const char* kAnswerDecided =
    R"(/* Answers for a row, which gets no more trees once its sums are decided. */
static void @answer_decided(const @options *options, const @ROW *x, size_t stride, uint32_t all, uint32_t want,
    @call call, void *out) {
  const uint32_t end = call.tree_end, every = options->early_stop_every;
  const uint32_t step = every < UINT32_MAX / @OUTPUTS ? every * @OUTPUTS : UINT32_MAX;
  double sums[@OUTPUTS];
  call.more = 1;
  do {
    call.tree_end = end - call.tree_begin > step ? call.tree_begin + step : end;
    @run(x, stride, 1u, all, 0u, &call, sums);
    call.sums = sums;
    call.tree_begin = call.tree_end;
  } while (call.tree_end < end && !@is_decided(sums, options->early_stop_margin));
  call.tree_begin = call.tree_end = end; /* no further trees: scores are made of the sums */
  call.more = 0;
  @run(x, stride, 1u, all, want, &call, out);
}
)";

/// Returns the loop over the rows of a call, for code that reads `call` if it is not empty.
std::string loop_text(const Job& job, std::uint32_t rows_at_a_time, std::string_view call) {
  const bool margins = job.calls.margins && call != "NULL, ";
  return replaced(
      kLoop,
      {{"@CALL", call},
       {"@NEXT",
        margins ? "    if (call.margin != NULL) call.margin += (left < @MOST ? left : @MOST) * @OUTPUTS;\n"
                : ""},
       {"@MOST", number(rows_at_a_time)}});
}

std::string quantiles_entry(const Job& job, std::uint32_t rows_at_a_time) {
  const auto targets = static_cast<std::uint32_t>(job.program.targets().size());
  return in_file(job, replaced(kAnswerQuantiles, {{"@WRONG", formatted("{}", kQuantiles)},
                                                  {"@COUNTS", number(targets + target_blocks(targets))},
                                                  {"@WANT", number_of(OutputKind::Quantile)},
                                                  {"@LOOP", loop_text(job, rows_at_a_time, "&call, ")}}));
}

std::string answer_text(const Job& job, std::uint32_t rows_at_a_time) {
  const CallKinds& calls = job.calls;
  const ProgramMeta& meta = job.program.meta();
  const std::string trees = number(meta.num_trees);
  const std::string rounds = number(std::max<std::size_t>(job.program.round_begins().size(), 1) - 1);
  const std::string loop = loop_text(job, rows_at_a_time,
                                     calls.any()       ? "&call, "
                                     : calls.quantiles ? "NULL, "
                                                       : "");
  if (!calls.any()) return in_file(job, replaced(kPlainAnswer, {{"@LOOP", loop}}));
  std::string set, check;
  if (calls.rounds) {
    set += formatted(
        "  call.round_begin = 0u;\n  call.round_end = {};\n  call.chosen = 0;\n  call.every = every == 0u ? {} : every;\n",
        rounds, rounds);
    if (calls.averages) set += formatted("  call.divisor = {};\n", literal(meta.divisor));
    check += kCheckRounds;
    if (has_members(job.program)) check += kCheckMembers;
    check += kRowBytes;
  } else {
    check += kRefuseRounds;
    if (calls.early_stop) set += formatted("  call.tree_begin = 0u;\n  call.tree_end = {};\n", trees);
  }
  if (calls.margins) {
    set += "  call.margin = NULL;\n";
    check += kCheckMargins;
  } else {
    check += kRefuseMargins;
  }
  std::string text;
  if (calls.early_stop) {
    set += "  call.sums = NULL;\n  call.more = 0;\n";
    check += kCheckEarlyStop;
    text += meta.early_stop == EarlyStopRule::Lead ? kLead : kDistance;
    text += kAnswerDecided;
  } else {
    check += kRefuseEarlyStop;
  }
  text += kAnswer;
  text = replaced(
      text, {{"@SET", set},
             {"@CHECK", check},
             {"@LOOP", loop},
             {"@EVERY", calls.rounds ? "uint32_t every, " : ""},
             {"@UNITS", calls.rounds ? ", or for each stage or tree of it" : ""},
             {"@ROUNDS", rounds},
             {"@DIVISOR", calls.averages ? "    call.divisor = call.round_end - call.round_begin;\n" : ""},
             {"@NO_ENSEMBLES", formatted("{}", kEnsembles)},
             {"@VIRTUAL", number_of(OutputKind::VirtEnsembles)},
             {"@UNCERTAINTY", number_of(OutputKind::Uncertainty)},
             {"@STAGED", number_of(OutputKind::Staged)},
             {"@TREES", number_of(OutputKind::Trees)},
             {"@NEXT", calls.margins ? "      if (call.margin != NULL) call.margin += @OUTPUTS;\n" : ""}});
  return in_file(job, text, meta.score_type);
}

/// Returns the functions for an output: PREFIX_NAME(rows, count, stride, out), and, if the output takes options,
/// PREFIX_NAME_with(options, rows, count, stride, out).
std::string entry(const Job& job, const Entry& of) {
  const bool staged = of.output == OutputKind::Staged;
  const bool members = has_members(job.program) &&
                       (of.output == OutputKind::VirtEnsembles || of.output == OutputKind::Uncertainty);
  const std::string type = of.type == nullptr ? c_type(job.program.meta().score_type) : of.type;
  const std::string arguments = formatted("const @ROW *rows, size_t count, size_t stride, {}{} *out",
                                          staged    ? "uint32_t every, "
                                          : members ? "uint32_t ensembles, "
                                                    : "",
                                          type);
  const std::string bytes = formatted("{} * sizeof({})", width_of(job, of.output), type);
  const std::string want = number_of(of.output);
  const unsigned may = options_of(job, of.output);
  const std::string every = !job.calls.rounds ? "" : staged ? "every, " : members ? "ensembles, " : "1u, ";
  const auto answer = [&](const std::string& options) {
    return formatted("@answer({}rows, count, stride, {}, {}{}, out);", job.calls.any() ? options : "", want,
                     every, bytes);
  };
  std::string text = formatted("/* {}: count x {}. */\n{} @{}({}) {\n  {}{}\n}\n", of.what,
                               shape_of(job, of.output), members ? "int" : "void", of.name, arguments,
                               members           ? "return "
                               : job.calls.any() ? "(void)"
                                                 : "",
                               answer("NULL, 0u, "));
  if (may != 0)
    text += formatted("int @{}_with(const @options *options, {}) {\n  return {}\n}\n", of.name, arguments,
                      answer(formatted("options, {}, ", number(may))));
  return in_file(job, text);
}

}  // namespace

CallKinds::CallKinds(const Program& program)
    : rounds(!program.round_begins().empty() && program.meta().rounds != RoundRule::None),
      averages(rounds && program.meta().rounds == RoundRule::Averages),
      base_of_first(rounds && program.meta().rounds == RoundRule::FirstBase),
      margins(program.meta().takes_margins != 0),
      score_margins(margins && !sums_exactly(program)),
      early_stop(program.meta().early_stop != EarlyStopRule::None &&
                 program.meta().score_type == ScalarType::Float64),
      quantiles(!program.targets().empty()) {
  using enum AccumulatorKind;
  early_stop = early_stop && sums_are(program, PerTree64, F64) && (rounds || sums_are(program, PerTree64));
  if (program.meta().contributions == 0 && program.attribution_base().empty()) margins = score_margins;
}

unsigned options_of(const Job& job, OutputKind output) {
  const CallKinds& calls = job.calls;
  const Program& program = job.program;
  const auto some = [&](bool rounds, bool margins, bool early_stop) {
    return (rounds ? kRounds : 0u) | (margins ? kMargins : 0u) | (early_stop ? kEarlyStop : 0u);
  };
  switch (output) {
    case OutputKind::Raw:
    case OutputKind::Value:
    case OutputKind::Class:
      return some(calls.rounds, calls.score_margins, calls.early_stop);
    case OutputKind::Staged:
    case OutputKind::VirtEnsembles:
    case OutputKind::Uncertainty:
      return some(calls.rounds, calls.score_margins, false);
    case OutputKind::Trees:
      return some(calls.rounds, false, false);
    case OutputKind::Contributions:
    case OutputKind::Interactions:
      return some(calls.rounds && program.background().empty(), calls.margins, false);
    case OutputKind::ApproxContributions:
      return some(false, calls.margins && program.attribution_base().size() != program.meta().num_outputs,
                  false);
    case OutputKind::Leaf:
    case OutputKind::Quantile:
      return 0;
  }
  return 0;
}

bool base_varies(const Job& job, AccumulatorKind kind) {
  const bool exact = kind == AccumulatorKind::Exact64 || kind == AccumulatorKind::Exact128;
  return job.calls.base_of_first || (job.calls.margins && !exact);
}

std::string base_text(const Job& job, AccumulatorKind kind) {
  const std::string type = sum_type(job, kind);
  const bool exact = kind == AccumulatorKind::Exact64 || kind == AccumulatorKind::Exact128;
  std::string text = "/* Returns the number from which the sum of output k of a row starts. */\n";
  text +=
      formatted("static {} @base_of_{}(const @call *call, size_t row, size_t k) {\n", type, sum_name(kind));
  if (job.calls.base_of_first)
    text += formatted("  static const {} none = {};\n", type,
                      kind == AccumulatorKind::Exact128 ? "{0u, 0u}" : "0");
  if (job.calls.margins && !exact)
    text += formatted("  if (call->margin != NULL) return ({})call->margin[row * @OUTPUTS + k];\n", type);
  else
    text += "  (void)row;\n";
  if (job.calls.base_of_first) text += "  if (call->round_begin != 0u) return none;\n";
  return in_file(job, formatted("{}  return @base_{}[k];\n}\n", text, sum_name(kind)));
}

std::string call_types(const Job& job) {
  const CallKinds& calls = job.calls;
  if (!calls.read()) return "";
  std::string call;
  if (calls.quantiles)
    call +=
        "  const double *quantiles;\n  size_t quantile_count;\n  uint32_t *counts; /* of targets, and of blocks of them */\n";
  if (calls.rounds)
    call +=
        "  uint32_t round_begin, round_end;\n  uint32_t every; /* rounds from a stage to the next, or the number of ensembles */\n  int chosen; /* 1 if the caller chose the rounds */\n";
  if (calls.some_trees()) call += "  uint32_t tree_begin, tree_end;\n";
  if (calls.averages) call += "  double divisor; /* the number of rounds */\n";
  if (calls.margins) call += "  const @SCORE *margin; /* of the first row; NULL: base scores */\n";
  if (calls.early_stop)
    call +=
        "  const double *sums; /* of the trees before tree_begin; NULL: there are none */\n"
        "  int more;           /* 1 if further trees follow: the base score that is added last is not added yet */\n";
  const std::string types =
      replaced(calls.any() ? kOptions : "", {{"@MEMBERS", has_members(job.program) ? kMembersCode : ""},
                                             {"@NO_ENSEMBLES", formatted("{}", kEnsembles)}});
  return in_file(
      job, formatted("{}/* What a call asks of the code. */\ntypedef struct {\n{}} @call;\n", types, call),
      job.program.meta().score_type);
}

std::string entries_text(const Job& job, std::uint32_t rows_at_a_time) {
  const ProgramMeta& meta = job.program.meta();
  const std::string score = c_type(meta.score_type);
  std::string text = answer_text(job, rows_at_a_time);
  for (const Entry& of : kEntries)
    if (is_exported(job.program, of.output)) text += entry(job, of);
  if (job.calls.quantiles) text += quantiles_entry(job, rows_at_a_time);
  return formatted(
      "{}/* The same as predict for one row. */\nvoid {}(const {} *row, {} *out) { {}(row, 1u, {}, out); }\n",
      text, job.name("predict_one"), c_type(meta.row_type), score, job.name("predict"),
      number(meta.num_features));
}

}  // namespace forestvm::bytecode::export_c
