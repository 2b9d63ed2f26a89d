// Rank codes are exact: whatever a row's bits are, trees in tables give the reference predictor's leaves on
// every CPU target, for any number of rows and values between them; the encoder writes the codes of the
// requested rows and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/reference.hpp>
#include <forestvm/named_schedules.hpp>

#include "support/floats.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/float_settings.hpp"
#include "vm/guarded_memory.hpp"
#include "vm/host/load_encoder.hpp"
#include "vm/host/load_program.hpp"
#include "vm/row_ranges.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_encoder {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();
constexpr float kMax = std::numeric_limits<float>::max();

/// Numbers at which comparisons are likely to go wrong.
const std::vector<float> kSpecial = {
    0.0f, -0.0f, kLeast,    -kLeast,    2 * kLeast, 0x1p-126f,       -0x1p-126f,     0x1p-126f - kLeast,
    kMax, -kMax, kInfinity, -kInfinity, 1.0f,       1.0f + 0x1p-23f, 1.0f - 0x1p-24f};

float above(float x) { return std::nextafter(x, kInfinity); }
float below(float x) { return std::nextafter(x, -kInfinity); }

/// Returns `count` consecutive floats.
std::vector<float> neighbours(float first, std::size_t count) {
  std::vector<float> values{first};
  while (values.size() < count) values.push_back(above(values.back()));
  return values;
}

/// Returns ascending, distinct thresholds; many are near zero, with both signs and denormals.
std::vector<float> thresholds_drawn(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  while (values.size() < count) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 280) - 149);
    const float value = scale * (static_cast<float>(random() % 2001) - 1000.0f) / 1000.0f + 0.0f;
    if (!std::isnan(value)) values.push_back(value);  // zero times infinity
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  return values;
}

/// Returns the thresholds of each feature; no tree tests a feature without any.
std::vector<std::vector<float>> nasty_thresholds() {
  std::vector<std::vector<float>> all{kSpecial, {}, {0.0f}, {-0.0f}, {kInfinity}, {-kInfinity}, {kLeast}};
  for (const unsigned count :
       {2u, 3u, 15u, 16u, 31u, 32u, 33u, 63u, 64u, 127u, 128u, 254u, 255u, 256u, 510u, 511u, 700u})
    all.push_back(thresholds_drawn(count, count));
  all.push_back({});
  all.push_back(neighbours(-20 * kLeast, 40));
  all.push_back(neighbours(1.0f - 0x1p-23f, 300));
  all.push_back(neighbours(-kInfinity, 5));
  return all;
}

enum class Missing { Right, Left, Either };

/// Returns a tree that finds a value's position among thresholds [begin, end) of a list.
Tree search_tree(std::uint32_t feature, const std::vector<float>& list, std::size_t begin, std::size_t end,
                 Missing missing) {
  if (begin == end) return support::leaf(static_cast<double>(begin) - 100.25);
  const std::size_t middle = begin + (end - begin) / 2;
  const bool left = missing == Missing::Left || (missing == Missing::Either && middle % 2 == 0);
  return support::split(feature, static_cast<double>(list[middle]),
                        search_tree(feature, list, begin, middle, missing),
                        search_tree(feature, list, middle + 1, end, missing), left);
}

/// Returns a tree of `depth` levels whose tests are of several features.
Tree mixed_tree(const std::vector<std::vector<float>>& all, std::uint32_t depth, std::uint32_t features,
                unsigned ragged, std::mt19937& random) {
  if (depth == 0 || random() % 100 < ragged)
    return support::leaf(static_cast<double>(random() % 1000) / 8 - 50);
  auto feature = static_cast<std::uint32_t>(random() % features);
  while (all[feature].empty()) feature = static_cast<std::uint32_t>(random() % features);
  const float threshold = all[feature][random() % all[feature].size()];
  const Tree left = mixed_tree(all, depth - 1, features, ragged, random);
  const Tree right = mixed_tree(all, depth - 1, features, ragged, random);
  return support::split(feature, static_cast<double>(threshold), left, right, random() % 2 == 0);
}

Model model_over(const std::vector<std::vector<float>>& all, std::vector<Tree> trees) {
  Model model = support::model_of(std::move(trees), 3);
  model.num_features = static_cast<std::uint32_t>(all.size());
  return model;
}

/// Returns a model with every threshold of a feature, and missing values on one side, on the other, or
/// alternating.
Model search_model(const std::vector<std::vector<float>>& all, Missing missing) {
  constexpr std::size_t kTogether = 230;  // thresholds per tree
  std::vector<Tree> trees;
  for (std::uint32_t f = 0; f < all.size(); ++f)
    for (std::size_t begin = 0; begin < all[f].size(); begin += kTogether)
      trees.push_back(search_tree(f, all[f], begin, std::min(begin + kTogether, all[f].size()), missing));
  return model_over(all, std::move(trees));
}

/// Returns a model whose levels have every number of slots and columns that walkers distinguish.
Model mixed_model(const std::vector<std::vector<float>>& all) {
  std::mt19937 random(7);
  std::vector<Tree> trees{support::leaf(0.5)};
  for (const std::uint32_t features : {1u, 3u, 5u, 9u, static_cast<std::uint32_t>(all.size())})
    for (std::uint32_t depth = 1; depth <= 8; ++depth)
      for (const unsigned ragged : {0u, 12u})
        trees.push_back(mixed_tree(all, depth, features, ragged, random));
  trees.push_back(support::chain(60));
  return model_over(all, std::move(trees));
}

/// Rows with every threshold, its neighbours and the special numbers in each feature; shuffled, so that
/// features are independent. `padding` values lie between rows.
struct Rows {
  std::vector<float> values;
  std::size_t count = 0, stride = 0;

  RowBlock block(std::size_t first, std::size_t rows) const {
    return {values.data() + first * stride, rows, stride};
  }
};

Rows nasty_rows(const std::vector<std::vector<float>>& all, std::size_t padding) {
  std::mt19937 random(11);
  std::vector<std::vector<float>> probes;
  Rows rows;
  for (const std::vector<float>& list : all) {
    std::vector<float> values{kNan, -kNan, 3.5f, -1e20f};
    for (const std::vector<float>* some : {&list, &kSpecial})
      for (const float x : *some) values.insert(values.end(), {below(x), x, above(x)});
    rows.count = std::max(rows.count, values.size());
    std::shuffle(values.begin(), values.end(), random);
    probes.push_back(std::move(values));
  }
  rows.stride = all.size() + padding;
  rows.values.assign(rows.count * rows.stride, kNan);
  for (std::size_t r = 0; r < rows.count; ++r)
    for (std::size_t f = 0; f < all.size(); ++f)
      rows.values[r * rows.stride + f] = probes[f][r % probes[f].size()];
  return rows;
}

/// Returns the reference predictor's answers for the rows.
Reference judged(const Model& model, const Rows& rows) {
  std::vector<float> dense;
  for (std::size_t r = 0; r < rows.count; ++r)
    for (std::size_t f = 0; f < model.num_features; ++f) dense.push_back(rows.values[r * rows.stride + f]);
  return reference_predict(model, dense, rows.count).value();
}

/// Expects that one call for rows [first, first + count) gives the reference's leaves and the bits of its raw
/// scores.
void expect_right(const Predictor& predictor, const Rows& rows, std::size_t first, std::size_t count,
                  const Reference& judge) {
  const ProgramMeta& meta = predictor.program().meta();
  const auto context = predictor.make_context();
  std::vector<std::int32_t> leaves(count * meta.num_trees);
  std::vector<float> raw(count * meta.num_outputs);
  ASSERT_TRUE(predictor.predict_leaf(*context, rows.block(first, count), leaves.data()).ok());
  ASSERT_TRUE(predictor.predict(*context, rows.block(first, count), OutputKind::Raw, raw.data()).ok());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    ASSERT_EQ(leaves[i], judge.leaf[first * meta.num_trees + i])
        << "row " << first + i / meta.num_trees << ", tree " << i % meta.num_trees;
  for (std::size_t i = 0; i < raw.size(); ++i)
    ASSERT_TRUE(support::same_bits(raw[i], static_cast<float>(judge.raw[first * meta.num_outputs + i])))
        << "raw score " << i << ": " << raw[i];
}

/// Compares whole calls, and calls whose numbers of rows do not fill blocks of codes.
void expect_exact(const Model& model, const Rows& rows, const std::string& schedule, unsigned threads = 1) {
  const Program program = compiled(model, schedule);
  ASSERT_FALSE(program.columns().empty()) << "the rows are not encoded";
  const Reference judge = judged(model, rows);
  for (const std::string& target : support::targets_here()) {
    SCOPED_TRACE(schedule + ", target " + target);
    const auto predictor = host_backend(program, {threads, target});
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    expect_right(**predictor, rows, 0, rows.count, judge);
    std::size_t first = 0;
    for (const unsigned count : {1u, 7u, 63u, 64u, 65u, 200u})
      for (int i = 0; i < 3; ++i, first = (first + count) % (rows.count - 200))
        expect_right(**predictor, rows, first, count, judge);
  }
}

constexpr const char* kSchedules[] = {
    "encode(u8)",
    "encode(u8); tile(batch, b0, b1, 64); reorder(b0, tree, b1)",
    "encode(u8); tile(batch, b0, b1, 50); reorder(b0, tree, b1)",
    "encode(u8); orderTrees(depth); reorder(tree, batch)",
};

TEST(Encoder, EveryThresholdWithEitherSideForMissingValues) {
  const auto all = nasty_thresholds();
  const Rows rows = nasty_rows(all, 0);
  for (const Missing missing : {Missing::Right, Missing::Left, Missing::Either}) {
    SCOPED_TRACE(static_cast<int>(missing));
    for (const char* schedule : kSchedules) expect_exact(search_model(all, missing), rows, schedule);
  }
}

TEST(Encoder, TreesOfManyFeatures) {
  const auto all = nasty_thresholds();
  for (const char* schedule : kSchedules) expect_exact(mixed_model(all), nasty_rows(all, 0), schedule);
}

TEST(Encoder, RowsWithValuesBetweenThem) {
  const auto all = nasty_thresholds();
  for (const unsigned padding : {1u, 13u}) {
    expect_exact(search_model(all, Missing::Either), nasty_rows(all, padding), "encode(u8)");
    expect_exact(mixed_model(all), nasty_rows(all, padding), "encode(u8)");
  }
}

TEST(Encoder, BlocksInParallel) {
  const auto all = nasty_thresholds();
  const Rows rows = nasty_rows(all, 2);
  for (const char* size : {"1", "50", "64", "128"})
    expect_exact(
        mixed_model(all), rows,
        "encode(u8); tile(batch, b0, b1, " + std::string(size) + "); reorder(b0, tree, b1); parallel(b0)", 3);
}

TEST(Encoder, SettingsOfTheCallerDoNotMatter) {
  const auto all = nasty_thresholds();
  const Model model = search_model(all, Missing::Either);
  const Rows rows = nasty_rows(all, 0);
  const Program program = compiled(model, "encode(u8)");
  const Reference judge = judged(model, rows);
  for (const std::string& target : support::targets_here())
    for (const Setting& setting : kSettings) {
      SCOPED_TRACE(target + ", " + setting.name);
      under(setting, [&] {
        const auto predictor = host_backend(program, {1, target});
        expect_right(**predictor, rows, 0, rows.count, judge);
      });
    }
}

/// Returns a row's code by its definition: the number of the column's thresholds at or below the value.
unsigned code_of(std::span<const float> thresholds, const ColumnDesc& column, float x) {
  if (std::isnan(x)) return column.missing_highest != 0 ? column.count : 0;
  const auto mine = thresholds.subspan(column.first, column.count);
  return static_cast<unsigned>(std::count_if(mine.begin(), mine.end(), [x](float t) { return t <= x; }));
}

/// Encodes a range of `rows` and checks every byte of every block.
void expect_codes(const Program& program, const host::Target& target, const float* rows, std::size_t stride,
                  const Range& range) {
  SCOPED_TRACE("rows " + std::to_string(range.begin) + " to " + std::to_string(range.end));
  constexpr std::uint8_t kUntouched = 0xee;
  const auto loading = host::load_program(program, target, nullptr);
  const host::LoadedProgram& loaded = **loading;
  const auto columns = program.columns();
  const std::uint32_t after = range.end + 2 * kCodeRows;
  std::vector<std::uint8_t> codes(code_bytes(after, columns.size()), kUntouched);
  target.encode({loaded.encoder.tiles, columns.size(), range, rows, stride, codes.data()});
  for (const EncodedFeature& feature : program.encoded_features())
    for (std::uint32_t c = feature.first_column; c < feature.first_column + feature.column_count; ++c)
      for (std::uint32_t row = 0; row < after; ++row) {
        const unsigned found = codes[code_offset(row, columns.size()) + std::size_t{c} * kCodeRows];
        const bool inside = range.begin <= row && row < range.end;
        const auto thresholds = program.ranks().subspan(feature.first_threshold, feature.threshold_count);
        const unsigned wanted = inside ? code_of(thresholds, columns[c], rows[row * stride + feature.feature])
                                       : unsigned{kUntouched};
        ASSERT_EQ(found, wanted) << "feature " << feature.feature << ", column " << c << ", row " << row;
      }
}

TEST(Encoder, WritesTheCodesOfItsRowsAndNoOthers) {
  const auto all = nasty_thresholds();
  const Program program = compiled(search_model(all, Missing::Either), "encode(u8)");
  const Rows rows = nasty_rows(all, 5);
  for (const std::string& name : support::targets_here()) {
    SCOPED_TRACE(name);
    const host::Target& target = **host::find_target(name);
    for (const Range& range : row_ranges(static_cast<std::uint32_t>(rows.count)))
      expect_codes(program, target, rows.values.data(), rows.stride, range);
  }
}

TEST(Encoder, FewRowsOfManyThresholds) {
  // Values of a few rows are searched one by one, through up to four levels of separators.
  const std::vector<std::vector<float>> all{
      thresholds_drawn(4095, 1), thresholds_drawn(4096, 2), thresholds_drawn(5000, 3), {0.5f}};
  const Program program = compiled(search_model(all, Missing::Either), "encode(u8)");
  const Rows rows = nasty_rows(all, 0);
  for (const std::string& name : support::targets_here()) {
    SCOPED_TRACE(name);
    const host::Target& target = **host::find_target(name);
    for (std::uint32_t row = 0, count = 1; row + count <= rows.count; row += 97, count = count % 4 + 1)
      expect_codes(program, target, rows.values.data() + row * rows.stride, rows.stride, {0, count});
  }
}

TEST(Encoder, RowsFartherApartThanVectorsReach) {
  // Vector loads use 32-bit offsets, for strides up to 2^26 and 2^27 values on AVX-512 and AVX2. Tests
  // strides beyond these, and strides of which sixteen or eight times would overflow.
  const std::vector<std::vector<float>> all{thresholds_drawn(40, 1), {}, thresholds_drawn(300, 2)};
  const Program program = compiled(search_model(all, Missing::Either), "encode(u8)");
  constexpr std::uint32_t kRows = 20;
  const Rows near = nasty_rows(all, 0);
  constexpr std::size_t kOne = 1;
  for (const std::size_t stride :
       {kOne << 26, (kOne << 26) + 1, kOne << 27, (kOne << 27) + 1, kOne << 28, (kOne << 29) + 1}) {
    const std::size_t bytes = ((kRows - 1) * stride + all.size()) * sizeof(float);
    const GuardedMemory memory(bytes);
    if (!memory.there()) GTEST_SKIP() << "no address space for " << bytes << " bytes";
    auto* const rows = reinterpret_cast<float*>(memory.at(bytes, GuardedMemory::Against::Back));
    for (std::uint32_t r = 0; r < kRows; ++r)
      std::copy_n(near.values.data() + r * near.stride, all.size(), rows + r * stride);
    for (const std::string& name : support::targets_here()) {
      SCOPED_TRACE(name + ", stride " + std::to_string(stride));
      expect_codes(program, **host::find_target(name), rows, stride, {0, kRows});
    }
  }
}

TEST(Encoder, RowsOfEveryWidthToTheirLastValue) {
  // Adjacent features are encoded together, in tiles that end with the row; distant ones are not; either may
  // follow the other. Nothing behind the last row is read.
  for (const std::uint32_t width :
       {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 12u, 13u, 15u, 16u, 17u, 20u, 31u, 33u, 47u, 100u})
    for (const std::uint32_t every : {1u, 2u, 4u, 5u, 16u, 17u}) {
      std::vector<std::vector<float>> all(width);
      for (std::uint32_t f = 0; f < width; f += f < width / 2 ? 1 : every)
        all[f] = thresholds_drawn(1 + f * 37 % 600, f);
      const Program program = compiled(search_model(all, Missing::Either), "encode(u8)");
      const Rows rows = nasty_rows(all, 0);
      for (const std::string& name : support::targets_here())
        for (const std::uint32_t count : {1u, 2u, 3u, 8u, 15u, 17u, 20u, 33u, 64u, 70u}) {
          SCOPED_TRACE(name + ", width " + std::to_string(width) + ", every " + std::to_string(every));
          const std::size_t values = std::size_t{count} * width;
          const GuardedMemory memory(values * sizeof(float));
          auto* const last =
              reinterpret_cast<float*>(memory.at(values * sizeof(float), GuardedMemory::Against::Back));
          for (std::size_t i = 0; i < values; ++i) last[i] = rows.values[i % rows.values.size()];
          expect_codes(program, **host::find_target(name), last, width, {0, count});
          if (HasFatalFailure()) return;
        }
    }
}

/// Searches compare with padding between the thresholds of two features: infinity must not count as above it,
/// or searches would run past the last threshold.
TEST(Encoder, NothingReachesWhatPadsThresholds) {
  std::vector<EncodedFeature> features;
  std::vector<float> ranks;
  std::vector<ColumnDesc> columns;
  for (const std::uint32_t count : {1u, 2u, 3u, 15u, 16u, 31u, 32u, 40u, 255u}) {
    const auto number = static_cast<std::uint32_t>(features.size());
    features.push_back({number, static_cast<std::uint32_t>(ranks.size()), count, number, 1});
    columns.push_back({0, static_cast<std::uint16_t>(count), 0, 0});
    for (std::uint32_t i = 0; i < count; ++i) ranks.push_back(static_cast<float>(i));
  }
  const host::LoadedEncoder loaded = host::load_encoder(features, ranks, columns, {}, 9);
  for (const float threshold : loaded.thresholds) EXPECT_TRUE(kMax >= threshold || !(kInfinity >= threshold));
  for (std::size_t f = 0; f < features.size(); ++f) {
    const host::FeatureSearch& search = loaded.searches[f];
    const std::size_t all = (std::size_t{1} << search.bits) - 1;
    const auto reached = [](float threshold) { return kInfinity >= threshold; };
    EXPECT_EQ(std::count_if(search.thresholds, search.thresholds + all, reached),
              features[f].threshold_count);
  }
}

TEST(Encoder, TreesWithoutTestsNeedNone) {
  for (const char* name : {"leaves", "none"}) {
    const Model model = support::small_model(name);
    const std::vector<float> rows = small_rows(70, 4);
    const RowBlock block{rows.data(), 70, 4};
    const Answers plain = answers(**host_backend(compiled(model, "")), block);
    for (const std::string& schedule :
         {std::string("encode(auto)"), std::string("encode(u8)"), std::string("layout(tree, tables)"),
          std::string("layout(tree, treeTables)"), std::string("layout(tree, array4)"),
          std::string("layout(tree, array4); unrollWalk(tree)"),
          std::string("plan(3); encode(u8); plan(BATCH); layout(tree, sparse)"),
          print(automatic_schedule(model))}) {
      SCOPED_TRACE(std::string(name) + ": " + schedule);
      const Program program = compiled(model, schedule);
      EXPECT_TRUE(program.columns().empty());
      for (const std::string& target : support::targets_here())
        EXPECT_TRUE(answers(**host_backend(program, {1, target}), block) == plain) << target;
    }
  }
}

}  // namespace
}  // namespace forestvm::test::test_encoder
