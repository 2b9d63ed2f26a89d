// The matrix of schedules x targets x batches x threads for one model, and the table of results.
#include "model_conformance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "answers.hpp"
#include "support/floats.hpp"
#include "support/nightly.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test {
namespace {

struct TestedSchedule {
  std::string name;
  std::string text;
  bool all_rows = false;
};

/// Returns the steps from the root to the nearest leaf.
std::size_t nearest_leaf(const Model& model) {
  std::size_t nearest = SIZE_MAX;
  for (const Tree& tree : model.trees) {
    std::vector<std::int32_t> level{0}, next;
    for (std::size_t depth = 0; !level.empty() && depth < nearest; ++depth, level.swap(next), next.clear())
      for (const std::int32_t at : level) {
        const Node& node = tree.nodes[static_cast<std::size_t>(at)];
        if (node.kind == NodeKind::Leaf)
          nearest = depth;
        else
          next.insert(next.end(), {node.left, node.right});
      }
  }
  return nearest;
}

std::vector<TestedSchedule> schedules_for(const Model& model) {
  const std::string half = std::to_string(std::max<std::size_t>(1, model.trees.size() / 2));
  const std::string third = std::to_string(std::max<std::size_t>(1, model.trees.size() / 3));
  const std::string peel = std::to_string(std::max<std::size_t>(1, nearest_leaf(model)));
  std::vector<TestedSchedule> schedules;
  for (const NamedSchedule& named : named_schedules())
    if (named.backend == ScheduleBackend::Host)
      schedules.push_back({std::string(named.name), print(*schedule_by_name(model, named.name))});
  schedules.push_back({"tree-tiles-8-unrolled", "tile(tree, t0, t1, 8); interleave(t1); unrollWalk(t1)"});
  schedules.push_back({"2x4",
                       "tile(batch, b0, b1, 4); tile(tree, t0, t1, 2); reorder(b0, t0, t1, b1);"
                       "interleave(t1); interleave(b1)"});
  schedules.push_back({"groups-unrolled", "reorder(tree, batch); split(tree, ta, tb, " + half +
                                              "); unrollWalk(ta.batch); interleave(tb.batch)"});
  schedules.push_back({"groups-layouts", "split(tree, ta, tb, " + third +
                                             "); layout(ta, sparse); interleave(ta); unrollWalk(tb, 3)"});
  schedules.push_back({"groups-parallel-rows",
                       "tile(batch, b0, b1, 16); reorder(b0, tree, b1); split(tree, ta, tb, " + half +
                           "); parallel(b0); interleave(ta.b1); unrollWalk(ta.b1); layout(tb, sparse)"});
  schedules.push_back({"sparse",
                       "tile(batch, b0, b1, 64); reorder(b0, tree, b1); layout(tree, sparse);"
                       "parallel(b0); interleave(b1); unrollWalk(b1)"});
  schedules.push_back({"array", "layout(tree, array); unrollWalk(tree, 4)"});
  schedules.push_back({"unroll", "tile(tree, t0, t1, 4); unroll(t1); tile(batch, b0, b1, 5); parallel(b0)"});
  schedules.push_back({"unroll-rows", "tile(batch, b0, b1, 3); reorder(b0, tree, b1); unroll(b1)"});
  schedules.push_back({"peel", "peelWalk(tree, " + peel + "); tile(batch, b0, b1, 8); interleave(tree)"});
  schedules.push_back({"coded", "encode(u8); tile(batch, b0, b1, 128); reorder(b0, tree, b1); parallel(b0)"});
  schedules.push_back({"coded-part", "split(tree, ta, tb, " + half +
                                         "); layout(ta, tables); layout(tb, sparse); interleave(tb)"});
  schedules.push_back({"plans",
                       "plan(1); layout(tree, sparse); interleave(tree); plan(7); encode(u8); plan(64); "
                       "tile(batch, b0, b1, 8); reorder(b0, tree, b1); interleave(b1); plan(BATCH); "
                       "tile(batch, b0, b1, 70); reorder(b0, tree, b1); parallel(b0); layout(tree, tables)"});
  schedules.push_back(
      {"plans-tiles",
       "plan(1); tileTree(tree, 2, uniform); layout(tree, sparse); plan(64); tileTree(tree, 8, uniform); "
       "interleave(tree); plan(BATCH); tileTree(tree, 4, uniform); tile(batch, b0, b1, 70); "
       "reorder(b0, tree, b1); parallel(b0)"});
  schedules.push_back({"auto", print(automatic_schedule(model))});
  for (TestedSchedule& schedule : schedules)
    for (const char* demanded : {"default", "trees-outer", "xgboost", "rows-8-unrolled", "groups-unrolled"})
      schedule.all_rows = schedule.all_rows || schedule.name == demanded;
  return schedules;
}

/// The outcome of each model under each schedule.
class Table : public testing::Environment {
 public:
  static Table& instance() {
    static Table* table = static_cast<Table*>(testing::AddGlobalTestEnvironment(new Table));
    return *table;
  }

  void note(const std::string& model, const std::string& schedule, const std::string& result) {
    if (rows_.empty() || rows_.back().first != model) rows_.push_back({model, {}});
    ++rows_.back().second[result].first;
    rows_.back().second[result].second += (rows_.back().second[result].second.empty() ? "" : ", ") + schedule;
  }

  /// Runs after all tests.
  void TearDown() override {
    std::cout
        << "\nmodel: what schedules gave (equal: raw scores bit for bit; near: within rounding, trees in "
           "parallel)\n";
    for (const auto& [model, results] : rows_) {
      std::cout << model << ":\n";
      for (const auto& [result, schedules] : results)
        std::cout << "  " << result << ": " << schedules.first
                  << (result == "equal" ? "" : " (" + schedules.second + ")") << "\n";
    }
  }

 private:
  std::vector<std::pair<std::string, std::map<std::string, std::pair<int, std::string>>>> rows_;
};

class ModelCheck {
 public:
  ModelCheck(const Model& model, const Answers& answers, const Budget& budget)
      : model_(model), answers_(answers), budget_(budget) {
    double largest = 0;
    for (const Tree& tree : model.trees)
      for (const Node& node : tree.nodes) largest = std::max(largest, std::abs(node.value));
    steps_ = std::max<std::size_t>(1, model.trees.size() * statistics(model).max_depth);
    slack_ = largest * std::pow(static_cast<double>(model.trees.size()) + 1, 2) * 0x1p-24;
  }

  /// Returns "equal", "near", "refused: …", or "DIFFERENT" after failing the test.
  std::string run(const TestedSchedule& tested) {
    const Result<Schedule> schedule = parse_schedule(tested.text);
    if (!schedule.ok()) return "refused: " + schedule.error().text();
    const Result<Compiled> compiled = compile(model_, *schedule);
    if (!compiled.ok()) return "refused: " + compiled.error().text();
    in_order_ = compiled->program.meta().sums_in_model_order != 0;
    all_rows_ = tested.all_rows;
    for (const std::string& target : support::targets_here())
      for (const unsigned threads : {1u, 2u})
        for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}, answers_.count})
          if (!predicts(compiled->program, target, threads, batch)) {
            ADD_FAILURE() << tested.name << ", target " << target << ", " << threads << " threads, batch "
                          << batch << ": " << wrong_ << "\n"
                          << print(*schedule);
            return "DIFFERENT";
          }
    return in_order_ ? "equal" : "near";
  }

 private:
  bool is_largest(unsigned threads, std::size_t batch) const {
    return batch == answers_.count && threads == 2;
  }

  std::size_t rows_for(unsigned threads, std::size_t batch) const {
    const bool largest = is_largest(threads, batch);
    if (largest && all_rows_) return answers_.count;
    const std::size_t affordable = budget_.steps / steps_ * (largest ? 16 : 1);
    return std::min(answers_.count, std::max<std::size_t>(affordable, 15));
  }

  bool predicts(const Program& program, const std::string& target, unsigned threads, std::size_t batch) {
    const auto predictor = host_backend(program, {threads, target});
    if (!predictor.ok()) return fail(predictor.error().text());
    const auto context = (*predictor)->make_context();
    const std::size_t count = rows_for(threads, batch);
    std::vector<float> raw(count * answers_.raw_width), value(count * answers_.value_width);
    if (output_width(program, OutputKind::Raw) != answers_.raw_width ||
        output_width(program, OutputKind::Value) != answers_.value_width)
      return fail("other widths than the trainer's");
    const bool values = batch != 1 && !is_largest(threads, batch);
    for (std::size_t begin = 0; begin < count; begin += batch) {
      const RowBlock rows = rows_of(answers_, begin, std::min(batch, count - begin));
      const auto done =
          (*predictor)->predict(*context, rows, OutputKind::Raw, raw.data() + begin * answers_.raw_width);
      if (!done.ok()) return fail(done.error().text());
      if (!values) continue;
      const auto more =
          (*predictor)
              ->predict(*context, rows, OutputKind::Value, value.data() + begin * answers_.value_width);
      if (!more.ok()) return fail(more.error().text());
    }
    return raw_is_right(raw) && (!values || !in_order_ || value_is_right(value));
  }

  bool raw_is_right(const std::vector<float>& raw) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const float expected = answers_.raw[i];
      const bool right =
          in_order_ || std::isinf(expected)
              ? support::same_bits(raw[i], expected)
              : std::abs(static_cast<double>(raw[i]) - static_cast<double>(expected)) <= slack_;
      if (!right) return differs("raw score", i, expected, raw[i]);
    }
    return true;
  }

  bool value_is_right(const std::vector<float>& value) {
    for (std::size_t i = 0; i < value.size(); ++i)
      if (support::ulps(value[i], answers_.value[i]) > 2)
        return differs("value", i, answers_.value[i], value[i]);
    return true;
  }

  bool differs(const char* what, std::size_t i, float expected, float actual) {
    char text[160];
    std::snprintf(text, sizeof text, "%s number %zu: the trainer's %.9g (%a), got %.9g (%a)", what, i,
                  static_cast<double>(expected), static_cast<double>(expected), static_cast<double>(actual),
                  static_cast<double>(actual));
    return fail(text);
  }

  bool fail(std::string what) {
    wrong_ = std::move(what);
    return false;
  }

  const Model& model_;
  const Answers& answers_;
  Budget budget_;
  std::size_t steps_ = 1;  ///< most steps that a row takes
  double slack_ = 0;       ///< largest difference between sums of parallel trees
  bool in_order_ = true, all_rows_ = true;
  std::string wrong_;
};

}  // namespace

void check_model_file(const ModelFile& file, const Budget& budget) {
  Table& table = Table::instance();
  const Result<Model> model = load_model(file.path.string());
  ASSERT_TRUE(model.ok()) << file.path << ": " << model.error().text();
  const Answers answers = answers_of(file, *model);
  ASSERT_EQ(answers.features, model->num_features);
  ModelCheck check(*model, answers, budget);
  const std::vector<TestedSchedule> schedules = schedules_for(*model);
  std::size_t answered = 0;
  std::string refusal;
  for (const std::size_t i : support::sampled(schedules.size(), budget.schedules, file.name)) {
    const TestedSchedule& schedule = schedules[i];
    const std::string result = check.run(schedule);
    if (result.starts_with("refused")) {
      std::cout << "  [ skipped  ] " << file.name << " x " << schedule.name << ": " << result << "\n";
      refusal = result;
    } else {
      ++answered;
    }
    table.note(file.name, schedule.name, result);
  }
  EXPECT_NE(answered, 0u) << "no schedule runs " << file.path << ": " << refusal;
}

}  // namespace forestvm::test
