// The floating-point environment of a prediction. A host process may run with denormals flushed to zero or
// another rounding mode; a comparison with a denormal threshold, or a sum, would then differ from the
// trainer's. While a FloatEnvironment exists, its thread rounds to nearest and keeps denormals.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace forestvm {

#if defined(__x86_64__)
class FloatEnvironment {
 public:
  FloatEnvironment() : saved_(_mm_getcsr()) {
    if (differs()) _mm_setcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (differs()) _mm_setcsr(saved_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  /// The control word (MXCSR) that masks all exceptions, rounds to nearest and keeps denormals (no FTZ, no DAZ).
  static constexpr unsigned kDefault = 0x1f80;
  /// Flags of exceptions that have happened; no result depends on them.
  static constexpr unsigned kStickyFlags = 0x3f;
  bool differs() const { return (saved_ & ~kStickyFlags) != kDefault; }

  unsigned saved_;
};
#else
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};
#endif

}  // namespace forestvm
