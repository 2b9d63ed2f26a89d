// See table_uploads.hpp.
#include "kernels/backend/table_uploads.hpp"

namespace forestvm::kernels {

Result<void> TableUploads::put_bytes(const void* records, std::size_t bytes, const void*& to) {
  FVM_ASSIGN(Buffer buffer, Buffer::make(runtime_, MemoryKind::Device, bytes));
  if (bytes != 0) FVM_TRY(queue_->upload(buffer.bytes(), records, bytes));
  to = buffer.bytes();
  buffers_.push_back(std::move(buffer));
  return {};
}

Result<void> TableUploads::finish() {
  FVM_TRY(queue_->mark());
  return queue_->wait();
}

}  // namespace forestvm::kernels
