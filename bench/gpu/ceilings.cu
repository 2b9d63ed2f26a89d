// Measures the GPU itself, before any tree is walked: case b0 of bench/gpu/run. Prints one JSON object: bytes per
// second of a copy; SM clocks of a warp's load (from shared memory; from L1, by the number of 128-byte lines it
// touches; from L2); clocks of a dependent load; microseconds of an empty launch, by the size of its parameters.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "ceilings: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(3);
}

constexpr unsigned kThreads = 1024, kChains = 4, kSteps = 1024;  // one block per SM
constexpr unsigned kSharedWords = 8192;                          // 32 KiB

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(T)), "memory");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  T* data() const { return data_; }
  void fill(const std::vector<T>& from) {
    check(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  }
  std::vector<T> read() const {
    std::vector<T> to(count_);
    check(cudaMemcpy(to.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return to;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

std::uint32_t draw(std::uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

/// Returns the shortest of several times, in ms, of the work that `run` puts on the default stream.
template <class Run>
float fastest_ms(const Run& run) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  float least = 1e30f;
  for (int round = 0; round < 7; ++round) {
    check(cudaEventRecord(begin), "event");
    run();
    check(cudaEventRecord(end), "event");
    check(cudaEventSynchronize(end), "run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "event");
    if (round > 0) least = std::min(least, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return least;
}

__global__ void copy(const float4* from, float4* to, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

/// Stores the clocks that this block took. Storing the sum keeps the compiler from leaving out the loads, which it does
/// for a sum that is only compared with a number that it can rule out.
__device__ void finish(long long begin, unsigned sum, long long* clocks, unsigned* sink) {
  __syncthreads();
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - begin;
  sink[threadIdx.x] = sum;
}

/// Follows chains of loads from shared memory: each word has the index of the next. Word: 4 or 8 bytes.
template <class Word, bool kRandom>
__global__ void shared_loads(const unsigned* indices, long long* clocks, unsigned* sink) {
  __shared__ unsigned words[kSharedWords];
  for (unsigned i = threadIdx.x; i < kSharedWords; i += blockDim.x) words[i] = indices[i];
  __syncthreads();
  constexpr unsigned kCount = kSharedWords * sizeof(unsigned) / sizeof(Word);
  const auto* const typed = reinterpret_cast<const Word*>(words);
  unsigned at[kChains];
  for (unsigned c = 0; c < kChains; ++c) at[c] = (threadIdx.x % 32 + 32 * c) % kCount;
  __syncthreads();
  const long long begin = clock64();
  for (unsigned step = 0; step < kSteps; ++step)
    for (unsigned c = 0; c < kChains; ++c) {
      const Word word = typed[at[c]];
      unsigned next;
      if constexpr (sizeof(Word) == 8)
        next = word.x ^ word.y;
      else
        next = word;
      at[c] = kRandom ? (next + threadIdx.x * 97u) % kCount : ((next & ~31u) + threadIdx.x % 32) % kCount;
    }
  unsigned sum = 0;
  for (unsigned c = 0; c < kChains; ++c) sum += at[c];
  finish(begin, sum, clocks, sink);
}

/// Makes 8-byte loads of global memory that L1 holds; the warp's lanes touch `lines` lines of 128 bytes.
__global__ void line_loads(const uint2* indices, unsigned lines, unsigned count, long long* clocks,
                           unsigned* sink) {
  const unsigned lane = threadIdx.x % 32, index = (lane % lines) * 16 + lane / lines % 16;
  unsigned at[kChains];
  for (unsigned c = 0; c < kChains; ++c) at[c] = 512 * c % count;
  const long long begin = clock64();
  for (unsigned step = 0; step < kSteps; ++step)
    for (unsigned c = 0; c < kChains; ++c) {
      const uint2 word = __ldg(indices + at[c] + index);
      at[c] = word.x;  // all lanes stay in one window of 512 words
    }
  unsigned sum = 0;
  for (unsigned c = 0; c < kChains; ++c) sum += at[c];
  finish(begin, sum, clocks, sink);
}

/// Reads a buffer that L2 holds, past L1.
__global__ void l2_loads(const float4* from, std::size_t count, long long* clocks, unsigned* sink) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  const long long begin = clock64();
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const float4 word = __ldcg(from + i);
    sum += word.x + word.y + word.z + word.w;
  }
  finish(begin, __float_as_uint(sum), clocks, sink);
}

/// Follows one chain of dependent loads in one thread; measures the second pass if `warm`. `zero` is 0, which the
/// compiler does not know: it would leave out the first pass.
__global__ void chase(const unsigned* indices, unsigned steps, bool warm, unsigned zero, long long* clocks,
                      unsigned* sink) {
  unsigned at = 0;
  for (unsigned i = 0; warm && i < steps; ++i) at = __ldg(indices + at);
  at &= zero;
  const long long begin = clock64();
  for (unsigned i = 0; i < steps; ++i) at = __ldg(indices + at);
  finish(begin, at, clocks, sink);
}
__global__ void chase_shared(const unsigned* indices, unsigned steps, long long* clocks, unsigned* sink) {
  __shared__ unsigned words[kSharedWords];
  for (unsigned i = 0; i < kSharedWords; ++i) words[i] = indices[i];
  unsigned at = 0;
  const long long begin = clock64();
  for (unsigned i = 0; i < steps; ++i) at = words[at];
  finish(begin, at, clocks, sink);
}

template <unsigned kBytes>
struct Parameters {
  unsigned char bytes[kBytes];
};
template <unsigned kBytes>
__global__ void nothing(const __grid_constant__ Parameters<kBytes> parameters) {
  static_cast<void>(parameters);
}

class Ceilings {
 public:
  Ceilings() : sink_(kThreads) {
    check(cudaGetDeviceProperties(&device_, 0), "no CUDA device");
    blocks_ = static_cast<unsigned>(device_.multiProcessorCount);
  }

  void print() {
    std::printf("{\n  \"device\": \"%s\",\n  \"architecture\": \"sm_%d%d\",\n  \"SMs\": %d,\n", device_.name,
                device_.major, device_.minor, device_.multiProcessorCount);
    std::printf("  \"copy_gbs\": %.1f,\n", copy_gbs());
    print_shared();
    print_lines();
    std::printf("  \"l2_bytes_per_clock_and_sm\": %.2f,\n", l2_bytes());
    print_latencies();
    std::printf("  \"launch_us\": {\"16\": %.3f, \"1024\": %.3f, \"16384\": %.3f},\n", launch_us<16>(),
                launch_us<1024>(), launch_us<16384>());
    std::printf("  \"graph_launch_us\": {\"16\": %.3f, \"1024\": %.3f, \"16384\": %.3f}\n}\n", graph_us<16>(),
                graph_us<1024>(), graph_us<16384>());
  }

 private:
  double copy_gbs() {
    const std::size_t count = std::size_t{1} << 26;  // 1 GiB each way
    const DeviceArray<float4> from(count), to(count);
    check(cudaMemset(from.data(), 0, count * sizeof(float4)), "memory");
    const float ms = fastest_ms([&] { copy<<<blocks_ * 8, kThreads>>>(from.data(), to.data(), count); });
    return 2.0 * static_cast<double>(count) * sizeof(float4) / ms / 1e6;
  }

  /// Returns the SM clocks of a warp's load: the median over all blocks.
  template <class Launch>
  double clocks_per_load(const Launch& launch) {
    const DeviceArray<long long> clocks(blocks_);
    launch(clocks.data());
    launch(clocks.data());
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "run");
    std::vector<long long> all = clocks.read();
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    const double loads = double{kThreads} / 32 * kChains * kSteps;
    return static_cast<double>(all[all.size() / 2]) / loads;
  }

  void print_shared() {
    std::vector<unsigned> drawn(kSharedWords);
    std::uint32_t state = 1;
    for (unsigned& word : drawn) word = draw(state) % kSharedWords;
    DeviceArray<unsigned> indices(drawn.size());
    indices.fill(drawn);
    const auto measured = [&](auto kernel) {
      return clocks_per_load(
          [&](long long* clocks) { kernel<<<blocks_, kThreads>>>(indices.data(), clocks, sink_.data()); });
    };
    std::printf("  \"shared_clocks\": {\"4 bytes, a bank each\": %.3f, ",
                measured(shared_loads<unsigned, false>));
    std::printf("\"4 bytes, random\": %.3f, ", measured(shared_loads<unsigned, true>));
    std::printf("\"8 bytes, side by side\": %.3f, ", measured(shared_loads<uint2, false>));
    std::printf("\"8 bytes, random\": %.3f},\n", measured(shared_loads<uint2, true>));
  }

  void print_lines() {
    constexpr unsigned kCount = 4096;  // words of 8 bytes: 32 KiB
    std::vector<uint2> next(kCount);
    for (unsigned i = 0; i < kCount; ++i) next[i] = {(i / 512 * 512 + 1536) % kCount, 0};
    DeviceArray<uint2> indices(kCount);
    indices.fill(next);
    std::printf("  \"l1_clocks_by_lines\": {");
    for (unsigned lines = 1; lines <= 32; lines *= 2) {
      const double clocks = clocks_per_load([&](long long* to) {
        line_loads<<<blocks_, kThreads>>>(indices.data(), lines, kCount, to, sink_.data());
      });
      std::printf("%s\"%u\": %.3f", lines == 1 ? "" : ", ", lines, clocks);
    }
    std::printf("},\n");
  }

  double l2_bytes() {
    const std::size_t count = (std::size_t{16} << 20) / sizeof(float4);
    const DeviceArray<float4> from(count);
    check(cudaMemset(from.data(), 0, count * sizeof(float4)), "memory");
    const DeviceArray<long long> clocks(blocks_);
    for (int round = 0; round < 3; ++round)
      l2_loads<<<blocks_, kThreads>>>(from.data(), count, clocks.data(), sink_.data());
    check(cudaDeviceSynchronize(), "run");
    const std::vector<long long> all = clocks.read();
    const long long longest = *std::max_element(all.begin(), all.end());
    return static_cast<double>(count) * sizeof(float4) / static_cast<double>(longest) /
           device_.multiProcessorCount;
  }

  /// Returns the latency of loads along a ring through `words` words, each load in another line.
  double latency(unsigned words, bool in_shared, bool warm = true) {
    std::vector<unsigned> ring(words), order(words / 32);
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    std::uint32_t state = 7;
    for (unsigned i = static_cast<unsigned>(order.size()) - 1; i > 0; --i)
      std::swap(order[i], order[draw(state) % i]);
    for (unsigned i = 0; i < order.size(); ++i) ring[order[i] * 32] = order[(i + 1) % order.size()] * 32;
    DeviceArray<unsigned> indices(words);
    indices.fill(ring);
    const unsigned steps = std::min<unsigned>(static_cast<unsigned>(order.size()), 4096);
    const DeviceArray<long long> clocks(1);
    if (in_shared)
      chase_shared<<<1, 1>>>(indices.data(), steps, clocks.data(), sink_.data());
    else
      chase<<<1, 1>>>(indices.data(), steps, warm, 0, clocks.data(), sink_.data());
    check(cudaDeviceSynchronize(), "run");
    return static_cast<double>(clocks.read()[0]) / steps;
  }

  void print_latencies() {
    const double shared = latency(kSharedWords, true), l1 = latency(8192, false);
    const double l2 = latency(1u << 20, false),
                 memory = latency(1u << 28, false, false);  // 32 KiB, 4 MiB, 1 GiB
    std::printf("  \"latency_clocks\": {\"shared\": %.1f, \"l1\": %.1f, \"l2\": %.1f, \"memory\": %.1f},\n",
                shared, l1, l2, memory);
  }

  static constexpr int kLaunches = 2000;

  template <unsigned kBytes>
  double launch_us() {
    const Parameters<kBytes> parameters{};
    return 1e3 / kLaunches * fastest_ms([&] {
             for (int i = 0; i < kLaunches; ++i) nothing<kBytes><<<1, 32>>>(parameters);
           });
  }

  template <unsigned kBytes>
  double graph_us() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamCreate(&stream), "stream");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    nothing<kBytes><<<1, 32, 0, stream>>>(Parameters<kBytes>{});
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&ready, graph, 0), "graph");
    const double us = 1e3 / kLaunches * fastest_ms([&] {
                        for (int i = 0; i < kLaunches; ++i) cudaGraphLaunch(ready, nullptr);
                      });
    check(cudaGetLastError(), "graph");
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return us;
  }

  cudaDeviceProp device_{};
  unsigned blocks_ = 0;
  DeviceArray<unsigned> sink_;
};

}  // namespace

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "ceilings: no CUDA device\n");
    return 3;
  }
  Ceilings().print();
  return 0;
}
