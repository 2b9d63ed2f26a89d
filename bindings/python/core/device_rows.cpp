// Rows in a GPU's memory: the method Forest._predict_device, and what DLPack says of an array. forestvm._device_rows
// checks the arrays.
#include "bindings/python/core/python.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/device_rows.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"
#include "bindings/python/core/numpy.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

// DLPack's structs, https://dmlc.github.io/dlpack/latest/c_api.html.
struct DLTensor {
  void* data;
  std::int32_t device_type, device_id;
  std::int32_t ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
constexpr std::uint64_t kReadOnly = 1;
constexpr std::uint32_t kMajor = 1;

/// Returns a type as NumPy writes it, such as "<f4"; otherwise a text that NumPy does not have.
std::string type_text(const DLTensor& tensor) {
  constexpr const char* kKinds[] = {"<i", "<u", "<f"};
  constexpr std::uint8_t kBool = 6;
  if (tensor.lanes == 1 && tensor.code == kBool) return "|b1";
  if (tensor.lanes == 1 && tensor.code < std::size(kKinds) && tensor.bits % 8 == 0)
    return kKinds[tensor.code] + std::to_string(tensor.bits / 8);
  return formatted("DLPack's type {} of {} bits x {}", tensor.code, tensor.bits, tensor.lanes);
}

/// Returns a tuple of numbers, or None if there are none.
PyObject* tuple_of(const std::int64_t* numbers, std::int32_t count) {
  if (numbers == nullptr) Py_RETURN_NONE;
  Ref tuple = Ref::take(PyTuple_New(count));
  for (std::int32_t i = 0; tuple && i < count; ++i) {
    PyObject* const number = PyLong_FromLongLong(numbers[i]);
    if (number == nullptr || PyTuple_SetItem(tuple.get(), i, number) != 0) return nullptr;
  }
  return tuple.release();
}

}  // namespace

PyObject* read_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    const DLTensor* tensor = nullptr;
    bool read_only = false;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
      const auto& managed =
          *static_cast<const DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
      if (managed.major != kMajor) return raise(usage("DLPack {} is not read: version 1 is", managed.major));
      tensor = &managed.tensor;
      read_only = (managed.flags & kReadOnly) != 0;
    } else {
      const auto* const managed =
          static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
      if (managed == nullptr) return nullptr;
      tensor = &managed->tensor;
    }
    if (tensor->ndim < 0 || (tensor->ndim != 0 && tensor->shape == nullptr))
      return raise(usage("DLPack: an array without a shape"));
    const Ref shape = Ref::take(tuple_of(tensor->shape, tensor->ndim));
    const Ref strides = Ref::take(tuple_of(tensor->strides, tensor->ndim));
    if (!shape || !strides) return nullptr;
    const std::uintptr_t address =
        reinterpret_cast<std::uintptr_t>(tensor->data) + static_cast<std::uintptr_t>(tensor->byte_offset);
    return Py_BuildValue("(KOOsiiN)", static_cast<unsigned long long>(address), shape.get(), strides.get(),
                         type_text(*tensor).c_str(), tensor->device_type, tensor->device_id,
                         PyBool_FromLong(read_only));
  });
}

/// Forest._predict_device(address, rows, stride, device, stream, output, out, dtype): predicts rows in a GPU's memory
/// to memory of the same GPU, of which `out` is the address.
PyObject* predict_device(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *address = nullptr, *stream = nullptr, *out = nullptr, *name = nullptr, *dtype = nullptr;
    Py_ssize_t count = 0, stride = 0;
    int device = 0;
    Output output{};
    if (PyArg_ParseTuple(args, "OnniOOOO", &address, &count, &stride, &device, &stream, &name, &out,
                         &dtype) == 0 ||
        !find_output(name, output))
      return nullptr;
    const auto* const values = static_cast<const float*>(PyLong_AsVoidPtr(address));
    void *const on_stream = PyLong_AsVoidPtr(stream), *const results = PyLong_AsVoidPtr(out);
    if (PyErr_Occurred() != nullptr) return nullptr;
    const auto type = result_type_of(dtype);
    if (!type) return nullptr;
    Forest& forest = forest_of(self);
    const OutputForm& form = forest.form(output);
    if (output == Output::Proba && forest.probabilities != ProbabilitySource::Values)
      return raise(
          refused("output proba",
                  "is computed from the model's values by the host: predict \"value\" or \"raw\" for "
                  "rows in a GPU's memory"));
    const DeviceRows rows{.data = values,
                          .count = static_cast<std::size_t>(count),
                          .stride = static_cast<std::size_t>(stride),
                          .device = device,
                          .stream = on_stream};
    const Result<void> done = [&] {
      const ContextPool::Lease lease = forest.contexts.take(*forest.predictor);
      const WithoutGil free;
      return write_output(forest, lease, rows, form, *type, results);
    }();
    if (!done) return raise(done.error());
    Py_RETURN_NONE;
  });
}

}  // namespace forestvm::python
