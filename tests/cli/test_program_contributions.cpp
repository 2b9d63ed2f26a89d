// forestvm run --output contributions and interactions, and forestvm compile --with them, through the real program.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli {
namespace {

class Contributions : public ProgramTest {
 protected:
  std::string content(const std::vector<std::string>& words) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  void expect_error(const std::vector<std::string>& words, int code, const std::string& error) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(error), std::string::npos) << outcome.err;
  }

  const std::string model_ = test_data("breast_cancer/model.json"),
                    rows_ = test_data("breast_cancer/rows.npy");
};

TEST_F(Contributions, HaveNamesInCsv) {
  std::istringstream lines(content({"run", model_, rows_, "--output", "contributions", "--output-header"}));
  std::string header, first;
  std::getline(lines, header);
  std::getline(lines, first);
  EXPECT_EQ(header.substr(0, 25), "mean radius,mean texture,");
  EXPECT_EQ(header.substr(header.rfind(',')), ",expected");
  EXPECT_EQ(std::count(first.begin(), first.end(), ','), 30);
}

TEST_F(Contributions, HaveAnArrayOfTheRightShape) {
  const auto shape = [&](const std::string& model, const std::string& rows) {
    const std::string out = file("out.npy");
    content({"run", test_data(model), test_data(rows), "--output", "contributions", "-o", out});
    return content_of(out).substr(10, 100);
  };
  EXPECT_NE(shape("breast_cancer/model.json", "breast_cancer/rows.npy")
                .find("'<f4', 'fortran_order': False, 'shape': (171, 31)"),
            std::string::npos);
  EXPECT_NE(shape("digits/model.ubj", "digits/rows.npy").find("(540, 10, 65)"), std::string::npos);
  EXPECT_NE(shape("lightgbm/4.7.0_classes/model.txt", "lightgbm/4.7.0_classes/rows.npy").find("'<f8', "),
            std::string::npos);
}

TEST_F(Contributions, OfPairsAreInteractions) {
  std::istringstream lines(content({"run", model_, rows_, "--output", "interactions", "--output-header"}));
  std::string header;
  std::getline(lines, header);
  EXPECT_EQ(header.substr(0, 48), "mean radius:mean radius,mean radius:mean texture");
  EXPECT_EQ(header.substr(header.rfind(',')), ",expected:expected");
  const auto shape = [&](const std::string& model, const std::string& rows) {
    const std::string out = file("out.npy");
    content({"run", test_data(model), test_data(rows), "--output", "interactions", "-o", out});
    return content_of(out).substr(10, 100);
  };
  EXPECT_NE(shape("breast_cancer/model.json", "breast_cancer/rows.npy").find("(171, 31, 31)"),
            std::string::npos);
  EXPECT_NE(shape("digits/model.ubj", "digits/rows.npy").find("(540, 10, 65, 65)"), std::string::npos);
  const std::string program = file("model.fvm"), less = file("less.fvm"), again = file("again.fvm");
  content({"compile", model_, "-o", program, "--with", "interactions"});
  content({"compile", model_, "-o", less, "--with", "contributions"});
  for (const char* output : {"interactions", "contributions", "raw"})
    EXPECT_EQ(content({"run", program, rows_, "--output", output, "--batch", "7"}),
              content({"run", model_, rows_, "--output", output}));
  write("text.txt", content({"dump", program}));
  content({"assemble", file("text.txt"), "--data", program, "-o", again});
  EXPECT_EQ(content_of(again), content_of(program));
  EXPECT_NE(content({"inspect", program}).find("interactions"), std::string::npos);
  expect_error({"run", less, rows_, "--output", "interactions"}, 1,
               "less.fvm: the program has no interactions: compile the model with --with interactions\n");
  expect_error({"run", program, rows_, "--output", "interactions", "--max-bytes", "3843"}, 1,
               "the interactions of a row take 3844 bytes, more than --max-bytes 3843 allows");
  expect_error({"run", program, rows_, "--output", "interactions", "--max-bytes", "0"}, 2, "--max-bytes");
}

TEST_F(Contributions, OfAProgramAreThoseOfTheModel) {
  const std::string program = file("model.fvm"), both = file("both.fvm"), plain = file("plain.fvm");
  content({"compile", model_, "-o", program, "--with", "contributions"});
  content({"compile", model_, "-o", both, "--with", "early-stop,contributions"});
  content({"compile", model_, "-o", plain});
  const std::string expected = content({"run", model_, rows_, "--output", "contributions"});
  for (const std::string& compiled : {program, both})
    for (const char* batch : {"1000", "7"})
      EXPECT_EQ(content({"run", compiled, rows_, "--output", "contributions", "--batch", batch}), expected);
  expect_error({"run", plain, rows_, "--output", "contributions"}, 1,
               "plain.fvm: the program has no contributions: compile the model with --with contributions\n");
  const std::string raw = content({"run", plain, rows_, "--output", "raw"});
  EXPECT_EQ(content({"run", program, rows_, "--output", "raw"}), raw);
  EXPECT_NE(content({"inspect", program}).find("contributions"), std::string::npos);
  EXPECT_EQ(content({"inspect", plain}).find("contributions"), std::string::npos);
  EXPECT_NE(content({"dump", program}).find("explain r2"), std::string::npos);
  EXPECT_NE(content({"verify", program}).find("verified"), std::string::npos);
}

TEST_F(Contributions, AreApproximateIfAskedFor) {
  const std::string program = file("model.fvm"), again = file("again.fvm"), plain = file("plain.fvm");
  content({"compile", model_, "-o", program, "--with", "approx-contributions"});
  content({"compile", model_, "-o", plain});
  const std::string expected =
      content({"run", model_, rows_, "--output", "approx-contributions", "--output-header"});
  EXPECT_EQ(expected.substr(0, 25), "mean radius,mean texture,");
  EXPECT_EQ(
      content({"run", program, rows_, "--output", "approx-contributions", "--output-header", "--batch", "7"}),
      expected);
  EXPECT_EQ(content({"run", program, rows_, "--output", "raw"}),
            content({"run", plain, rows_, "--output", "raw"}));
  EXPECT_NE(content({"dump", program}).find("attribute r"), std::string::npos);
  EXPECT_NE(content({"inspect", program}).find("approximate contributions"), std::string::npos);
  write("text.txt", content({"dump", program}));
  content({"assemble", file("text.txt"), "--data", program, "-o", again});
  EXPECT_EQ(content_of(again), content_of(program));
  const std::string out = file("out.npy");
  content({"run", test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output",
           "approx-contributions", "-o", out});
  EXPECT_NE(content_of(out).substr(10, 100).find("(540, 10, 65)"), std::string::npos);
  expect_error(
      {"run", plain, rows_, "--output", "approx-contributions"}, 1,
      "the program has no approx-contributions: compile the model with --with approx-contributions\n");
  expect_error({"export", program, "-o", file("forest.c")}, 1,
               "the program computes contributions or interactions, which C does not");
}

TEST_F(Contributions, SurviveTheAssembler) {
  const std::string program = file("model.fvm"), again = file("again.fvm"), text = file("text.txt");
  content({"compile", model_, "-o", program, "--with", "contributions"});
  write("text.txt", content({"dump", program}));
  content({"assemble", text, "--data", program, "-o", again});
  EXPECT_EQ(content_of(again), content_of(program));
}

TEST_F(Contributions, AreRefusedByName) {
  const std::string out = file("out.fvm");
  expect_error(
      {"compile", model_, "-o", out, "--with", "contribution"}, 2,
      "--with 'contribution': expected one of early-stop, trees, staged, rounds, contributions, interactions, "
      "approx-contributions");
  expect_error({"compile", test_data("onnx/classes_none/model.onnx"), "-o", out, "--with", "contributions"},
               1, "model.onnx: tree 0, node 0: the model does not say how many training rows went each way");
  for (const char* outputs : {"contributions", "interactions", "contributions,interactions"})
    expect_error(
        {"compile", model_, "-o", out, "--with", outputs, "--schedule", "gpu"}, 1,
        "gpuDimension(b0, grid.x): contributions and interactions are computed on the host, not on GPUs");
  expect_error({"run", model_, rows_, "--output", "contributions", "--base-margin", rows_}, 1, "");
  const std::string linear = test_data("lightgbm/4.7.0_linear/model.txt");
  expect_error({"compile", linear, "-o", out, "--with", "contributions"}, 1, "linear functions of the row");
  const std::string program = file("model.fvm");
  content({"compile", model_, "-o", program, "--with", "contributions"});
  expect_error({"export", program, "-o", file("forest.c")}, 1,
               "the program computes contributions or interactions, which C does not");
}

}  // namespace
}  // namespace forestvm::cli
