// "Did you mean": which of the known words a mistyped one may have been.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forestvm {

/// How many letters have to be added, left out, replaced or exchanged with the next one to turn one word into
/// the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits;  // of the beginnings of a, and of b
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

/// "; did you mean 'tile'?" for the known word that is nearest to `word`, of several the one that begins most
/// like it: at most three letters away, and nearer than a word of other letters. Nothing if none is.
inline std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kMaxEdits = 3, kLongestWord = 64;
  if (known.empty() || word.size() > kLongestWord) return {};
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
