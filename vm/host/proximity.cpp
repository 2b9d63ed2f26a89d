// See forestvm/proximity.hpp. Leaf numbers get codes 0, 1, ... in the order in which the tree's leaves are met, so that
// most fit a byte. Kept rows lie in tiles, tree by tree. A tile stays in the first cache while some rows are
// compared with it.
#include <forestvm/proximity.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "vm/host/leaf_codes.hpp"
#include "vm/host/shared_leaves.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm {
namespace {

using host::kNoCode;
using host::kTileRows;
using host::LeafCodes;

constexpr std::size_t kRowsAtOnce = 16;  // Rows that are compared with a tile before the next tile.

/// Returns 0, 1 or 2 for codes of 1, 2 or 4 bytes. The largest code of a width stands for a leaf that no row has.
unsigned width_for(std::size_t leaves) { return leaves <= 0xff ? 0 : leaves <= 0xffff ? 1 : 2; }

void store_code(std::byte* at, unsigned width, std::uint32_t code) {
  const auto narrow = static_cast<std::uint8_t>(std::min<std::uint32_t>(code, 0xff));
  const auto middle = static_cast<std::uint16_t>(std::min<std::uint32_t>(code, 0xffff));
  if (width == 0) std::memcpy(at, &narrow, sizeof narrow);
  if (width == 1) std::memcpy(at, &middle, sizeof middle);
  if (width == 2) std::memcpy(at, &code, sizeof code);
}

std::uint32_t load_code(const std::byte* at, unsigned width) {
  std::uint8_t narrow = 0;
  std::uint16_t middle = 0;
  std::uint32_t code = 0;
  if (width == 0) std::memcpy(&narrow, at, sizeof narrow);
  if (width == 1) std::memcpy(&middle, at, sizeof middle);
  if (width == 2) std::memcpy(&code, at, sizeof code);
  return width == 0 ? narrow : width == 1 ? middle : code;
}

}  // namespace

struct KeptLeaves::Parts {
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  /// The widths of codes in a tile. A tree's width never shrinks from one tile to the next, so few tiles differ.
  struct Shape {
    std::vector<std::uint32_t> order;      ///< The trees in the order of their codes.
    std::array<std::uint32_t, 3> trees{};  ///< Number of trees whose codes have 1, 2 and 4 bytes.

    std::size_t code_bytes() const {
      return trees[0] + std::size_t{2} * trees[1] + std::size_t{4} * trees[2];
    }
  };

  struct Tile {
    std::size_t shape;
    std::vector<Line> lines;
  };

  const host::Target* target = nullptr;
  std::size_t trees = 0, rows = 0;
  std::vector<LeafCodes> codes;                    ///< Codes of each tree's leaf numbers.
  std::vector<std::vector<std::uint32_t>> counts;  ///< Kept rows in each leaf, by tree and code.
  std::vector<Shape> shapes;
  std::vector<Tile> tiles;
  std::vector<std::uint32_t> last;  ///< Codes of the rows of an unfinished last tile, row by row.

  /// Calls visit(tree, width, offset of the tree's first code for `rows` rows in a tile) in a tile's order.
  template <class Visit>
  static void each_tree(const Shape& shape, std::size_t rows, const Visit& visit) {
    std::size_t offset = 0, at = 0;
    for (unsigned width = 0; width < 3; ++width)
      for (std::uint32_t i = 0; i < shape.trees[width]; ++i, offset += rows << width)
        visit(shape.order[at++], width, offset);
  }

  std::size_t current_shape() {
    Shape shape;
    for (unsigned width = 0; width < 3; ++width)
      for (std::uint32_t t = 0; t < trees; ++t)
        if (width_for(counts[t].size()) == width) {
          shape.order.push_back(t);
          ++shape.trees[width];
        }
    if (shapes.empty() || shapes.back().trees != shape.trees || shapes.back().order != shape.order)
      shapes.push_back(std::move(shape));
    return shapes.size() - 1;
  }

  /// Makes the tile of the rows in `last`.
  Tile packed() {
    Tile tile{current_shape(), {}};
    const Shape& shape = shapes[tile.shape];
    tile.lines.assign(shape.code_bytes() * kTileRows / sizeof(Line), Line{});
    auto* const bytes = reinterpret_cast<std::byte*>(tile.lines.data());
    each_tree(shape, kTileRows, [&](std::uint32_t tree, unsigned width, std::size_t offset) {
      for (std::size_t r = 0; r < last.size() / trees; ++r)
        store_code(bytes + offset + (r << width), width, last[r * trees + tree]);
    });
    return tile;
  }

  /// Returns the codes of a few of the kept rows, row by row.
  std::vector<std::uint32_t> kept_codes(std::size_t first, std::size_t count) const {
    std::vector<std::uint32_t> all(count * trees);
    for (std::size_t i = 0; i < count; ++i) {
      const Tile& tile = tiles[(first + i) / kTileRows];
      const auto* const bytes = reinterpret_cast<const std::byte*>(tile.lines.data());
      const std::size_t r = (first + i) % kTileRows;
      each_tree(shapes[tile.shape], kTileRows, [&](std::uint32_t tree, unsigned width, std::size_t offset) {
        all[i * trees + tree] = load_code(bytes + offset + (r << width), width);
      });
    }
    return all;
  }

  template <class Score>
  void compare(std::span<const std::uint32_t> row_codes, Score* out) const;

  /// Compares `count` rows with all kept ones, a few at a time. `codes_of(first, count)` returns their codes.
  template <class Score, class CodesOf>
  Result<void> compare_all(std::size_t count, const CodesOf& codes_of, std::span<Score> out) const {
    if (rows != 0 && out.size() / rows < count)
      return usage(formatted("room for {} numbers, expected {} x {}", out.size(), count, rows));
    for (std::size_t i = 0; i < count; i += kRowsAtOnce) {
      const std::vector<std::uint32_t> row_codes = codes_of(i, std::min(kRowsAtOnce, count - i));
      compare(std::span(row_codes), out.data() + i * rows);
    }
    return {};
  }

  template <class Score>
  Result<void> compare_leaves(std::span<const std::int32_t> leaves, std::span<Score> out) const;
  template <class Score>
  Result<void> compare_kept(std::size_t first, std::size_t count, std::span<Score> out) const;
};

template <class Score>
void KeptLeaves::Parts::compare(std::span<const std::uint32_t> row_codes, Score* out) const {
  constexpr bool kWeighs = std::is_same_v<Score, double>;
  const std::size_t count = row_codes.size() / trees;
  std::array<std::uint32_t, kRowsAtOnce * kTileRows> found;
  std::array<double, kRowsAtOnce * kTileRows> sums;
  std::vector<Line> lines;
  std::vector<double> weights;
  std::size_t row_bytes = 0, prepared = shapes.size();
  for (std::size_t n = 0; n < tiles.size(); ++n) {
    const Tile& tile = tiles[n];
    const Shape& shape = shapes[tile.shape];
    if (tile.shape != prepared) {
      prepared = tile.shape;
      row_bytes = (shape.code_bytes() + 3) / 4 * 4;
      lines.assign(count * row_bytes / sizeof(Line) + 1, Line{});
      auto* const bytes = reinterpret_cast<std::byte*>(lines.data());
      weights.clear();
      for (std::size_t r = 0; r < count; ++r) {
        const std::uint32_t* const mine = row_codes.data() + r * trees;
        // Wide codes come first: see compare_leaves in shared_leaves.hpp.
        std::array<std::size_t, 3> next{std::size_t{4} * shape.trees[2] + std::size_t{2} * shape.trees[1],
                                        std::size_t{4} * shape.trees[2], 0};
        each_tree(shape, 1, [&](std::uint32_t tree, unsigned width, std::size_t) {
          const std::uint32_t code = mine[tree];
          store_code(bytes + r * row_bytes + next[width], width, code);
          next[width] += std::size_t{1} << width;
          if (kWeighs) weights.push_back(code == kNoCode ? 0 : 1.0 / counts[tree][code]);
        });
      }
    }
    host::SharedLeavesTask task{};
    task.tile = reinterpret_cast<const std::byte*>(tile.lines.data());
    task.trees = shape.trees;
    task.rows = reinterpret_cast<const std::byte*>(lines.data());
    task.row_bytes = row_bytes;
    task.count = static_cast<unsigned>(count);
    task.counts = found.data();
    task.weights = weights.data();
    task.sums = kWeighs ? sums.data() : nullptr;
    target->compare_leaves(task);
    const std::size_t here = std::min<std::size_t>(kTileRows, rows - n * kTileRows);
    for (std::size_t r = 0; r < count; ++r) {
      Score* const to = out + r * rows + n * kTileRows;
      for (std::size_t i = 0; i < here; ++i)
        if constexpr (kWeighs)
          to[i] = sums[r * kTileRows + i] / static_cast<double>(trees);
        else
          to[i] = static_cast<Score>(found[r * kTileRows + i]);
    }
  }
}

template <class Score>
Result<void> KeptLeaves::Parts::compare_leaves(std::span<const std::int32_t> leaves,
                                               std::span<Score> out) const {
  if (leaves.size() % trees != 0)
    return usage(formatted("{} leaf numbers are no rows of {} trees", leaves.size(), trees));
  const auto codes_of = [&](std::size_t first, std::size_t count) {
    std::vector<std::uint32_t> all(count * trees);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = codes[i % trees].find(leaves[first * trees + i]);
    return all;
  };
  return compare_all(leaves.size() / trees, codes_of, out);
}

template <class Score>
Result<void> KeptLeaves::Parts::compare_kept(std::size_t first, std::size_t count,
                                             std::span<Score> out) const {
  if (first > rows || count > rows - first)
    return usage(formatted("rows {} to {} of {} kept ones", first, first + count, rows));
  const auto codes_of = [&](std::size_t begin, std::size_t part) { return kept_codes(first + begin, part); };
  return compare_all(count, codes_of, out);
}

KeptLeaves::KeptLeaves(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
KeptLeaves::KeptLeaves(KeptLeaves&&) noexcept = default;
KeptLeaves& KeptLeaves::operator=(KeptLeaves&&) noexcept = default;
KeptLeaves::~KeptLeaves() = default;

Result<KeptLeaves> KeptLeaves::make(std::size_t trees, std::string_view target) {
  if (trees == 0) return usage("a forest without trees has no leaves to compare");
  auto parts = std::make_unique<Parts>();
  FVM_ASSIGN(parts->target, host::find_target(target));
  parts->trees = trees;
  parts->codes.resize(trees);
  parts->counts.resize(trees);
  return KeptLeaves(std::move(parts));
}

std::size_t KeptLeaves::rows() const { return parts_->rows; }
std::size_t KeptLeaves::trees() const { return parts_->trees; }

std::size_t KeptLeaves::bytes() const {
  std::size_t all = 0;
  for (const Parts::Tile& tile : parts_->tiles) all += tile.lines.size() * sizeof(Parts::Line);
  return all;
}

Result<void> KeptLeaves::add(std::span<const std::int32_t> leaves) {
  Parts& parts = *parts_;
  const std::size_t trees = parts.trees;
  if (leaves.size() % trees != 0)
    return usage(formatted("{} leaf numbers are no rows of {} trees", leaves.size(), trees));
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i] < 0)
      return usage("row {}, tree {}: leaf number {}, expected 0 or more", i / trees, i % trees, leaves[i]);
  if (!parts.last.empty()) parts.tiles.pop_back();  // It is packed again with more rows.
  for (std::size_t begin = 0; begin < leaves.size(); begin += trees) {
    for (std::size_t t = 0; t < trees; ++t) {
      const std::uint32_t code = parts.codes[t].find_or_add(leaves[begin + t]);
      if (code == parts.counts[t].size()) parts.counts[t].push_back(0);
      ++parts.counts[t][code];
      parts.last.push_back(code);
    }
    ++parts.rows;
    if (parts.rows % kTileRows != 0) continue;
    parts.tiles.push_back(parts.packed());
    parts.last.clear();
  }
  if (!parts.last.empty()) parts.tiles.push_back(parts.packed());
  return {};
}

Result<void> KeptLeaves::count(std::span<const std::int32_t> leaves, std::span<std::int32_t> out) const {
  return parts_->compare_leaves(leaves, out);
}
Result<void> KeptLeaves::weigh(std::span<const std::int32_t> leaves, std::span<double> out) const {
  return parts_->compare_leaves(leaves, out);
}
Result<void> KeptLeaves::count_kept(std::size_t first, std::size_t rows, std::span<std::int32_t> out) const {
  return parts_->compare_kept(first, rows, out);
}
Result<void> KeptLeaves::weigh_kept(std::size_t first, std::size_t rows, std::span<double> out) const {
  return parts_->compare_kept(first, rows, out);
}

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
