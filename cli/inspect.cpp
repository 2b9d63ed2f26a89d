// forestvm inspect: what a model or a program is, as text or JSON. Both come from one ordered document.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/names.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

using Json = nlohmann::ordered_json;

/// 0 where the model has no classes.
std::uint32_t class_count(ClassRule rule, std::uint32_t outputs) {
  switch (rule) {
    case ClassRule::None:
      return 0;
    case ClassRule::AboveHalf:
    case ClassRule::Positive:
      return 2;
    case ClassRule::Argmax:
    case ClassRule::Value:
      return outputs;
  }
  return 0;
}

/// What is known once there is a program.
void add_program(Json& document, const Program& program) {
  const ProgramMeta& meta = program.meta();
  document["contract"] = name_of(meta.contract);
  document["sums in model order"] = meta.sums_in_model_order != 0;
  document["program bytes"] = program.image().size();
  document["node bytes"] = program.section_Nodes().size();
  Json groups = Json::array();
  for (const GroupDesc& group : program.section_Groups())
    groups.push_back(std::string(name_of(group.layout)) + " " + std::to_string(group.tree_begin) + ":" +
                     std::to_string(group.tree_end));
  document["layouts"] = std::move(groups);
  document["instructions"] = program.code().size();
}

template <class Counts>
void add_thresholds(Json& document, const Counts& counts) {
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  for (const std::uint32_t count : counts) {
    total += count;
    used += count > 0 ? 1U : 0U;
  }
  document["features used"] = used;
  document["thresholds"] = total;
  document["thresholds per feature"] = std::vector<std::uint32_t>(counts.begin(), counts.end());
}

/// Splits whose right child is not left + 1: XGBoost's own predictor takes it to be, we follow the file.
std::uint64_t scattered_children(const Model& model) {
  std::uint64_t count = 0;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes) count += node.left >= 0 && node.right != node.left + 1 ? 1U : 0U;
  return count;
}

Json document_of(const std::string& path, const Model& model) {
  Json document;
  document["file"] = path;
  document["kind"] = "model";
  document["format"] = model.format;
  document["trainer"] = model.version.empty() ? model.trainer : model.trainer + " " + model.version;
  document["objective"] = model.objective;
  document["features"] = model.num_features;
  if (!model.feature_names.empty()) document["feature names"] = model.feature_names;
  document["outputs"] = model.num_outputs;
  document["classes"] = class_count(model.class_rule, model.num_outputs);
  if (!model.class_labels.empty()) document["class labels"] = model.class_labels;
  document["transform"] = name_of(model.transform);
  document["class rule"] = name_of(model.class_rule);
  document["base"] = model.base;
  document["arithmetic"] = model.score_type == ScalarType::Float32 ? "float32" : "float64";
  document["trees"] = model.trees.size();
  document["rounds"] = model.round_begins.empty() ? 0 : model.round_begins.size() - 1;
  const ForestStatistics numbers = statistics(model);
  document["nodes"] = numbers.nodes;
  document["leaves"] = numbers.leaves;
  document["depth"] = {{"min", numbers.min_depth}, {"mean", numbers.mean_depth}, {"max", numbers.max_depth}};
  add_thresholds(document, thresholds_per_feature(model));
  if (const auto count = scattered_children(model); count > 0) document["right child not after left"] = count;
  const auto compiled = compile(model, automatic_schedule(model));
  if (compiled) {
    add_program(document, compiled->program);
  } else {
    document["not runnable"] = compiled.error().text();
  }
  return document;
}

template <class Get>
Json names(std::uint32_t count, Get get) {
  Json out = Json::array();
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(get(i));
  return out;
}

Json document_of(const std::string& path, const Program& program) {
  const ProgramMeta& meta = program.meta();
  Json document;
  document["file"] = path;
  document["kind"] = "program";
  document["format"] = program.text(StringId::Format);
  document["trainer"] = std::string(program.text(StringId::Trainer));
  if (const auto version = program.text(StringId::Version); !version.empty())
    document["trainer"] = std::string(program.text(StringId::Trainer)) + " " + std::string(version);
  document["objective"] = program.text(StringId::Objective);
  document["features"] = meta.num_features;
  if (meta.num_feature_names > 0)
    document["feature names"] =
        names(meta.num_feature_names, [&](std::uint32_t i) { return program.feature_name(i); });
  document["outputs"] = meta.num_outputs;
  document["classes"] = class_count(meta.class_rule, meta.num_outputs);
  if (meta.num_class_labels > 0)
    document["class labels"] =
        names(meta.num_class_labels, [&](std::uint32_t i) { return program.class_label(i); });
  document["transform"] = name_of(meta.transform);
  document["class rule"] = name_of(meta.class_rule);
  const auto base = program.section_Base();
  document["base"] = std::vector<double>(base.begin(), base.end());
  document["trees"] = meta.num_trees;
  document["nodes"] = meta.forest_nodes;
  document["leaves"] = meta.forest_leaves;
  document["depth"] = {{"min", meta.min_depth}, {"mean", meta.mean_depth}, {"max", meta.max_depth}};
  add_thresholds(document, program.section_Thresholds());
  add_program(document, program);
  document["schedule"] = program.text(StringId::Schedule);
  std::string fingerprint(16, '0');
  for (std::size_t i = 0; i < 16; ++i)
    fingerprint[15 - i] = "0123456789abcdef"[(meta.fingerprint >> (4 * i)) & 15U];
  document["model fingerprint"] = fingerprint;
  return document;
}

constexpr std::size_t kListed = 32;  // of a list, in text; JSON has all

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_structured()) return value.dump();
  std::string text;
  std::size_t count = 0;
  for (const auto& [key, item] : value.items()) {
    if (count++ == kListed) return text + " … (" + std::to_string(value.size()) + ", all in --json)";
    if (!text.empty()) text += item.is_number() && value.is_array() ? " " : ", ";
    text += value.is_object() ? key + " " + text_of(item) : text_of(item);
  }
  return text;
}

std::string text_page(const Json& document) {
  std::string text;
  for (const auto& [key, value] : document.items()) {
    std::string left = key;
    left.resize(std::max<std::size_t>(left.size() + 2, 24), ' ');
    std::string right = text_of(value);
    for (std::size_t at = right.find('\n'); at != std::string::npos; at = right.find('\n', at + 1))
      right.replace(at, 1, at + 1 == right.size() ? "" : "; ");
    text += left + right + '\n';
  }
  return text;
}

/// Keys of JSON have no spaces.
std::string json_page(const Json& document) {
  Json out;
  for (const auto& [key, value] : document.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), ' ', '_');
    out[name] = value;
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<void> run(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "FILE"));
  FVM_ASSIGN(const ModelOrProgram loaded, load_file(path));
  const Json document = std::visit([&path](const auto& held) { return document_of(path, held); }, loaded);
  return write_output("-", arguments.has("json") ? json_page(document) : text_page(document));
}

}  // namespace

const Command kInspect = {
    "inspect",
    "says what a model or a program is",
    {"inspect FILE [--json]"},
    {{"FILE", "a trainer's model file, or a .fvm program"}},
    {{"json", '\0', "", "as JSON"}},
    "  forestvm inspect model.json\n",
    nullptr,
    run,
};

}  // namespace forestvm::cli
