// Estimates of what calls cost, against numbers worked out by hand. The model: ten chains of three steps over
// four features, so that a row visits 30 nodes; in the array layout a tree has 15 slots of 8 bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/leaf_functions.hpp>

#include "kernels/account/accounting.hpp"
#include "kernels/mapped_nests.hpp"
#include "scheduler/choose/gpu_template.hpp"
#include "scheduler/choose/model_schedules.hpp"
#include "support/small_models.hpp"

namespace forestvm::kernels::test_accounting {
namespace {

Model chains() { return support::model_of(std::vector<Tree>(10, support::chain(3))); }

Program compiled(const Schedule& schedule) {
  const auto program = compile(chains(), schedule);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().text());
  return program->program;
}

/// An H100 at the clock of the hand-made numbers.
DeviceModel device(double clock_mhz = 1755) {
  DeviceModel model = device_models()[0];
  EXPECT_EQ(model.name, "h100");
  model.clock_mhz = clock_mhz;
  return model;
}

CallAccount accounted(const std::string& schedule, std::uint32_t rows) {
  const auto call = account(compiled(*parse_schedule(schedule)), {rows, rows, OutputKind::Raw}, device());
  EXPECT_TRUE(call.ok()) << (call.ok() ? "" : call.error().text());
  return call.ok() ? *call : CallAccount{};
}

TEST(Accounting, RowsInSharedMemory) {
  const CallAccount call = accounted(kRowsInBlocks + "; cache(b0)", 65536);
  ASSERT_EQ(call.phases.size(), 1u);
  const PhaseAccount& phase = call.phases[0];
  EXPECT_DOUBLE_EQ(phase.visits, 30);
  EXPECT_EQ(phase.shared_bytes, 64u * 4 * 4 + 64 * 4);
  EXPECT_EQ(phase.occupancy.blocks, 16u);  // 64 registers: 32 warps, two per block
  // The start and halt, maps of the grid and the block, cache_rows, init, the walk and store. A thread
  // copies its row's four values at once. The walk has ten tiles of one tree, which goes on until its leaf: after
  // none, two and four visits it is tested.
  EXPECT_DOUBLE_EQ(phase.warp_instructions, 80 + (42 + 12) + (62 + 12) + (100 + 40) + (46 + 46) +
                                                (187 + 10 * (26 + 3 + 16 + 3 * 18 + 4 * (10.2 + 2))) +
                                                (40 + 20));
  EXPECT_DOUBLE_EQ(phase.wavefronts, 2.65 + 1);
  EXPECT_DOUBLE_EQ(phase.bytes.rows, 16);
  EXPECT_DOUBLE_EQ(phase.bytes.results, 4);
  EXPECT_DOUBLE_EQ(phase.bytes.sums, 0);                    // in shared memory
  EXPECT_DOUBLE_EQ(phase.bytes.nodes, 10 * 15 * 8 / 64.0);  // once per block
  const double warp_lanes = 132 * 1.755e9 * 32;
  EXPECT_NEAR(call.rates.load * 30, warp_lanes / 3.65, 1e6);  // 2.0e12 visits per second
  // A block of 64 rows has two warps.
  EXPECT_NEAR(call.rates.issue, 132 * 1.755e9 * 4 * 64 / (2 * phase.warp_instructions), 1e3);
  EXPECT_DOUBLE_EQ(call.rates.memory, 3350e9 / 20);
  EXPECT_DOUBLE_EQ(call.rates.bus, 64e9 / 16);
}

TEST(Accounting, RowsInGlobalMemoryTakeALineForEachOfTheWarp) {
  const CallAccount call = accounted(kRowsInBlocks, 65536);
  // 32 rows of 16 bytes are 4 lines.
  EXPECT_DOUBLE_EQ(call.phases[0].wavefronts, 2.65 + 4);
  EXPECT_DOUBLE_EQ(call.phases[0].bytes.rows, 16);
}

TEST(Accounting, TreesInSharedMemory) {
  const CallAccount call = accounted(
      "tile(batch, b0, b1, 64); tile(tree, t0, t1, N_TREES); reorder(b0, b1, t0, t1); cache(t0); "
      "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)",
      65536);
  // Nodes in shared memory save an instruction of each visit, and take instructions to be copied there.
  const double copies = 100 + std::ceil(10 * 15 * 8 / 16.0 / 64) * 20;
  EXPECT_DOUBLE_EQ(call.phases[0].warp_instructions,
                   80 + (42 + 12) + (62 + 12) + copies + (46 + 46) + (12 + 36 + 12) +
                       (187 + 10 * (26 + 3 + 16 + 3 * 18 + 4 * (9.2 + 2 + 4))) + (40 + 20));
  EXPECT_DOUBLE_EQ(call.phases[0].bytes.nodes, 10 * 15 * 8 / 64.0);
}

TEST(Accounting, TreesCopiedAheadTakeTwoBuffersAndNoMoreCopies) {
  const auto of = [](const std::string& cache) {
    return accounted(
               "tile(batch, b0, b1, 64); tile(tree, t0, t1, 3); reorder(b0, t0, b1, t1); layout(t0, array); "
               "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); " +
                   cache,
               65536)
        .phases[0];
  };
  const PhaseAccount once = of("cache(t0)"), ahead = of("cache(t0, 1)");
  EXPECT_EQ(ahead.shared_bytes - once.shared_bytes, 3 * 15 * 8 + 24u);  // aligned to 16
  EXPECT_DOUBLE_EQ(ahead.bytes.nodes, once.bytes.nodes);
  EXPECT_DOUBLE_EQ(ahead.visits, once.visits);
}

TEST(Accounting, SumsOfBlocksGoThroughGlobalMemory) {
  const CallAccount call = accounted(kTreesInGrid, 20);
  ASSERT_EQ(call.phases.size(), 3u);
  EXPECT_DOUBLE_EQ(call.phases[0].bytes.sums, 4);  // the base score
  EXPECT_DOUBLE_EQ(call.phases[1].bytes.sums,
                   5 * 4 + 5 * 8);  // five copies are zeroed, then read and written
  EXPECT_DOUBLE_EQ(call.phases[2].bytes.sums, 5 * 4 + 8 + 4);  // added up, and read for the result
  EXPECT_DOUBLE_EQ(call.phases[2].bytes.results, 4);
  EXPECT_DOUBLE_EQ(call.phases[0].visits, 0);
  EXPECT_DOUBLE_EQ(call.phases[1].visits, 30);
  // 8 rows per warp of 32; the last of the three blocks of rows has 4. All 15 slots of each two trees are
  // read.
  EXPECT_DOUBLE_EQ(call.phases[1].bytes.nodes, 3 * 10 * 15 * 8 / 20.0);
  // 15 blocks keep 15 SMs busy, with 8 of 32 lanes active.
  EXPECT_NEAR(call.rates.load * 30, 15 * 1.755e9 * 8 / call.phases[1].wavefronts, 1e3);
}

TEST(Accounting, EveryPairIsWalkedOnceWhateverTheLoops) {
  const Model model = chains();
  unsigned accounted = 0;
  for (std::size_t index = 0; index < scheduler::kGpuTemplatePoints; index += 379) {
    const scheduler::GpuTemplatePoint point = scheduler::gpu_template_point(index);
    const auto program = compile(model, gpu_template_schedule(model, point));
    if (!program.ok()) continue;
    for (const std::uint32_t rows : {1u, 1000u}) {
      const auto call = account(program->program, {rows, rows, OutputKind::Value}, device());
      if (!call.ok()) continue;
      ++accounted;
      EXPECT_NEAR(call->visits, 30, 1e-9) << print(point) << ", " << rows << " rows";
      double results = 0;
      for (const PhaseAccount& phase : call->phases) results += phase.bytes.results;
      EXPECT_NEAR(results, 4, 1e-9) << print(point) << ", " << rows << " rows";
    }
  }
  EXPECT_GT(accounted, 20u);
}

TEST(Accounting, LayoutsThatWereNotCountedHaveNoRates) {
  const CallAccount call = accounted("encode(u8); " + kRowsInBlocks, 1000);
  EXPECT_FALSE(call.counted);
  EXPECT_EQ(call.phases[0].layouts, std::vector<Layout>{Layout::Tables});
  EXPECT_DOUBLE_EQ(call.phases[0].visits, 30);
}

TEST(Accounting, ThreadsThatNoLoopIsMappedToWalkABlocksRows) {
  const auto load_rate = [](unsigned rows) {
    const CallAccount call = accounted(
        "tile(batch, b0, b1, " + std::to_string(rows) + "); reorder(b0, b1, tree); gpuDimension(b0, grid.x)",
        65536);
    EXPECT_EQ(call.phases[0].threads, 128u);
    return call.rates.load * 30 * call.phases[0].wavefronts / (132 * 1.755e9);
  };
  EXPECT_NEAR(load_rate(8), 8, 1e-6);     // 8 lanes of one warp
  EXPECT_NEAR(load_rate(40), 20, 1e-6);   // 40 lanes of two warps
  EXPECT_NEAR(load_rate(256), 32, 1e-6);  // all lanes of four warps, two rows each
}

/// The last thread of a block has fewer rows than the others; the block still reads each node once.
TEST(Accounting, NodesAreReadOnceForABlock) {
  const CallAccount call = accounted(
      "tile(batch, b0, b, 64); tile(b, b1, b2, 3); reorder(b0, b1, b2, tree); gpuDimension(b0, grid.x); "
      "gpuDimension(b1, block.x)",
      65536);
  EXPECT_EQ(call.phases[0].threads, 22u);
  EXPECT_DOUBLE_EQ(call.visits, 30);
  EXPECT_DOUBLE_EQ(call.phases[0].bytes.nodes, 10 * 15 * 8 / 64.0);
}

TEST(Accounting, CodesAreReadAndWrittenWhereTheyLie) {
  const std::string encoded = kRowsInBlocks + "; encode(u8); layout(tree, sparse)";
  const std::size_t columns = compiled(*parse_schedule(encoded)).columns().size();
  ASSERT_GT(columns, 0u);
  const double of_codes = static_cast<double>(columns);
  // The encoder reads values and writes codes; the walks read the codes.
  EXPECT_DOUBLE_EQ(accounted(encoded, 65536).phases[0].bytes.rows, 4 * 4 + 2 * of_codes);
  EXPECT_DOUBLE_EQ(accounted(encoded + "; cache(b0)", 65536).phases[0].bytes.rows, 4 * 4);
}

/// A warp's values of a feature, and a threshold for each halving, are loads from different addresses.
TEST(Accounting, EncodingLoadsValuesAndThresholds) {
  const std::string values = kRowsInBlocks + "; cache(b0); layout(tree, array)",
                    encoded = values + "; encode(u8)";
  double searches = 0;
  const Program program = compiled(*parse_schedule(encoded));
  for (const EncodedFeature& feature : program.encoded_features())
    searches += 21 * (1 + std::ceil(std::log2(1 + feature.threshold_count)));
  ASSERT_GT(searches, 0);
  const auto passing = [](const std::string& schedule) {
    return accounted(schedule, 65536).phases[0].blocks.passing;
  };
  // Two warps search. In each, 10 walks of three steps load codes instead of values.
  EXPECT_NEAR(passing(encoded) - passing(values), 2 * (searches - 10 * 3 * (6.5 - 6)), 1e-6);
}

TEST(Accounting, WalksOfSmallNodesGoInLockstepHoweverLeavesAreAdded) {
  const auto latency = [](const std::string& layout) {
    CompileOptions options;
    options.contract = Contract::Reproducible;
    const auto program =
        compile(support::model_of(std::vector<Tree>(8, support::chain(3))),
                *parse_schedule("tile(batch, b0, b1, 64); tile(tree, t0, t1, 4); reorder(b0, b1, t0, t1); "
                                "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); cache(b0); "
                                "interleave(t1); layout(t0, " +
                                layout + ")"),
                options);
    EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().text());
    return account(program->program, {64, 64, OutputKind::Raw}, device())->phases[0].blocks.latency;
  };
  // Three steps of two tiles of four walks, or of eight walks one after the other.
  EXPECT_NEAR(latency("sparse16") - latency("sparse8"), 3 * 1.2 * (8 * 376 - 2 * 632), 1e-6);
  EXPECT_NEAR(latency("sparse16") - latency("array"), 3 * (1.2 * 8 * 376 - 2 * 632), 1e-6);
}

/// A row's values of the features that functions of leaves read are copied and read besides the row.
TEST(Accounting, ValuesOfLinearLeavesAreRead) {
  Model model = chains();
  support::make_linear(model);
  const auto program = compile(model, *parse_schedule(kRowsInBlocks));
  ASSERT_TRUE(program.ok()) << program.error().text();
  const double bytes = 4 * 4 + 8 * static_cast<double>(leaf_features(program->program).size());
  ASSERT_GT(bytes, 4 * 4);
  const auto call = account(program->program, {65536, 65536, OutputKind::Raw}, device());
  ASSERT_TRUE(call.ok()) << call.error().text();
  EXPECT_DOUBLE_EQ(call->phases[0].bytes.rows, bytes);
  EXPECT_DOUBLE_EQ(call->rates.bus, device().bus_gbs * 1e9 / bytes);
}

TEST(Accounting, ResultsOfEveryType) {
  const auto results = [](const Model& model, OutputKind output) {
    const auto program = compile(model, *parse_schedule(kRowsInBlocks));
    EXPECT_TRUE(program.ok());
    const auto call = account(program->program, {1000, 1000, output}, device());
    EXPECT_TRUE(call.ok());
    return call->phases[0].bytes.results;
  };
  EXPECT_DOUBLE_EQ(results(chains(), OutputKind::Raw), 4);
  EXPECT_DOUBLE_EQ(results(chains(), OutputKind::Class), 8);
  EXPECT_DOUBLE_EQ(results(chains(), OutputKind::Leaf), 10 * 4);
  EXPECT_DOUBLE_EQ(results(support::small_model("float64"), OutputKind::Raw), 8);
}

TEST(Accounting, BaseScoresThatAreAddedAreSums) {
  Model model = chains();
  const auto sums = [&] {
    const auto program = compile(model, *parse_schedule(kTreesInGrid));
    EXPECT_TRUE(program.ok());
    return account(program->program, {20, 20, OutputKind::Raw}, device())->phases[2].bytes.sums;
  };
  const double without = sums();
  model.base_last = true;
  EXPECT_DOUBLE_EQ(sums(), without + 2 * 4);
}

/// A warp of 64 lanes takes two wavefronts on the 32 banks where a warp of 32 takes one.
TEST(Accounting, WavefrontsOfWarpsOf64) {
  const auto gpu = std::find_if(device_models().begin(), device_models().end(),
                                [](const DeviceModel& model) { return model.name == "mi250x"; });
  ASSERT_NE(gpu, device_models().end());
  const auto call = account(compiled(*parse_schedule(kRowsInBlocks + "; cache(b0)")),
                            {65536, 65536, OutputKind::Raw}, *gpu);
  ASSERT_TRUE(call.ok()) << call.error().text();
  EXPECT_NEAR(call->rates.load * 30, 110 * 1.7e9 * 64 / (2 * (2.65 + 1)), 1e6);
}

TEST(Accounting, NodesThatL2DoesNotHoldComeFromMemory) {
  DeviceModel gpu = device();
  const Program program = compiled(*parse_schedule(kRowsInBlocks + "; cache(b0)"));
  const double node_bytes = static_cast<double>(program.nodes().size());
  const auto bytes_per_row = [&](double l2_bytes) {
    gpu.l2_mib = l2_bytes / 0x1p20;
    return gpu.memory_gbs * 1e9 / account(program, {65536, 65536, OutputKind::Raw}, gpu)->rates.memory;
  };
  EXPECT_DOUBLE_EQ(bytes_per_row(node_bytes), 20);
  EXPECT_DOUBLE_EQ(bytes_per_row(node_bytes - 1), 20 + 10 * 15 * 8 / 64.0);
}

TEST(Accounting, CallsOfMoreRowsThanTheGridTakes) {
  const std::string in_y =
      "tile(batch, b0, b1, 2); reorder(b0, b1, tree); gpuDimension(b0, grid.y); gpuDimension(b1, block.x)";
  const CallAccount call = accounted(in_y, 1'000'000), most = accounted(in_y, 2 * 65'535);
  EXPECT_EQ(call.phases[0].extent[1], 65'535u);
  EXPECT_DOUBLE_EQ(call.visits, 30);
  EXPECT_DOUBLE_EQ(call.rates.load, most.rates.load);
}

/// `gpu` estimates its candidates from the model, with the costs by which the accounting estimates linked calls.
TEST(Accounting, AgreesWithTheScheduleGpu) {
  unsigned compared = 0;
  for (const std::uint32_t trees : {60u, 100u, 700u})
    for (const Contract contract : {Contract::Fast, Contract::Trainer, Contract::Reproducible}) {
      const Model model = support::model_of(std::vector<Tree>(trees, support::chain(3)));
      const Schedule schedule = scheduler::gpu(model, contract);
      CompileOptions options;
      options.contract = contract;
      const auto program = compile(model, schedule, options);
      ASSERT_TRUE(program.ok()) << program.error().text();
      for (const Directive& directive : schedule.directives) {
        const std::size_t at = directive.remark.find(": ");
        if (at == std::string::npos) continue;
        unsigned rows = 0;
        double clocks = 0;
        ASSERT_EQ(std::sscanf(directive.remark.c_str() + at, ": %u rows cost %lf clocks", &rows, &clocks), 2);
        const auto call = account(program->program, {rows, rows, OutputKind::Raw}, device());
        ASSERT_TRUE(call.ok()) << call.error().text();
        EXPECT_NEAR(call->phases[0].clocks / clocks, 1, 0.2) << directive.remark;
        ++compared;
      }
    }
  EXPECT_GT(compared, 15u);
}

TEST(Accounting, CallsAreEstimatedPassByPass) {
  // A row has a sum and five copies of it in float32; 256 MiB hold those of a pass.
  constexpr std::uint32_t kMost = (1u << 28) / (6 * 4);
  const CallAccount one = accounted(kTreesInGrid, kMost), three = accounted(kTreesInGrid, 2 * kMost + 1);
  EXPECT_EQ(one.passes, 1u);
  EXPECT_EQ(three.pass_rows, kMost);
  EXPECT_EQ(three.passes, 3u);
  EXPECT_GT(three.seconds, 2 * one.seconds);
  EXPECT_LT(three.seconds, 2.1 * one.seconds);
}

/// A block more than the multiprocessors hold at once waits for the others.
TEST(Accounting, TheLastWaveIsAsLongAsTheOthers) {
  const auto waves = [](std::uint32_t rows) {
    return gpu_costs::parts(accounted(kRowsInBlocks + "; cache(b0)", rows).phases[0].blocks, 132).waves;
  };
  EXPECT_EQ(waves(132 * 16 * 64), 1);
  EXPECT_EQ(waves(132 * 16 * 64 + 1), 2);
}

/// Warps of a block add the sums of its threads, where these are few; what further warps write to stacks takes longer.
TEST(Accounting, LatenciesOfBlocksGrowWithStacksAndLessThanWithSums) {
  using namespace gpu_costs;
  EXPECT_LT(reduce_latency(1, 1024, 1024, true, true), 1024 * kNearLatency / 10);
  EXPECT_EQ(reduce_latency(1, 1024, 1024, false, true), 1024 * kNearLatency);
  EXPECT_EQ(block_latency(kShortestCode, 8), kLeastLatency);
  EXPECT_EQ(block_latency(kTimedCode, 1), kTimedLatency);
  EXPECT_NEAR(block_latency(kTimedCode, 3) - kTimedLatency, 2 * kTimedCode.stack_bytes / kL2Bytes, 1e-6);
  const CodeCosts& known = kKernels.known[static_cast<std::size_t>(Sums::Float32)];
  EXPECT_EQ(block_latency(known, 1), block_latency(known, 32));
}

TEST(Accounting, RefusesWhatLinkingRefusesOnTheDevice) {
  const Program program =
      compiled(*parse_schedule("tile(batch, b0, b1, 5000); cache(b0); gpuDimension(b0, grid.x)"));
  for (const DeviceModel& device : device_models()) {
    const auto call = account(program, {65536, 65536, OutputKind::Raw}, device);
    EXPECT_EQ(call.ok(), info(device.architecture).block_shared > 65536) << device.name;
    if (!call.ok()) {
      EXPECT_EQ(
          call.error().text(),
          "schedule: the cached rows take 80384 bytes of shared memory beside the 0 that are taken; a block "
          "has 65536");
    }
  }
}

TEST(Accounting, NoRowsCostNothing) {
  const CallAccount call = accounted(kRowsInBlocks, 0);
  EXPECT_DOUBLE_EQ(call.visits, 0);
}

TEST(FullestBank, IsWhatDrawingGives) {
  EXPECT_NEAR(fullest_bank(32, 32), 3.53, 0.02);
  EXPECT_DOUBLE_EQ(fullest_bank(1, 32), 1);
  EXPECT_DOUBLE_EQ(fullest_bank(4, 1), 4);
}

}  // namespace
}  // namespace forestvm::kernels::test_accounting
