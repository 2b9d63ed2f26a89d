// See cut_phases.hpp.
#include "kernels/link/cut_phases.hpp"

#include <algorithm>
#include <bitset>
#include <string>
#include <utility>

#include <forestvm/core/guards.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::kernels {
namespace {

bool on_grid(const LinkedInst& inst) {
  return inst.op == Op::Map && linked<Op::Map, LinkedField::Dimension>(inst) < kGridDimensions;
}

/// An instruction's part in phases.
enum class PhaseRole {
  End,       ///< Ends the program, or a block, and is added with the instruction that opens it.
  Loop,      ///< Opens a loop that threads run, together or each an iteration of its own.
  HostLoop,  ///< Opens a loop of the host, which no phase contains.
  Guard,     ///< Opens a block for some calls; cutting decides.
  Setting,   ///< Sets what later phases inside the same loops need. A launch of settings would do nothing.
  Effect,    ///< Does what launches are for.
  OfKinds,   ///< Is a phase of its own, or several.
  SettingWithEffect,
};

PhaseRole role_of(Op op) {
  switch (op) {
    case Op::Halt:
    case Op::End:
      return PhaseRole::End;
    case Op::For:
    case Op::Map:
      return PhaseRole::Loop;
    case Op::Par:
      return PhaseRole::HostLoop;
    case Op::When:
    case Op::Unless:
    case Op::Plan:
    case Op::On:
      return PhaseRole::Guard;
    case Op::Slice:
    case Op::CacheRows:
    case Op::CacheTrees:
      return PhaseRole::Setting;
    case Op::Privatize:
      return PhaseRole::SettingWithEffect;
    case Op::Init:
    case Op::Zero:
    case Op::AddBase:
    case Op::Walk:
    case Op::Leaves:
    case Op::ReduceDim:
    case Op::ReduceInplace:
    case Op::Round:
    case Op::SumTrees:
    case Op::Transform:
    case Op::Store:
    case Op::Label:
    case Op::Encode:
      return PhaseRole::Effect;
    case Op::Explain:
    case Op::StoreTrees:
    case Op::StoreStages:
    case Op::Attribute:
    case Op::Quantiles:
      return PhaseRole::OfKinds;
  }
  __builtin_unreachable();  // verified
}

bool has_effects(const LinkedInst& inst) {
  const PhaseRole role = role_of(inst.op);
  return role == PhaseRole::Effect || role == PhaseRole::SettingWithEffect;
}

/// An instruction and its pc in the program.
struct InstAt {
  LinkedInst inst;
  std::uint32_t pc;
};

class PhaseCutter {
 public:
  PhaseCutter(std::span<const Inst> code, const LinkRequest& request) : code_(code), request_(request) {}

  Result<std::vector<PhaseCode>> run() {
    FVM_TRY(add(0, static_cast<std::uint32_t>(code_.size())));
    flush();
    const auto is_mapped = [](const PhaseCode& phase) {
      return std::ranges::any_of(
          phase.code, [](const LinkedInst& inst) { return inst.op == Op::Map || is_of_kinds(inst.op); });
    };
    if (std::ranges::none_of(phases_, is_mapped))
      return refused("schedule",
                     "the plan of calls of {} rows maps no loop to a GPU, as others do: a program "
                     "runs on a GPU or on the host",
                     request_.plan_rows);
    return std::move(phases_);
  }

 private:
  Result<void> add(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t pc = begin; pc < end; ++pc) {
      const Inst& inst = code_[pc];
      switch (role_of(inst.op)) {
        case PhaseRole::End:
          break;
        case PhaseRole::Loop:
          FVM_TRY(add_loop(pc, loop_operands(inst).partner));
          pc = loop_operands(inst).partner;
          break;
        case PhaseRole::HostLoop:
          return refused(formatted("pc {}", pc), "a parallel loop of the host among loops mapped to a GPU");
        case PhaseRole::Guard: {
          const GuardedBlock block = guarded_block(inst, request_);
          if (block.is_taken) FVM_TRY(add(pc + 1, block.end));
          pc = block.end;
          break;
        }
        case PhaseRole::OfKinds:
          FVM_TRY(add_kind(inst, pc));
          break;
        case PhaseRole::Setting:
        case PhaseRole::Effect:
        case PhaseRole::SettingWithEffect:
          add_plain({resolved(inst), pc});
          break;
      }
    }
    return {};
  }

  /// Adds the phases of an instruction for the kernel of kinds, which has no loops and writes all rows.
  Result<void> add_kind(const Inst& inst, std::uint32_t pc) {
    const LinkedInst kept = keep_operands(inst);
    std::uint32_t rows = kRowsRegister;
    for_each_field(kept, [&](LinkedField field, std::uint32_t value) {
      if (field == LinkedField::Rows) rows = value;
    });
    const bool in_loop =
        depth_ != 0 || std::ranges::any_of(path_, [](const InstAt& at) { return on_grid(at.inst); });
    if (in_loop || rows != kRowsRegister)
      return refused(
          formatted("pc {}", pc),
          "{} for some of the rows, or inside a loop: a GPU runs it for all rows of a call at once",
          info(inst.op).text);
    flush();
    phases_.push_back({{kept, {Op::Halt, {}, {}}}, {pc, kNoPc}});
    if (inst.op != Op::Explain) return {};
    phases_.push_back(phases_.back());
    set_linked<Op::Explain, LinkedField::Part>(phases_.back().code[0],
                                               static_cast<std::uint32_t>(ExplainPart::Write));
    return {};
  }

  Result<void> add_loop(std::uint32_t pc, std::uint32_t close) {
    const InstAt loop{keep_operands(code_[pc]), pc};
    if (!on_grid(loop.inst)) return add_whole(loop, close);
    if (depth_ != 0)
      return refused(formatted("pc {}", pc),
                     "a loop mapped to the grid inside one that is not: a launch has one grid");
    if (joins_ == pc) {
      FVM_TRY(add_whole(loop, close));
      set_linked<Op::End, LinkedField::Joined>(run_.back().inst, 1);
      return {};
    }
    flush();
    const std::size_t outside = path_.size();
    path_.push_back(loop);
    joins_ = joining_loop(loop, close);
    FVM_TRY(add(pc + 1, close));
    flush();
    path_.resize(outside);
    return {};
  }

  /// Adds a loop, with all that it contains, to the phase that is being collected.
  Result<void> add_whole(const InstAt& loop, std::uint32_t close) {
    push(loop);
    ++depth_;
    FVM_TRY(add(loop.pc + 1, close));
    --depth_;
    push({keep_operands(code_[close]), close});
    return {};
  }

  /// Returns the pc of a loop over trees on grid.y, inside a loop over rows on grid.x, whose blocks can join at its
  /// end: one launch then does what is before it, in it and behind it. It must be the only loop inside that is mapped
  /// to the grid, and its blocks must not add to sums that each of them initializes. Returns kNoPc if there is none, or
  /// if blocks of grid.x are too many.
  std::uint32_t joining_loop(const InstAt& rows, std::uint32_t close) const {
    const LoopOperands operands = loop_operands<Op::Map>(rows.inst);
    if (dimension_of(rows.inst) != LaunchDimension::GridX || operands.in != kRowsRegister) return kNoPc;
    if (iterations(request_.rows, operands.step) > kMostJoined) return kNoPc;
    std::uint32_t found = kNoPc;
    for (std::uint32_t pc = rows.pc + 1; pc < close; ++pc) {
      if (role_of(code_[pc].op) != PhaseRole::Loop) continue;
      const LinkedInst inst = keep_operands(code_[pc]);
      if (on_grid(inst) && (found != kNoPc || dimension_of(inst) != LaunchDimension::GridY)) return kNoPc;
      if (on_grid(inst)) found = pc;
    }
    if (found == kNoPc) return kNoPc;
    const auto before = accumulators_of(rows.pc, found);
    return (before & accumulators_of(found, loop_operands(code_[found]).partner)).any() ? kNoPc : found;
  }

  static LaunchDimension dimension_of(const LinkedInst& map) {
    return static_cast<LaunchDimension>(linked<Op::Map, LinkedField::Dimension>(map));
  }

  /// Returns the accumulators that instructions [begin, end) name.
  std::bitset<kAccumulators> accumulators_of(std::uint32_t begin, std::uint32_t end) const {
    std::bitset<kAccumulators> found;
    for (std::uint32_t pc = begin; pc < end; ++pc)
      for_each_operand(code_[pc], [&](unsigned, OperandKind kind, std::uint32_t value) {
        if (kind == OperandKind::AccOut || kind == OperandKind::AccIn) found.set(value);
      });
    return found;
  }

  void add_plain(InstAt added) {
    push(added);
    LinkedInst& inst = added.inst;
    const PhaseRole role = role_of(inst.op);
    if (depth_ != 0 || (role != PhaseRole::Setting && role != PhaseRole::SettingWithEffect)) return;
    if (inst.op == Op::Privatize) set_linked<Op::Privatize, LinkedField::Zeroed>(inst, 1);
    path_.push_back(added);
  }

  void push(const InstAt& inst) {
    if (run_.empty()) before_run_ = path_;
    run_.push_back(inst);
  }

  /// Makes a phase of the instructions that have been collected, if it would do anything.
  void flush() {
    const std::vector<InstAt> run = std::exchange(run_, {});
    const auto holds = [](bool (*is)(const LinkedInst&)) {
      return [is](const InstAt& added) { return is(added.inst); };
    };
    if (std::ranges::none_of(run, holds(has_effects))) return;
    std::vector<InstAt> all = std::exchange(before_run_, {});
    const auto maps = std::ranges::count_if(all, holds(on_grid));
    for (const InstAt& added : run) all.push_back(added);
    for (std::ptrdiff_t i = 0; i < maps; ++i) all.push_back({{Op::End, {}, {}}, kNoPc});
    all.push_back({{Op::Halt, {}, {}}, kNoPc});
    PhaseCode& phase = phases_.emplace_back();
    for (const InstAt& added : all) {
      phase.code.push_back(added.inst);
      phase.pcs.push_back(added.pc);
    }
    set_partners(phase.code);
  }

  /// Returns the instruction with the registers and the step of the loop that it names by a pc.
  LinkedInst resolved(const Inst& inst) const {
    LinkedInst result = keep_operands(inst);
    switch (inst.op) {
      case Op::CacheRows:
        set_linked<Op::CacheRows, LinkedField::Rows>(
            result, loop_at(operand<Op::CacheRows, OperandKind::Loop>(inst)).out);
        break;
      case Op::CacheTrees:
        set_linked<Op::CacheTrees, LinkedField::Trees>(
            result, loop_at(operand<Op::CacheTrees, OperandKind::Loop>(inst)).out);
        break;
      case Op::ReduceDim:
        set_reduced<Op::ReduceDim>(result, loop_at(operand<Op::ReduceDim, OperandKind::Loop>(inst)));
        break;
      case Op::ReduceInplace:
        set_reduced<Op::ReduceInplace>(result, loop_at(operand<Op::ReduceInplace, OperandKind::Loop>(inst)));
        break;
      case Op::Halt:
      case Op::For:
      case Op::Par:
      case Op::Map:
      case Op::When:
      case Op::Unless:
      case Op::Plan:
      case Op::On:
      case Op::End:
      case Op::Slice:
      case Op::Init:
      case Op::Zero:
      case Op::AddBase:
      case Op::Privatize:
      case Op::Walk:
      case Op::Leaves:
      case Op::Round:
      case Op::SumTrees:
      case Op::Transform:
      case Op::Store:
      case Op::Label:
      case Op::Encode:
      case Op::Explain:
      case Op::StoreTrees:
      case Op::StoreStages:
      case Op::Attribute:
      case Op::Quantiles:
        break;
    }
    return result;
  }

  LoopOperands loop_at(std::uint32_t pc) const { return loop_operands(code_[pc]); }

  template <Op op>
  static void set_reduced(LinkedInst& inst, const LoopOperands& loop) {
    set_linked<op, LinkedField::Reduced>(inst, loop.in);
    set_linked<op, LinkedField::Step>(inst, loop.step);
  }

  static void set_partners(std::vector<LinkedInst>& code) {
    const auto set_partner = [&](std::uint32_t pc, std::uint32_t partner) {
      set_at(code[pc], position_of(code[pc].op, LinkedField::Partner), partner);
    };
    std::vector<std::uint32_t> open;
    for (std::uint32_t pc = 0; pc < code.size(); ++pc) {
      if (info(code[pc].op).role == OpRole::Open) open.push_back(pc);
      if (code[pc].op != Op::End) continue;
      set_partner(open.back(), pc);
      set_partner(pc, open.back());
      const LinkedInst& loop = code[open.back()];
      set_linked<Op::End, LinkedField::Dimension>(
          code[pc], loop.op == Op::Map ? linked<Op::Map, LinkedField::Dimension>(loop) : kDimensions);
      open.pop_back();
    }
  }

  std::span<const Inst> code_;
  const LinkRequest& request_;
  std::vector<PhaseCode> phases_;
  /// The open loops that are mapped to the grid, and the instructions in them that later phases repeat.
  std::vector<InstAt> path_;
  std::vector<InstAt> before_run_;  ///< content of path_ when the first instruction of run_ was added
  std::vector<InstAt> run_;         ///< instructions of the phase that is being collected
  std::uint32_t joins_ = kNoPc;     ///< pc of the loop on the grid at whose end blocks join
  unsigned depth_ = 0;              ///< number of open loops that are not mapped to the grid
};

}  // namespace

Result<std::vector<PhaseCode>> cut_phases(std::span<const Inst> code, const LinkRequest& request) {
  return PhaseCutter(code, request).run();
}

}  // namespace forestvm::kernels
