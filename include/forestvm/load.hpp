// Reading a trainer's model file. Implemented by frontend/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// What a model file may cost; exceeding one refuses the file. The defaults pass every real model we know.
struct LoadLimits {
  std::size_t max_bytes = std::size_t{4} << 30;  ///< of the file after decompression
  std::size_t max_expansion = 64;                ///< decompressed size / compressed size
  std::uint32_t max_depth = 64;                  ///< nesting of the document, not of the trees
  std::uint32_t max_trees = 10'000'000;
  std::uint32_t max_features = 16'777'216;
  std::uint32_t max_outputs = 65'536;
  std::uint64_t max_nodes = std::uint64_t{1} << 31;  ///< over all trees
};

/// Reads and checks the model in `path`. The format is found from the content, never from the name; gzip is
/// unpacked. Errors: Environment when the file cannot be read; Refused with the place inside the file (a JSON
/// path, the tree and node, or a byte offset) for everything else.
Result<Model> load_model(const std::string& path, const LoadLimits& limits = {});

/// The same from memory.
Result<Model> load_model(std::span<const std::byte> bytes, const LoadLimits& limits = {});

/// What a file begins with, at most, that check_model_opening looks at.
inline constexpr std::size_t kModelOpening = 4096;

/// Refuses what no model file begins like, for those who read one themselves and would not read it all in
/// vain. `opening`: the first kModelOpening bytes or more, or all of a shorter file.
Result<void> check_model_opening(std::span<const std::byte> opening);

}  // namespace forestvm
