// Reads the rows that ROWS of a command line names, as the options for rows say.
#pragma once

#include <string>

#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "cli/io/rows.hpp"

namespace forestvm::cli {

/// The options for rows. Only commands that work batch by batch have --missing, and only `run` has --keep.
extern const Option kFormatOption;
extern const Option kHeaderOption;
extern const Option kSeparatorOption;
extern const Option kNaOption;
extern const Option kExtraColumnsOption;
extern const Option kKeepOption;
extern const Option kArrayOption;
extern const Option kIndexBaseOption;
extern const Option kCategoriesOption;
extern const Option kMissingOption;

/// The options for rows that all commands have, as elements of Command::options. It is a macro because an
/// initializer list cannot be put into another.
#define FVM_ROW_OPTIONS                                                                         \
  kFormatOption, kHeaderOption, kSeparatorOption, kNaOption, kExtraColumnsOption, kArrayOption, \
      kIndexBaseOption, kCategoriesOption

/// Returns what the options say about the form of rows. row_form adds what the program says.
Result<RowForm> row_options(const Arguments& arguments);

/// Returns a Usage error if `options` holds an option for the file at `path`, which has encoded rows and takes none.
Result<void> expect_no_row_options(const std::string& path, const RowForm& options);

/// Returns a Usage error if model and rows would both be read from standard input.
Result<void> expect_one_standard_input(const std::string& model, const std::string& rows);

/// Returns the form of rows that the program expects, read as the options say. Its names point into the program, which
/// must outlive them.
RowForm row_form(const Program& program, const RowForm& options);

/// Opens rows and prints the reader's notice on standard error. Errors name the file.
Result<RowReader> open_rows(const std::string& path, Source source, const RowForm& form);

/// Reads all rows of a file. Errors name the file.
Result<Rows> read_rows(const std::string& path, Source source, const RowForm& form);

}  // namespace forestvm::cli
