// Predictions in the structs of Arrow's C data interface, which their consumer releases.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>

namespace forestvm::python {

/// Returns the format of Arrow of a type of numbers.
const char* format_of(ResultType type);

/// Makes a schema of numbers, or one whose children are given.
ArrowSchema make_schema(std::string format, std::string name, std::vector<ArrowSchema> children);

/// Makes an array without nulls: of numbers, or of `count` items that `children` hold.
ArrowArray make_array(std::size_t count, std::vector<std::byte> numbers,
                      std::vector<ArrowArray> children = {});

}  // namespace forestvm::python
