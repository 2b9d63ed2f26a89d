// Batches of rows: as large as a fixed budget of memory for rows and answers allows; the rows are the same
// whatever the batch size.
#include "cli/batches.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include <forestvm/compile.hpp>

#include "cli/io/npy.hpp"
#include "support/small_models.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_batches {
namespace {

constexpr std::size_t kBudget = std::size_t{32} << 20;

class BatchesTest : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  /// Writes `count` rows; the first value of each is its number.
  std::string npy_rows(std::size_t count, std::size_t width) const {
    std::ofstream out(file("rows.npy"), std::ios::binary);
    out << npy_header("<f4", {count, width});
    std::vector<float> row(width, 0.25F);
    for (std::size_t i = 0; i < count; ++i) {
      row[0] = static_cast<float>(i);
      out.write(reinterpret_cast<const char*>(row.data()),
                static_cast<std::streamsize>(width * sizeof(float)));
    }
    return file("rows.npy");
  }

  static Program program(std::uint32_t features, const std::string& schedule = "") {
    Model model = support::small_model("small");
    model.num_features = features;
    return compile(model, *parse_schedule(schedule))->program;
  }

  /// Returns the number of rows of each batch.
  static std::vector<std::size_t> sizes(const std::string& path, const Program& program,
                                        std::size_t answer_bytes) {
    auto batches = Batches::open({path, {}, {}}, program, answer_bytes);
    EXPECT_TRUE(batches.ok()) << batches.error().text();
    std::vector<std::size_t> counts;
    std::size_t done = 0;
    while (const std::size_t count = row_count(batches->rows())) {
      counts.push_back(count);
      if (const auto* const rows = std::get_if<RowBlock>(&batches->rows())) {
        EXPECT_EQ(*static_cast<const float*>(rows->data), static_cast<float>(done));
      }
      done += count;
      EXPECT_TRUE(batches->next().ok());
    }
    return counts;
  }
};

TEST_F(BatchesTest, AreSmallerTheMoreARowsAnswersTake) {
  const Program of_eight = program(8);
  const std::string rows = npy_rows(1000, 8);
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes(rows, of_eight, 4), Sizes{1000});
  EXPECT_EQ(sizes(rows, of_eight, kBudget / 1000 - 32), Sizes{1000});
  EXPECT_EQ(sizes(rows, of_eight, kBudget / 400 - 32), (Sizes{400, 400, 200}));
  EXPECT_EQ(sizes(rows, of_eight, kBudget / 2 - 32), Sizes(500, 2));
  EXPECT_EQ(sizes(npy_rows(3, 8), of_eight, 2 * kBudget), Sizes(3, 1));
}

TEST_F(BatchesTest, AreSmallerTheWiderARowIs) {
  constexpr std::uint32_t kWide = 1 << 20;
  EXPECT_EQ(sizes(npy_rows(20, kWide), program(kWide), 4), (std::vector<std::size_t>{7, 7, 6}));
}

/// Encoded rows keep the batches of their file; larger ones are cut at whole blocks of codes.
TEST_F(BatchesTest, OfEncodedRowsAreCutToo) {
  const Program coded = program(8, "encode(u8)");
  const auto predictor = host_backend(coded);
  const auto context = (*predictor)->make_context();
  const std::size_t columns = coded.columns().size();
  std::vector<float> values(300 * 8);
  CodeMemory codes;
  const std::size_t bytes = coded_bytes(300, columns);
  const auto rows =
      (*predictor)->encode(*context, RowBlock{values.data(), 300, 8}, {codes.resize(bytes), bytes});
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  auto writer = CodedWriter::open(file("rows.fvr"), columns, encoder_id(coded));
  ASSERT_TRUE(writer.ok());
  for (int batch = 0; batch < 2; ++batch) ASSERT_TRUE(writer->write(*rows).ok());
  ASSERT_TRUE(writer->finish().ok());
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes(file("rows.fvr"), coded, 4), (Sizes{300, 300}));
  EXPECT_EQ(sizes(file("rows.fvr"), coded, kBudget / 200), (Sizes{192, 108, 192, 108}));
  EXPECT_EQ(sizes(file("rows.fvr"), coded, kBudget), (Sizes{64, 64, 64, 64, 44, 64, 64, 64, 64, 44}));
}

}  // namespace
}  // namespace forestvm::cli::test_batches
