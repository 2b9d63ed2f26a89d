// Names of categories in rows, through the real program: XGBoost's, LightGBM's and YDF's.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "spawn.hpp"
#include "support/floats.hpp"
#include "support/npy.hpp"

namespace forestvm::cli::test_program_categories {
namespace {

class Categories : public ProgramTest {
 protected:
  const std::string folder_ = test_data("xgboost_versions/3.2.0_named/");
  const std::string model_ = folder_ + "model.json";

  /// Returns what `run` prints for one row whose first cell is `cell`.
  Outcome ran(const std::string& cell, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = {"run", model_, write("row.csv", cell + ",0.5,0.25,,,,,\n"), "--header",
                                      "no"};
    words.insert(words.end(), options.begin(), options.end());
    return forestvm(words);
  }
  std::string answer(const std::string& cell, const std::vector<std::string>& options = {}) const {
    const Outcome outcome = ran(cell, options);
    EXPECT_EQ(outcome.code, 0) << cell << ": " << outcome.err;
    return outcome.out;
  }
};

TEST_F(Categories, TextsGiveWhatTheTrainerGives) {
  for (const std::string& model : {model_, std::string("compiled")}) {
    const std::string path = model == "compiled" ? file("m.fvm") : model;
    if (model == "compiled") {
      ASSERT_EQ(forestvm({"compile", model_, "-o", path}).code, 0);
    }
    const Outcome outcome = forestvm({"run", path, folder_ + "rows.csv", "-o", file("out.npy")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Outcome codes = forestvm({"run", path, folder_ + "rows.npy", "-o", file("codes.npy")});
    EXPECT_EQ(codes.code, 0) << codes.err;
    EXPECT_EQ(content_of(file("out.npy")), content_of(file("codes.npy")));
    EXPECT_EQ(content_of(file("out.npy")), content_of(folder_ + "expected.npy"));
  }
}

TEST_F(Categories, AreListed) {
  const auto listed = nlohmann::json::parse(forestvm({"inspect", model_, "--json"}).out).at("categories");
  ASSERT_FALSE(listed.empty());
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(forestvm({"inspect", file("m.fvm"), "--json"}).out).at("categories"),
            listed);
}

TEST_F(Categories, NamesAreCodes) {
  const auto listed =
      nlohmann::json::parse(forestvm({"inspect", model_, "--json"}).out).at("categories").at("0");
  ASSERT_GT(listed.size(), 1u);
  for (std::size_t code = 0; code < listed.size(); ++code) {
    const std::string name = "\"" + listed[code].get<std::string>() + "\"";
    EXPECT_EQ(answer(name), answer(std::to_string(code), {"--categories", "codes"})) << name;
  }
  EXPECT_EQ(answer(""), answer("", {"--categories", "codes"}));
  EXPECT_EQ(answer("NA"), answer(""));
}

TEST_F(Categories, OtherTextsAndCodesAreRefusedWithTheirPlace) {
  for (const char* const cell : {"no such colour", "0", "red."}) {
    const Outcome outcome = ran(cell);
    EXPECT_EQ(outcome.code, 1) << cell;
    EXPECT_NE(outcome.err.find("line 1, column 1: '" + std::string(cell) + "' is not one of the"),
              std::string::npos)
        << outcome.err;
  }
  EXPECT_NE(
      ran("red", {"--categories", "codes"})
          .err.find(
              "line 1, column 1: 'red' is not a number: the column has categories, which are numbers here, as "
              "pandas' cat.codes are, because --categories codes says so"),
      std::string::npos);
  EXPECT_EQ(ran("red", {"--categories", "words"}).code, 2);
}

/// XGBoost before 3.1 keeps no names of categories.
TEST_F(Categories, WithoutNamesAreNumbers) {
  const std::string folder = test_data("xgboost_versions/2.0.3_categories/");
  std::string row = "red";
  const auto document = nlohmann::json::parse(forestvm({"inspect", folder + "model.json", "--json"}).out);
  for (std::size_t i = 1; i < document.at("features"); ++i) row += ",0";
  const Outcome outcome =
      forestvm({"run", folder + "model.json", write("rows.csv", row + "\n"), "--header", "no"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(
                "line 1, column 1: 'red' is not a number: the column has categories, which are numbers here, "
                "as pandas' cat.codes are, because the model file has no names of them"),
            std::string::npos)
      << outcome.err;
}

/// LightGBM takes a text that training has not seen as missing.
TEST_F(Categories, OfLightgbmThatAreUnseenAreMissing) {
  const std::string model = test_data("lightgbm/4.7.0_pandas/model.txt");
  const auto document = nlohmann::json::parse(forestvm({"inspect", model, "--json"}).out);
  const auto& listed = document.at("categories");
  const std::size_t features = document.at("features");
  ASSERT_FALSE(listed.empty());
  const std::size_t feature = std::stoul(listed.items().begin().key());
  const auto row = [&](const std::string& cell) {
    std::string text;
    for (std::size_t i = 0; i < features; ++i) {
      const bool named = listed.contains(std::to_string(i));
      text += (i == 0 ? "" : ",") + (i == feature ? cell : named ? std::string() : std::string("0.5"));
    }
    return text + "\n";
  };
  const auto answer = [&](const std::string& cell) {
    const Outcome outcome = forestvm({"run", model, write("row.csv", row(cell)), "--header", "no"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(answer("certainly not a category"), answer("NA"));
}

/// YDF takes a text that its dictionary lacks as category 0.
TEST_F(Categories, OfYdfAreTextsOfItsDictionary) {
  const std::string folder = test_data("ydf/0.16.1_binary/");
  const Outcome outcome = forestvm({"run", folder + "model", folder + "rows.csv", "-o", file("out.npy")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto answers = support::read_npy<float>(file("out.npy"));
  const auto expected = support::read_npy<float>(folder + "expected.npy");
  ASSERT_EQ(answers.data.size(), expected.data.size());
  for (std::size_t i = 0; i < expected.data.size(); ++i)
    EXPECT_LE(support::ulps(answers.data[i], expected.data[i]), 2) << "row " << i;
}

}  // namespace
}  // namespace forestvm::cli::test_program_categories
