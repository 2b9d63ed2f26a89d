// Rows in memory that `bench` and `tune` predict over and over, and the calls that they time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>

#include "cli/io/coded_file.hpp"
#include "cli/io/rows.hpp"
#include "cli/row_options.hpp"

namespace forestvm::cli {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Rows in memory. A batch can begin at each of the first `count` rows, because the first rows are repeated after the
/// last one. Batches of encoded rows begin at a block of codes.
struct RepeatedRows {
  std::size_t count = 0;
  std::size_t width = 0;                ///< Values or codes per row.
  Rows dense{};                         ///< The rows, if they are not encoded.
  std::unique_ptr<CodeMemory> codes{};  ///< The codes of encoded rows; null if the rows are not encoded.
  std::uint64_t encoder = 0;

  AnyRows batch(std::size_t first, std::size_t rows) const {
    if (codes == nullptr) return dense.block(first, rows);
    return CodedRows{codes->data() + code_offset(first, width), rows, width, coded_bytes(rows, width),
                     encoder};
  }

  /// Returns where the batch after the one at `first` begins.
  std::size_t after(std::size_t first, std::size_t rows) const {
    const std::size_t step = codes == nullptr ? rows : (rows + kCodeRows - 1) / kCodeRows * kCodeRows;
    return first + step < count ? first + step : (first + step) % count;
  }
};

/// Reads the rows of the file at `path`, which `form` describes, and repeats them; draws rows between the program's
/// thresholds if `path` is empty. `largest` is the number of rows of the largest batch.
Result<RepeatedRows> repeated_rows(const std::string& path, const RowForm& form, const Program& program,
                                   std::uint64_t largest);

/// Describes the rows for people.
std::string text_of(const RepeatedRows& rows, const std::string& path);

/// Calls a predictor with one batch of the rows after the other, and begins again after the last.
class Caller {
 public:
  Caller(const Predictor& predictor, const RepeatedRows& rows, std::uint64_t batch,
         OutputKind output = OutputKind::Raw)
      : predictor_(predictor),
        rows_(rows),
        batch_(batch),
        output_(output),
        context_(predictor.make_context()),
        out_(batch * output_width(predictor.program(), output)) {}

  Result<void> call();

  /// Makes `calls` calls and returns the time that they took together.
  Result<Seconds> time(std::uint64_t calls);

 private:
  const Predictor& predictor_;
  const RepeatedRows& rows_;
  std::uint64_t batch_;
  OutputKind output_;
  std::unique_ptr<Context> context_;
  std::vector<float> out_;
  std::size_t next_ = 0;
};

}  // namespace forestvm::cli
