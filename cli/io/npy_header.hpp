// The text inside an .npy header: a Python dictionary of three known keys, parsed strictly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::cli {

struct NpyHeader {
  std::string dtype;  ///< type of the values, e.g. "<f4"
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Parses a text like "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" with white space.
Result<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace forestvm::cli
