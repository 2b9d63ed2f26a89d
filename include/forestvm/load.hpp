// Reads a trainer's model file. Implemented by frontend/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Limits on what a model file may cost: a file that exceeds one is refused. The defaults accept all real
/// models that are known.
struct LoadLimits {
  std::size_t max_bytes = std::size_t{4} << 30;  ///< Size of the file after decompression.
  std::size_t max_expansion = 64;                ///< Decompressed size / compressed size.
  std::uint32_t max_depth = 64;                  ///< Nesting of the document, not of the trees.
  std::uint32_t max_trees = 10'000'000;
  std::uint32_t max_features = 16'777'216;
  std::uint32_t max_outputs = 65'536;
  std::uint64_t max_nodes = std::uint64_t{1} << 31;  ///< Nodes of all trees together.
};

/// Reads and checks the model in `path`, a file or a directory (YDF). The format is found from the content, never
/// from the name; gzip is unpacked. Errors: Environment when a file cannot be read; Refused with the place inside
/// the file (a JSON path, the tree and node, or a byte offset) for everything else. They do not repeat `path`: callers
/// that have several files put it in front, as the command line does.
Result<Model> load_model(const std::string& path, const LoadLimits& limits = {});

/// Reads and checks a model in memory, as load_model does with a file.
Result<Model> load_model(std::span<const std::byte> bytes, const LoadLimits& limits = {});

/// The number of bytes from the start of a file that check_model_opening looks at, at most.
inline constexpr std::size_t kModelOpening = 4096;

/// Refuses bytes with which no model file begins. It lets callers who read a file themselves refuse it before
/// they have read all of it. `opening` holds the first kModelOpening bytes or more, or all of a shorter file.
Result<void> check_model_opening(std::span<const std::byte> opening);

}  // namespace forestvm
