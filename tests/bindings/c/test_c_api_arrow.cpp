// The C ABI: struct arrays of Arrow give the answers of the equal rows, whatever their types, order and offsets are;
// what does not fit the model, or contradicts itself, is an error that names the column.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "arrow_table.hpp"
#include "opened_program.hpp"
#include "support/allocations.hpp"
#include "vm/derived_model.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_arrow {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Returns everything that the C ABI answers for a table of `count` rows.
Answers arrow_answers(const Opened& opened, const ArrowColumnPtr& table, fvm_extra extra = FVM_EXTRA_ERROR) {
  fvm_rows rows = arrow_rows(table);
  rows.row_count = static_cast<std::size_t>(table->array.length);
  rows.extra = extra;
  return c_answers(opened.open(), opened.context(), rows);
}

Answers float_answers(const Opened& opened, const std::vector<float>& rows, std::size_t width) {
  return c_answers(opened.open(), opened.context(),
                   c_rows(RowBlock{rows.data(), rows.size() / width, width}));
}

fvm_status predict_raw(const Opened& opened, const fvm_rows& rows) {
  std::vector<float> out(1000);
  return predict(opened.context(), rows, FVM_OUTPUT_RAW, out);
}

/// Draws numbers of which some are null.
template <class Value>
std::vector<std::optional<Value>> drawn(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::optional<Value>> values(count);
  for (auto& value : values)
    if (random() % 5 != 0)
      value = static_cast<Value>(std::is_floating_point_v<Value> ? static_cast<double>(random() % 17) / 4 - 2
                                                                 : static_cast<double>(random() % 3));
  return values;
}

/// Makes row-major floats of columns in the model's order.
class FloatRows {
 public:
  explicit FloatRows(std::size_t count, std::size_t width) : width_(width), rows_(count * width, kNaN) {}

  /// Sets column `column`: row r is number `from` + r of `values`.
  template <class Value>
  void set(std::size_t column, const std::vector<std::optional<Value>>& values, std::size_t from) {
    for (std::size_t r = 0; r < rows_.size() / width_; ++r)
      if (values[from + r]) rows_[r * width_ + column] = static_cast<float>(*values[from + r]);
  }
  const std::vector<float>& rows() const { return rows_; }

 private:
  std::size_t width_;
  std::vector<float> rows_;
};

/// Compares a table of one column of each type, named f0 to f12 and in another order than the model's, with equal dense
/// rows. `first` rows lie before those of the table, and `offset` values or more before a column's first.
void expect_all_types(const Opened& opened, std::size_t count, std::size_t first, std::size_t offset) {
  const std::size_t all = first + count;
  FloatRows floats(count, 13);
  const auto column = [&](std::size_t number, auto kind) {
    using Value = decltype(kind);
    const auto values = drawn<Value>(all, static_cast<std::uint32_t>(number + count));
    floats.set(number, values, first);
    return arrow_numbers<Value>("f" + std::to_string(number), values, offset + number);
  };
  std::vector<bool> bits(all), valid(all, true);
  std::vector<std::optional<int>> numbers(all);
  for (std::size_t i = 0; i < all; ++i) numbers[i] = (bits[i] = i % 3 == 0);
  floats.set(10, numbers, first);
  Bytes halves;
  std::vector<std::optional<float>> half_numbers(all);
  for (std::size_t i = 0; i < all; ++i) {
    const std::uint16_t half = i % 2 == 0 ? 0x3c00 : 0xbd00;  // 1 and -1.25 as binary16
    const auto* const bytes = reinterpret_cast<const std::byte*>(&half);
    halves.insert(halves.end(), bytes, bytes + 2);
    half_numbers[i] = i % 2 == 0 ? 1.0f : -1.25f;
  }
  floats.set(11, half_numbers, first);
  auto f12 = arrow_column("n", "f12", {}, all);
  f12->array.null_count = static_cast<std::int64_t>(all);
  const ArrowColumnPtr table = arrow_table(
      count, first, std::move(f12), column(3, std::int16_t()), column(0, float()), column(1, double()),
      column(2, std::int8_t()), arrow_column("b", "f10", {{}, bits_of(bits, 11)}, all, 11),
      column(4, std::int32_t()), column(9, std::uint64_t()), column(5, std::int64_t()),
      column(6, std::uint8_t()), column(7, std::uint16_t()), column(8, std::uint32_t()),
      arrow_column("e", "f11", {bits_of(valid), halves}, all));
  EXPECT_TRUE(arrow_answers(opened, table) == float_answers(opened, floats.rows(), 13))
      << count << " rows from " << first << ", offset " << offset;
}

TEST(CApiArrow, OfAllTypesInAnyOrderWithOffsets) {
  for (const char* const schedule : {"", "encode(u8)"}) {
    const Opened opened(compiled(small_forest({.trees = 9, .features = 13, .depth = 4}), schedule));
    for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 4096u})
      for (const std::size_t first : {0u, 3u}) expect_all_types(opened, count, first, first == 0 ? 0 : 61);
  }
}

TEST(CApiArrow, AgainWithAnotherOrderOfTheSameContext) {
  const Opened opened(compiled(small_forest({.features = 2}), "encode(u8)"));
  const auto a = drawn<float>(5, 1), b = drawn<float>(5, 2);
  FloatRows floats(5, 2);
  floats.set(0, a, 0);
  floats.set(1, b, 0);
  const Answers expected = float_answers(opened, floats.rows(), 2);
  const auto f0 = [&] { return arrow_numbers<float>("f0", a); };
  const auto f1 = [&] { return arrow_numbers<float>("f1", b); };
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_TRUE(arrow_answers(opened, arrow_table(5, 0, f0(), f1())) == expected);
    EXPECT_TRUE(arrow_answers(opened, arrow_table(5, 0, f1(), f0())) == expected);
    EXPECT_TRUE(arrow_answers(opened, arrow_table(5, 0, f0(), arrow_texts<std::int32_t>("x", Texts(5)), f1()),
                              FVM_EXTRA_IGNORE) == expected);
  }
}

TEST(CApiArrow, AllocatesNothingOnceTheContextHasAnsweredSuchACall) {
  Model model = small_forest({.features = 3});
  model.categories = {{1, {"red", "green"}, std::nan("")}};
  const Opened opened(compiled(model, "encode(u8)"));
  const ArrowColumnPtr table =
      arrow_table(3, 0, arrow_numbers<float>("f2", {1.0f, std::nullopt, 2.0f}),
                  arrow_numbers<float>("f0", {1.0f, std::nullopt, 2.0f}),
                  arrow_dictionary<std::int8_t>("f1", {0, 1, std::nullopt},
                                                arrow_texts<std::int32_t>("", {"green", "red"})));
  const fvm_rows rows = arrow_rows(table);
  std::vector<float> out(9);
  const auto call = [&] {
    EXPECT_EQ(predict(opened.context(), rows, FVM_OUTPUT_RAW, out), FVM_OK) << fvm_last_error();
  };
  call();
  EXPECT_EQ(support::allocations_of(call), 0u);
}

/// Returns a forest whose feature 1 has named categories, with splits between their codes.
Model named_forest(std::optional<double> unseen) {
  Model model = small_forest({.features = 3});
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes)
      if (node.kind != NodeKind::Leaf && node.feature == 1) node.threshold = 1 + (node.threshold > 0 ? 1 : 0);
  model.categories = {{1, {"red", "a name of more than twelve bytes", "7"}, unseen}};
  return model;
}

/// Returns the columns f0 and f2, and f1 as it is given.
ArrowColumnPtr with_categories(ArrowColumnPtr f1) {
  const std::size_t count = static_cast<std::size_t>(f1->array.length);
  return arrow_table(count, 0, std::move(f1), arrow_numbers<float>("f0", drawn<float>(count, 1)),
                     arrow_numbers<float>("f2", drawn<float>(count, 2)));
}

TEST(CApiArrow, FindsCategoriesByName) {
  const std::string longest = "a name of more than twelve bytes";
  const Texts texts = {"red", longest, "7", "unknown to the model", std::nullopt, longest, "red", "", "7"};
  for (const double unseen : {std::nan(""), 2.0})
    for (const char* const schedule : {"", "encode(u8)"}) {
      const Opened opened(compiled(named_forest(unseen), schedule));
      const auto u = static_cast<float>(unseen);
      const std::vector<float> codes = {0, 1, 2, u, kNaN, 1, 0, u, 2};
      FloatRows floats(codes.size(), 3);
      floats.set(0, drawn<float>(codes.size(), 1), 0);
      floats.set(2, drawn<float>(codes.size(), 2), 0);
      floats.set(1, std::vector<std::optional<float>>(codes.begin(), codes.end()), 0);
      const Answers expected = float_answers(opened, floats.rows(), 3);
      const auto expect = [&](ArrowColumnPtr f1, const char* kind) {
        EXPECT_TRUE(arrow_answers(opened, with_categories(std::move(f1))) == expected) << kind;
      };
      expect(arrow_texts<std::int32_t>("f1", texts), "utf8");
      expect(arrow_texts<std::int64_t>("f1", texts, 5), "large_utf8");
      expect(arrow_views("f1", texts, 3), "utf8_view");
      const Texts names = {"unknown", "7", std::nullopt, longest, "red", "never used"};
      const std::vector<std::optional<std::uint8_t>> indices = {4, 3, 1, 0, std::nullopt, 3, 4, 0, 1};
      expect(arrow_dictionary<std::uint8_t>("f1", indices, arrow_texts<std::int32_t>("", names, 2)), "u8, u");
      std::vector<std::optional<std::int64_t>> wide(indices.begin(), indices.end());
      wide[4] = 2;  // an index of a null in the dictionary
      expect(arrow_dictionary<std::int64_t>("f1", wide, arrow_views("", names), 9), "i64, vu");
    }
}

TEST(CApiArrow, FindsCategoriesThatAreNumbers) {
  Model model = named_forest(std::nan(""));
  model.categories[0].names = {"10", "2.5", "-3"};
  const Opened opened(compiled(model, ""));
  const std::vector<std::optional<std::int16_t>> indices = {0, 1, 2, 3};
  FloatRows floats(4, 3);
  floats.set(0, drawn<float>(4, 1), 0);
  floats.set(2, drawn<float>(4, 2), 0);
  floats.set(1, std::vector<std::optional<float>>{2.0f, 0.0f, 1.0f, std::nullopt}, 0);
  const ArrowColumnPtr table = with_categories(
      arrow_dictionary<std::int16_t>("f1", indices, arrow_numbers<double>("", {-3.0, 10.0, 2.5, 11.0})));
  EXPECT_TRUE(arrow_answers(opened, table) == float_answers(opened, floats.rows(), 3));
}

TEST(CApiArrow, TakesNumbersAsCodesUnlessTheyCouldBeNames) {
  const std::vector<std::vector<std::string>> clear = {
      {"red", "", "blue"}, {"0", "1", "2"}, {"red", "1", "blue"}};
  const std::vector<std::vector<std::string>> ambiguous = {
      {"1", "2", "3"}, {"red", "7", "blue"}, {"2", "1", "0.0"}};
  const std::vector<std::optional<std::int64_t>> codes = {2, 0, std::nullopt, 1};
  FloatRows floats(codes.size(), 3);
  floats.set(0, drawn<float>(codes.size(), 1), 0);
  floats.set(1, codes, 0);
  floats.set(2, drawn<float>(codes.size(), 2), 0);
  const ArrowColumnPtr table = with_categories(arrow_numbers<std::int64_t>("f1", codes));
  Model model = named_forest(std::nan(""));
  for (const auto& names : clear) {
    model.categories[0].names = names;
    const Opened opened(compiled(model, ""));
    EXPECT_TRUE(arrow_answers(opened, table) == float_answers(opened, floats.rows(), 3)) << names[1];
  }
  for (const auto& names : ambiguous) {
    model.categories[0].names = names;
    const Opened opened(compiled(model, ""));
    expect_failure(predict_raw(opened, arrow_rows(table)), FVM_REFUSED,
                   "column \"f1\": its numbers may be names or codes of categories");
    const ArrowColumnPtr none = with_categories(arrow_numbers<std::int64_t>("f1", {}));
    EXPECT_EQ(predict_raw(opened, arrow_rows(none)), FVM_OK) << fvm_last_error();
  }
}

TEST(CApiArrow, RefusesCategoriesThatTheTrainerRefuses) {
  for (const char* const schedule : {"", "encode(u8)"}) {
    const Opened opened(compiled(named_forest(std::nullopt), schedule));
    const auto dictionary = [](std::uint8_t second) {
      return with_categories(
          arrow_dictionary<std::uint8_t>("f1", {0, second}, arrow_texts<std::int32_t>("", {"red", "new"})));
    };
    EXPECT_EQ(predict_raw(opened, arrow_rows(dictionary(0))), FVM_OK) << fvm_last_error();
    expect_failure(predict_raw(opened, arrow_rows(dictionary(1))), FVM_REFUSED,
                   "row 1, column 1: its category is not one of the model's");
    expect_failure(predict_raw(opened, arrow_rows(with_categories(arrow_texts<std::int32_t>("f1", {"new"})))),
                   FVM_REFUSED, "row 0, column 1: \"new\" is not one of the model's 3 categories");
  }
}

/// An integer without an equal float64 would stand for another category: a text of other digits, or a nearby number.
TEST(CApiArrow, RefusesDictionariesThatWouldBeRounded) {
  const std::int64_t inexact = (std::int64_t{1} << 53) + 1;
  const Opened opened(compiled(small_forest({.features = 1}), ""));
  const auto status = [&](std::optional<std::int64_t> second) {
    return predict_raw(
        opened,
        arrow_rows(arrow_table(
            1, 0, arrow_dictionary<std::int8_t>("f0", {0}, arrow_numbers<std::int64_t>("", {1, second})))));
  };
  EXPECT_EQ(status(inexact - 1), FVM_OK) << fvm_last_error();
  EXPECT_EQ(status(std::nullopt), FVM_OK) << fvm_last_error();
  expect_usage(status(inexact), "column \"f0\", dictionary: value 1: 9007199254740993 is no float64 number");
}

/// Features that are compared as text take texts in all of Arrow's forms.
TEST(CApiArrow, HashesTexts) {
  const Model model = derived_model(5);
  const Opened opened(compiled(model, "encode(u8)"));
  const std::size_t count = 70, width = model.num_features;
  const std::vector<double> rows = derived_rows(9, count);
  const fvm_rows dense = FVM_DENSE_ROWS(rows.data(), FVM_TYPE_FLOAT64, count, width);
  const Answers expected = c_answers(opened.open(), opened.context(), dense);
  const auto column = [&](std::size_t f) {
    std::vector<std::optional<double>> values;
    for (std::size_t r = 0; r < count; ++r) values.push_back(rows[r * width + f]);
    return values;
  };
  const auto texts = [&](std::size_t f) {
    Texts all;
    for (const auto& number : column(f)) all.push_back(std::to_string(static_cast<std::int64_t>(*number)));
    return all;
  };
  std::vector<std::optional<std::int32_t>> indices;
  for (std::size_t r = 0; r < count; ++r) indices.push_back(static_cast<std::int32_t>(r));
  const auto name = [&](std::size_t f) { return model.feature_names.empty() ? "" : model.feature_names[f]; };
  const ArrowColumnPtr table =
      arrow_table(count, 0, arrow_numbers<double>(name(0), column(0)),
                  arrow_texts<std::int32_t>(name(1), texts(1), 4), arrow_numbers<double>(name(2), column(2)),
                  arrow_views(name(3), texts(3)), arrow_numbers<double>(name(4), column(4)),
                  arrow_dictionary<std::int32_t>(name(5), indices, arrow_texts<std::int64_t>("", texts(5))));
  EXPECT_TRUE(arrow_answers(opened, table) == expected);
  const ArrowColumnPtr with_null = arrow_table(
      1, 0, arrow_numbers<double>(name(0), {1.0}), arrow_texts<std::int32_t>(name(1), {std::nullopt}),
      arrow_numbers<double>(name(2), {1.0}), arrow_numbers<double>(name(3), {1.0}),
      arrow_numbers<double>(name(4), {1.0}), arrow_numbers<double>(name(5), {1.0}));
  expect_failure(predict_raw(opened, arrow_rows(with_null)), FVM_REFUSED,
                 "row 0, column 1: nan is not a category");
}

TEST(CApiArrow, MatchesByPositionWithoutNames) {
  Model model = small_forest({.features = 2});
  model.feature_names.clear();
  const Opened opened(compiled(model, "encode(u8)"));
  const auto a = drawn<float>(5, 1), b = drawn<float>(5, 2);
  FloatRows floats(5, 2);
  floats.set(0, a, 0);
  floats.set(1, b, 0);
  EXPECT_TRUE(
      arrow_answers(opened, arrow_table(5, 0, arrow_numbers<float>("x", a), arrow_numbers<float>("", b))) ==
      float_answers(opened, floats.rows(), 2));
  expect_usage(predict_raw(opened, arrow_rows(arrow_table(5, 0, arrow_numbers<float>("x", a)))),
               "the model's features have no names: there must be 2 columns in its order, not 1");
}

TEST(CApiArrow, NamesColumnsThatAreMissingExtraOrThereTwice) {
  const Opened opened(compiled(small_forest({.features = 3}), ""));
  const auto column = [](const char* name) { return arrow_numbers<float>(name, {1.0f}); };
  const auto status = [&](const ArrowColumnPtr& table, fvm_extra extra) {
    fvm_rows rows = arrow_rows(table);
    rows.extra = extra;
    return predict_raw(opened, rows);
  };
  const ArrowColumnPtr lacking = arrow_table(1, 0, column("f1"), column("g"));
  expect_usage(
      status(lacking, FVM_EXTRA_ERROR),
      "columns that the model needs are missing: \"f0\", \"f2\"; columns that it does not have: \"g\"");
  expect_usage(status(lacking, FVM_EXTRA_IGNORE), "columns that the model needs are missing: \"f0\", \"f2\"");
  const ArrowColumnPtr extra =
      arrow_table(1, 0, column("f1"), column("g"), column("f0"), column("f2"), column("h"));
  expect_usage(status(extra, FVM_EXTRA_ERROR), "columns that the model does not have: \"g\", \"h\"");
  EXPECT_EQ(status(extra, FVM_EXTRA_IGNORE), FVM_OK) << fvm_last_error();
  expect_usage(
      status(arrow_table(1, 0, column("f1"), column("f0"), column("f2"), column("f0")), FVM_EXTRA_ERROR),
      "column \"f0\": is there twice");
  expect_usage(status(extra, 2), "rows.extra is 2, not FVM_EXTRA_ERROR or FVM_EXTRA_IGNORE");
}

TEST(CApiArrow, RefusesOtherTypesByName) {
  const Opened opened(compiled(small_forest({.features = 1}), ""));
  const std::pair<const char*, const char*> types[] = {
      {"tdD", "date (\"tdD\")"},
      {"tsu:UTC", "timestamp (\"tsu:UTC\")"},
      {"d:10,2", "decimal (\"d:10,2\")"},
      {"+l", "list (\"+l\")"},
      {"+s", "struct (\"+s\")"},
      {"+ud:0,1", "union (\"+ud:0,1\")"},
      {"z", "binary (\"z\")"},
      {"vz", "binary view (\"vz\")"},
      {"w:3", "fixed binary (\"w:3\")"},
      {"+r", "run-end encoded (\"+r\")"},
      {"?", "\"?\""},
      {"", "\"\""},
  };
  const std::vector<float> values = {1.0f};
  for (const auto& [format, words] : types) {
    const ArrowColumnPtr table = arrow_table(1, 0, arrow_column(format, "f0", {{}, bytes_of(values)}, 1));
    expect_failure(predict_raw(opened, arrow_rows(table)), FVM_REFUSED,
                   std::string("column \"f0\": its type is ") + words);
  }
  expect_failure(predict_raw(opened, arrow_rows(arrow_table(1, 0, arrow_texts<std::int32_t>("f0", {"a"})))),
                 FVM_REFUSED, "column \"f0\": it holds the text \"a\", and the model expects numbers here");
  expect_failure(
      predict_raw(opened,
                  arrow_rows(arrow_table(
                      1, 0, arrow_dictionary<std::int8_t>("f0", {0}, arrow_texts<std::int32_t>("", {"a"}))))),
      FVM_REFUSED, "column \"f0\": it holds the text \"a\", and the model expects numbers here");
  expect_failure(predict_raw(opened, arrow_rows(arrow_numbers<float>("f0", {1.0f}))), FVM_REFUSED,
                 "rows: the array's type is \"f\", not a struct");
}

/// A change to a table of one column that makes it contradict itself, and what the message says.
struct Damage {
  std::function<void(ArrowColumn& table, ArrowColumn& column)> make;
  const char* message;
};

void expect_damages(const Opened& opened, const std::function<ArrowColumnPtr()>& column,
                    const std::vector<Damage>& damages) {
  ASSERT_EQ(predict_raw(opened, arrow_rows(arrow_table(2, 1, column()))), FVM_OK) << fvm_last_error();
  for (const Damage& damage : damages) {
    const ArrowColumnPtr table = arrow_table(2, 1, column());
    damage.make(*table, *table->children[0]);
    expect_usage(predict_raw(opened, arrow_rows(table)), damage.message);
  }
}

TEST(CApiArrow, FindsContradictionsInNumbers) {
  const Opened opened(compiled(small_forest({.features = 1}), "encode(u8)"));
  const auto column = [] { return arrow_numbers<float>("f0", {1.0f, std::nullopt, 2.0f}, 5); };
  const std::vector<Damage> damages = {
      {[](auto& t, auto&) { t.array.length = -1; }, "rows: its length is -1"},
      {[](auto& t, auto&) { t.array.offset = -1; }, "rows: its offset is -1"},
      {[](auto& t, auto&) { t.array.offset = INT64_MAX; }, "more than memory holds"},
      {[](auto& t, auto&) { t.array.n_buffers = 2; }, "rows: it has 2 buffers, its type has 1"},
      {[](auto& t, auto&) { t.array.buffers = nullptr; }, "rows: it has no buffers"},
      {[](auto& t, auto&) { t.array.null_count = -2; }, "rows: its null_count is -2"},
      {[](auto& t, auto&) { t.array.null_count = 1; }, "1 values are null, and there are no validity bits"},
      {[](auto& t, auto&) { t.array.n_children = 2; }, "the array has 2 children, its schema 1"},
      {[](auto& t, auto&) { t.array.n_children = t.schema.n_children = -1; }, "children"},
      {[](auto& t, auto&) { t.array.children = nullptr; }, "rows: child 0 is null"},
      {[](auto& t, auto&) { t.schema.children = nullptr; }, "rows: child 0 is null"},
      {[](auto& t, auto&) { t.child_arrays[0] = nullptr; }, "rows: child 0 is null"},
      {[](auto& t, auto&) { t.child_schemas[0] = nullptr; }, "rows: child 0 is null"},
      {[](auto& t, auto&) { t.array.release = nullptr; }, "rows: its array has been released"},
      {[](auto& t, auto&) { t.schema.release = nullptr; }, "rows: the schema has been released"},
      {[](auto&, auto& c) { c.array.release = nullptr; }, "column \"f0\": its array has been released"},
      {[](auto&, auto& c) { c.schema.release = nullptr; }, "column \"f0\": its schema has been released"},
      {[](auto&, auto& c) { c.schema.format = nullptr; }, "column \"f0\": its schema has no format"},
      {[](auto&, auto& c) { c.array.length = 2; }, "column \"f0\": it has 2 values; the rows end at 3"},
      {[](auto&, auto& c) { c.array.length = -3; }, "column \"f0\": its length is -3"},
      {[](auto&, auto& c) { c.array.offset = -3; }, "column \"f0\": its offset is -3"},
      {[](auto&, auto& c) { c.array.offset = INT64_MAX; }, "more than memory holds"},
      {[](auto&, auto& c) { c.array.offset = INT64_MAX - 3; }, "more than memory holds"},
      {[](auto&, auto& c) { c.array.n_buffers = 1; }, "column \"f0\": it has 1 buffers, its type has 2"},
      {[](auto&, auto& c) { c.array.n_buffers = -1; }, "column \"f0\": it has no buffers"},
      {[](auto&, auto& c) { c.array.buffers = nullptr; }, "column \"f0\": it has no buffers"},
      {[](auto&, auto& c) { c.buffer_pointers[1] = nullptr; }, "column \"f0\": its values have no buffer"},
      {[](auto&, auto& c) {
         c.buffer_pointers[0] = nullptr;
         c.array.null_count = 1;
       },
       "column \"f0\": 1 values are null, and there are no validity bits"},
      {[](auto&, auto& c) { c.array.dictionary = &c.array; },
       "has a dictionary in the array or in the schema alone"},
  };
  expect_damages(opened, column, damages);
}

TEST(CApiArrow, FindsContradictionsInTexts) {
  const auto named = [] {
    Model model = small_forest({.features = 1});
    model.categories = {{0, {"a", "b"}, std::nan("")}};
    return model;
  };
  const Opened opened(compiled(named(), ""));
  const Texts texts = {"a", "b", "a text of more than twelve bytes"};
  expect_damages(
      opened, [&] { return arrow_texts<std::int32_t>("f0", texts); },
      {{[](auto&, auto& c) { c.array.n_buffers = 2; }, "column \"f0\": it has 2 buffers, its type has 3"},
       {[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[3] = 1; },
        "row 1, column 0: its text ends before it begins"},
       {[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[1] = -5; },
        "row 0, column 0: its text ends before it begins"},
       {[](auto&, auto& c) { c.buffer_pointers[2] = nullptr; },
        "row 0, column 0: its text is in a buffer that the column does not have"}});
  expect_damages(
      opened, [&] { return arrow_views("f0", texts); },
      {{[](auto&, auto& c) { c.array.n_buffers = 2; }, "column \"f0\": it has fewer than 3 buffers"},
       {[](auto&, auto& c) { c.buffer_pointers[4] = nullptr; }, "the sizes of its texts have no buffer"},
       {[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[8] = -1; },
        "row 1, column 0: its text has a negative size"},
       {[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[10] = 2; },
        "row 1, column 0: its text is in a buffer that the column does not have"},
       {[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[11] = 99; },
        "row 1, column 0: its text leaves its buffer"}});
  const auto dictionary = [&] {
    return arrow_dictionary<std::int32_t>("f0", {0, 1, 2}, arrow_texts<std::int32_t>("", texts));
  };
  expect_damages(opened, dictionary,
                 {{[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[2] = 3; },
                   "row 1, column 0: index 3 in a dictionary of 3"},
                  {[](auto&, auto& c) { reinterpret_cast<std::int32_t*>(c.buffers[1].data())[1] = -1; },
                   "row 0, column 0: index -1 in a dictionary of 3"},
                  {[](auto&, auto& c) { c.dictionary->array.length = -1; },
                   "column \"f0\": its dictionary's length is -1"},
                  {[](auto&, auto& c) { c.dictionary->array.length = INT64_MAX; },
                   "column \"f0\": its dictionary's length is 9223372036854775807"},
                  {[](auto&, auto& c) { c.dictionary->array.n_buffers = 1; },
                   "column \"f0\", dictionary: it has 1 buffers, its type has 3"},
                  {[](auto&, auto& c) { c.schema.format = "f"; },
                   "column \"f0\": the indices of its dictionary have the type \"f\""}});
}

TEST(CApiArrow, RefusesRowsThatAreNullAsAWhole) {
  const Opened opened(compiled(small_forest({.features = 1}), ""));
  const ArrowColumnPtr table = arrow_table(2, 1, arrow_numbers<float>("f0", {1.0f, 2.0f, 3.0f}));
  const Bytes bits = {std::byte{0b011}};
  table->buffer_pointers[0] = bits.data();
  table->array.null_count = 1;
  expect_failure(predict_raw(opened, arrow_rows(table)), FVM_REFUSED, "rows: row 1 is null as a whole");
}

TEST(CApiArrow, NeedsItsTwoStructsAndNoOtherField) {
  const Opened opened(compiled(small_forest({.features = 1}), ""));
  const ArrowColumnPtr table = arrow_table(1, 0, arrow_numbers<float>("f0", {1.0f}));
  const auto expect = [&](const char* message, const std::function<void(fvm_rows&)>& change) {
    fvm_rows rows = arrow_rows(table);
    change(rows);
    expect_usage(predict_raw(opened, rows), message);
  };
  expect("the Arrow array is null", [](fvm_rows& rows) { rows.data = nullptr; });
  expect("rows.schema is null", [](fvm_rows& rows) { rows.schema = nullptr; });
  expect("rows.row_count is 2, the Arrow array's length is 1", [](fvm_rows& rows) { rows.row_count = 2; });
  expect("rows.column_count is set, which Arrow rows do not have",
         [](fvm_rows& rows) { rows.column_count = 1; });
  expect("rows.type is set, which Arrow rows do not have", [](fvm_rows& rows) { rows.type = FVM_TYPE_INT8; });
  expect("rows.kind is 6, not", [](fvm_rows& rows) { rows.kind = 6; });
  const float value = 0;
  fvm_rows dense = FVM_DENSE_ROWS(&value, FVM_TYPE_FLOAT32, 1, 1);
  dense.schema = &table->schema;
  expect_usage(predict_raw(opened, dense), "rows.schema is set, which dense rows do not have");
}

}  // namespace
}  // namespace forestvm::test::test_c_api_arrow
