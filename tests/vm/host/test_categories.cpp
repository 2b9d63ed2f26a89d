// Codes of categorical splits: whatever a row's bits are, the code of each column says whether the value is
// in the column's set, from dense rows on every CPU target and from sparse rows; codes are written for the
// requested rows and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/host/load_program.hpp"
#include "vm/row_ranges.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_categories {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Split {
  std::uint32_t feature;
  CategorySet set;
  bool missing_left;
};

/// Returns splits of three features: many sets of the first, with both rules; one of the second, which also
/// has thresholds; none of the third. The sets have one code, neighbouring codes, codes in several words,
/// codes at the end of the range, or no code.
std::vector<Split> splits() {
  std::vector<Split> all;
  for (const bool fractions : {false, true})
    for (const std::vector<std::uint32_t>& codes : {std::vector<std::uint32_t>{0},
                                                    {3},
                                                    {31, 32},
                                                    {0, 1, 2, 63, 64, 500},
                                                    {64, 95},
                                                    {kMaxCategories - 1},
                                                    {kMaxCategories - 32, kMaxCategories - 2},
                                                    {}})
      for (const bool left : {false, true})
        all.push_back(
            {1, {codes, false, fractions ? CategoryRule::AboveMinusOne : CategoryRule::WholePart}, left});
  all.push_back({0, {{1, 2}, false, CategoryRule::WholePart}, true});
  return all;
}

/// Returns a stump for each split, and one with thresholds.
Model model_of(const std::vector<Split>& splits) {
  std::vector<Tree> trees{support::split(0, 1.5, support::leaf(1), support::leaf(2))};
  for (const Split& split : splits) {
    Tree tree = support::split(split.feature, 0, support::leaf(1), support::leaf(2), split.missing_left);
    tree.nodes[0].kind = NodeKind::Category;
    tree.category_sets = {split.set};
    trees.push_back(std::move(tree));
  }
  return support::model_of(trees);
}

std::vector<float> odd_numbers() {
  std::vector<float> all{
      kNan,  0.0f,   -0.0f,     0x1p-149f,  -0x1p-149f,      -0x1p-126f, 0.5f,    -0.5f,      0.99f,
      3.7f,  -3.0f,  1e9f,      -1e9f,      0x1p31f,         -0x1p31f,   0x1p32f, -0x1p32f,   0x1p63f,
      3e38f, -3e38f, kInfinity, -kInfinity, -0x1.fffffep-1f, -1.0f,      0x1p24f, 0x1p24f + 2};
  for (const float x : {1.0f, 2.0f, 3.0f, 31.0f, 32.0f, 33.0f, 63.0f, 64.0f, 95.0f, 96.0f, 500.0f,
                        0x1p24f - 1, 0x1p24f - 2, 0x1p24f - 32, 0x1p24f - 33})
    all.insert(all.end(), {std::nextafter(x, -kInfinity), x, std::nextafter(x, kInfinity)});
  return all;
}

/// Decides membership by the definition of CategorySet.
bool is_in(const CategorySet& set, float x) {
  if (std::isnan(x) || std::isinf(x) || x <= -1 || (x < 0 && set.rule != CategoryRule::AboveMinusOne))
    return false;
  const double whole = std::trunc(static_cast<double>(x));
  return std::any_of(set.codes.begin(), set.codes.end(),
                     [whole](std::uint32_t code) { return code == whole; });
}

/// Returns the program with all sets of categories except the empty ones stored as lists.
Program listed(const Program& program) {
  ProgramParts parts = parts_of(program);
  const std::vector<std::uint32_t> bits = std::exchange(parts.category_words, {});
  for (CategoryColumn& column : parts.category_columns) {
    const auto from = bits.begin() + column.first_word;
    column.first_word = static_cast<std::uint32_t>(parts.category_words.size());
    for (std::uint32_t bit = 0; bit < 32 * column.word_count; ++bit)
      if ((from[bit / 32] >> bit % 32 & 1) != 0) parts.category_words.push_back(column.first_category + bit);
    column.word_count = static_cast<std::uint32_t>(parts.category_words.size()) - column.first_word;
    column.listed = column.word_count != 0;
    if (column.listed == 0) {
      parts.category_words.push_back(0);
      column.word_count = 1;
    } else {
      column.first_category = 0;
    }
  }
  return build_program(parts).value();
}

/// Runs each test with sets stored as bits and as lists.
class CategoryCodes : public testing::TestWithParam<bool> {
 protected:
  CategoryCodes() : program_(compiled(model_of(splits()), "encode(u8)")) {
    if (GetParam()) program_ = listed(program_);
    const std::vector<float> odd = odd_numbers();
    for (std::size_t i = 0; i < kRows * 3; ++i) rows_.push_back(odd[(i * 7 + i / 3) % odd.size()]);
  }

  /// Returns the set of a column of memberships, read back from the program.
  CategorySet set_of(const CategoryColumn& column) const {
    CategorySet set;
    set.rule = column.fractions != 0 ? CategoryRule::AboveMinusOne : CategoryRule::WholePart;
    if (column.listed != 0) {
      const auto codes = program_.category_words().subspan(column.first_word, column.word_count);
      set.codes.assign(codes.begin(), codes.end());
      return set;
    }
    for (std::uint32_t bit = 0; bit < 32 * column.word_count; ++bit)
      if ((program_.category_words()[column.first_word + bit / 32] >> bit % 32 & 1) != 0)
        set.codes.push_back(column.first_category + bit);
    return set;
  }

  void expect_codes(const std::vector<std::uint8_t>& codes, const Range& range) const {
    const auto columns = program_.columns();
    const auto categories = program_.category_columns();
    for (std::size_t c = 0; c < categories.size(); ++c) {
      const std::size_t column = columns.size() - categories.size() + c;
      const CategorySet set = set_of(categories[c]);
      for (std::uint32_t row = 0; row < kRows; ++row) {
        const float x = rows_[row * 3 + categories[c].feature];
        const bool inside = range.begin <= row && row < range.end;
        const bool right = std::isnan(x) ? columns[column].missing_highest != 0 : is_in(set, x);
        const unsigned wanted = inside ? unsigned{right} : unsigned{kUntouched};
        ASSERT_EQ(unsigned{codes[code_offset(row, columns.size()) + column * kCodeRows]}, wanted)
            << "column " << column << ", row " << row << ", " << x;
      }
    }
  }

  std::vector<std::uint8_t> untouched() const {
    return std::vector<std::uint8_t>(code_bytes(kRows, program_.columns().size()) + kCodeSlack, kUntouched);
  }

  static constexpr std::uint32_t kRows = 300;
  static constexpr std::uint8_t kUntouched = 0xee;
  Program program_;
  std::vector<float> rows_;
};

TEST_P(CategoryCodes, OneColumnForEachSetAndSideAndRule) {
  EXPECT_EQ(program_.category_columns().size(), splits().size());
  // Words for existing codes only: two words for codes at the end of the range.
  for (const CategoryColumn& column : program_.category_columns())
    EXPECT_LE(column.word_count, 16u) << column.first_category;
}

TEST_P(CategoryCodes, OfDenseRows) {
  for (const std::string& name : support::targets_here()) {
    const host::Target& target = **host::find_target(name);
    const auto loading = host::load_program(program_, target, nullptr);
    const host::LoadedProgram& loaded = **loading;
    for (const Range& range : row_ranges(kRows)) {
      SCOPED_TRACE(name + ", rows " + std::to_string(range.begin) + " to " + std::to_string(range.end));
      std::vector<std::uint8_t> codes = untouched();
      target.encode_categories({loaded.encoder.categories, program_.category_words().data(),
                                program_.columns().size(), range, rows_.data(), 3, codes.data()});
      expect_codes(codes, range);
    }
  }
}

TEST_P(CategoryCodes, OfSparseRows) {
  const auto loading = host::load_program(program_, **host::find_target("auto"), nullptr);
  const host::LoadedProgram& loaded = **loading;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    columns.insert(columns.end(), {0, 1, 2});
    offsets.push_back(static_cast<std::int64_t>(columns.size()));
  }
  CsrRows rows{kRows, offsets.data(), columns.data(), rows_.data(), rows_.size(), Absent::Missing};
  for (const Absent absent : {Absent::Missing, Absent::Zero}) {
    rows.absent = absent;
    std::vector<std::uint8_t> codes = untouched();
    loaded.csr_encoder.encode(rows, {3, 200, 0}, codes.data());
    expect_codes(codes, {3, 200});
  }
}

TEST_P(CategoryCodes, OfAbsentValues) {
  const auto loading = host::load_program(program_, **host::find_target("auto"), nullptr);
  const host::LoadedProgram& loaded = **loading;
  const std::vector<std::int64_t> offsets(kRows + 1, 0);
  for (const Absent absent : {Absent::Missing, Absent::Zero}) {
    std::fill(rows_.begin(), rows_.end(), absent == Absent::Zero ? 0.0f : kNan);
    std::vector<std::uint8_t> codes = untouched();
    loaded.csr_encoder.encode({kRows, offsets.data(), nullptr, nullptr, 0, absent}, {0, kRows, 0},
                              codes.data());
    expect_codes(codes, {0, kRows});
  }
}

INSTANTIATE_TEST_SUITE_P(SetsAre, CategoryCodes, testing::Bool(),
                         [](const auto& test) { return test.param ? "Lists" : "Bits"; });

}  // namespace
}  // namespace forestvm::test::test_categories
