// See predictor.hpp. A call is cut into passes so that what it takes of the device's memory stays bounded,
// however many rows arrive. Rows from the host go through lanes, each with memory for a pass, in turns: while
// one copies and computes, the host fills the next.
#include "kernels/predictor.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/calls.hpp>

#include "kernels/context.hpp"
#include "kernels/device_program.hpp"

namespace forestvm::kernels {
namespace {

constexpr std::uint32_t kMaxPassRows = 1u << 24;

/// Rows for which the launches of a plan without an upper bound are checked.
constexpr std::uint32_t kManyRows = 1u << 16;

std::size_t element_bytes(const Destination& to) {
  return to.wide_values != nullptr || to.labels != nullptr ? sizeof(double) : sizeof(float);
}

void* memory_of(const Destination& to) {
  if (to.values != nullptr) return to.values;
  if (to.wide_values != nullptr) return to.wide_values;
  if (to.labels != nullptr) return to.labels;
  return to.leaves;
}

/// For results of the same kind, memory elsewhere.
Destination placed(const Destination& to, const Buffer& buffer) {
  if (to.values != nullptr) return {.values = buffer.as<float>()};
  if (to.wide_values != nullptr) return {.wide_values = buffer.as<double>()};
  if (to.labels != nullptr) return {.labels = buffer.as<std::int64_t>()};
  return {.leaves = buffer.as<std::int32_t>()};
}

class DevicePredictor final : public CallPredictor {
 public:
  DevicePredictor(Program program, std::shared_ptr<const Runtime> runtime, DeviceProgram device,
                  const PassBounds& bounds)
      : program_(std::move(program)),
        runtime_(std::move(runtime)),
        device_(std::move(device)),
        bounds_(bounds) {
    row_bytes_ = program_.meta().num_features * sizeof(float) + program_.section_Columns().size();
    for (std::uint32_t a = 0; a < program_.section_Accumulators().size(); ++a) {
      const AccumulatorPlace place = place_of(program_, a);
      if (place.storage == a) row_bytes_ += place.copy_bytes;
    }
  }

  std::unique_ptr<Context> make_context() const override { return std::make_unique<DeviceContext>(runtime_); }

  Result<CodedRows> encode(Context&, const AnyRows&, std::span<std::uint8_t>) const override {
    return no_codes();
  }

  const Program& program() const override { return program_; }

  std::string describe() const override { return runtime_->describe(); }

  /// Whether launches of calls with the fewest and the most rows of each plan fit the device.
  Result<void> check_launches() const {
    std::vector<std::uint32_t> row_counts;
    for (const Inst& inst : program_.code()) {
      if (inst.op != Op::Plan) continue;
      const std::uint32_t least = std::max(operand<Op::Plan, OperandKind::Least>(inst), 1u);
      const std::uint32_t most = operand<Op::Plan, OperandKind::Most>(inst);
      if (least > kMaxPassRows) continue;
      row_counts.push_back(least);
      row_counts.push_back(most == UINT32_MAX ? std::max(kManyRows, least) : std::min(most, kMaxPassRows));
    }
    if (row_counts.empty()) row_counts = {1, kManyRows};
    for (const std::uint32_t rows : row_counts)
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
    if (context.backend() != runtime_.get())
      return Error{ErrorCode::Usage, "", "the context belongs to another backend"};
    if (const auto* dense = std::get_if<RowBlock>(&rows)) return check_rows(program_.meta(), *dense);
    if (const auto* csr = std::get_if<CsrRows>(&rows)) return check_rows(*csr);
    if (const auto* on_device = std::get_if<DeviceRows>(&rows)) return check_on_device(*on_device);
    return no_codes();
  }

  Result<void> check_on_device(const DeviceRows& rows) const {
    if (rows.device != runtime_->ordinal())
      return Error{ErrorCode::Usage, "",
                   "the rows are on device " + std::to_string(rows.device) + ", the program is on device " +
                       std::to_string(runtime_->ordinal())};
    if (!program_.section_ZeroMissing().empty())
      return refused("rows",
                     "lie on the device, and the model takes zeros for missing values, which the host marks: "
                     "pass rows of the host");
    return check_rows(program_.meta(), rows);
  }

  Result<void> run(Context& any, const AnyRows& rows, OutputKind output,
                   const Destination& to) const override {
    FVM_TRY(check_call(any, rows));
    if (row_count(rows) == 0 || output_width(program_.meta(), output) == 0) return {};
    if (to.is_nowhere()) return no_buffer();
    auto& context = static_cast<DeviceContext&>(any);
    const auto* const on_device = std::get_if<DeviceRows>(&rows);
    LanesInUse lanes(on_device != nullptr ? std::span(&context.on_stream, 1) : std::span(context.lanes));
    FVM_TRY(on_device != nullptr ? run_on_device(context, *on_device, output, to)
                                 : run_from_host(context, rows, output, to));
    lanes.end();
    return {};
  }

  Result<void> run_from_host(DeviceContext& context, const AnyRows& rows, OutputKind output,
                             const Destination& to) const {
    const std::size_t count = row_count(rows), width = output_width(program_.meta(), output);
    const std::size_t copied_bytes = program_.meta().num_features * sizeof(float) + width * element_bytes(to);
    FVM_ASSIGN(std::uint32_t most, pass_rows(context, std::min(count, bounds_.slab_bytes / copied_bytes)));
    unsigned turn = 0;
    for (std::size_t begin = 0; begin < count;) {
      Lane& lane = context.lanes[turn++ % kLanes];
      FVM_TRY(lane.finish());
      if (lane.queue == nullptr) {
        FVM_ASSIGN(lane.queue, runtime_->make_queue());
      }
      const auto left = static_cast<std::uint32_t>(std::min<std::size_t>(most, count - begin));
      FVM_ASSIGN(const std::uint32_t taken,
                 make_room(context, lane, left, output, width * element_bytes(to)));
      if (taken < left) most = taken;
      FVM_TRY(start(context, lane, rows, begin, taken, output, to.from(begin * width)));
      begin += taken;
    }
    for (Lane& lane : context.lanes) FVM_TRY(lane.finish());
    return {};
  }

  /// One pass, from the rows to their results, is on its way.
  Result<void> start(DeviceContext& context, Lane& lane, const AnyRows& rows, std::size_t begin,
                     std::uint32_t count, OutputKind output, const Destination& to) const {
    const std::uint32_t features = program_.meta().num_features;
    auto* const staged = lane.staged_rows.as<float>();
    if (const auto* const csr = std::get_if<CsrRows>(&rows)) {
      FVM_TRY(check_csr_rows(*csr, begin, count, features));
      fill_float_rows(program_, *csr, begin, count, staged);
    } else {
      fill_float_rows(program_, *std::get_if<RowBlock>(&rows), begin, count, staged);
    }
    const std::size_t row_bytes = std::size_t{count} * features * sizeof(float);
    if (row_bytes != 0) FVM_TRY(lane.queue->upload(lane.rows.bytes(), staged, row_bytes));
    FVM_TRY(launch(context, lane, {lane.rows.as<const float>(), count, features}, output,
                   placed(to, lane.results)));
    return lane.deliver_to(memory_of(to),
                           std::size_t{count} * output_width(program_.meta(), output) * element_bytes(to));
  }

  Result<void> run_on_device(DeviceContext& context, const DeviceRows& rows, OutputKind output,
                             const Destination& to) const {
    Lane& lane = context.on_stream;
    if (lane.queue == nullptr || context.stream != rows.stream) {
      FVM_TRY(lane.finish());
      FVM_ASSIGN(lane.queue, runtime_->queue_on(rows.stream));
      context.stream = rows.stream;
    }
    const std::size_t width = output_width(program_.meta(), output);
    FVM_ASSIGN(std::uint32_t most, pass_rows(context, rows.count));
    for (std::size_t begin = 0; begin < rows.count;) {
      const auto left = static_cast<std::uint32_t>(std::min<std::size_t>(most, rows.count - begin));
      FVM_ASSIGN(const std::uint32_t taken, make_room(context, lane, left, output, std::nullopt));
      if (taken < left) most = taken;
      FVM_TRY(launch(context, lane, {rows.data + begin * rows.stride, taken, rows.stride}, output,
                     to.from(begin * width)));
      begin += taken;
    }
    return lane.queue->mark();
  }

  /// Rows of a pass of a call that would take `wanted`: as many as are allowed, and as half of the device's
  /// free memory holds.
  Result<std::uint32_t> pass_rows(const DeviceContext& context, std::size_t wanted) const {
    const std::size_t row_bytes = std::max<std::size_t>(row_bytes_, 1);
    std::size_t most = std::min({wanted, bounds_.pass_bytes / row_bytes, std::size_t{kMaxPassRows}});
    if (most > context.room_for) {
      FVM_ASSIGN(const DeviceMemory memory, runtime_->memory());
      const std::size_t affordable = memory.free / 2 / (kLanes * row_bytes);
      most = std::min(most, std::max({affordable, context.room_for, std::size_t{bounds_.fewest_rows}}));
    }
    return static_cast<std::uint32_t>(std::max<std::size_t>(most, 1));
  }

  /// Room in the lane for a pass of so many rows, linked; for fewer, if the device has not enough memory.
  /// Result: for how many. `result_bytes`: of a row whose results the host gets; none: all is on the device.
  Result<std::uint32_t> make_room(DeviceContext& context, Lane& lane, std::uint32_t rows, OutputKind output,
                                  std::optional<std::size_t> result_bytes) const {
    for (bool last = false;;) {
      FVM_TRY(link_for(context, {rows, rows, output}));
      const std::size_t columns = program_.section_Columns().size();
      Room room;
      room.codes = columns == 0 ? 0 : code_bytes(rows, columns) + kCodeSlack;
      room.accumulators = context.linked.global_bytes;
      if (result_bytes) {
        room.rows = std::size_t{rows} * program_.meta().num_features * sizeof(float);
        room.results = rows * *result_bytes;
      }
      const Result<void> reserved = lane.reserve(*runtime_, room);
      if (reserved.ok()) break;
      if (last) return reserved.error();
      FVM_TRY(lane.queue->mark());
      FVM_TRY(context.release_memory());
      context.room_for = 0;
      last = rows <= bounds_.fewest_rows;
      if (!last) rows = std::max(rows / 2, bounds_.fewest_rows);
    }
    context.room_for = std::max<std::size_t>(context.room_for, rows);
    return rows;
  }

  Result<void> link_for(DeviceContext& context, const LinkRequest& request) const {
    if (context.linked_for == request) return {};
    context.linked_for.reset();
    FVM_ASSIGN(context.linked, link(program_, request, runtime_->limits()));
    context.linked_for = request;
    return {};
  }

  /// Rows of a pass, on the device.
  struct PlacedRows {
    const float* rows;
    std::uint32_t count;
    std::size_t stride;
  };

  /// Gives the pass's launches, which are linked, to the lane's queue.
  Result<void> launch(const DeviceContext& context, const Lane& lane, const PlacedRows& rows,
                      OutputKind output, const Destination& to) const {
    Launch launch{};
    launch.program = device_.tables();
    launch.pass.rows = rows.rows;
    launch.pass.row_stride = rows.stride;
    launch.pass.row_count = rows.count;
    launch.pass.output = output;
    launch.pass.codes = launch.pass.encode_to = lane.codes.as<std::uint8_t>();
    launch.pass.values = to.values;
    launch.pass.wide_values = to.wide_values;
    launch.pass.labels = to.labels;
    launch.pass.leaves = to.leaves;
    for (const LinkedPhase& phase : context.linked.phases) {
      place_phase(lane, phase, launch);
      FVM_TRY(lane.queue->launch(phase, launch));
    }
    return {};
  }

  void place_phase(const Lane& lane, const LinkedPhase& phase, Launch& launch) const {
    launch.block_rows = phase.block_rows;
    launch.rows_per_block = phase.rows_per_block;
    std::copy(phase.code.begin(), phase.code.end(), launch.code);
    const auto descs = program_.section_Accumulators();
    for (std::uint32_t a = 0; a < descs.size(); ++a) {
      const AccumulatorPlace place = place_of(program_, a);
      const LinkedAccumulator& linked = phase.accumulators[place.storage];
      LaunchAccumulator& to = launch.accumulators[a];
      to.memory = linked.shared ? nullptr : lane.accumulators[place.storage].bytes();
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
  std::shared_ptr<const Runtime> runtime_;
  DeviceProgram device_;
  PassBounds bounds_;
  std::size_t row_bytes_ = 0;  ///< that a row of a pass takes on the device, about
};

}  // namespace

Result<std::unique_ptr<Predictor>> make_predictor(const Program& program, std::unique_ptr<Runtime> runtime,
                                                  const std::string& backend, const PassBounds& bounds) {
  if (!program.mapped())
    return refused("",
                   "none of its loops is mapped to a GPU's grid and blocks (gpuDimension): it runs on the "
                   "host, not on " +
                       backend + "; compile the model with a schedule for GPUs");
  FVM_ASSIGN(DeviceProgram device, DeviceProgram::make(program, *runtime));
  auto predictor = std::make_unique<DevicePredictor>(program, std::move(runtime), std::move(device), bounds);
  FVM_TRY(predictor->check_launches());
  return std::unique_ptr<Predictor>(std::move(predictor));
}

}  // namespace forestvm::kernels
