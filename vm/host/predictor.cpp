// The host backend: loads a program (picks its walkers for a CPU target) and answers calls. A call is cut
// into passes so that the context's scratch stays below kMaxScratchBytes, however many rows arrive.
#include <algorithm>
#include <new>

#include <forestvm/backend.hpp>
#include <forestvm/names.hpp>

#include "vm/host/convert_rows.hpp"
#include "vm/host/csr_rows.hpp"
#include "vm/host/load_program.hpp"
#include "vm/host/targets/float_environment.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm {
namespace host {
namespace {

/// Rows in one pass when nothing else bounds them: row numbers are 32-bit.
constexpr std::size_t kMaxPassRows = std::size_t{1} << 30;

/// Codes, or converted rows, of one pass, unless that were too few rows to share among threads.
constexpr std::size_t kMaxPassBytes = std::size_t{8} << 20;
constexpr std::size_t kLeastPassRows = 4096;

/// A value of a sparse row takes longer to encode than one of a dense row, which has more of them: the part
/// that must be present for dense rows to be faster.
constexpr double kDenseFrom = 0.04;

/// More than any machine has; executors reserve room for each.
constexpr unsigned kMaxThreads = 4096;

/// What scratch memory is counted in: a cache line.
struct alignas(64) Line {
  std::byte bytes[64];
};

class HostContext final : public Context {
 public:
  HostContext() : Context(&kBackend) {}

  static constexpr char kBackend = 0;
  std::vector<Line> scratch;
};

/// Accumulators begin on lines of their own.
std::size_t whole_lines(std::size_t bytes) {
  return (bytes + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line);
}

/// Where a call's predictions go: one of them is set.
struct Destination {
  float* values = nullptr;
  double* wide_values = nullptr;
  std::int64_t* labels = nullptr;
  std::int32_t* leaves = nullptr;
};

class HostPredictor final : public Predictor {
 public:
  HostPredictor(LoadedProgram loaded, const Target& target) : loaded_(std::move(loaded)), target_(&target) {
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      private_bytes_ += loaded_.accumulators[i].copy_bytes;
  }

  std::unique_ptr<Context> make_context() const override { return std::make_unique<HostContext>(); }

  Result<void> predict(Context& context, const RowBlock& rows, OutputKind output, float* out) const override {
    FVM_TRY(is_score(output));
    return run(context, {.dense = &rows}, output, {.values = out});
  }

  Result<void> predict(Context& context, const CsrRows& rows, OutputKind output, float* out) const override {
    FVM_TRY(is_score(output));
    return run(context, {.csr = &rows}, output, {.values = out});
  }

  Result<void> predict_wide(Context& context, const RowBlock& rows, OutputKind output,
                            double* out) const override {
    FVM_TRY(is_score(output));
    return run(context, {.dense = &rows}, output, {.wide_values = out});
  }

  Result<void> predict_wide(Context& context, const CsrRows& rows, OutputKind output,
                            double* out) const override {
    FVM_TRY(is_score(output));
    return run(context, {.csr = &rows}, output, {.wide_values = out});
  }

  Result<void> predict_class(Context& context, const RowBlock& rows, std::int64_t* out) const override {
    FVM_TRY(has_classes());
    return run(context, {.dense = &rows}, OutputKind::Class, {.labels = out});
  }

  Result<void> predict_class(Context& context, const CsrRows& rows, std::int64_t* out) const override {
    FVM_TRY(has_classes());
    return run(context, {.csr = &rows}, OutputKind::Class, {.labels = out});
  }

  Result<void> predict_leaf(Context& context, const RowBlock& rows, std::int32_t* out) const override {
    return run(context, {.dense = &rows}, OutputKind::Leaf, {.leaves = out});
  }

  Result<void> predict_leaf(Context& context, const CsrRows& rows, std::int32_t* out) const override {
    return run(context, {.csr = &rows}, OutputKind::Leaf, {.leaves = out});
  }

  const Program& program() const override { return loaded_.program; }

  std::string describe() const override {
    const std::string executor = loaded_.executor == nullptr ? "inline"
                                                             : std::to_string(loaded_.executor->threads()) +
                                                                   " threads on " + loaded_.executor->name();
    return "host, target " + std::string(target_->name) + ", " + executor;
  }

 private:
  static Result<void> is_score(OutputKind output) {
    if (output == OutputKind::Raw || output == OutputKind::Value) return {};
    return Error{ErrorCode::Usage, "",
                 "predict gives raw scores or values; labels come from predict_class, leaf numbers from "
                 "predict_leaf"};
  }

  Result<void> has_classes() const {
    if (output_width(program().meta(), OutputKind::Class) != 0) return {};
    return refused("output class", "the model has no classes: its objective is " +
                                       std::string(program().text(StringId::Objective)));
  }

  /// Rows as a call gave them: one of the two is set.
  struct Input {
    const RowBlock* dense = nullptr;
    const CsrRows* csr = nullptr;

    std::size_t count() const { return csr != nullptr ? csr->count : dense->count; }
  };

  Result<void> run(Context& context, const Input& rows, OutputKind output, const Destination& to) const {
    if (context.backend() != &HostContext::kBackend)
      return Error{ErrorCode::Usage, "", "the context belongs to another backend"};
    if (rows.count() == 0) return {};
    FVM_TRY(rows.csr != nullptr ? check(*rows.csr) : check(*rows.dense));
    const std::size_t width = output_width(loaded_.meta, output);
    const bool no_output =
        to.values == nullptr && to.wide_values == nullptr && to.labels == nullptr && to.leaves == nullptr;
    if (no_output && width != 0) return no_buffer();
    std::vector<Line>& scratch = static_cast<HostContext&>(context).scratch;
    for (std::size_t begin = 0; begin < rows.count();) {
      Pass pass{};
      pass.output = output;
      pass.in_place = to.values != nullptr && width == loaded_.meta.num_outputs;
      if (to.values != nullptr) pass.values = to.values + begin * width;
      if (to.wide_values != nullptr) pass.wide_values = to.wide_values + begin * width;
      if (to.labels != nullptr) pass.labels = to.labels + begin * width;
      if (to.leaves != nullptr) pass.leaves = to.leaves + begin * width;
      pass.row_count = static_cast<std::uint32_t>(pass_rows(rows, rows.count() - begin, pass.in_place));
      if (rows.csr != nullptr)
        FVM_TRY(check_csr_rows(*rows.csr, begin, pass.row_count, loaded_.meta.num_features));
      FVM_TRY(run_pass(pass, rows, begin, scratch));
      begin += pass.row_count;
    }
    return {};
  }

  static Error no_buffer() { return {ErrorCode::Usage, "", "no buffer for rows or output"}; }

  Result<void> check(const RowBlock& rows) const {
    if (rows.stride < loaded_.meta.num_features)
      return Error{ErrorCode::Usage, "",
                   "rows of " + std::to_string(rows.stride) + " values for a model of " +
                       std::to_string(loaded_.meta.num_features) + " features"};
    if (rows.type == RowType::Float64 && loaded_.meta.score_type == ScalarType::Float64)
      return refused(
          "rows",
          "are float64, which would be rounded to float32: the model compares float64 thresholds, so "
          "that a row could go another way; pass float32");
    return rows.data == nullptr ? no_buffer() : Result<void>();
  }

  static Result<void> check(const CsrRows& rows) {
    const bool no_values = rows.value_count != 0 && (rows.columns == nullptr || rows.values == nullptr);
    return rows.offsets == nullptr || no_values ? no_buffer() : Result<void>();
  }

  /// Whether a pass of so many rows gets float32 rows in the scratch memory.
  bool converted(const Input& rows, std::size_t row_count) const {
    if (rows.dense != nullptr)
      return rows.dense->type != RowType::Float32 || !loaded_.program.section_ZeroMissing().empty();
    if (static_cast<double>(rows.csr->value_count) >
        kDenseFrom * (static_cast<double>(rows.csr->count) * loaded_.meta.num_features))
      return true;
    return std::any_of(loaded_.values_read.begin(), loaded_.values_read.end(), [&](const RowCounts& counts) {
      return counts.least <= row_count && row_count <= counts.most;
    });
  }

  /// How many of `left` rows go into one pass.
  std::size_t pass_rows(const Input& rows, std::size_t left, bool in_place) const {
    // A call for leaf numbers has sums too: nothing says that a program leaves them alone then.
    const std::size_t result_bytes = in_place ? 0 : loaded_.meta.num_outputs * sizeof(float);
    const std::size_t most =
        std::min({left, max_pass_rows(private_bytes_ + result_bytes), max_encoded_rows()});
    return converted(rows, most) ? std::min(most, max_converted_rows()) : most;
  }

  /// Gives a pass its rows, which begin at row `begin` of the call, and its memory, and runs it.
  Result<void> run_pass(Pass& pass, const Input& rows, std::size_t begin, std::vector<Line>& scratch) const {
    const std::size_t width = loaded_.meta.num_features;
    const bool convert = converted(rows, pass.row_count);
    const std::size_t converted_bytes = convert ? whole_lines(pass.row_count * width * sizeof(float)) : 0;
    const std::size_t lines = (scratch_bytes(pass.row_count, pass.in_place) + converted_bytes) / sizeof(Line);
    try {
      if (scratch.size() < lines) scratch.resize(lines);
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::Environment, "",
                   "out of memory: scratch of " + std::to_string(lines * sizeof(Line)) + " bytes"};
    }
    std::byte* const memory = scratch.empty() ? nullptr : scratch.data()->bytes;
    CsrRows csr;
    if (convert) {
      float* const values = reinterpret_cast<float*>(memory);
      const FloatEnvironment environment;  // the rounding is ours, not the caller's
      if (rows.csr != nullptr)
        fill_csr_rows(*rows.csr, begin, pass.row_count, width, values);
      else
        convert_rows(*rows.dense, begin, pass.row_count, width, values);
      mark_zeros_missing(loaded_.program.section_ZeroMissing(), pass.row_count, width, values);
      pass.rows = values;
      pass.row_stride = width;
    } else if (rows.csr != nullptr) {
      csr = *rows.csr;
      csr.offsets += begin;
      pass.csr = &csr;
    } else {
      pass.rows = static_cast<const float*>(rows.dense->data) + begin * rows.dense->stride;
      pass.row_stride = rows.dense->stride;
    }
    interpret_pass(pass, memory + converted_bytes);
    return {};
  }

  std::size_t scratch_bytes(std::size_t rows, bool in_place) const {
    std::size_t bytes = in_place ? 0 : whole_lines(rows * loaded_.meta.num_outputs * sizeof(float));
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      bytes += whole_lines(rows * loaded_.accumulators[i].copy_bytes);
    return bytes + code_bytes(rows, columns()) + kCodeSlack;
  }

  std::size_t columns() const { return loaded_.program.section_Columns().size(); }

  /// Codes are written and soon read again: they are kept where caches have a chance; with very many columns
  /// below kMaxScratchBytes, unless a single block takes more.
  std::size_t max_encoded_rows() const {
    if (columns() == 0) return kMaxPassRows;
    const auto rows_in = [&](std::size_t bytes) {
      return std::max<std::size_t>(kCodeRows, bytes / columns() / kCodeRows * kCodeRows);
    };
    return std::min(rows_in(kMaxScratchBytes), std::max(kLeastPassRows, rows_in(kMaxPassBytes)));
  }

  /// Likewise, below kMaxScratchBytes unless a single row takes more.
  std::size_t max_converted_rows() const {
    const std::size_t row_bytes = loaded_.meta.num_features * sizeof(float);
    if (row_bytes == 0) return kMaxPassRows;
    return std::clamp<std::size_t>(kMaxScratchBytes / row_bytes, 1,
                                   std::max(kLeastPassRows, kMaxPassBytes / row_bytes));
  }

  void interpret_pass(Pass& pass, std::byte* scratch) const {
    const auto take = [&](std::size_t row_bytes) {
      std::byte* const begin = scratch;
      scratch += whole_lines(pass.row_count * row_bytes);
      return begin;
    };
    pass.accumulators[0] = pass.in_place ? reinterpret_cast<std::byte*>(pass.values)
                                         : take(loaded_.meta.num_outputs * sizeof(float));
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      pass.accumulators[i] = take(loaded_.accumulators[i].copy_bytes);
    pass.codes = reinterpret_cast<std::uint8_t*>(scratch);
    const FloatEnvironment environment;
    Machine machine(loaded_, pass);
    interpret(loaded_.code, 0, machine);
  }

  static std::size_t max_pass_rows(std::size_t row_bytes) {
    if (row_bytes == 0) return kMaxPassRows;
    return std::clamp<std::size_t>(kMaxScratchBytes / row_bytes, 1, kMaxPassRows);
  }

  LoadedProgram loaded_;
  const Target* target_;
  std::size_t private_bytes_ = 0;  ///< of a row, in all accumulators but the result
};

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
    case OutputKind::Leaf:
      return meta.num_trees;
  }
  return 0;
}

Result<std::unique_ptr<Predictor>> host_backend(const Program& program, const BackendOptions& options) {
  FVM_ASSIGN(const host::Target* target, host::find_target(options.target));
  if (options.threads > host::kMaxThreads)
    return Error{ErrorCode::Usage, "",
                 std::to_string(options.threads) + " threads, at most " + std::to_string(host::kMaxThreads)};
  if (program.mapped())
    return refused(
        "",
        "its loops are mapped to a GPU's grid and blocks (gpuDimension): it runs on a GPU backend, "
        "not on the host; compile the model with a schedule for the host");
  host::LoadedProgram loaded = host::load_program(program, *target, host::make_executor(options.threads));
  return std::unique_ptr<Predictor>(std::make_unique<host::HostPredictor>(std::move(loaded), *target));
}

}  // namespace forestvm
