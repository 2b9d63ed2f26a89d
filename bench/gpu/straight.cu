// B2: a program's walk as a kernel of its own, without an interpreter: blocks of 128 rows, a thread a row,
// which walks all trees of one group in the model's order, as the schedule `gpu` does, with the same layouts'
// own code. straight PROGRAM.fvm ROWS.f32 SCORES.f32 BATCH…: rows are float32 without a header. Prints a JSON
// object, microseconds of a kernel and of a whole launch by batch; writes the raw scores of the largest
// batch.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/derived_tables.hpp>
#include <forestvm/program.hpp>

namespace {

using namespace forestvm;

constexpr unsigned kThreads = 128;
constexpr int kCalls = 50, kRounds = 5;

[[noreturn]] void stop(int code, const std::string& why) {
  std::fprintf(stderr, "straight: %s\n", why.c_str());
  std::exit(code);
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) stop(3, std::string(what) + ": " + cudaGetErrorString(status));
}

struct Straight {
  GroupData group;
  const float* rows;
  float* scores;
  std::uint32_t count, features;
  float base;
};

template <class View>
__global__ void walk_all(const __grid_constant__ Straight work) {
  const std::uint32_t row = blockIdx.x * kThreads + threadIdx.x;
  if (row >= work.count) return;
  const float* const values = work.rows + std::size_t{row} * work.features;
  float sum = work.base;
  for (std::uint32_t t = 0; t < work.group.tree_count; ++t) {
    const auto tree = View::tree(work.group, t);
    std::uint32_t at = 0;
    while (!View::is_leaf(tree, at)) at = View::template next<ScalarCompare>(tree, at, values);
    sum += View::value(tree, at);
  }
  work.scores[row] = sum;
}

template <class T>
T* on_device(const T* from, std::size_t count) {
  void* to = nullptr;
  check(cudaMalloc(&to, std::max<std::size_t>(1, count * sizeof(T))), "memory");
  if (from != nullptr) check(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return static_cast<T*>(to);
}

std::vector<float> read_rows(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) stop(3, std::string(path) + ": cannot be read");
  std::vector<float> rows(static_cast<std::size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(rows.data()), static_cast<std::streamsize>(rows.size() * sizeof(float)));
  return rows;
}

void launch(Layout layout, const Straight& work) {
  const unsigned blocks = (work.count + kThreads - 1) / kThreads;
  switch (layout) {
    case Layout::Array:
      return walk_all<ArrayView><<<blocks, kThreads>>>(work);
    case Layout::Sparse8:
      return walk_all<Sparse8View><<<blocks, kThreads>>>(work);
    case Layout::Reorg:
      return walk_all<ReorgView><<<blocks, kThreads>>>(work);
    default:
      stop(1, "only array, sparse8 and reorg are walked");
  }
}

/// Microseconds of a call: of many that follow each other, and of one that is waited for.
struct Times {
  double stream_us, call_us;
};

Times measured(Layout layout, const Straight& work) {
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
        for (int i = 0; i < count; ++i) launch(layout, work);
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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) stop(2, "straight PROGRAM.fvm ROWS.f32 SCORES.f32 BATCH…");
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) stop(3, "no CUDA device");
  const auto loaded = Program::load(argv[1]);
  if (!loaded.ok()) stop(1, loaded.error().text());
  const Program& program = *loaded;
  const ProgramMeta& meta = program.meta();
  if (program.section_Groups().size() != 1 || meta.num_outputs != 1 || meta.score_type != ScalarType::Float32)
    stop(1, "only programs of one group, one output and float32 sums");
  const GroupDesc& desc = program.section_Groups()[0];
  const std::vector<float> rows = read_rows(argv[2]);
  const auto most = static_cast<std::uint32_t>(rows.size() / meta.num_features);

  const std::byte* const nodes = on_device(program.section_Nodes().data(), program.section_Nodes().size());
  const TreeDesc* const trees = on_device(program.section_Trees().data(), program.section_Trees().size());
  Straight work{};
  work.group = {nodes + desc.node_offset,        nullptr, trees + desc.first_tree, nullptr,
                desc.tree_end - desc.tree_begin, 1};
  work.rows = on_device(rows.data(), rows.size());
  work.scores = on_device<float>(nullptr, most);
  work.features = meta.num_features;
  work.base = static_cast<float>(base_scores(program)[0]);

  std::printf("{");
  for (int i = 4; i < argc; ++i) {
    work.count = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    if (work.count == 0 || work.count > most) stop(2, std::string(argv[i]) + ": not so many rows");
    launch(desc.layout, work);
    check(cudaGetLastError(), "launch");
    const Times times = measured(desc.layout, work);
    std::printf("%s\"%u\": {\"stream_us\": %.4f, \"call_us\": %.4f}", i == 4 ? "" : ", ", work.count,
                times.stream_us, times.call_us);
  }
  std::printf("}\n");
  std::vector<float> scores(work.count);
  check(cudaMemcpy(scores.data(), work.scores, scores.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "copy");
  std::ofstream(argv[3], std::ios::binary)
      .write(reinterpret_cast<const char*>(scores.data()),
             static_cast<std::streamsize>(scores.size() * sizeof(float)));
  return 0;
}
