// Copies a program's tables to a device. In: arrays of records. Out: where they lie on the device, in memory that the
// program on the device owns.
#pragma once

#include <cstddef>
#include <list>
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
  TableUploads(const Runtime& runtime, std::unique_ptr<Queue> queue, std::list<Buffer>& buffers)
      : runtime_(runtime), queue_(std::move(queue)), buffers_(buffers) {}

  /// Begins to copy records, which must stay as they are until finish() has returned. Sets `to` to where they will lie.
  /// It is inlined, because it is less code than calls of a function for each type.
  template <class Record>
  [[gnu::always_inline]] Result<void> put(std::span<const Record> records, const Record*& to) {
    const void* at = nullptr;
    Result<void> done = put_bytes(records.data(), records.size_bytes(), at);
    to = static_cast<const Record*>(at);
    return done;
  }
  template <class Record>
  [[gnu::always_inline]] Result<void> put(const std::vector<Record>& records, const Record*& to) {
    return put(std::span<const Record>(records), to);
  }

  /// Waits until all is copied.
  Result<void> finish();

 private:
  Result<void> put_bytes(const void* records, std::size_t bytes, const void*& to);

  const Runtime& runtime_;
  std::unique_ptr<Queue> queue_;
  std::list<Buffer>& buffers_;
};

}  // namespace forestvm::kernels
