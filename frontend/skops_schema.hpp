// Reads the schema.json of a .skops file, which says which Python objects the file holds and how they are nested. In:
// its bytes. Out: one node for each object. Nodes are small, and JSON's own values get none, so that memory stays
// within a few times the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

inline constexpr std::uint32_t kNoSkopsNode = UINT32_MAX;

/// A part of SkopsSchema::texts.
struct SkopsText {
  std::uint32_t begin = 0, size = 0;
};

/// skops's names for the ways in which it stores objects, as far as they are read.
enum class SkopsLoader : std::uint8_t { None, Json, Dict, List, Object, Array, Tree, Other };

/// A Python object. Its children are the elements of its "content", or the objects in the other members of its JSON
/// object, by their keys.
struct SkopsNode {
  SkopsText name;  ///< Key under which the parent has it; empty for elements of a list.
  SkopsText class_name, module;
  SkopsText text;  ///< For Json, the value as JSON text; for Array, the name of the entry with its items.
  std::uint32_t parent = kNoSkopsNode, first_child = kNoSkopsNode, next_sibling = kNoSkopsNode;
  SkopsLoader loader = SkopsLoader::None;
};

struct SkopsSchema {
  std::vector<SkopsNode> nodes;  ///< The first is the whole file's object.
  std::string texts;
  std::int64_t protocol = 0;
  std::string version;  ///< Version of skops.

  std::string_view text(SkopsText part) const {
    return std::string_view(texts).substr(part.begin, part.size);
  }
};

/// Reads schema.json. Refuses objects that skops does not write, with their place.
Result<SkopsSchema> read_skops_schema(std::span<const std::byte> json, std::uint32_t max_depth);

}  // namespace forestvm::frontend
