// See predictor.hpp. A call is cut into passes so that what it takes of the device's memory stays bounded,
// however many rows arrive. Rows from the host go through pass states, each with memory for a pass, in turns: while
// one copies and computes, the host fills the next. A pass is given to its queue operation by operation, or,
// when a later call repeats its shape, as a graph of them that is captured once.
#include "kernels/backend/predictor.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/leaf_functions.hpp>
#include <forestvm/internal/names.hpp>

#include "kernels/backend/context.hpp"
#include "kernels/backend/device_calls.hpp"
#include "kernels/backend/device_kinds.hpp"
#include "kernels/backend/device_program.hpp"
#include "kernels/backend/pass_sizes.hpp"

namespace forestvm::kernels {
namespace {

/// Fewest operations of a pass that becomes a graph: a single launch takes as long as the launch of a graph.
constexpr std::size_t kMinCaptured = 2;

/// The properties that all passes of a call share.
struct PassKind {
  OutputKind output;
  ResultType results;  ///< type of the results that kernels write
  const RowSource& rows;
  Upload upload;
  const CallOptions& options;
  std::size_t width;         ///< numbers of a row in the results
  std::size_t result_bytes;  ///< bytes of a row's results
  /// True if the rows are on the device and the caller captures what their stream is given.
  bool stream_is_captured = false;
};

/// A pass and its memory on the device.
struct DevicePass {
  bool coded =
      false;  ///< true if the call's rows came encoded: they are uploaded to the codes of the pass state
  const float* rows = nullptr;  ///< values of the rows, on the device; null if they came encoded
  /// values that functions of leaves read, on the device; see LaunchPass
  const double* leaf_values = nullptr;
  const double* base = nullptr;  ///< what the rows bring of LaunchPass::base, on the device
  std::size_t row_stride = 0;
  std::uint32_t row_count = 0;
  OutputKind output = OutputKind::Raw;
  Destination to{};
  LaunchOptions options{};
  std::size_t width = 0;  ///< numbers of a row in the results
  /// Bytes of rows that are copied from the host, and of results that are copied to it.
  std::size_t uploaded_bytes = 0, downloaded_bytes = 0;
};

Upload upload_of(RowForm form) {
  switch (form) {
    case RowForm::Plain:
    case RowForm::Dense:
    case RowForm::Doubles:
    case RowForm::Sparse:
    case RowForm::Columns:
      return Upload::Values;
    case RowForm::Encoded:
      return Upload::Codes;
    case RowForm::OnDevice:
      return Upload::None;
  }
  __builtin_unreachable();  // the cases above are all forms
}

class DevicePredictor final : public CallPredictor {
 public:
  DevicePredictor(Program program, std::shared_ptr<const Runtime> runtime, DeviceProgram device,
                  Linker linker, PassSizes sizes, const PassBounds& bounds)
      : CallPredictor(runtime.get()),
        program_(std::move(program)),
        runtime_(std::move(runtime)),
        device_(std::move(device)),
        linker_(std::move(linker)),
        sizes_(std::move(sizes)),
        bounds_(bounds),
        row_reader_(program_, nullptr, runtime_->ordinal()),
        leaf_features_(leaf_features(program_)) {}

  std::unique_ptr<Context> make_context() const override { return std::make_unique<DeviceContext>(runtime_); }

  Result<CodedRows> encode(Context&, const AnyRows&, std::span<std::uint8_t>) const override {
    return refused(
        "",
        "this backend encodes no rows: the host does (forestvm encode), with a program for the host "
        "that has the same encoder");
  }

  const Program& program() const override { return program_; }

  std::string describe() const override { return runtime_->describe(); }

 private:
  const RowReader& row_reader() const override { return row_reader_; }

  Result<void> run(Context& any, const RowSource& rows, OutputKind output, const CallOptions& options,
                   const Destination& to) const override {
    const bool on_device = upload_of(rows.form()) == Upload::None;
    FVM_TRY(check_device_call(program_, output, options, on_device));
    const std::size_t width = output_width(program_, output, options);
    if (rows.count() == 0 || width == 0) return {};
    auto& context = static_cast<DeviceContext&>(any);
    ++context.calls;
    const ResultType written = written_type(output, to.type);
    const PassKind kind{
        output, written, rows, upload_of(rows.form()), options, width, width * bytes_of(written)};
    if (on_device && written != to.type)
      return refused("output", "lies on the device, where labels are int64 and leaf numbers are int32");
    StatesInUse states(on_device ? std::span(&context.on_stream, 1) : std::span(context.states));
    FVM_TRY(on_device ? run_on_device(context, kind, to) : run_from_host(context, kind, to));
    states.end();
    return {};
  }

  Result<void> run_from_host(DeviceContext& context, const PassKind& kind, const Destination& to) const {
    const std::size_t count = kind.rows.count();
    const bool coded = kind.upload == Upload::Codes;
    const std::size_t copied_bytes = (coded ? columns() : row_width(program_.meta()) * sizeof(float)) +
                                     behind_bytes(kind, 1) + kind.result_bytes;
    FVM_ASSIGN(std::uint32_t most,
               pass_rows(context, kind, std::min(count, bounds_.slab_bytes / copied_bytes)));
    unsigned next = 0;
    for (std::size_t begin = 0; begin < count;) {
      PassState& state = context.states[next++ % kPassStates];
      FVM_TRY(state.finish());
      if (state.queue == nullptr) {
        FVM_ASSIGN(state.queue, runtime_->make_queue());
      }
      const std::uint32_t wanted = next_rows(kind, most, count - begin);
      FVM_ASSIGN(const Made made, make_room(context, state, kind, wanted));
      if (made.row_count < wanted) most = made.row_count;
      DevicePass pass{.coded = coded,
                      .row_count = made.row_count,
                      .output = kind.output,
                      .to = {kind.results, state.results.bytes()},
                      .options = LaunchOptions::of(kind.output, kind.options),
                      .width = kind.width};
      pass.downloaded_bytes = made.row_count * kind.result_bytes;
      FVM_TRY(stage(state, kind, begin, pass));
      FVM_TRY(start(context, state, made.kept, kind, pass));
      FVM_TRY(state.deliver_to(to.from(begin * kind.width), kind.output, made.row_count * kind.width));
      begin += made.row_count;
    }
    for (PassState& state : context.states) FVM_TRY(state.finish());
    return {};
  }

  /// Puts the pass's rows, which begin at row `begin` of the call, where its pass state uploads them from.
  Result<void> stage(const PassState& state, const PassKind& kind, std::size_t begin,
                     DevicePass& pass) const {
    const RowSource& rows = kind.rows;
    FVM_TRY(rows.read(begin, pass.row_count, state.staged_rows.as<float>()));
    const Buffer& uploaded = pass.coded ? state.codes : state.rows;
    if (!pass.coded) {
      pass.rows = state.rows.as<const float>();
      pass.row_stride = row_width(program_.meta());
    } else if (columns() != 0) {
      rows.copy_codes(begin, pass.row_count, state.staged_rows.as<std::uint8_t>());
    }
    pass.uploaded_bytes = uploaded_bytes(kind, pass.row_count);
    const std::size_t behind = pass.uploaded_bytes - behind_bytes(kind, pass.row_count);
    const auto staged = [&](std::size_t at) {
      return reinterpret_cast<double*>(state.staged_rows.bytes() + at);
    };
    const auto on_device = [&](std::size_t at) {
      return reinterpret_cast<const double*>(uploaded.bytes() + at);
    };
    if (!leaf_features_.empty()) {
      rows.copy_features(begin, pass.row_count, leaf_features_, staged(behind));
      pass.leaf_values = on_device(behind);
    }
    if (pass.options.base || pass.options.quantiles != 0) {
      const std::size_t at = behind + leaf_value_bytes(pass.row_count);
      write_base(program_, kind.output, kind.options, begin, pass.row_count, staged(at));
      pass.base = on_device(at);
    }
    return {};
  }

  std::size_t leaf_value_bytes(std::size_t rows) const {
    return rows * leaf_features_.size() * sizeof(double);
  }

  /// Returns the bytes that are copied to the device behind rows: what functions of leaves read, and base numbers.
  std::size_t behind_bytes(const PassKind& kind, std::size_t rows) const {
    const LaunchOptions options = LaunchOptions::of(kind.output, kind.options);
    const std::size_t of_rows = options.base ? rows * program_.meta().num_outputs : 0;
    return leaf_value_bytes(rows) + (of_rows + options.quantiles) * sizeof(double);
  }

  /// Returns the bytes that are copied to the device for rows: values or codes, then what lies behind them.
  std::size_t uploaded_bytes(const PassKind& kind, std::size_t rows) const {
    const std::size_t bytes = kind.upload == Upload::Codes
                                  ? code_bytes(rows, columns())
                                  : rows * row_width(program_.meta()) * sizeof(float);
    const std::size_t behind = behind_bytes(kind, rows);
    if (behind == 0) return bytes;
    return (bytes + alignof(double) - 1) / alignof(double) * alignof(double) + behind;
  }

  Result<void> run_on_device(DeviceContext& context, PassKind kind, const Destination& to) const {
    PassState& state = context.on_stream;
    void* const stream = kind.rows.stream();
    FVM_ASSIGN(const std::optional<std::uint64_t> stream_id, runtime_->stream_id(stream));
    kind.stream_is_captured = !stream_id;
    if (state.queue == nullptr || kind.stream_is_captured || context.stream_id != stream_id) {
      FVM_TRY(state.finish());
      FVM_ASSIGN(state.queue, runtime_->queue_on(stream));
      context.stream_id = stream_id;
    }
    const std::size_t count = kind.rows.count();
    FVM_ASSIGN(std::uint32_t most, pass_rows(context, kind, count));
    for (std::size_t begin = 0; begin < count;) {
      const std::uint32_t wanted = next_rows(kind, most, count - begin);
      FVM_ASSIGN(const Made made, make_room(context, state, kind, wanted));
      if (made.row_count < wanted) most = made.row_count;
      FVM_ASSIGN(const RowView read, kind.rows.read(begin, made.row_count, nullptr));
      const DevicePass pass{.rows = read.values,
                            .row_stride = read.stride,
                            .row_count = made.row_count,
                            .output = kind.output,
                            .to = to.from(begin * kind.width),
                            .options = LaunchOptions::of(kind.output, kind.options),
                            .width = kind.width};
      FVM_TRY(start(context, state, made.kept, kind, pass));
      begin += made.row_count;
    }
    return state.queue->mark();
  }

  /// Returns how many of `wanted` rows a pass may have: no more than the bounds allow, and no more than half of the
  /// device's free memory holds.
  Result<std::uint32_t> pass_rows(const DeviceContext& context, const PassKind& kind,
                                  std::size_t wanted) const {
    const std::uint32_t most = fitting(kind, wanted, bounds_.pass_bytes);
    if (most <= context.room_for || kind.stream_is_captured) return most;
    FVM_ASSIGN(const DeviceMemory memory, runtime_->memory());
    const std::size_t states = kind.upload == Upload::None ? 1 : kPassStates;
    const std::uint32_t affordable = fitting(kind, most, memory.free / 2 / states);
    return std::min(most, std::max({affordable, context.room_for, bounds_.fewest_rows}));
  }

  /// Returns the most rows, from one up to `wanted`, that a pass may have so that the grid of the plan that is
  /// chosen for them takes them, and `bytes` of the device's memory hold them.
  std::uint32_t fitting(const PassKind& kind, std::size_t wanted, std::size_t bytes) const {
    auto rows = static_cast<std::uint32_t>(std::clamp<std::size_t>(wanted, 1, kMaxPassRows));
    for (;;) {
      const PassSize& size = sizes_.of(kind.rows.plan_rows(rows), run_output(kind.output, kind.options));
      const std::size_t row_bytes = size.row_bytes + device_row_bytes(kind);
      const std::size_t held = row_bytes == 0 ? SIZE_MAX : std::max<std::size_t>(bytes / row_bytes, 1);
      if (rows <= size.rows && rows <= held) return rows;
      rows = static_cast<std::uint32_t>(std::min<std::size_t>(size.rows, held));
    }
  }

  /// Returns the rows of the next pass when `left` rows of the call are left: `most` at most, except that
  /// encoded rows are cut between their blocks only.
  std::uint32_t next_rows(const PassKind& kind, std::uint32_t most, std::size_t left) const {
    const std::uint32_t rows = fitting(kind, std::min<std::size_t>(most, left), SIZE_MAX);
    if (rows == left) return rows;
    return static_cast<std::uint32_t>(std::min(kind.rows.cut(rows), left));
  }

  /// Returns the bytes of the device's memory that a pass takes for a row: its values, codes and results.
  std::size_t device_row_bytes(const PassKind& kind) const {
    std::size_t bytes = columns();
    if (kind.upload == Upload::Values) bytes += row_width(program_.meta()) * sizeof(float);
    if (kind.upload != Upload::None) bytes += behind_bytes(kind, 1) + kind.result_bytes;
    return bytes;
  }

  /// A pass for which there is room in a pass state.
  struct Made {
    std::uint32_t row_count;
    std::size_t kept;  ///< index of its shape in DeviceContext::kept
  };

  /// Makes room for a pass of `rows` rows, or of fewer if the device has not enough memory.
  Result<Made> make_room(DeviceContext& context, PassState& state, const PassKind& kind,
                         std::uint32_t rows) const {
    const auto fewest = static_cast<std::uint32_t>(kind.rows.cut(bounds_.fewest_rows));
    for (bool last = false;;) {
      const LinkRequest request{rows, kind.rows.plan_rows(rows), run_output(kind.output, kind.options)};
      const LaunchOptions options = LaunchOptions::of(kind.output, kind.options);
      FVM_ASSIGN(const std::size_t kept,
                 context.keep({request, kind.output, kind.upload, kind.results, options},
                              [&] { return linker_.link(request, runtime_->limits()); }));
      const Room room = room_of(kind, rows, context.kept[kept].linked);
      if (kind.stream_is_captured && !state.has(room))
        return usage(
            "the stream is captured, and the context has no memory for a call of so many rows: let "
            "it make one before that is not captured");
      const Result<void> reserved = state.reserve(*runtime_, room);
      if (reserved.ok()) {
        context.room_for = std::max(context.room_for, rows);
        return Made{rows, kept};
      }
      if (last) return reserved.error();
      FVM_TRY(state.queue->mark());
      FVM_TRY(context.release_memory());
      context.room_for = 0;
      last = rows <= fewest;
      if (!last) rows = next_rows(kind, std::max(rows / 2, fewest), rows);
    }
  }

  Room room_of(const PassKind& kind, std::uint32_t rows, const LinkedCall& linked) const {
    Room room;
    room.codes = columns() == 0 ? 0 : code_bytes(rows, columns()) + kCodeSlack;
    room.accumulators = linked.global_bytes;
    const bool joins =
        std::ranges::any_of(linked.phases, [](const LinkedPhase& phase) { return phase.joins; });
    room.arrived = joins ? kMostJoined * sizeof(std::uint32_t) : 0;
    room.workspace = linked.workspace_bytes;
    if (kind.upload == Upload::None) return room;
    room.results = room.staged_results = rows * kind.result_bytes;
    if (kind.upload == Upload::Values) {
      room.rows = room.staged_rows = uploaded_bytes(kind, rows);
    } else {
      room.codes += behind_bytes(kind, rows);
      room.staged_rows = room.codes;
    }
    return room;
  }

  /// Gives the pass to the queue of its pass state.
  Result<void> start(DeviceContext& context, PassState& state, std::size_t index, const PassKind& kind,
                     const DevicePass& pass) const {
    const KeptPass& kept = context.kept[index];
    CapturedPass& captured = state.captured[index];
    const auto give = [&](Operations& to) { return give_pass(to, state, kept.linked, pass); };
    const std::size_t operations =
        kept.linked.phases.size() + (pass.uploaded_bytes != 0) + (pass.downloaded_bytes != 0);
    if (kept.first_call == context.calls || operations < kMinCaptured || captured.cannot_be_captured ||
        kind.stream_is_captured)
      return give(*state.queue);
    const Result<void> prepared =
        captured.graph == nullptr ? capture(captured, give) : point_to(captured, state, kept.linked, pass);
    if (!prepared.ok()) {
      // A graph only saves time: where none can be made, the pass is given without one.
      captured.cannot_be_captured = true;
      return give(*state.queue);
    }
    captured.rows = pass.rows;
    captured.row_stride = pass.row_stride;
    captured.results = pass.to.out;
    return state.queue->replay(*captured.graph);
  }

  Result<void> capture(CapturedPass& captured, const std::function<Result<void>(Operations&)>& give) const {
    FVM_ASSIGN(captured.graph, runtime_->capture(give));
    return {};
  }

  /// Gives the captured launches the pass's rows and results, unless they have them already.
  Result<void> point_to(CapturedPass& captured, const PassState& state, const LinkedCall& linked,
                        const DevicePass& pass) const {
    if (captured.rows == pass.rows && captured.row_stride == pass.row_stride &&
        captured.results == pass.to.out)
      return {};
    captured.results = nullptr;  // unknown until all launches have the same
    std::size_t number = 0;
    return for_launches(state, linked, pass, [&](const LinkedPhase&, const Launch& launch) {
      return captured.graph->set_launch(number++, launch);
    });
  }

  /// Gives the pass's operations to `to`, one by one.
  Result<void> give_pass(Operations& to, const PassState& state, const LinkedCall& linked,
                         const DevicePass& pass) const {
    const Buffer& rows = pass.coded ? state.codes : state.rows;
    if (pass.uploaded_bytes != 0)
      FVM_TRY(to.upload(rows.bytes(), state.staged_rows.bytes(), pass.uploaded_bytes));
    FVM_TRY(for_launches(state, linked, pass, [&](const LinkedPhase& phase, const Launch& launch) {
      return to.launch(phase, launch);
    }));
    if (pass.downloaded_bytes != 0)
      FVM_TRY(to.download(state.staged_results.bytes(), state.results.bytes(), pass.downloaded_bytes));
    return {};
  }

  /// Calls visit(phase, launch) for each of the pass's launches.
  template <class Visit>
  Result<void> for_launches(const PassState& state, const LinkedCall& linked, const DevicePass& pass,
                            Visit visit) const {
    Launch launch{};
    set_pass(state, pass, launch);
    for (const LinkedPhase& phase : linked.phases) {
      set_addresses(state, phase, pass.options, launch);
      FVM_TRY(visit(phase, launch));
    }
    return {};
  }

  /// Sets what the launches of a pass share.
  void set_pass(const PassState& state, const DevicePass& pass, Launch& launch) const {
    launch.program = device_.tables();
    launch.pass.rows = pass.rows;
    launch.pass.row_stride = pass.row_stride;
    launch.pass.leaf_values = pass.leaf_values;
    launch.pass.row_count = pass.row_count;
    const ProgramMeta& meta = program_.meta();
    const bool raw = pass.output == OutputKind::Raw;
    launch.pass.output = pass.output;
    launch.pass.pair = raw ? Pair::None : meta.pair;
    launch.pass.value_width = static_cast<std::uint32_t>(pass.width);
    set_options(program_, device_, pass.options, pass.base, launch);
    launch.pass.codes = state.codes.as<const std::uint8_t>();
    launch.pass.encode_to = pass.coded ? nullptr : state.codes.as<std::uint8_t>();
    launch.pass.values = pass.to.values();
    launch.pass.wide_values = pass.to.wide_values();
    launch.pass.labels = pass.to.labels();
    launch.pass.leaves = pass.to.leaves();
    launch.pass.arrived = state.arrived.as<std::uint32_t>();
    launch.pass.workspace = state.workspace.bytes();
    if (reads_leaf_numbers(pass.output))
      launch.pass.leaves = reinterpret_cast<std::int32_t*>(
          launch.pass.workspace + bytes_before_leaves(program_, pass.output) * pass.row_count);
  }

  std::size_t columns() const { return program_.columns().size(); }

  void set_addresses(const PassState& state, const LinkedPhase& phase, const LaunchOptions& options,
                     Launch& launch) const {
    launch.peers = phase.peers;
    launch.block_rows = phase.block_rows;
    launch.rows_per_block = phase.rows_per_block;
    std::copy(phase.code.begin(), phase.code.end(), launch.code);
    std::copy(phase.copies.begin(), phase.copies.end(), launch.copies);
    launch.copy_count = phase.copy_count;
    if (launch.pass.walked.end != 0 && launch.copy_count == 0) launch.copies[launch.copy_count++] = {};
    const auto descs = program_.accumulators();
    for (std::uint32_t a = 0; a < descs.size(); ++a) {
      const AccumulatorMemory& memory = linker_.map().accumulators[a];
      const LinkedAccumulator& linked = phase.accumulators[memory.storage];
      LaunchAccumulator& to = launch.accumulators[a];
      to.memory = linked.shared ? nullptr : state.accumulators[memory.storage].bytes();
      to.offset = linked.offset;
      to.width = static_cast<std::uint32_t>(row_elements(memory, descs[a].kind));
      to.row_bytes = static_cast<std::uint32_t>(to.width * element_size(descs[a].kind));
      to.copy_bytes = std::size_t{linked.shared ? linked.copy_rows : launch.pass.row_count} *
                      memory.copy_stride * to.row_bytes;
      to.parent = descs[a].parent;
      to.iterations = descs[a].iterations;
      to.kind = descs[a].kind;
      to.stored_elsewhere = memory.storage != a;
      to.starts_alike = to.kind == AccumulatorKind::F32 && launch.pass.base_stride == 0;
      to.gives_values = to.kind == AccumulatorKind::F32 && launch.pass.values != nullptr &&
                        launch.pass.pair == Pair::None && launch.pass.value_width == 1;
    }
    // Known codes begin all rows' sums at the same numbers, walk all trees, and make scores where results lie.
    const bool is_plain = launch.pass.values != nullptr &&
                          launch.pass.value_width >= program_.meta().num_outputs && !options.base &&
                          !options.rounds;
    launch.known = is_plain ? phase.known.code : KnownCode::None;
    if (launch.known != KnownCode::None) set_known(phase.known, launch);
  }

  /// Gives a launch known code, its walk, and the accumulator of its parts, the only one that it uses.
  void set_known(const KnownPhase& known, Launch& launch) const {
    std::copy(known.insts.begin(), known.insts.end(), launch.code);
    for (const LinkedInst& inst : known.insts)
      if (inst.op == Op::Walk) launch.walker = device_.walker(linked<Op::Walk, LinkedField::Walker>(inst));
    launch.group = device_.group(launch.walker.group);
    const LaunchAccumulator parts = launch.accumulators[known.accumulators[known::kParts]];
    launch.accumulators[known::kParts] = parts;
  }

  Program program_;
  std::shared_ptr<const Runtime> runtime_;
  DeviceProgram device_;
  Linker linker_;
  PassSizes sizes_;
  PassBounds bounds_;
  RowReader row_reader_;
  std::vector<std::uint32_t> leaf_features_;  ///< features that functions of leaves read
};

}  // namespace

Result<std::unique_ptr<Predictor>> make_predictor(const Program& program, std::unique_ptr<Runtime> runtime,
                                                  const std::string& backend, const PassBounds& bounds) {
  if (!program.mapped())
    return refused(
        formatted("none of the program's loops is mapped to a GPU's grid and blocks (gpuDimension): it runs "
                  "on the host, not on {}; compile the model with a schedule for GPUs",
                  backend));
  const LoadedPaths paths = device_paths(program);
  Linker linker(program, explain_sizes(paths));
  FVM_ASSIGN(PassSizes sizes, PassSizes::make(linker, runtime->limits()));
  FVM_ASSIGN(DeviceProgram device, DeviceProgram::make(program, paths, *runtime));
  return std::unique_ptr<Predictor>(std::make_unique<DevicePredictor>(
      program, std::move(runtime), std::move(device), std::move(linker), std::move(sizes), bounds));
}

}  // namespace forestvm::kernels
