// See guarded_memory.hpp.
#include "guarded_memory.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace forestvm::test {
namespace {

/// Larger than the offset of any column of codes that a 12-bit field of a node can name.
constexpr std::size_t kGuardBytes = std::size_t{1} << 20;

constexpr std::size_t kNoteBytes = 512;
char fault_note[kNoteBytes];

extern "C" void report_fault(int) {
  static_cast<void>(!::write(STDERR_FILENO, fault_note, std::strlen(fault_note)));
  // The handler was reset: the access is repeated and ends the process.
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t capacity) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  capacity_ = (capacity + page - 1) / page * page;
  void* const memory = ::mmap(nullptr, capacity_ + 2 * kGuardBytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  mapping_ = static_cast<std::byte*>(memory);
  if (capacity_ != 0 && ::mprotect(mapping_ + kGuardBytes, capacity_, PROT_READ | PROT_WRITE) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect");
}

GuardedMemory::~GuardedMemory() {
  if (there()) ::munmap(mapping_, capacity_ + 2 * kGuardBytes);
}

std::byte* GuardedMemory::at(std::size_t size, Against end) const {
  if (size > capacity_) throw std::length_error("guarded memory of too few bytes");
  return mapping_ + kGuardBytes + (end == Against::Front ? 0 : capacity_ - size);
}

std::byte* GuardedMemory::put(const void* data, std::size_t size, Against end) const {
  std::byte* const begin = at(size, end);
  if (size != 0) std::memcpy(begin, data, size);
  return begin;
}

FaultReport::FaultReport() {
  struct sigaction action {};
  action.sa_handler = report_fault;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int fault : {SIGSEGV, SIGBUS}) ::sigaction(fault, &action, nullptr);
}

FaultReport::~FaultReport() {
  for (const int fault : {SIGSEGV, SIGBUS}) ::signal(fault, SIG_DFL);
}

void FaultReport::name(const std::string& what) {
  const std::string line = "a fault in: " + what + "\n";
  fault_note[line.copy(fault_note, kNoteBytes - 1)] = '\0';
}

}  // namespace forestvm::test
