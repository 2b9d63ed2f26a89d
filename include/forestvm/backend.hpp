// The whole contract of a backend: it loads a program once and then answers calls, each with a context of the
// calling thread. A backend is one function that makes Predictors of programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// The type of a row's values. What is not float32 is compared as the float32 nearest to it, as the trainers
/// of float32 models do; programs of float64 scores (LightGBM's) refuse Float64. Float16 is IEEE binary16, as
/// uint16.
enum class RowType : std::uint8_t { Float32, Float64, Float16 };

/// Rows to predict: n x num_features values, each row contiguous. NaN is a missing value.
struct RowBlock {
  const void* data = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;  ///< values from one row to the next; at least num_features
  RowType type = RowType::Float32;
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
  const float* values = nullptr;          ///< value_count
  std::size_t value_count = 0;
  Absent absent = Absent::Missing;
};

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

  /// Raw scores or values: writes rows.count x output_width(output) float32, C order; those of a program of
  /// float64 scores are rounded once, at the end. `output` is Raw or Value. Errors: Usage for a stride below
  /// num_features or a context of another backend; Refused for Float64 rows of a program of float64 scores.
  virtual Result<void> predict(Context& context, const RowBlock& rows, OutputKind output,
                               float* out) const = 0;

  /// The same in float64: the very scores and values of a program of float64 scores, the float32 ones of any
  /// other.
  virtual Result<void> predict_wide(Context& context, const RowBlock& rows, OutputKind output,
                                    double* out) const = 0;

  /// Labels: writes rows.count x output_width(Class) indices. Refused if the model has no classes.
  virtual Result<void> predict_class(Context& context, const RowBlock& rows, std::int64_t* out) const = 0;

  /// Leaf numbers, as the trainer counts a tree's nodes: writes rows.count x num_trees, trees in the model's
  /// order.
  virtual Result<void> predict_leaf(Context& context, const RowBlock& rows, std::int32_t* out) const = 0;

  /// The same for sparse rows; none is made dense where a program's walks read rank codes (encode(u8)), else
  /// a bounded number at a time. Errors: Usage, with the row, for offsets that descend or leave the values
  /// and for a column that the model does not have; rows before it may have been predicted then.
  virtual Result<void> predict(Context& context, const CsrRows& rows, OutputKind output,
                               float* out) const = 0;
  virtual Result<void> predict_wide(Context& context, const CsrRows& rows, OutputKind output,
                                    double* out) const = 0;
  virtual Result<void> predict_class(Context& context, const CsrRows& rows, std::int64_t* out) const = 0;
  virtual Result<void> predict_leaf(Context& context, const CsrRows& rows, std::int32_t* out) const = 0;

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
/// the target is unknown or this CPU lacks it.
Result<std::unique_ptr<Predictor>> host_backend(const Program& program, const BackendOptions& options = {});

/// The CPU targets built into the host VM, best first.
std::vector<std::string_view> host_targets();

}  // namespace forestvm
