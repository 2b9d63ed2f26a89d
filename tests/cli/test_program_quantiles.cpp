// forestvm run --output quantile, and forestvm compile --with it, through the real program.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "spawn.hpp"

namespace forestvm::cli::test_program_quantiles {
namespace {

class Quantiles : public ProgramTest {
 protected:
  static std::string part(const std::string& ending) { return test_data("quantile/extra_trees" + ending); }

  const std::string model_ = part(".skops"), rows_ = part(".rows.npy"),
                    samples_ = part(".X.npy") + "," + part(".y.npy");
};

TEST_F(Quantiles, OfModelsAndPrograms) {
  const std::string asked = "0.5,0.1,0.9", direct = file("direct.npy"), compiled = file("compiled.npy"),
                    program = file("quantiles.fvm");
  content({"run", model_, rows_, "--output", "quantile", "--quantiles", asked, "--samples", samples_, "-o",
           direct});
  content({"compile", model_, "-o", program, "--with", "quantile", "--samples", samples_});
  content(
      {"run", program, rows_, "--output", "quantile", "--quantiles", asked, "-o", compiled, "--batch", "7"});
  EXPECT_EQ(content_of(direct), content_of(compiled));
  EXPECT_NE(content_of(direct).find("'<f8', 'fortran_order': False, 'shape': (60, 3)"), std::string::npos);
  std::istringstream lines(content({"run", program, rows_, "--output", "quantile", "--output-header"}));
  std::string header;
  std::getline(lines, header);
  EXPECT_EQ(header, "quantile_0.1,quantile_0.5,quantile_0.9");
  EXPECT_NE(content({"inspect", program}).find("distinct targets"), std::string::npos);
  EXPECT_NE(content({"dump", program}).find("; quantiles of 160 distinct targets"), std::string::npos);
  EXPECT_EQ(content({"run", program, rows_}), content({"run", model_, rows_}));
}

TEST_F(Quantiles, SurviveTheAssembler) {
  const std::string program = file("quantiles.fvm"), again = file("again.fvm"), text = file("text.txt");
  content({"compile", model_, "-o", program, "--with", "quantile", "--samples", samples_});
  write("text.txt", content({"dump", program}));
  content({"assemble", text, "--data", program, "-o", again});
  EXPECT_EQ(content_of(again), content_of(program));
}

TEST_F(Quantiles, AreRefusedByName) {
  const std::string out = file("out.fvm");
  expect_error({"compile", model_, "-o", out, "--with", "quantile"}, 2, "give --samples X.npy,y.npy");
  expect_error({"run", model_, rows_, "--output", "quantile"}, 2, "give --samples X.npy,y.npy");
  expect_error({"compile", model_, "-o", out, "--samples", samples_}, 2, "--samples: is for --with quantile");
  expect_error({"run", model_, rows_, "--output", "quantile", "--samples", "rows.npy"}, 2,
               "--samples 'rows.npy': expected X.npy,y.npy");
  expect_error({"run", model_, rows_, "--output", "quantile", "--samples", "-,y.npy"}, 2,
               "--samples: rows and targets are read from files");
  for (const char* const wrong : {"1.5", "-0.1", "nan", "0.5,", "a", ""})
    expect_error({"run", model_, rows_, "--output", "quantile", "--samples", samples_, "--quantiles", wrong},
                 2, "expected numbers from 0 to 1 with commas between them");
  expect_error({"run", model_, rows_, "--quantiles", "0.5"}, 2, "--quantiles: is for --output quantile");
  expect_error({"run", model_, rows_, "--output", "quantile", "--samples", rows_ + "," + part(".y.npy")}, 1,
               "samples: 60 rows, but 160 targets");
  expect_error(
      {"run", model_, rows_, "--output", "quantile", "--samples", part(".X.npy") + "," + part(".X.npy")}, 1,
      "has targets in 4 columns, expected the shape (rows,)");
  expect_error({"run", model_, rows_, "--output", "quantile", "--samples", samples_, "-o", part(".X.npy")}, 2,
               "would overwrite the input");
  const std::string program = file("quantiles.fvm"), plain = file("plain.fvm");
  content({"compile", model_, "-o", program, "--with", "quantile", "--samples", samples_});
  content({"compile", model_, "-o", plain});
  expect_error({"run", plain, rows_, "--output", "quantile"}, 1, "the program has none: compile the model");
  expect_error({"run", program, rows_, "--output", "quantile", "--samples", samples_}, 2,
               "compile the model with");
  expect_error({"run", program, rows_, "--output", "quantile", "--rounds", "0:2"}, 2,
               "quantiles of a call are of all rounds");
  content({"export", program, "-o", file("forest.c")});
  EXPECT_NE(content_of(file("forest.c")).find("int forest_predict_quantile("), std::string::npos);
  const std::string ten_columns = test_data("diabetes/rows.npy"),
                    one_column = test_data("diabetes/expected.npy");
  expect_error({"run", model_, rows_, "--output", "quantile", "--samples", ten_columns + "," + one_column}, 1,
               "samples: their shape is (133, 10), but it must be (rows, 4) with a row or more");
  std::string targets = content_of(part(".y.npy"));
  targets.replace(targets.size() - 8, 8, std::string("\0\0\0\0\0\0\xf8\x7f", 8));
  write("nan.npy", targets);
  expect_error(
      {"run", model_, rows_, "--output", "quantile", "--samples", part(".X.npy") + "," + file("nan.npy")}, 1,
      "samples: the target of row 159 is not finite");
  expect_error({"run", test_data("diabetes/model.json"), ten_columns, "--output", "quantile", "--samples",
                ten_columns + "," + one_column},
               1, "samples: quantiles are those of a single tree or of a forest that averages its trees");
  expect_error({"run", test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output", "quantile",
                "--samples", test_data("digits/rows.npy") + "," + part(".y.npy")},
               1, "samples: ");
}

}  // namespace
}  // namespace forestvm::cli::test_program_quantiles
