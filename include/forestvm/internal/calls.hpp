// Checks that every backend makes of a call before it runs, so that all backends refuse the same calls with the
// same messages. Also delivers results in the type that the caller wants, and converts numbers of the types of
// rows. Implemented by vm/call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/row_source.hpp>

namespace forestvm {

// The short functions of results are inline because each call of a single row needs several of them.

constexpr std::size_t bytes_of(ResultType type) {
  return type == ResultType::Float64 || type == ResultType::Int64 ? 8 : 4;
}

/// The memory that a call's predictions go to, and their type.
struct Destination {
  ResultType type = ResultType::Float32;
  void* out = nullptr;

  /// Returns the destination that begins `element` elements further on.
  Destination from(std::size_t element) const {
    return {type, out == nullptr ? nullptr : static_cast<std::byte*>(out) + element * bytes_of(type)};
  }

  // These return the memory if its numbers are of their type, otherwise null.
  float* values() const { return as<float>(ResultType::Float32); }
  double* wide_values() const { return as<double>(ResultType::Float64); }
  std::int64_t* labels() const { return as<std::int64_t>(ResultType::Int64); }
  std::int32_t* leaves() const { return as<std::int32_t>(ResultType::Int32); }

 private:
  template <class Number>
  Number* as(ResultType number) const {
    return type == number ? static_cast<Number*>(out) : nullptr;
  }
};

/// Returns the type in which programs write an output that is wanted in `type`: labels as Int64, leaf numbers
/// as Int32, scores as they are wanted.
constexpr ResultType written_type(OutputKind output, ResultType type) {
  if (output == OutputKind::Class) return ResultType::Int64;
  return output == OutputKind::Leaf ? ResultType::Int32 : type;
}

/// Returns whether a call for scores, values, labels or leaf numbers has no options. Other options are for other
/// outputs.
inline bool is_plain(const CallOptions& options) {
  return options.base_margin.data == nullptr && !options.early_stop && !options.rounds &&
         options.features.empty();
}

/// Copies `count` numbers of an output from `written`, in the program's type, to `to`, in the caller's type.
void deliver(OutputKind output, const void* written, std::size_t count, const Destination& to);

/// Returns margin number `i` of a call that brings some.
double margin_at(const BaseMargin& margins, std::size_t i);

/// Returns the mean of the trees alone over the training rows, for each output of a program that has contributions or
/// interactions of the kind `output`: the expected score without base scores, to which a call's margins are added.
std::vector<double> tree_means(const Program& program, OutputKind output);

/// Returns the mean of an output's trees over the training rows, for the explained trees from number `begin` on and
/// before `end`. It is in the type of the scores, to which XGBoost rounds it before it adds base scores.
double mean_of_trees(const Program& program, std::size_t output, std::size_t begin, std::size_t end);

/// Returns the number of explained trees for each tree of the model: a tree whose leaves are vectors is one for each
/// output.
inline std::uint32_t explained_per_tree(const Program& program) {
  return program.leaf_vectors().empty() ? 1 : program.meta().num_outputs;
}

/// Returns the rounds of a call, which are all of the program's unless it chooses some. The program has rounds.
Rounds rounds_of(const Program& program, const CallOptions& options);

/// Returns the number of rounds by which the raw scores of a call are divided, because the model averages its trees; 0
/// for other models. Contributions add up to raw scores, which are not divided. The program has contributions.
inline double averaged_rounds(const Program& program, const CallOptions& options) {
  if (program.meta().rounds != RoundRule::Averages) return 0;
  return options.rounds ? options.rounds->end - options.rounds->begin : program.meta().divisor;
}

/// Returns the number of stages of a call for staged scores.
inline std::uint32_t stage_count(const Rounds& rounds, std::uint32_t every) {
  return (rounds.end - rounds.begin - 1) / every + 1;
}

/// Returns the number of rounds from the end of one virtual ensemble to the end of the next, which are those before
/// rounds.end; 0 if there are too few rounds for the ensembles of a call.
inline std::uint32_t period_of(const Rounds& rounds, const CallOptions& options) {
  return options.ensembles == 0 || options.ensembles > rounds.end / 2 ? 0
                                                                      : rounds.end / 2 / options.ensembles;
}

/// Returns the factor of the scores of a virtual ensemble that ends some rounds before the model's last: see
/// UncertaintyDesc. It is a float32 number, as in CatBoost.
double ensemble_factor(const Program& program, std::uint32_t rounds_left);

/// A Predictor that checks each call, and resolves its rows, before it runs.
class CallPredictor : public Predictor {
 public:
  Result<void> predict_with(Context& context, const AnyRows& rows, OutputKind output, ResultType type,
                            const CallOptions& options, void* out) const final;

  std::size_t coded_columns() const final { return row_reader().coded_plans().columns(); }

 protected:
  /// `backend` is the address that identifies the backend: see Context::backend.
  explicit CallPredictor(const void* backend) : backend_(backend) {}

  /// Returns Usage if another backend made the context.
  Result<void> check_context(const Context& context) const;

 private:
  virtual const RowReader& row_reader() const = 0;
  /// Predicts the rows. `to` has memory if there is anything to write. The program can honour the options.
  virtual Result<void> run(Context& context, const RowSource& rows, OutputKind output,
                           const CallOptions& options, const Destination& to) const = 0;

  const void* backend_;
};

std::size_t bytes_of(RowType type);

/// Returns whether each value of the type is a float32 number.
bool is_float32(RowType type);

/// Writes the float32 or float64 nearest to each of `count` values. The values need not be aligned.
void to_float32(RowType type, const void* values, std::size_t count, float* out);
void to_float64(RowType type, const void* values, std::size_t count, double* out);

/// Returns the index of the first value that has no equal float64, which is an integer beyond 2^53; `count` if there
/// is none.
std::size_t first_inexact(RowType type, const void* values, std::size_t count);

/// Returns the text of a value that first_inexact found.
std::string inexact_text(RowType type, const void* value);

/// Returns the error for a number that is no float64, in a model that compares in float64. `instead` says
/// what to do if rounding is intended.
Failure not_exact(std::string_view where, std::string_view number, std::string_view instead);

}  // namespace forestvm
