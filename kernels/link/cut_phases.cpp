// See cut_phases.hpp.
#include "kernels/link/cut_phases.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <forestvm/core/interpret.hpp>

namespace forestvm::kernels {
namespace {

using enum OperandKind;

std::string number(std::uint64_t value) { return std::to_string(value); }

bool on_grid(const Inst& inst) {
  return inst.op == Op::Map && operand<Op::Map, Dimension>(inst) < kGridDimensions;
}

bool reduces(Op op) { return op == Op::ReduceDim || op == Op::ReduceInplace; }

/// Instructions with the places that they had in the program.
struct PlacedInst {
  Inst inst;
  std::uint32_t pc;
};

class PhaseCutter {
 public:
  PhaseCutter(std::span<const Inst> code, const LinkRequest& request) : code_(code), request_(request) {}

  Result<std::vector<std::vector<Inst>>> run() {
    FVM_TRY(add(0, static_cast<std::uint32_t>(code_.size())));
    flush();
    const auto is_mapped = [](const std::vector<Inst>& phase) {
      return std::any_of(phase.begin(), phase.end(), [](const Inst& inst) { return inst.op == Op::Map; });
    };
    if (std::none_of(phases_.begin(), phases_.end(), is_mapped))
      return refused("schedule",
                     "the plan of calls of " + number(request_.plan_rows) +
                         " rows maps no loop to a GPU, as others do: a program runs on a GPU or on "
                         "the host");
    return std::move(phases_);
  }

 private:
  bool taken(const Inst& block) const {
    if (block.op == Op::When)
      return request_.output == static_cast<OutputKind>(operand<Op::When, Output>(block));
    if (block.op == Op::Unless)
      return request_.output != static_cast<OutputKind>(operand<Op::Unless, Output>(block));
    return request_.plan_rows >= operand<Op::Plan, Least>(block) &&
           request_.plan_rows <= operand<Op::Plan, Most>(block);
  }

  static std::uint32_t partner(const Inst& block) {
    switch (block.op) {
      case Op::When:
        return operand<Op::When, Partner>(block);
      case Op::Unless:
        return operand<Op::Unless, Partner>(block);
      case Op::Plan:
        return operand<Op::Plan, Partner>(block);
      default:
        return loop_operands(block).partner;
    }
  }

  Result<void> add(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t pc = begin; pc < end; ++pc) {
      const Inst& inst = code_[pc];
      if (inst.op == Op::Halt) continue;
      if (info(inst.op).role != OpRole::Open) {
        add_plain(pc);
        continue;
      }
      const std::uint32_t close = partner(inst);
      if (is_loop(inst.op))
        FVM_TRY(add_loop(pc, close));
      else if (taken(inst))
        FVM_TRY(add(pc + 1, close));
      pc = close;
    }
    return {};
  }

  Result<void> add_loop(std::uint32_t pc, std::uint32_t close) {
    const Inst& inst = code_[pc];
    if (inst.op == Op::Par)
      return refused("pc " + number(pc), "a parallel loop of the host among loops mapped to a GPU");
    if (on_grid(inst)) {
      if (depth_ != 0)
        return refused("pc " + number(pc),
                       "a loop mapped to the grid inside one that is not: a launch has one grid");
      flush();
      const std::size_t outside = path_.size();
      path_.push_back({inst, pc});
      FVM_TRY(add(pc + 1, close));
      flush();
      path_.resize(outside);
      return {};
    }
    push({inst, pc});
    ++depth_;
    FVM_TRY(add(pc + 1, close));
    --depth_;
    push({code_[close], close});
    return {};
  }

  void add_plain(std::uint32_t pc) {
    PlacedInst placed{code_[pc], pc};
    push(placed);
    if (depth_ != 0) return;
    // Later phases inside the same loops need what this set.
    const Op op = placed.inst.op;
    if (op == Op::Privatize) placed.inst.wide[0] = 1;
    if (op == Op::Slice || op == Op::Privatize || op == Op::CacheRows || op == Op::CacheTrees)
      path_.push_back(placed);
  }

  void push(const PlacedInst& placed) {
    if (run_.empty()) before_run_ = path_;
    run_.push_back(placed);
  }

  static bool has_effects(const std::vector<PlacedInst>& run) {
    return std::any_of(run.begin(), run.end(), [](const PlacedInst& placed) {
      const Op op = placed.inst.op;
      return info(op).role == OpRole::Plain && op != Op::Slice && op != Op::CacheRows && op != Op::CacheTrees;
    });
  }

  /// What has come together becomes a phase.
  void flush() {
    std::vector<PlacedInst> run = std::move(run_);
    run_.clear();
    if (!has_effects(run)) return;
    std::vector<PlacedInst> all = std::move(before_run_);
    const auto maps =
        std::count_if(all.begin(), all.end(), [](const PlacedInst& p) { return on_grid(p.inst); });
    all.insert(all.end(), run.begin(), run.end());
    const std::uint32_t none[kMaxOperands] = {};
    for (std::ptrdiff_t i = 0; i < maps; ++i) all.push_back({encode(Op::End, none), 0});
    all.push_back({encode(Op::Halt, none), 0});
    std::vector<Inst> code;
    code.reserve(all.size());
    for (const PlacedInst& placed : all) code.push_back(linked(placed.inst));
    set_partners(code);
    phases_.push_back(std::move(code));
  }

  /// Registers and steps in place of loops' places, which mean nothing in a phase.
  Inst linked(Inst inst) const {
    if (reduces(inst.op)) {
      const LoopOperands loop = loop_operands(code_[operand<Op::ReduceDim, Loop>(inst)]);
      inst.wide[0] = loop.step;
      inst.wide[2] = loop.in;
    } else if (inst.op == Op::CacheRows) {
      inst.wide[0] = loop_operands(code_[operand<Op::CacheRows, Loop>(inst)]).out;
    } else if (inst.op == Op::CacheTrees) {
      inst.wide[0] = loop_operands(code_[operand<Op::CacheTrees, Loop>(inst)]).out;
    }
    return inst;
  }

  static void set_partner(Inst& inst, std::uint32_t pc) {
    unsigned wide = 0;
    const OperandList& operands = info(inst.op).operands;
    for (unsigned i = 0; i < operands.count; ++i) {
      if (info(operands.kinds[i]).size == OperandSize::Small) continue;
      if (operands.kinds[i] == Partner) inst.wide[wide] = pc;
      ++wide;
    }
  }

  static void set_partners(std::vector<Inst>& code) {
    std::vector<std::uint32_t> open;
    for (std::uint32_t pc = 0; pc < code.size(); ++pc) {
      if (info(code[pc].op).role == OpRole::Open) open.push_back(pc);
      if (code[pc].op != Op::End) continue;
      set_partner(code[open.back()], pc);
      set_partner(code[pc], open.back());
      open.pop_back();
    }
  }

  std::span<const Inst> code_;
  const LinkRequest& request_;
  std::vector<std::vector<Inst>> phases_;
  std::vector<PlacedInst> path_;        ///< loops mapped to the grid that are open, and what they set
  std::vector<PlacedInst> before_run_;  ///< the path when the run began
  std::vector<PlacedInst> run_;
  unsigned depth_ = 0;  ///< open loops that are not mapped to the grid
};

}  // namespace

Result<std::vector<std::vector<Inst>>> cut_phases(std::span<const Inst> code, const LinkRequest& request) {
  return PhaseCutter(code, request).run();
}

}  // namespace forestvm::kernels
