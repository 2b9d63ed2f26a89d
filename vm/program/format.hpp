// The outermost records of a program file: header and section table. Little-endian. The sections follow in
// the order of sections.def, each at the first multiple of 64 bytes after the one before, gaps filled with
// zeros; so the sizes alone say where everything lies.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <forestvm/internal/names.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

template <>
struct Texts<Section> {
  static constexpr auto kByNumber = texts_of({
#define FVM_SECTION(number, Name, name, Record, meaning) {number, #name},
#include <forestvm/internal/sections.def>
  });
};

}  // namespace forestvm

namespace forestvm::bytecode {

static_assert(std::endian::native == std::endian::little,
              "program files are little-endian and used as they are");

/// The first bytes of a file: a byte above 127, a name, and line ends that a text-mode transfer would change
/// (PNG's idea).
inline constexpr unsigned char kMagic[8] = {0x89, 'F', 'V', 'M', '\r', '\n', 0x1a, '\n'};

struct FileHeader {
  unsigned char magic[8];
  std::uint16_t format;         ///< The file's format: kProgramFormat.
  std::uint16_t reserved;       ///< Zero.
  std::uint32_t section_count;  ///< Number of sections: from kCommonSections to kSectionCount.
  /// Features that a reader must know to run the program; none are defined yet.
  std::uint64_t feature_bits;
  std::uint64_t file_size;  ///< Size of the file in bytes.
  std::uint64_t checksum;   ///< XXH3-64 of the file with this field zero.
  std::uint8_t unused[24];  ///< Zero.
};
static_assert(sizeof(FileHeader) == 64);

struct SectionEntry {
  Section id;
  std::uint32_t reserved;  ///< Zero.
  std::uint64_t offset;    ///< Bytes from the start of the file.
  std::uint64_t size;      ///< Size of the section in bytes.
};
static_assert(sizeof(SectionEntry) == 24);

/// The sizes of sections' records in bytes.
inline constexpr std::size_t kRecordSizes[] = {
#define FVM_SECTION(number, Name, name, Record, meaning) sizeof(Record),
#include <forestvm/internal/sections.def>
};

constexpr std::uint64_t align_up(std::uint64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

/// Returns where the first section begins in a file of this many sections.
constexpr std::uint64_t table_end(std::size_t sections) {
  return align_up(sizeof(FileHeader) + sections * sizeof(SectionEntry));
}

/// Returns the checksum of an image whose size has been checked to hold a header.
std::uint64_t checksum(std::span<const std::byte> image);

/// Returns where strings of these sizes lie in the text section, one after the other. Refused beyond its first
/// 4 GiB.
Result<std::vector<StringRef>> string_refs(std::span<const std::uint64_t> sizes);

/// Makes a program of `size` bytes, all of which `write` writes, and verifies it.
Result<Program> make_program(std::size_t size, const std::function<void(std::span<std::byte>)>& write);

/// Lays the sections out behind `header`, whose counts, size and checksum it sets, and verifies the image.
Result<Program> seal(FileHeader header, std::span<const std::span<const std::byte>, kSectionCount> sections);

}  // namespace forestvm::bytecode
