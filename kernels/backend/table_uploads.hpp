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
  /// After a failure, which finish() returns, it does nothing.
  template <class Record>
  void put(std::span<const Record> records, const Record*& to) {
    to = reinterpret_cast<const Record*>(put_bytes(std::as_bytes(records)));
  }
  template <class Record>
  void put(const std::vector<Record>& records, const Record*& to) {
    put(std::span<const Record>(records), to);
  }

  /// Waits until all is copied.
  Result<void> finish();

 private:
  /// Returns where the bytes will lie; null after a failure.
  const std::byte* put_bytes(std::span<const std::byte> bytes);
  Result<const std::byte*> try_put(std::span<const std::byte> bytes);

  const Runtime& runtime_;
  std::unique_ptr<Queue> queue_;
  std::list<Buffer>& buffers_;
  Result<void> done_;  ///< the first failure, if there is one
};

}  // namespace forestvm::kernels
