// forestvm explain through the real program: its plots as golden files, its numbers against those of forestvm run, and
// what the page may contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "spawn.hpp"
#include "support/golden.hpp"

namespace forestvm::cli::test_program_explain {
namespace {

using Cells = std::vector<std::vector<std::string>>;

class Explain : public ProgramTest {
 protected:
  /// Returns what explain writes to a file of this name.
  std::string report(const std::string& name, const std::vector<std::string>& options = {},
                     const std::string& model = {}) const {
    std::vector<std::string> words{"explain", model.empty() ? model_ : model, rows_, "-o", file(name)};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(content(words), "");
    return content_of(file(name));
  }

  static Cells cells(const std::string& csv) {
    Cells rows;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);) {
      rows.emplace_back();
      std::istringstream row(line);
      for (std::string cell; std::getline(row, cell, ',');) rows.back().push_back(cell);
    }
    return rows;
  }

  /// Returns the float32 numbers of an output of run, for each row.
  std::vector<std::vector<double>> predicted(const std::string& rows, const std::string& output) const {
    std::vector<std::vector<double>> numbers;
    for (const std::vector<std::string>& row : cells(content({"run", model_, rows, "--output", output}))) {
      numbers.emplace_back();
      for (const std::string& cell : row) numbers.back().push_back(static_cast<double>(std::stof(cell)));
    }
    return numbers;
  }

  /// Writes the model with another name for the feature bmi.
  std::string renamed(const std::string& name) const {
    std::string text = content_of(model_);
    const std::string quoted = "\"bmi\"";
    const std::size_t at = text.find(quoted);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, quoted.size(), nlohmann::json(name).dump());
    write("renamed.json", text);
    return file("renamed.json");
  }

  const std::string model_ = test_data("diabetes/model.json"), rows_ = test_data("diabetes/rows.npy");
};

TEST_F(Explain, DrawsEachPlot) {
  const std::string golden = std::string(FORESTVM_SOURCE_DIR) + "/tests/cli/explain/";
  for (const std::string plot : {"importance", "beeswarm", "waterfall", "dependence", "partial-dependence"})
    support::expect_golden(golden + plot + ".svg", report("plot.svg", {"--plot", plot, "--row", "17",
                                                                       "--sample", "50", "--show", "6"}));
  const std::string named = test_data("lightgbm/4.7.0_pandas/model.txt"),
                    rows = test_data("lightgbm/4.7.0_pandas/rows.npy");
  for (const std::string plot : {"dependence", "partial-dependence"}) {
    content({"explain", named, rows, "-o", file("named.svg"), "--plot", plot, "--feature", "x/y"});
    support::expect_golden(golden + plot + "-of-categories.svg", content_of(file("named.svg")));
  }
}

TEST_F(Explain, GivesTheSameBytesWhateverTheBatch) {
  const std::string page = report("page.html");
  EXPECT_EQ(report("page.html", {"--batch", "7", "--threads", "2"}), page);
  EXPECT_EQ(report("page.html", {"--target", "baseline"}), page);
  EXPECT_EQ(content({"explain", model_, rows_}), page);
  const std::string json = report("few.json", {"--sample", "20"});
  EXPECT_EQ(report("few.json", {"--sample", "20", "--batch", "1"}), json);
}

TEST_F(Explain, PageLoadsNothing) {
  const std::string page = report("page.html");
  for (const char* part : {"http", "//", "src=", "url(", "@import", "<script", "<link", "<iframe", "<object",
                           "<use", "javascript"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  for (std::size_t at = 0; (at = page.find("href=\"", at)) != std::string::npos; ++at)
    EXPECT_EQ(page[at + 6], '#');
  for (std::size_t at = 0; (at = page.find("<svg", at)) != std::string::npos; ++at) {
    const std::string drawing = page.substr(at, page.find("</svg>", at) - at);
    EXPECT_NE(drawing.find("role=\"img\""), std::string::npos);
    EXPECT_NE(drawing.find("<title>"), std::string::npos);
    EXPECT_NE(drawing.find("<desc>"), std::string::npos);
  }
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST_F(Explain, EscapesNames) {
  const std::string odd = "<script>alert('&\"')</script>";
  const std::string model = renamed(odd);
  std::string page = report("page.html", {"--row", "2"}, model);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("alert('&\""), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert('&amp;&quot;')&lt;"), std::string::npos);
  for (const char* plot : {"importance", "beeswarm", "waterfall", "dependence", "partial-dependence"})
    EXPECT_EQ(report("odd.svg", {"--plot", plot, "--feature", "2"}, model).find("<script"),
              std::string::npos);
  const auto json = nlohmann::json::parse(report("odd.json", {"--feature", odd}, model));
  EXPECT_EQ(json["dependence"][0]["feature"], odd);
  EXPECT_NE(report("odd.csv", {"--plot", "importance"}, model).find("\"<script>alert('&\"\"')</script>\""),
            std::string::npos);
  // Characters that take more room, and a name that is cut.
  page = report("wide.html", {}, renamed("身長と体重から計算された体格指数の値です"));
  EXPECT_NE(page.find(">身長と体重から計算され…</text>"), std::string::npos);
}

TEST_F(Explain, ImportanceIsTheMeanOfContributions) {
  const auto contributions = predicted(rows_, "contributions");
  const Cells rows = cells(report("numbers.csv", {"--plot", "importance", "--batch", "9"}));
  EXPECT_EQ(rows[0], (std::vector<std::string>{"feature", "mean |contribution|", "gain", "splits", "cover"}));
  const std::vector<std::string> names{"age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"};
  ASSERT_EQ(rows.size(), names.size() + 1);
  double last = INFINITY;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto f =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), rows[i][0]) - names.begin());
    ASSERT_LT(f, names.size()) << rows[i][0];
    double sum = 0;
    for (const std::vector<double>& row : contributions) sum += std::abs(row[f]);
    const double importance = std::stod(rows[i][1]);
    EXPECT_NEAR(importance, sum / static_cast<double>(contributions.size()), importance * 1e-7);
    EXPECT_LE(importance, last);
    last = importance;
  }
}

// The trainers' own answers are in tests/data/importance.
TEST_F(Explain, ImportanceHasTheTrainersGainsSplitsAndCovers) {
  const struct {
    std::string folder, model, rows;
  } cases[] = {{"diabetes", "model.json", "rows.npy"},
               {"digits", "model.ubj", "rows.npy"},
               {"margins/dart", "model.json", "rows.npy"},
               {"xgboost_versions/3.2.0_categories", "model.json", "rows.npy"},
               {"lightgbm/4.7.0_categories", "model.txt", "rows.npy"},
               {"lightgbm/4.7.0_categories", "model.json", "rows.npy"},
               {"lightgbm/4.7.0_classes", "model.txt", "rows.npy"},
               {"lightgbm/4.7.0_forest", "model.txt", "rows.npy"},
               {"ydf/0.16.1_classes", "model", "rows.csv"},
               {"treelite/3.9.1_logistic", "model.treelite", "rows.npy"},
               {"treelite/3.9.1_categories", "model.treelite", "rows.npy"},
               {"skops/1.9_hist_four", "model.skops", "rows.npy"}};
  for (const auto& [folder, model, rows] : cases) {
    SCOPED_TRACE(folder + "/" + model);
    std::string name = folder;
    std::replace(name.begin(), name.end(), '/', '_');
    const Cells expected = cells(content_of(test_data("importance/" + name + ".csv")));
    content({"explain", test_data(folder + "/" + model), test_data(folder + "/" + rows), "-o",
             file("all.json"), "--plot", "importance"});
    const auto features = nlohmann::json::parse(content_of(file("all.json")))["importance"];
    ASSERT_EQ(features.size() + 1, expected.size());
    for (std::size_t i = 1; i < expected.size(); ++i) {
      const auto feature = std::find_if(features.begin(), features.end(),
                                        [&](const auto& one) { return one["feature"] == expected[i][0]; });
      ASSERT_NE(feature, features.end()) << expected[i][0];
      EXPECT_EQ((*feature)["splits"], std::stoul(expected[i][1])) << expected[i][0];
      // LightGBM's text and what Treelite shows have six digits of a number, and XGBoost adds in float32.
      const double gain = std::stod(expected[i][2]);
      EXPECT_NEAR((*feature)["gain"].get<double>(), gain, gain * 1e-5) << expected[i][0];
      if (expected[i].size() < 4) continue;
      const double cover = std::stod(expected[i][3]);
      EXPECT_NEAR((*feature)["cover"].get<double>(), cover, cover * 1e-5) << expected[i][0];
    }
  }
}

TEST_F(Explain, GainIsNoNumberWhereTheFileDoesNotSayIt) {
  const std::string folder = test_data("catboost/1.2.10_nan_max/");
  content({"explain", folder + "model.cbm", folder + "rows.npy", "-o", file("all.json")});
  const auto features = nlohmann::json::parse(content_of(file("all.json")))["importance"];
  ASSERT_FALSE(features.empty());
  for (const auto& feature : features) EXPECT_EQ(feature["gain"].is_null(), feature["splits"] != 0);
}

TEST_F(Explain, WaterfallsAreTheContributionsOfTheirRows) {
  const auto contributions = predicted(rows_, "contributions");
  const Cells rows = cells(report("numbers.csv", {"--plot", "waterfall", "--row", "17", "--row", "3"}));
  ASSERT_EQ(rows.size(), 23U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][1], i < 12 ? "17" : "3");
    // run rounds to float32.
    EXPECT_FLOAT_EQ(std::stof(rows[i][3]), static_cast<float>(contributions[i < 12 ? 17 : 3][(i - 1) % 11]));
  }
  EXPECT_EQ(rows[11][0], "expected");
}

TEST_F(Explain, PartnersInteractMost) {
  const auto pairs = predicted(rows_, "interactions");
  const auto json = nlohmann::json::parse(report("all.json", {"--plot", "dependence"}));
  const std::vector<std::string> names{"age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"};
  std::map<std::string, std::string> partners;
  for (const auto& row : json["dependence"]) partners[row["feature"]] = row["partner"];
  ASSERT_EQ(partners.size(), names.size());
  for (std::size_t f = 0; f < names.size(); ++f) {
    std::vector<double> strength(names.size());
    for (const std::vector<double>& row : pairs)
      for (std::size_t g = 0; g < names.size(); ++g)
        if (g != f) strength[g] += std::abs(row[f * 11 + g]);
    const auto most = std::max_element(strength.begin(), strength.end()) - strength.begin();
    EXPECT_EQ(partners[names[f]], names[static_cast<std::size_t>(most)]);
  }
}

TEST_F(Explain, PartialDependenceIsTheMeanOfPredictions) {
  const std::string table = test_data("diabetes/rows.csv");
  const Cells rows = cells(content_of(table));
  const auto json = nlohmann::json::parse(
      report("all.json", {"--plot", "partial-dependence", "--feature", "bmi"}))["partial-dependence"];
  ASSERT_GT(json.size(), 10U);
  for (std::size_t i = 0; i < json.size(); i += json.size() / 8) {
    std::ostringstream text;
    text.precision(17);
    text << "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n";
    for (std::size_t r = 1; r < rows.size(); ++r)
      for (std::size_t c = 0; c < 10; ++c) {
        if (c == 2)
          text << json[i]["at"].get<double>();
        else if (c < rows[r].size())
          text << rows[r][c];
        text << (c == 9 ? '\n' : ',');
      }
    write("replaced.csv", text.str());
    double sum = 0;
    const auto scores = predicted(file("replaced.csv"), "raw");
    for (const std::vector<double>& row : scores) sum += row[0];
    EXPECT_NEAR(json[i]["mean raw score"].get<double>(), sum / static_cast<double>(scores.size()), 1e-4);
  }
}

TEST_F(Explain, ShowsOneOfSeveralScores) {
  const std::string model = test_data("digits/model.ubj"), rows = test_data("digits/rows.npy");
  content({"explain", model, rows, "-o", file("one.json"), "--score", "3", "--plot", "importance"});
  const auto json = nlohmann::json::parse(content_of(file("one.json")));
  EXPECT_EQ(json["score"], "3");
  double sum = 0, count = 0;
  content({"run", model, rows, "--output", "contributions", "--output-header", "-o", file("all.csv")});
  std::ifstream lines(file("all.csv"));
  std::string line, name;
  while (std::getline(lines, line)) {
    const std::string cell = cells(line)[0][3 * 65 + 28];
    if (name.empty()) {
      name = cell.substr(2);  // after "3_"
      continue;
    }
    sum += static_cast<double>(std::abs(std::stof(cell)));
    ++count;
  }
  double importance = 0;
  for (const auto& row : json["importance"])
    if (row["feature"] == name) importance = row["mean |contribution|"];
  EXPECT_GT(importance, 0);
  EXPECT_NEAR(importance, sum / count, importance * 1e-7);
}

TEST_F(Explain, IsRefusedByName) {
  const std::string out = file("out.html"), program = file("model.fvm"), coded = file("rows.fvr");
  content({"compile", model_, "-o", program});
  content({"encode", program, rows_, "-o", coded});
  expect_error({"explain", program, rows_, "-o", out}, 1, "model.fvm: is a program, which has no splits");
  expect_error({"explain", model_, coded, "-o", out}, 1, "rows.fvr: holds encoded rows");
  expect_error({"explain", model_, rows_, "-o", out, "--row", "133"}, 1,
               "rows.npy: --row 133: there are 133 rows, and the first has the number 0");
  expect_error({"explain", model_, rows_, "-o", out, "--row", "-1"}, 2,
               "--row '-1': expected the number of a row");
  expect_error({"explain", model_, rows_, "-o", out, "--feature", "weight"}, 2,
               "--feature 'weight': the model has no such feature; expected a name or a number below 10");
  expect_error({"explain", model_, rows_, "-o", out, "--score", "1"}, 2,
               "--score '1': the model has no such raw score; expected a name or a number below 1");
  expect_error({"explain", model_, rows_, "-o", file("out.pdf")}, 2,
               "expected a name that ends in .html, .svg, .csv or .json");
  expect_error({"explain", model_, rows_, "-o", file("out.svg")}, 2, "--plot must say which plot it shows");
  expect_error({"explain", model_, rows_, "-o", out, "--plot", "beeswarm"}, 2,
               "--plot: a page has all plots");
  expect_error(
      {"explain", model_, rows_, "-o", out, "--plot", "pie"}, 2,
      "--plot 'pie': expected one of importance, beeswarm, waterfall, dependence, partial-dependence");
  expect_error({"explain", model_, "-"}, 1, "");
  expect_error({"explain", test_data("onnx/classes_none/model.onnx"), rows_, "-o", out}, 1,
               "the model does not say how many training rows went each way");
  expect_error({"explain", test_data("lightgbm/4.7.0_linear/model.txt"), rows_, "-o", out}, 1, "linear");
  EXPECT_EQ(content_of(out), "") << "a refusal leaves no file";
}

}  // namespace
}  // namespace forestvm::cli::test_program_explain
