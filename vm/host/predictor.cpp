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
#include "vm/host/paths/explain_task.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm {
namespace host {
namespace {

/// The most rows of a pass if nothing else bounds them: row numbers are 32-bit.
constexpr std::size_t kMaxPassRows = std::size_t{1} << 30;

/// The most bytes of codes, or of converted rows, in a pass, unless its rows would be too few to share among
/// threads, fewer than kMinPassRows.
constexpr std::size_t kMaxPassBytes = std::size_t{8} << 20;
constexpr std::size_t kMinPassRows = 4096;

/// The most bytes of trees' leaves for each thread of a pass, unless the rows would be too few for walkers that take
/// many together, fewer than kMinLeafRows.
constexpr std::size_t kMaxLeafBytes = std::size_t{2} << 20;
constexpr std::size_t kMinLeafRows = 256;

/// The share of a sparse row's features that have values from which on it is faster to make the rows dense before they
/// are encoded.
constexpr double kDenseFrom = 0.04;

/// The least number of rows in a pass for which encoding float64 rows takes less time than converting them, although a
/// block has room for more rows.
constexpr std::size_t kDoublesToEncode = 8;

/// The most threads that a caller may ask for: more than any machine has.
constexpr unsigned kMaxThreads = 4096;

/// A cache line, in which scratch memory is counted.
struct alignas(64) Line {
  std::byte bytes[64];
};

class HostContext final : public Context {
 public:
  HostContext() : Context(&kBackend) {}

  static constexpr char kBackend = 0;
  std::vector<Line> scratch;
  std::vector<Line> codes;  ///< Blocks of codes with the values that linear leaves read beside them.
  std::vector<std::uint32_t> output_indices;  ///< Pass::output_indices of a call that chooses features.
};

/// Rounds bytes up to whole lines, so that accumulators begin on lines of their own.
std::size_t whole_lines(std::size_t bytes) {
  return (bytes + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line);
}

class HostPredictor final : public CallPredictor {
 public:
  [[gnu::cold]] HostPredictor(std::unique_ptr<const LoadedProgram> loaded, const Target& target)
      : CallPredictor(&HostContext::kBackend), owned_(std::move(loaded)), loaded_(*owned_), target_(&target) {
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i) {
      private_bytes_ += loaded_.accumulators[i].copy_bytes;
      if (is_per_tree(loaded_.accumulators[i].kind)) leaf_bytes_ += loaded_.accumulators[i].copy_bytes;
    }
    const std::size_t result_bytes = loaded_.meta.num_outputs * (sizeof(float) + sizeof(double));
    few_rows_ = std::min({max_pass_rows(private_bytes_ + result_bytes + leaf_value_bytes(1), leaf_bytes_),
                          max_encoded_rows(), max_converted_rows()});
    // With fewer features than steps, walking a block that is not full costs more than converting its rows.
    const double steps = loaded_.meta.mean_depth * loaded_.meta.num_trees;
    encodes_doubles_ = target_->picks_doubles() && coded_plans().check().ok() &&
                       static_cast<double>(loaded_.program.encoded_features().size()) >= steps;
  }

  std::unique_ptr<Context> make_context() const override { return std::make_unique<HostContext>(); }

  // Cold, so that it is compiled for size: encoders, which it calls, take the time.
  [[gnu::cold]] Result<CodedRows> encode(Context& context, const AnyRows& given,
                                         std::span<std::uint8_t> out) const override {
    FVM_TRY(check_context(context));
    FVM_ASSIGN(const RowSource rows, row_reader().resolve_to_encode(given, out.size()));
    const std::size_t count = rows.count();
    const std::size_t width = coded_columns();
    for (std::size_t begin = 0; begin < count;) {
      const auto rows_here = static_cast<std::uint32_t>(rows_to_encode(rows, count - begin));
      FVM_TRY(encode_some(static_cast<HostContext&>(context), rows, begin, rows_here,
                          out.data() + code_offset(begin, width)));
      begin += rows_here;
    }
    if (count != 0) std::fill_n(out.data() + code_bytes(count, width), kCodeSlack, 0);
    return CodedRows{out.data(), count, width, coded_bytes(count, width), coded_plans().encoder()};
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
  const CodedPlans& coded_plans() const { return row_reader().coded_plans(); }

  Result<void> run(Context& context, const RowSource& rows, OutputKind output, const CallOptions& options,
                   const Destination& to) const override {
    const std::size_t count = rows.count(), width = output_width(loaded_.program, output, options);
    HostContext& memory = static_cast<HostContext&>(context);
    std::vector<Line>& scratch = memory.scratch;
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
      const bool scores = output == OutputKind::Raw || output == OutputKind::Value;
      pass.in_place = scores && to.values() != nullptr && width == loaded_.meta.num_outputs;
      const Destination here = to.from(begin * width);
      pass.row_count =
          static_cast<std::uint32_t>(pass_rows(pass, rows, count - begin, delivered_bytes(pass, 1, to.type)));
      FVM_TRY(run_pass(pass, rows, begin, here, scratch));
      begin += pass.row_count;
    }
    return {};
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
    pass.trees = {0, loaded_.meta.num_trees, 0};
    pass.base = loaded_.base.data();
    pass.parameters = loaded_.parameters;
    if (!pass.options->rounds) return;
    const Rounds rounds = *pass.options->rounds;
    const auto begins = loaded_.program.round_begins();
    pass.trees = {begins[rounds.begin], begins[rounds.end], 0};
    if (loaded_.meta.rounds == RoundRule::FirstBase && rounds.begin != 0) pass.base = loaded_.no_base.data();
    if (loaded_.meta.rounds == RoundRule::Averages) pass.parameters.divisor = rounds.end - rounds.begin;
  }

  /// Returns whether rows are converted to float32 rows in the scratch memory before anything reads them.
  bool converted(const RowSource& rows) const {
    if (rows.form() != RowForm::Sparse) return rows.form() == RowForm::Dense;
    return derives_columns() ||
           static_cast<double>(rows.listed_values()) >
               kDenseFrom * (static_cast<double>(rows.count()) * loaded_.meta.num_features);
  }

  /// Returns whether the rows of a pass of `row_count` rows are converted. In addition to the rows that
  /// converted(rows) names, these are rows whose values the pass's walks read, if they are sparse, in columns or
  /// float64.
  bool converted(const RowSource& rows, OutputKind output, std::size_t row_count) const {
    const bool read_in_place =
        rows.form() == RowForm::Sparse || rows.form() == RowForm::Columns || rows.form() == RowForm::Doubles;
    return converted(rows) || (read_in_place && reads_values(rows, output, row_count));
  }

  /// Returns the number of rows by which the plan for a pass of `row_count` rows is chosen. Float64 rows take the next
  /// plan whose walks read codes where that saves the time of converting them.
  std::uint32_t plan_rows(const RowSource& rows, std::size_t row_count) const {
    const auto count = static_cast<std::uint32_t>(row_count);
    const bool encoded = encodes_doubles_ && rows.form() == RowForm::Doubles && row_count >= kDoublesToEncode;
    return encoded ? coded_plans().plan_rows(count) : rows.plan_rows(count);
  }

  /// Returns whether walks of a pass of `row_count` rows read values. Contributions do not: paths compare codes.
  bool reads_values(const RowSource& rows, OutputKind output, std::size_t row_count) const {
    return !reads_paths(output) && coded_plans().reads_values(plan_rows(rows, row_count));
  }

  static bool reads_paths(OutputKind output) {
    return output == OutputKind::Contributions || output == OutputKind::Interactions;
  }

  /// Returns whether values for linear leaves stand behind the codes of encoded rows.
  bool adds_values() const { return coded_columns() != columns(); }

  /// Returns how many of `left` rows are encoded together: all, or whole blocks of codes.
  std::size_t rows_to_encode(const RowSource& rows, std::size_t left) const {
    const std::size_t most = adds_values() ? max_encoded_rows() : kMaxPassRows;
    return std::min(left, whole_blocks(converted(rows) ? std::min(most, max_converted_rows()) : most));
  }

  /// Encodes `count` rows from `begin` on. They begin where a block begins, and end where a block or the call's
  /// rows end.
  Result<void> encode_some(HostContext& context, const RowSource& rows, std::size_t begin,
                           std::uint32_t count, std::uint8_t* out) const {
    Pass pass{};
    pass.row_count = count;
    pass.encode_to = out;
    if (adds_values()) {
      FVM_TRY(reserve(context.codes, whole_lines(code_bytes(count, columns()))));
      pass.encode_to = reinterpret_cast<std::uint8_t*>(begin_of(context.codes));
    }
    FVM_TRY(encode_pass(pass, rows, begin, context.scratch));
    clear_unused(count, columns(), pass.encode_to);
    if (adds_values()) rows.write_coded(begin, count, pass.encode_to, loaded_.functions.features(), out);
    return {};
  }

  /// Returns how many of `left` rows go into one pass.
  std::size_t pass_rows(const Pass& pass, const RowSource& rows, std::size_t left,
                        std::size_t delivered_bytes) const {
    if (left <= few_rows_ && pass.width <= loaded_.meta.num_outputs && rows.form() != RowForm::Encoded)
      return left;
    // Calls for leaf numbers and contributions have memory for sums too, because the code may write sums in them.
    const std::size_t result_bytes = pass.in_place ? 0 : loaded_.meta.num_outputs * sizeof(float);
    const std::size_t number_bytes = leaf_number_bytes(pass.output, 1);
    const std::size_t row_bytes =
        private_bytes_ + result_bytes + delivered_bytes + leaf_value_bytes(1) + number_bytes;
    const std::size_t most = std::min(left, max_pass_rows(row_bytes, number_bytes + leaf_bytes_));
    if (rows.form() == RowForm::Encoded)
      return std::min(left, rows.cut(adds_values() ? std::min(most, max_encoded_rows()) : most));
    const std::size_t encoded = std::min(most, max_encoded_rows());
    return converted(rows, pass.output, encoded) ? std::min(encoded, max_converted_rows()) : encoded;
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

  /// Returns the bytes that `rows` rows of a pass write to the scratch memory because another type of numbers is
  /// wanted.
  static std::size_t delivered_bytes(const Pass& pass, std::size_t rows, ResultType type) {
    const ResultType written = written_type(pass.output, type);
    return written == type ? 0 : rows * pass.width * bytes_of(written);
  }

  /// Returns the bytes of the float32 rows that a pass gets in the scratch memory.
  std::size_t converted_bytes(std::size_t rows) const {
    return whole_lines(rows * row_width(loaded_.meta) * sizeof(float));
  }

  /// Returns the bytes of the values that linear leaves read of `rows` rows.
  std::size_t leaf_value_bytes(std::size_t rows) const {
    return rows * loaded_.functions.features().size() * sizeof(double);
  }

  /// Returns the bytes of the leaves' numbers of `rows` rows that are kept for an output.
  std::size_t leaf_number_bytes(OutputKind output, std::size_t rows) const {
    return output == OutputKind::ApproxContributions ? rows * loaded_.meta.num_trees * sizeof(std::int32_t)
                                                     : 0;
  }

  /// Returns whether the program derives columns from features.
  bool derives_columns() const { return !loaded_.row_reader->rules().columns().empty(); }

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
    if (converted == nullptr || !derives_columns()) return rows.read(begin, count, converted);
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
    return converted(rows) && lookup_codes().searches() != 0;
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

  Result<void> run_pass(Pass& pass, const RowSource& rows, std::size_t begin, const Destination& to,
                        std::vector<Line>& scratch) const {
    // What plain rows answer at once comes first: this is a good part of a call of one row.
    const bool coded =
        converted(rows) && !reads_values(rows, pass.output, pass.row_count) && codes_lookups(rows);
    const std::size_t values = coded ? coding_bytes(pass.row_count)
                               : converted(rows, pass.output, pass.row_count)
                                   ? converted_bytes(pass.row_count)
                                   : 0;
    const std::size_t delivered = whole_lines(delivered_bytes(pass, pass.row_count, to.type));
    const bool encoded = rows.form() == RowForm::Encoded;
    const std::size_t codes =
        encoded && !adds_values() ? 0 : code_bytes(pass.row_count, columns()) + kCodeSlack;
    const std::size_t before_codes = values + delivered + scratch_bytes(pass);
    FVM_TRY(reserve(scratch, before_codes + codes));
    std::byte* const memory = begin_of(scratch);
    RowView view;  // the pass refers to it
    if (coded) {
      const auto out = reinterpret_cast<std::uint8_t*>(memory + before_codes);
      FVM_TRY(code_lookups(rows, begin, pass.row_count, out, memory));
      view.codes = out;
    } else if (encoded && adds_values()) {
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
    pass.plan_rows = plan_rows(rows, pass.row_count);
    const Destination written{written_type(pass.output, to.type), delivered == 0 ? to.out : memory + values};
    pass.values = written.values();
    pass.wide_values = written.wide_values();
    pass.labels = written.labels();
    pass.leaves = written.leaves();
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
    const std::size_t values = converted(rows) ? converted_bytes(pass.row_count) : 0;
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

  /// Returns the bytes that the instructions of a pass write: sums, values for linear leaves, and what threads that
  /// compute contributions need.
  std::size_t scratch_bytes(const Pass& pass) const {
    const std::size_t rows = pass.row_count;
    std::size_t bytes = needs_slots(pass) ? slot_bytes(pass) * slot_count(pass) : 0;
    bytes += whole_lines(leaf_number_bytes(pass.output, rows));
    if (!pass.in_place) bytes += whole_lines(rows * loaded_.meta.num_outputs * sizeof(float));
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      bytes += whole_lines(loaded_.accumulators[i].bytes(pass.row_count));
    return bytes + whole_lines(leaf_value_bytes(rows));
  }

  /// Returns whether a pass computes the scores of virtual ensembles.
  bool has_members(const Pass& pass) const {
    if (pass.output != OutputKind::Uncertainty && pass.output != OutputKind::VirtEnsembles) return false;
    return loaded_.program.uncertainty()[0].rule != UncertaintyRule::Trees;
  }

  /// Returns whether threads of a pass take slots of memory.
  bool needs_slots(const Pass& pass) const { return explains_scores(pass.output) || has_members(pass); }

  /// Returns the bytes that a thread needs to compute contributions or uncertainty.
  std::size_t slot_bytes(const Pass& pass) const {
    const ProgramMeta& meta = loaded_.meta;
    const std::size_t numbers = has_members(pass) ? member_numbers(meta.num_outputs, pass.options->ensembles)
                                                  : meta.num_outputs * (std::size_t{meta.num_features} + 1);
    return whole_lines(reads_paths(pass.output) ? ExplainScratch(loaded_.paths).bytes
                                                : numbers * sizeof(double));
  }

  /// Returns the number of threads that compute contributions or uncertainty of a pass's rows at once. Together their
  /// slots take at most kMaxScratchBytes, unless a single slot takes more.
  unsigned slot_count(const Pass& pass) const {
    if (loaded_.executor == nullptr) return 1;
    const std::size_t blocks =
        reads_paths(pass.output) ? (pass.row_count + kCodeRows - 1) / kCodeRows : pass.row_count;
    const std::size_t fit =
        std::max<std::size_t>(1, kMaxScratchBytes / std::max<std::size_t>(1, slot_bytes(pass)));
    return static_cast<unsigned>(std::min(
        {blocks, fit, std::size_t{ScratchSlots::kMaxSlots}, std::size_t{loaded_.executor->threads()}}));
  }

  std::size_t columns() const { return loaded_.columns; }

  /// Returns the most rows whose codes are in a pass. Codes are written and soon read again, so they should
  /// fit the caches. With very many columns they take at most kMaxScratchBytes, unless a single block takes
  /// more.
  std::size_t max_encoded_rows() const {
    if (columns() == 0) return kMaxPassRows;
    const auto rows_in = [&](std::size_t bytes) {
      return std::max<std::size_t>(kCodeRows, bytes / columns() / kCodeRows * kCodeRows);
    };
    return std::min(rows_in(kMaxScratchBytes), std::max(kMinPassRows, rows_in(kMaxPassBytes)));
  }

  /// Returns the most rows that are converted in a pass, so that they should fit the caches. Very wide rows
  /// take at most kMaxScratchBytes, unless a single row takes more.
  std::size_t max_converted_rows() const {
    const std::size_t row_bytes = row_width(loaded_.meta) * sizeof(float);
    if (row_bytes == 0) return kMaxPassRows;
    return std::clamp<std::size_t>(kMaxScratchBytes / row_bytes, 1,
                                   std::max(kMinPassRows, kMaxPassBytes / row_bytes));
  }

  void interpret_pass(Pass& pass, std::byte* scratch) const {
    const auto take = [&](std::size_t bytes) {
      std::byte* const begin = scratch;
      scratch += whole_lines(bytes);
      return begin;
    };
    std::optional<ScratchSlots> slots;
    if (needs_slots(pass)) {
      const unsigned count = slot_count(pass);
      pass.slots = &slots.emplace(scratch, slot_bytes(pass), count);
      scratch += slot_bytes(pass) * count;
    }
    if (pass.output == OutputKind::ApproxContributions)
      pass.leaves = reinterpret_cast<std::int32_t*>(take(leaf_number_bytes(pass.output, pass.row_count)));
    pass.accumulators[0] = pass.in_place
                               ? reinterpret_cast<std::byte*>(pass.values)
                               : take(std::size_t{pass.row_count} * loaded_.meta.num_outputs * sizeof(float));
    for (std::size_t i = 1; i < loaded_.accumulators.size(); ++i)
      pass.accumulators[i] = take(loaded_.accumulators[i].bytes(pass.row_count));
    pass.leaf_values = reinterpret_cast<double*>(take(leaf_value_bytes(pass.row_count)));
    interpret_with(pass, scratch);
    pass.slots = nullptr;
  }

  /// Interprets a pass. `codes` is memory for the codes of its rows.
  void interpret_with(Pass& pass, std::byte* codes) const {
    if (pass.codes == nullptr) pass.codes = pass.encode_to = reinterpret_cast<std::uint8_t*>(codes);
    const FloatEnvironment environment;
    Machine machine(loaded_, pass);
    interpret(loaded_.code, 0, machine);
  }

  /// Returns the most rows of a pass that takes `row_bytes` scratch memory for each of them, of which `leaf_bytes` are
  /// trees' leaves. These should stay in the caches of the threads, which add or deliver them when all trees are
  /// walked.
  std::size_t max_pass_rows(std::size_t row_bytes, std::size_t leaf_bytes) const {
    if (row_bytes == 0) return kMaxPassRows;
    const std::size_t rows = std::clamp<std::size_t>(kMaxScratchBytes / row_bytes, 1, kMaxPassRows);
    if (leaf_bytes == 0) return rows;
    const std::size_t threads = loaded_.executor == nullptr ? 1 : loaded_.executor->threads();
    return LeafOffsets::whole(std::min(rows, threads * std::max(kMinLeafRows, kMaxLeafBytes / leaf_bytes)));
  }

  const std::unique_ptr<const LoadedProgram> owned_;
  const LoadedProgram& loaded_;  ///< *owned_
  const Target* target_;
  mutable std::once_flag lookup_codes_once_;
  mutable LookupCodes lookup_codes_;
  std::size_t private_bytes_ = 0;  ///< Bytes of a row in all accumulators but the result.
  std::size_t leaf_bytes_ = 0;     ///< Bytes of a row in accumulators of per-tree values.
  bool encodes_doubles_ = false;   ///< True if passes of kDoublesToEncode float64 rows and more are encoded.
  /// Calls of up to this many rows that give at most a number for each output take one pass, whatever their rows are.
  std::size_t few_rows_ = 0;
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
