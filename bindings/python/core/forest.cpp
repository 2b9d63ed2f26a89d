// See forest.hpp.
#include "bindings/python/core/forest.hpp"

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "bindings/python/core/encoded_rows.hpp"
#include "bindings/python/core/errors.hpp"

namespace forestvm::python {
namespace {

ProbabilitySource probability_source(const Program& program) {
  const ProgramMeta& meta = program.meta();
  if (meta.class_rule == ClassRule::None || meta.class_rule == ClassRule::ArgmaxOfEach)
    return ProbabilitySource::None;
  switch (meta.transform) {
    case Transform::Argmax:
      return ProbabilitySource::Softmax;
    case Transform::Sigmoid:
    case Transform::Logistic:
    case Transform::PlainSigmoid:
    case Transform::Softmax:
    case Transform::SoftmaxZero:
    case Transform::TableSoftmax:
    case Transform::RoundedSoftmax:
    case Transform::PlainSoftmax:
    case Transform::PowerSigmoid:
    case Transform::PowerSoftmax:
    case Transform::Average:
    case Transform::Clamp:
    case Transform::Step:
      break;
    case Transform::Identity:  // the leaves may be probabilities
      if (meta.class_rule == ClassRule::Argmax) break;
      return ProbabilitySource::None;
    case Transform::Exp:
    case Transform::SignedSquare:
    case Transform::Log1pExp:
    case Transform::Uncertainty:
    case Transform::Anomaly:
    case Transform::AnomalyDecision:
    case Transform::CutExp:
    case Transform::PowerExp:
    case Transform::TableExp:
    case Transform::WeightedMedian:
    case Transform::Sorted:
    case Transform::SoftplusSteps:
      return ProbabilitySource::None;
  }
  if (meta.pair == Pair::Negation) return ProbabilitySource::None;
  const bool one = output_width(program, OutputKind::Value) == 1;
  return one ? ProbabilitySource::Pair : ProbabilitySource::Values;
}

/// Returns the output of the program of which a kind of predictions is made, but for probabilities.
OutputKind kind_of(Output output) {
  switch (output) {
    case Output::Raw:
      return OutputKind::Raw;
    case Output::Value:
    case Output::Proba:
      return OutputKind::Value;
    case Output::Class:
      return OutputKind::Class;
    case Output::Leaf:
      return OutputKind::Leaf;
    case Output::Contributions:
      return OutputKind::Contributions;
    case Output::Trees:
      return OutputKind::Trees;
    case Output::Staged:
      return OutputKind::Staged;
    case Output::Interactions:
      return OutputKind::Interactions;
    case Output::ApproxContributions:
      return OutputKind::ApproxContributions;
    case Output::VirtEnsembles:
      return OutputKind::VirtEnsembles;
    case Output::Uncertainty:
      return OutputKind::Uncertainty;
    case Output::Quantile:
      return OutputKind::Quantile;
  }
  __builtin_unreachable();  // the cases above are all outputs
}

OutputForm form_of(const Program& program, Output output, ProbabilitySource probabilities,
                   const CallOptions& call) {
  const ResultType score =
      program.meta().score_type == ScalarType::Float64 ? ResultType::Float64 : ResultType::Float32;
  if (output == Output::Proba) {
    const OutputKind kind = probabilities == ProbabilitySource::Softmax ? OutputKind::Raw : OutputKind::Value;
    const std::size_t computed = output_width(program, kind);
    const std::size_t width = probabilities == ProbabilitySource::None   ? 0
                              : probabilities == ProbabilitySource::Pair ? 2
                                                                         : computed;
    return {kind, width, computed, false, score};
  }
  const OutputKind kind = kind_of(output);
  const std::size_t width = output_width(program, kind, call);
  const ResultType type = output == Output::Class      ? ResultType::Int64
                          : output == Output::Leaf     ? ResultType::Int32
                          : output == Output::Quantile ? ResultType::Float64
                                                       : score;
  const bool matrix = output == Output::Leaf || output == Output::Quantile || is_of_trees(kind);
  return {kind, width, width, width == 1 && !matrix, type};
}

}  // namespace

Forest::Forest(Program loaded, std::shared_ptr<const Predictor> backend, const CallOptions& options,
               std::vector<std::uint32_t> chosen_features, std::vector<double> chosen_quantiles)
    : program(std::move(loaded)),
      predictor(std::move(backend)),
      features(std::move(chosen_features)),
      quantiles(std::move(chosen_quantiles)),
      call(options),
      names(program),
      num_features(program.meta().num_features),
      row_cost(program.meta().num_trees + num_features / 8 + 1),
      probabilities(probability_source(program)),
      takes_texts(!program.category_names().empty() || !program.hashed_features().empty()) {
  call.features = features;
  if (!quantiles.empty()) call.quantiles = quantiles;
  for (std::size_t i = 0; i < kOutputCount; ++i)
    forms[i] = form_of(program, static_cast<Output>(i), probabilities, call);
}

Result<CallOptions> Forest::next_call(std::size_t rows) {
  CallOptions next = call;
  const BaseMargin& all = call.base_margin;
  const std::size_t from = margins_used.fetch_add(rows, std::memory_order_relaxed);
  if (from > all.rows || rows > all.rows - from)
    return fail(ErrorCode::Usage, "base_margin",
                formatted("has {} rows, and there are at least {} rows to predict", all.rows, from + rows));
  const std::size_t bytes = all.outputs * (all.float64 ? sizeof(double) : sizeof(float));
  next.base_margin.data = static_cast<const std::byte*>(all.data) + from * bytes;
  next.base_margin.rows = rows;
  return next;
}

namespace {

PyObject* text(std::string_view bytes) {
  return PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
}

/// Returns a tuple of the texts that `get` gives for 0, 1, ..., or null with a Python exception set.
template <class Get>
PyObject* texts(std::size_t count, const Get& get) {
  Ref tuple = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; tuple && i < count; ++i) {
    PyObject* const item = text(get(i));
    if (item == nullptr || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item) != 0)
      return nullptr;
  }
  return tuple.release();
}

const ProgramMeta& meta_of(PyObject* self) { return forest_of(self).program.meta(); }

PyObject* num_features(PyObject* self, void*) { return PyLong_FromUnsignedLong(meta_of(self).num_features); }
PyObject* num_trees(PyObject* self, void*) { return PyLong_FromUnsignedLong(meta_of(self).num_trees); }
PyObject* num_outputs(PyObject* self, void*) { return PyLong_FromUnsignedLong(meta_of(self).num_outputs); }

PyObject* margin_rows(PyObject* self, void*) {
  return PyLong_FromSize_t(forest_of(self).call.base_margin.rows);
}

PyObject* averaged_rounds_of(PyObject* self, void*) {
  const Forest& forest = forest_of(self);
  return PyFloat_FromDouble(averaged_rounds(forest.program, forest.call));
}

/// Returns the numbers of each tree's output.
PyObject* leaf_width(PyObject* self, void*) {
  const Program& program = forest_of(self).program;
  return PyLong_FromUnsignedLong(program.leaf_vectors().empty() ? 1 : program.meta().num_outputs);
}

PyObject* feature_names(PyObject* self, void*) {
  const Program& program = forest_of(self).program;
  return texts(program.meta().num_feature_names,
               [&](std::size_t i) { return program.feature_name(static_cast<std::uint32_t>(i)); });
}

PyObject* classes(PyObject* self, void*) {
  const Program& program = forest_of(self).program;
  return texts(program.meta().num_class_labels,
               [&](std::size_t i) { return program.class_label(static_cast<std::uint32_t>(i)); });
}

/// Returns a list of (feature, names, number of an unseen text or None).
PyObject* category_tables(PyObject* self, void*) {
  const Program& program = forest_of(self).program;
  Ref list = Ref::take(PyList_New(0));
  for (const CategoryNames& feature : program.category_names()) {
    const auto names = program.category_names(feature.feature);
    const Ref tuple = Ref::take(texts(names.size(), [&](std::size_t i) { return names[i]; }));
    const Ref unseen =
        feature.refuses_unseen != 0 ? Ref::share(Py_None) : Ref::take(PyFloat_FromDouble(feature.unseen));
    if (!list || !tuple || !unseen) return nullptr;
    const Ref entry = Ref::take(Py_BuildValue("(IOO)", feature.feature, tuple.get(), unseen.get()));
    if (!entry || PyList_Append(list.get(), entry.get()) != 0) return nullptr;
  }
  return list.release();
}

PyObject* list_of_features(std::span<const std::uint32_t> features) {
  Ref list = Ref::take(PyList_New(0));
  for (const std::uint32_t feature : features) {
    const Ref item = Ref::take(PyLong_FromUnsignedLong(feature));
    if (!list || !item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

/// Returns the features whose categories may be meant by their names or by their codes where rows hold plain numbers.
PyObject* ambiguous_features(PyObject* self, void*) {
  return guarded([&] {
    const Forest& forest = forest_of(self);
    std::vector<std::uint32_t> features;
    for (const CategoryNames& feature : forest.program.category_names())
      if (forest.names.categories().has_ambiguous_numbers(feature.feature))
        features.push_back(feature.feature);
    return list_of_features(features);
  });
}

PyObject* derived_columns(PyObject* self, void*) {
  return guarded([&] {
    const auto columns = derived_column_texts(forest_of(self).program);
    return texts(columns.size(), [&](std::size_t i) { return std::string_view(columns[i]); });
  });
}

PyObject* hashed_features(PyObject* self, void*) {
  return list_of_features(forest_of(self).program.hashed_features());
}

PyObject* zero_missing(PyObject* self, void*) {
  return list_of_features(forest_of(self).program.zero_missing());
}

PyObject* program_text(PyObject* self, void* id) {
  return text(forest_of(self).program.text(*static_cast<const StringId*>(id)));
}

PyObject* fingerprint(PyObject* self, void*) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(meta_of(self).fingerprint));
  return PyUnicode_FromString(digits);
}

PyObject* contract(PyObject* self, void*) { return text(name_of(meta_of(self).contract)); }

PyObject* description(PyObject* self, void*) {
  return guarded([&] { return text(forest_of(self).predictor->describe()); });
}

/// Returns the number of columns of encoded rows, and the encoder's id.
PyObject* encoder(PyObject* self, void*) {
  const Forest& forest = forest_of(self);
  return Py_BuildValue("(nK)", static_cast<Py_ssize_t>(forest.predictor->coded_columns()),
                       static_cast<unsigned long long>(encoder_id(forest.program)));
}

PyObject* row_dtype(PyObject* self, void*) {
  return PyUnicode_FromString(meta_of(self).row_type == ScalarType::Float64 ? "float64" : "float32");
}

PyObject* number_dtype(PyObject* self, void*) {
  const Program& program = forest_of(self).program;
  const bool wide = program.meta().row_type == ScalarType::Float64 || !program.wide_features().empty();
  return PyUnicode_FromString(wide ? "float64" : "float32");
}

PyObject* probabilities(PyObject* self, void*) {
  static constexpr const char* kNames[] = {"none", "values", "pair", "softmax"};
  return PyUnicode_FromString(kNames[static_cast<std::size_t>(forest_of(self).probabilities)]);
}

PyObject* save(PyObject* self, PyObject* path) {
  return guarded([&]() -> PyObject* {
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(path, &bytes, nullptr) != 0) return nullptr;
    const Program& program = forest_of(self).program;
    const std::string to = bytes;
    const Result<void> done = [&] {
      const WithoutGil free;
      return program.save(to);
    }();
    if (!done) return raise({done.error().code, to, done.error().text()});
    Py_RETURN_NONE;
  });
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto image = forest_of(self).program.image();
  return PyBuffer_FillInfo(view, self, const_cast<std::byte*>(image.data()),
                           static_cast<Py_ssize_t>(image.size()), 1, flags);
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "a Forest is made by forestvm.load and the functions forestvm.from_...");
  return nullptr;
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  {
    Forest* const forest = reinterpret_cast<ForestObject*>(self)->forest;
    if (forest != nullptr) {
      forest->contexts.clear();
      forest->margins.close();
    }
    const WithoutGil free;
    delete forest;
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyCFunction fast(FastMethod* method) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method));
}

template <StringId id>
void* string_id() {
  static constexpr StringId kId = id;
  return const_cast<StringId*>(&kId);
}

/// The docstring of a public method, in the form from which Python derives its signature.
#define FVM_ROWS_SIGNATURE(name, output, scores)                                                          \
  name "($self, X, *, " output "out=None, dtype=None, missing=None, columns='name', extra='error'" scores \
       ")\n--\n\n"
#define FVM_SCORES ", base_margin=None, early_stop=None"
constexpr const char* kPredict =
    FVM_ROWS_SIGNATURE("predict", "output='value', ", FVM_SCORES)
    "Predicts rows: (n,) numbers, or (n, k) if the model has k for each row.\n\n"
    "output:  'value' is what the trainer's predict gives; 'raw', 'class', 'leaf' and 'proba' what the other methods give.\n"
    "out:     the array to write to; it is returned.\n"
    "dtype:   float32 or float64 (labels and leaves: int32 or int64) instead of the trainer's type.\n"
    "missing: a number that is missing, besides NaN.\n"
    "columns: 'name' matches named columns to the model's features; 'position' takes them in order.\n"
    "extra:   'ignore' drops named columns that the model does not have.\n"
    "base_margin: numbers, one for each row and output, from which the sums of the rows start instead of the model's base\n"
    "         scores: XGBoost's base_margin, LightGBM's init_score.\n"
    "early_stop: {'margin': 10, 'every': 10} (what is absent is 10) ends the sums of rows that are decided, as LightGBM's\n"
    "         pred_early_stop does: after every 10 rounds those whose scores are further apart than the margin 10.\n\n"
    "Raises FeatureMismatch if the rows have other columns than the model, UnsupportedInput for a type that is not\n"
    "read, Refused for a value that the model cannot take, and Usage for other arguments that make no sense.";
constexpr const char* kPredictRaw =
    FVM_ROWS_SIGNATURE("predict_raw", "", FVM_SCORES) "Predicts the trainer's raw scores; see predict.";
constexpr const char* kPredictClass = FVM_ROWS_SIGNATURE(
    "predict_class", "", FVM_SCORES) "Predicts the index of each row's class; see predict.";
constexpr const char* kPredictProba = FVM_ROWS_SIGNATURE(
    "predict_proba", "", FVM_SCORES) "Predicts the probability of each class, (n, classes); see predict.";
constexpr const char* kApply = FVM_ROWS_SIGNATURE(
    "apply", "",
    "") "Returns the number of each tree's leaf, as the trainer counts them, (n, trees); see predict.";
constexpr const char* kPredictOne =
    "predict_one($self, X, *, output='value', missing=None, columns='name', extra='error')\n--\n\n"
    "Predicts one row: a vector, a sequence of numbers, or a mapping from names to values. Returns a number, or an array\n"
    "if the output has several.";
#undef FVM_SCORES
#undef FVM_ROWS_SIGNATURE
constexpr const char* kFingerprint =
    "16 hexadecimal digits that name the model. Programs of one model have the same ones, whatever their schedule,\n"
    "contract and outputs: program_fingerprint tells their programs apart.";

}  // namespace

PyObject* make_forest_type(PyObject* module) {
  constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
  static PyMethodDef methods[] = {
      {"predict", fast(predict), kFast, kPredict},
      {"predict_raw", fast(predict_raw), kFast, kPredictRaw},
      {"predict_class", fast(predict_class), kFast, kPredictClass},
      {"predict_proba", fast(predict_proba), kFast, kPredictProba},
      {"apply", fast(apply), kFast, kApply},
      {"predict_one", fast(predict_one), kFast, kPredictOne},
      {"_predict_csr", predict_csr, METH_VARARGS, nullptr},
      {"_predict_columns", predict_columns, METH_VARARGS, nullptr},
      {"_predict_blocks", predict_blocks, METH_VARARGS, nullptr},
      {"_predict_arrow", predict_arrow, METH_VARARGS, nullptr},
      {"_predict_device", predict_device, METH_VARARGS, nullptr},
      {"_stream", stream, METH_VARARGS, nullptr},
      {"_category_numbers", category_numbers, METH_VARARGS, nullptr},
      {"_encode", fill_encoded_rows, METH_VARARGS, nullptr},
      {"_encode_arrow", encode_arrow, METH_VARARGS, nullptr},
      {"_new_result", new_result, METH_VARARGS, nullptr},
      {"_tree", decoded_tree, METH_O, nullptr},
      {"_save", save, METH_O, nullptr},
      {"_calling", calling, METH_VARARGS, nullptr},
      {"_with_margins", with_margins, METH_O, nullptr},
      {"_load", load, METH_VARARGS | METH_CLASS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyGetSetDef properties[] = {
      {"num_features", num_features, nullptr,
       "The number of features, which is the number of columns of rows.", nullptr},
      {"num_trees", num_trees, nullptr, "The number of trees.", nullptr},
      {"num_outputs", num_outputs, nullptr, "The number of raw scores of a row.", nullptr},
      {"fingerprint", fingerprint, nullptr, kFingerprint, nullptr},
      {"contract", contract, nullptr,
       "The bits that predictions promise: 'trainer', 'reproducible' or 'fast'.", nullptr},
      {"description", description, nullptr, "What predicts, for people: backend, CPU target and threads.",
       nullptr},
      {"format", program_text, nullptr, "The format of the model's file, such as 'xgboost-json'.",
       string_id<StringId::Format>()},
      {"trainer", program_text, nullptr, "The trainer of the model, such as 'xgboost'.",
       string_id<StringId::Trainer>()},
      {"trainer_version", program_text, nullptr,
       "The trainer's version as the model's file gives it; may be empty.", string_id<StringId::Version>()},
      {"objective", program_text, nullptr, "The trainer's name of the objective, such as 'binary:logistic'.",
       string_id<StringId::Objective>()},
      {"schedule", program_text, nullptr, "The text of the schedule with which the program was compiled.",
       string_id<StringId::Schedule>()},
      {"_feature_names", feature_names, nullptr, nullptr, nullptr},
      {"_classes", classes, nullptr, nullptr, nullptr},
      {"_category_tables", category_tables, nullptr, nullptr, nullptr},
      {"_ambiguous_features", ambiguous_features, nullptr, nullptr, nullptr},
      {"_hashed_features", hashed_features, nullptr, nullptr, nullptr},
      {"_zero_missing", zero_missing, nullptr, nullptr, nullptr},
      {"_derived_columns", derived_columns, nullptr, nullptr, nullptr},
      {"_encoder", encoder, nullptr, nullptr, nullptr},
      {"_row_dtype", row_dtype, nullptr, nullptr, nullptr},
      {"_number_dtype", number_dtype, nullptr, nullptr, nullptr},
      {"_probabilities", probabilities, nullptr, nullptr, nullptr},
      {"_leaf_width", leaf_width, nullptr, nullptr, nullptr},
      {"_margin_rows", margin_rows, nullptr, nullptr, nullptr},
      {"_averaged_rounds", averaged_rounds_of, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  static PyType_Spec spec = {"forestvm._core.Forest", sizeof(ForestObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, slots};
  return PyType_FromModuleAndSpec(module, &spec, nullptr);
}

}  // namespace forestvm::python
