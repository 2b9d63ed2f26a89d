// The type Forest of Python: a program that a backend has loaded, and what calls need to know about it.
#pragma once

#include "bindings/python/core/python.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>

#include "bindings/python/core/context_pool.hpp"

namespace forestvm::python {

/// The kinds of predictions. The first four equal those of OutputKind.
enum class Output : std::uint8_t {
  Raw,
  Value,
  Class,
  Leaf,
  Proba,
  Contributions,
  Trees,
  Staged,
  Interactions,
  ApproxContributions,
  VirtEnsembles,
  Uncertainty,
  Quantile
};
inline constexpr std::size_t kOutputCount = 13;
inline constexpr const char* kOutputNames[kOutputCount] = {"raw",
                                                           "value",
                                                           "class",
                                                           "leaf",
                                                           "proba",
                                                           "contributions",
                                                           "trees",
                                                           "staged",
                                                           "interactions",
                                                           "approx-contributions",
                                                           "virt-ensembles",
                                                           "uncertainty",
                                                           "quantile"};

/// The source of a model's probabilities of classes.
enum class ProbabilitySource : std::uint8_t {
  None,     ///< The model has none.
  Values,   ///< Its values are the probabilities.
  Pair,     ///< Its values p are the second class's probabilities; the first class has 1 - p.
  Softmax,  ///< Its values are labels; probabilities are the softmax of its raw scores.
};

/// The shape and type of one kind of predictions.
struct OutputForm {
  OutputKind kind;       ///< The output of the program that it is made of.
  std::size_t width;     ///< Numbers for each row; 0 if the model has no such output.
  std::size_t computed;  ///< Numbers for each row that the program writes.
  bool flat;             ///< Arrays have one dimension.
  ResultType type;
};

struct Forest {
  /// Makes a forest whose calls all have `options`, but for these: calls for contributions and interactions compute
  /// `features` alone, all if there are none; calls for quantiles compute `quantiles`, the default ones if there are
  /// none.
  Forest(Program loaded, std::shared_ptr<const Predictor> backend, const CallOptions& options = {},
         std::vector<std::uint32_t> features = {}, std::vector<double> quantiles = {});

  const OutputForm& form(Output output) const { return forms[static_cast<std::size_t>(output)]; }

  /// Returns the options of a call for rows, whose margins are the next ones if the forest has some: see `margins`.
  Result<CallOptions> next_call(std::size_t rows);

  Program program;
  std::shared_ptr<const Predictor> predictor;
  std::vector<std::uint32_t> features;  ///< The features of `call`.
  std::vector<double> quantiles;        ///< The quantiles of `call`, if it has some of its own.
  CallOptions call;
  /// The memory of the margins of `call`, which are for all rows that the forest ever predicts, in their order. Such a
  /// forest serves one call from Python, which may come to several calls of the backend.
  Buffer margins;
  std::atomic<std::size_t> margins_used{0};  ///< Rows whose margins were used.
  c_api::Names names;
  ContextPool contexts;
  std::size_t num_features;
  std::size_t row_cost;  ///< The number of tree walks that take about as long as a row.
  ProbabilitySource probabilities;
  bool takes_texts;  ///< Some feature's values are categories that texts name.
  OutputForm forms[kOutputCount];
};

struct ForestObject {
  PyObject ob_base;
  Forest* forest;
};

inline Forest& forest_of(PyObject* self) { return *reinterpret_cast<ForestObject*>(self)->forest; }

/// Makes the type. Returns null with a Python exception set if that fails.
PyObject* make_forest_type(PyObject* module);

/// Methods of the type. _core.pyi has their signatures; docstrings in forest.cpp describe the public ones, and comments
/// at their definitions the others.
using FastMethod = PyObject*(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
FastMethod predict, predict_raw, predict_class, predict_proba, apply, predict_one;
PyObject* predict_csr(PyObject* self, PyObject* args);
PyObject* predict_columns(PyObject* self, PyObject* args);
PyObject* predict_blocks(PyObject* self, PyObject* args);
PyObject* predict_arrow(PyObject* self, PyObject* args);
PyObject* predict_device(PyObject* self, PyObject* args);
PyObject* stream(PyObject* self, PyObject* args);
PyObject* category_numbers(PyObject* self, PyObject* args);
PyObject* new_result(PyObject* self, PyObject* args);
PyObject* decoded_tree(PyObject* self, PyObject* number);
PyObject* load(PyObject* type, PyObject* args);
PyObject* calling(PyObject* self, PyObject* args);
PyObject* with_margins(PyObject* self, PyObject* margins);

/// Returns whether the model has the output; otherwise a Python exception is set.
bool has_output(const Forest& forest, Output output);

/// Returns whether the model has the output and the extension computes it without Python; otherwise a Python exception
/// is set.
bool has_stream(const Forest& forest, Output output);

}  // namespace forestvm::python
