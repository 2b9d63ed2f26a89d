// The walkers themselves: for every layout, CPU target, number of walks in lockstep, ending and way of adding
// leaves, the sums equal those of a plain loop over the model's trees, bit for bit. Nodes, leaves, rows,
// codes and sums end where memory does, so that access to one element too far is noticed.
#include <gtest/gtest.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/derived_tables.hpp>

#include "conformance/dice.hpp"
#include "support/nightly.hpp"
#include "vm/guarded_memory.hpp"
#include "vm/host/leaf_offsets.hpp"
#include "vm/host/targets/target.hpp"
#include "vm/host/walker_forest.hpp"

namespace forestvm::test::test_walkers {

void PrintTo(const LayoutRow& layout, std::ostream* out) { *out << layout.text; }

namespace {

using host::ByteTests;
using host::RootNodes;
using host::WalkTask;
using Against = GuardedMemory::Against;

constexpr std::size_t kCapacity = std::size_t{4} << 20;

std::vector<const host::Target*> targets_here() {
  std::vector<const host::Target*> here;
  for (const host::Target& target : host::targets())
    if (target.runs_here()) here.push_back(&target);
  return here;
}

/// The numbers of trees and rows in lockstep.
struct Lockstep {
  std::uint8_t trees, rows;
};

std::vector<Lockstep> all_locksteps() {
  std::vector<Lockstep> all;
  for (unsigned trees = 1; trees <= kMaxInterleave; trees *= 2)
    for (unsigned rows = 1; trees * rows <= kMaxInterleave; rows *= 2)
      all.push_back({static_cast<std::uint8_t>(trees), static_cast<std::uint8_t>(rows)});
  return all;
}

/// A way to deliver leaves.
struct Ending {
  Delivery delivery;
  bool atomic;
};

bool adds(Delivery delivery) {
  return delivery != Delivery::PerTree && delivery != Delivery::PerTree64 && delivery != Delivery::LeafNumber;
}

std::size_t element_bytes(Delivery delivery) {
  return delivery == Delivery::LeafNumber ? sizeof(std::uint32_t)
                                          : element_size(static_cast<AccumulatorKind>(delivery));
}

std::vector<Ending> endings_of(const WalkerForest& forest) {
  std::vector<Ending> endings;
  for (unsigned i = 0; i <= static_cast<unsigned>(Delivery::LeafNumber); ++i) {
    const auto delivery = static_cast<Delivery>(i);
    if (delivery == Delivery::PerTree64 && forest.model.score_type == ScalarType::Float32) continue;
    endings.push_back({delivery, false});
    if (adds(delivery)) endings.push_back({delivery, true});
  }
  return endings;
}

struct Call {
  Range rows, trees;
  std::uint32_t row_count;  ///< number of rows of the whole call
  std::size_t row_stride;
  WalkOrder order;
  Ending ending;
};

/// The places of the elements to which a call delivers leaves. Sums and leaves' numbers lie row by row. Leaves' values
/// lie where LeafOffsets says, in memory that begins and ends with a block of rows.
class Sums {
 public:
  Sums(const Call& call, std::size_t width)
      : width_(width), element_(element_bytes(call.ending.delivery)), places_(width, call.row_count) {
    in_blocks_ = call.ending.delivery == Delivery::PerTree || call.ending.delivery == Delivery::PerTree64;
    if (!in_blocks_) {
      rows_ = call.rows;
      return;
    }
    const auto room = static_cast<std::uint32_t>(host::LeafOffsets::rows_with_room(call.row_count));
    rows_.begin = call.rows.begin / kCodeRows * kCodeRows;
    rows_.end = std::min((call.rows.end + kCodeRows - 1) / kCodeRows * kCodeRows, room);
  }

  /// Returns the rows that have elements.
  const Range& rows() const { return rows_; }
  std::size_t size() const { return rows_.size() * width_; }
  std::size_t bytes_before() const { return rows_.begin * width_ * element_; }

  std::size_t at(std::uint32_t row, std::size_t column) const {
    const std::size_t first = rows_.begin * width_;
    return (in_blocks_ ? places_.at(row, static_cast<std::uint32_t>(column)) : row * width_ + column) - first;
  }

 private:
  std::size_t width_, element_;
  host::LeafOffsets places_;
  bool in_blocks_;
  Range rows_{};
};

/// Marks memory as readable or not under AddressSanitizer.
/// True for the layouts whose lookups may read past the tables of a tree.
template <class View>
constexpr bool kHasTables = std::derived_from<View, TablesView> || std::same_as<View, TopTablesView>;

void set_readable(const void* at, std::size_t size, bool readable) {
#if defined(__SANITIZE_ADDRESS__)
  (readable ? __asan_unpoison_memory_region : __asan_poison_memory_region)(at, size);
#else
  static_cast<void>(at), static_cast<void>(size), static_cast<void>(readable);
#endif
}

/// A forest's first trees and the rows of a call, at the ends of memory.
class Guarded {
 public:
  Guarded() = default;
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  /// Makes all memory readable again: what is mapped at its address next would be forbidden otherwise.
  ~Guarded() { set_readable(codes_.at(kCapacity, Against::Front), kCapacity, true); }

  /// Puts in the first `tree_count` trees; memory has no others.
  void put_trees(const WalkerForest& forest, std::uint32_t tree_count, Against end) {
    forest_ = &forest;
    byte_tests_.reset();
    const GroupDesc& group = forest.group();
    const std::byte* const from = forest.program.nodes().data() + group.node_offset;
    const TreeDesc& last = forest.trees[tree_count - 1];
    std::uint64_t nodes = group.node_count, leaves = group.leaf_count, numbers = 0;
    with_view(group.layout, [&]<class View>() {
      if constexpr (!kInterleavesTrees<View>) {
        nodes = last.first_node + std::uint64_t{last.node_count};
        if constexpr (kHasTables<View>) nodes += kTableSlack;
        leaves = last.first_leaf + std::uint64_t{last.leaf_count};
      }
      numbers = View::kLeavesAside ? leaves : nodes;
      const std::size_t size = sizeof(typename View::Node);
      data_.nodes = nodes_.put(from, nodes * size, end);
      data_.leaves =
          put_all<float>(leaves_, from + group.node_count * size, View::kLeavesAside ? leaves : 0, end);
    });
    data_.trees = put_all<TreeDesc>(trees_, forest.trees.data(), tree_count, end);
    const std::vector<std::uint8_t> exits = tile_exits(forest.program);
    data_.exits = put_all<std::uint8_t>(exits_, exits.data(), exits.size(), end);
    data_.tree_count = group.tree_end - group.tree_begin;
    data_.tile_size = group.tile_size;
    with_view(group.layout, [&]<class View>() {
      if constexpr (requires { View::kLeafWord; }) roots_ = RootNodes::of<View>(data_, tree_count);
    });
    numbers_at_ = put_all<std::uint32_t>(numbers_, forest.program.leaf_numbers().data() + group.first_number,
                                         numbers, end);
    const auto wide = forest.program.wide_leaves();
    wide_at_ =
        wide.empty() ? nullptr : put_all<double>(wide_, wide.data() + group.first_number, numbers, end);
  }

  /// Puts in the tests of the trees as bytes. Returns false if the target has none.
  bool put_byte_tests(const host::Target& target, std::uint32_t tree_count) {
    const bool wide = !forest_->program.wide_leaves().empty();
    byte_tests_ = target.byte_tests(data_, tree_count, forest_->columns(), wide);
    return byte_tests_ != nullptr;
  }

  /// Returns a task whose memory has only what a walk of these rows may read and, at `sums`, write.
  WalkTask task(const Call& call, const std::vector<std::byte>& sums, Against end) {
    const std::size_t features = forest_->model.num_features;
    const Range& rows = call.rows;
    std::vector<float> strided((rows.size() == 0 ? 0 : rows.size() - 1) * call.row_stride +
                               (rows.size() == 0 ? 0 : features));
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(strided.data() + i * call.row_stride, forest_->rows.data() + (rows.begin + i) * features,
                  features * sizeof(float));
    WalkTask task = trees_of(call);
    task.rows =
        before(put_all<float>(rows_, strided.data(), strided.size(), end), rows.begin * call.row_stride);
    task.row_stride = call.row_stride;
    task.columns = forest_->columns();
    task.row_count = call.row_count;
    const std::size_t block = task.columns * kCodeRows, first = rows.begin / kCodeRows * block;
    std::vector<std::uint8_t> codes(
        forest_->codes.begin() + static_cast<std::ptrdiff_t>(first),
        forest_->codes.begin() + static_cast<std::ptrdiff_t>(code_bytes(rows.end, task.columns)));
    codes.resize(codes.size() + kCodeSlack, 0xff);
    set_readable(codes_.at(kCapacity, end), kCapacity, true);
    task.codes = before(put_all<std::uint8_t>(codes_, codes.data(), codes.size(), end), first);
    forbid_codes_of_others(call, task);
    task.out = before(sums_.put(sums.data(), sums.size(), end), sums_of(call).bytes_before());
    return task;
  }

  WalkTask trees_of(const Call& call) const {
    WalkTask task{};
    task.group = data_;
    task.roots = &roots_;
    task.byte_tests = byte_tests_.get();
    task.numbers = numbers_at_;
    task.wide_leaves = wide_at_;
    task.tree_range = call.trees;
    task.row_range = call.rows;
    task.width = width(call);
    task.scale = SumScale(kLeafUnit);
    task.steps = forest_->walker().steps;
    task.exact = forest_->walker().end == WalkEnd::Exact;
    task.order = call.order;
    task.delivery = call.ending.delivery;
    task.atomic = call.ending.atomic;
    return task;
  }

  std::size_t width(const Call& call) const {
    return adds(call.ending.delivery) ? forest_->model.num_outputs : forest_->trees.size();
  }
  Sums sums_of(const Call& call) const { return {call, width(call)}; }

  /// Returns what a task has left in its sums. In rows that lie after those of the call, where walkers may write, it is
  /// replaced with what `expected` has there.
  static std::vector<std::byte> left(const Call& call, const WalkTask& task,
                                     const std::vector<std::byte>& expected) {
    const Sums sums(call, task.width);
    const std::byte* const from = task.out + sums.bytes_before();
    std::vector<std::byte> found(from, from + expected.size());
    const std::size_t size = element_bytes(call.ending.delivery);
    for (std::uint32_t row = call.row_count; row < sums.rows().end; ++row)
      for (std::size_t column = 0; column < task.width; ++column)
        std::copy_n(expected.data() + sums.at(row, column) * size, size,
                    found.data() + sums.at(row, column) * size);
    return found;
  }

 private:
  template <class T>
  static const T* put_all(GuardedMemory& memory, const void* data, std::size_t count, Against end) {
    return reinterpret_cast<const T*>(memory.put(data, count * sizeof(T), end));
  }
  /// Makes the codes of other rows unreadable: other threads may be writing them. Walks in tables read
  /// vectors of codes, which may belong to rows that they walk or to no row at all. (Walks whose lanes are
  /// trees load words and use one byte.)
  void forbid_codes_of_others(const Call& call, const WalkTask& task) const {
    if (!with_view(forest_->group().layout, []<class View>() { return kHasTables<View>; })) return;
    const auto [begin, end, iteration] = call.rows;
    const std::uint32_t known_end =
        end == call.row_count ? (end + kCodeRows - 1) / kCodeRows * kCodeRows : end;
    for (std::uint32_t block = begin / kCodeRows * kCodeRows; block < end; block += kCodeRows)
      for (std::size_t c = 0; c < task.columns; ++c) {
        const std::uint8_t* const column = task.codes + code_offset(block, task.columns) + c * kCodeRows;
        if (begin > block) set_readable(column, begin - block, false);
        if (known_end < block + kCodeRows)
          set_readable(column + (known_end - block), block + kCodeRows - known_end, false);
      }
  }

  /// Returns the address `elements` elements before `at`. It need not lie in any object.
  template <class T>
  static T* before(T* at, std::size_t elements) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(at) - elements * sizeof(T));
  }

  const WalkerForest* forest_ = nullptr;
  GuardedMemory nodes_{kCapacity}, leaves_{kCapacity}, trees_{kCapacity}, exits_{kCapacity},
      numbers_{kCapacity}, wide_{kCapacity}, rows_{kCapacity}, codes_{kCapacity}, sums_{kCapacity};
  GroupData data_{};
  const std::uint32_t* numbers_at_ = nullptr;
  const double* wide_at_ = nullptr;
  RootNodes roots_;
  std::unique_ptr<const ByteTests> byte_tests_;
};

template <class T>
T& element(std::vector<std::byte>& sums, std::size_t index) {
  return reinterpret_cast<T*>(sums.data())[index];
}

/// Adds or stores one leaf. Exact sums count the unit of which every leaf is a multiple.
void deliver(const WalkerForest& forest, Delivery delivery, const PlainLeaf& leaf,
             std::vector<std::byte>& sums, std::size_t index) {
  const double widest = forest.model.score_type == ScalarType::Float64 ? leaf.wide : double{leaf.narrow};
  const auto count = static_cast<std::int64_t>(std::ldexp(widest, -kLeafUnit));
  switch (delivery) {
    case Delivery::F32:
      element<float>(sums, index) += leaf.narrow;
      break;
    case Delivery::F64:
      element<double>(sums, index) += widest;
      break;
    case Delivery::Exact64:
      element<std::uint64_t>(sums, index) += static_cast<std::uint64_t>(count);
      break;
    case Delivery::Exact128: {
      auto& sum = element<Exact128Sum>(sums, index);
      const auto low = static_cast<std::uint64_t>(count);
      sum.low += low;
      sum.high += (count < 0 ? ~std::uint64_t{0} : 0) + (sum.low < low ? 1 : 0);
      break;
    }
    case Delivery::PerTree:
      element<float>(sums, index) = leaf.narrow;
      break;
    case Delivery::PerTree64:
      element<double>(sums, index) = leaf.wide;
      break;
    case Delivery::LeafNumber:
      element<std::uint32_t>(sums, index) = leaf.number;
      break;
  }
}

/// Adds each row's leaves to `sums` in a plain loop, in the order of their trees.
void walk_plainly(const WalkerForest& forest, const Call& call, const Sums& places,
                  std::vector<std::byte>& sums) {
  for (std::uint32_t row = call.rows.begin; row < call.rows.end; ++row)
    for (std::size_t t = call.trees.begin; t < call.trees.end; ++t) {
      const TreeDesc& tree = forest.trees[t];
      const std::size_t column = adds(call.ending.delivery) ? tree.output : tree.number;
      deliver(forest, call.ending.delivery, forest.leaves[row * forest.trees.size() + t], sums,
              places.at(row, column));
    }
}

/// Returns numbers to which any leaf can be added.
std::vector<std::byte> some_sums(const Call& call, const Sums& places, Dice& dice) {
  std::vector<std::byte> sums(places.size() * element_bytes(call.ending.delivery));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double value = static_cast<double>(dice.below(1u << 20)) * 0x1p-16 - 8;
    switch (call.ending.delivery) {
      case Delivery::F32:
      case Delivery::PerTree:
        element<float>(sums, i) = static_cast<float>(value);
        break;
      case Delivery::F64:
      case Delivery::PerTree64:
        element<double>(sums, i) = value;
        break;
      case Delivery::Exact64:
        element<std::uint64_t>(sums, i) = dice.bits();
        break;
      case Delivery::Exact128:
        element<Exact128Sum>(sums, i) = {dice.bits(), dice.bits()};
        break;
      case Delivery::LeafNumber:
        element<std::uint32_t>(sums, i) = static_cast<std::uint32_t>(dice.bits());
        break;
    }
  }
  return sums;
}

std::string words(const WalkerForest& forest, const host::Target& target, const Lockstep& lockstep,
                  const Call& call) {
  const auto range = [](const Range& of) {
    return std::to_string(of.begin) + " to " + std::to_string(of.end);
  };
  return forest.what + ", target " + std::string(target.name) + ", " + std::to_string(lockstep.trees) +
         " trees x " + std::to_string(lockstep.rows) + " rows, " +
         (call.order == WalkOrder::RowsOuter ? "rows" : "trees") + " outer, delivery " +
         std::to_string(static_cast<unsigned>(call.ending.delivery)) + (call.ending.atomic ? " atomic" : "") +
         ", rows " + range(call.rows) + " of " + std::to_string(call.row_count) + " (stride " +
         std::to_string(call.row_stride) + "), trees " + range(call.trees);
}

host::Walker walker_of(const WalkerForest& forest, const host::Target& target, const Lockstep& lockstep) {
  WalkerDesc desc = forest.walker();
  desc.interleaved_trees = lockstep.trees;
  desc.interleaved_rows = lockstep.rows;
  return target.find_walker(forest.group().layout, desc);
}

/// Returns a range of rows that ends at vectors, half blocks and blocks of codes, or beside them.
Range some_rows(Dice& dice, std::size_t row_count) {
  static const std::vector<std::uint32_t> begins{0, 0, 0, 1, 31, 32, 33, 63, 64, 65, 96, 128};
  static const std::vector<std::uint32_t> sizes{0,  1,   2,   3,   5,   7,   8,   9,   15, 16,
                                                17, 24,  31,  32,  33,  47,  48,  63,  64, 65,
                                                66, 100, 127, 128, 129, 200, 512, 513, 600};
  const std::uint32_t begin = dice.pick(begins);
  return {begin, std::min(begin + dice.pick(sizes), static_cast<std::uint32_t>(row_count)), 0};
}

class WalkerTest : public testing::Test {
 protected:
  /// Runs one walk and compares it with the plain loop.
  void check(const WalkerForest& forest, const host::Target& target, const Lockstep& lockstep,
             const Call& call, Dice& dice) {
    const std::string what = words(forest, target, lockstep, call);
    FaultReport::name(what);
    const host::Walker walk = walker_of(forest, target, lockstep);
    ASSERT_TRUE(walk) << what;
    const Sums places = guarded_.sums_of(call);
    std::vector<std::byte> sums = some_sums(call, places, dice);
    const WalkTask task = guarded_.task(call, sums, dice.percent(80) ? Against::Back : Against::Front);
    walk(task);
    walk_plainly(forest, call, places, sums);
    ASSERT_TRUE(Guarded::left(call, task, sums) == sums) << what;
  }

  const FaultReport report_;
  Guarded guarded_;
};

class Walkers : public WalkerTest, public testing::WithParamInterface<LayoutRow> {};
class WalkersOfFewRows : public WalkerTest {};

TEST_P(Walkers, LeaveWhatAPlainLoopLeaves) {
  const std::vector<Lockstep> locksteps = all_locksteps();
  constexpr WalkOrder kOrders[] = {WalkOrder::RowsOuter, WalkOrder::TreesOuter};
  Dice dice(static_cast<std::uint64_t>(GetParam().layout));
  for (const WalkerForest& forest : walker_forests(GetParam())) {
    ASSERT_EQ(forest.group().layout, GetParam().layout) << forest.what;
    const std::vector<Ending> endings = endings_of(forest);
    const auto trees = static_cast<std::uint32_t>(forest.trees.size());
    for (const host::Target* const target : targets_here())
      for (const WalkOrder order : kOrders) {
        const std::uint32_t end =
            dice.percent(50) ? trees : static_cast<std::uint32_t>(dice.from_to(1, trees));
        guarded_.put_trees(forest, end, dice.percent(80) ? Against::Back : Against::Front);
        for (const std::size_t i :
             support::sampled(locksteps.size() * endings.size(), locksteps.size() / 2)) {
          const Range rows = some_rows(dice, forest.row_count);
          const std::uint32_t more = dice.percent(50) ? 0 : static_cast<std::uint32_t>(dice.below(70));
          const std::uint32_t begin = dice.percent(60) ? 0 : static_cast<std::uint32_t>(dice.below(end));
          const Call call{
              rows,
              {begin, dice.percent(60) ? end : static_cast<std::uint32_t>(dice.from_to(begin, end)), 0},
              std::min(rows.end + more, static_cast<std::uint32_t>(forest.row_count)),
              forest.model.num_features + (dice.percent(50) ? 0 : dice.below(20)),
              order,
              endings[i / locksteps.size()]};
          check(forest, *target, locksteps[i % locksteps.size()], call, dice);
          if (HasFatalFailure()) return;
        }
      }
  }
}

/// Walks that begin with tests as bytes: each way to deliver leaves, and ranges of trees that begin and end within what
/// is walked together.
TEST_F(WalkersOfFewRows, LeaveWhatAPlainLoopLeaves) {
  Dice dice(5);
  bool decides = false;
  for (const WalkerForest& forest : forests_of_byte_tests()) {
    const auto trees = static_cast<std::uint32_t>(forest.trees.size());
    const std::uint32_t end = dice.percent(50) ? trees : static_cast<std::uint32_t>(dice.from_to(1, trees));
    guarded_.put_trees(forest, end, Against::Back);
    for (const host::Target* const target : targets_here()) {
      if (!guarded_.put_byte_tests(*target, end)) continue;
      decides = true;
      for (const Ending& ending : endings_of(forest))
        for (const std::uint32_t begin : {0u, end / 8 * 4, end - 1}) {
          const auto row = static_cast<std::uint32_t>(dice.below(60));
          const Call call{
              {row, row + 3, 0},         {begin, end, 0},      static_cast<std::uint32_t>(forest.row_count),
              forest.model.num_features, WalkOrder::RowsOuter, ending};
          check(forest, *target, {64, 1}, call, dice);
          if (HasFatalFailure()) return;
        }
    }
  }
  if (!decides) GTEST_SKIP() << "no AVX-512 with VBMI: no other target of this CPU decides tests as bytes";
}

/// Several threads add to the same rows: a lost addition shows in the sum, which is exact in any order.
TEST_P(Walkers, AddAtomicallyFromSeveralThreads) {
  constexpr unsigned kThreads = 4, kLeaves = 20'000;  // per thread; enough for the threads to collide
  constexpr Lockstep kLocksteps[] = {{1, 1}, {2, 2}, {1, 64}, {32, 1}};
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    const WalkerForest forest = walker_forest(
        GetParam(), {.type = type, .whole_leaves = true, .odd_shapes = false, .row_count = 200}, 99);
    const auto trees = static_cast<std::uint32_t>(forest.trees.size());
    guarded_.put_trees(forest, trees, Against::Back);
    for (const host::Target* const target : targets_here())
      for (const Lockstep& lockstep : kLocksteps)
        for (const Ending& ending : endings_of(forest)) {
          if (!ending.atomic) continue;
          // Whole vectors of rows, but few, so that threads collide.
          const std::uint32_t row_count = lockstep.rows > 1 ? lockstep.rows : 3;
          const Call call{{0, row_count, 0},         {0, trees, 0},        row_count,
                          forest.model.num_features, WalkOrder::RowsOuter, ending};
          std::vector<std::byte> sums(row_count * element_bytes(ending.delivery));
          const WalkTask task = guarded_.task(call, sums, Against::Back);
          const host::Walker walk = walker_of(forest, *target, lockstep);
          FaultReport::name(words(forest, *target, lockstep, call));
          const unsigned times = kLeaves / (row_count * trees) + 1;
          std::barrier<> together(kThreads);
          std::vector<std::thread> threads;
          for (unsigned i = 0; i < kThreads; ++i)
            threads.emplace_back([&] {
              together.arrive_and_wait();
              for (unsigned time = 0; time < times; ++time) walk(task);
            });
          for (std::thread& thread : threads) thread.join();
          for (unsigned time = 0; time < kThreads * times; ++time)
            walk_plainly(forest, call, guarded_.sums_of(call), sums);
          ASSERT_TRUE(Guarded::left(call, task, sums) == sums) << words(forest, *target, lockstep, call);
        }
  }
}

/// Tests of layouts whose walks read rows' values, not codes.
class WalkersOfValues : public Walkers {};

/// Rows so far apart that a row's distance from the first, in floats, exceeds the 32 bits that lanes have for
/// it.
TEST_P(WalkersOfValues, TakeRowsThatAreFarApart) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no room to watch so much memory: ThreadSanitizer has too little";
#endif
  constexpr std::uint32_t kRows = 18;
  const WalkerForest forest = walker_forest(GetParam(), {.row_count = kRows}, 98);
  const auto trees = static_cast<std::uint32_t>(forest.trees.size());
  guarded_.put_trees(forest, trees, Against::Back);
  Dice dice(1);
  for (const std::size_t stride : {std::size_t{1} << 26, (std::size_t{1} << 26) + 1, std::size_t{1} << 27,
                                   (std::size_t{1} << 27) + 1, std::size_t{1} << 29}) {
    const std::size_t features = forest.model.num_features;
    GuardedMemory memory(((kRows - 1) * stride + features) * sizeof(float));
    if (!memory.there()) GTEST_SKIP() << "no address space for rows that are " << stride << " values apart";
    auto* const rows =
        reinterpret_cast<float*>(memory.at(((kRows - 1) * stride + features) * sizeof(float), Against::Back));
    for (std::size_t row = 0; row < kRows; ++row)
      std::copy_n(forest.rows.data() + row * features, features, rows + row * stride);
    for (const host::Target* const target : targets_here())
      for (const Lockstep& lockstep : all_locksteps()) {
        const Call call{{0, kRows, 0}, {0, trees, 0},         kRows,
                        stride,        WalkOrder::TreesOuter, {Delivery::F32, false}};
        const Sums places(call, 1);
        const std::string what = words(forest, *target, lockstep, call);
        FaultReport::name(what);
        std::vector<std::byte> sums = some_sums(call, places, dice), expected = sums;
        WalkTask task = guarded_.trees_of(call);
        task.rows = rows;
        task.row_stride = stride;
        task.out = sums.data();
        walker_of(forest, *target, lockstep)(task);
        walk_plainly(forest, call, places, expected);
        ASSERT_EQ(sums, expected) << what;
      }
  }
}

constexpr auto layout_name = [](const auto& layout) { return std::string(layout.param.name); };
INSTANTIATE_TEST_SUITE_P(Of, Walkers, testing::ValuesIn(layout_rows()), layout_name);

std::vector<LayoutRow> rows_that_read_values() {
  std::vector<LayoutRow> rows = layout_rows();
  std::erase_if(rows, [](const LayoutRow& row) { return takes_codes(row.layout); });
  return rows;
}
INSTANTIATE_TEST_SUITE_P(Of, WalkersOfValues, testing::ValuesIn(rows_that_read_values()), layout_name);

}  // namespace
}  // namespace forestvm::test::test_walkers
