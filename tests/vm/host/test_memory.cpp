// Ten million rows take no more memory than a few thousand: what a call needs besides its rows and its output
// is bounded. The rows are memory that was never written, which takes none.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "support/memory.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_memory {
namespace {

constexpr std::size_t kRows = support::kMemoryIsMeasured ? 10'000'000 : 100'000;
constexpr std::size_t kMaxMib = (kMaxScratchBytes >> 20) + 32;

/// Memory of zeros that was never written.
class Untouched {
 public:
  explicit Untouched(std::size_t size)
      : size_(size),
        at_(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  ~Untouched() { ::munmap(at_, size_); }

  template <class Value>
  const Value* as() const {
    return static_cast<const Value*>(at_);
  }

 private:
  std::size_t size_;
  void* at_;
};

/// Predicts; returns by how many MiB the process has grown at most.
template <class Rows>
std::size_t growth(const Predictor& predictor, const Rows& rows, std::vector<float>& out) {
  const std::size_t before = support::memory_mib("VmRSS");
  const auto context = predictor.make_context();
  EXPECT_TRUE(predictor.predict(*context, rows, OutputKind::Raw, out.data()).ok());
  return std::max(support::memory_mib("VmHWM"), before) - before;
}

TEST(Memory, DoesNotGrowWithTheRows) {
  const Untouched zeros(kRows * 4 * sizeof(double));
  std::vector<float> out(kRows);
  for (const char* schedule :
       {"encode(u8)", "layout(tree, array); tile(batch, b0, b1, 64)",
        "tile(tree, t0, t1, 3); reorder(t0, t1, batch); parallel(t0); layout(tree, sparse)"}) {
    SCOPED_TRACE(schedule);
    const auto predictor = host_backend(compiled(support::small_model("small"), schedule), {.threads = 2});
    ASSERT_TRUE(predictor.ok());
    std::vector<std::size_t> grown;
    for (const RowType type : {RowType::Float32, RowType::Float64})
      grown.push_back(growth(**predictor, RowBlock{zeros.as<void>(), kRows, 4, type}, out));
    EXPECT_EQ(std::count(out.begin(), out.end(), out[0]), static_cast<std::ptrdiff_t>(kRows));
    const CsrRows csr{kRows, zeros.as<std::int64_t>(), nullptr, nullptr, 0, Absent::Zero};
    const float dense = out[0];
    grown.push_back(growth(**predictor, csr, out));
    EXPECT_EQ(std::count(out.begin(), out.end(), dense), static_cast<std::ptrdiff_t>(kRows));
    if (!support::kMemoryIsMeasured) continue;
    for (const std::size_t mib : grown) EXPECT_LE(mib, kMaxMib);
  }
}

}  // namespace
}  // namespace forestvm::test::test_memory
