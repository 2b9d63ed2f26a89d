// Assembles text, as disassemble.cpp prints it, to a program with that code and the data of another program.
// It is driven by the rows of opcodes.def: no opcode is known by name here, and only operand_text.hpp knows
// how an operand is written.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "vm/program/format.hpp"
#include "vm/program/operand_text.hpp"

namespace forestvm {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the text without the blanks at both ends. An empty result still points into `text`, so that its column
/// is known.
std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const std::size_t end = text.find_last_not_of(kBlanks);
  return end == std::string_view::npos ? text.substr(begin) : text.substr(begin, end + 1 - begin);
}

/// Returns a piece of the text for a message.
std::string shown(std::string_view text) { return formatted("'{}'", printable(text, 40)); }

const OpInfo* find_opcode(std::string_view word) {
  const auto* const end = std::end(bytecode_rows::kOpInfo);
  const auto* const found = std::find_if(std::begin(bytecode_rows::kOpInfo), end,
                                         [&](const OpInfo& row) { return row.text == word; });
  return found == end ? nullptr : found;
}

std::string opcode_list() {
  std::string list;
  for (const OpInfo& row : bytecode_rows::kOpInfo) list += (list.empty() ? "" : ", ") + std::string(row.text);
  return list;
}

/// Reads one line: `[pc] opcode operand, operand, … [; comment]`. The views are parts of the line, so that
/// their columns are known.
class Line {
 public:
  Line(std::string_view text, std::size_t number)
      : number_(number), begin_(text.data()), rest_(trimmed(text.substr(0, text.find(';')))) {}

  bool blank() const { return rest_.empty(); }

  /// Reads the instruction. If there is a number before it, it must be `pc`.
  Result<Inst> instruction(std::size_t pc) {
    FVM_TRY(skip_pc(pc));
    const std::string_view word = take_word();
    const OpInfo* const row = find_opcode(word);
    if (row == nullptr) return at(word, formatted("an opcode: {}", opcode_list()));
    std::uint32_t values[kMaxOperands] = {};
    FVM_TRY(operands(*row, values));
    return pack(row->op, values);
  }

 private:
  Failure at(std::string_view piece, std::string_view expected) const {
    const std::string found = !piece.empty() ? formatted("found {}", shown(piece))
                              : after_comma_ ? "found nothing"
                                             : "the line ends";
    return refused(formatted("line {}, column {}", number_, piece.data() - begin_ + 1), "{}, expected {}",
                   found, expected);
  }

  std::string_view take_word() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kBlanks));
    rest_ = trimmed(rest_.substr(word.size()));
    return word;
  }

  /// Skips the pc before the instruction, if there is one. The pc must be right, because blocks name each other by
  /// pc: a line that was moved without changing its pc would change what they mean.
  Result<void> skip_pc(std::size_t pc) {
    if (!is_digit(rest_.front())) return {};
    const std::string_view word = take_word();
    std::size_t value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size() || value != pc)
      return at(word, formatted("pc {}, or none", pc));
    return {};
  }

  /// Takes the operand up to the next comma.
  std::string_view take_operand() {
    const std::size_t comma = rest_.find(',');
    const std::string_view operand = trimmed(rest_.substr(0, comma));
    after_comma_ = comma != std::string_view::npos;
    rest_ = after_comma_ ? trimmed(rest_.substr(comma + 1)) : rest_.substr(rest_.size());
    return operand;
  }

  Result<void> operands(const OpInfo& row, std::uint32_t* values) {
    for (unsigned i = 0; i < row.operands.count; ++i) {
      const std::string_view operand = take_operand();
      const auto value = bytecode::operand_value(row.operands.kinds[i], operand);
      if (!value) return at(operand, bytecode::operand_form(row.operands.kinds[i]));
      values[i] = *value;
    }
    if (rest_.empty() && !after_comma_) return {};
    return at(rest_, formatted("the line's end: {} has {}{}", shown(row.text), row.operands.count,
                               row.operands.count == 1 ? " operand" : " operands"));
  }

  std::size_t number_;
  const char* begin_;
  std::string_view rest_;
  bool after_comma_ = false;
};

Result<std::vector<Inst>> read_code(std::string_view text) {
  std::vector<Inst> code;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    Line line(text.substr(begin, end - begin), number);
    begin = end + 1;
    if (line.blank()) continue;
    FVM_ASSIGN(const Inst inst, line.instruction(code.size()));
    code.push_back(inst);
  }
  return code;
}

}  // namespace

Result<Program> assemble(std::string_view text, const Program& data) {
  FVM_ASSIGN(const std::vector<Inst> code, read_code(text));
  std::span<const std::byte> sections[] = {
#define FVM_SECTION(number, Name, name, Record, meaning) data.section(Section::Name),
#include <forestvm/internal/sections.def>
  };
  sections[static_cast<std::size_t>(Section::Code)] = std::as_bytes(std::span(code));
  bytecode::FileHeader header;
  std::memcpy(&header, data.image().data(), sizeof header);
  return bytecode::seal(header, sections);
}

}  // namespace forestvm
