// Rules of blocks, on which the other rules of code build: RangeRules, AccumulatorRules, WalkRules and CodeVerifier,
// each derived from the one before, follow the instructions together. These rules prove that what opens a block and the
// end that closes it name each other, that blocks nest, no deeper than machines can keep, and that a thread has one
// index in each dimension of a launch.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include <boost/container/static_vector.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {

class BlockRules {
 protected:
  explicit BlockRules(const Program& program);

  /// Returns a refusal of the current instruction, whose message is the text with its arguments.
  Failure wrong(CText what) const { return code_error(program_, pc_, what); }
  template <class First, class... Rest>
  Failure wrong(FormatText<std::type_identity_t<First>, std::type_identity_t<Rest>...> format,
                const First& first, const Rest&... rest) const {
    const FormatValue values[] = {format_value(first), format_value(rest)...};
    return wrong_formatted(format.text, kFormatKinds<format_kind<First>(), format_kind<Rest>()...>, values);
  }

  /// Opens the block of the current instruction, which `partner` is to close.
  Result<void> open_block(std::uint32_t partner);
  /// Opens a block for calls of some numbers of rows, and keeps them for the facts of its instructions.
  Result<void> open_plan(const OperandsOf<Op::Plan>& args);
  /// Closes the innermost block, which `partner` opened.
  Result<void> close_block(std::uint32_t partner);

  bool is_open(std::uint32_t pc) const;  ///< True in the block that the instruction at `pc` opened.
  std::size_t depth() const { return blocks_.size(); }
  /// Returns the pc that opened a block: 0 for the innermost, 1 for the one around it, and so on.
  std::uint32_t opener(std::size_t outward) const { return blocks_[blocks_.size() - 1 - outward].open; }

  /// Returns the facts of the current instruction.
  InstFacts& facts() { return map_.insts[pc_]; }

  const Program& program_;
  const std::span<const Inst> code_;
  std::size_t pc_ = 0;  ///< The current instruction.
  CodeMap map_;
  RowCounts calls_{0, UINT32_MAX};  ///< Calls that run the current instruction.

 private:
  Failure wrong_formatted(const char* text, const FormatKind* kinds, const FormatValue* values) const;
  Result<void> dimension_is_free() const;

  struct Block {
    std::uint32_t open;     ///< Pc of the instruction that opened it.
    RowCounts outer_calls;  ///< Calls in which it is reached.
  };
  boost::container::static_vector<Block, kMaxBlockDepth> blocks_;
};

}  // namespace forestvm::bytecode
