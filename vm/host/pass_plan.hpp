// Decides how a call is cut into passes: how many rows a pass has, whether they are converted before they are encoded
// or walked, and how many bytes of the context's scratch memory each part of a pass takes. It only computes numbers;
// the predictor runs the passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/row_source.hpp>

#include "vm/host/lines.hpp"
#include "vm/host/machine.hpp"
#include "vm/host/paths/explain_task.hpp"
#include "vm/host/target_counts.hpp"
#include "vm/host/targets/target.hpp"
#include "vm/host/tree_rows.hpp"
#include "vm/host/undecided_rows.hpp"

namespace forestvm::host {

/// The most rows of a pass if nothing else bounds them: row numbers are 32-bit.
inline constexpr std::size_t kMaxPassRows = std::size_t{1} << 30;

class PassPlan {
 public:
  [[gnu::cold]] PassPlan(const LoadedProgram& loaded, const Target& target) : loaded_(loaded) {
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i) {
      add_bytes(i, of_trees_);
      if (loaded_.uses(i, OutputKind::Raw)) add_bytes(i, of_sums_);
    }
    const std::size_t result_bytes = loaded_.meta.num_outputs * (sizeof(float) + sizeof(double));
    few_rows_ = std::min({max_pass_rows(of_trees_.all + result_bytes + leaf_value_bytes(1), of_trees_.leaves),
                          max_encoded_rows(), max_converted_rows()});
    // With fewer features than steps, walking a block that is not full costs more than converting its rows.
    const double steps = loaded_.meta.mean_depth * loaded_.meta.num_trees;
    encodes_doubles_ = target.picks_doubles() && coded_plans().check().ok() &&
                       static_cast<double>(loaded_.program.encoded_features().size()) >= steps;
  }

  // How a pass reads its rows.

  /// Returns whether rows are converted to float32 rows in the scratch memory before anything reads them.
  bool converted(const RowSource& rows) const {
    if (rows.form() != RowForm::Sparse) return rows.form() == RowForm::Dense;
    return derives_columns() ||
           static_cast<double>(rows.listed_values()) >
               kDenseFrom * (static_cast<double>(rows.count()) * loaded_.meta.num_features);
  }

  /// Returns whether the rows of a pass of `row_count` rows are converted. In addition to the rows that
  /// converted(rows) names, these are rows whose values the pass's walks read, if they are sparse, in columns or
  /// float64.
  bool converted(const RowSource& rows, OutputKind output, std::size_t row_count) const {
    const bool read_in_place =
        rows.form() == RowForm::Sparse || rows.form() == RowForm::Columns || rows.form() == RowForm::Doubles;
    return converted(rows) || (read_in_place && reads_values(rows, output, row_count));
  }

  /// Returns the number of rows by which the plan for a pass of `row_count` rows is chosen. Float64 rows take the next
  /// plan whose walks read codes where that saves the time of converting them.
  std::uint32_t plan_rows(const RowSource& rows, std::size_t row_count) const {
    const auto count = static_cast<std::uint32_t>(row_count);
    const bool encoded = encodes_doubles_ && rows.form() == RowForm::Doubles && row_count >= kDoublesToEncode;
    return encoded ? coded_plans().plan_rows(count) : rows.plan_rows(count);
  }

  /// Returns whether walks of a pass of `row_count` rows read values. Contributions do not: paths compare codes.
  bool reads_values(const RowSource& rows, OutputKind output, std::size_t row_count) const {
    return !reads_paths(output) && coded_plans().reads_values(plan_rows(rows, row_count));
  }

  /// Returns whether values for linear leaves stand behind the codes of encoded rows.
  bool adds_values() const { return coded_plans().columns() != loaded_.columns; }

  /// Returns whether walks for raw scores write the stages that a call wants, which each have trees.
  bool walks_stages(const Pass& pass) const {
    if (pass.output != OutputKind::Staged || loaded_.stages == StageRule::Leaves) return false;
    const auto begins = loaded_.program.round_begins();
    const Rounds rounds = rounds_of(loaded_.program, *pass.options);
    return begins[rounds.begin + std::min(pass.options->every, rounds.end - rounds.begin)] !=
           begins[rounds.begin];
  }

  /// Returns whether the program derives columns from features.
  bool derives_columns() const { return !loaded_.row_reader->rules().columns().empty(); }

  /// Returns of how many trees a pass keeps the leaves at a time.
  std::uint32_t trees_at_once(const Pass& pass) const {
    const std::uint32_t all = loaded_.meta.num_trees;
    // Functions of leaves read their values once for all trees. Trees in another order than the model's are not
    // divided into chunks.
    if (pass.output != OutputKind::Trees || all <= kTreesAtOnce || !loaded_.functions.empty() ||
        std::ranges::find(loaded_.trees_ascend, 0) != loaded_.trees_ascend.end())
      return all;
    return kTreesAtOnce;
  }

  /// Returns for how many trees a pass has room to keep the leaves: a chunk of trees is written with the last
  /// kTreeRows of the chunk before.
  std::uint32_t trees_kept(const Pass& pass) const {
    const std::uint32_t all = loaded_.meta.num_trees;
    const std::uint32_t step = trees_at_once(pass);
    return step < all ? step + std::uint32_t{kTreeRows} : all;
  }

  // How many rows there are in a pass.

  /// Returns how many of `left` rows go into one pass, in which a row of results takes `delivered_bytes` more.
  std::size_t rows(const Pass& pass, const RowSource& rows, std::size_t left,
                   std::size_t delivered_bytes) const {
    if (left <= few_rows_ && pass.width <= loaded_.meta.num_outputs && rows.form() != RowForm::Encoded &&
        !reads_leaf_numbers(pass.output))
      return left;
    // Calls for leaf numbers and contributions have memory for sums too, because the code may write sums in them.
    const std::size_t result_bytes = pass.in_place ? 0 : loaded_.meta.num_outputs * sizeof(float);
    const std::size_t number_bytes = leaf_number_bytes(pass.output, 1);
    AccumulatorBytes accumulators = is_of_trees(pass.output) ? of_trees_ : of_sums_;
    if (pass.output == OutputKind::Trees) {
      const std::size_t all = accumulators.leaves;
      accumulators.leaves = all / std::max(loaded_.meta.num_trees, 1u) * trees_kept(pass);
      accumulators.all -= all - accumulators.leaves;
    }
    const std::size_t row_bytes = accumulators.all + result_bytes + delivered_bytes + leaf_value_bytes(1) +
                                  number_bytes +
                                  (undecided_bytes(pass, kCodeRows) + kCodeRows - 1) / kCodeRows;
    const std::size_t most =
        std::min(left, max_pass_rows(row_bytes, number_bytes + accumulators.leaves,
                                     pass.output == OutputKind::Trees ? kMaxTreeBytes : kMaxLeafBytes));
    if (rows.form() == RowForm::Encoded)
      return std::min(left, rows.cut(adds_values() ? std::min(most, max_encoded_rows()) : most));
    const std::size_t encoded = std::min(most, max_encoded_rows());
    return converted(rows, pass.output, encoded) ? std::min(encoded, max_converted_rows()) : encoded;
  }

  /// Returns how many of `left` rows are encoded together for a caller: all, or whole blocks of codes.
  std::size_t rows_to_encode(const RowSource& rows, std::size_t left) const {
    const std::size_t most = adds_values() ? max_encoded_rows() : kMaxPassRows;
    return std::min(left, whole_blocks(converted(rows) ? std::min(most, max_converted_rows()) : most));
  }

  // How many bytes the parts of a pass take.

  /// Returns the bytes that `rows` rows of a pass write to the scratch memory because another type of numbers is
  /// wanted.
  static std::size_t delivered_bytes(const Pass& pass, std::size_t rows, ResultType type) {
    const ResultType written = written_type(pass.output, type);
    return written == type ? 0 : rows * pass.width * bytes_of(written);
  }

  /// Returns the bytes of the float32 rows that a pass gets in the scratch memory.
  std::size_t converted_bytes(std::size_t rows) const {
    return whole_lines(rows * row_width(loaded_.meta) * sizeof(float));
  }

  /// Returns the bytes of the values that linear leaves read of `rows` rows.
  std::size_t leaf_value_bytes(std::size_t rows) const {
    return rows * loaded_.functions.features().size() * sizeof(double);
  }

  /// Returns the bytes of the leaves' numbers of `rows` rows that are kept for an output.
  std::size_t leaf_number_bytes(OutputKind output, std::size_t rows) const {
    return reads_leaf_numbers(output) ? rows * kept_numbers(loaded_.meta.num_trees) * sizeof(std::int32_t)
                                      : 0;
  }

  /// Returns the bytes that the instructions of a pass write: sums, values for linear leaves, and what threads that
  /// compute contributions need.
  std::size_t scratch_bytes(const Pass& pass) const {
    const std::size_t rows = pass.row_count;
    std::size_t bytes = needs_slots(pass) ? slot_bytes(pass) * slot_count(pass) : 0;
    bytes += whole_lines(leaf_number_bytes(pass.output, rows));
    if (!pass.in_place) bytes += whole_lines(rows * loaded_.meta.num_outputs * sizeof(float));
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      bytes += whole_lines(loaded_.accumulator_bytes(i, pass.output, pass.row_count, trees_kept(pass)));
    return bytes + whole_lines(leaf_value_bytes(rows)) + whole_lines(undecided_bytes(pass, rows));
  }

  /// Returns the bytes of the sums and packed rows of a pass of `rows` rows that stops early.
  std::size_t undecided_bytes(const Pass& pass, std::size_t rows) const {
    if (!pass.options->early_stop) return 0;
    return UndecidedRows::bytes(rows, loaded_.meta.num_outputs, loaded_.columns,
                                undecided_values(pass, rows));
  }

  /// Returns the number of values of a row that walks of a pass of `rows` rows read; 0 if they read codes alone.
  std::size_t undecided_values(const Pass& pass, std::size_t rows) const {
    return reads_values(*pass.source, OutputKind::Raw, rows) ? row_width(loaded_.meta) : 0;
  }

  /// Returns the number of trees that are walked before rows which need no more trees are put aside. A small
  /// number stops decided rows sooner; a large number spends less time between chunks.
  std::uint32_t chunk_trees(const Pass& pass) const {
    const std::uint64_t step = std::uint64_t{pass.options->early_stop->every} * loaded_.meta.num_outputs;
    const std::uint64_t all = std::max(pass.trees.size(), 1u);
    if (step >= all) return static_cast<std::uint32_t>(all);
    if (!sums_kept_leaves(pass.plan_rows)) return static_cast<std::uint32_t>(step);
    if (std::ranges::find(loaded_.trees_ascend, 0) != loaded_.trees_ascend.end())
      return static_cast<std::uint32_t>(all);
    const std::uint64_t least = pass.row_count < kCodeRows ? kChunkTreesOfFewRows : kChunkTrees;
    return static_cast<std::uint32_t>(std::min(all, (least + step - 1) / step * step));
  }

  /// Returns whether the plan for `rows` rows keeps each tree's leaf, and adds the leaves of a row at the end.
  bool sums_kept_leaves(std::uint32_t rows) const {
    for (const Inst* inst = loaded_.code; inst->op != Op::Halt; ++inst) {
      if (inst->op == Op::SumTrees) return true;
      if (inst->op == Op::On) {
        const auto [targets, end] = operands<Op::On>(*inst);
        if (!contains(targets, loaded_.cpu)) inst = loaded_.code + end;
      }
      if (inst->op != Op::Plan) continue;
      const auto [least, most, end] = operands<Op::Plan>(*inst);
      if (rows < least || rows > most) inst = loaded_.code + end;
    }
    return false;
  }

  /// Returns whether threads of a pass take slots of memory.
  bool needs_slots(const Pass& pass) const {
    return explains_scores(pass.output) || pass.output == OutputKind::Quantile || has_members(pass);
  }

  /// Returns the bytes that a thread needs to compute contributions, uncertainty or quantiles.
  std::size_t slot_bytes(const Pass& pass) const {
    const ProgramMeta& meta = loaded_.meta;
    if (pass.output == OutputKind::Quantile)
      return whole_lines(TargetCounts::size(loaded_.program.targets().size()) * sizeof(std::uint32_t));
    if (reads_paths(pass.output)) return whole_lines(ExplainScratch(loaded_.paths).bytes);
    if (has_members(pass))
      return whole_lines(member_numbers(meta.num_outputs, pass.options->ensembles) * sizeof(double));
    return whole_lines(std::min<std::size_t>(pass.row_count, attributed_rows(meta)) * attributed_sums(meta) *
                       size_of(meta.score_type));
  }

  /// Returns the number of threads that compute contributions, uncertainty or quantiles of a pass's rows at once.
  /// Together their slots take at most kMaxScratchBytes, unless a single slot takes more.
  unsigned slot_count(const Pass& pass) const {
    if (loaded_.executor == nullptr) return 1;
    const std::size_t blocks =
        reads_paths(pass.output) ? (pass.row_count + kCodeRows - 1) / kCodeRows : pass.row_count;
    const std::size_t fit =
        std::max<std::size_t>(1, kMaxScratchBytes / std::max<std::size_t>(1, slot_bytes(pass)));
    return static_cast<unsigned>(std::min(
        {blocks, fit, std::size_t{ScratchSlots::kMaxSlots}, std::size_t{loaded_.executor->threads()}}));
  }

 private:
  /// The least number of trees of a chunk: see chunk_trees.
  static constexpr std::uint32_t kChunkTrees = 20, kChunkTreesOfFewRows = 60;

  /// The most bytes of codes, or of converted rows, in a pass, unless its rows would be too few to share among
  /// threads, fewer than kMinPassRows.
  static constexpr std::size_t kMaxPassBytes = std::size_t{8} << 20;
  static constexpr std::size_t kMinPassRows = 4096;

  /// The most bytes of trees' leaves for each thread of a pass, unless the rows would be too few for walkers that take
  /// many together, fewer than kMinLeafRows.
  static constexpr std::size_t kMaxLeafBytes = std::size_t{2} << 20;
  static constexpr std::size_t kMinLeafRows = 256;

  /// In calls for the outputs of trees, the number of trees that are walked before their leaves are written, and the
  /// most bytes of leaves that each thread keeps: room for 512 rows, which walkers take together. Results share the
  /// caches with them.
  static constexpr std::uint32_t kTreesAtOnce = 512;
  static constexpr std::size_t kMaxTreeBytes = 512 * (kTreesAtOnce + kTreeRows) * sizeof(float);

  /// The share of a sparse row's features that have values from which on it is faster to make the rows dense before
  /// they are encoded.
  static constexpr double kDenseFrom = 0.04;

  /// The least number of rows in a pass for which encoding float64 rows takes less time than converting them, although
  /// a block has room for more rows.
  static constexpr std::size_t kDoublesToEncode = 8;

  const CodedPlans& coded_plans() const { return loaded_.row_reader->coded_plans(); }

  static bool reads_paths(OutputKind output) {
    return output == OutputKind::Contributions || output == OutputKind::Interactions;
  }

  /// Returns whether a pass computes the scores of virtual ensembles.
  bool has_members(const Pass& pass) const {
    if (pass.output != OutputKind::Uncertainty && pass.output != OutputKind::VirtEnsembles) return false;
    return loaded_.program.uncertainty()[0].rule != UncertaintyRule::Trees;
  }

  /// Returns the most rows whose codes are in a pass. Codes are written and soon read again, so they should
  /// fit the caches. With very many columns they take at most kMaxScratchBytes, unless a single block takes
  /// more.
  std::size_t max_encoded_rows() const {
    if (loaded_.columns == 0) return kMaxPassRows;
    const auto rows_in = [&](std::size_t bytes) {
      return std::max<std::size_t>(kCodeRows, bytes / loaded_.columns / kCodeRows * kCodeRows);
    };
    return std::min(rows_in(kMaxScratchBytes), std::max(kMinPassRows, rows_in(kMaxPassBytes)));
  }

  /// Returns the most rows that are converted in a pass, so that they should fit the caches. Very wide rows
  /// take at most kMaxScratchBytes, unless a single row takes more.
  std::size_t max_converted_rows() const {
    const std::size_t row_bytes = row_width(loaded_.meta) * sizeof(float);
    if (row_bytes == 0) return kMaxPassRows;
    return std::clamp<std::size_t>(kMaxScratchBytes / row_bytes, 1,
                                   std::max(kMinPassRows, kMaxPassBytes / row_bytes));
  }

  /// Returns the most rows of a pass that takes `row_bytes` scratch memory for each of them, of which `leaf_bytes` are
  /// trees' leaves. These should stay in the caches of the threads, which add or deliver them when all trees are
  /// walked.
  std::size_t max_pass_rows(std::size_t row_bytes, std::size_t leaf_bytes,
                            std::size_t most_leaf_bytes = kMaxLeafBytes) const {
    if (row_bytes == 0) return kMaxPassRows;
    const std::size_t rows = std::clamp<std::size_t>(kMaxScratchBytes / row_bytes, 1, kMaxPassRows);
    if (leaf_bytes == 0) return rows;
    const std::size_t threads = loaded_.executor == nullptr ? 1 : loaded_.executor->threads();
    return LeafOffsets::whole(std::min(rows, threads * std::max(kMinLeafRows, most_leaf_bytes / leaf_bytes)));
  }

  /// The bytes of a row in accumulators, apart from the result.
  struct AccumulatorBytes {
    std::size_t all = 0;
    std::size_t leaves = 0;  ///< Bytes in those of per-tree values.
  };

  void add_bytes(std::size_t accumulator, AccumulatorBytes& bytes) const {
    bytes.all += loaded_.memory[accumulator].copy_bytes;
    if (is_per_tree(loaded_.accumulators[accumulator].kind))
      bytes.leaves += loaded_.memory[accumulator].copy_bytes;
  }

  const LoadedProgram& loaded_;
  AccumulatorBytes of_trees_{};   ///< Accumulators that calls for outputs of single trees use.
  AccumulatorBytes of_sums_{};    ///< Accumulators that other calls use.
  bool encodes_doubles_ = false;  ///< True if passes of kDoublesToEncode float64 rows and more are encoded.
  /// Calls of up to this many rows that give at most a number for each output take one pass, whatever their rows are.
  std::size_t few_rows_ = 0;
};

}  // namespace forestvm::host
