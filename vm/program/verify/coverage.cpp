// See coverage.hpp.
#include "vm/program/verify/coverage.hpp"

#include <algorithm>

namespace forestvm::bytecode {
namespace {

/// The most parts of a set. This bounds the work of a pass over hostile code; the code of compiled schedules
/// needs a few.
constexpr std::size_t kMaxParts = 8;

/// Returns the elements of one axis for which the rectangles cover all of `wanted` on the other. Between
/// neighbouring edges either all elements are covered or none.
template <class Rectangle>
Intervals covered(const std::vector<Rectangle>& parts, Interval Rectangle::*axis, Interval Rectangle::*other,
                  Interval wanted) {
  std::vector<std::uint32_t> edges;
  for (const Rectangle& part : parts) {
    edges.push_back((part.*axis).from);
    edges.push_back((part.*axis).to);
  }
  std::sort(edges.begin(), edges.end());
  Intervals found;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const Interval strip{edges[i], edges[i + 1]};
    Intervals across;
    for (const Rectangle& part : parts)
      if ((part.*axis).from <= strip.from && strip.to <= (part.*axis).to) across.add(part.*other);
    if (across.covers(wanted)) found.add(strip);
  }
  return found;
}

}  // namespace

void Intervals::add(Interval added) {
  if (added.empty()) return;
  // Merges all intervals that touch `added` into it.
  const auto first = std::ranges::find_if(parts_.begin(), parts_.end(),
                                          [&](const Interval& part) { return part.to >= added.from; });
  const auto last =
      std::ranges::find_if(first, parts_.end(), [&](const Interval& part) { return part.from > added.to; });
  if (first != last) {
    added.from = std::min(added.from, first->from);
    added.to = std::max(added.to, (last - 1)->to);
  }
  const auto at = parts_.erase(first, last);
  if (parts_.size() < kMaxParts) parts_.insert(at, added);
}

bool Intervals::covers(Interval wanted) const {
  return wanted.empty() || std::ranges::any_of(parts_, [&](const Interval& part) {
           return part.from <= wanted.from && wanted.to <= part.to;
         });
}

void Rectangles::add(Interval trees, Interval rows) {
  if (trees.empty() || rows.empty()) return;
  // Joins neighbours, and the result with the next one, so that a chain of slices becomes one part.
  for (auto part = parts_.begin(); part != parts_.end();) {
    if (part->rows == rows && trees.from <= part->trees.to && part->trees.from <= trees.to) {
      trees = {std::min(part->trees.from, trees.from), std::max(part->trees.to, trees.to)};
    } else if (part->trees == trees && rows.from <= part->rows.to && part->rows.from <= rows.to) {
      rows = {std::min(part->rows.from, rows.from), std::max(part->rows.to, rows.to)};
    } else {
      ++part;
      continue;
    }
    parts_.erase(part);
    part = parts_.begin();
  }
  if (parts_.size() < kMaxParts) parts_.push_back({trees, rows});
}

Intervals Rectangles::rows_of(Interval trees) const {
  return covered(parts_, &Rectangle::rows, &Rectangle::trees, trees);
}

Intervals Rectangles::trees_of(Interval rows) const {
  return covered(parts_, &Rectangle::trees, &Rectangle::rows, rows);
}

}  // namespace forestvm::bytecode
