// Runs a program's walk as a kernel of its own, without an interpreter, for case b2 of bench/gpu/run. The kernels do
// what the schedule `gpu` does with a forest of one group and one output, with the steps of
// kernels/device/tree_walk.hpp: a block handles rows, one per thread, with values or codes in shared memory if the
// schedule caches them, and walks trees in lockstep, in the model's order. Template arguments fix what the interpreter
// reads from the program: the layout, where the rows are, the lockstep, and for depth 8 the number of steps. The
// kernels take the same argument as the interpreting kernels.
//
// straight PROGRAM.fvm ROWS.f32 SCORES.f32 BATCH…: rows are float32 without a header. Prints a JSON object,
// microseconds of a kernel and of a whole launch by batch; writes the raw scores of the largest batch.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/derived_tables.hpp>
#include <forestvm/program.hpp>

#include "kernels/device/encode_row.hpp"
#include "kernels/device/stage.hpp"
#include "kernels/device/tree_walk.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {
namespace {

/// Adds the trees [begin, end) to `sum`, kTrees at a time in lockstep. Walks kSteps steps or, if that is 0, the
/// walker's number of steps.
template <class View, unsigned kTrees, unsigned kSteps, class Row>
FVM_DEVICE float add_trees(float sum, const Launch& launch, std::uint32_t begin, std::uint32_t end,
                           const Row& row) {
  using Walk = TreeWalk<View, Space::Global>;
  const LaunchWalker& walker = *launch.program.walkers;
  const std::uint32_t steps = kSteps != 0 ? kSteps : walker.steps;
  GroupData group = launch.program.groups->data;
  group.nodes = Device::in_global(group.nodes);
  group.trees = Device::in_global(group.trees);
  FVM_NO_UNROLL
  for (std::uint32_t tree = begin; tree != end; tree += kTrees) {
    Walk trees[kTrees];
    typename Walk::Position at[kTrees];
    for (unsigned t = 0; t < kTrees; ++t) trees[t].open(group, tree + t);
    for (unsigned t = 0; t < kTrees; ++t) at[t] = trees[t].root();
    FVM_UNROLL(8)
    for (std::uint32_t step = 0; step < steps; ++step)
      for (unsigned t = 0; t < kTrees; ++t) trees[t].step(at[t], row);
    FVM_NO_UNROLL
    for (bool walking = kSteps == 0 && walker.end == WalkEnd::UntilLeaf; walking;) {
      walking = false;
      for (unsigned t = 0; t < kTrees; ++t) {
        if (trees[t].is_leaf(at[t])) continue;
        trees[t].step(at[t], row);
        walking = true;
      }
    }
    for (unsigned t = 0; t < kTrees; ++t) sum += trees[t].value(at[t]);
  }
  return sum;
}

template <class View, unsigned kSteps, class Rows>
FVM_DEVICE void score_row(const Launch& launch, const Rows& rows, std::uint32_t row) {
  constexpr unsigned kTrees = Rows::kMaxLockstep;
  const auto values = rows.at(row);
  const std::uint32_t trees = launch.program.num_trees, whole = trees / kTrees * kTrees;
  const auto base = static_cast<float>(launch.pass.base[0]);
  const float sum = add_trees<View, kTrees, kSteps>(base, launch, 0, whole, values);
  launch.pass.values[row] = add_trees<View, 1, kSteps>(sum, launch, whole, trees, values);
}

/// The memory in which a walk finds its row.
enum class RowSpace { Global, Values, Codes };

/// Predicts rows, one per thread of the block.
template <class View, RowSpace space, unsigned kSteps>
FVM_DEVICE void score_block(const Launch& launch) {
  const std::uint32_t rows = launch.pass.row_count, begin = blockIdx.x * blockDim.x;
  const std::uint32_t row = begin + threadIdx.x;
  if constexpr (space == RowSpace::Codes) {
    if (row >= rows) return;
    auto* const staged = reinterpret_cast<std::uint8_t*>(Device::shared()) + staged_code(threadIdx.x);
    const std::uint32_t stride = staged_code_words(blockDim.x);
    encode_row(launch.program, launch.pass.rows + row * launch.pass.row_stride,
               [&](std::uint32_t column, std::uint8_t code) {
                 staged[column * stride * sizeof(std::uint32_t)] = code;
               });
    score_row<View, kSteps>(launch, StagedCodes{Device::shared_address(Device::shared()), begin, stride},
                            row);
  } else if constexpr (space == RowSpace::Values) {
    auto* const values = reinterpret_cast<float*>(Device::shared());
    stage_rows(launch, slice({0, rows, 0}, begin, begin + blockDim.x), blockDim.x, values,
               {threadIdx.x, blockDim.x});
    __syncthreads();
    if (row < rows)
      score_row<View, kSteps>(
          launch, StagedRows{Device::shared_address(values), begin, blockDim.x, sizeof(float)}, row);
  } else if (row < rows) {
    score_row<View, kSteps>(launch, GlobalRows{launch.pass.rows, launch.pass.row_stride}, row);
  }
}

#define FVM_STRAIGHT_OF(layout, space, Name)          \
  FVM_STRAIGHT(layout##_##Name##_8, layout, space, 8) \
  FVM_STRAIGHT(layout##_##Name##_any, layout, space, 0)
#define FVM_STRAIGHT_OF_VALUES(layout)    \
  FVM_STRAIGHT_OF(layout, Values, staged) \
  FVM_STRAIGHT_OF(layout, Global, global)
#define FVM_ALL_STRAIGHT        \
  FVM_STRAIGHT_OF_VALUES(Array) \
  FVM_STRAIGHT_OF_VALUES(Reorg) FVM_STRAIGHT_OF_VALUES(Sparse8) FVM_STRAIGHT_OF(Array4, Codes, staged)

#define FVM_STRAIGHT(Name, layout, space, steps)                                                           \
  FVM_KERNEL(Device::kMaxThreads) void forestvm_straight_##Name(const FVM_KERNEL_ARGUMENT Launch launch) { \
    score_block<layout##View, RowSpace::space, steps>(launch);                                             \
  }
FVM_ALL_STRAIGHT
#undef FVM_STRAIGHT

struct StraightKernel {
  Layout layout;
  RowSpace space;
  unsigned steps;  ///< number of steps; 0: the walker's number
  void (*run)(Launch);
};

constexpr StraightKernel kKernels[] = {
#define FVM_STRAIGHT(Name, layout, space, steps) \
  {Layout::layout, RowSpace::space, steps, forestvm_straight_##Name},
    FVM_ALL_STRAIGHT
#undef FVM_STRAIGHT
};

constexpr int kCalls = 50, kRounds = 5;

[[noreturn]] void stop(int code, const std::string& why) {
  std::fprintf(stderr, "straight: %s\n", why.c_str());
  std::exit(code);
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) stop(3, std::string(what) + ": " + cudaGetErrorString(status));
}

template <class T>
T* on_device(const T* from, std::size_t count) {
  void* to = nullptr;
  check(cudaMalloc(&to, std::max<std::size_t>(1, count * sizeof(T))), "memory");
  if (from != nullptr) check(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return static_cast<T*>(to);
}

template <class T>
T* on_device(std::span<const T> records) {
  return on_device(records.data(), records.size());
}

std::vector<float> read_rows(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) stop(3, std::string(path) + ": cannot be read");
  std::vector<float> rows(static_cast<std::size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(rows.data()), static_cast<std::streamsize>(rows.size() * sizeof(float)));
  return rows;
}

/// Copies what the kernels read of a program to the device.
LaunchProgram program_on_device(const Program& program) {
  const ProgramMeta& meta = program.meta();
  if (program.groups().size() != 1 || meta.num_outputs != 1 || meta.score_type != ScalarType::Float32)
    stop(1, "only programs of one group, one output and float32 sums");
  const GroupDesc& desc = program.groups()[0];
  const WalkerDesc& of_all = program.walkers()[0];
  const std::byte* const nodes = on_device(program.nodes().data(), program.nodes().size());
  LaunchGroup group{};
  group.data.nodes = nodes + desc.node_offset;
  group.data.trees = on_device(program.trees().data(), program.trees().size()) + desc.first_tree;
  group.data.tree_count = desc.tree_end - desc.tree_begin;
  group.data.tile_size = desc.tile_size;
  LaunchWalker walker{};
  walker.steps = of_all.steps;
  walker.end = of_all.end;
  LaunchProgram tables{};
  tables.groups = on_device(&group, 1);
  tables.walkers = on_device(&walker, 1);
  tables.features = on_device(program.encoded_features());
  tables.ranks = on_device(program.ranks());
  tables.columns = on_device(program.columns());
  tables.categories = on_device(program.category_columns());
  tables.category_words = on_device(program.category_words());
  tables.feature_count = static_cast<std::uint32_t>(program.encoded_features().size());
  tables.column_count = static_cast<std::uint32_t>(program.columns().size());
  tables.category_count = static_cast<std::uint32_t>(program.category_columns().size());
  tables.row_width = row_width(meta);
  tables.num_trees = meta.num_trees;
  return tables;
}

/// The only phase of a call, for a kernel that does not interpret it.
class Work {
 public:
  Work(const Program& program, const LaunchProgram& tables, std::uint32_t rows) {
    const auto linked = Linker(program).link({rows, rows, OutputKind::Raw}, {});
    if (!linked.ok()) stop(1, linked.error().text());
    phase_ = linked->phases.front();
    const auto& extent = phase_.extent;
    if (linked->phases.size() != 1 || phase_.threads() != extent[3] || extent[1] * extent[2] != 1 ||
        extent[0] != iterations(rows, extent[3]) || has(Op::For) || has(Op::CacheTrees))
      stop(1, "the schedule is another than blocks of rows, a thread a row");
    const WalkerDesc& walker = program.walkers()[0];
    const unsigned steps = walker.end == WalkEnd::Exact && walker.steps == 8 ? 8 : 0;
    const Layout layout = program.groups()[0].layout;
    const RowSpace space = !has(Op::CacheRows)   ? RowSpace::Global
                           : takes_codes(layout) ? RowSpace::Codes
                                                 : RowSpace::Values;
    for (const StraightKernel& kernel : kKernels)
      if (kernel.layout == layout && kernel.space == space && kernel.steps == steps) kernel_ = kernel.run;
    if (kernel_ == nullptr) stop(1, "only array, sparse8 and reorg are walked, and array4 of cached rows");
    launch_.program = tables;
    launch_.pass.row_count = rows;
    launch_.pass.row_stride = tables.row_width;
    launch_.pass.base = on_device(program.base());
  }

  void launch(const float* rows, float* scores) {
    launch_.pass.rows = rows;
    launch_.pass.values = scores;
    kernel_<<<phase_.extent[0], phase_.extent[3], phase_.shared_bytes>>>(launch_);
  }

 private:
  bool has(Op op) const {
    return std::any_of(phase_.code.begin(), phase_.code.end(),
                       [op](const LinkedInst& inst) { return inst.op == op; });
  }

  LinkedPhase phase_;
  Launch launch_{};
  void (*kernel_)(Launch) = nullptr;
};

/// The microseconds of a call: averaged over many calls in a row, and of one that is waited for.
struct Times {
  double stream_us, call_us;
};

template <class Call>
Times measured(Call call) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> streams, calls;
  for (int round = 0; round < kRounds; ++round) {
    for (const int count : {kCalls, 1}) {
      double sum = 0;
      const int repeats = kCalls / count;
      for (int repeat = 0; repeat < repeats; ++repeat) {
        check(cudaEventRecord(begin), "event");
        for (int i = 0; i < count; ++i) call();
        check(cudaEventRecord(end), "event");
        check(cudaEventSynchronize(end), "run");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "event");
        sum += 1e3 * ms;
      }
      (count == 1 ? calls : streams).push_back(sum / kCalls);
    }
  }
  std::sort(streams.begin(), streams.end());
  std::sort(calls.begin(), calls.end());
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return {streams[kRounds / 2], calls[kRounds / 2]};
}

int run(int argc, char** argv) {
  if (argc < 5) stop(2, "straight PROGRAM.fvm ROWS.f32 SCORES.f32 BATCH…");
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) stop(3, "no CUDA device");
  const auto program = Program::load(argv[1]);
  if (!program.ok()) stop(1, program.error().text());
  const LaunchProgram tables = program_on_device(*program);
  const std::vector<float> values = read_rows(argv[2]);
  const auto most = static_cast<std::uint32_t>(values.size() / tables.row_width);
  const float* const rows = on_device(values.data(), values.size());
  float* const sums = on_device<float>(nullptr, most);

  std::printf("{");
  std::uint32_t count = 0;
  for (int i = 4; i < argc; ++i) {
    count = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    if (count == 0 || count > most)
      stop(2, std::string(argv[i]) + ": expected a number of rows from 1 to " + std::to_string(most));
    Work work(*program, tables, count);
    work.launch(rows, sums);
    check(cudaGetLastError(), "launch");
    const Times times = measured([&] { work.launch(rows, sums); });
    std::printf("%s\"%u\": {\"stream_us\": %.4f, \"call_us\": %.4f}", i == 4 ? "" : ", ", count,
                times.stream_us, times.call_us);
  }
  std::printf("}\n");
  std::vector<float> scores(count);
  check(cudaMemcpy(scores.data(), sums, scores.size() * sizeof(float), cudaMemcpyDeviceToHost), "copy");
  std::ofstream(argv[3], std::ios::binary)
      .write(reinterpret_cast<const char*>(scores.data()),
             static_cast<std::streamsize>(scores.size() * sizeof(float)));
  return 0;
}

}  // namespace
}  // namespace forestvm::kernels

int main(int argc, char** argv) { return forestvm::kernels::run(argc, argv); }
