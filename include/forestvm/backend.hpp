// The whole contract of a backend: it loads a program once and then answers calls, each with a context of the
// calling thread. A backend is one function that makes Predictors of programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// The type of a row's values. A value is compared as the float32 nearest to it, as the trainers of float32
/// models do. Programs of float64 scores (LightGBM's), which compare in float64, refuse rows with a value
/// that no float32 is equal to. Float16 is IEEE binary16. A Bool is a byte: 0, or else 1.
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
  std::size_t stride = 0;  ///< values from one row to the next
  RowType type = RowType::Float32;
  std::size_t column_stride = 1;  ///< values from one feature of a row to the next
};

/// What the values that sparse rows do not hold are.
enum class Absent : std::uint8_t {
  Missing,  ///< NaN, as XGBoost reads sparse rows
  Zero,     ///< 0, as LightGBM reads them
};

/// Sparse rows to predict (CSR): row i holds the values [offsets[i], offsets[i + 1]), each of the feature
/// that `columns` has at its place. The features of a row come in any order; of several values of a feature
/// in one row the last counts. A value that is NaN is missing. offsets[0] may be more than 0: a part of other
/// rows.
struct CsrRows {
  std::size_t count = 0;                  ///< rows
  const std::int64_t* offsets = nullptr;  ///< count + 1, none below the one before, up to value_count
  const std::int32_t* columns = nullptr;  ///< value_count, each below num_features
  const void* values = nullptr;           ///< value_count
  std::size_t value_count = 0;
  Absent absent = Absent::Missing;
  RowType type = RowType::Float32;  ///< of the values
};

/// Rows that are encoded already: rank codes, one byte for each column of a program's encoder, as
/// core/encoder.hpp lays them out. Predictor::encode makes them; they may be kept, and split where a block of
/// kCodeRows rows begins. Predictions of them are those of the rows that they were made of, without the time
/// that encoding takes. Any bytes are safe: a code is compared with other codes and never a place in memory,
/// so that codes which no row has lead to some leaf of each tree. Aligned to 64 bytes they are read fastest.
struct CodedRows {
  const std::uint8_t* codes = nullptr;
  std::size_t count = 0;       ///< rows
  std::size_t columns = 0;     ///< as many as the program has
  std::size_t byte_count = 0;  ///< that may be read at `codes`: coded_bytes(count, columns) or more
  std::uint64_t encoder = 0;   ///< encoder_id of the program that they were made for
};

/// Bytes that coded rows take: their blocks, and behind those kCodeSlack bytes that may be read. SIZE_MAX if
/// that is more than memory holds.
std::size_t coded_bytes(std::size_t rows, std::size_t columns);

/// Rows in the memory of a GPU, float32, as DLPack and __cuda_array_interface__ describe them. Their
/// predictions go to memory of the same device: the call returns when its work is queued on the stream, and
/// both memories stay as they are until the stream has come to its end.
struct DeviceRows {
  const float* data = nullptr;  ///< memory of the device
  std::size_t count = 0;
  std::size_t stride = 0;  ///< values from one row to the next; at least num_features
  int device = 0;          ///< the device's ordinal
  void* stream = nullptr;  ///< a cudaStream_t or hipStream_t of the device; null: its default stream
};

/// Rows as callers have them.
using AnyRows = std::variant<RowBlock, CsrRows, CodedRows, DeviceRows>;

inline std::size_t row_count(const AnyRows& rows) {
  if (const auto* dense = std::get_if<RowBlock>(&rows)) return dense->count;
  if (const auto* csr = std::get_if<CsrRows>(&rows)) return csr->count;
  if (const auto* on_device = std::get_if<DeviceRows>(&rows)) return on_device->count;
  return std::get_if<CodedRows>(&rows)->count;
}

/// The types of predictions.
enum class ResultType : std::uint8_t { Float32, Float64, Int32, Int64 };

/// What one call needs to write to: kept by the caller, one per calling thread, reused from call to call.
/// After it has grown to a batch size, further calls of that size allocate nothing.
class Context {
 public:
  virtual ~Context() = default;

  /// The backend that made it: an address that no other backend gives its contexts.
  const void* backend() const { return backend_; }

 protected:
  explicit Context(const void* backend) : backend_(backend) {}

 private:
  const void* backend_;
};

/// A program loaded by a backend. Immutable; every method may be called from many threads at once.
class Predictor {
 public:
  virtual ~Predictor() = default;

  virtual std::unique_ptr<Context> make_context() const = 0;

  /// Writes the output's row_count(rows) x output_width(output) numbers to `out`, in C order: raw scores and
  /// values as Float32 or Float64, labels and leaf numbers as Int32 or Int64. Float64 scores of a program
  /// that has them are rounded once, at the end, to make them Float32. A label is an index; leaves are
  /// numbered as the trainer counts a tree's nodes, trees in the model's order.
  ///
  /// Sparse rows are not made dense where a program's walks read rank codes (encode(u8)), else a bounded
  /// number at a time; rows that are not row-major float32 are converted a bounded number at a time. Encoded
  /// rows go through the plan for their number if its walks read codes alone, else through the next plan of
  /// which that is true: a few rows may take as long as a block of them then.
  ///
  /// Rows in a GPU's memory are for the GPU's backend, and `out` is memory of that GPU then. One context's
  /// calls run one after the other; where they change the stream, the host waits for the call before. A
  /// stream may be one that the caller captures: the context has made a call of as many rows before, and the
  /// caller's graph uses its memory: the context outlives it, and makes no larger call, and no other one
  /// while it runs.
  ///
  /// Errors: Usage for a type that the output would lose digits in, a context of another backend, a null
  /// pointer, rows that overlap or are too short, coded rows of another number of columns or in too few
  /// bytes, and, with the row, for offsets that descend or leave the values and for a column that the model
  /// does not have. Usage for rows in the memory of another device, and for a stream that is captured while
  /// the context lacks memory. Refused for labels of a model without classes; with the row, for a value that
  /// is no float32 where the program has float64 scores; for codes of another encoder, and for any where
  /// every plan has walks that read values; for rows in a GPU's memory of a program that takes zeros for
  /// missing values, and for their labels as Int32 and leaf numbers as Int64. Environment where a device has
  /// too little memory for a few rows, and where it fails. Where an error names a row, rows before it may
  /// have been predicted.
  virtual Result<void> predict_as(Context& context, const AnyRows& rows, OutputKind output, ResultType type,
                                  void* out) const = 0;

  /// Predicts raw scores or values: `output` is Raw or Value, else Usage.
  Result<void> predict(Context& context, const AnyRows& rows, OutputKind output, float* out) const;
  Result<void> predict_wide(Context& context, const AnyRows& rows, OutputKind output, double* out) const;

  /// Predicts labels.
  Result<void> predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const;

  /// Predicts leaf numbers.
  Result<void> predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const;

  /// Encodes rows, dense or sparse, into `out`, which has room for coded_bytes(rows, columns) bytes, columns
  /// being those of the program (section_Columns). What no row has is zero: equal rows give equal bytes.
  /// Result: the rows, for predict and its like, as long as `out` is there. Errors: as predict's; Usage for
  /// too little room and for coded rows; Refused where no plan could take the result.
  virtual Result<CodedRows> encode(Context& context, const AnyRows& rows,
                                   std::span<std::uint8_t> out) const = 0;

  virtual const Program& program() const = 0;

  /// What runs, for people: backend, target, threads, walkers.
  virtual std::string describe() const = 0;
};

/// Columns that a prediction of this kind has; 0 if the program cannot give it.
std::uint32_t output_width(const ProgramMeta& meta, OutputKind output);

struct BackendOptions {
  unsigned threads = 1;         ///< 1: everything runs inline in the caller; 0: as many as the machine has
  std::string target = "auto";  ///< a row of vm/host/targets/targets.def, or auto: what the environment
                                ///< variable FORESTVM_TARGET names, or else the best that this CPU runs
};

/// Loads a program into the host VM. Refused when its loops are mapped to a GPU; Usage or Environment when
/// the target is unknown or this CPU lacks it; Environment when threads cannot be started. Predictors of as
/// many threads share them, and a forked process starts them again.
Result<std::unique_ptr<Predictor>> host_backend(const Program& program, const BackendOptions& options = {});

struct EmulatorOptions {
  std::uint64_t seed = 1;  ///< of the orders in which the threads of a block take turns
  unsigned warp = 32;      ///< threads of a warp: 32, or 64
};

/// Loads a program into the emulator of a GPU: every thread of a launch in turn, on the calling thread, far
/// slower than the host VM. Answers are those of a GPU. Refused when no loop is mapped to a GPU, or when its
/// launches are larger than a GPU allows. It encodes no rows.
Result<std::unique_ptr<Predictor>> emulator_backend(const Program& program,
                                                    const EmulatorOptions& options = {});

enum class GpuVendor : std::uint8_t { Cuda, Hip };

struct GpuOptions {
  GpuVendor vendor = GpuVendor::Cuda;
  int device = 0;  ///< its ordinal, as the vendor counts
};

/// Loads a program into a GPU, through the vendor's library libforestvm_cuda.so or libforestvm_hip.so: from
/// the folder that the environment variable FORESTVM_PLUGINS names, or else from beside this library or
/// program (or the folder of libraries there), or else from where the loader looks. It encodes no rows:
/// the host does, for a program with the same encoder. Environment if there is no such library, driver or
/// device; Refused when no loop is mapped to a GPU, when launches are larger than the device allows, or when
/// it has no kernel for a layout.
Result<std::unique_ptr<Predictor>> gpu_backend(const Program& program, const GpuOptions& options = {});

/// The devices of a vendor, for people, by their ordinals. Environment if there is no library, driver or
/// device.
Result<std::vector<std::string>> gpu_devices(GpuVendor vendor);

/// The CPU targets built into the host VM, best first.
std::vector<std::string_view> host_targets();

}  // namespace forestvm
