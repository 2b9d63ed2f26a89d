// See treelite_checkpoint.hpp. Every length is compared with what is left of the file before it is used.
#include "frontend/treelite_checkpoint.hpp"

#include <algorithm>
#include <string_view>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

// Treelite's numbers of types.
constexpr std::uint8_t kUInt32Type = 1, kFloat32Type = 2, kFloat64Type = 3;

/// The size in bytes of the opening, which all versions share: three numbers and two types.
constexpr std::size_t kOpening = 14;

/// Reads fields one after the other, from an offset in the file on.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t offset() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  const std::byte* here() const { return bytes_.data() + at_; }
  void skip(std::size_t size) { at_ += size; }

  Error error(const char* field, std::string_view message) const { return error_at(at_, field, message); }
  static Error error_at(std::size_t offset, const char* field, std::string_view message) {
    return refused(formatted("byte {}: {}", offset, field), message);
  }

  template <class T>
  Result<T> number(const char* field) {
    if (left() < sizeof(T)) return error(field, "the file ends here");
    T number;
    std::memcpy(&number, here(), sizeof number);
    skip(sizeof number);
    return number;
  }

  Result<bool> flag(const char* field) {
    const std::size_t start = at_;
    FVM_ASSIGN(const std::uint8_t byte, number<std::uint8_t>(field));
    if (byte > 1) return error_at(start, field, formatted("{} is neither 0 nor 1", byte));
    return byte == 1;
  }

  /// Reads the length of a list whose elements take `size` bytes each, and checks that the file has them.
  Result<std::size_t> length(const char* field, std::size_t size) {
    const std::size_t start = at_;
    FVM_ASSIGN(const std::uint64_t count, number<std::uint64_t>(field));
    if (count > left() / size)
      return error_at(
          start, field,
          formatted("{} elements of {} bytes, but the file ends after {} bytes", count, size, left()));
    return static_cast<std::size_t>(count);
  }

  template <class T>
  Result<FileColumn<T>> column(const char* field) {
    FVM_ASSIGN(const std::size_t count, length(field, sizeof(T)));
    const FileColumn<T> numbers(here(), count);
    skip(count * sizeof(T));
    return numbers;
  }

  Result<RealColumn> reals(const char* field, ScalarType type) {
    if (type == ScalarType::Float64) {
      FVM_ASSIGN(const FileColumn<double> doubles, column<double>(field));
      return RealColumn(doubles);
    }
    FVM_ASSIGN(const FileColumn<float> floats, column<float>(field));
    return RealColumn(floats);
  }

  template <class T>
  Result<std::vector<T>> list(const char* field) {
    FVM_ASSIGN(const FileColumn<T> numbers, column<T>(field));
    std::vector<T> copy;
    copy.reserve(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) copy.push_back(numbers[i]);
    return copy;
  }

  Result<std::string> text(const char* field) {
    FVM_ASSIGN(const std::size_t size, length(field, 1));
    std::string copy(reinterpret_cast<const char*>(here()), size);
    skip(size);
    return copy;
  }

  /// Reads the count of additional fields, which must be 0 because no known version has any.
  Result<void> no_more_fields(const char* field) {
    const std::size_t start = at_;
    FVM_ASSIGN(const std::int32_t count, number<std::int32_t>(field));
    if (count != 0)
      return error_at(start, field, formatted("{} additional fields, which no known version has", count));
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

struct Version {
  std::int32_t major = 0, minor = 0, patch = 0;
};

Result<Version> read_version(FieldReader& file, TreeliteHeader& header) {
  Version version;
  FVM_ASSIGN(version.major, file.number<std::int32_t>("version"));
  FVM_ASSIGN(version.minor, file.number<std::int32_t>("version"));
  FVM_ASSIGN(version.patch, file.number<std::int32_t>("version"));
  header.version = std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' +
                   std::to_string(version.patch);
  if (version.major != 3 && version.major != 4)
    return FieldReader::error_at(
        0, "version",
        formatted(
            "a checkpoint of Treelite {}: those of 3 and 4 can be read; load the model with such a release, and save it there",
            header.version));
  return version;
}

Result<void> read_types(FieldReader& file, TreeliteHeader& header) {
  FVM_ASSIGN(const std::uint8_t threshold, file.number<std::uint8_t>("threshold type"));
  FVM_ASSIGN(const std::uint8_t leaf, file.number<std::uint8_t>("leaf type"));
  const std::size_t start = kOpening - 2;
  if (leaf == kUInt32Type)
    return FieldReader::error_at(start + 1, "leaf type", "integer leaves are not supported");
  if (threshold != leaf || (leaf != kFloat32Type && leaf != kFloat64Type))
    return FieldReader::error_at(
        start, "threshold type",
        formatted("thresholds of type {} and leaves of type {}: Treelite has no such models", threshold,
                  leaf));
  header.type = leaf == kFloat64Type ? ScalarType::Float64 : ScalarType::Float32;
  return {};
}

Result<void> read_num_trees(FieldReader& file, const LoadLimits& limits, TreeliteHeader& header) {
  constexpr std::size_t kSmallestTree = 64;
  const std::size_t start = file.offset();
  FVM_ASSIGN(const std::uint64_t count, file.number<std::uint64_t>("num_tree"));
  if (count > limits.max_trees || count > file.left() / kSmallestTree)
    return FieldReader::error_at(
        start, "num_tree",
        formatted("{} trees are more than the limit of {}, or than the file has room for", count,
                  limits.max_trees));
  header.num_trees = static_cast<std::size_t>(count);
  return {};
}

/// Reads what follows the number of trees in the header of version 4.
Result<void> read_header_4(FieldReader& file, TreeliteHeader& header) {
  FVM_ASSIGN(header.num_features, file.number<std::int32_t>("num_feature"));
  FVM_TRY(file.number<std::uint8_t>("task_type"));  // not needed: the fields below say the same
  FVM_ASSIGN(header.averaged, file.flag("average_tree_output"));
  const std::size_t targets = file.offset();
  FVM_ASSIGN(const std::int32_t num_targets, file.number<std::int32_t>("num_target"));
  FVM_ASSIGN(header.num_classes, file.list<std::int32_t>("num_class"));
  if (num_targets < 1 || header.num_classes.size() != static_cast<std::size_t>(num_targets))
    return FieldReader::error_at(
        targets, "num_target",
        formatted("{} targets, but num_class has {} entries", num_targets, header.num_classes.size()));
  const std::size_t shape = file.offset();
  FVM_ASSIGN(const std::vector<std::int32_t> sizes, file.list<std::int32_t>("leaf_vector_shape"));
  if (sizes.size() != 2)
    return FieldReader::error_at(shape, "leaf_vector_shape",
                                 formatted("not two numbers but {}", sizes.size()));
  header.leaf_targets = sizes[0];
  header.leaf_classes = sizes[1];
  const std::size_t ids = file.offset();
  FVM_ASSIGN(header.target_ids, file.list<std::int32_t>("target_id"));
  FVM_ASSIGN(header.class_ids, file.list<std::int32_t>("class_id"));
  if (header.target_ids.size() != header.num_trees || header.class_ids.size() != header.num_trees)
    return FieldReader::error_at(
        ids, "target_id",
        formatted("target_id and class_id do not have an entry for each of {} trees", header.num_trees));
  FVM_ASSIGN(header.postprocessor, file.text("postprocessor"));
  FVM_ASSIGN(header.sigmoid_alpha, file.number<float>("sigmoid_alpha"));
  FVM_ASSIGN(header.ratio_c, file.number<float>("ratio_c"));
  FVM_ASSIGN(header.base_scores, file.list<double>("base_scores"));
  FVM_ASSIGN(const std::size_t attributes, file.length("attributes", 1));
  file.skip(attributes);  // a JSON text in which trainers keep what predictions do not need
  return file.no_more_fields("num_opt_field_per_model");
}

// Version 3 writes C structures with their padding.
constexpr std::size_t kTaskPadding = 2;
constexpr std::size_t kTransformName = 256;
constexpr std::uint8_t kClassPerTree = 1, kVectorLeaves = 2, kVotes = 3;  // task types

/// Sets the header's fields as version 4 would have them for the task of a file of version 3.
Result<void> set_task_3(FieldReader& file, const LoadLimits& limits, std::size_t start, std::uint8_t task,
                        std::uint32_t classes, TreeliteHeader& header) {
  if (task == kVotes)
    return FieldReader::error_at(start, "task_type",
                                 "trees that vote for classes are not supported (kMultiClfCategLeaf)");
  if (task > kVotes) return FieldReader::error_at(start, "task_type", formatted("unknown task {}", task));
  if (classes == 0 || classes > limits.max_outputs)
    return file.error("num_class", formatted("{} is not within 1 and {}", classes, limits.max_outputs));
  header.num_classes.assign(1, static_cast<std::int32_t>(classes));
  header.target_ids.assign(header.num_trees, 0);
  header.class_ids.assign(header.num_trees, task == kVectorLeaves ? -1 : 0);
  if (task == kVectorLeaves) header.leaf_classes = static_cast<std::int32_t>(classes);
  for (std::size_t i = 0; task == kClassPerTree && i < header.num_trees; ++i)
    header.class_ids[i] = static_cast<std::int32_t>(i % classes);
  return {};
}

/// Reads what follows the number of trees in the header of version 3.
Result<void> read_header_3(FieldReader& file, const LoadLimits& limits, TreeliteHeader& header) {
  FVM_ASSIGN(header.num_features, file.number<std::int32_t>("num_feature"));
  const std::size_t start = file.offset();
  FVM_ASSIGN(const std::uint8_t task, file.number<std::uint8_t>("task_type"));
  FVM_ASSIGN(header.averaged, file.flag("average_tree_output"));
  FVM_ASSIGN(const std::uint8_t integers, file.number<std::uint8_t>("output_type"));
  if (integers != 0) return file.error("output_type", "integer outputs are not supported");
  FVM_ASSIGN(const bool class_per_tree, file.flag("grove_per_class"));
  if (class_per_tree != (task == kClassPerTree))
    return FieldReader::error_at(start, "task_type", "task_type and grove_per_class disagree");
  FVM_TRY(file.number<std::uint16_t>("task_param"));
  static_assert(sizeof(std::uint16_t) == kTaskPadding);
  FVM_ASSIGN(const std::uint32_t classes, file.number<std::uint32_t>("num_class"));
  FVM_TRY(set_task_3(file, limits, start, task, classes, header));
  const std::size_t width = file.offset();
  FVM_ASSIGN(const std::uint32_t leaf_width, file.number<std::uint32_t>("leaf_vector_size"));
  if (leaf_width != static_cast<std::uint32_t>(header.leaf_classes))
    return FieldReader::error_at(width, "leaf_vector_size",
                                 formatted("{} instead of {}", leaf_width, header.leaf_classes));
  if (file.left() < kTransformName) return file.error("pred_transform", "the file ends here");
  const std::string_view name(reinterpret_cast<const char*>(file.here()), kTransformName);
  header.postprocessor = name.substr(0, std::min(name.find('\0'), name.size()));
  file.skip(kTransformName);
  FVM_ASSIGN(header.sigmoid_alpha, file.number<float>("sigmoid_alpha"));
  FVM_ASSIGN(header.ratio_c, file.number<float>("ratio_c"));
  FVM_ASSIGN(const float bias, file.number<float>("global_bias"));
  header.base_scores.assign(classes, static_cast<double>(bias));
  return file.no_more_fields("num_opt_field_per_model");
}

/// Reads the columns of one tree.
class TreeReader {
 public:
  TreeReader(FieldReader& file, ScalarType type, TreeliteTree& tree)
      : file_(file), type_(type), tree_(tree) {}

  Result<void> read(bool version_3) {
    FVM_ASSIGN(nodes_, file_.number<std::int32_t>("num_nodes"));
    if (nodes_ < 1)
      return FieldReader::error_at(tree_.offset, "num_nodes",
                                   formatted("tree {} has {} nodes", tree_.number, nodes_));
    FVM_TRY(file_.flag("has_categorical_split"));
    tree_.version_3 = version_3;
    FVM_TRY(version_3 ? read_nodes_3() : read_nodes_4());
    FVM_TRY(file_.no_more_fields("num_opt_field_per_tree"));
    return file_.no_more_fields("num_opt_field_per_node");
  }

 private:
  /// Reads a column that must have one entry for each node and `more` further ones. If `absent`, it may also be empty.
  template <class T>
  Result<void> read(const char* field, FileColumn<T>& column, std::size_t more = 0, bool absent = false) {
    const std::size_t start = file_.offset();
    FVM_ASSIGN(column, file_.column<T>(field));
    return check_length(start, field, column.size(), more, absent);
  }
  Result<void> read(const char* field, RealColumn& column) {
    const std::size_t start = file_.offset();
    FVM_ASSIGN(column, file_.reals(field, type_));
    return check_length(start, field, column.size(), 0, false);
  }
  Result<void> check_length(std::size_t start, const char* field, std::size_t size, std::size_t more,
                            bool absent) const {
    const std::size_t expected = static_cast<std::size_t>(nodes_) + more;
    if (size == expected || (absent && size == 0)) return {};
    return FieldReader::error_at(
        start, field, formatted("tree {}: {} entries instead of {}", tree_.number, size, expected));
  }

  Result<void> read_nodes_4() {
    FVM_TRY(read("node_type", tree_.kind));
    FVM_TRY(read("cleft", tree_.left));
    FVM_TRY(read("cright", tree_.right));
    FVM_TRY(read("split_index", tree_.feature));
    FVM_TRY(read("default_left", tree_.default_left));
    FVM_TRY(read("leaf_value", tree_.leaf_value));
    FVM_TRY(read("threshold", tree_.threshold));
    FVM_TRY(read("cmp", tree_.comparison));
    FVM_TRY(read("category_list_right_child", tree_.members_right));
    FVM_ASSIGN(tree_.leaf_vectors, file_.reals("leaf_vector", type_));
    FVM_TRY(read("leaf_vector_begin", tree_.vector_begin));
    FVM_TRY(read("leaf_vector_end", tree_.vector_end));
    FVM_ASSIGN(tree_.categories, file_.column<std::uint32_t>("category_list"));
    FVM_TRY(read("category_list_begin", tree_.categories_begin));
    FVM_TRY(read("category_list_end", tree_.categories_end));
    FVM_TRY(read("data_count", tree_.data_count, 0, true));
    FVM_TRY(read("data_count_present", tree_.has_data_count, 0, true));
    FVM_TRY(read("sum_hess", tree_.sum_hess, 0, true));
    FVM_TRY(read("sum_hess_present", tree_.has_sum_hess, 0, true));
    FVM_TRY(read("gain", tree_.gain, 0, true));
    return read("gain_present", tree_.has_gain, 0, true);
  }

  Result<void> read_nodes_3() {
    const bool wide = type_ == ScalarType::Float64;
    // The offsets of a node's fields. A float64 begins at a multiple of 8.
    const std::size_t counts = wide ? 24 : 16, flags = counts + 24, size = flags + 8;
    const std::size_t number = wide ? 16 : 12;
    const std::size_t start = file_.offset();
    FVM_ASSIGN(const std::size_t count, file_.length("nodes", size));
    FVM_TRY(check_length(start, "nodes", count, 0, false));
    const std::byte* const first = file_.here();
    file_.skip(count * size);
    const auto field = [&]<class T>(std::size_t offset, FileColumn<T>& column) {
      column = FileColumn<T>(first + offset, count, size);
    };
    field(0, tree_.left);
    field(4, tree_.right);
    field(8, tree_.feature);
    tree_.threshold = wide ? RealColumn(FileColumn<double>(first + number, count, size))
                           : RealColumn(FileColumn<float>(first + number, count, size));
    tree_.leaf_value = tree_.threshold;
    field(counts, tree_.data_count);
    field(counts + 8, tree_.sum_hess);
    field(counts + 16, tree_.gain);
    field(flags, tree_.kind);
    field(flags + 1, tree_.comparison);
    field(flags + 2, tree_.has_data_count);
    field(flags + 3, tree_.has_sum_hess);
    field(flags + 4, tree_.has_gain);
    field(flags + 5, tree_.members_right);
    FVM_ASSIGN(tree_.leaf_vectors, file_.reals("leaf_vector", type_));
    FVM_TRY(read("leaf_vector_begin", tree_.vector_begin));
    FVM_TRY(read("leaf_vector_end", tree_.vector_end));
    FVM_ASSIGN(tree_.categories, file_.column<std::uint32_t>("matching_categories"));
    const std::byte* const offsets = file_.here() + sizeof(std::uint64_t);
    FVM_TRY(read("matching_categories_offset", tree_.categories_begin, 1));
    tree_.categories_begin = FileColumn<std::uint64_t>(offsets, count);
    tree_.categories_end = FileColumn<std::uint64_t>(offsets + sizeof(std::uint64_t), count);
    return {};
  }

  FieldReader& file_;
  ScalarType type_;
  TreeliteTree& tree_;
  std::int32_t nodes_ = 0;
};

}  // namespace

bool sniff_treelite(std::span<const std::byte> bytes) {
  if (bytes.size() < kOpening) return false;
  const FileColumn<std::int32_t> version(bytes.data(), 3);
  constexpr std::int32_t kMaxVersionPart = 255;
  for (std::size_t i = 0; i < version.size(); ++i)
    if (version[i] < 0 || version[i] > kMaxVersionPart) return false;
  const auto is_type = [&](std::size_t at) {
    const auto type = std::to_integer<std::uint8_t>(bytes[at]);
    return type >= kUInt32Type && type <= kFloat64Type;
  };
  return version[0] > 0 && is_type(kOpening - 2) && is_type(kOpening - 1);
}

Result<TreeliteHeader> read_treelite_checkpoint(std::span<const std::byte> bytes, const LoadLimits& limits,
                                                const TreeliteReceiver& receive) {
  FieldReader file(bytes);
  TreeliteHeader header;
  FVM_ASSIGN(const Version version, read_version(file, header));
  FVM_TRY(read_types(file, header));
  FVM_TRY(read_num_trees(file, limits, header));
  FVM_TRY(version.major == 3 ? read_header_3(file, limits, header) : read_header_4(file, header));
  for (std::size_t i = 0; i < header.num_trees; ++i) {
    TreeliteTree tree;
    tree.number = i;
    tree.offset = file.offset();
    FVM_TRY(TreeReader(file, header.type, tree).read(version.major == 3));
    FVM_TRY(receive(header, tree));
  }
  if (file.left() != 0) return file.error("end", formatted("{} bytes follow the last tree", file.left()));
  return header;
}

}  // namespace forestvm::frontend
