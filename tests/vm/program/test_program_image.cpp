// The program image: what is saved is what is loaded, byte for byte; other files are refused with a place and
// a sentence; a failed save leaves the old file unchanged.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include <forestvm/internal/program_tools.hpp>

#include "support/small_models.hpp"
#include "support/temporary_folder.hpp"
#include "vm/program/format.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_program_image {
namespace {

namespace fs = std::filesystem;
using bytecode::FileHeader;
using bytecode::SectionEntry;
using Bytes = std::vector<std::byte>;

class ProgramFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string write(const std::string& name, std::span<const std::byte> bytes) const {
    return folder_.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  Bytes read(const std::string& name) const {
    const std::string text = support::content_of(path(name));
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  const support::TemporaryFolder folder_;
};

unsigned mode_of(const std::string& file) {
  struct stat status;
  return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 07777u : 0u;
}

std::string answers_text(const Program& program) {
  const auto predictor = host_backend(program);
  const auto rows = small_rows(7, 3);
  const Answers all = answers(**predictor, RowBlock{rows.data(), 7, 3});
  std::string text;
  for (const std::uint32_t bits : all.raw) text += std::to_string(bits) + " ";
  return text;
}

TEST_F(ProgramFiles, SavedAndMappedAgain) {
  const Program program = rich_program();
  const std::string file = path("model.fvm");
  ASSERT_TRUE(program.save(file).ok());
  EXPECT_EQ(read("model.fvm"), image_of(program));
  EXPECT_EQ(files(), 1u) << "the temporary file is left";
  for (const auto verification : {Verification::Full, Verification::Trust}) {
    const auto again = Program::load(file, verification);
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(image_of(*again), image_of(program));
    EXPECT_EQ(again->disassemble(), program.disassemble());
    EXPECT_EQ(answers_text(*again), answers_text(program));
  }
}

TEST_F(ProgramFiles, SaysWhatItWasMadeOf) {
  const Program program = rich_program();
  ASSERT_TRUE(program.save(path("model.fvm")).ok());
  const auto again = Program::load(path("model.fvm"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->text(StringId::Objective), "multi:softprob");
  EXPECT_EQ(again->text(StringId::Trainer), "a test");
  EXPECT_EQ(again->text(StringId::Version), "");
  EXPECT_EQ(again->feature_name(2), "f2");
  EXPECT_EQ(again->feature_name(3), "");
  EXPECT_EQ(again->class_label(0), "class 0");
  EXPECT_EQ(again->class_label(UINT32_MAX), "");
  EXPECT_EQ(again->meta().num_trees, 6u);
  const auto schedule = parse_schedule(again->text(StringId::Schedule));
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(*schedule, *parse_schedule(kRichSchedule));
}

TEST_F(ProgramFiles, TakenApartAndPutTogether) {
  const Program program = rich_program();
  const auto again = build_program(parts_of(program));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(image_of(*again), image_of(program));
}

TEST_F(ProgramFiles, OfAnyAlignment) {
  const Program program = rich_program();
  const Bytes image = image_of(program);
  for (const std::size_t shift : {0u, 1u, 3u, 8u, 63u}) {
    Bytes shifted(shift + image.size());
    std::memcpy(shifted.data() + shift, image.data(), image.size());
    const auto again = Program::from_bytes(std::span(shifted).subspan(shift));
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(again->image().data()) % kSectionAlignment, 0u);
    EXPECT_EQ(answers_text(*again), answers_text(program));
  }
}

TEST_F(ProgramFiles, SectionsAreAligned) {
  const Program program = rich_program();
#define FVM_SECTION(number, Name, name, Record, meaning) \
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(program.section(Section::Name).data())) % 64, 0u) << #name;
#include <forestvm/internal/sections.def>
}

TEST_F(ProgramFiles, OutliveTheFile) {
  const Program program = rich_program();
  ASSERT_TRUE(program.save(path("model.fvm")).ok());
  const auto mapped = Program::load(path("model.fvm"));
  ASSERT_TRUE(mapped.ok());
  const Program copy = *mapped;
  ASSERT_TRUE(compiled(small_forest({.trees = 2}), "").save(path("model.fvm")).ok());  // by rename
  EXPECT_EQ(answers_text(copy), answers_text(program));
  fs::remove(path("model.fvm"));
  EXPECT_EQ(answers_text(copy), answers_text(program));
}

TEST_F(ProgramFiles, GetTheProcessPermissions) {
  const Program program = rich_program();
  for (const mode_t mask : {022u, 077u, 0u}) {
    const mode_t before = ::umask(mask);
    const std::string file = path("model-" + std::to_string(mask));
    const auto done = program.save(file);
    ::umask(before);
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(mode_of(file), 0666u & ~mask);
    // A replaced file's permissions are kept.
    ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
    ASSERT_TRUE(program.save(file).ok());
    EXPECT_EQ(mode_of(file), 0640u);
  }
}

/// The set-user-ID bit was given to the earlier file, not to the one that is saved.
TEST_F(ProgramFiles, DoNotKeepSpecialBitsOfModes) {
  const Program program = rich_program();
  const std::string file = path("model.fvm");
  for (const mode_t special : {04000u, 02000u, 01000u}) {
    ASSERT_TRUE(program.save(file).ok());
    ASSERT_EQ(::chmod(file.c_str(), 0740 | special), 0);
    ASSERT_TRUE(program.save(file).ok());
    EXPECT_EQ(mode_of(file), 0740u);
  }
}

TEST_F(ProgramFiles, ALinkStaysALink) {
  const Program program = rich_program();
  ASSERT_TRUE(compiled(small_forest({.trees = 2}), "").save(path("model.fvm")).ok());
  fs::create_symlink("model.fvm", path("link"));
  ASSERT_TRUE(program.save(path("link")).ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read("model.fvm"), image_of(program));
}

/// Saving to a device must not put a file in its place.
TEST_F(ProgramFiles, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const auto done = rich_program().save(path("fifo"));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().text(), "is not a regular file, so it cannot be replaced");
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(ProgramFiles, SaveErrorsNameTheReason) {
  const Program program = rich_program();
  const auto absent = program.save(path("no/such/folder/model.fvm"));
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::Environment);
  EXPECT_NE(absent.error().message.find("No such file"), std::string::npos) << absent.error().message;
  fs::create_directory(path("folder"));
  const auto directory = program.save(path("folder"));
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().code, ErrorCode::Environment);
  EXPECT_EQ(files(), 1u) << "the temporary file is left";
}

TEST_F(ProgramFiles, OldFileStaysWhenTheDirectoryIsNotWritable) {
  if (::geteuid() == 0) GTEST_SKIP() << "no user without root's rights: root may write everywhere";
  const Program program = rich_program();
  ASSERT_TRUE(program.save(path("model.fvm")).ok());
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const auto done = compiled(small_forest({.trees = 2}), "").save(path("model.fvm"));
  fs::permissions(folder_.path(), fs::perms::owner_all);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Environment);
  EXPECT_EQ(read("model.fvm"), image_of(program));
}

TEST_F(ProgramFiles, OldFileStaysWhenTheDiskIsFull) {
  const Program program = rich_program();
  ASSERT_TRUE(program.save(path("model.fvm")).ok());
  const Program larger = compiled(small_forest({.trees = 200}), "");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 1000;  // stands for the full disk
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto done = larger.save(path("model.fvm"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Environment);
  EXPECT_EQ(read("model.fvm"), image_of(program));
  EXPECT_EQ(files(), 1u) << "the temporary file is left";
}

void expect_load_error(const std::string& file, ErrorCode code, const std::string& words) {
  const auto program = Program::load(file);
  ASSERT_FALSE(program.ok()) << file;
  EXPECT_EQ(program.error().code, code) << program.error().text();
  EXPECT_NE(program.error().text().find(words), std::string::npos) << program.error().text();
}

TEST_F(ProgramFiles, LoadErrors) {
  const Bytes image = image_of(rich_program());
  expect_load_error(path("absent"), ErrorCode::Environment, "No such file");
  expect_load_error(path(""), ErrorCode::Environment, "is a directory");
  expect_load_error(write("empty", {}), ErrorCode::Refused, "0 bytes, too few");
  expect_load_error(write("one", std::span(image).first(1)), ErrorCode::Refused, "1 bytes, too few");
  expect_load_error(write("header", std::span(image).first(64)), ErrorCode::Refused, "64 bytes, too few");
  expect_load_error(write("short", std::span(image).first(image.size() - 1)), ErrorCode::Refused,
                    "its header says " + std::to_string(image.size()));
  expect_load_error(write("text", Bytes(5000, std::byte{'x'})), ErrorCode::Refused, "not a program file");
  expect_load_error("/dev/null", ErrorCode::Environment, "not a regular file");
}

/// Loading a FIFO without a writer must not wait for ever.
TEST_F(ProgramFiles, AFifoIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  ::alarm(20);
  expect_load_error(path("fifo"), ErrorCode::Environment, "not a regular file");
  ::alarm(0);
}

TEST(IsProgram, LooksAtTheMagicAlone) {
  const Bytes image = image_of(rich_program());
  EXPECT_TRUE(is_program(image));
  EXPECT_TRUE(is_program(std::span(image).first(8)));
  EXPECT_FALSE(is_program(std::span(image).first(7)));
  EXPECT_FALSE(is_program({}));
  EXPECT_FALSE(is_program(std::span(image).subspan(1)));
}

template <class Field>
void put(Bytes& image, std::size_t offset, Field value) {
  std::memcpy(image.data() + offset, &value, sizeof value);
}

/// Returns the refusal of the program image after a change with a repaired checksum.
std::string refusal(Bytes image) {
  repair_checksum(image);
  const auto program = Program::from_bytes(image);
  return program.ok() ? "accepted" : program.error().text();
}

constexpr std::size_t entry_offset(Section section) {
  return sizeof(FileHeader) + static_cast<std::size_t>(section) * sizeof(SectionEntry);
}

TEST(Container, ANewerFormatIsRefusedByASentence) {
  Bytes image = image_of(rich_program());
  put<std::uint16_t>(image, offsetof(FileHeader, format), kProgramFormat + 1);
  const std::string text = refusal(image);
  EXPECT_EQ(
      text,
      "header: program format 9 is newer than this build's 8: use a newer forestvm, or compile the model "
      "again");
  // A newer format may have another section table, other fields and another checksum: the message is the
  // same.
  put<std::uint32_t>(image, offsetof(FileHeader, section_count), 99);
  put<std::uint64_t>(image, offsetof(FileHeader, feature_bits), 1);
  put<std::uint64_t>(image, offsetof(FileHeader, file_size), 1);
  put<std::uint64_t>(image, offsetof(FileHeader, unused), 1);
  const auto program = Program::from_bytes(image);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().text(), text);
}

TEST(Container, HeaderFieldsAreChecked) {
  const Bytes good = image_of(rich_program());
  const auto changed = [&](std::size_t offset, auto value) {
    Bytes image = good;
    put(image, offset, value);
    return refusal(image);
  };
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_EQ(changed(offsetof(FileHeader, format), std::uint16_t{0}),
            "header: program format 0 is older than this build's oldest, 8: compile the model again");
  EXPECT_EQ(changed(offsetof(FileHeader, format), std::uint16_t{1}),
            "header: program format 1 is older than this build's oldest, 8: compile the model again");
  EXPECT_EQ(changed(offsetof(FileHeader, feature_bits), std::uint64_t{4}),
            "header: the program needs features that this build does not know (bits 4)");
  EXPECT_EQ(changed(offsetof(FileHeader, reserved), std::uint16_t{1}),
            "header: a reserved field is not zero");
  EXPECT_EQ(changed(offsetof(FileHeader, unused) + 23, std::uint8_t{1}),
            "header: a reserved byte is not zero");
  EXPECT_EQ(changed(offsetof(FileHeader, section_count), std::uint32_t{10}),
            "header: 10 sections, expected 32 to 48");
  EXPECT_NE(changed(offsetof(FileHeader, file_size), std::uint64_t{1} << 40).find("its header says"),
            std::string::npos);
  EXPECT_EQ(changed(0, 'x'), "header: not a program file; forestvm compile makes one from a model");
  Bytes damaged = good;
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(Program::from_bytes(damaged).error().text(),
            "header: the checksum does not match: the file is damaged");
}

/// Other programs can check files with the checksum as it is documented.
TEST(Container, TheChecksumIsOfTheWholeFileWithItsFieldZero) {
  Bytes image = image_of(rich_program());
  FileHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  put<std::uint64_t>(image, offsetof(FileHeader, checksum), 0);
  EXPECT_EQ(header.checksum, checksum(image));
}

TEST(Container, NamesAreWithinFourGib) {
  const auto refs = bytecode::string_refs(std::vector<std::uint64_t>{3, 0, UINT32_MAX - 3u});
  ASSERT_TRUE(refs.ok());
  EXPECT_EQ((*refs)[1].offset, 3u);
  EXPECT_EQ((*refs)[2].offset, 3u);
  EXPECT_EQ((*refs)[2].size, UINT32_MAX - 3u);
  for (const auto& sizes : std::vector<std::vector<std::uint64_t>>{
           {UINT32_MAX, 1}, {1, UINT32_MAX}, {std::uint64_t{1} << 32}, {1, UINT64_MAX}}) {
    const auto refused = bytecode::string_refs(sizes);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().text(), "text section: the model's names exceed 4 GiB");
  }
}

TEST(Container, SectionsLieWhereTheirSizesSay) {
  Model model = small_forest();
  support::make_linear(model);
  const Program program = compiled(model, "");
  ASSERT_FALSE(program.leaf_terms().empty()) << "the last section must not be empty";
  const Bytes good = image_of(program);
  const std::size_t last = entry_offset(Section::LeafTerms);
  const std::size_t code = entry_offset(Section::Code), nodes = entry_offset(Section::Nodes);
  const auto field = [&](std::size_t offset) {
    std::uint64_t value;
    std::memcpy(&value, good.data() + offset, sizeof value);
    return value;
  };
  const auto changed = [&](std::size_t offset, auto value) {
    Bytes image = good;
    put(image, offset, value);
    return refusal(image);
  };
  const auto expect = [](const std::string& text, const std::string& where, const std::string& words) {
    EXPECT_EQ(text.substr(0, where.size()), where) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  const std::size_t at = offsetof(SectionEntry, offset), size = offsetof(SectionEntry, size);
  expect(changed(code + offsetof(SectionEntry, id), std::uint32_t{2}), "code section",
         "names another section");
  expect(changed(code + offsetof(SectionEntry, reserved), std::uint32_t{1}), "code section", "section table");
  expect(changed(code + at, field(code + at) + 64), "code section",
         "expected " + std::to_string(field(code + at)));
  expect(changed(code + at, field(code + at) - 64), "code section",
         "expected " + std::to_string(field(code + at)));
  expect(changed(code + at, field(code + at) + 8), "code section",
         "expected " + std::to_string(field(code + at)));
  expect(changed(code + at, UINT64_MAX), "code section", "expected " + std::to_string(field(code + at)));
  expect(changed(code + size, field(code + size) + 8), "code section", "not a multiple of its record's 16");
  expect(changed(code + size, field(code + size) + 640), "walkers section", "begins at offset");
  expect(changed(code + size, UINT64_MAX - 15), "code section", "leave the file");
  expect(changed(code + size, std::uint64_t{0}), "walkers section", "begins at offset");
  expect(changed(last + size, field(last + size) - 16), "offset", "16 bytes after the last section");
  expect(changed(last + size, field(last + size) + 16), "leaf_terms section", "leave the file");
  expect(changed(nodes + at, field(nodes + at) + 64), "nodes section", "expected");
}

TEST(Container, BytesBetweenSectionsAreZero) {
  const Program program = rich_program();
  const Bytes good = image_of(program);
  std::size_t gaps = 0, covered_to = sizeof(FileHeader) + kCommonSections * sizeof(SectionEntry);
  for (std::size_t i = 0; i < kCommonSections; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, good.data() + entry_offset(static_cast<Section>(i)), sizeof entry);
    for (; covered_to < entry.offset; ++covered_to, ++gaps) {
      Bytes image = good;
      image[covered_to] = std::byte{1};
      EXPECT_EQ(refusal(image),
                "offset " + std::to_string(covered_to) + ": a byte between sections is not zero");
    }
    covered_to = entry.offset + entry.size;
  }
  EXPECT_GT(gaps, 0u);
  Bytes longer = good;
  longer.resize(longer.size() + 1);
  put<std::uint64_t>(longer, offsetof(FileHeader, file_size), longer.size());
  EXPECT_EQ(refusal(longer), "offset " + std::to_string(good.size()) + ": 1 bytes after the last section");
}

/// Section tables that are well-formed but give the meta section another number of records.
TEST(Container, MetaIsOneRecord) {
  const Bytes good = image_of(rich_program());
  const std::size_t meta_at = bytecode::table_end(kCommonSections), record = sizeof(ProgramMeta);
  for (const std::size_t records : {0u, 2u}) {
    Bytes image = good;
    const auto at = image.begin() + static_cast<std::ptrdiff_t>(meta_at);
    if (records == 0)
      image.erase(at, at + static_cast<std::ptrdiff_t>(record));
    else
      image.insert(at, record, std::byte{0});
    const auto size = static_cast<std::uint64_t>(image.size());
    put(image, offsetof(FileHeader, file_size), size);
    put(image, entry_offset(Section::Meta) + offsetof(SectionEntry, size), std::uint64_t{records * record});
    for (std::size_t i = 1; i < kCommonSections; ++i) {
      const std::size_t entry = entry_offset(static_cast<Section>(i)) + offsetof(SectionEntry, offset);
      std::uint64_t offset;
      std::memcpy(&offset, image.data() + entry, sizeof offset);
      put(image, entry, offset + size - good.size());
    }
    EXPECT_EQ(refusal(image), "meta section: " + std::to_string(records) + " records, expected 1");
  }
}

/// Overlapping strings would let a small file ask for much memory.
TEST(Container, StringsFollowEachOtherInTheText) {
  const Program program = rich_program();
  const Bytes good = image_of(program);
  const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(program.strings().data()) -
                                           program.image().data());
  const auto strings = program.strings();
  const auto with = [&](std::size_t string, StringRef ref) {
    Bytes image = good;
    put<std::uint32_t>(image, at + string * sizeof ref, ref.offset);
    put<std::uint32_t>(image, at + string * sizeof ref + sizeof ref.offset, ref.size);
    return refusal(image);
  };
  const char* const apart = "strings section: string 1 does not follow the one before";
  const char* const outside = "strings section: string 1 leaves the text section";
  EXPECT_EQ(with(1, {UINT32_MAX, strings[1].size}), apart);
  EXPECT_EQ(with(1, {0, strings[1].size}), apart);
  EXPECT_EQ(with(0, {0, strings[0].size + 1}), apart);
  const auto rest = static_cast<std::uint32_t>(program.text().size()) - strings[1].offset;
  EXPECT_EQ(with(1, {strings[1].offset, rest + 1}), outside);
  EXPECT_EQ(with(1, {strings[1].offset, UINT32_MAX}), outside);
  const std::size_t last = strings.size() - 1;
  ASSERT_GT(strings[last].size, 0u);
  EXPECT_EQ(with(last, {strings[last].offset, strings[last].size - 1}),
            "text section: " + std::to_string(program.text().size()) + " bytes, but the strings have " +
                std::to_string(program.text().size() - 1));
}

}  // namespace
}  // namespace forestvm::test::test_program_image
