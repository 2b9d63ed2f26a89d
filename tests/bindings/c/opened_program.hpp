// Support for the tests of the C ABI: open programs, the errors of calls, rows and predictions of any type.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/program.hpp>

#include "support/temporary_folder.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test {

struct Close {
  void operator()(fvm_program* program) const { EXPECT_EQ(fvm_program_close(program), FVM_OK); }
  void operator()(fvm_context* context) const { EXPECT_EQ(fvm_context_destroy(context), FVM_OK); }
};
using OpenProgram = std::unique_ptr<fvm_program, Close>;
using OpenContext = std::unique_ptr<fvm_context, Close>;

inline OpenProgram open_memory(const Program& program, const fvm_open_options* options = nullptr) {
  fvm_program* opened = nullptr;
  const auto image = program.image();
  EXPECT_EQ(fvm_program_open_memory(image.data(), image.size(), options, &opened), FVM_OK)
      << fvm_last_error();
  return OpenProgram(opened);
}

inline OpenContext context_of(const OpenProgram& program) {
  fvm_context* context = nullptr;
  EXPECT_EQ(fvm_context_create(program.get(), &context), FVM_OK) << fvm_last_error();
  return OpenContext(context);
}

/// An open program and a context for it.
class Opened {
 public:
  explicit Opened(const Program& program) : program_(open_memory(program)), context_(context_of(program_)) {}

  fvm_program* program() const { return program_.get(); }
  const OpenProgram& open() const { return program_; }
  fvm_context* context() const { return context_.get(); }

 private:
  OpenProgram program_;
  OpenContext context_;
};

/// A test with a program in a file.
class CApiFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rich_program().save(path_).ok()); }

  const support::TemporaryFolder folder_;
  const std::string path_ = folder_.file("program.fvm");
};

/// Expects that the call failed with status `expected` and that the message contains `part`.
inline void expect_failure(fvm_status status, fvm_status expected, const std::string& part) {
  EXPECT_EQ(status, expected) << fvm_last_error();
  EXPECT_NE(std::string(fvm_last_error()).find(part), std::string::npos) << fvm_last_error();
}

/// Expects that the call failed because of a mistake of the caller.
inline void expect_usage(fvm_status status, const std::string& part) {
  expect_failure(status, FVM_USAGE, part);
}

inline std::uint32_t width_of(const OpenProgram& program, fvm_output output) {
  std::uint32_t width = 77;
  EXPECT_EQ(fvm_program_width(program.get(), output, &width), FVM_OK) << fvm_last_error();
  return width;
}

template <class Number>
constexpr fvm_type kTypeOf = FVM_TYPE_BOOL;
template <>
inline constexpr fvm_type kTypeOf<float> = FVM_TYPE_FLOAT32;
template <>
inline constexpr fvm_type kTypeOf<double> = FVM_TYPE_FLOAT64;
template <>
inline constexpr fvm_type kTypeOf<std::int32_t> = FVM_TYPE_INT32;
template <>
inline constexpr fvm_type kTypeOf<std::int64_t> = FVM_TYPE_INT64;

/// Calls fvm_predict; `capacity` is the size of `out`.
template <class Number>
fvm_status predict(fvm_context* context, const fvm_rows& rows, fvm_output output, std::vector<Number>& out) {
  return fvm_predict(context, &rows, output, kTypeOf<Number>, out.data(), out.size());
}

/// Returns what fvm_predict answers for rows whose output has this width.
template <class Number>
std::vector<Number> predicted(fvm_context* context, const fvm_rows& rows, fvm_output output,
                              std::size_t width) {
  std::vector<Number> out(rows.row_count * width);
  EXPECT_EQ(predict(context, rows, output, out), FVM_OK) << fvm_last_error();
  return out;
}

/// Returns everything that the C ABI answers for `rows`: as float32, int64 and int32.
inline Answers c_answers(const OpenProgram& program, fvm_context* context, const fvm_rows& rows) {
  const auto bits = [&](fvm_output output) {
    const auto scores = predicted<float>(context, rows, output, width_of(program, output));
    std::vector<std::uint32_t> all(scores.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::bit_cast<std::uint32_t>(scores[i]);
    return all;
  };
  return {bits(FVM_OUTPUT_RAW), bits(FVM_OUTPUT_VALUE),
          predicted<std::int64_t>(context, rows, FVM_OUTPUT_CLASS, width_of(program, FVM_OUTPUT_CLASS)),
          predicted<std::int32_t>(context, rows, FVM_OUTPUT_LEAF, width_of(program, FVM_OUTPUT_LEAF))};
}

/// Describes row-major float32 rows for the C ABI.
inline fvm_rows c_rows(const RowBlock& rows) {
  fvm_rows c = FVM_DENSE_ROWS(rows.data, FVM_TYPE_FLOAT32, rows.count, 0);
  c.row_stride = static_cast<std::ptrdiff_t>(rows.stride);
  return c;
}

inline fvm_rows c_rows(const SparseRows& rows) {
  fvm_rows c = FVM_CSR_ROWS(rows.offsets.data(), rows.columns.data(), rows.values.data(), FVM_TYPE_FLOAT32,
                            rows.count(), rows.values.size());
  c.absent = rows.absent == Absent::Zero ? FVM_ABSENT_ZERO : FVM_ABSENT_MISSING;
  return c;
}

}  // namespace forestvm::test
