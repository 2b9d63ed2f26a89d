// Native code as a judge: programs exported as C, compiled by the system's compiler with every warning an
// error, and compared with the VM bit for bit: raw scores, values, labels and leaf numbers. Several programs
// share a file, so that the compiler starts only a few times.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/export.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "random_forest.hpp"
#include "random_schedule.hpp"
#include "support/floats.hpp"
#include "support/golden.hpp"
#include "support/model_folders.hpp"
#include "support/small_models.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::test {
namespace {

constexpr const char* kCompiler =
    "cc -std=c99 -O1 -ffp-contract=off -fPIC -shared -Wall -Wextra -Wpedantic -Wconversion -Werror";

bool has_compiler() { return std::system("cc --version > /dev/null 2>&1") == 0; }

/// A shared library with several exported programs.
class NativeLibrary {
 public:
  struct Entry {
    Program program;
    std::string prefix, what;
    std::vector<float> rows;
  };

  NativeLibrary() = default;
  NativeLibrary(const NativeLibrary&) = delete;
  NativeLibrary& operator=(const NativeLibrary&) = delete;
  ~NativeLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  void add(const Program& program, ExportOptions options, const std::string& what, std::vector<float> rows) {
    options.prefix = "f" + std::to_string(entries_.size());
    const auto exported = export_c(program, options);
    ASSERT_TRUE(exported.ok()) << what << ": " << exported.error().text();
    source_ += exported->text;
    entries_.push_back({program, options.prefix, what, std::move(rows)});
  }

  std::size_t size() const { return entries_.size(); }

  void compile_and_compare() {
    const std::string source = folder_.write("forests.c", source_), library = folder_.file("forests.so");
    const std::string command = std::string(kCompiler) + " " + source + " -o " + library;
    ASSERT_EQ(std::system(command.c_str()), 0) << "kept: " << folder_.keep();
    handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << ::dlerror();
    for (const Entry& entry : entries_) compare(entry);
  }

 private:
  template <class T>
  std::vector<T> native(const Entry& entry, const char* function, std::size_t count,
                        std::size_t width) const {
    using Function = void (*)(const float*, std::size_t, std::size_t, T*);
    void* const symbol = ::dlsym(handle_, (entry.prefix + "_" + function).c_str());
    EXPECT_NE(symbol, nullptr) << function;
    std::vector<T> out(count * width);
    if (symbol == nullptr) return out;
    Function call;
    std::memcpy(&call, &symbol, sizeof call);
    call(entry.rows.data(), count, entry.program.meta().num_features, out.data());
    return out;
  }

  void compare(const Entry& entry) {
    const ProgramMeta& meta = entry.program.meta();
    const auto predictor = host_backend(entry.program);
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    const auto context = (*predictor)->make_context();
    const std::size_t all = entry.rows.size() / meta.num_features;
    for (const std::size_t count : {std::size_t{1}, all}) {
      const RowBlock rows{entry.rows.data(), count, meta.num_features};
      for (const OutputKind kind : {OutputKind::Raw, OutputKind::Value}) {
        const std::size_t width = output_width(meta, kind);
        std::vector<float> expected(count * width);
        ASSERT_TRUE((*predictor)->predict(*context, rows, kind, expected.data()).ok());
        const auto got =
            native<float>(entry, kind == OutputKind::Raw ? "predict_raw" : "predict", count, width);
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(support::same_bits(got[i], expected[i]) ||
                      (got[i] != got[i] && expected[i] != expected[i]))
              << entry.what << ": output " << i << " is " << got[i] << " in C, " << expected[i]
              << " in the VM";
      }
      std::vector<std::int32_t> leaves(count * meta.num_trees);
      ASSERT_TRUE((*predictor)->predict_leaf(*context, rows, leaves.data()).ok());
      EXPECT_EQ(native<std::int32_t>(entry, "predict_leaf", count, meta.num_trees), leaves) << entry.what;
      if (meta.class_rule == ClassRule::None) continue;
      std::vector<std::int64_t> labels(count * output_width(meta, OutputKind::Class));
      ASSERT_TRUE((*predictor)->predict_class(*context, rows, labels.data()).ok());
      EXPECT_EQ(native<std::int64_t>(entry, "predict_class", count, output_width(meta, OutputKind::Class)),
                labels)
          << entry.what;
    }
  }

  support::TemporaryFolder folder_;
  std::string source_;
  std::vector<Entry> entries_;
  void* handle_ = nullptr;
};

constexpr ExportOptions::Trees kTrees[] = {ExportOptions::Trees::Tables, ExportOptions::Trees::Branches};
constexpr ExportOptions::Thresholds kThresholds[] = {ExportOptions::Thresholds::Float,
                                                     ExportOptions::Thresholds::Integer};

Result<Program> program_of(const Model& model, const std::string& text, Contract contract) {
  FVM_ASSIGN(const Schedule schedule, parse_schedule(text));
  CompileOptions options;
  options.contract = contract;
  FVM_ASSIGN(const Compiled compiled, compile(model, schedule, options));
  return compiled.program;
}

/// Every layout, tiling, reduction and kind of sum of the host, on a random forest.
const std::vector<std::string> kSchedules = {
    "",
    "reorder(tree, batch); interleave(batch)",
    "layout(tree, array); unrollWalk(tree)",
    "layout(tree, array4); unrollWalk(tree)",
    "layout(tree, reorg)",
    "layout(tree, sparse8)",
    "layout(tree, sparse16); unrollWalk(tree, 2)",
    "layout(tree, array); tileTree(tree, 2, uniform)",
    "layout(tree, reorg); tileTree(tree, 3, uniform)",
    "layout(tree, sparse); tileTree(tree, 4, uniform); unrollWalk(tree)",
    "layout(tree, sparse); tileTree(tree, 8, uniform)",
    "orderTrees(depth); split(tree, ta, tb, 3); layout(ta, array); layout(tb, sparse)",
    "orderTrees(depth); tile(tree, t0, t1, 4); specialize(t0); cache(t0)",
    "tile(tree, t0, t1, 4); reorder(t0, t1, batch); parallel(t0); parallel(t1)",
    "tile(tree, t0, t1, 4); reorder(t0, batch, t1); parallel(t0); vectorReduce(t0, 4); cache(batch, 3)",
    "tile(batch, b0, b1, 5); parallel(b0); parallel(tree); atomicReduce(tree)",
};

TEST(ExportC, EverySchedule) {
  if (!has_compiler()) GTEST_SKIP() << "no C compiler: install gcc or clang";
  NativeLibrary library;
  std::size_t seed = 1;
  for (const std::string& schedule : kSchedules)
    for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast}) {
      ForestWishes wishes;
      wishes.categories = 0;  // export refuses them
      wishes.max_trees = 12;
      wishes.max_depth = 6;
      Dice dice(++seed);
      Model model = random_forest(dice, wishes);
      while (model.trees.size() < 5) model = random_forest(dice, wishes);
      const auto program = program_of(model, schedule, contract);
      if (!program.ok()) continue;  // layouts that would take too much memory for these trees
      const ExportOptions options{kTrees[seed % 2], kThresholds[seed / 2 % 2], {}};
      library.add(*program, options, "seed " + std::to_string(seed) + ", " + schedule,
                  random_rows(dice, model, 70));
    }
  EXPECT_GT(library.size(), 2 * kSchedules.size());
  library.compile_and_compare();
}

TEST(ExportC, RandomForestsAndSchedules) {
  if (!has_compiler()) GTEST_SKIP() << "no C compiler: install gcc or clang";
  NativeLibrary library;
  for (std::size_t seed = 1000; library.size() < 60; ++seed) {
    Dice dice(seed);
    ForestWishes wishes;
    wishes.categories = 0;  // export refuses them
    wishes.max_trees = 10;
    wishes.max_depth = 7;
    const Model model = random_forest(dice, wishes);
    const Schedule schedule = random_schedule(dice, static_cast<std::uint32_t>(model.trees.size()), {30});
    CompileOptions options;
    options.contract = static_cast<Contract>(dice.below(3));
    const auto compiled = compile(model, schedule, options);
    if (!compiled.ok() || model.trees.empty() || compiled->program.code().size() > 2000) continue;
    library.add(compiled->program, {kTrees[dice.below(2)], kThresholds[dice.below(2)], {}},
                "seed " + std::to_string(seed) + "\n" + print(schedule), random_rows(dice, model, 33));
  }
  library.compile_and_compare();
}

TEST(ExportC, RealModels) {
  if (!has_compiler()) GTEST_SKIP() << "no C compiler: install gcc or clang";
  NativeLibrary library;
  for (const support::ModelFile& file : support::model_files(FORESTVM_TEST_DATA, "")) {
    const auto model = load_model(file.path.string());
    ASSERT_TRUE(model.ok());
    const support::Answers answers = support::read_answers(file.path, *model);
    const std::size_t rows = std::min<std::size_t>(answers.count, 100);
    const std::vector<float> some(
        answers.rows.begin(), answers.rows.begin() + static_cast<std::ptrdiff_t>(rows * answers.features));
    for (const ExportOptions::Trees trees : kTrees)
      for (const ExportOptions::Thresholds thresholds : kThresholds) {
        const auto program = program_of(*model, print(automatic_schedule(*model)), Contract::Trainer);
        ASSERT_TRUE(program.ok());
        library.add(*program, {trees, thresholds, {}}, file.name, some);
      }
  }
  library.compile_and_compare();
}

/// A C compiler need not accept more than 127 nested blocks.
TEST(ExportC, WritesTreesOfManyTestsAsTables) {
  NativeLibrary library;
  Dice dice(1);
  for (const auto& [depth, schedule, written] :
       std::vector<std::tuple<std::uint32_t, std::string, std::string>>{
           {100, "", ", as branches. */"},
           {101, "", ", too deep for branches. */"},
           {100, "layout(tree, sparse); tileTree(tree, 4, uniform)", ", as branches. */"},
           {101, "layout(tree, sparse); tileTree(tree, 4, uniform)", ", too deep for branches. */"}}) {
    const Model model = support::model_of({support::chain(3), support::chain(depth)});
    const auto program = program_of(model, schedule, Contract::Trainer);
    ASSERT_TRUE(program.ok()) << program.error().text();
    ExportOptions options;
    options.trees = ExportOptions::Trees::Branches;
    const auto exported = export_c(*program, options);
    ASSERT_TRUE(exported.ok()) << exported.error().text();
    EXPECT_NE(exported->text.find(written), std::string::npos) << depth << ": " << schedule;
    library.add(*program, options, "a chain of " + std::to_string(depth), random_rows(dice, model, 50));
  }
  if (has_compiler()) library.compile_and_compare();
}

TEST(ExportC, ReadsAsReviewed) {
  const auto program =
      program_of(support::small_model("small"), "tile(batch, b0, b1, 8); parallel(b0)", Contract::Trainer);
  ASSERT_TRUE(program.ok());
  const auto exported = export_c(*program, {});
  ASSERT_TRUE(exported.ok());
  support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/tests/export/small.c", exported->text);
}

TEST(ExportC, Refuses) {
  const auto mapped =
      program_of(support::small_model("small"), "gpuDimension(batch, grid.x)", Contract::Trainer);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(export_c(*mapped).error().code, ErrorCode::Refused);
  const auto categories = program_of(support::small_model("categories"), "", Contract::Trainer);
  ASSERT_TRUE(categories.ok());
  EXPECT_EQ(export_c(*categories).error().text(), "categorical splits have no form in C yet");
  const auto program = program_of(support::small_model("small"), "", Contract::Trainer);
  for (const char* prefix : {"", "9lives", "a-b", "int main"}) {
    ExportOptions options;
    options.prefix = prefix;
    EXPECT_EQ(export_c(*program, options).error().code, ErrorCode::Usage) << prefix;
  }
}

}  // namespace
}  // namespace forestvm::test
