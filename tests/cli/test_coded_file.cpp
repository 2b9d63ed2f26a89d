// Files of encoded rows: what was written is read back, batch by batch; every truncation and every flipped
// bit is refused with the byte offset.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/core/encoder.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "cli/io/coded_file.hpp"
#include "cli/io/rows.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_coded_file {
namespace {

constexpr std::size_t kColumns = 3;
constexpr std::uint64_t kEncoder = 0x0123456789abcdef;

/// Returns codes that differ from row to row and column to column.
std::vector<std::uint8_t> some_codes(std::size_t rows, std::size_t columns = kColumns) {
  std::vector<std::uint8_t> codes(coded_bytes(rows, columns));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 7 + rows);
  return codes;
}

/// Returns a file whose batches have these numbers of rows.
std::string written(const std::vector<std::size_t>& batches, std::size_t columns = kColumns) {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("rows.fvr");
  auto writer = CodedWriter::open(path, columns, kEncoder);
  EXPECT_TRUE(writer.ok());
  for (const std::size_t rows : batches) {
    const std::vector<std::uint8_t> codes = some_codes(rows, columns);
    EXPECT_TRUE(writer->write({codes.data(), rows, columns, codes.size(), kEncoder}).ok());
  }
  EXPECT_TRUE(writer->finish().ok());
  return support::content_of(path);
}

/// Returns the numbers of rows of a file's batches, whose codes must be some_codes, or what is wrong.
Result<std::vector<std::size_t>> batches_of(std::string bytes, std::size_t columns = kColumns) {
  FVM_ASSIGN(CodedReader reader, CodedReader::open(Source::from_text(std::move(bytes))));
  std::vector<std::size_t> batches;
  for (;;) {
    FVM_ASSIGN(const CodedRows rows, reader.next());
    if (rows.count == 0) break;
    batches.push_back(rows.count);
    EXPECT_EQ(rows.columns, columns);
    EXPECT_EQ(rows.encoder, kEncoder);
    EXPECT_EQ(rows.byte_count, coded_bytes(rows.count, columns));
    const std::vector<std::uint8_t> codes = some_codes(rows.count, columns);
    EXPECT_TRUE(std::equal(rows.codes, rows.codes + code_bytes(rows.count, columns), codes.begin()));
  }
  FVM_ASSIGN(const CodedRows after, reader.next());
  EXPECT_EQ(after.count, 0u);
  return batches;
}

std::string error_of(std::string bytes) {
  const auto batches = batches_of(std::move(bytes));
  if (batches.ok()) return "fine";
  EXPECT_EQ(batches.error().code, ErrorCode::Refused);
  return batches.error().text();
}

/// Returns `bytes` with a number of the header replaced and its checksum repaired.
template <class Number>
std::string with_header(std::string bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
  const std::uint64_t right = checksum(std::as_bytes(std::span(bytes.data(), 56)));
  std::memcpy(bytes.data() + 56, &right, sizeof right);
  return bytes;
}

TEST(CodedFile, GivesWhatWasWritten) {
  using Batches = std::vector<std::size_t>;
  for (const Batches& batches : {Batches{}, Batches{1}, Batches{64}, Batches{65, 1, 200}, Batches{5000}}) {
    const auto found = batches_of(written(batches));
    ASSERT_TRUE(found.ok()) << found.error().text();
    EXPECT_EQ(*found, batches);
  }
  EXPECT_EQ(batches_of(written({10, 20}, 0), 0).value(), (Batches{10, 20}));
}

/// The format is a promise: this test states sizes and offsets instead of comparing with a golden file.
TEST(CodedFile, HasAHeaderAndRecords) {
  const std::string bytes = written({65, 2});
  EXPECT_EQ(bytes.size(), 64 + 16 + 2 * 64 * kColumns + 16 + 64 * kColumns + 16);
  EXPECT_TRUE(bytes.starts_with(kCodedMagic));
  EXPECT_EQ(kCodedMagic.size(), 8u);
  EXPECT_EQ(bytes.substr(8, 8), std::string("\1\0\0\0\3\0\0\0", 8));
  EXPECT_EQ(bytes.substr(16, 8), "\xef\xcd\xab\x89\x67\x45\x23\x01");
  EXPECT_EQ(bytes[64], 65);
  EXPECT_EQ(bytes.substr(bytes.size() - 16), std::string("\0\0\0\0\0\0\0\0\x43\0\0\0\0\0\0\0", 16));
}

TEST(CodedFile, RefusesEveryTruncation) {
  const std::string whole = written({65, 2});
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_TRUE(
        error_of(whole.substr(0, size)).starts_with("byte " + std::to_string(size) + ": the file ends in "))
        << size << ": " << error_of(whole.substr(0, size));
  EXPECT_EQ(error_of(whole), "fine");
  EXPECT_EQ(error_of(whole + "x"), "byte " + std::to_string(whole.size()) + ": goes on after its end");
}

TEST(CodedFile, RefusesEveryFlippedBit) {
  const std::string whole = written({65, 2});
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(error_of(damaged).starts_with("byte ")) << "bit " << bit << ": " << error_of(damaged);
  }
}

TEST(CodedFile, SaysWhatIsWrong) {
  const std::string whole = written({65});
  EXPECT_EQ(error_of(std::string(100, 'x')), "byte 0: is not a file of encoded rows");
  EXPECT_EQ(error_of(with_header(whole, 8, std::uint32_t{2})),
            "byte 8: is of format 2, this forestvm reads format 1");
  EXPECT_EQ(error_of(with_header(whole, 12, std::numeric_limits<std::uint32_t>::max())),
            "byte 12: has 4294967295 columns, at most 4194304");
  std::string damaged = whole;
  damaged[20] = 'x';
  EXPECT_EQ(error_of(damaged), "byte 56: the header's checksum does not match: the file is damaged");
  damaged = whole;
  damaged[100] = static_cast<char>(damaged[100] + 1);
  EXPECT_EQ(error_of(damaged), "byte 64: the batch's checksum does not match: the file is damaged");
  damaged = whole;
  damaged[71] = 1;
  EXPECT_EQ(
      error_of(damaged),
      "byte 64: a batch of 72057594037928001 rows of 3 columns is larger than a batch may be: the file is "
      "damaged");
  damaged = whole;
  damaged[damaged.size() - 8] = 64;
  EXPECT_EQ(error_of(damaged), "byte " + std::to_string(whole.size() - 16) +
                                   ": says that it has 64 rows, there are 65: the file is damaged");
}

/// A batch that is larger than allowed is written as several. Without columns, its size is its number of
/// rows.
TEST(CodedFile, SplitsLargeBatches) {
  const std::string bytes = written({kMaxCodedBytes + 5, 7}, 0);
  EXPECT_EQ(batches_of(bytes, 0).value(), (std::vector<std::size_t>{kMaxCodedBytes, 5, 7}));
}

TEST(CodedFile, IsNoTableOfRows) {
  const auto rows = RowReader::open(Source::from_text(written({2})), {3});
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.error().text(), "holds encoded rows, which only run, bench and proximity take");
}

}  // namespace
}  // namespace forestvm::cli::test_coded_file
