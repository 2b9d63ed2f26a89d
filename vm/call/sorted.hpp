// Sorted vectors without duplicates, and positions in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace forestvm {

/// Sorts a vector, and removes duplicates.
template <class T, class Less = std::less<>>
void sort_unique(std::vector<T>& all, const Less& less = {}) {
  std::sort(all.begin(), all.end(), less);
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

/// Returns the index of an element of a sorted vector.
template <class T, class Less = std::less<>>
std::uint32_t index_in(const std::vector<T>& all, const T& one, const Less& less = {}) {
  return static_cast<std::uint32_t>(std::lower_bound(all.begin(), all.end(), one, less) - all.begin());
}

}  // namespace forestvm
