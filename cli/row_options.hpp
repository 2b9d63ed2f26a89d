// From ROWS, --header and --missing of a command line to the rows of a file.
#pragma once

#include <string>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "cli/io/rows.hpp"

namespace forestvm::cli {

/// Options of the commands for rows: of all of them, and of those that work batch by batch.
extern const Option kHeaderOption;
extern const Option kMissingOption;

/// What the command line says of how rows are to be read; the rest of the form is the program's.
struct RowOptions {
  Header header = Header::Auto;
  std::optional<float> missing{};
};
Result<RowOptions> row_options(const Arguments& arguments);

/// Usage error where model and rows would both be read from standard input.
Result<void> expect_one_standard_input(const std::string& model, const std::string& rows);

/// What the program expects of a row. The form's names are the program's: they live as long as it does.
RowForm row_form(const Program& program, const RowOptions& options);

/// Opens rows, and says on standard error what the user should know of them. Errors name the file.
Result<RowReader> open_rows(const std::string& path, Source source, const RowForm& form);

/// All rows of a file. Errors name it.
Result<Rows> read_rows(const std::string& path, Source source, const RowForm& form);

}  // namespace forestvm::cli
