// Codes that kernels know when they are compiled: those that the schedule `gpu` makes where threads share the trees of
// a row. A kernel interprets any other code. A known code is one piece of device code (kernels/device/known_block.hpp),
// which reads the operands that differ from phase to phase, looks for no opcode and keeps the thread's state in
// registers. In: the code of a phase. Out: the known code that it is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/sums.hpp>

#include "kernels/link/linked_inst.hpp"

namespace forestvm::kernels {

enum class KnownCode : std::uint32_t {
  None,
  Sums,             ///< threads that share the trees of a row have float32 sums of their own, which are added
  ExactSums,        ///< threads that share the trees of a row have exact sums of their own, which are added
  Leaves,           ///< threads that share the trees of a row keep the leaf of every tree
  JoinedSums,       ///< Sums, of blocks that share the trees of a row and join
  JoinedExactSums,  ///< ExactSums, of such blocks
};

/// Returns the code of whose walks and sums those of `code` are, in blocks that have all trees of a row.
constexpr KnownCode unjoined(KnownCode code) {
  if (code == KnownCode::JoinedSums) return KnownCode::Sums;
  return code == KnownCode::JoinedExactSums ? KnownCode::ExactSums : code;
}

namespace known {

/// The registers of a code in which blocks take rows, and their threads parts of the trees.
inline constexpr std::uint32_t kRows = 2;         ///< of a block
inline constexpr std::uint32_t kTrees = 3;        ///< of a thread; of a block that joins others
inline constexpr std::uint32_t kRow = 4;          ///< of a thread
inline constexpr std::uint32_t kJoinedTrees = 4;  ///< of a thread of a block that joins others
inline constexpr std::uint32_t kJoinedRow = 5;    ///< of such a thread

/// Numbers of accumulators in known codes; those in programs differ.
enum Accumulator : std::uint32_t {
  kScores,  ///< float32
  kParts,   ///< what the threads of a row make
  kTotals,  ///< exact sums of rows
  kJoined,  ///< what blocks of a row make of it, if they join
  kCount
};

/// The program's numbers of a known code's accumulators.
using Accumulators = std::array<std::uint32_t, kCount>;

/// Stands in place of a transform that a phase does not have: scores remain as they are.
inline constexpr std::uint32_t kNoTransform = 255;

/// Returns whether a field is the same in all phases of a known code.
constexpr bool is_constant(LinkedField field) {
  using enum LinkedField;
  return field == RangeOut || field == RangeIn || field == Rows || field == Trees || field == Select ||
         field == Reduced || field == Dimension || field == Joined || field == Zeroed || field == Staged;
}
/// Returns whether a field is the number of an accumulator, which is constant in known codes only.
constexpr bool is_accumulator(LinkedField field) {
  return field == LinkedField::AccOut || field == LinkedField::AccIn;
}

template <Op op, LinkedField... fields, class... Values>
constexpr LinkedInst inst(Values... values) {
  LinkedInst made{op, {}, {}};
  (set_linked<op, fields>(made, static_cast<std::uint32_t>(values)), ...);
  return made;
}

constexpr LinkedInst map(std::uint32_t out, std::uint32_t in, LaunchDimension dimension) {
  using enum LinkedField;
  return inst<Op::Map, RangeOut, RangeIn, Dimension>(out, in, dimension);
}
constexpr LinkedInst end(LaunchDimension dimension) {
  return inst<Op::End, LinkedField::Dimension>(dimension);
}
template <Op op>
constexpr LinkedInst of_rows(Accumulator accumulator) {
  return inst<op, LinkedField::AccOut, LinkedField::Rows>(accumulator, kRows);
}
/// Returns an instruction that makes one accumulator of another.
template <Op op>
constexpr LinkedInst made_of(Accumulator to, Accumulator from) {
  return inst<op, LinkedField::AccOut, LinkedField::AccIn, LinkedField::Rows>(to, from, kRows);
}
constexpr LinkedInst reduce(Accumulator to, Accumulator from = kParts) {
  LinkedInst made = made_of<Op::ReduceDim>(to, from);
  set_linked<Op::ReduceDim, LinkedField::Reduced>(made, kTreesRegister);
  return made;
}
constexpr LinkedInst privatize(Accumulator parts, std::uint32_t trees) {
  using enum LinkedField;
  return inst<Op::Privatize, AccOut, RangeIn, Rows>(parts, trees, kRows);
}
constexpr LinkedInst walk(std::uint32_t trees, std::uint32_t row) {
  using enum LinkedField;
  return inst<Op::Walk, AccOut, Trees, Rows, Select>(kParts, trees, row, kNoSelect);
}

inline constexpr LinkedInst kMapRows = map(kRows, kRowsRegister, LaunchDimension::GridX);
inline constexpr LinkedInst kMapTrees = map(kTrees, kTreesRegister, LaunchDimension::BlockY);
inline constexpr LinkedInst kMapRow = map(kRow, kRows, LaunchDimension::BlockX);
inline constexpr LinkedInst kEndRow = end(LaunchDimension::BlockX);
inline constexpr LinkedInst kEndTrees = end(LaunchDimension::BlockY);
inline constexpr LinkedInst kCacheRows = inst<Op::CacheRows, LinkedField::Rows>(kRows);
inline constexpr LinkedInst kPrivatize = privatize(kParts, kTrees);
inline constexpr LinkedInst kWalk = walk(kTrees, kRow);
inline constexpr LinkedInst kTransform = of_rows<Op::Transform>(kScores);
inline constexpr LinkedInst kStore = inst<Op::Store, LinkedField::AccIn, LinkedField::Rows>(kScores, kRows);
inline constexpr LinkedInst kHalt{Op::Halt, {}, {}};

inline constexpr LinkedInst kMapBlocks = map(kTrees, kTreesRegister, LaunchDimension::GridY);
inline constexpr LinkedInst kMapJoinedTrees = map(kJoinedTrees, kTrees, LaunchDimension::BlockY);
inline constexpr LinkedInst kMapJoinedRow = map(kJoinedRow, kRows, LaunchDimension::BlockX);
inline constexpr LinkedInst kReduceBlock =
    inst<Op::ReduceInplace, LinkedField::AccOut, LinkedField::AccIn, LinkedField::Rows, LinkedField::Reduced>(
        kJoined, kParts, kRows, kTrees);
inline constexpr LinkedInst kJoin =
    inst<Op::End, LinkedField::Dimension, LinkedField::Joined>(LaunchDimension::GridY, 1);

/// A known code, and the type of the sums, or leaves, that its walks make.
template <KnownCode code>
struct Of {
  using Sum = void;
};
template <>
struct Of<KnownCode::Sums> {
  using Sum = F32Sum;
  static constexpr std::array kCode = {kMapRows,   of_rows<Op::Init>(kScores),
                                       kCacheRows, kMapTrees,
                                       kPrivatize, kMapRow,
                                       kWalk,      kEndRow,
                                       kEndTrees,  reduce(kScores),
                                       kTransform, kStore,
                                       kHalt};
};
template <>
struct Of<KnownCode::ExactSums> {
  using Sum = Exact64Sum;
  static constexpr std::array kCode = {kMapRows,
                                       of_rows<Op::Init>(kTotals),
                                       kCacheRows,
                                       kMapTrees,
                                       kPrivatize,
                                       kMapRow,
                                       kWalk,
                                       kEndRow,
                                       kEndTrees,
                                       reduce(kTotals),
                                       made_of<Op::Round>(kScores, kTotals),
                                       kTransform,
                                       kStore,
                                       kHalt};
};
template <>
struct Of<KnownCode::JoinedSums> {
  using Sum = F32Sum;
  static constexpr std::array kCode = {kMapRows,
                                       of_rows<Op::Init>(kScores),
                                       kCacheRows,
                                       kMapBlocks,
                                       privatize(kJoined, kTrees),
                                       kMapJoinedTrees,
                                       privatize(kParts, kJoinedTrees),
                                       kMapJoinedRow,
                                       walk(kJoinedTrees, kJoinedRow),
                                       kEndRow,
                                       kEndTrees,
                                       kReduceBlock,
                                       kJoin,
                                       reduce(kScores, kJoined),
                                       kTransform,
                                       kStore,
                                       kHalt};
};
template <>
struct Of<KnownCode::JoinedExactSums> {
  using Sum = Exact64Sum;
  static constexpr std::array kCode = {kMapRows,
                                       of_rows<Op::Init>(kTotals),
                                       kCacheRows,
                                       kMapBlocks,
                                       privatize(kJoined, kTrees),
                                       kMapJoinedTrees,
                                       privatize(kParts, kJoinedTrees),
                                       kMapJoinedRow,
                                       walk(kJoinedTrees, kJoinedRow),
                                       kEndRow,
                                       kEndTrees,
                                       kReduceBlock,
                                       kJoin,
                                       reduce(kTotals, kJoined),
                                       made_of<Op::Round>(kScores, kTotals),
                                       kTransform,
                                       kStore,
                                       kHalt};
};
template <>
struct Of<KnownCode::Leaves> {
  using Sum = F32Sum;
  static constexpr std::array kCode = {kMapRows,
                                       of_rows<Op::Init>(kScores),
                                       kCacheRows,
                                       kMapTrees,
                                       kMapRow,
                                       kWalk,
                                       kEndRow,
                                       kEndTrees,
                                       made_of<Op::SumTrees>(kScores, kParts),
                                       kTransform,
                                       kStore,
                                       kHalt};
};

/// Returns the number in a known code of its instruction with this opcode: of the first one, or of the `after`-th that
/// follows it.
template <KnownCode code>
consteval unsigned find(Op op, unsigned after) {
  unsigned pc = 0;
  while (Of<code>::kCode[pc].op != op || after-- != 0) ++pc;
  return pc;
}
template <KnownCode code, Op op, unsigned after = 0>
inline constexpr unsigned kPc = find<code>(op, after);

}  // namespace known

/// A known code, as linking looks for it.
struct KnownForm {
  KnownCode code;
  AccumulatorKind parts;  ///< of accumulator kParts
  std::span<const LinkedInst> insts;
};
inline constexpr KnownForm kKnownForms[] = {
    {KnownCode::Sums, AccumulatorKind::F32, known::Of<KnownCode::Sums>::kCode},
    {KnownCode::ExactSums, AccumulatorKind::Exact64, known::Of<KnownCode::ExactSums>::kCode},
    {KnownCode::Leaves, AccumulatorKind::PerTree, known::Of<KnownCode::Leaves>::kCode},
    {KnownCode::JoinedSums, AccumulatorKind::F32, known::Of<KnownCode::JoinedSums>::kCode},
    {KnownCode::JoinedExactSums, AccumulatorKind::Exact64, known::Of<KnownCode::JoinedExactSums>::kCode},
};

/// A phase whose code is known.
struct KnownPhase {
  KnownCode code = KnownCode::None;
  std::vector<LinkedInst> insts;  ///< one for each of the known code, with the phase's operands
  known::Accumulators accumulators{};
};

/// Returns the phase whose code is `code`, if that has this form.
inline KnownPhase known_phase(const KnownForm& form, std::span<const LinkedInst> code) {
  KnownPhase phase{form.code, {}, {}};
  phase.accumulators.fill(UINT32_MAX);
  std::size_t pc = 0;
  bool same = true;
  for (const LinkedInst& known : form.insts) {
    if (known.op == Op::Transform && pc < code.size() && code[pc].op != Op::Transform) {
      phase.insts.push_back(known);
      set_linked<Op::Transform, LinkedField::TransformKind>(phase.insts.back(), known::kNoTransform);
      continue;
    }
    if (pc == code.size() || code[pc].op != known.op) return {};
    std::array<std::uint32_t, kMaxOperands> expected{};
    unsigned count = 0;
    for_each_field(known, [&](LinkedField, std::uint32_t value) { expected[count++] = value; });
    count = 0;
    for_each_field(code[pc], [&](LinkedField field, std::uint32_t value) {
      const std::uint32_t number = expected[count++];
      if (known::is_constant(field)) same &= value == number;
      if (!known::is_accumulator(field)) return;
      std::uint32_t& accumulator = phase.accumulators[number];
      if (accumulator == UINT32_MAX) accumulator = value;
      same &= accumulator == value;
    });
    phase.insts.push_back(code[pc++]);
  }
  return same && pc == code.size() ? phase : KnownPhase{};
}

}  // namespace forestvm::kernels
