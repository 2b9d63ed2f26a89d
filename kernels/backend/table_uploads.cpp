// See table_uploads.hpp.
#include "kernels/backend/table_uploads.hpp"

namespace forestvm::kernels {

const std::byte* TableUploads::put_bytes(std::span<const std::byte> bytes) {
  if (!done_.ok()) return nullptr;
  const Result<const std::byte*> put = try_put(bytes);
  if (put.ok()) return *put;
  done_ = put.error();
  return nullptr;
}

Result<const std::byte*> TableUploads::try_put(std::span<const std::byte> bytes) {
  FVM_ASSIGN(Buffer buffer, Buffer::make(runtime_, MemoryKind::Device, bytes.size()));
  if (!bytes.empty()) FVM_TRY(queue_->upload(buffer.bytes(), bytes.data(), bytes.size()));
  const std::byte* const to = buffer.bytes();
  buffers_.push_back(std::move(buffer));
  return to;
}

Result<void> TableUploads::finish() {
  FVM_TRY(done_);
  FVM_TRY(queue_->mark());
  return queue_->wait();
}

}  // namespace forestvm::kernels
