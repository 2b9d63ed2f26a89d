// The verifier's rules for rank codes and plans: a good program that is broken in exactly one way is refused,
// and the refusal names the place and the rule.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "support/small_models.hpp"
#include "vm/hand_program.hpp"

namespace forestvm::test::test_verify_encoder {
namespace {

/// Returns trees in tables over three features, two of them with columns for either side of missing values.
ProgramParts coded_program() {
  ProgramParts parts = parts_of(compiled(small_forest(), "encode(u8)"));
  EXPECT_EQ(parts.encoded_features.size(), 3u);
  EXPECT_GT(parts.columns.size(), 3u);
  return parts;
}

TEST(VerifyEncoder, RefusesFeaturesOutOfPlace) {
  const auto second = [](auto change) {
    return [change](ProgramParts& p) { change(p.encoded_features[1]); };
  };
  const char* const record = "encoded_features section: record 1";
  expect_refusals(
      coded_program(),
      {{"outside the row", second([](EncodedFeature& f) { f.feature = 3; }), record, "outside the row"},
       {"far outside", second([](EncodedFeature& f) { f.feature = UINT32_MAX; }), record, "outside the row"},
       {"twice", second([](EncodedFeature& f) { f.feature = 0; }), record, "does not ascend"},
       {"descending",
        [](ProgramParts& p) { std::swap(p.encoded_features[0].feature, p.encoded_features[1].feature); },
        record, "does not ascend"},
       {"thresholds overlap", second([](EncodedFeature& f) { --f.first_threshold; }), record,
        "thresholds do not follow"},
       {"thresholds left out", second([](EncodedFeature& f) { ++f.first_threshold; }), record,
        "thresholds do not follow"},
       {"no thresholds", second([](EncodedFeature& f) { f.threshold_count = 0; }), record,
        "thresholds do not follow"},
       {"all thresholds there can be", second([](EncodedFeature& f) { f.threshold_count = UINT32_MAX; }),
        record, "leave the ranks section"},
       {"columns overlap", second([](EncodedFeature& f) { --f.first_column; }), record,
        "columns do not follow"},
       {"columns left out", second([](EncodedFeature& f) { ++f.first_column; }), record,
        "columns do not follow"},
       {"no columns", second([](EncodedFeature& f) { f.column_count = 0; }), record, "columns do not follow"},
       {"all columns there can be", second([](EncodedFeature& f) { f.column_count = UINT32_MAX; }), record,
        "leave the columns section"},
       {"no features", [](ProgramParts& p) { p.encoded_features.clear(); }, "columns section",
        "the features have 0"}});
}

TEST(VerifyEncoder, RefusesRanksThatDoNotAscend) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const char* const record = "encoded_features section: record 0";
  expect_refusals(
      coded_program(),
      {{"not a number", [](ProgramParts& p) { p.ranks[0] = kNan; }, record, "not a number"},
       {"equal", [](ProgramParts& p) { p.ranks[1] = p.ranks[0]; }, record, "do not ascend"},
       {"equal zeros", [](ProgramParts& p) { p.ranks[0] = -0.0f, p.ranks[1] = 0.0f; }, record,
        "do not ascend"},
       {"descending", [](ProgramParts& p) { std::swap(p.ranks[0], p.ranks[1]); }, record, "do not ascend"},
       {"one too few", [](ProgramParts& p) { p.ranks.pop_back(); }, "encoded_features section: record 2",
        "leave the ranks section"},
       {"one too many", [](ProgramParts& p) { p.ranks.push_back(1e9f); }, "ranks section",
        "but the features have"}});
}

/// The verifier reads several thresholds at a time.
TEST(VerifyEncoder, FindsBadRanksAnywhere) {
  const ProgramParts good = parts_of(compiled(small_forest({.depth = 6}), "encode(u8)"));
  for (std::size_t i = 0; i < good.encoded_features.size(); ++i) {
    const EncodedFeature& feature = good.encoded_features[i];
    ASSERT_GT(feature.threshold_count, 8u);
    const std::string record = "encoded_features section: record " + std::to_string(i);
    for (std::uint32_t k = 0; k < feature.threshold_count; ++k) {
      ProgramParts parts = good;
      parts.ranks[feature.first_threshold + k] = std::numeric_limits<float>::quiet_NaN();
      expect_refusal(parts, record.c_str(), "a threshold is not a number");
      if (k == 0) continue;
      parts.ranks[feature.first_threshold + k] = parts.ranks[feature.first_threshold + k - 1];
      expect_refusal(parts, record.c_str(), "its thresholds do not ascend");
    }
  }
  ProgramParts stump = parts_of(
      compiled(support::model_of({support::split(0, 1, support::leaf(1), support::leaf(2))}), "encode(u8)"));
  ASSERT_EQ(stump.ranks.size(), 1u);
  stump.ranks[0] = std::numeric_limits<float>::quiet_NaN();
  expect_refusal(stump, "encoded_features section: record 0", "a threshold is not a number");
}

TEST(VerifyEncoder, RefusesColumnsOutsideTheirFeature) {
  const auto second = [](auto change) { return [change](ProgramParts& p) { change(p.columns[1]); }; };
  const char* const column = "columns section: column 1";
  expect_refusals(
      coded_program(),
      {{"no thresholds", second([](ColumnDesc& c) { c.count = 0; }), column, "size is wrong"},
       {"256 thresholds", second([](ColumnDesc& c) { c.count = 256; }), column, "size is wrong"},
       {"65535 thresholds", second([](ColumnDesc& c) { c.count = UINT16_MAX; }), column, "size is wrong"},
       {"one past its feature", second([](ColumnDesc& c) { ++c.count; }), column, "leaves its feature"},
       {"begins past its feature", second([](ColumnDesc& c) { c.first = 1000; }), column,
        "leaves its feature"},
       {"an end that wraps", second([](ColumnDesc& c) { c.first = UINT32_MAX; }), column,
        "leaves its feature"},
       {"a third side", second([](ColumnDesc& c) { c.missing_highest = 2; }), column, "reserved"},
       {"a reserved byte", second([](ColumnDesc& c) { c.reserved = 1; }), column, "reserved"},
       {"one too few", [](ProgramParts& p) { p.columns.pop_back(); }, "encoded_features section: record 2",
        "leave the columns section"},
       {"one too many",
        [](ProgramParts& p) {
          p.columns.push_back({0, 1, 0, 0});
        },
        "columns section", "but the features have"},
       {"more than byte offsets reach",
        [](ProgramParts& p) {
          p.columns.resize(kMaxColumns + 1, ColumnDesc{0, 1, 0, 0});
        },
        "columns section", "at most 4194304"}});
}

/// Returns a program with columns of ranks and, for at least two features, of memberships.
ProgramParts categorical_program() {
  Model model = small_forest();
  for (Tree& tree : model.trees) make_categorical(tree);
  ProgramParts parts = parts_of(compiled(model, "encode(u8)"));
  EXPECT_GT(parts.category_columns.size(), 3u);
  EXPECT_GT(parts.columns.size(), parts.category_columns.size());
  return parts;
}

/// Stores a list of categories as the record's words.
void list(ProgramParts& parts, std::size_t record, const std::vector<std::uint32_t>& categories) {
  CategoryColumn& column = parts.category_columns[record];
  const auto at = parts.category_words.begin() + column.first_word;
  parts.category_words.erase(at, at + column.word_count);
  parts.category_words.insert(parts.category_words.begin() + column.first_word, categories.begin(),
                              categories.end());
  const auto more = static_cast<std::uint32_t>(categories.size()) - column.word_count;
  column.word_count += more;
  column.first_category = 0;
  column.listed = 1;
  for (std::size_t i = record + 1; i < parts.category_columns.size(); ++i)
    parts.category_columns[i].first_word += more;
}

TEST(VerifyEncoder, RefusesListsOfCategoriesThatAreNone) {
  const ProgramParts good = categorical_program();
  const auto listed = [](const std::vector<std::uint32_t>& categories) {
    return [categories](ProgramParts& p) { list(p, 1, categories); };
  };
  ProgramParts lists = good;
  list(lists, 1, {0, 7, kMaxCategories - 1});
  ASSERT_TRUE(build_program(lists).ok());
  const char* const record = "category_columns section: record 1";
  expect_refusals(
      good, {{"descending", listed({1, 7, 6}), record, "do not ascend"},
             {"twice", listed({7, 7}), record, "do not ascend"},
             {"above what floats name", listed({7, kMaxCategories}), record, "float32 numbers do not name"},
             {"none", listed({}), record, "words do not follow"},
             {"a first one too",
              [](ProgramParts& p) {
                list(p, 1, {7});
                p.category_columns[1].first_category = 32;
              },
              record, "its first is 0"}});
}

TEST(VerifyEncoder, RefusesCategoriesOutOfPlace) {
  const auto second = [](auto change) {
    return [change](ProgramParts& p) { change(p.category_columns[1]); };
  };
  const auto column = [](auto change) {
    return [change](ProgramParts& p) { change(p.columns[p.columns.size() - p.category_columns.size() + 1]); };
  };
  const char* const record = "category_columns section: record 1";
  const ProgramParts good = categorical_program();
  ASSERT_NE(good.category_columns.front().feature, good.category_columns.back().feature);
  expect_refusals(
      good,
      {{"outside the row", second([](CategoryColumn& c) { c.feature = 3; }), record, "outside the row"},
       {"far outside", second([](CategoryColumn& c) { c.feature = UINT32_MAX; }), record, "outside the row"},
       {"descending", [](ProgramParts& p) { p.category_columns[0].feature = 2; }, record, "descends"},
       {"words overlap", second([](CategoryColumn& c) { --c.first_word; }), record, "words do not follow"},
       {"words left out", second([](CategoryColumn& c) { ++c.first_word; }), record, "words do not follow"},
       {"no words", second([](CategoryColumn& c) { c.word_count = 0; }), record, "words do not follow"},
       {"all words there can be", second([](CategoryColumn& c) { c.word_count = UINT32_MAX; }), record,
        "leave the category_words section"},
       {"a category in mid-word", second([](CategoryColumn& c) { c.first_category = 31; }), record,
        "does not begin a word"},
       {"above what floats name", second([](CategoryColumn& c) { c.first_category = 1u << 24; }), record,
        "float32 numbers do not name"},
       {"categories that wrap", second([](CategoryColumn& c) { c.first_category = 0xffffffe0u; }), record,
        "float32 numbers do not name"},
       {"a third rule", second([](CategoryColumn& c) { c.fractions = 2; }), record, "rule"},
       {"a third form", second([](CategoryColumn& c) { c.listed = 2; }), record, "reserved bit"},
       {"reserved", second([](CategoryColumn& c) { c.reserved[0] = 1; }), record, "reserved bit"},
       {"reserved too", second([](CategoryColumn& c) { c.reserved[1] = 1; }), record, "reserved bit"},
       {"one word too few", [](ProgramParts& p) { p.category_words.pop_back(); },
        "category_columns section: record", "leave the category_words section"},
       {"one word too many", [](ProgramParts& p) { p.category_words.push_back(0); }, "category_words section",
        "but the sets have"},
       {"one column too few", [](ProgramParts& p) { p.columns.pop_back(); }, "columns section",
        "the categorical splits"},
       {"one record too many",
        [](ProgramParts& p) { p.category_columns.push_back(p.category_columns.back()); }, "columns section",
        "the categorical splits"},
       {"no records", [](ProgramParts& p) { p.category_columns.clear(); }, "columns section",
        "the categorical splits 0"},
       {"three codes", column([](ColumnDesc& c) { c.count = 2; }), record, "codes are not 0 and 1"},
       {"no codes", column([](ColumnDesc& c) { c.count = 0; }), record, "codes are not 0 and 1"},
       {"codes of a threshold", column([](ColumnDesc& c) { c.first = 1; }), record, "codes are not 0 and 1"},
       {"a third side", column([](ColumnDesc& c) { c.missing_highest = 2; }), record, "reserved"},
       {"a reserved byte", column([](ColumnDesc& c) { c.reserved = 1; }), record, "reserved"}});
}

TEST(VerifyEncoder, RefusesTestsThatNoColumnHas) {
  const ProgramParts good = coded_program();
  ProgramParts parts = good;
  for (ColumnDesc& column : parts.columns) column.count = 1;
  expect_refusal(parts, "groups section", "a code is above its column's ranks");
  parts = good;
  const std::uint32_t dropped = parts.encoded_features.back().column_count;
  parts.columns.resize(parts.columns.size() - dropped);
  parts.ranks.resize(parts.ranks.size() - parts.encoded_features.back().threshold_count);
  parts.encoded_features.pop_back();
  expect_refusal(parts, "groups section", "a column does not exist");
}

const Inst kInit = inst(Op::Init, {0, 0}), kEncode = inst(Op::Encode, {0}),
           kWalk = inst(Op::Walk, {0, 1, 0, 0, 1});

/// Puts `code` at pc 1, after the code that sets a0 and before the code that writes the outputs.
ProgramParts with_code(std::vector<Inst> code) {
  ProgramParts parts = coded_program();
  parts.code = std::move(code);
  insert(parts, 0, kInit);
  const Inst store = inst(Op::Store, {0, 0});
  append(parts, {inst(Op::When, {0, 2}), store, inst(Op::End, {0}), inst(Op::When, {1, 5}), store,
                 inst(Op::End, {3}), inst(Op::When, {2, 8}), inst(Op::Label, {0, 0, 3}), inst(Op::End, {6}),
                 inst(Op::When, {3, 12}), kEncode, inst(Op::Leaves, {1, 0, 0, 1}), inst(Op::End, {9}),
                 inst(Op::Halt, {})});
  return parts;
}

void expect_good(std::vector<Inst> code) {
  const auto program = build_program(with_code(std::move(code)));
  EXPECT_TRUE(program.ok()) << program.error().text();
}

TEST(VerifyEncoder, AcceptsWalksOfEncodedRows) {
  expect_good({kEncode, kWalk});
  expect_good({kEncode, kEncode, kWalk});
  expect_good({kEncode, inst(Op::For, {2, 0, 64, 3}), inst(Op::Walk, {0, 1, 2, 0, 1}), inst(Op::End, {1})});
  expect_good({kEncode, inst(Op::Slice, {2, 0, 0, 9}), inst(Op::Walk, {0, 1, 2, 0, 1})});
  expect_good({inst(Op::For, {2, 0, 64, 2}), inst(Op::Encode, {2}), inst(Op::End, {0}), kWalk});
  expect_good({inst(Op::For, {2, 1, 2, 2}), kEncode, inst(Op::End, {0}), kWalk});
  expect_good({inst(Op::Par, {2, 0, 64, 3}), inst(Op::Encode, {2}), inst(Op::Walk, {0, 1, 2, 0, 1}),
               inst(Op::End, {0})});
  expect_good({inst(Op::When, {3, 3}), kEncode, inst(Op::Leaves, {1, 0, 0, 1}), inst(Op::End, {0})});
}

TEST(VerifyEncoder, RefusesWalksOfRowsThatMayNotBeEncoded) {
  const auto refuse = [](const char* name, std::vector<Inst> code, const char* where) {
    SCOPED_TRACE(name);
    expect_refusal(with_code(std::move(code)), where, "are not encoded here");
  };
  refuse("never", {kWalk}, "pc 1 (walk)");
  refuse("leaf numbers", {inst(Op::When, {3, 2}), inst(Op::Leaves, {1, 0, 0, 1}), inst(Op::End, {0})},
         "pc 2 (leaves)");
  refuse("afterwards", {kWalk, kEncode}, "pc 1 (walk)");
  refuse("for another output", {inst(Op::When, {3, 2}), kEncode, inst(Op::End, {0}), kWalk}, "pc 4 (walk)");
  refuse("in another plan", {inst(Op::Plan, {0, 7, 2}), kEncode, inst(Op::End, {0}), kWalk}, "pc 4 (walk)");
  refuse("in a loop that has no iterations",
         {inst(Op::Slice, {3, 1, 6, 9}), inst(Op::For, {2, 3, 2, 3}), kEncode, inst(Op::End, {1}), kWalk},
         "pc 5 (walk)");
  refuse("a part of each iteration's",
         {inst(Op::For, {2, 0, 64, 3}), inst(Op::Slice, {3, 2, 0, 63}), inst(Op::Encode, {3}),
          inst(Op::End, {0}), kWalk},
         "pc 5 (walk)");
  refuse("a part of them", {inst(Op::Slice, {2, 0, 0, 9}), inst(Op::Encode, {2}), kWalk}, "pc 3 (walk)");
}

TEST(VerifyEncoder, RefusesToEncodeWhatCannotBe) {
  ProgramParts plain = parts_of(compiled(small_forest(), "layout(tree, sparse16)"));
  insert(plain, 0, kEncode);
  expect_refusal(plain, "pc 0 (encode)", "the program has no encoder");
  expect_refusal(with_code({inst(Op::Encode, {1})}), "pc 1 (encode)", "holds trees, expected rows");
  expect_refusal(with_code({inst(Op::Encode, {2})}), "pc 1 (encode)", "read before it is set");
  expect_refusal(with_code({inst(Op::Encode, {99})}), "pc 1 (encode)", "no such range register");
  expect_refusal(with_code({inst(Op::Par, {2, 1, 2, 2}), kEncode, inst(Op::End, {0})}), "pc 2 (encode)",
                 "inside a parallel loop over trees");
  expect_refusal(with_code({inst(Op::Par, {2, 0, 2, 2}), kEncode, inst(Op::End, {0})}), "pc 2 (encode)",
                 "not part of the innermost enclosing loop over rows");
}

TEST(VerifyPlans, RefusesBlocksThatAreNone) {
  ProgramParts good = with_code({inst(Op::Plan, {0, 7, 2}), kInit, inst(Op::End, {0}),
                                 inst(Op::Plan, {8, UINT32_MAX, 5}), kInit, inst(Op::End, {3})});
  const auto first = [](Inst with) { return [with](ProgramParts& p) { p.code[1] = with; }; };
  Inst unused = good.code[1];
  unused.small[kSmallOperands - 1] = 1;
  expect_refusals(
      good,
      {{"for no number of rows", first(inst(Op::Plan, {8, 7, 3})), "pc 1 (plan)", "no call has so many rows"},
       {"for none at all", first(inst(Op::Plan, {UINT32_MAX, 0, 3})), "pc 1 (plan)",
        "no call has so many rows"},
       {"an end outside the code", first(inst(Op::Plan, {0, 7, 21})), "pc 1 (plan)", "outside the code"},
       {"an end far outside", first(inst(Op::Plan, {0, 7, UINT32_MAX})), "pc 1 (plan)", "outside the code"},
       {"an end that is none", first(inst(Op::Plan, {0, 7, 2})), "pc 1 (plan)", "its end does not name it"},
       {"another's end", first(inst(Op::Plan, {0, 7, 6})), "pc 1 (plan)", "its end does not name it"},
       {"itself", first(inst(Op::Plan, {0, 7, 1})), "pc 1 (plan)", "its end does not name it"},
       {"a used unused field", first(unused), "pc 1 (plan)", "unused operand field"},
       {"not closed", [](ProgramParts& p) { p.code[6] = kInit; }, "pc 4 (plan)", "its end does not name it"},
       {"crossing",
        [](ProgramParts& p) {
          p.code[2] = inst(Op::When, {0, 4});
          p.code[4] = inst(Op::End, {2});
        },
        "pc 3 (end)", "does not close the innermost"}});
}

TEST(VerifyPlans, RegistersEndWithTheirPlan) {
  expect_refusal(with_code({inst(Op::Plan, {0, 7, 2}), inst(Op::Slice, {2, 0, 0, 4}), inst(Op::End, {0}),
                            inst(Op::Init, {0, 2})}),
                 "pc 4 (init)", "r2 is read before it is set");
}

}  // namespace
}  // namespace forestvm::test::test_verify_encoder
