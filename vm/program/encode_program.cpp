// Encodes ProgramParts, or sections, as the image of a program. Lays the sections out in their order and adds the
// checksum; the verifier then reads the image as it would read a stranger's file.
#include <algorithm>
#include <cstring>

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

Result<void> place_strings(const ProgramParts& parts, Contents& contents) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : parts.strings) sizes.push_back(text.size());
  FVM_ASSIGN(contents.strings, bytecode::string_places(sizes));
  for (const std::string& text : parts.strings) contents.text += text;
  return {};
}

void place_sections(const ProgramParts& parts, Contents& contents) {
  const auto place = [&](Section section, std::span<const std::byte> bytes) {
    contents.sections[static_cast<std::size_t>(section)] = bytes;
  };
  place(Section::Meta, std::as_bytes(std::span(&parts.meta, 1)));
  place(Section::Code, bytes_of(parts.code));
  place(Section::Walkers, bytes_of(parts.walkers));
  place(Section::Groups, bytes_of(parts.groups));
  place(Section::Trees, bytes_of(parts.trees));
  place(Section::TileShapes, bytes_of(parts.tile_shapes));
  place(Section::Accumulators, bytes_of(parts.accumulators));
  place(Section::Base, bytes_of(parts.base));
  place(Section::Thresholds, bytes_of(parts.thresholds));
  place(Section::EncodedFeatures, bytes_of(parts.encoded_features));
  place(Section::Columns, bytes_of(parts.columns));
  place(Section::Ranks, bytes_of(parts.ranks));
  place(Section::Strings, bytes_of(contents.strings));
  place(Section::Text, std::as_bytes(std::span(contents.text)));
  place(Section::LeafNumbers, bytes_of(parts.leaf_numbers));
  place(Section::WideLeaves, bytes_of(parts.wide_leaves));
  place(Section::ZeroMissing, bytes_of(parts.zero_missing));
  place(Section::Nodes, bytes_of(parts.nodes));
  place(Section::CategoryColumns, bytes_of(parts.category_columns));
  place(Section::CategoryWords, bytes_of(parts.category_words));
  place(Section::WideFeatures, bytes_of(parts.wide_features));
  place(Section::WideBounds, bytes_of(parts.wide_bounds));
  place(Section::LeafVectors, parts.leaf_vectors);
  place(Section::LeafFunctions, bytes_of(parts.leaf_functions));
  place(Section::LeafTerms, bytes_of(parts.leaf_terms));
  place(Section::CategoryNames, bytes_of(parts.category_names));
  place(Section::HashedFeatures, bytes_of(parts.hashed_features));
  place(Section::Lookups, bytes_of(parts.lookups));
  place(Section::KeyParts, bytes_of(parts.key_parts));
  place(Section::LookupWords, bytes_of(parts.lookup_words));
  place(Section::LinearColumns, bytes_of(parts.linear_columns));
  place(Section::LinearTerms, bytes_of(parts.linear_terms));
  place(Section::ExplainedTrees, bytes_of(parts.explained_trees));
  place(Section::Paths, bytes_of(parts.paths));
  place(Section::RoundBegins, bytes_of(parts.round_begins));
}

}  // namespace

Result<std::vector<StringRef>> bytecode::string_places(std::span<const std::uint64_t> sizes) {
  std::vector<StringRef> places;
  std::uint64_t end = 0;
  for (const std::uint64_t size : sizes) {
    if (size > UINT32_MAX - end) return refused("text section", "the model's names exceed 4 GiB");
    places.push_back({static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(size)});
    end += size;
  }
  return places;
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

Result<Program> encode_program(const ProgramParts& parts) {
  Contents contents;
  FVM_TRY(place_strings(parts, contents));
  place_sections(parts, contents);
  bytecode::FileHeader header{};
  std::memcpy(header.magic, bytecode::kMagic, sizeof bytecode::kMagic);
  header.format = kProgramFormat;
  return bytecode::seal(header, contents.sections);
}

}  // namespace forestvm
