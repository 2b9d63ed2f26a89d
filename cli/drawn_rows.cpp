// See drawn_rows.hpp.
#include "cli/drawn_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <forestvm/internal/program_tools.hpp>

namespace forestvm::cli {
namespace {

/// The number of categories that are drawn for a hashed feature, whose categories the program knows only as hashes.
/// They are whole numbers from 0 on.
constexpr std::uint64_t kDrawnCategories = 100;

/// Returns a number that is at least 0 and less than 1. std::uniform_real_distribution is not used, because it gives
/// different numbers in different standard libraries.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Returns the numbers that separate each feature's values: thresholds, and the ends of its sets of
/// categories.
std::map<std::uint32_t, std::vector<double>> parting_numbers(const Program& program) {
  std::map<std::uint32_t, std::vector<double>> numbers = thresholds(program);
  for (const CategoryColumn& column : program.category_columns()) {
    const auto words = program.category_words().subspan(column.first_word, column.word_count);
    const std::uint32_t least = column.listed != 0 ? words.front() : column.first_category;
    const std::uint32_t end = column.listed != 0 ? words.back() + 1 : least + 32 * column.word_count;
    for (const std::uint32_t category : {least, end})
      numbers[column.feature].push_back(static_cast<double>(category));
  }
  for (auto& [feature, mine] : numbers) std::sort(mine.begin(), mine.end());
  return numbers;
}

/// Returns the bounds of a feature's intervals.
std::vector<double> bounds_of(std::vector<double> bounds) {
  constexpr double kLargest = std::numeric_limits<float>::max();
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
  std::vector<std::pair<std::uint32_t, std::vector<double>>> features;
  for (const auto& [feature, numbers] : parting_numbers(program))
    if (feature < program.meta().num_features) features.emplace_back(feature, bounds_of(numbers));
  std::mt19937_64 random(1);
  const std::size_t width = program.meta().num_features;
  Rows rows{count, width, RowType::Float32, std::vector<float>(count * width)};
  for (std::size_t i = 0; i < count; ++i)
    for (const auto& [feature, bounds] : features) {
      const double drawn = uniform(random) * static_cast<double>(bounds.size() - 1);
      const std::size_t interval = std::min(static_cast<std::size_t>(drawn), bounds.size() - 2);
      const double inside = drawn - static_cast<double>(interval);
      rows.values[i * width + feature] =
          static_cast<float>(bounds[interval] * (1 - inside) + bounds[interval + 1] * inside);
    }
  for (const std::uint32_t feature : program.hashed_features())
    for (std::size_t i = 0; i < count; ++i)
      rows.values[i * width + feature] = static_cast<float>(random() % kDrawnCategories);
  return rows;
}

}  // namespace forestvm::cli
