// forestvm run --output contributions and interactions, and forestvm compile --with them, through the real program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_contributions {
namespace {

class Contributions : public ProgramTest {
 protected:
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
  expect_error(
      {"run", less, rows_, "--output", "interactions"}, 1,
      "less.fvm: output interactions: the program has none: compile the model with --with interactions ");
  expect_error({"run", program, rows_, "--output", "interactions", "--max-bytes", "3843"}, 1,
               "the interactions of a row take 3844 bytes, more than --max-bytes 3843 allows");
  expect_error({"run", program, rows_, "--output", "interactions", "--max-bytes", "0"}, 2, "--max-bytes");
}

TEST_F(Contributions, OfAProgramAreThoseOfTheModel) {
  const std::string program = file("model.fvm"), both = file("both.fvm"), plain = file("plain.fvm");
  content({"compile", model_, "-o", program, "--with", "contributions"});
  content({"compile", model_, "-o", both, "--with", "staged,contributions"});
  content({"compile", model_, "-o", plain});
  const std::string expected = content({"run", model_, rows_, "--output", "contributions"});
  for (const std::string& compiled : {program, both})
    for (const char* batch : {"1000", "7"})
      EXPECT_EQ(content({"run", compiled, rows_, "--output", "contributions", "--batch", batch}), expected);
  expect_error(
      {"run", plain, rows_, "--output", "contributions"}, 1,
      "plain.fvm: output contributions: the program has none: compile the model with --with contributions ");
  const std::string raw = content({"run", plain, rows_, "--output", "raw"});
  EXPECT_EQ(content({"run", program, rows_, "--output", "raw"}), raw);
  EXPECT_NE(content({"inspect", program}).find("contributions"), std::string::npos);
  EXPECT_EQ(content({"inspect", plain}).find("contributions"), std::string::npos);
  EXPECT_NE(content({"dump", program}).find("explain r2"), std::string::npos);
  EXPECT_NE(content({"verify", program}).find("verified"), std::string::npos);
}

TEST_F(Contributions, AgainstABackground) {
  const std::string program = file("model.fvm"), again = file("again.fvm"), few = file("few.npy");
  const auto run = [&](const std::string& from, const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", from, rows_, "--output", "contributions"};
    words.insert(words.end(), more.begin(), more.end());
    return content(words);
  };
  content({"compile", model_, "-o", program, "--with", "contributions", "--background", rows_});
  const std::string expected = run(model_, {"--background", rows_});
  EXPECT_NE(expected, run(model_, {}));
  EXPECT_EQ(run(program, {}), expected);
  EXPECT_EQ(run(program, {"--batch", "7"}), expected);
  EXPECT_EQ(run(program, {"--top", "2"}), run(model_, {"--background", rows_, "--top", "2"}));
  EXPECT_EQ(content({"run", program, rows_, "--output", "raw"}),
            content({"run", model_, rows_, "--output", "raw"}));
  const std::string inspected = content({"inspect", program});
  for (const char* const text : {"background", "rows 171", "leaves looked up", "because"})
    EXPECT_NE(inspected.find(text), std::string::npos) << text;
  write("text.txt", content({"dump", program}));
  EXPECT_NE(content_of(file("text.txt")).find("; contributions against a background of 171 rows"),
            std::string::npos);
  content({"assemble", file("text.txt"), "--data", program, "-o", again});
  EXPECT_EQ(content_of(again), content_of(program));
  content({"run", model_, rows_, "--output", "contributions", "--features", "1,2", "--background", rows_,
           "-o", few});
  expect_error({"run", model_, rows_, "--output", "contributions", "--background", few}, 1,
               "few.npy: background: its shape is (171, 3), but it must be (rows, 30) with a row or more");
  expect_error({"run", program, rows_, "--output", "contributions", "--background", rows_}, 2,
               "is a program, compile the model with --background");
  expect_error({"run", model_, rows_, "--background", rows_}, 2, "--background: is for contributions");
  expect_error(
      {"compile", model_, "-o", again, "--with", "interactions,contributions", "--background", rows_}, 2,
      "--background: is for contributions, without interactions");
  expect_error({"run", model_, rows_, "--output", "contributions", "--background", "-"}, 2,
               "--background: rows are read from a file");
  content({"export", program, "-o", file("model.c")});
  EXPECT_NE(content_of(file("model.c")).find("_add_pattern("), std::string::npos);
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
      "output approx-contributions: the program has none: compile the model with --with approx-contributions ");
  content({"export", program, "-o", file("forest.c")});
  EXPECT_NE(content_of(file("forest.c")).find("void forest_predict_approx_contributions("),
            std::string::npos);
}

TEST_F(Contributions, OfAveragedForestsAreDivided) {
  const std::string forest = test_data("lightgbm/4.7.0_forest/model.txt"),
                    rows = test_data("lightgbm/4.7.0_forest/rows.npy"), program = file("forest.fvm");
  content({"compile", forest, "-o", program, "--with", "interactions,approx-contributions"});
  const auto numbers = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "run");
    std::string text = content(words);
    std::replace(text.begin(), text.end(), '\n', ',');
    std::vector<double> all;
    std::istringstream in(text);
    for (std::string cell; std::getline(in, cell, ',');) all.push_back(std::stod(cell));
    return all;
  };
  constexpr std::size_t kRows = 48;
  const auto leaves = numbers({forest, rows, "--output", "leaf"}),
             raw = numbers({forest, rows, "--output", "raw"});
  const std::size_t outputs = raw.size() / kRows, trees = leaves.size() / kRows;
  ASSERT_GT(outputs, 1u);
  const auto rounds = static_cast<double>(trees / outputs);
  for (const std::string output : {"contributions", "approx-contributions", "interactions"}) {
    const auto sums = numbers({forest, rows, "--output", output});
    for (const std::string& from : {forest, program}) {
      const auto means = numbers({from, rows, "--output", output, "--averaged"});
      ASSERT_EQ(means.size(), sums.size()) << output;
      for (std::size_t i = 0; i < sums.size(); ++i)
        ASSERT_EQ(means[i], sums[i] / rounds) << output << " " << i;
    }
  }
  expect_error(
      {"run", model_, rows_, "--output", "contributions", "--averaged"}, 1,
      "--averaged: is for forests that average their trees; this one (xgboost, binary:logistic) does not\n");
  expect_error({"run", forest, rows, "--averaged"}, 2, "--averaged: is for contributions and interactions");
}

/// Returns the cells of a line of CSV.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) all.push_back(cell);
  return all;
}

/// Returns the lines of a text.
std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

TEST_F(Contributions, OfChosenFeaturesAreThoseOfAll) {
  for (const std::string output : {"contributions", "approx-contributions"}) {
    const auto all = lines(content({"run", model_, rows_, "--output", output, "--output-header"}));
    const auto some = lines(content({"run", model_, rows_, "--output", output, "--output-header",
                                     "--features", "worst area,1,mean radius", "--batch", "7"}));
    ASSERT_EQ(all.size(), some.size());
    const auto names = cells(all[0]);
    const auto area =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), "worst area") - names.begin());
    EXPECT_EQ(some[0], "mean radius,mean texture,worst area,expected");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto whole = cells(all[i]);
      EXPECT_EQ(cells(some[i]), (std::vector<std::string>{whole[0], whole[1], whole[area], whole[30]}));
    }
  }
  const std::string out = file("out.npy");
  content({"run", test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output", "interactions",
           "-o", out, "--features", "10,20,21"});
  EXPECT_NE(content_of(out).substr(10, 100).find("(540, 10, 4, 4)"), std::string::npos);
}

TEST_F(Contributions, OfTheStrongestFeaturesComeFirst) {
  const auto all = lines(content({"run", model_, rows_, "--output", "contributions", "--output-header"}));
  const auto top =
      lines(content({"run", model_, rows_, "--output", "contributions", "--top", "2", "--output-header"}));
  ASSERT_EQ(all.size(), top.size());
  EXPECT_EQ(top[0], "feature_0,value_0,feature_1,value_1");
  const auto names = cells(all[0]);
  for (std::size_t row = 1; row < all.size(); ++row) {
    const auto numbers = cells(all[row]);
    std::vector<std::size_t> order(30);
    for (std::size_t f = 0; f < order.size(); ++f) order[f] = f;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(std::stod(numbers[a])) > std::abs(std::stod(numbers[b]));
    });
    EXPECT_EQ(cells(top[row]), (std::vector<std::string>{names[order[0]], numbers[order[0]], names[order[1]],
                                                         numbers[order[1]]}));
  }
  const auto pairs = lines(content({"run", model_, rows_, "--output", "interactions", "--features", "0,1",
                                    "--top", "3", "--output-header"}));
  const auto two = lines(content({"run", model_, rows_, "--output", "interactions", "--features", "0,1"}));
  EXPECT_EQ(pairs[0], "first_0,second_0,value_0,first_1,second_1,value_1,first_2,second_2,value_2");
  for (std::size_t row = 0; row < two.size(); ++row) {
    const auto matrix = cells(two[row]), mine = cells(pairs[row + 1]);
    for (std::size_t i = 0; i < 9; i += 3) {
      const std::size_t a = mine[i] == "mean radius" ? 0 : 1, b = mine[i + 1] == "mean radius" ? 0 : 1;
      EXPECT_EQ(mine[i + 2], matrix[a * 3 + b]);
    }
  }
  const std::string out = file("out.npy");
  content({"run", test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output", "interactions",
           "-o", out, "--top", "5"});
  EXPECT_NE(content_of(out).substr(10, 100).find("(540, 10, 5, 3)"), std::string::npos);
}

/// Returns the numbers of an array in NumPy's format that begins at `at`, and sets `at` to its end.
template <class Number>
std::vector<Number> numbers_at(const std::string& file, std::size_t& at, std::size_t count) {
  at = file.find("\x93NUMPY", at);
  const std::size_t begin =
      at + 10 + static_cast<unsigned char>(file[at + 8]) + 256u * static_cast<unsigned char>(file[at + 9]);
  std::vector<Number> numbers(count);
  std::memcpy(numbers.data(), file.data() + begin, count * sizeof(Number));
  at = begin + count * sizeof(Number);
  return numbers;
}

TEST_F(Contributions, WithoutZerosAreThoseOfAll) {
  const std::string sparse = file("out.npz"), dense = file("out.npy");
  const std::string digits = test_data("digits/model.ubj"), images = test_data("digits/rows.npy");
  for (const std::vector<std::string>& more : {std::vector<std::string>{"contributions"},
                                               {"interactions"},
                                               {"contributions", "--features", "3,20,21"}}) {
    std::vector<std::string> words{"run", digits, images, "--output"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"-o", dense});
    content(words);
    words.back() = sparse;
    words.emplace_back("--sparse");
    content(words);
    const std::size_t rows = 540;
    const std::string archive = content_of(sparse), array = content_of(dense);
    std::size_t at = archive.find("indptr.npy");
    const auto ends = numbers_at<std::int64_t>(archive, at, rows + 1);
    const auto count = static_cast<std::size_t>(ends.back());
    at = 0;
    const auto columns = numbers_at<std::int64_t>(archive, at, count);
    at = archive.find("shape.npy");
    const auto shape = numbers_at<std::int64_t>(archive, at, 2);
    const auto values = numbers_at<float>(archive, at, count);
    const auto width = static_cast<std::size_t>(shape[1]);
    ASSERT_EQ(shape[0], 540);
    at = 0;
    const auto all = numbers_at<float>(array, at, rows * width);
    EXPECT_EQ(at, array.size());
    std::vector<float> read(rows * width);
    for (std::size_t row = 0; row < rows; ++row)
      for (auto i = static_cast<std::size_t>(ends[row]); i < static_cast<std::size_t>(ends[row + 1]); ++i) {
        EXPECT_NE(values[i], 0);
        read[row * width + static_cast<std::size_t>(columns[i])] = values[i];
      }
    EXPECT_EQ(read, all);
  }
  for (const std::vector<std::string>& more : {std::vector<std::string>{"contributions"},
                                               {"approx-contributions"},
                                               {"contributions", "--features", "3,20"}}) {
    std::vector<std::string> words{"run", model_, rows_, "-o", sparse, "--sparse", "--output"};
    words.insert(words.end(), more.begin(), more.end());
    content(words);
    const std::string first = content_of(sparse);
    words.insert(words.end(), {"--batch", "7"});
    content(words);
    EXPECT_EQ(content_of(sparse), first);
    EXPECT_EQ(first.substr(0, 4), "PK\x03\x04");
  }
  expect_error({"run", model_, rows_, "--output", "contributions", "--sparse"}, 2,
               "-o '-': --sparse writes an .npz file");
  expect_error({"run", model_, rows_, "--output", "contributions", "--sparse", "--top", "2", "-o", sparse}, 2,
               "--sparse and --top exclude each other");
  expect_error(
      {"run", model_, rows_, "--output", "contributions", "--sparse", "--output-header", "-o", sparse}, 2,
      "--output-header: a sparse matrix has no room for texts");
  expect_error({"run", model_, rows_, "--output", "raw", "--features", "1"}, 2,
               "--features: is for contributions and interactions");
  expect_error({"run", model_, rows_, "--output", "contributions", "--features", "1,x"}, 1,
               "model.json: --features: has no feature 'x'");
  expect_error({"run", model_, rows_, "--output", "contributions", "--features", "30"}, 1,
               "has no feature '30'");
  expect_error({"run", model_, rows_, "--output", "contributions", "--features", "mean radius,0"}, 2,
               "feature 0 comes twice");
  expect_error({"run", model_, rows_, "--output", "contributions", "--features", "0,1", "--top", "3"}, 1,
               "--top 3: a row has 2 features to choose from");
  expect_error({"run", model_, rows_, "--output", "interactions", "--features", "0,1", "--top", "4"}, 1,
               "--top 4: a row has 3 pairs of features to choose from");
}

TEST_F(Contributions, UncertaintyHasItsNames) {
  const std::string folder = "uncertainty/";
  const std::string model = test_data(folder + "classes.json"), rows = test_data(folder + "rows.npy");
  const std::string out = file("out.npy");
  content({"run", model, rows, "--output", "virt-ensembles", "--ensembles", "4", "-o", out, "--batch", "7"});
  EXPECT_EQ(content_of(out), content_of(test_data(folder + "classes.members.npy")));
  const std::string program = file("model.fvm");
  content({"compile", model, "-o", program, "--with", "uncertainty"});
  content({"run", program, rows, "--output", "virt-ensembles", "--ensembles", "3", "--rounds", "0:17", "-o",
           out});
  EXPECT_EQ(content_of(out), content_of(test_data(folder + "classes.members_17.npy")));
  const auto header = [&](const std::string& name, const std::string& output) {
    return lines(content({"run", test_data(folder + name), rows, "--output", output, "--ensembles", "2",
                          "--output-header"}))
        .front();
  };
  EXPECT_EQ(header("plain.json", "uncertainty"), "mean,variance");
  EXPECT_EQ(header("gaussian.json", "uncertainty"), "mean,variance,data_variance");
  EXPECT_EQ(header("binary.json", "uncertainty"), "data_entropy,total_entropy");
  EXPECT_EQ(header("binary.json", "virt-ensembles"), "ensemble_0,ensemble_1");
  EXPECT_EQ(header("gaussian.json", "virt-ensembles"), "ensemble_0_0,ensemble_0_1,ensemble_1_0,ensemble_1_1");
  EXPECT_NE(content({"inspect", program}).find("of virtual ensembles"), std::string::npos);
  EXPECT_NE(content({"dump", program}).find("; uncertainty by rule 4"), std::string::npos);
  expect_error({"run", model, rows, "--output", "virt-ensembles", "--ensembles", "12"}, 2,
               "virtual ensembles: 12 of them: expected 1 to 11, half of the 23 rounds");
  expect_error({"run", model, rows, "--output", "raw", "--ensembles", "2"}, 2,
               "--ensembles: is for --output");
  expect_error({"run", model_, rows_, "--output", "uncertainty"}, 1,
               "this one is of xgboost (binary:logistic)");
  EXPECT_EQ(forestvm({"export", program, "-o", file("forest.c")}).code, 0);  // without the uncertainty
}

TEST_F(Contributions, SurviveTheAssembler) {
  const std::string program = file("model.fvm"), again = file("again.fvm"), text = file("text.txt");
  content({"compile", model_, "-o", program, "--with", "interactions"});
  write("text.txt", content({"dump", program}));
  content({"assemble", text, "--data", program, "-o", again});
  EXPECT_EQ(content_of(again), content_of(program));
  content({"export", program, "-o", file("forest.c")});
  for (const char* function : {"void forest_predict_contributions(", "void forest_predict_interactions("})
    EXPECT_NE(content_of(file("forest.c")).find(function), std::string::npos) << function;
}

TEST_F(Contributions, AreRefusedByName) {
  const std::string out = file("out.fvm");
  expect_error(
      {"compile", model_, "-o", out, "--with", "contribution"}, 2,
      "--with 'contribution': expected one of early-stop, trees, staged, rounds, virt-ensembles, uncertainty, "
      "contributions, interactions, approx-contributions, quantile");
  expect_error({"compile", test_data("onnx/classes_none/model.onnx"), "-o", out, "--with", "contributions"},
               1, "model.onnx: tree 0, node 0: the model does not say how many training rows went each way");
  const std::string linear = test_data("lightgbm/4.7.0_linear/model.txt");
  expect_error({"compile", linear, "-o", out, "--with", "contributions"}, 1, "linear functions of the row");
}

}  // namespace
}  // namespace forestvm::cli::test_program_contributions
