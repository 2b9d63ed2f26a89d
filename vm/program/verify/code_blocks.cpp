#include "vm/program/verify/code_blocks.hpp"

#include <algorithm>

#include <forestvm/core/ranges.hpp>

namespace forestvm::bytecode {

BlockRules::BlockRules(const Program& program) : program_(program), code_(program.code()) {
  map_.insts.resize(code_.size());
}

Failure BlockRules::wrong_formatted(const char* text, const FormatKind* kinds,
                                    const FormatValue* values) const {
  return wrong(write_format(text, kinds, values));
}

/// Checks that no loop around is mapped to the dimension of the current instruction, if that is a mapped loop.
Result<void> BlockRules::dimension_is_free() const {
  const Inst& inst = code_[pc_];
  if (inst.op != Op::Map) return {};
  for (const Block& block : blocks_) {
    const Inst& around = code_[block.open];
    if (around.op == Op::Map && operands<Op::Map>(around).dimension == operands<Op::Map>(inst).dimension)
      return wrong("the loop at pc {} around it has the same dimension", block.open);
  }
  return {};
}

Result<void> BlockRules::open_block(std::uint32_t partner) {
  FVM_TRY(dimension_is_free());
  if (blocks_.size() == kMaxBlockDepth) return wrong("more than {} nested blocks", kMaxBlockDepth);
  if (partner <= pc_ || code_[partner].op != Op::End || operands<Op::End>(code_[partner]).partner != pc_)
    return wrong("its end does not name it");
  blocks_.push_back({static_cast<std::uint32_t>(pc_), calls_});
  return {};
}

Result<void> BlockRules::open_plan(const OperandsOf<Op::Plan>& args) {
  if (args.least > args.most) return wrong("no call has so many rows");
  FVM_TRY(open_block(args.partner));
  calls_ = {std::max(calls_.least, args.least), std::min(calls_.most, args.most)};
  return {};
}

Result<void> BlockRules::close_block(std::uint32_t partner) {
  if (blocks_.empty() || blocks_.back().open != partner)
    return wrong("it does not close the innermost open block");
  calls_ = blocks_.back().outer_calls;
  blocks_.pop_back();
  return {};
}

bool BlockRules::is_open(std::uint32_t pc) const {
  for (const Block& block : blocks_)
    if (block.open == pc) return true;
  return false;
}

}  // namespace forestvm::bytecode
