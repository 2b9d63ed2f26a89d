// See table_uploads.hpp.
#include "kernels/backend/table_uploads.hpp"

namespace forestvm::kernels {

Result<void> TableUploads::put_bytes(std::span<const std::byte> bytes, const std::byte*& to) {
  FVM_ASSIGN(Buffer buffer, Buffer::make(runtime_, MemoryKind::Device, bytes.size()));
  if (!bytes.empty()) FVM_TRY(queue_->upload(buffer.bytes(), bytes.data(), bytes.size()));
  to = buffer.bytes();
  buffers_.push_back(std::move(buffer));
  return {};
}

Result<void> TableUploads::finish() {
  FVM_TRY(queue_->mark());
  return queue_->wait();
}

}  // namespace forestvm::kernels
