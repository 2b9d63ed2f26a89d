// See libsvm.hpp.
#include "cli/io/libsvm.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/cell_value.hpp"
#include "cli/io/csv_cells.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/sparse_row.hpp"

namespace forestvm::cli {
namespace {

constexpr std::string_view kBlankCharacters = " \t\r";

/// Removes the first word from a line and returns it. Returns an empty text at the end of the line and where a comment
/// begins.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlankCharacters), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlankCharacters));
  line.remove_prefix(word.size());
  return word.starts_with('#') ? std::string_view() : word;
}

/// A feature's index and the text of its value.
struct Listed {
  std::uint64_t index;
  std::string_view value;
};
/// Splits "index:value". Returns nothing for other words.
std::optional<Listed> split(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon + 1 == word.size()) return std::nullopt;
  std::uint64_t index = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + colon, index);
  if (code != std::errc() || end != word.data() + colon) return std::nullopt;
  return Listed{index, word.substr(colon + 1)};
}

bool is_query(std::string_view word) { return word.starts_with("qid:") && word.size() > 4; }

/// Returns whether a word is a label: a number, or several with commas between.
bool is_label(std::string_view word) {
  for (;;) {
    const std::size_t comma = word.find(',');
    if (!parse_number<float>(word.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    word.remove_prefix(comma + 1);
  }
}

template <class Number>
class LibsvmReader final : public TableReader {
 public:
  LibsvmReader(Source& source, const RowForm& form)
      : TableReader(kRowType<Number>), source_(source), cells_(source, kBlanks), form_(form), sparse_(form) {
    columns_ = form.width;
  }

  /// Sets a notice that indices count from 0, if no option says where they begin and no line that has arrived has index
  /// 0.
  Result<void> begin() {
    if (form_.index_base) return {};
    FVM_ASSIGN(std::string_view text, first_line(source_, kLookedAt, false));
    FVM_ASSIGN(const std::string_view seen, source_.peek(text.size()));
    for (std::string_view rest = seen; !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      take_word(line);  // the label
      for (std::string_view word = take_word(line); !word.empty(); word = take_word(line))
        if (word.starts_with("0:")) return {};
    }
    notice_ =
        "features are counted from 0, as XGBoost and LightGBM read libsvm files, although the first lines do not "
        "have feature 0; --index-base 1 counts from 1, --index-base 0 only silences this";
    return {};
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    begin_block<Number>(rows);
    while (rows.count < most) {
      FVM_ASSIGN(const bool more, cells_.next_line());
      if (!more) break;
      FVM_ASSIGN(const bool row, read_line(rows.numbers<Number>()));
      rows.count += row ? 1U : 0U;
    }
    return {};
  }

 private:
  static constexpr std::size_t kLookedAt = std::size_t{1} << 18;

  /// Reads a line; false if it has no row.
  Result<bool> read_line(std::vector<Number>& values) {
    FVM_ASSIGN(const std::string_view label, cells_.next());
    if (cells_.is_blank_line()) return false;
    if (label.starts_with('#')) {
      FVM_TRY(skip_comment());
      return false;
    }
    if (!is_label(label))
      return refused(cells_.cell_place(),
                     "{} is not a label; a line begins with a number, which is not used, before its features",
                     single_quoted(label));
    sparse_.begin_row(values);
    while (!cells_.ends_line()) {
      FVM_ASSIGN(const std::string_view word, cells_.next());
      if (word.starts_with('#')) {
        FVM_TRY(skip_comment());
        break;
      }
      if (!is_query(word)) FVM_TRY(take_value(word, values));
    }
    return true;
  }

  Result<void> skip_comment() {
    while (!cells_.ends_line()) FVM_TRY(cells_.next());
    return {};
  }

  Result<void> take_value(std::string_view word, std::vector<Number>& values) {
    const std::optional<Listed> listed = split(word);
    if (!listed) return refused(cells_.cell_place(), "{} is not index:value", single_quoted(word));
    const std::uint64_t base = form_.index_base.value_or(0);
    if (listed->index < base)
      return refused(cells_.cell_place(), "index 0, but features are counted from 1 (--index-base 1)");
    if (listed->index - base >= form_.width) return beyond(listed->index, base);
    Number value = 0;
    if (!read_cell(listed->value, form_, value)) return no_value(cells_.cell_place(), listed->value);
    if (sparse_.set(values, static_cast<std::size_t>(listed->index - base), value)) return {};
    return refused(cells_.cell_place(), "index {} is listed twice", listed->index);
  }

  Error beyond(std::uint64_t index, std::uint64_t base) const {
    std::string message =
        formatted("index {} is beyond the model's {} features, counted from {}", index, form_.width, base);
    if (base == 0 && index == form_.width) message += "; --index-base 1 counts from 1";
    return refused(cells_.cell_place(), message);
  }

  Source& source_;
  CsvCells cells_;
  RowForm form_;
  SparseRows<Number> sparse_;
};

template <class Number>
Result<std::unique_ptr<TableReader>> begun_libsvm(Source& source, const RowForm& form) {
  auto reader = std::make_unique<LibsvmReader<Number>>(source, form);
  FVM_TRY(reader->begin());
  return std::unique_ptr<TableReader>(std::move(reader));
}

}  // namespace

bool is_libsvm(std::string_view line) {
  const std::string_view label = take_word(line), second = take_word(line);
  return is_label(label) && (split(second).has_value() || is_query(second));
}

Result<std::unique_ptr<TableReader>> libsvm_reader(Source& source, const RowForm& form) {
  return form.wide ? begun_libsvm<double>(source, form) : begun_libsvm<float>(source, form);
}

}  // namespace forestvm::cli
