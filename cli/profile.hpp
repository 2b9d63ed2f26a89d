// Takes the times of the parts of a run, for `run --profile`. Where the plan reads codes, rows are encoded in a call of
// their own, so that encoding can be timed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include <forestvm/backend.hpp>
#include <forestvm/internal/row_source.hpp>
#include <forestvm/program.hpp>

#include "cli/io/coded_file.hpp"

namespace forestvm::cli {

class Profile {
 public:
  enum class Part { Prepare, Read, Encode, Walk, Write };

  /// If `on` is false, nothing is timed, and rows are not encoded apart from the walks.
  explicit Profile(bool on) : on_(on) {}
  bool is_on() const { return on_; }

  /// Returns what `work` returns, and adds the time that it takes.
  template <class Work>
  auto time(Part part, const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = work();
    spent_[static_cast<std::size_t>(part)] += std::chrono::steady_clock::now() - begin;
    return result;
  }

  /// Counts a batch. Returns its rows, encoded if the backend is the host and the plan for that number of rows reads
  /// codes. They are valid until the next batch.
  Result<AnyRows> batch(const Predictor& predictor, Context& context, bool on_host, const AnyRows& rows);

  /// Returns the table of the parts, with the plans that were used and why.
  std::string text(const Predictor& predictor) const;

 private:
  bool on_;
  std::array<std::chrono::duration<double>, 5> spent_{};
  std::size_t rows_ = 0;
  std::size_t batches_ = 0;
  std::set<std::size_t> sizes_;  ///< Numbers of rows of the batches.
  CodeMemory codes_;
};

}  // namespace forestvm::cli
