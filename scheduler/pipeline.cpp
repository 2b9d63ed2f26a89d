// THE PASS LIST, and its runner: it times each pass, shows what it made, and stops at the first refusal.
#include <chrono>

#include <forestvm/compile.hpp>

#include "scheduler/lowering.hpp"
#include "scheduler/model_text.hpp"
#include "scheduler/normal_form.hpp"
#include "scheduler/plans.hpp"

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
};

std::string text_of(const Lowering& lowering, Stage stage) {
  switch (stage) {
    case Stage::Tiled:
      return print(lowering.forest);
    case Stage::Loops:
    case Stage::Legalized:
      return print_nest(lowering);
    case Stage::Model:
    case Stage::Program:
      break;  // not a plan's
  }
  return {};
}

std::string heading(const Plan& plan) {
  const std::string most = plan.most == UINT32_MAX ? std::string(kBatchSizeName) : std::to_string(plan.most);
  return "plan(" + most + "):\n";
}

}  // namespace
}  // namespace scheduler

Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options) {
  using namespace scheduler;
  using Clock = std::chrono::steady_clock;
  if (model.trees.size() >= UINT32_MAX) return refused("", "too many trees");
  FVM_TRY(check_schedule(schedule));
  FVM_ASSIGN(const std::vector<Plan> plans, plans_of(schedule));
  std::vector<PassTime> times;
  const auto time = [&](std::string_view pass, Clock::time_point begin) {
    times.push_back({pass, std::chrono::duration<double>(Clock::now() - begin).count()});
  };
  const auto show = [&](Stage stage, const std::function<std::string()>& print_stage) {
    if (options.on_stage) options.on_stage(stage, print_stage);
  };
  show(Stage::Model, [&] { return print(model); });
  const auto first = Clock::now();
  FVM_ASSIGN(const std::optional<NormalForm> normal, normal_form(model));
  time("normalize", first);
  RankTable ranks;
  std::vector<Lowering> lowerings;
  lowerings.reserve(plans.size());
  for (const Plan& plan : plans)
    lowerings.emplace_back(normal ? normal->model : model, schedule, options, plan, ranks);
  for (const Pass& pass : kPasses) {
    const auto begin = Clock::now();
    for (Lowering& lowering : lowerings) {
      FVM_TRY(pass.run(lowering));
      if (pass.verify != nullptr) FVM_TRY(pass.verify(lowering));
    }
    time(pass.name, begin);
    if (!pass.stage) continue;
    show(*pass.stage, [&] {
      if (plans.size() == 1) return text_of(lowerings.front(), *pass.stage);
      std::string text;
      for (const Lowering& lowering : lowerings)
        text += heading(lowering.plan) + text_of(lowering, *pass.stage);
      return text;
    });
  }
  const auto begin = Clock::now();
  FVM_ASSIGN(
      Program program,
      emit_program(model, normal ? normal->zero_missing : std::vector<std::uint32_t>{}, lowerings, ranks));
  time("emit-program", begin);
  show(Stage::Program, [&] { return program.disassemble(); });
  std::vector<std::string> warnings;
  for (const Lowering& lowering : lowerings)
    warnings.insert(warnings.end(), lowering.warnings.begin(), lowering.warnings.end());
  return Compiled{std::move(program), std::move(warnings), std::move(times)};
}

}  // namespace forestvm
