// The table of CPU targets, from the rows of targets.def that are built.
#include <cstdlib>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/host/targets/target.hpp"

namespace forestvm::host {

#define FVM_TARGET(Name, text, meaning)               \
  namespace target_##Name {                           \
    bool runs_here();                                 \
    CpuTarget cpu();                                  \
    const WalkerTable* walkers(Layout layout);        \
    void encode(const EncodeTask& task);              \
    void encode_categories(const CategoryTask& task); \
    void encode_columns(const ColumnTask& task);      \
    void encode_doubles(const DoublesTask& task);     \
    std::uint64_t round(const RoundTask& task);       \
    void derive(const DeriveTask& task);              \
    void pack(const PackTask& task);                  \
    void explain(const ExplainTask& task);            \
    void attribute(const AttributeTask& task);        \
    void add_vectors(const VectorsTask& task);        \
    void store_trees(const TreeRowsTask& task);       \
    ScoresFunction scores_function();                 \
    void add_levels(HostPaths& paths);                \
    LeafComparers leaf_comparers();                   \
    bool picks_doubles();                             \
    MakeByteTests byte_tests;                         \
  }
#include <built_targets.def>

namespace {

constexpr Target kTargets[] = {
#define FVM_TARGET(Name, text, meaning) \
  {text,                                \
   target_##Name::runs_here,            \
   target_##Name::cpu,                  \
   target_##Name::walkers,              \
   target_##Name::encode,               \
   target_##Name::encode_categories,    \
   target_##Name::encode_columns,       \
   target_##Name::encode_doubles,       \
   target_##Name::round,                \
   target_##Name::derive,               \
   target_##Name::pack,                 \
   target_##Name::explain,              \
   target_##Name::attribute,            \
   target_##Name::add_vectors,          \
   target_##Name::store_trees,          \
   target_##Name::scores_function,      \
   target_##Name::add_levels,           \
   target_##Name::picks_doubles,        \
   target_##Name::byte_tests},
#include <built_targets.def>
};

Result<const Target*> best_target() {
  for (std::size_t i = std::size(kTargets); i-- > 0;)
    if (kTargets[i].runs_here()) return &kTargets[i];
  return fail(ErrorCode::Environment, "this CPU runs none of the targets that were built");
}

/// Returns the target of this name. `where` says in errors what asks for it.
Result<const Target*> named_target(std::string_view name, const std::string& where) {
  std::string known = "auto";
  for (const Target& target : kTargets) {
    if (target.name == name) {
      if (target.runs_here()) return &target;
      return fail(ErrorCode::Environment, where, "this CPU does not have it");
    }
    known += formatted(", {}", target.name);
  }
  return fail(ErrorCode::Usage, where, formatted("unknown; expected one of {}", known));
}

}  // namespace

std::span<const Target> targets() { return kTargets; }

Walker Target::find_walker(Layout layout, const WalkerDesc& desc) const {
  for (const Target* target : {this, &kTargets[0]})
    if (const WalkerTable* const table = target->walkers(layout))
      if (const Walker walker = table->find(desc)) return walker;
  return {};
}

LeafComparers leaf_comparers(const Target& target) {
  static constexpr LeafComparers (*kComparers[])() = {
#define FVM_TARGET(Name, text, meaning) target_##Name::leaf_comparers,
#include <built_targets.def>
  };
  return kComparers[&target - kTargets]();
}

Result<const Target*> find_target(std::string_view name) {
  if (name != "auto") return named_target(name, formatted("target {}", name));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): unsafe only beside a change of the environment
  const char* const forced = std::getenv("FORESTVM_TARGET");
  if (forced == nullptr || *forced == '\0' || std::string_view(forced) == "auto") return best_target();
  return named_target(forced, formatted("FORESTVM_TARGET={}", forced));
}

}  // namespace forestvm::host

namespace forestvm {

std::vector<std::string_view> host_targets() {
  std::vector<std::string_view> names;
  for (const host::Target& target : host::targets()) names.insert(names.begin(), target.name);
  return names;
}

}  // namespace forestvm
