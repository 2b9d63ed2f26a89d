// Writes the functions that compute contributions of features: exact ones from the paths of the trees, and approximate
// ones from what leaves attribute to features. The exact ones are computed in the order of vm/host/paths/explain.hpp,
// with the constants of LoadedPaths, so that they have the VM's bits. Each split is visited on the way down and on the
// way up; what is kept between the two lies on a stack whose size is known.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/loaded_paths.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

constexpr const char* kPathRecords =
    R"(/* Paths: trees with the shares of the training rows. Trees: first of the points' weights in path_constants, number
 * of points, first split, number in the model, counted once for each output of a vector. Splits, in preorder: test (LEAF: all rows go left), feature's number in its output, first of its constants,
 * and, four times, one more than the depth of the split above that tests the same feature, plus 1 if the left child is a
 * leaf, plus 2 if the right child is. */
)";

constexpr const char* kExplainTree = R"(/* A split on the way. */
typedef struct {
  const uint32_t *split;
  const @NUMBER *share; /* of the first point: the chance to go left; the mean below a split of two leaves */
  uint32_t step;        /* constants from one point's share to the next */
  uint32_t left;        /* 1 if the row goes left */
  uint32_t open;        /* 1 if the row takes the way at all splits above that test the same feature */
  uint32_t turned;      /* 0 while the way goes to the left child, 1 to the right one, 2 after that */
} @visit;
@PAIRS_FUNCTION/* Adds what the splits of a tree contribute to the sums of their features. */
static void @explain_tree(const @ROW *x, const uint32_t *tree, @NUMBER *sums@PAIRS_PARAMETER) {
  const uint32_t points = tree[1];
  @NUMBER numbers[2][@LEVELS]; /* of left and right children, by depth and point: chances to come there, then means */
  @visit way[@DEPTH];
  uint32_t next = tree[2], depth = 0u, k;
  memcpy(numbers[0], @path_constants + tree[0], points * sizeof(@NUMBER));
  for (;;) {
    @visit *at = way + depth;
    const uint32_t *split = @path_splits + 4u * next;
    const uint32_t above = split[3] / 4u;
    const @NUMBER *constants = @path_constants + split[2] + 4;
    const @NUMBER *const leaves = constants;
    const @NUMBER *own = numbers[depth == 0u ? 0u : way[depth - 1u].turned] + depth * points;
    at->split = split;
    at->left = (split[0] & LEAF) != 0u || @left_bit(x, split[0], @path_thresholds[next]);
    at->open = above == 0u || (way[above - 1u].open != 0u && way[above - 1u].left != way[above - 1u].turned);
    at->turned = split[3] & 1u;
    ++next;
    if ((split[3] & 3u) != 3u) constants += (split[3] & 1u) + (split[3] / 2u & 1u);
    if (above != 0u) ++constants;
    at->share = at->open == 0u ? constants - 1 : constants + (1u - at->left);
    at->step = at->open == 0u ? 0u : above != 0u ? 3u : 2u;
    if ((split[3] & 3u) != 3u) {
      @NUMBER *const left = numbers[0] + (depth + 1u) * points, *const right = numbers[1] + (depth + 1u) * points;
      for (k = 0u; k < points; ++k) {
        const @NUMBER chance = own[k], to_left = chance * at->share[k * at->step];
        left[k] = (split[3] & 1u) != 0u ? leaves[0] : to_left;
        right[k] = (split[3] & 2u) != 0u ? leaves[split[3] & 1u] : chance - to_left;
      }
    }
    /* Leave splits up to one whose right child is a split that has not been visited. */
    while (at->turned == 2u || (at->turned == 1u && (at->split[3] & 2u) != 0u)) {
      const @NUMBER *const left = numbers[0] + (depth + 1u) * points;
      const @NUMBER *const right = numbers[1] + (depth + 1u) * points;
      @NUMBER *const mean = numbers[depth == 0u ? 0u : way[depth - 1u].turned] + depth * points;
      const @NUMBER *share = at->share;
      const uint32_t slope = at->step == 3u ? 1u + at->left : 0u; /* from a share to its slope */
      @NUMBER integral = 0;
      split = at->split;
@ADD_PAIRS      for (k = 0u; (split[3] & 3u) == 3u && k < points; ++k) {
        integral += slope == 0u ? mean[k] : mean[k] * share[slope];
        mean[k] = *share;
        share += at->step;
      }
      for (k = 0u; (split[3] & 3u) != 3u && k < points; ++k) {
        const @NUMBER difference = left[k] - right[k], part = mean[k] * difference;
        integral += slope == 0u ? part : part * share[slope];
        mean[k] = right[k] + *share * difference;
        share += at->step;
      }
      constants = @path_constants + split[2] + (1u - at->left);
      if (at->open != 0u) sums[split[1]] += constants[0] * integral + constants[2];
      if (depth == 0u) return;
      at = way + --depth;
      ++at->turned;
    }
    ++depth;
  }
}
)";

/// Computes the totals of features, and writes them.
constexpr const char* kExplain = R"(@HEAD(const @ROW *x, @OF_CALL@SCORE *out) {
  @NUMBER sums[@TOTALS]; /* of a batch of trees, which end at path_batches */
  double totals[@TOTALS];
  uint32_t k, i, batch = 0u, tree = 0u;
  for (k = 0u; k < @OUTPUTS; ++k) {
    const uint32_t *const of = @path_outputs + @OUTPUT_WORDS * k;
    const uint32_t count = @COUNT;
    memset(totals, 0, sizeof totals);
    for (; batch < of[2]; ++batch) {
      memset(sums, 0, sizeof sums);
      for (; tree < @path_batches[batch]; ++tree)
        @IF_CHOSEN@explain_tree(x, @path_trees + 4u * tree, sums@PAIRS_ARGUMENT);
      for (i = 0u; i < count; ++i) totals[i] += (double)sums[i];
    }
@PATTERNS@WRITE  }
}
)";

constexpr const char* kHead =
    "/* Writes a row's contributions: for each output those of the features, then the expected score. */\n"
    "static void @explain";
constexpr const char* kWrite = R"(    for (i = 0u; i < @FEATURES; ++i) out[i] = 0;
    for (i = 0u; i < of[1]; ++i) out[@path_features[of[0] + i]] = (@SCORE)totals[i];
    out[@FEATURES] = @EXPECTED;
    out += @FEATURES + 1u;
)";

/// Halves go to both features of a pair. What each feature contributes alone remains.
constexpr const char* kInteractHead =
    "/* Writes a row's interactions: for each output a matrix of the features, with the expected score in its corner. */\n"
    "static void @interact";
constexpr const char* kInteractWrite = R"(    for (i = of[1]; i < count; ++i) {
      const uint32_t *const pair = @total_pairs + 2u * (of[4] + i - of[1]);
      totals[i] /= 2;
      totals[pair[0]] -= totals[i];
      totals[pair[1]] -= totals[i];
    }
    for (i = 0u; i < (@FEATURES + 1u) * (@FEATURES + 1u); ++i) out[i] = 0;
    for (i = 0u; i < of[1]; ++i) out[@path_features[of[0] + i] * (@FEATURES + 2u)] = (@SCORE)totals[i];
    for (i = of[1]; i < count; ++i) {
      const uint32_t *const pair = @total_pairs + 2u * (of[4] + i - of[1]);
      const uint32_t first = @path_features[of[0] + pair[0]], second = @path_features[of[0] + pair[1]];
      out[first * (@FEATURES + 1u) + second] = out[second * (@FEATURES + 1u) + first] = (@SCORE)totals[i];
    }
    out[(@FEATURES + 1u) * (@FEATURES + 1u) - 1u] = @EXPECTED;
    out += (@FEATURES + 1u) * (@FEATURES + 1u);
)";

/// The parts of a tree's integrals that interactions need: see LoadedPaths.
constexpr const char* kPairsFunction =
    R"(/* Returns the integral of a split's parts times a function, given at 0 and at the points. */
static @NUMBER @weigh(const @NUMBER *parts, uint32_t points, const @NUMBER *factors, const @NUMBER *function) {
  @NUMBER integral = 0;
  uint32_t k;
  for (k = 0u; k < points; ++k) integral += parts[k] * function[k + 1u];
  return factors[0] * integral + factors[2] * function[0];
}
/* Adds what a split, to which the row comes by all splits above that test its feature, contributes to the sums of its
 * pairs. */
static void @add_pairs(const uint32_t *tree, const @visit *way, const @visit *at, const @NUMBER *mean,
    const @NUMBER *left, const @NUMBER *right, @NUMBER *sums) {
  const uint32_t points = tree[1], index = (uint32_t)(at->split - @path_splits) / 4u, end = @pair_ends[index];
  const @NUMBER *const factors = @path_constants + at->split[2] + (1u - at->left);
  @NUMBER parts[@POINTS], gone;
  uint32_t i = index == 0u ? 0u : @pair_ends[index - 1u], k;
  if (i == end) return;
  for (k = 0u; k < points; ++k) {
    parts[k] = mean[k];
    if ((at->split[3] & 3u) != 3u) parts[k] *= left[k] - right[k];
    if (at->step == 3u) parts[k] *= at->share[3u * k + 1u + at->left];
  }
  gone = @weigh(parts, points, factors, @path_constants + tree[0] + points);
  for (; i < end; ++i) {
    const uint32_t *const pair = @path_pairs + 3u * i;
    const @visit *const above = way + pair[2] / 2u;
    const int taken = above->open != 0u && above->left != pair[2] % 2u;
    sums[pair[0]] += taken ? @weigh(parts, points, factors, @path_constants + pair[1]) : gone;
  }
}
)";

/// Patterns are of leaves that lie in the order of their outputs.
constexpr const char* kPatternRecords =
    R"(/* Leaves whose contributions are looked up: first and end of the tests and of the features on the way, 2 to the power
 * of the number of features, first number. Tests: test, whether rows that fail go left (1), and the bit of the feature in
 * a row's pattern, which is 1 if the row passes all tests of the feature. Features: number in the output, and bit. */
)";
constexpr const char* kPattern = R"(static void @add_pattern(const @ROW *x, uint32_t leaf, double *totals) {
  const uint32_t *const of = @pattern_leaves + 6u * leaf;
  const double *const numbers = @pattern_numbers + of[5];
  uint32_t pattern = of[4] - 1u, i;
  for (i = of[0]; i < of[1]; ++i) {
    const uint32_t *const test = @pattern_tests + 3u * i;
    const int left = (test[0] & LEAF) != 0u || @left_bit(x, test[0], @pattern_thresholds[i]);
    if (left == (test[1] != 0u)) pattern &= ~test[2];
  }
  for (i = of[2]; i < of[3]; ++i) {
    const uint32_t *const feature = @pattern_features + 2u * i;
    totals[feature[0]] += numbers[pattern] - numbers[of[4] + (pattern & ~feature[1])];
  }
}
)";

/// Passes over trees that are not of the call's rounds.
constexpr const char* kIfChosen =
    R"(if (@path_trees[4u * tree + 3u] >= call->tree_begin * @EACH && @path_trees[4u * tree + 3u] < call->tree_end * @EACH)
          )";

/// Adds to the sums of pairs before the split's means are computed.
constexpr const char* kAddPairs =
    "      if (pairs != 0 && at->open != 0u) @add_pairs(tree, way, at, mean, left, right, sums);\n";

constexpr const char* kPairRecords =
    R"(/* Pairs of features that interact, split by split: the pair's number in its output, first of its constants, and, two
 * times, the depth of the split above, plus 1 if the way goes right there. The end of each split's pairs. */
)";

/// Goes through the leaves of output k.
constexpr const char* kPatternLoop =
    "    for (i = k == 0u ? 0u : @path_outputs[4u * k - 1u]; i < of[3]; ++i) @add_pattern(x, i, totals);\n";

constexpr const char* kAttribute =
    R"(/* Writes a row's approximate contributions, by the numbers of the leaves that it reaches: for each output those of the
 * features, then the expected score. */
static void @attribute(const int32_t *leaves, @OF_CALL@SCORE *out) {
  const uint32_t trees = @TREES;
  uint32_t tree, i;
  for (i = 0u; i < @OUTPUTS * (@FEATURES + 1u); ++i) out[i] = 0;
  for (tree = 0u; tree < trees; ++tree) {
    const uint32_t leaf = (uint32_t)leaves[tree];
    const uint32_t *of = @attributed_trees + 2u * tree; /* first leaf, number of leaves */
    if (leaf >= of[1]) continue;
    of = @attributed_leaves + of[0] + leaf;
    for (i = of[0]; i < of[1]; ++i)
      out[@attributed_sums[i]] += @attributions[i];
  }
  for (i = 0u; i < @OUTPUTS; ++i) out[i * (@FEATURES + 1u) + @FEATURES] = @EXPECTED;
}
)";

/// Writes tables, and counts their bytes.
class Tables {
 public:
  Tables(const Job& job, std::uint64_t& bytes) : job_(job), bytes_(bytes) {}

  void words(const char* name, std::span<const std::uint32_t> values) {
    text += words_table(job_, name, values, bytes_);
  }

  void numbers(const char* name, ScalarType type, std::span<const double> values) {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(literal(type, value));
    text += table(c_type(type), size_of(type), job_.name(name), texts, bytes_);
  }

  void thresholds(const char* name, const std::vector<std::string>& texts) {
    text +=
        table(threshold_type(job_), size_of(job_.program.meta().row_type), job_.name(name), texts, bytes_);
  }

  std::string text;

 private:
  const Job& job_;
  std::uint64_t& bytes_;
};

using Words = std::vector<std::uint32_t>;

/// Appends numbers that have 32 bits each.
[[gnu::noinline]] void append(Words& to, std::initializer_list<std::uint64_t> numbers) {
  for (const std::uint64_t number : numbers) to.push_back(static_cast<std::uint32_t>(number));
}

/// Adds the threshold of a test of a column's code. Returns the word of the test: LEAF if all rows go left.
std::uint32_t add_test(const Job& job, std::uint32_t column, unsigned code,
                       std::vector<std::string>& thresholds) {
  if (code >= job.program.columns()[column].count) {
    thresholds.push_back(threshold(job, 0.0));
    return kLeaf;
  }
  const DecodedTest test = decode_test(job.program, column, static_cast<std::uint8_t>(code));
  thresholds.push_back(threshold(job, test));
  return column_word(job, test);
}

/// Makes the tables of the paths' trees.
class PathTables {
 public:
  PathTables(const Job& job, const LoadedPaths& paths) : job_(job), paths_(paths) {
    for (const PathBatch& batch : paths.batches) {
      for (std::size_t t = batch.first_tree; t < batch.end_tree; ++t) add(paths.trees[t], batch);
      append(batches_, {batch.end_tree});
    }
  }

  void write(Tables& tables) const {
    tables.words("path_trees", trees_);
    tables.words("path_batches", batches_);
    tables.words("path_splits", splits_);
    tables.thresholds("path_thresholds", thresholds_);
    tables.numbers("path_constants", paths_.wide ? ScalarType::Float64 : ScalarType::Float32, constants_);
    if (!paths_.interactions) return;
    tables.text += kPairRecords;
    tables.words("path_pairs", pairs_);
    tables.words("pair_ends", pair_ends_);
  }

 private:
  static constexpr std::size_t kSplitWords = 4;

  [[gnu::noinline]] void put(std::size_t index) {
    constants_.push_back(paths_.wide ? paths_.doubles[index] : static_cast<double>(paths_.singles[index]));
  }

  void add(const PathTree& tree, const PathBatch& batch) {
    append(trees_, {constants_.size(), tree.points, splits_.size() / kSplitWords, tree.number});
    const std::size_t weights = paths_.interactions ? 2 * tree.points + 1 : tree.points;
    for (std::size_t k = 0; k < weights; ++k) put(tree.first_constant + k);
    Words depths(tree.split_count);
    for (std::size_t s = 0; s < tree.step_count; ++s) {
      const PathStep& step = paths_.steps[tree.first_step + s];
      depths[step.split] = step.depth;
    }
    for (std::size_t i = 0; i < tree.split_count; ++i) {
      const PathSplit& split = paths_.splits[tree.first_split + i];
      const unsigned leaves = (split.flags & (kLeftLeaf | kRightLeaf)) / kLeftLeaf;
      const std::uint32_t above = split.above == kNoneAbove ? 0 : depths[split.above - 1] + 1;
      append(splits_, {add_test(job_, split.column, split.code, thresholds_),
                       paths_.totals[batch.first_total + split.sum], constants_.size(), 4 * above + leaves});
      add_constants(split, tree, leaves);
    }
    if (paths_.interactions) add_pairs(tree, batch, depths);
  }

  /// Adds the pairs of a tree's splits. Those that come by the same branch share constants.
  void add_pairs(const PathTree& tree, const PathBatch& batch, const Words& depths) {
    std::map<std::uint32_t, std::size_t> branches;
    std::uint32_t p = 0;
    for (std::size_t i = 0; i < tree.split_count; ++i) {
      for (; p < paths_.pair_ends[tree.first_split + i]; ++p) {
        const PathPair& pair = paths_.pairs[tree.first_pair + p];
        const auto [branch, is_new] = branches.emplace(pair.constants, constants_.size());
        for (std::size_t k = 0; is_new && k <= tree.points; ++k)
          put(tree.first_constant + pair.constants + k);
        append(pairs_, {paths_.totals[batch.first_total + pair.sum], branch->second,
                        2 * depths[pair.above] + (pair.right ? 1u : 0u)});
      }
      append(pair_ends_, {pairs_.size() / 3});
    }
  }

  /// Adds the constants of a split: the two factors of the integral, the two terms of the point 0, then the values of
  /// those children that are leaves, unless both are. A repeated split goes on with the share of rows that do not come
  /// to it. At the end each point has the share of rows that go left, of those that go right, and in a repeated split
  /// the slope.
  void add_constants(const PathSplit& split, const PathTree& tree, unsigned leaves) {
    const bool repeated = split.above != kNoneAbove;
    const std::size_t first = tree.first_constant + split.constants, points = first + SplitConstants::Count;
    const unsigned width =
        (split.flags & kFourConstants) != 0 ? SplitConstants::FourConstants : SplitConstants::TwoConstants;
    for (const unsigned constant : {SplitConstants::IfLeft, SplitConstants::IfRight,
                                    SplitConstants::FirstLeft, SplitConstants::FirstRight})
      put(first + constant);
    if (leaves == 1) put(first + SplitConstants::LeftValue);
    if (leaves == 2) put(first + SplitConstants::RightValue);
    if (repeated) put(tree.points == 0 ? first : points + SplitConstants::PointAway);
    for (std::size_t k = 0, at = points; k < tree.points; ++k, at += width) {
      put(at + SplitConstants::PointLeft);
      put(at + SplitConstants::PointRight);
      if (repeated) put(at + SplitConstants::PointSlope);
    }
  }

  const Job& job_;
  const LoadedPaths& paths_;
  Words trees_, batches_, splits_, pairs_, pair_ends_;
  std::vector<std::string> thresholds_;
  std::vector<double> constants_;
};

/// Makes the tables of leaves whose contributions are looked up, and the function that does so. The numbers of the
/// leaves are in the program's order.
class PatternTables {
 public:
  PatternTables(const Job& job, const LoadedPaths& paths) : job_(job), paths_(paths) {}

  /// Adds the leaves of an output. Returns the number of leaves so far.
  std::size_t add(std::uint32_t output) {
    const PatternTest* test = paths_.pattern_tests.data();
    std::size_t first_number = 0;
    for (const PatternLeaf& leaf : paths_.pattern_leaves) {
      if (leaf.output == output) add(leaf, test, first_number);
      test += leaf.test_count;
      first_number += std::size_t{2} << leaf.features;
    }
    return leaves_.size() / kLeafWords;
  }

  void write(Tables& tables) const {
    if (leaves_.empty()) return;
    tables.text += kPatternRecords;
    tables.words("pattern_leaves", leaves_);
    tables.words("pattern_tests", tests_);
    tables.thresholds("pattern_thresholds", thresholds_);
    tables.words("pattern_features", features_);
    tables.numbers("pattern_numbers", ScalarType::Float64, paths_.pattern_numbers);
    tables.text += in_file(job_, kPattern);
  }

 private:
  static constexpr std::size_t kLeafWords = 6;

  void add(const PatternLeaf& leaf, const PatternTest* test, std::size_t first_number) {
    const PathOutput& output = paths_.outputs[leaf.output];
    const auto* const first = paths_.features.data() + output.first_feature;
    append(leaves_,
           {tests_.size() / 3, 0, features_.size() / 2, 0, std::size_t{1} << leaf.features, first_number});
    for (const PatternTest* const end = test + leaf.test_count; test != end; ++test) {
      const unsigned bit = 1u << test->bit;
      if (test->low != 0) append(tests_, {add_test(job_, test->column, test->low - 1u, thresholds_), 1, bit});
      if (test->high < job_.program.columns()[test->column].count)
        append(tests_, {add_test(job_, test->column, test->high, thresholds_), 0, bit});
      if (test->adds == 0) continue;
      const auto at = std::lower_bound(first, first + output.features, test->feature) - first;
      append(features_, {static_cast<std::uint64_t>(at), bit});
    }
    leaves_[leaves_.size() - 5] = static_cast<std::uint32_t>(tests_.size() / 3);
    leaves_[leaves_.size() - 3] = static_cast<std::uint32_t>(features_.size() / 2);
  }

  const Job& job_;
  const LoadedPaths& paths_;
  Words leaves_, tests_, features_;
  std::vector<std::string> thresholds_;
};

/// Returns the expected score of a row as it follows from the rounds and margins of a call.
constexpr const char* kExpectedOfRounds =
    R"(/* Returns the expected score of output k of a row: XGBoost rounds the mean of the trees, and then adds the base. */
static @SCORE @expected_of(const @call *call, size_t row, uint32_t k) {
  const uint32_t end = call->tree_end * @EACH;
  double mean = 0.0;
  uint32_t i;
  (void)row;
  if (call->chosen == 0@NO_MARGIN) return @expected[k];
  for (i = call->tree_begin * @EACH; i < end; ++i)
    if (@mean_outputs[i] == k) mean += @means[i];
  return (@SCORE)((double)(@SCORE)mean + @BASE);
}
)";
constexpr const char* kExpectedOfMargins =
    R"(/* Returns the expected score of output k of a row: with margins they are added to the mean of the trees. */
static @SCORE @expected_of(const @call *call, size_t row, uint32_t k) {
  return call->margin == NULL ? @expected[k] : (@SCORE)(@means[k] + @BASE);
}
)";
constexpr const char* kExpectedApprox =
    R"(/* Returns the expected score of output k of a row: with margins they are added to the mean of the trees. */
static @SCORE @expected_approx_of(const @call *call, size_t row, uint32_t k) {
  return call->margin == NULL ? @expected_approx[k] : @means_approx[k] + call->margin[row * @OUTPUTS + k];
}
)";

/// Returns C text for the program, with the words for the sizes of paths: see in_file. `expected` is the C text of an
/// expected score; `options` those of a call on which the text depends.
std::string in_program(const Job& job, std::string_view text, const LoadedPaths& paths,
                       std::string_view expected, unsigned options) {
  const ProgramMeta& meta = job.program.meta();
  const auto at_least_one = [](std::size_t count) { return number(std::max<std::size_t>(count, 1)); };
  const std::string done = replaced(
      text,
      {{"@EXPECTED", expected},
       {"@PAIRS_FUNCTION", paths.interactions ? kPairsFunction : ""},
       {"@PAIRS_PARAMETER", paths.interactions ? ", int pairs" : ""},
       {"@ADD_PAIRS", paths.interactions ? kAddPairs : ""},
       {"@OUTPUT_WORDS", paths.interactions ? "5u" : "4u"},
       {"@POINTS", at_least_one(paths.most_points)},
       {"@OF_CALL", options != 0 ? "const @call *call, size_t row, " : ""},
       {"@IF_CHOSEN", (options & kRounds) != 0 ? kIfChosen : ""},
       {"@EACH", number(explained_per_tree(job.program))},
       {"@NO_MARGIN", (options & kMargins) != 0 ? " && call->margin == NULL" : ""},
       {"@BASE", base_varies(job, AccumulatorKind::F64) ? "@base_of_f64(call, row, k)" : "@base_f64[k]"},
       {"@FEATURES", number(meta.num_features)},
       {"@TREES", number(meta.num_trees)},
       {"@NUMBER", paths.wide ? "double" : "float"},
       {"@LEVELS", at_least_one(paths.most_levels)},
       {"@DEPTH", at_least_one(paths.most_depth)},
       {"@TOTALS", at_least_one(paths.most_totals)},
       {"@PATTERNS", paths.pattern_leaves.empty() ? "" : kPatternLoop}});
  return in_file(job, done, meta.score_type);
}

}  // namespace

std::string contributions_text(const Job& job, std::uint64_t& table_bytes, std::uint64_t& stack_bytes) {
  const LoadedPaths paths(job.program);
  constexpr std::uint64_t kVisitBytes = 32;
  const std::uint64_t number_bytes = paths.wide ? 8 : 4;
  stack_bytes += 2 * paths.most_levels * number_bytes + paths.most_depth * kVisitBytes +
                 paths.most_totals * (number_bytes + sizeof(double)) +
                 (paths.interactions ? paths.most_points * number_bytes : 0);
  Tables tables(job, table_bytes);
  tables.text = kPathRecords;
  PathTables(job, paths).write(tables);
  PatternTables patterns(job, paths);
  Words outputs;
  std::vector<double> expected;
  for (std::uint32_t k = 0; k < paths.outputs.size(); ++k) {
    const PathOutput& output = paths.outputs[k];
    append(outputs, {output.first_feature, output.features, output.end_batch, patterns.add(k)});
    if (paths.interactions) append(outputs, {output.first_pair});
    expected.push_back(output.expected);
  }
  tables.words("path_features", paths.features);
  tables.text += "/* Outputs: first feature, number of features, end of the batches and of patterns";
  tables.text += paths.interactions ? ", first pair and, in the next record, its end. */\n" : ". */\n";
  if (paths.interactions) append(outputs, {0, 0, 0, 0, paths.total_pairs.size()});
  tables.words("path_outputs", outputs);
  tables.numbers("expected", job.program.meta().score_type, expected);
  patterns.write(tables);
  const unsigned options = options_of(job, OutputKind::Contributions);
  const bool rounds = (options & kRounds) != 0;
  std::vector<double> means;
  if (rounds) {
    Words of;
    for (const ExplainedTree& tree : job.program.explained_trees()) {
      of.push_back(tree.output);
      means.push_back(tree.expected);
    }
    tables.words("mean_outputs", of);
  } else if (options != 0) {
    for (const PathOutput& output : paths.outputs) means.push_back(output.mean);
  }
  if (options != 0) {
    tables.numbers("means", ScalarType::Float64, means);
    tables.text += in_program(job, rounds ? kExpectedOfRounds : kExpectedOfMargins, paths, "", options);
  }
  Words pairs;
  for (const TotalPair& pair : paths.total_pairs) append(pairs, {pair.first, pair.second});
  if (paths.interactions) tables.words("total_pairs", pairs);
  std::string text = tables.text + in_program(job, kExplainTree, paths, "", options);
  for (const bool interactions : {false, true}) {
    if (interactions && !paths.interactions) continue;
    const std::string explain =
        replaced(kExplain, {{"@HEAD", interactions ? kInteractHead : kHead},
                            {"@COUNT", interactions ? "of[1] + of[9] - of[4]" : "of[1]"},
                            {"@WRITE", interactions ? kInteractWrite : kWrite},
                            {"@PAIRS_ARGUMENT", !paths.interactions ? ""
                                                : interactions      ? ", 1"
                                                                    : ", 0"}});
    text += in_program(job, explain, paths, options != 0 ? "@expected_of(call, row, k)" : "@expected[k]",
                       options);
  }
  return text;
}

std::string attributions_text(const Job& job, std::uint64_t& table_bytes) {
  const ProgramMeta& meta = job.program.meta();
  Words trees, sums;
  std::vector<double> values;
  for (const NumberedLeaves& tree : job.program.attributed_trees())
    append(trees, {tree.first_leaf, tree.leaf_count});
  for (const Attribution& attribution : job.program.attributions()) {
    sums.push_back(attribution.index);
    values.push_back(attribution.value);
  }
  Tables tables(job, table_bytes);
  tables.text =
      "/* What leaves attribute to features: first leaf and number of leaves of each tree, first term of each leaf. */\n";
  tables.words("attributed_trees", trees);
  tables.words("attributed_leaves", job.program.attributed_leaves());
  tables.words("attributed_sums", sums);
  tables.numbers("attributions", meta.score_type, values);
  const auto base = job.program.attribution_base();
  tables.numbers("expected_approx", meta.score_type, base.first(meta.num_outputs));
  const unsigned options = options_of(job, OutputKind::ApproxContributions);
  if (options != 0) {
    tables.numbers("means_approx", meta.score_type, base.subspan(meta.num_outputs));
    tables.text += in_program(job, kExpectedApprox, {}, "", options);
  }
  return tables.text + in_program(job, kAttribute, {},
                                  options != 0 ? "@expected_approx_of(call, row, i)" : "@expected_approx[i]",
                                  options);
}

}  // namespace forestvm::bytecode::export_c
