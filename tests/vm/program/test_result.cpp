// Errors on their way through functions: FVM_TRY and FVM_ASSIGN pass them on as they are, and copies of a Result have
// errors of their own.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include <forestvm/result.hpp>

namespace forestvm::test_result {
namespace {

Result<int> checked(int number) {
  if (number < 0) return refused("number " + std::to_string(number), "it is negative");
  return number;
}

Result<void> check(int number) {
  FVM_ASSIGN(const int same, checked(number));
  return same == number ? Result<void>() : fail(ErrorCode::Internal, "another number");
}

Result<std::unique_ptr<std::string>> text_of(int number) {
  FVM_TRY(check(number));
  return std::make_unique<std::string>(std::to_string(number));
}

TEST(Result, PassesErrorsOn) {
  const auto text = text_of(-7);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::Refused);
  EXPECT_EQ(text.error().where, "number -7");
  EXPECT_EQ(text.error().text(), "number -7: it is negative");
  const auto seven = text_of(7);
  ASSERT_TRUE(seven.ok());
  EXPECT_EQ(**seven, "7");
}

TEST(Result, HasAnErrorOfItsOwnInEachCopy) {
  Result<int> first = checked(-1);
  const Result<int> copy = first;
  first = checked(2);
  EXPECT_EQ(*first, 2);
  EXPECT_EQ(copy.error().where, "number -1");
  first = copy;
  EXPECT_EQ(first.error().where, "number -1");
  const Result<int> moved = std::move(first);
  EXPECT_EQ(moved.error().where, "number -1");
  Result<void> done = check(-1);
  const Result<void> same = done;
  done = Result<void>();
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(same.error().message, "it is negative");
}

TEST(Result, RefusesTheValueOfAnError) {
  EXPECT_THROW(static_cast<void>(checked(-1).value()), std::exception);
}

TEST(Result, RefusesTheErrorOfAValue) {
  EXPECT_THROW(static_cast<void>(checked(1).error()), std::exception);
  EXPECT_THROW(static_cast<void>(Result<void>().error()), std::exception);
}

}  // namespace
}  // namespace forestvm::test_result
