// The models of the repository and the zoo as C, under the default schedule, `auto` and a random one, against the VM.
// Prints the name of each model that is exported under no schedule, and why.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "exported_forests.hpp"
#include "model_rows.hpp"
#include "random_schedule.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"

namespace forestvm::test::test_export_models {
namespace {

namespace fs = std::filesystem;

/// The most bytes of C in one file, because compilers take much memory for more.
constexpr std::size_t kSourceBytes = 8 << 20;
/// The most nodes of a model. Larger models lose their last rounds, so that compiling takes little time; by night they
/// are whole, up to a size at which the C compiler takes minutes.
constexpr std::size_t kMaxNodes = 500, kMaxNodesAtNight = 100'000, kFewNodes = 200;

std::size_t node_count(const Model& model) {
  std::size_t nodes = 0;
  for (const Tree& tree : model.trees) nodes += tree.nodes.size();
  return nodes;
}

/// Removes rounds from the end of a model with more nodes. The result need not be a model that its trainer could make.
void shorten(Model& model, std::size_t most_nodes) {
  while (node_count(model) > most_nodes && model.round_begins.size() > 2) {
    model.round_begins.resize((model.round_begins.size() - 1) / 2 + 1);
    model.trees.resize(model.round_begins.back());
  }
  model.best_round.reset();
}

/// Returns a program with a random schedule that the compiler accepts, and whose code is short enough for C.
std::optional<Program> random_program(Dice& dice, const Model& model) {
  for (int i = 0; i < 100; ++i) {
    const Schedule schedule = random_schedule(dice, static_cast<std::uint32_t>(model.trees.size()), {30});
    CompileOptions options;
    options.contract = static_cast<Contract>(dice.below(3));
    auto compiled = compile_with_kinds(model, schedule, options);
    if (compiled.ok() && compiled->program.code().size() <= 2000) return std::move(compiled->program);
  }
  return std::nullopt;
}

/// Exports models one after the other, and compares them in batches.
class Exporter {
 public:
  explicit Exporter(std::size_t most_nodes) : most_nodes_(most_nodes) {}

  void add(const std::string& name, const fs::path& path) {
    auto model = load_model(path.string());
    if (!model.ok()) return skip(name, model.error().text());
    shorten(*model, most_nodes_);
    Dice dice(std::hash<std::string>()(name));
    CompileOptions options;
    options.keeps_leaves = true;
    const auto compiled = compile_with_kinds(*model, Schedule(), options);
    if (!compiled.ok()) return skip(name, compiled.error().text());
    add(dice, *model, compiled->program, name + ", default schedule");
    const auto automatic = compile(*model, automatic_schedule(*model));
    ASSERT_TRUE(automatic.ok()) << name << ": " << automatic.error().text();
    add(dice, *model, automatic->program, name + ", auto");
    const auto random = random_program(dice, *model);
    ASSERT_TRUE(random.has_value()) << name;
    add(dice, *model, *random, name + ", " + std::string(random->text(StringId::Schedule)));
    ++models_;
    if (forests_.source_bytes() < kSourceBytes) return;
    compare();
    forests_ = {};
  }

  void compare(const std::string& compiler = "cc -O0") const {
    if (forests_.size() != 0) forests_.compare(compiler);
  }

  std::size_t models() const { return models_; }

 private:
  static void skip(const std::string& name, const std::string& why) {
    std::cout << "  [ skipped  ] " << name << ": " << why << "\n";
  }

  void add(Dice& dice, const Model& model, const Program& program, const std::string& what) {
    const ExportOptions options{static_cast<ExportOptions::Trees>(dice.below(2)),
                                static_cast<ExportOptions::Thresholds>(dice.below(2)),
                                {}};
    forests_.add(program, options, what, rows_for(dice, model, 60));
  }

  std::size_t most_nodes_;
  ExportedForests forests_;
  std::size_t models_ = 0;
};

/// Compares the models in the folders inside `parent`, by day `by_day` of them. Expects at least `least` models there,
/// and that at most one in ten is refused.
void compare_models(const fs::path& parent, std::size_t least, std::size_t by_day) {
  std::map<std::string, fs::path> files;
  for (const fs::directory_entry& folder : fs::directory_iterator(parent)) {
    if (!folder.is_directory()) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("model")) files[folder.path().filename().string() + "/" + name] = file.path();
    }
  }
  EXPECT_GE(files.size(), least);
  Exporter exporter(support::nightly() ? kMaxNodesAtNight : kMaxNodes);
  const std::vector<std::size_t> numbers = support::sampled(files.size(), by_day, parent.filename().string());
  for (const std::size_t number : numbers) {
    const auto& [name, path] = *std::next(files.begin(), static_cast<std::ptrdiff_t>(number));
    exporter.add(name, path);
    if (::testing::Test::HasFatalFailure()) return;
  }
  exporter.compare();
  EXPECT_GE(exporter.models(), numbers.size() - numbers.size() / 10);
}

/// Models of every kind of row, column, leaf and sum.
constexpr const char* kKinds[] = {"xgboost_versions/3.2.0_categories/model.json",
                                  "xgboost_versions/3.0.5_vectors/model.json",
                                  "lightgbm/4.7.0_categories/model.txt",
                                  "lightgbm/4.7.0_zero/model.txt",
                                  "lightgbm/4.7.0_classes/model.txt",
                                  "lightgbm/4.7.0_linear/model.txt",
                                  "catboost/1.2.10_counters/model.cbm",
                                  "catboost/1.2.10_one_hot/model.cbm",
                                  "ydf/0.16.1_oblique/model",
                                  "ydf/0.16.1_isolation/model",
                                  "onnx/double/model.onnx",
                                  "onnx/binary_both/model.onnx",
                                  "treelite/4.8.1_softmax_wide/model.treelite",
                                  "skops/1.9_hist_categories/model.skops",
                                  "skops/1.9_forest_two_outputs/model.skops"};

/// Compilers find nothing to complain of whatever they look for, and sanitizers find nothing at run time. By day each
/// compiler is tried once, one of them with sanitizers.
TEST(ExportedKinds, AreCleanUnderEveryCompiler) {
  Exporter exporter(kFewNodes);
  for (const char* path : kKinds) exporter.add(path, fs::path(FORESTVM_TEST_DATA) / path);
  EXPECT_EQ(exporter.models(), std::size(kKinds));
  bool compared = false;
  constexpr const char* kByDay[] = {"cc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all",
                                    "clang -O2"};
  constexpr const char* kAtNight[] = {"cc -O2",
                                      "clang -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"};
  std::vector<const char*> compilers(std::begin(kByDay), std::end(kByDay));
  if (support::nightly()) compilers.insert(compilers.end(), std::begin(kAtNight), std::end(kAtNight));
  for (const char* const compiler : compilers) {
    SCOPED_TRACE(compiler);
    if (compiles(compiler)) {
      exporter.compare(compiler);
      compared = true;
    } else {
      std::cout << "  [ skipped  ] " << compiler << " makes no programs here\n";
    }
  }
  if (!compared) GTEST_SKIP() << "no C compiler: install gcc or clang";
}

struct Models {
  const char* folder;
  std::size_t least;  ///< least number of models that must be there
};

/// Names the parameter in lists of tests.
void PrintTo(const Models& models, std::ostream* out) { *out << models.folder; }

class RepositoryExports : public testing::TestWithParam<Models> {};

TEST_P(RepositoryExports, GiveTheVmsBits) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  compare_models(fs::path(FORESTVM_TEST_DATA) / GetParam().folder, GetParam().least, 12);
}

INSTANTIATE_TEST_SUITE_P(Models, RepositoryExports,
                         testing::Values(Models{"", 3}, Models{"xgboost_versions", 35},
                                         Models{"lightgbm", 14}, Models{"catboost", 12}, Models{"onnx", 30},
                                         Models{"skops", 50}, Models{"treelite", 15}, Models{"ydf", 15},
                                         Models{"pmml", 15}),
                         [](const auto& test) {
                           const std::string folder = test.param.folder;
                           return folder.empty() ? std::string("data") : folder;
                         });

TEST(ZooExports, GiveTheVmsBits) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  const fs::path formats = support::zoo() / "formats";
  if (!fs::exists(formats)) GTEST_SKIP() << "no zoo at " << formats << ": set FORESTVM_ZOO";
  compare_models(formats, 192, 24);
}

}  // namespace
}  // namespace forestvm::test::test_export_models
