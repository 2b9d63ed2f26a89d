// See explanation.hpp.
#include "cli/explain/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <variant>

#include <forestvm/compile.hpp>
#include <forestvm/internal/column_features.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/program.hpp>

#include "cli/program_file.hpp"
#include "cli/progress.hpp"

namespace forestvm::cli {
namespace {

/// The most bytes of the interactions of a row. If a row would take more, partners of features are left out.
constexpr std::uint64_t kMaxPairBytes = std::uint64_t{64} << 20;

/// Fills in what is known from the model without rows.
void describe(const Model& model, const ExplainOptions& options, Explanation& all) {
  all.model = options.model;
  all.rows_name = options.rows.path;
  all.trainer = model.trainer + (model.version.empty() ? "" : " " + model.version);
  all.objective = model.objective;
  if (model.num_outputs > 1) {
    const bool labelled = model.class_labels.size() == model.num_outputs;
    all.output = labelled ? model.class_labels[options.output] : std::to_string(options.output);
  }
  all.names = model.feature_names;
  for (std::size_t f = all.names.size(); f < model.num_features; ++f)
    all.names.push_back(formatted("f{}", f));
  all.categories.resize(model.num_features);
  for (const FeatureCategories& named : model.categories) all.categories[named.feature] = named.names;
  all.importance.resize(model.num_features);
  all.gain.resize(model.num_features);
  all.splits.resize(model.num_features);
  all.cover.resize(model.num_features);
  const std::vector<std::uint32_t> features = features_of_columns(model);
  for (const Tree& tree : model.trees)
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const Node& node = tree.nodes[i];
      if (node.kind == NodeKind::Leaf || node.kind == NodeKind::Unused) continue;
      const std::uint32_t feature = features[node.feature];
      if (feature == kSeveralFeatures) continue;
      all.gain[feature] += tree.gains.empty() ? std::nan("") : static_cast<double>(tree.gains[i]);
      ++all.splits[feature];
      all.cover[feature] += static_cast<double>(node.cover);
    }
}

/// Draws a random sample from a stream of rows (Vitter's algorithm R). The sample does not depend on batches.
class Sampler {
 public:
  explicit Sampler(std::size_t most) : most_(most) {}

  /// Returns the index in the sample at which the stream's next row is kept; nothing if it is not kept.
  std::optional<std::size_t> index() {
    const std::uint64_t seen = seen_++;
    if (seen < most_) return static_cast<std::size_t>(seen);
    const std::uint64_t drawn = random_() % (seen + 1);
    return drawn < most_ ? std::optional(static_cast<std::size_t>(drawn)) : std::nullopt;
  }

 private:
  std::size_t most_;
  std::uint64_t seen_ = 0;
  std::mt19937_64 random_{1};
};

/// The pass over the rows.
class Pass {
 public:
  Pass(const Model& model, const Predictor& predictor, const ExplainOptions& options, Explanation& all)
      : model_(model), predictor_(predictor), options_(options), all_(all), sampler_(options.sample) {
    std::vector<std::uint64_t> wanted = options.chosen;
    std::sort(wanted.begin(), wanted.end());
    for (const std::uint64_t number : wanted) wanted_.push_back(number);
    all.chosen.resize(options.chosen.size());
  }

  /// Takes a batch of rows.
  Result<void> add(Context& context, const RowBlock& rows, PartialDependence* dependence);

  Result<void> finish();

 private:
  const Model& model_;
  const Predictor& predictor_;
  const ExplainOptions& options_;
  Explanation& all_;
  Sampler sampler_;
  std::vector<std::uint64_t> wanted_;
  std::vector<double> values_, contributions_;
  double total_ = 0;  // sum of the raw scores
};

Result<void> Pass::add(Context& context, const RowBlock& rows, PartialDependence* dependence) {
  const std::size_t features = model_.num_features, terms = features + 1, outputs = model_.num_outputs;
  contributions_.resize(rows.count * outputs * terms);
  FVM_TRY(in_file(options_.model, predictor_.predict_as(context, rows, OutputKind::Contributions,
                                                        ResultType::Float64, contributions_.data())));
  values_.resize(rows.count * features);
  if (rows.type == RowType::Float64)
    std::copy_n(static_cast<const double*>(rows.data), values_.size(), values_.begin());
  else
    std::copy_n(static_cast<const float*>(rows.data), values_.size(), values_.begin());
  if (dependence != nullptr) FVM_TRY(in_file(options_.rows.path, dependence->add(values_, rows.hashed)));
  for (std::size_t i = 0; i < rows.count; ++i) {
    const double* const mine = contributions_.data() + (i * outputs + options_.output) * terms;
    const auto row = [&] {
      const double* const values = values_.data() + i * features;
      return ExplainedRow{all_.rows, {values, values + features}, {mine, mine + terms}};
    };
    for (std::size_t f = 0; f < features; ++f) all_.importance[f] += std::abs(mine[f]);
    total_ += std::accumulate(mine, mine + terms, 0.0);
    if (all_.rows == 0) all_.expected = mine[features];
    if (std::binary_search(wanted_.begin(), wanted_.end(), all_.rows))
      for (std::size_t c = 0; c < options_.chosen.size(); ++c)
        if (options_.chosen[c] == all_.rows) all_.chosen[c] = row();
    if (const auto index = sampler_.index()) {
      if (*index == all_.sample.size())
        all_.sample.push_back(row());
      else
        all_.sample[*index] = row();
    }
    ++all_.rows;
  }
  return {};
}

Result<void> Pass::finish() {
  if (all_.rows == 0) return in_file(options_.rows.path, refused("has no rows to explain"));
  if (!wanted_.empty() && wanted_.back() >= all_.rows)
    return in_file(options_.rows.path,
                   refused(formatted("--row {}: there are {} rows, and the first has the number 0",
                                     wanted_.back(), all_.rows)));
  const auto count = static_cast<double>(all_.rows);
  for (double& sum : all_.importance) sum /= count;
  all_.mean = total_ / count;
  std::sort(all_.sample.begin(), all_.sample.end(),
            [](const ExplainedRow& a, const ExplainedRow& b) { return a.number < b.number; });
  return {};
}

/// Chooses the features that drawings show.
void choose_features(const ExplainOptions& options, Explanation& all) {
  std::vector<std::uint32_t> order(all.names.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return all.importance[a] > all.importance[b]; });
  if (options.feature) order = {*options.feature};
  for (const std::uint32_t feature : order)
    if (all.shown.size() < options.shown && (options.feature || all.importance[feature] > 0))
      all.shown.push_back({feature});
}

/// Returns the values of `count` rows of the sample from `first` on, row after row.
std::vector<double> values_of(const Explanation& all, std::size_t first, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = first; i < first + count; ++i)
    values.insert(values.end(), all.sample[i].values.begin(), all.sample[i].values.end());
  return values;
}

/// Finds the partner of each shown feature from the interactions of the sample.
Result<void> find_partners(const Predictor& predictor, const ExplainOptions& options, bool hashed,
                           Explanation& all) {
  const std::size_t features = all.names.size(), terms = features + 1;
  const std::size_t width = output_width(predictor.program(), OutputKind::Interactions);
  const std::size_t at_once = std::max<std::size_t>(1, kMaxPairBytes / (width * sizeof(double)));
  const std::unique_ptr<Context> context = predictor.make_context();
  std::vector<std::vector<double>> strength(all.shown.size(), std::vector<double>(features));
  std::vector<double> pairs;
  for (std::size_t first = 0; first < all.sample.size(); first += at_once) {
    const std::size_t count = std::min(at_once, all.sample.size() - first);
    const std::vector<double> values = values_of(all, first, count);
    pairs.resize(count * width);
    const RowBlock rows{values.data(), count, features, RowType::Float64, 1, hashed};
    FVM_TRY(in_file(options.model, predictor.predict_as(*context, rows, OutputKind::Interactions,
                                                        ResultType::Float64, pairs.data())));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t s = 0; s < all.shown.size(); ++s) {
        const std::size_t matrix = i * width + options.output * terms * terms;
        for (std::size_t g = 0; g < features; ++g)
          if (g != all.shown[s].feature)
            strength[s][g] += std::abs(pairs[matrix + all.shown[s].feature * terms + g]);
      }
  }
  for (std::size_t s = 0; s < all.shown.size(); ++s) {
    const auto most = std::max_element(strength[s].begin(), strength[s].end());
    if (most != strength[s].end() && *most > 0)
      all.shown[s].partner = static_cast<std::uint32_t>(most - strength[s].begin());
  }
  return {};
}

}  // namespace

double ExplainedRow::score() const {
  return std::accumulate(contributions.begin(), contributions.end(), 0.0);
}

Result<Explanation> explain_rows(const Model& model, const ExplainOptions& options) {
  Explanation all;
  describe(model, options, all);
  const std::uint64_t terms = std::uint64_t{model.num_features} + 1;
  CompileOptions compiling;
  compiling.contributions = true;
  compiling.interactions = terms * terms * model.num_outputs * sizeof(double) <= kMaxPairBytes;
  FVM_ASSIGN(const Compiled compiled,
             in_file(options.model, compile(model, automatic_schedule(model), compiling)));
  const Program& program = compiled.program;
  FVM_ASSIGN(const std::unique_ptr<Predictor> predictor,
             in_file(options.model, host_backend(program, options.backend)));
  auto dependence = PartialDependence::make(model);
  if (!dependence)
    all.notes.emplace_back(formatted("Partial dependence is left out: {}.", dependence.error().text()));
  const std::size_t answer_bytes = (model.num_outputs * terms + model.num_features) * sizeof(double);
  FVM_ASSIGN(Batches batches, Batches::open(options.rows, program, answer_bytes));
  Progress progress = batches.progress(options.out);
  Pass pass(model, *predictor, options, all);
  const std::unique_ptr<Context> context = predictor->make_context();
  bool hashed = false;
  while (row_count(batches.rows()) != 0) {
    const auto* const rows = std::get_if<RowBlock>(&batches.rows());
    if (rows == nullptr)
      return in_file(options.rows.path, refused("holds encoded rows, without the values that explain shows"));
    hashed = rows->hashed;
    FVM_TRY(pass.add(*context, *rows, dependence ? &*dependence : nullptr));
    FVM_TRY(batches.next());
    progress.show(batches.done());
  }
  FVM_TRY(pass.finish());
  all.hashed.resize(model.num_features);
  for (const std::uint32_t feature : model.hashed_features) all.hashed[feature] = hashed;
  choose_features(options, all);
  if (compiling.interactions)
    FVM_TRY(find_partners(*predictor, options, hashed, all));
  else
    all.notes.emplace_back(
        "Partners of features are left out: the interactions of a row take more than 64 MiB.");
  for (ShownFeature& shown : all.shown)
    if (dependence && dependence->has(shown.feature))
      shown.dependence = dependence->of(shown.feature, options.output);
  return all;
}

}  // namespace forestvm::cli
