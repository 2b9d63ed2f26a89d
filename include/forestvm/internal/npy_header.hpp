// The text inside an .npy header: a Python dictionary of three known keys (NumPy's numpy/lib/format.py), parsed
// strictly. Implemented by frontend.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm {

/// The content of the header.
struct NpyHeader {
  struct Field {
    std::string name;  ///< Empty if the items have no fields.
    std::string type;  ///< For example "<f4".
  };
  /// The fields of an item. An item without fields counts as one field without a name.
  std::vector<Field> fields;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;

  /// Returns whether items have fields with names (NumPy's structured arrays).
  bool is_structured() const { return fields.size() != 1 || !fields[0].name.empty(); }
};

/// Parses a text like "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" with white space. Refused, with the
/// number of the character, if it is anything else.
Result<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace forestvm
