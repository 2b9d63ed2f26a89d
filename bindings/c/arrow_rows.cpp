// Converts rows of Arrow's C data interface to columns in the model's order. It checks that the two structs agree with
// each other and with the model, and trusts the sizes of memory that they give.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <forestvm/internal/column_set.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "bindings/c/rows.hpp"
#include "bindings/c/structs.hpp"

namespace forestvm::c_api {
namespace {

constexpr auto kMaxValues = static_cast<std::int64_t>(kMaxColumnValues);
/// The most values of a dictionary: the numbers of all dictionaries must have a size that a vector can be asked for.
constexpr std::int64_t kMaxDictionary = std::int64_t{1} << 40;

/// A type of Arrow that columns can have: its format string, and the column that is made of it.
struct ArrowType {
  std::string_view format;
  ColumnForm form;
  RowType type;
};
constexpr ArrowType kTypes[] = {
    {"n", ColumnForm::Missing, RowType::Float32}, {"b", ColumnForm::Bits, RowType::Float32},
    {"c", ColumnForm::Numbers, RowType::Int8},    {"C", ColumnForm::Numbers, RowType::UInt8},
    {"s", ColumnForm::Numbers, RowType::Int16},   {"S", ColumnForm::Numbers, RowType::UInt16},
    {"i", ColumnForm::Numbers, RowType::Int32},   {"I", ColumnForm::Numbers, RowType::UInt32},
    {"l", ColumnForm::Numbers, RowType::Int64},   {"L", ColumnForm::Numbers, RowType::UInt64},
    {"e", ColumnForm::Numbers, RowType::Float16}, {"f", ColumnForm::Numbers, RowType::Float32},
    {"g", ColumnForm::Numbers, RowType::Float64}, {"u", ColumnForm::Text, RowType::Int32},
    {"U", ColumnForm::Text, RowType::Int64},      {"vu", ColumnForm::TextViews, RowType::Float32},
};

/// A type that is refused, found by the beginning of its format, and its name in messages.
struct OtherType {
  std::string_view format, words;
};
constexpr OtherType kOtherTypes[] = {
    {"d:", "decimal"},     {"td", "date"},
    {"tt", "time"},        {"ts", "timestamp"},
    {"tD", "duration"},    {"ti", "interval"},
    {"z", "binary"},       {"Z", "large binary"},
    {"vz", "binary view"}, {"w:", "fixed binary"},
    {"+s", "struct"},      {"+m", "map"},
    {"+u", "union"},       {"+r", "run-end encoded"},
    {"+", "list"},
};

std::string_view name_of(const ArrowSchema& schema) { return schema.name == nullptr ? "" : schema.name; }

std::string type_text(std::string_view format) {
  for (const OtherType& type : kOtherTypes)
    if (format.starts_with(type.format)) return formatted("{} ({})", type.words, in_quotes(format));
  return in_quotes(format);
}

/// A place in the array for messages. It is three words, and becomes a text only if something is wrong there.
struct Place {
  const char* kind;  ///< "rows" or "column".
  std::string_view name{};
  const char* part = "";

  Failure wrong(std::string_view what) const { return fail(ErrorCode::Usage, text(), what); }
  Failure refuse(std::string_view what) const { return refused(text(), what); }
  std::string text() const { return (name.data() == nullptr ? kind : kind + (' ' + in_quotes(name))) + part; }
};

Place place_of(const ArrowSchema& column) { return {"column", name_of(column)}; }

/// Checks the fields that arrays of all types have. `rows` is the number of values, from `first` on, that are used.
Result<void> check_array(const Place& place, const ArrowArray& array, std::int64_t first, std::int64_t rows) {
  if (array.release == nullptr) return place.wrong("its array has been released");
  if (array.length < 0) return place.wrong(formatted("its length is {}", array.length));
  if (array.offset < 0) return place.wrong(formatted("its offset is {}", array.offset));
  if (array.null_count < -1) return place.wrong(formatted("its null_count is {}", array.null_count));
  if (first > array.length || rows > array.length - first)
    return place.wrong(formatted("it has {} values; the rows end at {}", array.length, first + rows));
  if (array.length > kMaxValues || array.offset > kMaxValues - array.length)
    return place.wrong("its offset and length are more than memory holds");
  if (array.n_buffers < 0 || (array.n_buffers > 0 && array.buffers == nullptr))
    return place.wrong("it has no buffers");
  return {};
}

Result<void> check_buffer_count(const Place& place, const ArrowArray& array, std::int64_t expected) {
  if (array.n_buffers == expected) return {};
  return place.wrong(formatted("it has {} buffers, its type has {}", array.n_buffers, expected));
}

/// Returns the first buffer of an array, its validity bits; null if no value is missing.
Result<const std::uint8_t*> validity_of(const Place& place, const ArrowArray& array) {
  const auto* const bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  if (array.null_count > 0 && bits == nullptr && array.length > 0)
    return place.wrong(formatted("{} values are null, and there are no validity bits", array.null_count));
  return array.null_count == 0 ? nullptr : bits;
}

Result<const ArrowType*> known_type(const Place& place, const ArrowSchema& schema) {
  if (schema.release == nullptr) return place.wrong("its schema has been released");
  if (schema.format == nullptr) return place.wrong("its schema has no format");
  for (const ArrowType& type : kTypes)
    if (type.format.front() == *schema.format && type.format == schema.format) return &type;
  if (*schema.format == 'd')
    return place.refuse(
        formatted("its type is {}: cast it to float64, which SQL calls DOUBLE", type_text(schema.format)));
  return place.refuse(
      formatted("its type is {}; columns are numbers, booleans, texts, dictionaries of those, or null",
                type_text(schema.format)));
}

/// Sets `column` to the `rows` values from value `first` on.
Result<void> read_column(const Place& place, const ArrowSchema& schema, const ArrowArray& array,
                         std::int64_t first, std::int64_t rows, Column& column) {
  FVM_ASSIGN(const ArrowType* const type, known_type(place, schema));
  FVM_TRY(check_array(place, array, first, rows));
  column = {.form = type->form, .type = type->type, .offset = static_cast<std::size_t>(array.offset + first)};
  if (type->form == ColumnForm::Missing) return {};
  const bool views = type->form == ColumnForm::TextViews;
  if (views && array.n_buffers < 3) return place.wrong("it has fewer than 3 buffers");
  if (!views) FVM_TRY(check_buffer_count(place, array, type->form == ColumnForm::Text ? 3 : 2));
  FVM_ASSIGN(column.validity, validity_of(place, array));
  column.values = array.buffers[1];
  if (rows == 0) return {};
  if (column.values == nullptr) return place.wrong("its values have no buffer");
  if (type->form == ColumnForm::Text) column.text = static_cast<const char*>(array.buffers[2]);
  if (views) {
    column.buffers = array.buffers + 2;
    column.buffer_count = static_cast<std::size_t>(array.n_buffers - 3);
    if (column.buffer_count != 0 && column.buffers[column.buffer_count] == nullptr)
      return place.wrong("the sizes of its texts have no buffer");
  }
  return {};
}

/// Checks that a feature takes texts, for a column of `count` texts.
Result<void> check_texts(const Place& place, const CategoryTexts& texts, std::uint32_t feature,
                         const Column& column, std::int64_t count) {
  const auto checked = texts.check_texts(feature, column, static_cast<std::size_t>(count));
  if (checked) return {};
  const std::string what = checked.error().text();
  return checked.error().code == ErrorCode::Refused ? place.refuse(what) : place.wrong(what);
}

/// Adds a dictionary to a column of indices, and writes the dictionary's numbers to `numbers`.
Result<void> add_dictionary(const Place& place, const ArrowSchema& schema, const ArrowArray& array,
                            std::uint32_t feature, const CategoryTexts& texts, double* numbers,
                            Column& column) {
  const bool integers = column.form == ColumnForm::Numbers &&
                        std::string_view("cCsSiIlL").find(*schema.format) != std::string_view::npos;
  if (!integers)
    return place.wrong(formatted("the indices of its dictionary have the type {}", in_quotes(schema.format)));
  const Place values{place.kind, place.name, ", dictionary"};
  if (schema.dictionary->dictionary != nullptr) return values.refuse("has a dictionary itself");
  const std::int64_t count = array.dictionary->length;
  Column dictionary;
  FVM_TRY(read_column(values, *schema.dictionary, *array.dictionary, 0, count, dictionary));
  if (is_text(dictionary)) FVM_TRY(check_texts(place, texts, feature, dictionary, count));
  column.form = ColumnForm::Indices;
  column.categories = numbers;
  column.category_count = static_cast<std::size_t>(count);
  const auto refuses = texts.numbers_of(feature, dictionary, column.category_count, numbers);
  if (!refuses) return values.wrong(refuses.error().text());
  column.refuses = *refuses;
  return {};
}

/// Makes columns of the struct array of a call.
class ArrowRows {
 public:
  ArrowRows(const ArrowArray& array, const ArrowSchema& schema, Matched matched, const Names& names,
            ColumnMemory& memory)
      : array_(array), schema_(schema), matched_(matched), names_(names), memory_(memory) {}

  Result<AnyRows> match_columns(bool ignores_extra) {
    FVM_TRY(check_struct());
    FVM_TRY(match(ignores_extra));
    return columns(memory_.features);
  }

  Result<AnyRows> matched_columns(std::span<const std::uint32_t> features) {
    FVM_TRY(check_struct());
    if (features.size() != static_cast<std::size_t>(array_.n_children))
      return usage("the columns are others than those that were matched");
    return columns(features);
  }

 private:
  /// Checks a column without a dictionary.
  Result<void> check_plain(const Place& place, std::uint32_t feature, const Column& column) const {
    if (is_text(column)) FVM_TRY(check_texts(place, names_.categories(), feature, column, array_.length));
    if (column.form == ColumnForm::Numbers && matched_ == Matched::ByName && array_.length != 0 &&
        !names_.program().category_names().empty() && names_.categories().has_ambiguous_numbers(feature))
      return place.refuse(
          "its numbers may be names or codes of categories: pass names as texts, codes by position");
    return {};
  }

  /// Reads the children. Each feature must occur once in `features`, so that each column is set.
  Result<AnyRows> columns(std::span<const std::uint32_t> features) {
    FVM_TRY(make_room(features));
    memory_.columns.resize(names_.program().meta().num_features);
    double* numbers = memory_.numbers.data();
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::uint32_t feature = features[i];
      if (feature == kNoFeature) continue;
      const ArrowSchema& schema = *schema_.children[i];
      const ArrowArray& array = *array_.children[i];
      const Place place = place_of(schema);
      Column& column = memory_.columns[feature];
      FVM_TRY(read_column(place, schema, array, array_.offset, array_.length, column));
      if (schema.dictionary != nullptr) {
        FVM_TRY(add_dictionary(place, schema, array, feature, names_.categories(), numbers, column));
        numbers += column.category_count;
      } else {
        FVM_TRY(check_plain(place, feature, column));
      }
      has_texts_ = has_texts_ || is_text(column);
    }
    return AnyRows(ColumnRows{.count = static_cast<std::size_t>(array_.length),
                              .columns = memory_.columns,
                              .texts = has_texts_ ? &names_.categories() : nullptr});
  }

  Result<void> check_struct() const {
    const Place place{"rows"};
    if (schema_.release == nullptr) return place.wrong("the schema has been released");
    if (schema_.format == nullptr || std::string_view(schema_.format) != "+s")
      return place.refuse(formatted("the array's type is {}, not a struct",
                                    type_text(schema_.format == nullptr ? "" : schema_.format)));
    FVM_TRY(check_array(place, array_, 0, array_.length));
    FVM_TRY(check_buffer_count(place, array_, 1));
    if (array_.n_children < 0 || array_.n_children != schema_.n_children)
      return place.wrong(
          formatted("the array has {} children, its schema {}", array_.n_children, schema_.n_children));
    for (std::int64_t i = 0; i < array_.n_children; ++i) {
      const bool there = array_.children != nullptr && schema_.children != nullptr &&
                         array_.children[i] != nullptr && schema_.children[i] != nullptr;
      if (!there) return place.wrong(formatted("child {} is null", i));
      if ((array_.children[i]->dictionary == nullptr) != (schema_.children[i]->dictionary == nullptr))
        return place.wrong(formatted("child {} has a dictionary in the array or in the schema alone", i));
    }
    return check_rows_valid(place);
  }

  Result<void> check_rows_valid(const Place& place) const {
    FVM_ASSIGN(const std::uint8_t* const bits, validity_of(place, array_));
    for (std::int64_t i = 0; bits != nullptr && i < array_.length; ++i) {
      const std::int64_t bit = array_.offset + i;
      if ((bits[bit / 8] >> bit % 8 & 1) == 0) return place.refuse(formatted("row {} is null as a whole", i));
    }
    return {};
  }

  /// Sets the feature of each child, or kNoFeature.
  Result<void> match(bool ignores_extra) {
    const auto children = static_cast<std::size_t>(array_.n_children);
    const ProgramMeta& meta = names_.program().meta();
    while (memory_.features.size() < children) memory_.features.push_back(kNoFeature);
    memory_.features.resize(children);
    if (meta.num_feature_names == 0) {
      if (children != meta.num_features)
        return usage("the model's features have no names: there must be {} columns in its order, not {}",
                     meta.num_features, children);
      for (std::uint32_t i = 0; i < children; ++i) memory_.features[i] = i;
      return {};
    }
    std::size_t found = 0;
    for (std::size_t i = 0; i < children; ++i) {
      const std::string_view name = name_of(*schema_.children[i]);
      std::uint32_t& feature = memory_.features[i];
      // Calls with the same schema, or with the model's order, compare each name once.
      if (feature == kNoFeature || names_.program().feature_name(feature) != name)
        feature = names_.feature(name).value_or(kNoFeature);
      found += feature != kNoFeature ? 1 : 0;
    }
    return check_match(found, ignores_extra);
  }

  /// Checks that each feature has one child, and that there are no others unless they are ignored.
  Result<void> check_match(std::size_t found, bool ignores_extra) {
    const std::size_t num_features = names_.program().meta().num_features;
    std::vector<std::uint8_t>& taken = memory_.taken;
    taken.assign(num_features, 0);
    std::string missing, extra;
    for (std::size_t i = 0; i < memory_.features.size(); ++i) {
      const std::uint32_t feature = memory_.features[i];
      const std::string_view name = name_of(*schema_.children[i]);
      if (feature == kNoFeature) {
        add_name(extra, name);
        continue;
      }
      if (taken[feature] != 0) return place_of(*schema_.children[i]).wrong("is there twice");
      taken[feature] = 1;
    }
    for (std::uint32_t f = 0; found < num_features && f < num_features; ++f)
      if (taken[f] == 0) add_name(missing, names_.program().feature_name(f));
    if (ignores_extra) extra.clear();
    if (missing.empty() && extra.empty()) return {};
    if (missing.empty()) return usage("columns that the model does not have: {}", extra);
    return usage("columns that the model needs are missing: {}{}", missing,
                 extra.empty() ? "" : formatted("; columns that it does not have: {}", extra));
  }

  static void add_name(std::string& names, std::string_view name) {
    constexpr std::size_t most = 2000;  // longer messages are of no use
    if (names.size() > most) {
      if (!names.ends_with("…")) names += ", …";
      return;
    }
    names += (names.empty() ? "" : ", ") + in_quotes(name);
  }

  /// Makes room for the numbers of all dictionaries.
  Result<void> make_room(std::span<const std::uint32_t> features) {
    std::size_t room = 0;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const ArrowArray* const dictionary = array_.children[i]->dictionary;
      if (features[i] == kNoFeature || dictionary == nullptr) continue;
      const Place place = place_of(*schema_.children[i]);
      if (dictionary->length < 0 || dictionary->length > kMaxDictionary)
        return place.wrong(formatted("its dictionary's length is {}", dictionary->length));
      room += static_cast<std::size_t>(dictionary->length);
    }
    if (memory_.numbers.size() < room) memory_.numbers.resize(room);
    return {};
  }

  const ArrowArray& array_;
  const ArrowSchema& schema_;
  Matched matched_;
  const Names& names_;
  ColumnMemory& memory_;
  bool has_texts_ = false;
};

}  // namespace

Result<AnyRows> known_arrow(const fvm_rows& rows, const Names& names, ColumnMemory& memory) {
  if (rows.data == nullptr) return usage("the Arrow array is null");
  if (rows.schema == nullptr) return usage("rows.schema is null: Arrow rows need their schema");
  if (rows.extra != FVM_EXTRA_ERROR && rows.extra != FVM_EXTRA_IGNORE)
    return usage("rows.extra is {}, not FVM_EXTRA_ERROR or FVM_EXTRA_IGNORE", rows.extra);
  if (rows.column_count != 0) return usage("rows.column_count is set, which Arrow rows do not have");
  const auto& array = *static_cast<const ArrowArray*>(rows.data);
  if (rows.row_count != 0 && (array.length < 0 || rows.row_count != static_cast<std::size_t>(array.length)))
    return usage("rows.row_count is {}, the Arrow array's length is {}", rows.row_count, array.length);
  return ArrowRows(array, *rows.schema, Matched::ByName, names, memory)
      .match_columns(rows.extra == FVM_EXTRA_IGNORE);
}

Result<AnyRows> matched_arrow(const ArrowArray& array, const ArrowSchema& schema,
                              std::span<const std::uint32_t> features, Matched matched, const Names& names,
                              ColumnMemory& memory) {
  return ArrowRows(array, schema, matched, names, memory).matched_columns(features);
}

}  // namespace forestvm::c_api
