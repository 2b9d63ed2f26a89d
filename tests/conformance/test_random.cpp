// Random differential test: random forests, schedules, contracts, rows, batch sizes, CPU targets and numbers
// of threads; for schedules mapped to a GPU also warp sizes and orders of threads. The reference predictor
// judges the answers: bit for bit or, if the contract does not promise bits, within the rounding of the sums. A
// failure is shrunk and printed with the command that repeats it. FORESTVM_SEED and FORESTVM_CASES choose
// other cases: each case depends only on its own seed. With FORESTVM_MINUTES each test goes on for that time.
// At night there are ten times as many cases, with new seeds in every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/core/layout/tables.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/named_schedules.hpp>

#include "frontend/check_model.hpp"
#include "random_case.hpp"
#include "random_forest.hpp"
#include "random_schedule.hpp"
#include "scheduler/model_text.hpp"
#include "support/nightly.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_random {
namespace {

std::size_t environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Drops elements of a list, from the last on, as long as the case still fails.
template <class ListOf>
void drop(RandomCase& c, const ListOf& list_of) {
  for (std::size_t i = list_of(c).size(); i-- > 0;) {
    RandomCase smaller = c;
    auto& list = list_of(smaller);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    smaller.model.round_begins.resize(smaller.model.trees.size() + 1);  // each round has one tree
    if (!failure_of(smaller).empty()) c = std::move(smaller);
  }
}

RandomCase shrunk(RandomCase c) {
  for (int round = 0; round < 2; ++round) {
    drop(
        c, [](RandomCase & x) -> auto& { return x.model.trees; });
    drop(
        c, [](RandomCase & x) -> auto& { return x.schedule.directives; });
    for (std::size_t row = c.row_count(); row-- > 0 && c.row_count() > 1;) {
      RandomCase smaller = c;
      const auto begin = smaller.rows.begin() + static_cast<std::ptrdiff_t>(row * c.model.num_features);
      smaller.rows.erase(begin, begin + c.model.num_features);
      if (!failure_of(smaller).empty()) c = std::move(smaller);
    }
  }
  return c;
}

/// Makes some cases ask for outputs of single trees and for contributions of each kind, where the model has them.
void ask_for_parts(Dice& dice, RandomCase& c) {
  c.options.keeps_leaves = dice.percent(15);
  if (!dice.percent(15)) return;
  CompileOptions asked = c.options;
  asked.contributions = dice.percent(60);
  asked.interactions = asked.contributions && c.model.num_features <= 40 && dice.percent(40);
  asked.approx_contributions = !asked.contributions || dice.percent(30);
  if (compile(c.model, Schedule(), asked).ok()) c.options = asked;  // others have no covers
}

RandomCase random_case(std::uint64_t seed, const ForestOptions& forest, const ScheduleOptions& schedule) {
  Dice dice(seed);
  RandomCase c;
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
void run_case(std::uint64_t seed, RandomCase c, Tally& tally) {
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
  const RandomCase small = shrunk(c);
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
    RandomCase c = random_case(seed, forest, {});
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
