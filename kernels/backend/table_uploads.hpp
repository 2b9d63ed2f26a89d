// Copies a program's tables to a device. In: arrays of records. Out: where they lie on the device, in memory that the
// program on the device owns.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <forestvm/result.hpp>

#include "kernels/backend/buffer.hpp"
#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

class TableUploads {
 public:
  TableUploads(const Runtime& runtime, std::unique_ptr<Queue> queue, std::vector<Buffer>& buffers)
      : runtime_(runtime), queue_(std::move(queue)), buffers_(buffers) {}

  /// Begins to copy records, which must stay as they are until finish() has returned.
  template <class Record>
  Result<const Record*> put(std::span<const Record> records) {
    FVM_ASSIGN(Buffer buffer, Buffer::make(runtime_, MemoryKind::Device, records.size_bytes()));
    if (!records.empty()) FVM_TRY(queue_->upload(buffer.bytes(), records.data(), records.size_bytes()));
    buffers_.push_back(std::move(buffer));
    return buffers_.back().template as<const Record>();
  }
  template <class Record>
  Result<const Record*> put(const std::vector<Record>& records) {
    return put(std::span<const Record>(records));
  }

  /// Waits until all is copied.
  Result<void> finish() {
    FVM_TRY(queue_->mark());
    return queue_->wait();
  }

 private:
  const Runtime& runtime_;
  std::unique_ptr<Queue> queue_;
  std::vector<Buffer>& buffers_;
};

}  // namespace forestvm::kernels
