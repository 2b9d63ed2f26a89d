// Output files: what exists before they are complete, and who may write them.
#include "cli/io/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_output_file {
namespace {

namespace fs = std::filesystem;

using support::content_of;

class OutputFileTest : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path()), fs::directory_iterator()));
  }
};

TEST_F(OutputFileTest, HasPiecesOfAnySizeInTheirOrder) {
  std::string expected;
  auto out = OutputFile::open(file("a"));
  ASSERT_TRUE(out.ok());
  for (const std::size_t size : {1u, 262'143u, 1u, 262'144u, 10u, 1'000'000u, 3u, 200'000u, 100'000u}) {
    const std::string piece(size, static_cast<char>('a' + expected.size() % 26));
    expected += piece;
    ASSERT_TRUE(out->write(piece).ok());
  }
  ASSERT_TRUE(out->replace_start("begin").ok());
  expected.replace(0, 5, "begin");
  ASSERT_TRUE(out->write("end").ok());
  ASSERT_TRUE(out->finish().ok());
  EXPECT_EQ(content_of(file("a")), expected + "end");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, AreSeveralAtATime) {
  auto first = OutputFile::open(file("a"));
  {
    auto second = OutputFile::open(file("b"));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(files(), 1u);
  ASSERT_TRUE(first->write("x").ok());
  ASSERT_TRUE(first->finish().ok());
  EXPECT_EQ(content_of(file("a")), "x");
  EXPECT_EQ(files(), 1u);
}

/// The unfinished file of another process with the same number, for instance in a container, is left alone.
TEST_F(OutputFileTest, DoesNotTakeAnotherProcessesFile) {
  const std::string taken = file("a") + "." + std::to_string(::getpid()) + ".0.unfinished";
  std::ofstream(taken) << "theirs";
  ASSERT_TRUE(write_output(file("a"), "ours").ok());
  EXPECT_EQ(content_of(file("a")), "ours");
  EXPECT_EQ(content_of(taken), "theirs");
}

/// A write-protected file is not replaced, although replacing needs only rights in its folder.
TEST_F(OutputFileTest, ThatIsWriteProtectedIsNotReplaced) {
  std::ofstream(file("a")) << "before";
  fs::permissions(file("a"), fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(path(), fs::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {  // root may write everything, so the child becomes another user
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    const auto opened = OutputFile::open(file("a"));
    ::_exit(!opened && opened.error().text() == file("a") + ": cannot write: Permission denied" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content_of(file("a")), "before");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace forestvm::cli::test_output_file
