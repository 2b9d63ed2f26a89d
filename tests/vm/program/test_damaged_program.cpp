// Damaged program files. The checksum refuses every one of them. With the checksum repaired, the verifier
// refuses the file or it runs in bounds: each accepted file is watched by the shadow machine and run on
// buffers of exactly the required size, so that AddressSanitizer sees a single float too far. By day the
// longest lists of damages are sampled.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "support/nightly.hpp"
#include "vm/program/format.hpp"
#include "vm/program/shadow_machine.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_damaged_program {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint8_t kByteValues[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

constexpr std::size_t kChecksumAt = offsetof(bytecode::FileHeader, checksum);

/// Returns small images that together use every section.
const std::vector<Bytes>& images() {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> made;
    for (const Program& program : rich_programs()) made.push_back(image_of(program));
    made.push_back(image_of(hashed_program()));
    made.push_back(image_of(uncertain_program()));
    made.push_back(image_of(sampled_program()));
    return made;
  }();
  return all;
}

class DamagedProgram : public testing::TestWithParam<std::size_t> {
 protected:
  static const Bytes& small_image() { return images()[GetParam()]; }
  /// Returns which of `count` damages to try; each image tries different ones.
  static std::vector<std::size_t> cases(std::size_t count) {
    return support::sampled(count, 5000, std::to_string(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Rich, DamagedProgram, testing::Range(std::size_t{0}, rich_cases().size() + 3));

struct Tally {
  std::uint64_t refused = 0, accepted = 0;
};

/// Predicts with a program of any shape. Buffers have the sizes that the program states.
void run_program(const Program& program, unsigned threads) {
  const ProgramMeta& meta = program.meta();
  const std::size_t features = meta.num_features;
  const auto predictor = host_backend(program, {.threads = threads});
  ASSERT_EQ(predictor.ok(), !program.mapped());  // a flipped bit can map a loop to a GPU
  if (program.mapped()) return;
  const auto context = (*predictor)->make_context();
  for (const std::size_t count : {1u, 7u}) {
    static const std::vector<float> pool = small_rows(7, 3);
    std::vector<float> rows(count * features);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = pool[i % pool.size()];
    make_whole(rows, program);
    const RowBlock block{rows.data(), count, features};
    for (const OutputKind kind : {OutputKind::Raw, OutputKind::Value}) {
      std::vector<float> out(count * output_width(program, kind));
      EXPECT_TRUE((*predictor)->predict(*context, block, kind, out.data()).ok());
    }
    std::vector<double> parts(count * output_width(program, OutputKind::Contributions));
    EXPECT_EQ((*predictor)->predict_wide(*context, block, OutputKind::Contributions, parts.data()).ok(),
              meta.contributions != 0);
    for (const OutputKind kind : {OutputKind::Trees, OutputKind::Staged}) {
      std::vector<double> scores(count * output_width(program, kind));
      const bool has_it =
          !program.round_begins().empty() && (kind == OutputKind::Trees || meta.rounds != RoundRule::None);
      EXPECT_EQ((*predictor)->predict_wide(*context, block, kind, scores.data()).ok(), has_it);
    }
    CallOptions one;
    one.ensembles = 1;
    for (const OutputKind kind : {OutputKind::VirtEnsembles, OutputKind::Uncertainty}) {
      std::vector<double> scores(count * output_width(program, kind, one));
      const auto done =
          (*predictor)->predict_with(*context, block, kind, ResultType::Float64, one, scores.data());
      EXPECT_EQ(done.ok(), !scores.empty());
    }
    std::vector<double> quantiles(count * output_width(program, OutputKind::Quantile));
    EXPECT_EQ((*predictor)->predict_wide(*context, block, OutputKind::Quantile, quantiles.data()).ok(),
              !program.targets().empty());
    std::vector<double> pairs(count * output_width(program, OutputKind::Interactions));
    EXPECT_EQ((*predictor)->predict_wide(*context, block, OutputKind::Interactions, pairs.data()).ok(),
              meta.contributions > 1);
    std::vector<std::int64_t> labels(count * output_width(program, OutputKind::Class));
    EXPECT_EQ((*predictor)->predict_class(*context, block, labels.data()).ok(), !labels.empty());
    std::vector<std::int32_t> leaves(count * output_width(program, OutputKind::Leaf));
    EXPECT_TRUE((*predictor)->predict_leaf(*context, block, leaves.data()).ok());
    const std::vector<double> wide(rows.begin(), rows.end());
    const RowBlock wide_block{wide.data(), count, features, RowType::Float64};
    EXPECT_TRUE((*predictor)->predict_leaf(*context, wide_block, leaves.data()).ok());
  }
}

/// Reads everything else that a program offers.
void read_program(const Program& program) {
  const ProgramMeta& meta = program.meta();
  std::size_t length = program.disassemble().size();
  for (std::uint32_t i = 0; i < meta.num_feature_names; ++i) length += program.feature_name(i).size();
  for (std::uint32_t i = 0; i < meta.num_class_labels; ++i) length += program.class_label(i).size();
  for (std::uint32_t i = 0; i < meta.num_features; ++i)
    for (const std::string_view name : program.category_names(i)) length += name.size();
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(StringId::Count); ++i)
    length += program.text(static_cast<StringId>(i)).size();
  EXPECT_GT(length, 0u);
}

void expect_no_harm(const Program& program, unsigned threads) {
  for (const OutputKind output : outputs_of(program))
    ASSERT_EQ(watch(program, 7, output).harm, "") << program.disassemble();
  read_program(program);
  run_program(program, threads);
}

/// Loads an image with a repaired checksum: it is refused with a place, or harmless.
void try_repaired(Bytes image, Tally& tally, unsigned threads = 1) {
  if (image.size() >= sizeof(bytecode::FileHeader)) repair_checksum(image);
  const auto program = Program::from_bytes(image);
  if (!program.ok()) {
    ++tally.refused;
    ASSERT_EQ(program.error().code, ErrorCode::Refused);
    ASSERT_FALSE(program.error().where.empty()) << program.error().text();
    return;
  }
  ++tally.accepted;
  expect_no_harm(*program, threads);
}

void expect_refused_as_is(const Bytes& image) {
  const auto program = Program::from_bytes(image);
  ASSERT_FALSE(program.ok());
  ASSERT_EQ(program.error().code, ErrorCode::Refused);
}

TEST_P(DamagedProgram, TheImageIsSmall) {
  EXPECT_LT(small_image().size(), 8192u);
  EXPECT_TRUE(Program::from_bytes(small_image()).ok());
}

TEST(DamagedPrograms, UseEverySection) {
  std::map<std::string, std::size_t> records;
  for (const Bytes& image : images()) {
    const auto program = Program::from_bytes(image);
    ASSERT_TRUE(program.ok());
#define FVM_SECTION(number, Name, name, Record, meaning) \
  records[#name] += program->section(Section::Name).size();
#include <forestvm/internal/sections.def>
  }
  EXPECT_EQ(records.size(), kSectionCount);
  for (const auto& [section, count] : records) EXPECT_GT(count, 0u) << section;
}

TEST_P(DamagedProgram, EveryBitFlippedIsRefusedByTheChecksum) {
  for (std::size_t at = 0; at < small_image().size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes image = small_image();
      image[at] ^= std::byte{static_cast<unsigned char>(1U << bit)};
      expect_refused_as_is(image);
      if (HasFatalFailure()) FAIL() << "byte " << at << ", bit " << bit;
    }
}

TEST_P(DamagedProgram, EveryBitFlippedAndChecksumRepaired) {
  Tally tally;
  for (const std::size_t i : cases(8 * small_image().size())) {
    const std::size_t at = i / 8, bit = i % 8;
    Bytes image = small_image();
    image[at] ^= std::byte{static_cast<unsigned char>(1U << bit)};
    try_repaired(image, tally, at % 8 == 0 ? 2 : 1);
    if (HasFatalFailure()) FAIL() << "byte " << at << ", bit " << bit;
  }
  EXPECT_GT(tally.refused, (tally.refused + tally.accepted) / 50);
  // Thresholds, leaves and texts may have any value.
  EXPECT_GT(tally.accepted, (tally.refused + tally.accepted) / 100);
}

TEST_P(DamagedProgram, EveryByteReplaced) {
  Tally tally;
  constexpr std::size_t kValues = std::size(kByteValues);
  for (const std::size_t i : cases(kValues * small_image().size())) {
    const std::size_t at = i / kValues;
    const std::uint8_t value = kByteValues[i % kValues];
    Bytes image = small_image();
    if (image[at] == std::byte{value}) continue;
    image[at] = std::byte{value};
    expect_refused_as_is(image);
    try_repaired(image, tally);
    if (HasFatalFailure()) FAIL() << "byte " << at << " made " << int{value};
  }
  EXPECT_GT(tally.accepted, (tally.refused + tally.accepted) / 100);
}

/// Replaces whole words with numbers that cause overflows.
TEST_P(DamagedProgram, EveryWordReplaced) {
  Tally tally;
  constexpr std::uint32_t kWords[] = {0, 1, 7, 64, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
  for (const std::size_t i : cases(std::size(kWords) * (small_image().size() / 4))) {
    const std::size_t at = i / std::size(kWords) * 4;
    const std::uint32_t value = kWords[i % std::size(kWords)];
    Bytes image = small_image();
    std::memcpy(image.data() + at, &value, sizeof value);
    try_repaired(image, tally);
    if (HasFatalFailure()) FAIL() << "word at " << at << " made " << value;
  }
}

TEST_P(DamagedProgram, ManyBytesAtRandom) {
  std::mt19937 random(20240601);
  Tally tally;
  const std::size_t size = small_image().size();
  for (int i = 0; i < 6000; ++i) {
    Bytes image = small_image();
    const std::size_t changes = 2 + random() % 6;
    // Half of them are close together, as in a damaged record.
    const std::size_t around = random() % size, spread = i % 2 == 0 ? size : 32;
    for (std::size_t change = 0; change < changes; ++change)
      image[(around + random() % spread) % size] = static_cast<std::byte>(random() % (i % 3 == 0 ? 256 : 8));
    try_repaired(image, tally);
    if (HasFatalFailure()) FAIL() << "mutation " << i;
  }
  EXPECT_GT(tally.accepted, 100u);
}

/// Swaps records of one table; each is well-formed by itself.
TEST_P(DamagedProgram, WordsSwapped) {
  std::mt19937 random(7);
  Tally tally;
  const std::size_t words = small_image().size() / 4;
  for (int i = 0; i < 6000; ++i) {
    Bytes image = small_image();
    const std::size_t a = random() % words,
                      b = i % 2 == 0 ? random() % words : (a + 1 + random() % 8) % words;
    std::swap_ranges(image.begin() + static_cast<std::ptrdiff_t>(4 * a),
                     image.begin() + static_cast<std::ptrdiff_t>(4 * a + 4),
                     image.begin() + static_cast<std::ptrdiff_t>(4 * b));
    try_repaired(image, tally);
    if (HasFatalFailure()) FAIL() << "words " << a << " and " << b;
  }
}

TEST_P(DamagedProgram, TruncatedAnywhere) {
  const auto resized = [](Bytes image) {
    if (image.size() >= sizeof(bytecode::FileHeader)) {
      const std::uint64_t size = image.size();
      std::memcpy(image.data() + offsetof(bytecode::FileHeader, file_size), &size, sizeof size);
    }
    return image;
  };
  Tally tally;
  for (std::size_t size = 0; size < small_image().size(); ++size) {
    const Bytes image(small_image().begin(), small_image().begin() + static_cast<std::ptrdiff_t>(size));
    expect_refused_as_is(image);
    try_repaired(image, tally);
    try_repaired(resized(image), tally);
    if (HasFatalFailure()) FAIL() << size << " bytes";
  }
  EXPECT_EQ(tally.accepted, 0u);
}

TEST_P(DamagedProgram, BytesInsertedAnywhere) {
  Tally tally;
  for (std::size_t at = 0; at <= small_image().size(); ++at)
    for (const std::size_t count : {1u, 64u}) {
      Bytes image = small_image();
      image.insert(image.begin() + static_cast<std::ptrdiff_t>(at), count, std::byte{0});
      expect_refused_as_is(image);
      try_repaired(image, tally);
      if (HasFatalFailure()) FAIL() << count << " bytes inserted at " << at;
    }
  EXPECT_EQ(tally.accepted, 0u);
}

/// A program that is loaded without checking the checksum, the forest and the code has its sections within bounds.
TEST_P(DamagedProgram, TrustedFilesStillHaveSectionsInBounds) {
  for (std::size_t at = 0; at < small_image().size(); ++at)
    for (const std::uint8_t value : kByteValues) {
      Bytes image = small_image();
      image[at] = std::byte{value};
      const auto program = Program::from_bytes(image, Verification::Trust);
      if (!program.ok()) continue;
      std::size_t sum = 0;
#define FVM_SECTION(number, Name, name, Record, meaning) \
  for (const std::byte byte : program->section(Section::Name)) sum += static_cast<std::size_t>(byte);
#include <forestvm/internal/sections.def>
      EXPECT_GT(sum, 0u);
    }
}

static_assert(kChecksumAt == 32);

}  // namespace
}  // namespace forestvm::test::test_damaged_program
