// The interface of a CPU target, and the list of the targets that are built.
#pragma once

#include <span>
#include <string_view>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/round_values.hpp>
#include <forestvm/result.hpp>

#include "vm/host/add_vectors.hpp"
#include "vm/host/attribute_numbers.hpp"
#include "vm/host/derive_codes.hpp"
#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_columns.hpp"
#include "vm/host/encode_doubles.hpp"
#include "vm/host/encode_rows.hpp"
#include "vm/host/leaf_sets.hpp"
#include "vm/host/pack_codes.hpp"
#include "vm/host/paths/explain_task.hpp"
#include "vm/host/shared_leaves.hpp"
#include "vm/host/transform_scores.hpp"
#include "vm/host/tree_rows.hpp"
#include "vm/host/walkers/walker_table.hpp"

namespace forestvm::host {

struct Target {
  std::string_view name;
  bool (*runs_here)();
  CpuTarget (*cpu)();                     ///< Returns the CPU by which programs choose blocks.
  const WalkerTable* (*walkers)(Layout);  ///< The target's own walkers of a layout; null if it has none.
  EncodeFunction encode;
  EncodeCategoriesFunction encode_categories;
  EncodeColumnsFunction encode_columns;
  EncodeDoublesFunction encode_doubles;
  RoundFunction round;
  DeriveFunction derive;
  PackFunction pack;
  ExplainFunction explain;
  AttributeFunction attribute;
  AddVectorsFunction add_vectors;
  StoreTreesFunction store_trees;
  /// Returns the function that transforms many scores in vectors; null if the target has none.
  ScoresFunction (*scores_function)();
  void (*add_levels)(HostPaths&);  ///< Adds the form of paths in which `explain` reads them for a few rows.
  /// Returns whether `encode_doubles` picks values in vectors, in less time than `round` converts them.
  bool (*picks_doubles)();
  /// Makes the tests with which walks of a row through many trees begin: see byte_tests_for.
  MakeByteTests* byte_tests;

  /// Returns the target's own walker for a verified description, otherwise the first target's. Its function is null
  /// if the layout is not built.
  Walker find_walker(Layout layout, const WalkerDesc& desc) const;
};

/// A target's functions that compare the leaves of rows with those of a tile of kept rows. They are no part of Target,
/// so that a library that compares no leaves does not have them.
struct LeafComparers {
  SharedLeavesFunction by_codes;
  LeafSetsFunction by_sets;
};

LeafComparers leaf_comparers(const Target& target);

/// Returns the CPU targets that are built, the best last.
std::span<const Target> targets();

/// Returns the target of this name. "auto" means the one that the environment variable FORESTVM_TARGET names,
/// otherwise the best that runs on this CPU. Usage error for an unknown name, Environment if the CPU lacks
/// it.
Result<const Target*> find_target(std::string_view name);

}  // namespace forestvm::host
