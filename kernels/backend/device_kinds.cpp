// See device_kinds.hpp.
#include "kernels/backend/device_kinds.hpp"

#include <cstddef>
#include <numeric>
#include <span>

#include <forestvm/internal/calls.hpp>

#include "kernels/backend/device_calls.hpp"

namespace forestvm::kernels {

namespace {

/// Groups the numbers 0, 1, ... by their keys, which are below `count`. Returns the numbers, group after group, each
/// group's ascending; sets where each group begins, and where the last one ends.
std::vector<std::uint32_t> grouped(const std::vector<std::uint32_t>& keys, std::size_t count,
                                   std::vector<std::uint32_t>& begins) {
  begins.assign(count + 1, 0);
  for (const std::uint32_t key : keys) ++begins[key + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> next = begins, numbers(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) numbers[next[keys[i]]++] = static_cast<std::uint32_t>(i);
  return numbers;
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
    ensemble_factors_.resize(program.round_begins().size());
    for (std::uint32_t round = 0; round < ensemble_factors_.size(); ++round)
      ensemble_factors_[round] = ensemble_factor(program, round);
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

/// Finds the sums of all batches that belong to each feature of each output, and to each pair of features.
void DeviceKinds::find_terms() {
  const std::size_t features = program_.meta().num_features, sums = paths_.totals.size();
  // Sums of pairs belong to no feature, and those of features to no pair: these are the last groups.
  const std::size_t no_feature = paths_.outputs.size() * features, no_pair = paths_.total_pairs.size();
  std::vector<std::uint32_t> feature_of(sums, static_cast<std::uint32_t>(no_feature)),
      pair_of(sums, static_cast<std::uint32_t>(no_pair));
  for (std::size_t k = 0; k < paths_.outputs.size(); ++k) {
    const PathOutput& output = paths_.outputs[k];
    for (std::size_t b = output.first_batch; b < output.end_batch; ++b) {
      const PathBatch& batch = paths_.batches[b];
      for (std::size_t i = 0; i < std::size_t{batch.sums} + batch.pair_sums; ++i) {
        const std::size_t sum = batch.first_total + i, total = paths_.totals[sum];
        if (i < batch.sums)
          feature_of[sum] =
              static_cast<std::uint32_t>(k * features + paths_.features[output.first_feature + total]);
        else
          pair_of[sum] = static_cast<std::uint32_t>(output.first_pair + total - output.features);
      }
    }
  }
  terms_ = grouped(feature_of, no_feature + 1, term_begins_);
  pair_terms_ = grouped(pair_of, no_pair + 1, pair_begins_);
}

/// Finds the features with which each feature of each output interacts.
void DeviceKinds::find_interacting() {
  const std::size_t features = program_.meta().num_features;
  std::vector<std::uint32_t> keys(2 * paths_.total_pairs.size());  // two for each pair, side by side
  for (std::size_t k = 0; k < paths_.outputs.size(); ++k) {
    const PathOutput& output = paths_.outputs[k];
    for (std::size_t p = output.first_pair; p < output.first_pair + output.pairs; ++p)
      for (std::size_t i = 0; i < 2; ++i) {
        const TotalPair& pair = paths_.total_pairs[p];
        const std::uint32_t total = i == 0 ? pair.first : pair.second;
        keys[2 * p + i] =
            static_cast<std::uint32_t>(k * features + paths_.features[output.first_feature + total]);
      }
  }
  const std::vector<std::uint32_t> order =
      grouped(keys, paths_.outputs.size() * features, interacting_begins_);
  interacting_.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    interacting_[i] = {static_cast<std::uint32_t>(keys[order[i] ^ 1] % features), order[i] / 2};
}

/// Finds the leaves whose contributions to each feature of each output are looked up.
void DeviceKinds::find_looked_up() {
  const std::size_t features = program_.meta().num_features, none = paths_.outputs.size() * features;
  const auto tests = paths_.pattern_tests;
  std::vector<std::uint32_t> keys(tests.size(), static_cast<std::uint32_t>(none)), leaf_of(tests.size());
  looked_up_leaves_.resize(paths_.pattern_leaves.size());
  std::uint64_t number = 0;
  std::uint32_t test = 0;
  for (std::uint32_t l = 0; l < looked_up_leaves_.size(); ++l) {
    const PatternLeaf& leaf = paths_.pattern_leaves[l];
    const std::uint32_t end = test + leaf.test_count;
    looked_up_leaves_[l] = {number, test, end, leaf.features};
    number += std::uint64_t{2} << leaf.features;
    for (; test != end; ++test) {
      leaf_of[test] = l;
      if (tests[test].adds != 0)
        keys[test] = static_cast<std::uint32_t>(leaf.output * features + tests[test].feature);
    }
  }
  const std::vector<std::uint32_t> order = grouped(keys, none + 1, looked_up_begins_);
  looked_up_.resize(looked_up_begins_[none]);
  for (std::size_t i = 0; i < looked_up_.size(); ++i)
    looked_up_[i] = {leaf_of[order[i]], tests[order[i]].bit};
}

void DeviceKinds::put(TableUploads& uploads, const KindTables*& to) {
  uploads.put(program_.round_begins(), tables_.round_begins);
  uploads.put(ensemble_factors_, tables_.ensemble_factors);
  uploads.put(paths_.steps, tables_.steps);
  uploads.put(paths_.splits, tables_.splits);
  uploads.put(above_depths_, tables_.above_depths);
  uploads.put(paths_.singles, tables_.singles);
  uploads.put(paths_.doubles, tables_.doubles);
  uploads.put(paths_.pairs, tables_.pairs);
  uploads.put(paths_.pair_ends, tables_.pair_ends);
  uploads.put(pair_depths_, tables_.pair_depths);
  uploads.put(interacting_begins_, tables_.interacting_begins);
  uploads.put(interacting_, tables_.interacting);
  uploads.put(pair_begins_, tables_.pair_begins);
  uploads.put(pair_terms_, tables_.pair_terms);
  uploads.put(paths_.pattern_tests, tables_.pattern_tests);
  uploads.put(paths_.pattern_numbers, tables_.pattern_numbers);
  uploads.put(looked_up_leaves_, tables_.looked_up_leaves);
  uploads.put(looked_up_begins_, tables_.looked_up_begins);
  uploads.put(looked_up_, tables_.looked_up);
  uploads.put(paths_.trees, tables_.trees);
  uploads.put(paths_.batches, tables_.batches);
  uploads.put(expected_, tables_.expected);
  uploads.put(term_begins_, tables_.term_begins);
  uploads.put(terms_, tables_.terms);
  uploads.put(program_.attributed_trees(), tables_.attributed_trees);
  uploads.put(program_.attributed_leaves(), tables_.attributed_leaves);
  uploads.put(program_.attributions(), tables_.attributions);
  uploads.put(program_.attribution_base(), tables_.attribution_base);
  uploads.put(program_.sampled_trees(), tables_.sampled_trees);
  uploads.put(program_.sampled_leaves(), tables_.sampled_leaves);
  uploads.put(program_.sample_targets(), tables_.sample_targets);
  uploads.put(program_.targets(), tables_.targets);
  uploads.put(std::span<const KindTables>(&tables_, 1), to);
}

}  // namespace forestvm::kernels
