// Writes the program's code in C: loops become loops, range registers variables, and accumulators arrays on the stack.
// Parts of it are in code.cpp; those that add and write the outputs of single trees are in tree_outputs.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {

/// Writes a program's code.
class CodeWriter {
 public:
  CodeWriter(const Job& job, std::uint32_t rows)
      : job_(job), meta_(job.program.meta()), map_(code_map(job.program)), rows_(rows) {}

  /// Returns the function that runs the code.
  std::string run();

 private:
  void line(const std::string& text) { body_ += formatted("{}{}\n", std::string(2 * depth_, ' '), text); }
  void open(const std::string& text) {
    line(text + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  static std::string reg(std::uint32_t index) { return formatted("r{}", index); }
  static std::string want(OutputKind output) {
    return "want == " + number(static_cast<std::uint64_t>(output));
  }
  std::string call(const std::string& function, const std::string& arguments) const {
    return formatted("{}({})", job_.name(function), arguments);
  }

  const AccumulatorDesc& desc(std::uint32_t accumulator) const {
    return job_.program.accumulators()[accumulator];
  }
  AccumulatorKind kind(std::uint32_t accumulator) const { return desc(accumulator).kind; }
  const AccumulatorMemory& memory(std::uint32_t accumulator) const { return map_.accumulators[accumulator]; }

  /// Returns the address of a row of a copy of an accumulator, as C text.
  std::string at(std::uint32_t accumulator, const std::string& copy, const std::string& row) const {
    const AccumulatorMemory& of = memory(accumulator);
    return formatted("(a{} + ((size_t)({}) * {} + {}) * {})", of.storage, copy,
                     number(std::uint64_t{of.copy_stride} * rows_), row, number(of.width));
  }
  std::string at(std::uint32_t accumulator, const std::string& row) const {
    return at(accumulator, copy(accumulator), row);
  }
  std::string copy(std::uint32_t accumulator) const {
    return desc(accumulator).parent == accumulator ? "0u" : formatted("copy{}", accumulator);
  }
  std::string size_of(std::uint32_t accumulator, std::uint32_t rows) const {
    return formatted("(size_t)({}.end - {}.begin) * {}", reg(rows), reg(rows),
                     number(memory(accumulator).width));
  }

  /// Returns the condition that the call has this many rows. It leaves out parts that are always true, because
  /// compilers warn of them.
  static std::string has_rows(const OperandsOf<Op::Plan>& args);

  /// Returns the statement that adds `from` to `to`, which are sums of one kind.
  std::string add(AccumulatorKind kind, const std::string& to, const std::string& from) const {
    if (kind == AccumulatorKind::Exact128) return call("add128", formatted("&{}, {}", to, from)) + ";";
    return formatted("{} += {};", to, from);
  }

  void write(const Inst& inst, const InstFacts& facts);

  /// Keeps what the open blocks are for: see `blocks_`.
  void keep_block(const Inst& inst);

  void write_explain(std::uint32_t rows);
  void write_attribute(std::uint32_t rows);
  void write_quantiles(std::uint32_t rows);

  void write_transform(const OperandsOf<Op::Transform>& args) {
    for_rows(args.rows, call("transform_" + sum_name(kind(args.acc_out)),
                             at(args.acc_out, "row") + divisor(args.acc_out, job_.calls.averages)) +
                            ";");
  }

  /// Returns the argument by which scores in an accumulator are divided, if a function takes it.
  std::string divisor(std::uint32_t accumulator, bool taken) const {
    return taken ? formatted(", ({})call->divisor", sum_type(job_, kind(accumulator))) : "";
  }

  /// Returns both values of the pair that a binary model makes of `v`, as the branches of a C conditional.
  std::string pair_of(const std::string& v) const {
    const std::string other = meta_.pair == Pair::Complement ? "1 - " + v : "-" + v;
    return formatted("{} : {}", other, v);
  }

  std::string score() const { return c_type(meta_.score_type); }

  /// Returns the address of a row's contributions in the output.
  std::string explained(OutputKind output) const {
    return formatted("({} *)out + (size_t)row * {}", score(), number(output_width(job_.program, output)));
  }

  void write_store(const OperandsOf<Op::Store>& args);

  void write_label(const OperandsOf<Op::Label>& args);

  void for_rows(std::uint32_t rows, const std::string& statement) {
    uses_row_ = true;
    line(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(rows), reg(rows)));
    line("  " + statement);
  }

  void write_loop(const Inst& inst);

  void write_slice(const Inst& inst);

  void write_zero(std::uint32_t accumulator, std::uint32_t rows) {
    line(formatted("memset({}, 0, {} * sizeof({}));", at(accumulator, reg(rows) + ".begin"),
                   size_of(accumulator, rows), sum_type(job_, kind(accumulator))));
  }

  /// Sets an accumulator to zero. In a call that stops early, sums go on from those of the trees before; of outputs of
  /// single trees only those of the call's trees are set, which may be few.
  void write_begin_of(std::uint32_t accumulator, std::uint32_t rows);

  /// Returns whether sums in an accumulator go on from those of other trees, in a call that stops early.
  bool resumes(std::uint32_t accumulator) const {
    return job_.calls.early_stop && kind(accumulator) == AccumulatorKind::F64;
  }

  void write_init(const OperandsOf<Op::Init>& args, bool adds);

  /// Returns the number from which the sum of output k of a row starts.
  std::string base(AccumulatorKind type) const {
    if (base_varies(job_, type)) return call("base_of_" + sum_name(type), "call, row, k");
    return job_.name(formatted("base_{}[k]", sum_name(type)));
  }

  /// Returns the arguments of the function of an output that depends on the call, if it does.
  std::string of_call(OutputKind output) const { return options_of(job_, output) != 0 ? "call, row, " : ""; }

  /// Returns a sum with the model's scale and base score k.
  std::string with_base(AccumulatorKind of, const std::string& sum) const {
    const std::string scaled = sum + (meta_.scale == 1 ? "" : " * " + scale_literal(of));
    if (of != AccumulatorKind::F32) return scaled + " + " + base(of);
    return formatted("(float)((double)({}) + {})", scaled, base(AccumulatorKind::F64));
  }

  std::string scale_literal(AccumulatorKind of) const {
    return of == AccumulatorKind::F32 ? literal(static_cast<float>(meta_.scale)) : literal(meta_.scale);
  }

  void write_privatize(const Inst& inst);

  void write_walk(const InstFacts& facts, std::uint32_t trees, std::uint32_t rows, std::uint32_t select,
                  std::optional<std::uint32_t> accumulator);

  /// Writes the walk by a walker. Its leaves are added to an accumulator or, if there is none, their numbers
  /// are written to the output.
  void write_walker(std::uint32_t trees, std::uint32_t rows, std::uint32_t walker,
                    std::optional<std::uint32_t> accumulator);

  /// Returns whether the code counts the trees of a group as the model does.
  bool is_in_order(std::uint32_t index) const;

  /// Returns the head of a loop over the trees of the call.
  std::string for_trees() const {
    return job_.calls.some_trees() ? "for (tree = call->tree_begin; tree < call->tree_end; ++tree)"
                                   : formatted("for (tree = 0u; tree < {}; ++tree)", number(meta_.num_trees));
  }

  void write_reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place);

  void write_round(const Inst& inst);

  void write_sum_trees(const Inst& inst);

  /// Returns what the leaf that `from` keeps of a row and tree adds: a number, for leaves that are no vectors.
  std::string leaf_of(std::uint32_t from) const {
    const std::string leaf = at(from, "row") + "[tree]";
    return job_.program.leaf_functions().empty() ? leaf
                                                 : call("leaf_output", leaf + ", x + (size_t)row * stride");
  }

  std::string vector_of(std::uint32_t from) const {
    return formatted("{} + (size_t){}[tree] * {}", job_.name("vectors"), at(from, "row"),
                     number(meta_.num_outputs));
  }

  /// Adds a tree's leaf, which `from` keeps, to the sums of a row.
  void add_tree(const std::string& indent, std::uint32_t to, std::uint32_t from);

  void write_store_trees(const OperandsOf<Op::StoreTrees>& args);

  /// Writes outputs of several trees, of the kind for which the innermost block is.
  void write_store_stages(const OperandsOf<Op::StoreStages>& args);
  void write_stages(const OperandsOf<Op::StoreStages>& args);
  /// Writes the scores of virtual ensembles, or what follows from them.
  void write_members(const OperandsOf<Op::StoreStages>& args, OutputKind output);
  /// Writes the mean and the variance of the trees' scores.
  void write_spread(const OperandsOf<Op::StoreStages>& args);

  /// Returns the function's head, which declares only the variables that the body uses.
  std::string head();

  const Job& job_;
  const ProgramMeta& meta_;
  const CodeMap& map_;
  std::uint32_t rows_;
  std::string body_;
  std::size_t depth_ = 1;
  std::vector<std::optional<OutputKind>>
      blocks_;  ///< For each open block of the code, the output that it is for.
  std::set<std::uint32_t> set_, loops_;
  bool uses_row_ = false, uses_tree_ = false, uses_i_ = false, uses_k_ = false;
};

}  // namespace forestvm::bytecode::export_c
