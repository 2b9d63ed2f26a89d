// See sklearn_estimator.hpp: what all estimators have in common, and Pipelines.
#include "frontend/sklearn_estimator.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

struct EstimatorReader {
  std::string_view type;
  Result<void> (*read)(SklearnReader&);
};

constexpr EstimatorReader kEstimatorReaders[] = {
#define FVM_SKLEARN(name, reader) {name, reader},
#include "frontend/sklearn_estimators.def"
};

constexpr std::string_view kPipeline = "sklearn.pipeline.Pipeline";
constexpr SklearnVersion kFirst{1, 1, 0}, kFirstUnknown{1, 10, 0};
/// The most leaf values that an ensemble may have beyond the number of values in its file.
constexpr std::uint64_t kSpareLeafValues = 4'000'000;

/// Returns the last step of a Pipeline, which predicts. Refuses steps before it that change the rows.
Result<PythonRef> last_step(const PythonRef& pipeline) {
  FVM_ASSIGN(const PythonRef list, pipeline.get("steps"));
  FVM_ASSIGN(const std::vector<PythonRef> steps, list.items());
  if (steps.empty()) return list.error("a Pipeline without steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    FVM_ASSIGN(const std::vector<PythonRef> step, steps[i].items());
    if (step.size() != 2) return steps[i].error("expected a step's name and estimator");
    FVM_ASSIGN(const std::string name, step[0].text());
    const Result<std::string> text = step[1].kind() == PythonKind::Scalar ? step[1].text() : Error{};
    const bool passes = step[1].is_none() || (text.ok() && *text == "passthrough");
    const bool last = i + 1 == steps.size();
    if (last && passes) return step[1].error(formatted("the last step {} predicts nothing", in_quotes(name)));
    if (last) return step[1];
    if (!passes)
      return step[1].error(formatted(
          "the step {} of the Pipeline, {}, changes the rows, which is not supported: save the last step alone and transform the rows before",
          in_quotes(name), printable(step[1].type())));
  }
  return list.error("a Pipeline without steps");
}

Result<SklearnVersion> version_of(const PythonRef& estimator, std::string& text) {
  FVM_ASSIGN(const PythonRef written, estimator.get("_sklearn_version"));
  FVM_ASSIGN(text, written.text());
  SklearnVersion version;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int* part : {&version.major, &version.minor, &version.patch}) {
    const auto [next, code] = std::from_chars(at, end, *part);
    if (code != std::errc()) break;
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (version < kFirst || version >= kFirstUnknown)
    return written.error(formatted(
        "written by scikit-learn {}: releases 1.1 to 1.9 are known; load and save it with one of them",
        in_quotes(text, 20)));
  return version;
}

}  // namespace

Result<void> SklearnReader::read_features() {
  FVM_ASSIGN(const PythonRef count, estimator.get("n_features_in_"));
  FVM_ASSIGN(const std::int64_t features, count.integer(1, limits.max_features));
  model.num_features = static_cast<std::uint32_t>(features);
  if (const auto names = estimator.find("feature_names_in_")) {
    FVM_ASSIGN(model.feature_names, names->texts(model.num_features));
    if (model.feature_names.size() != model.num_features)
      return names->error(formatted("{} names for {} features", model.feature_names.size(), features));
  }
  return {};
}

Result<std::vector<std::vector<std::string>>> SklearnReader::classes() const {
  FVM_ASSIGN(const PythonRef all, estimator.get("classes_"));
  std::vector<PythonRef> lists{all};
  if (const auto outputs = estimator.find("n_outputs_")) {
    FVM_ASSIGN(const std::int64_t count, outputs->integer(1, limits.max_outputs));
    if (count > 1) {
      FVM_ASSIGN(lists, all.items());
      if (lists.size() != static_cast<std::size_t>(count))
        return all.error(formatted("classes of {} outputs instead of {}", lists.size(), count));
    }
  }
  std::vector<std::vector<std::string>> out;
  for (const PythonRef& list : lists) {
    FVM_ASSIGN(std::vector<std::string> labels, list.texts(limits.max_outputs));
    if (labels.empty()) return list.error("no classes");
    out.push_back(std::move(labels));
  }
  return out;
}

Result<std::vector<PythonRef>> SklearnReader::trees() const {
  FVM_ASSIGN(const PythonRef list, estimator.get("estimators_"));
  FVM_ASSIGN(std::vector<PythonRef> trees, list.items());
  if (trees.empty()) return list.error("an ensemble of no trees");
  return trees;
}

Result<std::vector<PythonRef>> SklearnReader::feature_lists(std::size_t trees) const {
  FVM_ASSIGN(const PythonRef all, estimator.get("estimators_features_"));
  FVM_ASSIGN(std::vector<PythonRef> lists, all.items());
  if (lists.size() != trees)
    return all.error(formatted("features of {} trees instead of {}", lists.size(), trees));
  return lists;
}

Result<std::vector<std::int64_t>> SklearnReader::features_of(const PythonRef& list) const {
  FVM_ASSIGN(std::vector<std::int64_t> features, list.integers(limits.max_features));
  if (features.empty()) return list.error("no features");
  for (const std::int64_t feature : features)
    if (feature < 0 || feature >= std::int64_t{model.num_features})
      return list.error(
          formatted("feature {} does not exist: the model has {}", feature, model.num_features));
  return features;
}

Result<void> SklearnReader::set_outputs(std::size_t outputs, std::vector<double> base) {
  if (outputs > limits.max_outputs)
    return estimator.error(formatted("{} outputs are over the limit of {}", outputs, limits.max_outputs));
  model.num_outputs = static_cast<std::uint32_t>(outputs);
  model.base = std::move(base);
  model.base.resize(outputs);
  return {};
}

Result<void> SklearnReader::count_nodes(std::size_t nodes) {
  nodes_ += nodes;
  if (model.trees.size() >= limits.max_trees)
    return estimator.error(formatted("more trees than the limit of {}", limits.max_trees));
  if (nodes_ > limits.max_nodes)
    return estimator.error(formatted("more nodes than the limit of {}", limits.max_nodes));
  return {};
}

Result<void> SklearnReader::check_size(const SklearnTree& tree, std::uint32_t width) {
  FVM_TRY(count_nodes(tree.size()));
  leaf_values_ += std::uint64_t{width} * (tree.size() / 2 + 1);
  file_values_ += tree.size() * tree.outputs() * tree.classes();
  if (leaf_values_ > file_values_ + kSpareLeafValues)
    return estimator.error(
        "the trees know so few of the classes that their leaves would take much more memory than the file");
  return {};
}

void SklearnReader::set_rounds(std::uint32_t trees, const char* name, bool nested) {
  for (std::size_t begin = 0; begin < model.trees.size(); begin += trees)
    model.round_begins.push_back(static_cast<std::uint32_t>(begin));
  model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
  parsed.tree_location = [list = formatted("{}: {}", estimator.place(), name), trees,
                          nested](std::size_t tree) {
    if (!nested) return list + '[' + std::to_string(tree) + ']';
    return formatted("{}[{}][{}]", list, tree / trees, tree % trees);
  };
}

Result<ParsedModel> read_sklearn_estimator(const PythonObjects& objects, PythonObjects::Id id,
                                           const LoadLimits& limits) {
  PythonRef estimator(objects, id);
  while (estimator.type() == kPipeline) {
    FVM_ASSIGN(estimator, last_step(estimator));
  }
  const std::string type = estimator.type();
  const auto* row = std::find_if(std::begin(kEstimatorReaders), std::end(kEstimatorReaders),
                                 [&](const EstimatorReader& known) { return known.type == type; });
  if (row == std::end(kEstimatorReaders))
    return estimator.error(printable(type) + " is not a supported estimator of trees: see docs/formats.md");
  ParsedModel parsed;
  FVM_ASSIGN(const SklearnVersion version, version_of(estimator, parsed.model.version));
  Model& model = parsed.model;
  model.trainer = "scikit-learn";
  model.objective = estimator.class_name();
  model.row_type = ScalarType::Float32;
  model.score_type = ScalarType::Float64;
  SklearnReader reader(estimator, version, limits, parsed);
  FVM_TRY(reader.read_features());
  FVM_TRY(row->read(reader));
  return parsed;
}

}  // namespace forestvm::frontend
