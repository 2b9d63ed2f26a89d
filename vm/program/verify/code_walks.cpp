#include "vm/program/verify/code_walks.hpp"

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/groups.hpp>

namespace forestvm::bytecode {

Result<void> WalkRules::walk(const OperandsOf<Op::Walk>& args) {
  const auto [accumulator, trees, rows, walker, select] = args;
  FVM_TRY(walks(trees, walker, select));
  facts().walk_sums = accumulator;
  const bool atomic = is_atomic(walker);
  // Parallel iterations walk different trees, each of which has an element of its own.
  if (is_per_tree(kind_of(accumulator)) && !atomic) return is_live(accumulator, rows);
  if (!program_.round_begins().empty()) FVM_TRY(walks_in_order());
  return adds(accumulator, rows, atomic);
}

Result<void> WalkRules::leaves(const OperandsOf<Op::Leaves>& args) {
  FVM_TRY(reads(args.rows, Axis::Rows));
  return walks(args.trees, args.walker, args.select);
}

/// Checks that trees lie in the group of the walker, or of each walker that an iteration selects, and that all of these
/// are atomic or none is.
Result<void> WalkRules::walks(std::uint32_t trees, std::uint32_t walker, std::uint32_t select) {
  FVM_TRY(reads(trees, Axis::Trees));
  facts().first_walker = walker;
  facts().walker_count = 1;
  if (select == kNoSelect) return walks_group(walker, {range_in(trees).lo, range_in(trees).hi, 0});
  const RangeFacts& by = range_in(select);
  const RangeFacts& over = map_.ranges[by.source];
  if (!RangeRules::is_live(select) || by.step == 0 || !over.exact || !is_within(trees, select))
    return wrong("r{} is not a loop over known trees that r{} is part of", select, trees);
  const Range all{over.lo, over.hi, 0};
  const std::uint32_t count = iterations(all.size(), by.step);
  if (count > kMaxSpecialized || count > program_.walkers().size() - walker)
    return wrong("a walker for each of {} iterations", count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (is_atomic(walker + i) != is_atomic(walker))
      return wrong("some of its walkers are atomic, others are not");
    FVM_TRY(walks_group(walker + i, chunk(all, by.step, i)));
  }
  facts().select = range_number(select);
  facts().walker_count = count;
  return {};
}

Result<void> WalkRules::walks_group(std::uint32_t walker, const Range& trees) const {
  const std::uint32_t index = program_.walkers()[walker].group;
  const GroupDesc& group = program_.groups()[index];
  if (trees.size() != 0 && (trees.begin < group.tree_begin || trees.end > group.tree_end))
    return wrong("trees {} to {} are not all in group {}", trees.begin, trees.end, index);
  return {};
}

/// Checks that the groups of a walk's walkers, which `facts` have, hold their trees in the model's order.
Result<void> WalkRules::walks_in_order() {
  in_order_.resize(program_.groups().size());
  for (std::uint32_t i = 0; i < facts().walker_count; ++i) {
    const std::uint32_t index = program_.walkers()[facts().first_walker + i].group;
    if (in_order_[index] != 0) continue;
    if (!has_trees_in_order(program_, program_.groups()[index]))
      return wrong("it adds the trees of group {} to sums, but they are not in the model's order", index);
    in_order_[index] = 1;
  }
  return {};
}

}  // namespace forestvm::bytecode
