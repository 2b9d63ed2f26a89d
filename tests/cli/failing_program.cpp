// Makes the forestvm program run out of memory or of threads, as the environment variable FORESTVM_FAILING says.
// "memory once 17" makes the allocation after 17 successful ones fail, "memory lasting 17" that allocation and all
// later ones, and "threads once 0" the first start of a thread. "count PATH" makes nothing fail and writes the number
// of allocations to a file.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/allocations.hpp"

namespace {

using forestvm::support::Failing;

const char* text() {
  const char* const found = std::getenv("FORESTVM_FAILING");
  return found == nullptr ? "" : found;
}

/// Moves `text` past a word if the text begins with it. Returns whether it does.
bool skip(const char*& text, const char* word) {
  const std::size_t size = std::strlen(word);
  if (std::strncmp(text, word, size) != 0) return false;
  text += size;
  return true;
}

/// Runs before the initializers of the program's own constants.
__attribute__((constructor(101))) void start_failing() {
  const char* rest = text();
  const bool memory = skip(rest, "memory "), threads = skip(rest, "threads ");
  if (!memory && !threads) return;
  const Failing failing = skip(rest, "once ") ? Failing::Once : Failing::FromThenOn;
  skip(rest, "lasting ");
  const auto fail =
      memory ? forestvm::support::fail_allocations_after : forestvm::support::fail_threads_after;
  fail(std::atoll(rest), failing);
}

__attribute__((destructor)) void write_count() {
  const auto count = static_cast<unsigned long long>(forestvm::support::allocation_count());
  const char* path = text();
  if (!skip(path, "count ")) return;
  if (std::FILE* const file = std::fopen(path, "w"); file != nullptr) {
    std::fprintf(file, "%llu", count);
    std::fclose(file);
  }
}

}  // namespace
