// Float64 rows of models that compare in float64, against the reference predictor: on thresholds, one float64 and one
// float32 beside them, and between them, also where float32 cannot tell thresholds apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/reference.hpp>

#include "conformance/dice.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/breach.hpp"
#include "vm/guarded_memory.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_wide_rows {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double above(double x) { return std::nextafter(x, kInfinity); }
double below(double x) { return std::nextafter(x, -kInfinity); }

/// Thresholds of a feature, and how its splits treat missing values.
struct FeatureKind {
  const char* name;
  std::vector<double> thresholds;
  Missing missing;
};

/// Returns `count` thresholds from `first` on, `step` apart.
std::vector<double> series(double first, double step, unsigned count) {
  std::vector<double> all;
  for (unsigned i = 0; i < count; ++i) all.push_back(first + i * step);
  return all;
}

std::vector<FeatureKind> feature_kinds() {
  const double tiny = kTiny, float_max = std::numeric_limits<float>::max();
  return {
      {"plain", series(-1.05, 0.1, 40), Missing::Nan},
      {"float32 numbers", series(-4, 0.25, 40), Missing::None},
      {"Unix times", series(1732233600, 7.5, 60), Missing::Nan},
      {"account numbers", series(1e15, 1, 40), Missing::None},
      {"neighbours", {1, above(1), above(above(1)), 2, below(2), 1 + 0x1p-24, 1 + 0x1p-23}, Missing::Nan},
      {"tiny", {0, 1e-35, tiny, above(tiny), below(tiny), 1e-300, -1e-300, 1e-45, 1, -1e-38}, Missing::None},
      {"zero is missing", {-3.3, -0.7, 0.1, 2.6}, Missing::Zero},
      {"huge",
       {1e300, -1e300, float_max, above(float_max), -float_max, below(-float_max), 3.4e38, kInfinity},
       Missing::Nan},
      {"LightGBM's sentinels", {kInfinity, 1.0000000180025095e-35, 0.5}, Missing::Nan}};
}

Tree drawn_tree(Dice& dice, const std::vector<FeatureKind>& kinds, unsigned depth) {
  if (depth == 0 || dice.percent(10)) return support::leaf(dice.real() - 0.5);
  const auto feature = static_cast<std::uint32_t>(dice.below(kinds.size()));
  Tree tree =
      support::split(feature, dice.pick(kinds[feature].thresholds), drawn_tree(dice, kinds, depth - 1),
                     drawn_tree(dice, kinds, depth - 1), dice.percent(50));
  tree.nodes[0].kind = NodeKind::LessEqual;
  tree.nodes[0].missing = kinds[feature].missing;
  return tree;
}

Model drawn_model(std::uint64_t seed, const std::vector<FeatureKind>& kinds, bool tiny_is_zero,
                  std::size_t count = 30, unsigned depth = 6) {
  Dice dice(seed);
  std::vector<Tree> trees;
  for (std::size_t i = 0; i < count; ++i) trees.push_back(drawn_tree(dice, kinds, depth));
  Model model = support::model_of(std::move(trees));
  model.num_features = static_cast<std::uint32_t>(kinds.size());
  model.row_type = model.score_type = ScalarType::Float64;
  model.tiny_is_zero = tiny_is_zero;
  return model;
}

double drawn_value(Dice& dice, const FeatureKind& kind) {
  const double t = dice.pick(kind.thresholds);
  const auto near = static_cast<float>(std::min(std::max(t, -3e38), 3e38));
  const float inf = std::numeric_limits<float>::infinity();
  switch (dice.below(12)) {
    case 0:
      return t;
    case 1:
      return above(t);
    case 2:
      return below(t);
    case 3:
      return static_cast<double>(near);
    case 4:
      return static_cast<double>(std::nextafter(near, inf));
    case 5:
      return static_cast<double>(std::nextafter(near, -inf));
    case 6:
      return dice.pick(std::vector<double>{kNan, 0.0, -0.0, kTiny, -kTiny, above(kTiny), below(-kTiny),
                                           kInfinity, -kInfinity, 1e308, -1e308, 5e-324, -5e-324, 1e-40});
    case 7:
      return -t;
    default: {
      const double other = dice.pick(kind.thresholds);
      return std::isinf(t) || std::isinf(other) ? dice.real() : t + (other - t) * dice.real();
    }
  }
}

std::vector<double> drawn_rows(std::uint64_t seed, const std::vector<FeatureKind>& kinds, std::size_t count) {
  Dice dice(seed);
  std::vector<double> rows;
  for (std::size_t i = 0; i < count * kinds.size(); ++i)
    rows.push_back(drawn_value(dice, kinds[i % kinds.size()]));
  return rows;
}

struct Scores {
  std::vector<double> raw;
  std::vector<std::int32_t> leaves;
  bool operator==(const Scores&) const = default;
};

Scores scores_of(const Predictor& predictor, const AnyRows& rows) {
  const auto context = predictor.make_context();
  const ProgramMeta& meta = predictor.program().meta();
  Scores scores{std::vector<double>(row_count(rows)),
                std::vector<std::int32_t>(row_count(rows) * meta.num_trees)};
  const auto raw = predictor.predict_wide(*context, rows, OutputKind::Raw, scores.raw.data());
  EXPECT_TRUE(raw.ok()) << raw.error().text();
  EXPECT_TRUE(predictor.predict_leaf(*context, rows, scores.leaves.data()).ok());
  return scores;
}

Scores judged(const Model& model, const std::vector<double>& rows) {
  const Reference judge = reference_predict(model, rows, rows.size() / model.num_features).value();
  return {judge.raw, judge.leaf};
}

/// Owns the arrays to which CsrRows points; every value is present.
struct FullCsr {
  explicit FullCsr(const std::vector<double>& rows, std::size_t width) {
    for (std::size_t i = 0; i <= rows.size(); i += width) offsets.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < rows.size(); ++i) columns.push_back(static_cast<std::int32_t>(i % width));
    csr = {rows.size() / width, offsets.data(), columns.data(),  rows.data(),
           rows.size(),         Absent::Zero,   RowType::Float64};
  }
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  CsrRows csr;
};

std::vector<double> transposed(const std::vector<double>& rows, std::size_t width) {
  std::vector<double> columns(rows.size());
  const std::size_t count = rows.size() / width;
  for (std::size_t i = 0; i < rows.size(); ++i) columns[i % width * count + i / width] = rows[i];
  return columns;
}

std::size_t ranked_features(const Program& program) {
  const auto features = program.wide_features();
  return static_cast<std::size_t>(std::count_if(features.begin(), features.end(),
                                                [](const WideFeature& wide) { return wide.ranked != 0; }));
}

const char* const kSchedules[] = {"", "encode(u8)", "layout(tree, array)", "layout(tree, sparse)",
                                  "plan(8); layout(tree, sparse); plan(BATCH); encode(u8)"};

TEST(WideRows, GoTheTrainersWayOnAndBesideEveryThreshold) {
  const std::vector<FeatureKind> kinds = feature_kinds();
  constexpr std::size_t kRows = 4000;
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    for (const bool tiny_is_zero : {false, true}) {
      const Model model = drawn_model(seed, kinds, tiny_is_zero);
      const std::vector<double> rows = drawn_rows(seed + 100, kinds, kRows);
      const std::vector<double> columns = transposed(rows, kinds.size());
      const FullCsr sparse(rows, kinds.size());
      const Scores expected = judged(model, rows);
      for (const char* const schedule : kSchedules) {
        SCOPED_TRACE(std::string(schedule) + ", seed " + std::to_string(seed));
        const auto predictor = host_backend(compiled(model, schedule));
        EXPECT_GE(ranked_features((*predictor)->program()), 3u);
        EXPECT_EQ(scores_of(**predictor, RowBlock{rows.data(), kRows, kinds.size(), RowType::Float64}),
                  expected);
        EXPECT_EQ(scores_of(**predictor, RowBlock{columns.data(), kRows, 1, RowType::Float64, kRows}),
                  expected);
        EXPECT_EQ(scores_of(**predictor, sparse.csr), expected);
      }
    }
}

/// Rows that end where memory does, for a random model that has `step` features for each feature that it reads. The
/// rows are given as rows that are longer than the model needs, and as columns in which one value in five is null.
class LyingRows {
 public:
  LyingRows(const std::vector<FeatureKind>& kinds, unsigned step, std::size_t count)
      : model_(drawn_model(20 + step, kinds, false)), width_(kinds.size() * step), validity_(count / 8 + 1) {
    model_.num_features = static_cast<std::uint32_t>(width_);
    for (Tree& tree : model_.trees)
      for (Node& node : tree.nodes) node.feature *= step;
    const std::vector<double> drawn = drawn_rows(30 + step, kinds, count);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      for (unsigned copy = 0; copy < step; ++copy) rows_.push_back(copy == 0 ? drawn[i] : 0.5);
    with_nulls_ = rows_;
    for (std::size_t row = 0; row < count; ++row)
      if (row % 5 == 1)
        std::fill_n(with_nulls_.begin() + static_cast<std::ptrdiff_t>(row * width_), width_, kNan);
      else
        validity_[row / 8] |= static_cast<std::uint8_t>(1u << row % 8);
    expected_ = judged(model_, rows_);
    expected_with_nulls_ = judged(model_, with_nulls_);
  }

  const Model& model() const { return model_; }

  /// Checks rows from number `from` on, `shift` bytes before an address to which float64 numbers are aligned.
  void check_rows(const Predictor& predictor, std::size_t from, std::size_t count, std::size_t shift) const {
    const std::size_t stride = width_ + 3, last = (count - 1) * stride + width_;
    const GuardedMemory memory(last * sizeof(double) + shift);
    std::byte* const begin = memory.at(last * sizeof(double) + shift, GuardedMemory::Against::Back);
    for (std::size_t row = 0; row < count; ++row)
      std::memcpy(begin + row * stride * sizeof(double), rows_.data() + (from + row) * width_,
                  width_ * sizeof(double));
    EXPECT_EQ(scores_of(predictor, RowBlock{begin, count, stride, RowType::Float64}),
              part(expected_, from, count));
  }

  void check_columns(const Predictor& predictor, std::size_t count) const {
    const GuardedMemory memory(count * width_ * sizeof(double));
    const std::vector<double> taken(rows_.begin(),
                                    rows_.begin() + static_cast<std::ptrdiff_t>(count * width_));
    const std::vector<double> turned = transposed(taken, width_);
    const std::byte* const begin =
        memory.put(turned.data(), turned.size() * sizeof(double), GuardedMemory::Against::Back);
    std::vector<Column> columns(width_);
    for (std::size_t i = 0; i < width_; ++i) {
      columns[i].values = begin + i * count * sizeof(double);
      columns[i].type = RowType::Float64;
    }
    const ColumnRows rows{count, columns};
    EXPECT_EQ(scores_of(predictor, rows), part(expected_, 0, count));
    for (Column& column : columns) column.validity = validity_.data();
    EXPECT_EQ(scores_of(predictor, rows), part(expected_with_nulls_, 0, count));
  }

 private:
  Scores part(const Scores& scores, std::size_t from, std::size_t count) const {
    const auto copied = [&](const auto& all, std::size_t width) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from * width);
      return std::vector(begin, begin + static_cast<std::ptrdiff_t>(count * width));
    };
    return {copied(scores.raw, 1), copied(scores.leaves, model_.trees.size())};
  }

  Model model_;
  std::size_t width_;
  std::vector<double> rows_, with_nulls_;
  std::vector<std::uint8_t> validity_;
  Scores expected_, expected_with_nulls_;
};

/// Covers the ways in which the encoder reads rows: whole vectors of rows and single rows, windows of values that end
/// with the row, and strips of features. Walks that read values get rounded values: all of them, in place or copied, or
/// only those that the program reads, unless these lie close together.
TEST(WideRows, AreReadWhereTheyLie) {
  struct Shape {
    unsigned copies, step;
  };
  for (const auto [copies, step] : {Shape{1, 1}, {3, 1}, {3, 3}, {3, 8}, {8, 1}}) {
    std::vector<FeatureKind> kinds;
    for (unsigned copy = 0; copy < copies; ++copy)
      for (const FeatureKind& kind : feature_kinds()) kinds.push_back(kind);
    const LyingRows rows(kinds, step, 700);
    for (const char* const schedule : {"encode(u8)", ""}) {
      const Program program = compiled(rows.model(), schedule);
      for (const std::string& target : support::targets_here()) {
        const auto predictor = host_backend(program, {.target = target});
        for (const std::size_t count : {1u, 2u, 3u, 7u, 8u, 9u, 17u, 31u, 33u, 64u, 65u, 700u}) {
          SCOPED_TRACE(target + ", '" + schedule + "', features " + std::to_string(kinds.size()) + ", step " +
                       std::to_string(step) + ", rows " + std::to_string(count));
          // A few rows have few values on thresholds, so others are taken too.
          for (std::size_t from = 0; from < (count < 8 ? 100u : 1u); ++from)
            rows.check_rows(**predictor, from, count, from % 2 * 3);
          rows.check_rows(**predictor, 0, count, 3);
          rows.check_columns(**predictor, count);
        }
      }
    }
  }
}

/// A program that has more features than a row takes steps encodes a few float64 rows, although its plan for so few
/// rows walks values.
TEST(WideRows, OfManyFeaturesAreEncoded) {
  constexpr std::size_t kRows = 700;
  std::vector<FeatureKind> kinds;
  for (unsigned copy = 0; copy < 8; ++copy)
    for (const FeatureKind& kind : feature_kinds()) kinds.push_back(kind);
  const Model model = drawn_model(3, kinds, false, 3, 4);
  const std::vector<double> rows = drawn_rows(4, kinds, kRows);
  const Scores expected = judged(model, rows);
  const Program program = compiled(model, "plan(100); layout(tree, sparse); plan(BATCH); encode(u8)");
  EXPECT_GE(static_cast<double>(program.encoded_features().size()), program.meta().mean_depth * 3);
  for (const std::string& target : support::targets_here()) {
    const auto predictor = host_backend(program, {.target = target});
    for (const std::size_t count : {1u, 7u, 8u, 9u, 63u, 64u, 65u, 100u, 101u, 700u})
      for (std::size_t from = 0; from + count <= kRows; from += count) {
        SCOPED_TRACE(target + ", rows " + std::to_string(from) + " to " + std::to_string(from + count));
        const RowBlock some{rows.data() + from * kinds.size(), count, kinds.size(), RowType::Float64};
        const Scores scores = scores_of(**predictor, some);
        const auto raw = expected.raw.begin() + static_cast<std::ptrdiff_t>(from);
        EXPECT_TRUE(std::equal(scores.raw.begin(), scores.raw.end(), raw));
        const auto leaves = expected.leaves.begin() + static_cast<std::ptrdiff_t>(from * model.trees.size());
        EXPECT_TRUE(std::equal(scores.leaves.begin(), scores.leaves.end(), leaves));
      }
  }
}

/// Float32 rows take the same ways as float64 rows with equal numbers, also by rank codes.
TEST(WideRows, AgreeWithFloat32Rows) {
  const std::vector<FeatureKind> kinds = feature_kinds();
  const Model model = drawn_model(7, kinds, true);
  std::vector<float> floats;
  for (const double value : drawn_rows(8, kinds, 4000))
    floats.push_back(static_cast<float>(std::min(std::max(value, -3.4e38), 3.4e38)));
  const std::vector<double> rows(floats.begin(), floats.end());
  const Scores expected = judged(model, rows);
  for (const char* const schedule : kSchedules) {
    const auto predictor = host_backend(compiled(model, schedule));
    EXPECT_EQ(scores_of(**predictor, RowBlock{floats.data(), 4000, kinds.size()}), expected) << schedule;
    EXPECT_EQ(scores_of(**predictor, RowBlock{rows.data(), 4000, kinds.size(), RowType::Float64}), expected);
  }
}

TEST(WideRows, AreEncodedAsTheyArePredicted) {
  const std::vector<FeatureKind> kinds = feature_kinds();
  const Model model = drawn_model(9, kinds, false);
  const std::vector<double> rows = drawn_rows(10, kinds, 500);
  const auto predictor = host_backend(compiled(model, "encode(u8)"));
  const auto context = (*predictor)->make_context();
  const RowBlock block{rows.data(), 500, kinds.size(), RowType::Float64};
  std::vector<std::uint8_t> codes(coded_bytes(500, (*predictor)->program().columns().size()));
  const auto coded = (*predictor)->encode(*context, block, codes);
  ASSERT_TRUE(coded.ok()) << coded.error().text();
  EXPECT_EQ(scores_of(**predictor, *coded), judged(model, rows));
}

TEST(WideRows, OfIntegersAreExact) {
  Tree tree = support::split(0, 9007199254740991.0, support::leaf(1), support::leaf(2));
  tree.nodes[0].kind = NodeKind::LessEqual;
  Model model = support::model_of({tree});
  model.num_features = 1;
  model.row_type = model.score_type = ScalarType::Float64;
  const auto predictor = host_backend(compiled(model, ""));
  const std::vector<std::int64_t> rows = {9007199254740990, 9007199254740991, 9007199254740992, -1,
                                          INT64_MIN};
  const std::vector<double> expected = {1.5, 1.5, 2.5, 1.5, 1.5};
  EXPECT_EQ(scores_of(**predictor, RowBlock{rows.data(), 5, 1, RowType::Int64}).raw, expected);
}

/// Whole parts of float64 numbers are categories: rounded to float32, 2.9999999999 would be category 3.
TEST(WideRows, KeepTheirCategories) {
  Model model = support::small_model("categories");
  model.row_type = model.score_type = ScalarType::Float64;
  std::vector<double> rows;
  for (const double x :
       {0.0, -0.0, 1.0, below(1.0), above(1.0), 2.9999999999, 3.0000000001, -1e-9, -0.99999999999, -1.0,
        below(-1.0), above(-1.0), 16777215.9999999, 16777216.5, 1e18, kNan, kInfinity})
    for (const double other : {0.1, 2.0, 4.9999999999}) rows.insert(rows.end(), {x, other, x, other});
  for (const bool fractions : {false, true}) {
    for (Tree& tree : model.trees)
      for (CategorySet& set : tree.category_sets)
        set.rule = fractions ? CategoryRule::AboveMinusOne : CategoryRule::WholePart;
    const Scores expected = judged(model, rows);
    for (const char* const schedule : {"encode(u8)", "plan(9); encode(u8); plan(BATCH)"}) {
      const auto predictor = host_backend(compiled(model, schedule));
      EXPECT_EQ(scores_of(**predictor, RowBlock{rows.data(), rows.size() / 4, 4, RowType::Float64}), expected)
          << schedule;
    }
  }
}

/// Numbers that are not whole are missing, however near to a category they are.
TEST(WideRows, WholeCategoriesHaveNoFractions) {
  Tree tree = support::split(0, 0, support::leaf(1),
                             support::split(1, 0.1, support::leaf(2), support::leaf(4)), true);
  tree.category_sets = {{{0, 3, 16'777'215}, false, CategoryRule::Whole}};
  tree.nodes[0].kind = NodeKind::Category;
  Model model = support::model_of({tree});
  model.row_type = model.score_type = ScalarType::Float64;
  std::vector<double> rows;
  for (const double x : {0.0, -0.0, 3.0, below(3.0), above(3.0), 3.5, 1e-310, -1e-310, -0.5, -1.0, 1.0,
                         16777215.0, 16777215.5, 16777216.0, 1e18, kNan, kInfinity})
    rows.insert(rows.end(), {x, 0.2, 0, 0});
  const Scores expected = judged(model, rows);
  for (const char* const schedule : {"encode(u8)", "plan(9); encode(u8); plan(BATCH)"}) {
    const auto predictor = host_backend(compiled(model, schedule));
    EXPECT_EQ(scores_of(**predictor, RowBlock{rows.data(), rows.size() / 4, 4, RowType::Float64}), expected)
        << schedule;
  }
  const std::vector<float> narrow = {3.0f, 0.2f, 0, 0, 3.5f, 0.2f, 0, 0};
  const auto predictor = host_backend(compiled(model, "encode(u8)"));
  EXPECT_EQ(scores_of(**predictor, RowBlock{narrow.data(), 2, 4}).raw, (std::vector<double>{4.5, 1.5}));
}

/// Where a feature takes whole numbers only, others are infinity: in rows of every type, before they are rounded.
TEST(WideRows, OtherNumbersThanIntegersAreInfinity) {
  const std::vector<double> numbers = {0.0,    -0.0,      2.0,          below(2.0),    above(2.0),   2.5,
                                       -2.5,   1e-310,    2147483647.0, -2147483648.0, 2147483648.0, 1e300,
                                       -1e300, kInfinity, kNan,         16777217.0};
  std::vector<double> rows;
  for (const double x : numbers) rows.insert(rows.end(), {x, 0.2, 0, 0});
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    Model model = support::model_of({support::split(
        0, 0x1p31, support::split(0, 2, support::leaf(1), support::leaf(2)), support::leaf(4), true)});
    for (Node& node : model.trees[0].nodes)
      if (node.kind == NodeKind::Less) node.kind = NodeKind::LessEqual;
    model.row_type = model.score_type = type;
    model.whole_features = {0};
    const Scores expected = judged(model, rows);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double x = numbers[i];
      const bool whole = x == std::trunc(x) && std::abs(x + 0.5) < 0x1p31;
      const double leaf = std::isnan(x) ? (model.trees[0].nodes[1].missing_left ? 1 : 2)
                          : !whole      ? 4
                          : x <= 2      ? 1
                                        : 2;
      EXPECT_EQ(expected.raw[i], leaf + 0.5) << x;
    }
    const std::vector<float> narrow(rows.begin(), rows.end());
    const std::vector<double> wide(narrow.begin(), narrow.end());
    for (const char* const schedule : {"encode(u8)", "plan(9); encode(u8); plan(BATCH)", ""}) {
      const auto predictor = host_backend(compiled(model, schedule));
      EXPECT_EQ(scores_of(**predictor, RowBlock{rows.data(), numbers.size(), 4, RowType::Float64}), expected)
          << schedule;
      EXPECT_EQ(scores_of(**predictor, RowBlock{narrow.data(), numbers.size(), 4}), judged(model, wide))
          << schedule;
      Column column;
      column.values = numbers.data();
      column.type = RowType::Float64;
      std::vector<Column> columns(4, column);
      EXPECT_EQ(scores_of(**predictor, ColumnRows{numbers.size(), columns}), expected) << schedule;
    }
  }
}

/// Numbers become bytes as C converts them. Those below 0 are missing, or have the byte of their whole part.
TEST(WideRows, BytesAreNumbersModulo256) {
  struct Converted {
    double number;
    int byte;  ///< -1: none
  };
  const std::vector<Converted> converted = {
      {0.0, 0},           {-0.0, 0},           {3.0, 3},          {3.9, 3},          {255.0, 255},
      {256.0, 0},         {256.5, 0},          {259.0, 3},        {258.999, 2},      {511.0, 255},
      {1e-310, 0},        {-1e-310, 0},        {-0.5, 0},         {-1.0, 255},       {-253.0, 3},
      {-256.5, 0},        {2147483647.0, 255}, {2147483648.0, 0}, {2147483395.0, 3}, {-2147483648.0, 0},
      {-2147483645.0, 3}, {-2147483650.0, 0},  {1e300, 0},        {-1e300, 0},       {kNan, -1},
      {kInfinity, 0}};
  Tree tree = support::split(0, 0, support::leaf(1),
                             support::split(1, 0.1, support::leaf(2), support::leaf(4)), true);
  tree.nodes[0].kind = NodeKind::Category;
  std::vector<double> rows;
  for (const Converted& x : converted) rows.insert(rows.end(), {x.number, 0.2, 0, 0});
  const RowBlock block{rows.data(), converted.size(), 4, RowType::Float64};
  for (const CategoryRule rule : {CategoryRule::Byte, CategoryRule::SignedByte})
    for (const std::uint32_t code : {0u, 2u, 3u, 255u}) {
      tree.category_sets = {{{code}, false, rule}};
      Model model = support::model_of({tree});
      model.row_type = model.score_type = ScalarType::Float64;
      std::vector<double> expected;
      for (const Converted& x : converted) {
        const bool missing = rule == CategoryRule::Byte && x.number < 0;
        expected.push_back(!missing && x.byte == static_cast<int>(code) ? 4.5 : 1.5);
      }
      EXPECT_EQ(judged(model, rows).raw, expected) << code;
      for (const char* const schedule : {"encode(u8)", "plan(9); encode(u8); plan(BATCH)"}) {
        const auto predictor = host_backend(compiled(model, schedule));
        EXPECT_EQ(scores_of(**predictor, block), judged(model, rows)) << schedule << ", " << code;
      }
    }
}

TEST(WideRows, RulesAreVerified) {
  Model model = support::model_of({support::split(0, 0.1, support::leaf(1), support::leaf(2)),
                                   support::split(0, 0.3, support::leaf(1), support::leaf(2)),
                                   support::split(1, 1 + 0x1p-30, support::leaf(1), support::leaf(2)),
                                   support::split(1, 1 + 0x1p-31, support::leaf(1), support::leaf(2))});
  model.row_type = model.score_type = ScalarType::Float64;
  const ProgramParts parts = parts_of(compiled(model, ""));
  ASSERT_EQ(parts.wide_features, (std::vector<WideFeature>{{0, 0, 2, 0, 0, {}}, {1, 2, 2, 1, 0, {}}}));
  const char* const at_0 = "wide_features section: record 0";
  const char* const at_1 = "wide_features section: record 1";
  const Breach breaches[] = {
      {"no feature", [](ProgramParts& p) { p.wide_features[1].feature = 4; }, at_1, "outside the row"},
      {"a feature twice", [](ProgramParts& p) { p.wide_features[1].feature = 0; }, at_1, "does not ascend"},
      {"flag 2", [](ProgramParts& p) { p.wide_features[0].ranked = 2; }, at_0, "a flag or reserved byte"},
      {"rule 6", [](ProgramParts& p) { p.wide_features[0].categories = 6; }, at_0, "a flag or reserved byte"},
      {"reserved", [](ProgramParts& p) { p.wide_features[0].reserved[1] = 1; }, at_0,
       "a flag or reserved byte"},
      {"ranks of categories", [](ProgramParts& p) { p.wide_features[1].categories = 1; }, at_1,
       "categories have no ranks"},
      {"a gap", [](ProgramParts& p) { p.wide_features[1].first_bound = 3; }, at_1, "do not follow"},
      {"too many bounds", [](ProgramParts& p) { p.wide_features[1].bound_count = 3; }, at_1, "leave the"},
      {"too few bounds", [](ProgramParts& p) { p.wide_features[1].bound_count = 1; }, "wide_bounds section",
       "4 bounds, but the features have 3"},
      {"infinite", [](ProgramParts& p) { p.wide_bounds[1] = kInfinity; }, at_0, "not finite"},
      {"NaN", [](ProgramParts& p) { p.wide_bounds[3] = kNan; }, at_1, "not finite"},
      {"descending", [](ProgramParts& p) { std::swap(p.wide_bounds[0], p.wide_bounds[1]); }, at_0,
       "a bound does not ascend"},
      {"a float32", [](ProgramParts& p) { p.wide_bounds[1] = 0.5; }, at_0, "is a float32 number"},
      {"two in one gap", [](ProgramParts& p) { p.wide_bounds[1] = above(p.wide_bounds[0]); }, at_0,
       "two bounds lie between two float32 numbers"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts, breach);
}

}  // namespace
}  // namespace forestvm::test::test_wide_rows
