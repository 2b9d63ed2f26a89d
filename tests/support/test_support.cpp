// Tests of what other tests rely on: folders of their own, and samples of cases.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/nightly.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::support::test_support {
namespace {

TEST(TemporaryFolders, AreTheirOwnersAlone) {
  std::filesystem::path gone;
  {
    const TemporaryFolder one, other;
    EXPECT_NE(one.path(), other.path());
    EXPECT_NE(one.path().string().find("TemporaryFolders_AreTheirOwnersAlone"), std::string::npos);
    EXPECT_EQ(content_of(one.write("a", "one")), "one");
    EXPECT_FALSE(std::filesystem::exists(other.file("a")));
    gone = one.path();
  }
  EXPECT_FALSE(std::filesystem::exists(gone));
}

TEST(TemporaryFolders, StayIfTheyAreKept) {
  std::string kept;
  {
    TemporaryFolder folder;
    kept = folder.keep();
  }
  EXPECT_TRUE(std::filesystem::exists(kept));
  std::filesystem::remove_all(kept);
}

class Nightly : public testing::Test {
 protected:
  ~Nightly() override { set(was_.empty() ? nullptr : was_.c_str()); }
  static void set(const char* value) {
    if (value == nullptr)
      ::unsetenv("FORESTVM_NIGHTLY");
    else
      ::setenv("FORESTVM_NIGHTLY", value, 1);
  }

 private:
  const std::string was_ = nightly() ? "1" : "";
};

TEST_F(Nightly, IsWhatTheEnvironmentSays) {
  set(nullptr);
  EXPECT_FALSE(nightly());
  set("0");
  EXPECT_FALSE(nightly());
  set("1");
  EXPECT_TRUE(nightly());
}

TEST_F(Nightly, SamplesAreSpreadEvenly) {
  set(nullptr);
  const std::vector<std::size_t> some = sampled(1003, 10);
  ASSERT_EQ(some.size(), 10u);
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_GE(some[i], i * 1003 / 10);
    EXPECT_LT(some[i], (i + 1) * 1003 / 10);
  }
  EXPECT_EQ(sampled(1003, 10), some);
  EXPECT_NE(sampled(1003, 10, "other"), some);
  const std::vector<std::size_t> all{0, 1, 2};
  EXPECT_EQ(sampled(3, 3), all);
  EXPECT_EQ(sampled(3, 10), all);
  EXPECT_TRUE(sampled(0, 10).empty());
  set("1");
  EXPECT_EQ(sampled(3, 1), all);
}

}  // namespace
}  // namespace forestvm::support::test_support
