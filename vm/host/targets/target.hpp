// What a CPU target offers, and the list of those built in.
#pragma once

#include <span>
#include <string_view>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/result.hpp>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_rows.hpp"
#include "vm/host/walkers/walker_table.hpp"

namespace forestvm::host {

struct Target {
  std::string_view name;
  bool (*runs_here)();
  const WalkerTable* (*walkers)(Layout);  ///< its own walkers of a layout; null if it has none
  EncodeFunction encode;
  EncodeCategoriesFunction encode_categories;

  /// Its own walker for a verified description, or else the first target's; null for a layout that is not
  /// built.
  WalkFunction find_walker(Layout layout, const WalkerDesc& desc) const;
};

/// The CPU targets that are built, the best last.
std::span<const Target> targets();

/// The target of this name; for "auto" that of the environment variable FORESTVM_TARGET, or else the best
/// that runs on this CPU. Usage error for an unknown name, Environment if the CPU lacks it.
Result<const Target*> find_target(std::string_view name);

}  // namespace forestvm::host
