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

/// Makes the names when the module is imported. Making a name at its first use would need a lock, and in a Python
/// without a global lock a thread that waits for such a lock can stop all threads for ever. Returns false with a Python
/// exception set if that fails.
bool make_attribute_names();

/// Returns a name, which the module keeps.
PyObject* name_of(Attribute attribute);

}  // namespace forestvm::python
