// See lookup_codes.hpp.
#include "vm/host/lookup_codes.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include <forestvm/internal/float_environment.hpp>

#include "vm/call/sorted.hpp"

namespace forestvm::host {
namespace {

/// The most tests of a lookup that shares its search: its table has a code for each combination of their outcomes.
constexpr std::size_t kMaxSharedTests = 4;
/// A lookup shares its search if its table has at most this many codes for each slot of its own table.
constexpr std::size_t kMaxSharedCodes = 8;
/// The most tests of all lookups. Their outcomes for a block of rows are in the scratch memory.
constexpr std::size_t kMaxTests = 4096;

/// Limits the time in which a lookup's codes are made: searches may visit this many slots for each slot of its own
/// table.
constexpr std::size_t kStepsPerSlot = 64;

/// Bounds of the search for the numbers of buckets: see make_slots.
constexpr std::size_t kMaxBucketKeys = 64, kTriesPerKey = 64, kMinTries = 4096, kMultipliers = 8;
/// The most bits of a slot's number. With the outcomes of tests it is a positive number of 32 bits.
constexpr unsigned kMaxSlotBits = 31 - kMaxSharedTests - 1;

bool is_category(const KeyPart& part) { return part.kind == KeyPartKind::Category; }

auto order_of(const KeyPart& part) { return std::tuple(part.feature, part.kind, part.operand); }

bool comes_before(const KeyPart& a, const KeyPart& b) { return order_of(a) < order_of(b); }

/// Returns the members of `all`, whose features ascend, that belong to a feature.
template <class T>
std::span<const T> of_feature(const std::vector<T>& all, std::uint32_t feature) {
  const auto begin =
      std::lower_bound(all.begin(), all.end(), feature,
                       [](const T& one, std::uint32_t wanted) { return one.feature < wanted; });
  const auto end = std::upper_bound(begin, all.end(), feature,
                                    [](std::uint32_t wanted, const T& one) { return wanted < one.feature; });
  return {begin, end};
}

/// Returns the inverse of an odd number: their product is 1 modulo 2^64.
constexpr std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t result = odd;  // its lowest three bits are right; each step doubles their number
  for (int step = 0; step < 5; ++step) result *= 2 - odd * result;
  return result;
}
constexpr std::uint64_t kInverseFactor = inverse(kKeyFactor);
static_assert(kKeyFactor * kInverseFactor == 1);

/// Returns the key from which key_with made `key` by adding a part.
std::uint64_t key_without(std::uint64_t key, std::int32_t part) {
  return key * kInverseFactor - kKeyFactor * static_cast<std::uint64_t>(std::int64_t{part});
}

/// Returns whether a key consists of one part, the code of a category.
bool is_category_key(std::uint64_t key) {
  const auto code = static_cast<std::int64_t>(key_without(key, 0) * kInverseFactor);
  return std::in_range<std::int32_t>(code);
}

/// The numbers of buckets, and the keys of slots.
struct SlotMemory {
  std::vector<std::uint16_t> buckets;
  std::vector<std::uint64_t> keys;
};

/// Gives each of the keys, which ascend, a slot of its own. Buckets with many keys come first, while most slots are
/// unused. Returns whether numbers were found for all buckets within the bounds.
bool insert_keys(const std::vector<std::uint64_t>& keys, KeySlots& slots, SlotMemory& memory) {
  std::vector<std::pair<std::size_t, std::size_t>> buckets;  // the first key of each, and the end
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    while (end < keys.size() && keys[end] >> slots.bucket_shift == keys[begin] >> slots.bucket_shift) ++end;
    if (end - begin > kMaxBucketKeys) return false;
    buckets.emplace_back(begin, end);
  }
  std::sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) {
    const std::size_t keys_of_a = a.second - a.first, keys_of_b = b.second - b.first;
    return keys_of_a != keys_of_b ? keys_of_a > keys_of_b : a.first < b.first;
  });
  std::vector<bool> used(slots.slot_count);
  std::size_t tries = kTriesPerKey * keys.size() + kMinTries;
  for (const auto& [begin, end] : buckets) {
    for (std::uint64_t number = 0;; ++number, --tries) {
      if (number > UINT16_MAX || tries == 0) return false;
      std::size_t inserted = begin;
      while (inserted < end && !used[slot_for(slots, keys[inserted], number)])
        used[slot_for(slots, keys[inserted++], number)] = true;
      if (inserted == end) {
        memory.buckets[keys[begin] >> slots.bucket_shift] = static_cast<std::uint16_t>(number);
        for (std::size_t k = begin; k < end; ++k) memory.keys[slot_for(slots, keys[k], number)] = keys[k];
        break;
      }
      while (inserted-- > begin) used[slot_for(slots, keys[inserted], number)] = false;
    }
  }
  return true;
}

/// Makes the slots of keys, which ascend. Returns false if that would take too long. It does for keys that somebody
/// chose so that they share buckets.
bool make_slots(const std::vector<std::uint64_t>& keys, KeySlots& slots, SlotMemory& memory) {
  const auto bits = static_cast<unsigned>(std::bit_width(keys.size() + keys.size() / 8 + 3));
  if (bits > kMaxSlotBits) return false;
  slots.slot_count = std::uint32_t{1} << bits;
  slots.slot_shift = static_cast<std::uint8_t>(64 - bits);
  slots.bucket_shift = static_cast<std::uint8_t>(64 - std::max(1u, bits - 2));
  for (std::size_t i = 0; i < kMultipliers; ++i) {
    slots.multiplier = 0x9e3779b97f4a7c15 * (2 * i + 1);
    memory.buckets.assign(std::size_t{1} << (64 - slots.bucket_shift), 0);
    memory.keys.assign(slots.slot_count, 0);
    if (!insert_keys(keys, slots, memory)) continue;
    slots.buckets = memory.buckets.data();
    slots.keys = memory.keys.data();
    return true;
  }
  return false;
}

/// A lookup's own table, and the codes of its values.
class CodedTable {
 public:
  /// The codes of a value in one column of codes.
  struct Codes {
    std::uint32_t column;
    std::vector<std::uint8_t> of_slot;
  };

  CodedTable(const LookupDesc& lookup, std::span<const KeyPart> parts, const std::uint32_t* words)
      : parts_(parts), lookup_(lookup), words_(words), steps_(kStepsPerSlot * lookup.slot_count) {
    for (std::uint32_t slot = 0; slot < lookup.slot_count; ++slot)
      if (key(slot) != lookup.unused_key) keys_.push_back(key(slot));
    sort_unique(keys_);
  }

  /// Adds the codes of the table's values, which rows hold in feature `first_column` and those after it.
  void encode(std::uint32_t first_column, const LoadedEncoder& encoder, const std::uint32_t* category_words,
              const Target& target) {
    std::vector<float> values(lookup_.slot_count);
    for (std::uint32_t i = 0; i < lookup_.width; ++i) {
      for (std::uint32_t slot = 0; slot < lookup_.slot_count; ++slot)
        values[slot] = std::bit_cast<float>(at(slot)[kKeyWords + i]);
      const Range all{0, lookup_.slot_count, 0};
      for (FeatureSearch search : of_feature(encoder.searches, first_column + i)) {
        const std::uint32_t column = std::exchange(search.first_column, 0);
        search.feature = 0;
        const FeatureTile tile{{&search, 1}, 0, 0};
        add(column, search.columns.size(), [&](std::uint8_t* to) {
          target.encode({{&tile, 1}, search.columns.size(), all, values.data(), 1, to});
        });
      }
      for (FeatureCategories categories : of_feature(encoder.categories, first_column + i)) {
        const std::uint32_t column = std::exchange(categories.first_column, 0);
        categories.feature = 0;
        add(column, categories.columns.size(), [&](std::uint8_t* to) {
          target.encode_categories(
              {{&categories, 1}, category_words, categories.columns.size(), all, values.data(), 1, to});
        });
      }
    }
  }

  /// Returns whether the codes of unknown keys are the same wherever a search ends.
  bool has_one_default() const {
    for (const Codes& codes : codes_)
      for (std::uint32_t slot = 0; slot < lookup_.slot_count; ++slot)
        if (key(slot) == lookup_.unused_key && codes.of_slot[slot] != codes.of_slot.back()) return false;
    return true;
  }

  /// Returns whether the first part of its keys is a category, and the other parts are tests, at most
  /// kMaxSharedTests.
  bool may_share() const {
    return !parts_.empty() && is_category(parts_[0]) && parts_.size() <= 1 + kMaxSharedTests &&
           std::none_of(parts_.begin() + 1, parts_.end(), is_category);
  }

  /// Returns whether the lookup may share a search for `keys` first parts: its tables would not be too large.
  bool shares(std::size_t keys) const {
    return may_share() && keys << (parts_.size() - 1) <= kMaxSharedCodes * lookup_.slot_count;
  }

  /// Returns the slot where a search ends; any slot if searches have taken too long.
  std::uint32_t find(std::uint64_t wanted) {
    auto slot = static_cast<std::uint32_t>(home_slot(wanted, lookup_.home_count));
    while (key(slot) != wanted && key(slot) != lookup_.unused_key && steps_ != 0) {
      --steps_;
      ++slot;
    }
    return slot;
  }

  /// Returns whether searches have taken too long. They do in a table whose keys somebody chose so that they share
  /// a home.
  bool is_slow() const { return steps_ == 0; }

  std::uint32_t last_slot() const { return lookup_.slot_count - 1; }
  std::span<const KeyPart> parts() const { return parts_; }
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  const std::vector<Codes>& codes() const { return codes_; }

  /// Adds the keys of all categories that are the first part of a key of this table.
  void add_first_parts(std::vector<std::uint64_t>& first_parts) const {
    const auto tests = static_cast<unsigned>(parts_.size() - 1);
    for (const std::uint64_t whole : keys_)
      for (unsigned outcomes = 0; outcomes < 1u << tests; ++outcomes) {
        std::uint64_t first = whole;
        for (unsigned test = tests; test-- > 0;) first = key_without(first, outcomes >> test & 1);
        if (is_category_key(first)) first_parts.push_back(first);
      }
  }

 private:
  const std::uint32_t* at(std::uint32_t slot) const { return words_ + slot * slot_words(lookup_); }
  std::uint64_t key(std::uint32_t slot) const { return key_at(at(slot)); }

  template <class Write>
  void add(std::uint32_t column, std::size_t columns, const Write& write) {
    std::vector<std::uint8_t> encoded(code_bytes(lookup_.slot_count, columns) + kCodeSlack);
    write(encoded.data());
    for (std::size_t c = 0; c < columns; ++c) {
      Codes& codes = codes_.emplace_back();
      codes.column = column + static_cast<std::uint32_t>(c);
      for (std::uint32_t slot = 0; slot < lookup_.slot_count; ++slot)
        codes.of_slot.push_back(encoded[code_offset(slot, columns) + c * kCodeRows]);
    }
  }

  std::span<const KeyPart> parts_;
  LookupDesc lookup_;
  const std::uint32_t* words_;
  std::size_t steps_;  ///< Steps that searches may still take.
  std::vector<std::uint64_t> keys_;
  std::vector<Codes> codes_;
};

}  // namespace

/// Makes the sets of lookups.
class LookupCodesMaker {
 public:
  explicit LookupCodesMaker(LookupCodes& to) : to_(to) {}

  /// Makes the tables. Returns whether all of the program's lookups have got tables.
  bool make(const Program& program, const LoadedEncoder& encoder) {
    std::uint32_t column = program.meta().num_features;
    std::vector<CodedTable> tables;
    for (const LookupDesc& lookup : program.lookups()) {
      tables.emplace_back(lookup, program.key_parts().subspan(lookup.first_part, lookup.part_count),
                          program.lookup_words().data() + lookup.first_word);
      tables.back().encode(column, encoder, to_.category_words_, *to_.target_);
      column += lookup.width;
      if (tables.back().codes().empty()) tables.pop_back();
    }
    std::vector<CodedTable*> all;
    for (CodedTable& table : tables) {
      if (!table.has_one_default()) return false;
      add_parts(table.parts());
      all.push_back(&table);
    }
    sort_unique(to_.features_);
    sort_unique(to_.tests_, comes_before);
    if (to_.tests_.size() > kMaxTests) return false;
    // Lookups that may share a search are next to each other.
    const auto before = [](const CodedTable* a, const CodedTable* b) {
      if (!a->may_share() || !b->may_share()) return a->may_share() && !b->may_share();
      return comes_before(a->parts()[0], b->parts()[0]);
    };
    std::sort(all.begin(), all.end(), [&](const CodedTable* a, const CodedTable* b) {
      return before(a, b) || (!before(b, a) && a < b);
    });
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end =
          (*begin)->may_share() ? std::upper_bound(begin, all.end(), *begin, before) : std::next(begin);
      if (!add_sets({begin, end})) return false;
      begin = end;
    }
    if (std::ranges::any_of(tables, std::mem_fn(&CodedTable::is_slow))) return false;
    for (KeyPart& test : to_.tests_) test.feature = index_in(to_.features_, test.feature);
    return true;
  }

 private:
  void add_parts(std::span<const KeyPart> parts) {
    for (const KeyPart& part : parts) {
      to_.features_.push_back(part.feature);
      if (!is_category(part)) to_.tests_.push_back(part);
    }
  }

  /// Makes one set of the lookups that can share a search, and a set for each of the others. If there are several
  /// lookups, the first part of all their keys is the same category.
  bool add_sets(std::vector<CodedTable*> tables) {
    std::vector<std::uint64_t> keys;
    if (tables[0]->may_share())
      for (CodedTable* table : tables) table->add_first_parts(keys);
    sort_unique(keys);
    const auto shares = [&](CodedTable* table) { return table->shares(keys.size()); };
    for (CodedTable* const table : tables)
      if (!shares(table) && !add_set({table}, table->parts(), table->keys())) return false;
    std::erase_if(tables, std::not_fn(shares));
    return tables.empty() || add_set(tables, tables[0]->parts().first(1), keys);
  }

  bool add_set(const std::vector<CodedTable*>& tables, std::span<const KeyPart> parts,
               const std::vector<std::uint64_t>& keys) {
    LookupSet set{};
    SlotMemory memory;
    if (!make_slots(keys, set.slots, memory)) return false;
    keep(std::move(memory));
    std::vector<SetPart> numbers;
    for (const KeyPart& part : parts)
      numbers.push_back(
          {is_category(part) ? index_in(to_.features_, part.feature) : number_of(part), is_category(part)});
    set.parts = keep(std::move(numbers));
    std::vector<LookupTables> lookups;
    lookups.reserve(tables.size());
    for (CodedTable* table : tables)
      lookups.push_back(tables_of(*table, table->parts().subspan(parts.size()), keys, set.slots));
    set.lookups = keep(std::move(lookups));
    to_.sets_.push_back(set);
    return true;
  }

  LookupTables tables_of(CodedTable& table, std::span<const KeyPart> tests,
                         const std::vector<std::uint64_t>& keys, const KeySlots& slots) {
    // For each entry a slot of the lookup's own table. Its last slot has the default values.
    std::vector<std::uint32_t> slot_of((slots.slot_count + std::size_t{1}) << tests.size(),
                                       table.last_slot());
    for (const std::uint64_t first : keys)
      for (unsigned outcomes = 0; outcomes < 1u << tests.size(); ++outcomes) {
        std::uint64_t key = first;
        for (unsigned test = 0; test < tests.size(); ++test) key = key_with(key, outcomes >> test & 1);
        slot_of[std::size_t{find_slot(slots, first)} << tests.size() | outcomes] = table.find(key);
      }
    std::vector<std::uint32_t> numbers;
    for (const KeyPart& test : tests) numbers.push_back(number_of(test));
    const std::size_t together = slot_of.size() <= kSmallTable ? 1 : kTableColumns;
    std::vector<CodeTable> made;
    for (std::span<const CodedTable::Codes> rest = table.codes(); !rest.empty();) {
      const auto columns = rest.first(std::min(together, rest.size()));
      made.push_back(code_table(columns, slot_of));
      rest = rest.subspan(columns.size());
    }
    return {keep(std::move(numbers)), keep(std::move(made))};
  }

  /// Makes the table of some columns; entry i has the codes of slot slot_of[i].
  CodeTable code_table(std::span<const CodedTable::Codes> columns,
                       const std::vector<std::uint32_t>& slot_of) {
    const std::size_t bytes = std::bit_ceil(columns.size());
    std::vector<std::uint8_t> codes(std::max(slot_of.size() * bytes + kTableSlack, kSmallTable));
    std::vector<std::uint32_t> numbers;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      numbers.push_back(columns[c].column);
      for (std::size_t i = 0; i < slot_of.size(); ++i) codes[i * bytes + c] = columns[c].of_slot[slot_of[i]];
    }
    return {keep(std::move(codes)).data(), keep(std::move(numbers)),
            static_cast<std::uint32_t>(slot_of.size())};
  }

  std::uint32_t number_of(const KeyPart& test) const { return index_in(to_.tests_, test, comes_before); }

  void keep(SlotMemory memory) { to_.memory_.push_back(std::make_shared<SlotMemory>(std::move(memory))); }
  template <class T>
  std::span<const T> keep(std::vector<T> all) {
    auto kept = std::make_shared<const std::vector<T>>(std::move(all));
    to_.memory_.push_back(kept);
    return *kept;
  }

  LookupCodes& to_;
};

LookupCodes::LookupCodes(const Program& program, const LoadedEncoder& encoder, const Target& target)
    : target_(&target), columns_(program.columns().size()), category_words_(program.category_words().data()) {
  if (program.lookups().empty() || columns_ == 0) return;
  const FloatEnvironment environment;
  if (!LookupCodesMaker(*this).make(program, encoder)) {
    sets_.clear();
    return;
  }
  // In the rows that are encoded here, computed columns directly follow the features.
  const ProgramMeta& meta = program.meta();
  const auto left_out = meta.derived_columns - static_cast<std::uint32_t>(program.computed_columns().size());
  const auto is_left_out = [&](const auto& encoded) {
    return encoded.feature >= meta.num_features && encoded.feature < meta.num_features + left_out;
  };
  const auto move = [&](auto& encoded) {
    if (encoded.feature >= meta.num_features) encoded.feature -= left_out;
  };
  const auto encoded = program.encoded_features();
  std::vector<EncodedFeature> others(encoded.begin(), encoded.end());
  std::erase_if(others, is_left_out);
  std::for_each(others.begin(), others.end(), move);
  encoder_ = load_encoder(others, program.ranks(), program.columns(), program.category_columns(),
                          row_width(meta) - left_out);
  std::erase_if(encoder_.categories, is_left_out);
  std::for_each(encoder_.categories.begin(), encoder_.categories.end(), move);
}

void LookupCodes::encode(const float* rows, std::size_t stride, std::uint32_t row_count, std::uint8_t* codes,
                         std::byte* scratch) const {
  const Range all{0, row_count, 0};
  target_->encode({encoder_.tiles, columns_, all, rows, stride, codes});
  if (!encoder_.categories.empty())
    target_->encode_categories({encoder_.categories, category_words_, columns_, all, rows, stride, codes});
  target_->derive({features_, tests_, sets_, rows, stride, row_count, columns_, codes, scratch});
}

}  // namespace forestvm::host
