// Errors as values. A function that a user's file, schedule, program or machine can make fail returns a
// Result<T>; what only a bug of forestvm can cause is an FVM_CHECK. This header depends on no other header of
// forestvm.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace forestvm {

/// The kinds of errors, by who has to act. The exit codes of the command line are these: see cli/main.cpp.
enum class ErrorCode {
  Refused,      ///< The input cannot be accepted: model, rows, schedule, program, or a limit they exceed.
  Usage,        ///< The caller asked for something that makes no sense.
  Environment,  ///< A file, device or I/O operation is missing or failed.
  Internal,     ///< A bug of forestvm.
};

/// The place of a failure and its cause, ready to print as "where: message".
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string where;  ///< A place in the input: a JSON path, tree and node, line:column or pc; may be empty.
  std::string message;  ///< Text that says what was found and what was expected.

  std::string text() const { return where.empty() ? message : where + ": " + message; }
};

/// An Error in memory of its own, or none. Errors are rare: a Result has one word for them, and the code that copies
/// and deletes them exists once.
class Failure {
 public:
  Failure() = default;
  [[gnu::cold, gnu::noinline]] Failure(Error&& error) : error_(new Error(std::move(error))) {}
  [[gnu::cold, gnu::noinline]] Failure(const Error& error) : error_(new Error(error)) {}
  Failure(const Failure& other) { copy(other); }
  Failure(Failure&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Failure& operator=(Failure other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Failure() {
    if (error_ != nullptr) [[unlikely]]
      clear();
  }

  operator const Error&() const { return error(); }
  bool none() const { return error_ == nullptr; }
  /// Returns the error. Throws std::bad_optional_access if there is none.
  const Error& error() const {
    if (error_ == nullptr) [[unlikely]]
      return no_error();
    return *error_;
  }

 private:
  [[gnu::cold, gnu::noinline]] void copy(const Failure& other) {
    if (other.error_ != nullptr) error_ = new Error(*other.error_);
  }
  [[gnu::cold, gnu::noinline]] void clear() noexcept { delete error_; }
  [[gnu::cold, gnu::noinline]] static const Error& no_error() {
    static const std::optional<Error> none;
    return none.value();
  }

  const Error* error_ = nullptr;
};

/// Returns an error. It takes views and is not inlined, so that its many callers contain no code that makes
/// strings. The functions below take literals by their address as well, because making a view is more code than the
/// rest of a call.
[[gnu::cold, gnu::noinline]] inline Failure fail(ErrorCode code, std::string_view where,
                                                 std::string_view message) {
  return Error{code, std::string(where), std::string(message)};
}
/// Returns an error without a place: the caller knows it and adds it, such as a file's path or a directive's line and
/// column, or no place in the input is at fault.
[[gnu::cold, gnu::noinline]] inline Failure fail(ErrorCode code, std::string_view message) {
  return fail(code, {}, message);
}
[[gnu::cold, gnu::noinline]] inline Failure refused(std::string_view where, std::string_view message) {
  return fail(ErrorCode::Refused, where, message);
}
[[gnu::cold, gnu::noinline]] inline Failure refused(std::string_view where, const char* message) {
  return fail(ErrorCode::Refused, where, message);
}
[[gnu::cold, gnu::noinline]] inline Failure refused(const char* where, const char* message) {
  return fail(ErrorCode::Refused, where, message);
}
/// Returns a refusal without a place, which the caller adds.
[[gnu::cold, gnu::noinline]] inline Failure refused(std::string_view message) {
  return fail(ErrorCode::Refused, message);
}
[[gnu::cold, gnu::noinline]] inline Failure refused(const char* message) {
  return fail(ErrorCode::Refused, message);
}
/// Returns a Usage error: the caller made a mistake, which the message describes.
[[gnu::cold, gnu::noinline]] inline Failure usage(std::string_view message) {
  return fail(ErrorCode::Usage, message);
}
[[gnu::cold, gnu::noinline]] inline Failure usage(const char* message) {
  return fail(ErrorCode::Usage, message);
}

/// A T or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error&& error) : failure_(std::move(error)) {}
  Result(const Error& error) : failure_(error) {}
  Result(Failure failure) : failure_(std::move(failure)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& value() & { return value_.value(); }
  const T& value() const& { return value_.value(); }
  T&& value() && { return std::move(value_).value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  /// Returns the error. Throws std::bad_optional_access if the Result is ok.
  const Error& error() const { return failure_.error(); }
  /// Returns the error, to pass it on.
  Failure failure() && { return std::move(failure_); }

 private:
  std::optional<T> value_;
  Failure failure_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error&& error) : failure_(std::move(error)) {}
  Result(const Error& error) : failure_(error) {}
  Result(Failure failure) : failure_(std::move(failure)) {}

  bool ok() const { return failure_.none(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return failure_.error(); }
  /// Returns the error, to pass it on.
  Failure failure() && { return std::move(failure_); }

 private:
  Failure failure_;
};

/// Thrown by FVM_CHECK: a bug of forestvm, never a user's mistake.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace forestvm

#define FVM_STRINGIZE_(x) #x
#define FVM_STRINGIZE(x) FVM_STRINGIZE_(x)
#define FVM_CONCAT_(a, b) a##b
#define FVM_CONCAT(a, b) FVM_CONCAT_(a, b)

/// Checks what forestvm's own code guarantees; throws InternalError if it does not hold.
#define FVM_CHECK(condition)                                                                         \
  do {                                                                                               \
    if (!(condition))                                                                                \
      throw ::forestvm::InternalError(__FILE__ ":" FVM_STRINGIZE(__LINE__) ": failed: " #condition); \
  } while (false)

/// Returns the error of a Result, if it has one, from the enclosing function.
#define FVM_TRY(expression)                                                                          \
  do {                                                                                               \
    if (auto fvm_result_ = (expression); !fvm_result_.ok()) return std::move(fvm_result_).failure(); \
  } while (false)

/// FVM_ASSIGN(auto x, f()) declares or assigns the value of a Result, or returns its error from the function.
#define FVM_ASSIGN(target, expression) FVM_ASSIGN_(FVM_CONCAT(fvm_result_, __LINE__), target, expression)
#define FVM_ASSIGN_(result, target, expression)         \
  auto result = (expression);                           \
  if (!result.ok()) return std::move(result).failure(); \
  target = std::move(result).value()
