// Rows of CSV and NPY files alike: read in blocks, and with a number that stands for a missing value.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "cli/io/csv.hpp"
#include "cli/io/predictions.hpp"
#include "read_rows.hpp"

namespace forestvm::cli::test_rows {
namespace {

/// Reads all rows of a file in blocks of `most` rows; an error ends the text.
std::string in_blocks(const std::string& text, std::size_t most) {
  auto reader = RowReader::open(Source::from_text(text), {2, {"a", "b"}});
  if (!reader) return reader.error().text();
  std::string seen;
  Rows rows;
  do {
    const auto done = reader->next(most, rows);
    if (!done) return seen + done.error().text();
    EXPECT_LE(rows.count, most);
    EXPECT_EQ(rows.values.size(), rows.count * 2);
    for (const float value : rows.values) {
      append_number(seen, value);
      seen += ' ';
    }
  } while (rows.count != 0);
  return seen;
}

TEST(RowReader, GivesTheSameRowsInBlocksOfAnySize) {
  const std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  for (const std::size_t most : {1u, 2u, 3u, 4u, 5u, 6u, 100u}) {
    EXPECT_EQ(in_blocks("1,2\n3,4\n5,6\n7,8\n9,10\n", most), "1 2 3 4 5 6 7 8 9 10 ");
    EXPECT_EQ(in_blocks("b,a\n1,2\n3,4\n5,6\n\n", most), "2 1 4 3 6 5 ");
    EXPECT_EQ(in_blocks("a,b\n", most), "");
    EXPECT_EQ(in_blocks(npy2("<f4", data, "(5, 2)"), most), "1 2 3 4 5 6 7 8 9 10 ");
    EXPECT_EQ(in_blocks(npy2("<f4", data, "(5, 2)", true), most), "1 6 2 7 3 8 4 9 5 10 ");
    EXPECT_EQ(in_blocks(npy2("<f4", "", "(0, 2)"), most), "");
    EXPECT_EQ(in_blocks(npy2("<f4", "", "(0, 2)", true), most), "");
  }
}

TEST(RowReader, SaysWhatIsWrongWhenItComesToIt) {
  EXPECT_EQ(in_blocks("1,2\n3,4\n5\n", 1), "1 2 3 4 line 3: has 1 cells, the model has 2 features");
  EXPECT_EQ(in_blocks("1,2\n3,4\n\n5,6\n", 2).find("1 2 3 4 line 3: a blank line between rows"), 0U);
  EXPECT_EQ(in_blocks("1,2,3\n4\n", 1), "has 3 columns, the model has 2 features");
}

TEST(MissingValues, CompareAsFloat32) {
  const auto marked = [](float missing) {
    return RowForm{.width = 2, .missing = MissingNumber{missing, static_cast<double>(missing)}};
  };
  const std::string text = "0,-0\n-999,0.1\n";
  expect_values(rows_of(text, marked(0.0F)), {NAN, NAN, -999, 0.1F});
  expect_values(rows_of(text, marked(NAN)), {0, -0.0F, -999, 0.1F});
  expect_values(rows_of(text, marked(parse_number<float>("0.1").value())), {0, -0.0F, -999, NAN});
  const std::string array = npy2("<f8", bytes_of<double>({0, -0.0, -999, 0.1}));
  expect_values(rows_of(array, marked(-0.0F)), {NAN, NAN, -999, 0.1F});
  expect_values(rows_of(array, marked(0.1F)), {0, -0.0F, -999, NAN});
}

}  // namespace
}  // namespace forestvm::cli::test_rows
