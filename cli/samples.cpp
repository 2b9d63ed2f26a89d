// See samples.hpp.
#include "cli/samples.hpp"

#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/npy_numbers.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {

constinit const Option kSamplesOption = {
    "samples", '\0', "X.npy,y.npy",
    "keeps the targets y, an array of shape (rows,), in the leaves that the training rows X reach, an array of shape "
    "(rows, features): quantiles are those of the targets in a row's leaves",
    kFiles};

Result<std::pair<std::string, std::string>> sample_files(const std::string& value) {
  const std::size_t comma = value.find(',');
  std::pair<std::string, std::string> files(value.substr(0, comma),
                                            comma == std::string::npos ? "" : value.substr(comma + 1));
  if (files.first.empty() || files.second.empty() || files.second.find(',') != std::string::npos)
    return usage_error(formatted("--samples {}: expected X.npy,y.npy", single_quoted(value)));
  if (files.first == "-" || files.second == "-")
    return usage_error("--samples: rows and targets are read from files");
  return files;
}

Result<std::shared_ptr<const Samples>> read_samples(const std::string& value, const Model& model) {
  FVM_ASSIGN(const auto files, sample_files(value));
  FVM_ASSIGN(const NpyNumbers rows, read_npy_numbers(files.first));
  FVM_ASSIGN(const NpyNumbers targets, read_npy_numbers(files.second));
  if (targets.columns != 1)
    return in_file(files.second, refused(formatted("has targets in {} columns, expected the shape (rows,)",
                                                   targets.columns)));
  FVM_ASSIGN(Samples samples, Samples::make(model, rows.values, rows.columns, targets.values));
  return std::make_shared<const Samples>(std::move(samples));
}

}  // namespace forestvm::cli
