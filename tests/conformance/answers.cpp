#include "answers.hpp"

#include <span>
#include <stdexcept>
#include <utility>

namespace forestvm::test {
namespace {

/// Reads the answers that the trainer gives, or the rows alone.
support::Answers trainer_answers(const support::ModelFile& file, const Model& model) {
  if (model.format != "onnx") return support::read_float_answers(file.path, model);
  const support::Rows rows = support::read_rows(file.path, model);
  support::Answers answers;
  answers.count = rows.count;
  answers.features = model.num_features;
  answers.rows.assign(rows.values.begin(), rows.values.end());  // programs get float32 rows here
  return answers;
}

}  // namespace

Reference reference_of(const Model& model, const support::Answers& answers, std::size_t count) {
  const std::size_t cells = count * answers.features;
  auto reference =
      answers.codes.empty()
          ? reference_predict(model, std::span(answers.rows).first(cells), count)
          : reference_predict(model, std::span(answers.codes).first(cells), count, {.hashed_rows = true});
  if (!reference.ok()) throw std::runtime_error(reference.error().text());
  return std::move(*reference);
}

support::Answers answers_of(const support::ModelFile& file, const Model& model) {
  support::Answers answers = trainer_answers(file, model);
  if (!answers.raw.empty()) return answers;
  const Reference reference = reference_of(model, answers, answers.count);
  answers.raw_width = reference.raw_width;
  answers.raw.assign(reference.raw.begin(), reference.raw.end());
  if (!answers.value.empty()) return answers;
  answers.value_width = reference.value_width;
  answers.value.assign(reference.value.begin(), reference.value.end());
  return answers;
}

}  // namespace forestvm::test
