// forestvm run --base-margin and --early-stop through the real program.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_call_options {
namespace {

/// Returns an array of one dimension in NumPy's format.
std::string npy(std::size_t count, const std::string& bytes, const std::string& type = "<f4") {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }\n";
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + bytes;
}

class CallOptionsRun : public ProgramTest {
 protected:
  /// Returns the raw scores that `run` writes as NPY.
  std::string raw(const std::string& folder, const std::string& model,
                  std::vector<std::string> options) const {
    options.insert(options.begin(),
                   {"run", test_data(folder + model), test_data(folder + "rows.npy"), "--output", "raw"});
    options.insert(options.end(), {"-o", file("raw.npy")});
    const Outcome outcome = forestvm(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
    return content_of(file("raw.npy"));
  }

  void expect_error(std::vector<std::string> words, int code, const std::string& error) const {
    words.insert(words.begin(), "run");
    ProgramTest::expect_error(words, code, error);
  }
};

TEST_F(CallOptionsRun, MarginsGiveTheTrainersScores) {
  for (const std::string name : {"binary", "classes", "vectors"})
    for (const char* batch : {"1000", "7"}) {
      const std::string folder = "margins/" + name + "/";
      EXPECT_EQ(
          raw(folder, "model.json", {"--base-margin", test_data(folder + "margin.npy"), "--batch", batch}),
          content_of(test_data(folder + "expected_raw.npy")));
    }
  const std::string folder = "margins/lightgbm/";
  EXPECT_EQ(raw(folder, "model.txt", {"--base-margin", test_data(folder + "margin.npy")}),
            content_of(test_data(folder + "expected_raw.npy")));
}

TEST_F(CallOptionsRun, ContributionsStartFromMargins) {
  const std::string folder = "margins/classes/";
  const auto run = [&](const char* batch) {
    const Outcome outcome =
        forestvm({"run", test_data(folder + "model.json"), test_data(folder + "rows.npy"), "--output",
                  "approx-contributions", "--base-margin", test_data(folder + "margin.npy"), "--batch", batch,
                  "-o", file("parts.npy")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return content_of(file("parts.npy"));
  };
  const std::string parts = run("1000"), expected = content_of(test_data(folder + "expected_approx.npy"));
  EXPECT_EQ(parts.substr(parts.size() - 40 * 15 * 4), expected.substr(expected.size() - 40 * 15 * 4));
  EXPECT_EQ(run("7"), parts);
}

TEST_F(CallOptionsRun, WrongMarginsAreRefused) {
  const std::string folder = "margins/classes/";
  const std::string model = test_data(folder + "model.json"), rows = test_data(folder + "rows.npy");
  const std::string out = file("out.npy");
  const std::string one = test_data("margins/binary/margin.npy");
  expect_error({model, rows, "--base-margin", one}, 1,
               "binary/margin.npy: has margins of shape (40, 1), the raw scores have the shape (rows, 3)\n");
  const std::string binary = test_data("margins/binary/model.json");
  const std::string few = write("few.npy", npy(39, std::string(39 * 4, '\0')));
  expect_error(
      {binary, rows, "--base-margin", few, "-o", out}, 1,
      "few.npy: has margins of shape (39, 1), the raw scores of the rows so far have the shape (40, 1)\n");
  const std::string many = write("many.npy", npy(41, std::string(41 * 4, '\0')));
  expect_error({binary, rows, "--base-margin", many, "-o", out, "--batch", "8"}, 1,
               "many.npy: has margins of shape (41, 1), the raw scores of the rows have the shape (40, 1)\n");
  std::string cube = npy(40, std::string(40 * 4, '\0'));
  cube.replace(cube.find("(40,), }\n"), 9, "(40,1,1)}\n");
  expect_error({binary, rows, "--base-margin", write("cube.npy", cube)}, 1,
               "shape (40, 1, 1) has 3 dimensions, expected 1 or 2: (rows,) or (rows, columns)\n");
  std::string bytes(40 * 4, '\0');
  bytes.replace(17 * 4, 4, std::string("\0\0\xc0\x7f", 4));
  const std::string nan = write("nan.npy", npy(40, bytes));
  expect_error({binary, rows, "--base-margin", nan, "-o", out, "--batch", "8"}, 1,
               "nan.npy: row 17: a margin that is not finite\n");
  std::vector<double> numbers(40);
  numbers[17] = 1e300;
  const std::string wide =
      write("wide.npy", npy(40, std::string(reinterpret_cast<const char*>(numbers.data()), 40 * 8), "<f8"));
  expect_error({binary, rows, "--base-margin", wide, "-o", out, "--batch", "8"}, 1,
               "wide.npy: row 17: a margin beyond float32, in which the model sums\n");
  EXPECT_EQ(content_of(out), "");
  expect_error({binary, rows, "--base-margin", "-"}, 2, "--base-margin: margins are read from a file");
  expect_error({binary, rows, "--base-margin", one, "--output", "leaf"}, 2,
               "leaf numbers do not depend on them");
  const std::string forest = write("forest.npy", npy(48, std::string(48 * 4, '\0')));
  expect_error({test_data("lightgbm/2.3.1_forest/model.txt"), test_data("lightgbm/2.3.1_forest/rows.npy"),
                "--base-margin", forest},
               1, "base margins: are for models of XGBoost, and of LightGBM if they do not average");
}

TEST_F(CallOptionsRun, StopsEarlyAsLightgbmDoes) {
  const std::string folder = "early_stop/classes/";
  const std::string expected = content_of(test_data(folder + "raw_3_1.npy"));
  EXPECT_EQ(raw(folder, "model.txt", {"--early-stop", "margin=1,every=3"}), expected);
  EXPECT_EQ(raw(folder, "model.txt", {"--early-stop", "every=3,margin=1", "--batch", "9"}), expected);
  EXPECT_EQ(raw(folder, "model.txt", {"--early-stop", "every=10"}),
            content_of(test_data(folder + "raw_10_10.npy")));
  const std::string model = test_data(folder + "model.txt"), rows = test_data(folder + "rows.npy");
  ASSERT_EQ(forestvm({"compile", model, "-o", file("plain.fvm")}).code, 0);
  ASSERT_EQ(forestvm({"compile", model, "-o", file("kept.fvm"), "--with", "early-stop"}).code, 0);
  const Outcome kept = forestvm({"run", file("kept.fvm"), rows, "--output", "raw", "--early-stop",
                                 "margin=1,every=3", "-o", file("kept.npy")});
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(content_of(file("kept.npy")), expected);
  expect_error({file("plain.fvm"), rows, "--early-stop", "margin=1"}, 1,
               "compile the model with --with early-stop");
}

TEST_F(CallOptionsRun, WrongEarlyStopsAreRefused) {
  const std::string model = test_data("early_stop/binary/model.txt"),
                    rows = test_data("early_stop/binary/rows.npy");
  for (const char* text :
       {"10", "margin=", "margin=-1", "margin=nan", "every=0", "every=1.5", "margin=1,", "margin=1;every=2",
        "margin=1,margin=2", "every=2,every=2", "every=-1", "rounds=3"})
    expect_error({model, rows, "--early-stop", text}, 2,
                 "--early-stop '" + std::string(text) + "': expected margin=M,every=N");
  expect_error(
      {test_data("margins/lightgbm/model.txt"), rows, "--early-stop", "margin=1"}, 1,
      "early stop: is for LightGBM's models of classes and ranks; this one (lightgbm, regression) needs all "
      "its trees");
  expect_error({test_data("lightgbm/4.7.0_forest/model.txt"), test_data("lightgbm/4.7.0_forest/rows.npy"),
                "--early-stop", "margin=1"},
               1, "(lightgbm, multiclass) needs all its trees");
  expect_error({model, rows, "--early-stop", "margin=1", "--output", "leaf"}, 2,
               "leaf numbers are of all trees");
}

TEST_F(CallOptionsRun, CompilingRefusesWhatNoRunCanGive) {
  const auto expect_refused = [&](const char* model, const char* with, const std::string& error) {
    SCOPED_TRACE(with);
    ProgramTest::expect_error({"compile", test_data(model), "-o", file("none.fvm"), "--with", with}, 1,
                              error);
    EXPECT_EQ(content_of(file("none.fvm")), "");
  };
  expect_refused("breast_cancer/model.json", "early-stop",
                 "model.json: early stop: is for LightGBM's models of classes and ranks; this one (xgboost, "
                 "binary:logistic) needs all its trees\n");
  expect_refused("lightgbm/4.7.0_forest/model.txt", "trees,early-stop",
                 "early stop: is for LightGBM's models");
  for (const char* output : {"uncertainty", "virt-ensembles"})
    expect_refused(
        "breast_cancer/model.json", output,
        "model.json: output " + std::string(output) +
            ": is for forests that average their trees, and for most of CatBoost's models if their "
            "rounds begin with the first; this one is of xgboost (binary:logistic)\n");
  expect_refused("lightgbm/4.7.0_forest/model.txt", "virt-ensembles", "the model averages its trees");
  const std::string isolation = "skops/1.9_isolation/model.skops";
  for (const char* with : {"rounds", "staged"})
    expect_refused(isolation.c_str(), with, "the model's trees are not rounds of boosting");
}

TEST_F(CallOptionsRun, VirtualEnsemblesBeginWithTheFirstRound) {
  const std::string model = test_data("uncertainty/binary.json"), rows = test_data("uncertainty/rows.npy");
  expect_error({model, rows, "--output", "uncertainty", "--rounds", "3:20"}, 2,
               "--rounds: the rounds 3:20 do not begin with the first, as those of uncertainty must");
  ProgramTest::expect_error(
      {"compile", model, "-o", file("none.fvm"), "--with", "trees,virt-ensembles", "--rounds", "3:"}, 2,
      "do not begin with the first, as those of virt-ensembles must");
  const Outcome raw = forestvm({"run", model, rows, "--output", "raw", "--rounds", "3:20"});
  EXPECT_EQ(raw.code, 0) << raw.err;
  const std::string forest = "lightgbm/4.7.0_forest/";
  const Outcome averaged = forestvm({"run", test_data(forest + "model.txt"), test_data(forest + "rows.npy"),
                                     "--output", "uncertainty", "--rounds", "1:"});
  EXPECT_EQ(averaged.code, 0) << averaged.err;
}

class Rounds : public CallOptionsRun {
 protected:
  std::string csv(std::vector<std::string> words) const {
    words.insert(words.begin(), "run");
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  /// Returns a column of CSV text.
  static std::string column_of(const std::string& csv, std::size_t column) {
    std::string cells;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream row(line);
      std::string cell;
      for (std::size_t i = 0; i <= column; ++i) std::getline(row, cell, ',');
      cells += cell + "\n";
    }
    return cells;
  }

  const std::string model_ = test_data("breast_cancer/model.json"),
                    rows_ = test_data("breast_cancer/rows.npy");
};

TEST_F(Rounds, StagesAreTheRawScoresOfRounds) {
  const std::string stages = csv({model_, rows_, "--output", "staged", "--every", "80"});
  EXPECT_EQ(column_of(stages, 0), csv({model_, rows_, "--output", "raw", "--rounds", "0:80"}));
  EXPECT_EQ(column_of(stages, 1), csv({model_, rows_, "--output", "raw", "--rounds", "0:160"}));
  EXPECT_EQ(column_of(stages, 2), csv({model_, rows_, "--output", "raw"}));
  const std::string named =
      csv({model_, rows_, "--output", "staged", "--every", "80", "--output-header", "--batch", "7"});
  EXPECT_EQ(named, "after_80,after_160,after_200\n" + stages);
  const std::string out = file("staged.npy");
  csv({test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output", "staged", "--every", "9",
       "-o", out});
  EXPECT_NE(content_of(out).find("(540, 3, 10)"), std::string::npos);
}

TEST_F(Rounds, AreChosenInAProgram) {
  const std::string program = file("rounds.fvm"), plain = file("plain.fvm");
  for (const char* word : {"rounds", "trees", "staged", "staged,trees"})
    ASSERT_EQ(forestvm({"compile", model_, "-o", program, "--with", word}).code, 0);
  ASSERT_EQ(forestvm({"compile", model_, "-o", plain}).code, 0);
  for (const char* output : {"raw", "value", "class", "trees"})
    for (const char* rounds : {"3:50", ":1", "150:"})
      EXPECT_EQ(csv({program, rows_, "--output", output, "--rounds", rounds, "--batch", "50"}),
                csv({model_, rows_, "--output", output, "--rounds", rounds}));
  EXPECT_EQ(csv({program, rows_}), csv({plain, rows_}));
  EXPECT_EQ(csv({program, rows_, "--output", "trees", "--rounds", "7:9", "--output-header"}).substr(0, 14),
            "tree_7,tree_8\n");
  EXPECT_NE(forestvm({"inspect", program}).out.find("keeps leaves"), std::string::npos);
  EXPECT_NE(forestvm({"dump", program}).out.find("store_stages a0, a1, r"), std::string::npos);
  EXPECT_EQ(forestvm({"verify", program}).code, 0);
  write("text.txt", forestvm({"dump", program}).out);
  ASSERT_EQ(forestvm({"assemble", file("text.txt"), "--data", program, "-o", file("again.fvm")}).code, 0);
  EXPECT_EQ(content_of(file("again.fvm")), content_of(program));
}

TEST_F(Rounds, AreRefusedByName) {
  const std::string program = file("rounds.fvm"), plain = file("plain.fvm");
  ASSERT_EQ(forestvm({"compile", model_, "-o", program, "--with", "rounds"}).code, 0);
  ASSERT_EQ(forestvm({"compile", model_, "-o", plain}).code, 0);
  expect_error({program, rows_, "--rounds", "3:3"}, 2,
               "rounds: 3:3: expected A:B with A < B, and B at most 200");
  expect_error({program, rows_, "--rounds", "0:201"}, 2, "B at most 200, the program's number of rounds");
  expect_error({program, rows_, "--rounds", "best"}, 2,
               "is a program, which does not say what the best round is");
  expect_error({program, rows_, "--rounds", "0:2", "--output", "leaf"}, 2,
               "compile the model for the rounds");
  expect_error({plain, rows_, "--rounds", "0:2"}, 1,
               "compile the model with --with rounds, or for the rounds");
  expect_error({plain, rows_, "--output", "trees"}, 1, "compile the model with --with trees");
  expect_error({plain, rows_, "--output", "staged"}, 1, "compile the model with --with staged");
  expect_error({model_, rows_, "--every", "3"}, 2,
               "--every: is for --output staged, and says how many rounds lie between its scores");
  expect_error({model_, rows_, "--output", "staged", "--every", "0"}, 2, "--every");
  const Outcome exported = forestvm({"export", program, "-o", file("forest.c")});
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(content_of(file("forest.c")).find("_predict_staged("), std::string::npos);
}

TEST_F(Rounds, OfGpusAreTheHosts) {
  const auto program_for = [&](const char* schedule) {
    const std::string to = file(std::string(schedule) + ".fvm");
    const Outcome done =
        forestvm({"compile", model_, "-o", to, "--with", "trees,contributions", "--schedule", schedule});
    EXPECT_EQ(done.code, 0) << done.err;
    return to;
  };
  const std::string host = program_for("auto"), gpu = program_for("gpu");
  for (const char* const output : {"raw", "trees", "staged", "contributions"}) {
    const auto run = [&](const std::string& program, const char* backend) {
      const std::string to = file(std::string(backend) + ".npy");
      const Outcome done = forestvm(
          {"run", program, rows_, "--output", output, "--rounds", "3:40", "--backend", backend, "-o", to});
      EXPECT_EQ(done.code, 0) << done.err;
      return content_of(to);
    };
    EXPECT_EQ(run(gpu, "emulator"), run(host, "host")) << output;
  }
}

/// Options of `run` for a model and rows.
struct Asked {
  std::string model, rows;
  std::vector<std::string> options;
};

TEST_F(Rounds, OutputsOfGpusAreTheHosts) {
  const std::string forest = test_data("quantile/extra_trees");
  const std::vector<Asked> all = {{test_data("early_stop/binary/model.txt"),
                                   test_data("early_stop/binary/rows.npy"),
                                   {"--early-stop", "margin=1,every=2"}},
                                  {test_data("uncertainty/classes.json"),
                                   test_data("uncertainty/rows.npy"),
                                   {"--output", "uncertainty", "--ensembles", "4"}},
                                  {test_data("uncertainty/gaussian.json"),
                                   test_data("uncertainty/rows.npy"),
                                   {"--output", "virt-ensembles", "--ensembles", "3"}},
                                  {model_, rows_, {"--output", "approx-contributions"}},
                                  {model_, rows_, {"--output", "interactions"}},
                                  {model_, rows_, {"--output", "contributions", "--background", rows_}},
                                  {forest + ".skops",
                                   forest + ".rows.npy",
                                   {"--output", "quantile", "--quantiles", "0.1,0.9", "--samples",
                                    forest + ".X.npy," + forest + ".y.npy"}}};
  for (const Asked& asked : all) {
    const auto run = [&](const char* backend) {
      const std::string to = file(std::string(backend) + ".npy");
      std::vector<std::string> words{"run", asked.model, asked.rows, "--backend", backend, "-o", to};
      words.insert(words.end(), asked.options.begin(), asked.options.end());
      const Outcome done = forestvm(words);
      EXPECT_EQ(done.code, 0) << done.err;
      return content_of(to);
    };
    EXPECT_EQ(run("emulator"), run("host")) << asked.options[1];
  }
}

}  // namespace
}  // namespace forestvm::cli::test_program_call_options
