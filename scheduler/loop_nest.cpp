// The printed form of the loop nest, in the notation of SilvanForge's listings.
#include "scheduler/loop_nest.hpp"

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

class Printer {
 public:
  explicit Printer(const Lowering& lowering) : lowering_(lowering) {}

  std::string run() {
    print(lowering_.nest.body, 0);
    return std::move(text_);
  }

 private:
  void line(std::size_t depth, const std::string& what) {
    text_ += formatted("{}{}\n", std::string(2 * depth, ' '), what);
  }

  std::string rows(const Statement& s) const {
    return s.rows == kNoLoop ? "batch" : lowering_.loops[s.rows].name;
  }

  std::string accumulator(std::uint32_t number) const {
    if (number == 0) return "result";
    const NestAccumulator& a = lowering_.nest.accumulators[number];
    if (a.parent == number) return is_per_tree(a.kind) ? "leaves" : number == 1 ? "sums" : "scores";
    return formatted("private{}", number);
  }

  /// Returns the accumulator that a statement reads or writes, at its rows.
  std::string target(const Statement& s) const {
    return formatted("{}[{}]", accumulator(s.accumulator), rows(s));
  }

  std::string header(const Statement& s) const {
    const Loop& loop = lowering_.loops[s.loop];
    std::string text = lowering_.loops[s.loop].dimension ? "map.for " : s.parallel ? "par.for " : "for ";
    text += loop.name + " in ";
    text += loop.source == kNoLoop ? (loop.axis == Axis::Rows ? "rows" : "trees")
                                   : lowering_.loops[loop.source].name;
    if (loop.from != 0 || loop.to != kAll)
      text += formatted("[{}:{}]", loop.from, loop.to == kAll ? "" : std::to_string(loop.to));
    if (loop.step != 1) text += loop.step == kAll ? " step all" : formatted(" step {}", loop.step);
    if (loop.dimension) text += " on " + std::string(name_of(loop.dimension->value));
    if (loop.unroll) text += " unrolled";
    if (loop.specialize) text += " specialized";
    return text + ":";
  }

  std::string walk_text(const WalkSite& site) const {
    if (site.tree_begin == site.tree_end) return "no trees";
    std::string text = walker_text(site.walkers.front());
    for (std::size_t i = 1; i < site.walkers.size(); ++i) text += "; or " + walker_text(site.walkers[i]);
    return text;
  }

  std::string walker_text(const WalkerDesc& walker) const {
    const TreeGroup& group = lowering_.forest.groups[walker.group];
    std::string how(name_of(group.layout));
    if (group.tiling.size > 1) how += formatted(", tiles of {}", group.tiling.size);
    if (walker.interleaved_trees * walker.interleaved_rows > 1)
      how += formatted(", interleave {} trees x {} rows", walker.interleaved_trees, walker.interleaved_rows);
    if (walker.end == WalkEnd::Exact)
      how += formatted(", {} steps unrolled", walker.steps);
    else if (walker.steps != 0)
      how += formatted(", {} steps unchecked", walker.steps);
    return how;
  }

  std::string reduction(const Statement& s) const {
    std::string text = formatted("{}, {}", accumulator(s.from), lowering_.loops[s.loop].name);
    if (s.reduction.form != ReductionForm::Plain) text += ", " + std::string(name_of(s.reduction.form));
    if (s.reduction.width > 1) text += formatted(" {}", s.reduction.width);
    return text;
  }

  void walk(const Statement& s, std::size_t depth) {
    const WalkSite& site = lowering_.sites[s.site];
    LoopId tree = kNoLoop, row = kNoLoop;
    for (LoopId at = site.leaf; at != kNoLoop; at = lowering_.loops[at].parent) {
      LoopId& innermost = lowering_.loops[at].axis == Axis::Trees ? tree : row;
      if (innermost == kNoLoop) innermost = at;
    }
    const std::string row_name = lowering_.loops[row].name;
    line(depth, formatted("t = getTree(forest, {})", lowering_.loops[tree].name));
    line(depth, formatted("p = walkDecisionTree(t, rows[{}])  # {}", row_name, walk_text(site)));
    const NestAccumulator& into = lowering_.nest.accumulators[s.accumulator];
    if (s.kind == Statement::Kind::Leaves)
      line(depth, formatted("store(leafNumber(p), {}, t)", row_name));
    else if (is_per_tree(into.kind))
      line(depth, formatted("{}[{}, t] = p", accumulator(s.accumulator), row_name));
    else
      line(depth, formatted("{}{}[{}, getTreeClassId(t)], p)", s.atomic ? "atomicReduce(" : "reduce(",
                            accumulator(s.accumulator), row_name));
  }

  void print(const std::vector<Statement>& body, std::size_t depth) {
    using enum Statement::Kind;
    for (const Statement& s : body) switch (s.kind) {
        case Loop:
          line(depth, header(s));
          print(s.body, depth + 1);
          break;
        case Cache:
          line(depth, std::string(lowering_.loops[s.loop].axis == Axis::Rows ? "cacheRows(" : "cacheTrees(") +
                          lowering_.loops[s.loop].name + (s.ahead == 0 ? ")" : formatted(" + {})", s.ahead)));
          break;
        case Walk:
        case Leaves:
          walk(s, depth);
          break;
        case Encode:
          line(depth, formatted("codes[{}] = encode(rows[{}])", rows(s), rows(s)));
          break;
        case Init:
          line(depth, target(s) + " = base");
          break;
        case Zero:
          line(depth, target(s) + " = 0");
          break;
        case AddBase:
          line(depth, target(s) + " += base");
          break;
        case Privatize:
          line(depth, formatted("{} = privatize({}, {})", target(s),
                                accumulator(lowering_.nest.accumulators[s.accumulator].parent),
                                lowering_.loops[s.loop].name));
          break;
        case ReduceDim:
          line(depth, formatted("{} += reduce_dimension({})", target(s), reduction(s)));
          break;
        case ReduceInplace:
          line(depth, formatted("{} = reduce_dimension_inplace({})", target(s), reduction(s)));
          break;
        case Round:
          line(depth, formatted("{} = round({}[{}])", target(s), accumulator(s.from), rows(s)));
          break;
        case SumTrees:
          line(depth, formatted("{} += sumTrees({}[{}])", target(s), accumulator(s.from), rows(s)));
          break;
        case StoreStages:
          line(depth, formatted("storeStages({}, {}[{}]{}", target(s), accumulator(s.from), rows(s),
                                s.base_last ? ", base)" : ")"));
          break;
        case Attribute:
          line(depth, formatted("store(attribute(leaves[{}]))", rows(s)));
          break;
        case Quantiles:
          line(depth, formatted("store(quantiles(leaves[{}]))", rows(s)));
          break;
        case When:
        case Unless:
          line(depth, formatted("{}{}:", s.kind == When ? "when " : "unless ", name_of(s.output)));
          print(s.body, depth + 1);
          break;
        case Transform:
          line(depth, formatted("{} = {}({})", target(s), name_of(lowering_.model.transform), target(s)));
          break;
        case Store:
        case StoreTrees:
          line(depth, formatted("store({})", target(s)));
          break;
        case Label:
          line(depth, formatted("store({}({}))", name_of(lowering_.model.class_rule), target(s)));
          break;
      }
  }

  const Lowering& lowering_;
  std::string text_;
};

}  // namespace

std::string print_nest(const Lowering& lowering) { return Printer(lowering).run(); }

}  // namespace forestvm::scheduler
