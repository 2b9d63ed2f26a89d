// Writes the C that adds the outputs of single trees to scores, and that writes what is made of them: the outputs
// themselves, the scores of stages and of virtual ensembles, and what the spread of trees or ensembles says.
#include "vm/export_c/code_writer.hpp"

#include <algorithm>
#include <iterator>

namespace forestvm::bytecode::export_c {

void CodeWriter::write_sum_trees(const Inst& inst) {
  const auto [to, from, rows] = operands<Op::SumTrees>(inst);
  uses_row_ = true;
  line(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(rows), reg(rows)));
  line(formatted("  {} {", for_trees()));
  add_tree("    ", to, from);
  line("  }");
}

void CodeWriter::add_tree(const std::string& indent, std::uint32_t to, std::uint32_t from) {
  uses_tree_ = true;
  if (job_.program.leaf_vectors().empty())
    return line(
        formatted("{}{}[{}[tree]] += {};", indent, at(to, "row"), job_.name("tree_output"), leaf_of(from)));
  uses_k_ = true;
  line(formatted("{}const {} *const vector = {};", indent, score(), vector_of(from)));
  line(formatted("{}for (k = 0u; k < {}; ++k) {}[k] += vector[k];", indent, number(meta_.num_outputs),
                 at(to, "row")));
}

void CodeWriter::write_store_trees(const OperandsOf<Op::StoreTrees>& args) {
  uses_row_ = uses_tree_ = true;
  const bool some = job_.calls.some_trees();
  const std::string trees = some ? "(call->tree_end - call->tree_begin)" : number(meta_.num_trees);
  const std::string to = formatted("(size_t)row * {} + tree{}", trees, some ? " - call->tree_begin" : "");
  line(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(args.rows), reg(args.rows)));
  line("  " + for_trees());
  if (job_.program.leaf_vectors().empty())
    return line(formatted("    (({} *)out)[{}] = {};", score(), to, leaf_of(args.acc_in)));
  const std::string outputs = number(meta_.num_outputs);
  line(formatted("    memcpy(({} *)out + ({}) * {}, {}, {} * sizeof({}));", score(), to, outputs,
                 vector_of(args.acc_in), outputs, score()));
}

void CodeWriter::write_store_stages(const OperandsOf<Op::StoreStages>& args) {
  // Without such a block the call's output decides.
  const auto write = [&](OutputKind output) {
    if (output == OutputKind::Staged) return write_stages(args);
    if (job_.program.uncertainty()[0].rule == UncertaintyRule::Trees) return write_spread(args);
    write_members(args, output);
  };
  constexpr OutputKind kOutputs[] = {OutputKind::Staged, OutputKind::VirtEnsembles, OutputKind::Uncertainty};
  for (std::size_t b = blocks_.size(); b-- > 0;)
    if (blocks_[b] && std::ranges::find(kOutputs, *blocks_[b]) != std::end(kOutputs))
      return write(*blocks_[b]);
  for (const OutputKind output : kOutputs) {
    if (!is_exported(job_.program, output)) continue;
    open(formatted("if ({})", want(output)));
    write(output);
    close();
  }
}

void CodeWriter::write_stages(const OperandsOf<Op::StoreStages>& args) {
  uses_row_ = uses_k_ = true;
  const AccumulatorKind of = kind(args.acc_out);
  const std::string outputs = number(meta_.num_outputs);
  const std::string sum = at(args.acc_out, "row") + "[k]";
  open(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(args.rows), reg(args.rows)));
  line("uint32_t round = call->round_begin;");
  line(formatted(
      "{} *to = ({} *)out + (size_t)row * ((call->round_end - round - 1u) / call->every + 1u) * {};", score(),
      score(), outputs));
  line("tree = call->tree_begin;");
  open("do");
  line("round = call->every < call->round_end - round ? round + call->every : call->round_end;");
  line(formatted("for (; tree < {}[round]; ++tree) {", job_.name("round_begin")));
  add_tree("  ", args.acc_out, args.acc_in);
  line("}");
  line(formatted("for (k = 0u; k < {}; ++k) to[k] = {};", outputs,
                 args.base_last == 0 ? sum : with_base(of, sum)));
  line(formatted("to += {};", outputs));
  --depth_;
  line("} while (round < call->round_end);");
  close();
}

void CodeWriter::write_members(const OperandsOf<Op::StoreStages>& args, OutputKind output) {
  uses_row_ = uses_k_ = true;
  const std::string outputs = number(meta_.num_outputs), sum = at(args.acc_out, "row") + "[k]";
  const bool all = output == OutputKind::VirtEnsembles;
  const std::string factor =
      job_.program.uncertainty()[0].shrinkage == 0
          ? std::string()
          : formatted(" * {}[period * (call->every - piece)]", job_.name("ensemble_factors"));
  open(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(args.rows), reg(args.rows)));
  line("const uint32_t period = call->round_end / 2u / call->every;");
  line("uint32_t piece, pass;");
  line(formatted("double member[{}], scores[{}];", outputs, outputs));
  if (all)
    line(formatted("double *to = (double *)out + (size_t)row * call->every * {};", outputs));
  else
    line(formatted("double totals[{}] = {0};", std::max(3u, meta_.num_outputs + 1)));
  open(formatted("for (pass = 0u; pass < {}; ++pass)", all ? "1u" : number(member_passes(job_.program))));
  line("tree = 0u;");
  open("for (piece = 0u; piece <= call->every; ++piece)");
  line(formatted("for (k = 0u; k < {}; ++k) {} = 0;", outputs, sum));
  open(formatted("for (; tree < {}[call->round_end - period * (call->every - piece)]; ++tree)",
                 job_.name("round_begin")));
  add_tree("", args.acc_out, args.acc_in);
  close();
  open(formatted("for (k = 0u; k < {}; ++k)", outputs));
  line(formatted("member[k] = (double){} * {} + (piece == 0u ? {} : member[k]);", sum, literal(meta_.scale),
                 base(AccumulatorKind::F64)));
  line(formatted("scores[k] = member[k]{};", factor));
  close();
  line("if (piece == 0u) continue;");
  if (all && job_.program.uncertainty()[0].rule == UncertaintyRule::Gaussian)
    line(formatted("scores[1] = {};", call("exp_f64", "2 * scores[1]")));
  if (all) {
    line("memcpy(to, scores, sizeof scores);");
    line(formatted("to += {};", outputs));
  } else {
    line(call("add_member", "scores, pass, call->every, totals") + ";");
  }
  close();
  close();
  if (!all)
    line(call("uncertainty_of", formatted("totals, call->every, (double *)out + (size_t)row * {}",
                                          number(uncertainty_width(job_.program)))) +
         ";");
  close();
}

void CodeWriter::write_spread(const OperandsOf<Op::StoreStages>& args) {
  uses_row_ = uses_tree_ = uses_k_ = true;
  const bool vectors = !job_.program.leaf_vectors().empty();
  const std::string leaf = vectors ? formatted("({})[k]", vector_of(args.acc_in)) : leaf_of(args.acc_in);
  const auto for_trees_of_output = [&] {
    open(for_trees());
    if (!vectors) line(formatted("if ({}[tree] != k) continue;", job_.name("tree_output")));
  };
  open(formatted("for (row = {}.begin; row < {}.end; ++row)", reg(args.rows), reg(args.rows)));
  open(formatted("for (k = 0u; k < {}; ++k)", number(meta_.num_outputs)));
  line(formatted("{} sum = 0, mean;", score()));
  line("uint32_t trees = 0u;");
  line("double squares = 0;");
  for_trees_of_output();
  line(formatted("sum += ({}){};", score(), leaf));
  line("++trees;");
  close();
  line(formatted("mean = trees == 0u ? sum : sum / ({})trees;", score()));
  for_trees_of_output();
  line(formatted("squares += ((double)({}){} - (double)mean) * ((double)({}){} - (double)mean);", score(),
                 leaf, score(), leaf));
  close();
  const std::string to =
      formatted("(({} *)out)[(size_t)row * {} + 2u * k", score(), number(uncertainty_width(job_.program)));
  line(formatted("{}] = mean;", to));
  line(formatted("{} + 1u] = ({})(trees == 0u ? squares : squares / trees);", to, score()));
  close();
  close();
}

}  // namespace forestvm::bytecode::export_c
