// The trainers' own answers: every XGBoost model of tests/data and of the zoo, raw scores bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <forestvm/load.hpp>

#include "frontend/reference.hpp"
#include "support/npy.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
using support::Npy;
using support::read_npy;

fs::path zoo() {
  const char* given = std::getenv("FORESTVM_ZOO");
  return fs::path(given == nullptr ? FORESTVM_ZOO : given);
}

/// The floats of this many units in the last place apart; NaN equals NaN.
std::int64_t ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<std::int32_t>::max();
  const auto ordered = [](float x) -> std::int64_t {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits >= 0 ? bits : -std::int64_t{bits & 0x7fffffff};
  };
  return std::abs(ordered(a) - ordered(b));
}

/// Rows with meta.json's "missing" applied, as the trainer was told at prediction.
Npy<float> rows_of(const fs::path& folder) {
  Npy<float> rows = read_npy<float>(folder / "rows.npy");
  std::ifstream file(folder / "meta.json");
  const std::string meta(std::istreambuf_iterator<char>(file), {});
  const std::size_t at = meta.find("\"missing\": \"");
  if (at == std::string::npos) return rows;
  const float missing = std::strtof(meta.c_str() + at + 12, nullptr);
  for (float& x : rows.data)
    if (x == missing) x = std::numeric_limits<float>::quiet_NaN();
  return rows;
}

void compare(const fs::path& folder, const Model& model) {
  const Npy<float> rows = rows_of(folder);
  const Npy<float> raw = read_npy<float>(folder / "expected_raw.npy");
  const Npy<float> value = read_npy<float>(folder / "expected.npy");
  ASSERT_EQ(rows.columns(), model.num_features);
  constexpr std::size_t walks = 3'000'000;
  const std::size_t count = std::min(rows.rows(), 100 + walks / std::max<std::size_t>(model.trees.size(), 1));
  const auto predicted = frontend::reference_predict(
      model, std::span(rows.data).first(count * rows.columns()), count, {0, model.trees.size(), false});
  ASSERT_TRUE(predicted.ok()) << predicted.error().text();
  ASSERT_EQ(raw.columns(), predicted->raw_width);
  ASSERT_EQ(value.columns(), predicted->value_width);
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < predicted->raw.size(); ++i)
    if (bits(static_cast<float>(predicted->raw[i])) != bits(raw.data[i])) ++wrong;
  EXPECT_EQ(wrong, 0u) << "raw scores of " << predicted->raw.size() << " differ";
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < predicted->value.size(); ++i)
    worst = std::max(worst, ulps(static_cast<float>(predicted->value[i]), value.data[i]));
  EXPECT_LE(worst, 2) << "units in the last place";
}

/// Every model file of every folder whose name starts with `prefix`; how many were read.
std::size_t check_folders(const fs::path& parent, const std::string& prefix) {
  std::size_t read = 0;
  for (const fs::directory_entry& folder : fs::directory_iterator(parent)) {
    if (!folder.path().filename().string().starts_with(prefix)) continue;
    for (const char* name : {"model.json", "model.ubj", "model.ubj.gz"}) {
      if (!fs::exists(folder.path() / name)) continue;
      SCOPED_TRACE(folder.path() / name);
      const Result<Model> model = load_model((folder.path() / name).string());
      if (!model.ok()) {
        EXPECT_NE(model.error().message.find("not supported yet"), std::string::npos) << model.error().text();
        std::cout << "  [refused] " << model.error().text() << '\n';
        continue;
      }
      compare(folder.path(), *model);
      ++read;
    }
  }
  return read;
}

TEST(TrainerAnswers, Repository) {
  EXPECT_GE(check_folders(FORESTVM_TEST_DATA, ""), 3u);
  EXPECT_GE(check_folders(fs::path(FORESTVM_TEST_DATA) / "xgboost_versions", ""), 30u);
}

TEST(Zoo, XgboostFormats) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_GE(check_folders(zoo() / "formats", "xgb_"), 50u);
}

TEST(Zoo, Bench) {
  if (!fs::exists(zoo() / "bench")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_GE(check_folders(zoo() / "bench", ""), 14u);
}

}  // namespace
}  // namespace forestvm::test
