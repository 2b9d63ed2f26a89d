// The records of a program's paths, as they lie in a file. A path is a tree that says for each split what share of the
// training rows went left. Contributions and interactions of features are computed from paths; walks do not read them.
// Where contributions compare rows with those of a background, a share says which way a background row goes, and leaves
// may have tables of contributions instead.
// Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

namespace forestvm {

/// A tree whose leaves are numbers: a tree of the model, or one output of a tree with vector leaves. The trees follow
/// one another in the model's order, and so do their nodes in the paths section.
struct ExplainedTree {
  std::uint32_t node_count;  ///< Nodes and leaves of the tree.
  std::uint32_t output;      ///< Raw output to which its leaves add.
  double expected;           ///< Mean of its leaves over the training rows.
};
static_assert(sizeof(ExplainedTree) == 16);

/// A split or a leaf. The nodes of a tree are in preorder: a split, its left subtree, its right subtree.
struct PathNode {
  /// In a leaf: its value. In a split: the share of its training rows that go left, from kMinShare to
  /// 1 - kMinShare. A split with the code kAlwaysLeft sends all rows left, and its share is at most kMaxShare. It
  /// stands before a split whose children's covers do not add up to its own; its right child is a leaf of the value
  /// 0.
  double number;
  std::uint32_t column;      ///< Column of codes that a split tests; zero in leaves.
  std::uint32_t feature;     ///< Feature to which a split's contribution goes; zero in leaves.
  std::uint8_t code;         ///< The split sends rows right whose code is above this one; zero in leaves.
  std::uint8_t split;        ///< 1: a split; 0: a leaf.
  std::uint8_t reserved[6];  ///< Zero.
};
static_assert(sizeof(PathNode) == 24);

/// A leaf whose contributions are looked up, in a program that compares rows with a background. The pattern of a row
/// has a bit for each feature on the way to the leaf, which is 1 if the row passes all tests of the feature. The
/// leaves' tests follow one another in section pattern_tests, and their numbers in pattern_numbers: 2^features numbers
/// A and as many numbers B. The feature of a bit contributes A[pattern] - B[pattern with 0 in this bit].
struct PatternLeaf {
  std::uint32_t output;      ///< Raw output to which the leaf adds.
  std::uint32_t test_count;  ///< Number of its tests.
  std::uint32_t features;    ///< Features on the way to it, from 1 to kMaxPatternFeatures.
};
static_assert(sizeof(PatternLeaf) == 12);

/// A test on the way to a PatternLeaf, which stands for all splits of one column on that way.
struct PatternTest {
  std::uint32_t column;   ///< Column of codes.
  std::uint32_t feature;  ///< Feature that the column belongs to.
  std::uint8_t low;       ///< Least code that passes.
  std::uint8_t high;      ///< Greatest code that passes.
  std::uint8_t bit;       ///< Bit of the feature in patterns.
  std::uint8_t adds;  ///< 1 in the one test of each feature at which its contribution is added; otherwise 0.
};
static_assert(sizeof(PatternTest) == 12);

/// The least share of a branch. Branches to which no training rows went have it: with a share of zero, what a feature
/// contributes would be a quotient of zeros if the branch tests it again. It is 2^-53, the least x for which 1 - x is
/// not 1.
inline constexpr double kMinShare = 0x1p-53;
/// The largest share of a split that sends every row to the left.
inline constexpr double kMaxShare = 2;
/// The code of a split that sends every row to the left.
inline constexpr std::uint8_t kAlwaysLeft = 255;
/// The most features on a way from a root to a leaf.
inline constexpr unsigned kMaxPathFeatures = 64;
/// The most features on the way to a leaf whose contributions are looked up.
inline constexpr unsigned kMaxPatternFeatures = 10;
/// The most splits on a way from a root to a leaf.
inline constexpr unsigned kMaxPathSplits = 512;
/// The most contributions of a row: (features + 1) for each output.
inline constexpr std::uint64_t kMaxContributions = std::uint64_t{1} << 22;
/// The most interactions of a row: (features + 1) x (features + 1) for each output.
inline constexpr std::uint64_t kMaxInteractions = std::uint64_t{1} << 26;

}  // namespace forestvm
