// forestvm inspect: describes a model or a program, and what its calls cost on a GPU, as text or JSON. Both forms come
// from one ordered document.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/core/layout/tables.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/internal/statistics.hpp>

#include "cli/commands.hpp"
#include "cli/gpu_account.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"
#include "cli/schedule_lines.hpp"

namespace forestvm::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the number of classes; 0 if the model has none.
std::uint32_t class_count(ClassRule rule, std::uint32_t outputs) {
  switch (rule) {
    case ClassRule::None:
      return 0;
    case ClassRule::AboveHalf:
    case ClassRule::Positive:
    case ClassRule::RawPositive:
    case ClassRule::RawNotNegative:
    case ClassRule::RawAboveHalf:
    case ClassRule::RawAboveOffset:
    case ClassRule::Negative:
    case ClassRule::HalfOrMore:
    case ClassRule::NotPositive:
      return 2;
    case ClassRule::Argmax:
    case ClassRule::ArgmaxOfEach:
    case ClassRule::RawArgmax:
    case ClassRule::Value:
      return outputs;
  }
  return 0;
}

std::string sums_text(AccumulatorKind kind, int unit) {
  const std::string text(name_of(kind));
  if (kind == AccumulatorKind::Exact64 || kind == AccumulatorKind::Exact128)
    return formatted("{}, counting 2^{}", text, unit);
  return is_per_tree(kind) ? text + ", added in the model's order" : text;
}

/// Returns the kind of the accumulator that walks for scores add to: the first one after the result a0 that is neither
/// a private copy nor for outputs of single trees. If there is none, walks add to the result, whose kind is F32.
AccumulatorKind sums_kind(const Program& program) {
  const std::vector<AccumulatorMemory>& memory = code_map(program).accumulators;
  for (std::uint32_t i = 1; i < program.accumulators().size(); ++i)
    if (program.accumulators()[i].parent == i && !memory[i].of_trees) return program.accumulators()[i].kind;
  return AccumulatorKind::F32;
}

/// Returns the bytes of scratch memory that a call for scores takes per row for sums other than the result, and for
/// private copies.
std::uint64_t private_bytes(const Program& program) {
  std::uint64_t bytes = 0;
  for (const AccumulatorMemory& memory : std::span(code_map(program).accumulators).subspan(1))
    if (!memory.of_trees) bytes += memory.copy_bytes;
  return bytes;
}

/// Returns the number of oblivious trees of a group. Their walks look nothing up, because all nodes of a level have the
/// same test.
std::ptrdiff_t oblivious_trees(const Program& program, const GroupDesc& group) {
  if (group.layout != Layout::Tables) return 0;
  const auto trees = trees_of(program, group);
  return std::count_if(trees.begin(), trees.end(), &TablesView::is_oblivious);
}

/// Returns the facts about the background of a program that has one.
Json background_of(const Program& program) {
  const auto trees = program.explained_trees();
  const auto walked =
      std::ranges::count_if(trees, [](const ExplainedTree& tree) { return tree.node_count > 1; });
  const bool looks_up = !program.pattern_leaves().empty();
  return {
      {"rows", program.background()[0]},
      {"leaves looked up", program.pattern_leaves().size()},
      {"table bytes", program.pattern_numbers().size_bytes()},
      {"trees walked", walked},
      {"because",
       walked == 0
           ? "looking leaves up by the tests that rows pass costs less than walking trees once for each "
             "different way of the background's rows"
       : looks_up
           ? formatted("trees are walked once for each different way of the background's rows where that "
                       "costs less, or for leaves below more than {} features; other leaves are looked up",
                       kMaxPatternFeatures)
           : formatted("walking trees once for each different way of the background's rows costs less, or "
                       "leaves lie below more than {} features",
                       kMaxPatternFeatures)}};
}

/// Adds the facts about a program to the document.
void add_program(Json& document, const Program& program) {
  const ProgramMeta& meta = program.meta();
  document["contract"] = name_of(meta.contract);
  document["sums"] = sums_text(sums_kind(program), meta.sum_unit);
  document["sums in model order"] = meta.sums_in_model_order != 0;
  document["private bytes per row"] = private_bytes(program);
  document["program bytes"] = program.image().size();
  document["node bytes"] = program.nodes().size();
  if (meta.forest_nodes != 0)  // nodes() has the layouts of all plans; leaves count as nodes
    document["node bytes per node"] = std::round(10.0 * static_cast<double>(program.nodes().size()) /
                                                 static_cast<double>(meta.forest_nodes)) /
                                      10;
  document["leaf number bytes"] = program.leaf_numbers().size_bytes();
  if (meta.score_type == ScalarType::Float64)
    document["float64 leaf bytes"] = program.wide_leaves().size_bytes();
  Json groups = Json::array();
  for (const GroupDesc& group : program.groups()) {
    std::string text(name_of(group.layout));
    if (group.tile_size > 1) text += formatted(" (tiles of {})", group.tile_size);
    text += formatted(" {}:{}", group.tree_begin, group.tree_end);
    if (const auto count = oblivious_trees(program, group); count > 0)
      text += formatted(" ({} oblivious)", count);
    groups.push_back(std::move(text));
  }
  document["layouts"] = std::move(groups);
  if (const auto hashed = program.hashed_features(); !hashed.empty())
    document["hashed features"] = std::vector<std::uint32_t>(hashed.begin(), hashed.end());
  if (const std::vector<std::string> columns = derived_column_texts(program); !columns.empty()) {
    Json derived = Json::object();  // splits name derived columns as features after the model's own
    for (std::size_t i = 0; i < columns.size(); ++i)
      derived[formatted("f{}", program.meta().num_features + i)] = columns[i];
    document["derived columns"] = std::move(derived);
  }
  if (const auto functions = program.leaf_functions(); !functions.empty()) {
    std::set<std::uint32_t> features;
    for (const LeafTerm& term : program.leaf_terms()) features.insert(term.feature);
    document["linear leaves"] = {{"functions", functions.size()},
                                 {"terms", program.leaf_terms().size()},
                                 {"features", features.size()}};
  }
  if (program.meta().contributions != 0)
    document["contributions"] = {{"trees", program.explained_trees().size()},
                                 {"nodes", program.paths().size()},
                                 {"bytes", program.paths().size_bytes()},
                                 {"interactions", program.meta().contributions > 1}};
  if (!program.background().empty()) document["background"] = background_of(program);
  if (const auto attributions = program.attributions(); !program.attribution_base().empty())
    document["approximate contributions"] = {{"attributions", attributions.size()},
                                             {"bytes", attributions.size_bytes()}};
  if (const auto targets = program.targets(); !targets.empty())
    document["quantiles"] = {{"distinct targets", targets.size()},
                             {"targets in leaves", program.sample_targets().size()},
                             {"bytes", targets.size_bytes() + program.sample_targets().size_bytes()}};
  if (const auto begins = program.round_begins(); !begins.empty()) {
    document["keeps leaves"] = true;
    if (!program.uncertainty().empty())
      document["uncertainty"] =
          program.uncertainty()[0].rule == UncertaintyRule::Trees ? "of trees" : "of virtual ensembles";
    if (program.meta().rounds != RoundRule::None) document["rounds"] = begins.size() - 1;
  }
  const std::string_view schedule = program.text(StringId::Schedule);
  if (const std::vector<PlanRemark> plans = plan_remarks(schedule); !plans.empty()) {
    Json list = Json::array();
    for (const PlanRemark& plan : plans) {
      Json one = Json::object();
      one["for"] = plan.rows;
      if (!plan.remark.empty()) one["because"] = plan.remark;
      list.push_back(std::move(one));
    }
    document["plans"] = std::move(list);
  }
  document["schedule"] = one_line(schedule);
  document["runs on"] = program.mapped() ? "GPU backends (its loops are mapped)" : "the host";
  document["instructions"] = program.code().size();
  document["steps per row at most"] = steps_per_row(program);
}

/// Returns pairs of a feature and its count. Features that have none are left out.
Json count_list(const std::vector<FeatureCount>& counts) {
  Json list = Json::array();
  for (const FeatureCount& row : counts) list.push_back({row.feature, row.count});
  return list;
}

/// Adds the numbers of distinct thresholds and of sets of categories: their totals, and the count of each feature that
/// has some.
void add_splits(Json& document, const std::vector<FeatureCount>& thresholds, std::uint64_t category_splits,
                const std::vector<FeatureCount>& sets) {
  std::uint64_t total = 0;
  std::set<std::uint32_t> used;
  for (const FeatureCount& row : thresholds) {
    total += row.count;
    used.insert(row.feature);
  }
  for (const FeatureCount& row : sets) used.insert(row.feature);
  document["features used"] = used.size();
  document["thresholds"] = total;
  document["thresholds per feature"] = count_list(thresholds);
  if (category_splits == 0) return;
  document["categorical splits"] = category_splits;
  document["category sets per feature"] = count_list(sets);
}

/// Returns the number of the encoder's sets of categories per feature. A set counts twice if missing values go one way
/// in some splits and the other way in others.
std::vector<FeatureCount> category_sets_per_feature(const Program& program) {
  std::vector<FeatureCount> counts;
  for (const CategoryColumn& column : program.category_columns()) {
    if (counts.empty() || counts.back().feature != column.feature) counts.push_back({column.feature, 0});
    ++counts.back().count;
  }
  return counts;
}

/// Returns the number of splits whose right child does not follow the left one. XGBoost's own predictor assumes that it
/// does; forestvm follows the file.
std::uint64_t scattered_children(const Model& model) {
  std::uint64_t count = 0;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes) count += node.left >= 0 && node.right != node.left + 1 ? 1U : 0U;
  return count;
}

// The functions below make each JSON object before they set its members. If operator[] makes the object and memory runs
// out, the JSON library leaves a value behind that its destructor cannot handle.

/// The facts with which a document begins. Lists that are empty are left out.
struct Head {
  const char* kind;
  std::string_view format, trainer, version, objective;
  std::uint32_t features;
  Json feature_names;
  std::uint32_t outputs;
  ClassRule class_rule;
  Json class_labels, categories;
  Transform transform;
  Json base;
  ScalarType score_type;
};

Json document_with(const std::string& path, Head head) {
  Json document = Json::object();
  const auto add_list = [&](const char* key, Json& list) {
    if (!list.empty()) document[key] = std::move(list);
  };
  document["file"] = path;
  document["kind"] = head.kind;
  document["format"] = head.format;
  document["trainer"] =
      head.version.empty() ? std::string(head.trainer) : formatted("{} {}", head.trainer, head.version);
  document["objective"] = head.objective;
  document["features"] = head.features;
  add_list("feature names", head.feature_names);
  document["outputs"] = head.outputs;
  document["classes"] = class_count(head.class_rule, head.outputs);
  add_list("class labels", head.class_labels);
  add_list("categories", head.categories);
  document["transform"] = name_of(head.transform);
  document["class rule"] = name_of(head.class_rule);
  document["base"] = std::move(head.base);
  document["arithmetic"] = head.score_type == ScalarType::Float32 ? "float32" : "float64";
  return document;
}

/// Adds the size of a forest, and the depths of its trees.
void add_size(Json& document, std::uint64_t nodes, std::uint64_t leaves, std::uint32_t min_depth,
              double mean_depth, std::uint32_t max_depth) {
  document["nodes"] = nodes;
  document["leaves"] = leaves;
  document["depth"] = {{"min", min_depth}, {"mean", mean_depth}, {"max", max_depth}};
}

/// Describes a model. `program` is its program, or the error that says why there is none.
Json document_of(const std::string& path, const Model& model, const Result<Program>& program) {
  Json categories = Json::object();
  for (const FeatureCategories& named : model.categories)
    categories[std::to_string(named.feature)] = named.names;
  Json document = document_with(path, {.kind = "model",
                                       .format = model.format,
                                       .trainer = model.trainer,
                                       .version = model.version,
                                       .objective = model.objective,
                                       .features = model.num_features,
                                       .feature_names = model.feature_names,
                                       .outputs = model.num_outputs,
                                       .class_rule = model.class_rule,
                                       .class_labels = model.class_labels,
                                       .categories = std::move(categories),
                                       .transform = model.transform,
                                       .base = model.base,
                                       .score_type = model.score_type});
  document["trees"] = model.trees.size();
  if (model.best_round) document["best round"] = *model.best_round;
  document["rounds"] = model.round_begins.empty() ? 0 : model.round_begins.size() - 1;
  const ForestStatistics numbers = statistics(model);
  add_size(document, numbers.nodes, numbers.leaves, numbers.min_depth, numbers.mean_depth, numbers.max_depth);
  add_splits(document, thresholds_per_feature(model), numbers.category_splits,
             forestvm::category_sets_per_feature(model));
  if (const auto count = scattered_children(model); count > 0)
    document["right children not after left"] = count;
  const ReproducibleSums exact = reproducible_sums(model);
  document["reproducible sums"] = sums_text(exact.kind, exact.unit);
  if (program)
    add_program(document, *program);
  else
    document["not runnable"] = program.error().text();
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
  Json categories = Json::object();
  for (const CategoryNames& named : program.category_names())
    categories[std::to_string(named.feature)] = program.category_names(named.feature);
  const auto base = program.base();
  Json document = document_with(
      path,
      {.kind = "program",
       .format = program.text(StringId::Format),
       .trainer = program.text(StringId::Trainer),
       .version = program.text(StringId::Version),
       .objective = program.text(StringId::Objective),
       .features = meta.num_features,
       .feature_names =
           names(meta.num_feature_names, [&](std::uint32_t i) { return program.feature_name(i); }),
       .outputs = meta.num_outputs,
       .class_rule = meta.class_rule,
       .class_labels = names(meta.num_class_labels, [&](std::uint32_t i) { return program.class_label(i); }),
       .categories = std::move(categories),
       .transform = meta.transform,
       .base = std::vector<double>(base.begin(), base.end()),
       .score_type = meta.score_type});
  document["trees"] = meta.num_trees;
  add_size(document, meta.forest_nodes, meta.forest_leaves, meta.min_depth, meta.mean_depth, meta.max_depth);
  const auto thresholds = program.thresholds();
  add_splits(document, {thresholds.begin(), thresholds.end()}, meta.category_splits,
             category_sets_per_feature(program));
  add_program(document, program);
  std::string fingerprint(16, '0');
  for (std::size_t i = 0; i < 16; ++i)
    fingerprint[15 - i] = "0123456789abcdef"[(meta.fingerprint >> (4 * i)) & 15U];
  document["model fingerprint"] = fingerprint;
  return document;
}

constexpr std::uint64_t kUsualCallRows = 65536;
constexpr std::uint64_t kMaxCallRows = 1u << 24;

constexpr std::size_t kListed = 32;  // most items of a list that the text shows; JSON has all

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_structured()) return value.dump();
  std::string text;
  std::size_t count = 0;
  for (const auto& [key, item] : value.items()) {
    if (count++ == kListed) return formatted("{} … ({}, all in --json)", text, value.size());
    if (!text.empty()) text += item.is_number() && value.is_array() ? " " : ", ";
    text += value.is_object() ? formatted("{} {}", key, text_of(item)) : text_of(item);
  }
  return text;
}

bool holds_objects(const Json& value) { return value.is_array() && !value.empty() && value[0].is_object(); }

/// Returns the document as text, a line for each member. A list of objects becomes a paragraph for each object, named
/// by the list's key without its plural -s.
// NOLINTNEXTLINE(misc-no-recursion)
std::string text_page(const Json& document, const std::string& indent = "") {
  std::string text;
  for (const auto& [key, value] : document.items()) {
    if (holds_objects(value)) {
      for (std::size_t i = 0; i < value.size(); ++i)
        text += formatted("{} {} of {}\n{}", key.substr(0, key.size() - 1), i + 1, value.size(),
                          text_page(value[i], "  "));
      continue;
    }
    std::string left = indent + key;
    left.resize(std::max<std::size_t>(left.size() + 2, 24), ' ');
    std::string right = text_of(value);
    for (std::size_t at = right.find('\n'); at != std::string::npos; at = right.find('\n', at + 1))
      right.replace(at, 1, at + 1 == right.size() ? "" : "; ");
    text += left + right + '\n';
  }
  return text;
}

/// Replaces the spaces in keys for JSON.
// NOLINTNEXTLINE(misc-no-recursion)
Json with_json_keys(const Json& value) {
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, item] : value.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), ' ', '_');
    if (value.is_array())
      out.push_back(with_json_keys(item));
    else
      out[name] = with_json_keys(item);
  }
  return out;
}

std::string json_page(const Json& document) {
  return with_json_keys(document).dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

/// The GPU and the number of rows per call for which the page estimates costs.
struct GpuQuestion {
  const kernels::DeviceModel* device = nullptr;  ///< Null if no estimate is wanted.
  std::uint32_t rows = 0;
};

constexpr std::array<std::string_view, 3> kCompiledBackends = {"host", "cuda", "hip"};
constexpr std::array<const char*, 3> kUsualDevices = {"", "h100", "mi250x"};

Result<GpuQuestion> gpu_question(const Arguments& arguments) {
  FVM_ASSIGN(const std::size_t backend, arguments.choice("backend", kCompiledBackends, 0));
  if (backend == 0) {
    for (const char* const gpus : {"rows", "device-model"})
      if (arguments.has(gpus))
        return usage_error(formatted("--{} is for GPUs: say --backend cuda or hip too", gpus));
    return GpuQuestion{};
  }
  FVM_ASSIGN(const std::uint64_t rows, arguments.number("rows", 1, kMaxCallRows, kUsualCallRows));
  const std::string name = arguments.get("device-model", kUsualDevices[backend]);
  const kernels::Vendor vendor = backend == 1 ? kernels::Vendor::Cuda : kernels::Vendor::Hip;
  std::string known;
  for (const kernels::DeviceModel& device : kernels::device_models()) {
    if (kernels::info(device.architecture).vendor != vendor) continue;
    if (device.name == name) return GpuQuestion{&device, static_cast<std::uint32_t>(rows)};
    known += (known.empty() ? "" : ", ") + std::string(device.name);
  }
  return usage_error(formatted("--device-model {}: expected one of {}", name, known));
}

Result<void> run_inspect(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "FILE"));
  FVM_ASSIGN(const GpuQuestion gpu, gpu_question(arguments));
  FVM_ASSIGN(const ModelOrProgram loaded, load_requested(arguments, path));
  const bool asked = arguments.has("schedule") || arguments.has("contract");
  Json document;
  const auto add_account = [&](const Program& program) -> Result<void> {
    if (gpu.device == nullptr) return {};
    if (!program.mapped())
      return in_file(path, refused("none of the program's loops is mapped to a GPU (gpuDimension)"));
    add_gpu_account(document, program, gpu.rows, *gpu.device);
    return {};
  };
  if (const auto* const model = std::get_if<Model>(&loaded)) {
    const Result<Program> program =
        compile_requested(arguments, path, *model, gpu.device == nullptr ? "auto" : "gpu");
    const bool refused = !program && program.error().code == ErrorCode::Refused;
    if (!program && (asked || gpu.device != nullptr || !refused)) return program.error();
    document = document_of(path, *model, program);
    if (program) FVM_TRY(add_account(*program));
  } else {
    if (asked)
      return usage_error(single_quoted(path) + " is a program, it has its schedule and contract already");
    document = document_of(path, std::get<Program>(loaded));
    FVM_TRY(add_account(std::get<Program>(loaded)));
  }
  return write_output("-", arguments.has("json") ? json_page(document) : text_page(document));
}

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names;
  for (const kernels::DeviceModel& device : kernels::device_models()) names.push_back(device.name);
  return names;
}

}  // namespace

const Command kInspect = {
    "inspect",
    "describes a model or a program",
    {"inspect FILE [--schedule S] [--contract C] [--json]",
     "inspect FILE --backend cuda [--device-model D] [--rows N] [--schedule S]"},
    {{"FILE", "a trainer's model file, or a .fvm program; - is standard input"}},
    {kScheduleOption,
     kRoundsOption,
     kContractOption,
     {"backend",
      '\0',
      "B",
      "host (default); cuda or hip also estimate, without running it, what a call costs on a GPU: "
      "launches, occupancy, bytes, and a bound on the rows per second (default schedule then: gpu)",
      {listed<kCompiledBackends>}},
     {"device-model", '\0', "D", "the GPU to estimate for; default h100 (hip: mi250x)", {device_names}},
     {"rows", '\0', "N", "rows of the call, default 65536"},
     {"json", '\0', "", "prints JSON"}},
    "  forestvm inspect model.json\n"
    "  forestvm inspect model.json --backend cuda --schedule rapids-fil --rows 4096\n",
    device_notes,
    run_inspect,
};

}  // namespace forestvm::cli
