// See device_kinds.hpp.
#include "kernels/backend/device_kinds.hpp"

#include <cstddef>
#include <numeric>
#include <span>

#include <forestvm/internal/calls.hpp>

#include "kernels/backend/device_calls.hpp"

namespace forestvm::kernels {

namespace {

/// Joins lists. Sets where each of them begins, and where the last one ends.
template <class Record>
void join(const std::vector<std::vector<Record>>& lists, std::vector<Record>& all,
          std::vector<std::uint32_t>& begins) {
  begins = {0};
  for (const std::vector<Record>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
    begins.push_back(static_cast<std::uint32_t>(all.size()));
  }
}

}  // namespace

LoadedPaths device_paths(const Program& program) {
  return has_on_device(program, OutputKind::Contributions) ? LoadedPaths(program) : LoadedPaths();
}

ExplainSizes explain_sizes(const LoadedPaths& paths) {
  const std::size_t number = paths.wide ? sizeof(double) : sizeof(float);
  return {
      static_cast<std::uint32_t>(paths.batches.size()),
      path_bytes(paths.most_levels, paths.interactions ? paths.most_points : 0, paths.most_depth, paths.wide),
      paths.totals.size() * number};
}

DeviceKinds::DeviceKinds(const Program& program, const LoadedPaths& paths)
    : program_(program), paths_(paths) {
  tables_.batch_count = static_cast<std::uint32_t>(paths.batches.size());
  tables_.sum_count = static_cast<std::uint32_t>(paths.totals.size());
  tables_.levels = static_cast<std::uint32_t>(paths.most_levels);
  tables_.points = paths.interactions ? static_cast<std::uint32_t>(paths.most_points) : 0;
  tables_.depth = static_cast<std::uint32_t>(paths.most_depth);
  tables_.num_features = program.meta().num_features;
  tables_.per_tree = explained_per_tree(program);
  tables_.early_stop = program.meta().early_stop;
  tables_.class_rule = program.meta().class_rule;
  tables_.target_count = static_cast<std::uint32_t>(program.targets().size());
  tables_.wide = paths.wide;
  tables_.wide_scores = program.meta().score_type == ScalarType::Float64;
  for (const PathOutput& output : paths.outputs) expected_.push_back(output.expected);
  if (!program.uncertainty().empty()) {
    tables_.uncertainty = program.uncertainty()[0].rule;
    for (std::uint32_t round = 0; round < program.round_begins().size(); ++round)
      ensemble_factors_.push_back(static_cast<float>(ensemble_factor(program, round)));
  }
  find_above_depths();
  find_terms();
  find_interacting();
  find_looked_up();
}

/// Finds the depth of the split above each split that tests the same feature, and of the splits of its pairs.
void DeviceKinds::find_above_depths() {
  above_depths_.resize(paths_.splits.size());
  pair_depths_.resize(paths_.pairs.size());
  for (const PathTree& tree : paths_.trees) {
    std::vector<std::uint16_t> depths(tree.split_count);
    for (const PathStep& step : std::span(paths_.steps).subspan(tree.first_step, tree.step_count)) {
      depths[step.split] = step.depth;
      if (!paths_.pairs.empty()) {
        const std::uint32_t* const ends = paths_.pair_ends.data() + tree.first_split;
        for (std::uint32_t p = step.split == 0 ? 0 : ends[step.split - 1]; p < ends[step.split]; ++p)
          pair_depths_[tree.first_pair + p] = depths[paths_.pairs[tree.first_pair + p].above];
      }
      const std::uint32_t above = paths_.splits[tree.first_split + step.split].above;
      if (above != kNoneAbove) above_depths_[tree.first_split + step.split] = depths[above - 1];
    }
  }
}

/// Numbers the sums of all batches, and finds those of each feature of each output.
void DeviceKinds::find_terms() {
  const std::size_t features = program_.meta().num_features;
  term_begins_.assign(paths_.outputs.size() * features + 1, 0);
  const auto for_sums = [&](const auto& visit) {
    for (std::size_t k = 0; k < paths_.outputs.size(); ++k) {
      const PathOutput& output = paths_.outputs[k];
      for (std::size_t b = output.first_batch; b < output.end_batch; ++b)
        for (std::size_t i = 0; i < paths_.batches[b].sums; ++i) {
          const std::size_t sum = paths_.batches[b].first_total + i;
          visit(k * features + paths_.features[output.first_feature + paths_.totals[sum]],
                static_cast<std::uint32_t>(sum));
        }
    }
  };
  for_sums([&](std::size_t term, std::uint32_t) { ++term_begins_[term + 1]; });
  std::partial_sum(term_begins_.begin(), term_begins_.end(), term_begins_.begin());
  terms_.resize(term_begins_.back());
  std::vector<std::uint32_t> next = term_begins_;
  for_sums([&](std::size_t term, std::uint32_t sum) { terms_[next[term]++] = sum; });
}

/// Finds the features with which each feature of each output interacts, and the sums of each pair of features.
void DeviceKinds::find_interacting() {
  const std::size_t features = program_.meta().num_features;
  std::vector<std::vector<InteractingFeature>> of_features(paths_.outputs.size() * features);
  for (std::size_t k = 0; k < paths_.outputs.size(); ++k) {
    const PathOutput& output = paths_.outputs[k];
    std::vector<std::vector<std::uint32_t>> terms(output.pairs);
    for (std::size_t b = output.first_batch; b < output.end_batch; ++b)
      for (std::size_t i = 0; i < paths_.batches[b].pair_sums; ++i) {
        const std::size_t sum = paths_.batches[b].first_total + paths_.batches[b].sums + i;
        terms[paths_.totals[sum] - output.features].push_back(static_cast<std::uint32_t>(sum));
      }
    for (std::size_t p = 0; p < output.pairs; ++p) {
      const TotalPair& pair = paths_.total_pairs[output.first_pair + p];
      const auto first = static_cast<std::uint32_t>(pair_terms_.size());
      pair_terms_.insert(pair_terms_.end(), terms[p].begin(), terms[p].end());
      const auto end = static_cast<std::uint32_t>(pair_terms_.size());
      const std::uint32_t a = paths_.features[output.first_feature + pair.first],
                          b = paths_.features[output.first_feature + pair.second];
      of_features[k * features + a].push_back({b, first, end});
      of_features[k * features + b].push_back({a, first, end});
    }
  }
  join(of_features, interacting_, interacting_begins_);
}

/// Finds the leaves whose contributions to each feature of each output are looked up.
void DeviceKinds::find_looked_up() {
  const std::size_t features = program_.meta().num_features;
  std::vector<std::vector<LookedUpFeature>> of_features(paths_.outputs.size() * features);
  std::uint64_t number = 0;
  std::uint32_t test = 0;
  for (const PatternLeaf& leaf : paths_.pattern_leaves) {
    const std::uint32_t end = test + leaf.test_count;
    const auto index = static_cast<std::uint32_t>(looked_up_leaves_.size());
    looked_up_leaves_.push_back({number, test, end, leaf.features});
    number += std::uint64_t{2} << leaf.features;
    for (; test != end; ++test)
      if (const PatternTest& of = paths_.pattern_tests[test]; of.adds != 0)
        of_features[leaf.output * features + of.feature].push_back({index, of.bit});
  }
  join(of_features, looked_up_, looked_up_begins_);
}

Result<void> DeviceKinds::put(TableUploads& uploads, const KindTables*& to) {
  FVM_TRY(uploads.put(program_.round_begins(), tables_.round_begins));
  FVM_TRY(uploads.put(ensemble_factors_, tables_.ensemble_factors));
  FVM_TRY(uploads.put(paths_.steps, tables_.steps));
  FVM_TRY(uploads.put(paths_.splits, tables_.splits));
  FVM_TRY(uploads.put(above_depths_, tables_.above_depths));
  FVM_TRY(uploads.put(paths_.singles, tables_.singles));
  FVM_TRY(uploads.put(paths_.doubles, tables_.doubles));
  FVM_TRY(uploads.put(paths_.pairs, tables_.pairs));
  FVM_TRY(uploads.put(paths_.pair_ends, tables_.pair_ends));
  FVM_TRY(uploads.put(pair_depths_, tables_.pair_depths));
  FVM_TRY(uploads.put(interacting_begins_, tables_.interacting_begins));
  FVM_TRY(uploads.put(interacting_, tables_.interacting));
  FVM_TRY(uploads.put(pair_terms_, tables_.pair_terms));
  FVM_TRY(uploads.put(paths_.pattern_tests, tables_.pattern_tests));
  FVM_TRY(uploads.put(paths_.pattern_numbers, tables_.pattern_numbers));
  FVM_TRY(uploads.put(looked_up_leaves_, tables_.looked_up_leaves));
  FVM_TRY(uploads.put(looked_up_begins_, tables_.looked_up_begins));
  FVM_TRY(uploads.put(looked_up_, tables_.looked_up));
  FVM_TRY(uploads.put(paths_.trees, tables_.trees));
  FVM_TRY(uploads.put(paths_.batches, tables_.batches));
  FVM_TRY(uploads.put(expected_, tables_.expected));
  FVM_TRY(uploads.put(term_begins_, tables_.term_begins));
  FVM_TRY(uploads.put(terms_, tables_.terms));
  FVM_TRY(uploads.put(program_.attributed_trees(), tables_.attributed_trees));
  FVM_TRY(uploads.put(program_.attributed_leaves(), tables_.attributed_leaves));
  FVM_TRY(uploads.put(program_.attributions(), tables_.attributions));
  FVM_TRY(uploads.put(program_.attribution_base(), tables_.attribution_base));
  FVM_TRY(uploads.put(program_.sampled_trees(), tables_.sampled_trees));
  FVM_TRY(uploads.put(program_.sampled_leaves(), tables_.sampled_leaves));
  FVM_TRY(uploads.put(program_.sample_targets(), tables_.sample_targets));
  FVM_TRY(uploads.put(program_.targets(), tables_.targets));
  return uploads.put(std::span<const KindTables>(&tables_, 1), to);
}

}  // namespace forestvm::kernels
