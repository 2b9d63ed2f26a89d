// Reads the headers of a YDF model: header.pb, which all kinds of models have, and the header of its kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/protobuf_wire.hpp"

namespace forestvm::frontend {

/// YDF's numbers of tasks.
enum class YdfTask : std::uint8_t { Classification = 1, Regression = 2, Ranking = 3, AnomalyDetection = 6 };

/// The fields of header.pb.
struct YdfHeader {
  std::string kind;  ///< Name of the kind of model, e.g. "RANDOM_FOREST".
  YdfTask task = YdfTask::Classification;
  std::int64_t label = 0;            ///< Column of the label.
  std::vector<std::int64_t> inputs;  ///< Columns of the features.
  bool gives_probabilities = true;   ///< False if a classifier gives labels only.
};

/// The fields of the header of each kind of forest.
struct YdfForestHeader {
  std::int64_t num_shards = 0, num_trees = 0;
  std::string node_format = "TFE_RECORDIO";
  // Gradient boosted trees.
  std::int64_t loss = 0, trees_per_iteration = 1;
  std::vector<float> initial_predictions;
  bool output_logits = false;
  // Random forests.
  bool winner_takes_all = true;
  // Isolation forests.
  std::int64_t examples_per_tree = 0;
};

/// Reads header.pb. Refuses tasks that are not supported, by name.
Result<YdfHeader> read_ydf_header(WireMessage message);

Result<YdfForestHeader> read_boosted_header(WireMessage message);
Result<YdfForestHeader> read_random_header(WireMessage message);
Result<YdfForestHeader> read_isolation_header(WireMessage message);

}  // namespace forestvm::frontend
