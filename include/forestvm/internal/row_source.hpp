// The rows of a call as backends read them. The RowReader of a predictor resolves the rows of each call once: their
// form, whether they fit the program, and how their values become the numbers that walks compare. No other code looks
// inside the variant that callers pass; the rest of a call works with the RowSource. Implemented by vm/call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/column_set.hpp>
#include <forestvm/internal/value_rules.hpp>

namespace forestvm {

/// The encoded rows that a program takes: codes of its own encoder, in plans whose walks read only codes.
class CodedPlans {
 public:
  explicit CodedPlans(const Program& program);

  /// Checks that some plan reads only codes; Refused if none does.
  Result<void> check() const;
  /// Checks whether these rows can be taken. Errors: see Predictor::predict_as.
  Result<void> check(const CodedRows& rows) const;
  /// Returns Usage if `room` bytes are too few for the codes of `rows` rows.
  Result<void> check_room(std::size_t rows, std::size_t room) const;
  /// Returns whether walks of the plan for `rows` rows read values.
  bool reads_values(std::size_t rows) const;
  /// Returns the row count by which to select a plan for `rows` encoded rows: `rows` itself, or the nearest
  /// larger (otherwise smaller) count whose plan reads only codes. There must be such a plan.
  std::uint32_t plan_rows(std::uint32_t rows) const;
  /// Returns encoder_id of the program.
  std::uint64_t encoder() const { return encoder_; }
  /// Returns the number of the encoder's columns.
  std::size_t code_columns() const { return code_columns_; }
  /// Returns the number of columns of encoded rows: see CodedRows.
  std::size_t columns() const { return columns_; }

 private:
  /// Returns the entry of plans_ that contains `rows`, otherwise the next larger one, otherwise the last.
  const RowCounts& plans_for(std::size_t rows) const;

  std::vector<RowCounts> plans_;  ///< Row counts whose plans read only codes, ascending.
  std::size_t code_columns_, columns_;
  std::uint64_t encoder_;
};

/// Returns the error of a call without memory for its rows or output.
Failure no_buffer();

/// Returns the largest number of rows that is whole blocks of codes and at most `most`, but at least one block.
constexpr std::size_t whole_blocks(std::size_t most) {
  return most < kCodeRows ? kCodeRows : most / kCodeRows * kCodeRows;
}

/// The forms of rows, by what backends must do to read them.
enum class RowForm : std::uint8_t {
  Plain,  ///< Row-major float32 in the host's memory, all of which are compared as they are.
  Dense,  ///< Other dense rows, and columns that hold texts or from which others are derived: they must be converted.
  Doubles,   ///< Row-major float64 of a program that compares in float64: read as they are, or converted.
  Columns,   ///< Columns, and column-major rows: they are read as they are, or converted.
  Sparse,    ///< Sparse rows: they are read as they are, or converted.
  Encoded,   ///< Rank codes of the program's encoder.
  OnDevice,  ///< Row-major float32 in the memory of the backend's GPU, all compared as they are.
};

/// Columns of a call's rows, from row `first_row` on.
struct ColumnView {
  ColumnSet columns;
  std::size_t first_row = 0;
};

/// Some of a call's rows, in the one form in which a pass reads them: values, codes, sparse rows or columns.
struct RowView {
  /// First value of the first row; null if the rows have another form.
  const float* values = nullptr;
  /// First value of the first row if the form is RowForm::Doubles, otherwise null. It needs no alignment.
  const double* doubles = nullptr;
  std::size_t stride = 0;  ///< Number of values from one row to the next in `values` or `doubles`.
  const std::uint8_t* codes = nullptr;
  std::optional<CsrRows> sparse{};
  std::optional<ColumnView> columns{};
};

class RowReader;

/// The rows of one call, which have been checked as far as possible without reading them.
class RowSource {
 public:
  RowForm form() const { return form_; }
  std::size_t count() const { return count_; }

  /// Returns the number of values that sparse rows list.
  std::size_t listed_values() const;
  /// Returns the stream on which rows in a GPU's memory are ready.
  void* stream() const;

  /// Returns the most rows, up to `most`, after which a pass may end: encoded rows are cut between blocks of
  /// codes only, and a pass takes one block at least.
  std::size_t cut(std::size_t most) const { return form_ == RowForm::Encoded ? whole_blocks(most) : most; }

  /// Returns the row count by which the plan for a pass of `rows` rows is chosen.
  std::uint32_t plan_rows(std::uint32_t rows) const;

  /// Checks the values of `count` rows from `begin` on, and returns the view that a pass reads. If `converted`
  /// is not null, dense rows, sparse rows and columns are written there as walks read them: row_width float32 each, one
  /// row after the other. Rows of RowForm::Dense must be converted, unless they have no features; encoded rows and rows
  /// in a GPU's memory never are. Sparse rows must lie inside the values and name features of the model; indices must
  /// be in their dictionary; where the program compares in float64, each value must be a float64. Errors name the
  /// row.
  Result<RowView> read(std::size_t begin, std::size_t count, float* converted) const;

  /// Returns the view that read() returns of rows of RowForm::Plain that are not converted.
  RowView plain(std::size_t begin) const {
    const auto& rows = *std::get_if<RowBlock>(rows_);
    return {.values = static_cast<const float*>(rows.data) + begin * rows.stride, .stride = rows.stride};
  }

  /// Does what read() does, for rows that must be converted, but leaves out the columns of lookups: see
  /// ColumnRules::short_width.
  Result<RowView> read_short(std::size_t begin, std::size_t count, float* converted) const;

  /// Writes the values of some features, which ascend, in `count` rows from `begin` on, as linear leaves read them:
  /// float64, and 0 where |x| <= kTiny; NaN is missing. The rows have been read, and are in the host's memory. If
  /// the rows are encoded, `features` must be all features that functions of leaves read.
  void copy_features(std::size_t begin, std::size_t count, std::span<const std::uint32_t> features,
                     double* out) const;

  /// Writes the codes of `count` encoded rows from `begin` on, where a block begins. It leaves out the values of
  /// features that follow the codes of each block if the program has linear leaves.
  void copy_codes(std::size_t begin, std::size_t count, std::uint8_t* out) const;

  /// Writes encoded rows: blocks of codes of `count` rows, of which the first is row `begin`, and behind the codes of
  /// each block the values of `features`, row by row. Values that belong to no row are 0.
  void write_coded(std::size_t begin, std::size_t count, const std::uint8_t* codes,
                   std::span<const std::uint32_t> features, std::uint8_t* out) const;

 private:
  friend class RowReader;
  RowSource(const RowReader& reader, const AnyRows& rows, RowForm form)
      : reader_(&reader), rows_(&rows), count_(row_count(rows)), form_(form) {}

  const RowReader* reader_;
  const AnyRows* rows_;
  std::size_t count_;
  RowForm form_;
};

/// Returns the rows if they are a RowBlock, otherwise null.
inline const RowBlock* block_of(const AnyRows& rows) { return std::get_if<RowBlock>(&rows); }

/// Reads rows for one program.
class RowReader {
 public:
  /// `round` rounds values; null stands for the function that runs on any CPU. `device` is the ordinal of the GPU that
  /// the program runs on; none if it runs on the host. `rounds_runs` says whether `round` takes far less time for
  /// values that follow one another than for picked ones.
  explicit RowReader(const Program& program, RoundFunction round = nullptr,
                     std::optional<int> device = std::nullopt, bool rounds_runs = false);

  /// Resolves the rows of a call. `rows` must live as long as the result. Errors: see Predictor::predict_as.
  Result<RowSource> resolve(const AnyRows& rows) const;
  /// Resolves rows that are to be encoded into `room` bytes. Errors: see Predictor::encode.
  Result<RowSource> resolve_to_encode(const AnyRows& rows, std::size_t room) const;

  const ProgramMeta& meta() const { return meta_; }
  const ValueRules& rules() const { return rules_; }
  const CodedPlans& coded_plans() const { return coded_plans_; }
  /// Returns the features, ascending, that are read where they lie if rows are not converted: by the encoder and by
  /// linear leaves.
  std::span<const std::uint32_t> features_in_place() const { return features_in_place_; }
  /// Returns the features, ascending, whose values a conversion of rows writes: all features, or only those that
  /// the program reads if it compares in float64, where a conversion is slow, and reads less than half of many
  /// features. For rows of float64 values that follow one another (`float64_runs`) it may return all features
  /// nevertheless. The first call may be slow, because it decodes the forest.
  std::span<const std::uint32_t> features_converted(bool float64_runs = false) const;

 private:
  /// Returns whether walks, the encoder or derived columns read a feature. Slow at first: decodes the forest.
  bool reads(std::uint32_t feature) const;
  Result<void> check_column(const Column& column, std::uint32_t feature, const ColumnRows& rows) const;
  Result<RowForm> form_of(const RowBlock& rows) const;
  Result<RowForm> form_of(const ColumnRows& rows) const;
  static Result<RowForm> form_of(const CsrRows& rows);
  Result<RowForm> form_of(const CodedRows& rows) const;
  Result<RowForm> form_of(const DeviceRows& rows) const;

  Program program_;
  const ProgramMeta& meta_;
  ValueRules rules_;
  CodedPlans coded_plans_;
  std::vector<std::uint32_t> features_in_place_;
  std::optional<int> device_;
  bool rounds_runs_;
  mutable std::once_flag features_read_once_;
  mutable std::vector<bool> features_read_;  ///< See reads().
  mutable std::once_flag features_converted_once_;
  mutable std::vector<std::uint32_t> features_converted_;
  mutable std::vector<std::uint32_t> all_features_;  ///< Empty unless taking them all is faster.
};

}  // namespace forestvm
