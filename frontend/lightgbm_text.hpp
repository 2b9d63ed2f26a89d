// Splits a LightGBM text model into its entries, line by line, without interpreting them. In: the bytes of the file.
// Out: the header's entries, and each tree's as soon as the tree ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// One line `key=text`, or one member of a JSON dump. The text lies in the file's bytes, or in the reader's.
struct LightgbmEntry {
  static constexpr std::size_t kNoLine = SIZE_MAX;  ///< The value of `line` for a member of a JSON dump.

  std::string_view key;
  std::string_view text;
  std::size_t line = 0;  ///< Number of the line, from 1 on; 0 if the file does not have the entry.

  bool given() const { return line != 0; }
};

struct LightgbmHeader {
  LightgbmEntry version;
  LightgbmEntry num_class;
  LightgbmEntry num_tree_per_iteration;
  LightgbmEntry max_feature_idx;
  LightgbmEntry objective;
  LightgbmEntry average_output;
  LightgbmEntry feature_names;
  LightgbmEntry feature_infos;
  LightgbmEntry tree_sizes;
  /// A training parameter: the features with categories, if the file lists them.
  LightgbmEntry categorical_feature;
  /// In a text model: the lists of these features' category names, as JSON.
  LightgbmEntry pandas_categorical;
  /// In a JSON dump: the lists of these features' category names.
  std::vector<std::vector<std::string>> pandas_lists;
  std::vector<std::size_t> tree_bytes;  ///< Bytes of each tree in the file, which tree_sizes should equal.
};

struct LightgbmTree {
  std::size_t number = 0;
  std::size_t line = 0;
  LightgbmEntry num_leaves;
  LightgbmEntry num_cat;
  LightgbmEntry split_feature;
  LightgbmEntry split_gain;
  LightgbmEntry threshold;
  LightgbmEntry decision_type;
  LightgbmEntry left_child;
  LightgbmEntry right_child;
  LightgbmEntry leaf_value;
  LightgbmEntry leaf_count;
  LightgbmEntry internal_count;
  LightgbmEntry is_linear;
  LightgbmEntry leaf_const;
  LightgbmEntry num_features;
  LightgbmEntry leaf_features;
  LightgbmEntry leaf_coeff;
  LightgbmEntry cat_boundaries;
  LightgbmEntry cat_threshold;
};

using LightgbmTreeReceiver = std::function<Result<void>(const LightgbmTree& tree)>;

/// Reads the header and the trees up to "end of trees", and after that line the entries that LightgbmHeader names. Keys
/// that neither LightgbmHeader nor LightgbmTree names are skipped. Refuses, with its line, any other line, a key given
/// twice or missing, trees out of order, and an end before "end of trees". Returns also the errors of `receive`.
Result<LightgbmHeader> read_lightgbm_text(std::string_view text, const LightgbmTreeReceiver& receive);

/// Returns the place of an entry for messages: "line 7", "line 7: tree 2" for an entry in a tree, or the key of a JSON
/// dump's member.
std::string location_of(const LightgbmEntry& entry, const LightgbmTree* tree = nullptr);

/// Reads the entry's text as one whole number within [least, most].
Result<std::int64_t> number_of(const LightgbmEntry& entry, std::int64_t least, std::int64_t most,
                               const LightgbmTree* tree = nullptr);

/// Reads the entry's text as exactly `count` numbers with blanks between them. NaN is refused; reals are rounded
/// once.
Result<std::vector<std::int64_t>> integers_of(const LightgbmEntry& entry, std::size_t count,
                                              const LightgbmTree* tree = nullptr);
Result<std::vector<double>> reals_of(const LightgbmEntry& entry, std::size_t count,
                                     const LightgbmTree* tree = nullptr);

/// Returns the text's parts between blanks.
std::vector<std::string_view> words_of(std::string_view text);

/// Removes the first word from the text and returns it; returns an empty one at the text's end. Long lists are read
/// with it, because it makes no list of words.
std::string_view take_word(std::string_view& text);

}  // namespace forestvm::frontend
