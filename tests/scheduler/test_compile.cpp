// compile() as a whole: stages and passes, contracts and warnings, reproducible results, and schedules that
// try to make the compiler run out of stack, memory or time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/named_schedules.hpp>

#include "support/small_models.hpp"

namespace forestvm::test::test_compile {
namespace {

using support::chain;
using support::leaf;
using support::model_of;
using support::small_model;
using support::split;

Schedule parsed(std::string_view text) {
  Result<Schedule> schedule = parse_schedule(text);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().text());
  return schedule.ok() ? std::move(schedule).value() : Schedule{};
}

Result<Compiled> compiled(std::string_view text, Contract contract = Contract::Trainer, bool strict = false) {
  CompileOptions options;
  options.contract = contract;
  options.strict = strict;
  return compile(small_model("small"), parsed(text), options);
}

std::string error_of(const Result<Compiled>& result) {
  return result.ok() ? "it compiles" : result.error().text();
}

std::string shown(std::string_view schedule) {
  std::string text;
  CompileOptions options;
  options.on_stage = [&](Stage stage, const std::function<std::string()>& print) {
    text += std::string(kStageNames[static_cast<std::size_t>(stage)]) + "\n" + print();
  };
  const Result<Compiled> result = compile(small_model("two_outputs"), parsed(schedule), options);
  EXPECT_TRUE(result.ok()) << error_of(result);
  return text;
}

TEST(Compile, ShowsEveryStageOnceInOrder) {
  std::vector<Stage> stages;
  CompileOptions options;
  options.on_stage = [&](Stage stage, const std::function<std::string()>& print) {
    stages.push_back(stage);
    EXPECT_FALSE(print().empty());
  };
  ASSERT_TRUE(compile(small_model("small"), {}, options).ok());
  EXPECT_EQ(stages,
            (std::vector<Stage>{Stage::Model, Stage::Tiled, Stage::Loops, Stage::Legalized, Stage::Program}));
}

TEST(Compile, TimesEveryPass) {
  const auto result = compiled("");
  ASSERT_TRUE(result.ok());
  std::vector<std::string_view> names;
  for (const PassTime& pass : result->passes) {
    names.push_back(pass.pass);
    EXPECT_GE(pass.seconds, 0.0) << pass.pass;
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{
                       "cut-plans",      "fingerprint",        "check-support",       "normalize",
                       "explain-trees",  "compare-background", "attribute-leaves",    "keep-samples",
                       "number-vectors", "number-functions",   "apply-schedule",      "order-trees",
                       "check-mapping",  "make-walks",         "tile-forest",         "rank-thresholds",
                       "make-loops",     "choose-sums",        "legalize-reductions", "emit-program"}));
}

TEST(Compile, TheSameTwice) {
  for (const NamedSchedule& named : named_schedules()) {
    const std::string text = print(*schedule_by_name(small_model("small"), named.name));
    const auto a = compiled(text), b = compiled(text);
    EXPECT_EQ(error_of(a), error_of(b)) << named.name;
    EXPECT_EQ(shown(text), shown(text)) << named.name;
    ASSERT_TRUE(a.ok() && b.ok()) << named.name << ": " << error_of(a);
    EXPECT_TRUE(std::ranges::equal(a->program.image(), b->program.image())) << named.name;
  }
}

TEST(Compile, TheProgramRemembersItsSchedule) {
  const auto result = compiled("tile(batch,b0,b1,64);parallel( b0 ) # rows");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->program.text(StringId::Schedule), "tile(batch, b0, b1, 64)\nparallel(b0)\n");
}

constexpr const char* kParallelTrees = "tile(tree, t0, t1, 2)\n  parallel(t0)";

TEST(Contracts, TheTrainersWarnsOfParallelTrees) {
  const auto result = compiled(kParallelTrees);
  ASSERT_TRUE(result.ok()) << error_of(result);
  ASSERT_EQ(result->warnings.size(), 1u);
  EXPECT_EQ(result->warnings[0],
            "line 2, column 3: parallel(t0): trees in parallel are summed in another order than the "
            "trainer's, so raw scores may differ from the trainer's in the last bits");
  EXPECT_EQ(result->program.meta().sums_in_model_order, 0);
}

TEST(Contracts, StrictRefusesThem) {
  EXPECT_EQ(error_of(compiled(kParallelTrees, Contract::Trainer, true)).substr(0, 34),
            "line 2, column 3: parallel(t0): tr");
  EXPECT_TRUE(compiled(kParallelTrees, Contract::Fast, true).ok());
}

/// The accumulator of leaves takes the place of the warning, or of the refusal.
TEST(Contracts, LeavesThatAreKeptAreAddedInTheModelsOrder) {
  for (const Contract contract : {Contract::Trainer, Contract::Fast}) {
    const auto result = compiled("parallel(tree); accumulate(leaves)", contract, true);
    ASSERT_TRUE(result.ok()) << error_of(result);
    EXPECT_TRUE(result->warnings.empty());
    EXPECT_EQ(result->program.accumulators()[1].kind, AccumulatorKind::PerTree);
    EXPECT_EQ(result->program.meta().sums_in_model_order, 1);
  }
}

TEST(Contracts, LeavesAreKeptUnderTheReproducibleOneOnlyIfTheyHaveNoExactSums) {
  EXPECT_EQ(
      error_of(compiled("accumulate(leaves)", Contract::Reproducible)),
      "line 1, column 1: accumulate(leaves): contract reproducible adds this model's leaves exactly, which gives "
      "other bits than adding them in the model's order");
  CompileOptions options;
  options.contract = Contract::Reproducible;
  const auto far = compile(small_model("far"), parsed("accumulate(leaves)"), options);
  ASSERT_TRUE(far.ok()) << error_of(far);
  EXPECT_EQ(far->program.accumulators()[1].kind, AccumulatorKind::PerTree);
}

TEST(Contracts, LeavesThatAreKeptHaveNoReduction) {
  const std::string loops = "tile(tree, t0, t1, 2); parallel(t0); accumulate(leaves); ";
  for (const char* reduction : {"atomicReduce(t0)", "vectorReduce(t0, 4)"})
    EXPECT_EQ(error_of(compiled(loops + reduction)),
              "line 1, column 58: " + std::string(reduction) +
                  ": accumulate(leaves) keeps every tree's leaf: there are no private sums to reduce");
}

TEST(Contracts, TheReproducibleOneSumsThemExactly) {
  for (const bool strict : {false, true}) {
    const auto result = compiled(kParallelTrees, Contract::Reproducible, strict);
    ASSERT_TRUE(result.ok()) << error_of(result);
    EXPECT_TRUE(result->warnings.empty());
    EXPECT_EQ(result->program.accumulators()[1].kind, AccumulatorKind::Exact64);
    EXPECT_EQ(result->program.meta().sum_unit, reproducible_sums(small_model("small")).unit);
  }
}

TEST(Contracts, TheFormOfExactSumsIsTheModels) {
  const auto form = [](const char* model) { return reproducible_sums(small_model(model)); };
  EXPECT_EQ(form("small").kind, AccumulatorKind::Exact64);
  EXPECT_EQ(form("small").unit, -3);  // leaves of 0.125
  EXPECT_EQ(form("none").unit, -1);   // the base, 0.5
  EXPECT_EQ(form("fine").kind, AccumulatorKind::Exact128);
  EXPECT_EQ(form("fine").unit, -40);
  EXPECT_EQ(form("far").kind, AccumulatorKind::PerTree);
  // 2^62 and a little fits into 64 bits with its sign, 2^63 does not.
  const auto of_leaves = [](double large) {
    Model model = model_of({leaf(large), leaf(1)});
    model.base = {0};
    return reproducible_sums(model).kind;
  };
  EXPECT_EQ(of_leaves(0x1p62), AccumulatorKind::Exact64);
  EXPECT_EQ(of_leaves(0x1p63), AccumulatorKind::Exact128);
  EXPECT_EQ(of_leaves(0x1p126), AccumulatorKind::Exact128);
  EXPECT_EQ(of_leaves(0x1p127), AccumulatorKind::PerTree);
  // No integer stands for the sum of a row without an answer.
  Model lacking = model_of({leaf(std::nan("")), leaf(1)});
  lacking.base = {0};
  lacking.may_lack_answers = true;
  EXPECT_EQ(reproducible_sums(lacking).kind, AccumulatorKind::PerTree);
}

TEST(Contracts, TheFastOneSaysNothing) {
  const auto result = compiled(kParallelTrees, Contract::Fast);
  ASSERT_TRUE(result.ok()) << error_of(result);
  EXPECT_TRUE(result->warnings.empty());
  EXPECT_EQ(result->program.meta().sums_in_model_order, 0);
}

/// The sums are the scores, in float32; nothing converts them to float64.
TEST(Contracts, TheFastOneKeepsFloat32SumsOfFloat64Models) {
  CompileOptions options;
  options.contract = Contract::Fast;
  for (const char* text : {"", "accumulate(f32)", kParallelTrees}) {
    const auto result = compile(small_model("float64"), parsed(text), options);
    ASSERT_TRUE(result.ok()) << error_of(result);
    for (const AccumulatorDesc& sums : result->program.accumulators())
      EXPECT_EQ(sums.kind, AccumulatorKind::F32) << text;
    for (const Inst& inst : result->program.code()) EXPECT_NE(inst.op, Op::Round) << text;
  }
}

TEST(Contracts, ParallelRowsAreFineEverywhere) {
  for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast}) {
    const auto result = compiled("tile(batch, b0, b1, 8); parallel(b0); parallel(b1)", contract, true);
    ASSERT_TRUE(result.ok()) << error_of(result);
    EXPECT_TRUE(result->warnings.empty());
    EXPECT_EQ(result->program.meta().sums_in_model_order, contract == Contract::Reproducible ? 0 : 1);
  }
}

TEST(Contracts, ASingleParallelIterationChangesNothing) {
  const auto result = compiled("tile(tree, t0, t1, N_TREES); parallel(t0)", Contract::Trainer, true);
  ASSERT_TRUE(result.ok()) << error_of(result);
  EXPECT_EQ(result->program.meta().sums_in_model_order, 1);
}

TEST(Contracts, CopiesOfALoopWarnOnce) {
  const auto result = compiled("split(batch, ba, bb, 8); split(bb, bc, bd, 8); parallel(tree)");
  ASSERT_TRUE(result.ok()) << error_of(result);
  EXPECT_EQ(result->warnings.size(), 1u);
}

TEST(Refusals, ADirectiveBuiltInCppIsNamedByItsNumber) {
  const auto result = compile(small_model("small"), Schedule().parallel("batch").parallel("rows"));
  EXPECT_EQ(error_of(result), "directive 2: parallel(rows): there is no loop 'rows'");
  const auto unreadable = compile(small_model("small"), Schedule().parallel("a b"));
  EXPECT_FALSE(unreadable.ok());
}

/// Returns a schedule that nests `levels` tiles.
std::string tower(int levels) {
  std::string text, inner = "batch";
  for (int i = 0; i < levels; ++i) {
    const std::string n = std::to_string(i);
    text += "tile(" + inner + ", a" + n + ", b" + n + ", 2)\n";
    inner = "b" + n;
  }
  return text;
}

TEST(Refusals, ManyNestedLoopsAreRefusedNotOverflowed) {
  for (const int levels : {20, 200, 2'000, 20'000}) {
    const auto result = compiled(tower(levels));
    EXPECT_TRUE(result.ok() || result.error().code == ErrorCode::Refused) << levels;
  }
  EXPECT_FALSE(compiled(tower(20'000)).ok());
}

TEST(Refusals, SplitsThatMultiplyAreRefusedInTime) {
  std::string text = tower(24);
  for (int i = 23; i >= 0; --i) {
    const std::string n = std::to_string(i);
    text += "split(a" + n + ", c" + n + ", d" + n + ", 1)\n";
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto result = compiled(text);
  EXPECT_FALSE(result.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Refusals, ManyPartsInARowAreRefusedOrRun) {
  std::string text, rest = "tree";
  for (int i = 0; i < 3'000; ++i) {
    const std::string n = std::to_string(i);
    text += "split(" + rest + ", a" + n + ", b" + n + ", 1)\n";
    rest = "b" + n;
  }
  const auto result = compiled(text);
  EXPECT_TRUE(result.ok() || result.error().code == ErrorCode::Refused);
}

TEST(Refusals, WhatNoWalkerRunsYetIsRefusedByTreeAndNode) {
  const auto refusal = [](auto change) {
    Model model = small_model("small");
    change(model);
    return error_of(compile(model, {}));
  };
  EXPECT_EQ(
      refusal([](Model& m) { m.trees[5].linear_leaves.resize(1); }),
      "model: linear leaves of values that are not compared as LightGBM compares them: not lowered yet");
  const auto linear = [&](auto change) {
    return refusal([&](Model& m) {
      support::make_linear(m);
      change(m);
    });
  };
  EXPECT_EQ(linear([](Model&) {}), "it compiles");
  EXPECT_EQ(
      linear([](Model& m) { m.tiny_is_zero = false; }),
      "model: linear leaves of values that are not compared as LightGBM compares them: not lowered yet");
  EXPECT_EQ(linear([](Model& m) { m.trees[5].weight = 0.5f; }),
            "tree 5, node 0: weights of trees beside linear leaves are not lowered yet");
  EXPECT_EQ(linear([](Model& m) { m.trees[5].leaf_width = 2; }),
            "tree 5, node 0: vector leaves beside linear leaves are not lowered yet");
  const auto zero_is_missing = [](double threshold, bool left) {
    return [=](Model& m) {
      Node& node = m.trees[3].nodes[2];
      node.missing = Missing::Zero;
      node.threshold = threshold;
      node.missing_left = left;
    };
  };
  EXPECT_EQ(refusal(zero_is_missing(-1, true)),
            "tree 3, node 2: zero is missing here, between numbers that go the other way, but a number in "
            "other splits of feature 1: not lowered yet");
  EXPECT_EQ(refusal(zero_is_missing(1, false)), refusal(zero_is_missing(-1, true)));
  EXPECT_EQ(refusal(zero_is_missing(1, true)), "it compiles");
  EXPECT_EQ(refusal(zero_is_missing(-1, false)), "it compiles");
}

/// Trees with categorical splits are walked by rank codes or refused.
TEST(Compile, CategoricalSplitsAreWalkedByCodes) {
  const Model model = small_model("categories");
  for (const char* text :
       {"", "encode(auto)", "encode(u8)", "layout(tree, sparse)", "layout(tree, tables)",
        "layout(tree, array)", "layout(tree, array4); unrollWalk(tree)",
        "tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0)", "unrollWalk(tree)"}) {
    SCOPED_TRACE(text);
    const auto result = compile(model, *parse_schedule(text));
    ASSERT_TRUE(result.ok()) << error_of(result);
    EXPECT_EQ(result->program.meta().category_splits, 3u);
    EXPECT_EQ(result->program.category_columns().size(), 2u);
    const auto code = result->program.code();
    EXPECT_TRUE(std::any_of(code.begin(), code.end(), [](const Inst& i) { return i.op == Op::Encode; }));
  }
  const auto refusal = [&](const char* text) { return error_of(compile(model, *parse_schedule(text))); };
  EXPECT_EQ(refusal("encode(none)"),
            "line 1, column 1: encode(none): the trees have categorical splits, which are tests of rank "
            "codes: use u8 or auto");
  EXPECT_EQ(refusal("layout(tree, reorg)"),
            "line 1, column 1: layout(tree, reorg): the trees have categorical splits, which are tests of "
            "rank codes; this layout reads values: use tables, or array or sparse without tiles");
  EXPECT_EQ(refusal("tileTree(tree, 4, uniform)"),
            "line 1, column 1: tileTree(tree, 4, uniform): the trees have categorical splits, which are "
            "tests of rank codes: there are no tiles of such tests");
}

/// A model whose trees are too large for tables is walked node by node, or by tables at the top of trees.
TEST(Compile, LargeTreesWithCategoricalSplitsAreWalkedByCodes) {
  Model model = model_of({chain(300)});
  model.trees[0].category_sets = {{{1, 5}, false}};
  model.trees[0].nodes[0].kind = NodeKind::Category;
  const auto layouts_of = [&](const Schedule& schedule) {
    const auto result = compile(model, schedule);
    std::vector<Layout> layouts;
    if (!result) return ADD_FAILURE() << error_of(result), layouts;
    for (const GroupDesc& group : result->program.groups()) layouts.push_back(group.layout);
    return layouts;
  };
  EXPECT_EQ(layouts_of({}), std::vector{Layout::Sparse4});
  EXPECT_EQ(layouts_of(automatic_schedule(model)), (std::vector{Layout::Sparse4, Layout::TopTables}));
}

/// Plans for one number of rows are for narrower and narrower targets, and the last of them is for all others.
TEST(Compile, RefusesPlansThatLeaveTargetsOut) {
  const auto why = [](const std::string& schedule) {
    const auto result = compiled(schedule);
    return result ? std::string() : result.error().text();
  };
  EXPECT_EQ(why("plan(64, avx512); plan(64, avx2); plan(64); plan(BATCH)"), "");
  EXPECT_NE(why("plan(64, avx512); plan(BATCH)")
                .find("no plan is for these rows on CPUs without avx512: plan(64) must follow"),
            std::string::npos);
  EXPECT_NE(why("plan(8); plan(BATCH, avx2)")
                .find("no plan is for these rows on CPUs without avx2: plan(BATCH) must follow"),
            std::string::npos);
  for (const char* order : {"plan(64, avx2); plan(64, avx512); plan(64); plan(BATCH)",
                            "plan(64, avx2); plan(64, avx2); plan(64); plan(BATCH)"})
    EXPECT_NE(why(order).find("must be for avx512fp16, avx512, avx2 and others, in this order"),
              std::string::npos)
        << order;
  EXPECT_NE(why("plan(64); plan(64, avx512); plan(BATCH)").find("more and more rows"), std::string::npos);
  EXPECT_NE(why("plan(BATCH, avx512); gpuDimension(batch, grid.x); plan(BATCH); gpuDimension(batch, grid.x)")
                .find("a GPU has no CPU target"),
            std::string::npos);
  EXPECT_NE(parse_schedule("plan(64, sse9); plan(BATCH)")
                .error()
                .text()
                .find("expected one of avx512fp16, avx512, avx2"),
            std::string::npos);
}

/// Five or more trees of a row are rounded up to a power of two, so that they fill vectors but for some lanes.
TEST(Compile, InterleavedTreesAreRoundedUpFromFiveOn) {
  const auto lockstep = [](unsigned trees, const char* schedule) {
    const auto result =
        compile(model_of(std::vector<Tree>(trees, split(0, 0, leaf(1), leaf(2)))), parsed(schedule));
    EXPECT_TRUE(result.ok()) << error_of(result);
    return unsigned{result->program.walkers()[0].interleaved_trees};
  };
  const std::pair<unsigned, unsigned> expected[] = {{1, 1}, {2, 2},  {3, 2},   {4, 4},     {5, 8},
                                                    {8, 8}, {9, 16}, {26, 32}, {128, 128}, {129, 128}};
  for (const auto& [trees, together] : expected) {
    EXPECT_EQ(lockstep(trees, "interleave(tree)"), together) << trees;
    EXPECT_EQ(lockstep(trees, "tile(batch, b0, b1, 1); interleave(tree)"), together) << trees;
  }
  EXPECT_EQ(lockstep(6, "tile(batch, b0, b1, 2); reorder(b0, b1, tree); interleave(tree); interleave(b1)"),
            4u);
}

/// Trees that two plans lay out alike lie in the program once.
TEST(Compile, PlansShareTrees) {
  for (const std::string directives : {"layout(tree, sparse)", "tileTree(tree, 4, uniform)",
                                       "tileTree(tree, 8, uniform); layout(tree, reorg)"}) {
    const auto plain = compiled(directives);
    const auto result = compiled("plan(4); " + directives + "; interleave(tree); plan(BATCH); " + directives);
    ASSERT_TRUE(plain.ok() && result.ok()) << error_of(plain) << error_of(result);
    EXPECT_EQ(result->program.groups().size(), 1u) << directives;
    EXPECT_TRUE(std::ranges::equal(result->program.nodes(), plain->program.nodes())) << directives;
  }
}

TEST(Compile, PlansHaveTilesOfTheirOwn) {
  const auto result = compiled(
      "plan(8); tileTree(tree, 2, uniform); layout(tree, sparse);"
      "plan(BATCH); tileTree(tree, 4, uniform); layout(tree, sparse)");
  ASSERT_TRUE(result.ok()) << error_of(result);
  ASSERT_EQ(result->program.groups().size(), 2u);
  EXPECT_EQ(result->program.groups()[0].tile_size, 2);
  EXPECT_EQ(result->program.groups()[1].tile_size, 4);
}

/// A set of bits with a few codes far apart would take words for all codes between them, so most sets become lists.
TEST(Compile, SetsOfCategoriesFarApartTakeAsMuchMemoryAsTheirCodes) {
  Tree tree = leaf(1);
  for (std::uint32_t i = 0; i < 40; ++i) tree = split(0, 0, tree, leaf(2));
  for (Node& node : tree.nodes) {
    if (node.kind != NodeKind::Less) continue;
    node.kind = NodeKind::Category;
    node.payload = static_cast<std::uint32_t>(tree.category_sets.size());
    tree.category_sets.push_back({{node.payload, kMaxCategories - 1}, false});
  }
  const auto result = compile(model_of({tree}), {});
  ASSERT_TRUE(result.ok()) << error_of(result);
  const auto columns = result->program.category_columns();
  ASSERT_EQ(columns.size(), 40u);
  EXPECT_EQ(std::count_if(columns.begin(), columns.end(), [](const auto& c) { return c.listed != 0; }), 38);
  EXPECT_EQ(columns.back().word_count, 2u);
  EXPECT_LE(result->program.image().size(), std::size_t{5} << 20);
}

/// Every field of a model that affects predictions affects the program's fingerprint.
TEST(Compile, TheFingerprintIsOfAllThatDecidesAPrediction) {
  const auto fingerprint = [](auto change) {
    Model model = small_model("small");
    change(model);
    const auto result = compile(model, {});
    EXPECT_TRUE(result.ok()) << error_of(result);
    return result->program.meta().fingerprint;
  };
  const auto categorical = [](const CategorySet& set) {
    return [set](Model& m) {
      m.trees[0].nodes[0].kind = NodeKind::Category;
      m.trees[0].category_sets = {set};
    };
  };
  const std::vector<std::uint64_t> all = {
      fingerprint([](Model&) {}),
      fingerprint([](Model& m) { m.num_features = 5; }),
      fingerprint([](Model& m) {
        m.num_outputs = 2;
        m.base.push_back(0);
        m.transform = Transform::Identity;
        m.class_rule = ClassRule::None;
      }),
      fingerprint([](Model& m) {
        m.num_outputs = 2;
        m.base.push_back(0);
        m.transform = Transform::Identity;
        m.class_rule = ClassRule::None;
        m.trees[3].output = 1;
      }),
      fingerprint([](Model& m) { m.transform = Transform::Identity; }),
      fingerprint([](Model& m) { m.class_rule = ClassRule::None; }),
      fingerprint([](Model& m) { m.base = {0.25}; }),
      fingerprint([](Model& m) { m.base_last = true; }),
      fingerprint([](Model& m) { m.trees.pop_back(); }),
      fingerprint([](Model& m) { std::swap(m.trees[0], m.trees[1]); }),
      fingerprint([](Model& m) { m.trees[0].weight = 0.5f; }),
      fingerprint([](Model& m) { m.trees[0].nodes[1].value = 0.375; }),
      fingerprint([](Model& m) { m.trees[0].nodes[0].threshold = 0.75; }),
      fingerprint([](Model& m) { m.trees[0].nodes[0].feature = 3; }),
      fingerprint([](Model& m) { m.trees[0].nodes[0].missing_left = false; }),
      fingerprint([](Model& m) { std::swap(m.trees[0].nodes[0].left, m.trees[0].nodes[0].right); }),
      fingerprint([](Model& m) { m.row_type = m.score_type = ScalarType::Float64; }),
      fingerprint([](Model& m) { m.tiny_is_zero = true; }),
      fingerprint([](Model& m) { m.whole_features = {0}; }),
      fingerprint([](Model& m) { m.whole_features = {1}; }),
      fingerprint([](Model& m) { m.slope = 2; }),
      fingerprint([](Model& m) { m.averaged = true; }),
      fingerprint([](Model& m) { m.trees[0].first_leaf = 1; }),
      fingerprint([](Model& m) { m.trees[0].nodes[0].missing = Missing::None; }),
      fingerprint([](Model& m) { m.trees[0].nodes[0].kind = NodeKind::LessEqual; }),
      fingerprint(categorical({{1, 2}, false})),
      fingerprint(categorical({{1, 3}, false})),
      fingerprint(categorical({{1, 2}, true})),
      fingerprint(categorical({{1, 2}, false, CategoryRule::AboveMinusOne})),
      fingerprint(categorical({{1}, false, CategoryRule::AboveMinusOne})),
  };
  EXPECT_EQ(std::set<std::uint64_t>(all.begin(), all.end()).size(), all.size());
}

TEST(Compile, ArchitecturePageNamesEachPass) {
  std::ifstream file(FORESTVM_SOURCE_DIR "/docs/architecture.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto result = compiled("");
  ASSERT_TRUE(result.ok());
  for (const PassTime& pass : result->passes)
    EXPECT_NE(page.find("`" + std::string(pass.pass) + "`"), std::string::npos) << pass.pass;
}

}  // namespace
}  // namespace forestvm::test::test_compile
