// See code_writer.hpp.
#include "vm/export_c/code_writer.hpp"

#include <algorithm>

namespace forestvm::bytecode::export_c {
namespace {

/// Calls visit(pc) for each instruction of the program that becomes C: blocks for other outputs do not.
template <class Visit>
void for_written(const Program& program, const Visit& visit) {
  for (std::size_t pc = 0; pc < program.code().size(); ++pc) {
    const Inst& inst = program.code()[pc];
    if (inst.op == Op::When && !is_exported(program, operands<Op::When>(inst).output))
      pc = operands<Op::When>(inst).partner;
    else
      visit(pc);
  }
}

/// Returns the accumulators in whose memory the code works.
std::set<std::uint32_t> used_storage(const Program& program) {
  const CodeMap& map = code_map(program);
  std::set<std::uint32_t> used;
  for_written(program, [&](std::size_t pc) {
    for_each_operand(program.code()[pc], [&](unsigned, OperandKind kind, std::uint32_t value) {
      if (kind == OperandKind::AccOut || kind == OperandKind::AccIn)
        used.insert(map.accumulators[value].storage);
    });
  });
  return used;
}

/// Returns whether the code has memory for the numbers of the leaves that rows reach, which approximate contributions
/// and quantiles need.
bool keeps_leaf_numbers(const Program& program) {
  return is_exported(program, OutputKind::ApproxContributions) || is_exported(program, OutputKind::Quantile);
}

}  // namespace

std::string CodeWriter::run() {
  for_written(job_.program, [&](std::size_t pc) {
    keep_block(job_.program.code()[pc]);
    write(job_.program.code()[pc], map_.insts[pc]);
  });
  return formatted("{}{}}\n", head(), body_);
}

std::string CodeWriter::has_rows(const OperandsOf<Op::Plan>& args) {
  const auto [least, most, end] = args;
  std::string text;
  if (least > 0) text = "all >= " + number(least);
  if (most < UINT32_MAX) text += (text.empty() ? "" : " && ") + std::string("all <= ") + number(most);
  return text.empty() ? "1" : text;
}

void CodeWriter::keep_block(const Inst& inst) {
  using enum Op;
  if (inst.op == When)
    blocks_.emplace_back(operands<When>(inst).output);
  else if (inst.op == For || inst.op == Par || inst.op == Map || inst.op == Unless || inst.op == Plan ||
           inst.op == On)
    blocks_.emplace_back();
  else if (inst.op == End)
    blocks_.pop_back();
}

void CodeWriter::write(const Inst& inst, const InstFacts& facts) {
  switch (inst.op) {
    case Op::Halt:
      return;
    case Op::For:
    case Op::Par:
    case Op::Map:
      return write_loop(inst);
    case Op::When:
      return open(formatted("if ({})", want(operands<Op::When>(inst).output)));
    case Op::Unless:
      return open(formatted("if (!({}))", want(operands<Op::Unless>(inst).output)));
    case Op::Plan:
      return open(formatted("if ({})", has_rows(operands<Op::Plan>(inst))));
    case Op::On:  // nothing is known of the CPU for which the C will be compiled
      return open(contains(operands<Op::On>(inst).targets, CpuTarget::Baseline) ? "if (1)" : "if (0)");
    case Op::End:
      return close();
    case Op::Slice:
      return write_slice(inst);
    case Op::CacheRows:
    case Op::CacheTrees:
      return;  // the compiler and the processor prefetch by themselves
    case Op::Init:
      return write_init(operands<Op::Init>(inst), false);
    case Op::AddBase:
      if (job_.calls.early_stop) open("if (call->more == 0)");
      write_init(operands<Op::AddBase>(inst), true);
      if (job_.calls.early_stop) close();
      return;
    case Op::Zero: {
      const auto [accumulator, rows] = operands<Op::Zero>(inst);
      return write_begin_of(accumulator, rows);
    }
    case Op::Privatize:
      return write_privatize(inst);
    case Op::Walk: {
      const auto [accumulator, trees, rows, walker, select] = operands<Op::Walk>(inst);
      return write_walk(facts, trees, rows, select, accumulator);
    }
    case Op::Leaves: {
      const auto [trees, rows, walker, select] = operands<Op::Leaves>(inst);
      return write_walk(facts, trees, rows, select, std::nullopt);
    }
    case Op::ReduceDim:
      return write_reduce(operands<Op::ReduceDim>(inst), false);
    case Op::ReduceInplace:
      return write_reduce(operands<Op::ReduceInplace>(inst), true);
    case Op::Round:
      return write_round(inst);
    case Op::SumTrees:
      return write_sum_trees(inst);
    case Op::Transform:
      return write_transform(operands<Op::Transform>(inst));
    case Op::Store:
      return write_store(operands<Op::Store>(inst));
    case Op::Explain:
      return write_explain(operands<Op::Explain>(inst).rows);
    case Op::Attribute:
      return write_attribute(operands<Op::Attribute>(inst).rows);
    case Op::Quantiles:
      return write_quantiles(operands<Op::Quantiles>(inst).rows);
    case Op::Encode:  // the tests of coded trees are written as tests of values
      return;
    case Op::StoreTrees:
      return write_store_trees(operands<Op::StoreTrees>(inst));
    case Op::StoreStages:
      return write_store_stages(operands<Op::StoreStages>(inst));
    case Op::Label:
      return write_label(operands<Op::Label>(inst));
  }
}

void CodeWriter::write_attribute(std::uint32_t rows) {
  for_rows(rows, call("attribute", formatted("leaves + (size_t)row * {}, {}{}", number(meta_.num_trees),
                                             of_call(OutputKind::ApproxContributions),
                                             explained(OutputKind::ApproxContributions))) +
                     ";");
}

void CodeWriter::write_quantiles(std::uint32_t rows) {
  for_rows(
      rows,
      call("write_quantiles",
           formatted("leaves + (size_t)row * {}, call, (double *)out + (size_t)row * call->quantile_count",
                     number(meta_.num_trees))) +
          ";");
}

void CodeWriter::write_explain(std::uint32_t rows) {
  const auto explain = [&](OutputKind output, const char* function) {
    for_rows(rows,
             call(function, formatted("x + (size_t)row * stride, {}{}", of_call(output), explained(output))) +
                 ";");
  };
  if (meta_.contributions < 2) return explain(OutputKind::Contributions, "explain");
  open(formatted("if ({})", want(OutputKind::Interactions)));
  explain(OutputKind::Interactions, "interact");
  close();
  open("else");
  explain(OutputKind::Contributions, "explain");
  close();
}

void CodeWriter::write_store(const OperandsOf<Op::Store>& args) {
  const std::string value = at(args.acc_in, "row");
  if (meta_.pair == Pair::None && sum_type(job_, kind(args.acc_in)) == score())
    return for_rows(args.rows, formatted("memcpy(({} *)out + (size_t)row * width, {}, width * sizeof({}));",
                                         score(), value, score()));
  uses_k_ = true;
  const std::string put =
      formatted("for (k = 0u; k < width; ++k) (({} *)out)[(size_t)row * width + k] = ({})", score(), score());
  if (meta_.pair == Pair::None) return for_rows(args.rows, formatted("{}{}[k];", put, value));
  for_rows(args.rows, formatted("{}(width == 2u && k == 0u ? {});", put, pair_of(value + "[0]")));
}

void CodeWriter::write_label(const OperandsOf<Op::Label>& args) {
  for_rows(args.rows, call("label_" + sum_name(kind(args.acc_in)),
                           at(args.acc_in, "row") + ", (int64_t *)out + (size_t)row * width" +
                               divisor(args.acc_in, divides_for_label(job_))) +
                          ";");
}

void CodeWriter::write_loop(const Inst& inst) {
  const LoopOperands loop = loop_operands(inst);
  set_.insert(loop.out);
  loops_.insert(loop.out);
  const std::string i = formatted("i{}", loop.out), step = number(loop.step);
  if (inst.op == Op::Par) line("/* Iterations may run in parallel. */");
  open(formatted("for ({} = 0u; {} < {}; ++{})", i, i,
                 call("iterations", formatted("{}, {}", reg(loop.in), step)), i));
  line(formatted("{} = {};", reg(loop.out), call("chunk", formatted("{}, {}, {}", reg(loop.in), step, i))));
}

void CodeWriter::write_slice(const Inst& inst) {
  const auto [out, in, from, to] = operands<Op::Slice>(inst);
  set_.insert(out);
  line(formatted("{} = {};", reg(out),
                 call("slice", formatted("{}, {}, {}", reg(in), number(from), number(to)))));
}

void CodeWriter::write_begin_of(std::uint32_t accumulator, std::uint32_t rows) {
  const std::string trees = "call->tree_begin, 0, (call->tree_end - call->tree_begin)";
  if (job_.calls.some_trees() && is_per_tree(kind(accumulator)))
    return for_rows(rows, formatted("memset({} + {} * sizeof({}));", at(accumulator, "row"), trees,
                                    sum_type(job_, kind(accumulator))));
  if (!resumes(accumulator)) return write_zero(accumulator, rows);
  open("if (call->sums == NULL)");
  write_zero(accumulator, rows);
  close();
  line("else");
  ++depth_;
  for_rows(rows, formatted("memcpy({}, call->sums, {} * sizeof(double));", at(accumulator, "row"),
                           number(meta_.num_outputs)));
  --depth_;
}

void CodeWriter::write_init(const OperandsOf<Op::Init>& args, bool adds) {
  const auto [accumulator, rows] = args;
  uses_row_ = uses_k_ = true;
  const AccumulatorKind of = kind(accumulator);
  const std::string sum = at(accumulator, "row") + "[k]";
  line(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(rows), reg(rows)));
  const std::string each = formatted("  for (k = 0u; k < {}; ++k) ", number(meta_.num_outputs));
  if (!adds && resumes(accumulator))
    return line(formatted("{}{} = call->sums != NULL ? call->sums[k] : {};", each, sum, base(of)));
  if (!adds) return line(formatted("{}{} = {};", each, sum, base(of)));
  if (of != AccumulatorKind::F32 && meta_.scale == 1) return line(each + add(of, sum, base(of)));
  line(formatted("{}{} = {};", each, sum, with_base(of, sum)));
}

void CodeWriter::write_privatize(const Inst& inst) {
  const auto args = operands<Op::Privatize>(inst);
  const std::uint32_t parent = desc(args.acc_out).parent;
  line(formatted("{} = {} * {} + {}.iteration;", copy(args.acc_out), copy(parent),
                 number(desc(args.acc_out).iterations), reg(args.range_in)));
  if (desc(args.acc_out).stored_in == args.acc_out) write_zero(args.acc_out, args.rows);
}

void CodeWriter::write_walk(const InstFacts& facts, std::uint32_t trees, std::uint32_t rows,
                            std::uint32_t select, std::optional<std::uint32_t> accumulator) {
  if (facts.select == kNoRange) return write_walker(trees, rows, facts.first_walker, accumulator);
  open(formatted("switch ({}.iteration)", reg(select)));
  for (std::uint32_t i = 0; i < facts.walker_count; ++i) {
    open(formatted("case {}:", number(i)));
    write_walker(trees, rows, facts.first_walker + i, accumulator);
    line("break;");
    close();
  }
  line("default: break;");
  close();
}

void CodeWriter::write_walker(std::uint32_t trees, std::uint32_t rows, std::uint32_t walker,
                              std::optional<std::uint32_t> accumulator) {
  uses_row_ = uses_tree_ = true;
  const WalkerDesc& desc = job_.program.walkers()[walker];
  const GroupDesc& group = job_.program.groups()[desc.group];
  const std::string g = formatted("g{}_", desc.group);
  const std::string row_loop = formatted("for (row = {}.begin; row < {}.end; ++row)", reg(rows), reg(rows));
  const bool some = accumulator && job_.calls.some_trees(), clipped = some && is_in_order(desc.group);
  const std::string tree_loop =
      clipped
          ? formatted(
                "for (tree = {}.begin > call->tree_begin ? {}.begin : call->tree_begin; tree < {}.end && tree < call->tree_end; ++tree)",
                reg(trees), reg(trees), reg(trees))
          : formatted("for (tree = {}.begin; tree < {}.end; ++tree)", reg(trees), reg(trees));
  const bool rows_outer = desc.order == WalkOrder::RowsOuter;
  line(rows_outer ? row_loop : tree_loop);
  open("  " + (rows_outer ? tree_loop : row_loop));
  const std::string tree = job_.name(g + "tree") + "[t]";
  const std::string leaf = call(formatted("walk_g{}", desc.group), "t, x + (size_t)row * stride");
  line(formatted("const uint32_t t = tree - {};", number(group.tree_begin)));
  if (some && !clipped) {
    line("uint32_t leaf;");
    line(formatted("if ({} < call->tree_begin || {} >= call->tree_end) continue;", tree, tree));
    line(formatted("leaf = {};", leaf));
  } else {
    line(formatted("const uint32_t leaf = {};", leaf));
  }
  if (!accumulator) {
    line(formatted("{}[(size_t)row * {} + {}] = {}[leaf];",
                   keeps_leaf_numbers(job_.program) ? "leaves" : "((int32_t *)out)", number(meta_.num_trees),
                   tree, job_.name(g + "number")));
  } else {
    const std::uint32_t a = *accumulator;
    const std::string value = job_.name(formatted("{}leaf_{}", g, sum_name(kind(a)))) + "[leaf]";
    if (is_per_tree(kind(a)))
      line(formatted("{}[{}] = {};", at(a, "row"), tree, value));
    else
      line(add(kind(a), formatted("{}[{}[t]]", at(a, "row"), job_.name(g + "output")), value));
  }
  close();
}

bool CodeWriter::is_in_order(std::uint32_t index) const {
  const GroupDesc& group = job_.program.groups()[index];
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    if (job_.program.trees()[group.first_tree + t - group.tree_begin].number != t) return false;
  return true;
}

void CodeWriter::write_reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place) {
  uses_i_ = uses_k_ = true;
  const std::uint32_t to = args.acc_out, from = args.acc_in;
  const std::uint32_t rows = args.rows;
  const LoopOperands loop = loop_operands(job_.program.code()[args.loop]);
  const std::string first = formatted("{} * {}", copy(to), number(desc(from).iterations)),
                    begin = reg(rows) + ".begin";
  const std::string count = call("iterations", formatted("{}, {}", reg(loop.in), number(loop.step)));
  const std::string target = in_place ? at(from, first, begin) : at(to, begin);
  if (in_place)
    line(formatted("if ({} == 0u) memset({}, 0, {} * sizeof({}));", count, target, size_of(to, rows),
                   sum_type(job_, kind(to))));
  line(formatted("for (i = {}; i < {}; ++i)", in_place ? "1u" : "0u", count));
  line(formatted("  for (k = 0u; k < {}; ++k) {}", size_of(to, rows),
                 add(kind(to), target + "[k]", at(from, first + " + i", begin) + "[k]")));
}

void CodeWriter::write_round(const Inst& inst) {
  uses_k_ = true;
  const auto [to, from, rows] = operands<Op::Round>(inst);
  const std::string sum = at(from, reg(rows) + ".begin") + "[k]";
  std::string rounded = formatted("({}){}", sum_type(job_, kind(to)), sum);
  if (kind(from) == AccumulatorKind::Exact64) rounded = call("round64_" + sum_name(kind(to)), sum);
  if (kind(from) == AccumulatorKind::Exact128) rounded = call("round128_" + sum_name(kind(to)), sum);
  line(formatted("for (k = 0u; k < {}; ++k) {}[k] = {};", size_of(to, rows), at(to, reg(rows) + ".begin"),
                 rounded));
}

std::string CodeWriter::head() {
  std::string text = in_file(
      job_,
      formatted(
          "static void @run(const @ROW *x, size_t stride, uint32_t count, uint32_t all, uint32_t want, {}void *out) {\n",
          job_.calls.read() ? "const @call *call, " : ""));
  const bool copies = copies_rows(job_.program);
  uses_row_ = uses_row_ || copies;
  if (copies) text += formatted("  float cells[{}];\n", number(std::uint64_t{rows_} * row_width(meta_)));
  if (keeps_leaf_numbers(job_.program))
    text += formatted("  int32_t kept[{}];\n  int32_t *const leaves = {} ? kept : (int32_t *)out;\n",
                      number(std::max<std::uint64_t>(std::uint64_t{rows_} * meta_.num_trees, 1)),
                      want(OutputKind::ApproxContributions) + " || " + want(OutputKind::Quantile));
  const std::set<std::uint32_t> used = used_storage(job_.program);
  for (const std::uint32_t i : used)
    text += formatted("  {} a{}[{}];\n", sum_type(job_, kind(i)), i,
                      std::uint64_t{desc(i).copies} * rows_ * memory(i).width);
  text += formatted("  const size_t width = want == 1u ? {} : want == 2u ? {} : {};\n",
                    number(output_width(job_.program, OutputKind::Value)),
                    number(output_width(job_.program, OutputKind::Class)), number(meta_.num_outputs));
  for (std::uint32_t i = 0; i < job_.program.accumulators().size(); ++i)
    if (desc(i).parent != i) text += formatted("  uint32_t copy{} = 0u;\n", i);
  text += formatted("  {} r0, r1", job_.name("range"));
  for (const std::uint32_t index : set_) text += ", " + reg(index);
  text += ";\n";
  for (const std::uint32_t index : loops_) text += formatted("  uint32_t i{};\n", index);
  if (uses_row_) text += "  uint32_t row;\n";
  if (uses_tree_) text += "  uint32_t tree;\n";
  if (uses_i_) text += "  uint32_t i;\n";
  if (uses_k_) text += "  size_t k;\n";
  const std::string trees = number(meta_.num_trees);
  for (const std::uint32_t index : set_) text += formatted("  (void){};\n", reg(index));
  if (job_.calls.read()) text += "  (void)call;\n";
  text += formatted(
      "  r0.begin = 0u; r0.end = count; r0.iteration = 0u;\n  r1.begin = 0u; r1.end = {}; r1.iteration = 0u;\n  (void)r0; (void)r1; (void)x; (void)stride; (void)all; (void)width;\n",
      trees);
  if (!copies) return text;
  const std::string cells = number(row_width(meta_));
  return formatted("{}  for (row = 0u; row < count; ++row) {};\n  x = cells;\n  stride = {};\n", text,
                   call("complete", "x + (size_t)row * stride, cells + (size_t)row * " + cells), cells);
}

std::string code_text(const Job& job, std::uint32_t rows_at_a_time) {
  return CodeWriter(job, rows_at_a_time).run();
}

std::uint64_t bytes_per_row(const Program& program) {
  std::uint64_t bytes = copies_rows(program) ? row_width(program.meta()) * sizeof(float) : 0;
  if (keeps_leaf_numbers(program)) bytes += program.meta().num_trees * sizeof(std::int32_t);
  for (const std::uint32_t i : used_storage(program)) bytes += code_map(program).accumulators[i].copy_bytes;
  return bytes;
}

}  // namespace forestvm::bytecode::export_c
