// See lightgbm_model.hpp.
#include "frontend/lightgbm_model.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "frontend/lightgbm_header.hpp"
#include "frontend/lightgbm_text.hpp"
#include "frontend/lightgbm_tree.hpp"

namespace forestvm::frontend {

bool sniff_lightgbm_text(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with("tree\n");
}

Result<ParsedModel> read_lightgbm_text(std::span<const std::byte> bytes, const LoadLimits& limits) {
  ParsedModel parsed;
  Model& model = parsed.model;
  std::vector<std::size_t> lines;
  std::uint64_t nodes = 0;
  const auto receive = [&](const LightgbmTree& entries) -> Result<void> {
    const auto too_many = [&](const std::string& what, std::uint64_t limit) {
      return refused(formatted("line {}: tree {}", entries.line, entries.number),
                     "more {} than the limit of {}", what, limit);
    };
    if (entries.number >= limits.max_trees) return too_many("trees", limits.max_trees);
    FVM_ASSIGN(Tree tree, tree_of(entries));
    nodes += tree.nodes.size();
    if (nodes > limits.max_nodes) return too_many("nodes", limits.max_nodes);
    model.trees.push_back(std::move(tree));
    lines.push_back(entries.line);
    return {};
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  FVM_ASSIGN(const LightgbmHeader header, read_lightgbm_text(text, receive));
  model.format = "lightgbm-text";
  FVM_TRY(add_lightgbm_header(header, limits, model));
  parsed.tree_location = [lines = std::move(lines)](std::size_t tree) {
    return formatted("line {}", lines[tree]);
  };
  return parsed;
}

}  // namespace forestvm::frontend
