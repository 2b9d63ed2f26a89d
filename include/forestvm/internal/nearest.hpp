// Suggests the known word that a mistyped one may have been ("did you mean").
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forestvm {

/// Returns the number of letters that have to be inserted, deleted, replaced or exchanged with the next one
/// to turn one word into the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits;  // [i][j]: for the first i letters of a and j of b
  for (std::size_t i = 0; i <= a.size(); ++i) {
    edits.emplace_back(b.size() + 1, i);
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& least = edits[i][j];
      if (i == 0) least = j;
      if (i == 0 || j == 0) continue;
      const std::size_t replaced = a[i - 1] == b[j - 1] ? 0 : 1;
      least = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least = std::min(least, edits[i - 2][j - 2] + 1);
    }
  }
  return edits.back().back();
}

/// Returns "; did you mean 'tile'?" for the known word nearest to `word`: at most three edits away, and at
/// most half as many as `word` has letters. Among equally near words it takes the one with the longest common
/// beginning. Empty if no word is near enough.
inline std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kMaxEdits = 3, kMaxWordBytes = 64;
  if (known.empty() || word.size() > kMaxWordBytes) return {};
  const auto farness = [word](std::string_view other) {
    const auto parting = std::mismatch(word.begin(), word.end(), other.begin(), other.end()).first;
    return std::pair(edit_distance(word, other), word.end() - parting);
  };
  const std::string_view nearest =
      *std::min_element(known.begin(), known.end(),
                        [&](std::string_view a, std::string_view b) { return farness(a) < farness(b); });
  if (edit_distance(word, nearest) > std::min(kMaxEdits, word.size() / 2)) return {};
  return "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace forestvm
