// Records one call on the emulator as a GPU would get it: record PROGRAM ROWS FOLDER --rows N [--output
// raw|value]. Writes to FOLDER, which must be empty, for each launch: N.json (for machine.py: the launch's
// size, its layout, the opcodes of its code, the addresses of the device's memory), N.argument (the bytes of
// the Launch), N.before and N.after (all memory of the device, one allocation after the other). The
// emulator's Launch has the layout that the device's has, and its addresses are the ones in the Launch.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/names.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"

namespace {

using namespace forestvm;
using namespace forestvm::kernels;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "record: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result.ok()) stop(result.error().text());
  return std::move(result).value();
}

/// The device's memory that is in use, and the address to write the next launch.
struct Recording {
  std::filesystem::path folder;
  std::mutex mutex;
  std::map<std::byte*, std::size_t> memory;
  unsigned launches = 0;

  Result<void> write(const std::string& name, const void* data, std::size_t bytes) const {
    std::ofstream file(folder / name, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    if (!file) return fail(ErrorCode::Environment, "cannot write " + (folder / name).string());
    return {};
  }

  Result<void> write_memory(const std::string& name) {
    const std::lock_guard lock(mutex);
    std::vector<std::byte> all;
    for (const auto& [begin, bytes] : memory) all.insert(all.end(), begin, begin + bytes);
    return write(name, all.data(), all.size());
  }

  Result<void> write_description(const std::string& name, const LinkedPhase& phase, const Launch& launch) {
    const std::lock_guard lock(mutex);
    std::string text = "{\"extent\": [";
    for (unsigned d = 0; d < kDimensions; ++d) text += (d == 0 ? "" : ", ") + std::to_string(phase.extent[d]);
    text += "],\n \"shared_bytes\": " + std::to_string(phase.shared_bytes);
    text += ",\n \"layout\": \"" + (phase.layout ? std::string(name_of(*phase.layout)) : std::string());
    text += "\",\n \"rows\": " + std::to_string(launch.pass.row_count);
    text += ",\n \"trees\": " + std::to_string(launch.program.num_trees);
    text += ",\n \"code_offset\": " + std::to_string(offsetof(Launch, code)) + ",\n \"code\": [";
    for (std::size_t i = 0; i < phase.code.size(); ++i)
      text += (i == 0 ? "\"" : ", \"") + std::string(info(phase.code[i].op).text) + "\"";
    text += "],\n \"memory\": [";
    const char* separator = "";
    for (const auto& [begin, bytes] : memory) {
      text += separator + ("[" + std::to_string(reinterpret_cast<std::uintptr_t>(begin))) + ", " +
              std::to_string(bytes) + "]";
      separator = ", ";
    }
    text += "]}\n";
    return write(name, text.data(), text.size());
  }
};

/// Returns the error for a launch of a graph. A shape's first call queues its operations one by one.
Error no_graphs() { return fail(ErrorCode::Internal, "launches of a graph are not recorded"); }

/// The emulator's queue, with each launch recorded. Work that was queued before a launch is finished first.
class RecordingQueue final : public Queue {
 public:
  RecordingQueue(std::unique_ptr<Queue> queue, std::shared_ptr<Recording> recording)
      : queue_(std::move(queue)), recording_(std::move(recording)) {}

  Result<void> upload(std::byte* to, const void* from, std::size_t bytes) override {
    return queue_->upload(to, from, bytes);
  }
  Result<void> download(void* to, const std::byte* from, std::size_t bytes) override {
    return queue_->download(to, from, bytes);
  }
  Result<void> launch(const LinkedPhase& phase, const Launch& launch) override {
    const std::string name = std::to_string(recording_->launches++);
    FVM_TRY(drain());
    FVM_TRY(recording_->write_description(name + ".json", phase, launch));
    FVM_TRY(recording_->write(name + ".argument", &launch, sizeof launch));
    FVM_TRY(recording_->write_memory(name + ".before"));
    FVM_TRY(queue_->launch(phase, launch));
    FVM_TRY(drain());
    return recording_->write_memory(name + ".after");
  }
  Result<void> replay(Graph&) override { return no_graphs(); }
  Result<void> mark() override { return queue_->mark(); }
  Result<void> wait() override { return queue_->wait(); }

 private:
  Result<void> drain() {
    FVM_TRY(queue_->mark());
    return queue_->wait();
  }

  std::unique_ptr<Queue> queue_;
  std::shared_ptr<Recording> recording_;
};

class RecordingRuntime final : public Runtime {
 public:
  RecordingRuntime(std::unique_ptr<Runtime> runtime, std::shared_ptr<Recording> recording)
      : runtime_(std::move(runtime)), recording_(std::move(recording)) {}

  std::string describe() const override { return runtime_->describe() + ", recorded"; }
  int ordinal() const override { return runtime_->ordinal(); }
  const DeviceLimits& limits() const override { return runtime_->limits(); }
  Result<std::unique_ptr<Queue>> make_queue() const override { return recording(runtime_->make_queue()); }
  Result<std::unique_ptr<Queue>> queue_on(void* stream) const override {
    return recording(runtime_->queue_on(stream));
  }
  Result<std::optional<std::uint64_t>> stream_id(void* stream) const override {
    return runtime_->stream_id(stream);
  }
  Result<std::unique_ptr<Graph>> capture(const std::function<Result<void>(Operations&)>&) const override {
    return no_graphs();
  }
  Result<DeviceMemory> memory() const override { return runtime_->memory(); }
  Result<std::byte*> allocate(MemoryKind kind, std::size_t bytes) const override {
    FVM_ASSIGN(std::byte* const memory, runtime_->allocate(kind, bytes));
    const std::lock_guard lock(recording_->mutex);
    if (kind == MemoryKind::Device) recording_->memory[memory] = bytes;
    return memory;
  }
  void release(MemoryKind kind, std::byte* memory) const override {
    {
      const std::lock_guard lock(recording_->mutex);
      recording_->memory.erase(memory);
    }
    runtime_->release(kind, memory);
  }

 private:
  Result<std::unique_ptr<Queue>> recording(Result<std::unique_ptr<Queue>> made) const {
    FVM_ASSIGN(std::unique_ptr<Queue> queue, std::move(made));
    return std::unique_ptr<Queue>(std::make_unique<RecordingQueue>(std::move(queue), recording_));
  }

  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<Recording> recording_;
};

/// Reads a file of float32 numbers in C order: a .npy of NumPy's format 1.0, or only the numbers.
std::vector<float> read_numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) stop("cannot read " + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::size_t begin = 0;
  if (bytes.starts_with(std::string_view("\x93NUMPY\x01\x00", 8)) && bytes.size() >= 10) {
    begin =
        10 + (static_cast<unsigned char>(bytes[8]) | std::size_t{static_cast<unsigned char>(bytes[9])} << 8);
    const std::string head = bytes.substr(10, begin - 10);
    if (head.find("'<f4'") == std::string::npos || head.find("'fortran_order': False") == std::string::npos)
      stop(path + ": rows are float32 in C order");
  }
  if (begin > bytes.size()) stop(path + " ends in its head");
  std::vector<float> numbers((bytes.size() - begin) / sizeof(float));
  std::copy_n(bytes.data() + begin, numbers.size() * sizeof(float), reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

/// Returns limits of real GPUs, where a kernel walks only one layout.
DeviceLimits gpu_limits() {
  DeviceLimits limits;
  for (const Layout layout : {Layout::Array, Layout::Sparse8, Layout::Sparse16, Layout::Reorg,
                              Layout::Sparse12, Layout::Sparse4, Layout::Array4})
    limits.kernels.push_back({layout, limits.threads});
  return limits;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  OutputKind output = OutputKind::Raw;
  std::size_t count = 0;
  for (std::size_t i = 3; i + 1 < words.size(); i += 2) {
    if (words[i] == "--rows") count = std::strtoull(words[i + 1].c_str(), nullptr, 10);
    if (words[i] == "--output" && words[i + 1] == "value") output = OutputKind::Value;
  }
  if (words.size() < 5 || count == 0) {
    std::fprintf(stderr, "record PROGRAM ROWS FOLDER --rows N [--output raw|value]\n");
    return 2;
  }
  const auto recording = std::make_shared<Recording>();
  recording->folder = words[2];
  std::filesystem::create_directories(recording->folder);
  if (!std::filesystem::is_empty(recording->folder)) stop(words[2] + " is not empty");
  const Program program = need(Program::load(words[0]));
  const std::vector<float> rows = read_numbers(words[1]);
  const std::size_t features = program.meta().num_features;
  if (rows.size() < count * features) stop(words[1] + " has fewer rows");
  auto runtime =
      std::make_unique<RecordingRuntime>(make_emulator_runtime({.limits = gpu_limits()}), recording);
  const auto predictor = need(make_predictor(program, std::move(runtime), "the emulator"));
  const auto context = predictor->make_context();
  std::vector<float> scores(count * output_width(program, output));
  const auto done =
      predictor->predict(*context, RowBlock{rows.data(), count, features}, output, scores.data());
  if (!done.ok()) stop(done.error().text());
  std::printf("%u launches of %zu rows, on %s\n", recording->launches, count, predictor->describe().c_str());
  return 0;
}
