// See radau.hpp.
#include "vm/call/paths/radau.hpp"

#include <utility>

namespace forestvm {
namespace {

/// Returns the Legendre polynomials of degree n and n - 1 at x.
std::pair<long double, long double> legendre(unsigned n, long double x) {
  long double before = 1, at = x;
  if (n == 0) return {1, 0};
  for (unsigned k = 2; k <= n; ++k) {
    const long double next = ((2 * k - 1) * x * at - (k - 1) * before) / static_cast<long double>(k);
    before = std::exchange(at, next);
  }
  return {at, before};
}

}  // namespace

Radau radau(unsigned further) {
  // The points, moved to [-1, 1], are -1 and the roots of (P(n - 1) + P(n)) / (1 + x), which are simple and lie
  // between -1 and 1. The sign changes at each root; bisection finds it to the last bit on every machine.
  const unsigned n = further + 1;
  const long double size = n;
  Radau rule{static_cast<double>(1 / (size * size)), {}, {}};
  const auto sum = [n](long double x) {
    const auto [at, before] = legendre(n, x);
    return at + before;
  };
  // Neighbouring roots are at least 1 / n^2 apart, and the first is at least as far from -1.
  const long double step = 1 / (4 * size * size);
  for (unsigned i = 1; i < 8 * n * n; ++i) {
    long double low = -1 + i * step, high = -1 + (i + 1) * step;
    if ((sum(low) < 0) == (sum(high) < 0)) continue;
    const bool rises = sum(low) < 0;
    for (int bit = 0; bit < 80; ++bit) {
      const long double middle = (low + high) / 2;
      ((sum(middle) < 0) == rises ? low : high) = middle;
    }
    const long double before = legendre(n, low).second;
    rule.points.push_back(static_cast<double>((1 + low) / 2));
    rule.weights.push_back(static_cast<double>((1 - low) / (2 * size * size * before * before)));
  }
  return rule;
}

}  // namespace forestvm
