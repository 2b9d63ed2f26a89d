#include "small_program.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>

#include <forestvm/background.hpp>
#include <forestvm/samples.hpp>

#include "support/small_models.hpp"
#include "vm/program/format.hpp"

namespace forestvm::test {
namespace {

/// Grows a tree below node `at`; every third tree is a chain to one side.
void grow(Tree& tree, std::size_t at, std::uint32_t depth, bool chain, std::mt19937& random,
          std::uint32_t features) {
  const auto number = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  if (depth == 0) {
    tree.nodes[at].kind = NodeKind::Leaf;
    tree.nodes[at].value = static_cast<double>(static_cast<float>(number(2001)) / 1024.0f - 1.0f);
    return;
  }
  const std::size_t left = tree.nodes.size();
  tree.nodes.resize(left + 2);
  Node& node = tree.nodes[at];
  node.kind = NodeKind::Less;
  node.feature = number(features);
  node.threshold = static_cast<double>(static_cast<float>(number(17)) / 4.0f - 2.0f);
  node.missing_left = number(2) == 0;
  node.left = static_cast<std::int32_t>(left);
  node.right = static_cast<std::int32_t>(left + 1);
  grow(tree, left, chain ? 0 : depth - 1, chain, random, features);
  grow(tree, left + 1, depth - 1, chain, random, features);
}

template <class Record>
std::vector<Record> copy_of(std::span<const Record> records) {
  return {records.begin(), records.end()};
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

void must(const Result<void>& done) {
  if (!done.ok()) throw std::runtime_error(done.error().text());
}

}  // namespace

const char* const kRichSchedule =
    "tile(batch, b0, b1, 4); split(tree, ta, tb, 4); tile(ta, t0, t1, 2); layout(ta, array); "
    "layout(tb, sparse16); parallel(b0); parallel(t0); peelWalk(tb, 1)";

const std::vector<RichCase>& rich_cases() {
  static const std::vector<RichCase> cases = {
      {kRichSchedule, Contract::Trainer},
      {"tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0); cache(b0, 2); cache(tree); layout(tree, "
       "sparse8)",
       Contract::Trainer},
      {"orderTrees(depth); tile(tree, t0, t1, 3); reorder(t0, batch, t1); parallel(t0); specialize(t0); "
       "layout(tree, reorg); unrollWalk(t1)",
       Contract::Trainer},
      {"tile(tree, t0, t1, 3); reorder(t0, t1, batch); parallel(t0); parallel(t1); vectorReduce(t0, 4); "
       "tileTree(tree, 3, uniform); layout(tree, sparse)",
       Contract::Reproducible},
      {"tile(tree, t0, t1, 2); reorder(t0, batch, t1); parallel(t0); atomicReduce(t0); tileTree(tree, 5, "
       "uniform); "
       "layout(tree, array)",
       Contract::Fast, 2},
      {"accumulate(f64); parallel(tree); tileTree(tree, 2, uniform); layout(tree, reorg)", Contract::Fast, 2},
      {"plan(3); plan(BATCH); tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0); encode(u8)",
       Contract::Trainer, 2},
      {"tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0); layout(tree, sparse12)",
       Contract::Trainer, 3, ScalarType::Float64},
      {"orderTrees(depth); layout(tree, array)", Contract::Trainer, 3, ScalarType::Float64},
      {"parallel(tree); tileTree(tree, 4, uniform); layout(tree, sparse)", Contract::Reproducible, 3,
       ScalarType::Float64},
      {"plan(3); layout(tree, sparse); plan(BATCH); tile(batch, b0, b1, 4); reorder(b0, tree, b1)",
       Contract::Trainer, 2, ScalarType::Float32, true},
      {"plan(3); layout(tree, sparse); plan(BATCH); tile(batch, b0, b1, 4); reorder(b0, tree, b1); encode(u8)",
       Contract::Trainer, 2, ScalarType::Float32, false, true},
      {"tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0); layout(tree, sparse8)",
       Contract::Trainer, 2, ScalarType::Float32, false, false, false, true},
      {"plan(3); layout(tree, sparse); plan(BATCH); tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0); "
       "encode(u8)",
       Contract::Trainer, 2, ScalarType::Float64, false, false, true},
      {"plan(3); layout(tree, sparse); plan(BATCH); encode(u8)", Contract::Trainer, 2, ScalarType::Float32,
       true, false, false, false, true},
      {"layout(tree, sparse8)", Contract::Trainer, 1, ScalarType::Float64, false, false, false, true, true},
      {"plan(3); plan(BATCH); tile(batch, b0, b1, 4); reorder(b0, tree, b1); parallel(b0)", Contract::Trainer,
       2, ScalarType::Float32, false, false, false, false, false, true},
      {"encode(u8)", Contract::Trainer, 2, ScalarType::Float64, false, false, true, false, false, true},
      {"encode(u8)", Contract::Trainer, 3, ScalarType::Float32, true, false, false, false, false, false,
       true},
  };
  return cases;
}

Model small_forest(const ForestShape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  Model model;
  model.format = "by hand";
  model.trainer = "a test";
  model.objective = "multi:softprob";
  model.num_features = shape.features;
  model.num_outputs = shape.outputs;
  for (std::uint32_t i = 0; i < shape.features; ++i) model.feature_names.push_back("f" + std::to_string(i));
  for (std::uint32_t i = 0; i < shape.outputs; ++i) {
    model.class_labels.push_back("class " + std::to_string(i));
    model.base.push_back(0.125 * i);
  }
  model.transform = Transform::Softmax;
  model.class_rule = ClassRule::Argmax;
  for (std::uint32_t t = 0; t < shape.trees; ++t) {
    Tree tree;
    tree.nodes.resize(1);
    tree.output = t % shape.outputs;
    const bool chain = t % 3 == 2;
    grow(tree, 0, t % 3 == 1 ? shape.depth / 2 : shape.depth, chain, random, shape.features);
    model.trees.push_back(std::move(tree));
    model.round_begins.push_back(t);
  }
  model.round_begins.push_back(shape.trees);
  return model;
}

Tree chain_of(std::uint32_t depth) {
  Tree chain = small_forest({.trees = 1, .depth = 1}).trees[0];
  const Node split = chain.nodes[0], leaf = chain.nodes[1];
  chain.nodes.assign(1, depth == 0 ? leaf : split);
  for (std::uint32_t below = depth; below > 0; --below) {
    Node& parent = chain.nodes.back();
    parent.left = static_cast<std::int32_t>(chain.nodes.size());
    parent.right = parent.left + 1;
    chain.nodes.push_back(leaf);
    chain.nodes.push_back(below == 1 ? leaf : split);
  }
  return chain;
}

Program compiled(const Model& model, const std::string& schedule, const CompileOptions& options) {
  auto parsed = parse_schedule(schedule);
  if (!parsed) throw std::runtime_error(schedule + ": " + parsed.error().text());
  auto result = compile(model, *parsed, options);
  if (!result) throw std::runtime_error(schedule + ": " + result.error().text());
  return result->program;
}

Program compiled(const Model& model, const std::string& schedule, Contract contract) {
  CompileOptions options;
  options.contract = contract;
  return compiled(model, schedule, options);
}

Program explained(const Model& model, const std::string& schedule, Contract contract) {
  CompileOptions options;
  options.contract = contract;
  options.contributions = true;
  return compiled(model, schedule, options);
}

Program interacting(const Model& model, const std::string& schedule, Contract contract) {
  CompileOptions options;
  options.contract = contract;
  options.interactions = true;
  return compiled(model, schedule, options);
}

Program program_of(const Model& model, const RichCase& rich) {
  CompileOptions options;
  options.contract = rich.contract;
  options.interactions = options.approx_contributions = rich.contributions;
  options.keeps_leaves = rich.keeps_leaves;
  if (rich.background) {
    const std::vector<float> rows = small_rows(40, model.num_features);
    auto background =
        Background::make(model, std::vector<double>(rows.begin(), rows.end()), model.num_features);
    if (!background) throw std::runtime_error(background.error().text());
    options.background = std::make_shared<const Background>(std::move(*background));
  }
  return compiled(model, rich.schedule, options);
}

Program sampled_program() {
  Model model = small_forest({.outputs = 1});
  model.averaged = true;
  const std::vector<float> rows = small_rows(40, model.num_features);
  std::vector<double> targets;
  for (std::size_t i = 0; i < 40; ++i) targets.push_back(static_cast<double>(i * 7 % 30) / 4);
  auto samples =
      Samples::make(model, std::vector<double>(rows.begin(), rows.end()), model.num_features, targets);
  if (!samples) throw std::runtime_error(samples.error().text());
  CompileOptions options;
  options.samples = std::make_shared<const Samples>(std::move(*samples));
  return compiled(model, "layout(tree, sparse8)", options);
}

void keep_targets(ProgramParts& parts) {
  parts.targets = {-1.5, 0.25, 2};
  parts.sample_targets = {0, 1, 1, 2};
  parts.sampled_leaves = {0, 1, 1, 3, 4};
  parts.sampled_trees.assign(parts.meta.num_trees, {0, 4});
}

std::vector<OutputKind> outputs_of(const Program& program) {
  std::vector<OutputKind> outputs{OutputKind::Raw, OutputKind::Value, OutputKind::Class, OutputKind::Leaf};
  if (program.meta().contributions != 0) outputs.push_back(OutputKind::Contributions);
  if (!program.round_begins().empty()) outputs.insert(outputs.end(), {OutputKind::Trees, OutputKind::Staged});
  if (program.meta().contributions > 1) outputs.push_back(OutputKind::Interactions);
  if (!program.attribution_base().empty()) outputs.push_back(OutputKind::ApproxContributions);
  if (!program.targets().empty()) outputs.push_back(OutputKind::Quantile);
  if (const auto all = program.uncertainty(); !all.empty()) {
    outputs.push_back(OutputKind::Uncertainty);
    if (all[0].rule != UncertaintyRule::Trees) outputs.push_back(OutputKind::VirtEnsembles);
  }
  return outputs;
}

void make_wide(Model& model) {
  model.row_type = model.score_type = ScalarType::Float64;
  double last = 1;
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes) {
      if (node.kind == NodeKind::Leaf) continue;
      node.missing = Missing::Zero;
      if (node.feature == 1) node.threshold += 1e-9;
      if (node.feature == 2) node.threshold = last += 1e-9;
    }
}

Model forest_of(const RichCase& rich) {
  Model model = small_forest({.depth = rich.depth});
  model.row_type = model.score_type = rich.score_type;
  if (rich.score_type == ScalarType::Float64) make_wide(model);
  if (rich.categories)
    for (Tree& tree : model.trees) make_categorical(tree);
  if (rich.derived) derive_columns(model);
  if (rich.linear) support::make_linear(model);
  if (rich.contributions)
    for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  if (!rich.vectors) return model;
  for (Tree& tree : model.trees) support::make_vectors(tree, model.num_outputs);
  model.categories = {{1, {"red", "", "green"}, 2.0}, {2, {"1"}, std::nullopt}};
  return model;
}

void derive_columns(Model& model) {
  Lookup lookup{{}, {{0, 0.5f, false}, {2, -1, true}}, {}, {}, 2, {1, -1, 0.25f, 2, -2, 0.5f}};
  lookup.keys = {0, key_with(key_with(0, 1), 0)};
  model.lookups = {lookup};
  model.computed_columns = {{ColumnKind::Sum, {{0, 0.5f, 0}, {1, -2, 0}}},
                            {ColumnKind::SumReplaced, {{2, 2, 0.5f}}}};
  for (Tree& tree : model.trees)
    for (std::size_t i = 0; i < tree.nodes.size(); i += 2)
      if (tree.nodes[i].kind == NodeKind::Less)
        tree.nodes[i].feature += 3 + static_cast<std::uint32_t>(i / 2 % 2);
}

void make_categorical(Tree& tree) {
  tree.category_sets = {{{0, 2}, false}, {{1, 3, 70}, true, CategoryRule::AboveMinusOne}, {{64}, false}};
  for (std::size_t i = 0; i < tree.nodes.size(); i += 2) {
    Node& node = tree.nodes[i];
    if (node.kind != NodeKind::Less) continue;
    node.kind = NodeKind::Category;
    node.threshold = 0;
    node.payload = static_cast<std::uint32_t>(i / 2 % tree.category_sets.size());
  }
}

std::vector<Program> rich_programs() {
  std::vector<Program> programs;
  for (const RichCase& rich : rich_cases()) programs.push_back(program_of(forest_of(rich), rich));
  return programs;
}

Program rich_program() { return compiled(small_forest(), kRichSchedule); }

Program hashed_program() {
  Model model = small_forest({.depth = 2});
  derive_columns(model);
  model.hashed_features = {1};
  model.computed_columns[0].terms[1].feature = 0;
  model.lookups[0].categories = {1};
  model.lookups[0].code_tests = {{1, 5}};
  return compiled(model, "encode(u8)");
}

void make_whole(std::vector<float>& rows, const Program& program) {
  const std::size_t features = program.meta().num_features;
  for (const std::uint32_t feature : program.hashed_features())
    for (std::size_t row = 0; row < rows.size() / features; ++row)
      rows[row * features + feature] = static_cast<float>(row);
}

Program uncertain_program() {
  Model model = small_forest({.depth = 2});
  make_wide(model);
  model.uncertainty = UncertaintyRule::Classes;
  model.shrinkage = 0.125f;
  CompileOptions options;
  options.keeps_leaves = true;
  return compiled(model, "", options);
}

ProgramParts parts_of(const Program& program) {
  ProgramParts parts;
#define FVM_RECORD(number, Name, name, Record, meaning) parts.name = program.name();
#define FVM_TEXTS(number, Name, name, Record, meaning)
#define FVM_SECTION(number, Name, name, Record, meaning) parts.name = copy_of(program.name());
#include <forestvm/internal/sections.def>
  for (const StringRef& ref : program.strings())
    parts.strings.emplace_back(program.text().data() + ref.offset, ref.size);
  return parts;
}

std::vector<std::byte> image_of(const Program& program) { return copy_of(program.image()); }

void repair_checksum(std::vector<std::byte>& image) {
  const std::uint64_t right = bytecode::checksum(image);
  std::memcpy(image.data() + offsetof(bytecode::FileHeader, checksum), &right, sizeof right);
}

std::vector<float> small_rows(std::size_t count, std::size_t stride, std::uint32_t seed) {
  constexpr float kSpecial[] = {std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                0.0f,
                                -0.0f,
                                std::numeric_limits<float>::denorm_min(),
                                -std::numeric_limits<float>::denorm_min(),
                                std::numeric_limits<float>::max()};
  std::mt19937 random(seed);
  std::vector<float> rows(count * stride);
  for (float& x : rows)
    x = random() % 4 == 0 ? kSpecial[random() % std::size(kSpecial)]
                          : static_cast<float>(random() % 1000) / 200.0f - 2.5f;
  return rows;
}

Answers answers(const Predictor& predictor, Context& context, const AnyRows& rows) {
  const ProgramMeta& meta = predictor.program().meta();
  const std::size_t count = row_count(rows);
  std::vector<float> raw(count * output_width(predictor.program(), OutputKind::Raw));
  std::vector<float> value(count * output_width(predictor.program(), OutputKind::Value));
  Answers all;
  all.labels.resize(count * output_width(predictor.program(), OutputKind::Class));
  must(predictor.predict(context, rows, OutputKind::Raw, raw.data()));
  must(predictor.predict(context, rows, OutputKind::Value, value.data()));
  all.leaves.resize(count * meta.num_trees);
  must(predictor.predict_leaf(context, rows, all.leaves.data()));
  if (!all.labels.empty()) must(predictor.predict_class(context, rows, all.labels.data()));
  all.raw = bits_of(raw);
  all.value = bits_of(value);
  return all;
}

Answers answers(const Predictor& predictor, const AnyRows& rows) {
  return answers(predictor, *predictor.make_context(), rows);
}

}  // namespace forestvm::test
