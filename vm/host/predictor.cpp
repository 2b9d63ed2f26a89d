// The host backend: loads a program (picks its walkers for a CPU target) and answers calls. A call is cut
// into passes so that the context's scratch stays below kMaxScratchBytes, however many rows arrive, unless the smallest
// pass takes more.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/float_environment.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/host/load_program.hpp"
#include "vm/host/lookup_codes.hpp"
#include "vm/host/pass_plan.hpp"
#include "vm/host/straight_code.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm {
namespace host {
namespace {

/// The most threads that a caller may ask for: more than any machine has.
constexpr unsigned kMaxThreads = 4096;

/// A call that can be made again with other rows: see Predictor::predict_again.
struct KnownCall {
  std::uint64_t predictor = 0;  ///< HostPredictor::number_; 0 if there is no such call.
  ResultType type{};
  Pass pass{};  ///< The call's only pass. Its accumulators and codes lie in the context's scratch memory.
  StraightCode code{};

  bool is_like(const RowBlock& rows, OutputKind wanted, ResultType wanted_type) const {
    return rows.count == pass.row_count && rows.stride == pass.row_stride && pass.output == wanted &&
           type == wanted_type && rows.type == RowType::Float32 && rows.column_stride == 1 && !rows.hashed;
  }
};

class HostContext final : public Context {
 public:
  HostContext() : Context(&kBackend) {}

  static constexpr char kBackend = 0;
  std::vector<Line> scratch;
  std::vector<Line> codes;  ///< Blocks of codes with the values that linear leaves read beside them.
  std::vector<std::uint32_t> output_indices;  ///< Pass::output_indices of a call that chooses features.
  /// The last call if it can be made again. Whatever uses the scratch memory sets or clears it.
  KnownCall last;
};

/// Returns a number for a predictor. No other of the process has it, not even one that was at the same address before.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

class HostPredictor final : public CallPredictor {
 public:
  [[gnu::cold]] HostPredictor(std::unique_ptr<const LoadedProgram> loaded, const Target& target)
      : CallPredictor(&HostContext::kBackend),
        owned_(std::move(loaded)),
        loaded_(*owned_),
        plan_(loaded_, target),
        target_(&target),
        number_(next_number()) {}

  std::unique_ptr<Context> make_context() const override { return std::make_unique<HostContext>(); }

  bool predict_again(Context& context, const RowBlock& rows, OutputKind output, ResultType type, void* out,
                     std::size_t capacity) const override {
    if (context.owner() != &HostContext::kBackend) return false;
    KnownCall& last = static_cast<HostContext&>(context).last;
    if (last.predictor != number_ || !last.is_like(rows, output, type) ||
        capacity < last.pass.row_count * last.pass.width || rows.data == nullptr || out == nullptr)
      return false;
    last.pass.rows = static_cast<const float*>(rows.data);
    set_results(last.pass, {type, out});
    if (!last.code.is_made()) {
      run_code(last.pass);
      return true;
    }
    const FloatEnvironment environment;
    last.code.run();
    return true;
  }

  // Cold, so that it is compiled for size: encoders, which it calls, take the time.
  [[gnu::cold]] Result<CodedRows> encode(Context& context, const AnyRows& given,
                                         std::span<std::uint8_t> out) const override {
    FVM_TRY(check_context(context));
    FVM_ASSIGN(const RowSource rows, row_reader().resolve_to_encode(given, out.size()));
    const std::size_t count = rows.count();
    const std::size_t width = coded_columns();
    static_cast<HostContext&>(context).last.predictor = 0;
    for (std::size_t begin = 0; begin < count;) {
      const auto rows_here = static_cast<std::uint32_t>(plan_.rows_to_encode(rows, count - begin));
      FVM_TRY(encode_some(static_cast<HostContext&>(context), rows, begin, rows_here,
                          out.data() + code_offset(begin, width)));
      begin += rows_here;
    }
    if (count != 0) std::fill_n(out.data() + code_bytes(count, width), kCodeSlack, 0);
    return CodedRows{out.data(), count, width, coded_bytes(count, width),
                     row_reader().coded_plans().encoder()};
  }

  const Program& program() const override { return loaded_.program; }

  [[gnu::cold]] std::string describe() const override {
    const std::string executor =
        loaded_.executor == nullptr
            ? "inline"
            : formatted("{} threads on {}", loaded_.executor->threads(), loaded_.executor->name());
    return formatted("host, target {}, {}", target_->name, executor);
  }

 private:
  const RowReader& row_reader() const override { return *loaded_.row_reader; }

  Result<void> run(Context& context, const RowSource& rows, OutputKind output, const CallOptions& options,
                   const Destination& to) const override {
    const std::size_t count = rows.count(), width = output_width(loaded_.program, output, options);
    HostContext& memory = static_cast<HostContext&>(context);
    std::vector<Line>& scratch = memory.scratch;
    memory.last.predictor = 0;
    if (!options.features.empty()) FVM_TRY(find_output_indices(options.features, memory.output_indices));
    for (std::size_t begin = 0; begin < count;) {
      Pass pass{};
      pass.output = output;
      pass.options = &options;
      pass.source = &rows;
      pass.first_row = begin;
      pass.width = width;
      if (!options.features.empty()) pass.output_indices = memory.output_indices.data();
      choose_rounds(pass);
      pass.walks_stages = plan_.walks_stages(pass);
      if (pass.walks_stages) pass.output = OutputKind::Raw;
      const bool scores = output == OutputKind::Raw || output == OutputKind::Value;
      pass.in_place = scores && to.values() != nullptr && width == loaded_.meta.num_outputs;
      const Destination here = to.from(begin * width);
      pass.row_count = static_cast<std::uint32_t>(
          plan_.rows(pass, rows, count - begin, PassPlan::delivered_bytes(pass, 1, to.type)));
      FVM_TRY(run_pass(pass, rows, begin, here, scratch));
      if (pass.row_count == count && can_repeat(pass, rows, to.type)) remember(pass, to.type, memory.last);
      begin += pass.row_count;
    }
    return {};
  }

  /// Returns whether a call that was answered by one pass can be made again with other rows: all that the pass holds of
  /// this call is where its rows and results are.
  bool can_repeat(const Pass& pass, const RowSource& rows, ResultType type) const {
    const bool known_output = pass.output == OutputKind::Raw || pass.output == OutputKind::Value ||
                              pass.output == OutputKind::Class || pass.output == OutputKind::Leaf;
    return rows.form() == RowForm::Plain && known_output && is_plain(*pass.options) && !pass.walks_stages &&
           written_type(pass.output, type) == type && loaded_.functions.empty();
  }

  void remember(const Pass& pass, ResultType type, KnownCall& call) const {
    static constexpr CallOptions kNoOptions;
    call.predictor = number_;
    call.type = type;
    call.pass = pass;
    call.pass.options = &kNoOptions;
    call.pass.source = nullptr;  // functions of leaves and early stops read it
    call.code.make(loaded_, call.pass);
  }

  /// Writes the index of each feature among the chosen ones, and kLeftOut for others.
  [[gnu::cold]] Result<void> find_output_indices(std::span<const std::uint32_t> features,
                                                 std::vector<std::uint32_t>& indices) const {
    try {
      indices.assign(loaded_.meta.num_features, kLeftOut);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::Environment, "out of memory: the indices of the features of a call");
    }
    for (std::size_t i = 0; i < features.size(); ++i) indices[features[i]] = static_cast<std::uint32_t>(i);
    return {};
  }

  /// Sets what follows from the rounds that a call chooses.
  void choose_rounds(Pass& pass) const {
    pass.trees = pass.kept = {0, loaded_.meta.num_trees, 0};
    pass.base = loaded_.base.data();
    pass.parameters = loaded_.parameters;
    if (!pass.options->rounds) return;
    const Rounds rounds = *pass.options->rounds;
    const auto begins = loaded_.program.round_begins();
    pass.trees = {begins[rounds.begin], begins[rounds.end], 0};
    pass.first_tree = pass.trees.begin;
    if (loaded_.meta.rounds == RoundRule::FirstBase && rounds.begin != 0) pass.base = loaded_.no_base.data();
    if (loaded_.meta.rounds == RoundRule::Averages) pass.parameters.divisor = rounds.end - rounds.begin;
  }

  /// Encodes `count` rows from `begin` on. They begin where a block begins, and end where a block or the call's
  /// rows end.
  Result<void> encode_some(HostContext& context, const RowSource& rows, std::size_t begin,
                           std::uint32_t count, std::uint8_t* out) const {
    Pass pass{};
    pass.row_count = count;
    pass.encode_to = out;
    if (plan_.adds_values()) {
      FVM_TRY(reserve(context.codes, whole_lines(code_bytes(count, columns()))));
      pass.encode_to = reinterpret_cast<std::uint8_t*>(begin_of(context.codes));
    }
    FVM_TRY(encode_pass(pass, rows, begin, context.scratch));
    clear_unused(count, columns(), pass.encode_to);
    if (plan_.adds_values())
      rows.write_coded(begin, count, pass.encode_to, loaded_.functions.features(), out);
    return {};
  }

  static std::byte* begin_of(std::vector<Line>& scratch) {
    return scratch.empty() ? nullptr : scratch.data()->bytes;
  }

  static Result<void> reserve(std::vector<Line>& scratch, std::size_t bytes) {
    const std::size_t lines = bytes / sizeof(Line);
    if (scratch.size() >= lines) return {};
    try {
      scratch.resize(lines);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::Environment,
                  formatted("out of memory: scratch of {} bytes", lines * sizeof(Line)));
    }
    return {};
  }

  /// The number of rows whose columns one iteration of a parallel loop derives.
  static constexpr std::uint32_t kRowsDerivedAtOnce = 256;
  static_assert(kRowsDerivedAtOnce % kCodeRows == 0);

  /// Calls visit(i, part) for the parts of `count` rows whose columns are derived together. Columns take longer than
  /// walks, so threads share them. Returns the first part's error.
  template <class Visit>
  Result<void> for_parts(std::uint32_t count, const Visit& visit) const {
    const std::uint32_t parts = iterations(count, kRowsDerivedAtOnce);
    const auto visit_part = [&](std::uint32_t i) {
      return visit(i, chunk({0, count}, kRowsDerivedAtOnce, i));
    };
    if (loaded_.executor == nullptr || parts <= 1) {
      for (std::uint32_t i = 0; i < parts; ++i) FVM_TRY(visit_part(i));
      return {};
    }
    std::atomic<std::uint32_t> first_wrong = parts;
    auto some = [&](std::uint32_t i) {
      if (visit_part(i).ok()) return;
      std::uint32_t known = first_wrong;
      while (i < known && !first_wrong.compare_exchange_weak(known, i)) continue;
    };
    loaded_.executor->run(parts, some);
    return first_wrong != parts ? visit_part(first_wrong) : Result<void>();  // repeats the part for its error
  }

  /// Reads the rows of a pass: see RowSource::read.
  Result<RowView> read(const RowSource& rows, std::size_t begin, std::uint32_t count,
                       float* converted) const {
    if (converted == nullptr || !plan_.derives_columns()) return rows.read(begin, count, converted);
    const auto read_part = [&](std::uint32_t, const Range& part) -> Result<void> {
      float* const to = converted + std::size_t{part.begin} * row_width(loaded_.meta);
      FVM_TRY(rows.read(begin + part.begin, part.size(), to));
      return {};
    };
    FVM_TRY(for_parts(count, read_part));
    return RowView{.values = converted, .stride = row_width(loaded_.meta)};
  }

  /// Returns the tables of lookups' codes. They are made when rows are first encoded: calls with few rows, whose
  /// plans read values, never need them. If memory for them is lacking, there are none.
  const LookupCodes& lookup_codes() const {
    std::call_once(lookup_codes_once_, [this] {
      try {
        lookup_codes_ = LookupCodes(loaded_.program, loaded_.encoder, *target_);
      } catch (const std::bad_alloc&) {
        lookup_codes_ = {};
      }
    });
    return lookup_codes_;
  }

  /// Returns whether the codes of lookups are written straight from the features, without the values that are
  /// looked up.
  bool codes_lookups(const RowSource& rows) const {
    return plan_.converted(rows) && lookup_codes().searches() != 0;
  }

  /// Returns the number of values of a converted row without the columns of lookups.
  std::size_t short_width() const { return loaded_.row_reader->rules().columns().short_width(); }

  /// Returns the bytes of the converted rows from which code_lookups derives codes at once.
  std::size_t short_bytes() const { return whole_lines(kRowsDerivedAtOnce * short_width() * sizeof(float)); }

  /// Returns the bytes that code_lookups needs for `rows` rows.
  std::size_t coding_bytes(std::size_t rows) const {
    const std::size_t parts = (rows + kRowsDerivedAtOnce - 1) / kRowsDerivedAtOnce;
    return (loaded_.executor == nullptr ? 1 : parts) *
           (short_bytes() + whole_lines(lookup_codes().scratch_bytes()));
  }

  /// Writes the codes of a pass's rows if codes_lookups(rows).
  Result<void> code_lookups(const RowSource& rows, std::size_t begin, std::uint32_t count,
                            std::uint8_t* codes, std::byte* scratch) const {
    return for_parts(count, [&](std::uint32_t i, const Range& part) -> Result<void> {
      std::byte* const memory = loaded_.executor == nullptr ? scratch : scratch + i * coding_bytes(1);
      const auto values = reinterpret_cast<float*>(memory);
      FVM_TRY(rows.read_short(begin + part.begin, part.size(), values));
      const FloatEnvironment environment;
      lookup_codes().encode(values, short_width(), part.size(), codes + code_offset(part.begin, columns()),
                            memory + short_bytes());
      return {};
    });
  }

  /// Gives a pass its rows, which must live as long as the pass.
  static void give_rows(Pass& pass, const RowView& rows) {
    pass.rows = rows.values;
    pass.doubles = rows.doubles;
    pass.row_stride = rows.stride;
    pass.csr = rows.sparse ? &*rows.sparse : nullptr;
    pass.columns = rows.columns ? &*rows.columns : nullptr;
    pass.codes = rows.codes;
  }

  /// Gives a pass the memory that its results are written to.
  static void set_results(Pass& pass, const Destination& to) {
    pass.values = to.values();
    pass.wide_values = to.wide_values();
    pass.labels = to.labels();
    pass.leaves = to.leaves();
    if (pass.in_place) pass.accumulators[0] = reinterpret_cast<std::byte*>(pass.values);
  }

  Result<void> run_pass(Pass& pass, const RowSource& rows, std::size_t begin, const Destination& to,
                        std::vector<Line>& scratch) const {
    // Asks first what plain rows answer at once: this is a good part of a call of one row.
    const bool coded = plan_.converted(rows) && !plan_.reads_values(rows, pass.output, pass.row_count) &&
                       codes_lookups(rows);
    const std::size_t values = coded ? coding_bytes(pass.row_count)
                               : plan_.converted(rows, pass.output, pass.row_count)
                                   ? plan_.converted_bytes(pass.row_count)
                                   : 0;
    const std::size_t delivered = whole_lines(PassPlan::delivered_bytes(pass, pass.row_count, to.type));
    const bool encoded = rows.form() == RowForm::Encoded;
    const std::size_t codes =
        encoded && !plan_.adds_values() ? 0 : code_bytes(pass.row_count, columns()) + kCodeSlack;
    const std::size_t before_codes = values + delivered + plan_.scratch_bytes(pass);
    FVM_TRY(reserve(scratch, before_codes + codes));
    std::byte* const memory = begin_of(scratch);
    RowView view;  // the pass refers to it
    if (coded) {
      const auto out = reinterpret_cast<std::uint8_t*>(memory + before_codes);
      FVM_TRY(code_lookups(rows, begin, pass.row_count, out, memory));
      view.codes = out;
    } else if (encoded && plan_.adds_values()) {
      const auto out = reinterpret_cast<std::uint8_t*>(memory + before_codes);
      rows.copy_codes(begin, pass.row_count, out);
      view.codes = out;
    } else if (rows.form() == RowForm::Plain && values == 0) {
      view = rows.plain(begin);
    } else {
      float* const floats = values == 0 ? nullptr : reinterpret_cast<float*>(memory);
      FVM_ASSIGN(view, read(rows, begin, pass.row_count, floats));
    }
    give_rows(pass, view);
    pass.plan_rows = plan_.plan_rows(rows, pass.row_count);
    const Destination written{written_type(pass.output, to.type), delivered == 0 ? to.out : memory + values};
    set_results(pass, written);
    interpret_pass(pass, memory + values + delivered);
    if (delivered != 0) deliver(pass.output, written.out, pass.row_count * pass.width, to);
    return {};
  }

  /// The number of rows that one iteration of a parallel loop encodes.
  static constexpr std::uint32_t kRowsEncodedAtOnce = 8 * kCodeRows;

  Result<void> encode_pass(Pass& pass, const RowSource& rows, std::size_t begin,
                           std::vector<Line>& scratch) const {
    if (codes_lookups(rows)) {
      FVM_TRY(reserve(scratch, coding_bytes(pass.row_count)));
      return code_lookups(rows, begin, pass.row_count, pass.encode_to, begin_of(scratch));
    }
    const std::size_t values = plan_.converted(rows) ? plan_.converted_bytes(pass.row_count) : 0;
    FVM_TRY(reserve(scratch, values));
    float* const floats = values == 0 ? nullptr : reinterpret_cast<float*>(begin_of(scratch));
    FVM_ASSIGN(const RowView view, read(rows, begin, pass.row_count, floats));
    give_rows(pass, view);
    const Range all{0, pass.row_count};
    auto some = [&](std::uint32_t i) {
      const FloatEnvironment environment;
      encode_range(loaded_, pass, chunk(all, kRowsEncodedAtOnce, i));
    };
    const std::uint32_t count = iterations(all.size(), kRowsEncodedAtOnce);
    if (loaded_.executor != nullptr && count > 1)
      loaded_.executor->run(count, some);
    else
      for (std::uint32_t i = 0; i < count; ++i) some(i);
    return {};
  }

  /// Sets the codes of the last block that belong to no row to zero.
  static void clear_unused(std::size_t count, std::size_t columns, std::uint8_t* codes) {
    const std::size_t used = count % kCodeRows;
    if (used == 0) return;
    std::uint8_t* const first = codes + code_offset(count, columns);
    for (std::size_t c = 0; c < columns; ++c) std::fill_n(first + c * kCodeRows, kCodeRows - used, 0);
  }

  std::size_t columns() const { return loaded_.columns; }

  void interpret_pass(Pass& pass, std::byte* scratch) const {
    const auto take = [&](std::size_t bytes) {
      std::byte* const begin = scratch;
      scratch += whole_lines(bytes);
      return begin;
    };
    std::optional<ScratchSlots> slots;
    if (plan_.needs_slots(pass)) {
      const unsigned count = plan_.slot_count(pass);
      pass.slots = &slots.emplace(scratch, plan_.slot_bytes(pass), count);
      scratch += plan_.slot_bytes(pass) * count;
    }
    if (reads_leaf_numbers(pass.output))
      pass.leaves =
          reinterpret_cast<std::int32_t*>(take(plan_.leaf_number_bytes(pass.output, pass.row_count)));
    if (!pass.in_place)
      pass.accumulators[0] = take(std::size_t{pass.row_count} * loaded_.meta.num_outputs * sizeof(float));
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      pass.accumulators[i] =
          take(loaded_.accumulator_bytes(i, pass.output, pass.row_count, plan_.trees_kept(pass)));
    pass.leaf_values = reinterpret_cast<double*>(take(plan_.leaf_value_bytes(pass.row_count)));
    if (pass.options->early_stop) {
      std::byte* const memory = take(plan_.undecided_bytes(pass, pass.row_count));
      interpret_in_chunks(pass, memory, scratch);
    } else if (plan_.trees_at_once(pass) < loaded_.meta.num_trees) {
      interpret_by_trees(pass, scratch);
    } else {
      interpret_with(pass, scratch);
    }
    pass.slots = nullptr;
  }

  /// Interprets a pass that may stop early, some trees at a time: see UndecidedRows. `memory` is for the rows' sums,
  /// `codes` for the codes of its rows.
  [[gnu::cold, gnu::noinline]] void interpret_in_chunks(const Pass& pass, std::byte* memory,
                                                        std::byte* codes) const {
    const Range all = pass.trees;
    Pass part = pass;
    part.output = OutputKind::Raw;  // whatever the call wants: chunks give sums alone
    part.values = nullptr;
    part.wide_values = nullptr;
    part.labels = nullptr;
    UndecidedRows rows(pass, *target_, loaded_.meta.early_stop, loaded_.meta.num_outputs, columns(),
                       plan_.undecided_values(pass, pass.row_count), memory);
    // The values that functions of leaves read belong to rows by their numbers in the call.
    const bool packs = loaded_.functions.empty();
    part.undecided = &rows.sums();
    const std::uint32_t step = plan_.chunk_trees(pass);
    // Base scores come from a chunk, so there is one even without trees.
    const std::uint32_t chunks = std::max(iterations(all.size(), step), 1u);
    for (std::uint32_t c = 0; c < chunks; ++c) {
      part.trees = chunk(all, step, c);
      interpret_with(part, codes);
      part.encode_to = nullptr;
      if (!rows.next(part, packs)) break;
    }
    // The last interpretation walks no trees.
    part = pass;
    part.trees = {all.end, all.end, 0};
    part.undecided = &rows.finish();
    if (pass.codes == nullptr) part.codes = reinterpret_cast<std::uint8_t*>(codes);
    interpret_with(part, codes);
  }

  /// Interprets a pass for the outputs of trees, some trees at a time. `codes` is memory for the codes of its rows.
  [[gnu::cold, gnu::noinline]] void interpret_by_trees(Pass& pass, std::byte* codes) const {
    const Range all = pass.trees;
    const std::uint32_t step = plan_.trees_at_once(pass);
    for (std::uint32_t c = 0; c < iterations(all.size(), step); ++c) {
      pass.trees = chunk(all, step, c);
      const std::uint32_t first = pass.trees.begin - (c == 0 ? 0 : std::uint32_t{kTreeRows});
      pass.kept = {first, first + plan_.trees_kept(pass), 0};
      interpret_with(pass, codes);
      pass.encode_to = nullptr;
    }
    pass.trees = all;
  }

  /// Interprets a pass. `codes` is memory for the codes of its rows.
  void interpret_with(Pass& pass, std::byte* codes) const {
    if (pass.codes == nullptr) pass.codes = pass.encode_to = reinterpret_cast<std::uint8_t*>(codes);
    run_code(pass);
  }

  void run_code(const Pass& pass) const {
    const FloatEnvironment environment;
    Machine machine(loaded_, pass);
    interpret(loaded_.code, 0, machine);
  }

  const std::unique_ptr<const LoadedProgram> owned_;
  const LoadedProgram& loaded_;  ///< *owned_
  const PassPlan plan_;
  const Target* target_;
  const std::uint64_t number_;  ///< Identifies the predictor in contexts.
  mutable std::once_flag lookup_codes_once_;
  mutable LookupCodes lookup_codes_;
};

}  // namespace
}  // namespace host

[[gnu::cold]] Result<std::unique_ptr<Predictor>> host_backend(const Program& program,
                                                              const BackendOptions& options) {
  FVM_ASSIGN(const host::Target* target, host::find_target(options.target));
  if (options.threads > host::kMaxThreads)
    return usage(formatted("threads is {}, at most {}", options.threads, host::kMaxThreads));
  if (program.mapped())
    return refused(
        "the program's loops are mapped to a GPU's grid and blocks (gpuDimension): it runs on a GPU backend, "
        "not on the host; compile the model with a schedule for the host");
  FVM_ASSIGN(const host::Executor* const executor, host::shared_executor(options.threads));
  FVM_ASSIGN(auto loaded, host::load_program(program, *target, executor));
  return std::unique_ptr<Predictor>(std::make_unique<host::HostPredictor>(std::move(loaded), *target));
}

}  // namespace forestvm
