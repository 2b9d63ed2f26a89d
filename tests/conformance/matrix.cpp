// Cells, how they are run, and the answers they must give. Contract trainer: the trainer's raw scores bit for
// bit, or close to them where the order of additions was changed; reproducible: the same bits in every cell,
// close to the trainer's; fast: close.
#include "matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/load.hpp>

#include <forestvm/internal/reference.hpp>
#include "answers.hpp"
#include "support/floats.hpp"
#include "support/layout_names.hpp"
#include "support/nightly.hpp"
#include "support/targets_here.hpp"
#include "support/test_name.hpp"

namespace forestvm::test {
namespace {

struct DirectiveSet {
  const char* name;
  /// The directives. HALF and THIRD stand for a half and a third of the model's number of trees. DIRECTIVES stands for
  /// the directives of layout and tiling, which come first if the word is absent.
  const char* text;
  int size;  ///< largest Size of model for which it runs
};

/// Sizes of models by number of nodes: larger ones run fewer cells.
enum Size { kSmall, kMiddle, kLarge };
constexpr std::size_t kEmulatedRows = 9;  ///< rows on the emulator, enough for blocks of several sizes
/// The number of cells of a model that run by day, by its size: about one cell in twenty of a small model, and fewer
/// of a larger model, because its cells take longer.
constexpr std::size_t kCellsByDay[] = {200, 50, 12};
constexpr std::uint64_t kSmallNodes = 30'000, kMiddleNodes = 200'000;

constexpr DirectiveSet kDirectiveSets[] = {
    {"serial", "", kSmall},
    {"rows", "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0); interleave(b1)", kLarge},
    {"rows-unrolled",
     "tile(batch, b0, b1, 8); reorder(b0, tree, b1); parallel(b0); interleave(b1); unrollWalk(b1)", kMiddle},
    {"trees",
     "tile(tree, t0, t1, HALF); tile(t1, t2, t3, 4); reorder(t0, t2, batch, t3); parallel(t0); "
     "parallel(t2); vectorReduce(t0, 4); vectorReduce(t2, 8); interleave(t3)",
     kMiddle},
    {"trees-atomic", "tile(tree, t0, t1, 3); reorder(t0, batch, t1); parallel(t0); atomicReduce(t0)", kSmall},
    {"depth-specialized",
     "orderTrees(depth); tile(tree, t0, t1, HALF); reorder(t0, batch, t1); parallel(t0); specialize(t0); "
     "unrollWalk(t1)",
     kSmall},
    {"split", "orderTrees(class); split(tree, ta, tb, THIRD); unrollWalk(ta, 2); interleave(tb)", kSmall},
    {"cache", "tile(batch, b0, b1, 4); reorder(b0, tree, b1); cache(b0, 2); cache(tree); unroll(b1)", kSmall},
    {"coded",
     "encode(u8); tile(batch, b0, b1, 128); reorder(b0, tree, b1); split(b1, b2, b3, 70); parallel(b0)",
     kSmall},
    {"plans",
     "plan(6); encode(auto); plan(7); DIRECTIVES; interleave(tree); plan(BATCH); DIRECTIVES; "
     "tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0)",
     kMiddle},
    // Schedules mapped to a GPU run on the emulator.
    {"gpu rows",
     "tile(batch, b0, b1, 8); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); "
     "interleave(tree)",
     kSmall},
    {"gpu trees",
     "tile(batch, b0, b1, 4); tile(tree, t0, t, 12); tile(t, t1, t2, 3); reorder(b0, t0, t1, t2, b1); "
     "gpuDimension(b0, grid.x); gpuDimension(t1, block.y); cache(b0); cache(t0); sharedReduce(t1)",
     kSmall},
    {"gpu grid",
     "tile(batch, b0, b1, 8); tile(tree, t0, t1, HALF); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
     "gpuDimension(t0, grid.y); gpuDimension(b1, block.x)",
     kSmall},
    {"gpu atomic",
     "tile(batch, b0, b1, 8); tile(tree, t0, t1, HALF); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
     "gpuDimension(t0, grid.y); gpuDimension(b1, block.x); atomicReduce(t0)",
     kSmall},
};

struct TilingRow {
  const char* name;
  const char* text;
  int size;
};

constexpr TilingRow kTilings[] = {
    {"1", "", kLarge},
    {"1 probability", "tileTree(tree, 1, probability)", kSmall},
    {"2 uniform", "tileTree(tree, 2, uniform)", kSmall},
    {"4 uniform", "tileTree(tree, 4, uniform)", kLarge},
    {"8 uniform", "tileTree(tree, 8, uniform)", kSmall},
    {"3 probability", "tileTree(tree, 3, probability)", kSmall},
    {"8 probability", "tileTree(tree, 8, probability)", kMiddle},
};

std::string replaced(std::string text, const std::string& word, const std::string& with) {
  for (std::size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), with);
  return text;
}

std::string replaced(const std::string& text, const std::string& word, std::size_t number) {
  return replaced(text, word, std::to_string(std::max<std::size_t>(1, number)));
}

class Matrix {
 public:
  Matrix(const support::ModelFile& file, const Model& model, const support::Answers& answers)
      : file_(file), model_(model), answers_(answers) {
    const ForestStatistics forest = statistics(model);
    size_ = forest.nodes <= kSmallNodes ? kSmall : forest.nodes <= kMiddleNodes ? kMiddle : kLarge;
    constexpr std::size_t kSteps = 150'000;  // per cell, so that it takes a few milliseconds
    const std::size_t steps = std::max<std::size_t>(1, model.trees.size() * forest.max_depth);
    count_ = std::min(answers.count, std::clamp<std::size_t>(kSteps / steps, 15, 200));
    double largest = 0;
    for (const Tree& tree : model.trees)
      for (const Node& node : tree.nodes) largest = std::max(largest, std::abs(node.value));
    slack_ = largest * std::pow(static_cast<double>(model.trees.size()) + 1, 2) * 0x1p-24;
  }

  void run() {
    judge_ = reference_of(model_, answers_, count_);
    reproducible_ = reproducible_scores();
    std::vector<std::string> layouts = support::layout_names();
    layouts.insert(layouts.begin(), "auto");
    std::vector<Cell> cells;
    for (const std::string& layout : layouts)
      for (const TilingRow& tiling : kTilings)
        for (const DirectiveSet& directives : kDirectiveSets)
          for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast}) {
            const Cell cell{layout, &tiling, &directives, contract};
            if (size_ <= tiling.size && size_ <= directives.size)
              cells.push_back(cell);
            else
              note(cell, "not run: the model is too large");
          }
    for (const std::size_t i : support::sampled(cells.size(), kCellsByDay[size_], file_.name))
      note(cells[i], outcome_of(cells[i]));
    report();
  }

 private:
  struct Cell {
    std::string layout;
    const TilingRow* tiling;
    const DirectiveSet* directives;
    Contract contract;
  };

  std::string schedule_of(const Cell& cell) const {
    const std::string directives =
        (cell.layout == "auto" ? "" : "layout(tree, " + cell.layout + "); ") + cell.tiling->text;
    std::string text = replaced(cell.directives->text, "DIRECTIVES", directives);
    if (text == cell.directives->text) text = directives + "; " + text;
    return replaced(replaced(text, "HALF", (model_.trees.size() + 1) / 2), "THIRD", model_.trees.size() / 3);
  }

  std::string outcome_of(const Cell& cell) {
    const std::string text = schedule_of(cell);
    const Contract contract = cell.contract;
    const Result<Schedule> schedule = parse_schedule(text);
    if (!schedule.ok()) return failed(text, schedule.error().text());
    CompileOptions options;
    options.contract = contract;
    const Result<Compiled> compiled = compile(model_, *schedule, options);
    if (!compiled.ok()) {
      if (compiled.error().code != ErrorCode::Refused || compiled.error().where.starts_with("pc "))
        return failed(text, compiled.error().text());
      return "refused: " + compiled.error().message;
    }
    std::vector<std::pair<unsigned, std::size_t>> ways{{1, count_}, {3, 7}};
    if (contract == Contract::Reproducible) ways.insert(ways.end(), {{2, 64}, {4, 1}});
    std::string outcome;
    if (compiled->program.mapped()) {
      const auto predictor = emulator_backend(compiled->program);
      if (!predictor.ok() && predictor.error().code == ErrorCode::Refused)
        return "refused: " + predictor.error().message;
      outcome = predicted(predictor, std::min(count_, kEmulatedRows), kEmulatedRows, contract);
      return outcome.starts_with("wrong")
                 ? failed(text, std::string(name_of(contract)) + ", emulator: " + outcome)
                 : outcome;
    }
    for (const std::string& target : support::targets_here())
      for (const auto& [threads, batch] : ways) {
        outcome = predicted(host_backend(compiled->program, {threads, target}), count_, batch, contract);
        if (!outcome.starts_with("wrong")) continue;
        return failed(text, std::string(name_of(contract)) + ", target " + target + ", " +
                                std::to_string(threads) + " threads, batch " + std::to_string(batch) + ": " +
                                outcome);
      }
    return outcome;
  }

  /// Returns the raw scores of every row under contract `reproducible` and the automatic schedule.
  std::vector<float> reproducible_scores() const {
    CompileOptions options;
    options.contract = Contract::Reproducible;
    const Result<Compiled> compiled = compile(model_, *parse_schedule(""), options);
    EXPECT_TRUE(compiled.ok());
    const auto predictor = host_backend(compiled->program, {});
    const auto context = (*predictor)->make_context();
    std::vector<float> raw(count_ * answers_.raw_width);
    EXPECT_TRUE(
        (*predictor)->predict(*context, rows_of(answers_, 0, count_), OutputKind::Raw, raw.data()).ok());
    return raw;
  }

  static std::string failed(const std::string& schedule, const std::string& what) {
    ADD_FAILURE() << schedule << ": " << what;
    return "DIFFERENT";
  }

  std::string predicted(const Result<std::unique_ptr<Predictor>>& predictor, std::size_t count,
                        std::size_t batch, Contract contract) {
    if (!predictor.ok()) return "wrong: " + predictor.error().text();
    const auto context = (*predictor)->make_context();
    std::vector<float> raw(count * answers_.raw_width);
    std::vector<std::int32_t> leaves(count * model_.trees.size());
    for (std::size_t begin = 0; begin < count; begin += batch) {
      const RowBlock rows = rows_of(answers_, begin, std::min(batch, count - begin));
      const auto done =
          (*predictor)->predict(*context, rows, OutputKind::Raw, raw.data() + begin * answers_.raw_width);
      if (!done.ok()) return "wrong: " + done.error().text();
      const auto more =
          (*predictor)->predict_leaf(*context, rows, leaves.data() + begin * model_.trees.size());
      if (!more.ok()) return "wrong: " + more.error().text();
    }
    if (!std::equal(leaves.begin(), leaves.end(), judge_.leaf.begin()))
      return "wrong: other leaves than the reference's";
    return judged(raw, (*predictor)->program().meta().sums_in_model_order != 0, contract);
  }

  std::string judged(const std::vector<float>& raw, bool in_order, Contract contract) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const float wanted = answers_.raw[i];
      const bool same = support::same_bits(raw[i], wanted);
      const double apart = std::abs(static_cast<double>(raw[i]) - static_cast<double>(wanted));
      if (in_order && contract == Contract::Trainer ? !same : !(same || apart <= slack_))
        return "wrong: raw score " + std::to_string(i) + " is " + std::to_string(raw[i]) +
               ", the trainer's " + std::to_string(wanted);
    }
    if (contract == Contract::Trainer) return in_order ? "equal" : "near";
    if (contract == Contract::Fast) return "near";
    for (std::size_t i = 0; i < raw.size(); ++i)
      if (!support::same_bits(raw[i], reproducible_.at(i)))
        return "wrong: raw score " + std::to_string(i) + " has other bits than by the automatic schedule";
    return "same";
  }

  void note(const Cell& cell, const std::string& outcome) {
    ++tally_[outcome];
    lines_ += file_.name + "\t" + cell.layout + "\t" + cell.tiling->name + "\t" + cell.directives->name +
              "\t" + std::string(name_of(cell.contract)) + "\t" + outcome + "\n";
  }

  void report() const {
    for (const auto& [outcome, cells] : tally_) std::cout << "  " << cells << " cells " << outcome << "\n";
    const char* folder = std::getenv("FORESTVM_MATRIX");
    if (folder == nullptr) return;
    std::ofstream out(std::string(folder) + "/" + support::test_name(file_.name) + ".tsv");
    out << lines_;
    ASSERT_TRUE(out.flush().good()) << "cannot write to " << folder;
  }

  const support::ModelFile& file_;
  const Model& model_;
  const support::Answers& answers_;
  Reference judge_;
  std::vector<float> reproducible_;  ///< the answer of every cell under contract reproducible
  std::map<std::string, std::size_t> tally_;
  std::string lines_;
  int size_ = kSmall;
  std::size_t count_ = 0;  ///< number of rows
  double slack_ = 0;       ///< largest difference between sums in different orders
};

}  // namespace

void check_matrix(const support::ModelFile& file) {
  const Result<Model> model = load_model(file.path.string());
  ASSERT_TRUE(model.ok()) << file.path << ": " << model.error().text();
  const Result<Compiled> compiled = compile(*model, *parse_schedule(""));
  ASSERT_TRUE(compiled.ok()) << file.path << ": " << compiled.error().text();
  const support::Answers answers = answers_of(file, *model);
  ASSERT_EQ(answers.features, model->num_features);
  Matrix(file, *model, answers).run();
}

}  // namespace forestvm::test
