// The interface of a backend: it loads a program once, then answers calls, each with a context that belongs
// to the calling thread. A backend is a function that makes Predictors from programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// The type of a row's values. A value is compared as the float32 nearest to it, as trainers of float32
/// models do. Programs that compare in float64 (row_type; LightGBM's) do so exactly, and refuse rows with a
/// 64-bit integer that has no equal float64. Float16 is IEEE binary16. A Bool is one byte: 0 is 0, any other
/// byte is 1.
enum class RowType : std::uint8_t {
  Float32,
  Float64,
  Float16,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Bool,
};

/// Rows to predict: n x num_features values, row-major, column-major or a part of such a matrix: value
/// (row, feature) is number row x stride + feature x column_stride. NaN is a missing value. Neither rows nor
/// columns overlap: with a column_stride of 1 the stride is at least num_features.
struct RowBlock {
  const void* data = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;  ///< Values from one row to the next.
  RowType type = RowType::Float32;
  std::size_t column_stride = 1;  ///< Values from one feature of a row to the next.
  /// True if hashed features (see Model) hold the codes of their categories, which are int32 numbers, instead of
  /// numbers that stand for their decimal text. The type is Float64, Int32 or Int64 then.
  bool hashed = false;
};

/// The value of features that a sparse row does not list.
enum class Absent : std::uint8_t {
  Missing,  ///< NaN, as XGBoost reads sparse rows.
  Zero,     ///< 0, as LightGBM reads them.
};

/// Sparse rows to predict (CSR). Row i has the values [offsets[i], offsets[i + 1]); `columns` gives the
/// feature of each. The features of a row come in any order; if one is repeated, its last value counts. NaN
/// is a missing value. offsets[0] may be above 0, when the rows are a part of a larger matrix.
struct CsrRows {
  std::size_t count = 0;                  ///< Number of rows.
  const std::int64_t* offsets = nullptr;  ///< count + 1 numbers, not descending, each at most value_count.
  const std::int32_t* columns = nullptr;  ///< Feature of each value: value_count numbers below num_features.
  const void* values = nullptr;           ///< The values, value_count of them.
  std::size_t value_count = 0;
  Absent absent = Absent::Missing;
  RowType type = RowType::Float32;  ///< Type of the values.
  bool hashed = false;              ///< See RowBlock.
};

/// Rows that are already encoded: rank codes, one byte for each column of a program's encoder, laid out as
/// core/encoder.hpp describes. If leaves are linear functions of the row, the values of the features that some function
/// reads stand behind the codes of each block, row by row, the features ascending, as float64: they count as 8 more
/// columns each. Predictor::encode makes encoded rows. They may be stored, and split at multiples of
/// kCodeRows rows. Their predictions equal the predictions of the original rows, without the time for encoding. Any
/// bytes are safe: codes are only compared with other codes, never used as an address, so codes that no row
/// has lead to some leaf of each tree. Reading is fastest if they are aligned to 64 bytes.
struct CodedRows {
  const std::uint8_t* codes = nullptr;
  std::size_t count = 0;       ///< Number of rows.
  std::size_t columns = 0;     ///< Predictor::coded_columns of the program.
  std::size_t byte_count = 0;  ///< Readable bytes at `codes`: at least coded_bytes(count, columns).
  std::uint64_t encoder = 0;   ///< encoder_id of the program for which the rows were encoded.
};

/// Bits of the NaN that stands in Column::categories for a category that the trainer refuses in a row.
inline constexpr std::uint64_t kRefusedCategory = 0x7ff8'0000'0000'0fed;

/// The content of a column's memory.
enum class ColumnForm : std::uint8_t {
  Numbers,    ///< Values of the column's type.
  Bits,       ///< A bit for each row, the lowest of a byte first: 0 or 1.
  Indices,    ///< Integers of the column's type: indices in `categories`.
  Missing,    ///< No memory: each value is missing.
  Text,       ///< Offsets (Int32 or Int64, one more than rows) of texts that follow one another in `text`.
  TextViews,  ///< The 16-byte views of Arrow's utf8_view, which hold a text or its offset in one of `buffers`.
};

/// The values of one feature, as Arrow lays columns out. Nothing needs alignment, but float32 numbers that have it are
/// read fastest.
struct Column {
  const void* values = nullptr;
  ColumnForm form = ColumnForm::Numbers;
  RowType type = RowType::Float32;
  /// Indices: true if an index below 0 is missing; otherwise it is an error.
  bool negative_is_missing = false;
  /// A bit for each row, 0 if its value is missing; null if none is.
  const std::uint8_t* validity = nullptr;
  std::size_t offset = 0;              ///< Number of the first row's value in `values`, and of its bit.
  const double* categories = nullptr;  ///< Indices: the numbers that they stand for; NaN is missing.
  std::size_t category_count = 0;
  bool refuses = false;        ///< Indices: true if some of `categories` may be kRefusedCategory.
  const char* text = nullptr;  ///< Text: the first character.
  /// TextViews: the buffers of characters, then one of their sizes (int64).
  const void* const* buffers = nullptr;
  std::size_t buffer_count = 0;  ///< TextViews: number of the buffers of characters.
};

class CategoryTexts;

/// Rows whose features are columns of their own types. A missing value is a NaN, or has a validity bit of 0. Columns of
/// features that the program does not read may have no memory.
struct ColumnRows {
  std::size_t count = 0;            ///< Number of rows.
  std::span<const Column> columns;  ///< A column for each feature.
  bool hashed = false;              ///< See RowBlock. True: columns hold only numbers; indices are codes.
  const CategoryTexts* texts = nullptr;  ///< The program's texts; columns of texts need them.
};

/// Returns the size of coded rows in bytes, with the kCodeSlack readable bytes behind the last block;
/// SIZE_MAX if it is more than memory holds.
std::size_t coded_bytes(std::size_t rows, std::size_t columns);

/// Float32 rows in the memory of a GPU, described as DLPack and __cuda_array_interface__ do. Predictions go
/// to memory of the same device. The call returns once its work is queued on the stream; both memories must
/// stay as they are until that work is done.
struct DeviceRows {
  const float* data = nullptr;  ///< First value, in memory of the device.
  std::size_t count = 0;
  std::size_t stride = 0;  ///< Values from one row to the next; at least num_features.
  int device = 0;          ///< Ordinal of the device.
  void* stream = nullptr;  ///< A cudaStream_t or hipStream_t of the device; null: its default stream.
};

/// Rows in one of the forms in which callers have them.
using AnyRows = std::variant<RowBlock, CsrRows, CodedRows, DeviceRows, ColumnRows>;

inline std::size_t row_count(const AnyRows& rows) {
  return std::visit([](const auto& form) { return form.count; }, rows);
}

/// Margins that a call brings: the sums of its rows start from them instead of the model's base scores. They are
/// row-major, one for each row and output, and finite. Where scores are float32, they are rounded to float32. The
/// expected score of contributions and interactions is then the row's margin and the mean of the trees.
struct BaseMargin {
  const void* data = nullptr;  ///< Null: the call brings none.
  std::size_t rows = 0;        ///< Number of rows, which is that of the call.
  std::size_t outputs = 0;     ///< Numbers of a row, as many as the program has outputs.
  bool float64 = false;        ///< True if they are float64 numbers, otherwise float32.
};

/// LightGBM's early stop of a prediction (pred_early_stop): after every `every` rounds of trees, a row whose raw scores
/// are decided gets no more. What "decided" means is the model's EarlyStopRule.
struct EarlyStop {
  double margin = 10;        ///< Distance of raw scores above which a row is decided; 0 or more.
  std::uint32_t every = 10;  ///< Rounds of trees between two checks; 1 or more.
};

/// The options of a call besides its output.
struct CallOptions {
  BaseMargin base_margin{};
  std::optional<EarlyStop> early_stop{};
  /// The rounds whose trees count; without them all. Not for leaf numbers, quantiles and approximate contributions.
  std::optional<Rounds> rounds{};
  std::uint32_t every = 1;  ///< Staged: rounds from one stage to the next; 1 or more.
  /// Contributions of all kinds and interactions: the features that are wanted, ascending; empty: all.
  std::span<const std::uint32_t> features{};
  std::uint32_t ensembles = 10;  ///< Virtual ensembles and uncertainty: the number of ensembles; 1 or more.
  static constexpr double kQuantiles[] = {0.1, 0.5, 0.9};
  std::span<const double> quantiles =
      kQuantiles;  ///< Quantile: the quantiles, each from 0 to 1, in any order.
};

/// The types of predictions.
enum class ResultType : std::uint8_t { Float32, Float64, Int32, Int64 };

/// The memory that a call writes to. The caller keeps one per calling thread and reuses it. Once it has grown
/// to a batch size, further calls of that size allocate nothing.
class Context {
 public:
  virtual ~Context() = default;

  /// Returns an address that identifies the backend that made this context, and whose predictors can use it.
  const void* owner() const { return owner_; }

 protected:
  explicit Context(const void* owner) : owner_(owner) {}

 private:
  const void* owner_;
};

/// A program loaded by a backend. It is immutable; every method may be called from many threads at once.
class Predictor {
 public:
  virtual ~Predictor() = default;

  virtual std::unique_ptr<Context> make_context() const = 0;

  /// Writes row_count(rows) x output_width(...) numbers to `out`, in C order: raw scores and values as
  /// Float32 or Float64, labels and leaf numbers as Int32 or Int64. Float64 scores that are wanted as Float32
  /// are rounded once, at the end. A label is an index. Leaves are numbered as the trainer numbers a tree's
  /// nodes; trees come in the model's order.
  ///
  /// Programs whose walks read rank codes (encode(u8)) encode sparse rows, columns of numbers and column-major rows
  /// where they lie. For other programs a bounded number of these rows at a time is made dense and row-major; so
  /// are columns of texts for all programs. Other rows that are not row-major float32 are converted, a bounded
  /// number at a time. Encoded rows use the plan for their row count if it reads only codes, otherwise the nearest
  /// such plan, preferably a larger one; a small call may then cost as much as a full block.
  ///
  /// Rows in a GPU's memory need that GPU's backend, and `out` is memory of the same GPU. Calls with one
  /// context run one after the other; when the stream changes, the host waits for the previous call. Stream
  /// capture is allowed if (1) this context has already predicted at least as many rows, and (2) the context
  /// outlives the graph. While the graph exists, make no larger call with this context; while it runs, make
  /// none.
  ///
  /// Contributions are num_outputs x (num_features + 1) scores for a row. For each output, these are what each
  /// feature contributes to its raw score (exact path-dependent SHAP values) and then the expected score; their sum
  /// is the raw score. The contributions of a row have the same bits in every batch, form of rows, number of
  /// threads and CPU target, and on GPUs. They need a program compiled with CompileOptions::contributions.
  /// Interactions are num_outputs symmetric matrices of num_features + 1 rows and columns for a row, whose rows add
  /// up to the contributions; the last number of each is the expected score. They need a program compiled with
  /// CompileOptions::interactions.
  ///
  /// Approximate contributions have the form of contributions. What a feature contributes are the changes of the mean
  /// score of the training rows at its splits on the row's way through each tree. They have the bits of XGBoost's
  /// approx_contribs, and need a program compiled with CompileOptions::approx_contributions.
  ///
  /// A call that chooses features (CallOptions::features) gets num_outputs x (features.size() + 1) contributions, and
  /// interactions in matrices of features.size() + 1 rows and columns: other features have no row or column.
  ///
  /// Base margins need a model of XGBoost or LightGBM that does not average its trees. LightGBM's own predict takes
  /// no margins: here sums start from them as LightGBM's scores of training rows start from init_score. Early stop
  /// needs a model of LightGBM that has it, and a program with its rounds (CompileOptions::keeps_leaves).
  ///
  /// Outputs of trees are scores, too: what the leaf of each tree, in the model's order, adds to the raw score, or to
  /// each raw score if leaves are vectors. The scores of stages are the raw scores after every few rounds of trees
  /// (CallOptions::every) and after the last, for each of them num_outputs numbers. Both, and the choice of rounds in a
  /// call, are for programs that keep every tree's leaf. Scores of chosen rounds and of stages have the bits of a
  /// program that was compiled from these rounds alone (keep_rounds) under the contract `trainer`.
  ///
  /// Virtual ensembles are CatBoost's: with p, the number of rounds divided by twice the number of ensembles
  /// (CallOptions::ensembles), the last one ends with the last round and each other one p rounds before the next. Each
  /// has num_outputs raw scores, from which the shrinkage of training is removed. Uncertainty has the numbers that its
  /// UncertaintyRule names. Both need a program that keeps every tree's leaf, and rounds that begin with the first.
  ///
  /// Quantiles are those of the targets of the training rows in the leaves that the row reaches: a number for each of
  /// CallOptions::quantiles, computed in float64, or NaN if there are no such rows. They need a program compiled with
  /// CompileOptions::samples.
  ///
  /// Usage: a type in which the output would lose digits; a context of another backend; a null pointer; rows that
  /// overlap or are too short; coded rows with another number of columns or too few bytes; sparse rows whose
  /// offsets descend or leave the values, or with a column that the model does not have (the error names the row);
  /// a column that the program reads but that has no memory; a column of texts for a feature whose categories have
  /// no names; a column with an index that its dictionary lacks; rows in another device's memory; a captured stream
  /// when the context lacks memory; margins whose shape is not that of the raw scores, or that are not finite (the
  /// error names row and output); margins for leaf numbers, outputs of trees or quantiles; early stop for leaf numbers,
  /// contributions or interactions; early stop with a margin below 0 or NaN, or after every 0 rounds; rounds that are
  /// empty, reversed or beyond the program's, or for outputs that have none (CallOptions::rounds); stages of 0 rounds;
  /// no virtual ensembles, or more than half the number of rounds; features that do not ascend, that the model does not
  /// have, or for other outputs than contributions and interactions.
  ///
  /// Refused: labels of a model without classes; contributions, interactions, uncertainty or quantiles of a program
  /// without them; outputs of trees and stages, and rounds, of a program that does not keep leaves; stages and rounds
  /// of a model whose trees are no rounds of boosting; an integer that has no equal float64 where the program compares
  /// in float64 (the error names the row); codes of another encoder, and all codes if walks of every plan read values;
  /// rows in a GPU's memory if the program takes zeros for missing values or has thresholds that float32 cannot tell
  /// apart, and for such rows labels as Int32 and leaf numbers as Int64; margins for other models, for scores of
  /// programs that count sums exactly, and for approximate contributions of programs that an earlier forestvm compiled;
  /// early stop for a model or a program that does not have it; on GPUs a choice of features, and rounds of programs
  /// that add trees in another order than the model's without keeping leaves; for rows in a GPU's memory also
  /// quantiles, margins, and rounds of contributions and interactions.
  ///
  /// Environment: a device that fails, or has too little memory for a few rows.
  ///
  /// Rows before the one that an error names may already have been predicted.
  virtual Result<void> predict_with(Context& context, const AnyRows& rows, OutputKind output, ResultType type,
                                    const CallOptions& options, void* out) const = 0;

  /// Predicts without options.
  Result<void> predict_as(Context& context, const AnyRows& rows, OutputKind output, ResultType type,
                          void* out) const {
    return predict_with(context, rows, output, type, {}, out);
  }

  /// Predicts row-major float32 rows without options if the context's last call was like this one: by this predictor,
  /// with the same number of rows, stride, output and type. Such a call skips checks and planning, which take longer
  /// than the walks of one row in a small forest. Returns false, and writes nothing, if the last call differed or
  /// cannot be repeated (its rows were converted, it took several passes, or it ran on a GPU), if a pointer is null,
  /// or if `capacity` is less than the number of predictions. predict_with tries this first; a caller that would have
  /// to prepare its arguments for predict_with can try it before.
  virtual bool predict_again(Context& context, const RowBlock& rows, OutputKind output, ResultType type,
                             void* out, std::size_t capacity) const {
    (void)context, (void)rows, (void)output, (void)type, (void)out, (void)capacity;
    return false;
  }

  /// Predict any output but labels and leaf numbers, as float32 or as float64 numbers. Usage for these two.
  Result<void> predict(Context& context, const AnyRows& rows, OutputKind output, float* out) const;
  Result<void> predict_wide(Context& context, const AnyRows& rows, OutputKind output, double* out) const;

  /// Predicts labels.
  Result<void> predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const;

  /// Predicts leaf numbers.
  Result<void> predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const;

  /// Encodes rows in the host's memory into `out`, which has room for coded_bytes(rows, columns) bytes, where
  /// `columns` is coded_columns(). Bytes that belong to no row are zero, so that equal rows give
  /// equal bytes. Returns the encoded rows, which refer to `out`. Errors: those of predict_as; Usage for too
  /// little room and for rows that are already encoded; Refused if no plan could take the result.
  virtual Result<CodedRows> encode(Context& context, const AnyRows& rows,
                                   std::span<std::uint8_t> out) const = 0;

  /// Returns the number of columns of encoded rows: see CodedRows.
  virtual std::size_t coded_columns() const = 0;

  virtual const Program& program() const = 0;

  /// Describes what runs, for people: backend, target, threads, walkers.
  virtual std::string describe() const = 0;
};

/// Returns the numbers of a row's prediction of this kind, by a call with these options; 0 if the program cannot give
/// it, or the options make no sense.
std::uint32_t output_width(const Program& program, OutputKind output, const CallOptions& options = {});

/// Returns the error of every call for this output with these options but margins, whatever its rows are. Programs for
/// GPUs may refuse further options.
Result<void> check_call(const Program& program, OutputKind output, const CallOptions& options);

struct BackendOptions {
  /// Number of threads, including the calling one: 1 runs everything in the caller, 0 means one per CPU of the
  /// machine.
  unsigned threads = 1;
  /// CPU target of the walkers: a row of vm/host/targets/targets.def, or auto, which means the target that the
  /// environment variable FORESTVM_TARGET names, otherwise the best that this CPU runs.
  std::string target = "auto";
};

/// Loads a program into the host VM. Refused if its loops are mapped to a GPU; Usage or Environment if the
/// target is unknown or this CPU lacks it; Environment if threads cannot be started. Predictors with equal
/// numbers of threads share them; a forked process starts its own.
Result<std::unique_ptr<Predictor>> host_backend(const Program& program, const BackendOptions& options = {});

/// Limits every later call of this thread to `limit` threads of the host, including the calling one, whatever
/// number its predictor was loaded for. Programs that divide the machine's threads among several libraries need
/// this. 0, the initial value, means no limit.
void limit_threads(unsigned limit);

/// Returns the calling thread's limit; 0 if it has none.
unsigned thread_limit();

enum class GpuVendor : std::uint8_t { Cuda, Hip };

struct GpuOptions {
  GpuVendor vendor = GpuVendor::Cuda;
  int device = 0;  ///< Ordinal of the device, as the vendor counts.
};

/// Loads a program into a GPU through the vendor's library, libforestvm_cuda.so or libforestvm_hip.so. The library
/// is loaded from the folder that the environment variable FORESTVM_PLUGINS names, otherwise from beside this
/// library or program (or the folder of libraries there), otherwise from where the loader looks. The predictor
/// encodes no rows; a host predictor of a program with the same encoder does. Environment if there is no such
/// library, driver or device; Refused if no loop is mapped to a GPU, if launches are larger than the device allows,
/// or if the library has no kernel for a layout.
Result<std::unique_ptr<Predictor>> gpu_backend(const Program& program, const GpuOptions& options = {});

/// Lists a vendor's devices for people, by ordinal. Environment if there is no library, driver or device.
Result<std::vector<std::string>> gpu_devices(GpuVendor vendor);

/// Returns the CPU targets built into the host VM, best first.
std::vector<std::string_view> host_targets();

}  // namespace forestvm
