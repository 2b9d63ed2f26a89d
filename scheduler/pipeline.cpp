// THE PASS LIST, and its runner: it times each pass, shows what it made, and stops at the first refusal.
#include <chrono>

#include <forestvm/compile.hpp>

#include "scheduler/lowering.hpp"
#include "scheduler/model_text.hpp"

namespace forestvm {
namespace scheduler {
namespace {

struct Pass {
  std::string_view name;
  Result<void> (*run)(Lowering&);
  Result<void> (*verify)(const Lowering&);  ///< what later passes rely on; null: the pass proves it itself
  std::optional<Stage> stage;               ///< the printable form it completes
};

/// There is a walk in every innermost loop, and nowhere else.
Result<void> verify_sites(const Lowering& lowering) {
  FVM_CHECK(!lowering.sites.empty());
  for (const WalkSite& site : lowering.sites) FVM_CHECK(lowering.loops[site.leaf].children.empty());
  return {};
}

Result<void> verify_forest(const Lowering& lowering) {
  for (const WalkSite& site : lowering.sites)
    for (const WalkerDesc& walker : site.walkers)
      FVM_CHECK(site.tree_begin == site.tree_end || walker.group < lowering.forest.groups.size());
  FVM_CHECK(lowering.forest.order.size() == lowering.model.trees.size());
  return {};
}

constexpr Pass kPasses[] = {
    {"apply-schedule", apply_schedule, nullptr, std::nullopt},
    {"order-trees", order_trees, nullptr, std::nullopt},
    {"check-mapping", check_mapping, nullptr, std::nullopt},
    {"place-walks", place_walks, verify_sites, std::nullopt},
    {"tile-forest", tile_forest, verify_forest, Stage::Tiled},
    {"rank-thresholds", rank_thresholds, nullptr, std::nullopt},
    {"make-loops", make_loops, nullptr, Stage::Loops},
    {"choose-sums", choose_sums, nullptr, std::nullopt},
    {"legalize-reductions", legalize_reductions, nullptr, Stage::Legalized},
    {"emit-program", emit_program, nullptr, Stage::Program},  // encode_program verifies
};

std::string text_of(const Lowering& lowering, Stage stage) {
  switch (stage) {
    case Stage::Model:
      return print(lowering.model);
    case Stage::Tiled:
      return print(lowering.forest);
    case Stage::Loops:
    case Stage::Legalized:
      return print_nest(lowering);
    case Stage::Program:
      return lowering.program->disassemble();
  }
  return {};
}

}  // namespace
}  // namespace scheduler

Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options) {
  using namespace scheduler;
  if (model.trees.size() >= UINT32_MAX) return refused("", "too many trees");
  Lowering lowering(model, schedule, options);
  std::vector<PassTime> times;
  const auto show = [&](Stage stage) {
    if (options.on_stage) options.on_stage(stage, [&] { return text_of(lowering, stage); });
  };
  show(Stage::Model);
  for (const Pass& pass : kPasses) {
    const auto begin = std::chrono::steady_clock::now();
    FVM_TRY(pass.run(lowering));
    if (pass.verify != nullptr) FVM_TRY(pass.verify(lowering));
    times.push_back(
        {pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
    if (pass.stage) show(*pass.stage);
  }
  return Compiled{std::move(*lowering.program), std::move(lowering.warnings), std::move(times)};
}

}  // namespace forestvm
