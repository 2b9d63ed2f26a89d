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

using Clock = std::chrono::steady_clock;

/// A compilation under way.
struct Compilation {
  const Schedule& schedule;
  const CompileOptions& options;
  std::vector<Plan> plans;
  SourceFacts source{};
  std::vector<PassTime> times{};

  void time(std::string_view pass, Clock::time_point begin) {
    times.push_back({pass, std::chrono::duration<double>(Clock::now() - begin).count()});
  }
  void show(Stage stage, const std::function<std::string()>& print_stage) const {
    if (options.on_stage) options.on_stage(stage, print_stage);
  }
};

/// Everything before the model's normal form.
Result<Compilation> begin(const Model& model, const Schedule& schedule, const CompileOptions& options) {
  if (model.trees.size() >= UINT32_MAX) return refused("", "too many trees");
  FVM_TRY(check_schedule(schedule));
  FVM_ASSIGN(std::vector<Plan> plans, plans_of(schedule));
  Compilation compilation{schedule, options, std::move(plans)};
  compilation.show(Stage::Model, [&] { return print(model); });
  compilation.source.fingerprint = fingerprint(model);
  return compilation;
}

/// Everything after it; `model` has it.
Result<Compiled> lower(Compilation compilation, const Model& model) {
  RankTable ranks;
  std::vector<Lowering> lowerings;
  lowerings.reserve(compilation.plans.size());
  for (const Plan& plan : compilation.plans)
    lowerings.emplace_back(model, compilation.schedule, compilation.options, plan, ranks);
  for (const Pass& pass : kPasses) {
    const auto start = Clock::now();
    for (Lowering& lowering : lowerings) {
      FVM_TRY(pass.run(lowering));
      if (pass.verify != nullptr) FVM_TRY(pass.verify(lowering));
    }
    compilation.time(pass.name, start);
    if (!pass.stage) continue;
    compilation.show(*pass.stage, [&] {
      if (lowerings.size() == 1) return text_of(lowerings.front(), *pass.stage);
      std::string text;
      for (const Lowering& lowering : lowerings)
        text += heading(lowering.plan) + text_of(lowering, *pass.stage);
      return text;
    });
  }
  const auto start = Clock::now();
  FVM_ASSIGN(Program program, emit_program(std::move(compilation.source), lowerings, ranks));
  compilation.time("emit-program", start);
  compilation.show(Stage::Program, [&] { return program.disassemble(); });
  std::vector<std::string> warnings;
  for (const Lowering& lowering : lowerings)
    warnings.insert(warnings.end(), lowering.warnings.begin(), lowering.warnings.end());
  return Compiled{std::move(program), std::move(warnings), std::move(compilation.times)};
}

}  // namespace
}  // namespace scheduler

Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options) {
  const auto start = scheduler::Clock::now();
  if (!scheduler::is_normal(model)) return compile(Model(model), schedule, options);
  FVM_ASSIGN(scheduler::Compilation compilation, scheduler::begin(model, schedule, options));
  compilation.source.feature_names = model.feature_names;
  compilation.time("normalize", start);
  return scheduler::lower(std::move(compilation), model);
}

Result<Compiled> compile(Model&& model, const Schedule& schedule, const CompileOptions& options) {
  FVM_ASSIGN(scheduler::Compilation compilation, scheduler::begin(model, schedule, options));
  const auto start = scheduler::Clock::now();
  if (!scheduler::is_normal(model)) {
    FVM_ASSIGN(compilation.source.zero_missing, scheduler::normalize(model));
  }
  compilation.source.feature_names = std::move(model.feature_names);
  compilation.time("normalize", start);
  return scheduler::lower(std::move(compilation), model);
}

}  // namespace forestvm
