// Memory of a device, or pinned memory of the host, that ends with its owner.
#pragma once

#include <cstddef>
#include <utility>

#include <forestvm/result.hpp>

#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Runtime& runtime, MemoryKind kind, std::byte* memory, std::size_t bytes)
      : runtime_(&runtime), kind_(kind), memory_(memory), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(kind_, other.kind_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (memory_ != nullptr) runtime_->release(kind_, memory_);
  }

  static Result<Buffer> make(const Runtime& runtime, MemoryKind kind, std::size_t bytes) {
    if (bytes == 0) return Buffer();
    FVM_ASSIGN(std::byte* const memory, runtime.allocate(kind, bytes));
    return Buffer(runtime, kind, memory, bytes);
  }

  std::size_t size() const { return bytes_; }
  std::byte* bytes() const { return memory_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_);
  }

 private:
  const Runtime* runtime_ = nullptr;
  MemoryKind kind_ = MemoryKind::Device;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace forestvm::kernels
