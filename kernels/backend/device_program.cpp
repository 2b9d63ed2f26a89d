// See device_program.hpp.
#include "kernels/backend/device_program.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/derived_tables.hpp>
#include <forestvm/internal/leaf_functions.hpp>

namespace forestvm::kernels {
namespace {

std::vector<LaunchGroup> launch_groups(const Program& program, const std::byte* nodes, const TreeDesc* trees,
                                       const std::uint8_t* exits) {
  std::vector<LaunchGroup> groups;
  for (const GroupDesc& desc : program.groups())
    with_view(desc.layout, [&]<class View>() {
      groups.push_back({group_data(desc, nodes, trees, exits), desc.tree_begin,
                        static_cast<std::uint32_t>(node_size(desc.layout)), desc.layout,
                        kInterleavesTrees<View>});
    });
  return groups;
}

std::vector<LaunchWalker> launch_walkers(const Program& program, const std::uint32_t* numbers,
                                         const double* wide_leaves) {
  std::vector<LaunchWalker> walkers;
  for (const WalkerDesc& desc : program.walkers()) {
    const GroupDesc& group = program.groups()[desc.group];
    LaunchWalker walker{};
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
    walkers.push_back(walker);
  }
  return walkers;
}

/// The trees that add to each output: see LaunchProgram.
struct OutputTrees {
  bool in_turns = true;  ///< true if tree t adds to output t modulo the number of outputs
  std::vector<std::uint32_t> trees, begins = {0};
};

OutputTrees output_trees(const Program& program) {
  const std::vector<std::uint32_t> outputs = tree_outputs(program);
  const std::uint32_t count = program.meta().num_outputs;
  OutputTrees result;
  std::vector<std::vector<std::uint32_t>> trees(count);
  for (std::uint32_t t = 0; t < outputs.size(); ++t) {
    result.in_turns = result.in_turns && outputs[t] == t % count;
    trees[outputs[t]].push_back(t);
  }
  for (const std::vector<std::uint32_t>& of_output : trees) {
    result.trees.insert(result.trees.end(), of_output.begin(), of_output.end());
    result.begins.push_back(static_cast<std::uint32_t>(result.trees.size()));
  }
  return result;
}

}  // namespace

Result<DeviceProgram> DeviceProgram::make(const Program& program, const Runtime& runtime) {
  DeviceProgram device;
  FVM_ASSIGN(const std::unique_ptr<Queue> queue, runtime.make_queue());
  const auto put_bytes = [&](std::span<const std::byte> bytes) -> Result<void> {
    FVM_ASSIGN(Buffer buffer, Buffer::make(runtime, MemoryKind::Device, bytes.size()));
    if (!bytes.empty()) FVM_TRY(queue->upload(buffer.bytes(), bytes.data(), bytes.size()));
    device.buffers_.push_back(std::move(buffer));
    return {};
  };
  const auto put = [&](auto records) -> Result<const typename decltype(records)::value_type*> {
    FVM_TRY(put_bytes(std::as_bytes(records)));
    return device.buffers_.back().template as<const typename decltype(records)::value_type>();
  };
  const ProgramMeta& meta = program.meta();
  LaunchProgram& tables = device.tables_;
  tables = {};
  FVM_ASSIGN(const std::byte* nodes, put(program.nodes()));
  FVM_ASSIGN(const TreeDesc* trees, put(program.trees()));
  FVM_ASSIGN(const std::uint32_t* numbers, put(program.leaf_numbers()));
  FVM_ASSIGN(const double* wide_leaves, put(program.wide_leaves()));
  const std::vector<std::uint8_t> exits = tile_exits(program);
  FVM_ASSIGN(const std::uint8_t* device_exits, put(std::span(exits)));
  const OutputTrees by_output = output_trees(program);
  if (!by_output.in_turns) {
    FVM_ASSIGN(tables.output_trees, put(std::span(by_output.trees)));
    FVM_ASSIGN(tables.output_begins, put(std::span(by_output.begins)));
  }
  tables.vectors = leaf_vectors(program);
  FVM_ASSIGN(tables.vectors.numbers, put(program.leaf_vectors()));
  const LeafFunctions functions(program);
  tables.functions = functions.outputs();
  FVM_ASSIGN(tables.functions.functions, put(program.leaf_functions()));
  FVM_ASSIGN(tables.functions.terms, put(functions.terms()));
  FVM_ASSIGN(tables.base, put(program.base()));
  FVM_ASSIGN(tables.features, put(program.encoded_features()));
  FVM_ASSIGN(tables.ranks, put(program.ranks()));
  FVM_ASSIGN(tables.columns, put(program.columns()));
  FVM_ASSIGN(tables.categories, put(program.category_columns()));
  FVM_ASSIGN(tables.category_words, put(program.category_words()));
  device.groups_ = launch_groups(program, nodes, trees, device_exits);
  FVM_ASSIGN(tables.groups, put(std::span(device.groups_)));
  device.walkers_ = launch_walkers(program, numbers, wide_leaves);
  FVM_ASSIGN(tables.walkers, put(std::span(device.walkers_)));
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
  FVM_TRY(queue->mark());
  FVM_TRY(queue->wait());
  return device;
}

}  // namespace forestvm::kernels
