// The C ABI: columns of all types give the answers of the equal float32 rows, bit for bit, in every program, output and
// place in memory; columns that make no sense are errors that name the column.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/internal/program_tools.hpp>

#include "mixed_columns.hpp"
#include "opened_program.hpp"
#include "support/allocations.hpp"
#include "vm/derived_model.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_columns {
namespace {

constexpr std::uint32_t kTypes = FVM_TYPE_BIT + 1;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Compares the answers for rows that are encoded first, unless the program's walks or leaves read values.
void expect_encoded(const Opened& opened, const fvm_rows& rows, const Answers& expected) {
  std::size_t bytes = 0;
  ASSERT_EQ(fvm_encoded_size(opened.program(), rows.row_count, &bytes), FVM_OK);
  std::vector<std::uint8_t> codes(bytes);
  fvm_rows coded = FVM_ROWS_INIT;
  const fvm_status status = fvm_encode(opened.context(), &rows, codes.data(), bytes, &coded);
  if (status == FVM_REFUSED) {
    EXPECT_NE(std::string(fvm_last_error()).find("the rows' values"), std::string::npos) << fvm_last_error();
    return;
  }
  ASSERT_EQ(status, FVM_OK) << fvm_last_error();
  EXPECT_TRUE(c_answers(opened.open(), opened.context(), coded) == expected) << "encoded";
}

void expect_equal(const Program& program, std::size_t count, std::uint32_t first_type) {
  SCOPED_TRACE("rows " + std::to_string(count) + ", first type " + std::to_string(first_type));
  const auto predictor = host_backend(program);
  const Opened opened(program);
  const MixedColumns columns(count, program.meta().num_features, first_type);
  const Answers expected = answers(**predictor, columns.as_floats());
  EXPECT_TRUE(c_answers(opened.open(), opened.context(), columns.rows()) == expected);
  if (!program.columns().empty()) expect_encoded(opened, columns.rows(), expected);
}

TEST(CApiColumns, OfEachTypeInEachProgram) {
  for (const Program& program : rich_programs())
    for (std::uint32_t first = 0; first < kTypes; ++first) expect_equal(program, 7, first);
}

TEST(CApiColumns, OfOneBlockAndItsNeighbours) {
  for (const char* const schedule : {"", "encode(u8)", kRichSchedule})
    for (const std::size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 130u, 700u})
      expect_equal(compiled(small_forest({.features = 31}), schedule), count, 0);
}

TEST(CApiColumns, OfManyRows) {
  const std::string parallel = "tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0); encode(u8)";
  for (const std::uint32_t first : {0u, 1u, 2u})
    expect_equal(compiled(small_forest({.features = 70}), parallel), 4096, first);
}

TEST(CApiColumns, OfEachTarget) {
  const Program program = compiled(small_forest({.features = 29}), "encode(u8)");
  const auto predictor = host_backend(program);
  for (const std::string_view target : host_targets()) {
    fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
    const std::string name(target);
    options.target = name.c_str();
    const auto image = program.image();
    fvm_program* opened = nullptr;
    const fvm_status status = fvm_program_open_memory(image.data(), image.size(), &options, &opened);
    if (status == FVM_ENVIRONMENT) continue;  // this CPU lacks the target
    ASSERT_EQ(status, FVM_OK) << fvm_last_error();
    const OpenProgram closing(opened);
    const OpenContext context = context_of(closing);
    // Targets search few rows of a block one by one, up to seven of them on AVX2.
    for (const std::size_t count : {1u, 3u, 7u, 8u, 63u, 64u, 71u, 777u}) {
      const MixedColumns columns(count, 29, 3);
      const Answers expected = answers(**predictor, columns.as_floats());
      EXPECT_TRUE(c_answers(closing, context.get(), columns.rows()) == expected)
          << name << ", " << count << " rows";
    }
  }
}

/// Columns of float64 go the way of the float64 number, at each threshold and beside it, in models that compare in
/// float64.
TEST(CApiColumns, OfFloat64AreExact) {
  for (const char* const schedule : {"", "encode(u8)"}) {
    Model model = small_forest({.features = 3});
    model.score_type = ScalarType::Float64;
    model.row_type = ScalarType::Float64;
    make_wide(model);
    const Program program = compiled(model, schedule);
    std::vector<double> numbers = {kNaN, 0, -0.0, 1e-36, 1e300, -1e300};
    for (const auto& [feature, bounds] : thresholds(program))
      for (const double bound : bounds)
        numbers.insert(numbers.end(), {bound, std::nextafter(bound, -1e300), std::nextafter(bound, 1e300)});
    const std::size_t count = numbers.size();
    std::vector<double> rows;
    for (const double number : numbers) rows.insert(rows.end(), 3, number);
    const Opened opened(program);
    const fvm_rows dense = FVM_DENSE_ROWS(rows.data(), FVM_TYPE_FLOAT64, count, 3);
    const std::vector<fvm_column> columns(3, FVM_COLUMN(numbers.data(), FVM_TYPE_FLOAT64));
    const fvm_rows given = FVM_COLUMN_ROWS(columns.data(), count, 3);
    EXPECT_TRUE(c_answers(opened.open(), opened.context(), given) ==
                c_answers(opened.open(), opened.context(), dense));
  }
}

/// Columns from which others are derived, by lookups of hashed categories.
TEST(CApiColumns, WithDerivedColumns) {
  const Model model = derived_model(5);
  const Program program = compiled(model, "encode(u8)");
  const std::size_t count = 100, width = model.num_features;
  const std::vector<double> rows = derived_rows(7, count), hashed = hashed_rows(model, rows);
  const Opened opened(program);
  const fvm_rows dense = FVM_DENSE_ROWS(rows.data(), FVM_TYPE_FLOAT64, count, width);
  const Answers expected = c_answers(opened.open(), opened.context(), dense);
  for (const bool codes : {false, true}) {
    std::vector<std::vector<double>> values(width);
    std::vector<fvm_column> columns;
    for (std::size_t f = 0; f < width; ++f) {
      for (std::size_t r = 0; r < count; ++r) values[f].push_back((codes ? hashed : rows)[r * width + f]);
      columns.push_back(FVM_COLUMN(values[f].data(), FVM_TYPE_FLOAT64));
    }
    fvm_rows given = FVM_COLUMN_ROWS(columns.data(), count, width);
    given.hashed = codes ? 1 : 0;
    EXPECT_TRUE(c_answers(opened.open(), opened.context(), given) == expected);
  }
}

/// A dictionary of a hashed feature holds the codes that fvm_program_category_code gives.
TEST(CApiColumns, OfHashedDictionaries) {
  const Model model = derived_model(5);
  const Opened opened(compiled(model, "encode(u8)"));
  const std::size_t count = 90, width = model.num_features;
  std::vector<double> rows = derived_rows(3, count);
  std::vector<std::vector<double>> values(width), dictionaries(width);
  std::vector<std::int64_t> indices(count);
  for (std::size_t r = 0; r < count; ++r) indices[r] = static_cast<std::int64_t>(count - 1 - r);
  std::vector<fvm_column> columns;
  for (std::size_t f = 0; f < width; ++f) {
    const bool hashed = f % 2 == 1;
    for (std::size_t r = 0; r < count; ++r) values[f].push_back(rows[r * width + f]);
    columns.push_back(FVM_COLUMN(values[f].data(), FVM_TYPE_FLOAT64));
    if (!hashed) continue;
    for (std::size_t r = count; r-- > 0;) {
      const std::string text = std::to_string(static_cast<std::int64_t>(rows[r * width + f]));
      dictionaries[f].emplace_back();
      EXPECT_EQ(fvm_program_category_code(opened.program(), static_cast<std::uint32_t>(f), text.data(),
                                          text.size(), &dictionaries[f].back()),
                FVM_OK)
          << fvm_last_error();
    }
    columns[f] = FVM_COLUMN(indices.data(), FVM_TYPE_INT64);
    columns[f].categories = dictionaries[f].data();
    columns[f].category_count = count;
  }
  const fvm_rows dense = FVM_DENSE_ROWS(rows.data(), FVM_TYPE_FLOAT64, count, width);
  const fvm_rows given = FVM_COLUMN_ROWS(columns.data(), count, width);
  EXPECT_TRUE(c_answers(opened.open(), opened.context(), given) ==
              c_answers(opened.open(), opened.context(), dense));
}

/// Returns a forest over 4 features that reads 0 and 2 alone.
Model half_read() {
  Model model = small_forest({.features = 4});
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes)
      if (node.kind != NodeKind::Leaf) node.feature &= 2u;
  return model;
}

TEST(CApiColumns, ThatAreNotReadNeedNoMemory) {
  for (const char* const schedule : {"", "encode(u8)", kRichSchedule}) {
    const Opened opened(compiled(half_read(), schedule));
    MixedColumns columns(70, 4, 0);
    const Answers expected = c_answers(opened.open(), opened.context(), columns.rows());
    columns.described()[1] = FVM_COLUMN_INIT;
    columns.described()[3] = FVM_COLUMN_INIT;
    EXPECT_TRUE(c_answers(opened.open(), opened.context(), columns.rows()) == expected);
    columns.described()[2] = FVM_COLUMN_INIT;
    std::vector<float> out(70 * 3);
    expect_usage(predict(opened.context(), columns.rows(), FVM_OUTPUT_RAW, out),
                 "column 2: its values are null, and the model reads this feature");
  }
}

TEST(CApiColumns, AllocateNothingOnceTheContextHasAnsweredSuchACall) {
  for (const char* const schedule : {"", "encode(u8)"}) {
    const Opened opened(compiled(small_forest({.features = 20}), schedule));
    const MixedColumns columns(300, 20, 0);
    const fvm_rows rows = columns.rows();
    std::vector<float> out(300 * 3);
    const auto call = [&] {
      EXPECT_EQ(predict(opened.context(), rows, FVM_OUTPUT_VALUE, out), FVM_OK) << fvm_last_error();
    };
    call();
    EXPECT_EQ(support::allocations_of(call), 0u);
  }
}

/// Float32 matrices in Fortran order are columns too.
TEST(CApiColumns, OfAMatrixAreEncodedInPlace) {
  const Program program = compiled(small_forest({.features = 600}), "encode(u8)");
  const Opened opened(program);
  const std::size_t count = 200;
  const std::vector<float> rows = small_rows(count, 600);
  std::vector<float> turned(rows.size());
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t f = 0; f < 600; ++f) turned[f * count + r] = rows[r * 600 + f];
  const fvm_rows given = FVM_COLUMN_MAJOR_ROWS(turned.data(), FVM_TYPE_FLOAT32, count, 600);
  const fvm_rows dense = FVM_DENSE_ROWS(rows.data(), FVM_TYPE_FLOAT32, count, 600);
  EXPECT_TRUE(c_answers(opened.open(), opened.context(), given) ==
              c_answers(opened.open(), opened.context(), dense));
}

/// A mistake in a column, and the message about it.
struct Mistake {
  void (*make)(fvm_column&);
  const char* message;
};

TEST(CApiColumns, ThatMakeNoSenseAreErrorsWithTheirNumber) {
  const Opened opened(compiled(small_forest({.features = 3}), "encode(u8)"));
  static const double categories[] = {0, 1, 2};
  static const std::int8_t indices[] = {0, 1, 3, 2};
  const Mistake mistakes[] = {
      {[](fvm_column& c) { c.size = 0; }, "column 1: column.size is 0, not sizeof(fvm_column)"},
      {[](fvm_column& c) { c.type = 13; }, "column 1: type is 13, which is not an fvm_type"},
      {[](fvm_column& c) { c.type = -1; }, "column 1: type is -1, which is not an fvm_type"},
      {[](fvm_column& c) { c.category_count = 1; },
       "column 1: category_count is 1, and there are no categories"},
      {[](fvm_column& c) { c.categories = categories; },
       "column 1: has a dictionary, whose indices must be integers"},
      {[](fvm_column& c) {
         c.type = FVM_TYPE_BIT;
         c.categories = categories;
       },
       "column 1: has a dictionary, whose indices must be integers"},
      {[](fvm_column& c) {
         c.values = indices;
         c.type = FVM_TYPE_INT8;
         c.categories = categories;
         c.category_count = 3;
       },
       "row 2, column 1: index 3 in a dictionary of 3"},
      {[](fvm_column& c) { c.offset = SIZE_MAX / 2; }, "more than memory holds"},
  };
  const float values[4] = {};
  std::vector<float> out(4 * 3);
  for (const Mistake& mistake : mistakes) {
    std::vector<fvm_column> columns(3, FVM_COLUMN(values, FVM_TYPE_FLOAT32));
    mistake.make(columns[1]);
    const fvm_rows rows = FVM_COLUMN_ROWS(columns.data(), 4, 3);
    expect_usage(predict(opened.context(), rows, FVM_OUTPUT_RAW, out), mistake.message);
  }
  const std::vector<fvm_column> columns(3, FVM_COLUMN(values, FVM_TYPE_FLOAT32));
  fvm_rows rows = FVM_COLUMN_ROWS(columns.data(), 4, 2);
  expect_usage(predict(opened.context(), rows, FVM_OUTPUT_RAW, out),
               "rows of 2 values for a model of 3 features");
  rows = FVM_COLUMN_ROWS(nullptr, 4, 3);
  expect_usage(predict(opened.context(), rows, FVM_OUTPUT_RAW, out), "the columns are null");
  rows = FVM_COLUMN_ROWS(columns.data(), 4, 3);
  rows.row_stride = 1;
  expect_usage(predict(opened.context(), rows, FVM_OUTPUT_RAW, out),
               "rows.row_stride is set, which column rows do not have");
}

/// An integer that is no float64 is refused by a model that compares in float64, unless its row has no value.
TEST(CApiColumns, OfInexactIntegersAreRefused) {
  Model model = small_forest({.features = 2});
  model.score_type = ScalarType::Float64;
  model.row_type = ScalarType::Float64;
  const Opened opened(compiled(model, ""));
  const std::int64_t values[] = {1, (std::int64_t{1} << 53) + 1};
  std::vector<fvm_column> columns(2, FVM_COLUMN(values, FVM_TYPE_INT64));
  const std::uint8_t first_alone = 1;
  columns[0].validity = &first_alone;
  const fvm_rows rows = FVM_COLUMN_ROWS(columns.data(), 2, 2);
  std::vector<float> out(2 * 3);
  expect_failure(predict(opened.context(), rows, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "row 1, column 1: 9007199254740993 is not a float64 number");
  columns[1].validity = &first_alone;
  EXPECT_EQ(predict(opened.context(), rows, FVM_OUTPUT_RAW, out), FVM_OK) << fvm_last_error();
}

}  // namespace
}  // namespace forestvm::test::test_c_api_columns
