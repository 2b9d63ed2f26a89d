// Writes the functions that compute contributions of features: exact ones from the paths of the trees, and approximate
// ones from what leaves attribute to features. The exact ones are computed in the order of vm/host/paths/explain.hpp, with
// the constants of LoadedPaths, so that they have the VM's bits. A split's record and constants are visited on the way
// down and on the way up; what is between lies on a stack whose size is known.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/loaded_paths.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

constexpr const char* kPathRecords =
    R"(/* Paths: trees with the shares of the training rows. Trees: first of the points' weights in path_constants, number
 * of points. Splits, in preorder: test (LEAF: all rows go left), feature's number in its output, first of its constants,
 * and, four times, one more than the depth of the split above that tests the same feature, plus 1 if the left child is a
 * leaf, plus 2 if the right child is. */
)";

constexpr const char* kTree = R"(/* A split on the way. */
typedef struct {
  const uint32_t *split;
  const @NUMBER *share; /* of the first point: the chance to go left; the mean below a split of two leaves */
  uint32_t step;        /* constants from one point's share to the next */
  uint32_t left;        /* 1 if the row goes left */
  uint32_t open;        /* 1 if the row takes the way at all splits above that test the same feature */
  uint32_t turned;      /* 0 while the way goes to the left child, 1 to the right one, 2 after that */
} @visit;
/* Adds what the splits of a tree contribute to the sums of their features. Returns the first split of the next tree. */
static uint32_t @explain_tree(const @ROW *x, uint32_t tree, uint32_t next, @NUMBER *sums) {
  const uint32_t points = @path_trees[tree][1];
  @NUMBER numbers[2][@LEVELS]; /* of left and right children, by depth and point: chances to come there, then means */
  @visit way[@DEPTH];
  uint32_t depth = 0u, k;
  memcpy(numbers[0], @path_constants + @path_trees[tree][0], points * sizeof(@NUMBER));
  for (;;) {
    @visit *at = way + depth;
    const uint32_t *split = @path_splits[next];
    const uint32_t above = split[3] / 4u;
    const @NUMBER *constants = @path_constants + split[2] + 4;
    const @NUMBER *const leaves = constants;
    const @NUMBER *own = numbers[depth == 0u ? 0u : way[depth - 1u].turned] + depth * points;
    at->split = split;
    at->left = (split[0] & LEAF) != 0u || @left(x, split[0], @path_thresholds[next]);
    at->open = above == 0u || (way[above - 1u].open != 0u && way[above - 1u].left != way[above - 1u].turned);
    at->turned = split[3] & 1u;
    ++next;
    if ((split[3] & 3u) != 3u) constants += (split[3] & 1u) + (split[3] / 2u & 1u);
    if (above != 0u) ++constants;
    at->share = at->open == 0u ? constants - 1 : at->left != 0u ? constants : constants + 1;
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
      @NUMBER integral = 0;
      split = at->split;
      for (k = 0u; k < points; ++k) {
        const @NUMBER *const share = at->share + k * at->step;
        @NUMBER part = mean[k];
        if ((split[3] & 3u) == 3u) {
          mean[k] = *share;
        } else {
          const @NUMBER difference = left[k] - right[k];
          part *= difference;
          mean[k] = right[k] + *share * difference;
        }
        if (at->step == 3u) part *= share[1u + at->left];
        integral += part;
      }
      constants = @path_constants + split[2] + (1u - at->left);
      if (at->open != 0u) sums[split[1]] += constants[0] * integral + constants[2];
      if (depth == 0u) return next;
      at = way + --depth;
      ++at->turned;
    }
    ++depth;
  }
}
)";

constexpr const char* kExplain =
    R"(/* Writes a row's contributions: for each output those of the features, then the expected score. */
static void @explain(const @ROW *x, @SCORE *out) {
  @NUMBER sums[@TOTALS]; /* of a batch of trees, which end at path_batches */
  double totals[@TOTALS];
  uint32_t k, i, batch = 0u, tree = 0u, next = 0u;
  for (k = 0u; k < @OUTPUTS; ++k) {
    const uint32_t *const of = @path_outputs[k]; /* first feature, number of features, end of the batches, of patterns */
    memset(totals, 0, sizeof totals);
    for (; batch < of[2]; ++batch) {
      memset(sums, 0, sizeof sums);
      for (; tree < @path_batches[batch]; ++tree) next = @explain_tree(x, tree, next, sums);
      for (i = 0u; i < of[1]; ++i) totals[i] += (double)sums[i];
    }
@PATTERNS    for (i = 0u; i < @FEATURES; ++i) out[i] = 0;
    for (i = 0u; i < of[1]; ++i) out[@path_features[of[0] + i]] = (@SCORE)totals[i];
    out[@FEATURES] = @expected[k];
    out += @FEATURES + 1u;
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
  const uint32_t *const of = @pattern_leaves[leaf];
  const double *const numbers = @pattern_numbers + of[5];
  uint32_t pattern = of[4] - 1u, i;
  for (i = of[0]; i < of[1]; ++i) {
    const uint32_t *const test = @pattern_tests[i];
    const int left = (test[0] & LEAF) != 0u || @left(x, test[0], @pattern_thresholds[i]);
    if (left == (test[1] != 0u)) pattern &= ~test[2];
  }
  for (i = of[2]; i < of[3]; ++i) {
    const uint32_t *const feature = @pattern_features[i];
    totals[feature[0]] += numbers[pattern] - numbers[of[4] + (pattern & ~feature[1])];
  }
}
)";

constexpr const char* kAttribute =
    R"(/* Writes a row's approximate contributions, by the numbers of the leaves that it reaches: for each output those of the
 * features, then the expected score. */
static void @attribute(const int32_t *leaves, @SCORE *out) {
  const uint32_t trees = @TREES;
  uint32_t tree, i;
  for (i = 0u; i < @OUTPUTS * (@FEATURES + 1u); ++i) out[i] = 0;
  for (tree = 0u; tree < trees; ++tree) {
    const uint32_t leaf = (uint32_t)leaves[tree];
    if (leaf >= @attributed_trees[tree][1]) continue;
    i = @attributed_leaves[@attributed_trees[tree][0] + leaf];
    for (; i < @attributed_leaves[@attributed_trees[tree][0] + leaf + 1u]; ++i)
      out[@attributed_sums[i]] += @attributions[i];
  }
  for (i = 0u; i < @OUTPUTS; ++i) out[i * (@FEATURES + 1u) + @FEATURES] = @expected_approx[i];
}
)";

using Records = std::vector<std::vector<std::uint64_t>>;

/// Returns a table of records with at least one, whose `width` numbers are zeros if there is none.
std::string records_of(const Job& job, const std::string& name, Records records, std::size_t width,
                       std::uint64_t& bytes) {
  if (records.empty()) records.emplace_back(width);
  return record_table(job, name, records, bytes);
}

/// Adds the threshold of a test of a column's code. Returns the word of the test: LEAF if all rows go left.
std::uint32_t add_test(const Job& job, std::uint32_t column, std::uint8_t code,
                       std::vector<std::string>& thresholds) {
  if (code >= job.program.columns()[column].count) {
    thresholds.push_back(threshold(job, 0.0));
    return kLeaf;
  }
  const DecodedTest test = decode_test(job.program, column, code);
  thresholds.push_back(threshold(job, test));
  return column_word(job, test);
}

/// Makes the tables of the paths' splits.
class PathTables {
 public:
  PathTables(const Job& job, const LoadedPaths& paths) : job_(job), paths_(paths) {
    for (const PathBatch& batch : paths.batches)
      for (std::size_t t = batch.first_tree; t < batch.end_tree; ++t) add(paths.trees[t], batch);
  }

  std::string text(std::uint64_t& bytes) const {
    const std::string number = paths_.wide ? "double" : "float";
    const std::uint32_t row = size_of(job_.program.meta().row_type);
    return records_of(job_, "path_trees", trees_, 2, bytes) +
           records_of(job_, "path_splits", splits_, 4, bytes) +
           table(threshold_type(job_), row, job_.name("path_thresholds"), thresholds_, bytes) +
           table(number, paths_.wide ? 8 : 4, job_.name("path_constants"), constants_, bytes);
  }

 private:
  void put(std::size_t index) {
    constants_.push_back(paths_.wide ? literal(paths_.doubles[index]) : literal(paths_.singles[index]));
  }

  void add(const PathTree& tree, const PathBatch& batch) {
    trees_.push_back({constants_.size(), tree.points});
    for (std::size_t k = 0; k < tree.points; ++k) put(tree.first_constant + k);
    std::vector<std::uint64_t> depths(tree.split_count);
    for (std::size_t s = 0; s < tree.step_count; ++s) {
      const PathStep& step = paths_.steps[tree.first_step + s];
      depths[step.split] = step.depth;
    }
    for (std::size_t i = 0; i < tree.split_count; ++i) {
      const PathSplit& split = paths_.splits[tree.first_split + i];
      const bool repeated = split.above != kNoneAbove;
      const std::uint64_t leaves =
          ((split.flags & kLeftLeaf) != 0 ? 1u : 0u) + ((split.flags & kRightLeaf) != 0 ? 2u : 0u);
      const std::uint32_t word = add_test(job_, split.column, split.code, thresholds_);
      splits_.push_back({word, paths_.totals[batch.first_total + split.sum], constants_.size(),
                         4 * (repeated ? depths[split.above - 1] + 1 : 0) + leaves});
      add_constants(split, tree, repeated);
    }
  }

  /// Adds the constants of a split: the two factors of the integral, the two terms of the point 0, then the values of
  /// those children that are leaves, unless both are. A repeated split goes on with the share of rows that do not come
  /// to it. At the end each point has the share of rows that go left, of those that go right, and in a repeated split
  /// the slope.
  void add_constants(const PathSplit& split, const PathTree& tree, bool repeated) {
    const std::size_t first = tree.first_constant + split.constants;
    const unsigned width =
        (split.flags & kFourConstants) != 0 ? SplitConstants::FourConstants : SplitConstants::TwoConstants;
    for (const unsigned constant : {SplitConstants::IfLeft, SplitConstants::IfRight,
                                    SplitConstants::FirstLeft, SplitConstants::FirstRight})
      put(first + constant);
    const bool left = (split.flags & kLeftLeaf) != 0, right = (split.flags & kRightLeaf) != 0;
    if (left && !right) put(first + SplitConstants::LeftValue);
    if (right && !left) put(first + SplitConstants::RightValue);
    const std::size_t points = first + SplitConstants::Count;
    if (repeated) put(tree.points == 0 ? first : points + SplitConstants::PointAway);
    for (std::size_t k = 0; k < tree.points; ++k) {
      put(points + k * width + SplitConstants::PointLeft);
      put(points + k * width + SplitConstants::PointRight);
      if (repeated) put(points + k * width + SplitConstants::PointSlope);
    }
  }

  const Job& job_;
  const LoadedPaths& paths_;
  Records trees_, splits_;
  std::vector<std::string> thresholds_, constants_;
};

/// Makes the tables of leaves whose contributions are looked up, those of one output after the other's.
class PatternTables {
 public:
  PatternTables(const Job& job, const LoadedPaths& paths) : job_(job), paths_(paths) {
    for (std::uint32_t k = 0; k < paths.outputs.size(); ++k) {
      const PatternTest* test = paths.pattern_tests.data();
      const double* numbers = paths.pattern_numbers.data();
      for (const PatternLeaf& leaf : paths.pattern_leaves) {
        const std::size_t count = std::size_t{1} << leaf.features;
        if (leaf.output == k) add(leaf, {test, leaf.test_count}, {numbers, 2 * count});
        test += leaf.test_count;
        numbers += 2 * count;
      }
      ends_.push_back(leaves_.size());
    }
  }

  /// Returns the end of an output's leaves.
  std::uint64_t end(std::size_t output) const { return ends_[output]; }

  std::string text(std::uint64_t& bytes) const {
    if (leaves_.empty()) return "";
    const std::uint32_t row = size_of(job_.program.meta().row_type);
    return kPatternRecords + record_table(job_, "pattern_leaves", leaves_, bytes) +
           records_of(job_, "pattern_tests", tests_, 3, bytes) +
           table(threshold_type(job_), row, job_.name("pattern_thresholds"), thresholds_, bytes) +
           records_of(job_, "pattern_features", features_, 2, bytes) +
           table("double", 8, job_.name("pattern_numbers"), numbers_, bytes) + in_file(job_, kPattern);
  }

 private:
  void add(const PatternLeaf& leaf, std::span<const PatternTest> tests, std::span<const double> numbers) {
    const PathOutput& output = paths_.outputs[leaf.output];
    const auto* const first = paths_.features.data() + output.first_feature;
    const std::uint64_t first_test = tests_.size(), first_feature = features_.size();
    for (const PatternTest& test : tests) {
      const std::uint64_t bit = std::uint64_t{1} << test.bit;
      if (test.low != 0)
        tests_.push_back(
            {add_test(job_, test.column, static_cast<std::uint8_t>(test.low - 1), thresholds_), 1, bit});
      if (test.high < job_.program.columns()[test.column].count)
        tests_.push_back({add_test(job_, test.column, test.high, thresholds_), 0, bit});
      if (test.adds == 0) continue;
      const auto at = std::lower_bound(first, first + output.features, test.feature) - first;
      features_.push_back({static_cast<std::uint64_t>(at), bit});
    }
    leaves_.push_back(
        {first_test, tests_.size(), first_feature, features_.size(), numbers.size() / 2, numbers_.size()});
    for (const double number : numbers) numbers_.push_back(literal(number));
  }

  const Job& job_;
  const LoadedPaths& paths_;
  Records leaves_, tests_, features_;
  std::vector<std::string> thresholds_, numbers_;
  std::vector<std::uint64_t> ends_;
};

/// Returns C text for the program: see in_file.
std::string in_program(const Job& job, std::string text) {
  const ProgramMeta& meta = job.program.meta();
  text = replaced(std::move(text), "@FEATURES", number(meta.num_features));
  return in_file(job, replaced(std::move(text), "@TREES", number(meta.num_trees)), meta.score_type);
}

}  // namespace

std::string contributions_text(const Job& job, std::uint64_t& table_bytes, std::uint64_t& stack_bytes) {
  const LoadedPaths paths(job.program);
  const std::uint64_t levels = std::max<std::uint64_t>(paths.most_levels, 1),
                      depth = std::max<std::uint64_t>(paths.most_depth, 1),
                      totals = std::max<std::uint64_t>(paths.most_totals, 1);
  const std::uint64_t number_bytes = paths.wide ? 8 : 4;
  constexpr std::uint64_t kVisitBytes = 32;
  stack_bytes += 2 * levels * number_bytes + depth * kVisitBytes + totals * (number_bytes + sizeof(double));
  std::vector<std::string> features, batches, expected;
  Records outputs;
  const PatternTables patterns(job, paths);
  for (const std::uint32_t feature : paths.features) features.push_back(number(feature));
  for (const PathBatch& batch : paths.batches) batches.push_back(number(batch.end_tree));
  for (std::size_t k = 0; k < paths.outputs.size(); ++k) {
    const PathOutput& output = paths.outputs[k];
    outputs.push_back({output.first_feature, output.features, output.end_batch, patterns.end(k)});
    expected.push_back(literal(job.program.meta().score_type, output.expected));
  }
  std::string functions = std::string(kTree) + kExplain;
  functions = replaced(std::move(functions), "@NUMBER", paths.wide ? "double" : "float");
  functions = replaced(std::move(functions), "@LEVELS", number(levels));
  functions = replaced(std::move(functions), "@DEPTH", number(depth));
  functions = replaced(std::move(functions), "@TOTALS", number(totals));
  functions = replaced(
      std::move(functions), "@PATTERNS",
      paths.pattern_leaves.empty()
          ? ""
          : "    for (i = k == 0u ? 0u : @path_outputs[k - 1u][3]; i < of[3]; ++i) @add_pattern(x, i, totals);\n");
  return kPathRecords + PathTables(job, paths).text(table_bytes) + patterns.text(table_bytes) +
         record_table(job, "path_outputs", outputs, table_bytes) +
         table("uint32_t", 4, job.name("path_batches"), batches, table_bytes) +
         table("uint32_t", 4, job.name("path_features"), features, table_bytes) +
         table(c_type(job.program.meta().score_type), size_of(job.program.meta().score_type),
               job.name("expected"), expected, table_bytes) +
         in_program(job, functions);
}

std::string attributions_text(const Job& job, std::uint64_t& table_bytes) {
  const ScalarType score = job.program.meta().score_type;
  Records trees;
  std::vector<std::string> sums, values, expected;
  for (const NumberedLeaves& tree : job.program.attributed_trees())
    trees.push_back({tree.first_leaf, tree.leaf_count});
  for (const Attribution& attribution : job.program.attributions()) {
    sums.push_back(number(attribution.index));
    values.push_back(literal(score, attribution.value));
  }
  for (const double base : job.program.attribution_base().first(job.program.meta().num_outputs))
    expected.push_back(literal(score, base));
  return "/* What leaves attribute to features: first leaf and number of leaves of each tree, first term of each leaf. */\n" +
         records_of(job, "attributed_trees", trees, 2, table_bytes) +
         words_table(job, "attributed_leaves", job.program.attributed_leaves(), table_bytes) +
         table("uint32_t", 4, job.name("attributed_sums"), sums, table_bytes) +
         table(c_type(score), size_of(score), job.name("attributions"), values, table_bytes) +
         table(c_type(score), size_of(score), job.name("expected_approx"), expected, table_bytes) +
         in_program(job, kAttribute);
}

}  // namespace forestvm::bytecode::export_c
