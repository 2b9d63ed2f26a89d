// The kinds of YDF's forests: what their headers say about outputs and leaves.
#pragma once

#include <cstdint>
#include <string_view>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/ydf_header.hpp"
#include "frontend/ydf_tree.hpp"

namespace forestvm::frontend {

struct YdfKind {
  std::string_view name;  ///< Name of the kind in header.pb.
  const char* header_file;
  Result<YdfForestHeader> (*read_header)(WireMessage message);
  /// Sets the model's outputs, base and transform, and returns the rule for its leaves. `classes` is the number of
  /// classes that the label has; 0 unless the task is classification.
  Result<YdfLeafRule> (*set_outputs)(const YdfHeader& header, const YdfForestHeader& forest,
                                     std::int64_t classes, Model& model);
  /// Refuses a model that YDF's fast engines cannot run, and sets what depends on the engine that YDF takes: the order
  /// in which the base is added, and what a model that was trained to give logits does.
  Result<void> (*set_engine)(const YdfForestHeader& forest, const YdfSplits& splits, Model& model);
};

/// Returns the kind of a model; null if it is not a forest that is known.
const YdfKind* find_ydf_kind(std::string_view name);

}  // namespace forestvm::frontend
