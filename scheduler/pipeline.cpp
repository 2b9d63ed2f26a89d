// The list of passes, and its runner, which times each pass, shows what it made, and stops at the first refusal.
#include <chrono>

#include <forestvm/compile.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/compilation.hpp"
#include "scheduler/model_text.hpp"
#include "scheduler/normal_form.hpp"

namespace forestvm {
namespace scheduler {
namespace {

struct Pass {
  std::string_view name;
  Result<void> (*run)(Compilation&);
  std::optional<Stage> stage;  ///< the printable form that the pass completes
};

Result<void> nothing_to_check(const Lowering&) { return {}; }

/// Checks that there is a walk in every innermost loop, and nowhere else.
Result<void> check_sites(const Lowering& lowering) {
  FVM_CHECK(!lowering.sites.empty());
  for (const WalkSite& site : lowering.sites) FVM_CHECK(lowering.loops[site.leaf].children.empty());
  return {};
}

/// Checks that walkers name groups that exist, and that every tree has a position.
Result<void> check_forest(const Lowering& lowering) {
  for (const WalkSite& site : lowering.sites)
    for (const WalkerDesc& walker : site.walkers)
      FVM_CHECK(site.tree_begin == site.tree_end || walker.group < lowering.forest.groups.size());
  FVM_CHECK(lowering.forest.order.size() == lowering.model.trees.size());
  return {};
}

/// Runs a pass over each plan. `check` tests what later passes rely on, where this pass does not prove it itself.
template <Result<void> (*pass)(Lowering&), Result<void> (*check)(const Lowering&) = nothing_to_check>
Result<void> each_plan(Compilation& compilation) {
  for (Lowering& plan : compilation.plans) {
    FVM_TRY(pass(plan));
    FVM_TRY(check(plan));
  }
  return {};
}

constexpr Pass kPasses[] = {
    {"cut-plans", cut_plans, std::nullopt},
    {"fingerprint", fingerprint, Stage::Model},
    {"check-support", check_support, std::nullopt},
    {"normalize", normalize, std::nullopt},
    {"explain-trees", explain_trees, std::nullopt},
    {"compare-background", compare_background, std::nullopt},
    {"attribute-leaves", attribute_leaves, std::nullopt},
    {"keep-samples", keep_samples, std::nullopt},
    {"number-vectors", number_vectors, std::nullopt},
    {"number-functions", number_functions, std::nullopt},
    {"apply-schedule", each_plan<apply_schedule>, std::nullopt},
    {"order-trees", each_plan<order_trees>, std::nullopt},
    {"check-mapping", each_plan<check_mapping>, std::nullopt},
    {"make-walks", each_plan<make_walks, check_sites>, std::nullopt},
    {"tile-forest", each_plan<tile_forest, check_forest>, Stage::Tiled},
    {"rank-thresholds", rank_thresholds, std::nullopt},
    {"make-loops", each_plan<make_loops>, Stage::Loops},
    {"choose-sums", each_plan<choose_sums>, std::nullopt},
    {"legalize-reductions", each_plan<legalize_reductions>, Stage::Legalized},
    {"emit-program", emit_program, Stage::Program},
};

std::string heading(const Lowering& lowering) {
  const Directive& directive = lowering.schedule.directives[lowering.plan.first_directive - 1];
  return formatted("{}:{}\n", print(directive), directive.remark.empty() ? "" : "  # " + directive.remark);
}

/// Returns the texts of all plans, with headings if there are several.
std::string print_plans(const Compilation& compilation, std::string (*print_plan)(const Lowering&)) {
  if (compilation.plans.size() == 1) return print_plan(compilation.plans.front());
  std::string text;
  for (const Lowering& lowering : compilation.plans) text += heading(lowering) + print_plan(lowering);
  return text;
}

std::string stage_text(const Compilation& compilation, Stage stage) {
  switch (stage) {
    case Stage::Model:
      return print(compilation.model);
    case Stage::Tiled:
      return print_plans(compilation, [](const Lowering& plan) { return print(plan.forest); });
    case Stage::Loops:
    case Stage::Legalized:
      return print_plans(compilation, print_nest);
    case Stage::Program:
      return compilation.program->disassemble();
  }
  return {};
}

Result<Compiled> run(Compilation compilation) {
  using Clock = std::chrono::steady_clock;
  std::vector<PassTime> times;
  for (const Pass& pass : kPasses) {
    const auto start = Clock::now();
    FVM_TRY(pass.run(compilation));
    times.push_back({pass.name, std::chrono::duration<double>(Clock::now() - start).count()});
    if (pass.stage && compilation.options.on_stage)
      compilation.options.on_stage(*pass.stage, [&] { return stage_text(compilation, *pass.stage); });
  }
  std::vector<std::string> warnings;
  for (const Lowering& lowering : compilation.plans)
    warnings.insert(warnings.end(), lowering.warnings.begin(), lowering.warnings.end());
  return Compiled{std::move(*compilation.program), std::move(warnings), std::move(times)};
}

}  // namespace
}  // namespace scheduler

Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options) {
  if (!scheduler::is_normal(model)) return compile(Model(model), schedule, options);
  return scheduler::run({model, nullptr, schedule, options});
}

Result<Compiled> compile(Model&& model, const Schedule& schedule, const CompileOptions& options) {
  return scheduler::run({model, &model, schedule, options});
}

}  // namespace forestvm
