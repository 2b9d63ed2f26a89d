// Tables of codes for a program's lookups, made from its sections. Lookups of one category with different tests
// search for it once. A lookup's table gives the code that the encoder would give for the value that is looked up,
// so that no value is fetched or encoded. For every key they equal the codes of the values in the lookups' own tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <forestvm/program.hpp>

#include "vm/host/derive_codes.hpp"
#include "vm/host/load_encoder.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::host {

class LookupCodes {
 public:
  /// Makes an object without tables.
  LookupCodes() = default;
  /// Makes the tables of `program`, whose encoder is `encoder`. Makes none if the program has no lookups, or if
  /// tables that give the same codes cannot be made in a bounded time. `program` and `encoder` must live as long as
  /// this object.
  LookupCodes(const Program& program, const LoadedEncoder& encoder, const Target& target);

  /// Returns the number of keys for which each row is searched; 0 if there are no tables.
  std::size_t searches() const { return sets_.size(); }
  std::size_t scratch_bytes() const { return derive_scratch(features_.size(), tests_.size()); }

  /// Writes the codes of `row_count` converted rows, which lie `stride` values apart and lack the columns of lookups,
  /// in all columns. `codes` points to the first row's code in column 0, where a block begins.
  void encode(const float* rows, std::size_t stride, std::uint32_t row_count, std::uint8_t* codes,
              std::byte* scratch) const;

 private:
  friend class LookupCodesMaker;

  const Target* target_ = nullptr;
  std::size_t columns_ = 0;
  const std::uint32_t* category_words_ = nullptr;
  LoadedEncoder encoder_{};  ///< The program's encoder without the columns of lookups.
  std::vector<std::uint32_t> features_{};
  std::vector<KeyPart> tests_{};
  std::vector<LookupSet> sets_{};
  std::vector<std::shared_ptr<const void>> memory_{};  ///< Owns what `sets_` refers to.
};

}  // namespace forestvm::host
