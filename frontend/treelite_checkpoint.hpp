// Reads the fields of a Treelite checkpoint without interpreting them. In: the bytes of a checkpoint of Treelite 3 or
// 4. Out: the header, and each tree's columns, which lie in the file, as soon as the tree ends. The layouts are those
// of Treelite's public documents "Serialization Format v3" and "v4".
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Numbers in the file: a list, or one field of a list of structures. They need not be aligned.
template <class T>
class FileColumn {
 public:
  FileColumn() = default;
  FileColumn(const std::byte* first, std::size_t size, std::size_t stride = sizeof(T))
      : first_(first), size_(size), stride_(stride) {}

  std::size_t size() const { return size_; }
  T operator[](std::size_t i) const {
    T number;
    std::memcpy(&number, first_ + i * stride_, sizeof number);
    return number;
  }

 private:
  const std::byte* first_ = nullptr;
  std::size_t size_ = 0, stride_ = sizeof(T);
};

/// A column of numbers in the model's type.
class RealColumn {
 public:
  RealColumn() = default;
  explicit RealColumn(FileColumn<float> floats) : floats_(floats) {}
  explicit RealColumn(FileColumn<double> doubles) : doubles_(doubles), wide_(true) {}

  std::size_t size() const { return wide_ ? doubles_.size() : floats_.size(); }
  double operator[](std::size_t i) const { return wide_ ? doubles_[i] : static_cast<double>(floats_[i]); }

 private:
  FileColumn<float> floats_;
  FileColumn<double> doubles_;
  bool wide_ = false;
};

struct TreeliteHeader {
  std::string version;                    ///< Version of Treelite, e.g. "4.8.1".
  ScalarType type = ScalarType::Float32;  ///< Type of rows, thresholds, leaves and sums.
  std::size_t num_trees = 0;
  std::int32_t num_features = 0;
  bool averaged = false;
  std::vector<std::int32_t> num_classes;            ///< Number of classes of each target.
  std::int32_t leaf_targets = 1, leaf_classes = 1;  ///< Shape of a leaf: targets x classes.
  std::vector<std::int32_t> target_ids;             ///< Target of each tree; -1 for all.
  std::vector<std::int32_t> class_ids;              ///< Class of each tree; -1 for all.
  std::string postprocessor;
  float sigmoid_alpha = 1, ratio_c = 1;
  /// One for each target and class: targets x the most classes of a target, row-major.
  std::vector<double> base_scores;
};

/// One tree: a column for each field, with an entry for each node unless noted.
struct TreeliteTree {
  std::size_t number = 0;
  std::size_t offset = 0;        ///< Byte in the file at which the tree begins.
  FileColumn<std::int8_t> kind;  ///< 0 leaf (version 3: see is_leaf), 1 numerical, 2 categorical.
  FileColumn<std::int32_t> left, right;
  FileColumn<std::uint32_t> feature;  ///< In version 3 the highest bit is default_left.
  FileColumn<std::uint8_t> default_left;
  RealColumn leaf_value, threshold;
  FileColumn<std::int8_t> comparison;
  FileColumn<std::uint8_t> members_right;
  /// Vectors of all leaves; a leaf's vector lies from its vector_begin to its vector_end.
  RealColumn leaf_vectors;
  FileColumn<std::uint64_t> vector_begin, vector_end;
  FileColumn<std::uint32_t> categories;  ///< Codes of all categorical splits.
  FileColumn<std::uint64_t> categories_begin, categories_end;
  FileColumn<std::uint64_t> data_count;  ///< May be empty.
  FileColumn<std::uint8_t> has_data_count;
  FileColumn<double> sum_hess;  ///< May be empty.
  FileColumn<std::uint8_t> has_sum_hess;
  FileColumn<double> gain;  ///< May be empty.
  FileColumn<std::uint8_t> has_gain;
  bool version_3 = false;

  std::size_t nodes() const { return left.size(); }
  bool is_leaf(std::size_t i) const { return version_3 ? left[i] == -1 : kind[i] == 0; }
  std::uint32_t feature_of(std::size_t i) const { return version_3 ? feature[i] & kFeatureBits : feature[i]; }
  bool goes_left_by_default(std::size_t i) const {
    return version_3 ? feature[i] > kFeatureBits : default_left[i] != 0;
  }

 private:
  static constexpr std::uint32_t kFeatureBits = std::numeric_limits<std::int32_t>::max();
};

/// Called at the end of each tree.
using TreeliteReceiver = std::function<Result<void>(const TreeliteHeader& header, const TreeliteTree& tree)>;

/// Returns true if the bytes start as a checkpoint of any version does.
bool sniff_treelite(std::span<const std::byte> bytes);

/// Reads the checkpoint. Refuses versions other than 3 and 4, columns that do not have an entry for each node, fields
/// that Treelite has not defined, and bytes after the last tree. Returns also the errors of `receive`.
Result<TreeliteHeader> read_treelite_checkpoint(std::span<const std::byte> bytes, const LoadLimits& limits,
                                                const TreeliteReceiver& receive);

}  // namespace forestvm::frontend
