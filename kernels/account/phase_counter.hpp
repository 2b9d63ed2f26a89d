// Counts what a phase of a call asks of a GPU: see accounting.hpp. The code of the phase is followed once with the
// sizes of its ranges. All chunks of rows but the last cost the same, so that a loop over rows is followed for two of
// its iterations; a loop over trees is followed iteration by iteration.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/gpu_banks.hpp>
#include <forestvm/internal/gpu_costs.hpp>

#include "kernels/account/accounting.hpp"
#include "kernels/backend/predictor.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels::counting {

using enum LinkedField;

inline constexpr double kNever = std::numeric_limits<double>::infinity();
struct WalkCost;

#define FVM_INSTRUCTIONS(name, instructions) inline constexpr double name = instructions;
#include "kernels/account/instruction_costs.def"

/// Instructions that known code (kernels/device/known_block.hpp) issues for what interpreted code issues 1 for, for
/// each of gpu_costs::Sums: of all but visits of nodes, further outputs and leaves that are added in order. It has no
/// instructions to begin, round and store sums, which are counted for interpreted code only.
inline constexpr double kKnownParts[gpu_costs::kSums] = {0.26, 0.28, 0.27};

/// The rows or trees that a range register holds in an iteration. The CodeMap has bounds for all iterations together.
/// Costs differ by iteration, so this file follows each one.
struct Chunk {
  Range range;
  double block_rows = 0;   ///< Rows that all threads of a block hold together.
  bool of_thread = false;  ///< true if the rows are a thread's own; otherwise the block's threads share them
};

/// The number of times that something happens in a launch.
struct Repeats {
  double threads = 1;  ///< how often each thread does its own part
  double blocks = 1;   ///< how often a block does what it does once for all its rows
  double serial = 1;   ///< how often the busiest thread of a block does its own part
};

/// Counts what a phase asks of a GPU. Its walks are counted in phase_walks.cpp.
class PhaseCounter {
 public:
  PhaseCounter(const Linker& linker, const LinkRequest& request, const DeviceModel& device,
               const gpu_costs::Kernels& kernels, const LinkedPhase& phase, double value_bytes)
      : program_(linker.program()),
        map_(linker.map()),
        request_(request),
        device_(device),
        kernels_(kernels),
        phase_(phase),
        leaf_value_bytes_(value_bytes) {
    const double block_rows = phase.rows_per_block != 0 ? phase.rows_per_block : request.rows;
    chunks_[kRowsRegister] = {{0, request.rows}, std::min<double>(block_rows, request.rows)};
    if (phase.block_rows == kRowsRegister) block_rows_ = chunks_[kRowsRegister].block_rows;
    chunks_[kTreesRegister] = {{0, program_.meta().num_trees}};
    threads_are_mapped_ = std::any_of(phase.code.begin(), phase.code.end(), [](const LinkedInst& inst) {
      return inst.op == Op::Map && linked<Op::Map, Dimension>(inst) >= kGridDimensions;
    });
  }

  PhaseAccount run() {
    Repeats repeats;
    if (phase_.rows_per_block != 0) repeats.blocks = phase_.extent[0];
    const gpu_costs::Sums sums = sums_of_code();
    known_ = phase_.known.code != KnownCode::None;
    const gpu_costs::CodeCosts& code = gpu_costs::code_costs(kernels_, sums, known_, phase_.joins);
    wait(BlockPart::Code, repeats, gpu_costs::block_latency(code, warps()));
    account_.blocks.code = warps() * gpu_costs::warp_passing(code);
    if (known_) part_ = kKnownParts[static_cast<std::size_t>(sums)];
    sharing_ = phase_.threads();
    issue(repeats, kStart);
    if (known_ && program_.meta().num_outputs != 1)
      issue(repeats, as_many(kKnownElements + (sums == gpu_costs::Sums::Leaves ? 0 : kKnownSums)));
    count(0, static_cast<std::uint32_t>(phase_.code.size()), repeats);
    const ArchitectureInfo& sm = info(device_.architecture);
    account_.extent = phase_.extent;
    account_.threads = phase_.threads();
    account_.shared_bytes = phase_.shared_bytes;
    for (const Layout layout : account_.layouts)
      account_.registers = std::max(account_.registers, registers_of(layout, device_.architecture));
    if (account_.layouts.empty())  // any kernel can run it
      account_.registers = registers_of(Layout::Array, device_.architecture);
    account_.occupancy =
        occupancy(device_.architecture, account_.threads, account_.shared_bytes, account_.registers);
    if (reads_values_) account_.bytes.rows += row_bytes() * request_.rows;
    if (reads_codes_) account_.bytes.rows += code_row_bytes() * request_.rows;
    set_rates(sm);
    set_time();
    per_row();
    return account_;
  }

 private:
  double row_bytes() const { return row_width(program_.meta()) * double{sizeof(float)}; }
  double code_row_bytes() const { return static_cast<double>(program_.columns().size()); }

  /// Returns the range that the register in a field of an instruction holds.
  template <Op op, LinkedField field>
  const Range& range(const LinkedInst& inst) const {
    return chunks_[linked<op, field>(inst)].range;
  }

  void count(std::uint32_t pc, std::uint32_t end, const Repeats& repeats) {
    for (; pc < end; ++pc) {
      const LinkedInst& inst = phase_.code[pc];
      switch (inst.op) {
        case Op::For:
          issue(repeats, kOther);
          pc = count_loop({loop_operands<Op::For>(inst)}, pc, repeats);
          break;
        case Op::Map:
          pc = count_loop({loop_operands<Op::Map>(inst), linked<Op::Map, Dimension>(inst)}, pc, repeats);
          break;
        case Op::Slice:
          issue(repeats, kOther);
          take_slice(inst);
          break;
        case Op::CacheRows:
          cache_rows(inst, repeats);
          break;
        case Op::CacheTrees:
          cache_trees(inst, repeats);
          break;
        case Op::Walk:
          walk(inst, repeats);
          break;
        case Op::Leaves:
          leaves(inst, repeats);
          break;
        case Op::Encode:
          encode(inst, repeats);
          break;
        case Op::Store:
          store(inst, repeats);
          break;
        case Op::Label:
          label(inst, repeats);
          break;
        case Op::Init:
          if (known_) break;
          issue_sums<Op::Init>(inst, repeats);
          add_sums<Op::Init, AccOut>(inst, repeats);
          break;
        case Op::Zero:
          issue_sums<Op::Zero>(inst, repeats);
          add_sums<Op::Zero, AccOut>(inst, repeats);
          break;
        case Op::Privatize:
          privatize(inst, repeats);
          break;
        case Op::AddBase:
          issue_sums<Op::AddBase>(inst, repeats);
          add_sums<Op::AddBase, AccOut>(inst, repeats, 2);
          break;
        case Op::Transform:
          issue_sums<Op::Transform>(inst, repeats);
          add_sums<Op::Transform, AccOut>(inst, repeats, 2);
          break;
        case Op::ReduceDim:
          reduce(reduction_fields<Op::ReduceDim>(inst), repeats, 2);
          break;
        case Op::ReduceInplace:
          reduce(reduction_fields<Op::ReduceInplace>(inst), repeats, 1);
          break;
        case Op::Round:
          if (known_) break;
          issue(repeats, kRound);
          add_sums<Op::Round, AccIn>(inst, repeats);
          add_sums<Op::Round, AccOut>(inst, repeats);
          break;
        case Op::SumTrees:
          sum_trees(inst, repeats);
          break;
        case Op::Halt:  // counted with the start
        case Op::End:   // counted with its loop
        case Op::Par:   // phases contain neither this opcode nor those below
        case Op::When:
        case Op::Unless:
        case Op::Plan:
        case Op::On:
        case Op::Explain:
        case Op::StoreTrees:
        case Op::StoreStages:
        case Op::Attribute:
        case Op::Quantiles:
          break;
      }
    }
  }

  /// A loop, and the dimension of the launch to which it is mapped; none: it is serial.
  struct Loop {
    LoopOperands operands;
    std::optional<std::uint32_t> dimension = std::nullopt;

    bool in_block() const { return dimension && *dimension >= kGridDimensions; }
  };

  /// Counts the loop's iterations, and returns the pc of its end.
  std::uint32_t count_loop(const Loop& loop, std::uint32_t pc, const Repeats& repeats) {
    const double sharing = sharing_;
    if (loop.in_block()) sharing_ /= phase_.extent[*loop.dimension];
    if (map_.ranges[map_.insts[phase_.pcs[pc]].out].axis == Axis::Rows)
      count_rows(loop, pc, repeats);
    else
      count_trees(loop, pc, repeats);
    sharing_ = sharing;
    const LinkedInst& end = phase_.code[loop.operands.partner];
    if (end.op == Op::End && linked<Op::End, Joined>(end) != 0) {
      issue(repeats, kJoin);
      wait(BlockPart::Sums, repeats, gpu_costs::kJoinLatency);
      joined_ = phase_.extent[*loop.dimension];
    }
    return loop.operands.partner;
  }

  /// Counts the iterations over rows: the first one for all that have as many rows, and a shorter last one.
  void count_rows(const Loop& counted, std::uint32_t pc, Repeats repeats) {
    const LoopOperands& loop = counted.operands;
    const Chunk in = chunks_[loop.in];
    const bool shared_out = counted.in_block();
    const auto count_chunk = [&](std::uint32_t iteration, std::uint32_t often) {
      const Range rows = chunk(in.range, loop.step, iteration);
      const double part = in.block_rows * rows.size() / in.range.size();
      chunks_[loop.out] = {rows, shared_out ? in.block_rows : part, in.of_thread || shared_out};
      if (loop.out == phase_.block_rows) block_rows_ = std::max(block_rows_, part);
      const double serial = counted.dimension ? 1 : often;
      Repeats inside{repeats.threads * often, shared_out ? repeats.blocks : repeats.blocks * often,
                     repeats.serial * serial};
      issue_loop(counted, inside);
      count(pc + 1, loop.partner, inside);
      if (shared_out) repeats.blocks = 0;         // the rows of the whole block have been counted
      if (counted.dimension) repeats.serial = 0;  // the busiest thread has the first iteration
    };
    const std::uint32_t whole = in.range.size() / loop.step;
    if (whole != 0) count_chunk(0, whole);
    if (in.range.size() % loop.step != 0) count_chunk(whole, 1);
  }

  void count_trees(const Loop& counted, std::uint32_t pc, Repeats repeats) {
    const LoopOperands& loop = counted.operands;
    const Range in = chunks_[loop.in].range;
    const bool across = trees_across_lanes_;
    if (counted.dimension == kGridDimensions) trees_across_lanes_ = true;
    for (std::uint32_t iteration = 0; iteration < iterations(in.size(), loop.step); ++iteration) {
      chunks_[loop.out] = {chunk(in, loop.step, iteration)};
      issue_loop(counted, repeats);
      count(pc + 1, loop.partner, repeats);
      if (counted.dimension) repeats.serial = 0;
    }
    trees_across_lanes_ = across;
  }

  /// Adds instructions that the busiest warp of a block issues, in the mean of the blocks. Where blocks have joined,
  /// one of them goes on.
  void issue(const Repeats& repeats, double instructions) {
    account_.warp_instructions += repeats.serial * part_ * instructions / joined_;
  }

  /// Adds clocks for which a block waits.
  void wait(BlockPart part, const Repeats& repeats, double clocks) {
    account_.parts[static_cast<std::size_t>(part)].latency += repeats.serial * clocks;
    account_.blocks.latency += repeats.serial * clocks;
  }

  /// Adds clocks in which the loads of a block pass.
  void pass(BlockPart part, const Repeats& repeats, double clocks) {
    account_.parts[static_cast<std::size_t>(part)].passing += repeats.serial * clocks;
    account_.blocks.passing += repeats.serial * clocks;
  }

  /// Returns what issue() takes for instructions of which known code issues as many as interpreted code.
  double as_many(double instructions) const { return instructions / part_; }

  /// Adds the instructions of an iteration of a loop, and of its end unless the phase ends there.
  void issue_loop(const Loop& loop, const Repeats& repeats) {
    if (!loop.dimension) return issue(repeats, kOther + kIteration);
    issue(repeats, kOther + (loop.in_block() ? kBlockMap : kGridMap));
    if (phase_.code[loop.operands.partner].op == Op::End)
      issue(repeats, kOther + (loop.in_block() ? kEndOfBlockMap : kEndOfGridMap));
  }

  /// Returns the rows that each thread of a warp takes, or elements if a row has several that threads share, in the
  /// mean of the block's warps.
  double rows_of_warp(const Chunk& rows, double elements = 1) const {
    const double all = rows.range.size() * elements;
    if (rows.of_thread) return all;
    if (sharing_ < phase_.threads()) return std::ceil(all / sharing_);
    const double lanes = std::min<double>(kBanks, phase_.threads());
    return std::ceil(all / lanes) / warps();
  }

  double warps() const { return std::ceil(phase_.threads() / double{kBanks}); }

  double width_of(std::uint32_t accumulator) const {
    return static_cast<double>(map_.accumulators[accumulator].width);
  }

  bool is_float32(std::uint32_t accumulator) const {
    return program_.accumulators()[accumulator].kind == AccumulatorKind::F32;
  }

  void take_slice(const LinkedInst& inst) {
    const Chunk in = chunks_[linked<Op::Slice, RangeIn>(inst)];
    const Range part = slice(in.range, linked<Op::Slice, From>(inst), linked<Op::Slice, To>(inst));
    const double block_rows = part.size() == 0 ? 0 : in.block_rows * part.size() / in.range.size();
    chunks_[linked<Op::Slice, RangeOut>(inst)] = {part, block_rows, in.of_thread};
  }

  void cache_rows(const LinkedInst& inst, const Repeats& repeats) {
    staged_stride_ = linked<Op::CacheRows, Stride>(inst);
    staged_as_ = static_cast<StagedAs>(linked<Op::CacheRows, Staged>(inst));
    issue(repeats, staged_as_ == StagedAs::EncodedCodes ? kOther : kStage);
    if (staged_stride_ == 0 || staged_as_ == StagedAs::EncodedCodes) return;
    const double bytes = staged_as_ == StagedAs::Values ? row_bytes() : code_row_bytes();
    const Chunk& rows = chunks_[linked<Op::CacheRows, Rows>(inst)];
    const double width = staged_as_ == StagedAs::Values ? row_width(program_.meta()) : code_row_bytes();
    const bool by_fours = staged_as_ == StagedAs::Values && std::fmod(width, 4) == 0;
    const double copies = std::ceil(rows.block_rows * width / (by_fours ? 4 : 1) / phase_.threads());
    issue(repeats, copies * (by_fours ? kStageValues : kStageValue));
    const bool whole = staged_as_ == StagedAs::Values && staged_stride_ == 1;
    const gpu_costs::Copying copying =
        gpu_costs::copying(kernels_, rows.block_rows * width * sizeof(float), phase_.threads(), whole);
    wait(BlockPart::Copies, repeats, copying.latency);
    pass(BlockPart::Copies, repeats, copying.passing);
    account_.bytes.rows += repeats.blocks * chunks_[linked<Op::CacheRows, Rows>(inst)].block_rows * bytes;
  }

  void cache_trees(const LinkedInst& inst, const Repeats& repeats) {
    const std::uint32_t number = linked<Op::CacheTrees, Group>(inst);
    const GroupDesc& group = program_.groups()[number];
    const Range& trees = range<Op::CacheTrees, Trees>(inst);
    double bytes = 0;
    for_trees(group, trees, [&](const TreeDesc& tree) {
      bytes += static_cast<double>(tree.node_count) * static_cast<double>(node_size(group.layout));
    });
    account_.bytes.nodes += repeats.blocks * bytes;
    issue(repeats, kStage + std::ceil(bytes / 16 / phase_.threads()) * kStageNodes);
    const double copying = bytes / gpu_costs::kL2Bytes;
    wait(BlockPart::Copies, repeats, gpu_costs::kStageLatency + copying);
    pass(BlockPart::Copies, repeats, copying);
    staged_groups_.resize(program_.groups().size());
    staged_groups_[number] = true;
  }

  template <class Visit>
  void for_trees(const GroupDesc& group, const Range& trees, Visit visit) const {
    const std::uint32_t begin = std::max(trees.begin, group.tree_begin);
    const std::uint32_t end = std::min(trees.end, group.tree_end);
    for (std::uint32_t t = begin; t < end; ++t)
      visit(program_.trees()[group.first_tree + (t - group.tree_begin)]);
  }

  // phase_walks.cpp defines these.
  gpu_costs::Sums sums_of_code() const;
  void walk(const LinkedInst& inst, const Repeats& repeats);
  void leaves(const LinkedInst& inst, const Repeats& repeats);

  /// Says where walks deliver leaves.
  struct Leaves {
    bool adds = false;  ///< they are added to float32 sums of the thread
    bool sums = false;  ///< they are added to sums, otherwise stored
    bool wide = false;  ///< they are not delivered by their values
  };

  /// The walks of a thread: how many there are, and how many go in lockstep.
  struct Tiles {
    double walks;
    std::uint32_t together;
  };

  void visit_nodes(const WalkerDesc& walker, const Range& trees, const Chunk& rows, const Repeats& repeats,
                   const Leaves& leaves);
  static Tiles tiles_of(const WalkerDesc& walker, const GroupDesc& group, double trees, double rows,
                        bool staged_row, const Leaves& leaves);
  void time_walks(const GroupDesc& group, const Tiles& tiles, bool staged_row, bool coded,
                  const Repeats& repeats);
  void issue_walks(const WalkerDesc& walker, const GroupDesc& group, const Tiles& tiles, double of_visit,
                   const Repeats& repeats, const Leaves& leaves);
  void keep_leaves(std::uint32_t accumulator, const Range& trees, const Chunk& rows, const Repeats& repeats);
  void sum_trees(const LinkedInst& inst, const Repeats& repeats);
  double node_wavefronts(const WalkCost& cost) const;
  double value_wavefronts() const;

  bool in_shared_memory(std::uint32_t accumulator) const {
    return phase_.accumulators[map_.accumulators[accumulator].storage].shared;
  }

  double walking_warps() const { return std::ceil(walking_threads() / kBanks); }

  /// Returns the number of threads of a block that walk. If no loop is mapped to threads, they share the block's
  /// rows, so that no more threads walk than there are rows.
  double walking_threads() const {
    return threads_are_mapped_ ? phase_.threads() : std::clamp<double>(block_rows_, 1, phase_.threads());
  }

  /// Returns the number of different rows that the lanes of a warp hold; lanes of one row walk different trees.
  double rows_across_lanes() const {
    return trees_across_lanes_
               ? 1
               : std::min({double{kBanks}, walking_threads(), double{1} * phase_.extent[kGridDimensions]});
  }

  /// Returns the instructions of encoding a row.
  double encoding_instructions() const {
    double instructions = code_row_bytes() * kEncodeColumn;
    for (const EncodedFeature& feature : program_.encoded_features())
      instructions += kEncodeValue + std::ceil(std::log2(1 + feature.threshold_count)) * kEncodeLevel;
    return instructions;
  }

  void encode(const LinkedInst& inst, const Repeats& repeats) {
    const double rows = repeats.threads * range<Op::Encode, Rows>(inst).size();
    const Chunk& own = chunks_[linked<Op::Encode, Rows>(inst)];
    issue(repeats, kOther + rows_of_warp(own) * encoding_instructions());
    double latency = 0, passing = 0;  // of encoding a row of each lane
    for (const EncodedFeature& feature : program_.encoded_features()) {
      latency += gpu_costs::rank_latency(feature.threshold_count);
      passing += gpu_costs::rank_passing(feature.threshold_count);
    }
    wait(BlockPart::Copies, repeats, std::ceil(rows_of_warp(own)) * latency);
    // A thread loads the values of its rows by four bytes, one after the other.
    const double bytes = own.block_rows * row_bytes();
    pass(BlockPart::Copies, repeats,
         std::ceil(own.block_rows / kBanks) * passing +
             gpu_costs::copying(gpu_costs::kTimedKernels, bytes, phase_.threads(), false).passing);
    account_.bytes.rows +=
        rows * (row_bytes() + (linked<Op::Encode, Stride>(inst) != 0 ? 0 : code_row_bytes()));
  }

  void store(const LinkedInst& inst, const Repeats& repeats) {
    const double rows = repeats.threads * range<Op::Store, Rows>(inst).size();
    const double width = output_width(program_, request_.output);
    const double element = program_.meta().score_type == ScalarType::Float64 ? sizeof(double) : sizeof(float);
    account_.bytes.results += rows * width * element;
    if (known_) return;
    issue_store(repeats, chunks_[linked<Op::Store, Rows>(inst)], width);
    add_sums(linked<Op::Store, AccIn>(inst), rows * width);
  }

  void label(const LinkedInst& inst, const Repeats& repeats) {
    const double rows = repeats.threads * range<Op::Label, Rows>(inst).size();
    account_.bytes.results += rows * output_width(program_, OutputKind::Class) * sizeof(std::int64_t);
    issue_store(repeats, chunks_[linked<Op::Label, Rows>(inst)], program_.meta().num_outputs);
    add_sums(linked<Op::Label, AccIn>(inst), rows * program_.meta().num_outputs);
  }

  void issue_store(const Repeats& repeats, const Chunk& rows, double width) {
    issue(repeats, kStore + rows_of_warp(rows) * (kStoreRow + as_many((width - 1) * kMoreOfSum)));
  }

  template <Op op>
  void issue_sums(const LinkedInst& inst, const Repeats& repeats) {
    const std::uint32_t accumulator = linked<op, AccOut>(inst);
    const double of_row = kSum + as_many((width_of(accumulator) - 1) * kMoreOfSum);
    issue(repeats, kSums + (is_float32(accumulator) ? 0 : kOtherSums) +
                       rows_of_warp(chunks_[linked<op, Rows>(inst)]) * of_row);
  }

  /// Adds the bytes of elements that are read or written, if the accumulator lies in global memory.
  void add_sums(std::uint32_t accumulator, double elements) {
    const std::uint32_t storage = map_.accumulators[accumulator].storage;
    if (phase_.accumulators[storage].shared) return;
    account_.bytes.sums +=
        elements * static_cast<double>(element_size(program_.accumulators()[accumulator].kind));
  }

  double elements(std::uint32_t accumulator, std::uint32_t rows, const Repeats& repeats) const {
    return repeats.threads * chunks_[rows].range.size() * width_of(accumulator);
  }

  /// Adds the elements of an instruction's rows in an accumulator, `often` times.
  template <Op op, LinkedField field>
  void add_sums(const LinkedInst& inst, const Repeats& repeats, double often = 1) {
    const std::uint32_t accumulator = linked<op, field>(inst);
    add_sums(accumulator, often * elements(accumulator, linked<op, Rows>(inst), repeats));
  }

  void privatize(const LinkedInst& inst, const Repeats& repeats) {
    const std::uint32_t to = linked<Op::Privatize, AccOut>(inst);
    const double of_row = kPrivateSum + as_many((width_of(to) - 1) * kMoreOfSum);
    if (known_) return;
    if (linked<Op::Privatize, Zeroed>(inst) != 0 || map_.accumulators[to].storage != to)
      return issue(repeats, kPrivatize);
    const double rows = rows_of_warp(chunks_[linked<Op::Privatize, Rows>(inst)]);
    issue(repeats, kPrivatize + (is_float32(to) ? 0 : kOtherSums) + rows * of_row);
    add_sums<Op::Privatize, AccOut>(inst, repeats);
  }

  /// Adds the elements of the copies once, and the elements of the sums `often` times.
  void reduce(const ReductionFields& reduction, const Repeats& repeats, double often) {
    const double sums = elements(reduction.to, reduction.rows, repeats);
    const double copies = iterations(chunks_[reduction.reduced].range.size(), reduction.step);
    const double of_block = chunks_[reduction.rows].range.size() * width_of(reduction.to);
    const bool float32 = is_float32(reduction.to);
    const bool any_order = !float32 || program_.meta().contract == Contract::Fast;
    const double of_sum = any_order && gpu_costs::adds_by_warps(of_block, copies, phase_.threads())
                              ? of_block / warps() * (kReduceSum + (float32 ? 0 : kReduceOther))
                              : std::ceil(of_block / phase_.threads()) * (kReduceSum + copies * kReduceCopy);
    issue(repeats, kReduce + of_sum);
    wait(BlockPart::Sums, repeats,
         gpu_costs::reduce_latency(of_block, copies, phase_.threads(), any_order,
                                   in_shared_memory(reduction.from)));
    add_sums(reduction.from, sums * iterations(chunks_[reduction.reduced].range.size(), reduction.step));
    if (!known_) add_sums(reduction.to, often * sums);
  }

  void set_rates(const ArchitectureInfo& sm) {
    const double rows = request_.rows, threads = walking_threads();
    const double warps = std::ceil(threads / sm.lanes);
    const double blocks = double{1} * phase_.extent[0] * phase_.extent[1] * phase_.extent[2];
    // Warps of the busy SMs, in all their clocks, as if all lanes walked.
    const double busy = device_.clock_mhz * 1e6 * std::min<double>(device_.sms, blocks);
    const double clocks = busy * threads / warps;
    const double halves =
        sm.lanes / double{kBanks};  // the banks serve a warp of 64 in two wavefronts at least
    const auto rate = [&](double work) { return work == 0 ? kNever : clocks * rows / work; };
    const double issued =
        blocks * std::ceil(phase_.threads() / double{1} / sm.lanes) * account_.warp_instructions;
    account_.rates.issue = issued == 0 ? kNever : busy * rows * sm.issue / issued;
    account_.rates.load = rate(account_.wavefronts * halves);
    const bool in_l2 = static_cast<double>(program_.nodes().size()) <= device_.l2_mib * 0x1p20;
    const RowBytes& bytes = account_.bytes;
    const double moved = bytes.rows + bytes.results + bytes.sums + (in_l2 ? 0 : bytes.nodes);
    account_.rates.memory = moved == 0 ? kNever : device_.memory_gbs * 1e9 * rows / moved;
    account_.rates.bus = kNever;
  }

  /// Sets the time that launches of the phase are estimated to take.
  void set_time() {
    gpu_costs::Blocks& blocks = account_.blocks;
    blocks.count = double{1} * phase_.extent[0] * phase_.extent[1] * phase_.extent[2];
    blocks.resident = std::max(1u, account_.occupancy.blocks);
    account_.clocks = gpu_costs::clocks(blocks, device_.sms);
    const double rows = request_.rows;
    const double in_memory = account_.rates.memory == kNever ? 0 : rows / account_.rates.memory;
    account_.lanes = (account_.visits == 0 ? phase_.threads() : walking_threads()) / warps();
    account_.seconds = std::max(account_.clocks / (device_.clock_mhz * 1e6), in_memory);
  }

  void per_row() {
    if (account_.visits != 0) {
      account_.wavefronts /= account_.visits;
    }
    const double rows = std::max(1u, request_.rows);
    for (double* const sum : {&account_.visits, &account_.bytes.rows, &account_.bytes.nodes,
                              &account_.bytes.results, &account_.bytes.sums})
      *sum /= rows;
  }

  const Program& program_;
  const CodeMap& map_;
  const LinkRequest& request_;
  const DeviceModel& device_;
  const gpu_costs::Kernels& kernels_;
  const LinkedPhase& phase_;
  double leaf_value_bytes_;  ///< Bytes of a row's values that functions of leaves read.
  PhaseAccount account_;
  Chunk chunks_[kRangeRegisters];
  std::uint32_t staged_stride_ = 0;  ///< CacheRows' Stride of the rows in shared memory; 0: none are there
  StagedAs staged_as_ = StagedAs::Values;
  std::vector<bool> staged_groups_;
  double sharing_ =
      1;  ///< threads that share the rows of a block: no loop around is mapped to their dimensions
  double joined_ = 1;   ///< blocks of which one does what is counted
  bool known_ = false;  ///< true if the kernel knows the code
  double part_ = 1;     ///< instructions that the code issues for what interpreted code issues 1 for
  bool trees_across_lanes_ = false;
  bool threads_are_mapped_ = false;
  double block_rows_ = 0;                            ///< rows of a full block
  bool reads_values_ = false, reads_codes_ = false;  ///< true if walks read them from global memory
};

}  // namespace forestvm::kernels::counting
