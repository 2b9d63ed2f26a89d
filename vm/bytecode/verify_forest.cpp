// The verifier's forest rules. Every slot's feature lies inside the row, every child inside its tree and
// further on than its parent, so that every walk stays in bounds and ends. One pass over the nodes, at memory
// speed.
#include <forestvm/core/layouts.hpp>

#include "vm/bytecode/verify.hpp"

namespace forestvm::bytecode {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

/// `nodes_end`: where the nodes of the groups before end; then, where this group's do.
template <class View>
Result<void> verify_group(const Program& program, std::size_t index, std::uint64_t& nodes_end) {
  using Node = typename View::Node;
  const GroupDesc& group = program.section_Groups()[index];
  const std::string where = "groups section: group " + number(index);
  const auto bytes = program.section_Nodes();
  if (group.node_offset % kSectionAlignment != 0 || group.node_offset > bytes.size() ||
      group.node_count > (bytes.size() - group.node_offset) / sizeof(Node))
    return refused(where, number(group.node_count) + " nodes at byte " + number(group.node_offset) +
                              " do not lie in the nodes section");
  if (group.node_offset < nodes_end) return refused(where, "its nodes overlap the group before");
  nodes_end = group.node_offset + group.node_count * sizeof(Node);
  const Node* nodes = reinterpret_cast<const Node*>(bytes.data() + group.node_offset);
  const auto trees = program.section_Trees().subspan(group.first_tree, group.tree_end - group.tree_begin);
  std::uint64_t end = 0;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const TreeDesc& tree = trees[t];
    const auto wrong = [&](const std::string& what) {
      return refused(where + ", tree " + number(group.tree_begin + t), what);
    };
    if (tree.node_count == 0) return wrong("it has no nodes");
    if (tree.first_node != end) return wrong("it does not follow the tree before");
    end += tree.node_count;
    if (end > group.node_count) return wrong("it leaves its group");
    if (tree.output >= program.meta().num_outputs)
      return wrong("output " + number(tree.output) + " does not exist");
    if (const char* rule = View::tree_rule(tree)) return wrong(rule);
    for (std::uint32_t slot = 0; slot < tree.node_count; ++slot)
      if (const char* rule =
              View::node_rule(nodes[tree.first_node + slot], slot, tree, program.meta().num_features))
        return wrong("node " + number(slot) + ": " + rule);
  }
  return {};
}

}  // namespace

Result<void> verify_forest(const Program& program) {
  const auto groups = program.section_Groups();
  // Groups and trees lie one after the other, none twice: a file's size bounds the work of this pass.
  std::uint64_t trees_end = 0, nodes_end = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const GroupDesc& group = groups[i];
    const auto wrong = [&](const std::string& what) {
      return refused("groups section: group " + number(i), what);
    };
    for (const std::uint8_t byte : group.reserved)
      if (byte != 0) return wrong("a reserved byte is not zero");
    if (group.tree_begin >= group.tree_end || group.tree_end > program.meta().num_trees)
      return wrong("trees " + number(group.tree_begin) + " to " + number(group.tree_end) + " of " +
                   number(program.meta().num_trees));
    if (group.first_tree != trees_end) return wrong("its trees do not follow the group before");
    trees_end += group.tree_end - group.tree_begin;
    if (trees_end > program.section_Trees().size()) return wrong("its trees leave the trees section");
    switch (group.layout) {
#define FVM_LAYOUT(Name, text, View, meaning)           \
  case Layout::Name:                                    \
    FVM_TRY(verify_group<View>(program, i, nodes_end)); \
    continue;
#include <forestvm/core/layouts.def>
    }
    return wrong("unknown layout " + number(static_cast<unsigned>(group.layout)));
  }
  // A loop over trees may have as many iterations: they too are bounded by the file's size.
  if (program.meta().num_trees > trees_end)
    return refused("meta section",
                   number(program.meta().num_trees) + " trees, but the groups have " + number(trees_end));
  return {};
}

}  // namespace forestvm::bytecode
