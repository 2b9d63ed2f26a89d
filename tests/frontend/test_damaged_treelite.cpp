// Damaged Treelite checkpoints: each is refused with its place, or loads and predicts; nothing crashes or hangs.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "damaged.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::test::test_damaged_treelite {
namespace {

std::vector<std::string> checkpoints() {
  std::vector<std::string> all;
  for (const char* name : {"3.9.1_logistic", "4.8.1_exponential", "4.8.1_forest"})
    all.push_back(support::content_of(std::filesystem::path(FORESTVM_TEST_DATA) / "treelite" / name /
                                      "model.treelite"));
  return all;
}

TEST(DamagedTreelite, EveryTruncation) {
  for (const std::string& good : checkpoints())
    for (std::size_t length = 0; length < good.size(); length += length < 400 ? 1 : 7)
      refusal_of("first " + std::to_string(length) + " bytes", good.substr(0, length));
}

TEST(DamagedTreelite, BytesReplaced) { survive_bytes_replaced(checkpoints(), {'\x7f', '\xff'}); }

TEST(DamagedTreelite, NumbersReplaced) {
  for (const std::string& good : checkpoints())
    for (std::size_t at = 0; at + 8 <= good.size(); at += 3)
      for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{99999}, std::int64_t{0x7fffffff}}) {
        std::string text = good;
        const std::size_t size = at % 2 == 0 ? 4 : 8;
        std::memcpy(text.data() + at, &number, size);
        survive(text);
      }
}

}  // namespace
}  // namespace forestvm::test::test_damaged_treelite
