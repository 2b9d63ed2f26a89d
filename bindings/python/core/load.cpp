// Makes a Forest from a model or a program: the class method Forest._load.
#include "bindings/python/core/python.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/background.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>
#include <forestvm/samples.hpp>

#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"

namespace forestvm::python {
namespace {

struct Options {
  const char* schedule = nullptr;             ///< Name or text; null for the default.
  std::span<const std::uint32_t> for_rows{};  ///< Rows per call that `auto` is to suit, ascending; none: all.
  unsigned for_threads = 1;                   ///< Threads that `auto` is to suit.
  const char* contract = nullptr;
  int strict = 0;
  unsigned threads = 1;
  const char* target = "auto";
  const char* device = nullptr;  ///< "cuda", "hip", or these with ":N".
  int first_round = 0;
  int end_round = -1;                    ///< -1: all rounds; -2: those up to the best one.
  int contributions = 0;                 ///< 1: compile a program that can compute contributions.
  int keep_leaves = 0;                   ///< 1 if the program shall keep each tree's leaf.
  int interactions = 0;                  ///< 1: compile a program that can compute interactions.
  int approx_contributions = 0;          ///< 1: compile a program that can compute approximate contributions.
  std::span<const double> background{};  ///< Row-major rows with which contributions compare.
  std::size_t background_columns = 0;
  bool has_background = false;
  std::span<const double> sample_rows{}, sample_targets{};  ///< Training rows, row-major, and their targets.
  std::size_t sample_columns = 0;
  bool has_samples = false;
};

/// The content of a file or of memory.
using Loaded = std::variant<Model, Program>;

/// Is not inlined, because g++ 12 would then warn of parts of the variant that are never read.
template <class T>
[[gnu::noinline]] Result<Loaded> either(Result<T> loaded) {
  if (!loaded) return std::move(loaded).failure();
  return Loaded(std::in_place_type<T>, std::move(loaded).value());
}

Result<Loaded> load_file(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) {
    std::array<char, 64> opening{};
    std::ifstream file(path, std::ios::binary);
    file.read(opening.data(), opening.size());
    const auto size = static_cast<std::size_t>(file.gcount());
    if (is_program(std::as_bytes(std::span(opening.data(), size)))) return either(Program::load(path));
  }
  return either(load_model(path));
}

/// Loads a model or a program from memory. A program at an aligned address is not copied if there is an `owner`, which
/// then keeps the memory alive.
Result<Loaded> load_bytes(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  if (!is_program(bytes)) return either(load_model(bytes));
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % kSectionAlignment == 0;
  return either(owner != nullptr && aligned ? Program::borrow(bytes, owner) : Program::from_bytes(bytes));
}

/// Returns an owner that releases the view when the last program that refers to it is gone, on whatever thread that
/// happens.
std::shared_ptr<const void> owner_of(Buffer view) {
  return {new Buffer(std::move(view)), [](const Buffer* held) {
            const PyGILState_STATE state = PyGILState_Ensure();
            delete held;
            PyGILState_Release(state);
          }};
}

std::optional<Contract> contract_called(std::string_view name) {
  for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast})
    if (name == name_of(contract)) return contract;
  return std::nullopt;
}

Result<Contract> asked_contract(const Options& options, Contract otherwise) {
  if (options.contract == nullptr) return otherwise;
  if (const auto contract = contract_called(options.contract)) return *contract;
  return usage(std::string("contract: expected trainer, reproducible or fast, not ") + options.contract);
}

Error in(const char* option, const Error& error) {
  return {error.code, error.where.empty() ? option : formatted("{}: {}", option, error.where), error.message};
}

Result<Schedule> asked_schedule(const Options& options, const Model& model, Contract contract) {
  const std::string text = options.schedule != nullptr ? options.schedule
                           : options.device != nullptr ? "gpu"
                                                       : "auto";
  if (text == "auto") return automatic_schedule(model, options.for_rows, options.for_threads);
  if (!options.for_rows.empty()) return usage("for_rows: is for the schedule auto");
  if (options.for_threads != 1) return usage("for_threads: is for the schedule auto");
  auto schedule =
      text.find('(') != std::string::npos ? parse_schedule(text) : schedule_by_name(model, text, contract);
  if (!schedule) return in("schedule", schedule.error());
  return schedule;
}

Result<void> keep_asked_rounds(const Options& options, Model& model) {
  if (options.end_round == -1) return {};
  if (options.end_round == -2) {
    FVM_ASSIGN(const Rounds rounds, best_rounds(model));
    return keep_rounds(model, rounds);
  }
  if (options.first_round < 0) return usage("rounds: the first number is negative");
  return keep_rounds(model, {static_cast<std::uint32_t>(options.first_round),
                             static_cast<std::uint32_t>(options.end_round)});
}

/// Returns the program that is asked for, and the compiler's warnings.
Result<Compiled> program_of(Loaded loaded, const Options& options) {
  if (auto* const model = std::get_if<Model>(&loaded)) {
    FVM_TRY(keep_asked_rounds(options, *model));
    CompileOptions compile_options;
    FVM_ASSIGN(compile_options.contract, asked_contract(options, Contract::Trainer));
    FVM_ASSIGN(const Schedule schedule, asked_schedule(options, *model, compile_options.contract));
    compile_options.strict = options.strict != 0;
    compile_options.contributions = options.contributions != 0;
    compile_options.keeps_leaves = options.keep_leaves != 0;
    compile_options.interactions = options.interactions != 0;
    compile_options.approx_contributions = options.approx_contributions != 0;
    if (options.has_background) {
      FVM_ASSIGN(Background background,
                 Background::make(*model, options.background, options.background_columns));
      compile_options.background = std::make_shared<const Background>(std::move(background));
    }
    if (options.has_samples) {
      FVM_ASSIGN(Samples samples,
                 Samples::make(*model, options.sample_rows, options.sample_columns, options.sample_targets));
      compile_options.samples = std::make_shared<const Samples>(std::move(samples));
    }
    return compile(std::move(*model), schedule, compile_options);
  }
  Program& program = std::get<Program>(loaded);
  const Contract own = program.meta().contract;
  FVM_ASSIGN(const Contract contract, asked_contract(options, own));
  if (options.has_background)
    return usage("background: this is a program, into which none can be compiled any more");
  if (options.has_samples)
    return usage("samples: this is a program, into which none can be compiled any more");
  if (options.schedule != nullptr)
    return usage("schedule: this is a program, which has its schedule already");
  if (!options.for_rows.empty()) return usage("for_rows: this is a program, which has its schedule already");
  if (options.for_threads != 1)
    return usage("for_threads: this is a program, which has its schedule already");
  if (options.end_round != -1) return usage("rounds: this is a program, which has its rounds already");
  const struct {
    OutputKind kind;
    int asked;
    std::string option;
  } explanations[] = {
      {OutputKind::Contributions, options.contributions, "contributions"},
      {OutputKind::Interactions, options.interactions, "interactions"},
      {OutputKind::ApproxContributions, options.approx_contributions, "approx_contributions"}};
  for (const auto& [kind, asked, option] : explanations)
    if (asked != 0 && output_width(program, kind) == 0)
      return usage(
          "{}: this is a program without them: compile the model with --with {}, or load it with {}=True",
          option, name_of(kind), option);
  if (options.keep_leaves != 0 && program.round_begins().empty())
    return usage(
        "keep_leaves: this is a program that does not keep each tree's leaf: compile the model with --with trees, or "
        "load it with keep_leaves=True");
  if (contract != own) return usage("contract: this is a program compiled for contract {}", name_of(own));
  if (options.strict != 0 && own == Contract::Trainer && program.meta().sums_in_model_order == 0)
    return refused("the program does not add leaves in the trainer's order, which strict requires");
  return Compiled{std::move(program), {}, {}};
}

Result<std::unique_ptr<Predictor>> backend_of(const Program& program, const Options& options) {
  if (options.device == nullptr) return host_backend(program, {options.threads, options.target});
  const std::string device = options.device;
  const std::size_t colon = device.find(':');
  const std::string vendor = device.substr(0, colon),
                    number = colon == std::string::npos ? "0" : device.substr(colon + 1);
  const bool numbered =
      !number.empty() && number.size() <= 4 && number.find_first_not_of("0123456789") == std::string::npos;
  if ((vendor != "cuda" && vendor != "hip") || !numbered)
    return usage("device: expected cuda, hip, or these with a number, such as cuda:1, not {}", device);
  return gpu_backend(program, {vendor == "cuda" ? GpuVendor::Cuda : GpuVendor::Hip, std::stoi(number)});
}

/// The result of loading: a forest, and the compiler's warnings.
struct Opened {
  std::unique_ptr<Forest> forest;
  std::vector<std::string> warnings;
};

template <class Load>
Result<Opened> open(const Load& load, const Options& options) {
  FVM_ASSIGN(Loaded loaded, load());
  FVM_ASSIGN(Compiled compiled, program_of(std::move(loaded), options));
  FVM_ASSIGN(std::shared_ptr<const Predictor> predictor, backend_of(compiled.program, options));
  return Opened{std::make_unique<Forest>(std::move(compiled.program), std::move(predictor)),
                std::move(compiled.warnings)};
}

/// Returns (a new instance of `type`, the warnings).
PyObject* instance(PyTypeObject* type, Opened opened) {
  const Ref warnings = Ref::take(PyList_New(0));
  for (const std::string& warning : opened.warnings) {
    const Ref text = Ref::take(PyUnicode_FromString(warning.c_str()));
    if (!warnings || !text || PyList_Append(warnings.get(), text.get()) != 0) return nullptr;
  }
  const Ref object = Ref::take(PyType_GenericAlloc(type, 0));
  if (!object || !warnings) return nullptr;
  reinterpret_cast<ForestObject*>(object.get())->forest = opened.forest.release();
  return PyTuple_Pack(2, object.get(), warnings.get());
}

/// Returns the numbers of an array of float64 in C order.
std::span<const double> doubles_in(const Buffer& array) {
  return {static_cast<const double*>(array->buf), static_cast<std::size_t>(array->len) / sizeof(double)};
}

}  // namespace

PyObject* load(PyObject* type, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Options options;
    PyObject* source = nullptr;
    PyObject *background = nullptr, *sample_rows = nullptr, *sample_targets = nullptr, *for_rows = nullptr;
    int is_path = 0, borrow = 0;
    if (PyArg_ParseTuple(args, "OpzzpIsziipppppOOOOI", &source, &is_path, &options.schedule,
                         &options.contract, &options.strict, &options.threads, &options.target,
                         &options.device, &options.first_round, &options.end_round, &options.contributions,
                         &options.keep_leaves, &options.interactions, &options.approx_contributions, &borrow,
                         &background, &sample_rows, &sample_targets, &for_rows, &options.for_threads) == 0)
      return nullptr;
    Buffer per_call;
    if (!per_call.open(for_rows, PyBUF_SIMPLE)) return nullptr;
    options.for_rows = {static_cast<const std::uint32_t*>(per_call->buf),
                        static_cast<std::size_t>(per_call->len) / sizeof(std::uint32_t)};
    Buffer compared;
    if (background != Py_None) {
      if (!compared.open(background, PyBUF_ND)) return nullptr;
      options.background = doubles_in(compared);
      options.background_columns = static_cast<std::size_t>(compared->shape[1]);
      options.has_background = true;
    }
    Buffer kept_rows, kept_targets;
    if (sample_rows != Py_None) {
      if (!kept_rows.open(sample_rows, PyBUF_ND) || !kept_targets.open(sample_targets, PyBUF_ND))
        return nullptr;
      options.sample_rows = doubles_in(kept_rows);
      options.sample_targets = doubles_in(kept_targets);
      options.sample_columns = static_cast<std::size_t>(kept_rows->shape[1]);
      options.has_samples = true;
    }
    Buffer buffer;
    if (!buffer.open(source, PyBUF_SIMPLE)) return nullptr;
    const std::span bytes(static_cast<const std::byte*>(buffer->buf), static_cast<std::size_t>(buffer->len));
    const std::string path =
        is_path != 0 ? std::string(static_cast<const char*>(buffer->buf), bytes.size()) : "";
    // The owner shares the memory, which is why it must not be writable: it was verified as it is now.
    const auto owner = borrow != 0 && buffer->readonly != 0 ? owner_of(std::move(buffer)) : nullptr;
    auto opened = [&] {
      const WithoutGil free;
      return open([&] { return is_path != 0 ? load_file(path) : load_bytes(bytes, owner); }, options);
    }();
    if (opened) return instance(reinterpret_cast<PyTypeObject*>(type), std::move(*opened));
    const bool about_model =
        opened.error().code != ErrorCode::Usage && !opened.error().where.starts_with("schedule");
    if (is_path == 0 || !about_model) return raise(opened.error());
    return raise(in(path.c_str(), opened.error()));
  });
}

namespace {

/// Returns an object of the class of `self` that has a forest.
PyObject* object_of(PyObject* self, std::unique_ptr<Forest> made) {
  Ref object = Ref::take(PyType_GenericAlloc(Py_TYPE(self), 0));
  if (!object) return nullptr;
  reinterpret_cast<ForestObject*>(object.get())->forest = made.release();
  return object.release();
}

}  // namespace

/// Forest._calling(first_round, end_round, every, ensembles, features, quantiles, stop_margin, stop_every): a forest of
/// the same program whose calls have these options. An end_round of 0 means all rounds; `features` is an array of
/// uint32, and an empty one means all; `quantiles` is an array of float64, and an empty one means the default ones; a
/// stop_every of 0 means no early stop.
PyObject* calling(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    CallOptions call;
    Rounds rounds;
    PyObject *chosen_features = nullptr, *chosen_quantiles = nullptr;
    EarlyStop stop;
    if (PyArg_ParseTuple(args, "IIIIOOdI", &rounds.begin, &rounds.end, &call.every, &call.ensembles,
                         &chosen_features, &chosen_quantiles, &stop.margin, &stop.every) == 0)
      return nullptr;
    if (stop.every != 0) call.early_stop = stop;
    Buffer numbers;
    if (!numbers.open(chosen_quantiles, PyBUF_ND)) return nullptr;
    const std::span<const double> quantiles = doubles_in(numbers);
    if (rounds != Rounds{}) call.rounds = rounds;
    const Forest& forest = forest_of(self);
    if (const auto checked = check_call(forest.program, OutputKind::Raw, call); !checked)
      return raise(checked.error());
    Buffer buffer;
    if (!buffer.open(chosen_features, PyBUF_SIMPLE)) return nullptr;
    const auto* const first = static_cast<const std::uint32_t*>(buffer->buf);
    const std::size_t count = static_cast<std::size_t>(buffer->len) / sizeof(std::uint32_t);
    return object_of(self, std::make_unique<Forest>(forest.program, forest.predictor, call,
                                                    std::vector<std::uint32_t>(first, first + count),
                                                    std::vector<double>(quantiles.begin(), quantiles.end())));
  });
}

/// Forest._with_margins(margins): a forest of the same program with the same options whose sums start from these
/// margins, an array (rows, outputs) in C order. It serves one call for as many rows.
PyObject* with_margins(PyObject* self, PyObject* margins) {
  return guarded([&]() -> PyObject* {
    const Forest& forest = forest_of(self);
    auto made = std::make_unique<Forest>(forest.program, forest.predictor, forest.call, forest.features,
                                         forest.quantiles);
    if (!made->margins.open(margins, PyBUF_C_CONTIGUOUS)) return nullptr;
    const Py_buffer& view = *made->margins;
    made->call.base_margin = {view.buf, static_cast<std::size_t>(view.shape[0]),
                              static_cast<std::size_t>(view.shape[1]), view.itemsize == sizeof(double)};
    return object_of(self, std::move(made));
  });
}

}  // namespace forestvm::python
