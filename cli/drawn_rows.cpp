// See drawn_rows.hpp.
#include "cli/drawn_rows.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace forestvm::cli {
namespace {

/// From 0 to 1. The standard's distributions differ between libraries, its engines do not.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// What parts each feature's numbers: thresholds, and the ends of its sets of categories.
std::vector<std::vector<float>> parting_numbers(const Program& program) {
  std::vector<std::vector<float>> numbers = thresholds(program);
  for (const CategoryColumn& column : program.section_CategoryColumns())
    for (const std::uint32_t category :
         {column.first_category, column.first_category + 32 * column.word_count})
      numbers[column.feature].push_back(static_cast<float>(category));
  for (std::vector<float>& mine : numbers) std::sort(mine.begin(), mine.end());
  return numbers;
}

/// The bounds of a feature's intervals; empty if it has no thresholds.
std::vector<double> bounds_of(const std::vector<float>& thresholds) {
  if (thresholds.empty()) return {};
  constexpr double kLargest = std::numeric_limits<float>::max();
  std::vector<double> bounds(thresholds.begin(), thresholds.end());
  const double span =
      std::clamp(bounds.back(), -kLargest, kLargest) - std::clamp(bounds.front(), -kLargest, kLargest);
  const double width = span > 0 ? span / static_cast<double>(bounds.size()) : 1.0;
  bounds.insert(bounds.begin(), bounds.front() - width);
  bounds.push_back(bounds.back() + width);
  for (double& bound : bounds) bound = std::clamp(bound, -kLargest, kLargest);
  return bounds;
}

}  // namespace

Rows draw_rows(const Program& program, std::size_t count) {
  std::vector<std::vector<double>> bounds;
  for (const std::vector<float>& values : parting_numbers(program)) bounds.push_back(bounds_of(values));
  std::mt19937_64 random(1);
  Rows rows{count, bounds.size(), {}};
  rows.values.reserve(count * bounds.size());
  for (std::size_t i = 0; i < count; ++i)
    for (const std::vector<double>& feature : bounds) {
      if (feature.empty()) {
        rows.values.push_back(0);
        continue;
      }
      const double place = uniform(random) * static_cast<double>(feature.size() - 1);
      const std::size_t interval = std::min(static_cast<std::size_t>(place), feature.size() - 2);
      const double inside = place - static_cast<double>(interval);
      rows.values.push_back(
          static_cast<float>(feature[interval] * (1 - inside) + feature[interval + 1] * inside));
    }
  return rows;
}

}  // namespace forestvm::cli
