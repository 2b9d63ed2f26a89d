// What tests of the C ABI share: programs that are open, the errors of calls, functions by the type of rows,
// sparse rows.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include <forestvm/forestvm.h>
#include <forestvm/program.hpp>

#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"
#include "support/temporary_folder.hpp"

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

/// A program that is open, and a context for it.
class Opened {
 public:
  explicit Opened(const Program& program) : program_(open_memory(program)), context_(context_of(program_)) {}

  fvm_program* program() const { return program_.get(); }
  fvm_context* context() const { return context_.get(); }

 private:
  OpenProgram program_;
  OpenContext context_;
};

/// A program in a file.
class CApiFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rich_program().save(path_).ok()); }

  const support::TemporaryFolder folder_;
  const std::string path_ = folder_.file("program.fvm");
};

/// The call failed this way, and the message has `part` in it.
inline void expect_failure(fvm_status status, fvm_status expected, const std::string& part) {
  EXPECT_EQ(status, expected) << fvm_last_error();
  EXPECT_NE(std::string(fvm_last_error()).find(part), std::string::npos) << fvm_last_error();
}

/// The call failed for a mistake of the caller's.
inline void expect_usage(fvm_status status, const std::string& part) {
  expect_failure(status, FVM_USAGE, part);
}

inline std::uint32_t width_of(const OpenProgram& program, fvm_output output) {
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

inline fvm_csr_rows c_rows(const SparseRows& rows) {
  fvm_csr_rows c = FVM_CSR_ROWS_INIT;
  c.row_count = rows.count();
  c.offsets = rows.offsets.data();
  c.columns = rows.columns.data();
  c.values = rows.values.data();
  c.value_count = rows.values.size();
  c.absent = rows.absent == Absent::Zero ? FVM_ABSENT_ZERO : FVM_ABSENT_MISSING;
  return c;
}

}  // namespace forestvm::test
