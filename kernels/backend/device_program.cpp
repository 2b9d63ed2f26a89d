// See device_program.hpp.
#include "kernels/backend/device_program.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/derived_tables.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/leaf_functions.hpp>

#include "kernels/backend/device_kinds.hpp"
#include "kernels/backend/table_uploads.hpp"

namespace forestvm::kernels {
namespace {

std::vector<LaunchGroup> launch_groups(const Program& program, const std::byte* nodes, const TreeDesc* trees,
                                       const std::uint8_t* exits) {
  std::vector<LaunchGroup> groups(program.groups().size());
  LaunchGroup* group = groups.data();
  for (const GroupDesc& desc : program.groups())
    *group++ = {group_data(desc, nodes, trees, exits), desc.tree_begin,
                static_cast<std::uint32_t>(node_size(desc.layout)), desc.layout,
                interleaves_trees(desc.layout)};
  return groups;
}

std::vector<LaunchWalker> launch_walkers(const Program& program, const std::uint32_t* numbers,
                                         const double* wide_leaves) {
  std::vector<LaunchWalker> walkers(program.walkers().size());
  LaunchWalker* next = walkers.data();
  for (const WalkerDesc& desc : program.walkers()) {
    const GroupDesc& group = program.groups()[desc.group];
    LaunchWalker& walker = *next++;
    walker.group = desc.group;
    walker.steps = desc.steps;
    walker.numbers = numbers + group.first_number;
    walker.wide_leaves = wide_leaves == nullptr ? nullptr : wide_leaves + group.first_number;
    walker.end = desc.end;
    walker.order = desc.order;
    const unsigned trees = std::min<unsigned>(desc.interleaved_trees, kMaxLockstep);
    walker.tile = tile(trees, std::min<unsigned>(desc.interleaved_rows, kMaxLockstep / trees));
    walker.rest = static_cast<std::uint8_t>(desc.steps % kUnrolledSteps |
                                            (desc.end == WalkEnd::UntilLeaf ? LaunchWalker::kUntilLeaf : 0U));
    walker.atomic = desc.atomic != 0;
  }
  return walkers;
}

/// The trees that add to each output: see LaunchProgram.
struct OutputTrees {
  bool in_turns = true;  ///< true if tree t adds to output t modulo the number of outputs
  std::vector<std::uint32_t> trees, begins;
};

OutputTrees output_trees(const Program& program) {
  const std::vector<std::uint32_t> outputs = tree_outputs(program);
  const std::uint32_t count = program.meta().num_outputs;
  OutputTrees result;
  result.trees.resize(outputs.size());
  result.begins.resize(std::size_t{count} + 1);
  const auto size = static_cast<std::uint32_t>(outputs.size());
  for (std::uint32_t t = 0; t < size; ++t) {
    result.in_turns = result.in_turns && outputs[t] == t % count;
    ++result.begins[outputs[t]];
  }
  // Turns the numbers of trees into ends, and each end into a begin while trees are placed, from the last tree on.
  std::partial_sum(result.begins.begin(), result.begins.end(), result.begins.begin());
  for (std::uint32_t t = size; t-- > 0;) result.trees[--result.begins[outputs[t]]] = t;
  return result;
}

}  // namespace

Result<DeviceProgram> DeviceProgram::make(const Program& program, const LoadedPaths& paths,
                                          const Runtime& runtime) {
  DeviceProgram device;
  FVM_ASSIGN(std::unique_ptr<Queue> queue, runtime.make_queue());
  TableUploads uploads(runtime, std::move(queue), device.buffers_);
  const ProgramMeta& meta = program.meta();
  LaunchProgram& tables = device.tables_;
  tables = {};
  const std::byte* nodes = nullptr;
  uploads.put(program.nodes(), nodes);
  const TreeDesc* trees = nullptr;
  uploads.put(program.trees(), trees);
  const std::uint32_t* numbers = nullptr;
  uploads.put(program.leaf_numbers(), numbers);
  const double* wide_leaves = nullptr;
  uploads.put(program.wide_leaves(), wide_leaves);
  const std::vector<std::uint8_t> exits = tile_exits(program);
  const std::uint8_t* device_exits = nullptr;
  uploads.put(exits, device_exits);
  const OutputTrees by_output = output_trees(program);
  if (!by_output.in_turns) {
    uploads.put(by_output.trees, tables.output_trees);
    uploads.put(by_output.begins, tables.output_begins);
  }
  tables.vectors = leaf_vectors(program);
  const std::byte* vectors = nullptr;
  uploads.put(program.leaf_vectors(), vectors);
  tables.vectors.numbers = vectors;
  const LeafFunctions functions(program);
  tables.functions = functions.outputs();
  uploads.put(program.leaf_functions(), tables.functions.functions);
  uploads.put(functions.terms(), tables.functions.terms);
  uploads.put(program.base(), device.base_);
  const std::vector<double> zeros(program.base().size());
  uploads.put(zeros, device.no_base_);
  uploads.put(program.encoded_features(), tables.features);
  uploads.put(program.ranks(), tables.ranks);
  uploads.put(program.columns(), tables.columns);
  uploads.put(program.category_columns(), tables.categories);
  uploads.put(program.category_words(), tables.category_words);
  device.groups_ = launch_groups(program, nodes, trees, device_exits);
  uploads.put(device.groups_, tables.groups);
  device.walkers_ = launch_walkers(program, numbers, wide_leaves);
  uploads.put(device.walkers_, tables.walkers);
  tables.feature_count = static_cast<std::uint32_t>(program.encoded_features().size());
  tables.column_count = static_cast<std::uint32_t>(program.columns().size());
  tables.category_count = static_cast<std::uint32_t>(program.category_columns().size());
  tables.row_width = row_width(meta);
  tables.num_outputs = meta.num_outputs;
  tables.num_trees = meta.num_trees;
  tables.parameters = parameters_of(meta);
  tables.scale = SumScale(meta.sum_unit);
  tables.transform = meta.transform;
  tables.pair = meta.pair;
  tables.score_scale = meta.scale;
  tables.any_order = meta.contract == Contract::Fast;
  DeviceKinds kinds(program, paths);
  kinds.put(uploads, tables.kinds);
  device.counts_as_model_ = forestvm::counts_as_model(program);
  FVM_TRY(uploads.finish());
  return device;
}

}  // namespace forestvm::kernels
