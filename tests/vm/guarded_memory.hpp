// Memory whose ends lie against regions that fault when touched: what reads or writes one element too far
// does not go unnoticed. The fault's report says which case was at work.
#pragma once

#include <cstddef>
#include <string>

namespace forestvm::test {

class GuardedMemory {
 public:
  /// Which end of the data lies against its guard.
  enum class Against { Front, Back };

  /// Zeros, which take no memory before they are written to; so there may be more than the machine has.
  explicit GuardedMemory(std::size_t capacity);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// False if there is no address space for so much; then nothing else may be called.
  bool there() const { return mapping_ != nullptr; }
  /// Where `size` bytes begin that end, or begin, at the guard.
  std::byte* at(std::size_t size, Against end) const;
  /// Copies `size` bytes there.
  std::byte* place(const void* data, std::size_t size, Against end) const;

 private:
  std::size_t capacity_;          ///< whole pages
  std::byte* mapping_ = nullptr;  ///< guard, data, guard
};

/// While it lives, a fault prints the case that was named last before the process ends.
class FaultReport {
 public:
  FaultReport();
  ~FaultReport();
  FaultReport(const FaultReport&) = delete;
  FaultReport& operator=(const FaultReport&) = delete;

  static void name(const std::string& what);
};

}  // namespace forestvm::test
