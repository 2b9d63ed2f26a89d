// CatBoost's own answers: the reference predictor on every model of tests/data/catboost and of the zoo.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/internal/city_hash.hpp>
#include <forestvm/load.hpp>

#include <forestvm/reference.hpp>
#include "support/floats.hpp"
#include "support/model_folders.hpp"
#include "support/npy.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;

/// Takes the next cell off a CSV text.
std::string take_cell(const std::string& text, std::size_t& at) {
  std::string cell;
  if (text[at] != '"') {
    while (text[at] != ',' && text[at] != '\n') cell += text[at++];
    ++at;
    return cell;
  }
  for (++at; text[at] != '"' || text[at + 1] == '"'; ++at) {
    if (text[at] == '"') ++at;
    cell += text[at];
  }
  at += 2;
  return cell;
}

/// Reads rows.csv; categories become codes.
std::vector<double> rows_of_codes(const fs::path& path, const Model& model) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<double> rows;
  for (std::size_t at = text.find('\n') + 1; at < text.size();)
    for (std::uint32_t feature = 0; feature < model.num_features; ++feature) {
      const std::string cell = take_cell(text, at);
      if (std::binary_search(model.hashed_features.begin(), model.hashed_features.end(), feature))
        rows.push_back(category_code(cell));
      else
        rows.push_back(cell.empty() ? std::numeric_limits<double>::quiet_NaN()
                                    : static_cast<double>(std::strtof(cell.c_str(), nullptr)));
    }
  return rows;
}

Result<Reference> predicted(const Model& model, const fs::path& folder) {
  ReferenceOptions options;
  options.hashed_rows = fs::exists(folder / "rows.csv");
  if (!options.hashed_rows) {
    const auto rows = support::read_npy<float>(folder / "rows.npy");
    return reference_predict(model, rows.data, rows.rows(), options);
  }
  const std::vector<double> rows = rows_of_codes(folder / "rows.csv", model);
  return reference_predict(model, rows, rows.size() / model.num_features, options);
}

/// Returns how far values may be: CatBoost's own exp is less precise, and its softmax adds to that.
std::int64_t most_ulps(const Model& model) { return model.transform == Transform::Softmax ? 6 : 2; }

void compare(const support::ModelFile& file) {
  SCOPED_TRACE(file.path);
  const fs::path folder = file.path.parent_path();
  const Result<Model> model = load_model(file.path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const auto found = predicted(*model, folder);
  ASSERT_TRUE(found.ok()) << found.error().text();
  const auto raw = support::read_npy<double>(folder / "expected_raw.npy");
  const auto value = support::read_npy<double>(folder / "expected.npy");
  ASSERT_EQ(found->raw.size(), raw.data.size());
  ASSERT_EQ(found->value.size(), value.data.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < raw.data.size(); ++i) wrong += !support::same_bits(found->raw[i], raw.data[i]);
  EXPECT_EQ(wrong, 0u) << "raw scores of " << raw.data.size() << " differ";
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < value.data.size(); ++i)
    worst = std::max(worst, support::ulps(found->value[i], value.data[i]));
  EXPECT_LE(worst, most_ulps(*model)) << "units in the last place";
  // JSON has lost CatBoost's numbers of the leaves of trees that are not oblivious.
  const bool oblivious = std::all_of(model->trees.begin(), model->trees.end(), [](const Tree& tree) {
    return ((tree.nodes.size() + 1) & tree.nodes.size()) == 0;
  });
  if (fs::exists(folder / "expected_leaf.npy") && (oblivious || file.path.extension() == ".cbm")) {
    EXPECT_EQ(found->leaf, support::read_npy<std::int32_t>(folder / "expected_leaf.npy").data);
  }
}

/// Compares every model in the folders whose names start with `prefix`; returns their number.
std::size_t compare_folders(const fs::path& parent, const std::string& prefix) {
  const std::vector<support::ModelFile> files = support::catboost_files(parent, prefix);
  for (const support::ModelFile& file : files) compare(file);
  return files.size();
}

TEST(CatboostAnswers, Repository) {
  EXPECT_EQ(compare_folders(fs::path(FORESTVM_TEST_DATA) / "catboost", ""), 15u);
}

TEST(CatboostAnswers, Zoo) {
  const fs::path formats = support::zoo() / "formats";
  if (!fs::exists(formats)) GTEST_SKIP() << "no zoo at " << support::zoo() << ": set FORESTVM_ZOO";
  EXPECT_GE(compare_folders(formats, "cat_"), 40u);
}

/// A counter's key is the hash of texts: rows of numbers that stand for categories give CatBoost's answers too.
TEST(CatboostAnswers, WholeNumbersAreCategories) {
  const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "catboost" / "1.2.10_numbers";
  const Result<Model> model = load_model((folder / "model.cbm").string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(model->hashed_features, (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_FALSE(model->lookups.empty());
}

}  // namespace
}  // namespace forestvm::test
