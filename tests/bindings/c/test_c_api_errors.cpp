// The C ABI: the options that a program is opened with, and every mistake that a caller can make with
// programs, contexts, dense rows, outputs and types.
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
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_c_api_errors {
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
  expect_failure(fvm_program_open(path_.c_str(), nullptr, nullptr), FVM_USAGE, "the pointer to the program");
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
      if (!host_backend(program, {.target = name})) continue;  // this CPU lacks the target
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
  // The last bytes are padding or the last leaf, not a table.
  const std::byte* const last = &program.nodes().back();
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
                 "target abacus: unknown; expected one of auto");
  expect_failure(open([](Options& o) { o.threads = 1'000'000; }), FVM_USAGE, "threads is 1000000, at most");
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
  expect_failure(fvm_context_create(program.get(), nullptr), FVM_USAGE, "the pointer to the context");
  expect_failure(fvm_program_close(no_program), FVM_USAGE, "the handle is not a program");
  expect_failure(fvm_context_destroy(no_context), FVM_USAGE, "the handle is not a context");
  EXPECT_EQ(fvm_program_close(nullptr), FVM_OK);
  EXPECT_EQ(fvm_context_destroy(nullptr), FVM_OK);

  const std::vector<float> values(3);
  const fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, 1, 3);
  std::vector<float> out(3);
  for (const auto& [handle, why] :
       {std::pair<fvm_context*, const char*>{no_context, "the handle is not a context"},
        {nullptr, "the context is null"}}) {
    expect_failure(fvm_predict_f32(handle, values.data(), 1, 3, FVM_OUTPUT_RAW, out.data(), 3), FVM_USAGE,
                   why);
    expect_failure(predict(handle, rows, FVM_OUTPUT_RAW, out), FVM_USAGE, why);
  }
}

/// Checks what every call for predictions refuses. call(data, row_count, row_stride, out, capacity) makes a
/// call with `width` columns for rich_program.
template <class Number, class Call>
void expect_refusals(const Call& call, std::size_t width) {
  const std::vector<double> values(12);
  const void* const rows = values.data();
  std::vector<Number> out(4 * width, Number{77});
  const std::vector<Number> before = out;
  expect_usage(call(nullptr, 4, 3, out.data(), out.size()), "a pointer of the rows, or the output, is null");
  expect_usage(call(rows, 4, 3, nullptr, out.size()), "the output is null");
  for (const std::size_t stride : {1u, 2u})
    expect_usage(call(rows, 4, stride, out.data(), out.size()),
                 "rows of " + std::to_string(stride) + " values for a model of 3 features");
  for (const std::size_t room : {std::size_t{0}, out.size() - 1})
    expect_usage(
        call(rows, 4, 3, out.data(), room),
        "room for " + std::to_string(room) + " numbers; 4 rows of " + std::to_string(width) + " do not fit");
  // Products of these sizes overflow.
  for (const std::size_t count : {kTooMany, kTooMany / 2 + 1, kTooMany / 4 + 1})
    expect_usage(call(rows, count, 3, out.data(), out.size()), "do not fit");
  for (const std::size_t count : {kTooMany / width, kTooMany / 8})
    expect_usage(call(rows, count, 3, out.data(), kTooMany), "more than memory holds");
  constexpr std::size_t kWraps = (std::size_t{1} << 62) + 1;  // 4 x (kWraps - 1) overflows to 0
  if (width <= 3) expect_usage(call(rows, kWraps, 4, out.data(), kTooMany), "more than memory holds");
  expect_usage(call(rows, 4, kTooMany / 2, out.data(), out.size()), "more than memory holds");
  EXPECT_EQ(out, before);
}

template <class Number>
void expect_refusals_of_rows(fvm_context* context, fvm_output output, std::size_t width) {
  for (const fvm_type type : {FVM_TYPE_FLOAT32, FVM_TYPE_FLOAT64, FVM_TYPE_FLOAT16})
    expect_refusals<Number>(
        [&](const void* data, std::size_t count, std::size_t stride, Number* out, std::size_t capacity) {
          fvm_rows rows = FVM_DENSE_ROWS(data, type, count, 3);
          rows.row_stride = static_cast<std::ptrdiff_t>(stride);
          return fvm_predict(context, &rows, output, kTypeOf<Number>, out, capacity);
        },
        width);
}

TEST(CApi, RefusesRowsAndOutputsThatDoNotFit) {
  const Opened opened(rich_program());
  for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
    expect_refusals_of_rows<float>(opened.context(), output, 3);
    expect_refusals_of_rows<double>(opened.context(), output, 3);
    expect_refusals<float>(
        [&](const void* rows, std::size_t count, std::size_t stride, float* out, std::size_t capacity) {
          return fvm_predict_f32(opened.context(), static_cast<const float*>(rows), count, stride, output,
                                 out, capacity);
        },
        3);
  }
  expect_refusals_of_rows<std::int64_t>(opened.context(), FVM_OUTPUT_CLASS, 1);
  expect_refusals_of_rows<std::int32_t>(opened.context(), FVM_OUTPUT_CLASS, 1);
  expect_refusals_of_rows<std::int64_t>(opened.context(), FVM_OUTPUT_LEAF, 6);
  expect_refusals_of_rows<std::int32_t>(opened.context(), FVM_OUTPUT_LEAF, 6);
  float out[12];
  const float row[3] = {};
  expect_usage(fvm_predict_f32(opened.context(), row, 4, 0, FVM_OUTPUT_RAW, out, 12),
               "rows of 0 values for a model of 3 features");
}

TEST(CApi, RefusesRowsWhoseFieldsMakeNoSense) {
  const Opened opened(rich_program());
  const std::vector<float> values = small_rows(10, 3);
  std::vector<float> out(30);
  const auto call = [&](const std::function<void(fvm_rows&)>& change) {
    fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, 10, 3);
    change(rows);
    return predict(opened.context(), rows, FVM_OUTPUT_RAW, out);
  };
  using Rows = fvm_rows;
  EXPECT_EQ(call([](Rows&) {}), FVM_OK);
  expect_usage(fvm_predict(opened.context(), nullptr, FVM_OUTPUT_RAW, FVM_TYPE_FLOAT32, out.data(), 30),
               "fvm_predict: the rows are null");
  for (const std::size_t size : {std::size_t{0}, sizeof(Rows) - 1, std::size_t{4097}, kTooMany})
    expect_usage(call([size](Rows& r) { r.size = size; }),
                 "rows.size is " + std::to_string(size) + ", not sizeof(fvm_rows): begin with FVM_ROWS_INIT");
  for (const int kind : {-1, 6, INT32_MAX, INT32_MIN})
    expect_usage(call([kind](Rows& r) { r.kind = kind; }),
                 "rows.kind is " + std::to_string(kind) + ", not FVM_ROWS_DENSE, FVM_ROWS_CSR");
  for (const int type : {-1, 12, INT32_MAX, INT32_MIN})
    expect_usage(call([type](Rows& r) { r.type = type; }),
                 "rows.type is " + std::to_string(type) + ", which is not an fvm_type");
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{4}, kTooMany})
    expect_usage(call([count](Rows& r) { r.column_count = count; }),
                 "rows of " + std::to_string(count) + " values for a model of 3 features");
  EXPECT_EQ(call([](Rows& r) { r.column_count = 0; }), FVM_OK) << "as many as the model has";
}

TEST(CApi, RefusesStridesThatMakeNoSense) {
  const Opened opened(rich_program());
  const std::vector<float> values = small_rows(30, 3);
  const auto call = [&](std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::size_t count = 10) {
    fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, count, 3);
    rows.row_stride = row_stride;
    rows.column_stride = column_stride;
    std::vector<float> out(3 * count);
    return predict(opened.context(), rows, FVM_OUTPUT_RAW, out);
  };
  for (const auto& [row, column] :
       {std::pair{0, 0}, {3, 0}, {0, 1}, {3, 1}, {9, 3}, {7, 3}, {1, 10}, {2, 20}})
    EXPECT_EQ(call(row, column), FVM_OK) << row << ", " << column << ": " << fvm_last_error();
  EXPECT_EQ(call(1, 10, 1), FVM_OK) << "a single row has no next one";
  EXPECT_EQ(call(0, 10, 1), FVM_OK);
  EXPECT_EQ(call(1, 1, 1), FVM_OK);
  expect_usage(call(-3, 1), "rows.row_stride is -3: negative strides are not supported");
  expect_usage(call(3, -1), "rows.column_stride is -1: negative strides are not supported");
  expect_usage(call(PTRDIFF_MIN, 1), "negative strides");
  expect_usage(call(0, 10), "rows.row_stride is 0 and rows.column_stride is 10");
  expect_usage(call(1, 9), "rows 1 numbers apart overlap, if their columns are 9 apart");
  expect_usage(call(4, 2), "rows 4 numbers apart overlap, if their columns are 2 apart");
  expect_usage(call(2, 1), "rows of 2 values for a model of 3 features");
  expect_usage(call(1, PTRDIFF_MAX), "more than memory holds");
  expect_usage(call(PTRDIFF_MAX, PTRDIFF_MAX), "more than memory holds");
  expect_usage(call(PTRDIFF_MAX, 1), "more than memory holds");
  expect_usage(call(1, PTRDIFF_MAX / 2, 1), "more than memory holds");
  const Opened wider(compiled(small_forest({.features = 4}), ""));
  fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, 10, 4);
  rows.row_stride = 1;
  rows.column_stride = 6148914691236517206;  // three times this number wraps to 2
  std::vector<float> out(30);
  expect_usage(predict(wider.context(), rows, FVM_OUTPUT_RAW, out), "more than memory holds");
}

/// Fields that belong to other kinds of rows, or to later versions, are refused, never ignored.
TEST(CApi, RefusesFieldsOfOtherKinds) {
  const Opened opened(rich_program());
  const std::vector<float> values = small_rows(10, 3);
  const SparseRows sparse = sparse_rows(10, 3, 50);
  std::vector<float> out(30);
  const std::int64_t offset = 0;
  const std::int32_t column = 0;
  struct Field {
    std::string name;
    std::string kinds;  ///< names of the kinds of rows that have the field
    std::function<void(fvm_rows&)> set;
  };
  using Rows = fvm_rows;
  const std::vector<Field> fields = {
      {"type", "dense CSR device", [](Rows& r) { r.type = FVM_TYPE_UINT8; }},
      {"row_stride", "dense device", [](Rows& r) { r.row_stride = 3; }},
      {"column_stride", "dense device", [](Rows& r) { r.column_stride = 1; }},
      {"offsets", "CSR", [&](Rows& r) { r.offsets = &offset; }},
      {"columns", "CSR", [&](Rows& r) { r.columns = &column; }},
      {"value_count", "CSR", [](Rows& r) { r.value_count = 1; }},
      {"absent", "CSR", [](Rows& r) { r.absent = FVM_ABSENT_ZERO; }},
      {"device", "device", [](Rows& r) { r.device = 1; }},
      {"stream", "device", [&](Rows& r) { r.stream = &out; }},
      {"byte_count", "encoded", [](Rows& r) { r.byte_count = 1; }},
      {"encoder", "encoded", [](Rows& r) { r.encoder = 1; }},
      {"hashed", "dense CSR", [](Rows& r) { r.hashed = 1; }},
  };
  const std::pair<fvm_rows_kind, std::string> kinds[] = {{FVM_ROWS_DENSE, "dense"},
                                                         {FVM_ROWS_CSR, "CSR"},
                                                         {FVM_ROWS_ENCODED, "encoded"},
                                                         {FVM_ROWS_DEVICE, "device"}};
  for (const auto& [kind, name] : kinds)
    for (const Field& field : fields) {
      if (field.kinds.find(name) != std::string::npos) continue;
      fvm_rows rows = FVM_ROWS_INIT;
      rows.kind = kind;
      field.set(rows);
      expect_usage(predict(opened.context(), rows, FVM_OUTPUT_RAW, out),
                   "rows." + field.name + " is set, which " + name + " rows do not have");
    }
}

TEST(CApi, TakesRowsOfALaterVersionWhereTheyAreZero) {
  const Opened opened(rich_program());
  const std::vector<float> values = small_rows(10, 3);
  struct Later {
    fvm_rows known;
    std::uint64_t more;
  } later{FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, 10, 3), 0};
  later.known.size = sizeof later;
  std::vector<float> out(30);
  EXPECT_EQ(predict(opened.context(), later.known, FVM_OUTPUT_RAW, out), FVM_OK) << fvm_last_error();
  later.more = 1;
  expect_usage(predict(opened.context(), later.known, FVM_OUTPUT_RAW, out),
               "a field that this version of the library does not have");
}

TEST(CApi, RefusesOutputsAndTypesThatDoNotGoTogether) {
  Model model = small_forest();
  const Opened opened(compiled(model, ""));
  const std::vector<float> values(3);
  const fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, 1, 3);
  std::vector<double> out(8);
  const auto call = [&](fvm_output output, fvm_type type) {
    return fvm_predict(opened.context(), &rows, output, type, out.data(), out.size());
  };
  for (fvm_type type = FVM_TYPE_FLOAT32; type <= FVM_TYPE_BOOL; ++type) {
    const std::string found = "type is " + std::to_string(type) + "; ";
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
      if (type == FVM_TYPE_FLOAT32 || type == FVM_TYPE_FLOAT64)
        EXPECT_EQ(call(output, type), FVM_OK) << fvm_last_error();
      else
        expect_usage(call(output, type), found +
                                             "scores and values are FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64,"
                                             " and would lose digits in others");
    }
    for (const fvm_output output : {FVM_OUTPUT_CLASS, FVM_OUTPUT_LEAF}) {
      if (type == FVM_TYPE_INT32 || type == FVM_TYPE_INT64)
        EXPECT_EQ(call(output, type), FVM_OK) << fvm_last_error();
      else
        expect_usage(call(output, type), found +
                                             "classes and leaves are FVM_TYPE_INT32 or FVM_TYPE_INT64, and "
                                             "could lose digits in others");
    }
  }
  for (const int type : {-1, 12, INT32_MAX}) {
    const std::string found = "fvm_predict: type is " + std::to_string(type) + ", which is not an fvm_type";
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_CLASS})
      expect_usage(call(output, type), found);
  }
  for (const int output : {99, -1})
    expect_usage(call(output, FVM_TYPE_FLOAT32), "there is no output " + std::to_string(output));
  std::vector<float> scores(8);
  expect_usage(fvm_predict_f32(opened.context(), values.data(), 1, 3, FVM_OUTPUT_LEAF, scores.data(), 8),
               "fvm_predict_f32: writes float32 numbers; fvm_predict writes classes and leaf numbers");
}

TEST(CApi, RefusesClassesOfAModelWithoutClasses) {
  Model model = small_forest();
  model.transform = Transform::Identity;
  model.class_rule = ClassRule::None;
  model.class_labels.clear();
  const Opened opened(compiled(model, ""));
  const std::vector<float> values(3);
  const fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_FLOAT32, 1, 3);
  EXPECT_EQ(width_of(opened.open(), FVM_OUTPUT_CLASS), 0u);
  for (const fvm_type type : {FVM_TYPE_INT32, FVM_TYPE_INT64}) {
    std::int64_t label = 0;
    expect_failure(fvm_predict(opened.context(), &rows, FVM_OUTPUT_CLASS, type, &label, 1), FVM_REFUSED,
                   "no classes");
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

}  // namespace
}  // namespace forestvm::test::test_c_api_errors
