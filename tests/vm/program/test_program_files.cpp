// Program files of every format that this build reads, as they were committed: each still loads and gives the
// same bits. tests/data/programs/format_N holds, for each program, the file and its rows and answers as text.
// Files of a format are never rewritten. When the format number goes up or a layout is added,
// FORESTVM_UPDATE=1 (./dev golden) writes the files that are absent.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/emulator.hpp>

#include "vm/program/format.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_program_files {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFeatures = 3;

fs::path folder_of(unsigned format) {
  return fs::path(FORESTVM_TEST_DATA) / "programs" / ("format_" + std::to_string(format));
}

template <class Number>
void print(std::ostream& out, const char* name, const std::vector<Number>& numbers, std::size_t per_line) {
  out << name << "\n";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    out << numbers[i] << ((i + 1) % per_line == 0 ? "\n" : " ");
}

/// The answers of a program, and the bits of its virtual ensembles' float64 scores, if it has any. Uncertainty is left
/// out: the C library's exp and log, from which it is computed, differ.
struct KeptAnswers {
  Answers usual;
  std::vector<std::uint64_t> ensembles;
};

/// Returns rows and answers as text, floating-point numbers as their bits.
std::string text_of(const std::vector<float>& rows, const KeptAnswers& kept) {
  const Answers& answers = kept.usual;
  const std::size_t count = rows.size() / kFeatures;
  std::vector<std::uint32_t> bits;
  for (const float x : rows) bits.push_back(std::bit_cast<std::uint32_t>(x));
  std::ostringstream out;
  out << std::hex;
  print(out, "rows", bits, kFeatures);
  print(out, "raw", answers.raw, answers.raw.size() / count);
  print(out, "value", answers.value, answers.value.size() / count);
  if (!kept.ensembles.empty()) print(out, "ensembles", kept.ensembles, kept.ensembles.size() / count);
  out << std::dec;
  print(out, "labels", answers.labels, answers.labels.size() / count);
  print(out, "leaves", answers.leaves, answers.leaves.size() / count);
  return out.str();
}

/// Returns the rows of a text that text_of made.
std::vector<float> rows_of(const std::string& text) {
  std::istringstream in(text.substr(text.find('\n')));
  std::vector<float> rows;
  std::uint32_t bits = 0;
  while (in >> std::hex >> bits) rows.push_back(std::bit_cast<float>(bits));
  return rows;
}

KeptAnswers answers_of(const Program& program, const std::vector<float>& rows) {
  const auto made = program.mapped() ? emulator_backend(program) : host_backend(program);
  if (!made.ok()) throw std::runtime_error(made.error().text());
  const Predictor& predictor = **made;
  const RowBlock block{rows.data(), rows.size() / kFeatures, kFeatures};
  KeptAnswers kept{answers(predictor, block), {}};
  if (program.uncertainty().empty()) return kept;
  CallOptions options;
  options.ensembles = 2;
  const OutputKind output = OutputKind::VirtEnsembles;
  std::vector<double> out(block.count * output_width(program, output, options));
  const auto context = predictor.make_context();
  const auto done = predictor.predict_with(*context, block, output, ResultType::Float64, options, out.data());
  if (!done.ok()) throw std::runtime_error(done.error().text());
  for (const double x : out) kept.ensembles.push_back(std::bit_cast<std::uint64_t>(x));
  return kept;
}

struct LayoutRow {
  Layout layout;
  std::string text, word;
  unsigned tile_width;
  bool takes_codes;

  std::string schedule() const {
    const std::string encode = takes_codes ? "encode(u8); " : "";
    if (tile_width == 1) return encode + "layout(tree, " + text + ")";
    return "layout(tree, " + word + "); tileTree(tree, " + std::to_string(tile_width) + ", uniform)";
  }
};

const LayoutRow kLayouts[] = {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  {Layout::Name, text, word, View::kTileWidth, kTakesCodes<View>},
#include <forestvm/core/layouts.def>
};

struct Sample {
  std::string name;
  Program program;
};

/// Schedules that map loops to a GPU: rows with their codes in shared memory, and trees with shared sums.
const RichCase kMappedCases[] = {
    {"tile(batch, b0, b1, 8); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); "
     "cache(b0); cache(tree); encode(u8)",
     Contract::Trainer},
    {"tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
     "gpuDimension(t0, block.x); sharedReduce(t0); cache(b0)",
     Contract::Reproducible},
};

/// Returns programs with the opcodes and sections that no schedule of small forests needs.
std::vector<Sample> samples_of_kinds() {
  Model base_last = small_forest({.depth = 2});
  base_last.base_last = true;
  RichCase explained{.schedule = "layout(tree, sparse8)", .contract = Contract::Trainer};
  explained.contributions = true;
  const char* const by_target =
      "plan(8, avx512); layout(tree, sparse8); plan(8, avx2); layout(tree, sparse4); plan(8); plan(BATCH)";
  return {{"base-last", compiled(base_last, "")},
          {"targets", compiled(small_forest({.depth = 2}), by_target)},
          {"attributions", program_of(forest_of(explained), explained)},
          {"quantiles", sampled_program()},
          {"hashed", hashed_program()},
          {"uncertainty", uncertain_program()}};
}

/// Returns a program in each layout, programs that together have every kind of accumulator and reduction, and programs
/// for GPUs.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const LayoutRow& row : kLayouts)
    all.push_back({row.text, compiled(small_forest({.depth = 2}), row.schedule())});
  std::size_t number = 0;
  for (const RichCase& rich : rich_cases())
    all.push_back({"schedule-" + std::to_string(number++), program_of(forest_of(rich), rich)});
  for (number = 0; const RichCase& rich : kMappedCases)
    all.push_back(
        {"mapped-" + std::to_string(number++), compiled(forest_of(rich), rich.schedule, rich.contract)});
  for (Sample& sample : samples_of_kinds()) all.push_back(std::move(sample));
  return all;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " cannot be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_sample(const Sample& sample, const fs::path& path) {
  fs::create_directories(path.parent_path());
  ASSERT_TRUE(sample.program.save(path.string()).ok());
  std::vector<float> rows = small_rows(24, kFeatures, 7);
  make_whole(rows, sample.program);
  fs::path text = path;
  std::ofstream file(text.replace_extension(".txt"), std::ios::binary);
  file << text_of(rows, answers_of(sample.program, rows));
  ASSERT_TRUE(file.good());
}

TEST(CommittedPrograms, AreThereForEveryLayoutAndSchedule) {
  for (const Sample& sample : samples()) {
    const fs::path path = folder_of(kProgramFormat) / (sample.name + ".fvm");
    if (!fs::exists(path) && std::getenv("FORESTVM_UPDATE") != nullptr) write_sample(sample, path);
    EXPECT_TRUE(fs::exists(path)) << path << " is absent: ./dev golden writes it, and it is committed";
  }
}

TEST(CommittedPrograms, HaveTheirLayouts) {
  for (const LayoutRow& row : kLayouts) {
    SCOPED_TRACE(row.text);
    const auto program = Program::load((folder_of(kProgramFormat) / (row.text + ".fvm")).string());
    ASSERT_TRUE(program.ok()) << program.error().text();
    EXPECT_EQ(program->groups()[0].layout, row.layout);
  }
}

TEST(CommittedPrograms, HaveEveryOpcodeAndSection) {
  std::set<Op> opcodes;
  std::set<std::string> sections;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(kProgramFormat))) {
    if (entry.path().extension() != ".fvm") continue;
    const auto program = Program::load(entry.path().string());
    ASSERT_TRUE(program.ok()) << entry.path() << ": " << program.error().text();
    for (const Inst& inst : program->code()) opcodes.insert(inst.op);
#define FVM_RECORD(number, Name, name, Record, meaning) sections.insert(#name);
#define FVM_SECTION(number, Name, name, Record, meaning) \
  if (!program->name().empty()) sections.insert(#name);
#include <forestvm/internal/sections.def>
  }
#define FVM_OPCODE(number, Name, text, role, operands, meaning) \
  EXPECT_TRUE(opcodes.contains(Op::Name)) << text;
#include <forestvm/core/opcodes.def>
#define FVM_SECTION(number, Name, name, Record, meaning) EXPECT_TRUE(sections.contains(#name)) << #name;
#include <forestvm/internal/sections.def>
}

TEST(CommittedPrograms, OfEveryReadableFormatGiveTheSameBits) {
  for (unsigned format = kOldestProgramFormat; format <= kProgramFormat; ++format) {
    std::size_t count = 0;
    ASSERT_TRUE(fs::is_directory(folder_of(format))) << "no committed programs of format " << format;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(format))) {
      fs::path path = entry.path();
      if (path.extension() != ".fvm") continue;
      SCOPED_TRACE(path);
      ++count;
      bytecode::FileHeader header;
      const std::string bytes = bytes_of(path);
      ASSERT_GE(bytes.size(), sizeof header);
      std::memcpy(&header, bytes.data(), sizeof header);
      EXPECT_EQ(header.format, format);
      const auto program = Program::load(path.string());
      ASSERT_TRUE(program.ok()) << program.error().text();
      const std::string expected = bytes_of(path.replace_extension(".txt"));
      const std::vector<float> rows = rows_of(expected);
      ASSERT_FALSE(rows.empty());
      EXPECT_EQ(text_of(rows, answers_of(*program, rows)), expected);
    }
    EXPECT_GT(count, 0u) << "no committed programs of format " << format;
  }
}

}  // namespace
}  // namespace forestvm::test::test_program_files
