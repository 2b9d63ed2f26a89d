// Random differential test: random forests, schedules, contracts, rows, batch sizes, CPU targets and numbers
// of threads; for schedules mapped to a GPU also warp sizes and orders of threads. The reference predictor
// judges the answers: bit for bit or, if the contract does not promise bits, within the rounding of the sums. A
// failure is shrunk and printed with the command that repeats it. FORESTVM_SEED and FORESTVM_CASES choose
// other cases: each case depends only on its own seed. With FORESTVM_MINUTES each test goes on for that time.
// At night there are ten times as many cases, with new seeds in every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/core/layout/tables.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>

#include <forestvm/internal/reference.hpp>
#include "frontend/check_model.hpp"
#include "random_forest.hpp"
#include "random_schedule.hpp"
#include "scheduler/model_text.hpp"
#include "support/exact_sum.hpp"
#include "support/floats.hpp"
#include "support/nightly.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_random {
namespace {

struct Case {
  Model model;
  Schedule schedule;
  std::vector<float> rows;
  std::vector<std::size_t> batches;
  unsigned threads = 1;
  std::string target = "auto";
  EmulatorOptions emulator;  ///< options of the emulator, for mapped schedules
  std::size_t padding = 0;   ///< number of values between two rows
  bool exact_sums = false;
  CompileOptions options;

  std::size_t row_count() const { return rows.size() / model.num_features; }
};

/// The answers of a predictor for all rows.
struct Answer {
  std::vector<float> raw, value;
  std::vector<std::int64_t> label;
  std::vector<std::int32_t> leaf;
};

std::size_t environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Result<std::unique_ptr<Predictor>> loaded(const Program& program, const Case& c) {
  if (program.mapped()) return emulator_backend(program, c.emulator);
  return host_backend(program, {.threads = c.threads, .target = c.target});
}

/// Compiles a case. A program that no launch accepts counts as refused.
Result<Program> compiled(const Case& c) {
  FVM_ASSIGN(const Compiled done, compile(c.model, c.schedule, c.options));
  if (done.program.mapped()) FVM_TRY(loaded(done.program, c));
  return done.program;
}

/// Returns the rows, with values between them that no answer may depend on.
std::vector<float> padded_rows(const Case& c) {
  const std::size_t width = c.model.num_features, stride = width + c.padding;
  std::vector<float> padded(c.row_count() * stride, -1e30f);
  for (std::size_t row = 0; row < c.row_count(); ++row)
    std::copy_n(c.rows.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                padded.begin() + static_cast<std::ptrdiff_t>(row * stride));
  return padded;
}

Result<Answer> predicted(const Program& program, const Case& c, std::size_t batch) {
  const std::vector<float> padded = padded_rows(c);
  FVM_ASSIGN(const auto predictor, loaded(program, c));
  const auto context = predictor->make_context();
  const std::uint32_t raw = output_width(program, OutputKind::Raw),
                      value = output_width(program, OutputKind::Value),
                      label = output_width(program, OutputKind::Class);
  Answer answer;
  answer.raw.assign(c.row_count() * raw, -12345.0f);
  answer.value.assign(c.row_count() * value, -12345.0f);
  answer.label.assign(c.row_count() * label, -12345);
  const std::size_t trees = c.model.trees.size();
  answer.leaf.assign(c.row_count() * trees, -12345);
  // Leaves another call's sums and codes in the scratch memory; no answer may depend on them.
  std::vector<float> left(c.row_count() * raw);
  const RowBlock all{padded.data(), c.row_count(), c.model.num_features + c.padding};
  FVM_TRY(predictor->predict(*context, all, OutputKind::Raw, left.data()));
  for (std::size_t begin = 0; begin < c.row_count(); begin += batch) {
    RowBlock rows;
    rows.stride = c.model.num_features + c.padding;
    rows.data = padded.data() + begin * rows.stride;
    rows.count = std::min(batch, c.row_count() - begin);
    FVM_TRY(predictor->predict(*context, rows, OutputKind::Raw, answer.raw.data() + begin * raw));
    FVM_TRY(predictor->predict(*context, rows, OutputKind::Value, answer.value.data() + begin * value));
    if (trees != 0) FVM_TRY(predictor->predict_leaf(*context, rows, answer.leaf.data() + begin * trees));
    if (label != 0) FVM_TRY(predictor->predict_class(*context, rows, answer.label.data() + begin * label));
  }
  return answer;
}

std::string differs(const char* what, std::size_t i, double expected, double actual) {
  char text[160];
  std::snprintf(text, sizeof text, "%s number %zu: expected %.9g (%a), got %.9g (%a)", what, i, expected,
                expected, actual, actual);
  return text;
}

/// Returns the raw scores under the reproducible contract, from the leaves that the reference predictor
/// finds.
std::vector<float> exact_scores(const Case& c, const Reference& expected) {
  std::vector<float> scores;
  for (std::size_t row = 0; row < c.row_count(); ++row) {
    std::vector<support::ExactSum> sums(c.model.num_outputs);
    const bool scaled = c.model.scale != 1;
    for (std::size_t k = 0; k < sums.size() && !scaled; ++k) sums[k].add(static_cast<float>(c.model.base[k]));
    for (std::size_t t = 0; t < c.model.trees.size(); ++t) {
      const Tree& tree = c.model.trees[t];
      const auto leaf = static_cast<std::size_t>(expected.leaf[row * c.model.trees.size() + t]);
      sums[tree.output].add(tree.weight * static_cast<float>(tree.nodes[leaf].value));
    }
    for (std::size_t k = 0; k < sums.size(); ++k) {
      scores.push_back(sums[k].rounded());
      if (!scaled) continue;
      scores.back() *= static_cast<float>(c.model.scale);
      scores.back() += static_cast<float>(c.model.base[k]);
    }
  }
  return scores;
}

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// Returns whether a and b may be 1 - p and 1 - q for numbers p and q that are at most 2 ulps apart.
bool is_close_complement(const Model& model, float a, float b) {
  const bool complements = model.pair == Pair::Complement || model.transform == Transform::Logistic;
  return complements && std::abs(a - b) <= 0x1p-22f;
}

/// Returns what is wrong with an answer; empty if it is right. `in_order`: sums were added in the model's
/// order.
std::string compared(const Case& c, const Reference& expected, const Answer& answer, bool in_order) {
  for (std::size_t i = 0; i < answer.leaf.size(); ++i)
    if (answer.leaf[i] != expected.leaf[i]) return differs("leaf", i, expected.leaf[i], answer.leaf[i]);
  const bool exact = c.options.contract == Contract::Reproducible && !in_order;
  const std::vector<float> wanted = exact ? exact_scores(c, expected) : floats(expected.raw);
  const double slack = in_order || exact || c.exact_sums
                           ? 0.0
                           : largest_sum(c.model) * static_cast<double>(c.model.trees.size() + 2) * 0x1p-23;
  for (std::size_t i = 0; i < answer.raw.size(); ++i) {
    const bool right = slack == 0.0 ? support::same_bits(wanted[i], answer.raw[i])
                                    : std::abs(expected.raw[i] - static_cast<double>(answer.raw[i])) <= slack;
    if (!right)
      return differs("raw score", i, static_cast<double>(wanted[i]), static_cast<double>(answer.raw[i]));
  }
  if (slack != 0.0 || exact) return {};
  bool same_values = true;
  for (std::size_t i = 0; i < answer.value.size(); ++i) {
    const auto value = static_cast<float>(expected.value[i]);
    same_values = same_values && support::same_bits(value, answer.value[i]);
    if (support::ulps(value, answer.value[i]) > 2 && !is_close_complement(c.model, value, answer.value[i]))
      return differs("value", i, expected.value[i], static_cast<double>(answer.value[i]));
  }
  if (!same_values) return {};  // a label may depend on the last bit
  for (std::size_t i = 0; i < answer.label.size(); ++i)
    if (answer.label[i] != expected.label[i])
      return differs("label", i, static_cast<double>(expected.label[i]),
                     static_cast<double>(answer.label[i]));
  return {};
}

/// Checks that rows which are encoded first get the same raw scores and leaves, if some plan takes encoded
/// rows. Another plan may add in another order.
std::string encoded_differ(const Program& program, const Case& c, std::size_t batch, const Answer& expected,
                           bool in_order) {
  const auto predictor = loaded(program, c);
  const auto context = (*predictor)->make_context();
  const std::uint32_t raw = output_width(program, OutputKind::Raw);
  const std::size_t columns = (*predictor)->coded_columns(), trees = c.model.trees.size();
  for (std::size_t begin = 0; begin < c.row_count(); begin += batch) {
    const std::size_t count = std::min(batch, c.row_count() - begin);
    const RowBlock rows{c.rows.data() + begin * c.model.num_features, count, c.model.num_features};
    std::vector<std::uint8_t> codes(coded_bytes(count, columns));
    const auto coded = (*predictor)->encode(*context, rows, codes);
    if (!coded.ok()) return coded.error().code == ErrorCode::Refused ? "" : coded.error().text();
    std::vector<float> scores(count * raw);
    std::vector<std::int32_t> leaves(count * trees);
    for (const auto& done : {(*predictor)->predict(*context, *coded, OutputKind::Raw, scores.data()),
                             (*predictor)->predict_leaf(*context, *coded, leaves.data())})
      if (!done.ok()) return done.error().text();
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i] != expected.leaf[begin * trees + i])
        return differs("encoded: leaf", begin * trees + i, expected.leaf[begin * trees + i], leaves[i]);
    for (std::size_t i = 0; i < scores.size() && in_order; ++i)
      if (!support::same_bits(scores[i], expected.raw[begin * raw + i]))
        return differs("encoded: raw score", begin * raw + i,
                       static_cast<double>(expected.raw[begin * raw + i]), static_cast<double>(scores[i]));
  }
  return {};
}

/// Returns an output of a predictor for the first rows of a case, in calls of up to `batch` rows.
Result<std::vector<double>> output_of(const Predictor& predictor, const Case& c, std::size_t rows,
                                      std::size_t batch, OutputKind output, const CallOptions& call) {
  const auto context = predictor.make_context();
  const std::size_t width = output_width(predictor.program(), output, call), features = c.model.num_features;
  std::vector<double> out(rows * width, -12345.0);
  for (std::size_t begin = 0; begin < rows; begin += batch) {
    const RowBlock block{c.rows.data() + begin * features, std::min(batch, rows - begin), features};
    FVM_TRY(predictor.predict_with(*context, block, output, ResultType::Float64, call,
                                   out.data() + begin * width));
  }
  return out;
}

std::string compared(const char* what, const std::vector<double>& expected,
                     const Result<std::vector<double>>& got) {
  if (!got.ok()) return std::string(what) + ": " + got.error().text();
  if (got->size() != expected.size()) return std::string(what) + ": another number of them";
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!support::same_bits(expected[i], (*got)[i])) return differs(what, i, expected[i], (*got)[i]);
  return {};
}

/// Returns what each tree adds to each row's scores, from the leaves that the reference predictor finds.
std::vector<double> outputs_of_trees(const Case& c, const Reference& expected) {
  const bool wide = c.model.score_type == ScalarType::Float64;
  std::vector<double> out;
  for (std::size_t row = 0; row < c.row_count(); ++row)
    for (std::size_t t = 0; t < c.model.trees.size(); ++t) {
      const Tree& tree = c.model.trees[t];
      const Node& leaf = tree.nodes[static_cast<std::size_t>(expected.leaf[row * c.model.trees.size() + t])];
      for (std::uint32_t k = 0; k < tree.leaf_width; ++k) {
        const double value = tree.leaf_width == 1
                                 ? leaf.value
                                 : tree.leaf_vectors[std::size_t{leaf.payload} * tree.leaf_width + k];
        out.push_back(wide ? static_cast<double>(tree.weight) * value
                           : static_cast<double>(tree.weight * static_cast<float>(value)));
      }
    }
  return out;
}

/// Returns the raw scores after every few rounds, row by row, from the reference predictor on models of these rounds.
Result<std::vector<double>> stages_of(const Case& c, std::uint32_t every) {
  const auto rounds = static_cast<std::uint32_t>(c.model.trees.size());
  const std::size_t outputs = c.model.num_outputs, stages = (rounds + every - 1) / every;
  std::vector<double> out(c.row_count() * stages * outputs);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    Model model = c.model;
    FVM_TRY(keep_rounds(model, {0, std::min(rounds, static_cast<std::uint32_t>(stage + 1) * every)}));
    FVM_ASSIGN(const Reference part, reference_predict(model, c.rows, c.row_count(), {}));
    for (std::size_t row = 0; row < c.row_count(); ++row)
      for (std::size_t k = 0; k < outputs; ++k)
        out[(row * stages + stage) * outputs + k] = part.raw[row * outputs + k];
  }
  return out;
}

/// Checks the outputs beside scores, labels and leaves that the case asks for: those of trees and stages against the
/// reference, and contributions, whose bits depend on no schedule, against the program of the default schedule.
std::string parts_differ(const Program& program, const Case& c, const Reference& expected,
                         std::size_t batch) {
  const auto predictor = loaded(program, c);
  if (c.options.keeps_leaves && !c.model.trees.empty()) {
    CallOptions call;
    call.every = static_cast<std::uint32_t>((c.model.trees.size() + 2) / 3);
    std::string wrong = compared("tree", outputs_of_trees(c, expected),
                                 output_of(**predictor, c, c.row_count(), batch, OutputKind::Trees, call));
    if (!wrong.empty()) return wrong;
    const bool has_stages = c.model.divisor == 1;
    const auto stages = has_stages ? stages_of(c, call.every) : std::vector<double>();
    if (!stages.ok()) return "stages of the reference: " + stages.error().text();
    if (has_stages)
      wrong = compared("stage", *stages,
                       output_of(**predictor, c, c.row_count(), batch, OutputKind::Staged, call));
    if (!wrong.empty()) return wrong;
  }
  if (!c.options.contributions && !c.options.approx_contributions) return {};
  const auto plain = compile(c.model, Schedule(), c.options);
  if (!plain.ok()) return "contributions: " + plain.error().text();
  const auto judge = host_backend(plain->program, {.threads = 1});
  const std::size_t width = std::size_t{c.model.num_outputs} * (c.model.num_features + 1);
  for (const OutputKind output :
       {OutputKind::Contributions, OutputKind::Interactions, OutputKind::ApproxContributions}) {
    if (output_width(program, output) == 0) continue;
    const bool pairs = output == OutputKind::Interactions;
    const std::size_t rows = std::min<std::size_t>(c.row_count(), pairs || width > 10'000 ? 3 : 70);
    const auto wanted = output_of(**judge, c, rows, rows, output, {});
    if (!wanted.ok()) return "contributions: " + wanted.error().text();
    std::string wrong = compared("contribution", *wanted, output_of(**predictor, c, rows, batch, output, {}));
    if (!wrong.empty()) return wrong;
  }
  return {};
}

/// Returns what is wrong with a case that compiles; empty for one that does not.
std::string failure_of(const Case& c) {
  const Result<Program> program = compiled(c);
  if (!program.ok()) return {};
  const auto expected = reference_predict(c.model, c.rows, c.row_count(), {});
  if (!expected.ok()) return "the reference: " + expected.error().text();
  for (const std::size_t batch : c.batches) {
    const Result<Answer> answer = predicted(*program, c, batch);
    if (!answer.ok()) return answer.error().text();
    const bool in_order = program->meta().sums_in_model_order != 0;
    const std::string wrong = compared(c, *expected, *answer, in_order);
    if (!wrong.empty()) return "batch " + std::to_string(batch) + ": " + wrong;
    const std::string differ = encoded_differ(*program, c, batch, *answer, in_order);
    if (!differ.empty()) return "batch " + std::to_string(batch) + ": " + differ;
    const std::string parts = parts_differ(*program, c, *expected, batch);
    if (!parts.empty()) return "batch " + std::to_string(batch) + ": " + parts;
  }
  return {};
}

/// Drops elements of a list, from the last on, as long as the case still fails.
template <class ListOf>
void drop(Case& c, const ListOf& list_of) {
  for (std::size_t i = list_of(c).size(); i-- > 0;) {
    Case smaller = c;
    auto& list = list_of(smaller);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    smaller.model.round_begins.resize(smaller.model.trees.size() + 1);  // each round has one tree
    if (!failure_of(smaller).empty()) c = std::move(smaller);
  }
}

Case shrunk(Case c) {
  for (int round = 0; round < 2; ++round) {
    drop(
        c, [](Case & x) -> auto& { return x.model.trees; });
    drop(
        c, [](Case & x) -> auto& { return x.schedule.directives; });
    for (std::size_t row = c.row_count(); row-- > 0 && c.row_count() > 1;) {
      Case smaller = c;
      const auto begin = smaller.rows.begin() + static_cast<std::ptrdiff_t>(row * c.model.num_features);
      smaller.rows.erase(begin, begin + c.model.num_features);
      if (!failure_of(smaller).empty()) c = std::move(smaller);
    }
  }
  return c;
}

/// Makes some cases ask for outputs of single trees and for contributions of each kind, where the model has them.
void ask_for_parts(Dice& dice, Case& c) {
  c.options.keeps_leaves = dice.percent(15);
  if (!dice.percent(15)) return;
  CompileOptions asked = c.options;
  asked.contributions = dice.percent(60);
  asked.interactions = asked.contributions && c.model.num_features <= 40 && dice.percent(40);
  asked.approx_contributions = !asked.contributions || dice.percent(30);
  if (compile(c.model, Schedule(), asked).ok()) c.options = asked;  // others have no covers
}

Case random_case(std::uint64_t seed, const ForestOptions& forest, const ScheduleOptions& schedule) {
  Dice dice(seed);
  Case c;
  c.exact_sums = forest.integer_leaves;
  c.model = random_forest(dice, forest);
  c.schedule = schedule.automatic
                   ? automatic_schedule(c.model)
                   : random_schedule(dice, static_cast<std::uint32_t>(c.model.trees.size()), schedule);
  const std::vector<std::size_t> counts{1, 2, 3, 7, 8, 9, 15, 31, 64, 65, 130, 200};
  const std::size_t count = dice.pick(counts);
  c.rows = random_rows(dice, c.model, count);
  c.batches = {count, dice.from_to(1, count)};
  c.threads = static_cast<unsigned>(dice.from_to(1, 3));
  c.target = dice.pick(support::targets_here());
  c.padding = dice.percent(70) ? 0 : dice.from_to(1, 9);
  const std::vector<Contract> contracts{Contract::Trainer, Contract::Trainer, Contract::Reproducible,
                                        Contract::Fast};
  c.options.contract = dice.pick(contracts);
  if (schedule.mapped) c.emulator = {dice.bits(), dice.percent(50) ? 32u : 64u};
  if (!schedule.mapped && forest.linear == 0) ask_for_parts(dice, c);
  return c;
}

struct Tally {
  std::size_t at_once = 0, later = 0, dropped = 0, reordered = 0, coded = 0, plans = 0, mapped = 0,
              failed = 0;
  std::size_t kept = 0;       ///< number of programs with outputs of single trees
  std::size_t explained = 0;  ///< number of programs with contributions of some kind
  std::size_t oblivious = 0;  ///< number of trees that are walked as oblivious ones
  std::size_t retiring = 0;   ///< number of trees with a level that retires its leaves
  std::size_t tree_tables = 0;
  std::size_t below = 0;  ///< number of trees with nodes below tables
};

/// Counts the trees in layouts of tables for which `is` holds.
template <class Is>
std::size_t count_tables(const Program& program, Layout layout, const Is& is) {
  std::size_t count = 0;
  for (const GroupDesc& group : program.groups()) {
    if (group.layout != layout) continue;
    const GroupData data = group_data(program, group);
    for (std::uint32_t t = 0; t < data.tree_count; ++t) count += is(TablesView::tree(data, t)) ? 1u : 0u;
  }
  return count;
}

std::size_t oblivious_trees(const Program& program) {
  return count_tables(program, Layout::Tables, [](const TablesView::Tree& tree) { return tree.oblivious; });
}

std::size_t retiring_trees(const Program& program) {
  return count_tables(program, Layout::Tables, [](const TablesView::Tree& tree) {
    for (std::uint32_t i = 0; i < tree.depth; ++i)
      if (tree.level(i).retires()) return true;
    return false;
  });
}

std::size_t trees_in_tree_tables(const Program& program) {
  return count_tables(program, Layout::TreeTables, [](const TablesView::Tree&) { return true; });
}

std::size_t trees_with_nodes_below(const Program& program) {
  std::size_t count = 0;
  for (const GroupDesc& group : program.groups()) {
    if (group.layout != Layout::TopTables) continue;
    const GroupData data = group_data(program, group);
    for (std::uint32_t t = 0; t < data.tree_count; ++t) {
      const TopTablesHeader& header = TopTablesView::header(data, t);
      count += header.nodes != header.exits ? 1u : 0u;
    }
  }
  return count;
}

/// Drops the last directive that does not begin a plan. False if there is none.
bool drop_last(Schedule& schedule) {
  auto& list = schedule.directives;
  const auto last = std::find_if(list.rbegin(), list.rend(),
                                 [](const Directive& d) { return d.kind != DirectiveKind::Plan; });
  if (last == list.rend()) return false;
  list.erase(std::next(last).base());
  return true;
}

/// Runs one case; directives are dropped from the end of a refused schedule until it compiles.
void run_case(std::uint64_t seed, Case c, Tally& tally) {
  ASSERT_TRUE(frontend::check_model(c.model).ok()) << frontend::check_model(c.model).error().text();
  Result<Program> program = compiled(c);
  program.ok() ? ++tally.at_once : ++tally.later;
  while (!program.ok()) {
    ASSERT_EQ(program.error().code, ErrorCode::Refused) << program.error().text();
    ASSERT_FALSE(program.error().where.starts_with("pc "))
        << "the verifier refuses what the compiler made, seed " << seed << ": " << program.error().text()
        << "\n"
        << print(c.schedule);
    ASSERT_TRUE(drop_last(c.schedule)) << program.error().text();
    ++tally.dropped;
    program = compiled(c);
  }
  tally.reordered += program->meta().sums_in_model_order == 0;
  tally.coded += !program->columns().empty();
  tally.plans += program->code().front().op == Op::Plan;
  tally.mapped += program->mapped();
  tally.kept += c.options.keeps_leaves;
  tally.explained += c.options.contributions || c.options.approx_contributions;
  tally.oblivious += oblivious_trees(*program);
  tally.retiring += retiring_trees(*program);
  tally.tree_tables += trees_in_tree_tables(*program);
  tally.below += trees_with_nodes_below(*program);
  if (failure_of(c).empty()) return;
  ++tally.failed;
  const Case small = shrunk(c);
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  ADD_FAILURE() << "seed " << seed << ", contract " << name_of(small.options.contract) << ", "
                << "target " << small.target << ", " << small.threads << " threads, warps of "
                << small.emulator.warp << " from seed " << small.emulator.seed << ", " << small.row_count()
                << " rows: " << failure_of(small) << "\nrepeat: FORESTVM_SEED=" << seed
                << " FORESTVM_CASES=1 test_conformance_random --gtest_filter=" << test->test_suite_name()
                << "." << test->name() << "\n"
                << print(small.schedule) << scheduler::print(small.model);
}

/// Returns the end of the time that FORESTVM_MINUTES gives a test; none if it is not set.
std::optional<std::chrono::steady_clock::time_point> deadline() {
  const std::size_t minutes = environment("FORESTVM_MINUTES", 0);
  if (minutes == 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::minutes(minutes);
}

void run_cases(std::uint64_t first, std::size_t count, const ForestOptions& forest,
               const ScheduleOptions& schedule) {
  const auto end = deadline();
  const bool anew = end || support::nightly();
  first = environment("FORESTVM_SEED", anew ? std::random_device()() * std::uint64_t{1'000'000} : first);
  count = end ? SIZE_MAX - first : environment("FORESTVM_CASES", anew ? 10 * count : count);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    run_case(seed, random_case(seed, forest, schedule), tally);
    if (testing::Test::HasFatalFailure() || tally.failed == 3) break;
    const std::uint64_t done = seed - first + 1;
    if (end && done % 5000 == 0) std::cout << "  " << done << " cases from seed " << first << std::endl;
    if (end && std::chrono::steady_clock::now() > *end) break;
  }
  std::cout << "  from seed " << first << ": " << tally.at_once << " schedules compiled at once, "
            << tally.later << " after dropping " << tally.dropped << " directives; " << tally.reordered
            << " with sums in another order, " << tally.coded << " with rank codes, " << tally.plans
            << " with plans, " << tally.mapped << " on the emulator, " << tally.kept
            << " with outputs of single trees, " << tally.explained << " with contributions\n";
  if (schedule.automatic) {
    EXPECT_EQ(tally.later, 0u) << "what runs where nobody chose must compile";
  }
  if (count < 100) return;
  const std::size_t cases = tally.at_once + tally.later;
  if (schedule.mapped) {
    EXPECT_GT(tally.mapped, cases * 4 / 5);
    if (forest.linear == 0) {
      EXPECT_GT(tally.reordered, cases / 20);
    }
    return;
  }
  EXPECT_GT(tally.coded, cases / 20);
  EXPECT_GT(tally.plans, cases / 20);
  if (forest.linear == 0) {
    EXPECT_GT(tally.kept, cases / 20);
    EXPECT_GT(tally.explained, cases / 40);
  }
  if (schedule.automatic) return;
  EXPECT_GT(tally.at_once, cases / 4);
  if (forest.linear != 0) {
    EXPECT_EQ(tally.reordered, 0u) << "the functions of linear leaves are added in the model's order";
    return;
  }
  EXPECT_GT(tally.reordered, cases / 100);
}

TEST(Random, SchedulesOfAnyForest) { run_cases(1, 2000, {}, {}); }

TEST(Random, LinearLeaves) { run_cases(750'000, 300, {.float64 = 100, .linear = 100, .categories = 0}, {}); }

TEST(Random, LinearLeavesOnGpus) {
  run_cases(760'000, 150, {.float64 = 100, .linear = 100, .categories = 0}, {.plans = 0, .mapped = true});
}

TEST(Random, AutomaticSchedules) {
  ForestOptions forest;
  forest.max_depth = 7;  // most are walked by rank codes, some have too many leaves
  ScheduleOptions schedule;
  schedule.automatic = true;
  run_cases(300'000, 600, forest, schedule);
}

/// Runs cases by rank codes on every target, one row at a time and in blocks; every other case also in calls
/// of up to 64 rows.
Tally run_tables(std::uint64_t first, std::size_t count, const ForestOptions& forest,
                 std::string_view layout = "tables") {
  const std::vector<Schedule> schedules{
      Schedule().encode("u8"),
      Schedule().tile("batch", "b0", "b1", 64).reorder("b0", "tree", "b1").encode("u8"),
      Schedule().tile("batch", "b0", "b1", 512).reorder("b0", "tree", "b1").parallel("b0").encode("u8")};
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count && tally.failed == 0; ++seed) {
    Case c = random_case(seed, forest, {});
    c.schedule = schedules[seed % schedules.size()];
    c.schedule.layout("tree", layout);
    if (seed % 2 != 0) c.batches = {1 + seed % 64};
    c.options.contract = Contract::Trainer;
    for (const std::string& target : support::targets_here()) {
      c.target = target;
      run_case(seed, c, tally);
    }
  }
  return tally;
}

TEST(Random, ObliviousTrees) {
  const Tally tally =
      run_tables(400'000, 300, {.max_trees = 30, .max_depth = 8, .oblivious = 80, .float64 = 50});
  EXPECT_GT(tally.oblivious, 1000u);
}

TEST(Random, LeafWiseTrees) {
  const Tally tally =
      run_tables(500'000, 300, {.max_trees = 20, .max_depth = 6, .leaf_wise = 80, .float64 = 50});
  EXPECT_GT(tally.retiring, 1000u);
}

TEST(Random, TreeTables) {
  const Tally tally = run_tables(
      550'000, 300, {.max_trees = 40, .max_depth = 6, .oblivious = 10, .float64 = 25}, "treeTables");
  EXPECT_GT(tally.tree_tables, 1000u);
}

TEST(Random, TopTables) {
  const Tally tally = run_tables(
      570'000, 100, {.max_trees = 6, .max_depth = 6, .leaf_wise = 60, .most_leaves = 1500, .float64 = 25},
      "topTables");
  EXPECT_GT(tally.below, 100u);
}

TEST(Random, CategoricalSplits) {
  ForestOptions forest;
  forest.categories = 100;
  forest.oblivious = 10;
  ScheduleOptions schedule;
  for (const bool automatic : {true, false}) {
    schedule.automatic = automatic;
    run_cases(automatic ? 600'000 : 700'000, 400, forest, schedule);
  }
}

TEST(Random, ParallelTreesWhoseSumsAreExact) {
  ForestOptions forest;
  forest.max_depth = 5;
  forest.integer_leaves = true;
  run_cases(100'000, 600, forest, {90});
}

TEST(Random, MappedSchedules) {
  ForestOptions forest;
  forest.max_trees = 40;
  forest.max_depth = 6;
  ScheduleOptions schedule;
  schedule.mapped = true;
  schedule.plans = 0;
  run_cases(800'000, 500, forest, schedule);  // half as many as elsewhere: the emulator is slow
}

TEST(Random, ManySmallTrees) {
  ForestOptions forest;
  forest.max_trees = 90;
  forest.max_depth = 3;
  run_cases(200'000, 400, forest, {});
}

}  // namespace
}  // namespace forestvm::test::test_random
