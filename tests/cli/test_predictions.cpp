// The writer of predictions, and the quoting of texts in messages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/io/npy.hpp"
#include "cli/io/predictions.hpp"
#include "cli/io/quote.hpp"
#include "read_rows.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_predictions {
namespace {

class Predictions : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  std::string written(const std::string& name, const PredictionForm& form,
                      const std::vector<PredictionValues>& batches) {
    auto writer = PredictionWriter::open(file(name), form);
    EXPECT_TRUE(writer.ok());
    for (const auto& batch : batches) EXPECT_TRUE(writer->write(batch).ok());
    EXPECT_TRUE(writer->finish().ok());
    return support::content_of(file(name));
  }
};

/// The header contains the number of rows and cannot be rewritten in a pipe.
TEST_F(Predictions, WritesNpyToAPipe) {
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), file("pipe.npy"));
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::span<const float> all(values);
  {
    auto writer = PredictionWriter::open(file("pipe.npy"), {1, PredictionForm::Type::Float32});
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(writer->write(all.first(4)).ok());
    EXPECT_TRUE(writer->write(all.subspan(4)).ok());
    EXPECT_TRUE(writer->finish().ok());
  }
  ::close(ends[1]);
  std::string found(1000, '\0');
  const ssize_t got = ::read(ends[0], found.data(), found.size());
  ::close(ends[0]);
  found.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  EXPECT_EQ(found, npy_header("<f4", {6}) + bytes_of(values));
}

TEST_F(Predictions, WritesTheShortestText) {
  const std::vector<float> values = {0.1F, -0.0F, 1e20F, kInf, -std::numeric_limits<float>::quiet_NaN(), 3};
  const std::span<const float> all(values);
  using Type = PredictionForm::Type;
  EXPECT_EQ(written("a.csv", {1, Type::Float32, {}}, {all.first(2), all.subspan(2)}),
            "0.1\n-0\n1e+20\ninf\nnan\n3\n");
  EXPECT_EQ(written("b", {2, Type::Float32, {}}, {all}), "0.1,-0\n1e+20,inf\nnan,3\n");
  std::string repeated;
  for (int i = 0; i < 20'000; ++i) repeated += "0.1,-0\n";
  std::vector<float> many;
  for (int i = 0; i < 20'000; ++i) many.insert(many.end(), {0.1F, -0.0F});
  EXPECT_EQ(written("many.csv", {2, Type::Float32, {}}, {many, all.first(2)}), repeated + "0.1,-0\n");
  const std::vector<double> doubles = {0.1, 1.0 / 3};
  EXPECT_EQ(written("c.csv", {1, Type::Float64, {}}, {doubles}), "0.1\n0.3333333333333333\n");
}

TEST_F(Predictions, WritesLabels) {
  const std::vector<std::int64_t> classes = {1, 0, 2};
  const std::vector<std::string> labels = {"a,b", "say \"x\""};
  using Type = PredictionForm::Type;
  EXPECT_EQ(written("a.csv", {1, Type::Int64, labels}, {classes}), "\"say \"\"x\"\"\"\n\"a,b\"\n2\n");
  // Readers strip spaces around unquoted cells.
  const std::vector<std::string> spaced = {" a", "a b", "a\t"};
  EXPECT_EQ(written("b.csv", {1, Type::Int64, spaced}, {classes}), "a b\n\" a\"\n\"a\t\"\n");
  EXPECT_EQ(written("a.npy", {1, Type::Int64, labels}, {classes}).substr(128), bytes_of(classes));
}

TEST_F(Predictions, WritesWhatNumpySaves) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string one = written("a.npy", {1, PredictionForm::Type::Float32, {}}, {values});
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
  EXPECT_EQ(one.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(one.substr(10, 118), dictionary + std::string(117 - dictionary.size(), ' ') + "\n");
  EXPECT_EQ(one.substr(128), bytes_of(values));
  const std::string two = written("b.npy", {3, PredictionForm::Type::Float32, {}}, {values});
  EXPECT_NE(two.find("'shape': (2, 3), }"), std::string::npos);
  constexpr std::size_t kLargest = std::numeric_limits<std::size_t>::max();
  for (const std::vector<std::size_t>& shape :
       {std::vector<std::size_t>{0}, {kLargest}, {kLargest, 10'000'000}})
    EXPECT_EQ(npy_header("<f4", shape).size(), 128u);
  expect_values(rows_of(two, 3), values);
}

TEST_F(Predictions, AreWrittenAsTheEndingSays) {
  const std::vector<float> values = {1, 2};
  const PredictionForm form{1, PredictionForm::Type::Float32};
  EXPECT_EQ(written("a.NPY", form, {values}).substr(0, 6), kNpyMagic);
  for (const char* name : {"a.csv", "a.Csv", "a", ".hidden", "dir.npy/a"}) {
    EXPECT_TRUE(check_predictions_name(name).ok()) << name;
  }
  EXPECT_TRUE(check_predictions_name("-").ok());
  for (const auto& [name, ending] :
       {std::pair{"a.txt", "txt"}, {"a.csv.gz", "gz"}, {"b.d/a.Parquet", "parquet"}}) {
    const auto checked = check_predictions_name(name);
    ASSERT_FALSE(checked.ok()) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::Usage);
    EXPECT_EQ(checked.error().text(),
              "-o '" + std::string(name) + "': predictions are written as .csv or .npy, not as ." + ending);
  }
}

TEST_F(Predictions, LeavesNothingBehindUnlessFinished) {
  const std::string out = write("out.csv", "before");
  {
    auto writer = PredictionWriter::open(out, {1, PredictionForm::Type::Float32, {}});
    ASSERT_TRUE(writer.ok());
    const std::vector<float> values = {1};
    EXPECT_TRUE(writer->write(std::span<const float>(values)).ok());
  }
  EXPECT_EQ(support::content_of(out), "before");
  const auto files = std::filesystem::directory_iterator(path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(Predictions, KeepsLinksAndModes) {
  namespace fs = std::filesystem;
  write("real.csv", "before");
  fs::permissions(file("real.csv"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real.csv", file("link.csv"));
  const std::vector<float> values = {1};
  EXPECT_EQ(written("link.csv", {1, PredictionForm::Type::Float32, {}}, {values}), "1\n");
  EXPECT_TRUE(fs::is_symlink(file("link.csv")));
  EXPECT_EQ(support::content_of(file("real.csv")), "1\n");
  EXPECT_EQ(fs::status(file("real.csv")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

/// The set-user-ID bit was given to the earlier file, not to what is written now.
TEST_F(Predictions, DoNotKeepSpecialBitsOfModes) {
  namespace fs = std::filesystem;
  const fs::path path = file("a.csv");
  const fs::perms rights = fs::perms::owner_all | fs::perms::group_exec;
  for (const fs::perms special : {fs::perms::set_uid, fs::perms::set_gid, fs::perms::sticky_bit}) {
    write("a.csv", "before");
    fs::permissions(path, rights | special);
    ASSERT_EQ(fs::status(path).permissions(), rights | special);
    written("a.csv", {1, PredictionForm::Type::Float32, {}}, {std::vector<float>{1}});
    EXPECT_EQ(fs::status(path).permissions(), rights);
  }
}

TEST_F(Predictions, ReportsAFullDisk) {
  auto writer = PredictionWriter::open("/dev/full", {1, PredictionForm::Type::Float32, {}});
  ASSERT_TRUE(writer.ok());
  const std::vector<float> values = {1};
  EXPECT_TRUE(writer->write(std::span<const float>(values)).ok());
  const auto done = writer->finish();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Environment);
  EXPECT_EQ(done.error().text(), "/dev/full: cannot write: No space left on device");
}

TEST(Quoted, ShowsTextSafelyAndShortly) {
  EXPECT_EQ(single_quoted("a\nb\x7f"), "'a\\nb\\x7f'");
  EXPECT_EQ(single_quoted("aaaaé", 5), "'aaaa…'");
  const std::vector<std::string> names = {"a", "b"};
  EXPECT_EQ(quoted_list(names, 2), "'a', 'b'");
  EXPECT_EQ(quoted_list(names, 3), "'a', 'b' and 1 more");
}

}  // namespace
}  // namespace forestvm::cli::test_predictions
