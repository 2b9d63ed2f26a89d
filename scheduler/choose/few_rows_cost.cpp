// See few_rows_cost.hpp.
#include "scheduler/choose/few_rows_cost.hpp"

#include <array>
#include <cstdio>

namespace forestvm::scheduler {
namespace {

/// The ratio of costs (codes to values) at one row from which walks by values get a plan of their own.
constexpr double kWorthAPlan = 1.25;

std::string why(const FewRowsCost& cost, const char* choice, std::uint32_t rows) {
  std::array<char, 200> text{};
  std::snprintf(
      text.data(), text.size(),
      "walks %s, because at %u row%s encoding %.0f features takes about %.2f us a row and walking codes "
      "%.2f, walking values %.2f",
      choice, rows, rows == 1 ? "" : "s", cost.features, cost.encode(rows) * 1e-3, cost.walk_codes() * 1e-3,
      cost.walk_values() * 1e-3);
  return text.data();
}

}  // namespace

std::uint32_t FewRowsCost::rows_by_values() const {
  if (encode(1) + walk_codes() <= kWorthAPlan * walk_values()) return 0;
  constexpr std::uint32_t kMany = 4096;  // codes that do not pay for this number of rows never do
  for (std::uint32_t rows = 2; rows <= kMany; ++rows)
    if (encode(rows) + walk_codes() <= walk_values()) return rows - 1;
  return UINT32_MAX;
}

std::string FewRowsCost::why_values(std::uint32_t rows) const { return why(*this, "values", rows); }
std::string FewRowsCost::why_codes(std::uint32_t rows) const { return why(*this, "codes", rows); }

}  // namespace forestvm::scheduler
