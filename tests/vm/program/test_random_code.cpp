// Random code, half of it sensible: most of it is refused, and accepted programs must do no harm. The shadow
// machine watches each accepted program; the host backend runs it too.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <map>
#include <random>

#include <forestvm/internal/program_tools.hpp>

#include "support/small_models.hpp"
#include "vm/program/shadow_machine.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_random_code {
namespace {

enum Axis : unsigned { kRowAxis, kTreeAxis };

class CodeGenerator {
 public:
  CodeGenerator(std::uint32_t seed, bool contributions) : random_(seed), contributions_(contributions) {}

  std::vector<Inst> code() {
    // Walks over codes are refused without an encode, so most programs get one.
    if (chance(90)) add(Op::Encode, {0});
    for (const std::uint32_t accumulator : {0u, 4u, 5u, 6u, 7u})
      if (chance(95)) add(Op::Zero, {accumulator, 0});
    block(0);
    outputs();
    add(Op::Halt, {});
    return code_;
  }

 private:
  struct Register {
    std::uint32_t number;
    unsigned axis;
    std::uint32_t loop;
  };

  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

  std::uint32_t add(Op op, std::initializer_list<std::uint32_t> values) {
    code_.push_back(pack(op, values.begin()));
    return static_cast<std::uint32_t>(code_.size() - 1);
  }

  /// Returns a register that, mostly, may be read here.
  std::uint32_t source(unsigned axis) {
    std::vector<std::uint32_t> fitting;
    for (const Register& r : live_)
      if (r.axis == axis && r.loop == loop_[axis]) fitting.push_back(r.number);
    if (fitting.empty() || chance(4)) return below(8);
    return fitting[below(static_cast<std::uint32_t>(fitting.size()))];
  }

  /// Returns a register that is mostly free.
  std::uint32_t target() {
    if (chance(15)) return below(8);
    for (std::uint32_t number = 2;; ++number) {
      const auto has = [&](const Register& r) { return r.number == number; };
      if (std::none_of(live_.begin(), live_.end(), has)) return number % kRangeRegisters;
    }
  }

  std::uint32_t accumulator() { return chance(60) ? current_ : below(8); }

  /// Returns an accumulator that, mostly, can be private to `parent`.
  std::uint32_t inner_of(std::uint32_t parent) {
    if (chance(15)) return 1 + below(3);
    return parent == 0 ? (chance(70) ? 1 : 3) : parent == 1 ? 2 : 1 + below(3);
  }

  /// Adds the code of outputs, mostly of all that a call can ask for.
  void outputs() {
    for (const std::uint32_t output : {0u, 1u, 2u})
      if (chance(98)) write_output(output, 0);
    const std::uint32_t open = add(Op::When, {3, 0});
    if (chance(98)) add(Op::Leaves, {1, 0, below(4), 1});
    close(open, 0);
    if (!contributions_) return;
    if (chance(98)) explain(OutputKind::Contributions, 0, false);
    if (chance(98)) explain(OutputKind::Interactions, 0, false);
    if (chance(98)) store_leaves(Op::StoreTrees, 0, false);
    if (chance(98)) store_leaves(Op::StoreStages, 0, false);
    if (chance(98)) use_leaf_numbers(Op::Attribute, 0, false);
    if (chance(98)) use_leaf_numbers(Op::Quantiles, 0, false);
  }

  /// Adds approximate contributions or quantiles, mostly where they are asked for and leaves are known.
  void use_leaf_numbers(Op op, std::uint32_t rows, bool anywhere) {
    const std::uint32_t open = anywhere ? 0 : add(Op::When, {op == Op::Attribute ? 8u : 11u, 0});
    if (chance(95)) add(Op::Leaves, {1, rows, below(4), 1});
    add(op, {rows});
    if (!anywhere) close(open, 0);
  }

  /// Adds outputs of trees or stages, mostly where they are asked for.
  void store_leaves(Op op, std::uint32_t rows, bool anywhere) {
    const std::uint32_t open = anywhere ? 0 : add(Op::When, {op == Op::StoreTrees ? 5u : 6u, 0});
    const std::uint32_t from = chance(95) ? 7 : accumulator();
    if (op == Op::StoreTrees)
      add(op, {from, rows});
    else
      add(op, {chance(95) ? 0 : accumulator(), from, rows, below(chance(95) ? 2 : 3)});
    if (!anywhere) close(open, 0);
  }

  /// Adds contributions or interactions, mostly where they are asked for.
  void explain(OutputKind output, std::uint32_t rows, bool anywhere) {
    const std::uint32_t open = anywhere ? 0 : add(Op::When, {static_cast<std::uint32_t>(output), 0});
    if (chance(50)) add(Op::Encode, {rows});
    add(Op::Explain, {rows});
    if (!anywhere) close(open, 0);
  }

  void write_output(std::uint32_t output, std::uint32_t rows) {
    const std::uint32_t open = add(Op::When, {output, 0});
    const std::uint32_t from = chance(95) ? 0 : accumulator();
    if (output == 2)
      add(Op::Label, {from, rows, 3});
    else
      add(Op::Store, {from, rows});
    close(open, 0);
  }

  void block(unsigned depth) {
    const std::uint32_t count = 1 + below(4);
    for (std::uint32_t i = 0; i < count; ++i) statement(depth);
  }

  void statement(unsigned depth) {
    switch (depth < 5 ? below(20) : 5 + below(14)) {
      case 0:
        return loop(Op::For, below(2), depth);
      case 1:
        return loop(Op::Par, kRowAxis, depth);
      case 2:
        return loop(Op::Par, kTreeAxis, depth);
      case 3:
        return chance(80) ? when(depth) : on(depth);
      case 4:
        return loop(Op::Map, below(2), depth);
      case 19:
        return chance(30) ? plan(depth) : static_cast<void>(add(Op::Encode, {source(kRowAxis)}));
      case 5:
      case 16:
        return slice();
      case 17:
        if (contributions_ && chance(50))
          return explain(chance(50) ? OutputKind::Contributions : OutputKind::Interactions, source(kRowAxis),
                         chance(5));
        if (contributions_ && chance(50))
          return store_leaves(chance(50) ? Op::StoreTrees : Op::StoreStages, source(kRowAxis), chance(5));
        if (contributions_ && chance(30))
          return use_leaf_numbers(chance(50) ? Op::Attribute : Op::Quantiles, source(kRowAxis), chance(5));
        return leaves();
      case 18:
        return convert_or_cache();
      case 6:
        add(chance(50) ? Op::Init : Op::Zero, {accumulator(), source(kRowAxis)});
        return;
      case 7:
        add(Op::AddBase, {accumulator(), source(kRowAxis)});
        return;
      case 8:
        add(Op::Transform, {accumulator(), source(kRowAxis), below(6)});
        return;
      case 9:
      case 10:
        if (chance(95)) return write_output(below(3), source(kRowAxis));
        add(chance(50) ? Op::Store : Op::Label, {accumulator(), source(kRowAxis), 3});
        return;
      case 11:
        if (chance(30)) add(Op::Privatize, {below(4), source(kTreeAxis), source(kRowAxis)});
        return;
      case 12:
        if (!loops_.empty() && chance(70)) reduce(Op::ReduceDim, current_, 1 + below(3));
        return;
      default:
        add(Op::Walk, {accumulator(), source(kTreeAxis), source(kRowAxis), below(4), select()});
    }
  }

  /// Adds leaf numbers, mostly where they are asked for.
  void leaves() {
    const bool anywhere = chance(5);
    const std::uint32_t open = anywhere ? 0 : add(Op::When, {3, 0});
    add(Op::Leaves, {source(kTreeAxis), source(kRowAxis), below(4), select()});
    if (!anywhere) close(open, 0);
  }

  /// Returns the select operand of a walk: mostly none, sometimes a loop over trees.
  std::uint32_t select() {
    return chance(80) ? 1 : loop_[kTreeAxis] < kRangeRegisters ? loop_[kTreeAxis] : below(8);
  }

  void convert_or_cache() {
    if (chance(30)) {
      add(Op::Round, {chance(80) ? 0 : accumulator(), 4 + below(4), source(kRowAxis)});
    } else if (chance(40)) {
      add(Op::SumTrees, {chance(80) ? 0 : accumulator(), 4 + below(4), source(kRowAxis)});
    } else if (!open_loops_.empty()) {
      const std::uint32_t open = open_loops_[below(static_cast<std::uint32_t>(open_loops_.size()))];
      if (chance(50))
        add(Op::CacheRows, {open, below(4)});
      else
        add(Op::CacheTrees, {open, below(4), below(2)});
    }
  }

  void reduce(Op op, std::uint32_t to, std::uint32_t from) {
    const std::uint32_t loop =
        chance(70) ? loops_.back() : loops_[below(static_cast<std::uint32_t>(loops_.size()))];
    const bool vector = chance(20);
    add(op, {to, from, source(kRowAxis), loop, vector ? 1u : chance(5) ? 2u : 0u, vector ? 4u : 1u});
  }

  /// Adds a privatize, mostly where it belongs, sometimes in a block of its own.
  void privatize(std::uint32_t trees) {
    const bool apart = chance(10);
    const std::uint32_t open = apart ? add(Op::When, {below(4), 0}) : 0;
    add(Op::Privatize, {current_, trees, source(kRowAxis)});
    if (apart) close(open, 0);
  }

  void close(std::uint32_t open, unsigned partner) {
    const std::uint32_t end = add(Op::End, {open});
    code_[open].wide[partner] = end;
  }

  void when(unsigned depth) {
    const std::uint32_t open = add(chance(70) ? Op::When : Op::Unless, {below(contributions_ ? 9 : 4), 0});
    const auto saved = live_;
    block(depth + 1);
    live_ = saved;
    close(open, 0);
  }

  void on(unsigned depth) {
    const std::uint32_t open = add(Op::On, {below(7), 0});
    const auto saved = live_;
    block(depth + 1);
    live_ = saved;
    close(open, 0);
  }

  void plan(unsigned depth) {
    const std::uint32_t least = below(8), open = add(Op::Plan, {least, least + below(8), 0});
    const auto saved = live_;
    block(depth + 1);
    live_ = saved;
    close(open, 2);
  }

  void loop(Op op, unsigned axis, unsigned depth) {
    const std::uint32_t out = target();
    const std::uint32_t over = source(axis), step = 1 + below(3);
    const std::uint32_t open =
        op == Op::Map ? add(op, {out, over, below(6), step, 0}) : add(op, {out, over, step, 0});
    open_loops_.push_back(open);
    const auto saved = live_;
    const std::uint32_t outer_loop = loop_[axis], outer_accumulator = current_;
    live_.push_back({out, axis, out});
    loop_[axis] = out;
    const bool over_trees = op != Op::For && axis == kTreeAxis;
    if (over_trees) {
      current_ = inner_of(current_);
      if (chance(80)) privatize(out);
    }
    if (over_trees && current_ == 1 && chance(40))
      loop(Op::Par, kTreeAxis, depth + 1);  // reductions in place need a loop inside, with little else
    else
      block(depth + 1);
    close(open, 1);
    open_loops_.pop_back();
    const std::uint32_t mine = current_;
    live_ = saved;
    loop_[axis] = outer_loop;
    current_ = outer_accumulator;
    if (!over_trees) return;
    loops_.push_back(open);
    const unsigned in_place = current_ == 1 && mine == 2 ? 60 : 10;
    if (chance(60)) reduce(chance(in_place) ? Op::ReduceInplace : Op::ReduceDim, current_, mine);
  }

  void slice() {
    const unsigned axis = below(2);
    const std::uint32_t from = below(5), out = target();
    add(Op::Slice, {out, source(axis), from, from + below(6)});
    live_.push_back({out, axis, loop_[axis]});
  }

  std::mt19937 random_;
  bool contributions_;  ///< True if the program has paths, rounds and targets.
  std::vector<Inst> code_;
  std::vector<Register> live_ = {{0, kRowAxis, UINT32_MAX}, {1, kTreeAxis, UINT32_MAX}};
  std::uint32_t loop_[2] = {UINT32_MAX, UINT32_MAX};
  std::vector<std::uint32_t> loops_;       ///< pcs of parallel loops over trees that have ended
  std::vector<std::uint32_t> open_loops_;  ///< pcs of parallel loops over trees that are open
  std::uint32_t current_ = 0;  ///< accumulator that may be written here, if the code so far is valid
};

/// Returns two groups of all trees, the first with rank codes, the second in tiles with separate leaves; sums
/// of every kind; a1 is stored in a2, and there are paths, rounds and targets, if `rich`.
ProgramParts forest_parts(bool rich) {
  Model model = small_forest({.trees = 6, .outputs = 2});
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const char* const schedule =
      "split(batch, ba, bb, 2); layout(ba.tree, tables); layout(bb.tree, sparse); tileTree(bb.tree, 3, uniform)";
  CompileOptions options;
  options.interactions = options.approx_contributions = rich;
  ProgramParts parts = parts_of(compiled(model, schedule, options));
  using enum AccumulatorKind;
  if (rich) {
    parts.round_begins = {0, 2, 6};
    parts.meta.rounds = RoundRule::Sums;
    keep_targets(parts);
  }
  const std::uint32_t stored_in = rich ? 2 : 1;
  parts.accumulators = {{0, 1, 1, 0, F32, {}},      {0, 6, 6, stored_in, F32, {}}, {1, 3, 18, 2, F32, {}},
                        {0, 2, 2, 3, F32, {}},      {4, 1, 1, 4, F64, {}},         {5, 1, 1, 5, Exact64, {}},
                        {6, 1, 1, 6, Exact128, {}}, {7, 1, 1, 7, PerTree, {}}};
  using enum WalkOrder;
  parts.walkers = {{0, 0, WalkEnd::UntilLeaf, RowsOuter, 1, 1, 0, 0},
                   {0, 2, WalkEnd::UntilLeaf, TreesOuter, 2, 4, 0, 0},
                   {1, 1, WalkEnd::Exact, RowsOuter, 4, 2, 0, 0},
                   {1, 0, WalkEnd::UntilLeaf, TreesOuter, 1, 8, 1, 0}};
  return parts;
}

/// Returns everything that a predictor answers for some rows, in buffers that are not empty before.
Answers answers_over(std::uint32_t garbage, const Predictor& predictor, Context& context,
                     const RowBlock& rows) {
  const ProgramMeta& meta = predictor.program().meta();
  std::vector<float> scores(rows.count * meta.num_outputs);
  const auto bits = [&](OutputKind output) {
    std::fill(scores.begin(), scores.end(), std::bit_cast<float>(garbage));
    EXPECT_TRUE(predictor.predict(context, rows, output, scores.data()).ok());
    std::vector<std::uint32_t> found;
    for (const float score : scores) found.push_back(std::bit_cast<std::uint32_t>(score));
    return found;
  };
  Answers answers{bits(OutputKind::Raw), bits(OutputKind::Value),
                  std::vector<std::int64_t>(rows.count, garbage),
                  std::vector<std::int32_t>(rows.count * meta.num_trees, static_cast<std::int32_t>(garbage))};
  EXPECT_TRUE(predictor.predict_class(context, rows, answers.labels.data()).ok());
  EXPECT_TRUE(predictor.predict_leaf(context, rows, answers.leaves.data()).ok());
  return answers;
}

/// Expects answers to depend only on the rows, whatever the context did before. Sums in any order may differ,
/// so that one thread makes them.
void run_on_the_host(const Program& program, unsigned threads) {
  constexpr std::size_t kRows = 5;
  static const std::vector<float> rows = small_rows(kRows, 3), others = small_rows(2 * kRows, 3, 2);
  const auto predictor = host_backend(program, {.threads = threads});
  ASSERT_EQ(predictor.ok(), !program.mapped());
  if (program.mapped()) return;
  const auto fresh = (*predictor)->make_context(), used = (*predictor)->make_context();
  answers_over(0x7fc12345, **predictor, *used, {others.data(), 2 * kRows, 3});
  const Answers first = answers_over(0, **predictor, *fresh, {rows.data(), kRows, 3});
  const Answers second = answers_over(0xdeadbeef, **predictor, *used, {rows.data(), kRows, 3});
  if (!program.round_begins().empty())
    for (const OutputKind kind :
         {OutputKind::Trees, OutputKind::Staged, OutputKind::ApproxContributions, OutputKind::Quantile}) {
      std::vector<float> out(kRows * output_width(program, kind));
      EXPECT_TRUE((*predictor)->predict(*used, RowBlock{rows.data(), kRows, 3}, kind, out.data()).ok());
    }
  if (threads == 1) {
    EXPECT_TRUE(first == second) << program.disassemble();
  }
}

TEST(RandomCode, WhatIsAcceptedDoesNoHarm) {
  constexpr std::uint32_t kPrograms = 100'000;
  ProgramParts kinds[] = {forest_parts(false), forest_parts(true)};
  std::uint32_t accepted = 0;
  std::map<Op, std::uint32_t> seen;
  for (std::uint32_t seed = 0; seed < kPrograms; ++seed) {
    ProgramParts& parts = kinds[seed % 2];
    parts.code = CodeGenerator(seed, parts.meta.contributions != 0).code();
    const auto program = build_program(parts);
    if (!program.ok()) continue;
    ++accepted;
    for (const Inst& inst : parts.code) ++seen[inst.op];
    const bool by_target =
        std::ranges::any_of(parts.code, [](const Inst& inst) { return inst.op == Op::On; });
    for (const OutputKind output : outputs_of(*program))
      for (const CpuTarget target : kCpuTargets) {
        if (target != CpuTarget::Baseline && !by_target) break;
        const Watched watched = watch(*program, 5, output, target);
        ASSERT_EQ(watched.harm, "") << "seed " << seed << ", output " << static_cast<int>(output) << "\n"
                                    << program->disassemble();
        EXPECT_LE(watched.steps, 5 * steps_per_row(*program)) << program->disassemble();
      }
    run_on_the_host(*program, seed % 16 == 0 ? 2 : 1);
  }
  // Too few accepted programs would test nothing.
  EXPECT_GT(accepted, kPrograms / 50);
  for (const OpInfo& op : bytecode_rows::kOpInfo) EXPECT_GT(seen[op.op], 10u) << op.text;
}

/// Tests of the shadow machine: it must find what the verifier refuses, and pass what the compiler makes.
TEST(ShadowMachine, PassesCompiledPrograms) {
  for (const Program& program : rich_programs())
    for (const std::uint32_t rows : {0u, 1u, 7u, 64u})
      for (const OutputKind output : outputs_of(program))
        EXPECT_EQ(watch(program, rows, output).harm, "") << program.disassemble();
}

TEST(ShadowMachine, SeesARace) {
  const Program good = rich_program();
  std::vector<std::byte> image = image_of(good);
  const auto code_at =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(good.code().data()) - good.image().data());
  for (std::size_t pc = 0; pc < good.code().size(); ++pc) {
    Inst inst = good.code()[pc];
    if (inst.op != Op::Privatize && inst.op != Op::Walk) continue;
    // The privatize becomes a walk of nothing; the private walk adds to the result.
    if (inst.op == Op::Privatize)
      inst = pack(Op::Slice, std::initializer_list<std::uint32_t>{9, 1, 0, 0}.begin());
    inst.small[0] = inst.op == Op::Walk ? 0 : 9;
    std::memcpy(image.data() + code_at + pc * sizeof inst, &inst, sizeof inst);
  }
  const auto program = Program::from_bytes(image, Verification::Trust);
  ASSERT_TRUE(program.ok());
  EXPECT_NE(watch(*program, 5, OutputKind::Raw).harm.find("two iterations"), std::string::npos);
}

}  // namespace
}  // namespace forestvm::test::test_random_code
