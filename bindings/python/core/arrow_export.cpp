// See arrow_export.hpp.
#include "bindings/python/core/arrow_export.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace forestvm::python {
namespace {

/// Owns the memory of a schema.
struct SchemaOwner {
  std::string format, name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

void release_schema(ArrowSchema* schema) {
  auto* const owner = static_cast<SchemaOwner*>(schema->private_data);
  for (ArrowSchema& child : owner->children)
    if (child.release != nullptr) child.release(&child);
  schema->release = nullptr;
  delete owner;
}

/// Owns the memory of an array.
struct ArrayOwner {
  std::vector<std::byte> numbers;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

void release_array(ArrowArray* array) {
  auto* const owner = static_cast<ArrayOwner*>(array->private_data);
  for (ArrowArray& child : owner->children)
    if (child.release != nullptr) child.release(&child);
  array->release = nullptr;
  delete owner;
}

}  // namespace

const char* format_of(ResultType type) {
  switch (type) {
    case ResultType::Float32:
      return "f";
    case ResultType::Float64:
      return "g";
    case ResultType::Int32:
      return "i";
    case ResultType::Int64:
      return "l";
  }
  return "";
}

ArrowSchema make_schema(std::string format, std::string name, std::vector<ArrowSchema> children) {
  auto owner = std::make_unique<SchemaOwner>();
  owner->format = std::move(format);
  owner->name = std::move(name);
  owner->children = std::move(children);
  for (ArrowSchema& child : owner->children) owner->pointers.push_back(&child);
  ArrowSchema schema{};
  schema.format = owner->format.c_str();
  schema.name = owner->name.c_str();
  schema.n_children = static_cast<std::int64_t>(owner->pointers.size());
  schema.children = owner->pointers.data();
  schema.release = release_schema;
  schema.private_data = owner.release();
  return schema;
}

ArrowArray make_array(std::size_t count, std::vector<std::byte> numbers, std::vector<ArrowArray> children) {
  auto owner = std::make_unique<ArrayOwner>();
  owner->numbers = std::move(numbers);
  owner->numbers.reserve(1);  // the buffer of no numbers must not be null
  owner->children = std::move(children);
  for (ArrowArray& child : owner->children) owner->pointers.push_back(&child);
  owner->buffers.push_back(nullptr);  // no validity bits
  if (owner->children.empty()) owner->buffers.push_back(owner->numbers.data());
  ArrowArray array{};
  array.length = static_cast<std::int64_t>(count);
  array.n_buffers = static_cast<std::int64_t>(owner->buffers.size());
  array.buffers = owner->buffers.data();
  array.n_children = static_cast<std::int64_t>(owner->pointers.size());
  array.children = owner->pointers.data();
  array.release = release_array;
  array.private_data = owner.release();
  return array;
}

}  // namespace forestvm::python
