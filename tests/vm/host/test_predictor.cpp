// The host backend: equal bits for any batch size, stride, number of threads and of callers; what it refuses;
// what it leaves unchanged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <forestvm/core/interpret.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/internal/reference.hpp>
#include "vm/small_program.hpp"

namespace forestvm::test::test_predictor {
namespace {

constexpr float kSentinel = -12345.678f;

const std::vector<std::string> kSchedules = {
    "",
    "reorder(tree, batch)",
    "tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0)",
    "tile(batch, b0, b1, 64); tile(b1, b2, b3, 8); reorder(b0, tree, b2, b3); parallel(b0); interleave(b3)",
    "tile(batch, b0, b1, 4); interleave(b1); unrollWalk(b1)",
    kRichSchedule,
    "tile(tree, t0, t1, 2); reorder(t0, batch, t1); parallel(t0)",
};

TEST(Predictor, RawScoresAreTheReferences) {
  const Model model = small_forest({.trees = 20, .depth = 5});
  const std::vector<float> rows = small_rows(64, 3);
  const auto reference = reference_predict(model, rows, 64, {});
  ASSERT_TRUE(reference.ok());
  const auto predictor = host_backend(compiled(model, ""));
  const auto context = (*predictor)->make_context();
  std::vector<float> raw(64 * 3);
  ASSERT_TRUE(
      (*predictor)->predict(*context, RowBlock{rows.data(), 64, 3}, OutputKind::Raw, raw.data()).ok());
  for (std::size_t i = 0; i < raw.size(); ++i) EXPECT_EQ(static_cast<double>(raw[i]), reference->raw[i]) << i;
  std::vector<std::int64_t> labels(64);
  ASSERT_TRUE((*predictor)->predict_class(*context, RowBlock{rows.data(), 64, 3}, labels.data()).ok());
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(labels[i], reference->label[i]) << i;
}

TEST(Predictor, SameBitsForAnyThreads) {
  const Model model = small_forest({.trees = 40, .depth = 5});
  const std::vector<float> rows = small_rows(1000, 3);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    const Program program = compiled(model, schedule);
    const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 1000, 3});
    for (const unsigned threads : {0u, 2u, 3u, 4u}) {
      const auto predictor = host_backend(program, {.threads = threads});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      EXPECT_TRUE(answers(**predictor, RowBlock{rows.data(), 1000, 3}) == expected) << threads << " threads";
    }
  }
}

/// Copies belong to iterations: a loop over trees runs the schedule's iterations and is not cut for threads.
TEST(Predictor, LoopsOverManyTreesKeepTheirIterations) {
  const Model model = small_forest({.trees = 100, .depth = 4});
  const std::vector<float> rows = small_rows(50, 3);
  const RowBlock block{rows.data(), 50, 3};
  for (const char* const schedule :
       {"tile(tree, t0, t1, 40); reorder(t0, batch, t1); parallel(t0)",
        "tile(tree, t0, t1, 40); parallel(t0); tile(t1, t2, t3, 35); parallel(t2)"}) {
    const Program program = compiled(model, schedule);
    const Answers expected = answers(**host_backend(program), block);
    for (const unsigned threads : {2u, 3u}) {
      const auto predictor = host_backend(program, {.threads = threads});
      for (int call = 0; call < 3; ++call) EXPECT_TRUE(answers(**predictor, block) == expected) << schedule;
    }
  }
}

/// Returns the program with an instruction inserted before the one at `pc`, in which range operands `from` become `to`.
Result<Program> with_inserted(const Program& program, std::uint32_t pc, const std::string& inserted,
                              const std::string& from, const std::string& to) {
  std::istringstream lines(program.disassemble());
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(';')) continue;
    std::istringstream words(line);
    std::uint32_t number = 0;
    words >> number;
    line.erase(0, static_cast<std::size_t>(words.tellg()));
    if (const std::size_t at = line.find('@'); at != std::string::npos) {
      std::size_t size = 0;
      const unsigned long target = std::stoul(line.substr(at + 1), &size);
      line.replace(at + 1, size, std::to_string(target < pc ? target : target + 1));
    }
    if (number == pc) {
      text += inserted + '\n';
      line.replace(line.find(from), from.size(), to);
    }
    text += line + '\n';
  }
  return assemble(text, program);
}

/// A program may reduce the copies of a loop over no trees: their sum is zero, whatever the memory holds.
TEST(Predictor, NoCopiesReducedInPlaceAreZero) {
  const Model model = small_forest({.trees = 6, .outputs = 1});
  const Program program =
      compiled(model, "tile(tree, t0, t1, 3); reorder(t0, t1, batch); parallel(t0); parallel(t1)");
  const auto code = program.code();
  const auto is_inner = [&](const Inst& inst) { return inst.op == Op::Par && loop_operands(inst).in != 1; };
  const auto inner = std::find_if(code.begin(), code.end(), is_inner);
  ASSERT_NE(inner, code.end());
  ASSERT_TRUE(std::any_of(inner, code.end(), [](const Inst& inst) { return inst.op == Op::ReduceInplace; }));
  const auto edited = with_inserted(program, static_cast<std::uint32_t>(inner - code.begin()),
                                    "slice r4, r2, from 3, to 4294967295", "r2", "r4");
  ASSERT_TRUE(edited.ok()) << edited.error().text();
  const auto all = host_backend(program), none = host_backend(*edited);
  const std::vector<float> rows = small_rows(20, 3);
  const RowBlock block{rows.data(), 20, 3};
  const auto context = (*all)->make_context();  // for both programs: the first leaves its copies in it
  std::vector<float> scores(20);
  const std::vector<float> base(20, static_cast<float>(model.base[0]));
  ASSERT_TRUE((*all)->predict(*context, block, OutputKind::Raw, scores.data()).ok());
  EXPECT_NE(scores, base);
  ASSERT_TRUE((*none)->predict(*context, block, OutputKind::Raw, scores.data()).ok());
  EXPECT_EQ(scores, base);
}

TEST(Predictor, SameBitsForAnyBatch) {
  const Model model = small_forest({.trees = 17, .depth = 4});
  const std::vector<float> rows = small_rows(1000, 3);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    const auto predictor = host_backend(compiled(model, schedule), {.threads = 2});
    const auto context = (*predictor)->make_context();
    const Answers all = answers(**predictor, *context, RowBlock{rows.data(), 1000, 3});
    for (const std::size_t batch : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 63u, 64u, 65u, 999u}) {
      Answers joined;
      for (std::size_t begin = 0; begin < 200; begin += batch) {
        const std::size_t count = std::min(batch, 200 - begin);
        const Answers part = answers(**predictor, *context, RowBlock{rows.data() + 3 * begin, count, 3});
        joined.raw.insert(joined.raw.end(), part.raw.begin(), part.raw.end());
        joined.value.insert(joined.value.end(), part.value.begin(), part.value.end());
        joined.labels.insert(joined.labels.end(), part.labels.begin(), part.labels.end());
        joined.leaves.insert(joined.leaves.end(), part.leaves.begin(), part.leaves.end());
      }
      Answers first = all;
      first.raw.resize(joined.raw.size()), first.value.resize(joined.value.size());
      first.labels.resize(joined.labels.size()), first.leaves.resize(joined.leaves.size());
      EXPECT_TRUE(joined == first) << "batches of " << batch;
    }
  }
}

TEST(Predictor, RowsMayLieApart) {
  const std::vector<float> rows = small_rows(65, 3);
  const Program program = rich_program();
  const auto predictor = host_backend(program);
  const Answers expected = answers(**predictor, RowBlock{rows.data(), 65, 3});
  for (const std::size_t stride : {4u, 17u}) {
    // Exactly the length of the rows, so that a read beyond the last row is found.
    std::vector<float> apart(64 * stride + 3, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < 65; ++i) std::copy_n(&rows[3 * i], 3, &apart[stride * i]);
    EXPECT_TRUE(answers(**predictor, RowBlock{apart.data(), 65, stride}) == expected) << stride;
  }
}

TEST(Predictor, NoRowsNothingWritten) {
  const auto predictor = host_backend(rich_program(), {.threads = 2});
  const auto context = (*predictor)->make_context();
  float out = kSentinel;
  const float row[3] = {};
  EXPECT_TRUE((*predictor)->predict(*context, RowBlock{row, 0, 3}, OutputKind::Value, &out).ok());
  EXPECT_TRUE((*predictor)->predict(*context, RowBlock{nullptr, 0, 3}, OutputKind::Raw, nullptr).ok());
  EXPECT_TRUE((*predictor)->predict_class(*context, RowBlock{}, nullptr).ok());
  EXPECT_EQ(out, kSentinel);
}

/// Neither the buffer's content nor another call's data in the context affects the answer.
TEST(Predictor, DependsOnNothingButItsRows) {
  const std::vector<float> rows = small_rows(50, 3), others = small_rows(200, 3, 9);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    const auto predictor = host_backend(compiled(small_forest({.trees = 9}), schedule));
    const auto fresh = (*predictor)->make_context(), used = (*predictor)->make_context();
    answers(**predictor, *used, RowBlock{others.data(), 200, 3});
    std::vector<float> out(150, kSentinel), again(150, std::numeric_limits<float>::quiet_NaN());
    ASSERT_TRUE(
        (*predictor)->predict(*fresh, RowBlock{rows.data(), 50, 3}, OutputKind::Value, out.data()).ok());
    ASSERT_TRUE(
        (*predictor)->predict(*used, RowBlock{rows.data(), 50, 3}, OutputKind::Value, again.data()).ok());
    EXPECT_EQ(std::memcmp(out.data(), again.data(), out.size() * sizeof(float)), 0);
  }
}

TEST(Predictor, ManyCallersWithContextsOfTheirOwn) {
  const std::vector<float> rows = small_rows(300, 3);
  for (const std::string& schedule : kSchedules)
    for (const unsigned threads : {1u, 3u}) {
      SCOPED_TRACE(schedule + ", " + std::to_string(threads) + " threads");
      const auto predictor =
          host_backend(compiled(small_forest({.trees = 10}), schedule), {.threads = threads});
      const Predictor& shared = **predictor;
      const Answers expected = answers(shared, RowBlock{rows.data(), 300, 3});
      std::vector<Answers> found(8);
      std::vector<std::thread> callers;
      for (Answers& mine : found)
        callers.emplace_back([&] {
          const auto context = shared.make_context();
          for (int i = 0; i < 5; ++i) mine = answers(shared, *context, RowBlock{rows.data(), 300, 3});
        });
      for (std::thread& caller : callers) caller.join();
      for (const Answers& one : found) EXPECT_TRUE(one == expected);
    }
}

/// A batch whose private accumulators exceed the limit of a call runs in passes.
TEST(Predictor, LargeBatchesInPasses) {
  const Model model = small_forest({.trees = 64, .features = 3, .outputs = 64, .depth = 1});
  const std::string schedule = "tile(tree, t0, t1, 1); reorder(t0, batch, t1); parallel(t0)";
  const Program program = compiled(model, schedule);
  const std::uint64_t a_row = std::uint64_t{64} * 64 * sizeof(float);
  const std::size_t count = 3 * kMaxScratchBytes / a_row / 2;
  const std::vector<float> rows = small_rows(count, 3);
  const Answers all = answers(**host_backend(program), RowBlock{rows.data(), count, 3});
  const std::size_t last = count - 10;
  const Answers end = answers(**host_backend(program), RowBlock{rows.data() + 3 * last, 10, 3});
  EXPECT_TRUE(std::equal(end.raw.begin(), end.raw.end(), all.raw.end() - 640));
  EXPECT_EQ(all.labels.back(), end.labels.back());
}

TEST(Predictor, WritesItsBufferAndNoMore) {
  const std::vector<float> rows = small_rows(7, 3);
  Model argmax = small_forest();
  argmax.transform = Transform::Argmax;
  argmax.class_rule = ClassRule::Value;
  for (const Model& model : {small_forest(), argmax}) {
    const Program program = compiled(model, kRichSchedule);
    const auto predictor = host_backend(program);
    const auto context = (*predictor)->make_context();
    for (const OutputKind kind : {OutputKind::Raw, OutputKind::Value}) {
      const std::size_t size = 7 * output_width(program, kind);
      std::vector<float> out(size + 1, kSentinel);
      ASSERT_TRUE((*predictor)->predict(*context, RowBlock{rows.data(), 7, 3}, kind, out.data()).ok());
      EXPECT_EQ(out[size], kSentinel);
      for (std::size_t i = 0; i < size; ++i) EXPECT_NE(out[i], kSentinel);
    }
    std::vector<std::int64_t> labels(8, -77);
    ASSERT_TRUE((*predictor)->predict_class(*context, RowBlock{rows.data(), 7, 3}, labels.data()).ok());
    EXPECT_EQ(labels[7], -77);
    for (int i = 0; i < 7; ++i)
      EXPECT_LT(static_cast<std::uint64_t>(labels[static_cast<std::size_t>(i)]), 3u);
  }
}

TEST(Predictor, ForestsWithoutTreesGiveTheBase) {
  Model model = small_forest();
  model.trees.clear();
  model.round_begins = {0};
  for (const std::string& schedule : {std::string(), std::string("tile(batch, b0, b1, 4); parallel(b0)")}) {
    const auto predictor = host_backend(compiled(model, schedule));
    const auto context = (*predictor)->make_context();
    const auto rows = small_rows(5, 3);
    std::vector<float> raw(15);
    ASSERT_TRUE(
        (*predictor)->predict(*context, RowBlock{rows.data(), 5, 3}, OutputKind::Raw, raw.data()).ok());
    for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(raw[i], 0.125f * static_cast<float>(i % 3));
  }
}

class ContextOfAnother final : public Context {
 public:
  ContextOfAnother() : Context(this) {}
};

TEST(Predictor, RefusesWhatMakesNoSense) {
  const auto predictor = host_backend(rich_program());
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows(6);
  float out[6];
  std::int64_t labels[2];
  const auto expect = [](const Result<void>& done, ErrorCode code, const std::string& words) {
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, code);
    EXPECT_NE(done.error().text().find(words), std::string::npos) << done.error().text();
  };
  const Predictor& p = **predictor;
  using enum OutputKind;
  expect(p.predict(*context, RowBlock{rows.data(), 2, 2}, Raw, out), ErrorCode::Usage,
         "rows of 2 values for a model of 3 features");
  expect(p.predict(*context, RowBlock{rows.data(), 2, 0}, Raw, out), ErrorCode::Usage, "rows of 0 values");
  expect(p.predict(*context, RowBlock{nullptr, 2, 3}, Raw, out), ErrorCode::Usage, "or the output, is null");
  expect(p.predict(*context, RowBlock{rows.data(), 2, 3}, Raw, nullptr), ErrorCode::Usage,
         "or the output, is null");
  expect(p.predict(*context, RowBlock{rows.data(), 2, 3}, Class, out), ErrorCode::Usage, "predict_class");
  expect(p.predict(*context, RowBlock{rows.data(), 2, 3}, static_cast<OutputKind>(12), out), ErrorCode::Usage,
         "");
  expect(p.predict_class(*context, RowBlock{rows.data(), 2, 3}, nullptr), ErrorCode::Usage,
         "or the output, is null");
  expect(p.predict_class(*context, RowBlock{rows.data(), 2, 1}, labels), ErrorCode::Usage,
         "rows of 1 values");
  constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max() / 3;
  for (const std::size_t count : {kMany, kMany + 1, kMany / 4})
    expect(p.predict(*context, RowBlock{rows.data(), count, 3}, Raw, out), ErrorCode::Usage,
           "more than memory holds");
  ContextOfAnother other;
  expect(p.predict(other, RowBlock{rows.data(), 2, 3}, Raw, out), ErrorCode::Usage, "another backend");
  expect(p.predict_class(other, RowBlock{rows.data(), 2, 3}, labels), ErrorCode::Usage, "another backend");
}

TEST(Predictor, RefusesRowsThatWouldBeRounded) {
  Model model = small_forest();
  model.row_type = model.score_type = ScalarType::Float64;
  const auto predictor = host_backend(compiled(model, ""));
  const auto context = (*predictor)->make_context();
  std::vector<std::int64_t> rows(6, 5);
  float out[6];
  const RowBlock block{rows.data(), 2, 3, RowType::Int64};
  const auto predict = [&] { return (*predictor)->predict(*context, block, OutputKind::Raw, out); };
  EXPECT_TRUE(predict().ok());
  rows[4] = INT64_MAX;
  const auto done = predict();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Refused);
  EXPECT_EQ(
      done.error().text(),
      "row 1, column 1: 9223372036854775807 is not a float64 number, and rounded it could go another way in this "
      "model, which compares in float64; if rounding is meant, pass the rows as float64");
}

TEST(Predictor, RefusesRowsThatOverlap) {
  const auto predictor = host_backend(compiled(small_forest(), ""));
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows = small_rows(20, 3);
  float out[30];
  const auto error = [&](std::size_t stride, std::size_t column_stride) {
    const RowBlock block{rows.data(), 10, stride, RowType::Float32, column_stride};
    const auto done = (*predictor)->predict(*context, block, OutputKind::Raw, out);
    return done.ok() ? "none" : done.error().text();
  };
  EXPECT_EQ(error(1, 10), "none");
  EXPECT_EQ(error(5, 2), "none");
  EXPECT_EQ(error(1, 9), "rows 1 numbers apart overlap, if their columns are 9 apart");
  EXPECT_EQ(error(4, 2), "rows 4 numbers apart overlap, if their columns are 2 apart");
  EXPECT_EQ(error(0, 5), "rows 0 numbers apart overlap, if their columns are 5 apart");
  EXPECT_EQ(error(5, 0), "rows 5 numbers apart overlap, if their columns are 0 apart");
  EXPECT_EQ(error(1, SIZE_MAX / 2), "10 rows, 1 numbers apart, are more than memory holds");
}

TEST(Predictor, RefusesTypesThatLoseDigitsOfTheOutput) {
  const auto predictor = host_backend(compiled(small_forest(), ""));
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows(3);
  std::int64_t out[6];
  const auto predict = [&](OutputKind output, ResultType type) {
    return (*predictor)->predict_as(*context, RowBlock{rows.data(), 1, 3}, output, type, out);
  };
  for (const ResultType type :
       {ResultType::Float32, ResultType::Float64, ResultType::Int32, ResultType::Int64})
    for (const OutputKind output :
         {OutputKind::Raw, OutputKind::Value, OutputKind::Class, OutputKind::Leaf}) {
      const bool integers = type == ResultType::Int32 || type == ResultType::Int64;
      const bool scores = output == OutputKind::Raw || output == OutputKind::Value;
      const auto done = predict(output, type);
      EXPECT_EQ(done.ok(), integers != scores);
      if (done.ok()) continue;
      EXPECT_EQ(done.error().code, ErrorCode::Usage);
      EXPECT_EQ(done.error().text(),
                scores ? "raw scores and values are float32 or float64: integers would lose their fractions"
                       : "labels and leaf numbers are int32 or int64: floats would lose digits");
    }
  EXPECT_EQ(predict(static_cast<OutputKind>(12), ResultType::Float32).error().text(),
            "there is no output 12");
}

TEST(Predictor, RefusesLabelsOfAModelWithoutClasses) {
  Model model = small_forest();
  model.class_rule = ClassRule::None;
  model.transform = Transform::Identity;
  model.objective = "reg:squarederror";
  const auto predictor = host_backend(compiled(model, ""));
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows(3);
  std::int64_t labels[3] = {-1, -1, -1};
  const auto done = (*predictor)->predict_class(*context, RowBlock{rows.data(), 1, 3}, labels);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Refused);
  EXPECT_NE(done.error().text().find("reg:squarederror"), std::string::npos) << done.error().text();
  EXPECT_EQ(labels[0], -1);
  EXPECT_EQ(output_width((*predictor)->program(), OutputKind::Class), 0u);
}

/// A context belongs to a thread, not to a program: one context serves several programs.
TEST(Predictor, AContextServesSeveralPrograms) {
  const auto small = host_backend(compiled(small_forest({.outputs = 2}), ""));
  const auto large = host_backend(rich_program());
  const auto context = (*small)->make_context();
  const std::vector<float> rows = small_rows(20, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(answers(**small, *context, RowBlock{rows.data(), 20, 3}) ==
                answers(**small, RowBlock{rows.data(), 20, 3}));
    EXPECT_TRUE(answers(**large, *context, RowBlock{rows.data(), 20, 3}) ==
                answers(**large, RowBlock{rows.data(), 20, 3}));
  }
}

TEST(Backend, TargetsByName) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(20, 3);
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 20, 3});
  ASSERT_FALSE(host_targets().empty());
  for (const std::string_view name : host_targets()) {
    const auto predictor = host_backend(program, {.target = std::string(name)});
    if (!predictor.ok()) {
      EXPECT_EQ(predictor.error().code, ErrorCode::Environment) << predictor.error().text();
      continue;
    }
    EXPECT_NE((*predictor)->describe().find(name), std::string::npos);
    EXPECT_TRUE(answers(**predictor, RowBlock{rows.data(), 20, 3}) == expected) << name;
  }
  for (const char* name : {"", "z80", "Baseline", "auto "}) {
    const auto unknown = host_backend(program, {.target = name});
    ASSERT_FALSE(unknown.ok()) << name;
    EXPECT_EQ(unknown.error().code, ErrorCode::Usage);
    EXPECT_NE(unknown.error().text().find("baseline"), std::string::npos) << unknown.error().text();
  }
}

/// Sums of multiples of 1/1024 are equal in any order. The inner parallel loop covers a part of the rows: in
/// the outer loop's copies, the other rows must be zero, not what the memory held before.
TEST(Backend, CopiesOfAPartOfTheRows) {
  const Model model = small_forest({.trees = 12});
  const std::vector<float> rows = small_rows(40, 3);
  const auto plain = host_backend(compiled(model, ""));
  const auto parts =
      host_backend(compiled(model,
                            "tile(tree, t0, t1, 3); split(batch, ba, bb, 8); tile(t0, t2, t3, 2); "
                            "reorder(bb.t2, bb); parallel(t2); parallel(t3)"));
  const auto context = (*parts)->make_context();
  for (const std::size_t count : {40u, 1u, 8u, 9u, 40u})
    EXPECT_TRUE(answers(**parts, *context, RowBlock{rows.data(), count, 3}) ==
                answers(**plain, RowBlock{rows.data(), count, 3}))
        << count << " rows";
}

TEST(Backend, PredictorsOutliveTheProgramTheyWereGiven) {
  std::unique_ptr<Predictor> predictor;
  Answers expected;
  const std::vector<float> rows = small_rows(20, 3);
  {
    const Program program = rich_program();
    predictor = std::move(host_backend(program)).value();
    expected = answers(*predictor, RowBlock{rows.data(), 20, 3});
  }
  EXPECT_TRUE(answers(*predictor, RowBlock{rows.data(), 20, 3}) == expected);
}

}  // namespace
}  // namespace forestvm::test::test_predictor
