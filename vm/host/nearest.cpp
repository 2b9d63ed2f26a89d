// Finds the kept rows with the largest scores: see forestvm/proximity.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <forestvm/proximity.hpp>

namespace forestvm {

template <class Score>
std::vector<Neighbour<Score>> nearest(std::span<const Score> scores, std::size_t most,
                                      std::optional<std::size_t> skipped) {
  const auto is_nearer = [](const Neighbour<Score>& a, const Neighbour<Score>& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
  };
  std::vector<Neighbour<Score>> heap;  // The farthest of the rows found so far comes first.
  if (most == 0) return heap;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (i == skipped || (heap.size() == most && scores[i] <= heap.front().score)) continue;
    if (heap.size() == most) {
      std::pop_heap(heap.begin(), heap.end(), is_nearer);
      heap.pop_back();
    }
    heap.push_back({i, scores[i]});
    std::push_heap(heap.begin(), heap.end(), is_nearer);
  }
  std::sort_heap(heap.begin(), heap.end(), is_nearer);
  return heap;
}

template std::vector<Neighbour<std::int32_t>> nearest(std::span<const std::int32_t>, std::size_t,
                                                      std::optional<std::size_t>);
template std::vector<Neighbour<double>> nearest(std::span<const double>, std::size_t,
                                                std::optional<std::size_t>);

}  // namespace forestvm
