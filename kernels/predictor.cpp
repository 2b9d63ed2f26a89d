// See predictor.hpp. A call is cut into passes so that what it takes of the device's memory stays below
// kMaxPassBytes, however many rows arrive.
#include "kernels/predictor.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/calls.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/derived_tables.hpp>

namespace forestvm::kernels {
namespace {

constexpr std::size_t kMaxPassBytes = std::size_t{1} << 28;
constexpr std::size_t kMaxPassRows = std::size_t{1} << 24;

/// Memory of a device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Runtime& runtime, std::byte* memory, std::size_t bytes)
      : runtime_(&runtime), memory_(memory), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (memory_ != nullptr) runtime_->release(memory_);
  }

  static Result<Buffer> make(const Runtime& runtime, std::size_t bytes) {
    if (bytes == 0) return Buffer();
    FVM_ASSIGN(std::byte* const memory, runtime.allocate(bytes));
    return Buffer(runtime, memory, bytes);
  }

  std::byte* bytes() const { return memory_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_);
  }

  /// At least so many bytes; what was there may be lost.
  Result<void> reserve(const Runtime& runtime, std::size_t bytes) {
    if (bytes <= bytes_) return {};
    *this = Buffer();
    FVM_ASSIGN(*this, make(runtime, bytes));
    return {};
  }

 private:
  const Runtime* runtime_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A program's tables on a device.
class DeviceProgram {
 public:
  static Result<DeviceProgram> make(const Program& program, const Runtime& runtime) {
    DeviceProgram device;
    const std::unique_ptr<Queue> queue = runtime.make_queue();
    const auto put = [&](auto records) -> Result<const typename decltype(records)::value_type*> {
      const auto bytes = std::as_bytes(records);
      FVM_ASSIGN(Buffer buffer, Buffer::make(runtime, bytes.size()));
      if (!bytes.empty()) FVM_TRY(queue->upload(buffer.bytes(), bytes.data(), bytes.size()));
      device.buffers_.push_back(std::move(buffer));
      return device.buffers_.back().template as<const typename decltype(records)::value_type>();
    };
    const ProgramMeta& meta = program.meta();
    LaunchProgram& tables = device.tables_;
    tables = {};
    FVM_ASSIGN(const std::byte* nodes, put(program.section_Nodes()));
    FVM_ASSIGN(const TreeDesc* trees, put(program.section_Trees()));
    FVM_ASSIGN(const std::uint32_t* numbers, put(program.section_LeafNumbers()));
    FVM_ASSIGN(const double* wide_leaves, put(program.section_WideLeaves()));
    const std::vector<std::uint8_t> exits = tile_exits(program);
    FVM_ASSIGN(const std::uint8_t* device_exits, put(std::span(exits)));
    const std::vector<std::uint32_t> outputs = tree_outputs(program);
    FVM_ASSIGN(tables.tree_outputs, put(std::span(outputs)));
    const std::vector<double> base = base_scores(program);
    FVM_ASSIGN(tables.base, put(std::span(base)));
    FVM_ASSIGN(tables.features, put(program.section_EncodedFeatures()));
    FVM_ASSIGN(tables.ranks, put(program.section_Ranks()));
    FVM_ASSIGN(tables.columns, put(program.section_Columns()));
    FVM_ASSIGN(tables.categories, put(program.section_CategoryColumns()));
    FVM_ASSIGN(tables.category_words, put(program.section_CategoryWords()));
    const auto groups = launch_groups(program, nodes, trees, device_exits);
    FVM_ASSIGN(tables.groups, put(std::span(groups)));
    const auto walkers = launch_walkers(program, numbers, wide_leaves);
    FVM_ASSIGN(tables.walkers, put(std::span(walkers)));
    tables.feature_count = static_cast<std::uint32_t>(program.section_EncodedFeatures().size());
    tables.column_count = static_cast<std::uint32_t>(program.section_Columns().size());
    tables.category_count = static_cast<std::uint32_t>(program.section_CategoryColumns().size());
    tables.num_features = meta.num_features;
    tables.num_outputs = meta.num_outputs;
    tables.num_trees = meta.num_trees;
    tables.parameters = {meta.divisor, meta.slope};
    tables.scale = SumScale(meta.sum_unit);
    tables.transform = meta.transform;
    tables.any_order = meta.contract == Contract::Fast;
    return device;
  }

  const LaunchProgram& tables() const { return tables_; }

 private:
  static std::vector<LaunchGroup> launch_groups(const Program& program, const std::byte* nodes,
                                                const TreeDesc* trees, const std::uint8_t* exits) {
    std::vector<LaunchGroup> groups;
    for (const GroupDesc& desc : program.section_Groups())
      with_view(desc.layout, [&]<class View>() {
        constexpr auto kNodeBytes = static_cast<std::uint32_t>(sizeof(typename View::Node));
        const std::byte* const first = nodes + desc.node_offset;
        const GroupData data{first,
                             reinterpret_cast<const float*>(first + desc.node_count * kNodeBytes),
                             trees + desc.first_tree,
                             exits,
                             desc.tree_end - desc.tree_begin,
                             desc.tile_size};
        groups.push_back({data, desc.tree_begin, kNodeBytes, desc.layout, kInterleavesTrees<View>});
      });
    return groups;
  }

  static std::vector<LaunchWalker> launch_walkers(const Program& program, const std::uint32_t* numbers,
                                                  const double* wide_leaves) {
    std::vector<LaunchWalker> walkers;
    for (const WalkerDesc& desc : program.section_Walkers()) {
      const GroupDesc& group = program.section_Groups()[desc.group];
      LaunchWalker walker{};
      walker.group = desc.group;
      walker.hops = desc.hops;
      walker.numbers = numbers + group.first_number;
      walker.wide_leaves = wide_leaves == nullptr ? nullptr : wide_leaves + group.first_number;
      walker.end = desc.end;
      walker.order = desc.order;
      walker.trees = static_cast<std::uint8_t>(std::min<unsigned>(desc.interleaved_trees, kMostLockstep));
      walker.rows =
          static_cast<std::uint8_t>(std::min<unsigned>(desc.interleaved_rows, kMostLockstep / walker.trees));
      walker.atomic = desc.atomic != 0;
      walkers.push_back(walker);
    }
    return walkers;
  }

  std::vector<Buffer> buffers_;
  LaunchProgram tables_{};
};

class DeviceContext final : public Context {
 public:
  DeviceContext(const void* backend, std::unique_ptr<Queue> own) : Context(backend), queue(std::move(own)) {}

  std::unique_ptr<Queue> queue;
  Buffer rows, codes, results;
  std::array<Buffer, kAccumulators> accumulators;
  std::vector<float> converted;
  std::optional<LinkRequest> linked_for;
  LinkedCall linked;
};

class DevicePredictor final : public Predictor {
 public:
  DevicePredictor(Program program, std::unique_ptr<Runtime> runtime, DeviceProgram device)
      : program_(std::move(program)), runtime_(std::move(runtime)), device_(std::move(device)) {
    row_bytes_ = program_.meta().num_features * sizeof(float) + program_.section_Columns().size();
    for (std::uint32_t a = 0; a < program_.section_Accumulators().size(); ++a) {
      const AccumulatorPlace place = place_of(program_, a);
      if (place.storage == a) row_bytes_ += place.copy_bytes;
    }
  }

  std::unique_ptr<Context> make_context() const override {
    return std::make_unique<DeviceContext>(this, runtime_->make_queue());
  }

  Result<void> predict(Context& context, const AnyRows& rows, OutputKind output, float* out) const override {
    FVM_TRY(check_score_output(output));
    return run(context, rows, output, {.values = out});
  }

  Result<void> predict_wide(Context& context, const AnyRows& rows, OutputKind output,
                            double* out) const override {
    FVM_TRY(check_score_output(output));
    return run(context, rows, output, {.wide_values = out});
  }

  Result<void> predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const override {
    FVM_TRY(check_classes(program_));
    return run(context, rows, OutputKind::Class, {.labels = out});
  }

  Result<void> predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const override {
    return run(context, rows, OutputKind::Leaf, {.leaves = out});
  }

  Result<CodedRows> encode(Context&, const AnyRows&, std::span<std::uint8_t>) const override {
    return no_codes();
  }

  const Program& program() const override { return program_; }

  std::string describe() const override { return runtime_->describe(); }

  /// Whether launches of calls with few and with many rows fit the device.
  Result<void> check_launches() const {
    for (const std::uint32_t rows : {1u, 1u << 16})
      for (const OutputKind output : {OutputKind::Raw, OutputKind::Leaf})
        if (const auto linked = link(program_, {rows, rows, output}, runtime_->limits()); !linked.ok())
          return linked.error();
    return {};
  }

 private:
  static Error no_codes() {
    return refused("", "this backend takes rows as numbers, not encoded: the host's takes them");
  }

  Result<void> check_call(const Context& context, const AnyRows& rows) const {
    if (context.backend() != this)
      return Error{ErrorCode::Usage, "", "the context belongs to another backend"};
    if (const auto* dense = std::get_if<RowBlock>(&rows)) return check_rows(program_.meta(), *dense);
    if (const auto* csr = std::get_if<CsrRows>(&rows)) return check_rows(*csr);
    return no_codes();
  }

  Result<void> run(Context& any, const AnyRows& rows, OutputKind output, const Destination& to) const {
    FVM_TRY(check_call(any, rows));
    const std::size_t count = row_count(rows), width = output_width(program_.meta(), output);
    if (to.is_nowhere() && width != 0 && count != 0) return no_buffer();
    auto& context = static_cast<DeviceContext&>(any);
    const std::size_t most =
        std::clamp<std::size_t>(kMaxPassBytes / std::max<std::size_t>(row_bytes_, 1), 1, kMaxPassRows);
    for (std::size_t begin = 0; begin < count; begin += std::min(most, count - begin)) {
      const auto pass_rows = static_cast<std::uint32_t>(std::min(most, count - begin));
      if (to.values != nullptr)
        FVM_TRY(run_pass(context, rows, begin, pass_rows, output, to.values + begin * width));
      else if (to.wide_values != nullptr)
        FVM_TRY(run_pass(context, rows, begin, pass_rows, output, to.wide_values + begin * width));
      else if (to.labels != nullptr)
        FVM_TRY(run_pass(context, rows, begin, pass_rows, output, to.labels + begin * width));
      else if (to.leaves != nullptr)
        FVM_TRY(run_pass(context, rows, begin, pass_rows, output, to.leaves + begin * width));
    }
    return {};
  }

  static void set_result(LaunchPass& pass, float* results) { pass.values = results; }
  static void set_result(LaunchPass& pass, double* results) { pass.wide_values = results; }
  static void set_result(LaunchPass& pass, std::int64_t* results) { pass.labels = results; }
  static void set_result(LaunchPass& pass, std::int32_t* results) { pass.leaves = results; }

  template <class Value>
  Result<void> run_pass(DeviceContext& context, const AnyRows& rows, std::size_t begin, std::uint32_t count,
                        OutputKind output, Value* out) const {
    const LinkRequest request{count, count, output};
    if (context.linked_for != request) {
      context.linked_for.reset();
      FVM_ASSIGN(context.linked, link(program_, request, runtime_->limits()));
      context.linked_for = request;
    }
    Launch launch{};
    launch.program = device_.tables();
    launch.pass.row_count = count;
    launch.pass.output = output;
    FVM_TRY(place_rows(context, rows, begin, count, launch.pass));
    const std::size_t columns = program_.section_Columns().size();
    FVM_TRY(context.codes.reserve(*runtime_, columns == 0 ? 0 : code_bytes(count, columns) + kCodeSlack));
    launch.pass.codes = launch.pass.encode_to = context.codes.as<std::uint8_t>();
    const std::size_t result_bytes =
        std::size_t{count} * output_width(program_.meta(), output) * sizeof(Value);
    FVM_TRY(context.results.reserve(*runtime_, result_bytes));
    set_result(launch.pass, context.results.as<Value>());
    for (std::uint32_t a = 0; a < kAccumulators; ++a)
      FVM_TRY(context.accumulators[a].reserve(*runtime_, context.linked.global_bytes[a]));
    for (const LinkedPhase& phase : context.linked.phases) {
      place_phase(context, phase, launch);
      FVM_TRY(context.queue->launch(phase, launch));
    }
    return context.queue->download(out, context.results.bytes(), result_bytes);
  }

  Result<void> place_rows(DeviceContext& context, const AnyRows& rows, std::size_t begin, std::uint32_t count,
                          LaunchPass& pass) const {
    const std::uint32_t features = program_.meta().num_features;
    const auto* const dense = std::get_if<RowBlock>(&rows);
    const float* from = nullptr;
    pass.row_stride = features;
    if (dense != nullptr && are_float_rows(program_, *dense)) {
      pass.row_stride = dense->stride;
      from = static_cast<const float*>(dense->data) + begin * dense->stride;
    } else {
      context.converted.resize(std::size_t{count} * features);
      from = context.converted.data();
      if (dense != nullptr) {
        fill_float_rows(program_, *dense, begin, count, context.converted.data());
      } else {
        const CsrRows& csr = *std::get_if<CsrRows>(&rows);
        FVM_TRY(check_csr_rows(csr, begin, count, features));
        fill_float_rows(program_, csr, begin, count, context.converted.data());
      }
    }
    const std::size_t bytes = ((count - 1) * pass.row_stride + features) * sizeof(float);
    FVM_TRY(context.rows.reserve(*runtime_, bytes));
    pass.rows = context.rows.as<const float>();
    return bytes == 0 ? Result<void>() : context.queue->upload(context.rows.bytes(), from, bytes);
  }

  void place_phase(const DeviceContext& context, const LinkedPhase& phase, Launch& launch) const {
    launch.block_rows = phase.block_rows;
    launch.rows_per_block = phase.rows_per_block;
    std::copy(phase.code.begin(), phase.code.end(), launch.code);
    const auto descs = program_.section_Accumulators();
    for (std::uint32_t a = 0; a < descs.size(); ++a) {
      const AccumulatorPlace place = place_of(program_, a);
      const LinkedAccumulator& linked = phase.accumulators[place.storage];
      LaunchAccumulator& to = launch.accumulators[a];
      to.memory = linked.shared ? nullptr : context.accumulators[place.storage].bytes();
      to.offset = linked.offset;
      to.copy_rows = linked.shared ? linked.copy_rows : launch.pass.row_count;
      to.copy_stride = place.copy_stride;
      to.parent = descs[a].parent;
      to.iterations = descs[a].iterations;
      to.width = place.width;
      to.kind = descs[a].kind;
      to.stored_elsewhere = place.storage != a;
    }
  }

  Program program_;
  std::unique_ptr<Runtime> runtime_;
  DeviceProgram device_;
  std::size_t row_bytes_ = 0;  ///< that a row of a pass takes on the device, about
};

}  // namespace

Result<std::unique_ptr<Predictor>> make_predictor(const Program& program, std::unique_ptr<Runtime> runtime,
                                                  const std::string& backend) {
  if (!program.mapped())
    return refused("",
                   "none of its loops is mapped to a GPU's grid and blocks (gpuDimension): it runs on the "
                   "host, not on " +
                       backend + "; compile the model with a schedule for GPUs");
  FVM_ASSIGN(DeviceProgram device, DeviceProgram::make(program, *runtime));
  auto predictor = std::make_unique<DevicePredictor>(program, std::move(runtime), std::move(device));
  FVM_TRY(predictor->check_launches());
  return std::unique_ptr<Predictor>(std::move(predictor));
}

}  // namespace forestvm::kernels
