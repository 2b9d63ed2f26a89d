// Tests the C ABI: every function for programs, contexts and dense rows. Predictions equal the host backend's. The test
// links the shared library and, for comparison, its own copy of the VM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api {
namespace {

TEST(CApi, SaysItsVersion) { EXPECT_STREQ(fvm_version(), FORESTVM_VERSION); }

TEST_F(CApiFile, OpensFromAPath) {
  fvm_program* opened = nullptr;
  ASSERT_EQ(fvm_program_open(path_.c_str(), nullptr, &opened), FVM_OK) << fvm_last_error();
  const OpenProgram program(opened);
  const OpenContext context = context_of(program);
  const std::vector<float> rows = small_rows(50, 3);
  const RowBlock block{rows.data(), 50, 3};
  EXPECT_EQ(c_answers(program, context.get(), c_rows(block)), answers(**host_backend(rich_program()), block));
}

TEST(CApi, OpensFromMemoryOfAnyAlignment) {
  const Program program = rich_program();
  const auto image = program.image();
  const std::vector<float> rows = small_rows(20, 3);
  const RowBlock block{rows.data(), 20, 3};
  const Answers expected = answers(**host_backend(program), block);
  for (std::size_t offset = 0; offset < 9; ++offset) {
    std::vector<std::byte> copy(image.size() + offset);
    std::memcpy(copy.data() + offset, image.data(), image.size());
    fvm_program* raw = nullptr;
    ASSERT_EQ(fvm_program_open_memory(copy.data() + offset, image.size(), nullptr, &raw), FVM_OK)
        << fvm_last_error();
    const OpenProgram opened(raw);
    std::fill(copy.begin(), copy.end(), std::byte{0xff});
    EXPECT_EQ(c_answers(opened, context_of(opened).get(), c_rows(block)), expected);
  }
}

TEST(CApi, SaysTheShape) {
  const OpenProgram program =
      open_memory(compiled(small_forest({.trees = 7, .features = 5, .outputs = 3}), ""));
  std::uint32_t features = 0, outputs = 0, trees = 0;
  EXPECT_EQ(fvm_program_shape(program.get(), &features, &outputs, &trees), FVM_OK);
  EXPECT_EQ(features, 5u);
  EXPECT_EQ(outputs, 3u);
  EXPECT_EQ(trees, 7u);
  EXPECT_EQ(fvm_program_shape(program.get(), nullptr, nullptr, nullptr), FVM_OK);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_RAW), 3u);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_VALUE), 3u);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_CLASS), 1u);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_LEAF), 7u);
  std::uint32_t width = 0;
  expect_failure(fvm_program_width(program.get(), 99, &width), FVM_USAGE, "there is no output 99");
  expect_failure(fvm_program_width(program.get(), -1, &width), FVM_USAGE, "there is no output -1");
  expect_failure(fvm_program_width(program.get(), FVM_OUTPUT_RAW, nullptr), FVM_USAGE,
                 "the pointer to the width");
}

TEST(CApi, PredictsWhatTheBackendPredicts) {
  const std::vector<float> rows = small_rows(200, 5);
  for (const Program& program : rich_programs()) {
    const auto predictor = host_backend(program);
    for (const std::uint32_t threads : {1u, 2u}) {
      fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
      options.threads = threads;
      const OpenProgram opened = open_memory(program, &options);
      const OpenContext context = context_of(opened);
      for (const RowBlock& block : {RowBlock{rows.data(), 1, 3}, RowBlock{rows.data(), 200, 5},
                                    RowBlock{rows.data() + 1, 199, 5}, RowBlock{rows.data(), 333, 3}})
        EXPECT_EQ(c_answers(opened, context.get(), c_rows(block)), answers(**predictor, block))
            << block.count;
    }
  }
}

TEST(CApi, PredictsFloat32AsTheLongCallDoes) {
  const std::vector<float> rows = small_rows(200, 5);
  for (const Program& program : rich_programs()) {
    const Opened opened(program);
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
      const std::size_t width = width_of(opened.open(), output);
      std::vector<float> found(200 * width);
      EXPECT_EQ(fvm_predict_f32(opened.context(), rows.data(), 200, 5, output, found.data(), found.size()),
                FVM_OK)
          << fvm_last_error();
      const auto expected =
          predicted<float>(opened.context(), c_rows(RowBlock{rows.data(), 200, 5}), output, width);
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);  // NaN, too
      std::vector<float> again(200 * width);
      for (int call = 0; call < 3; ++call) {  // the second and third are known from the first
        const auto read = [&](std::size_t capacity) {
          return fvm_predict_f32(opened.context(), rows.data(), 100, 5, output, again.data(), capacity);
        };
        EXPECT_EQ(read(again.size()), FVM_OK) << fvm_last_error();
        EXPECT_EQ(std::memcmp(again.data(), expected.data(), 100 * width * sizeof(float)), 0);
        expect_usage(read(100 * width - 1), "the output has room for");
      }
    }
  }
}

TEST(CApi, PredictsWithOptions) {
  const std::vector<float> rows = small_rows(20, 3);
  const RowBlock block{rows.data(), 20, 3};
  const fvm_rows c = c_rows(block);
  Model model = small_forest();
  model.row_type = model.score_type = ScalarType::Float64;
  model.takes_margins = true;
  model.early_stop = EarlyStopRule::Lead;
  CompileOptions keeping;
  keeping.keeps_leaves = true;
  const Program program = compile(model, *parse_schedule(""), keeping)->program;
  const auto predictor = host_backend(program);
  const auto memory = (*predictor)->make_context();
  const Opened opened(program);
  const std::vector<double> margins(60, 0.125);
  std::vector<double> expected(60), found(60);
  const auto predict = [&](const fvm_call_options* options) {
    return fvm_predict_with(opened.context(), &c, FVM_OUTPUT_RAW, FVM_TYPE_FLOAT64, options, found.data(),
                            found.size());
  };
  const auto expect = [&](const CallOptions& options) {
    ASSERT_TRUE(
        (*predictor)
            ->predict_with(*memory, block, OutputKind::Raw, ResultType::Float64, options, expected.data())
            .ok());
    EXPECT_EQ(found, expected);
  };
  EXPECT_EQ(predict(nullptr), FVM_OK) << fvm_last_error();
  expect({});
  fvm_call_options options = FVM_CALL_OPTIONS_INIT;
  EXPECT_EQ(predict(&options), FVM_OK) << fvm_last_error();
  expect({});
  options.base_margin = margins.data();
  options.base_margin_rows = 20;
  options.base_margin_outputs = 3;
  options.base_margin_type = FVM_TYPE_FLOAT64;
  EXPECT_EQ(predict(&options), FVM_OK) << fvm_last_error();
  expect({{margins.data(), 20, 3, true}});
  options.early_stop_every = 1;
  options.early_stop_margin = 0.25;
  EXPECT_EQ(predict(&options), FVM_OK) << fvm_last_error();
  expect({{margins.data(), 20, 3, true}, EarlyStop{0.25, 1}});
  options.early_stop_margin = -1;
  expect_usage(predict(&options), "early stop: a margin of -1");
  options.early_stop_every = 0;
  options.base_margin_rows = 19;
  expect_usage(predict(&options), "base margins: have the shape (19, 3)");
  options.base_margin_type = FVM_TYPE_INT32;
  expect_usage(predict(&options), "base_margin_type is 5; margins are FVM_TYPE_FLOAT32");
  options = FVM_CALL_OPTIONS_INIT;
  options.base_margin_rows = 20;
  expect_usage(predict(&options), "base_margin is null, but has a shape");
  options = {};
  expect_usage(predict(&options), "begin with FVM_CALL_OPTIONS_INIT");
  options = FVM_CALL_OPTIONS_INIT;
  options.feature_count = 77;
  expect_usage(predict(&options), "features is null, but feature_count is 77");
}

TEST(CApi, GivesOutputsOfTreesAndStagesOfChosenRounds) {
  const std::vector<float> rows = small_rows(20, 3);
  const RowBlock block{rows.data(), 20, 3};
  const fvm_rows c = c_rows(block);
  CompileOptions keeping;
  keeping.keeps_leaves = true;
  const Program program = compiled(small_forest(), "", keeping);
  const auto predictor = host_backend(program);
  const auto memory = (*predictor)->make_context();
  const Opened opened(program);
  const auto width_with = [&](fvm_output output, const fvm_call_options* options) {
    std::uint32_t width = 77;
    EXPECT_EQ(fvm_call_width(opened.open().get(), output, options, &width), FVM_OK) << fvm_last_error();
    return width;
  };
  const auto expect_same = [&](fvm_output output, OutputKind kind, const fvm_call_options* options,
                               const CallOptions& call, std::size_t width) {
    ASSERT_EQ(width_with(output, options), width);
    std::vector<float> found(20 * width), expected(20 * width);
    EXPECT_EQ(
        fvm_predict_with(opened.context(), &c, output, FVM_TYPE_FLOAT32, options, found.data(), found.size()),
        FVM_OK)
        << fvm_last_error();
    ASSERT_TRUE(
        (*predictor)->predict_with(*memory, block, kind, ResultType::Float32, call, expected.data()).ok());
    EXPECT_EQ(found, expected);
  };
  CallOptions call;
  expect_same(FVM_OUTPUT_TREES, OutputKind::Trees, nullptr, call, 6);
  expect_same(FVM_OUTPUT_STAGED, OutputKind::Staged, nullptr, call, 18);
  EXPECT_EQ(width_of(opened.open(), FVM_OUTPUT_STAGED), 18u);
  fvm_call_options options = FVM_CALL_OPTIONS_INIT;
  options.rounds_begin = 1;
  options.rounds_end = 2;
  call.rounds = Rounds{1, 2};
  expect_same(FVM_OUTPUT_TREES, OutputKind::Trees, &options, call, 1);
  expect_same(FVM_OUTPUT_RAW, OutputKind::Raw, &options, call, 3);
  options.rounds_begin = options.rounds_end = 0;
  call.rounds.reset();
  options.stage_every = call.every = 2;
  expect_same(FVM_OUTPUT_STAGED, OutputKind::Staged, &options, call, 9);
  options.rounds_end = 9;
  EXPECT_EQ(width_with(FVM_OUTPUT_TREES, &options), 0u);
  float out[60];
  expect_usage(fvm_predict_with(opened.context(), &c, FVM_OUTPUT_RAW, FVM_TYPE_FLOAT32, &options, out, 60),
               "rounds: 0:9: expected A:B with A < B, and B at most 6");
  const Opened plain(compiled(small_forest(), ""));
  expect_failure(fvm_predict_f32(plain.context(), rows.data(), 20, 3, FVM_OUTPUT_TREES, out, 60), FVM_REFUSED,
                 "output trees: the program does not keep each tree's leaf");
}

TEST(CApi, RoundsFloat64ScoresOnce) {
  const std::vector<float> rows = small_rows(100, 3);
  const fvm_rows c = c_rows(RowBlock{rows.data(), 100, 3});
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    Model model = small_forest();
    model.row_type = model.score_type = type;
    const Opened opened(compiled(model, ""));
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
      const auto wide = predicted<double>(opened.context(), c, output, 3);
      const auto narrow = predicted<float>(opened.context(), c, output, 3);
      EXPECT_EQ(std::vector<float>(wide.begin(), wide.end()), narrow);
      // Softmax is rounded in float32; sums of the small forest's leaves are exact.
      const bool exact = std::vector<double>(narrow.begin(), narrow.end()) == wide;
      EXPECT_EQ(exact, type == ScalarType::Float32 || output == FVM_OUTPUT_RAW);
    }
  }
}

TEST(CApi, PredictsRowByRow) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(100, 3);
  const OpenProgram opened = open_memory(program);
  const OpenContext context = context_of(opened);
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 100, 3});
  for (std::size_t row = 0; row < 100; ++row) {
    const Answers one = c_answers(opened, context.get(), c_rows(RowBlock{rows.data() + row * 3, 1, 3}));
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(one.raw[k], expected.raw[row * 3 + k]);
    EXPECT_EQ(one.labels[0], expected.labels[row]);
  }
}

TEST(CApi, PredictsNoRows) {
  const OpenProgram program = open_memory(rich_program());
  const OpenContext context = context_of(program);
  EXPECT_EQ(fvm_predict_f32(context.get(), nullptr, 0, 0, FVM_OUTPUT_VALUE, nullptr, 0), FVM_OK);
  fvm_rows csr = FVM_ROWS_INIT, encoded = FVM_ROWS_INIT;
  csr.kind = FVM_ROWS_CSR;
  for (const fvm_rows& rows :
       {fvm_rows FVM_ROWS_INIT, csr, fvm_rows FVM_COLUMN_MAJOR_ROWS(nullptr, FVM_TYPE_INT8, 0, 3)})
    for (const auto& [output, type] : {std::pair{FVM_OUTPUT_RAW, FVM_TYPE_FLOAT64},
                                       {FVM_OUTPUT_VALUE, FVM_TYPE_FLOAT32},
                                       {FVM_OUTPUT_CLASS, FVM_TYPE_INT32},
                                       {FVM_OUTPUT_LEAF, FVM_TYPE_INT64}})
      EXPECT_EQ(fvm_predict(context.get(), &rows, output, type, nullptr, 0), FVM_OK) << fvm_last_error();
  const Opened encoder(compiled(small_forest(), "encode(u8)"));
  EXPECT_EQ(fvm_encode(encoder.context(), &csr, nullptr, 0, &encoded), FVM_OK) << fvm_last_error();
  EXPECT_EQ(encoded.kind, FVM_ROWS_ENCODED);
  EXPECT_EQ(encoded.row_count, 0u);
  EXPECT_EQ(fvm_predict(encoder.context(), &encoded, FVM_OUTPUT_RAW, FVM_TYPE_FLOAT32, nullptr, 0), FVM_OK)
      << fvm_last_error();
}

TEST(CApi, ContextsOutliveTheirProgram) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(10, 3);
  const RowBlock block{rows.data(), 10, 3};
  OpenProgram opened = open_memory(program);
  const OpenContext context = context_of(opened);
  opened.reset();
  std::vector<float> found = predicted<float>(context.get(), c_rows(block), FVM_OUTPUT_RAW, 3);
  std::vector<float> expected(30);
  const auto predictor = host_backend(program);
  const auto memory = (*predictor)->make_context();
  ASSERT_TRUE((*predictor)->predict(*memory, block, OutputKind::Raw, expected.data()).ok());
  EXPECT_EQ(found, expected);
}

TEST(CApi, ServesThreadsWithAContextEach) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(300, 3);
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 300, 3});
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  for (const std::uint32_t threads : {1u, 2u}) {
    options.threads = threads;
    const OpenProgram opened = open_memory(program, &options);
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i)
      callers.emplace_back([&] {
        const OpenContext context = context_of(opened);
        for (int call = 0; call < 20; ++call)
          EXPECT_EQ(c_answers(opened, context.get(), c_rows(RowBlock{rows.data(), 300, 3})), expected);
      });
    for (std::thread& caller : callers) caller.join();
  }
}

}  // namespace
}  // namespace forestvm::test::test_c_api
