// A thread's part of its block's work: the rows that it takes, where the sums of rows lie, and the block's barriers.
// Code outside the maps of some dimensions of the block is shared by the threads that differ in those dimensions only:
// thread i of n such threads takes the rows whose numbers, counted from the block's first row, are i modulo n.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>

#include "kernels/device/thread_state.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

class ThreadWork {
 public:
  Registers& ranges;

  FVM_DEVICE ThreadWork(const Launch& launch, ThreadState& state)
      : ranges(state.ranges), launch_(&launch), state_(&state) {}

 protected:
  /// Returns the state of a thread that interprets code.
  FVM_DEVICE InterpreterState& interpreter() const { return static_cast<InterpreterState&>(*state_); }
  /// Returns the work of a thread that interprets code, for functions that are not inlined.
  FVM_DEVICE ThreadWork interpreted() const { return ThreadWork(*launch_, *interpreter().self); }

  FVM_DEVICE std::uint32_t threads() const { return Sharing::of(launch_->peers).count; }

  /// Waits for all threads of the block, which must all come to this instruction.
  FVM_DEVICE void sync_block(const LinkedInst& inst) const {
    Device::sync(barrier_at(inst));
    state_->unsettled = false;
  }

  /// Returns the number of the barrier that stands at an instruction: its pc.
  FVM_DEVICE std::uint32_t barrier_at(const LinkedInst& inst) const {
    return static_cast<std::uint32_t>(&inst - launch_->code);
  }

  /// Makes what threads have written visible to all threads of the block.
  FVM_DEVICE void settle(const LinkedInst& inst) const {
    if (state_->unsettled) sync_block(inst);
  }

  /// Sets the thread's number among its peers, and their number.
  FVM_DEVICE void share_work(std::uint32_t word, const IndexInBlock& at) const {
    state_->peer = word == Sharing{}.word() ? Peer{0, 1} : Peer::of(word, at);
  }

  FVM_DEVICE static std::uint32_t index(LaunchDimension dimension) {
    return Device::index(static_cast<unsigned>(dimension));
  }

  /// Returns the first of the thread's rows from `begin` on. Most ranges begin where the block's rows do, or belong to
  /// one thread, and take no division.
  FVM_DEVICE std::uint32_t first_row(std::uint32_t begin) const {
    const std::uint32_t number = begin - state_->block_row, peer = state_->peer.number,
                        peers = state_->peer.count;
    if (number == 0 || peers == 1) return begin + peer;
    return begin + peers_before(number, peer, peers);
  }
  /// Returns the distance from row `number` of the block to the first row that the peer takes from there on.
  FVM_DEVICE_COLD static std::uint32_t peers_before(std::uint32_t number, std::uint32_t peer,
                                                    std::uint32_t peers) {
    const std::uint32_t first = number % peers;
    return peer < first ? peer + peers - first : peer - first;
  }

  /// Returns the thread's part of these rows.
  FVM_DEVICE ThreadRows rows_of_thread(const Range& rows) const {
    const std::uint32_t first = first_row(rows.begin), peers = state_->peer.count;
    const std::uint32_t left = first < rows.end ? rows.end - first : 0;
    return {first, peers, left <= 1 || peers == 1 ? left : (left - 1) / peers + 1};
  }

  template <class Visit>
  FVM_DEVICE void for_rows(const Range& range, const Visit& visit) const {
    state_->unsettled = true;
    if (state_->idle != 0) return;
    const std::uint32_t step = state_->peer.count, end = range.end;
    FVM_NO_UNROLL
    for (std::uint32_t row = first_row(range.begin); row < end; row += step) visit(row);
  }

  template <class Element>
  FVM_DEVICE Element* accumulator_row(std::uint32_t accumulator, std::uint32_t copy,
                                      std::uint32_t row) const {
    const LaunchAccumulator& a = launch_->accumulators[accumulator];
    const bool shared = a.memory == nullptr;
    std::byte* const memory = (shared ? state_->shared : a.memory) + a.offset;
    const std::uint32_t at = shared ? row - state_->block_row : row;
    return reinterpret_cast<Element*>(memory + copy * a.copy_bytes + std::uint64_t{at} * a.row_bytes);
  }
  template <class Element>
  FVM_DEVICE Element* accumulator_row(std::uint32_t accumulator, std::uint32_t row) const {
    return accumulator_row<Element>(accumulator, state_->copies[accumulator], row);
  }

  template <class Visit>
  FVM_DEVICE void with_element(std::uint32_t accumulator, Visit&& visit) const {
    switch (launch_->accumulators[accumulator].kind) {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  case AccumulatorKind::Name:                                      \
    return visit.template operator()<Element>();
#include <forestvm/core/accumulator_kinds.def>
    }
  }

  template <class Visit>
  FVM_DEVICE void with_scores(std::uint32_t accumulator, Visit&& visit) const {
    if (launch_->accumulators[accumulator].kind == AccumulatorKind::F64)
      visit.template operator()<double>();
    else
      visit.template operator()<float>();
  }

  /// Sets the rows of an accumulator to `values`, one for each output, those of a row `stride` numbers after those of
  /// the row before.
  template <class Element>
  FVM_DEVICE void fill_rows(std::uint32_t accumulator, Range rows, const double* values,
                            std::size_t stride) const {
    const std::uint32_t width = launch_->accumulators[accumulator].width;
    for_rows(rows, [&](std::uint32_t row) {
      Element* const sums = accumulator_row<Element>(accumulator, row);
      const double* const of_row = values + row * stride;
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < width; ++k) sums[k] = Element::of(of_row[k], launch_->program.scale);
    });
  }

  /// Sets the rows of an accumulator to zero.
  template <class Element>
  FVM_DEVICE void zero_rows(std::uint32_t accumulator, Range rows) const {
    const std::uint32_t width = launch_->accumulators[accumulator].width;
    for_rows(rows, [&](std::uint32_t row) {
      Element* const sums = accumulator_row<Element>(accumulator, row);
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < width; ++k) sums[k] = Element{};
    });
  }

  /// Writes the results of rows.
  template <class Score, class Value>
  FVM_DEVICE void store_rows(std::uint32_t accumulator, Range range, Value* values) const {
    if (values == nullptr) return;
    const Pair pair = launch_->pass.pair;
    const std::uint32_t width = launch_->pass.value_width;
    for_rows(range, [&](std::uint32_t row) {
      const Score* const scores = accumulator_row<Score>(accumulator, row);
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < width; ++k)
        values[std::size_t{row} * width + k] = static_cast<Value>(value_of(pair, scores, k));
    });
  }

  const Launch* launch_;
  ThreadState* state_;
};

}  // namespace forestvm::kernels
