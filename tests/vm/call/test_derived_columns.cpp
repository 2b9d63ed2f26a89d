// Columns that programs derive from a row's features, against columns computed one by one and the reference predictor:
// in every layout and form of rows, whole numbers as categories and codes of categories.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/internal/reference.hpp>

#include "conformance/dice.hpp"
#include "support/layout_names.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/breach.hpp"
#include "vm/derived_model.hpp"
#include "vm/host/lookup_codes.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_derived_columns {
namespace {

constexpr std::size_t kRows = 700;  // not a whole number of the blocks in which columns are derived

struct Scores {
  std::vector<float> raw;
  std::vector<std::int32_t> leaves;
  bool operator==(const Scores&) const = default;
};

Scores scores_of(const Predictor& predictor, const AnyRows& rows) {
  const auto context = predictor.make_context();
  const std::size_t count = row_count(rows);
  Scores scores{std::vector<float>(count),
                std::vector<std::int32_t>(count * predictor.program().meta().num_trees)};
  const auto raw = predictor.predict(*context, rows, OutputKind::Raw, scores.raw.data());
  EXPECT_TRUE(raw.ok()) << raw.error().text();
  const auto leaf = predictor.predict_leaf(*context, rows, scores.leaves.data());
  EXPECT_TRUE(leaf.ok()) << leaf.error().text();
  return scores;
}

Scores judged(const Model& model, const std::vector<double>& rows) {
  const Model plain = plain_model(model);
  const Reference judge =
      reference_predict(plain, widened(model, rows), rows.size() / model.num_features).value();
  return {{judge.raw.begin(), judge.raw.end()}, judge.leaf};
}

RowBlock block_of(const std::vector<double>& rows, std::size_t width, bool hashed = false) {
  return {rows.data(), rows.size() / width, width, RowType::Float64, 1, hashed};
}

std::unique_ptr<Predictor> loaded(const Model& model, const std::string& schedule,
                                  const BackendOptions& options = {}) {
  return std::move(host_backend(compiled(model, schedule), options).value());
}

/// Returns why a call is refused; an empty text if it is not.
std::string refusal_of(const Predictor& predictor, const AnyRows& rows) {
  std::vector<float> out(row_count(rows));
  const auto done = predictor.predict(*predictor.make_context(), rows, OutputKind::Raw, out.data());
  return done.ok() ? "" : done.error().text();
}

const std::vector<std::string>& schedules() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made = {
        kRichSchedule,
        "encode(u8)",
        "tile(batch, b0, b1, 8); cache(b0, 1); encode(u8)",
        "plan(8); layout(tree, sparse); plan(BATCH); encode(u8)",
        "plan(8); encode(u8); plan(BATCH); layout(tree, array)",
        "tile(batch, b0, b1, 100); reorder(b0, tree, b1); parallel(b0); layout(tree, sparse); cache(b0)"};
    for (const std::string& layout : support::layout_names()) {
      made.push_back("layout(tree, " + layout + ")");
      made.push_back("layout(tree, " + layout + "); encode(u8)");
    }
    return made;
  }();
  return all;
}

TEST(DerivedColumns, GiveTheSameAnswersInEveryLayoutAndSchedule) {
  unsigned run = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Model model = derived_model(seed);
    const std::vector<double> rows = derived_rows(seed, kRows);
    const Scores expected = judged(model, rows);
    for (const std::string& schedule : schedules()) {
      SCOPED_TRACE(schedule + ", seed " + std::to_string(seed));
      const auto result = compile(model, parse_schedule(schedule).value(), {});
      if (!result.ok()) continue;  // a layout of codes without encode(u8), or the reverse
      ++run;
      for (const unsigned threads : {1u, 2u}) {
        const auto predictor = host_backend(result->program, {.threads = threads});
        EXPECT_EQ(scores_of(**predictor, block_of(rows, 6)), expected);
      }
    }
  }
  EXPECT_GE(run, 3 * 6 + 3 * support::layout_names().size());
}

TEST(DerivedColumns, GiveTheSameAnswersInEveryBatch) {
  const Model model = derived_model(4);
  const std::vector<double> rows = derived_rows(4, kRows);
  const Scores expected = judged(model, rows);
  for (const char* const schedule : {"encode(u8)", "layout(tree, sparse)"})
    for (const unsigned threads : {1u, 2u}) {
      const auto predictor = loaded(model, schedule, {.threads = threads});
      for (const std::size_t count : {1u, 2u, 63u, 64u, 65u, 257u, 600u}) {
        const RowBlock block{rows.data() + 6 * 7, count, 6, RowType::Float64};
        const Scores found = scores_of(*predictor, block);
        EXPECT_TRUE(std::equal(found.raw.begin(), found.raw.end(), expected.raw.begin() + 7)) << count;
        EXPECT_TRUE(std::equal(found.leaves.begin(), found.leaves.end(), expected.leaves.begin() + 7 * 12));
      }
    }
}

TEST(DerivedColumns, GiveTheSameAnswersOnEveryTarget) {
  const Model model = derived_model(5);
  const std::vector<double> rows = derived_rows(5, kRows);
  for (const std::string& target : support::targets_here())
    EXPECT_EQ(scores_of(*loaded(model, "encode(u8)", {.target = target}), block_of(rows, 6)),
              judged(model, rows));
}

/// Lookups of one category with few tests share a search; other lookups in the model have keys of more parts.
TEST(DerivedColumns, GiveTheSameAnswersIfSearchesAreShared) {
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    const Model model = derived_model(seed, Categories::One);
    const std::vector<double> rows = derived_rows(seed, kRows);
    const Scores expected = judged(model, rows);
    for (const std::string& target : support::targets_here())
      EXPECT_EQ(scores_of(*loaded(model, "encode(u8)", {.target = target}), block_of(rows, 6)), expected)
          << target << ", seed " << seed;
  }
}

/// Returns the number of searches per row that find the codes of a program's lookups; 0 if the program cannot find
/// codes.
std::size_t searches(const Program& program) {
  const host::Target& target = *host::find_target("auto").value();
  const auto encoder = host::load_encoder(program.encoded_features(), program.ranks(), program.columns(),
                                          program.category_columns(), row_width(program.meta()));
  return host::LookupCodes(program, encoder, target).searches();
}

/// Returns a forest over a number and a category that reads each column of each lookup.
Model forest_of(std::vector<Lookup> lookups) {
  std::vector<Tree> trees;
  std::uint32_t column = 2;
  for (const Lookup& lookup : lookups)
    for (const std::uint32_t end = column + lookup.width; column < end; ++column)
      trees.push_back(support::split(column, 1.5, support::leaf(1),
                                     support::split(column, 2.5, support::leaf(2), support::leaf(3))));
  Model forest = support::model_of(std::move(trees));
  forest.num_features = 2;
  forest.hashed_features = {1};
  forest.lookups = std::move(lookups);
  return forest;
}

TEST(DerivedColumns, OfOneCategoryAndUpToFourTestsShareASearch) {
  std::vector<Lookup> lookups;
  for (unsigned tests = 0; tests < 7; ++tests) {
    Lookup& lookup = lookups.emplace_back(Lookup{{1}, {}, {}, {5}, 1, {1, 2}});
    for (unsigned i = 0; i < tests; ++i) lookup.value_tests.push_back({0, static_cast<float>(i), false});
  }
  const Model model = forest_of(std::move(lookups));
  EXPECT_EQ(searches(compiled(model, "encode(u8)")), 3u);  // five lookups share one, two have one each
  EXPECT_EQ(searches(compiled(model, "layout(tree, array)")), 0u);
}

/// Each key gets a slot of its own, even if almost all slots of a table are used.
TEST(DerivedColumns, OfAnyNumberOfKeysAreCoded) {
  Dice dice(10);
  std::vector<Lookup> lookups;
  for (const unsigned keys : {0u, 1u, 2u, 10u, 224u, 225u, 1818u, 14561u})
    for (const bool categories : {false, true}) {
      Lookup& lookup = lookups.emplace_back(Lookup{{1}, {}, {}, {}, 1, std::vector<float>(keys + 1, 1)});
      for (unsigned i = 0; i < 5; ++i) lookup.value_tests.push_back({0, static_cast<float>(i), false});
      for (std::uint64_t key = 0; key < keys; ++key)
        lookup.keys.push_back(categories ? key_with(0, static_cast<std::int32_t>(key)) : dice.bits());
    }
  const Model model = forest_of(std::move(lookups));
  EXPECT_EQ(searches(compiled(model, "encode(u8)")), model.lookups.size());
}

/// Returns a lookup of a category and some tests, whose table has most of the keys.
Lookup lookup_of(Dice& dice, unsigned categories, unsigned tests, std::uint32_t width) {
  Lookup lookup{{1}, {}, {}, {}, width, {}};
  for (unsigned i = 0; i < tests; ++i)
    lookup.value_tests.push_back({0, static_cast<float>(i) * 0.5f - 1, i % 2 == 0});
  for (unsigned category = 0; category < categories; ++category)
    for (unsigned outcomes = 0; outcomes < 1u << tests; ++outcomes) {
      std::uint64_t key = key_with(0, category_code(std::to_string(category)));
      for (unsigned i = 0; i < tests; ++i) key = key_with(key, outcomes >> i & 1);
      if (dice.percent(90)) lookup.keys.push_back(key);
    }
  for (std::size_t i = 0; i < (lookup.keys.size() + 1) * width; ++i)
    lookup.values.push_back(static_cast<float>(dice.below(4)));
  return lookup;
}

/// Tables of codes have one column or several, and are read in other ways if they are small.
TEST(DerivedColumns, OfTablesOfEachSizeAndNumberOfColumns) {
  Dice dice(31);
  for (const unsigned categories : {1u, 3u, 6u, 12u, 25u, 50u, 110u, 230u}) {
    std::vector<Lookup> lookups;
    for (unsigned tests = 0; tests < 6; ++tests)
      for (std::uint32_t width = 1; width < 7; ++width)
        lookups.push_back(lookup_of(dice, categories, tests, width));
    const Model model = forest_of(std::move(lookups));
    std::vector<double> rows;
    for (std::size_t row = 0; row < kRows; ++row) {
      rows.push_back(dice.percent(10) ? std::nan("") : static_cast<double>(dice.below(9)) * 0.25 - 1);
      rows.push_back(static_cast<double>(dice.below(categories + categories / 8 + 1)));
    }
    const Scores expected = judged(model, rows);
    for (const std::string& target : support::targets_here())
      EXPECT_EQ(scores_of(*loaded(model, "encode(u8)", {.target = target}), block_of(rows, 2)), expected)
          << target << ", " << categories << " categories";
  }
}

/// Makes tables that no compiler makes, but that verified programs may have.
TEST(DerivedColumns, OfTablesWithKeysTwiceAndDefaultsThatDiffer) {
  const Model model = derived_model(9);
  const std::vector<double> rows = derived_rows(9, kRows);
  const auto scores = [&](const char* schedule, const auto& damage) {
    ProgramParts parts = parts_of(compiled(model, schedule));
    for (const LookupDesc& lookup : parts.lookups)
      for (std::uint64_t slot = 0; slot + 2 < lookup.slot_count; ++slot)
        damage(lookup, slot, parts.lookup_words.data() + lookup.first_word + slot * slot_words(lookup));
    return scores_of(*host_backend(build_program(parts).value(), {}).value(), block_of(rows, 6));
  };
  const Scores undamaged = judged(model, rows);
  const auto expect_same = [&](const auto& damage) {
    const Scores damaged = scores("layout(tree, array)", damage);
    EXPECT_NE(damaged, undamaged);
    EXPECT_EQ(damaged, scores("encode(u8)", damage));
  };
  expect_same([](const LookupDesc& lookup, std::uint64_t slot, std::uint32_t* words) {
    const float value = slot % 2 == 0 ? -4.0f : 4.0f;
    if (key_at(words) == lookup.unused_key) words[kKeyWords] = std::bit_cast<std::uint32_t>(value);
  });
  expect_same([](const LookupDesc& lookup, std::uint64_t slot, std::uint32_t* words) {
    if (slot % 3 == 0) std::copy_n(words, kKeyWords, words + slot_words(lookup));
  });
}

TEST(DerivedColumns, OfRowsInEveryForm) {
  const Model model = derived_model(6);
  const std::vector<double> rows = derived_rows(6, kRows);
  const Scores expected = judged(model, rows);
  std::vector<double> columns(rows.size()), nothing;
  for (std::size_t i = 0; i < rows.size(); ++i) columns[i % 6 * kRows + i / 6] = rows[i];
  std::vector<double> apart(kRows * 9, 0.5);
  for (std::size_t i = 0; i < rows.size(); ++i) apart[i / 6 * 9 + i % 6] = rows[i];
  const std::vector<double> codes = hashed_rows(model, rows);
  for (const char* const schedule : {"encode(u8)", "layout(tree, array)"}) {
    const auto predictor = loaded(model, schedule);
    EXPECT_EQ(scores_of(*predictor, RowBlock{columns.data(), kRows, 1, RowType::Float64, kRows}), expected);
    EXPECT_EQ(scores_of(*predictor, RowBlock{apart.data(), kRows, 9, RowType::Float64}), expected);
    EXPECT_EQ(scores_of(*predictor, block_of(codes, 6, true)), expected);
  }
}

/// Rows of float32, float64 and integers with equal values have equal answers.
TEST(DerivedColumns, OfRowsInEveryType) {
  const Model model = derived_model(7);
  std::vector<double> rows = derived_rows(7, kRows);
  for (double& value : rows) value = std::isfinite(value) ? std::clamp(std::trunc(value), -100.0, 100.0) : 7;
  const Scores expected = judged(model, rows);
  const std::vector<float> floats(rows.begin(), rows.end());
  const std::vector<std::int8_t> bytes(rows.begin(), rows.end());
  const std::vector<std::int32_t> words(rows.begin(), rows.end());
  const std::vector<std::int64_t> longs(rows.begin(), rows.end());
  const std::vector<double> codes = hashed_rows(model, rows);
  const std::vector<std::int32_t> word_codes(codes.begin(), codes.end());
  const std::vector<std::int64_t> long_codes(codes.begin(), codes.end());
  const auto predictor = loaded(model, "encode(u8)");
  EXPECT_EQ(scores_of(*predictor, RowBlock{floats.data(), kRows, 6}), expected);
  EXPECT_EQ(scores_of(*predictor, RowBlock{bytes.data(), kRows, 6, RowType::Int8}), expected);
  EXPECT_EQ(scores_of(*predictor, RowBlock{words.data(), kRows, 6, RowType::Int32}), expected);
  EXPECT_EQ(scores_of(*predictor, RowBlock{longs.data(), kRows, 6, RowType::Int64}), expected);
  EXPECT_EQ(scores_of(*predictor, RowBlock{word_codes.data(), kRows, 6, RowType::Int32, 1, true}), expected);
  EXPECT_EQ(scores_of(*predictor, RowBlock{long_codes.data(), kRows, 6, RowType::Int64, 1, true}), expected);
}

/// Sparse rows of float64 values that are not 0. Each value is listed twice; the first of both does not count.
struct Sparse {
  explicit Sparse(const std::vector<double>& rows, std::size_t width) : offsets{0} {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != 0 || std::signbit(rows[i])) {
        if (i % 7 == 0) add(i % width, 3);
        add(i % width, rows[i]);
      }
      if (i % width == width - 1) offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
  }
  void add(std::size_t column, double value) {
    columns.push_back(static_cast<std::int32_t>(column));
    values.push_back(value);
  }
  CsrRows csr(Absent absent, bool hashed = false) const {
    return {offsets.size() - 1, offsets.data(), columns.data(),   values.data(),
            values.size(),      absent,         RowType::Float64, hashed};
  }
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

TEST(DerivedColumns, OfSparseRows) {
  const Model model = derived_model(8);
  const std::vector<double> rows = derived_rows(8, kRows);
  const Sparse sparse(rows, 6), codes(hashed_rows(model, rows), 6);
  for (const char* const schedule : {"encode(u8)", "layout(tree, array)"})
    for (const unsigned threads : {1u, 2u}) {
      const auto predictor = loaded(model, schedule, {.threads = threads});
      EXPECT_EQ(scores_of(*predictor, sparse.csr(Absent::Zero)), judged(model, rows));
      EXPECT_EQ(scores_of(*predictor, codes.csr(Absent::Zero, true)), judged(model, rows));
      const std::string missing = refusal_of(*predictor, sparse.csr(Absent::Missing));
      EXPECT_NE(missing.find("nan is not a category"), std::string::npos) << missing;
    }
}

TEST(DerivedColumns, AreEncodedAsTheyArePredicted) {
  const Model model = derived_model(9);
  const std::vector<double> rows = derived_rows(9, kRows);
  const Sparse sparse(rows, 6);
  for (const unsigned threads : {1u, 2u}) {
    const auto predictor = loaded(model, "encode(u8)", {.threads = threads});
    const auto context = predictor->make_context();
    for (const AnyRows& given : {AnyRows(block_of(rows, 6)), AnyRows(sparse.csr(Absent::Zero))}) {
      std::vector<std::uint8_t> codes(coded_bytes(kRows, predictor->program().columns().size()));
      const auto coded = predictor->encode(*context, given, codes);
      ASSERT_TRUE(coded.ok()) << coded.error().text();
      EXPECT_EQ(scores_of(*predictor, *coded), judged(model, rows));
    }
  }
}

TEST(DerivedColumns, DecideTheEncoderAndTheFingerprint) {
  const Program program = compiled(derived_model(1), "encode(u8)");
  const auto differs = [&](const char* what, auto change) {
    Model model = derived_model(1);
    change(model);
    const Program other = compiled(model, "encode(u8)");
    EXPECT_NE(encoder_id(other), encoder_id(program)) << what;
    EXPECT_NE(other.meta().fingerprint, program.meta().fingerprint) << what;
  };
  EXPECT_EQ(encoder_id(compiled(derived_model(1), "encode(u8)")), encoder_id(program));
  differs("a value", [](Model& m) { m.lookups[0].values[0] += 1; });
  differs("a default", [](Model& m) { m.lookups[7].values[0] += 1; });
  differs("a key", [](Model& m) { m.lookups[8].keys[0] = 5; });
  differs("a border", [](Model& m) { m.lookups.back().value_tests.push_back({0, 0.5f, false}); });
  differs("a weight", [](Model& m) { m.computed_columns[0].terms[1].first *= 2; });
  differs("a replacement", [](Model& m) {
    for (ComputedColumn& column : m.computed_columns)
      if (column.kind == ColumnKind::SumReplaced) column.terms[0].second += 1;
  });
  differs("a kind", [](Model& m) { m.computed_columns.back().kind = ColumnKind::Share; });
  differs("a hashed feature", [](Model& m) {
    m.hashed_features = {1, 3};
    for (Lookup& lookup : m.lookups) {
      std::erase(lookup.categories, 5u);
      std::erase_if(lookup.code_tests, [](const CodeTest& test) { return test.feature == 5; });
    }
  });
}

TEST(DerivedColumns, RefuseNumbersThatAreNoCategory) {
  constexpr double kLarge = 9007199254740994;
  for (const unsigned threads : {1u, 2u})
    for (const char* const schedule : {"encode(u8)", "layout(tree, array)"}) {
      const auto predictor = loaded(derived_model(1), schedule, {.threads = threads});
      for (const double wrong : {0.5, -1e-9, kLarge, -kLarge, 1e300,
                                 double{std::numeric_limits<float>::infinity()}, std::nan("")}) {
        std::vector<double> rows = derived_rows(1, 2000);
        rows[1300 * 6 + 3] = rows[1900 * 6 + 1] = wrong;
        const std::string text = refusal_of(*predictor, block_of(rows, 6));
        EXPECT_NE(text.find("row 1300, column 3: "), std::string::npos) << text;
        EXPECT_NE(text.find("is not a category: the model compares this feature as text"), std::string::npos)
            << text;
        rows[1300 * 6 + 3] = rows[1900 * 6 + 1] = 1;
        EXPECT_EQ(refusal_of(*predictor, block_of(rows, 6)), "");
      }
    }
  std::vector<std::uint8_t> codes(std::size_t{1} << 20);
  const auto predictor = loaded(derived_model(1), "encode(u8)");
  std::vector<double> rows = derived_rows(1, 100);
  rows[50 * 6 + 5] = 0.25;
  const auto coded = predictor->encode(*predictor->make_context(), block_of(rows, 6), codes);
  ASSERT_FALSE(coded.ok());
  EXPECT_EQ(coded.error().where, "row 50, column 5");
}

TEST(DerivedColumns, RefuseNumbersThatAreNoCode) {
  const auto predictor = loaded(derived_model(1), "encode(u8)");
  for (const double wrong : {0.5, 0x1p31, -0x1p31 - 1, std::nan("")}) {
    std::vector<double> rows = hashed_rows(derived_model(1), derived_rows(1, 10));
    rows[4 * 6 + 5] = wrong;
    const std::string text = refusal_of(*predictor, block_of(rows, 6, true));
    EXPECT_NE(text.find("row 4, column 5: "), std::string::npos) << text;
    EXPECT_NE(text.find("is not a code of a category"), std::string::npos) << text;
  }
  const std::vector<std::int64_t> longs(6, std::int64_t{1} << 31);
  EXPECT_NE(refusal_of(*predictor, RowBlock{longs.data(), 1, 6, RowType::Int64, 1, true}).find("not a code"),
            std::string::npos);
  const std::vector<float> floats(6);
  EXPECT_EQ(refusal_of(*predictor, RowBlock{floats.data(), 1, 6, RowType::Float32, 1, true}),
            "codes of categories are float64, int32 or int64: other types lose digits");
}

/// Integers stand for their decimal text, however large.
TEST(DerivedColumns, IntegersAreCategoriesOfAllTheirDigits) {
  Model model = support::model_of({support::split(1, 0.5, support::leaf(1), support::leaf(2))});
  model.num_features = 1;
  model.hashed_features = {0};
  const auto key = [](const std::string& text) {
    constexpr std::uint64_t kFactor = 0x4906ba494954cb65;
    return kFactor * kFactor * static_cast<std::uint64_t>(std::int64_t{category_code(text)});
  };
  model.lookups = {{{0},
                    {},
                    {},
                    {key("18446744073709551615"), key("-9223372036854775808"), key("9007199254740993")},
                    1,
                    {1, 1, 1, 0}}};
  const auto predictor = loaded(model, "encode(u8)");
  const std::vector<std::uint64_t> unsigned_rows = {UINT64_MAX, UINT64_MAX - 1, 9007199254740993,
                                                    9007199254740992};
  const std::vector<std::int64_t> signed_rows = {INT64_MIN, INT64_MIN + 1, -1, 9007199254740993};
  EXPECT_EQ(scores_of(*predictor, RowBlock{unsigned_rows.data(), 4, 1, RowType::UInt64}).raw,
            (std::vector<float>{2.5f, 1.5f, 2.5f, 1.5f}));
  EXPECT_EQ(scores_of(*predictor, RowBlock{signed_rows.data(), 4, 1, RowType::Int64}).raw,
            (std::vector<float>{2.5f, 1.5f, 1.5f, 2.5f}));
}

/// Many keys with one home lie in one run of slots, which making and searching them must not take long to cross.
TEST(DerivedColumns, TablesOfKeysWithOneHomeAreMadeInTime) {
  Model model = derived_model(1);
  Lookup& lookup = model.lookups[0];
  lookup.width = 1;
  lookup.keys.clear();
  model.computed_columns.clear();
  for (std::uint64_t i = 0; i < 200'000; ++i) lookup.keys.push_back(UINT64_MAX - i);
  lookup.values.assign(200'001, 1.0f);
  model.trees.resize(1);
  model.round_begins = {0, 1};
  model.trees[0] = support::split(6, 0.5, support::leaf(1), support::leaf(2));
  const std::vector<double> rows = derived_rows(1, 100);
  for (const char* const schedule : {"layout(tree, array)", "encode(u8)"})
    EXPECT_EQ(scores_of(*loaded(model, schedule), block_of(rows, 6)).raw, std::vector<float>(100, 2.5f));
}

TEST(DerivedColumns, AreListed) {
  Model model = support::model_of({support::split(4, 0.5, support::leaf(1), support::leaf(2))});
  model.hashed_features = {1};
  model.lookups = {{{1}, {{0, 0.25f, true}}, {{1, 7}}, {5}, 2, {1, 2, 3, 4}}};
  model.computed_columns = {{ColumnKind::Sum, {{0, 0.5f, 0}, {2, -1, 0}}},
                            {ColumnKind::SumReplaced, {{3, 2, 0.5f}}}};
  const Program program = compiled(model, "encode(u8)");
  const std::vector<std::string> expected = {"lookup 0 of f1, f0 > 0.25 or NaN, f1 == 7 in 3 slots, value 0",
                                             "lookup 0 of f1, f0 > 0.25 or NaN, f1 == 7 in 3 slots, value 1",
                                             "0.5 * f0 + -1 * f2", "2 * f3, missing values replaced"};
  EXPECT_EQ(derived_column_texts(program), expected);
  EXPECT_NE(program.disassemble().find("; f6: 0.5 * f0 + -1 * f2\n"), std::string::npos)
      << program.disassemble();
  EXPECT_EQ(thresholds(program).at(4), std::vector<double>{0.5});
  const auto again = assemble(program.disassemble(), program);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(image_of(*again), image_of(program));
}

TEST(DerivedColumns, AreRefusedWhereValuesChange) {
  const auto refusal = [](auto change) {
    Model model = derived_model(1);
    change(model);
    const auto result = compile(model, parse_schedule("encode(u8)").value(), {});
    return result.ok() ? "" : result.error().text();
  };
  EXPECT_EQ(refusal([](Model& m) { m.row_type = m.score_type = ScalarType::Float64; }),
            "model: derived columns of float64 rows: not lowered yet");
  EXPECT_EQ(refusal([](Model& m) { m.tiny_is_zero = true; }),
            "model: derived columns of rows whose tiny numbers are zero: not lowered yet");
  EXPECT_EQ(refusal([](Model& m) { m.whole_features = {0}; }),
            "model: derived columns beside features of whole numbers: not lowered yet");
  EXPECT_EQ(refusal([](Model& m) { m.trees[0].nodes[0].missing = Missing::Zero; }),
            "tree 0, node 0: zero is missing here, in a model with derived columns: not lowered yet");
}

TEST(DerivedColumns, AreVerified) {
  Model model = support::model_of({support::split(4, 0.5, support::leaf(1), support::leaf(2))});
  model.hashed_features = {1, 3};
  model.lookups = {{{1}, {{0, 0.25f, true}}, {{3, 7}}, {5}, 2, {1, 2, 3, 4}}, {{3}, {}, {}, {}, 1, {1}}};
  model.computed_columns = {{ColumnKind::Sum, {{0, 0.5f, 0}, {2, -1, 0}}},
                            {ColumnKind::SumReplaced, {{2, 2, 0.5f}}}};
  const ProgramParts parts = parts_of(compiled(model, "encode(u8)"));
  const char* const lookup = "lookups section: record 1";
  const char* const part = "key_parts section: record 0";
  const Breach breaches[] = {
      {"a hashed feature outside", [](ProgramParts& p) { p.hashed_features[1] = 4; },
       "hashed_features section: record 1", "outside the row"},
      {"hashed twice", [](ProgramParts& p) { p.hashed_features[1] = 1; }, "hashed_features section: record 1",
       "does not ascend"},
      {"too many columns", [](ProgramParts& p) { ++p.meta.derived_columns; }, "meta section",
       "6 derived columns, but"},
      {"columns without end", [](ProgramParts& p) { p.meta.derived_columns = UINT32_MAX; }, "meta section",
       "at most"},
      {"zero is missing", [](ProgramParts& p) { p.zero_missing = {0}; }, "meta section", "zeros are missing"},
      {"a kind", [](ProgramParts& p) { p.key_parts[0].kind = static_cast<KeyPartKind>(4); }, part,
       "kind is unknown"},
      {"a reserved byte", [](ProgramParts& p) { p.key_parts[0].reserved[2] = 1; }, part, "a reserved byte"},
      {"a feature outside", [](ProgramParts& p) { p.key_parts[1].feature = 4; },
       "key_parts section: record 1", "outside the row"},
      {"a category of numbers", [](ProgramParts& p) { p.key_parts[0].feature = 0; }, part, "has no codes"},
      {"a code of numbers", [](ProgramParts& p) { p.key_parts[2].feature = 2; },
       "key_parts section: record 2", "has no codes"},
      {"a number of codes", [](ProgramParts& p) { p.key_parts[1].feature = 3; },
       "key_parts section: record 1", "codes instead of numbers"},
      {"an operand", [](ProgramParts& p) { p.key_parts[0].operand = 1; }, part, "no operand"},
      {"a part too many",
       [](ProgramParts& p) {
         p.key_parts.push_back({1, 0, KeyPartKind::Category, {}});
       },
       "key_parts section", "5 parts, but the lookups have 4"},
      {"parts twice", [](ProgramParts& p) { p.lookups[1].first_part = 0; }, lookup,
       "its parts do not follow"},
      {"parts outside", [](ProgramParts& p) { p.lookups[1].part_count = 2; }, lookup, "its parts leave"},
      {"a table twice", [](ProgramParts& p) { p.lookups[1].first_word = 0; }, lookup,
       "its table does not follow"},
      {"no columns", [](ProgramParts& p) { p.lookups[1].width = 0; }, lookup, "no columns"},
      {"wide columns", [](ProgramParts& p) { p.lookups[1].width = UINT32_MAX; }, lookup, "its table leaves"},
      {"no homes", [](ProgramParts& p) { p.lookups[1].home_count = 0; }, lookup, "begin outside"},
      {"homes outside", [](ProgramParts& p) { p.lookups[1].home_count = p.lookups[1].slot_count + 1; },
       lookup, "begin outside"},
      {"many slots", [](ProgramParts& p) { p.lookups[1].slot_count = UINT32_MAX; }, lookup,
       "its table leaves"},
      {"a reserved field", [](ProgramParts& p) { p.lookups[1].reserved = 1; }, lookup, "reserved"},
      {"no end", [](ProgramParts& p) { p.lookups[1].unused_key = 9; }, lookup,
       "the last slot of its table is in use"},
      {"words too many", [](ProgramParts& p) { p.lookup_words.push_back(0); }, "lookup_words section",
       "but the tables"},
      {"a rule", [](ProgramParts& p) { p.computed_columns[0].kind = static_cast<ColumnKind>(kColumnKinds); },
       "computed_columns section: record 0", "kind is unknown"},
      {"a term too few", [](ProgramParts& p) { p.computed_columns[1].kind = ColumnKind::Share; },
       "computed_columns section: record 1", "another number of terms"},
      {"a term of a later column", [](ProgramParts& p) { p.column_terms[2].feature = 8; },
       "column_terms section: record 2", "nor computed before"},
      {"a term of a lookup", [](ProgramParts& p) { p.column_terms[2].feature = 4; },
       "column_terms section: record 2", "nor computed before"},
      {"terms twice", [](ProgramParts& p) { p.computed_columns[1].first_term = 0; },
       "computed_columns section: record 1", "do not follow"},
      {"terms outside", [](ProgramParts& p) { p.computed_columns[1].term_count = 9; },
       "computed_columns section: record 1", "leave the"},
      {"terms too many", [](ProgramParts& p) { p.column_terms.push_back({}); }, "column_terms section",
       "4 terms, but the columns have 3"},
      {"a term outside", [](ProgramParts& p) { p.column_terms[2].feature = 9; },
       "column_terms section: record 2", "is no feature"},
      {"a term of codes", [](ProgramParts& p) { p.column_terms[2].feature = 3; },
       "column_terms section: record 2", "codes instead of numbers"},
      {"a split outside", [](ProgramParts& p) { p.thresholds[0].feature = 9; },
       "thresholds section: record 0", "outside the row"},
      {"an encoded column outside", [](ProgramParts& p) { p.encoded_features[0].feature = 9; },
       "encoded_features section: record 0", "outside the row"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts, breach);
  model.score_type = ScalarType::Float64;
  expect_refusal(parts_of(compiled(model, "encode(u8)")),
                 {"float64 rows", [](ProgramParts& p) { p.meta.row_type = ScalarType::Float64; },
                  "meta section", "derived columns of rows that are compared in float64"});
}

}  // namespace
}  // namespace forestvm::test::test_derived_columns
