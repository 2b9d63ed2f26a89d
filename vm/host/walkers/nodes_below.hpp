// The way from the exits of top tables to the leaves: each step gathers the rows' nodes and the codes that they test.
// Rows are in the lanes, and several vectors are in flight, so that the gathers of one overlap those of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/layout/top_tables.hpp>

#include "vm/host/simd/codes_in_memory.hpp"
#include "vm/host/walkers/table_lookups.hpp"

namespace forestvm::host {

template <class Target>
class NodesBelow {
  using Tree = TopTablesView::Tree;
  using Node = Sparse4View::Node;
  static constexpr unsigned kVectors = 4;  ///< Vectors in flight.

 public:
  /// Writes the numbers of the leaves that rows reach from the exits `at` of a tree, counted from the group's first
  /// leaf. `codes` has the codes of the first row; `slots`, a multiple of the lanes of a vector of bytes, is the number
  /// of rows. Slots without a row may have any codes.
  static void walk(const Tree& tree, const std::uint8_t* codes, std::size_t columns, std::uint32_t slots,
                   const std::uint8_t* at, std::uint32_t* numbers) {
    if constexpr (requires { typename Target::Lanes; }) {
      constexpr std::uint32_t kRows = kVectors * Target::Lanes::kLanes;
      static_assert(kRows == Target::Codes::kLanes);
      for (std::uint32_t row = 0; row < slots; row += kRows) {
        const std::uint8_t* const of_rows = codes + code_offset(row, columns);
        // Few rows fill half of a vector of bytes: see TablesDescent::slots_for.
        if constexpr (kRows > kMinLanes)
          if (slots - row < kRows)
            return in_lanes<kVectors / 2>(tree, of_rows, columns, at + row, numbers + row);
        in_lanes<kVectors>(tree, of_rows, columns, at + row, numbers + row);
      }
    } else {
      for (std::uint32_t row = 0; row < slots; ++row)
        numbers[row] = leaf_of(tree.below.nodes, codes + code_offset(row, columns), at[row]);
    }
  }

  /// Adds the leaves with these numbers to sums, one for each slot.
  static void add_leaves(double* sums, const double* leaves, const std::uint32_t* numbers,
                         std::uint32_t slots) {
    for (std::uint32_t r = 0; r < slots; ++r) sums[r] += leaves[numbers[r]];
  }
  static void add_leaves(float* sums, const float* leaves, const std::uint32_t* numbers,
                         std::uint32_t slots) {
    std::uint32_t r = 0;
    if constexpr (requires { typename Target::Lanes; }) {
      using Lanes = typename Target::Lanes;
      for (; r < slots; r += Lanes::kLanes) {
        typename Lanes::Floats sum;
        std::memcpy(&sum, sums + r, sizeof sum);
        sum += Lanes::gather(leaves, Lanes::load(numbers + r));
        Lanes::store(sums + r, sum);
      }
    }
    for (; r < slots; ++r) sums[r] += leaves[numbers[r]];
  }

 private:
  template <unsigned Vectors>
  [[gnu::noinline]] static void in_lanes(const Tree& tree, const std::uint8_t* codes, std::size_t columns,
                                         const std::uint8_t* at, std::uint32_t* numbers) {
    using Lanes = typename Target::Lanes;
    const CodesOfRows<Lanes> tested(codes, columns);
    const Node* const nodes = tree.below.nodes;
    typename Lanes::Ints place[Vectors];
    typename Lanes::Nodes4 node[Vectors];
    for (unsigned v = 0; v < Vectors; ++v) {
      place[v] = Lanes::from_bytes(at + v * Lanes::kLanes);
      node[v] = Lanes::fetch(nodes, place[v]);
    }
    for (std::uint32_t steps = tree.depth - tree.top.depth; steps != 0; --steps) {
      bool walking = false;
      for (unsigned v = 0; v < Vectors; ++v) {
        const auto step = Lanes::step(node[v], place[v], v, tested);
        place[v] = step.at;
        walking |= step.walking;
      }
      if (!walking) break;
      for (unsigned v = 0; v < Vectors; ++v) node[v] = Lanes::fetch(nodes, place[v]);
    }
    for (unsigned v = 0; v < Vectors; ++v) Lanes::store(numbers + v * Lanes::kLanes, Lanes::leaves(node[v]));
  }

  static std::uint32_t leaf_of(const Node* nodes, const std::uint8_t* codes, std::uint32_t at) {
    Node node = nodes[at];
    while (!node.is_leaf()) {
      at += node.distance() + static_cast<std::uint32_t>(codes[node.column() * kCodeRows] > node.code());
      node = nodes[at];
    }
    return node.leaf();
  }
};

}  // namespace forestvm::host
