// Calls like a context's last call (Predictor::predict_again) give what other calls give, whatever came between them.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include "vm/small_program.hpp"

namespace forestvm::test::test_known_calls {
namespace {

constexpr std::size_t kMostRows = 70, kStride = 7;

/// A call for some of the rows that a test has.
struct Call {
  OutputKind output;
  ResultType type;
  std::size_t begin, count, stride;

  RowBlock rows(const std::vector<float>& all) const { return {all.data() + begin, count, stride}; }
};

using Bytes = std::vector<std::byte>;

std::size_t numbers_of(const Program& program, const Call& call) {
  return call.count * output_width(program, call.output);
}

/// Returns what a call writes in a context; nothing if it is refused.
Bytes answer(const Predictor& predictor, Context& context, const Call& call, const std::vector<float>& all) {
  Bytes out(numbers_of(predictor.program(), call) * 8, std::byte{0xAB});
  if (!predictor.predict_as(context, call.rows(all), call.output, call.type, out.data()).ok()) return {};
  return out;
}

/// Does what answer() does, for a call that the context knows.
Bytes answer_again(const Predictor& predictor, Context& context, const Call& call,
                   const std::vector<float>& all) {
  const std::size_t numbers = numbers_of(predictor.program(), call);
  Bytes out(numbers * 8, std::byte{0xAB});
  EXPECT_TRUE(predictor.predict_again(context, call.rows(all), call.output, call.type, out.data(), numbers));
  return out;
}

const Call kRaw = {OutputKind::Raw, ResultType::Float32, 0, 1, kStride};

/// Returns a program of three outputs that takes margins, whose walks read codes.
Program coded_program() {
  Model model = small_forest({.trees = 20, .features = 5, .outputs = 3});
  model.takes_margins = true;
  return compiled(model, "encode(u8)");
}

class KnownCalls : public testing::Test {
 protected:
  const std::vector<float> rows_ = small_rows(2 * kMostRows, kStride);
  const Program program_ = coded_program();
  const std::unique_ptr<Predictor> predictor_ = std::move(host_backend(program_)).value();
  const std::unique_ptr<Context> context_ = predictor_->make_context();

  /// Returns whether the context knows a call like kRaw with room for `capacity` numbers.
  bool knows_raw(std::size_t capacity = 3) const {
    float out[3];
    return predictor_->predict_again(*context_, kRaw.rows(rows_), kRaw.output, kRaw.type, out, capacity);
  }
};

TEST_F(KnownCalls, ManyCallsInAnyOrder) {
  std::mt19937 random(1);
  const auto draw = [&](std::uint32_t below) { return static_cast<std::size_t>(random() % below); };
  const auto small = host_backend(compiled(small_forest({.features = 3, .outputs = 2}), ""));
  for (const Program& program : rich_programs()) {
    for (const unsigned threads : {1U, 2U}) {
      const auto predictor = std::move(host_backend(program, {.threads = threads})).value();
      const auto context = predictor->make_context();
      const auto outputs = outputs_of(program);
      Call call = kRaw;
      for (int i = 0; i < 100; ++i) {
        SCOPED_TRACE(i);
        if (draw(3) == 0) {  // otherwise it is like the last call
          const bool integers = call.output == OutputKind::Class || call.output == OutputKind::Leaf;
          if (draw(2) == 0) call.output = outputs[draw(static_cast<std::uint32_t>(outputs.size()))];
          if (draw(2) == 0) call.type = integers ? ResultType::Int32 : ResultType::Float32;
          if (draw(3) == 0) call.type = integers ? ResultType::Int64 : ResultType::Float64;
          if (draw(2) == 0) call.count = draw(kMostRows);
          call.stride = draw(2) == 0 ? kStride : kStride - 1;
        }
        call.begin = draw(kMostRows) * kStride;
        if (draw(8) == 0) {
          EXPECT_FALSE(answer(**small, *context, kRaw, rows_).empty());
        }
        EXPECT_EQ(answer(*predictor, *context, call, rows_),
                  answer(*predictor, *predictor->make_context(), call, rows_));
      }
    }
  }
}

TEST_F(KnownCalls, OutputsOfPlainRowsAreKnown) {
  const auto check = [&](OutputKind output, ResultType type, std::size_t count) {
    Call call = {output, type, 0, count, kStride};
    answer(*predictor_, *context_, call, rows_);
    call.begin = 3 * kStride;
    EXPECT_EQ(answer_again(*predictor_, *context_, call, rows_),
              answer(*predictor_, *predictor_->make_context(), call, rows_));
  };
  for (const std::size_t count : {1U, 5U, 70U}) {
    check(OutputKind::Raw, ResultType::Float32, count);
    check(OutputKind::Value, ResultType::Float32, count);
    check(OutputKind::Value, ResultType::Float64, count);
    check(OutputKind::Class, ResultType::Int64, count);
    check(OutputKind::Leaf, ResultType::Int32, count);
  }
}

TEST_F(KnownCalls, OtherCallsAreNot) {
  EXPECT_FALSE(knows_raw()) << "there was no call";
  answer(*predictor_, *context_, kRaw, rows_);
  EXPECT_TRUE(knows_raw());
  EXPECT_FALSE(knows_raw(2)) << "no room for the output";
  float out[6];
  const auto again = [&](const RowBlock& rows, OutputKind output, ResultType type, void* to) {
    return predictor_->predict_again(*context_, rows, output, type, to, 6);
  };
  const float* const data = rows_.data();
  EXPECT_FALSE(again({data, 2, kStride}, OutputKind::Raw, ResultType::Float32, out));
  EXPECT_FALSE(again({data, 1, kStride + 1}, OutputKind::Raw, ResultType::Float32, out));
  EXPECT_FALSE(again({data, 1, kStride, RowType::Int32}, OutputKind::Raw, ResultType::Float32, out));
  EXPECT_FALSE(again({data, 1, kStride, RowType::Float32, 2}, OutputKind::Raw, ResultType::Float32, out));
  EXPECT_FALSE(again({data, 1, kStride}, OutputKind::Value, ResultType::Float32, out));
  EXPECT_FALSE(again({data, 1, kStride}, OutputKind::Raw, ResultType::Float64, out));
  EXPECT_FALSE(again({nullptr, 1, kStride}, OutputKind::Raw, ResultType::Float32, out));
  EXPECT_FALSE(again({data, 1, kStride}, OutputKind::Raw, ResultType::Float32, nullptr));
  EXPECT_TRUE(knows_raw()) << "calls that are not known leave the last one known";
}

TEST_F(KnownCalls, WhateverUsesTheScratchMemoryEndsThem) {
  const auto call = [&] {
    answer(*predictor_, *context_, kRaw, rows_);
    EXPECT_TRUE(knows_raw());
  };
  call();
  const auto other = std::move(host_backend(program_)).value();
  answer(*other, *context_, kRaw, rows_);
  EXPECT_FALSE(knows_raw()) << "another predictor's call";
  call();
  std::vector<std::uint8_t> codes(coded_bytes(1, predictor_->coded_columns()));
  EXPECT_TRUE(predictor_->encode(*context_, RowBlock{rows_.data(), 1, kStride}, codes).ok());
  EXPECT_FALSE(knows_raw()) << "encoded rows";
  call();
  const float margins[3] = {1, 2, 3};
  float out[3];
  const CallOptions options{.base_margin = {margins, 1, 3, false}};
  EXPECT_TRUE(
      predictor_
          ->predict_with(*context_, kRaw.rows(rows_), OutputKind::Raw, ResultType::Float32, options, out)
          .ok());
  EXPECT_FALSE(knows_raw()) << "a call with margins";
  call();
  const std::vector<double> doubles(rows_.begin(), rows_.end());
  const RowBlock wide{doubles.data(), 1, kStride, RowType::Float64};
  EXPECT_TRUE(predictor_->predict(*context_, wide, OutputKind::Raw, out).ok());
  EXPECT_FALSE(knows_raw()) << "a call with other rows";
  EXPECT_FALSE(predictor_->predict_again(*context_, wide, OutputKind::Raw, ResultType::Float32, out, 3));
}

}  // namespace
}  // namespace forestvm::test::test_known_calls
