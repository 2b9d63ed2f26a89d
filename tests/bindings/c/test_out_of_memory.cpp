// The C ABI when memory or threads run out: each allocation of each call fails in turn, once or from then on,
// and so does each start of a thread. The call reports it, and programs that are open keep working.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <forestvm/forestvm.h>

#include "arrow_table.hpp"
#include "opened_program.hpp"
#include "support/allocations.hpp"
#include "support/child.hpp"
#include "support/memory.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_out_of_memory {
namespace {

using support::Failing;

constexpr std::size_t kRows = 200;
constexpr Failing kWays[] = {Failing::Once, Failing::FromThenOn};

/// A call under test. What runs before and after it does not fail.
struct Attempt {
  std::function<fvm_status()> call;
  std::function<void()> before = [] {};
  std::function<void()> after = [] {};
};

/// Fails each allocation of a call in turn, in new threads, for which forestvm has allocated nothing yet.
void expect_clean_failures(const Attempt& attempt, fvm_status otherwise = FVM_OK) {
  for (const Failing failing : kWays)
    for (std::int64_t more = 0, failed = 1; failed != 0; ++more) {
      ASSERT_LT(more, 10'000);
      fvm_status status = FVM_OK;
      std::string message;
      std::thread([&] {
        attempt.before();
        support::fail_allocations_after(more, failing);
        status = attempt.call();
        failed = support::stop_failing() ? 1 : 0;
        message = fvm_last_error();
        attempt.after();
      }).join();
      if (status == otherwise) continue;
      ASSERT_NE(failed, 0) << message;
      ASSERT_EQ(status, FVM_ENVIRONMENT) << message;
      ASSERT_NE(message.find("memory"), std::string::npos) << message;
    }
}

class OutOfMemory : public CApiFile, public testing::WithParamInterface<std::uint32_t> {
 protected:
  void SetUp() override {
    CApiFile::SetUp();
    ASSERT_TRUE(image_.save(path_).ok());
    options_.threads = GetParam();
    program_ = open_memory(image_, &options_);
  }

  /// Opens a program under failures; a program that opens must predict.
  void expect_clean_opens(const std::function<fvm_status(fvm_program**)>& open) {
    ASSERT_EQ(dense(context_of(program_).get()), FVM_OK);
    const std::vector<float> expected = scores_;
    fvm_program* program = nullptr;
    const auto call = [&] { return open(&program); };
    const auto after = [&] {
      if (program == nullptr) return;
      const OpenProgram opened(program);
      EXPECT_EQ(dense(context_of(opened).get()), FVM_OK);
      EXPECT_EQ(scores_, expected);
    };
    expect_clean_failures({.call = call, .after = after});
    EXPECT_NE(program, nullptr);
  }

  /// Makes `call` with a new context each time, and then with the context that a failed call left.
  void expect_clean_calls(const std::function<fvm_status(fvm_context*)>& call) {
    ASSERT_EQ(call(context_of(program_).get()), FVM_OK) << fvm_last_error();
    const std::vector<float> expected = scores_;
    OpenContext context;
    const auto create = [&] { context = context_of(program_); };
    const auto failing = [&] {
      scores_.assign(scores_.size(), -1);
      const fvm_status status = call(context.get());
      EXPECT_TRUE(status != FVM_OK || scores_ == expected);
      return status;
    };
    const auto again = [&] {
      EXPECT_EQ(call(context.get()), FVM_OK) << fvm_last_error();
      EXPECT_EQ(scores_, expected);
    };
    expect_clean_failures({failing, create, again});
  }

  fvm_status dense(fvm_context* context) {
    return fvm_predict_f32(context, rows_.data(), kRows, 3, FVM_OUTPUT_RAW, scores_.data(), scores_.size());
  }

  const Program image_ = compiled(small_forest(), "encode(u8); tile(batch, b0, b1, 64); parallel(b0)");
  const std::vector<float> rows_ = small_rows(kRows, 3);
  fvm_open_options options_ = FVM_OPEN_OPTIONS_INIT;
  OpenProgram program_;
  std::vector<float> scores_ = std::vector<float>(kRows * 3);
};

INSTANTIATE_TEST_SUITE_P(Threads, OutOfMemory, testing::Values(1u, 2u), testing::PrintToStringParamName());

TEST_P(OutOfMemory, OpeningAFile) {
  expect_clean_opens(
      [&](fvm_program** program) { return fvm_program_open(path_.c_str(), &options_, program); });
}

TEST_P(OutOfMemory, OpeningMemory) {
  const auto bytes = image_.image();
  expect_clean_opens([&](fvm_program** program) {
    return fvm_program_open_memory(bytes.data(), bytes.size(), &options_, program);
  });
}

TEST_P(OutOfMemory, OpeningBorrowedMemory) {
  const auto bytes = image_.image();
  std::size_t opened = 0, released = 0;
  const auto release = [](void* count) { ++*static_cast<std::size_t*>(count); };
  expect_clean_opens([&](fvm_program** program) {
    ++opened;
    return fvm_program_open_borrowed(bytes.data(), bytes.size(), release, &released, &options_, program);
  });
  EXPECT_EQ(released, opened);
}

TEST_P(OutOfMemory, CreatingAContext) {
  fvm_context* context = nullptr;
  const auto call = [&] { return fvm_context_create(program_.get(), &context); };
  const auto after = [&] { EXPECT_EQ(fvm_context_destroy(context), FVM_OK); };
  expect_clean_failures({.call = call, .after = after});
}

TEST_P(OutOfMemory, PredictingDenseRows) {
  expect_clean_calls([&](fvm_context* context) { return dense(context); });
}

TEST_P(OutOfMemory, PredictingRowsOfFloat64) {
  const std::vector<double> wide(rows_.begin(), rows_.end());
  expect_clean_calls([&](fvm_context* context) {
    const fvm_rows rows = FVM_DENSE_ROWS(wide.data(), FVM_TYPE_FLOAT64, kRows, 3);
    return predict(context, rows, FVM_OUTPUT_VALUE, scores_);
  });
}

TEST_P(OutOfMemory, PredictingSparseRows) {
  const SparseRows sparse = sparse_rows(kRows, 3, 50);
  const fvm_rows rows = c_rows(sparse);
  expect_clean_calls([&](fvm_context* context) { return predict(context, rows, FVM_OUTPUT_RAW, scores_); });
}

/// The first call of a program with Arrow's rows also makes the tables of names.
TEST_P(OutOfMemory, PredictingArrow) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer of GCC 12 hangs after an exception in std::call_once";
#endif
  Model model = small_forest();
  model.categories = {{1, {"red", "green"}, std::nan("")}};
  const Program image = compiled(model, "encode(u8)");
  const ArrowColumnPtr table =
      arrow_table(3, 0, arrow_numbers<double>("f2", {1.0, std::nullopt, 2.0}),
                  arrow_dictionary<std::int8_t>("f1", {0, 1, std::nullopt},
                                                arrow_texts<std::int32_t>("", {"green", "red"})),
                  arrow_numbers<float>("f0", {0.5f, std::nullopt, 2.0f}));
  const fvm_rows rows = arrow_rows(table);
  OpenProgram program;
  OpenContext context;
  std::vector<float> scores(9);
  const auto open = [&] {
    context = nullptr;
    program = open_memory(image, &options_);
    context = context_of(program);
  };
  const auto call = [&] { return predict(context.get(), rows, FVM_OUTPUT_RAW, scores); };
  open();
  ASSERT_EQ(call(), FVM_OK) << fvm_last_error();
  const std::vector<float> expected = scores;
  const auto again = [&] {
    scores.assign(scores.size(), -1);
    EXPECT_EQ(call(), FVM_OK) << fvm_last_error();
    EXPECT_EQ(scores, expected);
  };
  expect_clean_failures({call, open, again});
}

TEST_P(OutOfMemory, EncodingRows) {
  std::size_t size = 0;
  ASSERT_EQ(fvm_encoded_size(program_.get(), kRows, &size), FVM_OK);
  std::vector<std::uint8_t> codes(size);
  const fvm_rows rows = c_rows(RowBlock{rows_.data(), kRows, 3});
  fvm_rows coded = FVM_ROWS_INIT;
  expect_clean_calls([&](fvm_context* context) {
    const fvm_status status = fvm_encode(context, &rows, codes.data(), codes.size(), &coded);
    return status != FVM_OK ? status : predict(context, coded, FVM_OUTPUT_RAW, scores_);
  });
}

TEST_P(OutOfMemory, PredictingLabelsAsInt32) {
  std::vector<std::int32_t> labels(kRows);
  const fvm_rows rows = c_rows(RowBlock{rows_.data(), kRows, 3});
  expect_clean_calls([&](fvm_context* context) {
    const fvm_status status = predict(context, rows, FVM_OUTPUT_CLASS, labels);
    if (status == FVM_OK) scores_.assign(labels.begin(), labels.end());
    return status;
  });
}

TEST_P(OutOfMemory, SayingWhatIsWrong) {
  const auto call = [&] { return fvm_program_width(program_.get(), 77, nullptr); };
  const auto after = [] { EXPECT_STRNE(fvm_last_error(), ""); };
  expect_clean_failures({.call = call, .after = after}, FVM_USAGE);
}

class OutOfThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (FVM_SANITIZED != 0) GTEST_SKIP() << "no pthread_create to replace: a sanitizer has its own";
  }

  OpenProgram opened(std::uint32_t threads) const {
    fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
    options.threads = threads;
    return open_memory(image_, &options);
  }

  std::vector<float> predictions(const OpenProgram& program) const {
    std::vector<float> scores(kRows * 3);
    EXPECT_EQ(fvm_predict_f32(context_of(program).get(), rows_.data(), kRows, 3, FVM_OUTPUT_RAW,
                              scores.data(), scores.size()),
              FVM_OK)
        << fvm_last_error();
    return scores;
  }

  const Program image_ = compiled(small_forest(), "tile(batch, b0, b1, 64); parallel(b0)");
  const std::vector<float> rows_ = small_rows(kRows, 3);
};

TEST_F(OutOfThreads, AProgramDoesNotOpen) {
  constexpr std::uint32_t kThreads =
      5;  // no other program uses this number, so its threads are not there yet
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  options.threads = kThreads;
  const auto bytes = image_.image();
  for (const Failing failing : kWays)
    for (std::int64_t more = 0; more + 1 < kThreads; ++more) {
      fvm_program* program = nullptr;
      support::fail_threads_after(more, failing);
      const fvm_status status = fvm_program_open_memory(bytes.data(), bytes.size(), &options, &program);
      EXPECT_TRUE(support::stop_failing());
      expect_failure(status, FVM_ENVIRONMENT, "cannot start 5 threads: Resource temporarily unavailable");
      EXPECT_EQ(program, nullptr);
    }
  EXPECT_EQ(predictions(opened(kThreads)), predictions(opened(1)));
}

TEST_F(OutOfThreads, AChildWorksAlone) {
  const OpenProgram program = opened(3);
  const std::vector<float> expected = predictions(program);
  EXPECT_TRUE(support::in_child([&] {
    support::fail_threads_after(1, Failing::FromThenOn);
    if (predictions(program) != expected || !support::has_at_most_threads(1)) return false;
    return support::stop_failing() && predictions(program) == expected && support::thread_count() == 3;
  }));
}

}  // namespace
}  // namespace forestvm::test::test_out_of_memory
