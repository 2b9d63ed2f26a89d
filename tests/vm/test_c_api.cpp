// The C ABI: every function, and every mistake that a caller can make with it. What it predicts is what the
// host backend predicts. The library is the shared one; this test's own copy of the VM is apart from it.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <forestvm/forestvm.h>

#include "allocation_counter.hpp"
#include "small_program.hpp"

namespace forestvm::test {
namespace {

constexpr std::size_t kTooMany = std::numeric_limits<std::size_t>::max();

struct Close {
  void operator()(fvm_program* program) const { EXPECT_EQ(fvm_program_close(program), FVM_OK); }
  void operator()(fvm_context* context) const { EXPECT_EQ(fvm_context_destroy(context), FVM_OK); }
};
using OpenProgram = std::unique_ptr<fvm_program, Close>;
using OpenContext = std::unique_ptr<fvm_context, Close>;

OpenProgram open_memory(const Program& program, const fvm_open_options* options = nullptr) {
  fvm_program* opened = nullptr;
  const auto image = program.image();
  EXPECT_EQ(fvm_program_open_memory(image.data(), image.size(), options, &opened), FVM_OK)
      << fvm_last_error();
  return OpenProgram(opened);
}

OpenContext context_of(const OpenProgram& program) {
  fvm_context* context = nullptr;
  EXPECT_EQ(fvm_context_create(program.get(), &context), FVM_OK) << fvm_last_error();
  return OpenContext(context);
}

/// The call failed this way, and the message has `part` in it.
void expect_failure(fvm_status status, fvm_status expected, const std::string& part) {
  EXPECT_EQ(status, expected) << fvm_last_error();
  EXPECT_NE(std::string(fvm_last_error()).find(part), std::string::npos) << fvm_last_error();
}

std::uint32_t width_of(const OpenProgram& program, fvm_output output) {
  std::uint32_t width = 77;
  EXPECT_EQ(fvm_program_width(program.get(), output, &width), FVM_OK) << fvm_last_error();
  return width;
}

/// The C functions for rows of this type.
template <class Row>
struct Functions;
template <>
struct Functions<float> {
  static constexpr auto kScores = &fvm_predict_f32;
  static constexpr auto kLabels = &fvm_predict_class_f32;
  static constexpr auto kLeaves = &fvm_predict_leaf_f32;
};
template <>
struct Functions<double> {
  static constexpr auto kScores = &fvm_predict_f64;
  static constexpr auto kLabels = &fvm_predict_class_f64;
  static constexpr auto kLeaves = &fvm_predict_leaf_f64;
};

template <class Row>
std::vector<std::uint32_t> scores(fvm_context* context, const RowBlock& rows, fvm_output output,
                                  std::size_t width) {
  std::vector<float> out(rows.count * width);
  EXPECT_EQ(Functions<Row>::kScores(context, static_cast<const Row*>(rows.data), rows.count, rows.stride,
                                    output, out.data(), out.size()),
            FVM_OK)
      << fvm_last_error();
  std::vector<std::uint32_t> bits(out.size());
  std::memcpy(bits.data(), out.data(), out.size() * sizeof(float));
  return bits;
}

/// Everything that the C ABI says about `rows`, which are of this type.
template <class Row = float>
Answers c_answers(const OpenProgram& program, fvm_context* context, const RowBlock& rows) {
  const auto* const data = static_cast<const Row*>(rows.data);
  Answers all;
  all.raw = scores<Row>(context, rows, FVM_OUTPUT_RAW, width_of(program, FVM_OUTPUT_RAW));
  all.value = scores<Row>(context, rows, FVM_OUTPUT_VALUE, width_of(program, FVM_OUTPUT_VALUE));
  all.labels.resize(rows.count * width_of(program, FVM_OUTPUT_CLASS));
  all.leaves.resize(rows.count * width_of(program, FVM_OUTPUT_LEAF));
  EXPECT_EQ(
      Functions<Row>::kLabels(context, data, rows.count, rows.stride, all.labels.data(), all.labels.size()),
      FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(
      Functions<Row>::kLeaves(context, data, rows.count, rows.stride, all.leaves.data(), all.leaves.size()),
      FVM_OK)
      << fvm_last_error();
  return all;
}

class CApiFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "c_api_" + std::to_string(::getpid()) + ".fvm";
    ASSERT_TRUE(rich_program().save(path_).ok());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
};

TEST(CApi, SaysItsVersion) { EXPECT_STREQ(fvm_version(), FORESTVM_VERSION); }

TEST(CApi, KeepsTheLastErrorOfEachThread) {
  expect_failure(fvm_program_shape(nullptr, nullptr, nullptr, nullptr), FVM_USAGE,
                 "fvm_program_shape: the program is null");
  std::thread([] {
    EXPECT_STREQ(fvm_last_error(), "");
    expect_failure(fvm_context_create(nullptr, nullptr), FVM_USAGE, "fvm_context_create: ");
  }).join();
  const OpenProgram program = open_memory(rich_program());
  EXPECT_STREQ(fvm_last_error(), "fvm_program_shape: the program is null");
}

TEST_F(CApiFile, OpensFromAPath) {
  fvm_program* opened = nullptr;
  ASSERT_EQ(fvm_program_open(path_.c_str(), nullptr, &opened), FVM_OK) << fvm_last_error();
  const OpenProgram program(opened);
  const OpenContext context = context_of(program);
  const std::vector<float> rows = small_rows(50, 3);
  const RowBlock block{rows.data(), 50, 3};
  EXPECT_EQ(c_answers(program, context.get(), block), answers(**host_backend(rich_program()), block));
}

TEST_F(CApiFile, SaysWhyAPathDoesNotOpen) {
  fvm_program* opened = nullptr;
  expect_failure(fvm_program_open(nullptr, nullptr, &opened), FVM_USAGE,
                 "fvm_program_open: the path is null");
  expect_failure(fvm_program_open(path_.c_str(), nullptr, nullptr), FVM_USAGE, "nowhere to put the program");
  expect_failure(fvm_program_open("no/such/file.fvm", nullptr, &opened), FVM_ENVIRONMENT,
                 "fvm_program_open: no/such/file.fvm: cannot open: No such file");
  expect_failure(fvm_program_open(::testing::TempDir().c_str(), nullptr, &opened), FVM_ENVIRONMENT,
                 "is a directory");
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  expect_failure(fvm_program_open(path_.c_str(), nullptr, &opened), FVM_REFUSED, path_ + ": ");
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
    EXPECT_EQ(c_answers(opened, context_of(opened).get(), block), expected);
  }
}

TEST(CApi, RefusesMemoryThatIsNoProgram) {
  const Program program = rich_program();
  const auto image = program.image();
  auto* const before = reinterpret_cast<fvm_program*>(&expect_failure);
  fvm_program* opened = before;
  const auto open = [&](const void* data, std::size_t size) {
    opened = before;
    const fvm_status status = fvm_program_open_memory(data, size, nullptr, &opened);
    EXPECT_EQ(opened, nullptr);
    return status;
  };
  expect_failure(open(nullptr, 64), FVM_USAGE, "the image is null");
  expect_failure(open(image.data(), kTooMany), FVM_USAGE, "more than memory holds");
  expect_failure(fvm_program_open_memory(image.data(), image.size(), nullptr, nullptr), FVM_USAGE, "null");
  for (std::size_t size = 0; size < image.size(); ++size)
    ASSERT_EQ(open(image.data(), size), FVM_REFUSED) << "of " << size << " bytes";
  const Program mapped = compiled(small_forest(), "gpuDimension(batch, grid.x)");
  expect_failure(open(mapped.image().data(), mapped.image().size()), FVM_REFUSED, "GPU");
}

TEST(CApi, TakesOptions) {
  const Program program = rich_program();
  EXPECT_EQ(std::string(fvm_program_description(open_memory(program).get())),
            (*host_backend(program))->describe());
  for (const std::string_view target : host_targets())
    for (const unsigned threads : {0u, 1u, 2u}) {
      const std::string name(target);
      if (!host_backend(program, {.target = name})) continue;  // not on this CPU
      fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
      options.target = name.c_str();
      options.threads = threads;
      EXPECT_EQ(std::string(fvm_program_description(open_memory(program, &options).get())),
                (*host_backend(program, {.threads = threads, .target = name}))->describe());
    }
}

TEST(CApi, VerifiesUnlessItIsToldToTrust) {
  const Program program = rich_program();
  std::vector<std::byte> image = image_of(program);
  // The padding or the last leaf: no table.
  const std::byte* const last = &program.section_Nodes().back();
  image[static_cast<std::size_t>(last - program.image().data())] ^= std::byte{1};
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  fvm_program* opened = nullptr;
  expect_failure(fvm_program_open_memory(image.data(), image.size(), &options, &opened), FVM_REFUSED,
                 "checksum");
  options.verification = FVM_VERIFY_TRUST;
  ASSERT_EQ(fvm_program_open_memory(image.data(), image.size(), &options, &opened), FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(fvm_program_close(opened), FVM_OK);
}

TEST(CApi, RefusesOptionsThatMakeNoSense) {
  const Program program = rich_program();
  const auto open = [&](const std::function<void(fvm_open_options&)>& change) {
    fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
    change(options);
    fvm_program* opened = nullptr;
    const fvm_status status =
        fvm_program_open_memory(program.image().data(), program.image().size(), &options, &opened);
    EXPECT_EQ(opened, nullptr);
    return status;
  };
  using Options = fvm_open_options;
  expect_failure(open([](Options& o) { o.target = "abacus"; }), FVM_USAGE,
                 "target abacus: unknown; there are auto");
  expect_failure(open([](Options& o) { o.threads = 1'000'000; }), FVM_USAGE, "1000000 threads, at most");
  expect_failure(open([](Options& o) { o.verification = 2; }), FVM_USAGE, "options.verification is 2");
  expect_failure(open([](Options& o) { o.verification = -1; }), FVM_USAGE, "options.verification is -1");
  for (const std::size_t size : {std::size_t{0}, sizeof(Options) - 1, std::size_t{4097}, kTooMany})
    expect_failure(open([size](Options& o) { o.size = size; }), FVM_USAGE,
                   "options.size is " + std::to_string(size));
}

TEST(CApi, TakesOptionsOfALaterVersionWhereTheyAreZero) {
  struct Later {
    fvm_open_options known = FVM_OPEN_OPTIONS_INIT;
    std::uint64_t more = 0;
  } later;
  later.known.size = sizeof later;
  const OpenProgram program = open_memory(rich_program(), &later.known);
  EXPECT_NE(program, nullptr);
  later.more = std::uint64_t{1} << 63;
  fvm_program* opened = nullptr;
  const auto image = rich_program();
  expect_failure(fvm_program_open_memory(image.image().data(), image.image().size(), &later.known, &opened),
                 FVM_USAGE, "a field that this version of the library does not have");
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
  expect_failure(fvm_program_width(program.get(), 4, &width), FVM_USAGE, "there is no output 4");
  expect_failure(fvm_program_width(program.get(), -1, &width), FVM_USAGE, "there is no output -1");
  expect_failure(fvm_program_width(program.get(), FVM_OUTPUT_RAW, nullptr), FVM_USAGE,
                 "nowhere to put the width");
}

TEST(CApi, TellsHandlesApart) {
  const OpenProgram program = open_memory(rich_program());
  const OpenContext context = context_of(program);
  auto* const no_program = reinterpret_cast<fvm_program*>(context.get());
  auto* const no_context = reinterpret_cast<fvm_context*>(program.get());
  std::uint32_t width = 0;
  fvm_context* created = context.get();
  for (const auto& [handle, why] :
       {std::pair<fvm_program*, const char*>{no_program, "the handle is not a program"},
        {nullptr, "the program is null"}}) {
    expect_failure(fvm_program_shape(handle, &width, nullptr, nullptr), FVM_USAGE, why);
    expect_failure(fvm_program_width(handle, FVM_OUTPUT_RAW, &width), FVM_USAGE, why);
    expect_failure(fvm_context_create(handle, &created), FVM_USAGE, why);
    EXPECT_EQ(created, nullptr);
    EXPECT_EQ(fvm_program_description(handle), nullptr);
    EXPECT_NE(std::string(fvm_last_error()).find(why), std::string::npos);
  }
  expect_failure(fvm_context_create(program.get(), nullptr), FVM_USAGE, "nowhere to put the context");
  expect_failure(fvm_program_close(no_program), FVM_USAGE, "the handle is not a program");
  expect_failure(fvm_context_destroy(no_context), FVM_USAGE, "the handle is not a context");
  EXPECT_EQ(fvm_program_close(nullptr), FVM_OK);
  EXPECT_EQ(fvm_context_destroy(nullptr), FVM_OK);

  const std::vector<float> rows(3);
  const std::vector<double> wide(3);
  float values[3];
  std::int64_t label = 0;
  std::int32_t leaves[6];
  for (const auto& [handle, why] :
       {std::pair<fvm_context*, const char*>{no_context, "the handle is not a context"},
        {nullptr, "the context is null"}}) {
    expect_failure(fvm_predict_f32(handle, rows.data(), 1, 3, FVM_OUTPUT_RAW, values, 3), FVM_USAGE, why);
    expect_failure(fvm_predict_class_f32(handle, rows.data(), 1, 3, &label, 1), FVM_USAGE, why);
    expect_failure(fvm_predict_leaf_f32(handle, rows.data(), 1, 3, leaves, 6), FVM_USAGE, why);
    expect_failure(fvm_predict_f64(handle, wide.data(), 1, 3, FVM_OUTPUT_RAW, values, 3), FVM_USAGE, why);
    expect_failure(fvm_predict_class_f64(handle, wide.data(), 1, 3, &label, 1), FVM_USAGE, why);
    expect_failure(fvm_predict_leaf_f64(handle, wide.data(), 1, 3, leaves, 6), FVM_USAGE, why);
  }
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
        EXPECT_EQ(c_answers(opened, context.get(), block), answers(**predictor, block)) << block.count;
    }
  }
}

TEST(CApi, PredictsRowsOfFloat64) {
  const std::vector<float> narrow = small_rows(200, 5);
  std::vector<double> rows(narrow.begin(), narrow.end());
  for (std::size_t i = 0; i < rows.size(); i += 3) rows[i] += 1e-12;  // no float32 lies there
  for (const Program& program : rich_programs()) {
    if (program.meta().score_type == ScalarType::Float64) continue;  // refused: see below
    const auto predictor = host_backend(program);
    const OpenProgram opened = open_memory(program);
    const OpenContext context = context_of(opened);
    for (const RowBlock& block :
         {RowBlock{rows.data(), 1, 3, RowType::Float64}, RowBlock{rows.data() + 1, 199, 5, RowType::Float64}})
      EXPECT_EQ(c_answers<double>(opened, context.get(), block), answers(**predictor, block)) << block.count;
  }
}

TEST(CApi, PredictsInFloat64) {
  const std::vector<float> rows = small_rows(100, 3);
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    Model model = small_forest();
    model.score_type = type;
    const OpenProgram program = open_memory(compiled(model, ""));
    const OpenContext context = context_of(program);
    std::vector<double> wide(300);
    std::vector<float> narrow(300);
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
      EXPECT_EQ(fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, output, wide.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_f32(context.get(), rows.data(), 100, 3, output, narrow.data(), 300), FVM_OK);
      EXPECT_EQ(std::vector<float>(wide.begin(), wide.end()), narrow);
      // Softmax rounds; so do not sums of the small forest's leaves.
      const bool exact = std::vector<double>(narrow.begin(), narrow.end()) == wide;
      EXPECT_EQ(exact, type == ScalarType::Float32 || output == FVM_OUTPUT_RAW);
    }
    expect_failure(fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, FVM_OUTPUT_RAW, wide.data(), 299),
                   FVM_USAGE, "room for 299 numbers");
    expect_failure(
        fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, FVM_OUTPUT_LEAF, wide.data(), 300),
        FVM_USAGE, "labels and leaves");
    expect_failure(fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, FVM_OUTPUT_RAW, nullptr, 300),
                   FVM_USAGE, "null");
  }
}

TEST(CApi, RefusesRowsOfFloat64WhereTheyWouldBeRounded) {
  Model model = small_forest();
  model.score_type = ScalarType::Float64;
  const OpenProgram program = open_memory(compiled(model, ""));
  const OpenContext context = context_of(program);
  const double row[3] = {0.1, 0.2, 0.3};
  float scores[3];
  expect_failure(fvm_predict_f64(context.get(), row, 1, 3, FVM_OUTPUT_RAW, scores, 3), FVM_REFUSED,
                 "the model compares float64 thresholds");
}

TEST(CApi, PredictsRowByRow) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(100, 3);
  const OpenProgram opened = open_memory(program);
  const OpenContext context = context_of(opened);
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 100, 3});
  for (std::size_t row = 0; row < 100; ++row) {
    const Answers one = c_answers(opened, context.get(), {rows.data() + row * 3, 1, 3});
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(one.raw[k], expected.raw[row * 3 + k]);
    EXPECT_EQ(one.labels[0], expected.labels[row]);
  }
}

TEST(CApi, PredictsNoRows) {
  const OpenProgram program = open_memory(rich_program());
  const OpenContext context = context_of(program);
  EXPECT_EQ(fvm_predict_f32(context.get(), nullptr, 0, 0, FVM_OUTPUT_VALUE, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_predict_class_f32(context.get(), nullptr, 0, 0, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_predict_leaf_f32(context.get(), nullptr, 0, 0, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_predict_f64(context.get(), nullptr, 0, 0, FVM_OUTPUT_VALUE, nullptr, 0), FVM_OK);
}

/// The mistakes that every function for predictions refuses; `predict` is one of them, of `width` columns.
template <class Row, class Number, class Predict>
void expect_refusals(const Predict& predict, std::size_t width) {
  const std::vector<Row> rows(12);
  std::vector<Number> out(4 * width, Number{77});
  const std::vector<Number> before = out;
  expect_failure(predict(nullptr, 4, 3, out.data(), out.size()), FVM_USAGE, "no buffer for rows");
  expect_failure(predict(rows.data(), 4, 3, static_cast<Number*>(nullptr), out.size()), FVM_USAGE,
                 "the output is null");
  for (const std::size_t stride : {0u, 1u, 2u})
    expect_failure(predict(rows.data(), 4, stride, out.data(), out.size()), FVM_USAGE,
                   "rows of " + std::to_string(stride) + " values for a model of 3 features");
  for (const std::size_t room : {std::size_t{0}, out.size() - 1})
    expect_failure(
        predict(rows.data(), 4, 3, out.data(), room), FVM_USAGE,
        "room for " + std::to_string(room) + " numbers; 4 rows of " + std::to_string(width) + " do not fit");
  // Sizes whose products overflow.
  for (const std::size_t count : {kTooMany, kTooMany / 2 + 1, kTooMany / 4 + 1})
    expect_failure(predict(rows.data(), count, 3, out.data(), out.size()), FVM_USAGE, "do not fit");
  for (const std::size_t count : {kTooMany / width, kTooMany / 8})
    expect_failure(predict(rows.data(), count, 3, out.data(), kTooMany), FVM_USAGE, "more than memory holds");
  expect_failure(predict(rows.data(), 4, kTooMany, out.data(), out.size()), FVM_USAGE,
                 "more than memory holds");
  EXPECT_EQ(out, before);
}

/// Those of all functions for rows of this type; the program is rich_program.
template <class Row>
void expect_all_refusals(fvm_context* context) {
  using Functions = Functions<Row>;
  for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE})
    expect_refusals<Row, float>(
        [&](const Row* rows, std::size_t count, std::size_t stride, float* out, std::size_t capacity) {
          return Functions::kScores(context, rows, count, stride, output, out, capacity);
        },
        3);
  expect_refusals<Row, std::int64_t>(
      [&](const Row* rows, std::size_t count, std::size_t stride, std::int64_t* out, std::size_t capacity) {
        return Functions::kLabels(context, rows, count, stride, out, capacity);
      },
      1);
  expect_refusals<Row, std::int32_t>(
      [&](const Row* rows, std::size_t count, std::size_t stride, std::int32_t* out, std::size_t capacity) {
        return Functions::kLeaves(context, rows, count, stride, out, capacity);
      },
      6);
}

TEST(CApi, RefusesRowsAndOutputsThatDoNotFit) {
  const OpenProgram program = open_memory(rich_program());
  const OpenContext context = context_of(program);
  expect_all_refusals<float>(context.get());
  expect_all_refusals<double>(context.get());
}

TEST(CApi, RefusesOutputsOfAnotherKind) {
  Model model = small_forest();
  model.transform = Transform::Identity;
  model.class_rule = ClassRule::None;
  model.class_labels.clear();
  const OpenProgram program = open_memory(compiled(model, ""));
  const OpenContext context = context_of(program);
  const std::vector<float> rows(3);
  float values[8];
  std::int64_t label = 0;
  for (const fvm_output output : {fvm_output{FVM_OUTPUT_CLASS}, fvm_output{FVM_OUTPUT_LEAF}, 4, -1})
    expect_failure(fvm_predict_f32(context.get(), rows.data(), 1, 3, output, values, 8), FVM_USAGE,
                   "output is " + std::to_string(output));
  EXPECT_EQ(width_of(program, FVM_OUTPUT_CLASS), 0u);
  expect_failure(fvm_predict_class_f32(context.get(), rows.data(), 1, 3, &label, 1), FVM_REFUSED,
                 "no classes");
}

TEST(CApi, ContextsOutliveTheirProgram) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(10, 3);
  const RowBlock block{rows.data(), 10, 3};
  OpenProgram opened = open_memory(program);
  const OpenContext context = context_of(opened);
  opened.reset();
  EXPECT_EQ(scores<float>(context.get(), block, FVM_OUTPUT_RAW, 3),
            answers(**host_backend(program), block).raw);
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
          EXPECT_EQ(c_answers(opened, context.get(), {rows.data(), 300, 3}), expected);
      });
    for (std::thread& caller : callers) caller.join();
  }
}

/// One thread keeps a context busy until another thread's call with it has been refused.
TEST(CApi, RefusesAContextThatAnotherThreadUses) {
  const OpenProgram program = open_memory(rich_program());
  const OpenContext context = context_of(program);
  const std::vector<float> rows = small_rows(20'000, 3);
  std::atomic<bool> refused = false;
  std::thread busy([&] {
    std::vector<float> out(60'000);
    while (!refused) {
      const fvm_status status =
          fvm_predict_f32(context.get(), rows.data(), 20'000, 3, FVM_OUTPUT_RAW, out.data(), out.size());
      EXPECT_TRUE(status == FVM_OK || status == FVM_USAGE);
    }
  });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  float out[3];
  while (!refused && std::chrono::steady_clock::now() < give_up)
    refused = fvm_predict_f32(context.get(), rows.data(), 1, 3, FVM_OUTPUT_RAW, out, 3) != FVM_OK;
  EXPECT_TRUE(refused);
  EXPECT_NE(std::string(fvm_last_error()).find("another call is using the context"), std::string::npos);
  refused = true;
  busy.join();
}

TEST(CApi, AllocatesNothingAfterTheFirstCall) {
  const std::vector<float> rows = small_rows(100, 3);
  for (const Program& program : rich_programs()) {
    const OpenProgram opened = open_memory(program);
    OpenContext context;
    EXPECT_GT(allocations_of([&] { context = context_of(opened); }), 0u);  // the library's are counted
    const std::vector<double> wide(rows.begin(), rows.end());
    std::vector<float> out(300);
    std::vector<std::int64_t> labels(100);
    std::vector<std::int32_t> leaves(600);
    const bool takes_wide = program.meta().score_type == ScalarType::Float32;
    const auto all_outputs = [&](std::size_t count) {
      fvm_context* const with = context.get();
      EXPECT_EQ(fvm_predict_f32(with, rows.data(), count, 3, FVM_OUTPUT_RAW, out.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_f32(with, rows.data(), count, 3, FVM_OUTPUT_VALUE, out.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_class_f32(with, rows.data(), count, 3, labels.data(), 100), FVM_OK);
      EXPECT_EQ(fvm_predict_leaf_f32(with, rows.data(), count, 3, leaves.data(), 600), FVM_OK);
      if (!takes_wide) return;
      EXPECT_EQ(fvm_predict_f64(with, wide.data(), count, 3, FVM_OUTPUT_VALUE, out.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_class_f64(with, wide.data(), count, 3, labels.data(), 100), FVM_OK);
      EXPECT_EQ(fvm_predict_leaf_f64(with, wide.data(), count, 3, leaves.data(), 600), FVM_OK);
    };
    all_outputs(100);
    for (const std::size_t count : {100u, 1u, 0u}) EXPECT_EQ(allocations_of([&] { all_outputs(count); }), 0u);
  }
}

/// Fails the allocations of a call from the first on, then from the second on, until the call succeeds.
template <class Call>
void fail_each_allocation(const Call& call) {
  std::int64_t allowed = 0;
  for (fvm_status status = FVM_ENVIRONMENT; status != FVM_OK; ++allowed) {
    fail_allocations_after(allowed);
    status = call();
    fail_allocations_after(-1);
    if (status == FVM_OK) break;
    ASSERT_EQ(status, FVM_ENVIRONMENT) << fvm_last_error();
    ASSERT_NE(std::string(fvm_last_error()).find("out of memory"), std::string::npos) << fvm_last_error();
    ASSERT_LT(allowed, 10'000);
  }
  EXPECT_GT(allowed, 0);
}

TEST_F(CApiFile, RunsOutOfMemoryAnywhere) {
  const Program image = rich_program();
  fvm_program* program = nullptr;
  fail_each_allocation([&] { return fvm_program_open(path_.c_str(), nullptr, &program); });
  EXPECT_EQ(fvm_program_close(program), FVM_OK);
  fail_each_allocation(
      [&] { return fvm_program_open_memory(image.image().data(), image.image().size(), nullptr, &program); });
  const OpenProgram opened(program);
  fvm_context* context = nullptr;
  fail_each_allocation([&] { return fvm_context_create(program, &context); });
  const OpenContext created(context);
  const std::vector<float> rows = small_rows(10, 3);
  std::vector<float> out(30);
  fail_each_allocation(
      [&] { return fvm_predict_f32(context, rows.data(), 10, 3, FVM_OUTPUT_VALUE, out.data(), out.size()); });
  EXPECT_EQ(scores<float>(context, {rows.data(), 10, 3}, FVM_OUTPUT_RAW, 3),
            answers(**host_backend(image), RowBlock{rows.data(), 10, 3}).raw);
}

}  // namespace
}  // namespace forestvm::test
