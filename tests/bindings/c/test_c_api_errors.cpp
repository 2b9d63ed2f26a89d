// The C ABI: the options that a program is opened with, and every mistake that a caller can make with
// programs, contexts and rows in a block.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test {
namespace {

constexpr std::size_t kTooMany = std::numeric_limits<std::size_t>::max();

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

TEST_F(CApiFile, SaysWhyAPathDoesNotOpen) {
  fvm_program* opened = nullptr;
  expect_failure(fvm_program_open(nullptr, nullptr, &opened), FVM_USAGE,
                 "fvm_program_open: the path is null");
  expect_failure(fvm_program_open(path_.c_str(), nullptr, nullptr), FVM_USAGE, "nowhere to put the program");
  expect_failure(fvm_program_open("no/such/file.fvm", nullptr, &opened), FVM_ENVIRONMENT,
                 "fvm_program_open: no/such/file.fvm: cannot open: No such file");
  expect_failure(fvm_program_open(folder_.path().c_str(), nullptr, &opened), FVM_ENVIRONMENT,
                 "is a directory");
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  expect_failure(fvm_program_open(path_.c_str(), nullptr, &opened), FVM_REFUSED, path_ + ": ");
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

}  // namespace
}  // namespace forestvm::test
