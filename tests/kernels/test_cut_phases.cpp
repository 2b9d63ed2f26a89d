// Programs that schedules rarely or never compile to, assembled from changed disassemblies. The ones that
// launches cannot run are refused; the others answer as the host does, in whatever order threads run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "kernels/link/link.hpp"
#include "kernels/mapped_nests.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_cut_phases {
namespace {

constexpr std::size_t kRows = 21;

/// Splits the trees: one launch walks the first part, the next launch the second.
const std::string kParts =
    "tile(batch, b0, b1, 8); reorder(b0, tree, b1); split(tree, ta, tb, 2); tile(tb, t0, t1, 2); "
    "gpuDimension(b0, grid.x); gpuDimension(t0, grid.z); ";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

/// Returns the text with one more instruction, in front of the one at `pc`.
std::string inserted(const std::string& text, unsigned pc, const std::string& instruction) {
  const std::regex named("@([0-9]+)"), number("^ *([0-9]+) ");
  const auto moved = [&](const std::smatch& match) {
    const unsigned old = static_cast<unsigned>(std::stoul(match[1]));
    return std::to_string(old >= pc ? old + 1 : old);
  };
  std::string result, line;
  for (std::istringstream lines(text); std::getline(lines, line);) {
    std::smatch found;
    const bool numbered = std::regex_search(line, found, number);
    if (numbered && std::stoul(found[1]) == pc)
      result += "  " + std::to_string(pc) + "  " + instruction + '\n';
    if (numbered) {
      std::string changed = "  " + moved(found) + " ", rest = found.suffix();
      for (; std::regex_search(rest, found, named); rest = found.suffix())
        changed += found.prefix().str() + "@" + moved(found);
      line = changed + rest;
    }
    result += line + '\n';
  }
  return result;
}

class CutPhases : public testing::Test {
 protected:
  CutPhases() {
    for (std::size_t i = 0; i < 4 * kRows; ++i) rows_.push_back(static_cast<float>(i * 7 % 23) * 0.3f - 2);
  }

  Program program(const std::string& schedule) const {
    return test::compiled(model_, schedule, Contract::Reproducible);
  }

  static Program assembled(const std::string& text, const Program& data) {
    auto program = assemble(text, data);
    EXPECT_TRUE(program.ok()) << program.error().text() << '\n' << text;
    return program.ok() ? *program : data;
  }

  static std::string refusal(const Program& program) {
    const auto call = Linker(program).link({kRows, kRows, OutputKind::Raw}, {});
    if (call.ok()) return "accepted";
    EXPECT_EQ(call.error().code, ErrorCode::Refused);
    return call.error().text();
  }

  void expect_as_the_host(const Program& gpu) const { expect_same(gpu, program("")); }

  void expect_same(const Program& gpu, const Program& on_host) const {
    const RowBlock block{rows_.data(), rows_.size() / 4, 4};
    const auto host = host_backend(on_host);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const auto emulated = emulator_backend(gpu, {seed});
      ASSERT_TRUE(emulated.ok()) << emulated.error().text();
      EXPECT_TRUE(test::answers(**emulated, block) == test::answers(**host, block)) << "seed " << seed;
    }
  }

  const Model model_ = support::model_of(support::six_trees(), 2);
  std::vector<float> rows_;
};

TEST_F(CutPhases, RefuseALoopOfTheHostAmongMappedOnes) {
  const Program mapped = program(kTreesInGrid);
  const std::string text =
      replaced(mapped.disassemble(), "map r4, r2, block.x, step 1", "par r4, r2, step 1");
  EXPECT_EQ(refusal(assembled(text, mapped)),
            "pc 5: a parallel loop of the host among loops mapped to a GPU");
}

TEST_F(CutPhases, RefuseTheGridInsideALoopThatIsNotMapped) {
  const Program mapped = program(kTreesInGrid);
  std::string text = mapped.disassemble();
  for (unsigned output = 0; output < 2; ++output)
    text = replaced(text, "map r2, r0, grid.x, step 8", "for r2, r0, step 8");
  EXPECT_EQ(refusal(assembled(text, mapped)),
            "pc 3: a loop mapped to the grid inside one that is not: a launch has one grid");
}

/// Every launch of a loop repeats the slices in front of it.
TEST_F(CutPhases, KnowPartsOfTrees) { expect_as_the_host(program(kParts)); }

/// Phases without a mapped loop, here those that set, reduce and store the sums, cut the rows into blocks.
TEST_F(CutPhases, CutRowsWhereNoLoopIsMapped) {
  for (std::size_t i = kRows * 4; i < 300 * 4; ++i)
    rows_.push_back(static_cast<float>(i * 11 % 29) * 0.3f - 2);
  const Program mapped = program("tile(tree, t0, t1, 2); reorder(t0, batch, t1); gpuDimension(t0, grid.x)");
  const auto call = Linker(mapped).link({300, 300, OutputKind::Raw}, {});
  ASSERT_TRUE(call.ok()) << call.error().text();
  EXPECT_TRUE(
      std::ranges::any_of(call->phases, [](const LinkedPhase& phase) { return phase.rows_per_block != 0; }));
  expect_as_the_host(mapped);
}

/// The first launch caches rows before it encodes them, and could make their codes in shared memory alone.
/// The next launch reads the codes too.
TEST_F(CutPhases, LeaveCodesWhereTheNextFindsThem) {
  const Program mapped = program(kParts + "cache(b0); encode(u8); layout(ta, sparse); layout(tb, sparse)");
  const std::regex encoded_first("encode r2\n( *[0-9]+ *)(cache_rows @[0-9]+, ahead 0)");
  const std::string text = std::regex_replace(mapped.disassemble(), encoded_first, "$2\n$1encode r2");
  const Program cached_first = assembled(text, mapped);
  const auto call = Linker(cached_first).link({kRows, kRows, OutputKind::Raw}, {});
  ASSERT_TRUE(call.ok()) << call.error().text();
  const std::vector<LinkedInst>& code = call->phases.at(0).code;
  const auto cache =
      std::find_if(code.begin(), code.end(), [](const LinkedInst& inst) { return inst.op == Op::CacheRows; });
  ASSERT_NE(cache, code.end());
  EXPECT_EQ((linked<Op::CacheRows, LinkedField::Stride>(*cache)), 0u);
  expect_as_the_host(cached_first);
}

/// A thread that sets the base scores of a row is not the one that reduces its elements.
TEST_F(CutPhases, ReduceWhatAllThreadsHaveSet) {
  const Program mapped = program(kTreesInGrid);
  expect_as_the_host(assembled(inserted(mapped.disassemble(), 9, "init a1, r2"), mapped));
}

/// Values are stored a few rows at a time, without a barrier behind the transform of all rows of the block: a row is
/// stored by the thread that transformed it.
TEST_F(CutPhases, GiveARowToTheSameThreadInEveryRange) {
  Model model = model_;
  model.transform = Transform::Softmax;
  const Program mapped = test::compiled(model, kTreesInGrid, Contract::Reproducible);
  const std::string text = mapped.disassemble();
  std::smatch store;
  ASSERT_TRUE(
      std::regex_search(text, store, std::regex("transform a0, r2, softmax\n *([0-9]+) +store a0, r2")));
  const auto pc = static_cast<unsigned>(std::stoul(store[1]));
  std::string in_parts = inserted(inserted(text, pc + 1, "end @FOR"), pc, "for r7, r2, step 3, @END");
  in_parts = replaced(in_parts, "end @FOR", "end @" + std::to_string(pc));
  in_parts = replaced(in_parts, "@END", "@" + std::to_string(pc + 2));
  in_parts = std::regex_replace(in_parts, std::regex("(step 3, @[0-9]+\n *[0-9]+ +store a0, )r2"), "$1r7");
  expect_same(assembled(in_parts, mapped), test::compiled(model, "", Contract::Reproducible));
}

}  // namespace
}  // namespace forestvm::kernels::test_cut_phases
