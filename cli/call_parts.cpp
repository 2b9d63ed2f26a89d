// See call_parts.hpp.
#include "cli/call_parts.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "cli/call_samples.hpp"

namespace forestvm::cli {
namespace {

/// Returns the instruction's name in a line of a program's text, after the pc; empty in a comment.
std::string_view name_in(std::string_view line) {
  if (line.starts_with(';')) return {};
  line.remove_prefix(std::min(line.find_first_not_of(" 0123456789"), line.size()));
  return line.substr(0, line.find(' '));
}

/// Returns the range of the rows that an instruction encodes, walks or adds up: its last range before the walker.
std::string_view rows_in(std::string_view line) {
  const std::size_t begin = line.substr(0, line.find(", w")).rfind(" r") + 1;
  return line.substr(begin, line.find(',', begin) - begin);
}

/// Returns the text of a program without its walks for scores and without sums of the leaves that they keep; `encodes`
/// says whether rows are encoded for them. An instruction that does nothing, a slice of the rows into a range that
/// nothing else uses, takes the place of each.
std::string without_walks(const std::string& code, bool encodes) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < code.size();) {
    const std::size_t end = std::min(code.find('\n', begin), code.size());
    lines.push_back(std::string_view(code).substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<std::string> text(lines.size());
  // From the last line to the first: whether walks and encoding before a line are for other outputs, which need them.
  bool is_for_others = true;
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::string_view name = name_in(lines[i]);
    const bool is_sum = name == "sum_trees", is_walk = name == "walk";
    if (name == "leaves" || name == "explain" || name == "store_trees" || name == "store_stages")
      is_for_others = true;
    if (name == "store" || is_sum) is_for_others = false;
    const bool is_left_out = !is_for_others && (is_walk || is_sum || (name == "encode" && !encodes));
    text[i] = is_left_out ? formatted("slice r{}, {}, from 0, to 0", kRangeRegisters - 1, rows_in(lines[i]))
                          : std::string(lines[i]);
  }
  std::string all;
  for (const std::string& line : text) all += line + '\n';
  return all;
}

}  // namespace

Result<PartPrograms> PartPrograms::make(const Program& program, const BackendOptions& options) {
  const std::string code = program.disassemble();
  if (code.find(formatted("r{}", kRangeRegisters - 1)) != std::string::npos)
    return refused(formatted("--parts: all {} ranges of the program are in use", kRangeRegisters));
  PartPrograms parts;
  FVM_ASSIGN(parts.whole_, host_backend(program, options));
  FVM_ASSIGN(const Program encoding, assemble(without_walks(code, true), program));
  FVM_ASSIGN(parts.encoding_, host_backend(encoding, options));
  FVM_ASSIGN(const Program bare, assemble(without_walks(code, false), program));
  FVM_ASSIGN(parts.bare_, host_backend(bare, options));
  return parts;
}

Result<PartTimes> PartPrograms::times(const RepeatedRows& rows, std::uint64_t batch, Seconds budget) const {
  std::vector<Caller> callers;
  callers.emplace_back(*whole_, rows, batch);
  callers.emplace_back(*encoding_, rows, batch);
  callers.emplace_back(*bare_, rows, batch);
  callers.emplace_back(*bare_, rows, batch, OutputKind::Value);
  FVM_ASSIGN(const std::vector<CallSamples> samples, samples_in_turns(callers, budget / 4));
  std::array<double, 4> least{};
  for (std::size_t i = 0; i < least.size(); ++i)
    least[i] = samples[i].least() * 1e6 / static_cast<double>(batch);
  const auto [whole, encoding, bare, bare_values] = least;
  return PartTimes{std::max(encoding - bare, 0.0), std::max(whole - encoding, 0.0), bare,
                   std::max(bare_values - bare, 0.0)};
}

}  // namespace forestvm::cli
