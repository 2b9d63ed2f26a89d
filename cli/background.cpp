// See background.hpp.
#include "cli/background.hpp"

#include <utility>
#include <vector>

#include "cli/io/gzip_source.hpp"
#include "cli/io/npy.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {

constinit const Option kBackgroundOption = {
    "background", '\0', "B.npy",
    "compares rows with those of an array of shape (rows, features): contributions are means over its rows, in which "
    "the features that do not take part have the values of the array's row, whichever way the training rows went",
    kFiles};

Result<std::shared_ptr<const Background>> read_background(const std::string& path, const Model& model) {
  constexpr std::size_t kRowsAtOnce = 1024;
  FVM_ASSIGN(Source source, in_file(path, open_unpacked(path)));
  RowForm form;
  form.wide = true;
  FVM_ASSIGN(const std::unique_ptr<TableReader> table,
             in_file(path, npy_reader(source, NpyShape::VectorOrMatrix, form)));
  std::vector<double> values;
  Rows block;
  do {
    FVM_TRY(in_file(path, table->read(kRowsAtOnce, block)));
    for (std::size_t i = 0; i < block.count * block.width; ++i) values.push_back(block.value(i));
  } while (block.count != 0);
  FVM_ASSIGN(Background background, in_file(path, Background::make(model, values, table->columns())));
  return std::make_shared<const Background>(std::move(background));
}

}  // namespace forestvm::cli
