// Exports a program as C: puts the parts together and writes the functions that callers see.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

#include <forestvm/backend.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/derived_tables.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm {
namespace {

using namespace bytecode::export_c;

/// Bytes of accumulators on the stack, unless one row takes more.
constexpr std::uint64_t kStackBytes = 64 << 10;
constexpr std::uint32_t kMaxRows = 64;

bool is_identifier(const std::string& name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

/// Returns a text of the model for a C comment, in which nothing ends the comment.
std::string in_comment(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool harmless = c == '\n' || (c >= ' ' && c <= '~' && c != '/' && c != '*' && c != '\\');
    out += !harmless ? '?' : c;
    if (c == '\n') out += " *     ";
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == '*' || out.back() == '\n')) out.pop_back();
  return out;
}

/// Lists the features of a program that hold categories, and the function that writes them.
std::string hashed_text(const Job& job) {
  if (!looks_up(job.program)) return "";
  std::string features;
  for (const std::uint32_t feature : job.program.hashed_features())
    features += (features.empty() ? "" : ", ") + std::to_string(feature);
  return formatted(" * Features that hold what {} writes: {}.\n", job.name("category"), features);
}

/// Lists the kinds of accumulators to which walks give leaves.
std::string sums_text(const Program& program) {
  std::set<std::string> names;
  for (const InstFacts& inst : code_map(program).insts)
    if (inst.walk_sums != kNoAccumulator) names.emplace(name_of(program.accumulators()[inst.walk_sums].kind));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

std::string comment(const Job& job, const ExportedC& size) {
  const Program& program = job.program;
  const ProgramMeta& meta = program.meta();
  const auto count = [](std::uint64_t value) { return std::to_string(value); };
  std::string text = "/* A decision forest: " + count(meta.num_trees) + " trees, " +
                     count(meta.num_features) + " features, " + count(meta.num_outputs) + " outputs.\n";
  text +=
      formatted(" * Trained by {} {}, objective {}; contract {}, sums {}.\n",
                in_comment(program.text(StringId::Trainer)), in_comment(program.text(StringId::Version)),
                in_comment(program.text(StringId::Objective)), name_of(meta.contract), sums_text(program));
  if (!program.text(StringId::Schedule).empty())
    text += formatted(" * Schedule:\n *     {}\n", in_comment(program.text(StringId::Schedule)));
  text += formatted(" * {} bytes of constant tables, {} bytes of stack for {} rows at a time.\n",
                    count(size.table_bytes), count(size.stack_bytes), count(size.rows_at_a_time));
  return formatted(
      "{} * C99; compile with -ffp-contract=off where the compiler would fuse multiplications and additions.\n{} * Rows are of type {}, `stride` numbers from one to the next; NaN is a missing value. */\n",
      text, hashed_text(job), c_type(meta.row_type));
}

double scalar_at(ScalarType type, const std::byte* at) {
  float narrow;
  double wide;
  std::memcpy(&narrow, at, sizeof narrow);
  if (type == ScalarType::Float32) return static_cast<double>(narrow);
  std::memcpy(&wide, at, sizeof wide);
  return wide;
}

/// Returns the tables of base scores, leaf vectors, leaf functions, trees' outputs and contributions that the code
/// names. Adds the tables' bytes, and what contributions take of the stack, to `exported`.
std::string model_tables(const Job& job, std::string code, ExportedC& exported) {
  std::uint64_t& table_bytes = exported.table_bytes;
  const ProgramMeta& meta = job.program.meta();
  const auto used = [&](const std::string& name) { return code.find(job.name(name)) != std::string::npos; };
  std::string text, explained;
  std::uint64_t ignored = 0;
  if (used("attribute(")) explained += attributions_text(job, table_bytes);
  if (used("explain(")) explained += contributions_text(job, table_bytes, exported.stack_bytes);
  if (used("write_quantiles(")) explained += quantiles_text(job, table_bytes);
  if (used("add_member(")) explained += uncertainty_text(job, table_bytes);
  code += explained;
  for (const AccumulatorKind kind : kSumKinds) {
    const std::string name = "base_" + sum_name(kind);
    std::vector<std::string> base;
    for (const double value : job.program.base()) base.push_back(sum_literal(job, kind, value));
    const bool varies = used("base_of_" + sum_name(kind) + "(");
    if (varies || used(name + "[")) text += table(sum_type(job, kind), 0, job.name(name), base, ignored);
    if (varies) text += base_text(job, kind);
  }
  if (used("vectors ")) {
    const std::uint32_t size = size_of(meta.score_type);
    const auto bytes = job.program.leaf_vectors();
    std::vector<std::string> numbers;
    for (std::size_t at = 0; at < bytes.size(); at += size)
      numbers.push_back(literal(meta.score_type, scalar_at(meta.score_type, bytes.data() + at)));
    text += table(c_type(meta.score_type), size, job.name("vectors"), numbers, table_bytes);
  }
  if (used("leaf_output(")) text += leaf_functions_text(job, table_bytes);
  std::vector<std::string> outputs;
  for (const std::uint32_t output : tree_outputs(job.program)) outputs.push_back(number(output));
  if (used("tree_output[")) text += table("uint32_t", 0, job.name("tree_output"), outputs, ignored);
  std::vector<std::string> begins;
  for (const std::uint32_t tree : job.program.round_begins()) begins.push_back(number(tree));
  if (used("round_begin[")) text += table("uint32_t", 0, job.name("round_begin"), begins, ignored);
  return text + explained;
}

}  // namespace

bool bytecode::export_c::is_exported(const Program& program, OutputKind output) {
  switch (output) {
    case OutputKind::Raw:
    case OutputKind::Value:
    case OutputKind::Leaf:
      return true;
    case OutputKind::Class:
      return program.meta().class_rule != ClassRule::None;
    case OutputKind::Trees:
    case OutputKind::Staged:
      return output_width(program, output) != 0;
    case OutputKind::Contributions:
      return program.meta().contributions != 0;
    case OutputKind::Interactions:
      return program.meta().contributions > 1;
    case OutputKind::ApproxContributions:
      return !program.attribution_base().empty();
    case OutputKind::VirtEnsembles:
      return has_members(program) && program.round_begins().size() > 2;
    case OutputKind::Uncertainty:
      return has_members(program) ? is_exported(program, OutputKind::VirtEnsembles)
                                  : CallKinds(program).rounds && output_width(program, output) != 0;
    case OutputKind::Quantile:
      return !program.targets().empty();
  }
  return false;
}

Result<ExportedC> export_c(const Program& program, const ExportOptions& options) {
  if (!is_identifier(options.prefix)) return usage("'{}' is not a C identifier", options.prefix);
  if (program.mapped())
    return refused(
        "the program's loops are mapped to a GPU's grid and blocks (gpuDimension), which C does not have");
  if (has_members(program) && !CallKinds(program).rounds)
    return refused(
        "the program computes virtual ensembles of trees that are no rounds of boosting, which exported C does not");
  Job job{program, options, CallKinds(program), {}, changed_features(program)};
  if (column_count(job) > kMaxFeatures)
    return refused(formatted("the program has {} columns, exported C reads at most {}", column_count(job),
                             kMaxFeatures));
  for (const GroupDesc& group : program.groups())
    job.groups.push_back(bytecode::decode_group(program, group));
  ExportedC result;
  const std::uint64_t row_bytes = bytes_per_row(program);
  result.rows_at_a_time =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kStackBytes / row_bytes, 1, kMaxRows));
  result.stack_bytes = result.rows_at_a_time * row_bytes;
  const std::uint64_t outputs = program.meta().num_outputs;
  if (job.calls.early_stop) result.stack_bytes += outputs * sizeof(double);
  if (has_members(program)) result.stack_bytes += (3 * outputs + 2) * sizeof(double);
  const std::string code = code_text(job, result.rows_at_a_time);
  const std::string entries = entries_text(job, result.rows_at_a_time);
  const std::string forest = forest_text(job, code, result.table_bytes);
  const std::string tables = model_tables(job, code + entries, result);
  const std::string columns = columns_text(job, result.table_bytes);
  result.text = formatted(
      "{}#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n#define LEAF 0x80000000u\n\n{}{}{}\n{}{}\n{}\n{}",
      comment(job, result), call_types(job), columns, runtime_text(job, forest + tables + code), forest,
      tables, code, entries);
  return result;
}

}  // namespace forestvm
