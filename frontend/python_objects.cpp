// See python_objects.hpp.
#include "frontend/python_objects.hpp"

#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

std::string text_of(const PythonScalar& scalar) {
  if (const auto* text = std::get_if<std::string>(&scalar)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&scalar)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&scalar)) return python_text(*number);
  if (const auto* flag = std::get_if<bool>(&scalar)) return *flag ? "True" : "False";
  return "None";
}

}  // namespace

std::string PythonRef::class_name() const {
  const std::string name = type();
  return name.substr(name.rfind('.') + 1);
}

bool PythonRef::is_none() const {
  if (kind() != PythonKind::Scalar) return false;
  const Result<PythonScalar> value = objects_->scalar(id_);
  return value.ok() && std::holds_alternative<std::monostate>(*value);
}

std::optional<PythonRef> PythonRef::find(std::string_view name) const {
  const std::optional<PythonObjects::Id> id = objects_->member(id_, name);
  if (!id) return std::nullopt;
  const PythonRef found(*objects_, *id);
  return found.is_none() ? std::nullopt : std::optional(found);
}

Result<PythonRef> PythonRef::get(std::string_view name) const {
  const std::optional<PythonRef> found = find(name);
  if (!found) return error(formatted("{} has no {}: it was not fitted", printable(class_name(), 40), name));
  return *found;
}

Result<std::vector<PythonRef>> PythonRef::items() const {
  if (kind() != PythonKind::Sequence) return error("expected a list, found " + printable(type()));
  std::vector<PythonRef> out;
  for (const PythonObjects::Id id : objects_->items(id_)) out.emplace_back(*objects_, id);
  return out;
}

Result<NumpyColumn> PythonRef::column(const NumpyArray& array, std::string_view field,
                                      NumpyArray::Wanted wanted) const {
  Result<NumpyColumn> found = array.column(field, wanted);
  if (!found.ok()) return error(found.error().message);
  return found;
}

Result<NumpyArray> PythonRef::array() const {
  if (kind() != PythonKind::Array) return error("expected a NumPy array, found " + printable(type()));
  return objects_->array(id_);
}

/// Returns the value of a scalar, or of an array of one number: NumPy's own numbers are such arrays.
Result<PythonScalar> PythonRef::scalar() const {
  if (kind() == PythonKind::Scalar) return objects_->scalar(id_);
  FVM_ASSIGN(const NumpyArray values, array());
  const Result<NumpyColumn> column = values.column("", NumpyArray::Wanted::Any);
  if (!column.ok()) return error(column.error().message);
  if (column->size() != 1) return error(formatted("expected one value, found {}", column->size()));
  if (column->is_text()) return PythonScalar(column->text(0));
  if (column->is_real()) return PythonScalar(column->real(0));
  return PythonScalar(column->integer(0));
}

Result<double> PythonRef::number() const {
  FVM_ASSIGN(const PythonScalar value, scalar());
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return error("expected a number, found " + in_quotes(text_of(value), 40));
}

Result<std::int64_t> PythonRef::integer(std::int64_t least, std::int64_t most) const {
  FVM_ASSIGN(const PythonScalar value, scalar());
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr) return error("expected an integer, found " + in_quotes(text_of(value), 40));
  if (*whole < least || *whole > most)
    return error(formatted("{} is not within {} and {}", *whole, least, most));
  return *whole;
}

Result<std::string> PythonRef::text() const {
  FVM_ASSIGN(PythonScalar value, scalar());
  auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return error("expected a text, found " + in_quotes(text_of(value), 40));
  return std::move(*text);
}

template <class Item, class OfScalar, class OfColumn>
Result<std::vector<Item>> PythonRef::all(NumpyArray::Wanted wanted, std::size_t most, OfScalar of_scalar,
                                         OfColumn of_column) const {
  const auto too_many = [&](std::size_t count) {
    return error(formatted("{} items instead of at most {}", count, most));
  };
  std::vector<Item> out;
  if (kind() == PythonKind::Sequence) {
    FVM_ASSIGN(const std::vector<PythonRef> list, items());
    if (list.size() > most) return too_many(list.size());
    for (const PythonRef& item : list) {
      FVM_ASSIGN(Item value, of_scalar(item));
      out.push_back(std::move(value));
    }
    return out;
  }
  FVM_ASSIGN(const NumpyArray values, array());
  const Result<NumpyColumn> column = values.column("", wanted);
  if (!column.ok()) return error(column.error().message);
  if (column->size() > most) return too_many(column->size());
  for (std::size_t i = 0; i < column->size(); ++i) out.push_back(of_column(*column, i));
  return out;
}

Result<std::vector<double>> PythonRef::numbers(std::size_t most) const {
  return all<double>(
      NumpyArray::Wanted::Numbers, most, [](const PythonRef& item) { return item.number(); },
      [](const NumpyColumn& column, std::size_t i) { return column.real(i); });
}

Result<std::vector<std::int64_t>> PythonRef::integers(std::size_t most) const {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         largest = std::numeric_limits<std::int64_t>::max();
  return all<std::int64_t>(
      NumpyArray::Wanted::Integers, most, [](const PythonRef& item) { return item.integer(least, largest); },
      [](const NumpyColumn& column, std::size_t i) { return column.integer(i); });
}

Result<std::vector<std::string>> PythonRef::texts(std::size_t most) const {
  FVM_ASSIGN(std::vector<std::string> out,
             all<std::string>(
                 NumpyArray::Wanted::Any, most,
                 [](const PythonRef& item) -> Result<std::string> {
                   FVM_ASSIGN(const PythonScalar value, item.scalar());
                   return text_of(value);
                 },
                 [](const NumpyColumn& column, std::size_t i) { return column.text(i); }));
  for (const std::string& text : out)
    if (!is_utf8(text)) return error("a text that is not UTF-8");
  return out;
}

}  // namespace forestvm::frontend
