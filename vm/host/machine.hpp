// The host machine, on which interpret() runs a program. In: a loaded program and one pass of a call (rows that fit
// the context's scratch). Out: predictions in the caller's buffer. Each iteration of a parallel loop runs on a copy
// of the machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/leaf_functions.hpp>
#include <forestvm/internal/row_source.hpp>
#include <forestvm/program.hpp>

#include "vm/host/encode_csr.hpp"
#include "vm/host/executor.hpp"
#include "vm/host/grain.hpp"
#include "vm/host/leaf_attributions.hpp"
#include "vm/host/leaf_blocks.hpp"
#include "vm/host/leaf_offsets.hpp"
#include "vm/host/load_encoder.hpp"
#include "vm/host/paths/level_paths.hpp"
#include "vm/host/paths/scratch_slots.hpp"
#include "vm/host/targets/target.hpp"
#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// A walker instruction's target, resolved when the program is loaded.
struct LoadedWalker {
  Walker walk;
  WalkTask task;      ///< The part that is the same in all calls: nodes, trees, steps, order.
  bool trees_ascend;  ///< True if the trees of its group are in the model's order.
};

/// Tables of a group for walks with trees in the lanes.
struct TreesInLanes {
  RootNodes roots{};
  std::unique_ptr<const ByteTests> byte_tests{};  ///< Null if walks begin at roots.
};

/// The way in which a program computes the scores of stages.
enum class StageRule : std::uint8_t {
  Leaves,  ///< It keeps each tree's leaf, and adds the leaves of each stage.
  Walks,   ///< Walks for raw scores add in the model's order, so that stages are their sums after some trees.
  WalksToBase,  ///< Like Walks, but base scores are added to the sums of each stage.
};

/// A loaded program, which all calls share.
struct LoadedProgram {
  explicit LoadedProgram(Program of)
      : program(std::move(of)),
        meta(program.meta()),
        code(program.code().data()),
        functions(program),
        leaf_blocks(functions),
        paths(program),
        attributions(program) {}

  /// Returns whether calls for an output use an accumulator.
  bool uses(std::size_t accumulator, OutputKind output) const {
    return !memory[accumulator].of_trees || is_of_trees(output);
  }

  /// Returns the bytes of an accumulator in the scratch memory of a pass of `rows` rows for an output, which keeps the
  /// leaves of `trees` trees at a time.
  std::size_t accumulator_bytes(std::size_t accumulator, OutputKind output, std::uint32_t rows,
                                std::size_t trees) const {
    if (!uses(accumulator, output)) return 0;
    const AccumulatorKind kind = accumulators[accumulator].kind;
    if (is_per_tree(kind)) return LeafOffsets::rows_with_room(rows) * trees * element_size(kind);
    return rows * memory[accumulator].copy_bytes;
  }

  Program program;
  const ProgramMeta& meta;  ///< The program's meta section.
  const Inst* code;         ///< The program's code section.
  std::span<const AccumulatorDesc> accumulators{};
  const AccumulatorMemory* memory = nullptr;  ///< Memory of each accumulator, in the program's CodeMap.
  std::span<const GroupDesc> groups{};
  // The encoder's columns: looking them up in the program takes time in calls of a single row.
  std::size_t columns = 0;                        ///< Number of columns.
  const std::uint32_t* category_words = nullptr;  ///< The program's category_words section.
  std::vector<LoadedWalker> walkers{};
  std::vector<GroupData> group_data{};
  std::vector<TreesInLanes> in_lanes{};       ///< For each group whose trees lanes walk.
  std::vector<std::uint8_t> tile_exits{};     ///< Exits of tiles: see GroupData::exits.
  std::vector<std::uint8_t> trees_ascend{};   ///< For each group, whether its trees are in the model's order.
  std::vector<std::uint32_t> tree_outputs{};  ///< Output of each tree, by the tree's number in the model.
  StageRule stages{};                         ///< The way to the scores of stages.
  LeafVectors vectors{};                      ///< Vectors of leaves, which sum_trees adds.
  LeafFunctions functions;                    ///< Functions of leaves, whose outputs sum_trees adds.
  LeafBlocks leaf_blocks;                     ///< `functions` in the form in which they are computed.
  HostPaths paths;                            ///< Paths, from which explain computes contributions.
  LeafAttributions attributions;              ///< Terms of leaves, which attribute adds.
  TransformParameters parameters{};
  std::vector<double> base{};     ///< Base scores.
  std::vector<double> no_base{};  ///< Zeros, one for each output: base scores of rounds without a base.
  LoadedEncoder encoder{};
  const Target* target = nullptr;
  CpuTarget cpu = CpuTarget::Baseline;  ///< The CPU by which the program chooses blocks.
  std::unique_ptr<const RowReader> row_reader{};
  CsrEncoder csr_encoder{};                    ///< Refers to the rules of `row_reader`.
  std::unique_ptr<bool[]> special_features{};  ///< For each feature, whether it is special: see ValueRules.
  SumScale scale{};
  const Executor* executor = nullptr;  ///< Null if parallel loops run inline.
  /// Measurements of parallel loops whose chunks may be cut anywhere, by pc; null for other instructions.
  /// Empty without an executor.
  std::vector<std::unique_ptr<Grain>> grains{};
};

/// The index of a feature that a call leaves out.
inline constexpr std::uint32_t kLeftOut = UINT32_MAX;

/// Returns the number of elements of the buffer for scores of virtual ensembles: at least those of one row.
constexpr std::size_t member_numbers(std::size_t outputs, std::size_t ensembles) {
  return std::max<std::size_t>(outputs * ensembles, 4096);
}

/// The most sums of rows that are added together, on the stack.
inline constexpr std::size_t kMaxSums = 4096;

/// Returns how many rows with this number of outputs are taken together, at most `most`.
inline std::uint32_t rows_together(std::size_t outputs, std::uint32_t most) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(kMaxSums / outputs, 1, most));
}

/// The sums of rows whose prediction may stop early, from one chunk of the trees to the next: see UndecidedRows. A row
/// is decided once its sums are, and they stay as they are then.
struct UndecidedSums {
  double* scores;          ///< The sums of each row.
  std::uint64_t* decided;  ///< For each row all bits if its sums are decided, otherwise 0.
  EarlyStopRule rule;      ///< The program's.
  double margin;           ///< The call's.
  bool begun;              ///< False in the first chunk: the program sets the sums from which rows start.
  bool finished;           ///< True once all chunks have ended, and outputs are made of the sums.

  /// Returns how many of some rows are not decided.
  std::uint32_t left(const Range& rows) const;
  /// Keeps the sums, `outputs` for each of some rows, of those that are not decided yet.
  void keep(const Range& rows, const double* sums, std::size_t outputs) const;
};

/// One pass of a call.
struct Pass {
  const float* rows;  ///< Float32 rows; null if the rows came encoded or are `doubles`, `csr` or `columns`.
  const double* doubles;      ///< Float64 rows; null if the pass reads none.
  std::size_t row_stride;     ///< Values from one row to the next in `rows` or `doubles`.
  const CsrRows* csr;         ///< Sparse rows, checked; null if the pass reads none.
  const ColumnView* columns;  ///< Columns, checked; null if the pass reads none.
  std::uint32_t row_count;
  /// Row count by which the plan is chosen: row_count, or the nearest whose plan takes the encoded rows.
  std::uint32_t plan_rows;
  OutputKind output;
  const std::uint8_t* codes;  ///< Codes of the pass's rows.
  std::uint8_t* encode_to;    ///< Memory for the codes; null if the rows came encoded.
  float* values;  ///< Scores, values and what explains them: where the first row's output goes, in float32.
  double* wide_values;   ///< Results in float64; then `values` is null.
  std::int64_t* labels;  ///< Class: where the first row's output goes.
  std::int32_t* leaves;  ///< Leaf: where the first row's output goes. Approximate contributions: room for it.
  bool in_place;         ///< True if accumulator a0 is `values` itself.
  bool walks_stages;     ///< True if stages are wanted: `output` is Raw, and walks write their sums.
  const RowSource* source;     ///< Rows of the call, for leaves that are functions of a row.
  std::size_t first_row;       ///< Number of the pass's first row in the call.
  double* leaf_values;         ///< Room for the values that linear leaves read, for each row.
  ScratchSlots* slots;         ///< Contributions of all kinds: memory for each thread that computes them.
  const CallOptions* options;  ///< Options of the call.
  std::size_t width;           ///< Numbers of a row in the output.
  const std::uint32_t*
      output_indices;  ///< Index of each feature in the output, or kLeftOut; null: all features.
  Range trees;         ///< Trees of the call's rounds, or of a chunk of them, by their numbers in the model.
  Range kept;          ///< Trees for whose leaves accumulators of per-tree values have room.
  std::uint32_t first_tree;        ///< The first tree of the call's rounds.
  UndecidedSums* undecided;        ///< Sums of an early stop; null if the call has none.
  const double* base;              ///< Base scores of the call's rounds.
  TransformParameters parameters;  ///< Parameters of the transform of their sums.
  /// Row 0 of the first copy of each accumulator that has memory of its own.
  std::byte* accumulators[kAccumulators];
};

/// Returns the distance of two rows' leaf numbers that are kept for an output: an odd number of lines, so that those of
/// many rows in a tree lie in all sets of a cache.
constexpr std::size_t kept_numbers(std::size_t trees) {
  constexpr std::size_t kInLine = sizeof(Line) / sizeof(std::int32_t);
  return ((trees + kInLine - 1) / kInLine | 1) * kInLine;
}

/// Writes the codes of a range of a pass's rows, unless they came encoded.
void encode_range(const LoadedProgram& loaded, const Pass& pass, const Range& rows);

/// Holds the initial sums and the walk of a machine that runs again with other rows, so that they are prepared once.
struct ReadySteps {
  WalkTask task;
  Walker walk{};
  bool adds_to_results;  ///< True if its sums are the caller's memory, which may be another in each call.
  std::uint32_t first_bytes = 0;  ///< Bytes of `first`; 0 if sums are not set from it.
  std::byte first[256];           ///< The sums from which all rows start.
};

class Machine {
 public:
  Machine(const LoadedProgram& loaded, const Pass& pass);

  Range ranges[kRangeRegisters];
  std::uint32_t plan_rows;

  bool wants(OutputKind output) const { return pass_->output == output; }
  bool runs_on(TargetSet targets) const { return contains(targets, loaded_->cpu); }
  /// Makes `ready` of a walk instruction, and of an init instruction of its accumulator unless it is null. They must be
  /// the only ones that the machine runs from now on: init() and walk() use `ready` with the pass's rows. Does nothing
  /// if no trees are to be walked.
  void keep_ready(const Inst* init, const Inst& walk, ReadySteps& ready);
  /// Returns whether a store instruction has no effect, because results are where they belong.
  bool stores_nothing(const Inst& inst) const;
  void parallel(const Inst& loop, std::uint32_t body);
  void cache_rows(const Inst& inst);
  void cache_trees(const Inst& inst);
  void init(const Inst& inst);
  void zero(const Inst& inst);
  void add_base(const Inst& inst);
  void privatize(const Inst& inst);
  void walk(const Inst& inst);
  void leaves(const Inst& inst);
  void reduce_dim(const Inst& inst);
  void reduce_inplace(const Inst& inst);
  void round(const Inst& inst);
  void sum_trees(const Inst& inst);
  void transform(const Inst& inst);
  void store(const Inst& inst);
  void label(const Inst& inst);
  void encode(const Inst& inst);
  void explain(const Inst& inst);
  void store_trees(const Inst& inst);
  void store_stages(const Inst& inst);
  void attribute(const Inst& inst);
  void quantiles(const Inst& inst);

 private:
  template <class Element>
  Element* accumulator_row(std::uint32_t accumulator, std::uint32_t copy, std::uint32_t row) const {
    const AccumulatorMemory& a = loaded_->memory[accumulator];
    return reinterpret_cast<Element*>(pass_->accumulators[a.storage]) +
           (std::size_t{copy} * a.copy_stride * pass_->row_count + row) * a.width;
  }
  template <class Element>
  Element* accumulator_row(std::uint32_t accumulator, std::uint32_t row) const {
    return accumulator_row<Element>(accumulator, copies_[accumulator], row);
  }
  /// Returns the elements of an accumulator of per-tree values, which lie at leaf_offsets().
  template <class Element>
  Element* leaves_of(std::uint32_t accumulator) const {
    return reinterpret_cast<Element*>(pass_->accumulators[accumulator]);
  }
  LeafOffsets leaf_offsets() const { return {pass_->kept.size(), pass_->row_count, pass_->kept.begin}; }
  /// Calls visit.operator()<Element>() with the type of an accumulator's elements.
  template <class Visit>
  void with_element(std::uint32_t accumulator, Visit&& visit) const;
  std::uint32_t first_sums(const Inst& init, std::span<std::byte> to) const;
  template <class Element>
  void fill(std::uint32_t accumulator, const Range& rows, const double* values) const;
  template <class Element>
  void fill_margins(std::uint32_t accumulator, const Range& rows) const;
  /// Calls visit.operator()<float>() or <double>() for an accumulator of scores.
  template <class Visit>
  void with_scores(std::uint32_t accumulator, Visit&& visit) const;

  void run_inline(const LoopOperands& loop, std::uint32_t body);
  void run_shared(const LoopOperands& loop, std::uint32_t step, std::uint32_t body);
  const LoadedWalker& selected_walker(std::uint32_t walker, std::uint32_t select) const {
    return loaded_->walkers[walker + ranges[select].iteration];
  }
  Range wanted_trees(const WalkTask& task, const Range& trees) const;
  void give_rows(WalkTask& task) const;
  bool make_task(const Inst& inst, WalkTask& task) const;
  void keep_leaves(WalkTask& task, std::uint32_t accumulator) const;
  void walk_stages(const LoadedWalker& walker, WalkTask& task, std::uint32_t accumulator) const;
  Range ahead(std::uint32_t loop, std::uint32_t iterations) const;
  void reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place);
  double margin(std::uint32_t row, std::size_t output) const;
  double base(std::uint32_t row, std::size_t output) const;
  void read_leaf_values(const Range& rows) const;
  double leaf_output(std::uint32_t row, double leaf) const;
  template <class Score>
  void add_leaves(std::uint32_t to, std::uint32_t from, const Range& rows, const Range& trees) const;
  /// Returns whether the pass adds a chunk of an early stop's trees to sums that are kept, and writes no results.
  bool adds_chunk() const { return pass_->undecided != nullptr && !pass_->undecided->finished; }
  bool resume(std::uint32_t accumulator, const Range& rows) const;
  void keep_sums(std::uint32_t from, const Range& rows) const;
  void add_until_decided(std::uint32_t to, std::uint32_t from, const Range& rows) const;
  template <class Score>
  void attribute_rows(const Range& rows) const;
  template <class Score>
  void write_attributions(std::uint32_t row, Score* sums, bool is_large) const;
  template <class Score>
  void put(std::size_t at, Score number) const;
  template <class Score>
  void store_leaves(std::uint32_t from, const Range& rows, const Range& trees) const;
  void clear_stages(const Range& rows) const;
  Range stage_trees(std::uint32_t stage) const;
  void store_stage(std::uint32_t accumulator, const Range& rows, std::uint32_t stage, bool base_last) const;
  void add_members(const OperandsOf<Op::StoreStages>& args, const Range& rows, double* members) const;
  void store_members(const OperandsOf<Op::StoreStages>& args) const;
  template <class Score>
  void store_spread(std::uint32_t from, const Range& rows) const;
  template <class Value>
  void store_rows(std::uint32_t accumulator, const Range& rows, Value* values) const;

  const LoadedProgram* loaded_;
  const Pass* pass_;
  std::size_t outputs_;
  ReadySteps* ready_ = nullptr;  ///< Null if init and walk instructions prepare everything themselves.
  std::uint32_t copies_[kAccumulators] = {};  ///< Copy of each accumulator that this machine writes.
};

template <class Visit>
void Machine::with_element(std::uint32_t accumulator, Visit&& visit) const {
  switch (loaded_->accumulators[accumulator].kind) {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  case AccumulatorKind::Name:                                      \
    return visit.template operator()<Element>();
#include <forestvm/core/accumulator_kinds.def>
  }
}

template <class Visit>
void Machine::with_scores(std::uint32_t accumulator, Visit&& visit) const {
  if (loaded_->accumulators[accumulator].kind == AccumulatorKind::F64)
    visit.template operator()<double>();
  else
    visit.template operator()<float>();
}

}  // namespace forestvm::host
