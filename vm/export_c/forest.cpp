// Writes the groups' trees in C. Tables follow the family of the layout. In level order (array, and reorg
// with its interleaved trees) children are found by counting; single nodes (sparse) and tiles name their
// children. A child or slot that is a leaf has the flag LEAF and the leaf's number. Branches make the same
// tests by nested if and else.
#include <algorithm>

#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// The most nested blocks in branches. Compilers must accept 127 (C99, 5.2.4.1).
constexpr std::uint32_t kDeepestBranches = 100;

std::string child_word(DecodedChild child) {
  return word(is_leaf(child) ? leaf_of(child) | kLeaf : static_cast<std::uint32_t>(child));
}

class GroupWriter {
 public:
  GroupWriter(const Job& job, const std::string& code, std::size_t index, std::uint64_t& bytes)
      : job_(job),
        code_(code),
        index_(index),
        group_(job.program.groups()[index]),
        decoded_(job.groups[index]),
        bytes_(bytes) {}

  std::string run() {
    const bool level_order = with_view(group_.layout, []<class View>() {
      return requires { View::kInterleaved; };
    });
    const bool branches = job_.options.trees == ExportOptions::Trees::Branches;
    std::string text = "/* Group g" + std::to_string(index_) + ": trees " +
                       std::to_string(group_.tree_begin) + " to " + std::to_string(group_.tree_end) +
                       ", layout " + std::string(name_of(group_.layout)) +
                       (group_.tile_size > 1 ? formatted(", tiles of {}", group_.tile_size) : "");
    if (branches && shallow())
      text += ", as branches. */\n" + branch_functions();
    else if (group_.tile_size > 1)
      text += branches ? ", too deep for branches. */\n" + tile_tables() : ". */\n" + tile_tables();
    else if (level_order && !branches)
      text += ", children at 2 i + 1 and 2 i + 2. */\n" + level_order_tables();
    else
      text += branches ? ", too deep for branches. */\n" + node_tables() : ". */\n" + node_tables();
    return formatted("{}{}\n", text, leaf_tables());
  }

 private:
  std::string name(const std::string& own) const { return job_.name(formatted("g{}_{}", index_, own)); }

  std::string values(const std::string& type, std::size_t element, const std::string& own,
                     const std::vector<std::string>& list) {
    return table(type, element, name(own), list, bytes_);
  }

  std::string test_word(const DecodedTest& test) const { return word(column_word(job_, test)); }

  std::string threshold_values(const std::vector<std::string>& list) {
    return values(threshold_type(job_), size_of(job_.program.meta().row_type), "threshold", list);
  }

  std::string walk_head() const {
    return in_file(job_, formatted("static uint32_t @walk_g{}(uint32_t tree, const @ROW *x) {\n", index_));
  }

  bool used(const std::string& own) const { return code_.find(name(own) + "[") != std::string::npos; }

  /// Returns the tables of the leaves, by the types of sums, and of the numbers, outputs and trees that the code uses.
  std::string leaf_tables() {
    std::vector<std::string> numbers, outputs, trees;
    for (const DecodedLeaf& leaf : decoded_.leaves) numbers.push_back(std::to_string(leaf.number));
    const auto records = job_.program.trees().subspan(group_.first_tree, decoded_.trees.size());
    for (const TreeDesc& tree : records) {
      outputs.push_back(word(tree.output));
      trees.push_back(word(tree.number));
    }
    std::string text;
    for (const AccumulatorKind kind : kSumKinds) {
      if (!used("leaf_" + sum_name(kind))) continue;
      std::vector<std::string> leaves;
      const bool narrow = kind == AccumulatorKind::F32;
      for (const DecodedLeaf& leaf : decoded_.leaves)
        leaves.push_back(sum_literal(job_, kind, narrow ? static_cast<double>(leaf.value) : leaf.wide_value));
      text += values(sum_type(job_, kind), element_size(kind), "leaf_" + sum_name(kind), leaves);
    }
    if (used("number")) text += values("int32_t", 4, "number", numbers);
    if (used("output")) text += values("uint32_t", 4, "output", outputs);
    if (used("tree")) text += values("uint32_t", 4, "tree", trees);
    return text;
  }

  template <class View>
  void read_slots(std::vector<std::string>& thresholds, std::vector<std::string>& words) const {
    const GroupData data = group_data(job_.program, group_);
    thresholds.assign(group_.node_count, "");
    words.assign(group_.node_count, "");
    for (std::uint32_t t = 0; t < data.tree_count; ++t) {
      const auto tree = View::tree(data, t);
      // The test or leaf that stands in each slot. Slots below a leaf hold copies of it.
      std::vector<DecodedChild> at(data.trees[t].node_count, 0);
      at[0] = decoded_.trees[t].root;
      for (std::uint32_t slot = 0; slot < at.size(); ++slot) {
        const std::uint64_t index = View::number_at(tree, data.trees[t], slot);
        const DecodedTile* const split =
            is_leaf(at[slot]) ? nullptr : &decoded_.trees[t].tiles[static_cast<std::size_t>(at[slot])];
        thresholds[index] = split == nullptr ? threshold(job_, 0.0) : threshold(job_, split->tests[0]);
        words[index] = split == nullptr ? child_word(at[slot]) : test_word(split->tests[0]);
        for (std::uint32_t branch = 0; branch < 2 && 2 * slot + 2 < at.size(); ++branch)
          at[2 * slot + 1 + branch] = split == nullptr ? at[slot] : split->children[branch];
      }
    }
  }

  std::string level_order_tables() {
    std::vector<std::string> thresholds, words, roots;
    bool interleaved = false;
    with_view(group_.layout, [&]<class View>() {
      if constexpr (requires { View::kInterleaved; } && View::kTileWidth == 1) {
        interleaved = View::kInterleaved;
        read_slots<View>(thresholds, words);
      }
    });
    for (const TreeDesc& tree : job_.program.trees().subspan(group_.first_tree, decoded_.trees.size()))
      roots.push_back(word(tree.first_node));
    const std::string node =
        interleaved ? formatted("{}[tree] + at * {}", name("root"), number(decoded_.trees.size()))
                    : name("root") + "[tree] + at";
    return formatted(
        "{}{}{}{}  uint32_t at = 0u;\n  for (;;) {\n    const uint32_t node = {}, word = {}[node];\n    if ((word & LEAF) != 0u) return word & ~LEAF;\n    at = 2u * at + 2u - (uint32_t){}(x, word, {}[node]);\n  }\n}\n",
        threshold_values(thresholds), values("uint32_t", 4, "word", words),
        values("uint32_t", 4, "root", roots), walk_head(), node, name("word"), job_.name("left"),
        name("threshold"));
  }

  /// Calls add(tile, shifted) for each tile of all trees. shifted(child) returns the child as counted from
  /// the first tile of the first tree. Returns the root of each tree, counted in the same branch.
  template <class Add>
  std::vector<std::string> for_each_tile(const Add& add) const {
    std::vector<std::string> roots;
    std::uint32_t first = 0;
    for (const DecodedTree& tree : decoded_.trees) {
      roots.push_back(is_leaf(tree.root) ? child_word(tree.root) : word(first));
      const auto shifted = [first](DecodedChild child) {
        return is_leaf(child) ? child : child + static_cast<DecodedChild>(first);
      };
      for (const DecodedTile& tile : tree.tiles) add(tile, shifted);
      first += static_cast<std::uint32_t>(tree.tiles.size());
    }
    return roots;
  }

  std::string node_tables() {
    std::vector<std::string> thresholds, words, left, right;
    const auto roots = for_each_tile([&](const DecodedTile& tile, const auto& shifted) {
      thresholds.push_back(threshold(job_, tile.tests[0]));
      words.push_back(test_word(tile.tests[0]));
      left.push_back(child_word(shifted(tile.children[0])));
      right.push_back(child_word(shifted(tile.children[1])));
    });
    return formatted(
        "{}{}{}{}{}{}  uint32_t at = {}[tree];\n  while ((at & LEAF) == 0u)\n    at = {}(x, {}[at], {}[at]) ? {}[at] : {}[at];\n  return at & ~LEAF;\n}\n",
        threshold_values(thresholds), values("uint32_t", 4, "word", words),
        values("uint32_t", 4, "left", left), values("uint32_t", 4, "right", right),
        values("uint32_t", 4, "root", roots), walk_head(), name("root"), job_.name("left"), name("word"),
        name("threshold"), name("left"), name("right"));
  }

  std::string tile_tables() {
    const std::uint32_t size = group_.tile_size, branches = size + 1, outcomes = 1u << size;
    std::vector<std::string> thresholds, words, shapes, children, exits;
    const auto roots = for_each_tile([&](const DecodedTile& tile, const auto& shifted) {
      shapes.push_back(word(tile.shape));
      for (std::uint32_t i = 0; i < size; ++i) {
        const bool used = i < tile.tests.size();
        thresholds.push_back(used ? threshold(job_, tile.tests[i]) : threshold(job_, 0.0));
        words.push_back(used ? test_word(tile.tests[i]) : "0u");
      }
      for (std::uint32_t i = 0; i < branches; ++i)
        children.push_back(i < tile.children.size() ? child_word(shifted(tile.children[i])) : "0");
    });
    for (const TileShape& shape : job_.program.tile_shapes())
      for (std::uint32_t bits = 0; bits < outcomes; ++bits)
        exits.push_back(std::to_string(shape.size <= size ? tile_exit(shape, bits) : 0));
    return formatted(
        "{}{}{}{}{}{}{}  uint32_t at = {}[tree];\n  while ((at & LEAF) == 0u) {\n    uint32_t i, bits = 0u;\n    for (i = 0u; i < {}; ++i)\n      bits |= (uint32_t){}(x, {}[at * {} + i], {}[at * {} + i]) << i;\n    at = {}[at * {} + {}[{}[at] * {} + bits]];\n  }\n  return at & ~LEAF;\n}\n",
        threshold_values(thresholds), values("uint32_t", 4, "word", words),
        values("uint32_t", 4, "shape", shapes), values("uint32_t", 4, "child", children),
        values("unsigned char", 1, "exit", exits), values("uint32_t", 4, "root", roots), walk_head(),
        name("root"), number(size), job_.name("left"), name("word"), number(size), name("threshold"),
        number(size), name("child"), number(branches), name("exit"), name("shape"), number(outcomes));
  }

  bool shallow() const {
    const auto records = job_.program.trees().subspan(group_.first_tree, decoded_.trees.size());
    return std::all_of(records.begin(), records.end(), [&](const TreeDesc& tree) {
      return std::uint64_t{tree.depth} * group_.tile_size <= kDeepestBranches;
    });
  }

  std::string branch_functions() {
    std::string text, choice;
    for (std::size_t t = 0; t < decoded_.trees.size(); ++t) {
      const std::string function = name(formatted("tree{}", t));
      const DecodedTree& tree = decoded_.trees[t];
      text +=
          formatted("static uint32_t {}(const {} *x) {\n", function, c_type(job_.program.meta().row_type));
      if (is_leaf(tree.root)) text += "  (void)x;\n";
      branch(tree, tree.root, 1, text);
      text += "}\n";
      choice += formatted("    case {}: return {}(x);\n", number(t), function);
    }
    return formatted("{}{}  switch (tree) {\n{}    default: return 0u;\n  }\n}\n", text, walk_head(), choice);
  }

  void branch(const DecodedTree& tree, DecodedChild at, std::size_t depth, std::string& text) {
    const std::string indent(2 * depth, ' ');
    if (is_leaf(at)) {
      text += formatted("{}return {};\n", indent, number(leaf_of(at)));
      return;
    }
    const DecodedTile& tile = tree.tiles[static_cast<std::size_t>(at)];
    constexpr std::uint8_t exit = kTileExit;
    const TileShape single{1, {exit}, {static_cast<std::uint8_t>(exit | 1)}};
    branch_in_tile(tree, tile, tile.shape == 0 ? single : job_.program.tile_shapes()[tile.shape], 0, depth,
                   text);
  }

  void branch_in_tile(const DecodedTree& tree, const DecodedTile& tile, const TileShape& shape, unsigned test,
                      std::size_t depth, std::string& text) {
    const std::string indent(2 * depth, ' ');
    const auto go = [&](std::uint8_t entry) {
      if ((entry & kTileExit) != 0)
        branch(tree, tile.children[entry & ~unsigned{kTileExit}], depth + 1, text);
      else
        branch_in_tile(tree, tile, shape, entry, depth + 1, text);
    };
    text += formatted("{}if ({}(x, {}, {})) {\n", indent, job_.name("left"), test_word(tile.tests[test]),
                      threshold(job_, tile.tests[test]));
    go(shape.left[test]);
    text += indent + "} else {\n";
    go(shape.right[test]);
    text += indent + "}\n";
  }

  const Job& job_;
  const std::string& code_;
  std::size_t index_;
  const GroupDesc& group_;
  const DecodedGroup& decoded_;
  std::uint64_t& bytes_;
};

}  // namespace

std::string forest_text(const Job& job, const std::string& code, std::uint64_t& table_bytes) {
  std::string text;
  for (std::size_t i = 0; i < job.groups.size(); ++i)
    if (code.find(job.name(formatted("walk_g{}(", i))) != std::string::npos)
      text += GroupWriter(job, code, i, table_bytes).run();
  return text;
}

}  // namespace forestvm::bytecode::export_c
