// Floating-point settings that a host process may have. They are set through <cfenv>; flushing of denormals
// is in a field of fenv_t with a different name on each processor.
#pragma once

#include <cfenv>
#include <string>
#include <vector>

namespace forestvm::test {

/// Sets the flush-to-zero and denormals-are-zero bits, if the processor has them.
template <class Environment>
void flush_denormals(Environment& environment) {
  if constexpr (requires { environment.__mxcsr; }) environment.__mxcsr |= 0x8040u;
  if constexpr (requires { environment.__fpcr; }) environment.__fpcr |= 1u << 24;
}

/// Returns the control bits, without the flags of exceptions that have happened.
template <class Environment>
unsigned controls(const Environment& environment) {
  if constexpr (requires { environment.__mxcsr; }) return environment.__mxcsr & ~0x3fu;
  if constexpr (requires { environment.__fpcr; }) return environment.__fpcr;
  return static_cast<unsigned>(std::fegetround());
}

inline unsigned controls_now() {
  std::fenv_t environment;
  std::fegetenv(&environment);
  return controls(environment);
}

struct Setting {
  std::string name;
  int rounding;
  bool flush;
};

inline const std::vector<Setting> kSettings = {{"upward", FE_UPWARD, false},
                                               {"downward", FE_DOWNWARD, false},
                                               {"toward zero", FE_TOWARDZERO, false},
                                               {"denormals flushed", FE_TONEAREST, true},
                                               {"all of it", FE_TOWARDZERO, true}};

/// Runs `work` under a setting and then restores the caller's.
template <class Work>
void under(const Setting& setting, const Work& work) {
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(setting.rounding);
  if (setting.flush) {
    std::fenv_t now;
    std::fegetenv(&now);
    flush_denormals(now);
    std::fesetenv(&now);
  }
  work();
  std::fesetenv(&before);
}

}  // namespace forestvm::test
