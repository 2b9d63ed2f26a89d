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

Result<void> add_strings(const ProgramParts& parts, Contents& contents) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : parts.strings) sizes.push_back(text.size());
  FVM_ASSIGN(contents.strings, bytecode::string_refs(sizes));
  for (const std::string& text : parts.strings) contents.text += text;
  return {};
}

void add_sections(const ProgramParts& parts, Contents& contents) {
  const auto set = [&](Section section, std::span<const std::byte> bytes) {
    contents.sections[static_cast<std::size_t>(section)] = bytes;
  };
  set(Section::Meta, std::as_bytes(std::span(&parts.meta, 1)));
  set(Section::Code, bytes_of(parts.code));
  set(Section::Walkers, bytes_of(parts.walkers));
  set(Section::Groups, bytes_of(parts.groups));
  set(Section::Trees, bytes_of(parts.trees));
  set(Section::TileShapes, bytes_of(parts.tile_shapes));
  set(Section::Accumulators, bytes_of(parts.accumulators));
  set(Section::Base, bytes_of(parts.base));
  set(Section::Thresholds, bytes_of(parts.thresholds));
  set(Section::EncodedFeatures, bytes_of(parts.encoded_features));
  set(Section::Columns, bytes_of(parts.columns));
  set(Section::Ranks, bytes_of(parts.ranks));
  set(Section::Strings, bytes_of(contents.strings));
  set(Section::Text, std::as_bytes(std::span(contents.text)));
  set(Section::LeafNumbers, bytes_of(parts.leaf_numbers));
  set(Section::WideLeaves, bytes_of(parts.wide_leaves));
  set(Section::ZeroMissing, bytes_of(parts.zero_missing));
  set(Section::Nodes, bytes_of(parts.nodes));
  set(Section::CategoryColumns, bytes_of(parts.category_columns));
  set(Section::CategoryWords, bytes_of(parts.category_words));
  set(Section::WideFeatures, bytes_of(parts.wide_features));
  set(Section::WideBounds, bytes_of(parts.wide_bounds));
  set(Section::LeafVectors, parts.leaf_vectors);
  set(Section::LeafFunctions, bytes_of(parts.leaf_functions));
  set(Section::LeafTerms, bytes_of(parts.leaf_terms));
  set(Section::CategoryNames, bytes_of(parts.category_names));
  set(Section::HashedFeatures, bytes_of(parts.hashed_features));
  set(Section::Lookups, bytes_of(parts.lookups));
  set(Section::KeyParts, bytes_of(parts.key_parts));
  set(Section::LookupWords, bytes_of(parts.lookup_words));
  set(Section::ComputedColumns, bytes_of(parts.computed_columns));
  set(Section::ColumnTerms, bytes_of(parts.column_terms));
  set(Section::ExplainedTrees, bytes_of(parts.explained_trees));
  set(Section::Paths, bytes_of(parts.paths));
  set(Section::RoundBegins, bytes_of(parts.round_begins));
  set(Section::AttributedTrees, bytes_of(parts.attributed_trees));
  set(Section::AttributedLeaves, bytes_of(parts.attributed_leaves));
  set(Section::Attributions, bytes_of(parts.attributions));
  set(Section::AttributionBase, bytes_of(parts.attribution_base));
  set(Section::Uncertainty, bytes_of(parts.uncertainty));
  set(Section::Background, bytes_of(parts.background));
  set(Section::PatternLeaves, bytes_of(parts.pattern_leaves));
  set(Section::PatternTests, bytes_of(parts.pattern_tests));
  set(Section::PatternNumbers, bytes_of(parts.pattern_numbers));
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

Result<Program> encode_program(const ProgramParts& parts) {
  Contents contents;
  FVM_TRY(add_strings(parts, contents));
  add_sections(parts, contents);
  bytecode::FileHeader header{};
  std::memcpy(header.magic, bytecode::kMagic, sizeof bytecode::kMagic);
  header.format = kProgramFormat;
  return bytecode::seal(header, contents.sections);
}

}  // namespace forestvm
