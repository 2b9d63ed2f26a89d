// Builds the image of a program from ProgramParts, or from sections. Lays the sections out in their order and adds the
// checksum; the verifier then reads the image as it would read a stranger's file.
#include <algorithm>
#include <cstring>

#include <forestvm/internal/program_parts.hpp>

#include "vm/program/format.hpp"

namespace forestvm {
namespace {

/// The parts as the records of the file.
struct Contents {
  std::vector<StringRef> strings;
  std::string text;
  std::span<const std::byte> sections[kSectionCount];
};

template <class Record>
std::span<const std::byte> bytes_of(const std::vector<Record>& records) {
  return std::as_bytes(std::span(records));
}

Result<void> add_strings(const ProgramParts& parts, Contents& contents) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : parts.strings) sizes.push_back(text.size());
  FVM_ASSIGN(contents.strings, bytecode::string_refs(sizes));
  for (const std::string& text : parts.strings) contents.text += text;
  return {};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

template <class Record>
std::span<const std::byte> bytes_of(const Record& record) {
  return std::as_bytes(std::span(&record, 1));
}

void add_sections(const ProgramParts& parts, Contents& contents) {
#define FVM_TEXTS(number, Name, name, Record, meaning) contents.sections[number] = bytes_of(contents.name);
#define FVM_SECTION(number, Name, name, Record, meaning) contents.sections[number] = bytes_of(parts.name);
#include <forestvm/internal/sections.def>
}

}  // namespace

Result<std::vector<StringRef>> bytecode::string_refs(std::span<const std::uint64_t> sizes) {
  std::vector<StringRef> refs;
  std::uint64_t end = 0;
  for (const std::uint64_t size : sizes) {
    if (size > UINT32_MAX - end) return refused("text section", "the model's names exceed 4 GiB");
    refs.push_back({static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(size)});
    end += size;
  }
  return refs;
}

Result<Program> bytecode::seal(FileHeader header,
                               std::span<const std::span<const std::byte>, kSectionCount> sections) {
  std::size_t count = kSectionCount;
  while (count > kCommonSections && sections[count - 1].empty()) --count;
  SectionEntry table[kSectionCount] = {};
  std::uint64_t end = table_end(count);
  for (std::size_t i = 0; i < count; ++i) {
    table[i] = {static_cast<Section>(i), 0, align_up(end), sections[i].size()};
    end = table[i].offset + table[i].size;
  }

  header.section_count = static_cast<std::uint32_t>(count);
  header.file_size = end;
  return make_program(end, [&](std::span<std::byte> image) {
    std::fill(image.begin(), image.end(), std::byte{0});
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + sizeof header, table, count * sizeof *table);
    for (std::size_t i = 0; i < count; ++i)
      if (!sections[i].empty())
        std::memcpy(image.data() + table[i].offset, sections[i].data(), sections[i].size());
    header.checksum = checksum(image);
    std::memcpy(image.data(), &header, sizeof header);
  });
}

Result<Program> build_program(const ProgramParts& parts) {
  Contents contents;
  FVM_TRY(add_strings(parts, contents));
  add_sections(parts, contents);
  bytecode::FileHeader header{};
  std::memcpy(header.magic, bytecode::kMagic, sizeof bytecode::kMagic);
  header.format = kProgramFormat;
  return bytecode::seal(header, contents.sections);
}

}  // namespace forestvm
