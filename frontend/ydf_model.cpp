// See ydf_model.hpp.
#include "frontend/ydf_model.hpp"

#include <cstdio>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/ydf_directory.hpp"
#include "frontend/ydf_forest.hpp"

namespace forestvm::frontend {
namespace {

constexpr std::size_t kBlobLength = 4;  ///< Bytes of the length before each blob.
constexpr std::int64_t kMaxShards = 99'999;

std::string shard_name(std::int64_t shard, std::int64_t shards) {
  char name[64];
  std::snprintf(name, sizeof name, "nodes-%05d-of-%05d", static_cast<int>(shard), static_cast<int>(shards));
  return name;
}

/// Where a tree ends: the number of its file of nodes, and the byte after it.
struct TreeEnd {
  std::int64_t shard = 0;
  std::size_t end = 0;
};

class YdfReader {
 public:
  YdfReader(YdfDirectory directory, const LoadLimits& limits)
      : directory_(std::move(directory)), limits_(limits) {}

  Result<ParsedModel> read() && {
    Model& model = parsed_.model;
    model.format = model.trainer = "ydf";
    FVM_TRY(read_file("header.pb", [&](WireMessage message) { return read_header(message); }));
    FVM_TRY(read_file("data_spec.pb", [&](WireMessage message) { return read_columns(message); }));
    FVM_TRY(read_file(kind_->header_file, [&](WireMessage message) { return read_forest(message); }));
    YdfTreeMaker maker(features_, std::move(leaf_rule_), model.computed_columns);
    for (std::int64_t i = 0; i < forest_.num_shards; ++i) FVM_TRY(read_shard(i, maker));
    FVM_TRY(set_rounds());
    FVM_TRY(kind_->set_engine(forest_, maker.splits(), model));
    parsed_.tree_location = [ends = std::move(ends_), shards = forest_.num_shards](std::size_t tree) {
      return formatted("{}, up to {}", shard_name(ends[tree].shard, shards), byte_location(ends[tree].end));
    };
    return std::move(parsed_);
  }

 private:
  template <class Read>
  Result<void> read_file(const std::string& name, Read read) {
    FVM_ASSIGN(const std::vector<std::byte> bytes, directory_.read(name));
    const Result<void> done = read(WireMessage{bytes, 0});
    return done.ok() ? done : directory_.in_file(name, done.error());
  }

  Result<void> read_header(WireMessage message) {
    FVM_ASSIGN(header_, read_ydf_header(message));
    kind_ = find_ydf_kind(header_.kind);
    if (kind_ == nullptr)
      return refused(
          "name",
          "{} models are not supported: gradient boosted trees, random forests and isolation forests are",
          in_quotes(header_.kind));
    return {};
  }

  Result<void> read_columns(WireMessage message) {
    FVM_ASSIGN(const std::vector<WireMessage> columns, ydf_columns_of(message));
    features_.of_attribute.assign(columns.size(), -1);
    if (header_.inputs.size() > limits_.max_features)
      return refused("columns", "more features than the limit of {}", limits_.max_features);
    for (const std::int64_t input : header_.inputs) FVM_TRY(add_feature(columns, input));
    parsed_.model.num_features = static_cast<std::uint32_t>(features_.columns.size());
    return header_.task == YdfTask::Classification ? read_label(columns) : Result<void>();
  }

  static Result<YdfColumn> column_of(const std::vector<WireMessage>& columns, std::int64_t number,
                                     const char* what) {
    if (number < 0 || static_cast<std::uint64_t>(number) >= columns.size())
      return refused("columns", "{} column {} does not exist: there are {}", what, number, columns.size());
    return read_ydf_column(columns[static_cast<std::size_t>(number)]);
  }

  Result<void> add_feature(const std::vector<WireMessage>& columns, std::int64_t input) {
    FVM_ASSIGN(YdfColumn column, column_of(columns, input, "input"));
    std::int32_t& feature = features_.of_attribute[static_cast<std::size_t>(input)];
    const std::string called = "column " + in_quotes(column.name);
    if (feature >= 0) return refused("columns", "{} is an input twice", called);
    if (column.integerized)
      return refused("columns",
                     "{} has categories without a dictionary (integerized), which is not supported", called);
    feature = static_cast<std::int32_t>(features_.columns.size());
    Model& model = parsed_.model;
    model.feature_names.push_back(column.name);
    const auto number = static_cast<std::uint32_t>(feature);
    if (column.type == YdfType::Categorical)
      model.categories.push_back({number, std::exchange(column.names, {}), 0.0});
    else if (column.type == YdfType::Boolean)
      model.categories.push_back({number, {"false", "true"}, std::nullopt});
    features_.columns.push_back(std::move(column));
    return {};
  }

  Result<void> read_label(const std::vector<WireMessage>& columns) {
    FVM_ASSIGN(const YdfColumn label, column_of(columns, header_.label, "label"));
    if (label.type != YdfType::Categorical) return refused("columns", "the label is not categorical");
    num_classes_ = label.num_categories - 1;  // without the category of unknown texts
    if (num_classes_ < 2 || num_classes_ > std::int64_t{limits_.max_outputs})
      return refused("columns", "the label has {} classes, not within 2 and {}", num_classes_,
                     limits_.max_outputs);
    if (!label.integerized) parsed_.model.class_labels.assign(label.names.begin() + 1, label.names.end());
    return {};
  }

  Result<void> read_forest(WireMessage message) {
    FVM_ASSIGN(forest_, kind_->read_header(message));
    if (forest_.node_format != "BLOB_SEQUENCE" && forest_.node_format != "BLOB_SEQUENCE_GZIP")
      return refused(
          "node_format",
          "nodes in the format {} are not supported: save the model again with the Python package ydf",
          in_quotes(forest_.node_format));
    if (forest_.num_shards < 1 || forest_.num_shards > kMaxShards)
      return refused("num_node_shards", "{} files of nodes", forest_.num_shards);
    if (forest_.num_trees < 0 || forest_.num_trees > std::int64_t{limits_.max_trees})
      return refused("num_trees", "{} is not within 0 and {}", forest_.num_trees, limits_.max_trees);
    FVM_ASSIGN(leaf_rule_, kind_->set_outputs(header_, forest_, num_classes_, parsed_.model));
    return {};
  }

  Result<void> read_shard(std::int64_t shard, YdfTreeMaker& maker) {
    const std::string name = shard_name(shard, forest_.num_shards);
    FVM_ASSIGN(const YdfBlobs blobs, directory_.read_blobs(name));
    for (std::size_t at = blobs.begin; at < blobs.bytes.size();) {
      const Result<std::size_t> end = read_blob(blobs.bytes, at, maker);
      if (!end.ok()) {
        Error error = end.error();
        error.where += formatted(": tree {}", parsed_.model.trees.size());
        return directory_.in_file(name, std::move(error));
      }
      if (maker.tree_is_whole()) {
        parsed_.model.trees.push_back(maker.take());
        ends_.push_back({shard, *end});
      }
      at = *end;
    }
    return {};
  }

  /// Reads the node at an offset, and returns the offset behind it.
  Result<std::size_t> read_blob(const std::vector<std::byte>& bytes, std::size_t at, YdfTreeMaker& maker) {
    const auto wrong = [&](std::string_view message) { return refused(byte_location(at), message); };
    const std::size_t left = bytes.size() - at;
    if (left < kBlobLength) return wrong("the length of a node is cut off");
    std::size_t length = 0;
    for (std::size_t i = kBlobLength; i-- > 0;)
      length = length << 8 | std::to_integer<std::size_t>(bytes[at + i]);
    if (length > left - kBlobLength)
      return wrong(formatted("a node of {} bytes, but the file ends after {}", length, left - kBlobLength));
    if (parsed_.model.trees.size() == static_cast<std::size_t>(forest_.num_trees))
      return wrong(formatted("more nodes than those of the {} trees of the header", forest_.num_trees));
    if (++num_nodes_ > limits_.max_nodes)
      return wrong(formatted("more nodes than the limit of {}", limits_.max_nodes));
    FVM_ASSIGN(const YdfNode node,
               read_ydf_node({std::span(bytes).subspan(at + kBlobLength, length), at + kBlobLength}));
    FVM_TRY(maker.add(node));
    return at + kBlobLength + length;
  }

  Result<void> set_rounds() {
    Model& model = parsed_.model;
    if (model.trees.size() != static_cast<std::size_t>(forest_.num_trees))
      return refused("nodes", "the files end within tree {} of {}", model.trees.size(), forest_.num_trees);
    const std::size_t width = trees_per_round(model);
    if (model.trees.size() % width != 0)
      return refused("nodes", "{} trees are not whole iterations of {}", model.trees.size(), width);
    for (std::size_t i = 0; i < model.trees.size(); ++i) {
      if (model.trees[i].leaf_width == 1) model.trees[i].output = static_cast<std::uint32_t>(i % width);
      if (i % width == 0) model.round_begins.push_back(static_cast<std::uint32_t>(i));
    }
    model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
    return {};
  }

  YdfDirectory directory_;
  LoadLimits limits_;
  YdfHeader header_;
  const YdfKind* kind_ = nullptr;
  YdfForestHeader forest_;
  YdfFeatures features_;
  std::int64_t num_classes_ = 0;
  YdfLeafRule leaf_rule_;
  std::uint64_t num_nodes_ = 0;
  std::vector<TreeEnd> ends_;
  ParsedModel parsed_;
};

}  // namespace

Result<ParsedModel> read_ydf_directory(const std::string& path, const LoadLimits& limits) {
  FVM_ASSIGN(YdfDirectory directory, YdfDirectory::open(path, limits));
  return YdfReader(std::move(directory), limits).read();
}

}  // namespace forestvm::frontend
