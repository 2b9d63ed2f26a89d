// The walker of single-node layouts whose lanes are walks: each hop gathers the lanes' nodes and the values
// they test. Lanes are the rows of one tree, or the trees of one row; several vectors are in flight, so that
// one's gathers overlap another's. For deep trees, and for calls of a few rows.
#pragma once

#include <forestvm/core/layout/sparse8.hpp>

#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

inline constexpr unsigned kMostVectors = 8;  ///< in flight

/// Lanes: what a CPU target offers. unsigned kLanes; vectors Floats and Ints of so many; Mask.
template <class Target>
class GatherWalk {
  using Lanes = typename Target::Lanes;
  using Floats = typename Lanes::Floats;
  using Ints = typename Lanes::Ints;
  using View = Sparse8View;
  static constexpr unsigned kLanes = Lanes::kLanes;

 public:
  /// Walks Vectors x kLanes rows of a tree together.
  template <unsigned Vectors>
  static void rows(const WalkTask& task) {
    const Range& rows = task.row_range;
    for (std::uint32_t t = task.tree_range.begin; t < task.tree_range.end; ++t)
      for_vectors<Vectors>(rows.begin, rows.end, [&]<unsigned V>(std::uint32_t row, unsigned count) {
        rows_of_tree<V>(task, t, row, count);
      });
  }

  /// Walks a row through Vectors x kLanes trees together.
  template <unsigned Vectors>
  static void trees(const WalkTask& task) {
    const Range& trees = task.tree_range;
    for (std::uint32_t row = task.row_range.begin; row < task.row_range.end; ++row)
      for_vectors<Vectors>(trees.begin, trees.end, [&]<unsigned V>(std::uint32_t t, unsigned count) {
        trees_of_row<V>(task, t, row, count);
      });
  }

 private:
  /// Calls visit<V>(i, count) for as many vectors of elements as there are, at most V at a time, the last
  /// vector perhaps not full.
  template <unsigned V, class Visit>
  FVM_INLINE static void for_vectors(std::uint32_t begin, std::uint32_t end, const Visit& visit) {
    for (; end - begin >= V * kLanes; begin += V * kLanes) visit.template operator()<V>(begin, V * kLanes);
    if constexpr (V > 1)
      for_vectors<V / 2>(begin, end, visit);
    else if (begin < end)
      visit.template operator()<1>(begin, end - begin);
  }

  template <unsigned Vectors>
  static void rows_of_tree(const WalkTask& task, std::uint32_t t, std::uint32_t row, unsigned count) {
    const View::Node* const nodes = View::tree(task.group, t - task.first_tree);
    const float* const x = task.rows + row * task.row_stride;
    Ints at[Vectors];
    for (Ints& a : at) a = Lanes::all(0);
    // Lanes beyond the last row walk it again.
    const Ints lanes = Lanes::least(Lanes::from(0), Lanes::all(count - 1));
    const Ints offsets = Lanes::times(lanes, static_cast<std::uint32_t>(task.row_stride));
    descend<Vectors>(task, nodes, at, [&](unsigned v, Ints feature) {
      return Lanes::gather(x + v * kLanes * task.row_stride, Lanes::add(offsets, feature));
    });
    const TreeDesc& desc = task.group.trees[t - task.first_tree];
    if (adds_wide(task)) {
      alignas(64) std::uint32_t places[Vectors * kLanes];
      for (unsigned v = 0; v < Vectors; ++v) Lanes::store(places + v * kLanes, at[v]);
      const double* const leaves = task.wide_leaves + desc.first_node;
      double* sums = reinterpret_cast<double*>(task.out) + row * task.width + desc.output;
      for (unsigned i = 0; i < count; ++i) sums[i * task.width] += leaves[places[i]];
      return;
    }
    alignas(64) float values[Vectors * kLanes];
    for (unsigned v = 0; v < Vectors; ++v) Lanes::store(values + v * kLanes, Lanes::values(nodes, at[v]));
    if (task.delivery == Delivery::F32 && !task.atomic) [[likely]] {
      float* sums = reinterpret_cast<float*>(task.out) + row * task.width + desc.output;
      for (unsigned i = 0; i < count; ++i) sums[i * task.width] += values[i];
      return;
    }
    std::uint64_t numbers_at[Vectors * kLanes];
    number<Vectors>(at, [&](unsigned, std::uint32_t place) { return desc.first_node + std::uint64_t{place}; },
                    numbers_at);
    Deliver<Target>::run(task, {t, row, 1, count, values, numbers_at});
  }

  template <unsigned Vectors>
  static void trees_of_row(const WalkTask& task, std::uint32_t t, std::uint32_t row, unsigned count) {
    const auto* const nodes = reinterpret_cast<const View::Node*>(task.group.nodes);
    const TreeDesc* const descs = task.group.trees + (t - task.first_tree);
    const float* const x = task.rows + row * task.row_stride;
    Ints at[Vectors];
    // Lanes beyond the last tree walk it again.
    for (unsigned v = 0; v < Vectors; ++v)
      at[v] = Lanes::roots(descs, Lanes::least(Lanes::from(v * kLanes), Lanes::all(count - 1)));
    descend<Vectors>(task, nodes, at, [&](unsigned, Ints feature) { return Lanes::gather(x, feature); });
    if (adds_wide(task)) {
      alignas(64) std::uint32_t places[Vectors * kLanes];
      for (unsigned v = 0; v < Vectors; ++v) Lanes::store(places + v * kLanes, at[v]);
      double* sums = reinterpret_cast<double*>(task.out) + row * task.width;
      if (task.width == 1) {
        double sum = *sums;
        for (unsigned i = 0; i < count; ++i) sum += task.wide_leaves[places[i]];
        *sums = sum;
      } else {
        for (unsigned i = 0; i < count; ++i) sums[descs[i].output] += task.wide_leaves[places[i]];
      }
      return;
    }
    alignas(64) float values[Vectors * kLanes];
    for (unsigned v = 0; v < Vectors; ++v) Lanes::store(values + v * kLanes, Lanes::values(nodes, at[v]));
    if (task.delivery == Delivery::F32 && !task.atomic) [[likely]] {
      float* sums = reinterpret_cast<float*>(task.out) + row * task.width;
      if (task.width == 1) {
        float sum = *sums;
        for (unsigned i = 0; i < count; ++i) sum += values[i];
        *sums = sum;
      } else {
        for (unsigned i = 0; i < count; ++i) sums[descs[i].output] += values[i];
      }
      return;
    }
    std::uint64_t numbers_at[Vectors * kLanes];
    number<Vectors>(at, [](unsigned, std::uint32_t place) { return std::uint64_t{place}; }, numbers_at);
    Deliver<Target>::run(task, {t, row, count, 1, values, numbers_at});
  }

  /// Plain float64 sums of float64 leaves.
  FVM_INLINE static bool adds_wide(const WalkTask& task) {
    return task.delivery == Delivery::F64 && !task.atomic && task.wide_leaves != nullptr;
  }

  template <unsigned Vectors, class Number>
  FVM_INLINE static void number(const Ints (&at)[Vectors], const Number& number_at,
                                std::uint64_t (&numbers_at)[Vectors * kLanes]) {
    alignas(64) std::uint32_t places[kLanes];
    for (unsigned v = 0; v < Vectors; ++v) {
      Lanes::store(places, at[v]);
      for (unsigned i = 0; i < kLanes; ++i) numbers_at[v * kLanes + i] = number_at(v * kLanes + i, places[i]);
    }
  }

  /// Takes every lane to its leaf; value(v, feature) gives what the lanes of a vector test.
  template <unsigned Vectors, class Value>
  FVM_INLINE static void descend(const WalkTask& task, const View::Node* nodes, Ints (&at)[Vectors],
                                 const Value& value) {
    for (std::uint32_t hop = 0; hop < task.hops; ++hop)
      for (unsigned v = 0; v < Vectors; ++v) at[v] = Lanes::hop(nodes, at[v], v, value).at;
    if (task.exact) return;
    bool walking[Vectors];
    for (bool& w : walking) w = true;
    for (bool any = true; any;) {
      any = false;
      for (unsigned v = 0; v < Vectors; ++v) {
        if (!walking[v]) continue;
        const auto hop = Lanes::hop(nodes, at[v], v, value);
        at[v] = hop.at;
        walking[v] = hop.walking;
        any |= hop.walking;
      }
    }
  }
};

}  // namespace forestvm::host
