#include "derived_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <forestvm/internal/city_hash.hpp>

#include "conformance/dice.hpp"
#include "support/small_models.hpp"

namespace forestvm::test {
namespace {

constexpr std::uint32_t kFeatures = 6;
const std::vector<std::uint32_t> kHashed = {1, 3, 5};
const std::vector<std::uint32_t> kNumeric = {0, 2, 4};

std::int32_t code_of(double category) {
  return category_code(std::to_string(static_cast<long long>(category)));
}

std::uint64_t key_of(const Lookup& lookup, const double* row) {
  std::uint64_t key = 0;
  const auto add = [&](std::int64_t part) {
    constexpr std::uint64_t kFactor = 0x4906ba494954cb65;
    key = (key + kFactor * static_cast<std::uint64_t>(part)) * kFactor;
  };
  for (const std::uint32_t feature : lookup.categories) add(code_of(row[feature]));
  for (const ValueTest& test : lookup.value_tests) {
    const auto value = static_cast<float>(row[test.feature]);
    add(std::isnan(value) ? test.nan_above : value > test.border);
  }
  for (const CodeTest& test : lookup.code_tests) add(code_of(row[test.feature]) == test.code);
  return key;
}

template <class T>
std::vector<T> some_of(Dice& dice, const std::vector<T>& all) {
  std::vector<T> some;
  for (const T& one : all)
    if (dice.percent(60)) some.push_back(one);
  return some;
}

float quarter(Dice& dice) { return static_cast<float>(dice.below(33)) / 4.0f - 4.0f; }

/// Fills the table with keys of half the rows, and with keys beside them, which share their slots.
void draw_table(Dice& dice, Lookup& lookup, const std::vector<double>& rows) {
  std::set<std::uint64_t> keys;
  for (std::size_t i = 0; i < rows.size(); i += kFeatures) {
    const std::uint64_t key = key_of(lookup, rows.data() + i);
    if (!dice.percent(50)) continue;
    for (std::uint64_t beside = dice.below(4); beside-- > 0;) keys.insert({key - beside, key + 3 * beside});
    keys.insert(key);
  }
  lookup.keys.assign(keys.begin(), keys.end());
  for (std::size_t i = lookup.keys.size(); i-- > 1;)
    std::swap(lookup.keys[i], lookup.keys[dice.below(i + 1)]);
  lookup.width = static_cast<std::uint32_t>(dice.from_to(1, 4));
  for (std::size_t i = 0; i < (keys.size() + 1) * lookup.width; ++i)
    lookup.values.push_back(dice.percent(5) ? std::numeric_limits<float>::quiet_NaN() : quarter(dice));
}

Lookup drawn_lookup(Dice& dice, const std::vector<double>& rows, Categories categories) {
  Lookup lookup;
  lookup.categories =
      categories == Categories::One ? std::vector{dice.pick(kHashed)} : some_of(dice, kHashed);
  for (const std::uint32_t feature : some_of(dice, kNumeric))
    lookup.value_tests.push_back({feature, quarter(dice), dice.percent(50)});
  for (const std::uint32_t feature : some_of(dice, kHashed))
    lookup.code_tests.push_back({feature, code_of(static_cast<double>(dice.below(4)))});
  draw_table(dice, lookup, rows);
  return lookup;
}

ComputedColumn drawn_sum(Dice& dice) {
  ComputedColumn sum;
  if (dice.percent(50)) sum.kind = ColumnKind::SumReplaced;
  for (const std::uint32_t feature : {0u, 2u, 4u, 0u})
    sum.terms.push_back({feature, static_cast<float>(dice.real() - 0.5), static_cast<float>(dice.real())});
  return sum;
}

/// Appends a column of each kind, which read features and the column before them.
void add_computed_columns(Dice& dice, Model& model) {
  for (int i = 0; i < 5; ++i) model.computed_columns.push_back(drawn_sum(dice));
  for (std::uint32_t kind = 2; kind < kColumnKinds; ++kind) {
    const auto before = static_cast<std::uint32_t>(num_columns(model) - 1);
    const float low = quarter(dice);
    const std::vector<ColumnTerm> terms = {
        {dice.percent(50) ? before : dice.pick(kNumeric), low, low + 0.5f}, {before, 0, 0}, {2, 0, 0}};
    ComputedColumn column{static_cast<ColumnKind>(kind), terms};
    column.terms.resize(std::min<std::size_t>(terms.size(), term_counts(column.kind).most));
    if (column.kind == ColumnKind::Replaced && dice.percent(50)) column.terms[0].first = std::nanf("");
    model.computed_columns.push_back(column);
  }
}

/// Rounds to float32 what was computed in float64. Of one operation on float32 numbers this gives the bits that float32
/// arithmetic gives.
float rounded(double x) { return static_cast<float>(x); }

/// Computes a column of a row.
float computed(const ComputedColumn& column, const double* row) {
  const auto x = [&](std::size_t term) {
    return static_cast<double>(static_cast<float>(row[column.terms[term].feature]));
  };
  const auto a = [&](std::size_t term) { return static_cast<double>(column.terms[term].first); };
  const auto b = [&](std::size_t term) { return static_cast<double>(column.terms[term].second); };
  double sum =
      column.kind == ColumnKind::Largest ? static_cast<double>(std::numeric_limits<float>::lowest()) : 0;
  const auto add = [&](double part) { sum = static_cast<double>(rounded(sum + part)); };
  switch (column.kind) {
    case ColumnKind::Scaled:
      return rounded(static_cast<double>(rounded(x(0) - a(0))) * b(0));
    case ColumnKind::Divided:
      return rounded(x(0) / a(0));
    case ColumnKind::Replaced:
      return rounded(x(0) == a(0) || (std::isnan(a(0)) && std::isnan(x(0))) ? b(0) : x(0));
    case ColumnKind::Clipped:
      return rounded(x(0) < a(0) ? a(0) : x(0) > b(0) ? b(0) : x(0));
    case ColumnKind::Share:
      return rounded(x(1) == 0 ? x(0) : x(0) / x(1));
    case ColumnKind::RootShare: {
      const auto square = static_cast<double>(rounded(x(0) * x(0)));
      const double root = std::sqrt(static_cast<double>(rounded(square / x(1))));
      return rounded(x(1) == 0 ? x(0) : x(0) < 0 ? -root : root);
    }
    default:
      break;
  }
  for (std::size_t t = 0; t < column.terms.size(); ++t) {
    if (column.kind == ColumnKind::Sum) add(static_cast<double>(rounded(a(t) * x(t))));
    if (column.kind == ColumnKind::SumReplaced)
      add(static_cast<double>(rounded(a(t) * (std::isnan(x(t)) ? b(t) : x(t)))));
    if (column.kind == ColumnKind::SizeSum) add(std::abs(x(t)));
    if (column.kind == ColumnKind::SquareSum) add(static_cast<double>(rounded(x(t) * x(t))));
    if (column.kind == ColumnKind::Largest && x(t) > sum) sum = x(t);
  }
  return rounded(sum);
}

Tree drawn_tree(Dice& dice, const std::vector<std::uint32_t>& columns, unsigned depth) {
  if (depth == 0 || dice.percent(10)) return support::leaf(static_cast<double>(quarter(dice)));
  Tree tree = support::split(dice.pick(columns), static_cast<double>(quarter(dice)),
                             drawn_tree(dice, columns, depth - 1), drawn_tree(dice, columns, depth - 1),
                             dice.percent(50));
  if (dice.percent(50)) tree.nodes[0].kind = NodeKind::LessEqual;
  return tree;
}

}  // namespace

Model derived_model(std::uint64_t seed, Categories categories) {
  Dice dice(seed);
  Model model;
  const std::vector<double> rows = derived_rows(seed + 1000, 60);
  for (int i = 0; i < 7; ++i) model.lookups.push_back(drawn_lookup(dice, rows, categories));
  model.lookups.push_back({{}, {}, {}, {}, 1, {2.5f}});      // no parts, no keys
  model.lookups.push_back({{}, {}, {}, {0}, 1, {1.5f, 3}});  // the key of no parts
  model.num_features = kFeatures;
  add_computed_columns(dice, model);
  std::vector<std::uint32_t> columns;
  for (std::uint32_t i = 0; i < num_columns(model); ++i)
    if (std::find(kHashed.begin(), kHashed.end(), i) == kHashed.end()) columns.push_back(i);
  std::vector<Tree> trees;
  for (int i = 0; i < 12; ++i) trees.push_back(drawn_tree(dice, columns, 5));
  Model forest = support::model_of(std::move(trees));
  forest.num_features = kFeatures;
  forest.hashed_features = kHashed;
  forest.lookups = std::move(model.lookups);
  forest.computed_columns = std::move(model.computed_columns);
  return forest;
}

std::vector<double> derived_rows(std::uint64_t seed, std::size_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> categories = {
      0, 1, 2, 3, -1, 1023, 1024, 123456789, -2147483648.0, 9007199254740992.0};
  Dice dice(seed);
  std::vector<double> rows;
  for (std::size_t i = 0; i < count * kFeatures; ++i) {
    if (i % 2 == 1)
      rows.push_back(dice.percent(70) ? static_cast<double>(dice.below(4)) : dice.pick(categories));
    else if (dice.percent(10))
      rows.push_back(dice.pick(std::vector<double>{std::nan(""), kInfinity, -kInfinity, -0.0, 1e-45, 1e300}));
    else
      rows.push_back(dice.percent(50) ? static_cast<double>(quarter(dice)) : 8 * dice.real() - 4);
  }
  return rows;
}

std::vector<double> hashed_rows(const Model& model, std::vector<double> rows) {
  for (std::size_t row = 0; row < rows.size(); row += model.num_features)
    for (const std::uint32_t feature : model.hashed_features)
      rows[row + feature] = static_cast<double>(code_of(rows[row + feature]));
  return rows;
}

Model plain_model(const Model& model) {
  Model plain = model;
  plain.num_features = static_cast<std::uint32_t>(num_columns(model));
  plain.hashed_features.clear();
  plain.lookups.clear();
  plain.computed_columns.clear();
  return plain;
}

std::vector<double> widened(const Model& model, const std::vector<double>& rows) {
  std::vector<double> wide;
  for (std::size_t i = 0; i < rows.size(); i += model.num_features) {
    const double* const row = rows.data() + i;
    for (std::uint32_t feature = 0; feature < model.num_features; ++feature) {
      const bool hashed =
          std::count(model.hashed_features.begin(), model.hashed_features.end(), feature) != 0;
      wide.push_back(hashed ? 0 : row[feature]);
    }
    for (const Lookup& lookup : model.lookups) {
      const auto at = static_cast<std::size_t>(
          std::find(lookup.keys.begin(), lookup.keys.end(), key_of(lookup, row)) - lookup.keys.begin());
      for (std::uint32_t w = 0; w < lookup.width; ++w)
        wide.push_back(static_cast<double>(lookup.values[at * lookup.width + w]));
    }
    const std::size_t first = wide.size() - num_columns(model) + model.computed_columns.size();
    for (const ComputedColumn& column : model.computed_columns)
      wide.push_back(static_cast<double>(computed(column, wide.data() + first)));
  }
  return wide;
}

}  // namespace forestvm::test
