// Rows in memory, the form of rows that a model expects, and the interface of the readers, which give the rows of a
// file in that form, block after block. Each format of rows has a TableReader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

namespace forestvm::cli {

/// Says if the first line of a CSV file is a header. Auto: it is if it looks like one, see csv_reader.
enum class Header { Auto, Yes, No };

/// The formats of rows. Auto: the content tells.
enum class RowFormat { Auto, Csv, Npy, Npz, Libsvm, JsonLines };

/// Rows in memory: float32, or float64 if the model compares in float64 or takes codes, and the file's numbers need it.
struct Rows {
  std::size_t count = 0;
  std::size_t width = 0;
  RowType type = RowType::Float32;    ///< Float32 or Float64
  std::vector<float> values{};        ///< count x width, row-major; NaN is a missing value
  std::vector<double> wide_values{};  ///< Used instead of `values` if the type is Float64.
  bool hashed = false;                ///< RowBlock::hashed
  std::vector<std::string> kept{};    ///< Cell of the kept column for each row; empty if no column is kept.

  /// Returns the values of type Number.
  template <class Number>
  std::vector<Number>& numbers() {
    if constexpr (std::is_same_v<Number, float>)
      return values;
    else
      return wide_values;
  }

  /// Calls visit(values) with the values of the rows' type.
  template <class Visit>
  decltype(auto) visit(const Visit& visit) const {
    return type == RowType::Float64 ? visit(wide_values) : visit(values);
  }

  /// Returns value number `i`.
  double value(std::size_t i) const {
    return visit([i](const auto& numbers) { return static_cast<double>(numbers[i]); });
  }

  /// Returns `rows` rows from `first` on.
  RowBlock block(std::size_t first, std::size_t rows) const {
    return visit([&](const auto& numbers) {
      return RowBlock{numbers.data() + first * width, rows, width, type, 1, hashed};
    });
  }
  RowBlock block() const { return block(0, count); }
};

/// The type of rows whose values are Numbers.
template <class Number>
inline constexpr RowType kRowType = std::is_same_v<Number, float> ? RowType::Float32 : RowType::Float64;

/// A number that stands for a missing value, as float32 and as float64 readers see it.
struct MissingNumber {
  float narrow;
  double wide;

  template <class Number>
  Number as() const {
    if constexpr (std::is_same_v<Number, float>)
      return narrow;
    else
      return wide;
  }
};

/// The categories of a feature by their names.
struct NamedCategories {
  std::uint32_t feature = 0;
  std::unordered_map<std::string, float> codes{};
  std::map<double, float> numbers{};  ///< Codes by number, if all names are numbers; otherwise empty.
  std::optional<float> unseen{};      ///< See FeatureCategories::unseen.
};

/// The rows that a model expects, and how to read them.
struct RowForm {
  std::size_t width = 0;
  std::vector<std::string_view> names{};  ///< Names of the features: `width` names, or none.
  bool underlined = false;  ///< True if the trainer wrote underlines for spaces in names (LightGBM).
  /// True if the model needs float64 numbers: it compares in float64, looks at fractions, or takes hashes of texts.
  bool wide = false;
  /// Features, ascending, whose cells are texts: rows hold the codes of these categories, see RowBlock::hashed.
  std::span<const std::uint32_t> hashed{};
  bool takes_codes = false;                   ///< True if cells of named categories are codes.
  std::vector<NamedCategories> categories{};  ///< Ascending by feature; cells of these features are names.
  std::vector<std::uint32_t> nameless{};  ///< Features, ascending, with categories that are numbers in cells.
  std::optional<MissingNumber> missing{};  ///< Number that stands for a missing value (-0 equals 0).
  Header header = Header::Auto;            ///< Kind of the first line of a CSV file.
  RowFormat format = RowFormat::Auto;
  std::optional<char>
      separator{};  ///< Separator of a CSV file (kBlanks: runs of blanks); none: the first line tells.
  /// Texts of missing values; none: those that read_cell knows.
  std::optional<std::vector<std::string>> missing_words{};
  /// True if columns that are not features of the model are left out, not refused.
  bool ignores_extra = false;
  /// Name of a column whose cells are kept as text. It need not be a feature.
  std::optional<std::string> keep{};
  std::optional<std::string> array{};         ///< Name of the array to read from an NPZ file.
  std::optional<std::uint32_t> index_base{};  ///< Number of the first feature in a libsvm file; none: 0.
  Absent absent = Absent::Missing;            ///< Value of features that a sparse row does not list.
};

/// Reads a table block after block. It keeps no more rows in memory than the caller asks for.
class TableReader {
 public:
  virtual ~TableReader() = default;

  std::size_t columns() const { return columns_; }

  /// Returns the type of the rows that it reads: Float32 or Float64.
  RowType type() const { return type_; }

  /// Returns the number of rows, if the file says it at its beginning.
  std::optional<std::size_t> rows() const { return rows_; }

  /// Returns a remark for the user on how the file is read; usually empty.
  const std::string& notice() const { return notice_; }

  /// Replaces `rows` by up to `most` following rows, in the model's order, NaN for a missing value; fewer than
  /// `most` only at the end. An error in the file is reported when its place is reached.
  virtual Result<void> read(std::size_t most, Rows& rows) = 0;

 protected:
  explicit TableReader(RowType type) : type_(type) {}

  /// Empties `rows` for a block.
  template <class Number>
  void begin_block(Rows& rows) const {
    rows.count = 0;
    rows.width = columns_;
    rows.type = type_;
    rows.numbers<Number>().clear();
    rows.kept.clear();
  }

  RowType type_;
  std::size_t columns_ = 0;
  std::optional<std::size_t> rows_;
  std::string notice_;
};

/// Returns the error for a table whose number of columns is not the model's number of features.
Error wrong_width(std::size_t columns, std::size_t width);

}  // namespace forestvm::cli
