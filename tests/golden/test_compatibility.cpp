// docs/compatibility.md: which forms of model files are read, with which releases of the trainers that was tried, and
// which files are refused by name. The rows are the repository's models that load and that answer as their trainers do,
// and the rows of formats.def. FORESTVM_UPDATE=1 rewrites the page.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/load.hpp>
#include "support/golden.hpp"
#include "support/model_folders.hpp"
#include "support/pmml_folders.hpp"
#include "support/temporary_folder.hpp"
#include "support/trainer_answers.hpp"

namespace forestvm::test::test_compatibility {
namespace {

namespace fs = std::filesystem;
using support::ModelFile;

/// A release, in an order in which 2.10 comes after 2.9.
struct Release {
  std::vector<int> parts;
  std::string text;

  explicit Release(std::string release) : text(std::move(release)) {
    for (std::size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string::npos;
         at = text.find_first_not_of("0123456789", at))
      parts.push_back(std::atoi(text.c_str() + at));
  }
  bool operator<(const Release& other) const { return parts < other.parts; }
};

/// Maps a format and a feature to the releases with which it was tried.
using Table = std::map<std::pair<std::string, std::string>, std::set<Release>>;

/// Returns the version of `ai.onnx.ml` that an ONNX file asks for: field 2 of an OperatorSetIdProto.
std::string onnx_version(const fs::path& path) {
  const std::string bytes = support::content_of(path), domain =
                                                           "\x0a\x0a"
                                                           "ai.onnx.ml\x10";
  const std::size_t at = bytes.find(domain);
  return at == std::string::npos ? "" : std::to_string(bytes.at(at + domain.size()));
}

/// Returns the release that wrote a model: its folder's name begins with it, or the file says it. An ONNX file says
/// which operators it uses. A PMML document that names no program was written by hand.
Release release_of(const ModelFile& file, const Model& model) {
  if (model.format == "onnx") return Release(onnx_version(file.path));
  if (model.format == "pmml" && model.version.empty()) return Release("by hand");
  const std::string folder = file.path.parent_path().filename().string();
  const bool named = !folder.empty() && folder[0] >= '0' && folder[0] <= '9';
  return Release(named && model.format != "skops" ? folder.substr(0, folder.find('_')) : model.version);
}

/// Returns the features of a model that other models of its format may lack.
std::vector<std::string> features_of(const Model& model) {
  std::vector<std::string> features;
  const auto add = [&](bool has, const std::string& feature) {
    if (has) features.push_back(feature);
  };
  const auto any_tree = [&](auto has) { return std::any_of(model.trees.begin(), model.trees.end(), has); };
  const auto any_node = [&](auto has) {
    return any_tree([&](const Tree& tree) { return std::any_of(tree.nodes.begin(), tree.nodes.end(), has); });
  };
  add(!model.objective.empty(), "objective `" + model.objective + "`");
  add(model.num_outputs > 1, "several outputs");
  add(any_tree([](const Tree& tree) { return tree.weight != 1; }), "weights of trees (DART)");
  add(any_tree([](const Tree& tree) { return tree.leaf_width > 1; }), "vector leaves");
  add(has_linear_leaves(model), "linear leaves");
  add(any_tree([](const Tree& tree) { return !tree.category_sets.empty(); }), "categorical splits");
  add(!model.hashed_features.empty(), "categories as texts");
  add(!model.lookups.empty(), "counters of categories (CTR)");
  const auto is_oblique = [](const ComputedColumn& column) { return is_sum(column.kind); };
  const auto& columns = model.computed_columns;
  const bool oblique = std::any_of(columns.begin(), columns.end(), is_oblique);
  add(oblique, "oblique splits");
  add(!oblique && !columns.empty(), "computed columns");
  add(model.scale != 1, "scaled sums");
  add(model.row_type == ScalarType::Float64, "float64 rows");
  add(!model.class_labels.empty(), "labels of classes");
  add(any_node([](const Node& node) { return node.kind == NodeKind::Unused; }), "pruned nodes");
  add(any_node([](const Node& node) { return node.missing == Missing::Zero; }), "zero as missing");
  add(any_tree([](const Tree& tree) { return tree.nodes.size() == 1; }), "trees of one leaf");
  add(!model.categories.empty(), "names of categories");
  add(!model.feature_names.empty(), "names of features");
  add(model.averaged, "averaged forests");
  add(model.may_lack_answers, "rows without answers");
  add(model.best_round.has_value(), "best round of early stopping");
  return features;
}

/// Adds the features of a model whose answers differ from the trainer's as `difference` says.
void add_model(const ModelFile& file, const Model& model, const std::string& difference, Table& table) {
  EXPECT_EQ(difference, "") << file.path;
  if (!difference.empty()) return;
  for (const std::string& feature : features_of(model))
    table[{model.format, feature}].insert(release_of(file, model));
}

/// Adds models. Refused ones are left out.
void add_models(const std::vector<ModelFile>& files, Table& table) {
  for (const ModelFile& file : files) {
    const Result<Model> model = load_model(file.path.string());
    if (model) add_model(file, *model, support::difference_from_trainer(*model, file), table);
  }
}

void add_documents(const std::vector<support::PmmlFolder>& folders, Table& table) {
  for (const support::PmmlFolder& folder : folders) {
    const ModelFile file{folder.name, folder.path / "model.pmml"};
    const Result<Model> model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    add_model(file, *model, support::difference_from_jpmml(folder, *model), table);
  }
}

struct Foreign {
  std::string place;
  std::string_view bytes;
  std::string_view sentence;
};

const Foreign kForeign[] = {
#define FVM_FOREIGN(first_bytes, sentence) \
  {"", std::string_view(first_bytes, sizeof(first_bytes) - 1), sentence},
#define FVM_FOREIGN_AT(offset, bytes, sentence) \
  {" at byte " #offset, std::string_view(bytes, sizeof(bytes) - 1), sentence},
#define FVM_FOREIGN_TEXT(characters, sentence) {" as text", characters, sentence},
#define FVM_FOREIGN_FORMAT(mark, sniff, sentence) {mark, "", sentence},
#include "frontend/formats.def"
};

/// A file in a directory or a zip archive, and what is said of the whole.
struct ForeignEntry {
  const char* where;
  const char* entry;
  const char* sentence;
};

const ForeignEntry kForeignEntries[] = {
#define FVM_FOREIGN_DIRECTORY(entry, sentence) {"directory", entry, sentence},
#define FVM_FOREIGN_ARCHIVE(entry, sentence) {"zip archive", entry, sentence},
#include "frontend/formats.def"
};

/// The opening of a file whose format is read, but not this form of it.
struct RefusedForm {
  std::string what;
  std::string bytes;
};

/// Returns the beginning of a Treelite checkpoint: its version, then the types of thresholds and leaves.
std::string checkpoint(char major, char minor) {
  return std::string{major, 0, 0, 0, minor, 0, 0, 0, 0, 0, 0, 0, 2, 2};
}

std::vector<RefusedForm> refused_forms() {
  return {
      {"LightGBM's dump of a release before 2.2",
       R"({"name":"tree","num_class":1,"num_tree_per_iteration":1,)"
       R"("label_index":0,"max_feature_idx":0,)"
       R"("feature_names":["a"],"tree_info":[]})"},
      {"PMML, CatBoost's",
       "<PMML version=\"4.3\" xmlns=\"http://www.dmg.org/PMML-4_3\"><Header>"
       "<Application name=\"CatBoost\"/></Header></PMML>"},
      {"PMML, a regression",
       "<PMML version=\"4.3\" xmlns=\"http://www.dmg.org/PMML-4_3\"><Header/>"
       "<DataDictionary/><RegressionModel/></PMML>"},
      {"Treelite, a checkpoint of 2.4", checkpoint(2, 4)},
      {"Treelite, a checkpoint of 5.0", checkpoint(5, 0)},
      {"XGBoost, `gblinear`",
       R"({"learner":{"gradient_booster":{"model":{"weights":[1]},"name":"gblinear"},)"
       R"("learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"1"},)"
       R"("objective":{"name":"reg:squarederror"}},"version":[3,2,0]})"},
  };
}

/// Returns bytes as the text between quotes of a C string would show them.
std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      out.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
  }
  return out;
}

std::string refused_files() {
  std::string page =
      "\n## Files that are refused by name\n\nThey are known by their first bytes, or by bytes at another place. Texts are "
      "compared without blanks, quotes\nand backslashes.\n\n"
      "| bytes | what is said |\n|---|---|\n";
  for (const Foreign& row : kForeign)
    page += "| " + (row.bytes.empty() ? row.place : "`" + escaped(row.bytes) + "`" + row.place) + " | " +
            std::string(row.sentence) + " |\n";
  page +=
      "\nDirectories and zip archives are known by what they contain.\n\n| contents | what is said |\n|---|---|\n";
  for (const ForeignEntry& row : kForeignEntries)
    page += std::string("| a ") + row.where + " with `" + row.entry + "` | " + row.sentence + " |\n";
  page +=
      "\n## Forms that are refused by name\n\nTheir formats are read, but not these forms of them.\n\n"
      "| what | what is said |\n|---|---|\n";
  for (const auto& [what, bytes] : refused_forms()) {
    const Result<Model> model = load_model(std::as_bytes(std::span(bytes)));
    EXPECT_FALSE(model.ok()) << what;
    page += "| " + what + " | " + (model.ok() ? "" : model.error().text()) + " |\n";
  }
  return page;
}

std::string page_of(const Table& table) {
  std::string page =
      "# Which releases were tried\n\n"
      "Each row is a feature that a model file of the repository (`tests/data`) has, and the releases of the trainer "
      "whose\nfiles with it load and give the trainer's own answers: raw scores bit for bit, values within 2 units in "
      "the last place.\n[Exceptions](formats.md#values-beyond-two-units) are few. ONNX files are listed by the version "
      "of `ai.onnx.ml`, whose\noperators they use. PMML documents, which give JPMML-Evaluator's answers, are listed by "
      "the release of SkLearn2PMML that\nwrote them. `tests/golden/test_compatibility.cpp` writes this page; "
      "[formats.md](formats.md) says what is read in general.\n\n"
      "| format | feature | releases |\n|---|---|---|\n";
  for (const auto& [row, releases] : table) {
    page += "| " + row.first + " | " + row.second + " | ";
    for (const Release& release : releases)
      page += (&release == &*releases.begin() ? "" : ", ") + release.text;
    page += " |\n";
  }
  return page + refused_files();
}

TEST(Compatibility, ThePageIsCurrent) {
  Table table;
  add_models(support::repository_models(), table);
  add_documents(support::pmml_folders(fs::path(FORESTVM_TEST_DATA) / "pmml"), table);
  support::expect_golden(FORESTVM_SOURCE_DIR "/docs/compatibility.md", page_of(table));
}

/// Prints the page with the zoo's models too.
TEST(Compatibility, OfTheZoo) {
  if (!fs::exists(support::zoo() / "formats"))
    GTEST_SKIP() << "no zoo at " << support::zoo() << ": set FORESTVM_ZOO";
  Table table;
  add_models(support::repository_models(), table);
  const std::size_t own = table.size();
  add_models(support::every_model(support::zoo() / "formats"), table);
  add_documents(support::pmml_folders(support::zoo() / "formats"), table);
  EXPECT_GT(table.size(), own);
  std::cout << page_of(table);
}

}  // namespace
}  // namespace forestvm::test::test_compatibility
