// The codes that nodes of the layout sparse4 test, gathered from memory: of one row by many walks, or of many rows.
// `Lanes` is Avx2Lanes or Avx512Lanes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// The places of codes, by the columns of nodes.
template <class Lanes>
struct CodePlaces {
  using Ints = typename Lanes::Ints;
  std::uint32_t last;
  FVM_INLINE explicit CodePlaces(std::size_t columns)
      : last(columns == 0 ? 0 : static_cast<std::uint32_t>(columns - 1)) {}
  FVM_INLINE Ints operator()(Ints column) const {
    // A leaf has other bits where a split has its column, and these may exceed the last column.
    const Ints known = Lanes::least(column & Lanes::all(Sparse4View::kMaxColumns - 1), Lanes::all(last));
    return Lanes::template shifted_left<std::bit_width(kCodeRows) - 1>(known);
  }
};

/// The codes of a row. Only the lowest byte of a lane counts.
template <class Lanes>
struct CodesInMemory {
  static constexpr bool kInRegisters = false;
  using Ints = typename Lanes::Ints;
  const std::uint8_t* row;
  CodePlaces<Lanes> places;
  FVM_INLINE CodesInMemory(const std::uint8_t* from, std::size_t columns) : row(from), places(columns) {}
  FVM_INLINE Ints operator[](Ints column) const { return Lanes::gather(row, places(column)); }
};

/// The codes of the rows of a block, one row in each lane and the next rows in the next vectors. Only the lowest byte
/// of a lane counts.
template <class Lanes>
struct CodesOfRows {
  using Ints = typename Lanes::Ints;
  const std::uint8_t* rows;
  CodePlaces<Lanes> places;
  FVM_INLINE CodesOfRows(const std::uint8_t* from, std::size_t columns) : rows(from), places(columns) {}
  FVM_INLINE Ints operator()(unsigned vector, Ints column) const {
    return Lanes::gather(rows + vector * Lanes::kLanes, Lanes::add(places(column), Lanes::from(0)));
  }
};

}  // namespace forestvm::host
