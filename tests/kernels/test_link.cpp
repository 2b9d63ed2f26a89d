// Linking: the phases of programs, what their launches require, and refusals with their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "kernels/link/link.hpp"
#include "kernels/mapped_nests.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_link {
namespace {

Program compiled(const std::string& schedule, unsigned trees = 10) {
  std::vector<Tree> all;
  for (unsigned i = 0; i < trees; ++i) all.push_back(support::chain(3));
  return test::compiled(support::model_of(all), schedule);
}

LinkedCall linked(const std::string& schedule, std::uint32_t rows, OutputKind output = OutputKind::Raw) {
  const auto call = Linker(compiled(schedule)).link({rows, rows, output}, {});
  EXPECT_TRUE(call.ok()) << (call.ok() ? "" : call.error().text());
  return call.ok() ? *call : LinkedCall{};
}

std::string refusal(const std::string& schedule, const DeviceLimits& limits, std::uint32_t rows = 1000) {
  const auto call = Linker(compiled(schedule)).link({rows, rows, OutputKind::Raw}, limits);
  if (call.ok()) return "accepted";
  EXPECT_EQ(call.error().code, ErrorCode::Refused);
  return call.error().text();
}

constexpr const char* kTreesInBlocks =
    "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
    "gpuDimension(t0, block.x); sharedReduce(t0); cache(b0)";

using Extent = std::array<std::uint32_t, kDimensions>;

TEST(Link, OnePhaseForBlocksOfRows) {
  const LinkedCall call = linked(kRowsInBlocks, 1000);
  ASSERT_EQ(call.phases.size(), 1u);
  EXPECT_EQ(call.phases[0].extent, (Extent{16, 1, 1, 64, 1, 1}));
  EXPECT_TRUE(call.phases[0].accumulators[0].shared);
  EXPECT_EQ(call.phases[0].shared_bytes, 64 * sizeof(float));
  EXPECT_EQ(call.global_bytes[0], 0u);
}

TEST(Link, FewRowsTakeOneBlock) {
  const LinkedCall call = linked(kRowsInBlocks, 3);
  EXPECT_EQ(call.phases[0].extent, (Extent{1, 1, 1, 3, 1, 1}));
}

TEST(Link, RowsAndPrivateSumsInSharedMemory) {
  const LinkedCall call = linked(kTreesInBlocks, 20);
  ASSERT_EQ(call.phases.size(), 1u);
  EXPECT_EQ(call.phases[0].extent, (Extent{3, 1, 1, 5, 1, 1}));
  // 8 rows of 4 features; 5 copies and the result have one sum for each of 8 rows.
  EXPECT_EQ(call.phases[0].shared_bytes, 8 * 4 * 4 + 5 * 8 * 4 + 8 * 4u);
}

TEST(Link, CodeSaysHowThreadsShareWork) {
  const LinkedCall call = linked(
      "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
      "gpuDimension(t0, block.y); gpuDimension(b1, block.x)",
      20);
  ASSERT_EQ(call.phases.size(), 1u);
  const LinkedPhase& phase = call.phases[0];
  ASSERT_EQ(phase.extent, (Extent{3, 1, 1, 8, 5, 1}));
  const std::uint32_t all = Sharing{40, 1, 8, 0}.word(), of_rows = Sharing{8, 1, 0, 0}.word();
  const std::uint32_t alone = Sharing{1, 0, 0, 0}.word();
  std::vector<std::uint32_t> words = {phase.peers};
  for (const LinkedInst& inst : phase.code) {
    if (inst.op == Op::Map) words.push_back(linked<Op::Map, LinkedField::Peers>(inst));
    if (inst.op != Op::End) continue;
    EXPECT_EQ(phase.code[(linked<Op::End, LinkedField::Partner>(inst))].op, Op::Map);
    words.push_back(linked<Op::End, LinkedField::Peers>(inst));
  }
  // The maps of grid.x, block.y and block.x, and the ends of the latter two, behind which sums are added and stored.
  EXPECT_EQ(words, (std::vector<std::uint32_t>{all, all, of_rows, alone, of_rows, all}));
}

TEST(Link, APhaseEndsBeforeTheLastEndsOfMaps) {
  const LinkedCall call = linked(kRowsInBlocks, 20);
  ASSERT_EQ(call.phases.size(), 1u);
  const LinkedPhase& phase = call.phases[0];
  EXPECT_EQ(phase.pcs.size(), phase.code.size());
  EXPECT_EQ(phase.code.back().op, Op::Halt);
  unsigned maps = 0;
  for (const LinkedInst& inst : phase.code) {
    EXPECT_NE(inst.op, Op::End);
    if (inst.op != Op::Map) continue;
    ++maps;
    EXPECT_EQ((linked<Op::Map, LinkedField::Partner>(inst)), phase.code.size() - 1);
  }
  EXPECT_NE(maps, 0u);
}

TEST(Link, AWordHoldsTheSharingOfTheLargestBlock) {
  for (const Sharing& sharing :
       {Sharing{kMaxBlockThreads, 1, 512, 0}, Sharing{kMaxBlockThreads, 0, 1, 512}}) {
    const Sharing read = Sharing::of(sharing.word());
    EXPECT_EQ(read.count, sharing.count);
    EXPECT_EQ(read.x_step, sharing.x_step);
    EXPECT_EQ(read.y_step, sharing.y_step);
    EXPECT_EQ(read.z_step, sharing.z_step);
  }
}

TEST(Link, APhaseEndsWhereTheGridChanges) {
  const LinkedCall call = linked(kTreesInGrid, 20);
  ASSERT_EQ(call.phases.size(), 3u);  // base scores; walks; adding up the copies
  // The first and the last phase have no loop mapped to threads: threads share the rows of their block.
  EXPECT_EQ(call.phases[0].extent, (Extent{3, 1, 1, 128, 1, 1}));
  EXPECT_EQ(call.phases[1].extent, (Extent{3, 1, 5, 8, 1, 1}));
  EXPECT_EQ(call.phases[2].extent, (Extent{3, 1, 1, 128, 1, 1}));
  EXPECT_EQ(call.global_bytes[0], 20 * sizeof(float));
  EXPECT_EQ(call.global_bytes[1], 5 * 20 * sizeof(float));
}

/// Blocks of 8 rows, and inside them blocks for pairs of trees.
const std::string kJoining =
    "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
    "gpuDimension(t0, grid.y); gpuDimension(b1, block.x)";

TEST(Link, BlocksOfTheSameRowsJoin) {
  const LinkedCall call = linked(kJoining, 20);
  ASSERT_EQ(call.phases.size(), 1u);
  const LinkedPhase& phase = call.phases[0];
  EXPECT_TRUE(phase.joins);
  EXPECT_EQ(phase.extent, (Extent{3, 5, 1, 8, 1, 1}));
  EXPECT_TRUE(phase.accumulators[0].shared);
  EXPECT_FALSE(phase.accumulators[1].shared);  // a block adds what others have made
  EXPECT_EQ(call.global_bytes[0], 0u);
  EXPECT_EQ(call.global_bytes[1], 5 * 20 * sizeof(float));
  std::vector<std::uint32_t> joined;
  for (const LinkedInst& inst : phase.code)
    if (inst.op == Op::End) joined.push_back(linked<Op::End, LinkedField::Joined>(inst));
  EXPECT_EQ(joined,
            (std::vector<std::uint32_t>{0, 1}));  // rows of threads, trees; the phase ends in its blocks
}

/// Blocks of one row: of a call of 1,025 rows they are one more than can join.
TEST(Link, ManyBlocksOfRowsDoNotJoin) {
  const std::string rows =
      "tile(tree, t0, t1, 2); reorder(batch, t0, t1); gpuDimension(batch, grid.x); gpuDimension(t0, grid.y)";
  EXPECT_EQ(linked(rows, 1024).phases.size(), 1u);
  EXPECT_EQ(linked(rows, 1025).phases.size(), 3u);
}

/// A block that begins late would begin sums to which others have added; and one that goes on has left other loops.
TEST(Link, BlocksDoNotJoinWhereOneWouldUndoWhatOthersDo) {
  EXPECT_EQ(linked(kJoining + "; atomicReduce(t0)", 20).phases.size(), 3u);
  EXPECT_GT(linked("tile(batch, b0, b1, 8); reorder(b0, tree, b1); split(tree, ta, tb, 4); "
                   "gpuDimension(b0, grid.x); gpuDimension(ta, grid.y); gpuDimension(tb, grid.y)",
                   20)
                .phases.size(),
            2u);
}

TEST(Link, OtherOutputsAreLeftOut) {
  const LinkedCall raw = linked(kRowsInBlocks, 10), leaf = linked(kRowsInBlocks, 10, OutputKind::Leaf);
  const auto count = [](const LinkedCall& call, Op op) {
    return std::count_if(call.phases[0].code.begin(), call.phases[0].code.end(),
                         [op](const LinkedInst& inst) { return inst.op == op; });
  };
  EXPECT_EQ(count(raw, Op::Walk), 1);
  EXPECT_EQ(count(raw, Op::Leaves), 0);
  EXPECT_EQ(count(raw, Op::Transform), 0);
  EXPECT_EQ(count(leaf, Op::Leaves), 1);
  EXPECT_EQ(count(leaf, Op::Walk), 0);
}

/// The loops of both parts use the same register.
TEST(Link, RoomForTheTreesOfEachPart) {
  const std::string parts =
      "tile(batch, b0, b1, 8); split(tree, ta, tb, 6); gpuDimension(b0, grid.x); tile(ta, t0, t1, 3); "
      "tile(tb, t2, t3, 2); layout(tree, sparse16); ";
  const auto bytes = [&](const std::string& caches) {
    const LinkedCall call = linked(parts + caches, 20);
    return call.phases.empty() ? 0 : call.phases.back().shared_bytes;
  };
  const std::uint32_t sums = bytes(""), first = bytes("cache(t0)"), second = bytes("cache(t2)");
  // Trees of 7 nodes, the records copied before them, and the barriers of bulk copies.
  EXPECT_EQ(first - sums, 3 * 7 * 16 + 16 + 16u);
  EXPECT_EQ(second - sums, 2 * 7 * 16 + 16 + 16u);
  EXPECT_EQ(bytes("cache(t0); cache(t2)"), first + second - sums);
}

/// Maps trees of 7 nodes of 16 bytes in threes: 10 trees take 4 iterations, the last with one tree.
std::string trees_by_threes(const std::string& layout) {
  return "tile(batch, b0, b1, 8); tile(tree, t0, t1, 3); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
         "gpuDimension(b1, block.x); layout(t0, " +
         layout + "); ";
}

TEST(Link, TwoBuffersForTreesThatAreCopiedAhead) {
  const LinkedCall once = linked(trees_by_threes("sparse16") + "cache(t0)", 20);
  const LinkedCall ahead = linked(trees_by_threes("sparse16") + "cache(t0, 1)", 20);
  constexpr std::uint32_t kBuffer = 3 * 7 * 16 + 16;
  EXPECT_EQ(ahead.phases[0].shared_bytes - once.phases[0].shared_bytes, kBuffer);
  const LaunchCopy& copy = ahead.phases[0].copies[0];
  EXPECT_TRUE(copy.ahead);
  EXPECT_TRUE(copy.bulk);
  EXPECT_EQ(copy.step, 3u);
  EXPECT_EQ(copy.in, 1u);  // all trees
  EXPECT_EQ(copy.buffer_bytes, kBuffer);
  EXPECT_EQ(copy.barriers, copy.offset + 2 * kBuffer);
  EXPECT_EQ(copy.barriers % 8, 0u);
  EXPECT_FALSE(once.phases[0].copies[0].ahead);
  EXPECT_EQ(once.phases[0].copies[0].barriers, once.phases[0].copies[0].offset + kBuffer);
}

TEST(Link, OneBufferWhereThereIsNoNextTurn) {
  const std::string schedule =
      "tile(batch, b0, b1, 8); tile(tree, t0, t1, 10); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
      "gpuDimension(b1, block.x); ";
  const LinkedCall once = linked(schedule + "cache(t0)", 20);
  const LinkedCall ahead = linked(schedule + "cache(t0, 1)", 20);
  EXPECT_FALSE(ahead.phases[0].copies[0].ahead);
  EXPECT_EQ(ahead.phases[0].shared_bytes, once.phases[0].shared_bytes);
}

/// The nodes of interleaved trees are not contiguous.
TEST(Link, NoBulkCopiesOfInterleavedTrees) {
  const LinkedCall call = linked(trees_by_threes("reorg") + "cache(t0, 1)", 20);
  EXPECT_TRUE(call.phases[0].copies[0].ahead);
  EXPECT_FALSE(call.phases[0].copies[0].bulk);
}

TEST(Link, RefusesTwoBuffersWithTheNumbers) {
  DeviceLimits small;
  small.shared_bytes = 719;
  EXPECT_EQ(refusal(trees_by_threes("sparse16") + "cache(t0)", small), "accepted");
  EXPECT_EQ(
      refusal(trees_by_threes("sparse16") + "cache(t0, 1)", small),
      "schedule: the cached trees, those of an iteration and of the next, take 720 bytes of shared memory "
      "beside the 0 that are taken; a block has 719");
}

/// The compiler makes no such program, so its text is edited.
TEST(Link, RefusesTreesThatAreWantedEarlier) {
  const Program once = compiled(trees_by_threes("sparse16") + "cache(t0, 1)");
  std::string text = once.disassemble();
  for (std::size_t at = 0; (at = text.find("ahead 1", at)) != std::string::npos;) text[at + 6] = '2';
  const auto program = assemble(text, once);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const auto call = Linker(*program).link({20, 20, OutputKind::Raw}, {});
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(
      call.error().text(),
      "schedule: trees are to be cached 2 iterations ahead: a block has buffers for the current one and "
      "the next");
}

/// Returns the form in which a cache keeps rows; none if rows are not cached.
std::optional<StagedAs> cached_as(const LinkedPhase& phase) {
  const auto cache = std::find_if(phase.code.begin(), phase.code.end(),
                                  [](const LinkedInst& inst) { return inst.op == Op::CacheRows; });
  if (cache == phase.code.end() || kernels::linked<Op::CacheRows, LinkedField::Stride>(*cache) == 0)
    return std::nullopt;
  return static_cast<StagedAs>(kernels::linked<Op::CacheRows, LinkedField::Staged>(*cache));
}

std::uint32_t encoded_words(const LinkedPhase& phase) {
  const auto encode = std::find_if(phase.code.begin(), phase.code.end(),
                                   [](const LinkedInst& inst) { return inst.op == Op::Encode; });
  return encode == phase.code.end() ? 0 : kernels::linked<Op::Encode, LinkedField::Stride>(*encode);
}

TEST(Link, CodesOfCachedRowsAreMadeInSharedMemory) {
  const std::string schedule = kRowsInBlocks + std::string("; cache(b0); encode(u8); layout(tree, sparse)");
  const LinkedCall call = linked(schedule, 1000);
  ASSERT_EQ(call.phases.size(), 1u);
  EXPECT_EQ(cached_as(call.phases[0]), StagedAs::EncodedCodes);
  EXPECT_EQ(encoded_words(call.phases[0]), 32u);  // 64 rows, two in each word
  const std::size_t columns = compiled(schedule).columns().size();
  EXPECT_EQ(call.phases[0].shared_bytes, 32 * columns * 4 + 64 * 4);  // and one sum per row
}

TEST(Link, CodesThatOtherPhasesReadAreCopied) {
  const LinkedCall call = linked(kTreesInGrid + "; cache(b0); encode(u8); layout(t0, sparse)", 20);
  ASSERT_EQ(call.phases.size(), 3u);
  EXPECT_EQ(cached_as(call.phases[1]), StagedAs::Codes);
  for (const LinkedPhase& phase : call.phases) EXPECT_EQ(encoded_words(phase), 0u);
}

/// Sums that no directive puts into shared memory take at most 48 KiB of it, so that an SM still holds several blocks,
/// or as much as they may without keeping out blocks that registers do not keep out.
TEST(Link, SumsTakeSomeOfTheSharedMemoryUnasked) {
  const auto is_shared = [](std::uint32_t outputs, std::uint32_t threads = 128,
                            const DeviceLimits& limits = {}) {
    const Program program =
        test::compiled(support::model_of(std::vector<Tree>(outputs, support::chain(3)), outputs),
                       "tile(batch, b0, b1, " + std::to_string(threads) +
                           "); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)");
    const auto call = Linker(program).link({2000, 2000, OutputKind::Raw}, limits);
    EXPECT_TRUE(call.ok());
    EXPECT_EQ(call->phases.at(0).accumulators[0].shared, call->global_bytes[0] == 0);
    return call->phases.at(0).accumulators[0].shared;
  };
  EXPECT_TRUE(is_shared(96));  // 96 x 128 x 4 bytes are 48 KiB
  EXPECT_FALSE(is_shared(97));
  for (const std::uint32_t threads : {512u, 1024u}) {  // two such blocks have 80 KiB each, and one has 160
    EXPECT_TRUE(is_shared(40, threads));
    EXPECT_FALSE(is_shared(41, threads));
  }
  DeviceLimits small;
  small.shared_bytes = 64u << 10;
  EXPECT_TRUE(is_shared(16, 1024, small));
  EXPECT_FALSE(is_shared(17, 1024, small));
}

TEST(Link, RefusesTreesOfManyGroupsAtOnce) {
  const auto cached = [](unsigned trees) {
    return "tile(batch, b0, b1, 8); tile(tree, t0, t1, " + std::to_string(trees) +
           "); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); specialize(t0); "
           "cache(t0)";
  };
  EXPECT_EQ(refusal(cached(3), {}), "accepted");  // four groups of the ten trees
  EXPECT_EQ(refusal(cached(2), {}), "schedule: trees of more than 4 groups are to be cached at once");
}

TEST(Link, ValuesAreCachedWhereWalksReadThem) {
  EXPECT_EQ(cached_as(linked(kTreesInBlocks, 20).phases.at(0)), StagedAs::Values);
}

TEST(Link, RefusesWithTheNumbers) {
  DeviceLimits small;
  small.threads = 32;
  EXPECT_EQ(refusal(kRowsInBlocks, small), "schedule: blocks of 64 threads, the device takes at most 32");
  small = {};
  small.shared_bytes = 100;
  EXPECT_EQ(
      refusal(kTreesInBlocks, small),
      "schedule: the cached rows take 128 bytes of shared memory beside the 0 that are taken; a block has "
      "100");
  small.shared_bytes = 200;
  EXPECT_EQ(
      refusal(kTreesInBlocks, small),
      "schedule: the private sums take 160 bytes of shared memory beside the 128 that are taken; a block "
      "has 200");
  small = {};
  small.grid = {10, 10, 10};
  EXPECT_EQ(refusal(kRowsInBlocks, small), "schedule: 16 blocks in grid.x, the device takes at most 10");
}

TEST(Link, CountsSharedMemoryAsItIsTaken) {
  const std::string schedule =
      "tile(batch, b0, b1, 3); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
      "gpuDimension(t0, block.x); sharedReduce(t0); cache(b0)";
  DeviceLimits small;
  small.shared_bytes = 112;
  EXPECT_EQ(refusal(schedule, small), "accepted");  // 48 and 60 bytes, each aligned to 16
  small.shared_bytes = 111;
  EXPECT_EQ(
      refusal(schedule, small),
      "schedule: the private sums take 64 bytes of shared memory beside the 48 that are taken; a block has "
      "111");
}

TEST(Link, NamesTheLayoutOfItsKernel) {
  DeviceLimits device;
  device.kernels = {{Layout::Reorg, 1024}, {Layout::Array, 512}};
  const auto layout = [&](const std::string& schedule) {
    const auto call = Linker(compiled(schedule)).link({10, 10, OutputKind::Raw}, device);
    EXPECT_TRUE(call.ok()) << (call.ok() ? "" : call.error().text());
    return call.ok() ? call->phases.at(call->phases.size() / 2).layout : std::nullopt;
  };
  EXPECT_EQ(layout(std::string(kRowsInBlocks) + "; layout(tree, array)"), Layout::Array);
  EXPECT_EQ(layout(kTreesInGrid + "; layout(tree, reorg)"), Layout::Reorg);
  const LinkedCall call = linked(kTreesInGrid, 20);
  EXPECT_EQ(call.phases[0].layout, std::nullopt);  // the phase walks nothing
  EXPECT_EQ(
      refusal(std::string(kRowsInBlocks) + "; layout(tree, sparse)", device),
      "schedule: trees of layout sparse8, for which the device has no kernel: it has those of reorg, array");
  device.kernels = {{Layout::Array, 32}};
  EXPECT_EQ(refusal(std::string(kRowsInBlocks) + "; layout(tree, array)", device),
            "schedule: blocks of 64 threads, the device takes at most 32");
}

TEST(Link, RefusesTwoLayoutsInOneLaunch) {
  DeviceLimits device;
  device.kernels = {{Layout::Array, 1024}, {Layout::Sparse8, 1024}};
  const std::string schedule =
      "tile(batch, b0, b1, 64); reorder(b0, b1, tree); split(tree, ta, tb, 5); gpuDimension(b0, grid.x); "
      "gpuDimension(b1, block.x); layout(ta, array); layout(tb, sparse)";
  EXPECT_EQ(refusal(schedule, {}), "accepted");
  EXPECT_EQ(
      refusal(schedule, device),
      "schedule: a launch walks trees of layouts array and sparse8, a kernel those of one: give all trees "
      "one layout");
}

TEST(Link, RefusesAPlanForTheHostBesideOneForAGpu) {
  const std::string schedule = std::string("plan(8); plan(BATCH); ") + kRowsInBlocks;
  EXPECT_EQ(refusal(schedule, {}), "accepted");
  EXPECT_EQ(
      refusal(schedule, {}, 8),
      "schedule: the plan of calls of 8 rows maps no loop to a GPU, as others do: a program runs on a GPU or "
      "on the host");
}

TEST(Link, RefusesToCacheWhatDiffersAmongThreads) {
  EXPECT_EQ(
      refusal(std::string(kRowsInBlocks) + "; cache(b1)", {}),
      "schedule: the rows to be cached differ among the threads of a block, which share its memory: cache "
      "a loop outside those that are mapped to the block");
}

TEST(Link, RefusesToShareSumsOfBlocks) {
  EXPECT_EQ(
      refusal(kTreesInGrid + "; sharedReduce(t0)", {}),
      "schedule: sharedReduce: the sums of several blocks are to be added, which share no memory: use it for "
      "loops that are mapped to the block");
}

}  // namespace
}  // namespace forestvm::kernels::test_link
