// Passes over the nodes of a tree at memory speed, once or twice if it is sound. This file is compiled for speed and
// the rest of the verifier for size, so functions that make the text of an error are kept out of the loops.
#include "vm/program/verify/layout_rules.hpp"

#include <bit>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::bytecode {
namespace {

/// Returns the rules that some of the slots [begin, end) break, as bits.
template <class View>
FVM_INLINE std::uint32_t broken_rules(const typename View::Tree& view, std::uint32_t begin, std::uint32_t end,
                                      const TreeDesc& tree, const NodeFacts& facts) {
  std::uint32_t broken = 0;
  for (std::uint32_t slot = begin; slot < end; ++slot) broken |= View::broken_rules(view, slot, tree, facts);
  if constexpr (requires { &View::broken_lookup_rules; })
    for (std::uint32_t slot = begin; slot < end; ++slot)
      broken |= View::broken_lookup_rules(view, slot, facts);
  return broken;
}

/// Names the first broken rule of a tree that breaks one.
template <class View>
[[gnu::cold]] std::string first_broken_rule(const typename View::Tree& view, const TreeDesc& tree,
                                            const NodeFacts& facts) {
  for (std::uint32_t slot = 0;; ++slot)
    if (const std::uint32_t broken = broken_rules<View>(view, slot, slot + 1, tree, facts); broken != 0)
      return formatted("node {}: {}", slot, View::kNodeRules[std::countr_zero(broken)]);
}

[[gnu::cold]] std::string at_level(std::uint32_t level, const char* rule) {
  return formatted("level {}: {}", level, rule);
}

/// Returns what is wrong with the tables of a tree; an empty text if nothing is.
template <class View>
std::string tables_defect(const typename View::Tree& view, const TreeDesc& tree, const NodeFacts& facts) {
  typename View::LevelsAbove above{tree.leaf_count};
  for (std::uint32_t level = 0; level < View::levels(tree); ++level)
    if (const char* rule = View::level_rule(view, level, tree, facts, above)) return at_level(level, rule);
  return {};
}

[[gnu::cold]] std::string top_tables_defect(const GroupData& group, std::uint32_t index,
                                            const NodeFacts& facts) {
  const TreeDesc& tree = group.trees[index];
  const TopTablesHeader& header = TopTablesView::header(group, index);
  if (const char* rule = TopTablesView::header_rule(header, tree)) return rule;
  const TopTablesView::Tree view = TopTablesView::tree(group, index);
  std::string defect = tables_defect<TablesView>(view.top, TopTablesView::top_record(header), facts);
  if (!defect.empty()) return defect;
  std::uint32_t slot;
  const char* const rule = TopTablesView::nodes_rule(view, header, tree, facts, slot);
  if (rule == nullptr) return {};
  return slot == header.nodes ? rule : formatted("node {}: {}", slot, rule);
}

template <class View>
std::string defect(const GroupData& group, std::uint32_t index, const NodeFacts& facts, LinkMemory& memory) {
  const TreeDesc& tree = group.trees[index];
  if constexpr (std::is_same_v<View, TopTablesView>) {
    return top_tables_defect(group, index, facts);
  } else if constexpr (requires { &View::level_rule; }) {
    return tables_defect<View>(View::tree(group, index), tree, facts);
  } else {
    const auto view = View::tree(group, index);
    if (broken_rules<View>(view, 0, tree.node_count, tree, facts) != 0)
      return first_broken_rule<View>(view, tree, facts);
    if constexpr (kNamesChildren<View>)
      if (!are_links_sound<View>(view, tree, facts, memory)) return broken_link<View>(view, tree, facts);
    return {};
  }
}

template <class View>
constexpr LayoutRules rules_of() {
  LayoutRules rules{sizeof(typename View::Node), View::kTileWidth, View::kLeavesAside,
                    &View::first_node_rule,      nullptr,          &defect<View>};
  if constexpr (requires { &View::tree_rule; }) rules.tree_rule = &View::tree_rule;
  return rules;
}

template <class View>
constexpr LayoutRules kRules = rules_of<View>();

}  // namespace

const LayoutRules& layout_rules(Layout layout) {
  return with_view(layout, []<class View>() -> const LayoutRules& { return kRules<View>; });
}

}  // namespace forestvm::bytecode
