// Counts what a compiler could leave out of models without changing a bit of their predictions: bench_savings MODEL …
// prints a line of a Markdown table for each model. Times of walks do not come into it; bench/results/lowering.md says
// what was made of the counts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/load.hpp>

namespace {

using namespace forestvm;

/// The values of a feature that can reach a node: numbers from `least` on and below `end`, and NaN.
struct Reaching {
  double least = -std::numeric_limits<double>::infinity();
  double end = std::numeric_limits<double>::infinity();
  bool nan = true;

  bool empty() const { return !(least < end) && !nan; }
};

struct Counts {
  std::uint64_t nodes = 0;
  std::uint64_t implied = 0;                   ///< Splits whose outcome follows from the splits above them.
  std::uint64_t unreachable = 0;               ///< Nodes that no row reaches.
  std::uint64_t equal_leaves = 0;              ///< Splits between two leaves of one value.
  std::uint64_t constants = 0;                 ///< Trees of one leaf.
  std::uint64_t zeros = 0;                     ///< Trees of one leaf whose value is 0.
  std::uint64_t copies = 0;                    ///< Trees that repeat an earlier tree of their output.
  std::uint64_t leaves = 0, short_leaves = 0;  ///< Leaves, and those that binary16 holds exactly.
};

/// Returns whether binary16 holds a number exactly.
bool fits_binary16(double value) {
  if (value == 0) return true;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int bits = std::min(11, exponent + 24);                     // of a normal, or a subnormal number
  return exponent <= 16 && bits > 0 && std::ldexp(mantissa, bits) == std::floor(std::ldexp(mantissa, bits));
}

class TreeCounter {
 public:
  TreeCounter(const Tree& tree, Counts& counts) : tree_(tree), counts_(counts) {}

  void count() { visit(0); }

 private:
  const Node& node(std::int32_t at) const { return tree_.nodes[static_cast<std::size_t>(at)]; }

  std::uint64_t nodes_below(std::int32_t at) const {
    return node(at).kind == NodeKind::Leaf ? 1 : 1 + nodes_below(node(at).left) + nodes_below(node(at).right);
  }

  void visit_side(std::int32_t at, std::uint32_t feature, const Reaching& reaching) {
    if (reaching.empty()) {
      ++counts_.implied;
      counts_.unreachable += nodes_below(at);
      counts_.nodes += nodes_below(at);
      return;
    }
    Reaching& known = reaching_[feature];  // stays where it is when others are added
    const Reaching before = std::exchange(known, reaching);
    visit(at);
    known = before;
  }

  void visit(std::int32_t at) {
    const Node& here = node(at);
    ++counts_.nodes;
    if (here.kind == NodeKind::Leaf) {
      ++counts_.leaves;
      if (fits_binary16(here.value)) ++counts_.short_leaves;
      return;
    }
    const Node &left = node(here.left), &right = node(here.right);
    if (tree_.leaf_width == 1 && left.kind == NodeKind::Leaf && right.kind == NodeKind::Leaf &&
        left.value == right.value)
      ++counts_.equal_leaves;
    // Does not follow which values pass a test of categories, or a test that takes 0 as missing.
    if (here.kind == NodeKind::Category || here.missing == Missing::Zero) {
      visit(here.left);
      visit(here.right);
      return;
    }
    const double end = here.kind == NodeKind::Less
                           ? here.threshold
                           : std::nextafter(here.threshold, std::numeric_limits<double>::infinity());
    Reaching low = reaching_[here.feature], high = low;
    low.end = std::min(low.end, end);
    high.least = std::max(high.least, end);
    if (here.missing == Missing::Nan) {
      low.nan = low.nan && here.missing_left;
      high.nan = high.nan && !here.missing_left;
    }
    visit_side(here.left, here.feature, low);
    visit_side(here.right, here.feature, high);
  }

  const Tree& tree_;
  Counts& counts_;
  std::map<std::uint32_t, Reaching> reaching_{};
};

/// Returns everything in a tree that decides its predictions, as bytes that can be compared.
std::string text_of(const Tree& tree) {
  std::string text = std::to_string(tree.output);
  for (const Node& node : tree.nodes) {
    char line[160];
    std::snprintf(line, sizeof line, "/%d,%d,%d,%u,%d,%d,%a,%a,%u", static_cast<int>(node.kind), node.left,
                  node.right, node.feature, node.missing_left, static_cast<int>(node.missing), node.threshold,
                  node.value, node.payload);
    text += line;
  }
  return text;
}

Counts counts_of(const Model& model) {
  Counts counts;
  std::map<std::string, std::uint64_t> texts;
  for (const Tree& tree : model.trees) {
    TreeCounter(tree, counts).count();
    const bool plain = tree.leaf_width == 1 && tree.category_sets.empty() && tree.linear_leaves.empty();
    if (plain && tree.nodes[0].kind == NodeKind::Leaf) {
      ++counts.constants;
      if (tree.nodes[0].value == 0) ++counts.zeros;
    } else if (plain && texts[text_of(tree)]++ != 0) {
      ++counts.copies;
    }
  }
  return counts;
}

using Number = unsigned long long;

void print(const std::string& path, const Model& model) {
  const Counts counts = counts_of(model);
  std::printf("| %s | %zu | %llu | %llu | %llu | %llu | %llu | %llu | %llu | %.1f%% |\n", path.c_str(),
              model.trees.size(), Number{counts.nodes}, Number{counts.implied}, Number{counts.unreachable},
              Number{counts.equal_leaves}, Number{counts.constants}, Number{counts.zeros},
              Number{counts.copies},
              100.0 * static_cast<double>(counts.short_leaves) /
                  static_cast<double>(std::max<std::uint64_t>(counts.leaves, 1)));
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) {
    std::fputs("usage: bench_savings MODEL …\n", stderr);
    return 2;
  }
  std::puts(
      "| model | trees | nodes | implied splits | unreachable nodes | splits between equal leaves | "
      "trees of one leaf | of value 0 | repeated trees | leaves exact in binary16 |\n|---|---|---|---|---|---|---|---|---|---|");
  int failed = 0;
  for (int i = 1; i < count; ++i) {
    const auto model = load_model(arguments[i]);
    if (model)
      print(arguments[i], *model);
    else
      std::fprintf(stderr, "%s\n", model.error().text().c_str());
    failed += model ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
