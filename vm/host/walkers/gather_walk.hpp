// The walker of compact sparse layouts whose lanes are walks: each step gathers the lanes' nodes and the values or
// codes they test. Lanes are the rows of one tree, or the trees of one row; several vectors are in flight, so that
// the gathers of one overlap the gathers of another. It is for deep trees, and for calls of a few rows.
#pragma once

#include <algorithm>

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/sparse8.hpp>

#include "vm/host/walkers/top_nodes.hpp"
#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

inline constexpr unsigned kMaxVectors = 8;  ///< Most vectors in flight.
/// The number of steps beside which the leaves of earlier trees are added.
inline constexpr unsigned kStepsBesideSums = 4;

/// Calls visit<K>(i) for each K consecutive elements of a range, then visit<K/2>, … visit<1> for the rest.
template <unsigned K, class Visit>
FVM_INLINE void for_chunks(std::uint32_t begin, std::uint32_t end, const Visit& visit) {
  for (; end - begin >= K; begin += K) visit.template operator()<K>(begin);
  if constexpr (K > 1) for_chunks<K / 2>(begin, end, visit);
}

/// Walks in the lanes of a CPU target. Target::Lanes has: unsigned kLanes; vectors Floats and Ints of kLanes
/// elements; and a step of each view's nodes.
template <class Target, class View>
class GatherWalk {
  using Lanes = typename Target::Lanes;
  using Floats = typename Lanes::Floats;
  using Ints = typename Lanes::Ints;
  using Node = typename View::Node;
  /// A node in each lane.
  using Nodes = decltype(Lanes::fetch(static_cast<const Node*>(nullptr), Ints{}));
  static constexpr unsigned kLanes = Lanes::kLanes;

 public:
  /// Walks Vectors x kLanes rows of a tree together; where fewer rows are left, several trees together. Rows that do
  /// not fill a vector are walked one by one with trees in the lanes where that takes less time.
  template <unsigned Vectors>
  static void rows(const WalkTask& task, const Interleaving& interleaving) {
    if (task.row_stride > Lanes::kMaxStride) return trees<1>(task, interleaving);
    const Range& rows = task.row_range;
    const Range& trees = task.tree_range;
    const std::uint32_t last = rows.size() % kLanes;
    const bool last_by_trees = last != 0 && trees_fill_lanes(trees.size(), last);
    const std::uint32_t end = last_by_trees ? rows.end - last : rows.end;
    const std::uint32_t whole = end - (end - rows.begin) % (Vectors * kLanes);
    const bool from_top = suits_top_nodes(task, whole - rows.begin);
    for (std::uint32_t t = trees.begin; t < trees.end; ++t) {
      if constexpr (Vectors >= 4)  // `auto` asks for no fewer
        if (from_top) {
          const TopNodes<Lanes> top(View::tree(task.group, t - task.first_tree));
          for (std::uint32_t row = rows.begin; row < whole; row += Vectors * kLanes)
            rows_from_top<Vectors>(task, top, t, row);
          continue;
        }
      for (std::uint32_t row = rows.begin; row < whole; row += Vectors * kLanes)
        rows_of_trees<1, Vectors>(task, t, row, Vectors * kLanes);
    }
    for_vectors<Vectors>(whole, end, [&]<unsigned V>(std::uint32_t row, unsigned count) {
      for_chunks<Vectors / V>(trees.begin, trees.end,
                              [&]<unsigned T>(std::uint32_t t) { rows_of_trees<T, V>(task, t, row, count); });
    });
    if (!last_by_trees) return;
    WalkTask rest = task;
    rest.row_range.begin = end;
    GatherWalk::trees<kTreeVectors>(rest, interleaving);
  }

  /// Walks a row through Vectors x kLanes trees together.
  template <unsigned Vectors>
  static void trees(const WalkTask& task, const Interleaving&) {
    if constexpr (kTakesCodes<View>)
      Lanes::with_row_codes(task.columns, [&]<class RowCodes>() {
        if constexpr (kDecidesBytes<RowCodes>)
          if (suits_byte_tests(task)) return trees_by_bytes<RowCodes>(task);
        trees<Vectors, RowCodes>(task);
      });
    else
      trees<Vectors, typename Lanes::RowValues>(task);
  }

 private:
  static constexpr unsigned kTreeVectors = 4;  ///< Vectors of trees through which single rows are walked.

  /// Returns whether `rows` rows, fewer than kLanes, take less time one by one, each with its trees in the lanes, than
  /// together in the lanes of one tree after the other. Compares the numbers of descents as if both ways had
  /// kTreeVectors vectors in flight, which rows() has if its Vectors is as many.
  static constexpr bool trees_fill_lanes(std::uint32_t trees, std::uint32_t rows) {
    constexpr std::uint64_t kWalks = kTreeVectors * kLanes;
    return rows * kTreeVectors * ((trees + kWalks - 1) / kWalks) < trees;
  }

  /// Walks each row through all trees. Row is a type that finds the values or codes of a row that the lanes' nodes
  /// test.
  template <unsigned Vectors, class Row>
  static void trees(const WalkTask& task) {
    const Range& trees = task.tree_range;
    Pending pending;
    for (std::uint32_t row = task.row_range.begin; row < task.row_range.end; ++row) {
      const Row x(row_of<View>(task, row), task.columns);
      if constexpr (!kTakesCodes<View>) fetch_row(task, row);
      std::uint32_t t = trees.begin;
      while (trees.end - t > (Vectors - 1) * kLanes) {
        const std::uint32_t count = std::min(trees.end - t, Vectors * kLanes);
        if constexpr (Vectors <= 4)
          trees_of_row<Vectors>(task, t, row, count, x, pending);
        else  // not inline: so many vectors would not fit the registers beside those of the loop
          last_trees_of_row<Vectors>(task, t, row, count, x, pending);
        t += count;
      }
      if constexpr (Vectors > 1) last_trees_of_row<Vectors - 1>(task, t, row, trees.end - t, x, pending);
    }
    pending.add_all();
  }

  /// Prefetches the lines of a wide row if there are so many trees that they read most of them. A wide row may have
  /// to come from memory: if its lines are prefetched together, they arrive at the same time, and not step by step.
  FVM_INLINE static void fetch_row(const WalkTask& task, std::uint32_t row) {
    constexpr std::size_t kLine = 64 / sizeof(float), kWide = 16 * kLine;
    if (task.row_stride < kWide || task.row_stride / kLine > 2 * task.tree_range.size()) return;
    const float* const x = task.rows + row * task.row_stride;
    for (std::size_t i = 0; i < task.row_stride; i += kLine) __builtin_prefetch(x + i);
  }

  /// The leaves of a row that are still to be added, in the order of their trees. Their additions are one
  /// long chain: it is run link by link beside the steps of the next trees, which do not wait for it.
  class Pending {
   public:
    struct Leaves {
      float values[kMaxVectors * kLanes];
      std::uint32_t indices[kMaxVectors * kLanes];  ///< Indices of float64 leaves.
    };
    /// Returns the room for the leaves of the trees that are walked while others are added.
    FVM_INLINE Leaves& free() { return leaves_[which_ ^ 1u]; }

    FVM_INLINE void add(unsigned most) {
      const unsigned begin = next_, end = count_ - next_ < most ? count_ : next_ + most;
      if (begin == end) return;
      next_ = end;
      const Leaves& leaves = leaves_[which_];
      if (wide_leaves_ != nullptr) {
        double* const sums = reinterpret_cast<double*>(sums_);
        for (unsigned i = begin; i < end; ++i) sums[output(i)] += wide_leaves_[leaves.indices[i]];
      } else if (one_sum_) {
        float* const sum = reinterpret_cast<float*>(sums_);
        *sum = Lanes::add_in_order(*sum, leaves.values + begin, end - begin);
      } else {
        float* const sums = reinterpret_cast<float*>(sums_);
        for (unsigned i = begin; i < end; ++i) sums[output(i)] += leaves.values[i];
      }
    }
    FVM_INLINE void add_all() {
      if (next_ != count_) add_rest();
    }

    /// Adds the remaining leaves. The leaves in free(), of `count` trees, are then the next to be added.
    FVM_INLINE void turn(const WalkTask& task, const TreeDesc* descs, std::uint32_t row, unsigned count) {
      add_all();
      which_ ^= 1u;
      next_ = 0;
      count_ = count;
      descs_ = descs;
      wide_leaves_ = adds_wide(task) ? task.wide_leaves : nullptr;
      sums_ = task.out + row * task.width * (wide_leaves_ != nullptr ? sizeof(double) : sizeof(float));
      one_sum_ = task.width == 1;
    }

   private:
    [[gnu::noinline]] void add_rest() { add(count_); }
    FVM_INLINE std::uint32_t output(unsigned i) const { return one_sum_ ? 0 : descs_[i].output; }

    Leaves leaves_[2];
    unsigned which_ = 0, next_ = 0, count_ = 0;
    const TreeDesc* descs_ = nullptr;
    const double* wide_leaves_ = nullptr;
    std::byte* sums_ = nullptr;  ///< Sums of the row.
    bool one_sum_ = false;
  };

  /// Returns whether the task makes plain float64 sums of float64 leaves.
  FVM_INLINE static bool adds_wide(const WalkTask& task) {
    return task.delivery == Delivery::F64 && !task.atomic && task.wide_leaves != nullptr;
  }

  /// Returns whether the task makes plain float32 sums.
  FVM_INLINE static bool adds_narrow(const WalkTask& task) {
    return task.delivery == Delivery::F32 && !task.atomic;
  }

  /// Calls visit<V>(i, count) for as many vectors of elements as there are, at most V at a time. The last vector
  /// may not be full.
  template <unsigned V, class Visit>
  FVM_INLINE static void for_vectors(std::uint32_t begin, std::uint32_t end, const Visit& visit) {
    for (; end - begin >= V * kLanes; begin += V * kLanes) visit.template operator()<V>(begin, V * kLanes);
    if constexpr (V > 1)
      for_vectors<V / 2>(begin, end, visit);
    else if (begin < end)
      visit.template operator()<1>(begin, end - begin);
  }

  /// Returns whether walks of so many rows gain more from a tree's first levels in registers than loading them takes.
  static bool suits_top_nodes(const WalkTask& task, std::uint32_t rows) {
    return rows >= 4 * TopNodes<Lanes>::kNodes && (!task.exact || task.steps >= TopNodes<Lanes>::kLevels);
  }

  /// Walks V vectors of rows in a tree whose first levels are in registers.
  template <unsigned V>
  static void rows_from_top(const WalkTask& task, const TopNodes<Lanes>& top, std::uint32_t t,
                            std::uint32_t row) {
    const Node* const nodes = View::tree(task.group, t - task.first_tree);
    const float* const x = task.rows + row * task.row_stride;
    const Ints offsets = Lanes::times(Lanes::from(0), static_cast<std::uint32_t>(task.row_stride));
    const auto value = [&](unsigned v, Ints feature) {
      return Lanes::gather(x + v * kLanes * task.row_stride, Lanes::add(offsets, feature));
    };
    Ints at[V];
    for (Ints& a : at) a = top.root();
    for (std::uint32_t level = 0; level < TopNodes<Lanes>::kLevels; ++level)
      for (unsigned v = 0; v < V; ++v) at[v] = Lanes::step_down(top.above(at[v]), at[v], v, value);
    Nodes node[V];
    for (unsigned v = 0; v < V; ++v) {
      node[v] = top.below(at[v]);
      at[v] = top.position(at[v]);
    }
    descend<V>(
        task, TopNodes<Lanes>::kLevels, [&](unsigned) { return nodes; }, at, node, value, [] {});
    deliver_rows<1, V>(task, t, row, V * kLanes, at, node);
  }

  /// Walks V vectors of rows in each of Trees trees. Vector v is in tree v / V. Several vectors are always full, so
  /// one function serves all calls: the compiler would make another for a constant number of rows.
  template <unsigned Trees, unsigned V>
  static void rows_of_trees(const WalkTask& task, std::uint32_t t, std::uint32_t row, unsigned last_count) {
    constexpr unsigned kVectors = Trees * V;
    const unsigned count = V > 1 ? V * kLanes : last_count;
    const Node* nodes[Trees];
    for (unsigned i = 0; i < Trees; ++i) nodes[i] = View::tree(task.group, t - task.first_tree + i);
    const float* const x = task.rows + row * task.row_stride;
    Ints at[kVectors];
    for (Ints& a : at) a = Lanes::all(0);
    // Lanes beyond the last row walk the last row again.
    const Ints lanes = Lanes::least(Lanes::from(0), Lanes::all(count - 1));
    const Ints offsets = Lanes::times(lanes, static_cast<std::uint32_t>(task.row_stride));
    Nodes node[kVectors];
    for (unsigned v = 0; v < kVectors; ++v) node[v] = Lanes::same(*nodes[v / V]);
    descend<kVectors>(
        task, 0, [&](unsigned v) { return nodes[v / V]; }, at, node,
        [&](unsigned v, Ints feature) {
          return Lanes::gather(x + v % V * kLanes * task.row_stride, Lanes::add(offsets, feature));
        },
        [] {});
    deliver_rows<Trees, V>(task, t, row, count, at, node);
  }

  /// Adds or stores the leaves of `count` rows in each of Trees trees. Vector v is in tree v / V.
  template <unsigned Trees, unsigned V>
  FVM_INLINE static void deliver_rows(const WalkTask& task, std::uint32_t t, std::uint32_t row,
                                      unsigned count, const Ints (&at)[Trees * V],
                                      const Nodes (&node)[Trees * V]) {
    constexpr unsigned kVectors = Trees * V;
    const TreeDesc* const descs = task.group.trees + (t - task.first_tree);
    if (adds_wide(task)) {
      alignas(64) std::uint32_t indices[kVectors * kLanes];
      for (unsigned v = 0; v < kVectors; ++v) Lanes::store(indices + v * kLanes, at[v]);
      for (unsigned i = 0; i < Trees; ++i) {
        const double* const leaves = task.wide_leaves + descs[i].first_node;
        double* sums = reinterpret_cast<double*>(task.out) + row * task.width + descs[i].output;
        for (unsigned r = 0; r < count; ++r) sums[r * task.width] += leaves[indices[i * V * kLanes + r]];
      }
      return;
    }
    alignas(64) float values[kVectors * kLanes];
    for (unsigned v = 0; v < kVectors; ++v) Lanes::store(values + v * kLanes, node[v].value);
    for (unsigned i = 0; i < Trees; ++i) {
      const float* const of_tree = values + i * V * kLanes;
      if (adds_narrow(task)) [[likely]] {
        float* sums = reinterpret_cast<float*>(task.out) + row * task.width + descs[i].output;
        if (task.width == 1)
          for (unsigned r = 0; r < count; ++r) sums[r] += of_tree[r];
        else
          for (unsigned r = 0; r < count; ++r) sums[r * task.width] += of_tree[r];
        continue;
      }
      std::uint64_t numbers_at[V * kLanes];
      number<V>(at + i * V, descs[i].first_node, numbers_at);
      Deliver<Target>::run(task, {t + i, row, 1, count, of_tree, numbers_at});
    }
  }

  /// Walks the rest of a row's trees, at most Vectors x kLanes, in one descent: two descents of fewer vectors
  /// would take as long as two of more.
  template <unsigned Vectors, class Row>
  [[gnu::noinline]] static void last_trees_of_row(const WalkTask& task, std::uint32_t t, std::uint32_t row,
                                                  unsigned count, const Row& x, Pending& pending) {
    if constexpr (Vectors > 1)
      if (count <= (Vectors - 1) * kLanes)
        return last_trees_of_row<Vectors - 1>(task, t, row, count, x, pending);
    if (count != 0) trees_of_row<Vectors>(task, t, row, count, x, pending);
  }

  /// Walks a row through `count` trees, at most Vectors x kLanes. It is inline in the loop over trees, where the row's
  /// codes and the positions of walks stay in registers.
  template <unsigned Vectors, class Row>
  FVM_INLINE static void trees_of_row(const WalkTask& task, std::uint32_t t, std::uint32_t row,
                                      unsigned count, const Row& x, Pending& pending) {
    const auto* const nodes = reinterpret_cast<const Node*>(task.group.nodes);
    const std::uint32_t* const positions = task.roots->positions() + (t - task.first_tree);
    const auto* const roots = task.roots->template nodes<Node>() + (t - task.first_tree);
    Ints at[Vectors];
    Nodes node[Vectors];
    // Lanes beyond the last tree walk other trees, or RootNodes' leaves behind the group's trees.
    for (unsigned v = 0; v < Vectors; ++v) {
      at[v] = Lanes::load(positions + v * kLanes);
      node[v] = Lanes::load(roots + v * kLanes);
    }
    descend<Vectors>(
        task, 0, [&](unsigned) { return nodes; }, at, node,
        [&](unsigned, Ints position) { return x[position]; },
        [&] { pending.add(Vectors * kLanes / kStepsBesideSums); });
    if constexpr (View::kLeavesAside) {
      for (unsigned v = 0; v < Vectors; ++v) at[v] = Lanes::leaves(node[v]);
      add_leaves<Vectors>(task, t, row, count, at, leaf_of(task, at), pending);
    } else {
      add_leaves<Vectors>(
          task, t, row, count, at, [&](unsigned v) { return node[v].value; }, pending);
    }
  }

  /// True if ByteTests can be decided for the row's codes.
  template <class Row>
  static constexpr bool kDecidesBytes = requires {
    typename Lanes::DecideBytes;
    requires Row::kInRegisters;
  };

  /// Returns whether the task's walks can begin with ByteTests: it adds leaves to sums, in which they come one by one.
  FVM_INLINE static bool suits_byte_tests(const WalkTask& task) {
    if (task.byte_tests == nullptr || (task.tree_range.begin - task.first_tree) % ByteTests::kFour != 0)
      return false;
    return !task.byte_tests->has_leaves() || adds_narrow(task);
  }

  /// Walks each row through all trees, the first eight levels by ByteTests.
  template <class Row>
  [[gnu::noinline]] static void trees_by_bytes(const WalkTask& task) {
    Pending pending;
    for (std::uint32_t row = task.row_range.begin; row < task.row_range.end; ++row) {
      const Row x(row_of<View>(task, row), task.columns);
      for (std::uint32_t t = task.tree_range.begin; t < task.tree_range.end; t += ByteTests::kTogether)
        trees_by_bytes(task, t, row, std::min(task.tree_range.end - t, ByteTests::kTogether), x, pending);
    }
    pending.add_all();
  }

  /// Walks a row through `count` trees, at most ByteTests::kTogether. Lanes beyond the last one walk other trees.
  template <class Row>
  FVM_INLINE static void trees_by_bytes(const WalkTask& task, std::uint32_t t, std::uint32_t row,
                                        unsigned count, const Row& x, Pending& pending) {
    using Decide = typename Lanes::DecideBytes;
    constexpr unsigned kVectors = ByteTests::kTogether / kLanes;
    const ByteTests& tests = *task.byte_tests;
    const std::uint32_t tree = t - task.first_tree;
    Ints at[kVectors];
    Decide::find_ends(tests, tree, count, x, at, [&] { pending.add(ByteTests::kTogether / Decide::kCalls); });
    if (tests.has_leaves()) {
      const float* const leaves = tests.leaves(tree);
      for (unsigned v = 0; v < kVectors && v * kLanes < count; ++v)
        Lanes::store(pending.free().values + v * kLanes, Lanes::gather(leaves, at[v]));
      return pending.turn(task, task.group.trees + tree, row, count);
    }
    const auto* const ends = reinterpret_cast<const std::uint8_t*>(tests.ends(tree));
    for (unsigned v = 0; v < kVectors; ++v) {
      const Ints end = Lanes::gather(ends, Lanes::add(at[v], at[v])) & Lanes::all(0xffff);
      at[v] = Lanes::add(Lanes::load(tests.begins(tree) + v * kLanes), end);
    }
    if (!tests.walks_end()) {
      const auto* const nodes = reinterpret_cast<const Node*>(task.group.nodes);
      Nodes node[kVectors];
      for (unsigned v = 0; v < kVectors; ++v) node[v] = Lanes::fetch(nodes, at[v]);
      descend<kVectors>(
          task, ByteTests::kLevels, [&](unsigned) { return nodes; }, at, node,
          [&](unsigned, Ints position) { return x[position]; }, [] {});
      for (unsigned v = 0; v < kVectors; ++v) at[v] = Lanes::leaves(node[v]);
    }
    add_leaves<kVectors>(task, t, row, count, at, leaf_of(task, at), pending);
  }

  /// Returns a function that gathers the outputs of the leaves in vector v of `at`.
  template <unsigned Vectors>
  FVM_INLINE static auto leaf_of(const WalkTask& task, const Ints (&at)[Vectors]) {
    return [&task, &at](unsigned v) { return Lanes::gather(task.group.leaves, at[v]); };
  }

  /// Adds the leaves of a row in `count` trees. `at` has their indices, and value(v) returns their outputs in vector v.
  template <unsigned Vectors, class Value>
  FVM_INLINE static void add_leaves(const WalkTask& task, std::uint32_t t, std::uint32_t row, unsigned count,
                                    const Ints (&at)[Vectors], const Value& value, Pending& pending) {
    const TreeDesc* const descs = task.group.trees + (t - task.first_tree);
    if (adds_wide(task)) {
      for (unsigned v = 0; v < Vectors; ++v) Lanes::store(pending.free().indices + v * kLanes, at[v]);
      return pending.turn(task, descs, row, count);
    }
    float* const values = pending.free().values;
    for (unsigned v = 0; v < Vectors; ++v) Lanes::store(values + v * kLanes, value(v));
    if (adds_narrow(task)) [[likely]]
      return pending.turn(task, descs, row, count);
    std::uint64_t numbers_at[Vectors * kLanes];
    number<Vectors>(at, 0, numbers_at);
    Deliver<Target>::run(task, {t, row, count, 1, values, numbers_at});
  }

  /// Writes the indices of the walks' leaf numbers, counted from the group's first. `at` counts them from
  /// `first`.
  template <unsigned Vectors>
  FVM_INLINE static void number(const Ints* at, std::uint64_t first, std::uint64_t* numbers_at) {
    alignas(64) std::uint32_t indices[kLanes];
    for (unsigned v = 0; v < Vectors; ++v) {
      Lanes::store(indices, at[v]);
      for (unsigned i = 0; i < kLanes; ++i) numbers_at[v * kLanes + i] = first + indices[i];
    }
  }

  /// Takes every lane to its leaf. `at` has the lanes' positions and `node` the nodes there, first those that walks
  /// reach from the roots in `taken` steps. nodes(v) returns the nodes through which vector v walks, value(v, position)
  /// what its lanes test; beside() is called at each step. All vectors step before any fetches its next nodes: a fetch
  /// waits for its own vector's step, and the processor runs the gathers of the other vectors meanwhile. Lanes at a
  /// leaf stay there, so vectors whose lanes have all ended go on with the others, which costs less than a branch for
  /// each vector.
  template <unsigned Vectors, class Forest, class Value, class Beside>
  FVM_INLINE static void descend(const WalkTask& task, std::uint32_t taken, const Forest& nodes,
                                 Ints (&at)[Vectors], Nodes (&node)[Vectors], const Value& value,
                                 const Beside& beside) {
    std::uint32_t steps_left = task.steps - std::min(task.steps, taken);
    for (bool walking = !task.exact || steps_left != 0; walking;) {
      walking = false;
      for (unsigned v = 0; v < Vectors; ++v) {
        const auto step = Lanes::step(node[v], at[v], v, value);
        at[v] = step.at;
        walking |= step.walking;
      }
      if (!task.exact && !walking) break;
      for (unsigned v = 0; v < Vectors; ++v) node[v] = Lanes::fetch(nodes(v), at[v]);
      beside();
      if (task.exact) walking = --steps_left != 0;
    }
  }
};

}  // namespace forestvm::host
