// Runs a known code (see known_code.hpp): the instructions of a block whose threads share the trees of each of its
// rows, as one piece of code. In: a launch whose code is known, and whose results have room for the scores of a row.
// Out: what the interpreter makes of the same code. It does without what only separate instructions need: sums begin
// in registers and not in memory that is set before, scores are made where results lie, and barriers stand only where
// threads read what others have written: after copies of rows, after walks, and before a transform.
//
// Extents of the launch's dimensions are the numbers of iterations of their maps, so that every block has rows, and
// every thread trees unless its block has fewer than others that share the trees of its rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/join_blocks.hpp"
#include "kernels/device/layout_list.hpp"
#include "kernels/device/reduction.hpp"
#include "kernels/device/stage.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/known_code.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Turns the scores of a row into values. It is not inlined, because most calls have no transform, and a member,
/// because kernels that take codes only do not call it.
struct RowTransform {
  FVM_DEVICE_COLD static void run(const LaunchProgram& program, Transform kind, float* scores) {
    transform_row(kind, scores, program.num_outputs, program.parameters);
  }
};

template <class Listed, KnownCode code>
class KnownBlock {
  using enum LinkedField;
  static constexpr KnownCode kOwn = unjoined(code);
  static constexpr bool kJoins = kOwn != code;
  using Sum = typename known::Of<code>::Sum;

 public:
  FVM_DEVICE explicit KnownBlock(const Launch& launch)
      : launch_(launch),
        x_(index(LaunchDimension::BlockX)),
        y_(index(LaunchDimension::BlockY)),
        thread_{y_ * extent(LaunchDimension::BlockX) + x_,
                extent(LaunchDimension::BlockX) * extent(LaunchDimension::BlockY)} {
    const std::uint32_t step = linked<Op::Map, Step>(inst<Op::Map>());
    first_row_ = index(LaunchDimension::GridX) * step;
    rows_ = least(step, launch.pass.row_count - first_row_);
  }

  FVM_DEVICE void run() const {
    const LinkedInst& cache = inst<Op::CacheRows>();
    std::byte* const staged = Device::shared() + linked<Op::CacheRows, Offset>(cache);
    const std::uint32_t stride = linked<Op::CacheRows, Stride>(cache),
                        pitch = linked<Op::CacheRows, Pitch>(cache);
    const Range rows{first_row_, first_row_ + rows_, 0};
    if (stride == 1)
      stage_whole_rows(launch_, rows, linked<Op::CacheRows, RowBits>(cache), pitch, staged, thread_);
    else
      stage_rows(launch_, rows, stride, reinterpret_cast<float*>(staged), thread_);
    Device::sync(known::kPc<code, Op::CacheRows>);
    if (x_ < rows_) walk({Device::shared_address(staged), first_row_, stride, pitch});
    Device::sync(known::kPc<code, Op::End, 1>);
    if constexpr (kOwn == KnownCode::Leaves) {
      add_kept_leaves();
    } else {
      const LaunchAccumulator& parts = launch_.accumulators[known::kParts];
      const std::uint32_t copies = extent(LaunchDimension::BlockY);
      if constexpr (kJoins) {
        reduce<PartCells>({copies, parts.copy_bytes, true}, known::kPc<code, Op::ReduceInplace>);
        if (!joins_last(launch_, linked<Op::End, Offset>(inst<Op::End, 2>()), thread_.number,
                        known::kPc<code, Op::End, 2>))
          return;
        reduce<ResultCells>({extent(LaunchDimension::GridY), parts.copy_bytes * copies, false},
                            known::kPc<code, Op::ReduceDim>);
      } else {
        reduce<ResultCells>({copies, parts.copy_bytes, false}, known::kPc<code, Op::ReduceDim>);
      }
    }
    turn_into_values();
  }

 private:
  FVM_DEVICE static std::uint32_t index(LaunchDimension dimension) {
    return Device::index(static_cast<unsigned>(dimension));
  }
  FVM_DEVICE static std::uint32_t extent(LaunchDimension dimension) {
    return Device::extent(static_cast<unsigned>(dimension));
  }
  FVM_DEVICE static std::uint32_t least(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

  /// Returns the instruction with this opcode, with the operands that differ from phase to phase; see known::kPc.
  template <Op op, unsigned after = 0>
  FVM_DEVICE const LinkedInst& inst() const {
    return launch_.code[known::kPc<code, op, after>];
  }

  /// Returns where a copy of the parts of a row of the block lies. Blocks that join hand them over in global memory.
  /// Sums of other blocks are in shared memory, and kept leaves in either.
  template <class Element>
  FVM_DEVICE Element* part(std::uint32_t copy, std::uint32_t row) const {
    const LaunchAccumulator& parts = launch_.accumulators[known::kParts];
    const auto in_shared = [&] {
      return Device::shared() + parts.offset + copy * static_cast<std::uint32_t>(parts.copy_bytes) +
             row * parts.row_bytes;
    };
    const auto in_global = [&] {
      return parts.memory + copy * parts.copy_bytes + std::uint64_t{first_row_ + row} * parts.row_bytes;
    };
    if constexpr (kJoins)
      return reinterpret_cast<Element*>(in_global());
    else if constexpr (kOwn != KnownCode::Leaves)
      return reinterpret_cast<Element*>(in_shared());
    else
      return reinterpret_cast<Element*>(parts.memory == nullptr ? in_shared() : in_global());
  }

  /// Returns the results of a row of the block, where its scores are made.
  FVM_DEVICE float* result(std::uint32_t row) const {
    return launch_.pass.values + std::uint64_t{first_row_ + row} * launch_.pass.value_width;
  }

  FVM_DEVICE float base(std::uint32_t output) const { return static_cast<float>(launch_.pass.base[output]); }

  /// Walks a row through the thread's trees.
  FVM_DEVICE void walk(const StagedRows& rows) const {
    const LaunchGroup& group = launch_.group;
    std::uint32_t block = 0, begin = 0, end = launch_.program.num_trees;
    if constexpr (kJoins) {
      const std::uint32_t step = linked<Op::Map, Step>(inst<Op::Map, 1>());
      block = index(LaunchDimension::GridY);
      begin = block * step;
      end = least(begin + step, end);
    }
    constexpr unsigned kMapOfThreads = kJoins ? 2 : 1;
    const std::uint32_t step = linked<Op::Map, Step>(inst<Op::Map, kMapOfThreads>());
    begin = least(begin + y_ * step, end);
    end = least(begin + step, end);
    const std::uint32_t copy = kOwn == KnownCode::Leaves ? 0 : block * extent(LaunchDimension::BlockY) + y_;
    ThreadWalk walk;
    walk.program = &launch_.program;
    walk.group = group.data;
    walk.staged = false;
    walk.first_tree = group.first_tree;
    walk.walker = &launch_.walker;
    walk.trees = {begin, end, 0};
    walk.rows = {first_row_ + x_, 1, 1};
    walk.out = part<std::byte>(copy, x_);
    walk.out_row = walk.rows.first;
    walk.width = launch_.accumulators[known::kParts].width;
    with_listed_view(Listed{}, group.layout, [&]<class View>() {
      if constexpr (kTakesCodes<View>)
        return;
      else if constexpr (kOwn == KnownCode::Sums)
        sum_row<View>(walk, rows);
      else if constexpr (kOwn == KnownCode::Leaves)
        keep_leaves_of_row<View>(walk, rows);
      else
        sum_row_exactly<View, Sum>(walk, rows);
    });
  }

  // --- sums ---

  /// The cells of the reduction of a block's parts to their first copy.
  struct PartCells {
    const KnownBlock& block;

    template <class Element>
    FVM_DEVICE const Element* first_copy(const Reduction&, std::uint32_t row, std::uint32_t column) const {
      return cell<Element>(row, column);
    }
    template <class Element>
    FVM_DEVICE Element begin(const Reduction&, std::uint32_t row, std::uint32_t column) const {
      return *cell<Element>(row, column);
    }
    template <class Element>
    FVM_DEVICE void end(const Reduction&, std::uint32_t row, std::uint32_t column,
                        const Element& total) const {
      *cell<Element>(row, column) = total;
    }

   private:
    template <class Element>
    FVM_DEVICE Element* cell(std::uint32_t row, std::uint32_t column) const {
      return block.template part<Element>(index(LaunchDimension::GridY) * extent(LaunchDimension::BlockY),
                                          row) +
             column;
    }
  };

  /// The cells of the reduction to results, which begins with base scores and rounds exact sums.
  struct ResultCells {
    const KnownBlock& block;

    template <class Element>
    FVM_DEVICE const Element* first_copy(const Reduction&, std::uint32_t row, std::uint32_t column) const {
      return block.template part<Element>(0, row) + column;
    }
    template <class Element>
    FVM_DEVICE Element begin(const Reduction&, std::uint32_t, std::uint32_t column) const {
      return Element::of(block.launch_.pass.base[column], block.launch_.program.scale);
    }
    template <class Element>
    FVM_DEVICE void end(const Reduction&, std::uint32_t row, std::uint32_t column,
                        const Element& total) const {
      block.result(row)[column] = total.template rounded<float>(block.launch_.program.scale);
    }
  };

  struct Copies {
    std::uint32_t count;
    std::size_t bytes;
    bool in_place;
  };

  template <class Cells>
  FVM_DEVICE void reduce(const Copies& copies, std::uint32_t barrier) const {
    const Reduction reduction{
        known::kScores, known::kParts,  0, copies.count, first_row_, rows_, launch_.program.num_outputs,
        copies.bytes,   copies.in_place};
    const ReducingThread thread{thread_.number, thread_.count};
    if (adds_by_warps<Sum>(reduction, launch_.program.any_order, thread.count))
      reduce_by_warps<Sum>(reduction, Cells{*this}, thread, barrier);
    else
      reduce_in_order<Sum>(reduction, Cells{*this}, thread);
  }

  /// Adds the leaves that the block has kept in the order of their trees.
  FVM_DEVICE void add_kept_leaves() const {
    for_elements(Elements{rows_, launch_.program.num_outputs}, thread_.number, thread_.count,
                 [&](std::uint32_t row, std::uint32_t output) {
                   float sum = base(output);
                   add_leaves_of_output(launch_, first_row_ + row, output, part<float>(0, row), sum);
                   result(row)[output] = sum;
                 });
  }

  /// Turns the scores into values, where there is a transform, and gives pairs their second number.
  FVM_DEVICE void turn_into_values() const {
    const std::uint32_t kind = linked<Op::Transform, TransformKind>(inst<Op::Transform>());
    const Pair pair = launch_.pass.pair;
    if (kind == known::kNoTransform && pair == Pair::None) return;
    Device::sync(known::kPc<code, Op::Transform>);
    FVM_NO_UNROLL
    for (std::uint32_t row = thread_.number; row < rows_; row += thread_.count) {
      float* const values = result(row);
      if (kind != known::kNoTransform)
        RowTransform::run(launch_.program, static_cast<Transform>(kind), values);
      if (pair == Pair::None) continue;
      const float score = *values;
      for (const std::uint32_t k : {0u, 1u}) values[k] = value_of(pair, &score, k);
    }
  }

  const Launch& launch_;
  std::uint32_t x_, y_;
  BlockThread thread_;
  std::uint32_t first_row_, rows_;  ///< number of the block's first row, and of its rows
};

}  // namespace forestvm::kernels
