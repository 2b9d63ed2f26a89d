// Reads sparse rows in the text format of LIBSVM and SVMlight: "label index:value index:value … # comment".
#pragma once

#include <memory>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Returns whether a line is of this format and of no other: it begins with a label, and its second word is index:value
/// or qid:number.
bool is_libsvm(std::string_view line);

/// Reads rows. A label begins each line and is not used, nor is qid:number; blank lines and comments are no rows. The
/// form says which number the first feature has, and which value features have that a row does not list. If it does not
/// say the number, that is 0, as XGBoost and LightGBM read such files, and a notice says so unless one of the first
/// lines has index 0. Refuses, with line and column, words that are not index:value, indices beyond the model's
/// features, and features that a row lists twice. `source` must outlive the reader.
Result<std::unique_ptr<TableReader>> libsvm_reader(Source& source, const RowForm& form);

}  // namespace forestvm::cli
