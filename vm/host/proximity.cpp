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

#include "vm/host/large_results.hpp"
#include "vm/host/leaf_codes.hpp"
#include "vm/host/leaf_sets.hpp"
#include "vm/host/lines.hpp"
#include "vm/host/set_plan.hpp"
#include "vm/host/shared_leaves.hpp"
#include "vm/host/targets/target.hpp"
#include "vm/host/tree_rows.hpp"

namespace forestvm {
namespace {

static_assert(KeptLeaves::kRowsTogether == host::kTileRows);

using host::kNoCode;
using host::kSetBytes;
using host::kTileRows;
using host::kTreeRows;
using host::LeafCodes;
using host::Line;
using host::SetNumbers;
using host::SetPlan;

/// Rows that are compared with a tile's codes before the next tile.
constexpr std::size_t kRowsAtOnce = 64;
/// Rows whose leaves of a tree are looked up before those of the next tree.
constexpr std::size_t kRowsToFind = 64;
/// Trees whose leaves are counted in turns, because a row whose leaf is that of the row before waits for its count.
constexpr std::size_t kTreesToCount = 8;
/// The most rows that are compared by codes in less time than by sets, which must be made first.
constexpr std::size_t kFewRows = 128;
/// Rows whose counts are also written, as columns, to the rows of the kept ones, so that each of these gets a kilobyte.
constexpr std::size_t kMirroredRows = 15 * kTreeRows;
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

/// Copies the scores of at most kRowsAtOnce rows and the kept rows of a tile, which lie row by row at `from`, to the
/// rows of the tile, which lie `stride` apart at `to`.
template <class Score>
void mirror(const Score* from, std::size_t rows, Score* to, std::size_t stride, bool streams) {
  constexpr std::size_t kColumns = 8;
  Score lines[kColumns][kRowsAtOnce];
  for (std::size_t c = 0; c < kTileRows; c += kColumns) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < kColumns; ++i) lines[i][r] = from[r * kTileRows + c + i];
    for (std::size_t i = 0; i < kColumns; ++i)
      host::copy_result(lines[i], rows * sizeof *to, to + (c + i) * stride, streams);
  }
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

/// Writes the numbers of the sets of a tree's leaves, of which that of code 0 has the number `first`.
template <class Code>
void number_sets(const std::byte* codes, std::size_t count, std::uint32_t first, std::uint16_t* to,
                 std::size_t stride) {
  for (std::size_t r = 0; r < count; ++r) {
    Code code;
    std::memcpy(&code, codes + r * sizeof code, sizeof code);
    to[r * stride] = static_cast<std::uint16_t>(first + code);
  }
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
  host::StoreTreesFunction transposes = nullptr;
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

  /// Calls visit(tree, width, codes of the tile's rows) for the trees of a chunk.
  template <class Visit>
  void each_tree_of(const Tile& tile, const SetPlan::Chunk& chunk, const Visit& visit) const {
    const auto* const bytes = reinterpret_cast<const std::byte*>(tile.lines.data());
    each_tree(shapes[tile.shape], kTileRows, [&](std::uint32_t tree, unsigned width, std::size_t offset) {
      if (tree >= chunk.begin && tree < chunk.end) visit(tree, width, bytes + offset);
    });
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

  /// Returns whether results of so many bytes for a kept row would fill the caches.
  bool is_large(std::size_t bytes) const { return bytes * rows >= kManyBytes; }

  /// Does what mirror() does for the counts of many rows at once, and moves those of the last rows to the beginning.
  /// `begins` and `ends` tell of the first and the last rows that follow each other.
  void mirror_counts(std::span<std::int32_t> from, std::size_t count, std::int32_t* to, bool streams,
                     bool begins, bool ends) const {
    if (count < kTreeRows) return mirror(from.data(), count, to, rows, streams);
    // The function copies 32 bits, whichever numbers they are.
    for (std::size_t c = 0; c < kTileRows; c += kTreeRows)
      transposes({reinterpret_cast<const float*>(from.data() + c), kTileRows, count,
                  reinterpret_cast<float*>(to + c * rows), rows, streams, begins, ends});
    std::copy_n(from.data() + (count - kTreeRows) * kTileRows, kTreeRows * kTileRows, from.data());
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

  struct Rows;

  /// Compares rows with all kept ones by sets.
  void count_by_sets(const SetPlan& plan, const Rows& compared, std::int32_t* out) const;

  /// Compares rows with all kept ones by codes.
  template <class Score>
  void compare_by_codes(const Rows& compared, Score* out) const;

  /// Compares a few rows from number `begin` on, whose codes are given tree by tree. `scores` has room for those of a
  /// tile.
  template <class Score>
  void compare(const Rows& compared, std::size_t begin, std::span<const std::uint32_t> row_codes,
               Score* scores, bool streams, Score* out) const;

  template <class Score>
  Result<void> compare_all(const Rows& compared, std::span<Score> out) const;
  template <class Score>
  Result<void> compare_leaves(std::span<const std::int32_t> leaves, std::span<Score> out) const;
  template <class Score>
  Result<void> compare_kept(std::size_t first, std::size_t count, std::span<Score> out) const;
};

/// Rows that are compared with the kept ones: rows of a call, or some of the kept ones.
struct KeptLeaves::Parts::Rows {
  const Parts& parts;
  const std::int32_t* leaves;  ///< The leaf numbers of rows of a call; null for kept rows.
  std::size_t first, count;    ///< The number of the first among the kept rows, and the number of rows.
  /// Tiles that have only rows that are among these. Of two such tiles the rows of the later one are compared with the
  /// earlier one, and the results are written for the rows of both.
  std::size_t own_begin = 0, own_end = 0;

  bool owns(std::size_t tile) const { return own_begin <= tile && tile < own_end; }

  /// Returns the place of the score of an own tile's first row and a row among the compared ones.
  std::size_t mirrored(std::size_t tile, std::size_t row) const {
    return (tile * kTileRows - first) * parts.rows + first + row;
  }

  /// Writes the codes of a few rows to `to`, tree by tree.
  void codes(std::size_t begin, std::size_t some, std::uint32_t* to) const {
    if (leaves == nullptr) return parts.kept_codes(first + begin, some, to);
    const std::int32_t* const mine = leaves + begin * parts.trees;
    for (std::size_t t = 0; t < parts.trees; ++t)
      for (std::size_t r = 0; r < some; ++r) *to++ = parts.codes[t].find(mine[r * parts.trees + t]);
  }

  /// Writes the numbers of the sets of rows' leaves to the plan's places.
  void set_numbers(const SetPlan& plan, std::size_t begin, std::size_t some, std::uint16_t* to) const {
    if (leaves == nullptr) return own_set_numbers(plan, begin, some, to);
    const SetNumbers known(plan, parts.codes);
    for (std::size_t r = 0; r < some; ++r) {
      const std::int32_t* const mine = leaves + (begin + r) * parts.trees;
      for (const SetPlan::Chunk& chunk : plan.chunks) {
        std::uint16_t* const numbers = to + plan.place(chunk, r);
        for (std::uint32_t t = chunk.begin; t < chunk.end; ++t)
          numbers[t - chunk.begin] = known.find(t, mine[t]);
      }
    }
  }

  /// Does it for kept rows, from their codes.
  void own_set_numbers(const SetPlan& plan, std::size_t begin, std::size_t some, std::uint16_t* to) const {
    for (std::size_t i = 0, part = 0; i < some; i += part) {
      const std::size_t row = first + begin + i, at = row % kTileRows;
      part = std::min({kRowsToFind, some - i, kTileRows - at});
      const Tile& tile = parts.tiles[row / kTileRows];
      for (const SetPlan::Chunk& chunk : plan.chunks)
        parts.each_tree_of(tile, chunk, [&](std::uint32_t tree, unsigned width, const std::byte* at_tree) {
          const auto number = width == 0 ? number_sets<std::uint8_t> : number_sets<std::uint16_t>;
          number(at_tree + (at << width), part, plan.first_sets[tree],
                 to + plan.place(chunk, i) + (tree - chunk.begin), chunk.numbers());
        });
    }
  }
};

void KeptLeaves::Parts::make_sets(const SetPlan& plan, const SetPlan::Chunk& chunk, const Tile& tile,
                                  std::vector<Line>& sets) const {
  std::fill_n(sets.begin(), chunk.sets, Line{});
  each_tree_of(tile, chunk, [&](std::uint32_t tree, unsigned width, const std::byte* codes_of_rows) {
    std::byte* const to = sets[plan.first_sets[tree]].bytes;
    if (width == 0) add_to_sets<std::uint8_t>(codes_of_rows, to);
    if (width == 1) add_to_sets<std::uint16_t>(codes_of_rows, to);
  });
}

void KeptLeaves::Parts::count_by_sets(const SetPlan& plan, const Rows& compared, std::int32_t* out) const {
  const auto planes_of = [](std::size_t most) { return static_cast<unsigned>(std::bit_width(most)); };
  const bool is_one = plan.chunks.size() == 1, streams = is_large(compared.count * sizeof *out);
  const unsigned all_planes = planes_of(plan.row_numbers);
  std::uint32_t most_sets = 0;
  for (const SetPlan::Chunk& chunk : plan.chunks) most_sets = std::max(most_sets, chunk.sets);
  std::vector<std::uint16_t> numbers(plan.rows_at_once * plan.row_numbers);
  std::vector<Line> sets(most_sets), planes((is_one ? 1 : plan.rows_at_once) * all_planes);
  std::vector<std::int32_t> copies(compared.own_end == 0 ? 0 : (kMirroredRows + kTreeRows) * kTileRows);
  for (std::size_t begin = 0; begin < compared.count; begin += plan.rows_at_once) {
    const std::size_t rows_here = std::min(plan.rows_at_once, compared.count - begin),
                      end = begin + rows_here;
    compared.set_numbers(plan, begin, rows_here, numbers.data());
    for (std::size_t n = 0; n < tiles.size(); ++n) {
      // Rows of own tiles before this one have its counts already; those of own tiles behind it give it theirs.
      std::size_t from = begin, mirrored = end;
      if (compared.owns(n)) {
        from = std::max(begin, n * kTileRows - compared.first);
        mirrored = std::min(end, (n + 1) * kTileRows - compared.first);
      }
      unsigned planes_before = 0;
      for (const SetPlan::Chunk& chunk : plan.chunks) {
        if (from >= end) break;
        make_sets(plan, chunk, tiles[n], sets);
        const bool is_last = &chunk == &plan.chunks.back();
        host::LeafSetsTask task{};
        task.sets = sets[0].bytes;
        task.trees = static_cast<unsigned>(chunk.numbers());
        task.row_planes = is_one ? 0 : all_planes * sizeof(Line);
        task.plane_count = planes_of(chunk.numbers_before + chunk.numbers());
        task.planes_before = planes_before;
        for (std::size_t i = from; i < end; i += task.rows) {
          const bool mirrors = is_last && i >= mirrored;
          // Whole lines are written with the last rows of the part before.
          const std::size_t back = mirrors && i > std::max(from, mirrored) ? kTreeRows : 0;
          task.rows = (!is_last ? end : mirrors ? std::min(end, i + kMirroredRows) : mirrored) - i;
          task.numbers = numbers.data() + plan.place(chunk, i - begin);
          task.planes = planes[is_one ? 0 : (i - begin) * all_planes].bytes;
          task.counts = is_last ? out + i * rows + n * kTileRows : nullptr;
          task.row_counts = rows;
          task.columns = static_cast<unsigned>(std::min<std::size_t>(kTileRows, rows - n * kTileRows));
          task.streams = streams;
          task.copies = mirrors ? copies.data() + back * kTileRows : nullptr;
          compares.by_sets(task);
          if (mirrors)
            mirror_counts(copies, task.rows + back, out + compared.mirrored(n, i - back), streams, back == 0,
                          i + task.rows == end);
        }
        planes_before = task.plane_count;
      }
    }
  }
  host::finish_result(streams);
}

template <class Score>
void KeptLeaves::Parts::compare(const Rows& compared, std::size_t begin,
                                std::span<const std::uint32_t> row_codes, Score* scores, bool streams,
                                Score* out) const {
  constexpr bool kWeighs = std::is_same_v<Score, double>;
  const std::size_t count = row_codes.size() / trees, mine = (compared.first + begin) / kTileRows;
  std::vector<Line> lines;
  std::vector<double> weights;
  std::size_t row_bytes = 0, prepared = shapes.size();
  for (std::size_t n = 0; n < tiles.size(); ++n) {
    const Tile& tile = tiles[n];
    const Shape& shape = shapes[tile.shape];
    // The order of the trees is that of the sums: in tiles of other shapes the last bits of weights could differ.
    const bool is_own = compared.owns(n) && (!kWeighs || tile.shape == tiles[mine].shape);
    if (is_own && n > mine) continue;
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
    task.counts = reinterpret_cast<std::uint32_t*>(scores);
    task.weights = weights.data();
    if constexpr (kWeighs) task.sums = scores;
    compares.by_codes(task);
    if constexpr (kWeighs)
      for (std::size_t i = 0; i < count * kTileRows; ++i) scores[i] /= static_cast<double>(trees);
    Score* const to = out + begin * rows + n * kTileRows;
    const std::size_t here = std::min<std::size_t>(kTileRows, rows - n * kTileRows);
    for (std::size_t r = 0; r < count; ++r)
      host::copy_result(scores + r * kTileRows, here * sizeof *to, to + r * rows, streams);
    if (is_own && n < mine) mirror(scores, count, out + compared.mirrored(n, begin), rows, streams);
  }
}

template <class Score>
void KeptLeaves::Parts::compare_by_codes(const Rows& compared, Score* out) const {
  const bool streams = is_large(compared.count * sizeof *out);
  const auto scores =
      std::make_unique_for_overwrite<Score[]>(std::min(kRowsAtOnce, compared.count) * kTileRows);
  std::vector<std::uint32_t> row_codes;
  for (std::size_t i = 0; i < compared.count; i += kRowsAtOnce) {
    row_codes.resize(std::min(kRowsAtOnce, compared.count - i) * trees);
    compared.codes(i, row_codes.size() / trees, row_codes.data());
    compare(compared, i, row_codes, scores.get(), streams, out);
  }
  host::finish_result(streams);
}

template <class Score>
Result<void> KeptLeaves::Parts::compare_all(const Rows& compared, std::span<Score> out) const {
  if (rows != 0 && out.size() / rows < compared.count)
    return usage(formatted("room for {} numbers, expected {} x {}", out.size(), compared.count, rows));
  if constexpr (std::is_same_v<Score, std::int32_t>) {
    const bool fits =
        std::ranges::all_of(counts, [](const auto& leaves) { return leaves.size() < SetPlan::kMostSets; });
    if (compared.count > kFewRows && fits) {
      const SetPlan plan(compared.count, trees,
                         [&](std::size_t t) { return static_cast<std::uint32_t>(counts[t].size()); });
      if (plan.rows_at_once > kFewRows) {
        count_by_sets(plan, compared, out.data());
        return {};
      }
    }
  }
  compare_by_codes(compared, out.data());
  return {};
}

template <class Score>
Result<void> KeptLeaves::Parts::compare_leaves(std::span<const std::int32_t> leaves,
                                               std::span<Score> out) const {
  if (leaves.size() % trees != 0)
    return usage(formatted("{} leaf numbers are no rows of {} trees", leaves.size(), trees));
  return compare_all({*this, leaves.data(), 0, leaves.size() / trees}, out);
}

template <class Score>
Result<void> KeptLeaves::Parts::compare_kept(std::size_t first, std::size_t count,
                                             std::span<Score> out) const {
  if (first > rows || count > rows - first)
    return usage(formatted("rows {} to {} of {} kept ones", first, first + count, rows));
  Rows compared{*this, nullptr, first, count};
  if (const std::size_t end = first + count;
      first % kTileRows == 0 && (end == rows || end % kTileRows == 0)) {
    compared.own_begin = first / kTileRows;
    compared.own_end = (end + kTileRows - 1) / kTileRows;
  }
  return compare_all(compared, out);
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
  parts->transposes = found->store_trees;
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

}  // namespace forestvm
