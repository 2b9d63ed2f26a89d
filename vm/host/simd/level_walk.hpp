// Computes contributions of features for a few rows, one after another, with the splits of a level of some trees in the
// lanes of vectors: see level_paths.hpp. In: a row's codes. Out: its float64 totals.
//
// On the way down each split gives the chances to come to it to its children, for which lanes are compressed; on the
// way up it takes the means below its children, for which lanes are expanded. Then the contributions of the splits
// are added one by one, in the order in which PathWalk adds them, so that they have the same bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/platform.hpp>

#include "vm/host/paths/explain_task.hpp"
#include "vm/host/paths/level_paths.hpp"
#include "vm/host/simd/path_lanes.hpp"

namespace forestvm::host {

/// The most rows for which explain_levels takes less time than PathWalk for most programs. That is up to 8 rows where
/// trees have few points, and up to 4 where they have 12.
inline constexpr unsigned kLevelRows = 6;

/// Computes the totals of a task's rows. Targets with PathLanes::kPermutes have it.
template <class Target, class Number>
void explain_levels(const ExplainTask& task);

#if defined(__AVX512BW__)
template <class Target, class Number>
class LevelWalk {
  using Lanes = PathLanes<Target, Number>;
  using Vector = typename Lanes::Vector;
  using Mask = typename Lanes::Mask;
  static constexpr unsigned kLanes = Lanes::kLanes;

 public:
  LevelWalk(const ExplainTask& task, const ExplainScratch& parts, const LevelScratch& levels)
      : paths_(*task.paths),
        codes_(reinterpret_cast<std::uint8_t*>(task.scratch + parts.level_walk + levels.codes)),
        numbers_(reinterpret_cast<Number*>(task.scratch + parts.level_walk + levels.numbers)),
        shares_(reinterpret_cast<Number*>(task.scratch + parts.level_walk + levels.shares)),
        all_added_(reinterpret_cast<Number*>(task.scratch + parts.level_walk + levels.added)),
        passed_(reinterpret_cast<std::byte*>(task.scratch + parts.level_walk + levels.passed)),
        decisions_(reinterpret_cast<Decisions*>(task.scratch + parts.level_walk + levels.decisions)) {}

  /// Sets the row for which contributions are computed.
  void set_row(const std::uint8_t* codes) {
    for (std::uint32_t column = 0; column < paths_.level_columns; ++column)
      codes_[column] = codes[std::size_t{column} * kCodeRows];
    first_codes_ = _mm512_loadu_si512(codes_);
  }

  /// Adds the contributions of a chunk's trees to the row's sums. Returns the next chunk.
  const Line* add(const Line* at, Number* sums) {
    const auto chunk = *reinterpret_cast<const LevelChunk*>(at++);
    added_ = all_added_;
    for (std::uint32_t i = 0; i < chunk.bundles; ++i) at = walk(at);
    const auto* const order = reinterpret_cast<const LevelSum*>(at);
    for (std::uint32_t i = 0; i < chunk.splits; ++i) sums[order[i].sum] += all_added_[order[i].slot];
    return at + whole_lines(chunk.splits * sizeof(LevelSum)) / sizeof(Line);
  }

 private:
  /// The row's decisions at the splits of a vector, and where their children are.
  struct Decisions {
    std::uint32_t next;
    std::uint16_t left, right, tested, open;
  };
  static_assert(sizeof(Decisions) == kLevelDecisionBytes);

  /// Computes what the splits of a bundle contribute. Returns the next bundle.
  FVM_INLINE const Line* walk(const Line* at) {
    const auto bundle = *reinterpret_cast<const LevelBundle*>(at++);
    slots_ = std::size_t{bundle.vectors + 1} * kLanes;
    for (std::uint32_t k = 0; k < bundle.points; ++k) Lanes::store(numbers_ + k * slots_, take(at));
    _mm512_storeu_si512(passed_, _mm512_set1_epi8(-1));
    for (std::uint32_t v = 0; v < bundle.vectors; ++v) at = down(at, v, bundle.points);
    for (std::uint32_t v = bundle.vectors; v-- > 0;) at = up(at, v, bundle.points);
    added_ += std::size_t{bundle.vectors} * kLanes;
    return at;
  }

  FVM_INLINE static Vector take(const Line*& at) {
    return Lanes::load(reinterpret_cast<const Number*>(at++));
  }

  /// Moves the lanes of the mask to the front.
  FVM_INLINE static Vector compressed(Mask mask, Vector numbers) {
    if constexpr (Lanes::kSingle)
      return _mm512_maskz_compress_ps(mask, numbers);
    else
      return _mm512_maskz_compress_pd(mask, numbers);
  }

  /// Moves the first lanes to those of the mask; the others are of `others`.
  FVM_INLINE static Vector expanded(Mask mask, Vector numbers, Vector others) {
    if constexpr (Lanes::kSingle)
      return _mm512_mask_expand_ps(others, mask, numbers);
    else
      return _mm512_mask_expand_pd(others, mask, numbers);
  }

  /// Returns a bit for each lane: 1 if the row goes left there.
  FVM_INLINE std::uint16_t tested(const LevelVector& lanes) const {
    const __m256i columns = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes.column));
    __m128i codes;
    if (paths_.level_columns <= 64) {
      const __m512i index = _mm512_castsi128_si512(_mm256_cvtepi16_epi8(columns));
      codes = _mm512_castsi512_si128(_mm512_permutexvar_epi8(index, first_codes_));
    } else {
      codes = _mm512_cvtepi32_epi8(_mm512_i32gather_epi32(_mm512_cvtepu16_epi32(columns), codes_, 1));
    }
    return _mm_cmple_epu8_mask(codes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes.code)));
  }

  /// Passes to the children of a vector's splits for which features O is 1, a bit for each. Returns a bit for each
  /// lane: 1 if O is 1 for its own feature.
  FVM_INLINE std::uint16_t pass(const LevelVector& lanes, std::uint32_t v, std::uint16_t tested) {
    const __m128i bit = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes.bit));
    const __m512i passed = _mm512_loadu_si512(passed_ + std::size_t{v} * sizeof(Line));
    const auto to = [&](std::size_t slot) { return passed_ + slot * sizeof(Number); };
    const std::size_t right = lanes.next + static_cast<unsigned>(std::popcount(lanes.left));
    if constexpr (Lanes::kSingle) {
      const __m512i own = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_cvtepu8_epi32(bit));
      const auto off = static_cast<std::uint16_t>(~tested);
      const __m512i left_passed = _mm512_mask_andnot_epi32(passed, off, own, passed);
      const __m512i right_passed = _mm512_mask_andnot_epi32(passed, tested, own, passed);
      _mm512_storeu_si512(to(lanes.next), _mm512_maskz_compress_epi32(lanes.left, left_passed));
      _mm512_storeu_si512(to(right), _mm512_maskz_compress_epi32(lanes.right, right_passed));
      return _mm512_test_epi32_mask(passed, own);
    } else {
      const __m512i own = _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_cvtepu8_epi64(bit));
      const auto on = static_cast<std::uint8_t>(tested), off = static_cast<std::uint8_t>(~tested);
      const __m512i left_passed = _mm512_mask_andnot_epi64(passed, off, own, passed);
      const __m512i right_passed = _mm512_mask_andnot_epi64(passed, on, own, passed);
      const auto left_mask = static_cast<std::uint8_t>(lanes.left),
                 right_mask = static_cast<std::uint8_t>(lanes.right);
      _mm512_storeu_si512(to(lanes.next), _mm512_maskz_compress_epi64(left_mask, left_passed));
      _mm512_storeu_si512(to(right), _mm512_maskz_compress_epi64(right_mask, right_passed));
      return _mm512_test_epi64_mask(passed, own);
    }
  }

  FVM_INLINE const Line* down(const Line* at, std::uint32_t v, std::uint32_t points) {
    const auto& lanes = *reinterpret_cast<const LevelVector*>(at);
    at += sizeof(LevelVector) / sizeof(Line);
    const std::uint16_t tested = this->tested(lanes), open = pass(lanes, v, tested);
    decisions_[v] = {lanes.next, lanes.left, lanes.right, tested, open};
    const auto is_tested = static_cast<Mask>(tested), is_open = static_cast<Mask>(open),
               is_left = static_cast<Mask>(lanes.left), is_right = static_cast<Mask>(lanes.right);
    const Vector away = take(at);
    Number* const own = numbers_ + std::size_t{v} * kLanes;
    Number* const to_left = numbers_ + lanes.next;
    Number* const to_right = to_left + std::popcount(lanes.left);
    Number* const shares = shares_ + std::size_t{v} * points * kLanes;
    for (std::uint32_t k = 0; k < points; ++k) {
      const Vector if_left = take(at), if_right = take(at);
      const Vector share = Lanes::select(is_open, away, Lanes::select(is_tested, if_right, if_left));
      const Vector chance = Lanes::load(own + k * slots_), left = chance * share;
      Lanes::store(shares + k * kLanes, share);
      Lanes::store(to_left + k * slots_, compressed(is_left, left));
      Lanes::store(to_right + k * slots_, compressed(is_right, chance - left));
    }
    return at;
  }

  FVM_INLINE const Line* up(const Line* at, std::uint32_t v, std::uint32_t points) {
    const Decisions& made = decisions_[v];
    const auto is_tested = static_cast<Mask>(made.tested), is_open = static_cast<Mask>(made.open),
               is_left = static_cast<Mask>(made.left), is_right = static_cast<Mask>(made.right);
    const Vector if_left = take(at), if_right = take(at), first_left = take(at), first_right = take(at),
                 left_value = take(at), right_value = take(at);
    Number* const own = numbers_ + std::size_t{v} * kLanes;
    const Number* const from_left = numbers_ + made.next;
    const Number* const from_right = from_left + std::popcount(made.left);
    const Number* const shares = shares_ + std::size_t{v} * points * kLanes;
    Vector integral{};
    for (std::uint32_t k = 0; k < points; ++k) {
      const Vector right = expanded(is_right, Lanes::load(from_right + k * slots_), right_value);
      const Vector difference = expanded(is_left, Lanes::load(from_left + k * slots_), left_value) - right;
      integral = integral + Lanes::load(own + k * slots_) * difference * take(at);
      Lanes::store(own + k * slots_, right + Lanes::load(shares + k * kLanes) * difference);
    }
    const Vector part = Lanes::select(is_tested, if_right, if_left) * integral +
                        Lanes::select(is_tested, first_right, first_left);
    Lanes::store(added_ + std::size_t{v} * kLanes, Lanes::select(is_open, Lanes::all(0), part));
    return at;
  }

  const HostPaths& paths_;
  std::uint8_t* codes_;  ///< The row's codes, column by column.
  __m512i first_codes_;  ///< The first 64 of them.
  /// For each point and slot, P times the point's weight; on the way up S.
  Number* numbers_;
  Number* shares_;           ///< f for each vector, point and lane.
  Number* all_added_;        ///< The contribution of each split of the chunk.
  Number* added_ = nullptr;  ///< The contribution of each split of the bundle.
  std::byte* passed_;        ///< For each slot, a bit for each feature above, which is 1 if O is 1.
  Decisions* decisions_;
  std::size_t slots_ = 0;  ///< Numbers from one point to the next.
};

template <class Target, class Number>
void explain_levels(const ExplainTask& task) {
  const HostPaths& paths = *task.paths;
  const ExplainScratch parts(paths);
  const LevelScratch levels(paths);
  LevelWalk<Target, Number> walk(task, parts, levels);
  auto* const totals = reinterpret_cast<double*>(task.scratch + parts.totals);
  auto* const sums = reinterpret_cast<Number*>(task.scratch + parts.level_walk + levels.sums);
  std::fill_n(totals, std::size_t{task.output->features} * kCodeRows, 0.0);
  for (unsigned row = 0; row < task.rows; ++row) {
    walk.set_row(task.codes + row);
    for (std::size_t b = task.output->first_batch; b < task.output->end_batch; ++b) {
      const PathBatch& batch = paths.batches[b];
      std::fill_n(sums, batch.sums, Number{0});
      const LevelChunks& chunks = paths.level_chunks[b];
      const Line* at = paths.levels.data() + chunks.first_line;
      for (std::uint32_t i = 0; i < chunks.count; ++i) at = walk.add(at, sums);
      for (std::uint32_t i = 0; i < batch.sums; ++i)
        totals[std::size_t{paths.totals[batch.first_total + i]} * kCodeRows + row] +=
            static_cast<double>(sums[i]);
    }
  }
}

#endif

}  // namespace forestvm::host
