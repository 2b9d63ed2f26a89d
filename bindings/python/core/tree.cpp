// One tree of a forest as Python data, for drawings: see _tree in _core.pyi.
#include "bindings/python/core/forest.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>

#include "bindings/python/core/errors.hpp"
#include "vm/program/decode_forest.hpp"

namespace forestvm::python {
namespace {

using namespace forestvm::bytecode;

/// Returns a list of what `make` returns for 0, 1, ..., new references, or null with a Python exception set.
template <class Make>
PyObject* list_of(std::size_t count, const Make& make) {
  Ref list = Ref::take(PyList_New(0));
  for (std::size_t i = 0; list && i < count; ++i) {
    const Ref item = Ref::take(make(i));
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

/// Returns a tuple of the items of a list, which it releases.
PyObject* tuple_of(PyObject* list) {
  const Ref owned = Ref::take(list);
  return owned ? PyList_AsTuple(owned.get()) : nullptr;
}

/// Returns the number of a vector or function that a leaf holds; 0 if it is not below `count`, which happens only in a
/// damaged program. Predictions do the same.
std::size_t held_number(const DecodedLeaf& leaf, std::size_t count) {
  const bool exists = leaf.wide_value >= 0 && leaf.wide_value < static_cast<double>(count);
  return exists ? static_cast<std::size_t>(leaf.wide_value) : 0;
}

/// Turns a decoded tree, whose nodes are tiles of several tests, into single tests. Test `k` of a tile has the number
/// of the tile's first test plus k.
class TreeWriter {
 public:
  TreeWriter(const Program& program, const TreeDesc& desc, DecodedGroup decoded)
      : program_(program), desc_(desc), decoded_(std::move(decoded)), tree_(decoded_.trees[0]) {
    long next = 0;
    for (const DecodedTile& tile : tree_.tiles) {
      first_test_.push_back(next);
      next += static_cast<long>(tile.tests.size());
    }
  }

  PyObject* run() const {
    const Ref output = has_vectors() ? Ref::share(Py_None) : Ref::take(PyLong_FromUnsignedLong(desc_.output));
    const Ref nodes = Ref::take(PyList_New(0));
    if (!nodes) return nullptr;
    for (const DecodedTile& tile : tree_.tiles)
      for (unsigned k = 0; k < tile.tests.size(); ++k) {
        const Ref node = Ref::take(test(tile, k));
        if (!node || PyList_Append(nodes.get(), node.get()) != 0) return nullptr;
      }
    const Ref leaves =
        Ref::take(list_of(decoded_.leaves.size(), [&](std::size_t i) { return leaf(decoded_.leaves[i]); }));
    if (!output || !leaves) return nullptr;
    return Py_BuildValue("(OlOO)", output.get(), child(tree_.root), nodes.get(), leaves.get());
  }

 private:
  bool has_vectors() const { return !program_.leaf_vectors().empty(); }

  long child(DecodedChild at) const { return is_leaf(at) ? at : first_test_[static_cast<std::size_t>(at)]; }

  long child_in_tile(const DecodedTile& tile, unsigned k, bool right) const {
    if (tile.shape == 0) return child(tile.children[right ? 1 : 0]);
    const TileShape& shape = program_.tile_shapes()[tile.shape];
    const std::uint8_t entry = right ? shape.right[k] : shape.left[k];
    if ((entry & kTileExit) != 0) return child(tile.children[entry & ~unsigned{kTileExit}]);
    return first_test_[static_cast<std::size_t>(&tile - tree_.tiles.data())] + entry;
  }

  PyObject* test(const DecodedTile& tile, unsigned k) const {
    const DecodedTest& test = tile.tests[k];
    const bool of_set = test.category_set != nullptr;
    const Ref threshold = of_set ? Ref::share(Py_None) : Ref::take(PyFloat_FromDouble(test.threshold));
    const Ref set = of_set ? Ref::take(categories(*test.category_set)) : Ref::share(Py_None);
    if (!threshold || !set) return nullptr;
    PyObject* const missing = (test.feature & kMissingLeft) != 0 ? Py_True : Py_False;
    return Py_BuildValue("(IOOOll)", static_cast<unsigned>(test.feature & kFeatureMask), threshold.get(),
                         set.get(), missing, child_in_tile(tile, k, false), child_in_tile(tile, k, true));
  }

  PyObject* categories(const CategoryColumn& column) const {
    const auto words = program_.category_words().subspan(column.first_word, column.word_count);
    std::vector<std::uint32_t> set;
    if (column.listed != 0)
      set.assign(words.begin(), words.end());
    else
      for (std::uint32_t bit = 0; bit < 32 * column.word_count; ++bit)
        if ((words[bit / 32] >> bit % 32 & 1) != 0) set.push_back(column.first_category + bit);
    return tuple_of(list_of(set.size(), [&](std::size_t i) { return PyLong_FromUnsignedLong(set[i]); }));
  }

  PyObject* leaf(const DecodedLeaf& leaf) const {
    const auto functions = program_.leaf_functions();
    const LeafFunction* const function =
        functions.empty() ? nullptr : &functions[held_number(leaf, functions.size())];
    const std::size_t width = has_vectors() ? program_.meta().num_outputs : 1;
    const Ref values = Ref::take(tuple_of(list_of(width, [&](std::size_t i) {
      return PyFloat_FromDouble(has_vectors()         ? vector_element(leaf, i)
                                : function != nullptr ? function->value
                                                      : leaf.wide_value);
    })));
    const Ref terms = function != nullptr ? Ref::take(terms_of(*function)) : Ref::share(Py_None);
    if (!values || !terms) return nullptr;
    return Py_BuildValue("(IOO)", static_cast<unsigned>(leaf.number), values.get(), terms.get());
  }

  /// Returns an element of the vector whose number a leaf holds.
  double vector_element(const DecodedLeaf& leaf, std::size_t element) const {
    const ProgramMeta& meta = program_.meta();
    const std::size_t size = size_of(meta.score_type);
    const auto bytes = program_.leaf_vectors();
    const std::size_t vector = held_number(leaf, bytes.size() / (size * meta.num_outputs));
    const std::byte* const at = bytes.data() + (vector * meta.num_outputs + element) * size;
    float narrow = 0;
    double wide = 0;
    if (meta.score_type == ScalarType::Float64) {
      std::memcpy(&wide, at, sizeof wide);
      return wide;
    }
    std::memcpy(&narrow, at, sizeof narrow);
    return static_cast<double>(narrow);
  }

  PyObject* terms_of(const LeafFunction& function) const {
    const auto terms = program_.leaf_terms().subspan(function.first_term, function.term_count);
    const Ref list = Ref::take(list_of(terms.size(), [&](std::size_t i) {
      return Py_BuildValue("(Id)", static_cast<unsigned>(terms[i].feature), terms[i].coefficient);
    }));
    return list ? Py_BuildValue("(dO)", function.constant, list.get()) : nullptr;
  }

  const Program& program_;
  const TreeDesc& desc_;
  DecodedGroup decoded_;
  const DecodedTree& tree_;
  std::vector<long> first_test_;  ///< Number of each tile's first test.
};

}  // namespace

PyObject* decoded_tree(PyObject* self, PyObject* number) {
  return guarded([&]() -> PyObject* {
    int overflow = 0;
    const long long wanted = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (wanted == -1 && PyErr_Occurred() != nullptr) return nullptr;
    const Program& program = forest_of(self).program;
    for (const GroupDesc& group : program.groups()) {
      const auto trees = trees_of(program, group);
      for (std::uint32_t index = 0; index < trees.size(); ++index)
        if (trees[index].number == wanted)
          return TreeWriter(program, trees[index], decode_tree(program, group, index)).run();
    }
    const Ref text = Ref::take(PyObject_Str(number));
    const char* const digits = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
    if (digits == nullptr) return nullptr;
    return raise(fail(ErrorCode::Usage, "tree",
                      formatted("there is no tree {}: the model has {}, numbered from 0", digits,
                                program.meta().num_trees)));
  });
}

}  // namespace forestvm::python
