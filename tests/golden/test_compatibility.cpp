// docs/compatibility.md: which forms of model files are read, with which releases of the trainers that was tried, and
// which files are refused by name. The rows are the repository's models that load and that answer as their trainers do,
// and the rows of formats.def. FORESTVM_UPDATE=1 rewrites the page.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/reference.hpp>

#include "support/floats.hpp"
#include "support/golden.hpp"
#include "support/model_folders.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
using support::ModelFile;

/// The folders of tests/data that have models in their subfolders.
constexpr const char* kFolders[] = {"", "xgboost_versions", "lightgbm"};

/// A release, in an order in which 2.10 comes after 2.9.
struct Release {
  std::vector<int> parts;
  std::string text;

  explicit Release(std::string release) : text(std::move(release)) {
    for (std::size_t at = 0; at < text.size(); at = std::min(text.find('.', at), text.size() - 1) + 1)
      parts.push_back(std::atoi(text.c_str() + at));
  }
  bool operator<(const Release& other) const { return parts < other.parts; }
};

/// Format and feature -> releases.
using Table = std::map<std::pair<std::string, std::string>, std::set<Release>>;

/// Returns the release that wrote a model: its folder's name begins with it, or the file says it.
Release release_of(const ModelFile& file, const Model& model) {
  const std::string folder = file.path.parent_path().filename().string();
  const bool named = !folder.empty() && folder[0] >= '0' && folder[0] <= '9';
  return Release(named ? folder.substr(0, folder.find('_')) : model.version);
}

/// Returns what a model has that another of the same format may lack.
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
  add(any_node([](const Node& node) { return node.kind == NodeKind::Unused; }), "pruned nodes");
  add(any_node([](const Node& node) { return node.missing == Missing::Zero; }), "zero as missing");
  add(any_tree([](const Tree& tree) { return tree.nodes.size() == 1; }), "trees of one leaf");
  add(!model.categories.empty(), "names of categories");
  add(!model.feature_names.empty(), "names of features");
  add(model.averaged, "averaged forests");
  add(model.best_round.has_value(), "best round of early stopping");
  return features;
}

/// Returns true if the reference's raw scores have the trainer's bits and its values are within 2 units in the last
/// place.
template <class Score>
bool answers_as_its_trainer(const Model& model, const ModelFile& file) {
  const support::AnswersOf<Score> answers = support::read_answers<Score>(file.path);
  const auto predicted = reference_predict(model, answers.rows, answers.count);
  if (!predicted || predicted->raw.size() != answers.raw.size()) return false;
  for (std::size_t i = 0; i < answers.raw.size(); ++i)
    if (!support::same_bits(static_cast<Score>(predicted->raw[i]), answers.raw[i])) return false;
  for (std::size_t i = 0; i < answers.value.size(); ++i)
    if (support::ulps(static_cast<Score>(predicted->value[i]), answers.value[i]) > 2) return false;
  return true;
}

/// Adds the models of the folders inside `parent` whose names begin with `prefix`. Refused models are left out.
void add_models(const fs::path& parent, const std::string& prefix, Table& table) {
  for (const ModelFile& file : support::model_files(parent, prefix)) {
    const Result<Model> model = load_model(file.path.string());
    if (!model) continue;
    const bool wide = model->score_type == ScalarType::Float64;
    if (!(wide ? answers_as_its_trainer<double>(*model, file)
               : answers_as_its_trainer<float>(*model, file))) {
      ADD_FAILURE() << file.path << ": other answers than the trainer's";
      continue;
    }
    for (const std::string& feature : features_of(*model))
      table[{model->format, feature}].insert(release_of(file, *model));
  }
}

struct Foreign {
  std::size_t offset;
  std::string_view bytes;
  std::string_view sentence;
};

constexpr Foreign kForeign[] = {
#define FVM_FOREIGN(first_bytes, sentence) FVM_FOREIGN_AT(0, first_bytes, sentence)
#define FVM_FOREIGN_AT(offset, bytes, sentence) \
  {offset, std::string_view(bytes, sizeof(bytes) - 1), sentence},
#include "frontend/formats.def"
};

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
      "\n## Files that are refused by name\n\nThey are known by their first bytes, or by bytes at another place.\n\n"
      "| bytes | what is said |\n|---|---|\n";
  for (const Foreign& row : kForeign)
    page += "| `" + escaped(row.bytes) + "`" +
            (row.offset == 0 ? "" : " at byte " + std::to_string(row.offset)) + " | " +
            std::string(row.sentence) + " |\n";
  return page;
}

std::string page_of(const Table& table) {
  std::string page =
      "# Which releases were tried\n\n"
      "Each row is a feature that a model file of the repository (`tests/data`) has, and the releases of the trainer "
      "whose\nfiles with it load and give the trainer's own answers: raw scores bit for bit, values within 2 units in "
      "the last place.\n[formats.md](formats.md) says what is read in general. `tests/golden/test_compatibility.cpp` "
      "writes this page.\n\n"
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
  for (const char* const folder : kFolders) add_models(fs::path(FORESTVM_TEST_DATA) / folder, "", table);
  support::expect_golden(FORESTVM_SOURCE_DIR "/docs/compatibility.md", page_of(table));
}

/// Prints the page with the zoo's models too.
TEST(Compatibility, OfTheZoo) {
  if (!fs::exists(support::zoo() / "formats"))
    GTEST_SKIP() << "no zoo at " << support::zoo() << ": set FORESTVM_ZOO";
  Table table;
  for (const char* const folder : kFolders) add_models(fs::path(FORESTVM_TEST_DATA) / folder, "", table);
  const std::size_t own = table.size();
  for (const char* const prefix : {"xgb_", "lgb_"}) add_models(support::zoo() / "formats", prefix, table);
  EXPECT_GT(table.size(), own);
  std::cout << page_of(table);
}

}  // namespace
}  // namespace forestvm::test
