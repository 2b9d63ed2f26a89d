// The verifier's forest rules. Every slot's feature lies inside the row, every child inside its tree and
// further on than its parent, so that every walk stays in bounds and ends. Where nodes name their children,
// each node is the child of at most one other, so that a tree is no larger than its nodes. layout_rules.cpp
// has the passes over nodes.
#include <algorithm>
#include <vector>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/program/verify/layout_rules.hpp"
#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

/// The parts of the sections that the groups verified so far take.
struct Taken {
  std::uint64_t trees = 0, node_bytes = 0, numbers = 0;
};

Result<void> verify_group_bounds(const Program& program, const GroupDesc& group, const LayoutRules& rules,
                                 const std::string& where, Taken& taken) {
  const std::uint64_t bytes = program.nodes().size();
  if (group.node_offset % kSectionAlignment != 0 || group.node_offset > bytes ||
      group.node_count > (bytes - group.node_offset) / rules.node_bytes)
    return refused(where, "{} nodes at byte {} do not lie in the nodes section", group.node_count,
                   group.node_offset);
  if (group.node_offset < taken.node_bytes) return refused(where, "its nodes overlap the group before");
  const std::uint64_t leaves_begin = group.node_offset + group.node_count * rules.node_bytes;
  if (!rules.leaves_aside && group.leaf_count != 0) return refused(where, "it has leaves aside");
  if (group.leaf_count > (bytes - leaves_begin) / sizeof(float))
    return refused(where, "{} leaves do not lie in the nodes section", group.leaf_count);
  taken.node_bytes = leaves_begin + group.leaf_count * sizeof(float);
  const std::uint64_t numbers = rules.leaves_aside ? group.leaf_count : group.node_count;
  if (group.first_number != taken.numbers)
    return refused(where, "its leaf numbers do not follow the group before");
  taken.numbers += numbers;
  if (taken.numbers > program.leaf_numbers().size())
    return refused(where, "its leaf numbers leave the leaf_numbers section");
  return {};
}

Result<void> verify_group(const Program& program, std::size_t index, NodeFacts facts, Taken& taken) {
  const GroupDesc& group = program.groups()[index];
  const LayoutRules& rules = layout_rules(group.layout);
  const std::string where = formatted("groups section: group {}", index);
  const std::uint32_t least = rules.tile_width == 1 ? 1 : 2;
  if (group.tile_size < least || group.tile_size > rules.tile_width)
    return refused(where, "tiles of {} nodes in layout {}", group.tile_size, name_of(group.layout));
  FVM_TRY(verify_group_bounds(program, group, rules, where, taken));
  const auto trees = trees_of(program, group);
  const GroupData data = group_data(program, group);
  facts.tile_size = group.tile_size;
  const std::uint32_t num_outputs = program.meta().num_outputs;
  std::uint64_t nodes = 0, leaves = 0;
  LinkMemory memory;
  for (std::uint32_t t = 0; t < trees.size(); ++t) {
    const TreeDesc& tree = trees[t];
    const auto wrong = [&](CText what) {
      return refused(formatted("{}, tree {}", where, group.tree_begin + t), what);
    };
    if (tree.node_count == 0) return wrong("it has no nodes");
    if (const char* rule = rules.first_node_rule(tree, t, group, nodes)) return wrong(rule);
    nodes += tree.node_count;
    if (tree.output >= num_outputs) return wrong(formatted("output {} does not exist", tree.output));
    if (rules.tree_rule != nullptr)
      if (const char* rule = rules.tree_rule(tree, group)) return wrong(rule);
    if (!rules.leaves_aside && (tree.leaf_count != 0 || tree.first_leaf != 0))
      return wrong("it has leaves aside");
    if (rules.leaves_aside && tree.first_leaf != leaves)
      return wrong("its leaves do not follow the tree before");
    leaves += tree.leaf_count;
    if (leaves > group.leaf_count) return wrong("its leaves leave its group");
    if (const std::string defect = rules.defect(data, t, facts, memory); !defect.empty())
      return wrong(defect);
  }
  return {};
}

/// Returns the number of thresholds of each column, and 0 for all other columns that a node may name.
std::vector<std::uint8_t> column_codes(const Program& program) {
  const auto columns = program.columns();
  std::vector<std::uint8_t> codes(std::max<std::size_t>(columns.size(), Sparse4View::kMaxColumns));
  for (std::size_t i = 0; i < columns.size(); ++i) codes[i] = static_cast<std::uint8_t>(columns[i].count);
  return codes;
}

/// Checks that the program's order of trees is a permutation of the model's, the same in every group.
Result<void> verify_tree_numbers(const Program& program) {
  const std::uint32_t count = program.meta().num_trees;
  std::vector<std::uint32_t> number_of(count, UINT32_MAX);
  std::vector<bool> taken(count);
  for (std::size_t i = 0; i < program.groups().size(); ++i) {
    const GroupDesc& group = program.groups()[i];
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
      const std::uint32_t found = program.trees()[group.first_tree + (t - group.tree_begin)].number;
      const auto wrong = [&](CText what) {
        return refused(formatted("groups section: group {}, tree {}", i, t), what);
      };
      if (found >= count) return wrong(formatted("the model has no tree {}", found));
      if (number_of[t] == found) continue;
      if (number_of[t] != UINT32_MAX || taken[found])
        return wrong(formatted("the model's tree {} stands elsewhere too", found));
      number_of[t] = found;
      taken[found] = true;
    }
  }
  return {};
}

}  // namespace

Result<void> verify_forest(const Program& program) {
  const auto groups = program.groups();
  const auto shapes = program.tile_shapes();
  const std::vector<std::uint8_t> codes = column_codes(program);
  const NodeFacts facts{row_width(program.meta()),
                        0,
                        shapes.data(),
                        static_cast<std::uint32_t>(shapes.size()),
                        static_cast<std::uint32_t>(program.columns().size()),
                        codes.data()};
  // Groups and trees lie one after the other, none twice: a file's size bounds the work of this pass.
  Taken taken;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const GroupDesc& group = groups[i];
    const auto wrong = [&](CText what) { return refused(formatted("groups section: group {}", i), what); };
    for (const std::uint8_t byte : group.reserved)
      if (byte != 0) return wrong("a reserved byte is not zero");
    if (group.tree_begin >= group.tree_end || group.tree_end > program.meta().num_trees)
      return wrong(
          formatted("trees {} to {} of {}", group.tree_begin, group.tree_end, program.meta().num_trees));
    if (group.first_tree != taken.trees) return wrong("its trees do not follow the group before");
    taken.trees += group.tree_end - group.tree_begin;
    if (taken.trees > program.trees().size()) return wrong("its trees leave the trees section");
    if (!is_declared(group.layout))
      return wrong(formatted("unknown layout {}", static_cast<unsigned>(group.layout)));
    FVM_TRY(verify_group(program, i, facts, taken));
  }
  if (taken.trees != program.trees().size())
    return refused("trees section", "{} trees, but the groups have {}", program.trees().size(), taken.trees);
  // A loop over trees may have this many iterations, so the file's size must bound them, too.
  if (program.meta().num_trees > taken.trees)
    return refused("meta section", "{} trees, but the groups have {}", program.meta().num_trees, taken.trees);
  return verify_tree_numbers(program);
}

}  // namespace forestvm::bytecode
