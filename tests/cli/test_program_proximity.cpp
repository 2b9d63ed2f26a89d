// forestvm proximity through the real program, against the leaf numbers of forestvm run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_proximity {
namespace {

using Table = std::vector<std::vector<double>>;

class Proximity : public ProgramTest {
 protected:
  Table table(const std::vector<std::string>& words) const {
    Table rows;
    std::istringstream lines(content(words));
    for (std::string line; std::getline(lines, line);) {
      rows.emplace_back();
      std::istringstream cells(line);
      for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(std::stod(cell));
    }
    return rows;
  }

  /// Writes the first rows of the CSV file to another file, whose path it returns.
  std::string first_rows(std::size_t count) const {
    std::istringstream lines(content_of(test_data("diabetes/rows.csv")));
    std::string line, text;
    for (std::size_t i = 0; i < count && std::getline(lines, line); ++i) text += line + "\n";
    write("first.csv", text);
    return file("first.csv");
  }

  const std::string model_ = test_data("diabetes/model.json"), rows_ = test_data("diabetes/rows.csv");
};

TEST_F(Proximity, CountsTreesInWhichRowsShareALeaf) {
  const Table leaves = table({"run", model_, rows_, "--output", "leaf"});
  const Table counts = table({"proximity", model_, rows_});
  ASSERT_EQ(counts.size(), leaves.size());
  for (std::size_t a = 0; a < leaves.size(); ++a) {
    ASSERT_EQ(counts[a].size(), leaves.size());
    for (std::size_t b = 0; b < leaves.size(); ++b) {
      double count = 0;
      for (std::size_t t = 0; t < leaves[a].size(); ++t) count += leaves[a][t] == leaves[b][t] ? 1 : 0;
      ASSERT_EQ(counts[a][b], count) << a << ' ' << b;
    }
  }
}

TEST_F(Proximity, HasTheSameNumbersWhateverTheBatch) {
  const std::string all = content({"proximity", model_, rows_});
  EXPECT_EQ(content({"proximity", model_, rows_, rows_, "--batch", "3", "--threads", "2"}), all);
  const std::string program = file("model.fvm");
  content({"compile", model_, "-o", program});
  EXPECT_EQ(content({"proximity", program, rows_, "--target", "baseline"}), all);
  const std::string coded = file("rows.fvr");
  content({"encode", program, rows_, "-o", coded});
  EXPECT_EQ(content({"proximity", program, coded, rows_}), all);
}

/// Rows that are compared with themselves have the numbers of rows that are compared with the same ones as OTHERS.
/// There are enough rows for tiles of which each pair is compared once, and for more than one part of the scores.
TEST_F(Proximity, ComparesRowsWithThemselves) {
  std::istringstream lines(content_of(rows_));
  std::string line, text, all;
  std::getline(lines, line);
  const std::string header = line + "\n";
  while (std::getline(lines, line)) text += line + "\n";
  const auto count = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  for (std::size_t i = 0; i < 3'000; i += count) all += text;
  write("many.csv", header + all);
  const std::string many = file("many.csv"), own = file("own.npy"), others = file("others.npy");
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--weights"}}) {
    std::vector<std::string> words{"proximity", model_, many, "-o", own},
        with{"proximity", model_, many, many, "-o", others};
    words.insert(words.end(), options.begin(), options.end());
    with.insert(with.end(), options.begin(), options.end());
    content(words);
    content(with);
    EXPECT_TRUE(content_of(own) == content_of(others)) << options.size();
  }
  // Each row lies there several times, so that its nearest neighbour is an equal row.
  const Table nearest = table({"proximity", model_, many, "--top", "1", "--threads", "2"});
  for (std::size_t r = 0; r < nearest.size(); ++r) EXPECT_EQ(nearest[r][1], nearest[0][1]) << r;
}

TEST_F(Proximity, FindsNeighbours) {
  const Table counts = table({"proximity", model_, rows_});
  const Table nearest = table({"proximity", model_, rows_, "--top", "2"});
  ASSERT_EQ(nearest.size(), counts.size());
  for (std::size_t a = 0; a < counts.size(); ++a) {
    ASSERT_EQ(nearest[a].size(), 4U);
    const auto first = static_cast<std::size_t>(nearest[a][0]),
               second = static_cast<std::size_t>(nearest[a][2]);
    EXPECT_NE(first, a);
    EXPECT_EQ(nearest[a][1], counts[a][first]);
    EXPECT_EQ(nearest[a][3], counts[a][second]);
    for (std::size_t b = 0; b < counts.size(); ++b)
      EXPECT_TRUE(b == a || b == first || counts[a][b] <= counts[a][second]) << a << ' ' << b;
  }
  // A row of another file is its own neighbour there.
  EXPECT_EQ(table({"proximity", model_, rows_, rows_, "--top", "1"})[5][0], 5);
}

TEST_F(Proximity, WeightsAddUpToOne) {
  for (const std::vector<double>& mine : table({"proximity", model_, rows_, first_rows(60), "--weights"})) {
    double sum = 0;
    for (const double weight : mine) sum += weight;
    EXPECT_GT(sum, 0.5);
    EXPECT_LE(sum, 1 + 1e-12);
  }
  for (const std::vector<double>& mine : table({"proximity", model_, rows_, "--weights"})) {
    double sum = 0;
    for (const double weight : mine) sum += weight;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST_F(Proximity, WritesArrays) {
  const auto header = [&](std::vector<std::string> options) {
    const std::string out = file("out.npy");
    std::vector<std::string> words{"proximity", model_, rows_, first_rows(20), "-o", out};
    words.insert(words.end(), options.begin(), options.end());
    content(words);
    return content_of(out).substr(10, 100);
  };
  EXPECT_NE(header({}).find("'<i4', 'fortran_order': False, 'shape': ("), std::string::npos);
  EXPECT_NE(header({"--top", "3"}).find("'<i8'"), std::string::npos);
  EXPECT_NE(header({"--top", "3"}).find(", 3, 2)"), std::string::npos);
  EXPECT_NE(header({"--weights"}).find("'<f8'"), std::string::npos);
}

TEST_F(Proximity, IsRefusedByName) {
  write("none.csv", "");
  expect_error({"proximity", model_, rows_, rows_, "--top", "1000"}, 1, "rows.csv: --top 1000: there are ");
  expect_error({"proximity", model_, rows_, "--max-bytes", "10"}, 1,
               "bytes, more than --max-bytes 10 allows");
  expect_error({"proximity", model_, "-", "-"}, 2, "ROWS and OTHERS cannot both be standard input");
  expect_error({"proximity", model_, rows_, "-o", rows_}, 2, "");
  expect_error({"proximity", model_, rows_, "--top", "0"}, 2, "--top '0': expected a whole number from 1 to");
  expect_error({"proximity", model_, rows_, "-o", "out.txt"}, 2, "out.txt");
  expect_error({"proximity", model_}, 2, "ROWS");
}

}  // namespace
}  // namespace forestvm::cli::test_program_proximity
