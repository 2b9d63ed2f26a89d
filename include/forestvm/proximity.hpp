// The proximity of rows: the number of trees in which two rows reach the same leaf. It starts from leaf numbers
// (OutputKind::Leaf), so it works for every model and backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm {

/// The leaves of rows, packed for comparison with those of other rows. A leaf takes a byte where at most 255 leaves of
/// its tree were met before, otherwise two bytes or four. Methods that are const may be called from many threads at
/// once.
class KeptLeaves {
 public:
  /// Makes an object without rows for a forest of `trees` trees. `target` is a CPU target of host_targets(), or auto.
  /// Usage error for an unknown target, Environment if this CPU lacks it.
  static Result<KeptLeaves> make(std::size_t trees, std::string_view target = "auto");

  KeptLeaves(KeptLeaves&&) noexcept;
  KeptLeaves& operator=(KeptLeaves&&) noexcept;
  ~KeptLeaves();

  /// Keeps more rows: row-major leaf numbers, `trees` for each row. Usage error for a part of a row and for a number
  /// below 0.
  Result<void> add(std::span<const std::int32_t> leaves);

  std::size_t rows() const;
  std::size_t trees() const;
  std::size_t bytes() const;  ///< Size of the packed leaves.

  /// Counts for each row of `leaves` and each kept row the trees in which they share a leaf. `out` has room for the
  /// rows of `leaves` times rows() numbers, row-major. Usage error for a part of a row, and for too little room.
  Result<void> count(std::span<const std::int32_t> leaves, std::span<std::int32_t> out) const;

  /// Adds up, for each row of `leaves` and each kept row, 1 / (number of kept rows in the leaf) over the trees in which
  /// they share a leaf, and divides by the number of trees. The weights of a row add up to 1 if each of its leaves has
  /// a kept row.
  Result<void> weigh(std::span<const std::int32_t> leaves, std::span<double> out) const;

  /// Like count() and weigh(), for `rows` of the kept rows from number `first` on. Each pair of these rows is compared
  /// once if `first` is a multiple of kRowsTogether, and they end with the last kept row or before another multiple.
  Result<void> count_kept(std::size_t first, std::size_t rows, std::span<std::int32_t> out) const;
  Result<void> weigh_kept(std::size_t first, std::size_t rows, std::span<double> out) const;

  /// The number of kept rows that are compared together.
  static constexpr std::size_t kRowsTogether = 512;

  /// Returns a number of kept rows for calls of count_kept() and weigh_kept() one after the other that compare each
  /// pair of the rows of a call once: at most `most`, unless that is 0.
  std::size_t rows_together(std::size_t most) const {
    if (most >= rows()) return rows();
    return most < kRowsTogether ? std::max<std::size_t>(most, 1) : most / kRowsTogether * kRowsTogether;
  }

 private:
  struct Parts;
  explicit KeptLeaves(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// A kept row, and its count or weight.
template <class Score>
struct Neighbour {
  std::size_t row;
  Score score;
};

/// Returns the `most` rows with the largest scores, or all if there are fewer. The largest score comes first, and of
/// equal scores the first row. The row `skipped` is left out. Defined for std::int32_t and double.
template <class Score>
std::vector<Neighbour<Score>> nearest(std::span<const Score> scores, std::size_t most,
                                      std::optional<std::size_t> skipped = {});

}  // namespace forestvm
