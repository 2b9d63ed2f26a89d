// Computes a program's derived columns in converted rows: see core/derived_columns.hpp. Implemented by vm/call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/backend.hpp>
#include <forestvm/core/derived_columns.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

class ColumnRules {
 public:
  /// Makes an object without derived columns.
  ColumnRules() = default;
  /// Reads the sections of `program`. Some copy of the program must live as long as this object.
  explicit ColumnRules(const Program& program);

  /// Returns whether there is nothing to do: the program has no hashed features and no derived columns.
  bool empty() const { return hashed_.empty() && lookups_.empty() && computed_.empty(); }

  /// Returns the number of values of a row whose lookups are left out: its features, then the computed columns.
  std::size_t short_width() const { return num_features_ + computed_.size(); }

  /// Completes `count` converted rows, whose features are already written: writes the codes of hashed features,
  /// which it reads from row `begin` of `rows` on, and the derived columns. With `looks_up` these include the
  /// columns of lookups, and a row has row_width values; otherwise a row has short_width values. Usage for rows of
  /// codes in a type that does not hold them; Refused, with row and column, for a value that is no category.
  template <class Rows>
  Result<void> complete(const Rows& rows, std::size_t begin, std::size_t count, float* out,
                        bool looks_up) const;

 private:
  void look_up(std::size_t count, float* rows) const;
  void compute(std::size_t count, std::size_t width, float* rows) const;
  /// A search for a row's key, at its first slot.
  struct Search {
    std::uint64_t key;
    const std::uint32_t* slot;
  };
  void seek(const LookupDesc& lookup, const float* rows, std::size_t count, Search* searches) const;
  void look_up(const LookupDesc& lookup, const Search* searches, std::size_t count, float* columns) const;

  std::size_t num_features_ = 0, width_ = 0;
  std::span<const std::uint32_t> hashed_;
  std::span<const LookupDesc> lookups_;
  std::span<const KeyPart> parts_;
  std::span<const std::uint32_t> words_;
  std::span<const ComputedDesc> computed_;
  std::span<const ColumnTerm> terms_;
};

}  // namespace forestvm
