// The assembler: disassembled programs read back to identical images, edits have their effect, and any other
// text is refused with its line and column.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/named_schedules.hpp>

#include "tests/support/small_models.hpp"
#include "vm/program/operand_text.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_assemble {
namespace {

constexpr Op kAllOps[] = {
#define FVM_OPCODE(number, Name, text, role, operands, meaning) Op::Name,
#include <forestvm/core/opcodes.def>
};

void expect_round_trip(const Program& program) {
  const auto again = assemble(program.disassemble(), program);
  ASSERT_TRUE(again.ok()) << again.error().text() << "\n" << program.disassemble();
  EXPECT_EQ(image_of(*again), image_of(program)) << program.disassemble();
}

/// The program of most tests here, a loop over rows around one walk, and its code's lines without comments.
Program plain_program() { return compiled(small_forest(), "layout(tree, sparse)"); }

std::vector<std::string> lines_of(const Program& program) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : program.disassemble()) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!line.starts_with(';')) lines.push_back(line);
    line.clear();
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::string refusal(const std::string& text) {
  const auto program = assemble(text, plain_program());
  return program.ok() ? "accepted" : program.error().text();
}

TEST(Assemble, EveryNamedScheduleRoundTrips) {
  for (const char* name : {"small", "two_outputs", "deep", "leaves", "none", "base_last"}) {
    const Model model = support::small_model(name);
    for (const NamedSchedule& row : named_schedules()) {
      SCOPED_TRACE(std::string(name) + ", schedule " + std::string(row.name));
      const auto schedule = schedule_by_name(model, row.name);
      ASSERT_TRUE(schedule.ok());
      const auto program = compile(model, *schedule);
      if (program.ok()) expect_round_trip(program->program);  // no interleaved layout accepts the deep chain
    }
    const auto automatic = compile(model, automatic_schedule(model));
    ASSERT_TRUE(automatic.ok()) << automatic.error().text();
    expect_round_trip(automatic->program);
  }
}

TEST(Assemble, ManySchedulesRoundTrip) {
  for (const char* schedule :
       {"", "unroll(tree)", "unrollWalk(batch)", "peelWalk(tree, 1)", "parallel(tree)",
        "tile(tree, t0, t1, 2); parallel(t0)", "split(batch, a, b, 3); parallel(b)",
        "split(tree, ta, tb, 2); layout(ta, array); layout(tb, sparse)",
        "tile(batch, b0, b1, 4); tile(tree, t0, t1, 2); reorder(b0, t0, t1, b1); interleave(b1)"}) {
    SCOPED_TRACE(schedule);
    expect_round_trip(compiled(small_forest(), schedule));
  }
  expect_round_trip(rich_program());
}

TEST(Assemble, EveryOperandKindRoundTrips) {
  for (const OperandInfo& row : kOperandInfo) {
    const std::uint32_t most = row.size == OperandSize::Small ? UINT8_MAX : UINT32_MAX;
    for (const std::uint32_t value : {0U, 1U, 7U, most}) {
      const std::string text = bytecode::operand_text(row.kind, value);
      const auto again = bytecode::operand_value(row.kind, text);
      if (text == "?") {
        EXPECT_FALSE(again) << bytecode::meaning_of(row.kind);  // no such enumerator
      } else {
        EXPECT_EQ(again, value) << text;
      }
    }
    EXPECT_FALSE(bytecode::operand_value(row.kind, row.prefix + std::to_string(std::uint64_t{most} + 1)));
    EXPECT_FALSE(bytecode::operand_value(row.kind, row.prefix)) << bytecode::meaning_of(row.kind);
    EXPECT_FALSE(bytecode::operand_value(row.kind, "")) << bytecode::meaning_of(row.kind);
    EXPECT_NE(bytecode::operand_form(row.kind), "");
  }
}

/// The first character tells an opcode from a pc; opcodes end at a blank, operands at commas.
TEST(Assemble, TextsOfRowsCanBeToldApart) {
  for (const OpInfo& row : bytecode_rows::kOpInfo) {
    const std::string text = row.text;
    EXPECT_EQ(text.find_first_of(" \t\r\n,;"), std::string::npos) << text;
    EXPECT_NE(text.find_first_of("0123456789"), 0U) << text;
  }
  for (const OperandInfo& row : kOperandInfo)
    for (std::uint32_t value = 0; value <= UINT8_MAX; ++value)
      EXPECT_EQ(bytecode::operand_text(row.kind, value).find_first_of(",;\n\r"), std::string::npos);
}

TEST(Assemble, FormIsFree) {
  const Program program = plain_program();
  std::string text;
  for (const std::string& line : lines_of(program)) {
    std::string bare = line.substr(line.find_first_not_of(" 0123456789"));
    for (std::size_t at = 0; (at = bare.find(' ', at)) != std::string::npos; at += 3)
      bare.replace(at, 1, " \t ");
    for (std::size_t at = 0; (at = bare.find(',', at)) != std::string::npos; at += 3)
      bare.replace(at, 1, " , ");
    text += "\n \t\r\n  ; a comment, not 3 operands\n\t" + bare + " ; another\r\n";
  }
  text.pop_back();  // the last line needs no line break
  const auto again = assemble(text, program);
  ASSERT_TRUE(again.ok()) << again.error().text() << "\n" << text;
  EXPECT_EQ(image_of(*again), image_of(program));
}

TEST(Assemble, AnEditChangesTheCodeAlone) {
  const Program program = plain_program();
  std::string text = program.disassemble();
  const std::size_t at = text.find("softmax");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 7, "sigmoid");
  const auto edited = assemble(text, program);
  ASSERT_TRUE(edited.ok()) << edited.error().text();
  EXPECT_EQ(edited->disassemble(), text);
  ProgramParts parts = parts_of(program);
  parts.code = parts_of(*edited).code;
  const auto expected = build_program(parts);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(image_of(*edited), image_of(*expected));
}

/// Reads each opcode once, alone, with operands that fit its row: the verifier may refuse the program, but
/// the text is understood.
TEST(Assemble, EveryOpcodeIsRead) {
  for (const Op op : kAllOps) {
    const std::uint32_t zeros[kMaxOperands] = {};
    std::string text = info(op).text;
    for_each_operand(pack(op, zeros), [&](unsigned i, OperandKind kind, std::uint32_t value) {
      text += (i == 0 ? " " : ", ") + bytecode::operand_text(kind, value);
    });
    const std::string found = refusal(text);
    EXPECT_FALSE(found.starts_with("line ")) << text << ": " << found;
  }
}

TEST(Assemble, RefusesWithLineAndColumn) {
  const std::string opcodes = "an opcode: halt, for, ";
  const auto starts = [](const std::string& text, const std::string& expected) {
    const std::string found = refusal(text);
    EXPECT_TRUE(found.starts_with(expected)) << found;
  };
  starts("wlak a0, r1, r0, w0\n", "line 1, column 1: found 'wlak', expected " + opcodes);
  starts("; x\n\n  0  Halt\n", "line 3, column 6: found 'Halt', expected " + opcodes);
  starts("  0\n", "line 1, column 4: the line ends, expected " + opcodes);
  starts("  0 ; halt\n", "line 1, column 4: the line ends, expected " + opcodes);
  starts("init a0, r0\n 2 halt", "line 2, column 2: found '2', expected pc 1, or none");
  starts("0x halt", "line 1, column 1: found '0x', expected pc 0, or none");
  starts("99999999999999999999999 halt", "line 1, column 1: found '99999999999999999999999', expected pc 0");
  starts("-1 halt", "line 1, column 1: found '-1', expected " + opcodes);
  starts("halt, x", "line 1, column 1: found 'halt,', expected " + opcodes);
  starts("halt x", "line 1, column 6: found 'x', expected the line's end: 'halt' has 0 operands");
  starts("halt ,", "line 1, column 6: found ',', expected the line's end: 'halt' has 0 operands");
  starts("init a0, r0, r1", "line 1, column 14: found 'r1', expected the line's end: 'init' has 2 operands");
  starts("init a0, r0,", "line 1, column 13: found nothing, expected the line's end");
  starts("end @1, @2", "line 1, column 9: found '@2', expected the line's end: 'end' has 1 operand");
  starts("init", "line 1, column 5: the line ends, expected 'a' and a number up to 255 (");
  starts("init a0", "line 1, column 8: the line ends, expected 'r' and a number up to 255 (");
  starts("init a0,", "line 1, column 9: the line ends, expected 'r' and a number up to 255 (");
  starts("init , r0", "line 1, column 6: found nothing, expected 'a' and a number up to 255 (");
  starts("init a0 r0", "line 1, column 6: found 'a0 r0', expected 'a' and a number up to 255 (");
  starts("init r0, a0", "line 1, column 6: found 'r0', expected 'a' and");
  starts("init a256, r0", "line 1, column 6: found 'a256', expected 'a' and a number up to 255");
  starts("init a-1, r0", "line 1, column 6: found 'a-1', expected 'a' and");
  starts("init a0x, r0", "line 1, column 6: found 'a0x', expected 'a' and");
  starts("for r2, r0, step, @1",
         "line 1, column 13: found 'step', expected 'step' and a number up to 4294967295");
  starts("for r2, r0, step4, @1", "line 1, column 13: found 'step4', expected 'step' and");
  starts("for r2, r0, step 4294967296, @1",
         "line 1, column 13: found 'step 4294967296', expected 'step' and");
  starts("for r2, r0, step 4, @@1", "line 1, column 21: found '@@1', expected '@' and");
  starts("when sometimes, @1", "line 1, column 6: found 'sometimes', expected one of raw, value");
  starts("transform a0, r0, ?", "line 1, column 19: found '?', expected one of identity, ");
  starts(std::string("\xff\x00h\x1b", 4), "line 1, column 1: found '\\xff\\x00h\\x1b', expected " + opcodes);
  starts(std::string(100'000, 'x'), "line 1, column 1: found '" + std::string(40, 'x') + "…', expected ");
}

TEST(Assemble, WhatCanBeReadIsStillVerified) {
  EXPECT_EQ(refusal(""), "code section: no instructions");
  EXPECT_EQ(refusal("; nothing but a comment"), "code section: no instructions");
  EXPECT_TRUE(refusal("init a0, r200\nhalt\n").starts_with("pc 0 (init): "))
      << refusal("init a0, r200\nhalt\n");
  std::vector<std::string> lines = lines_of(plain_program());
  lines.pop_back();
  EXPECT_NE(refusal(joined(lines)), "accepted");
}

TEST(Assemble, ALineThatMovedIsRefused) {
  std::vector<std::string> lines = lines_of(plain_program());
  ASSERT_GE(lines.size(), 4U);
  std::swap(lines[1], lines[2]);
  EXPECT_TRUE(refusal(joined(lines)).starts_with("line 2, column ")) << refusal(joined(lines));
  lines.erase(lines.begin() + 1);
  EXPECT_TRUE(refusal(joined(lines)).starts_with("line 3, column ")) << refusal(joined(lines));
}

/// Any text gives either a program that runs or a refusal; builds with sanitizers watch.
TEST(Assemble, HostileTextIsRefusedOrVerified) {
  const Program program = rich_program();
  const std::string text = program.disassemble();
  for (std::size_t length = 0; length < text.size(); ++length)
    static_cast<void>(assemble(std::string_view(text).substr(0, length), program));
  std::mt19937 random(1);
  const std::string alphabet = " \t\n\r,;@0123456789arwgstepfmoh-_\xff\x01";
  for (unsigned round = 0; round < 20'000; ++round) {
    std::string damaged = round % 4 == 0 ? std::string(random() % 200, ' ') : text;
    const std::size_t edits = round % 4 == 0 ? damaged.size() : 1 + random() % 4;
    for (std::size_t i = 0; i < edits && !damaged.empty(); ++i) {
      const std::size_t at = random() % damaged.size();
      const char byte = round % 2 == 0 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
      if (random() % 3 == 0)
        damaged.insert(at, 1 + random() % 12, byte);
      else if (random() % 3 == 0)
        damaged.erase(at, 1 + random() % 40);
      else
        damaged[at] = byte;
    }
    const auto result = assemble(damaged, program);
    if (!result) {
      ASSERT_EQ(result.error().code, ErrorCode::Refused) << damaged;
      ASSERT_FALSE(result.error().where.empty()) << damaged;
    }
  }
}

}  // namespace
}  // namespace forestvm::test::test_assemble
