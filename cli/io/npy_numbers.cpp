// See npy_numbers.hpp.
#include "cli/io/npy_numbers.hpp"

#include <memory>

#include "cli/io/gzip_source.hpp"
#include "cli/io/npy.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {

Result<NpyNumbers> read_npy_numbers(const std::string& path) {
  constexpr std::size_t kRowsAtOnce = 1024;
  FVM_ASSIGN(Source source, in_file(path, open_unpacked(path)));
  RowForm form;
  form.wide = true;
  FVM_ASSIGN(const std::unique_ptr<TableReader> table,
             in_file(path, npy_reader(source, NpyShape::VectorOrMatrix, form)));
  NpyNumbers numbers;
  numbers.columns = table->columns();
  Rows block;
  do {
    FVM_TRY(in_file(path, table->read(kRowsAtOnce, block)));
    for (std::size_t i = 0; i < block.count * block.width; ++i) numbers.values.push_back(block.value(i));
  } while (block.count != 0);
  return numbers;
}

}  // namespace forestvm::cli
