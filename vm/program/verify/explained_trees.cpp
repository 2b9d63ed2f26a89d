// The verifier's rules for the paths and patterns from which contributions of features are computed.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

/// The most nodes of a tree. The constants that are derived from the nodes are numbered in 32 bits.
constexpr std::uint32_t kMaxPathNodes = std::uint32_t{1} << 24;

/// Returns what is wrong with a split or a leaf by itself; null if nothing is.
const char* node_rule(const Program& program, const PathNode& node) {
  if (node.split > 1) return "it is neither a split nor a leaf";
  for (const std::uint8_t byte : node.reserved)
    if (byte != 0) return "a reserved byte is not zero";
  if (!std::isfinite(node.number)) return "its number is not finite";
  if (node.split == 0)
    return node.column == 0 && node.feature == 0 && node.code == 0 ? nullptr : "a leaf tests nothing";
  if (node.column >= program.columns().size()) return "its column does not exist";
  if (node.feature >= program.meta().num_features) return "its feature lies outside the row";
  if (node.number < kMinShare) return "its share lies outside (0, 1)";
  if (node.code == kAlwaysLeft ? node.number > kMaxShare : node.number > 1 - kMinShare)
    return "its share lies outside (0, 1)";
  return nullptr;
}

/// Goes through the nodes of a tree in preorder, with the features of the way to each.
class PathFollower {
 public:
  /// Takes the next node. Returns what is wrong; null if nothing is.
  const char* take(const PathNode& node) {
    if (done()) return "it follows a whole tree";
    if (node.split == 0) {
      leave();
      return nullptr;
    }
    if (way_.size() == kMaxPathSplits) return "the way to it has too many splits";
    const bool again =
        std::ranges::any_of(way_, [&](const Split& above) { return above.feature == node.feature; });
    if (!again && ++features_ > kMaxPathFeatures) return "the way to it has too many features";
    way_.push_back({node.feature, !again, false});
    return nullptr;
  }

  /// Returns whether the tree has all its nodes.
  bool done() const { return done_; }

 private:
  /// A split of the way. Its left subtree is gone through first.
  struct Split {
    std::uint32_t feature;
    bool first;  ///< True if no split above has its feature.
    bool right;  ///< True if the left subtree has all its nodes.
  };

  /// Ends a subtree: goes up to a split whose right subtree is missing.
  void leave() {
    while (!way_.empty() && way_.back().right) {
      if (way_.back().first) --features_;
      way_.pop_back();
    }
    if (way_.empty())
      done_ = true;
    else
      way_.back().right = true;
  }

  std::vector<Split> way_;
  unsigned features_ = 0;
  bool done_ = false;
};

Result<void> verify_trees(const Program& program) {
  const auto trees = program.explained_trees();
  const auto nodes = program.paths();
  std::uint64_t taken = 0;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const auto wrong = [t](CText what) { return record_error("explained_trees", t, what); };
    if (trees[t].output >= program.meta().num_outputs) return wrong("its output does not exist");
    if (!std::isfinite(trees[t].expected)) return wrong("its expected value is not finite");
    if (trees[t].node_count > kMaxPathNodes) return wrong(formatted("more than {} nodes", kMaxPathNodes));
    if (trees[t].node_count > nodes.size() - taken) return wrong("its nodes leave the paths section");
    PathFollower follower;
    for (std::uint64_t n = taken; n < taken + trees[t].node_count; ++n) {
      const char* rule = node_rule(program, nodes[n]);
      if (rule == nullptr) rule = follower.take(nodes[n]);
      if (rule != nullptr) return record_error("paths", n, rule);
    }
    if (!follower.done()) return wrong("nodes are missing");
    taken += trees[t].node_count;
  }
  if (taken != nodes.size())
    return refused("paths section", "{} nodes, but the trees have {}", nodes.size(), taken);
  return {};
}

/// Returns the number of the first leaf of pattern_leaves of which something does not exist, or is not finite; one
/// after the last if there are more tests or numbers than the leaves have, and nothing if all is well.
std::optional<std::size_t> wrong_pattern(const Program& program) {
  const auto leaves = program.pattern_leaves();
  auto tests = program.pattern_tests();
  auto numbers = program.pattern_numbers();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const PatternLeaf& leaf = leaves[i];
    if (leaf.output >= program.meta().num_outputs || leaf.features - 1 >= kMaxPatternFeatures ||
        leaf.test_count > tests.size() || std::size_t{2} << leaf.features > numbers.size())
      return i;
    for (const PatternTest& test : tests.first(leaf.test_count))
      if (test.column >= program.columns().size() || test.feature >= program.meta().num_features ||
          test.bit >= leaf.features || test.adds > 1 || test.low > test.high)
        return i;
    for (const double number : numbers.first(std::size_t{2} << leaf.features))
      if (!std::isfinite(number)) return i;
    tests = tests.subspan(leaf.test_count);
    numbers = numbers.subspan(std::size_t{2} << leaf.features);
  }
  if (tests.empty() && numbers.empty()) return std::nullopt;
  return leaves.size();
}

}  // namespace

Result<void> verify_explained_trees(const Program& program) {
  const ProgramMeta& meta = program.meta();
  const bool compares = !program.background().empty();
  if (compares ? program.background().size() != 1 || meta.contributions != 1
               : !program.pattern_leaves().empty())
    return refused("background section", "it does not go with the rest of the program");
  if (const auto leaf = wrong_pattern(program))
    return record_error("pattern_leaves", *leaf,
                        "its output, a test or its numbers do not exist, or a number is not finite");
  if (meta.contributions == 0) {
    if (program.explained_trees().empty() && program.paths().empty()) return {};
    return refused("meta section", "the program has paths, but no contributions");
  }
  const std::uint64_t width = std::uint64_t{meta.num_outputs} * (std::uint64_t{meta.num_features} + 1);
  if (width > kMaxContributions)
    return refused("meta section", "{} contributions of a row, at most {}", width, kMaxContributions);
  const std::uint64_t pairs = width * (std::uint64_t{meta.num_features} + 1);
  if (meta.contributions > 1 && pairs > kMaxInteractions)
    return refused("meta section", "{} interactions of a row, at most {}", pairs, kMaxInteractions);
  return verify_trees(program);
}

}  // namespace forestvm::bytecode
