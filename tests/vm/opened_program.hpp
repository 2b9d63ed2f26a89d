// What tests of the C ABI's functions for rows share: a program that is open, its mistakes, sparse rows.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <forestvm/forestvm.h>
#include <forestvm/program.hpp>

#include "sparse_rows.hpp"

namespace forestvm::test {

/// A program that is open, and a context for it.
class Opened {
 public:
  explicit Opened(const Program& program) {
    const auto image = program.image();
    EXPECT_EQ(fvm_program_open_memory(image.data(), image.size(), nullptr, &program_), FVM_OK)
        << fvm_last_error();
    EXPECT_EQ(fvm_context_create(program_, &context_), FVM_OK) << fvm_last_error();
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    EXPECT_EQ(fvm_context_destroy(context_), FVM_OK);
    EXPECT_EQ(fvm_program_close(program_), FVM_OK);
  }

  fvm_program* program() const { return program_; }
  fvm_context* context() const { return context_; }

 private:
  fvm_program* program_ = nullptr;
  fvm_context* context_ = nullptr;
};

/// The call failed for a mistake of the caller's, and the message has `part` in it.
inline void expect_usage(fvm_status status, const std::string& part) {
  EXPECT_EQ(status, FVM_USAGE);
  EXPECT_NE(std::string(fvm_last_error()).find(part), std::string::npos) << fvm_last_error();
}

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
