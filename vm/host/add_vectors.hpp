// Sums of the vectors of rows' leaves, in the target's vectors. Each output has its own sum, to which trees are added
// in order, so that all targets have the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// The most leaves whose numbers are looked up before their vectors are added.
inline constexpr std::uint32_t kVectorsFound = 512;

/// Trees whose leaves' vectors are added to the sums of some rows.
struct VectorsTask {
  LeafVectors vectors;
  bool wide;           ///< Whether numbers are of type double, otherwise float.
  const void* leaves;  ///< The number of a leaf's vector, for each tree and each row.
  std::size_t stride;  ///< Numbers from one tree to the next.
  std::uint32_t trees;
  std::uint32_t rows;  ///< At most kVectorsFound.
  void* sums;          ///< The sums of each row, `vectors.width` of them.
};

using AddVectorsFunction = void (*)(const VectorsTask&);

/// The numbers of the vectors of some rows' leaves: numbers[t * rows + i] is that of tree t and row i.
struct FoundVectors {
  std::uint32_t numbers[kVectorsFound];
  std::uint32_t trees, rows;
};

/// Adds the vectors of some trees. Some of a row's sums at a time stay in registers meanwhile.
template <class Target, class Score>
class VectorSums {
 public:
  VectorSums(const VectorsTask& task, const FoundVectors& found)
      : vectors_(static_cast<const Score*>(task.vectors.numbers)),
        width_(task.vectors.width),
        found_(found),
        sums_(static_cast<Score*>(task.sums)) {}

  /// Adds all outputs, in vectors of kBytes, or of fewer bytes if there are fewer outputs.
  template <std::size_t kBytes>
  FVM_INLINE void add() const {
    constexpr std::size_t kLanes = kBytes / sizeof(Score),
                          kNarrower = kBytes > 16 ? kBytes / 2 : sizeof(Score);
    if constexpr (kLanes > 1)
      if (width_ < kLanes) return add<kNarrower>();
    for (std::size_t first = 0, left = width_, now; left != 0; first += now, left -= now) {
      // Leaves no outputs, or at least as many as fill a vector.
      now = left > 3 * kLanes ? 2 * kLanes : left > 2 * kLanes ? left - kLanes : left;
      add_part<kBytes>(first, now);
    }
  }

 private:
  /// Adds `count` outputs from `first` on, as many as fill one vector or two. Both vectors hold some of them, if they
  /// do not fill two.
  template <std::size_t kBytes>
  FVM_INLINE void add_part(std::size_t first, std::size_t count) const {
    typedef Score Vector __attribute__((vector_size(kBytes)));
    struct Part {
      Vector low, high;
    };
    const std::size_t second = first + count - kBytes / sizeof(Score);
    const auto load = [&](const Score* from) __attribute__((always_inline)) {
      Part part;
      std::memcpy(&part.low, from + first, kBytes);
      std::memcpy(&part.high, from + second, kBytes);
      return part;
    };
    Score* sums = sums_;
    for (std::uint32_t i = 0; i < found_.rows; ++i, sums += width_) {
      Part kept = load(sums);
      const std::uint32_t* number = found_.numbers + i;
      for (std::uint32_t t = 0; t < found_.trees; ++t, number += found_.rows) {
        const Part added = load(vectors_ + *number * width_);
        kept.low += added.low;
        kept.high += added.high;
      }
      std::memcpy(sums + first, &kept.low, kBytes);
      std::memcpy(sums + second, &kept.high, kBytes);
    }
  }

  const Score* vectors_;
  std::size_t width_;
  const FoundVectors& found_;
  Score* sums_;
};

/// Turns leaves into numbers of vectors, of which there are `end`. A number that no vector has, which occurs only in a
/// damaged program, becomes 0.
template <std::size_t kBytes, class Score>
FVM_INLINE void find_vectors(const Score* leaves, std::uint32_t count, Score end, std::uint32_t* found) {
  constexpr std::size_t kLanes = kBytes / sizeof(Score);
  typedef Score Leaves __attribute__((vector_size(kBytes)));
  typedef std::int32_t Numbers __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
  std::uint32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Leaves some;
    std::memcpy(&some, leaves + i, sizeof some);
    some = some >= Score{0} && some < end ? some : Leaves{};
    const Numbers numbers = __builtin_convertvector(some, Numbers);
    std::memcpy(found + i, &numbers, sizeof numbers);
  }
  for (; i < count; ++i) {
    const Score number = leaves[i] >= 0 && leaves[i] < end ? leaves[i] : 0;
    found[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(number));
  }
}

template <class Target, class Score>
void add_vectors_of(const VectorsTask& task) {
  const auto* const leaves = static_cast<const Score*>(task.leaves);
  const auto end = static_cast<Score>(task.vectors.count);
  FoundVectors found;
  found.rows = task.rows;
  for (std::uint32_t done = 0; done < task.trees; done += found.trees) {
    found.trees = std::min(task.trees - done, kVectorsFound / task.rows);
    for (std::uint32_t t = 0; t < found.trees; ++t)
      find_vectors<Target::Codes::kLanes>(leaves + (done + t) * task.stride, task.rows, end,
                                          found.numbers + std::size_t{t} * task.rows);
    VectorSums<Target, Score>(task, found).template add<Target::Codes::kLanes>();
  }
}

template <class Target>
void add_vectors(const VectorsTask& task) {
  task.wide ? add_vectors_of<Target, double>(task) : add_vectors_of<Target, float>(task);
}

}  // namespace forestvm::host
