// Random schedules, checked step by step against the loop tree; some of them are plans.
#include "random_schedule.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/directives/apply.hpp"
#include "support/layout_names.hpp"

namespace forestvm::test {
namespace {

using namespace scheduler;

class ScheduleMaker {
 public:
  ScheduleMaker(Dice& dice, std::uint32_t trees, const ScheduleOptions& options)
      : dice_(dice), options_(options), tree_(trees) {}

  Schedule run() {
    if (options_.mapped) return run_mapped();
    for (std::size_t i = dice_.below(6); i > 0; --i) rewrite();
    if (dice_.percent(15)) program_directives();
    if (dice_.percent(25)) add(Schedule().encode(one_of({"u8", "u8", "u8", "auto", "none"})));
    if (dice_.percent(options_.parallel_trees)) parallel_trees();
    for (std::size_t i = dice_.below(6); i > 0; --i) decorate();
    return std::move(schedule_);
  }

 private:
  /// Adds the directive if the loop tree accepts it.
  void add(const Schedule& one) {
    LoopTree changed = tree_;
    if (!apply(changed, {one.directives.front(), schedule_.directives.size()}).ok()) return;
    tree_ = std::move(changed);
    schedule_.directives.push_back(one.directives.front());
  }

  /// Returns the loops of the nest.
  std::vector<LoopId> loops() const {
    std::vector<LoopId> found = tree_.roots();
    for (std::size_t i = 0; i < found.size(); ++i)
      for (const LoopId child : tree_[found[i]].children) found.push_back(child);
    return found;
  }

  std::vector<LoopId> innermost() const {
    std::vector<LoopId> found;
    for (const LoopId loop : loops())
      if (tree_[loop].children.empty()) found.push_back(loop);
    return found;
  }

  std::string name(LoopId loop) {
    const LoopId above = tree_[loop].parent;
    const bool qualified = above != kNoLoop && dice_.percent(30);
    return (qualified ? tree_[above].name + "." : "") + tree_[loop].name;
  }

  std::string new_name() { return "v" + std::to_string(names_++); }

  Argument size() {
    const std::vector<Argument> sizes{1, 2, 3, 4, 5, 7, 8, 8, 16, 64, kTreeCountName, kBatchSizeName};
    return dice_.pick(sizes);
  }

  void rewrite() {
    const LoopId loop = dice_.pick(loops());
    switch (dice_.below(5)) {
      case 0:
      case 1:
        return add(Schedule().tile(name(loop), new_name(), new_name(), size()));
      case 2:
        return add(Schedule().split(name(loop), new_name(), new_name(), size()));
      default:
        return reorder();
    }
  }

  /// Reorders some of the loops around an innermost one.
  void reorder() {
    std::vector<LoopId> chain;
    for (LoopId at = dice_.pick(innermost()); at != kNoLoop; at = tree_[at].parent)
      if (dice_.percent(75)) chain.push_back(at);
    if (chain.size() < 2) return;
    Schedule one = Schedule().reorder();
    while (!chain.empty()) {
      const std::size_t i = dice_.below(chain.size());
      one.directives.front().arguments.emplace_back(name(chain[i]));
      chain.erase(chain.begin() + static_cast<std::ptrdiff_t>(i));
    }
    add(one);
  }

  void parallel_trees() {
    std::vector<LoopId> many;
    for (const LoopId loop : loops())
      if (tree_[loop].axis == Axis::Trees && tree_.iterations(loop) > 1) many.push_back(loop);
    if (!many.empty()) add(Schedule().parallel(name(dice_.pick(many))));
  }

  /// Makes a nest for a GPU: rows are tiled once or twice, and so are trees, in any order; some loops, from the outside
  /// in, are mapped first to the grid, then to the block.
  Schedule run_mapped() {
    std::vector<std::string> nest;
    const auto cut = [&](const std::string& loop, Argument step) {
      const std::string outer = new_name(), inner = new_name();
      add(Schedule().tile(loop, outer, inner, std::move(step)));
      nest.push_back(outer);
      return inner;
    };
    std::string rows = cut("batch", one_of({4u, 8u, 16u, 33u, 64u}));
    if (dice_.percent(60)) rows = cut(rows, one_of({1u, 2u, 3u}));
    std::string trees = "tree";
    if (dice_.percent(70)) trees = cut(trees, one_of({1u, 2u, 3u, 5u, 8u}));
    if (dice_.percent(40)) trees = cut(trees, one_of({1u, 2u, 3u}));
    nest.push_back(rows);
    nest.push_back(trees);
    if (dice_.percent(20)) add(Schedule().split(trees, new_name(), new_name(), dice_.from_to(1, 9)));
    order(nest);
    map_loops(nest);
    for (std::size_t i = dice_.below(7); i > 0; --i) decorate_mapped();
    return std::move(schedule_);
  }

  void order(std::vector<std::string>& nest) {
    for (std::size_t i = dice_.below(10); i > 0; --i) {
      const std::size_t at = dice_.below(nest.size() - 1);
      std::vector<std::string> other = nest;
      std::swap(other[at], other[at + 1]);
      Schedule one = Schedule().reorder();
      for (const std::string& loop : other) one.directives.front().arguments.emplace_back(loop);
      const std::size_t before = schedule_.directives.size();
      add(one);
      if (schedule_.directives.size() != before) nest = std::move(other);
    }
  }

  void map_loops(const std::vector<std::string>& nest) {
    static const std::vector<std::string> kDimensions{"grid.x", "grid.y", "grid.z", "block.x", "block.y"};
    std::vector<std::size_t> dimensions;
    for (std::size_t d = 0; d < kDimensions.size(); ++d)
      if (d == 0 || dice_.percent(d < 3 ? 25 : 70)) dimensions.push_back(d);
    std::size_t next = 0;
    for (const std::string& loop : nest) {
      if (next == dimensions.size()) return;
      if (next != 0 && dimensions[next] >= 3 && dice_.percent(30)) continue;
      add(Schedule().gpuDimension(loop, kDimensions[dimensions[next++]]));
    }
  }

  void decorate_mapped() {
    const LoopId any = dice_.pick(loops()), inner = dice_.pick(innermost());
    switch (dice_.below(10)) {
      case 0:
      case 1:
        return cache_mapped(any);
      case 2:
      case 3:
        return reduce_mapped();
      case 4:
        return add(Schedule().interleave(name(inner)));
      case 5:
        return dice_.percent(50) ? add(Schedule().unrollWalk(name(inner)))
                                 : add(Schedule().unrollWalk(name(inner), dice_.from_to(1, 9)));
      case 6:
        return add(Schedule().tileTree(name(any), dice_.from_to(1, 8), one_of({"uniform", "probability"})));
      case 7:
        return program_directives();
      default:
        return add(Schedule().layout(name(any), dice_.pick(layouts_)));
    }
  }

  void cache_mapped(LoopId loop) {
    const bool ahead = tree_[loop].axis == Axis::Trees && !tree_[loop].dimension && dice_.percent(60);
    add(ahead ? Schedule().cache(name(loop), 1) : Schedule().cache(name(loop)));
  }

  void reduce_mapped() {
    std::vector<LoopId> mapped;
    for (const LoopId loop : loops())
      if (tree_[loop].axis == Axis::Trees && tree_[loop].dimension) mapped.push_back(loop);
    if (mapped.empty()) return;
    const std::string loop = name(dice_.pick(mapped));
    add(dice_.percent(50) ? Schedule().atomicReduce(loop) : Schedule().sharedReduce(loop));
  }

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[dice_.below(choices.size())];
  }

  void program_directives() {
    if (dice_.percent(70)) add(Schedule().orderTrees(one_of({"depth", "class", "none"})));
    if (dice_.percent(30)) add(Schedule().accumulate(one_of({"f32", "f64", "exact", "leaves"})));
  }

  /// Adds a reduction of some loop, mostly of one that needs it.
  void reduce() {
    std::vector<LoopId> parallel;
    for (const LoopId loop : loops())
      if (tree_[loop].axis == Axis::Trees && tree_[loop].parallel) parallel.push_back(loop);
    const std::string loop = name(dice_.pick(parallel.empty() || dice_.percent(5) ? loops() : parallel));
    if (dice_.percent(50)) return add(Schedule().atomicReduce(loop));
    if (dice_.percent(95)) return add(Schedule().vectorReduce(loop, one_of({2, 4, 8, 16})));
    add(Schedule().sharedReduce(loop));
  }

  void cache(LoopId loop) {
    if (dice_.percent(50)) return add(Schedule().cache(name(loop)));
    add(Schedule().cache(name(loop), dice_.from_to(1, 5)));
  }

  void decorate() {
    const LoopId any = dice_.pick(loops()), inner = dice_.pick(innermost());
    switch (dice_.below(14)) {
      case 0:
      case 1:
        if (tree_[any].axis == Axis::Trees)
          return dice_.percent(options_.parallel_trees) ? parallel_trees() : void();
        return add(Schedule().parallel(name(any)));
      case 2:
        if (tree_.iterations(any) > 40) return;
        return add(Schedule().unroll(name(any)));
      case 3:
        return add(Schedule().interleave(name(dice_.percent(80) ? inner : any)));
      case 4:
        return add(Schedule().unrollWalk(name(inner)));
      case 5:
        return add(Schedule().unrollWalk(name(dice_.percent(80) ? inner : any), dice_.from_to(1, 9)));
      case 6:
        return add(Schedule().peelWalk(name(inner), dice_.from_to(1, 3)));
      case 7:
        return add(Schedule().specialize(name(any)));
      case 8:
        return cache(any);
      case 9:
        return reduce();
      case 10:
      case 11:
        return add(Schedule().tileTree(name(any), dice_.from_to(1, 8), one_of({"uniform", "probability"})));
      default:
        return add(Schedule().layout(name(any), dice_.pick(layouts_)));
    }
  }

  Dice& dice_;
  ScheduleOptions options_;
  LoopTree tree_;
  Schedule schedule_;
  std::vector<std::string> layouts_ = support::layout_names();
  std::size_t names_ = 0;
};

}  // namespace

Schedule random_schedule(Dice& dice, std::uint32_t trees, const ScheduleOptions& options) {
  if (!dice.percent(options.plans)) return ScheduleMaker(dice, trees, options).run();
  Schedule all;
  const auto add_directives = [&] {
    const Schedule one = ScheduleMaker(dice, trees, options).run();
    all.directives.insert(all.directives.end(), one.directives.begin(), one.directives.end());
  };
  const auto add_plan = [&](const Argument& most) {
    for (const char* target : {"avx512", "avx2"})
      if (dice.percent(15)) {
        all.plan(most, target);
        add_directives();
      }
    all.plan(most);
    add_directives();
  };
  std::uint32_t most = 0;
  for (std::size_t i = dice.below(4); i > 0; --i) {
    most += static_cast<std::uint32_t>(dice.pick(std::vector<std::size_t>{1, 1, 2, 6, 7, 8, 33, 64}));
    add_plan(most);
  }
  add_plan(kBatchSizeName);
  return all;
}

}  // namespace forestvm::test
