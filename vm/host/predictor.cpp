// The host backend: loads a program (picks its walkers for a CPU target) and answers calls. A call is cut
// into passes so that the context's scratch stays below kMaxScratchBytes, however many rows arrive.
#include <algorithm>
#include <new>

#include <forestvm/backend.hpp>
#include <forestvm/names.hpp>

#include "vm/host/machine.hpp"
#include "vm/host/targets/float_environment.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm {
namespace host {
namespace {

/// Rows in one pass when nothing else bounds them: row numbers are 32-bit.
constexpr std::size_t kMaxPassRows = std::size_t{1} << 30;

/// More than any machine has; executors reserve room for each.
constexpr unsigned kMaxThreads = 4096;

class HostContext final : public Context {
 public:
  HostContext() : Context(&kBackend) {}

  static constexpr char kBackend = 0;
  std::vector<float> scratch;
};

class HostPredictor final : public Predictor {
 public:
  HostPredictor(LoadedProgram loaded, const Target& target) : loaded_(std::move(loaded)), target_(&target) {
    for (const AccumulatorDesc& desc : loaded_.accumulators.subspan(1)) private_copies_ += desc.copies;
  }

  std::unique_ptr<Context> make_context() const override { return std::make_unique<HostContext>(); }

  Result<void> predict(Context& context, const RowBlock& rows, OutputKind output, float* out) const override {
    if (output != OutputKind::Raw && output != OutputKind::Value)
      return Error{ErrorCode::Usage, "",
                   "predict gives raw scores or values; labels come from predict_class"};
    return run(context, rows, output, out, nullptr);
  }

  Result<void> predict_class(Context& context, const RowBlock& rows, std::int64_t* out) const override {
    if (output_width(program().meta(), OutputKind::Class) == 0)
      return refused("output class", "the model has no classes: its objective is " +
                                         std::string(program().text(StringId::Objective)));
    return run(context, rows, OutputKind::Class, nullptr, out);
  }

  const Program& program() const override { return loaded_.program; }

  std::string describe() const override {
    const std::string executor = loaded_.executor == nullptr ? "inline"
                                                             : std::to_string(loaded_.executor->threads()) +
                                                                   " threads on " + loaded_.executor->name();
    return "host, target " + std::string(target_->name) + ", " + executor;
  }

 private:
  Result<void> run(Context& context, const RowBlock& rows, OutputKind output, float* values,
                   std::int64_t* labels) const {
    if (context.backend() != &HostContext::kBackend)
      return Error{ErrorCode::Usage, "", "the context belongs to another backend"};
    std::vector<float>& scratch = static_cast<HostContext&>(context).scratch;
    if (rows.count == 0) return {};
    const ProgramMeta& meta = loaded_.meta;
    if (rows.stride < meta.num_features)
      return Error{ErrorCode::Usage, "",
                   "rows of " + std::to_string(rows.stride) + " values for a model of " +
                       std::to_string(meta.num_features) + " features"};
    if (rows.data == nullptr || (values == nullptr && labels == nullptr))
      return Error{ErrorCode::Usage, "", "no buffer for rows or output"};

    const std::size_t width = output_width(meta, output);
    const bool in_place = output != OutputKind::Class && width == meta.num_outputs;
    const std::size_t row_floats = (private_copies_ + (in_place ? 0 : 1)) * meta.num_outputs;
    const std::size_t pass_rows = std::min(rows.count, max_pass_rows(row_floats));
    try {
      if (scratch.size() < pass_rows * row_floats) scratch.resize(pass_rows * row_floats);
    } catch (const std::bad_alloc&) {
      return Error{
          ErrorCode::Environment, "",
          "out of memory: scratch of " + std::to_string(pass_rows * row_floats * sizeof(float)) + " bytes"};
    }
    for (std::size_t begin = 0; begin < rows.count; begin += pass_rows) {
      Pass pass{};
      pass.rows = rows.data + begin * rows.stride;
      pass.row_stride = rows.stride;
      pass.row_count = static_cast<std::uint32_t>(std::min(pass_rows, rows.count - begin));
      pass.output = output;
      pass.values = values == nullptr ? nullptr : values + begin * width;
      pass.labels = labels == nullptr ? nullptr : labels + begin * width;
      pass.in_place = in_place;
      run_pass(pass, scratch.data());
    }
    return {};
  }

  void run_pass(Pass& pass, float* scratch) const {
    const auto accumulators = loaded_.accumulators;
    const std::size_t copy_floats = std::size_t{pass.row_count} * loaded_.meta.num_outputs;
    pass.accumulators[0] = pass.in_place ? pass.values : scratch;
    if (!pass.in_place) scratch += copy_floats;
    for (std::size_t i = 1; i < accumulators.size(); ++i) {
      pass.accumulators[i] = scratch;
      scratch += accumulators[i].copies * copy_floats;
    }
    const FloatEnvironment environment;
    Machine machine(loaded_, pass);
    interpret(loaded_.code, 0, machine);
  }

  static std::size_t max_pass_rows(std::size_t row_floats) {
    if (row_floats == 0) return kMaxPassRows;
    return std::clamp<std::size_t>(kMaxScratchBytes / (row_floats * sizeof(float)), 1, kMaxPassRows);
  }

  LoadedProgram loaded_;
  const Target* target_;
  std::size_t private_copies_ = 0;
};

LoadedWalker load_walker(const Program& program, const WalkerDesc& desc, const Target& target) {
  const GroupDesc& group = program.section_Groups()[desc.group];
  LoadedWalker walker{};
  walker.function = target.walkers(group.layout).find(desc);
  FVM_CHECK(walker.function != nullptr);
  walker.task.nodes = program.section_Nodes().data() + group.node_offset;
  walker.task.trees = program.section_Trees().data() + group.first_tree;
  walker.task.first_tree = group.tree_begin;
  walker.task.hops = desc.hops;
  walker.task.order = desc.order;
  return walker;
}

}  // namespace
}  // namespace host

std::uint32_t output_width(const ProgramMeta& meta, OutputKind output) {
  switch (output) {
    case OutputKind::Raw:
      return meta.num_outputs;
    case OutputKind::Value:
      return value_width(meta.transform, meta.num_outputs);
    case OutputKind::Class:
      return label_width(meta.class_rule, meta.num_outputs);
  }
  return 0;
}

Result<std::unique_ptr<Predictor>> host_backend(const Program& program, const BackendOptions& options) {
  FVM_ASSIGN(const host::Target* target, host::find_target(options.target));
  if (options.threads > host::kMaxThreads)
    return Error{ErrorCode::Usage, "",
                 std::to_string(options.threads) + " threads, at most " + std::to_string(host::kMaxThreads)};
  host::LoadedProgram loaded{
      program, program.meta(), program.code().data(), program.section_Accumulators(), {}, {}, nullptr};
  for (const WalkerDesc& desc : program.section_Walkers())
    loaded.walkers.push_back(host::load_walker(program, desc, *target));
  const host::FloatEnvironment environment;  // the base is rounded here
  for (const double base : program.section_Base()) loaded.base.push_back(static_cast<float>(base));
  loaded.executor = host::make_executor(options.threads);
  return std::unique_ptr<Predictor>(std::make_unique<host::HostPredictor>(std::move(loaded), *target));
}

}  // namespace forestvm
