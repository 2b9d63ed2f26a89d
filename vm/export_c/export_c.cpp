// Exports a program as C: puts the parts together and writes the functions that callers see.
#include <algorithm>
#include <cctype>
#include <cstring>

#include <forestvm/backend.hpp>
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

std::string comment(const Job& job, const ExportedC& size) {
  const Program& program = job.program;
  const ProgramMeta& meta = program.meta();
  const auto count = [](std::uint64_t value) { return std::to_string(value); };
  std::string text = "/* A decision forest: " + count(meta.num_trees) + " trees, " +
                     count(meta.num_features) + " features, " + count(meta.num_outputs) + " outputs.\n";
  text += " * Trained by " + in_comment(program.text(StringId::Trainer)) + " " +
          in_comment(program.text(StringId::Version)) + ", objective " +
          in_comment(program.text(StringId::Objective)) + "; contract " +
          std::string(name_of(meta.contract)) + ", sums " + std::string(name_of(job.sums)) + ".\n";
  if (!program.text(StringId::Schedule).empty())
    text += " * Schedule:\n *     " + in_comment(program.text(StringId::Schedule)) + "\n";
  text += " * " + count(size.table_bytes) + " bytes of constant tables, " + count(size.stack_bytes) +
          " bytes of stack for " + count(size.rows_at_a_time) + " rows at a time.\n";
  return text +
         " * C99; compile with -ffp-contract=off where the compiler would fuse multiplications and "
         "additions.\n"
         " * Rows are float32, `stride` numbers from one to the next; NaN is a missing value. */\n";
}

/// Returns the function `void PREFIX_NAME(const float *rows, size_t count, size_t stride, TYPE *out)`, which
/// predicts `rows` rows at a time.
std::string entry(const Job& job, const std::string& name, const std::string& type, OutputKind output,
                  std::uint32_t rows) {
  const std::string width = number(output_width(job.program.meta(), output));
  return "void " + job.name(name) + "(const float *rows, size_t count, size_t stride, " + type +
         " *out) {\n  size_t begin;\n  for (begin = 0u; begin < count; begin += " + number(rows) +
         ") {\n    const size_t left = count - begin;\n    " + job.name("run") +
         "(rows + begin * stride, stride, (uint32_t)(left < " + number(rows) + " ? left : " + number(rows) +
         "), " + number(static_cast<std::uint64_t>(output)) + ", out + begin * " + width + ");\n  }\n}\n";
}

std::string entries(const Job& job, std::uint32_t rows) {
  const ProgramMeta& meta = job.program.meta();
  std::string text = "/* Raw scores: count x " + number(meta.num_outputs) + ". */\n" +
                     entry(job, "predict_raw", "float", OutputKind::Raw, rows) +
                     "/* What the trainer's predict gives: count x " +
                     number(output_width(meta, OutputKind::Value)) + ". */\n" +
                     entry(job, "predict", "float", OutputKind::Value, rows);
  if (meta.class_rule != ClassRule::None)
    text += "/* Labels' indices: count x " + number(output_width(meta, OutputKind::Class)) + ". */\n" +
            entry(job, "predict_class", "int64_t", OutputKind::Class, rows);
  text += "/* Leaf numbers: count x " + number(meta.num_trees) + ". */\n" +
          entry(job, "predict_leaf", "int32_t", OutputKind::Leaf, rows);
  return text + "/* The same as predict for one row. */\nvoid " + job.name("predict_one") +
         "(const float *row, float *out) { " + job.name("predict") + "(row, 1u, " +
         number(meta.num_features) + ", out); }\n";
}

std::string base_tables(const Job& job, const std::string& code, std::uint64_t& table_bytes) {
  std::string text;
  std::uint64_t ignored = 0;
  std::vector<std::string> sums, floats, doubles, outputs(job.program.meta().num_trees);
  for (const double base : job.program.section_Base()) {
    sums.push_back(sum_literal(job, static_cast<float>(base)));
    floats.push_back(literal(static_cast<float>(base)));
    doubles.push_back(literal(base));
  }
  for (const TreeDesc& tree : job.program.section_Trees()) outputs[tree.number] = number(tree.output);
  if (code.find(job.name("base[")) != std::string::npos)
    text += table(sum_type(job, job.sums), 0, job.name("base"), sums, ignored);
  if (code.find(job.name("base_f32[")) != std::string::npos)
    text += table("float", 0, job.name("base_f32"), floats, ignored);
  if (code.find(job.name("base_f64[")) != std::string::npos)
    text += table("double", 0, job.name("base_f64"), doubles, ignored);
  if (code.find(job.name("vectors ")) != std::string::npos) {
    std::vector<std::string> numbers;
    const auto bytes = job.program.section_LeafVectors();
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      float number;
      std::memcpy(&number, bytes.data() + at, sizeof number);
      numbers.push_back(literal(number));
    }
    text += table("float", sizeof(float), job.name("vectors"), numbers, table_bytes);
  }
  if (code.find(job.name("tree_output[")) != std::string::npos)
    text += table("uint32_t", 0, job.name("tree_output"), outputs, ignored);
  return text;
}

}  // namespace

Result<ExportedC> export_c(const Program& program, const ExportOptions& options) {
  if (!is_identifier(options.prefix))
    return Error{ErrorCode::Usage, "", "'" + options.prefix + "' is no C identifier"};
  if (program.mapped())
    return refused("",
                   "its loops are mapped to a GPU's grid and blocks (gpuDimension), which C does not have");
  if (row_width(program.meta()) != program.meta().num_features || !program.section_HashedFeatures().empty())
    return refused("", "derived columns (lookups, weighted sums) have no form in C yet");
  if (!program.section_ZeroMissing().empty())
    return refused("", "features whose zeros are missing have no form in C yet");
  if (!program.section_CategoryColumns().empty())
    return refused("", "categorical splits have no form in C yet");
  if (!program.section_LeafFunctions().empty())
    return refused("", "leaves that are linear functions of the row have no form in C yet");
  if (program.meta().score_type == ScalarType::Float64)
    return refused("", "sums of float64 leaves have no form in C yet");
  if (!has_transform(program.meta().transform))
    return refused("",
                   "transform " + std::string(name_of(program.meta().transform)) + " has no form in C yet");
  Job job{program, options};
  for (std::uint32_t i = 1; i < program.section_Accumulators().size(); ++i)
    if (program.section_Accumulators()[i].parent == i) job.sums = program.section_Accumulators()[i].kind;
  for (const GroupDesc& group : program.section_Groups())
    job.groups.push_back(bytecode::decode_group(program, group));
  ExportedC result;
  const std::uint64_t row_bytes = bytes_per_row(program);
  result.rows_at_a_time =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kStackBytes / row_bytes, 1, kMaxRows));
  result.stack_bytes = result.rows_at_a_time * row_bytes;
  const std::string code = code_text(job, result.rows_at_a_time);
  const std::string forest = forest_text(job, code, result.table_bytes);
  const std::string bases = base_tables(job, code, result.table_bytes);
  result.text =
      comment(job, result) +
      "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n#define LEAF 0x80000000u\n\n" +
      runtime_text(job, forest + bases + code) + "\n" + forest + bases + "\n" + code + "\n" +
      entries(job, result.rows_at_a_time);
  return result;
}

}  // namespace forestvm
