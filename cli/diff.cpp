// forestvm diff: compares a model's program with the trainer's stored scores, the reference predictor, native code or
// another program. Prints how far apart the raw scores are, which rows differ, and the first tree and node where two
// walks part.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/reference.hpp>

#include "cli/backend.hpp"
#include "cli/commands.hpp"
#include "cli/io/gzip_source.hpp"
#include "cli/io/npy.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/native.hpp"
#include "cli/printed.hpp"
#include "cli/program_file.hpp"
#include "cli/row_options.hpp"

namespace forestvm::cli {
namespace {

/// The predictions of one side of the comparison.
struct Side {
  std::string name;
  std::vector<float> raw;              ///< Raw scores, rows x outputs.
  std::vector<std::int32_t> leaves{};  ///< Leaf numbers, rows x trees; empty if they are not known.
};

struct Inputs {
  BackendChoice backend;
  Program program;
  std::optional<Model> model;
  Rows rows;
};

Result<Side> of_program(const BackendChoice& backend, const std::string& name, const Program& program,
                        const Rows& rows) {
  FVM_ASSIGN(const std::unique_ptr<Predictor> predictor, make_predictor(backend, program, name));
  const auto context = predictor->make_context();
  const RowBlock block = rows.block();
  Side side{name, std::vector<float>(rows.count * program.meta().num_outputs),
            std::vector<std::int32_t>(rows.count * program.meta().num_trees)};
  FVM_TRY(predictor->predict(*context, block, OutputKind::Raw, side.raw.data()));
  FVM_TRY(predictor->predict_leaf(*context, block, side.leaves.data()));
  return side;
}

Result<Side> of_reference(const Inputs& inputs) {
  if (!inputs.model)
    return usage_error("--against reference: MODEL is a program; the reference needs a trainer's model");
  FVM_ASSIGN(const Reference expected, inputs.rows.visit([&](const auto& values) {
    return reference_predict(*inputs.model, values, inputs.rows.count, {.hashed_rows = inputs.rows.hashed});
  }));
  return Side{"the reference", {expected.raw.begin(), expected.raw.end()}, expected.leaf};
}

Result<Side> of_native(const Inputs& inputs) {
  FVM_ASSIGN(const NativeForest forest, NativeForest::build(inputs.program));
  return Side{"native code", forest.raw(inputs.rows), forest.leaves(inputs.rows)};
}

Result<Side> of_file(const std::string& path, const Inputs& inputs) {
  FVM_ASSIGN(const ModelOrProgram loaded, load_file(path));
  const auto* const other = std::get_if<Program>(&loaded);
  if (other == nullptr)
    return usage_error(formatted("--against {}: is a model, expected a .fvm program", single_quoted(path)));
  const ProgramMeta &a = inputs.program.meta(), &b = other->meta();
  if (a.num_features != b.num_features || a.num_outputs != b.num_outputs)
    return in_file(path, refused(formatted("is a program of {} features and {} outputs, not of {} and {}",
                                           b.num_features, b.num_outputs, a.num_features, a.num_outputs)));
  const BackendChoice backend = other->mapped() ? inputs.backend : BackendChoice{};
  FVM_ASSIGN(Side side, of_program(backend, path, *other, inputs.rows));
  if (a.num_trees != b.num_trees) side.leaves.clear();
  return side;
}

Result<Side> of_expected(const std::string& path, const Inputs& inputs) {
  FVM_ASSIGN(Source source, in_file(path, open_unpacked(path)));
  FVM_ASSIGN(const std::unique_ptr<TableReader> table,
             in_file(path, npy_reader(source, NpyShape::VectorOrMatrix)));
  Rows scores;
  FVM_TRY(in_file(path, table->read(std::numeric_limits<std::size_t>::max(), scores)));
  std::vector<float>& values = scores.values;
  const std::size_t wanted = inputs.rows.count * inputs.program.meta().num_outputs;
  if (values.size() != wanted)
    return in_file(path, refused(formatted("has {} raw scores, expected {}", values.size(), wanted)));
  return Side{path, std::move(values)};
}

/// Returns how many floats lie from a to b, in units in the last place: 0 for two NaN, UINT32_MAX if only one is NaN.
std::uint64_t ulps_apart(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : UINT32_MAX;
  const auto ordered = [](float x) -> std::int64_t {
    std::int32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits >= 0 ? bits : -std::int64_t{bits & INT32_MAX};
  };
  return static_cast<std::uint64_t>(std::abs(ordered(a) - ordered(b)));
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

constexpr std::size_t kListedRows = 10;

/// Returns counts of the distances between scores, by powers of two.
std::string histogram(const Side& a, const Side& b) {
  std::map<std::uint64_t, std::uint64_t> bins;  // key: the upper end of the bin
  for (std::size_t i = 0; i < a.raw.size(); ++i) {
    const std::uint64_t apart = ulps_apart(a.raw[i], b.raw[i]);
    std::uint64_t bin = same_bits(a.raw[i], b.raw[i]) ? 0 : 1;
    while (bin != 0 && bin < apart) bin *= 2;
    ++bins[bin];
  }
  std::string text = "units in the last place  raw scores\n";
  for (const auto& [end, count] : bins) {
    std::string range = end == 0 ? "equal bits" : end <= 1 ? "at most 1" : formatted("up to {}", end);
    range.resize(25, ' ');
    text += formatted("{}{}\n", range, count);
  }
  return text;
}

std::string listed_rows(const Side& a, const Side& b, std::size_t outputs, std::size_t& differing) {
  std::string text;
  for (std::size_t row = 0; row < a.raw.size() / outputs; ++row)
    for (std::size_t k = 0; k < outputs; ++k) {
      const float x = a.raw[row * outputs + k], y = b.raw[row * outputs + k];
      if (same_bits(x, y)) continue;
      if (++differing > kListedRows) continue;
      text += printed("row %zu, output %zu: %.9g (%a) and %.9g (%a)\n", row, k, static_cast<double>(x),
                      static_cast<double>(x), static_cast<double>(y), static_cast<double>(y));
    }
  if (differing > kListedRows) text += formatted("… and {} more\n", differing - kListedRows);
  return text;
}

/// Returns the split of a tree at which the ways to two leaves part.
std::int32_t parting(const Tree& tree, std::int32_t a, std::int32_t b) {
  std::vector<std::int32_t> parent(tree.nodes.size(), -1);
  for (std::size_t n = 0; n < tree.nodes.size(); ++n)
    for (const std::int32_t child : {tree.nodes[n].left, tree.nodes[n].right})
      if (child >= 0) parent[static_cast<std::size_t>(child)] = static_cast<std::int32_t>(n);
  std::vector<std::int32_t> above;
  for (std::int32_t at = a; at >= 0; at = parent[static_cast<std::size_t>(at)]) above.push_back(at);
  while (b >= 0 && std::find(above.begin(), above.end(), b) == above.end())
    b = parent[static_cast<std::size_t>(b)];
  return b;
}

/// Describes the first walk that ends at another leaf and, if there is a model, the node where the two walks part.
std::string first_parting(const Inputs& inputs, const Side& a, const Side& b) {
  if (a.leaves.empty() || a.leaves.size() != b.leaves.size()) return {};
  const auto [x, y] = std::mismatch(a.leaves.begin(), a.leaves.end(), b.leaves.begin());
  if (x == a.leaves.end()) return "every walk comes to the same leaf\n";
  const auto at = static_cast<std::size_t>(x - a.leaves.begin());
  const std::size_t trees = inputs.program.meta().num_trees, row = at / trees, tree = at % trees;
  std::string text =
      formatted("first walks that part: row {}, tree {}: leaf {} and leaf {}\n", row, tree, *x, *y);
  if (!inputs.model || tree >= inputs.model->trees.size()) return text;
  const Tree& of = inputs.model->trees[tree];
  const auto known = [&](std::int32_t leaf) {
    return leaf >= 0 && static_cast<std::size_t>(leaf) < of.nodes.size();
  };
  const std::int32_t node = known(*x) && known(*y) ? parting(of, *x, *y) : -1;
  if (node < 0) return text;
  const Node& split = of.nodes[static_cast<std::size_t>(node)];
  return text + printed("  at node %d: f%u < %.9g; the row's value is %.9g\n", node, split.feature,
                        split.threshold, inputs.rows.value(row * inputs.rows.width + split.feature));
}

Result<Inputs> read_inputs(const Arguments& arguments) {
  FVM_ASSIGN(BackendChoice backend, choose_backend(arguments));
  FVM_ASSIGN(const std::string path, required(arguments, "MODEL"));
  FVM_ASSIGN(const std::string rows_path, required(arguments, "ROWS"));
  FVM_TRY(expect_one_standard_input(path, rows_path));
  FVM_ASSIGN(const RowForm form, row_options(arguments));
  FVM_ASSIGN(ModelOrProgram loaded, load_requested(arguments, path));
  std::optional<Model> model;
  if (auto* const read = std::get_if<Model>(&loaded)) model = std::move(*read);
  FVM_ASSIGN(Program program, model ? compile_requested(arguments, path, *model, backend.schedule())
                                    : requested_program(arguments, path));
  FVM_ASSIGN(Source source, in_file(rows_path, open_unpacked(rows_path)));
  FVM_ASSIGN(Rows rows, read_rows(rows_path, std::move(source), row_form(program, form)));
  return Inputs{std::move(backend), std::move(program), std::move(model), std::move(rows)};
}

constexpr std::array<std::string_view, 2> kJudges = {"reference", "native"};

Result<Side> other_side(const Arguments& arguments, const Inputs& inputs) {
  if (arguments.has("expected")) {
    if (arguments.has("against")) return usage_error("--expected and --against exclude each other");
    return of_expected(arguments.get("expected"), inputs);
  }
  const std::string against = arguments.get("against", "reference");
  if (against == "reference") return of_reference(inputs);
  if (against == "native") return of_native(inputs);
  if (against.find_first_of("/.") == std::string::npos)
    return usage_error(
        formatted("--against {}: expected reference, native or a .fvm file", single_quoted(against)));
  return of_file(against, inputs);
}

Result<void> run_diff(const Arguments& arguments) {
  FVM_ASSIGN(const Inputs inputs, read_inputs(arguments));
  FVM_ASSIGN(const Side mine,
             of_program(inputs.backend, arguments.get("MODEL"), inputs.program, inputs.rows));
  FVM_ASSIGN(const Side other, other_side(arguments, inputs));
  std::size_t differing = 0;
  std::string text = formatted("{} rows: {} and {}\n", inputs.rows.count, mine.name, other.name);
  text += histogram(mine, other) + listed_rows(mine, other, inputs.program.meta().num_outputs, differing) +
          first_parting(inputs, mine, other);
  FVM_TRY(write_output("-", text));
  if (differing == 0) return {};
  return refused(formatted("{} of {} raw scores differ", differing, mine.raw.size()));
}

}  // namespace

const Command kDiff = {
    "diff",
    "compares a program's predictions with others",
    {"diff MODEL ROWS [--against WHAT | --expected FILE.npy] [--schedule S]"},
    {{"MODEL", "a trainer's model file, or a .fvm program; - is standard input"}, {"ROWS", "as for run"}},
    {{"against",
      '\0',
      "WHAT",
      "reference (default: the slow, obvious predictor), native (exported to C and compiled by cc), or a "
      ".fvm file",
      {listed<kJudges>, true}},
     {"expected", '\0', "FILE.npy", "a file of raw scores, such as the trainer's own", kFiles},
     kScheduleOption,
     kBackendOption,
     kDeviceOption,
     FVM_ROW_OPTIONS,
     kRoundsOption,
     kContractOption,
     kStrictOption},
    "  forestvm diff model.json rows.npy --expected expected_raw.npy\n"
    "  forestvm diff model.json rows.npy --against native --schedule trees\n",
    nullptr,
    run_diff,
};

}  // namespace forestvm::cli
