// Writes the targets that leaves keep, and the function that counts those of a row's leaves to find their quantiles. It
// repeats core/target_quantile.hpp; tests check that both give the same bits.
#include <forestvm/core/target_quantile.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

constexpr const char* kQuantile =
    R"(/* Returns a quantile of `total` rows, interpolated between two targets. */
static double @quantile_of(double quantile, uint64_t total, const uint32_t *counts) {
  const uint32_t *const blocks = counts + @SIZE;
  const double last = (double)total - 1, passed = quantile * last + 1;
  uint64_t below = 0u; /* number of rows with targets below `next` */
  uint32_t block = 0u, next, before;
  double low, high, at_low, at_high, of_low, of_high, fraction;
  if (total == 0u) {
    const uint64_t nan = UINT64_C(0x7ff8000000000000); /* 0.0 / 0.0 would have a sign */
    memcpy(&low, &nan, sizeof low);
    return low;
  }
  while (block < @BLOCKS && (double)(below + blocks[block]) <= passed) below += blocks[block++];
  for (next = block * @BLOCK; next < @SIZE && (double)(below + counts[next]) <= passed; ++next) below += counts[next];
  before = next < @SIZE ? next : @SIZE; /* then the last target below it that some row has */
  while (before != 0u && counts[before - 1u] == 0u)
    before -= blocks[(before - 1u) / @BLOCK] == 0u ? (before - 1u) % @BLOCK + 1u : 1u;
  if (next >= @SIZE) return before == 0u ? @targets[0] : @targets[before - 1u];
  if (below == 0u || before == 0u) return @targets[next];
  low = @targets[before - 1u];
  high = @targets[next];
  of_low = ((double)below - 1) / last;
  of_high = ((double)below + counts[next] - 1) / last;
  at_low = of_low < quantile ? of_low : quantile;
  at_high = quantile < of_high ? of_high : quantile;
  at_high = at_low + (at_high - at_low) / counts[next]; /* the first row with this target */
  if (quantile >= at_high) return high;
  fraction = (quantile - at_low) / (at_high - at_low);
  if (fraction <= 0) return low;
  return fraction >= 1 ? high : low + fraction * (high - low);
}
/* Writes a row's quantiles, by the numbers of the leaves that it reaches. Counts are all 0 before and after it. */
static void @write_quantiles(const int32_t *leaves, const @call *call, double *out) {
  uint64_t total = 0u;
  const uint32_t trees = @TREES;
  uint32_t pass, tree, i;
  size_t q;
  for (pass = 0u; pass < 2u; ++pass) {
    const uint32_t one = pass == 0u ? 1u : UINT32_MAX; /* added in the first pass, subtracted in the second */
    for (tree = 0u; tree < trees; ++tree) {
      const uint32_t leaf = (uint32_t)leaves[tree];
      const uint32_t *of = @sampled_trees + 2u * tree;
      if (leaf >= of[1]) continue;
      of = @sampled_leaves + of[0] + leaf;
      total += of[1] - of[0];
      for (i = of[0]; i < of[1]; ++i) {
        call->counts[@sample_targets[i]] += one;
        call->counts[@SIZE + @sample_targets[i] / @BLOCK] += one;
      }
    }
    for (q = 0u; pass == 0u && q < call->quantile_count; ++q)
      out[q] = @quantile_of(call->quantiles[q], total, call->counts);
  }
}
)";

}  // namespace

std::string quantiles_text(const Job& job, std::uint64_t& table_bytes) {
  const Program& program = job.program;
  std::vector<std::string> targets;
  for (const double target : program.targets()) targets.push_back(literal(target));
  std::vector<std::uint32_t> trees;
  for (const NumberedLeaves& tree : program.sampled_trees()) {
    trees.push_back(tree.first_leaf);
    trees.push_back(tree.leaf_count);
  }
  const auto size = static_cast<std::uint32_t>(targets.size());
  const std::string text = replaced(kQuantile, {{"@SIZE", number(size)},
                                                {"@BLOCKS", number(target_blocks(size))},
                                                {"@BLOCK", number(kTargetBlock)},
                                                {"@TREES", number(trees.size() / 2)}});
  return "/* Targets of training rows, and their indices in leaves: first leaf and number of leaves of each tree, first row of\n"
         " * each leaf. */\n" +
         words_table(job, "sampled_trees", trees, table_bytes) +
         words_table(job, "sampled_leaves", program.sampled_leaves(), table_bytes) +
         words_table(job, "sample_targets", program.sample_targets(), table_bytes) +
         table("double", 8, job.name("targets"), targets, table_bytes) + in_file(job, text);
}

}  // namespace forestvm::bytecode::export_c
