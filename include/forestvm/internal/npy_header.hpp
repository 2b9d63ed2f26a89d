// The text inside an .npy header: a Python dictionary of three known keys (NumPy's numpy/lib/format.py), parsed
// strictly. Implemented by frontend.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm {

struct NpyHeader {
  struct Field {
    std::string name;
    std::string type;  ///< For example "<f4".
  };
  std::vector<Field>
      fields;  ///< The fields of an item; one without a name, the item itself, unless the array is structured.
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;

  bool is_structured() const { return fields.size() != 1 || !fields[0].name.empty(); }
};

/// Parses a text like "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" with white space.
Result<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace forestvm
