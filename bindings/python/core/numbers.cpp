// See numbers.hpp.
#include "bindings/python/core/numbers.hpp"

#include <limits>

namespace forestvm::python {

std::optional<double> number_in(PyObject* object) {
  if (object == Py_None) return std::numeric_limits<double>::quiet_NaN();
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (!PyLong_Check(object)) return std::nullopt;
  constexpr long long kExact = 1LL << 53;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0 || number < -kExact || number > kExact) return std::nullopt;
  return static_cast<double>(number);
}

}  // namespace forestvm::python
