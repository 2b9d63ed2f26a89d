// Names of attributes and methods that the extension asks objects for.
#pragma once

#include "bindings/python/core/python.hpp"

#include <cstdint>

namespace forestvm::python {

enum class Attribute : std::uint8_t {
  ArrowArray,
  ArrowStream,
  Columns,
  ExportToC,
  Height,
  Rows,
  Schema,
  Width
};

/// Makes the names when the module is imported. Making one when it is first used would need a lock, and a thread that
/// waits for such a lock can stop all threads of a Python without a global lock for ever. Returns whether it could; if
/// not, a Python exception is set.
bool make_attribute_names();

/// Returns a name, which the module keeps.
PyObject* name_of(Attribute attribute);

}  // namespace forestvm::python
