// See lightgbm_text.hpp. The keys that are read are rows of tables.
#include "frontend/lightgbm_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

enum class Presence { Required, Optional };

template <class Record>
struct Key {
  std::string_view name;
  LightgbmEntry Record::*entry;
  Presence need;
};

/// The keys. LightGBM takes files without tree_sizes, and files of releases before 3.2 lack is_linear.
constexpr Key<LightgbmHeader> kHeaderKeys[] = {
    {"version", &LightgbmHeader::version, Presence::Required},
    {"num_class", &LightgbmHeader::num_class, Presence::Required},
    {"num_tree_per_iteration", &LightgbmHeader::num_tree_per_iteration, Presence::Required},
    {"max_feature_idx", &LightgbmHeader::max_feature_idx, Presence::Required},
    {"objective", &LightgbmHeader::objective, Presence::Optional},
    {"average_output", &LightgbmHeader::average_output, Presence::Optional},
    {"feature_names", &LightgbmHeader::feature_names, Presence::Required},
    {"feature_infos", &LightgbmHeader::feature_infos, Presence::Required},
    {"tree_sizes", &LightgbmHeader::tree_sizes, Presence::Optional},
};
constexpr Key<LightgbmTree> kTreeKeys[] = {
    {"num_leaves", &LightgbmTree::num_leaves, Presence::Required},
    {"num_cat", &LightgbmTree::num_cat, Presence::Required},
    {"split_feature", &LightgbmTree::split_feature, Presence::Required},
    {"split_gain", &LightgbmTree::split_gain, Presence::Optional},
    {"threshold", &LightgbmTree::threshold, Presence::Required},
    {"decision_type", &LightgbmTree::decision_type, Presence::Required},
    {"left_child", &LightgbmTree::left_child, Presence::Required},
    {"right_child", &LightgbmTree::right_child, Presence::Required},
    {"leaf_value", &LightgbmTree::leaf_value, Presence::Required},
    {"leaf_count", &LightgbmTree::leaf_count, Presence::Optional},
    {"internal_count", &LightgbmTree::internal_count, Presence::Optional},
    {"is_linear", &LightgbmTree::is_linear, Presence::Optional},
    {"leaf_const", &LightgbmTree::leaf_const, Presence::Optional},
    {"num_features", &LightgbmTree::num_features, Presence::Optional},
    {"leaf_features", &LightgbmTree::leaf_features, Presence::Optional},
    {"leaf_coeff", &LightgbmTree::leaf_coeff, Presence::Optional},
    {"cat_boundaries", &LightgbmTree::cat_boundaries, Presence::Optional},
    {"cat_threshold", &LightgbmTree::cat_threshold, Presence::Optional},
};

constexpr std::string_view kFlagKey = "average_output";  // the one line without '='
constexpr std::string_view kTreePrefix = "Tree=";
constexpr std::string_view kEndLine = "end of trees";
constexpr std::string_view kOldEndLine =
    "feature importances:";  // ends the trees in files of releases before 2.2, which lack kEndLine
constexpr std::string_view kCategoricalPrefix = "[categorical_feature: ";  // a training parameter
constexpr std::string_view kPandasPrefix = "pandas_categorical:";          // the last line

std::string line_text(std::size_t line) { return formatted("line {}", line); }
std::string line_text(std::size_t line, std::size_t tree) {
  return formatted("{}: tree {}", line_text(line), tree);
}

/// Reads the file line by line, without line feeds.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  bool next() {
    if (end_ >= text_.size()) return false;
    begin_ = end_;
    const std::size_t feed = text_.find('\n', begin_);
    line_ = text_.substr(begin_, feed == std::string_view::npos ? feed : feed - begin_);
    end_ = begin_ + line_.size() + 1;
    ++number_;
    return true;
  }

  std::string_view line() const { return line_; }
  std::size_t begin() const { return begin_; }
  std::size_t number() const { return number_; }
  bool at_tree() const { return line_.starts_with(kTreePrefix); }
  bool at_old_end() const { return line_ == kOldEndLine; }
  bool at_end() const { return line_ == kEndLine || at_old_end(); }

 private:
  std::string_view text_;
  std::string_view line_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t number_ = 0;
};

/// Stores the current line in the entry of its key; unknown keys are skipped.
template <class Record, std::size_t count>
Result<void> take(const Lines& lines, const Key<Record> (&keys)[count], Record& record,
                  const std::string& where) {
  const std::string_view line = lines.line();
  if (line.ends_with('\r'))
    return refused(where, "a Windows line end (CR LF), which LightGBM cannot read: convert the file");
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos && line != kFlagKey)
    return refused(where, "expected key=value, found {}", in_quotes(line));
  const std::string_view name = line.substr(0, equals);
  for (const Key<Record>& key : keys) {
    if (key.name != name) continue;
    LightgbmEntry& entry = record.*key.entry;
    if (entry.given()) return refused(where, "{} is given twice: first in {}", name, line_text(entry.line));
    const std::string_view text = equals == std::string_view::npos ? "" : line.substr(equals + 1);
    entry = {key.name, text, lines.number()};
  }
  return {};
}

template <class Record, std::size_t count>
Result<void> check_complete(const Key<Record> (&keys)[count], const Record& record,
                            const std::string& where) {
  for (const Key<Record>& key : keys)
    if (key.need == Presence::Required && !(record.*key.entry).given())
      return refused(where, "{} is missing", key.name);
  return {};
}

Error cut_short(const Lines& lines) {
  return refused(line_text(lines.number()), "the file ends before \"end of trees\": it is cut short");
}

/// Reads a tree from its line `Tree=` on; stops at the line after the tree.
Result<LightgbmTree> read_tree(Lines& lines, std::size_t number) {
  LightgbmTree tree;
  tree.number = number;
  tree.line = lines.number();
  const std::string where = line_text(tree.line, number);
  if (lines.line().substr(kTreePrefix.size()) != std::to_string(number))
    return refused(where, "expected \"Tree={}\", found {}", number, in_quotes(lines.line()));
  bool ended = false;  // an empty line ends the entries; LightGBM does not look at what follows it
  while (lines.next()) {
    if (lines.at_tree() || lines.at_end()) {
      FVM_TRY(check_complete(kTreeKeys, tree, where));
      return tree;
    }
    if (lines.line().empty()) {
      ended = true;
      continue;
    }
    if (ended)
      return refused(line_text(lines.number(), number),
                     "after an empty line, expected the next tree or \"end of trees\", found {}",
                     in_quotes(lines.line()));
    FVM_TRY(take(lines, kTreeKeys, tree, line_text(lines.number(), number)));
  }
  return cut_short(lines);
}

/// Reads what follows the trees in files that the Python package wrote after training on a data frame: training
/// parameters, and in the last line names of categories.
void read_end(Lines& lines, LightgbmHeader& header) {
  LightgbmEntry& pandas = header.pandas_categorical;
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (!line.empty()) pandas = {};
    if (line.starts_with(kPandasPrefix))
      pandas = {"pandas_categorical", line.substr(kPandasPrefix.size()), lines.number()};
    if (line.starts_with(kCategoricalPrefix) && line.ends_with(']'))
      header.categorical_feature = {
          "categorical_feature",
          line.substr(kCategoricalPrefix.size(), line.size() - kCategoricalPrefix.size() - 1),
          lines.number()};
  }
}

template <class Number>
Result<std::vector<Number>> numbers_of(const LightgbmEntry& entry, std::size_t count,
                                       const LightgbmTree* tree) {
  const auto wrong = [&](std::string what) {
    return refused(location_of(entry, tree), std::string(entry.key) + std::move(what));
  };
  std::vector<Number> numbers;
  std::string_view text = entry.text;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    if (numbers.size() == count) return wrong(formatted(": more than {} numbers", count));
    Number number = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    const auto at = [&] { return formatted("[{}]: ", numbers.size()); };
    if (code == std::errc::result_out_of_range)
      return wrong(formatted("{}out of range: {}", at(), in_quotes(word)));
    if (code != std::errc() || end != word.data() + word.size())
      return wrong(formatted("{}expected a number, found {}", at(), in_quotes(word)));
    if constexpr (std::is_floating_point_v<Number>)
      if (std::isnan(number)) return wrong(formatted("{}not a number: {}", at(), in_quotes(word)));
    numbers.push_back(number);
  }
  if (numbers.size() != count) return wrong(formatted(": {} numbers instead of {}", numbers.size(), count));
  return numbers;
}

}  // namespace

Result<LightgbmHeader> read_lightgbm_text(std::string_view text, const LightgbmTreeReceiver& receive) {
  LightgbmHeader header;
  Lines lines(text);
  lines.next();  // "tree", by which the format is known
  while (true) {
    if (!lines.next()) return cut_short(lines);
    if (lines.at_tree() || lines.at_end()) break;
    if (!lines.line().empty()) FVM_TRY(take(lines, kHeaderKeys, header, line_text(lines.number())));
  }
  FVM_TRY(check_complete(kHeaderKeys, header, line_text(lines.number())));
  while (!lines.at_end()) {
    const std::size_t begin = lines.begin();
    FVM_ASSIGN(const LightgbmTree tree, read_tree(lines, header.tree_bytes.size()));
    FVM_TRY(receive(tree));
    // The old end line has an empty line before it, which is not a part of the last tree.
    header.tree_bytes.push_back(lines.begin() - begin - (lines.at_old_end() ? 1 : 0));
  }
  read_end(lines, header);
  return header;
}

std::string location_of(const LightgbmEntry& entry, const LightgbmTree* tree) {
  if (entry.line == LightgbmEntry::kNoLine) return std::string(entry.key);
  return tree == nullptr ? line_text(entry.line) : line_text(entry.line, tree->number);
}

Result<std::int64_t> number_of(const LightgbmEntry& entry, std::int64_t least, std::int64_t most,
                               const LightgbmTree* tree) {
  FVM_ASSIGN(const std::vector<std::int64_t> numbers, integers_of(entry, 1, tree));
  if (numbers[0] < least || numbers[0] > most)
    return refused(location_of(entry, tree), "{}: {} is not within {} and {}", entry.key, numbers[0], least,
                   most);
  return numbers[0];
}

Result<std::vector<std::int64_t>> integers_of(const LightgbmEntry& entry, std::size_t count,
                                              const LightgbmTree* tree) {
  return numbers_of<std::int64_t>(entry, count, tree);
}

Result<std::vector<double>> reals_of(const LightgbmEntry& entry, std::size_t count,
                                     const LightgbmTree* tree) {
  return numbers_of<double>(entry, count, tree);
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) words.push_back(word);
  return words;
}

}  // namespace forestvm::frontend
