// The verifier's forest rules. Every slot's feature lies inside the row, every child inside its tree and
// further on than its parent, so that every walk stays in bounds and ends. One pass over the nodes, at memory
// speed.
#include <forestvm/core/layout/array.hpp>
#include <forestvm/core/layout/sparse.hpp>

#include "vm/bytecode/verify.hpp"

namespace forestvm::bytecode {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

/// The deepest array tree: 2^27 - 1 slots are 1 GiB.
constexpr std::uint32_t kMaxArrayDepth = 26;

/// A tree's slots; the rules of its layout say nothing, or what is wrong with slot `slot`.
struct Slots {
  const TreeDesc& tree;
  std::uint32_t num_features;
};

const char* tree_rule(const ArrayView::Node*, const TreeDesc& tree) {
  if (tree.depth > kMaxArrayDepth) return "an array tree cannot be that deep";
  if (tree.node_count != (std::uint32_t{2} << tree.depth) - 1) return "its slots do not fill its depth";
  return nullptr;
}

const char* node_rule(const ArrayView::Node& node, std::uint32_t slot, const Slots& slots) {
  if ((node.feature & kFeatureMask) >= slots.num_features) return "its feature lies outside the row";
  const bool last_level = slot >= slots.tree.node_count / 2;
  if (last_level && (node.feature & kLeaf) == 0) return "a slot of the last level is no leaf";
  return nullptr;
}

const char* tree_rule(const SparseView::Node*, const TreeDesc& tree) {
  return tree.depth >= tree.node_count ? "it is deeper than it has nodes" : nullptr;
}

const char* node_rule(const SparseView::Node& node, std::uint32_t slot, const Slots& slots) {
  if ((node.feature & kLeaf) != 0) {
    if (node.feature != kLeaf) return "a leaf tests a feature";
    if (node.left != slot || node.right != slot) return "a leaf's children are not itself";
    return nullptr;
  }
  if ((node.feature & kFeatureMask) >= slots.num_features) return "its feature lies outside the row";
  if (node.left <= slot || node.right <= slot) return "a child does not come after its parent";
  if (node.left >= slots.tree.node_count || node.right >= slots.tree.node_count)
    return "a child lies outside its tree";
  return nullptr;
}

template <class View>
Result<void> verify_group(const Program& program, std::size_t index) {
  using Node = typename View::Node;
  const GroupDesc& group = program.section_Groups()[index];
  const std::string where = "groups section: group " + number(index);
  const auto bytes = program.section_Nodes();
  if (group.node_offset % kSectionAlignment != 0 || group.node_offset > bytes.size() ||
      group.node_count > (bytes.size() - group.node_offset) / sizeof(Node))
    return refused(where, number(group.node_count) + " nodes at byte " + number(group.node_offset) +
                              " do not lie in the nodes section");
  const Node* nodes = reinterpret_cast<const Node*>(bytes.data() + group.node_offset);
  const auto trees = program.section_Trees().subspan(group.first_tree, group.tree_end - group.tree_begin);
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const TreeDesc& tree = trees[t];
    const auto wrong = [&](const std::string& what) {
      return refused(where + ", tree " + number(group.tree_begin + t), what);
    };
    if (tree.node_count == 0) return wrong("it has no nodes");
    if (std::uint64_t{tree.first_node} + tree.node_count > group.node_count)
      return wrong("it leaves its group");
    if (tree.output >= program.meta().num_outputs)
      return wrong("output " + number(tree.output) + " does not exist");
    if (const char* rule = tree_rule(nodes, tree)) return wrong(rule);
    const Slots slots{tree, program.meta().num_features};
    for (std::uint32_t slot = 0; slot < tree.node_count; ++slot)
      if (const char* rule = node_rule(nodes[tree.first_node + slot], slot, slots))
        return wrong("node " + number(slot) + ": " + rule);
  }
  return {};
}

}  // namespace

Result<void> verify_forest(const Program& program) {
  const auto groups = program.section_Groups();
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
    if (std::uint64_t{group.first_tree} + (group.tree_end - group.tree_begin) >
        program.section_Trees().size())
      return wrong("its trees leave the trees section");
    switch (group.layout) {
#define FVM_LAYOUT(Name, text, View, meaning) \
  case Layout::Name:                          \
    FVM_TRY(verify_group<View>(program, i));  \
    continue;
#include <forestvm/core/layouts.def>
    }
    return wrong("unknown layout " + number(static_cast<unsigned>(group.layout)));
  }
  return {};
}

}  // namespace forestvm::bytecode
