// See attributes.hpp.
#include "bindings/python/core/attributes.hpp"

#include <array>
#include <cstddef>

namespace forestvm::python {
namespace {

/// The names of the attributes, in the order of the enumeration Attribute.
constexpr std::array kTexts = {"__arrow_c_array__",
                               "__arrow_c_stream__",
                               "columns",
                               "_export_to_c",
                               "height",
                               "rows",
                               "schema",
                               "width"};
std::array<PyObject*, kTexts.size()> names{};

}  // namespace

bool make_attribute_names() {
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = PyUnicode_InternFromString(kTexts[i]);
    if (names[i] == nullptr) return false;
  }
  return true;
}

PyObject* name_of(Attribute attribute) { return names[static_cast<std::size_t>(attribute)]; }

}  // namespace forestvm::python
