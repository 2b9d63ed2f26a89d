// See forestvm/internal/value_rules.hpp.
#include <forestvm/internal/value_rules.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <forestvm/core/transform.hpp>
#include <forestvm/internal/float_environment.hpp>

namespace forestvm {
namespace {

/// Bits of the filter for each bound. With kFilterBits, one value in 32 looks for a bound in vain. The filter has
/// up to kMaxFilterBitsPerBound as long as it fits the first-level cache.
constexpr std::size_t kFilterBits = 32, kMaxFilterBitsPerBound = 256;
constexpr std::size_t kFilterInCache = std::size_t{1} << 17;
constexpr std::size_t kMaxFilterBits = std::size_t{1} << 31;

constexpr float kAboveMinusOne = -0x1.fffffep-1f;

std::uint32_t hash_of(std::uint32_t feature, float up) {
  return hash_of_bound(feature, std::bit_cast<std::uint32_t>(up));
}

/// Does what a RoundFunction does, on any CPU.
std::uint64_t round_anywhere(const RoundTask& task) { return round_down(task); }

}  // namespace

ValueRules::ValueRules() : round_(round_anywhere) {}

[[gnu::cold]] ValueRules::ValueRules(const Program& program, RoundFunction function)
    : columns_(program),
      wide_(program.meta().row_type == ScalarType::Float64),
      bounds_(program.wide_bounds()),
      round_(function != nullptr ? function : round_anywhere) {
  const FloatEnvironment environment;  // rounds to nearest, whatever the caller's mode is
  std::size_t between = 0;             // bounds that are no float32
  for (const WideFeature& wide : program.wide_features()) {
    if (wide.ranked == 0) between += wide.bound_count;
    if (wide.ranked == 0 && wide.categories == 0) continue;
    const auto bounds =
        wide.ranked != 0 ? bounds_.subspan(wide.first_bound, wide.bound_count) : std::span<const double>();
    const auto categories = static_cast<WideCategories>(wide.categories);
    specials_.push_back({wide.feature, false, categories, wide.ranked != 0, bounds});
    changes_float32_ |= wide.ranked != 0 || categories >= WideCategories::Whole;
  }
  for (const std::uint32_t feature : program.zero_missing()) {
    const auto at = std::lower_bound(specials_.begin(), specials_.end(), feature,
                                     [](const Special& a, std::uint32_t b) { return a.feature < b; });
    if (at != specials_.end() && at->feature == feature)
      at->zero_missing = true;
    else
      specials_.insert(at, {feature, true, WideCategories::None, false, {}});
    changes_float32_ = true;
  }
  if (!wide_) return;
  const std::size_t features = program.meta().num_features;
  run_tests_.assign(3 * features, 0);  // no number is in an empty set
  if (between == 0) return;
  const std::size_t wanted =
      std::max(between * kFilterBits, std::min(between * kMaxFilterBitsPerBound, kFilterInCache));
  const std::size_t filter_bits = std::bit_ceil(std::min(wanted, kMaxFilterBits));
  filter_.assign(filter_bits / 32 + 1, 0);
  filter_mask_ = static_cast<std::uint32_t>(filter_bits - 1);
  slots_.resize(std::bit_ceil(between + between / 2 + 1));
  for (const WideFeature& wide : program.wide_features())
    for (std::uint32_t i = 0; wide.ranked == 0 && i < wide.bound_count; ++i) {
      const std::uint32_t number = wide.first_bound + i;
      const float up = neighbours(bounds_[number]).up;
      const auto bits = std::bit_cast<std::uint32_t>(up);
      std::uint32_t* const tests = run_tests_.data() + wide.feature;
      std::uint32_t &agreeing = tests[kAgreeing * features], &pattern = tests[kPattern * features];
      agreeing = i == 0 ? UINT32_MAX : agreeing & ~(pattern ^ bits);
      pattern = bits;
      tests[kListed * features] |= run_bit(bits);
      const std::uint32_t h = hash_of(wide.feature, up);
      filter_[(h & filter_mask_) / 32] |= std::uint32_t{1} << (h & filter_mask_) % 32;
      std::size_t slot = h & (slots_.size() - 1);
      while (slots_[slot].feature != UINT32_MAX) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = {wide.feature, number};
    }
}

void ValueRules::round(const RoundTask& task) const {
  for (std::uint64_t left = round_(task); left != 0; left &= left - 1) {
    const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
    task.out[task.index(i)] = round(task.features[i], task.value(i));
  }
}

void ValueRules::round_run(std::span<const std::uint32_t> features, const double* values, float* out) const {
  round({values, static_cast<std::uint32_t>(features.size()), features.data(), filter_.data(), filter_mask_,
         out, false, run_tests_.data() + features.front(), run_tests_.size() / 3});
}

const ValueRules::Special* ValueRules::special(std::uint32_t feature) const {
  const auto at = std::lower_bound(specials_.begin(), specials_.end(), feature,
                                   [](const Special& a, std::uint32_t b) { return a.feature < b; });
  return at != specials_.end() && at->feature == feature ? &*at : nullptr;
}

bool ValueRules::is_above_bound(std::uint32_t feature, float up, double x) const {
  if (slots_.empty()) return false;
  for (std::size_t slot = hash_of(feature, up);; ++slot) {
    const Slot& here = slots_[slot & (slots_.size() - 1)];
    if (here.feature == UINT32_MAX) return false;
    if (here.feature != feature) continue;
    const double bound = bounds_[here.bound];
    // A feature has at most one bound between two neighbours: otherwise it is ranked.
    if (neighbours(bound).up == up) return x >= bound;
  }
}

float ValueRules::round(const Special& special, double x) const {
  if (std::isnan(x) || (special.zero_missing && std::abs(x) <= kTiny))
    return std::numeric_limits<float>::quiet_NaN();
  switch (special.categories) {
    case WideCategories::None:
    case WideCategories::Parts:
      break;
    case WideCategories::Whole:
      if (x != std::trunc(x)) return std::numeric_limits<float>::quiet_NaN();
      break;
    case WideCategories::Byte:
      if (x < 0) return std::numeric_limits<float>::quiet_NaN();
      return static_cast<float>(byte_of(x));
    case WideCategories::SignedByte:
      return static_cast<float>(byte_of(x));
    case WideCategories::Integers:
      if (!is_int32(x)) x = std::numeric_limits<double>::infinity();
      break;
  }
  if (special.ranked)
    return static_cast<float>(std::upper_bound(special.bounds.begin(), special.bounds.end(), x) -
                              special.bounds.begin());
  // Rounded down, x would be -1, which is no category where numbers above -1 are category 0.
  if (special.categories == WideCategories::Parts && x > -1 && x < 0)
    return std::max(round(special.feature, x), kAboveMinusOne);
  return round(special.feature, x);
}

}  // namespace forestvm
