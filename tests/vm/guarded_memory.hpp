// Memory between regions that fault when touched, so that reading or writing one element too far is noticed.
// The fault's report names the case that was running.
#pragma once

#include <cstddef>
#include <string>

namespace forestvm::test {

class GuardedMemory {
 public:
  /// The end of the data that lies against its guard.
  enum class Against { Front, Back };

  /// Reserves zeros, which take no memory before they are written, so there may be more than the machine has.
  explicit GuardedMemory(std::size_t capacity);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// Returns false if there was no address space for the capacity; then nothing else may be called.
  bool there() const { return mapping_ != nullptr; }
  /// Returns the address of `size` bytes that begin, or end, at a guard.
  std::byte* at(std::size_t size, Against end) const;
  /// Copies `size` bytes to that address.
  std::byte* put(const void* data, std::size_t size, Against end) const;

 private:
  std::size_t capacity_;          ///< bytes of the data, a multiple of the page size
  std::byte* mapping_ = nullptr;  ///< address of a guard, the data and another guard
};

/// Prints, if a fault ends the process, the case that was named last.
class FaultReport {
 public:
  FaultReport();
  ~FaultReport();
  FaultReport(const FaultReport&) = delete;
  FaultReport& operator=(const FaultReport&) = delete;

  static void name(const std::string& what);
};

}  // namespace forestvm::test
