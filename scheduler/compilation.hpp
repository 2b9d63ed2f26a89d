// A compilation under way: the state that the passes of the table in pipeline.cpp hand on, and the passes
// that work on all plans at once. For the state of one plan, and the passes that work on it, see
// lowering.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/program_parts.hpp>

#include "scheduler/explained_forest.hpp"
#include "scheduler/lowering.hpp"
#include "scheduler/normal_form.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {

/// The targets that the leaves of a program keep: ProgramParts' sections of them.
struct SampledForest {
  std::vector<NumberedLeaves> trees;
  std::vector<std::uint32_t> leaves, sample_targets;
  std::vector<double> targets;
};

struct Compilation {
  const Model& model;
  Model* rewritable;  ///< `model`, if it may be changed; null: it has the normal form already
  const Schedule& schedule;
  const CompileOptions& options;

  CutTrees cut{};                         ///< trees in tiles, which the plans share
  std::vector<Lowering> plans{};          ///< states of the schedule's plans, for ascending numbers of rows
  std::uint64_t fingerprint = 0;          ///< hash of the model as it was before normalize
  TransformParameters parameters{};       ///< parameters of the model's transform
  std::vector<std::byte> leaf_vectors{};  ///< ProgramParts::leaf_vectors
  std::vector<LeafFunction> leaf_functions{};  ///< ProgramParts::leaf_functions
  std::vector<LeafTerm> leaf_terms{};          ///< ProgramParts::leaf_terms
  ExplainedForest explained{};                 ///< paths; none unless the program is to have contributions
  AttributedForest attributed{};  ///< what leaves attribute to features, if the program is to say it
  SampledForest sampled{};        ///< the targets that leaves keep, if the program is to have quantiles
  RowRules row_rules{};           ///< changes that the program makes to values before its walks compare them
  RankTable ranks{};              ///< tests of the coded trees of all plans: a program has one encoder
  std::optional<Program> program{};

  /// Returns true if the program is for GPUs.
  bool is_mapped() const { return std::ranges::any_of(plans, &Lowering::is_mapped); }
};

// The passes, in the order of the table in pipeline.cpp; each in passes/<name>.cpp.

/// Schedule -> plans. Refuses, with the directive's location, plans that do not ascend, and a last plan that is not
/// for BATCH.
Result<void> cut_plans(Compilation& compilation);
/// Hashes everything in a model that decides its predictions (FNV-1a).
Result<void> fingerprint(Compilation& compilation);
/// Refuses models that no pass can lower yet.
Result<void> check_support(Compilation& compilation);
/// Model -> its normal form (see normal_form.hpp).
Result<void> normalize(Compilation& compilation);
/// Trees with covers -> paths, if contributions are asked for. Refuses, with tree and node, what cannot be explained.
Result<void> explain_trees(Compilation& compilation);
/// Trees and a background -> paths and patterns, if contributions against a background are asked for. Refuses, with
/// tree and node, what cannot be explained.
Result<void> compare_background(Compilation& compilation);
/// Trees with covers -> what each leaf attributes to features, if approximate contributions are asked for. Refuses,
/// with tree and node, what cannot be explained.
Result<void> attribute_leaves(Compilation& compilation);
/// Trees and samples -> the targets that each leaf keeps, if quantiles are asked for.
Result<void> keep_samples(Compilation& compilation);
/// Vector leaves -> numbers of vectors in one table.
Result<void> number_vectors(Compilation& compilation);
/// Linear leaves -> numbers of functions in one table.
Result<void> number_functions(Compilation& compilation);
/// Tests of coded trees -> the encoder's columns.
Result<void> rank_thresholds(Compilation& compilation);
/// Loop nests and tiled forests of all plans -> program.
Result<void> emit_program(Compilation& compilation);

}  // namespace forestvm::scheduler
