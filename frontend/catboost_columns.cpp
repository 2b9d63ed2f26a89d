// See catboost_columns.hpp. A counter's value depends on nothing but its table's row, so it is computed here, in
// float32 as CatBoost does, for each row of its table and for the keys that the table lacks. Counters of one
// combination share a Lookup.
#include "frontend/catboost_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/derived_columns.hpp"

namespace forestvm::frontend {
namespace {

bool is_mean(CtrType type) {
  return type == CtrType::BinarizedTargetMeanValue || type == CtrType::FloatTargetMeanValue;
}
bool is_count(CtrType type) { return type == CtrType::Counter || type == CtrType::FeatureFreq; }

/// The features of each kind, by their index.
struct Features {
  std::vector<const CatboostFloatFeature*> floats;
  std::vector<const CatboostCategorical*> categories;
};

template <class Feature>
Result<std::vector<const Feature*>> by_index(const std::vector<Feature>& features, const char* kind) {
  std::vector<const Feature*> out(features.size());
  for (const Feature& feature : features) {
    if (feature.index < 0 || static_cast<std::size_t>(feature.index) >= out.size() ||
        out[static_cast<std::size_t>(feature.index)] != nullptr)
      return refused(std::string(kind) + " features", "index {} is missing, given twice or not below {}",
                     feature.index, out.size());
    out[static_cast<std::size_t>(feature.index)] = &feature;
  }
  return out;
}

/// Returns the feature with an index that the file gives; null if there is none.
template <class Feature>
const Feature* at(const std::vector<const Feature*>& features, std::int64_t index) {
  const bool exists = index >= 0 && static_cast<std::size_t>(index) < features.size();
  return exists ? features[static_cast<std::size_t>(index)] : nullptr;
}

bool has_twice(std::vector<std::uint64_t> keys) {
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

std::uint32_t flat(std::int64_t index) { return static_cast<std::uint32_t>(index); }

/// Collects the names of features by their flat indices, which run from 0 on without gaps.
class FeatureNames {
 public:
  explicit FeatureNames(std::size_t features) : names_(features), given_(features) {}

  Result<void> add(std::int64_t flat_index, const std::string& name) {
    if (flat_index < 0 || static_cast<std::size_t>(flat_index) >= names_.size())
      return refused("features", "a flat index of {}, but there are {} features", flat_index, names_.size());
    if (!is_utf8(name)) return refused("features", "a name that is not UTF-8: {}", in_quotes(name, 40));
    const auto at = static_cast<std::size_t>(flat_index);
    if (given_[at]) return refused("features", "two features with the flat index {}", flat_index);
    given_[at] = true;
    const std::string number = std::to_string(flat_index);
    named_ = named_ || (!name.empty() && name != number);
    names_[at] = name.empty() ? number : name;
    return {};
  }

  /// Returns the names; none if CatBoost made all of them, because its names are the features' numbers.
  std::vector<std::string> take() { return named_ ? std::move(names_) : std::vector<std::string>(); }

 private:
  std::vector<std::string> names_;
  std::vector<bool> given_;
  bool named_ = false;
};

/// Sets the number of features, their names, and which are hashed.
Result<Features> add_features(const CatboostParts& parts, const LoadLimits& limits, Model& model) {
  const std::size_t count = parts.float_features.size() + parts.categorical_features.size();
  if (count > limits.max_features)
    return refused("features", "{} are over the limit of {}", count, limits.max_features);
  model.num_features = static_cast<std::uint32_t>(count);
  FeatureNames names(count);
  for (const CatboostFloatFeature& feature : parts.float_features)
    FVM_TRY(names.add(feature.flat_index, feature.name));
  for (const CatboostCategorical& feature : parts.categorical_features) {
    FVM_TRY(names.add(feature.flat_index, feature.name));
    model.hashed_features.push_back(flat(feature.flat_index));
  }
  model.feature_names = names.take();
  std::sort(model.hashed_features.begin(), model.hashed_features.end());
  Features features;
  FVM_ASSIGN(features.floats, by_index(parts.float_features, "number"));
  FVM_ASSIGN(features.categories, by_index(parts.categorical_features, "categorical"));
  return features;
}

bool goes_above(const CatboostFloatFeature& feature) { return feature.has_nans && feature.nan_above; }

void add_float_splits(const CatboostParts& parts, std::vector<CatboostSplit>& splits) {
  for (const CatboostFloatFeature& feature : parts.float_features)
    for (const float border : feature.borders)
      splits.push_back({NodeKind::LessEqual, flat(feature.flat_index), border, 0, !goes_above(feature)});
}

/// Makes a column that numbers a feature's tested codes, counted from 0, and has -1 for all other codes.
Result<Lookup> one_hot_lookup(const CatboostOneHot& one_hot, const Features& features) {
  const CatboostCategorical* category = at(features.categories, one_hot.category);
  if (category == nullptr)
    return refused("one-hot tests", "categorical feature {} does not exist", one_hot.category);
  if (one_hot.codes.size() >= kMaxCategories)
    return refused("one-hot tests", "more codes than the limit of {}", kMaxCategories);
  Lookup lookup;
  lookup.categories = {flat(category->flat_index)};
  for (const std::int32_t code : one_hot.codes) {
    lookup.values.push_back(static_cast<float>(lookup.keys.size()));
    lookup.keys.push_back(extend_key(0, code));
  }
  if (has_twice(lookup.keys))
    return refused("one-hot tests", "categorical feature {} has a code twice", one_hot.category);
  lookup.values.push_back(-1);
  return lookup;
}

Result<void> add_one_hots(const CatboostParts& parts, const Features& features, Model& model,
                          std::vector<CatboostSplit>& splits) {
  for (const CatboostOneHot& one_hot : parts.one_hots) {
    if (one_hot.codes.empty()) continue;
    const auto column = static_cast<std::uint32_t>(model.num_features + model.lookups.size());
    FVM_ASSIGN(Lookup lookup, one_hot_lookup(one_hot, features));
    model.lookups.push_back(std::move(lookup));
    for (std::uint32_t code = 0; code < one_hot.codes.size(); ++code)
      splits.push_back({NodeKind::Category, column, 0, code, true});
  }
  return {};
}

/// A counter and its table.
struct Counter {
  const CatboostCtr* ctr = nullptr;
  const CatboostTable* table = nullptr;
};

/// Checks that a counter's numbers are finite: they are compared and sorted.
Result<void> check_finite(const CatboostCtr& ctr, const std::string& where) {
  bool finite = true;
  for (const float x : {ctr.prior, ctr.prior_denominator, ctr.shift, ctr.scale})
    finite = finite && std::isfinite(x);
  for (const float border : ctr.borders) finite = finite && std::isfinite(border);
  for (const auto& test : ctr.combination.value_tests) finite = finite && std::isfinite(test.second);
  return finite ? Result<void>() : refused(where, "a number that is not finite");
}

/// Checks that a counter's table holds what its type needs.
Result<void> check_counter(const Counter& counter, const std::string& where) {
  const CatboostCtr& ctr = *counter.ctr;
  const CatboostTable& table = *counter.table;
  if (table.keys.empty()) return {};
  const bool classes = !is_count(ctr.type) && !is_mean(ctr.type);
  if (classes ? table.width == 0 : table.width != (is_count(ctr.type) ? 1u : 2u))
    return refused(where, "a table with {} numbers per row, for counters of another type", table.width);
  if (classes && (ctr.target_border < 0 || ctr.target_border >= std::int64_t{table.width}))
    return refused(where, "class {} of {}", ctr.target_border, table.width);
  return {};
}

/// Checks that each number of a table is a count, or a sum in float32 before a count.
Result<void> check_table(const CatboostTable& table, bool means) {
  constexpr double least = std::numeric_limits<std::int32_t>::min(),
                   most = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < table.numbers.size(); ++i) {
    const double x = table.numbers[i];
    const bool sum = means && i % 2 == 0;
    if (sum ? !(std::abs(x) <= std::numeric_limits<float>::max())
            : !(x >= least && x <= most && x == std::trunc(x)))
      return refused(table.where, "row {} holds no count, or a sum that is not finite", i / table.width);
  }
  if (table.denominator != static_cast<std::int32_t>(table.denominator))
    return refused(table.where, "a denominator that does not fit in 32 bits");
  return {};
}

/// Returns the value of a counter that counted `good` rows of a kind among `total` rows.
float value_of(const CatboostCtr& ctr, float good, float total) {
  const float ratio = (good + ctr.prior) / (total + ctr.prior_denominator);
  return (ratio + ctr.shift) * ctr.scale;
}

/// Returns the counter's value for a key that its table lacks.
float default_of(const Counter& counter) {
  const auto denominator = static_cast<float>(static_cast<std::int32_t>(counter.table->denominator));
  return value_of(*counter.ctr, 0, is_count(counter.ctr->type) ? denominator : 0);
}

/// The counts of one row of a table, prepared for all counters that use it.
class CountedRow {
 public:
  void read(const CatboostTable& table, std::size_t row, bool means) {
    numbers_ = table.numbers.data() + row * table.width;
    if (means) return;
    // above_[c] is the sum of the counts of the classes above c. Counts are summed in 32 bits, as CatBoost does.
    above_.assign(table.width, 0);
    std::uint32_t sum = 0;
    for (std::size_t c = table.width; c-- > 0;) {
      above_[c] = sum;
      sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(numbers_[c]));
    }
    all_ = sum;
  }

  float value(const Counter& counter) const {
    const CatboostCtr& ctr = *counter.ctr;
    if (is_mean(ctr.type))
      return value_of(ctr, static_cast<float>(numbers_[0]), static_cast<float>(numbers_[1]));
    if (is_count(ctr.type)) {
      const auto denominator = static_cast<std::int32_t>(counter.table->denominator);
      return value_of(ctr, static_cast<float>(numbers_[0]), static_cast<float>(denominator));
    }
    const auto border = static_cast<std::size_t>(ctr.target_border);
    if (ctr.type == CtrType::Buckets)
      return value_of(ctr, static_cast<float>(numbers_[border]), as_float(all_));
    // With two classes, CatBoost counts the second one whatever the border is.
    const bool two = counter.table->width == 2;
    return value_of(ctr, as_float(above_[two ? 0 : border]), as_float(all_));
  }

 private:
  static float as_float(std::uint32_t count) { return static_cast<float>(static_cast<std::int32_t>(count)); }

  const double* numbers_ = nullptr;
  std::vector<std::uint32_t> above_;
  std::uint32_t all_ = 0;
};

/// Sets the features and tests from which a lookup's key is made.
Result<void> add_key_parts(const CatboostCombination& combination, const Features& features,
                           const std::string& where, Lookup& lookup) {
  const auto unknown = [&](const char* kind, std::int64_t index) {
    return refused(where, "{} feature {} does not exist", kind, index);
  };
  for (const std::int64_t index : combination.categories) {
    const CatboostCategorical* feature = at(features.categories, index);
    if (feature == nullptr) return unknown("categorical", index);
    lookup.categories.push_back(flat(feature->flat_index));
  }
  for (const auto& [index, border] : combination.value_tests) {
    const CatboostFloatFeature* feature = at(features.floats, index);
    if (feature == nullptr) return unknown("number", index);
    lookup.value_tests.push_back({flat(feature->flat_index), border, goes_above(*feature)});
  }
  for (const auto& [index, code] : combination.code_tests) {
    const CatboostCategorical* feature = at(features.categories, index);
    if (feature == nullptr) return unknown("categorical", index);
    lookup.code_tests.push_back({flat(feature->flat_index), code});
  }
  return {};
}

/// Returns all keys of the counters' tables, ascending, each once. Refuses a table with a key twice.
Result<std::vector<std::uint64_t>> keys_of(const std::vector<Counter>& counters) {
  std::vector<std::uint64_t> keys;
  const CatboostTable* last = nullptr;
  for (const Counter& counter : counters) {
    if (std::exchange(last, counter.table) == counter.table) continue;
    std::vector<std::uint64_t> own = counter.table->keys;
    if (has_twice(own)) return refused(counter.table->where, "a key twice");
    std::sort(own.begin(), own.end());
    std::vector<std::uint64_t> both;
    both.reserve(keys.size() + own.size());
    std::set_union(keys.begin(), keys.end(), own.begin(), own.end(), std::back_inserter(both));
    keys = std::move(both);
  }
  return keys;
}

/// Fills the lookup's values: first all rows with the values for unknown keys, then the rows of each table's keys with
/// their own.
void add_values(const std::vector<Counter>& counters, Lookup& lookup) {
  lookup.values.resize((lookup.keys.size() + 1) * lookup.width);
  for (std::size_t i = 0; i < lookup.values.size(); ++i)
    lookup.values[i] = default_of(counters[i % lookup.width]);
  CountedRow counted;
  for (std::size_t begin = 0, end = 0; begin < counters.size(); begin = end) {
    const CatboostTable& table = *counters[begin].table;
    while (end < counters.size() && counters[end].table == &table) ++end;
    for (std::size_t k = 0; k < table.keys.size(); ++k) {
      const auto key = std::lower_bound(lookup.keys.begin(), lookup.keys.end(), table.keys[k]);
      float* values =
          lookup.values.data() + static_cast<std::size_t>(key - lookup.keys.begin()) * lookup.width;
      counted.read(table, table.rows[k], is_mean(counters[begin].ctr->type));
      for (std::size_t c = begin; c < end; ++c) values[c] = counted.value(counters[c]);
    }
  }
}

std::string place_of(std::size_t ctr) { return formatted("counter {}", ctr); }

/// Finds the table of each counter.
Result<std::vector<Counter>> counters_of(const CatboostParts& parts) {
  std::unordered_map<std::string_view, const CatboostTable*> tables;
  for (const CatboostTable& table : parts.tables)
    if (!tables.emplace(table.name, &table).second)
      return refused(table.where, "a second table of the same counters");
  std::unordered_map<const CatboostTable*, bool> means;
  std::vector<Counter> counters;
  for (std::size_t i = 0; i < parts.ctrs.size(); ++i) {
    const CatboostCtr& ctr = parts.ctrs[i];
    const auto table = tables.find(ctr.table);
    if (table == tables.end())
      return refused(place_of(i),
                     "its table is not in the file (final_ctr_computation_mode=\"Skip\"): save the model "
                     "with its tables");
    counters.push_back({&ctr, table->second});
    FVM_TRY(check_counter(counters.back(), place_of(i)));
    const auto [known, added] = means.emplace(table->second, is_mean(ctr.type));
    if (added) FVM_TRY(check_table(*table->second, is_mean(ctr.type)));
    if (known->second != is_mean(ctr.type))
      return refused(place_of(i), "a table that a counter of another type uses");
  }
  return counters;
}

/// Refuses two counters that are equal in every field that the file has. CatBoost's JSON leaves out the field that
/// tells such counters apart, and the table of one of them.
Result<void> check_different(const CatboostParts& parts) {
  const auto numbers = [](const CatboostCtr& c) {
    return std::tuple(std::string_view(c.table), c.type, c.target_border, c.prior, c.prior_denominator,
                      c.shift, c.scale);
  };
  std::map<decltype(numbers(parts.ctrs[0])), std::size_t> known;
  for (std::size_t i = 0; i < parts.ctrs.size(); ++i)
    if (const auto [other, added] = known.emplace(numbers(parts.ctrs[i]), i); !added)
      return refused(
          place_of(i),
          "equals counter {}: CatBoost's JSON has lost one of their tables; save the model as .cbm",
          other->second);
  return {};
}

/// Returns whether tables of counters of this type count classes of the target. Training may make several such tables,
/// with different classes.
bool counts_classes(CtrType type) { return !is_count(type) && type != CtrType::FloatTargetMeanValue; }

/// Returns whether training may have made several tables of a counter's combination and type: for several targets, or
/// for several ways to turn the target into classes. A file without training parameters does not say.
bool has_several_tables(const CatboostParts& parts, const CatboostCtr& ctr) {
  if (!counts_classes(ctr.type)) return false;
  if (parts.ctr_options.empty()) return true;
  constexpr std::string_view several_targets[] = {"MultiLogloss", "MultiCrossEntropy", "MultiRMSE",
                                                  "MultiRMSEWithMissingValues", "SurvivalAft"};
  if (std::find(std::begin(several_targets), std::end(several_targets), parts.loss) !=
      std::end(several_targets))
    return true;
  const CatboostCombination& c = ctr.combination;
  const bool single = c.categories.size() == 1 && c.value_tests.empty() && c.code_tests.empty();
  std::map<std::size_t, const CatboostCtrOption*> first;
  for (const CatboostCtrOption& option : parts.ctr_options) {
    if (option.type != ctr.type || option.of_combinations == single) continue;
    const CatboostCtrOption& known = *first.emplace(option.list, &option).first->second;
    if (known.target_borders != option.target_borders ||
        known.target_border_type != option.target_border_type)
      return true;
  }
  return false;
}

/// Refuses counters of CatBoost's JSON whose tables it may have lost: it names tables by combination and type only, so
/// that only one of several such tables is left in the file.
Result<void> check_tables_are_kept(const CatboostParts& parts) {
  if (std::string_view(parts.format) != "catboost-json") return {};
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < parts.ctrs.size(); ++i)
    if (const auto [other, added] = known.emplace(parts.ctrs[i].table, i);
        !added && has_several_tables(parts, parts.ctrs[i]))
      return refused(
          place_of(i),
          "names the table of counter {}: CatBoost's JSON may have lost one of their tables, because training turned targets into classes in several ways, or the file does not say in which; save the model as .cbm",
          other->second);
  return {};
}

/// Adds a lookup for each combination of features, and the splits of all counters.
Result<void> add_counters(const CatboostParts& parts, const Features& features, std::size_t file_bytes,
                          Model& model, std::vector<CatboostSplit>& splits) {
  for (std::size_t i = 0; i < parts.ctrs.size(); ++i) FVM_TRY(check_finite(parts.ctrs[i], place_of(i)));
  FVM_TRY(check_different(parts));
  FVM_TRY(check_tables_are_kept(parts));
  FVM_ASSIGN(const std::vector<Counter> counters, counters_of(parts));
  // The numbers of the counters of each combination. They are sorted so that counters of one table follow each other.
  std::map<CatboostCombination, std::vector<std::size_t>> combinations;
  for (std::size_t i = 0; i < counters.size(); ++i) combinations[counters[i].ctr->combination].push_back(i);
  std::vector<std::uint32_t> columns(counters.size());
  auto next_column = static_cast<std::uint32_t>(num_columns(model));
  std::size_t budget = 4 * file_bytes + (std::size_t{64} << 20);
  for (auto& [combination, members] : combinations) {
    const std::string where = place_of(members.front());
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return counters[a].table->name < counters[b].table->name;
    });
    std::vector<Counter> own;
    for (const std::size_t i : members) {
      columns[i] = next_column++;
      own.push_back(counters[i]);
    }
    Lookup lookup;
    FVM_TRY(add_key_parts(combination, features, where, lookup));
    FVM_ASSIGN(lookup.keys, keys_of(own));
    lookup.width = static_cast<std::uint32_t>(own.size());
    const std::size_t bytes = (lookup.keys.size() + 1) * own.size() * sizeof(float);
    if (bytes > budget)
      return refused(where, "the values of all counters need more memory than this file is worth");
    budget -= bytes;
    add_values(own, lookup);
    model.lookups.push_back(std::move(lookup));
  }
  for (std::size_t i = 0; i < counters.size(); ++i)
    for (const float border : parts.ctrs[i].borders)
      splits.push_back({NodeKind::LessEqual, columns[i], border, 0, true});
  return {};
}

}  // namespace

Result<std::vector<CatboostSplit>> add_columns(const CatboostParts& parts, std::size_t file_bytes,
                                               const LoadLimits& limits, Model& model) {
  FVM_ASSIGN(const Features features, add_features(parts, limits, model));
  std::vector<CatboostSplit> splits;
  add_float_splits(parts, splits);
  FVM_TRY(add_one_hots(parts, features, model, splits));
  FVM_TRY(add_counters(parts, features, file_bytes, model, splits));
  return splits;
}

}  // namespace forestvm::frontend
