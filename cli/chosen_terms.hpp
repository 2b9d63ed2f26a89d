// Applies the options --features, --top, --sparse and --averaged, which say which of a row's contributions or
// interactions are written, and whether they are divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/bytecode.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "cli/io/sparse_predictions.hpp"

namespace forestvm::cli {

extern const Option kFeaturesOption;
extern const Option kTopOption;
extern const Option kSparseOption;
extern const Option kAveragedOption;

/// Chooses among the numbers of a row. These are, output after output, the contributions of the features and the
/// expected score (features + 1 numbers), or a square matrix of interactions with as many rows and columns.
class ChosenTerms {
 public:
  ChosenTerms() = default;

  /// Returns what the options ask for. Refuses features that the model does not have, and returns a Usage error for
  /// options that clash, for another output, and for an output file that cannot hold a sparse matrix.
  static Result<ChosenTerms> make(const Arguments& arguments, OutputKind output, const std::string& out);

  /// Finds the features by their names or numbers; `model` is the name of the program's file. With --top or --sparse
  /// but without --features it chooses the features that the trees test, because the numbers of others are zeros; of
  /// approx-contributions it chooses all. Refuses --averaged for models that do not average their trees.
  Result<void> find(const Program& program, OutputKind output, const CallOptions& call,
                    const std::string& model);

  /// Returns the features that calls ask for, ascending; empty for all.
  std::span<const std::uint32_t> features() const { return features_; }
  std::size_t top() const { return top_; }
  bool sparse() const { return sparse_; }
  /// Returns the count of numbers that describe one of the strongest terms: its one or two features, and its value.
  std::size_t top_width() const { return is_pair_ ? 3 : 2; }

  /// Divides the numbers of a call by the number of rounds with --averaged.
  template <class T>
  void divide(std::span<T> numbers) const;

  /// Appends the strongest terms of one output of a row, each as top_width() numbers.
  template <class T>
  void add_strongest(std::span<const T> numbers, std::vector<T>& to) const;

  /// Returns the number of columns of a sparse matrix.
  std::uint64_t sparse_columns() const { return outputs_ * (is_pair_ ? terms() * terms() : terms()); }
  /// Adds a row of all outputs to a sparse matrix.
  template <class T>
  Result<void> add_sparse(std::span<const T> numbers, SparseWriter& writer) const;

 private:
  /// Returns the number of terms of an output in a row of the sparse matrix: the features that are asked for, or all,
  /// and the expected score.
  std::uint64_t terms() const { return (is_chosen_ ? features_.size() : all_features_) + 1; }
  /// Returns the index among terms() of a call's term number `i`.
  std::uint64_t index(std::size_t i) const;
  /// Returns the number of features whose numbers a call gives.
  std::size_t called() const { return features_.empty() ? all_features_ : features_.size(); }

  std::string text_;  ///< Value of --features.
  bool is_chosen_ = false;
  std::vector<std::uint32_t> features_;
  std::size_t top_ = 0;
  bool sparse_ = false;
  bool averaged_ = false;
  double divisor_ = 1;
  bool is_pair_ = false;
  std::size_t all_features_ = 0;
  std::uint64_t outputs_ = 1;
};

}  // namespace forestvm::cli
