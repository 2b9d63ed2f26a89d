// Measures a phase of a program: how many iterations its loops have, what it asks of the device, and which kernel and
// known code run it. Linker::link, which knows all phases of a call, then allocates accumulators.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/gpu_banks.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>

#include "kernels/link/cut_phases.hpp"
#include "kernels/link/known_code.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Threads of a block to which no loop is mapped. If no loop is mapped to the grid either, a block also takes
/// this number of rows.
inline constexpr std::uint32_t kUnmappedThreads = 128;
static_assert(kUnmappedThreads <= kKindThreads);

inline constexpr std::uint32_t kSharedAlignment = 16;

/// Most blocks of grid.y in a phase of the kernel of kinds.
inline constexpr std::uint32_t kMostKindBlocks = 1024;

/// Trees whose outputs a thread stores, if so many blocks are possible.
inline constexpr std::uint32_t kTreesStored = 8;

/// Fewest threads of a block that explains rows: a warp of NVIDIA's.
inline constexpr std::uint32_t kFewestExplaining = 32;

inline std::uint64_t aligned(std::uint64_t shared_bytes) {
  return (shared_bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

/// Facts about a range in a phase, beside those that the map of the code has.
struct RangeInPhase {
  bool varies = false;  ///< true if threads of a block may hold different ranges
  /// Pc in the phase of the instruction that caches these rows; none: they are not cached.
  std::optional<std::uint32_t> cached_at = {};
};

class PhaseMeasurer {
  using enum LinkedField;

 public:
  PhaseMeasurer(const Linker& linker, const LinkRequest& request, const DeviceLimits& limits,
                std::uint32_t shared_bytes, PhaseCode code)
      : program_(linker.program()),
        map_(linker.map()),
        limits_(limits),
        shared_bytes_(shared_bytes),
        sizes_(linker.explain_sizes()),
        output_(request.output),
        any_grid_(request.any_grid),
        pass_rows_(request.rows),
        rows_(request.rows),
        ranges_(map_.ranges.size()),
        most_threads_(std::min(limits.threads, kMaxBlockThreads)) {
    phase_.code = std::move(code.code);
    phase_.pcs = std::move(code.pcs);
  }

  Result<void> run() {
    if (phase_.code.size() > kMaxPhaseCode)
      return refused("schedule", "a phase of {} instructions, a launch takes at most {}", phase_.code.size(),
                     kMaxPhaseCode);
    phase_.extent.fill(1);
    share_unmapped();
    for (std::uint32_t pc = 0; pc < phase_.code.size(); ++pc) measure(pc);
    FVM_TRY(choose_kernel());
    FVM_TRY(check_extent());
    share_work();
    join_blocks();
    end_early();
    return {};
  }

  /// Allocates shared memory for the rows and trees that are to be cached. Called after run(). `codes_elsewhere`
  /// says that other phases read the codes of rows.
  Result<void> allocate_caches(bool codes_elsewhere) {
    std::uint32_t copies = 0;
    for (std::uint32_t pc = 0; pc < phase_.code.size(); ++pc) {
      if (phase_.code[pc].op == Op::CacheRows) FVM_TRY(allocate_rows(pc, codes_elsewhere));
      if (phase_.code[pc].op == Op::CacheTrees) FVM_TRY(allocate_trees(pc, copies++));
    }
    return {};
  }

  /// Finds out whether the code is one that kernels know. Called when all is allocated.
  void find_known() {
    for (const KnownForm& form : kKnownForms) {
      KnownPhase known = known_phase(form, phase_.code);
      if (known.code != KnownCode::None && runs_known(known, form.parts)) phase_.known = std::move(known);
    }
  }

  bool reads_values() const { return reads_values_; }
  bool reads_codes() const { return reads_codes_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  const std::bitset<kAccumulators>& used() const { return used_; }
  /// Returns the accumulators through which blocks that join hand over what they have made.
  const std::bitset<kAccumulators>& handed_over() const { return handed_over_; }
  const std::bitset<kAccumulators>& reduced_in_shared() const { return shared_; }
  LinkedPhase& phase() { return phase_; }

  /// Returns the bytes of a row in all copies of an accumulator; 0 if it lies in the memory of another.
  std::size_t row_bytes(std::uint32_t accumulator) const {
    const AccumulatorMemory& memory = map_.accumulators[accumulator];
    const AccumulatorKind kind = program_.accumulators()[accumulator].kind;
    if (!is_per_tree(kind) || memory.copy_bytes == 0) return memory.copy_bytes;
    return row_elements(memory, kind) * element_size(kind);  // leaves have no copies
  }

  /// Returns the bytes that an accumulator takes for the rows of a block.
  std::uint64_t block_bytes(std::uint32_t accumulator) const {
    return aligned(std::uint64_t{row_bytes(accumulator)} * size(block_range_));
  }

  /// Allocates shared memory for an accumulator. Returns false, and does nothing, if more than `most` bytes of that
  /// memory would then be taken.
  bool take_accumulator(std::uint32_t accumulator, std::uint64_t most) {
    const std::uint64_t bytes = block_bytes(accumulator);
    if (phase_.shared_bytes + bytes > most) return false;
    phase_.accumulators[accumulator] = {true, take(bytes), size(block_range_)};
    return true;
  }

  Failure too_much(std::string_view what, std::uint64_t bytes) const {
    return refused("schedule",
                   "{} take {} bytes of shared memory beside the {} that are taken; a block has {}", what,
                   bytes, phase_.shared_bytes, shared_bytes_);
  }

 private:
  const InstFacts& facts(std::uint32_t pc) const { return map_.insts[phase_.pcs[pc]]; }

  /// Returns the most elements that a range has in this call.
  std::uint32_t size(std::uint32_t range) const { return max_size(map_, range, rows_); }

  /// Gives threads to a block to which no loop is mapped: they share its rows. A phase without any mapped
  /// loop gets blocks, too, which share the rows of the pass.
  void share_unmapped() {
    bool rows_are_whole = true;  // a slice counts from the first row of the pass
    for (const LinkedInst& inst : phase_.code) {
      if (inst.op == Op::Map && linked<Op::Map, Dimension>(inst) >= kGridDimensions) return;
      rows_are_whole &= inst.op != Op::Map && inst.op != Op::Slice;
    }
    phase_.extent[kGridDimensions] = kUnmappedThreads;
    if (!rows_are_whole) return;
    phase_.rows_per_block = kUnmappedThreads;
    phase_.extent[0] = std::max<std::uint32_t>(1, iterations(rows_, kUnmappedThreads));
    rows_ = std::min(rows_, kUnmappedThreads);
  }

  /// Returns the accumulators in whose memory instructions [begin, end) read or write.
  std::bitset<kAccumulators> storages(std::uint32_t begin, std::uint32_t end) const {
    std::bitset<kAccumulators> found;
    for (std::uint32_t pc = begin; pc < end; ++pc)
      for_each_field(phase_.code[pc], [&](LinkedField field, std::uint32_t value) {
        if (field == AccOut || field == AccIn) found.set(map_.accumulators[value].storage);
      });
    return found;
  }

  /// Gives an end at which blocks join the word of shared memory that tells a block's threads whether it is the last.
  void join_blocks() {
    const auto size = static_cast<std::uint32_t>(phase_.code.size());
    for (std::uint32_t pc = 0; pc < size; ++pc) {
      LinkedInst& inst = phase_.code[pc];
      if (inst.op != Op::End || linked<Op::End, Joined>(inst) == 0) continue;
      handed_over_ = storages(linked<Op::End, Partner>(inst), pc) & storages(pc, size);
      set_linked<Op::End, Offset>(inst, take(kSharedAlignment));
      phase_.joins = true;
    }
  }

  /// Ends the code where only ends of maps follow: nothing is left to do, and no thread waits for another.
  void end_early() {
    std::vector<LinkedInst>& code = phase_.code;
    const auto ends_map = [&](const LinkedInst& inst) {
      return inst.op == Op::End && linked<Op::End, Dimension>(inst) != kDimensions &&
             linked<Op::End, Joined>(inst) == 0;
    };
    auto last = static_cast<std::uint32_t>(code.size()) - 1;
    while (last != 0 && ends_map(code[last - 1])) --last;
    for (std::uint32_t pc = last; pc + 1 < code.size(); ++pc)
      set_linked<Op::Map, Partner>(code[linked<Op::End, Partner>(code[pc])], last);
    code[last] = {Op::Halt, {}, {}};
    code.resize(last + 1);
    phase_.pcs.resize(last);
    phase_.pcs.push_back(kNoPc);
  }

  /// Says in the code how threads share work. It changes where a map of a dimension of the block begins and ends.
  void share_work() {
    std::array<bool, kDimensions> mapped{};
    phase_.peers = sharing(mapped).word();
    for (LinkedInst& inst : phase_.code) {
      if (inst.op == Op::Map) {
        mapped[linked<Op::Map, Dimension>(inst)] = true;
        set_linked<Op::Map, Peers>(inst, sharing(mapped).word());
      }
      if (inst.op != Op::End) continue;
      const LinkedInst& open = phase_.code[linked<Op::End, Partner>(inst)];
      if (open.op != Op::Map) continue;
      mapped[linked<Op::Map, Dimension>(open)] = false;
      set_linked<Op::End, Peers>(inst, sharing(mapped).word());
    }
  }

  /// Returns how threads share work inside the maps of some dimensions.
  Sharing sharing(const std::array<bool, kDimensions>& mapped) const {
    Sharing result;
    const auto add = [&](unsigned dimension) {
      const std::uint32_t extent = phase_.extent[dimension];
      // A step is of use only between several threads, so that it is smaller than a block.
      return mapped[dimension] || extent == 1 ? 0 : std::exchange(result.count, result.count * extent);
    };
    result.x_step = add(kGridDimensions);
    result.y_step = add(kGridDimensions + 1);
    result.z_step = add(kGridDimensions + 2);
    return result;
  }

  void measure(std::uint32_t pc) {
    LinkedInst& inst = phase_.code[pc];
    used_ |= storages(pc, pc + 1);
    switch (inst.op) {
      case Op::For:
        return set_linked<Op::For, Iterations>(inst, measure_loop(pc, loop_operands<Op::For>(inst)));
      case Op::Map:
        return measure_map(pc);
      case Op::End:
        return open_.pop_back();
      case Op::Slice:
        ranges_[facts(pc).out] = ranges_[facts(pc).in];
        return;
      case Op::Walk:
      case Op::Leaves:
        return note_walkers(facts(pc));
      case Op::CacheRows:
        ranges_[facts(pc).rows].cached_at = pc;
        return;
      case Op::CacheTrees:
        tree_loops_.push_back(loop_over(facts(pc).trees));
        return;
      case Op::Encode:
        encodes_.push_back({pc, ranges_[facts(pc).rows].cached_at});
        return;
      case Op::ReduceDim:
        return note_reduction(reduction_fields<Op::ReduceDim>(inst));
      case Op::ReduceInplace:
        return note_reduction(reduction_fields<Op::ReduceInplace>(inst));
      case Op::Halt:
      case Op::Init:
      case Op::Zero:
      case Op::AddBase:
      case Op::Privatize:
      case Op::Round:
      case Op::SumTrees:
      case Op::Transform:
      case Op::Store:
      case Op::Label:
      case Op::Par:  // phases contain neither this opcode nor those below
      case Op::When:
      case Op::Unless:
      case Op::Plan:
      case Op::On:
        return;
      case Op::Explain:
      case Op::StoreTrees:
      case Op::StoreStages:
      case Op::Attribute:
      case Op::Quantiles:
        return measure_kind(inst);
    }
  }

  /// Gives a phase of the kernel of kinds its threads, and blocks of grid.y for what there is to do for each row.
  void measure_kind(LinkedInst& inst) {
    const ProgramMeta& meta = program_.meta();
    phase_.of_kinds = true;
    std::uint64_t blocks = meta.num_outputs;
    if (inst.op == Op::StoreTrees) blocks = meta.num_trees / kTreesStored;
    if (inst.op == Op::Explain)
      blocks = is_part(inst, ExplainPart::Write) ? blocks * (meta.num_features + 1) : place_paths(inst);
    if (output_ == OutputKind::VirtEnsembles || output_ == OutputKind::Uncertainty) {
      const bool members = program_.uncertainty()[0].rule != UncertaintyRule::Trees;
      if (members) blocks = 1;  // what is computed of an ensemble takes all of its scores
      workspace_bytes_ = members ? member_bytes(meta) * pass_rows_ : 0;
    }
    if (reads_leaf_numbers(output_))
      workspace_bytes_ =
          (bytes_before_leaves(program_, output_) + meta.num_trees * sizeof(std::int32_t)) * pass_rows_;
    phase_.extent[1] = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, kMostKindBlocks));
  }

  static bool is_part(const LinkedInst& inst, ExplainPart part) {
    return linked<Op::Explain, Part>(inst) == static_cast<std::uint32_t>(part);
  }

  /// Decides where threads that explain rows keep what they need of a tree, and how many threads a block has. Returns
  /// the number of blocks that share the batches of trees of a row: one where all of them use the row's part of global
  /// memory.
  std::uint32_t place_paths(LinkedInst& inst) {
    std::uint32_t threads = kKindThreads;
    const std::uint32_t wanted = std::min(kUnrequestedShared, shared_bytes_);
    while (threads > kFewestExplaining && threads * sizes_.thread_bytes > wanted) threads /= 2;
    const bool shared = threads * sizes_.thread_bytes <= shared_bytes_;
    const ExplainPart part = shared ? ExplainPart::SumInShared : ExplainPart::SumInGlobal;
    set_linked<Op::Explain, Part>(inst, static_cast<std::uint32_t>(part));
    if (!shared) threads = kKindThreads;
    phase_.extent[kGridDimensions] = phase_.rows_per_block = threads;
    phase_.extent[0] = std::max<std::uint32_t>(1, iterations(pass_rows_, threads));
    if (shared) take(aligned(threads * sizes_.thread_bytes));
    workspace_bytes_ = sizes_.row_bytes(part) * pass_rows_;
    return shared ? sizes_.batches : 1;
  }

  void note_reduction(const ReductionFields& reduction) {
    if (reduction.form == ReductionForm::Shared) shared_.set(map_.accumulators[reduction.from].storage);
  }

  /// Returns the innermost serial loop that is open, if these trees are its iterations and there is more than
  /// one: then trees can be copied ahead.
  std::optional<LoopOperands> loop_over(std::uint32_t trees) const {
    const auto around = std::ranges::find_if(open_.rbegin(), open_.rend(),
                                             [&](std::uint32_t pc) { return phase_.code[pc].op == Op::For; });
    if (around == open_.rend() || facts(*around).out != trees) return std::nullopt;
    const LinkedInst& loop = phase_.code[*around];
    if (linked<Op::For, Iterations>(loop) <= 1) return std::nullopt;
    return loop_operands<Op::For>(loop);
  }

  /// Opens a loop, and returns the number of its iterations.
  std::uint32_t measure_loop(std::uint32_t pc, const LoopOperands& loop) {
    open_.push_back(pc);
    ranges_[facts(pc).out] = ranges_[facts(pc).in];
    return iterations(size(facts(pc).in), loop.step);
  }

  void measure_map(std::uint32_t pc) {
    const LinkedInst& inst = phase_.code[pc];
    const LoopOperands loop = loop_operands<Op::Map>(inst);
    const std::uint32_t count = measure_loop(pc, loop), range = facts(pc).out;
    const std::uint32_t dimension = linked<Op::Map, Dimension>(inst);
    phase_.extent[dimension] = std::max({phase_.extent[dimension], count, 1u});
    if (dimension >= kGridDimensions) {
      ranges_[range].varies = true;
    } else if (map_.ranges[range].axis == Axis::Rows) {
      phase_.block_rows = loop.out;
      block_range_ = range;
    }
  }

  /// Returns whether a phase whose code is known has trees, accumulators of the kinds and in the memory that known
  /// codes take, its rows in shared memory, and walks that go as known codes go.
  bool runs_known(const KnownPhase& known, AccumulatorKind parts) const {
    const auto kind = [&](known::Accumulator a) {
      return program_.accumulators()[known.accumulators[a]].kind;
    };
    if (kind(known::kScores) != AccumulatorKind::F32 || kind(known::kParts) != parts) return false;
    const bool shared =
        phase_.accumulators[map_.accumulators[known.accumulators[known::kParts]].storage].shared;
    if (known.code != KnownCode::Leaves && shared != (unjoined(known.code) == known.code)) return false;
    if (program_.meta().num_trees == 0) return false;
    if (!phase_.layout || takes_codes(*phase_.layout) || phase_.rows_per_block != 0) return false;
    if (phase_.block_rows != known::kRows) return false;
    for (std::uint32_t pc = 0; pc < phase_.code.size(); ++pc) {
      const LinkedInst& inst = phase_.code[pc];
      if (inst.op == Op::CacheRows && linked<Op::CacheRows, Stride>(inst) == 0) return false;
      if (inst.op == Op::Map &&
          linked<Op::Map, Dimension>(inst) == static_cast<std::uint32_t>(LaunchDimension::BlockX) &&
          linked<Op::Map, Step>(inst) != 1)
        return false;
      if (inst.op != Op::Walk) continue;
      if (facts(pc).walker_count != 1) return false;
      const WalkerDesc& walker = program_.walkers()[facts(pc).first_walker];
      if (walker.atomic != 0 || walker.interleaved_rows != 1) return false;
    }
    return true;
  }

  /// Notes the layouts of the walkers that an instruction may run.
  void note_walkers(const InstFacts& walk) {
    for (const WalkerDesc& desc : program_.walkers().subspan(walk.first_walker, walk.walker_count))
      note_layout(program_.groups()[desc.group].layout);
  }

  void note_layout(Layout layout) {
    (takes_codes(layout) ? reads_codes_ : reads_values_) = true;
    for (std::uint32_t i = 0; i < layout_count_; ++i)
      if (layouts_[i] == layout) return;
    if (layout_count_ < layouts_.size()) layouts_[layout_count_++] = layout;
  }

  /// Finds the kernel for the phase's trees: each of a device's kernels walks one layout.
  Result<void> choose_kernel() {
    if (layout_count_ == 1) phase_.layout = layouts_[0];
    if (limits_.kernels.empty() || phase_.of_kinds) return {};
    if (layout_count_ > 1)
      return refused("schedule",
                     "a launch walks trees of layouts {} and {}, a kernel those of one: give all "
                     "trees one layout",
                     name_of(layouts_[0]), name_of(layouts_[1]));
    std::string others;
    for (const LayoutKernel& kernel : limits_.kernels) {
      if (!phase_.layout || kernel.layout == *phase_.layout) {
        most_threads_ = std::min(most_threads_, kernel.threads);
        return {};
      }
      others += formatted("{}{}", others.empty() ? "" : ", ", name_of(kernel.layout));
    }
    return refused("schedule", "trees of layout {}, for which the device has no kernel: it has those of {}",
                   name_of(*phase_.layout), others);
  }

  Result<void> check_extent() const {
    static constexpr const char* kNames[] = {"grid.x", "grid.y", "grid.z"};
    for (unsigned d = any_grid_ ? kGridDimensions : 0; d < kGridDimensions; ++d) {
      if (phase_.extent[d] > limits_.grid[d])
        return refused("schedule", "{} blocks in {}, the device takes at most {}", phase_.extent[d],
                       kNames[d], limits_.grid[d]);
      const std::uint64_t threads = std::uint64_t{phase_.extent[d]} * phase_.extent[d + kGridDimensions];
      if (threads > limits_.grid_threads)
        return refused("schedule", "{} threads in {}, the device takes at most {}", threads, kNames[d],
                       limits_.grid_threads);
    }
    std::uint64_t threads = 1;
    for (unsigned d = kGridDimensions; d < kDimensions && threads <= most_threads_; ++d)
      threads *= phase_.extent[d];
    if (threads > most_threads_)
      return refused("schedule", "blocks of {} threads, the device takes at most {}", threads, most_threads_);
    return {};
  }

  std::uint32_t take(std::uint64_t bytes) {
    const std::uint32_t offset = phase_.shared_bytes;
    phase_.shared_bytes += static_cast<std::uint32_t>(bytes);
    return offset;
  }

  /// Returns the offset in shared memory of rows or trees to be cached.
  Result<std::uint32_t> allocate_cache(std::uint32_t range, const char* what, const char* how,
                                       std::uint64_t needed) {
    const std::uint64_t bytes = aligned(needed);
    if (ranges_[range].varies)
      return refused("schedule",
                     "the {} to be cached differ among the threads of a block, which share its "
                     "memory: cache a loop outside those that are mapped to the block",
                     what);
    if (phase_.shared_bytes + bytes > shared_bytes_)
      return too_much(formatted("the cached {}{}", what, how), bytes);
    return take(bytes);
  }

  /// Returns what is kept in shared memory of rows cached at `pc`:
  /// - values, if a walk reads values;
  /// - copies of codes, if walks read codes and all of them were made before;
  /// - codes made there, if only this phase reads codes and it makes codes of no other rows;
  /// - otherwise nothing. That includes a cache inside a cache of codes, which lie in shared memory already.
  std::optional<StagedAs> staged_as(std::uint32_t pc, bool codes_elsewhere) const {
    if (reads_values_) return StagedAs::Values;
    if (!reads_codes_) return std::nullopt;
    const auto are_before = [pc](const CodesMade& encode) { return encode.pc < pc; };
    if (codes_in_shared_) return std::nullopt;
    if (std::ranges::all_of(encodes_, are_before)) return StagedAs::Codes;
    const auto are_of_these = [pc](const CodesMade& encode) { return encode.cached_at == pc; };
    if (!codes_elsewhere && std::ranges::all_of(encodes_, are_of_these)) return StagedAs::EncodedCodes;
    return std::nullopt;
  }

  Result<void> allocate_rows(std::uint32_t pc, bool codes_elsewhere) {
    LinkedInst& inst = phase_.code[pc];
    const std::uint32_t range = facts(pc).rows, rows = size(range);
    const std::optional<StagedAs> as = staged_as(pc, codes_elsewhere);
    if (!as) return {};
    const std::uint32_t width = as == StagedAs::Values
                                    ? row_width(program_.meta())
                                    : static_cast<std::uint32_t>(program_.columns().size());
    const StagedPlaces places =
        as == StagedAs::Values ? staged_values(rows, width, phase_.threads()) : staged_codes(rows, width);
    FVM_ASSIGN(const std::uint32_t offset,
               allocate_cache(range, "rows", "", places.words * sizeof(std::uint32_t)));
    set_linked<Op::CacheRows, Staged>(inst, static_cast<std::uint32_t>(*as));
    set_linked<Op::CacheRows, RowBits>(inst,
                                       static_cast<std::uint32_t>(std::bit_width(std::bit_ceil(rows)) - 1));
    set_linked<Op::CacheRows, Offset>(inst, offset);
    set_linked<Op::CacheRows, Stride>(inst, places.stride);
    set_linked<Op::CacheRows, Pitch>(inst, places.pitch * std::uint32_t{sizeof(std::uint32_t)});
    if (as != StagedAs::EncodedCodes) return {};
    codes_in_shared_ = true;
    for (const CodesMade& encode : encodes_) {
      set_linked<Op::Encode, Offset>(phase_.code[encode.pc], offset);
      set_linked<Op::Encode, Stride>(phase_.code[encode.pc], places.stride);
    }
    return {};
  }

  Result<void> allocate_trees(std::uint32_t pc, std::uint32_t which) {
    LinkedInst& inst = phase_.code[pc];
    const std::uint32_t range = facts(pc).trees;
    const std::optional<LoopOperands>& loop = tree_loops_[which];
    if (which == kStagedTrees)
      return refused("schedule", "trees of more than {} groups are to be cached at once", kStagedTrees);
    const GroupDesc& group = program_.groups()[linked<Op::CacheTrees, Group>(inst)];
    if (const std::uint64_t bytes = group.node_count * node_size(group.layout); bytes > INT32_MAX)
      return refused("schedule",
                     "trees of a group of {} bytes are to be cached: their offsets in it take 31 bits",
                     bytes);
    const std::uint32_t distance = linked<Op::CacheTrees, Ahead>(inst);
    if (distance > 1)
      return refused("schedule",
                     "trees are to be cached {} iterations ahead: a block has buffers for the current "
                     "one and the next",
                     distance);
    LaunchCopy& copy = phase_.copies[phase_.copy_count++];
    copy.ahead = distance != 0 && loop.has_value();
    if (copy.ahead) {
      copy.in = loop->in;
      copy.step = loop->step;
    }
    copy.bulk = !interleaves_trees(group.layout);
    const std::uint64_t buffer = aligned(most_tree_bytes(linked<Op::CacheTrees, Group>(inst), size(range)));
    const std::uint64_t buffers = buffer * (copy.ahead ? 2 : 1);
    FVM_ASSIGN(copy.offset,
               allocate_cache(range, "trees", copy.ahead ? ", those of an iteration and of the next," : "",
                              buffers + (copy.bulk ? 2 * kBulkBarrierBytes : 0)));
    copy.buffer_bytes = static_cast<std::uint32_t>(buffer);
    copy.barriers = copy.offset + static_cast<std::uint32_t>(buffers);
    set_linked<Op::CacheTrees, Copy>(inst, which);
    return {};
  }

  /// Returns the most bytes that the nodes of `count` consecutive trees of a group take, with the bytes that
  /// a copy brings before them.
  std::uint64_t most_tree_bytes(std::uint32_t number, std::uint32_t count) const {
    const GroupDesc& group = program_.groups()[number];
    const auto trees = trees_of(program_, group);
    count = std::min(count, static_cast<std::uint32_t>(trees.size()));
    std::uint64_t nodes = 0, most = 0;
    for (std::size_t t = 0; t < trees.size(); ++t) {
      nodes += trees[t].node_count;
      if (t >= count) nodes -= trees[t - count].node_count;
      most = std::max(most, nodes);
    }
    return most * node_size(group.layout) + kCopyAlignment - 4;
  }

  const Program& program_;
  const CodeMap& map_;
  const DeviceLimits& limits_;
  std::uint32_t shared_bytes_;  ///< most bytes of shared memory of a block
  const ExplainSizes& sizes_;
  OutputKind output_;
  bool any_grid_;  ///< LinkRequest::any_grid
  std::uint32_t pass_rows_;
  std::uint32_t rows_;  ///< rows of the call, or of a block if it shares them among threads of no loop
  LinkedPhase phase_;
  std::vector<RangeInPhase> ranges_;       ///< indexed as CodeMap::ranges
  std::uint32_t block_range_ = kCallRows;  ///< range that register LinkedPhase::block_rows holds
  /// loop_over() of the trees of each CacheTrees, in the order of the code.
  std::vector<std::optional<LoopOperands>> tree_loops_;
  std::vector<std::uint32_t> open_;  ///< pcs of the loops around the instruction that is measured
  std::uint32_t most_threads_;       ///< most threads of a block
  std::array<Layout, 2> layouts_{};  ///< layouts of the trees that the phase walks: the first two
  std::uint32_t layout_count_ = 0;   ///< number of layouts_
  std::bitset<kAccumulators> used_, shared_, handed_over_;
  bool reads_values_ = false, reads_codes_ = false;
  struct CodesMade {
    std::uint32_t pc;
    std::optional<std::uint32_t> cached_at;  ///< RangeInPhase::cached_at of its rows
  };
  std::list<CodesMade> encodes_;
  std::size_t workspace_bytes_ = 0;
  bool codes_in_shared_ = false;  ///< true once a cache has the codes made in shared memory
};

}  // namespace forestvm::kernels
