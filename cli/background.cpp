// See background.hpp.
#include "cli/background.hpp"

#include <utility>

#include "cli/io/npy_numbers.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {

constinit const Option kBackgroundOption = {
    "background", '\0', "B.npy",
    "compares rows with those of an array of shape (rows, features): contributions are means over its rows, in which "
    "the features that do not take part have the values of the array's row, whichever way the training rows went",
    kFiles};

Result<std::shared_ptr<const Background>> read_background(const std::string& path, const Model& model) {
  FVM_ASSIGN(const NpyNumbers rows, read_npy_numbers(path));
  FVM_ASSIGN(Background background, in_file(path, Background::make(model, rows.values, rows.columns)));
  return std::make_shared<const Background>(std::move(background));
}

}  // namespace forestvm::cli
