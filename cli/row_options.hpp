// ROWS, --header and --missing of a command line -> the rows of a file.
#pragma once

#include <string>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "cli/io/rows.hpp"

namespace forestvm::cli {

/// Options for rows: --header for all commands, --missing for those that work batch by batch.
extern const Option kHeaderOption;
extern const Option kMissingOption;

/// The options that say how to read rows; the program says the rest of the form.
struct RowOptions {
  Header header = Header::Auto;
  std::optional<MissingNumber> missing{};
};
Result<RowOptions> row_options(const Arguments& arguments);

/// Returns a Usage error if model and rows would both be read from standard input.
Result<void> expect_one_standard_input(const std::string& model, const std::string& rows);

/// Returns the form of rows that the program expects. Its names point into the program, which must outlive
/// them.
RowForm row_form(const Program& program, const RowOptions& options);

/// Opens rows and prints the reader's notice on standard error. Errors name the file.
Result<RowReader> open_rows(const std::string& path, Source source, const RowForm& form);

/// Reads all rows of a file. Errors name the file.
Result<Rows> read_rows(const std::string& path, Source source, const RowForm& form);

}  // namespace forestvm::cli
