// Bank conflicts of rows in shared memory, from the addresses that the kernels' own code reads and writes: a
// warp's reads of any features take one wavefront, and so do its writes. Without the emulator: each thread of
// a block runs by itself, with its own shared memory, up to the end of the staging.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/gpu_banks.hpp>

#include "bank_model.hpp"
#include "kernels/device/thread_machine.hpp"
#include "kernels/link/link.hpp"
#include "support/small_models.hpp"

namespace forestvm::kernels {

namespace emulator {

/// The thread that runs, as the emulator would report it.
Thread running;

const Thread& this_thread() { return running; }
void sync(std::uint32_t) {}
void copy_async(std::byte*, const std::byte*, unsigned) {}
void wait_copies() {}
void make_bulk_barrier(std::uint32_t) {}
void expect_bulk(std::uint32_t, std::uint32_t) {}
void copy_bulk(std::uint32_t, const std::byte*, std::uint32_t, std::uint32_t) {}
void wait_bulk(std::uint32_t, std::uint32_t, std::uint32_t) {}
void shuffle_down(void*, std::size_t, unsigned, std::uint32_t) {}
void note_misaligned(std::size_t, unsigned) { ADD_FAILURE(); }
void count_atomic() {}

}  // namespace emulator
}  // namespace forestvm::kernels

namespace forestvm::kernels::test_banks {
namespace {

using support::BankModel;

/// A call of a model of `features` features that caches its rows, with `rows` rows per block.
struct Staging {
  LinkedPhase phase;
  LinkedInst cache{};
  std::uint32_t features;

  Staging(std::uint32_t rows, std::uint32_t feature_count) : features(feature_count) {
    Model model = support::model_of({support::chain(3), support::chain(3)});
    model.num_features = features;
    const std::string schedule = "tile(batch, b0, b1, " + std::to_string(rows) +
                                 "); reorder(b0, b1, tree); cache(b0); gpuDimension(b0, grid.x); "
                                 "gpuDimension(b1, block.x)";
    const auto compiled = compile(model, *parse_schedule(schedule));
    EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().text());
    auto call = Linker(compiled->program).link({rows, rows, OutputKind::Raw}, {});
    EXPECT_TRUE(call.ok()) << (call.ok() ? "" : call.error().text());
    phase = call->phases.at(0);
    for (const LinkedInst& inst : phase.code)
      if (inst.op == Op::CacheRows) cache = inst;
    EXPECT_EQ(cache.op, Op::CacheRows);
  }

  std::uint32_t first_word() const { return linked<Op::CacheRows, LinkedField::Offset>(cache) / 4; }
  std::uint32_t words() const { return linked<Op::CacheRows, LinkedField::Stride>(cache) * features; }
};

/// Calls visit(first lane's number, lanes) for each warp of a block.
template <class Visit>
void for_warps(std::uint32_t threads, Visit visit) {
  for (std::uint32_t first = 0; first < threads; first += BankModel::kBanks)
    visit(first, std::min(BankModel::kBanks, threads - first));
}

/// Reads values of a warp's lanes, each in its own row and of another feature. Each word of the memory holds
/// its own index.
BankModel reads(const Staging& staging, std::mt19937& random) {
  std::vector<float> memory(staging.first_word() + staging.words());
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  emulator::running.shared = reinterpret_cast<std::byte*>(memory.data());
  const StagedRows rows{linked<Op::CacheRows, LinkedField::Offset>(staging.cache), 0,
                        linked<Op::CacheRows, LinkedField::Stride>(staging.cache),
                        linked<Op::CacheRows, LinkedField::Pitch>(staging.cache)};
  BankModel banks;
  for (int repeat = 0; repeat < 100; ++repeat)
    for_warps(staging.phase.threads(), [&](std::uint32_t first, std::uint32_t lanes) {
      std::vector<std::uint32_t> words;
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const auto feature = static_cast<std::uint32_t>(random() % staging.features);
        words.push_back(static_cast<std::uint32_t>(rows.at(first + lane)[feature]));
      }
      banks.add(words);
    });
  return banks;
}

/// Returns the addresses that a thread writes, in the order of the values in the rows, which any loop over
/// them follows.
std::vector<std::uint32_t> words_written(const Staging& staging, std::uint32_t thread) {
  const std::uint32_t rows = linked<Op::CacheRows, LinkedField::Stride>(staging.cache);
  std::vector<float> values(std::size_t{rows} * staging.features);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Launch launch{};
  launch.peers = staging.phase.peers;
  launch.program.row_width = staging.features;
  launch.pass.rows = values.data();
  launch.pass.row_stride = staging.features;
  launch.pass.row_count = rows;
  std::size_t size = 0;
  for (const LinkedInst& inst : staging.phase.code) {
    if (inst.op != Op::Map && inst.op != Op::CacheRows) continue;
    launch.code[size++] = inst;
    if (inst.op == Op::CacheRows) break;
  }
  launch.code[size] = {Op::Halt, {}, {}};

  constexpr float kUntouched = -1;
  std::vector<float> shared(staging.phase.shared_bytes / sizeof(float), kUntouched);
  emulator::running = {{}, staging.phase.extent, reinterpret_cast<std::byte*>(shared.data()), 32};
  emulator::running.index[kGridDimensions] = thread;
  InterpreterState state(launch);
  ThreadMachine<LayoutList<>> machine(launch, state);
  interpret(launch.code, 0, machine);

  std::vector<std::pair<float, std::uint32_t>> found;
  for (std::uint32_t i = 0; i < staging.words(); ++i)
    if (const float value = shared[staging.first_word() + i]; value != kUntouched)
      found.emplace_back(value, staging.first_word() + i);
  std::sort(found.begin(), found.end());
  std::vector<std::uint32_t> words;
  for (const auto& [value, word] : found) words.push_back(word);
  return words;
}

/// Checks that every value is written exactly once; returns the bank model of the warps' stores.
BankModel writes(const Staging& staging) {
  BankModel banks;
  std::vector<unsigned> written(staging.words());
  for_warps(staging.phase.threads(), [&](std::uint32_t first, std::uint32_t lanes) {
    std::vector<std::vector<std::uint32_t>> of_lanes;
    std::size_t steps = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      of_lanes.push_back(words_written(staging, first + lane));
      steps = std::max(steps, of_lanes.back().size());
      for (const std::uint32_t word : of_lanes.back()) ++written[word - staging.first_word()];
    }
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<std::uint32_t> words;
      for (const auto& of_lane : of_lanes)
        if (step < of_lane.size()) words.push_back(of_lane[step]);
      banks.add(words);
    }
  });
  EXPECT_EQ(std::count(written.begin(), written.end(), 1u), static_cast<std::ptrdiff_t>(written.size()));
  return banks;
}

TEST(BankModel, CountsTurnsByHand) {
  std::vector<std::uint32_t> words(32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = lane;
  EXPECT_EQ(BankModel::wavefronts(words), 1u);  // each lane has its own bank
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 5;
  EXPECT_EQ(BankModel::wavefronts(words), 1u);  // all lanes read one word
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 32 * lane;
  EXPECT_EQ(BankModel::wavefronts(words), 32u);  // one bank, 32 different words
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 28 * lane;
  EXPECT_EQ(BankModel::wavefronts(words), 4u);  // rows of 28 values: 8 banks
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 2 * lane;
  EXPECT_EQ(BankModel::wavefronts(words, 2), 2u);  // 8 bytes each, side by side: two halves
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 4 * lane;
  EXPECT_EQ(BankModel::wavefronts(words, 4), 4u);
  EXPECT_EQ(BankModel::wavefronts({}), 0u);
}

TEST(Banks, ReadsOfAnyFeaturesTakeOneWavefront) {
  std::mt19937 random(1);
  for (const std::uint32_t rows : {32u, 64u, 96u, 128u, 256u, 512u})
    for (const std::uint32_t features : {4u, 28u, 32u, 100u}) {
      const BankModel banks = reads(Staging(rows, features), random);
      EXPECT_EQ(banks.most(), 1u) << rows << " rows of " << features << " values";
      EXPECT_EQ(banks.accesses(), 100u * rows / 32);
    }
}

/// The lanes of a warp read the codes of their own rows, each of another column.
TEST(Banks, ReadsOfAnyColumnsTakeOneWavefront) {
  constexpr std::uint32_t kColumns = 100;
  std::mt19937 random(1);
  for (const std::uint32_t rows : {32u, 64u, 96u, 128u, 256u, 512u}) {
    const StagedCodes codes{0, 0, staged_code_words(rows)};
    BankModel banks;
    for (int repeat = 0; repeat < 100; ++repeat)
      for_warps(rows, [&](std::uint32_t first, std::uint32_t lanes) {
        std::vector<std::uint32_t> words;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          const StagedCodes::Row row = codes.at(first + lane);
          const auto column = static_cast<std::uint32_t>(random() % kColumns);
          words.push_back((row.address + column * row.stride) / 4);
        }
        banks.add(words);
      });
    EXPECT_EQ(banks.most(), 1u) << rows;
  }
}

TEST(Banks, EveryRowHasAByteOfEachColumn) {
  for (const std::uint32_t rows : {1u, 5u, 31u, 32u, 33u, 100u, 128u, 129u, 256u, 300u, 1024u}) {
    std::vector<unsigned> taken(4 * staged_code_words(rows));
    for (std::uint32_t row = 0; row < rows; ++row) ++taken.at(staged_code(row));
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 1u), static_cast<std::ptrdiff_t>(rows));
  }
  EXPECT_EQ(staged_code_words(31), 31u);  // a word each, as values have
  EXPECT_EQ(staged_code_words(64), 32u);
  EXPECT_EQ(staged_code_words(128), 32u);
  EXPECT_EQ(staged_code_words(256), 64u);
}

/// Rows that lie one after the other: up to 8 have each feature in banks of their own.
TEST(Banks, FewRowsHaveEachFeatureInDifferentBanks) {
  for (const std::uint32_t width : {1u, 4u, 5u, 28u, 54u, 692u, 1024u, 2000u}) {
    const StagedPlaces places = staged_values(8, width, 32);
    EXPECT_EQ(places.stride, 1u);
    EXPECT_EQ(places.pitch % 4, 0u) << "a copy is aligned to 16 bytes";
    EXPECT_GE(places.pitch, width);
    EXPECT_EQ(places.words, 7 * places.pitch + width);
    std::vector<std::uint32_t> words;
    for (std::uint32_t row = 0; row < 8; ++row) words.push_back(row * places.pitch);
    EXPECT_EQ(BankModel::wavefronts(words), 1u) << width;
  }
  EXPECT_EQ(staged_values(8, 28, 7).stride, 8u) << "each row has a thread that copies it";
  EXPECT_EQ(staged_values(32, 28, 32).stride, 32u);
}

TEST(Banks, WritesOfStagedRowsTakeOneWavefront) {
  for (const std::uint32_t rows : {32u, 64u, 128u})
    for (const std::uint32_t features : {4u, 28u, 32u, 100u}) {
      const BankModel banks = writes(Staging(rows, features));
      EXPECT_EQ(banks.most(), 1u) << rows << " rows of " << features << " values";
      EXPECT_GT(banks.accesses(), 0u);
    }
}

}  // namespace
}  // namespace forestvm::kernels::test_banks
