// Gives Python objects as data: their attributes, lists, numbers, texts and arrays. They come from a .skops file, or
// are live objects of an interpreter. Nothing that reads them runs any of their code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/numpy_array.hpp"

namespace forestvm::frontend {

enum class PythonKind {
  Scalar,    ///< None, a boolean, a number or a text.
  Sequence,  ///< A list, a tuple or an array of objects.
  Mapping,   ///< A dictionary.
  Object,    ///< An instance of a class, with attributes.
  Array,     ///< A NumPy array of numbers or texts, or one of NumPy's own numbers.
  Other,     ///< Anything else: a function, a class, a slice.
};

/// The value of a Scalar; std::monostate stands for None.
using PythonScalar = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

class PythonObjects {
 public:
  /// The number of an object.
  using Id = std::uint32_t;

  virtual ~PythonObjects() = default;

  virtual PythonKind kind(Id object) const = 0;
  /// Returns the name of the object's class and its module, e.g. "sklearn.tree._classes.DecisionTreeClassifier".
  virtual std::string type(Id object) const = 0;
  /// Returns an attribute of an Object or a value of a Mapping; nothing if there is none.
  virtual std::optional<Id> member(Id object, std::string_view name) const = 0;
  /// Returns the elements of a Sequence; those of an array of several axes are sequences again.
  virtual std::vector<Id> items(Id object) const = 0;
  virtual Result<PythonScalar> scalar(Id object) const = 0;
  virtual Result<NumpyArray> array(Id object) const = 0;
  /// Returns where the object is, for messages, e.g. "schema.json: estimators_[3].tree_.nodes".
  virtual std::string place(Id object) const = 0;
};

/// One of the objects. Every function that returns a Result refuses an object of another kind with its place.
class PythonRef {
 public:
  PythonRef(const PythonObjects& objects, PythonObjects::Id id) : objects_(&objects), id_(id) {}

  PythonKind kind() const { return objects_->kind(id_); }
  std::string type() const { return objects_->type(id_); }
  /// Returns the name of the object's class without its module.
  std::string class_name() const;
  bool is_none() const;
  Error error(std::string_view message) const { return refused(objects_->place(id_), message); }
  std::string place() const { return objects_->place(id_); }

  /// Returns an attribute; nothing if it is not there, or None.
  std::optional<PythonRef> find(std::string_view name) const;
  Result<PythonRef> get(std::string_view name) const;
  Result<std::vector<PythonRef>> items() const;

  Result<NumpyArray> array() const;
  /// Returns a column of `array`, which must be the result of array().
  Result<NumpyColumn> column(const NumpyArray& array, std::string_view field,
                             NumpyArray::Wanted wanted) const;
  Result<double> number() const;
  /// Refuses numbers outside [least, most].
  Result<std::int64_t> integer(std::int64_t least, std::int64_t most) const;
  Result<std::string> text() const;
  /// Returns the items of an array or a sequence, which may have `most` of them.
  Result<std::vector<double>> numbers(std::size_t most) const;
  Result<std::vector<std::int64_t>> integers(std::size_t most) const;
  /// Returns the items as Python's str() gives them.
  Result<std::vector<std::string>> texts(std::size_t most) const;

 private:
  Result<PythonScalar> scalar() const;
  template <class Item, class OfScalar, class OfColumn>
  Result<std::vector<Item>> all(NumpyArray::Wanted wanted, std::size_t most, OfScalar of_scalar,
                                OfColumn of_column) const;

  const PythonObjects* objects_;
  PythonObjects::Id id_;
};

}  // namespace forestvm::frontend
