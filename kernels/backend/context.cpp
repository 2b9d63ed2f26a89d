// See context.hpp.
#include "kernels/backend/context.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace forestvm::kernels {

bool PassState::has(const Room& room) const {
  bool accumulators_fit = true;
  for (std::uint32_t a = 0; a < kAccumulators; ++a)
    accumulators_fit &= room.accumulators[a] <= accumulators[a].size();
  return accumulators_fit && room.rows <= rows.size() && room.codes <= codes.size() &&
         room.results <= results.size() && room.arrived <= arrived.size() &&
         room.workspace <= workspace.size() && room.staged_rows <= staged_rows.size() &&
         room.staged_results <= staged_results.size();
}

Result<void> PassState::reserve(const Runtime& runtime, const Room& room) {
  FVM_TRY(grow(runtime, MemoryKind::Device, rows, room.rows));
  FVM_TRY(grow(runtime, MemoryKind::Device, codes, room.codes));
  FVM_TRY(grow(runtime, MemoryKind::Device, results, room.results));
  FVM_TRY(grow(runtime, MemoryKind::Device, workspace, room.workspace));
  FVM_TRY(grow(runtime, MemoryKind::Pinned, staged_rows, room.staged_rows));
  FVM_TRY(grow(runtime, MemoryKind::Pinned, staged_results, room.staged_results));
  for (std::uint32_t a = 0; a < kAccumulators; ++a)
    FVM_TRY(grow(runtime, MemoryKind::Device, accumulators[a], room.accumulators[a]));
  if (room.arrived <= arrived.size()) return {};
  FVM_TRY(grow(runtime, MemoryKind::Device, arrived, room.arrived));
  // Zeros that are not constant take no room in the library's file.
  static std::array<std::uint32_t, kMostJoined> none_arrived;
  return queue->upload(arrived.bytes(), none_arrived.data(), room.arrived);
}

Result<void> PassState::deliver_to(const Destination& to, OutputKind output, std::size_t count) {
  FVM_TRY(queue->mark());
  deliver_to_ = to;
  deliver_output_ = output;
  deliver_count_ = count;
  return {};
}

Result<void> PassState::finish() {
  if (queue == nullptr) return {};
  const std::size_t count = std::exchange(deliver_count_, 0);
  FVM_TRY(queue->wait());
  deliver(deliver_output_, staged_results.bytes(), count, deliver_to_);
  return {};
}

void PassState::abandon() noexcept {
  deliver_count_ = 0;
  try {
    if (queue != nullptr && queue->mark().ok()) static_cast<void>(queue->wait());
  } catch (const std::bad_alloc&) {  // errors are dropped, too
  }
}

void PassState::release_memory() {
  for (Buffer* const buffer : {&rows, &codes, &results, &staged_rows, &staged_results, &arrived, &workspace})
    *buffer = Buffer();
  accumulators = {};
  captured = {};
}

Result<void> PassState::grow(const Runtime& runtime, MemoryKind kind, Buffer& buffer, std::size_t bytes) {
  if (bytes <= buffer.size()) return {};
  FVM_TRY(queue->mark());
  FVM_TRY(queue->wait());
  captured = {};
  buffer = Buffer();
  FVM_ASSIGN(buffer, Buffer::make(runtime, kind, bytes));
  return {};
}

DeviceContext::~DeviceContext() {
  for (PassState& state : states) static_cast<void>(state.finish());
  static_cast<void>(on_stream.finish());
}

Result<void> DeviceContext::release_memory() {
  for (PassState& state : states) FVM_TRY(state.finish());
  FVM_TRY(on_stream.finish());
  for (PassState& state : states) state.release_memory();
  on_stream.release_memory();
  return {};
}

std::optional<std::size_t> DeviceContext::find(const PassShape& shape) const {
  for (std::size_t i = 0; i < kept_count; ++i)
    if (kept[i].shape == shape) return i;
  return std::nullopt;
}

Result<std::size_t> DeviceContext::free_index() {
  if (kept_count < kKeptPasses) return kept_count++;
  const auto longest_ago = std::min_element(
      kept.begin(), kept.end(), [](const KeptPass& a, const KeptPass& b) { return a.last_use < b.last_use; });
  const auto index = static_cast<std::size_t>(longest_ago - kept.begin());
  const auto drop = [&](PassState& state) -> Result<void> {
    if (state.captured[index].graph != nullptr) FVM_TRY(state.finish());
    state.captured[index] = {};
    return {};
  };
  for (PassState& state : states) FVM_TRY(drop(state));
  FVM_TRY(drop(on_stream));
  return index;
}

}  // namespace forestvm::kernels
