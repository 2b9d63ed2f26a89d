// See forestvm/proximity.hpp. Leaf numbers get codes 0, 1, ... in the order in which the tree's leaves are met, so that
// most fit a byte. Kept rows lie in tiles, tree by tree. Many rows are compared with a tile by the sets of its rows in
// each leaf (leaf_sets.hpp), a few rows by its codes (shared_leaves.hpp).
#include <forestvm/proximity.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "vm/host/leaf_codes.hpp"
#include "vm/host/leaf_sets.hpp"
#include "vm/host/lines.hpp"
#include "vm/host/set_plan.hpp"
#include "vm/host/shared_leaves.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm {
namespace {

using host::kNoCode;
using host::kSetBytes;
using host::kTileRows;
using host::LeafCodes;
using host::Line;
using host::SetNumbers;
using host::SetPlan;

/// Rows that are compared with a tile's codes before the next tile.
constexpr std::size_t kRowsAtOnce = 16;
/// Rows whose leaves of a tree are looked up before those of the next tree.
constexpr std::size_t kRowsToFind = 64;
/// Trees whose leaves are counted in turns, because a row whose leaf is that of the row before waits for its count.
constexpr std::size_t kTreesToCount = 8;
/// The most rows that are compared by codes in less time than by sets, which must be made first.
constexpr std::size_t kFewRows = 128;
/// Counts of so many bytes would fill the caches, and are written past them.
constexpr std::size_t kManyBytes = std::size_t{8} << 20;

/// Returns 0, 1 or 2 for codes of 1, 2 or 4 bytes. The largest code of a width stands for a leaf that no row has.
unsigned width_for(std::size_t leaves) { return leaves <= 0xff ? 0 : leaves <= 0xffff ? 1 : 2; }

/// Stores codes in `width`. Codes of leaves that no row of the tile has, which can be too large, become the largest.
template <class Code>
void store_as(std::byte* to, std::span<const std::uint32_t> codes) {
  constexpr std::uint32_t kLargest = std::numeric_limits<Code>::max();
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto code = static_cast<Code>(std::min(codes[i], kLargest));
    std::memcpy(to + i * sizeof code, &code, sizeof code);
  }
}

void store_codes(std::byte* to, unsigned width, std::span<const std::uint32_t> codes) {
  if (width == 0) store_as<std::uint8_t>(to, codes);
  if (width == 1) store_as<std::uint16_t>(to, codes);
  if (width == 2) store_as<std::uint32_t>(to, codes);
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

/// Puts the rows of a tile into the sets of a tree's leaves, `sets` of code 0 on. Rows of a byte of sets follow at a
/// distance, so that no store waits for the one before.
template <class Code>
void add_to_sets(const std::byte* codes, std::byte* sets) {
  for (unsigned bit = 0; bit < 8; ++bit)
    for (unsigned byte = 0; byte < kSetBytes; ++byte) {
      Code code;
      std::memcpy(&code, codes + (byte * 8 + bit) * sizeof code, sizeof code);
      sets[code * std::size_t{kSetBytes} + byte] |= std::byte{1} << bit;
    }
}

}  // namespace

struct KeptLeaves::Parts {
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

  host::LeafComparers compares{};
  std::size_t trees = 0, rows = 0;
  std::vector<LeafCodes> codes;                    ///< Codes of each tree's leaf numbers.
  std::vector<std::vector<std::uint32_t>> counts;  ///< Kept rows in each leaf, by tree and code.
  std::vector<Shape> shapes;
  std::vector<Tile> tiles;
  /// Codes of the rows of an unfinished last tile: kTileRows for each tree.
  std::vector<std::uint32_t> last;

  /// Calls visit(tree, width, offset of the tree's first code for `rows` rows in a tile) in a tile's order.
  template <class Visit>
  static void each_tree(const Shape& shape, std::size_t rows, const Visit& visit) {
    std::size_t offset = 0, at = 0;
    for (unsigned width = 0; width < 3; ++width)
      for (std::uint32_t i = 0; i < shape.trees[width]; ++i, offset += rows << width)
        visit(shape.order[at++], width, offset);
  }

  /// Finds the codes of `count` rows in some trees, and counts them. The rows become those from `begin` on in `last`.
  void add_rows(std::span<const std::int32_t> leaves, std::size_t tree, std::size_t tree_count,
                std::size_t begin, std::size_t count) {
    std::array<std::uint32_t*, kTreesToCount> sums;
    const std::uint32_t* const found = last.data() + tree * kTileRows + begin;
    for (std::size_t i = 0; i < tree_count; ++i) {
      codes[tree + i].find_or_add(leaves.data() + tree + i, trees, count,
                                  last.data() + (tree + i) * kTileRows + begin);
      counts[tree + i].resize(codes[tree + i].size());
      sums[i] = counts[tree + i].data();
    }
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t i = 0; i < tree_count; ++i) ++sums[i][found[i * kTileRows + r]];
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

  /// Makes the tile of the first rows in `last`.
  Tile packed(std::size_t count) {
    Tile tile{current_shape(), {}};
    const Shape& shape = shapes[tile.shape];
    tile.lines.assign(shape.code_bytes() * kTileRows / sizeof(Line), Line{});
    auto* const bytes = reinterpret_cast<std::byte*>(tile.lines.data());
    each_tree(shape, kTileRows, [&](std::uint32_t tree, unsigned width, std::size_t offset) {
      store_codes(bytes + offset, width, std::span(last).subspan(std::size_t{tree} * kTileRows, count));
    });
    return tile;
  }

  /// Writes the codes of a few of the kept rows to `to`, tree by tree.
  void kept_codes(std::size_t first, std::size_t count, std::uint32_t* to) const {
    for (std::size_t i = 0; i < count;) {
      const Tile& tile = tiles[(first + i) / kTileRows];
      const auto* const bytes = reinterpret_cast<const std::byte*>(tile.lines.data());
      const std::size_t begin = (first + i) % kTileRows, part = std::min(count - i, kTileRows - begin);
      each_tree(shapes[tile.shape], kTileRows, [&](std::uint32_t tree, unsigned width, std::size_t offset) {
        for (std::size_t r = 0; r < part; ++r)
          to[tree * count + i + r] = load_code(bytes + offset + ((begin + r) << width), width);
      });
      i += part;
    }
  }

  /// Puts the rows of a tile into the sets of a chunk's leaves.
  void make_sets(const SetPlan& plan, const SetPlan::Chunk& chunk, const Tile& tile,
                 std::vector<Line>& sets) const;

  /// Compares rows with all kept ones by sets.
  template <class Source>
  void count_by_sets(const SetPlan& plan, std::size_t count, const Source& source, std::int32_t* out) const;

  /// Compares rows with all kept ones by codes.
  template <class Score>
  void compare(std::span<const std::uint32_t> row_codes, Score* out) const;

  /// Compares `count` rows with all kept ones. `source.codes(first, count, to)` writes the codes of a few of them to
  /// `to`, tree by tree, and `source.set_numbers(plan, first, count, to)` the numbers of their leaves' sets to the
  /// plan's places.
  template <class Score, class Source>
  Result<void> compare_all(std::size_t count, const Source& source, std::span<Score> out) const {
    if (rows != 0 && out.size() / rows < count)
      return usage(formatted("room for {} numbers, expected {} x {}", out.size(), count, rows));
    if constexpr (std::is_same_v<Score, std::int32_t>) {
      const bool fits =
          std::ranges::all_of(counts, [](const auto& leaves) { return leaves.size() < SetPlan::kMostSets; });
      if (count > kFewRows && fits) {
        const SetPlan plan(count, trees,
                           [&](std::size_t t) { return static_cast<std::uint32_t>(counts[t].size()); });
        if (plan.rows_at_once > kFewRows) {
          count_by_sets(plan, count, source, out.data());
          return {};
        }
      }
    }
    std::vector<std::uint32_t> row_codes;
    for (std::size_t i = 0; i < count; i += kRowsAtOnce) {
      row_codes.resize(std::min(kRowsAtOnce, count - i) * trees);
      source.codes(i, row_codes.size() / trees, row_codes.data());
      compare(std::span<const std::uint32_t>(row_codes), out.data() + i * rows);
    }
    return {};
  }

  struct CalledRows;
  struct OwnRows;

  template <class Score>
  Result<void> compare_leaves(std::span<const std::int32_t> leaves, std::span<Score> out) const;
  template <class Score>
  Result<void> compare_kept(std::size_t first, std::size_t count, std::span<Score> out) const;
};

void KeptLeaves::Parts::make_sets(const SetPlan& plan, const SetPlan::Chunk& chunk, const Tile& tile,
                                  std::vector<Line>& sets) const {
  std::fill_n(sets.begin(), chunk.sets, Line{});
  const auto* const bytes = reinterpret_cast<const std::byte*>(tile.lines.data());
  each_tree(shapes[tile.shape], kTileRows, [&](std::uint32_t tree, unsigned width, std::size_t offset) {
    if (tree < chunk.begin || tree >= chunk.end) return;
    std::byte* const to = sets[plan.first_sets[tree]].bytes;
    if (width == 0) add_to_sets<std::uint8_t>(bytes + offset, to);
    if (width == 1) add_to_sets<std::uint16_t>(bytes + offset, to);
  });
}

template <class Source>
void KeptLeaves::Parts::count_by_sets(const SetPlan& plan, std::size_t count, const Source& source,
                                      std::int32_t* out) const {
  const auto planes_of = [](std::size_t most) { return static_cast<unsigned>(std::bit_width(most)); };
  const bool is_one = plan.chunks.size() == 1;
  const unsigned all_planes = planes_of(plan.row_numbers);
  std::uint32_t most_sets = 0;
  for (const SetPlan::Chunk& chunk : plan.chunks) most_sets = std::max(most_sets, chunk.sets);
  std::vector<std::uint16_t> numbers(plan.rows_at_once * plan.row_numbers);
  std::vector<Line> sets(most_sets), planes((is_one ? 1 : plan.rows_at_once) * all_planes);
  for (std::size_t begin = 0; begin < count; begin += plan.rows_at_once) {
    const std::size_t rows_here = std::min(plan.rows_at_once, count - begin);
    source.set_numbers(plan, begin, rows_here, numbers.data());
    for (std::size_t n = 0; n < tiles.size(); ++n) {
      unsigned planes_before = 0;
      for (const SetPlan::Chunk& chunk : plan.chunks) {
        make_sets(plan, chunk, tiles[n], sets);
        const bool is_last = &chunk == &plan.chunks.back();
        host::LeafSetsTask task{};
        task.sets = sets[0].bytes;
        task.numbers = numbers.data() + plan.place(chunk, 0);
        task.trees = static_cast<unsigned>(chunk.numbers());
        task.rows = rows_here;
        task.planes = planes[0].bytes;
        task.row_planes = is_one ? 0 : all_planes * sizeof(Line);
        task.plane_count = planes_of(chunk.numbers_before + chunk.numbers());
        task.planes_before = planes_before;
        task.counts = is_last ? out + begin * rows + n * kTileRows : nullptr;
        task.row_counts = rows;
        task.columns = static_cast<unsigned>(std::min<std::size_t>(kTileRows, rows - n * kTileRows));
        task.streams = count * rows * sizeof *out >= kManyBytes;
        compares.by_sets(task);
        planes_before = task.plane_count;
      }
    }
  }
}

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
        // Wide codes come first: see compare_leaves in shared_leaves.hpp.
        std::array<std::size_t, 3> next{std::size_t{4} * shape.trees[2] + std::size_t{2} * shape.trees[1],
                                        std::size_t{4} * shape.trees[2], 0};
        each_tree(shape, 1, [&](std::uint32_t tree, unsigned width, std::size_t) {
          const std::uint32_t code = row_codes[tree * count + r];
          store_codes(bytes + r * row_bytes + next[width], width, {&code, 1});
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
    compares.by_codes(task);
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

/// Rows of a call, by their leaf numbers.
struct KeptLeaves::Parts::CalledRows {
  const Parts& parts;
  std::span<const std::int32_t> leaves;

  void codes(std::size_t first, std::size_t count, std::uint32_t* to) const {
    const auto mine = leaves.subspan(first * parts.trees, count * parts.trees);
    for (std::size_t t = 0; t < parts.trees; ++t)
      for (std::size_t r = 0; r < count; ++r) *to++ = parts.codes[t].find(mine[r * parts.trees + t]);
  }

  void set_numbers(const SetPlan& plan, std::size_t first, std::size_t count, std::uint16_t* to) const {
    const SetNumbers known(plan, parts.codes);
    for (std::size_t r = 0; r < count; ++r) {
      const std::int32_t* const mine = leaves.data() + (first + r) * parts.trees;
      for (const SetPlan::Chunk& chunk : plan.chunks) {
        std::uint16_t* const numbers = to + plan.place(chunk, r);
        for (std::uint32_t t = chunk.begin; t < chunk.end; ++t)
          numbers[t - chunk.begin] = known.find(t, mine[t]);
      }
    }
  }
};

/// Rows among the kept ones, from number `first` on.
struct KeptLeaves::Parts::OwnRows {
  const Parts& parts;
  std::size_t first;

  void codes(std::size_t begin, std::size_t count, std::uint32_t* to) const {
    parts.kept_codes(first + begin, count, to);
  }

  void set_numbers(const SetPlan& plan, std::size_t begin, std::size_t count, std::uint16_t* to) const {
    std::vector<std::uint32_t> row_codes(kRowsToFind * parts.trees);
    for (std::size_t i = 0; i < count; i += kRowsToFind) {
      const std::size_t part = std::min(kRowsToFind, count - i);
      codes(begin + i, part, row_codes.data());
      for (std::size_t r = 0; r < part; ++r)
        for (const SetPlan::Chunk& chunk : plan.chunks) {
          std::uint16_t* const numbers = to + plan.place(chunk, i + r);
          for (std::uint32_t t = chunk.begin; t < chunk.end; ++t)
            numbers[t - chunk.begin] = plan.number_of(t, row_codes[t * part + r]);
        }
    }
  }
};

template <class Score>
Result<void> KeptLeaves::Parts::compare_leaves(std::span<const std::int32_t> leaves,
                                               std::span<Score> out) const {
  if (leaves.size() % trees != 0)
    return usage(formatted("{} leaf numbers are no rows of {} trees", leaves.size(), trees));
  return compare_all(leaves.size() / trees, CalledRows{*this, leaves}, out);
}

template <class Score>
Result<void> KeptLeaves::Parts::compare_kept(std::size_t first, std::size_t count,
                                             std::span<Score> out) const {
  if (first > rows || count > rows - first)
    return usage(formatted("rows {} to {} of {} kept ones", first, first + count, rows));
  return compare_all(count, OwnRows{*this, first}, out);
}

namespace {

bool has_negative(std::span<const std::int32_t> numbers) {
  typedef std::int32_t Vector __attribute__((vector_size(sizeof(Line))));
  constexpr std::size_t kLanes = sizeof(Vector) / sizeof(std::int32_t);
  Vector bits{};  // with the sign of any of the numbers
  std::size_t i = 0;
  for (; numbers.size() - i >= kLanes; i += kLanes) {
    Vector some;
    std::memcpy(&some, numbers.data() + i, sizeof some);
    bits |= some;
  }
  std::int32_t all = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) all |= bits[lane];
  for (; i < numbers.size(); ++i) all |= numbers[i];
  return all < 0;
}

/// Returns an error for the first number below 0.
Result<void> expect_numbers(std::span<const std::int32_t> leaves, std::size_t trees) {
  constexpr std::size_t kAtOnce = 4096;
  for (std::size_t begin = 0; begin < leaves.size(); begin += kAtOnce) {
    const auto some = leaves.subspan(begin, std::min(kAtOnce, leaves.size() - begin));
    if (!has_negative(some)) continue;
    const std::size_t i =
        begin + static_cast<std::size_t>(std::ranges::find_if(some, [](auto leaf) { return leaf < 0; }) -
                                         some.begin());
    return usage("row {}, tree {}: leaf number {}, expected 0 or more", i / trees, i % trees, leaves[i]);
  }
  return {};
}

}  // namespace

KeptLeaves::KeptLeaves(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
KeptLeaves::KeptLeaves(KeptLeaves&&) noexcept = default;
KeptLeaves& KeptLeaves::operator=(KeptLeaves&&) noexcept = default;
KeptLeaves::~KeptLeaves() = default;

Result<KeptLeaves> KeptLeaves::make(std::size_t trees, std::string_view target) {
  if (trees == 0) return usage("a forest without trees has no leaves to compare");
  auto parts = std::make_unique<Parts>();
  FVM_ASSIGN(const host::Target* const found, host::find_target(target));
  parts->compares = host::leaf_comparers(*found);
  parts->trees = trees;
  parts->codes.resize(trees);
  parts->counts.resize(trees);
  return KeptLeaves(std::move(parts));
}

std::size_t KeptLeaves::rows() const { return parts_->rows; }
std::size_t KeptLeaves::trees() const { return parts_->trees; }

std::size_t KeptLeaves::bytes() const {
  std::size_t all = 0;
  for (const Parts::Tile& tile : parts_->tiles) all += tile.lines.size() * sizeof(Line);
  return all;
}

Result<void> KeptLeaves::add(std::span<const std::int32_t> leaves) {
  Parts& parts = *parts_;
  const std::size_t trees = parts.trees;
  if (leaves.size() % trees != 0)
    return usage(formatted("{} leaf numbers are no rows of {} trees", leaves.size(), trees));
  FVM_TRY(expect_numbers(leaves, trees));
  parts.last.resize(trees * kTileRows);
  for (std::size_t count = leaves.size() / trees; count != 0;) {
    const std::size_t begin = parts.rows % kTileRows,
                      part = std::min({kRowsToFind, count, kTileRows - begin});
    for (std::size_t t = 0; t < trees; t += kTreesToCount)
      parts.add_rows(leaves, t, std::min(kTreesToCount, trees - t), begin, part);
    if (begin == 0) parts.tiles.emplace_back();
    parts.rows += part;
    leaves = leaves.subspan(part * trees);
    count -= part;
    if (begin + part == kTileRows || count == 0) parts.tiles.back() = parts.packed(begin + part);
  }
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
