#include "answers.hpp"

#include <span>
#include <stdexcept>
#include <utility>

#include <forestvm/load.hpp>

#include <forestvm/reference.hpp>

#include "support/npy.hpp"

namespace forestvm::test {
namespace {

/// Reads rows of either type; programs get float32 rows here.
support::Npy<float> read_rows(const std::filesystem::path& file) {
  if (support::holds<float>(file)) return support::read_npy<float>(file);
  const auto wide = support::read_npy<double>(file);
  return {wide.shape, {wide.data.begin(), wide.data.end()}};
}

Reference reference_of(const Model& model, std::span<const float> rows, std::size_t count) {
  auto reference = reference_predict(model, rows, count, {0, model.trees.size(), false});
  if (!reference.ok()) throw std::runtime_error(reference.error().text());
  return std::move(*reference);
}

}  // namespace

support::Answers answers_of(const support::ModelFile& file, const Model& model) {
  if (model.format != "onnx") {
    support::Answers answers = support::read_float_answers(file.path, model);
    if (!answers.raw.empty()) return answers;
    const Reference reference = reference_of(model, answers.rows, answers.count);
    answers.raw_width = reference.raw_width;
    answers.raw.assign(reference.raw.begin(), reference.raw.end());
    return answers;
  }
  const auto rows = read_rows(file.path.parent_path() / "rows.npy");
  const Reference answers = reference_of(model, rows.data, rows.rows());
  return {rows.rows(),
          rows.columns(),
          rows.data,
          answers.raw_width,
          answers.value_width,
          {answers.raw.begin(), answers.raw.end()},
          {answers.value.begin(), answers.value.end()}};
}

std::vector<support::ModelFile> catboost_number_files(const std::filesystem::path& parent,
                                                      const std::string& prefix) {
  std::vector<support::ModelFile> files = support::catboost_files(parent, prefix);
  std::erase_if(files, [](const support::ModelFile& file) {
    const auto model = load_model(file.path.string());
    return model.ok() && !model->hashed_features.empty();
  });
  return files;
}

}  // namespace forestvm::test
