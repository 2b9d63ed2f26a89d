// forestvm run --base-margin and --early-stop through the real program.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli {
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
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(error), std::string::npos) << outcome.err;
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

TEST_F(CallOptionsRun, WrongMarginsAreRefused) {
  const std::string folder = "margins/classes/";
  const std::string model = test_data(folder + "model.json"), rows = test_data(folder + "rows.npy");
  const std::string out = file("out.npy");
  const std::string one = test_data("margins/binary/margin.npy");
  expect_error({model, rows, "--base-margin", one}, 1,
               "binary/margin.npy: has margins of shape (40, 1), the raw scores have the shape (rows, 3)\n");
  const std::string binary = test_data("margins/binary/model.json");
  const std::string few = write("few.npy", npy(39, std::string(39 * 4, '\0')));
  expect_error({binary, rows, "--base-margin", few, "-o", out}, 1,
               "few.npy: has margins of 39 rows, but there are more rows\n");
  const std::string many = write("many.npy", npy(41, std::string(41 * 4, '\0')));
  expect_error({binary, rows, "--base-margin", many, "-o", out, "--batch", "8"}, 1,
               "many.npy: has margins of 41 rows, but there are 40 rows\n");
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

}  // namespace
}  // namespace forestvm::cli
