// The other subcommands through the real program: help, version, compile, dump, assemble, verify, inspect.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_commands {
namespace {

class Commands : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json");

  std::string compiled() const {
    EXPECT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
    return file("m.fvm");
  }
  nlohmann::json inspected(const std::string& path) const {
    const Outcome outcome = forestvm({"inspect", path, "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(Commands, HelpIsOnStandardOutputWhenAskedFor) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"-h"},
                                                {"run", "--help"},
                                                {"run", "-h"},
                                                {"run", "x", "--help"},
                                                {"compile", "--help"},
                                                {"encode", "--help"},
                                                {"dump", "--help"},
                                                {"assemble", "--help"},
                                                {"export", "--help"},
                                                {"diff", "--help"},
                                                {"verify", "--help"},
                                                {"inspect", "--help"},
                                                {"bench", "--help"}}) {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("Example:\n  forestvm "), std::string::npos) << words.front();
    EXPECT_NE(outcome.out.find("Exit codes: 0 done"), std::string::npos) << words.front();
  }
  EXPECT_EQ(forestvm({"--help"}, {.out_path = "/dev/full"}).code, 3);
}

TEST_F(Commands, NothingSaidIsAUsageErrorWithHelp) {
  const Outcome outcome = forestvm({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, forestvm({"--help"}).out);
}

TEST_F(Commands, VersionIsOneLine) {
  const Outcome outcome = forestvm({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("forestvm ")) << outcome.out;
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
}

TEST_F(Commands, UnknownWordsAreUsageErrorsThatPointToHelp) {
  EXPECT_EQ(forestvm({"fly"}).err, "forestvm: unknown command 'fly' (see forestvm --help)\n");
  EXPECT_EQ(forestvm({"--fly"}).err, "forestvm: unknown option '--fly' (see forestvm --help)\n");
  EXPECT_EQ(forestvm({"dump", "--fly"}).err,
            "forestvm: dump: unknown option '--fly' (see forestvm dump --help)\n");
  EXPECT_EQ(forestvm({"fly"}).code, 2);
  EXPECT_EQ(forestvm({"dump", "--fly"}).code, 2);
  for (const char* command : {"run", "compile", "dump", "assemble", "verify", "inspect", "bench"})
    EXPECT_EQ(forestvm({command}).code, 2) << command;
}

TEST_F(Commands, CompileWritesAProgramThatVerifies) {
  const std::string program = compiled();
  const Outcome outcome = forestvm({"verify", program});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("m.fvm: verified: "), std::string::npos);
  forestvm({"compile", model_, "-o", "-"}, {.out_path = file("other.fvm")});
  EXPECT_EQ(content_of(file("other.fvm")), content_of(program));
}

/// A program for some numbers of rows per call is smaller, and predicts calls of any size.
TEST_F(Commands, CompilesForSomeNumbersOfRows) {
  const std::string all = compiled(), rows = test_data("diabetes/rows.npy");
  const std::string expected = forestvm({"run", all, rows, "--output", "raw"}).out;
  for (const char* batch : {"1", "4096", "4096,1,1"}) {
    const std::string some = file("some.fvm");
    ASSERT_EQ(forestvm({"compile", model_, "-o", some, "--for-rows", batch}).code, 0);
    EXPECT_LE(content_of(some).size(), content_of(all).size()) << batch;
    for (const char* size : {"1", "133"})
      EXPECT_EQ(forestvm({"run", some, rows, "--output", "raw", "--batch", size}).out, expected);
  }
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("two.fvm"), "--for-threads", "2"}).code, 0);
  EXPECT_EQ(forestvm({"run", file("two.fvm"), rows, "--output", "raw"}).out, expected);
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("one.fvm"), "--for-rows", "4096"}).code, 0);
  EXPECT_EQ(inspected(file("one.fvm"))["plans"].size(), 1U);
  EXPECT_LT(content_of(file("one.fvm")).size(), content_of(all).size());
}

TEST_F(Commands, CompileRefuses) {
  EXPECT_EQ(forestvm({"compile", model_}).err,
            "forestvm: compile: -o OUT.fvm is missing (see forestvm compile --help)\n");
  EXPECT_EQ(forestvm({"compile", compiled(), "-o", file("n.fvm")}).code, 2);
  EXPECT_EQ(forestvm({"compile", file("absent"), "-o", file("n.fvm")}).code, 3);
  EXPECT_EQ(
      forestvm({"compile", model_, "-o", file("n.fvm"), "--for-rows", "0"}).err,
      "forestvm: compile: --for-rows '0': expected whole numbers from 1 to 16777216, separated by commas (see forestvm "
      "compile --help)\n");
  EXPECT_EQ(forestvm({"compile", model_, "-o", file("n.fvm"), "--for-rows", "1", "--schedule", "rows"}).err,
            "forestvm: compile: --for-rows: is for the schedule auto (see forestvm compile --help)\n");
  EXPECT_EQ(
      forestvm({"compile", model_, "-o", file("n.fvm"), "--for-threads", "2", "--schedule", "rows"}).err,
      "forestvm: compile: --for-threads: is for the schedule auto (see forestvm compile --help)\n");
  EXPECT_EQ(forestvm({"compile", model_, "-o", file("n.fvm"), "--for-threads", "0"}).code, 2);
  EXPECT_EQ(forestvm({"compile", model_, "-o", "/dev/full"}).code, 3);
  const std::string copy = write("copy.json", content_of(model_));
  EXPECT_EQ(forestvm({"compile", copy, "-o", copy}).code, 2);
  EXPECT_EQ(content_of(copy), content_of(model_));
}

TEST_F(Commands, RoundsArePartsOfTheModel) {
  const std::string rows = test_data("diabetes/rows.csv");
  const auto ran = [&](const std::string& rounds) {
    const Outcome outcome = forestvm({"run", model_, rows, "--rounds", rounds, "--output", "leaf"});
    EXPECT_EQ(outcome.err, "") << rounds;
    return outcome.out;
  };
  const std::string all = ran(":");
  const auto cut = [&](std::size_t begin, std::size_t end) {  // returns these columns of `all`
    std::string text;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t line_end = all.find('\n', at);
      std::vector<std::string> cells{""};
      for (const char c : all.substr(at, line_end - at)) {
        if (c == ',')
          cells.emplace_back();
        else
          cells.back().push_back(c);
      }
      for (std::size_t i = begin; i < std::min(end, cells.size()); ++i)
        text += (i == begin ? "" : ",") + cells[i];
      text += '\n';
      at = line_end + 1;
    }
    return text;
  };
  EXPECT_EQ(ran("0:3"), cut(0, 3));
  EXPECT_EQ(ran(":3"), cut(0, 3));
  EXPECT_EQ(ran("2:5"), cut(2, 5));
  EXPECT_EQ(ran("4:"), cut(4, SIZE_MAX));
  EXPECT_EQ(forestvm({"compile", model_, "--rounds", "2:5", "-o", file("part.fvm")}).code, 0);
  EXPECT_EQ(forestvm({"run", file("part.fvm"), rows, "--output", "leaf"}).out, cut(2, 5));
}

TEST_F(Commands, RoundsThatMakeNoSenseAreRefused) {
  const std::string rows = test_data("diabetes/rows.csv");
  const auto refused = [&](const std::string& model, const std::string& rounds) {
    const Outcome outcome = forestvm({"run", model, rows, "--rounds", rounds});
    EXPECT_NE(outcome.code, 0);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  for (const char* const text : {"", "3", "a:b", "-1:2", "1:2:3", "1:99999999999", "1.5:2", "Best"})
    EXPECT_NE(refused(model_, text).find("expected A:B"), std::string::npos) << text;
  for (const char* const text : {"3:3", "5:2", "0:100000"})
    EXPECT_NE(refused(model_, text).find("expected A:B with A < B, and B at most "), std::string::npos)
        << text;
  EXPECT_NE(refused(model_, "best").find("no best round"), std::string::npos);
  EXPECT_NE(refused(compiled(), "0:1").find("compile the model with --with rounds"), std::string::npos);
}

TEST_F(Commands, VerifyRefusesDamage) {
  std::string bytes = content_of(compiled());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const Outcome flipped = forestvm({"verify", write("bad.fvm", bytes)});
  EXPECT_EQ(flipped.code, 1);
  EXPECT_TRUE(flipped.err.starts_with("forestvm: " + file("bad.fvm") + ": ")) << flipped.err;
  EXPECT_EQ(forestvm({"verify", write("cut.fvm", bytes.substr(0, 100))}).code, 1);
  EXPECT_EQ(forestvm({"verify", model_}).code, 1);
  EXPECT_EQ(forestvm({"verify", file("absent")}).code, 3);
  EXPECT_EQ(forestvm({"run", file("bad.fvm"), test_data("diabetes/rows.csv")}).code, 1);
}

TEST_F(Commands, DumpShowsEveryStage) {
  for (const char* stage : {"model", "tiled", "loops", "legalized", "program"}) {
    const Outcome outcome = forestvm({"dump", model_, "--stage", stage});
    EXPECT_EQ(outcome.code, 0) << stage << outcome.err;
    EXPECT_FALSE(outcome.out.empty()) << stage;
  }
  const std::string program = forestvm({"dump", model_}).out;
  EXPECT_EQ(forestvm({"dump", model_, "--stage", "program"}).out, program);
  EXPECT_EQ(forestvm({"dump", compiled()}).out, program);
  EXPECT_EQ(forestvm({"dump", file("m.fvm"), "--stage", "program"}).out, program);
  EXPECT_EQ(forestvm({"dump", file("m.fvm"), "--stage", "loops"}).code, 2);
  EXPECT_EQ(forestvm({"dump", file("m.fvm"), "--schedule", "auto"}).code, 2);
  EXPECT_EQ(forestvm({"dump", model_, "--stage", "nothing"}).code, 2);
}

TEST_F(Commands, DumpShowsTheInstructionSet) {
  const Outcome outcome = forestvm({"dump", "--isa"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("walk"), std::string::npos);
  EXPECT_EQ(forestvm({"dump", "--isa", model_}).code, 2);
}

TEST_F(Commands, AssembleReadsWhatDumpPrints) {
  const std::string program = compiled();
  const std::string text = forestvm({"dump", program}).out;
  const Outcome outcome =
      forestvm({"assemble", write("m.txt", text), "--data", program, "-o", file("again.fvm")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(content_of(file("again.fvm")), content_of(program));
  forestvm({"assemble", "-", "--data", program, "-o", "-"}, {.in = text, .out_path = file("piped.fvm")});
  EXPECT_EQ(content_of(file("piped.fvm")), content_of(program));
}

TEST_F(Commands, AssembleRefuses) {
  const std::string program = compiled(), text = write("m.txt", forestvm({"dump", program}).out);
  const auto assemble = [&](const std::string& from, const std::string& data, const std::string& out) {
    return forestvm({"assemble", from, "--data", data, "-o", out});
  };
  EXPECT_EQ(forestvm({"assemble", text, "-o", file("n.fvm")}).err,
            "forestvm: assemble: --data FROM.fvm is missing (see forestvm assemble --help)\n");
  EXPECT_EQ(forestvm({"assemble", text, "--data", program}).err,
            "forestvm: assemble: -o OUT.fvm is missing (see forestvm assemble --help)\n");
  EXPECT_EQ(assemble("-", "-", file("n.fvm")).code, 2);
  EXPECT_EQ(assemble(text, model_, file("n.fvm")).code, 2);
  EXPECT_EQ(assemble(text, program, program).code, 2);
  EXPECT_EQ(assemble(text, program, text).code, 2);
  EXPECT_EQ(assemble(file("absent"), program, file("n.fvm")).code, 3);
  EXPECT_EQ(assemble(text, file("absent"), file("n.fvm")).code, 3);
  const Outcome wrong = assemble(write("wrong.txt", "; one\nfly r0\n"), program, file("n.fvm"));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(wrong.err.starts_with("forestvm: " + file("wrong.txt") + ": line 2, column 1: found 'fly'"))
      << wrong.err;
  const Outcome refused = assemble(write("open.txt", "init a0, r0\n"), program, file("n.fvm"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.starts_with("forestvm: " + file("open.txt") + ": ")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(file("n.fvm")));
}

TEST_F(Commands, InspectDescribesModelsAndPrograms) {
  const nlohmann::json model = inspected(model_);
  EXPECT_EQ(model["kind"], "model");
  EXPECT_EQ(model["objective"], "reg:squarederror");
  EXPECT_EQ(model["features"], 10);
  EXPECT_EQ(model["thresholds_per_feature"].size(), model["features_used"]);
  EXPECT_EQ(model["contract"], "trainer");
  const nlohmann::json program = inspected(compiled());
  EXPECT_EQ(program["kind"], "program");
  for (const char* key : {"format",
                          "trainer",
                          "objective",
                          "features",
                          "feature_names",
                          "outputs",
                          "classes",
                          "transform",
                          "class_rule",
                          "base",
                          "trees",
                          "nodes",
                          "leaves",
                          "depth",
                          "features_used",
                          "thresholds",
                          "thresholds_per_feature",
                          "contract",
                          "program_bytes",
                          "layouts"})
    EXPECT_EQ(program[key], model[key]) << key;
  EXPECT_EQ(forestvm({"inspect", file("absent")}).code, 3);
  EXPECT_EQ(forestvm({"inspect", write("not.json", "[]")}).code, 1);
}

TEST_F(Commands, InspectPrintsText) {
  for (const std::string& path : {model_, compiled()}) {
    const Outcome outcome = forestvm({"inspect", path});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* part : {"objective               reg:squarederror\n", "trees ", "depth ", "leaves ",
                             "classes ", "thresholds per feature ", "contract ", "program bytes "})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  }
}

TEST_F(Commands, InspectCountsCategoricalSplits) {
  const std::string file_name = test_data("xgboost_versions/3.2.0_categories/model.json");
  const nlohmann::json model = inspected(file_name);
  EXPECT_EQ(model["categorical_splits"], 27);
  const nlohmann::json& sets = model["category_sets_per_feature"];  // pairs of a feature and its count
  EXPECT_TRUE(
      std::any_of(sets.begin(), sets.end(), [](const auto& set) { return set[0] == 3 && set[1] > 4; }));
  EXPECT_TRUE(std::none_of(sets.begin(), sets.end(), [](const auto& set) { return set[0] == 1; }));
  const std::string program_file = file("categories.fvm");
  ASSERT_EQ(forestvm({"compile", file_name, "-o", program_file}).code, 0);
  const nlohmann::json program = inspected(program_file);
  for (const char* key : {"categorical_splits", "features_used"}) EXPECT_EQ(program[key], model[key]) << key;
  EXPECT_FALSE(inspected(model_).contains("categorical_splits"));
}

TEST_F(Commands, InspectCountsObliviousTrees) {
  const std::string model =
      write("stump.txt",
            "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n"
            "feature_names=a\nfeature_infos=[0:1]\n\n"
            "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.5\n"
            "decision_type=10\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n\n"
            "Tree=1\nnum_leaves=1\nnum_cat=0\nsplit_feature=\nthreshold=\n"
            "decision_type=\nleft_child=\nright_child=\nleaf_value=1\n\n"
            "end of trees\n");
  const Outcome outcome = forestvm({"inspect", model});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("tables 0:2 (1 oblivious)"), std::string::npos) << outcome.out;
}

TEST_F(Commands, DiffAgreesWithEveryJudge) {
  const std::string rows = test_data("diabetes/rows.npy");
  EXPECT_EQ(forestvm({"diff", model_, rows}).code, 0);
  EXPECT_EQ(forestvm({"diff", model_, rows, "--expected", test_data("diabetes/expected_raw.npy")}).code, 0);
  const Outcome program =
      forestvm({"diff", model_, rows, "--schedule", "trees-outer", "--against", compiled()});
  EXPECT_EQ(program.code, 0) << program.err;
  EXPECT_NE(program.out.find("every walk comes to the same leaf"), std::string::npos) << program.out;
  EXPECT_NE(program.out.find("equal bits"), std::string::npos) << program.out;
  // Texts of categories are codes in the rows that are read.
  const Outcome texts = forestvm({"diff", test_data("catboost/1.2.10_counters/model.cbm"),
                                  test_data("catboost/1.2.10_counters/rows.csv")});
  EXPECT_EQ(texts.code, 0) << texts.err << texts.out;
}

/// Rows of float32, of float64, with categories and with texts become what the exported code takes.
TEST_F(Commands, DiffComparesWithNativeCode) {
  if (std::system("cc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler cc";
  for (const auto& [model, rows] :
       {std::pair{"diabetes/model.json", "diabetes/rows.npy"},
        std::pair{"lightgbm/4.7.0_classes/model.txt", "lightgbm/4.7.0_classes/rows.npy"},
        std::pair{"lightgbm/4.7.0_categories/model.txt", "lightgbm/4.7.0_categories/rows.npy"},
        std::pair{"catboost/1.2.10_counters/model.cbm", "catboost/1.2.10_counters/rows.csv"}}) {
    const Outcome native = forestvm({"diff", test_data(model), test_data(rows), "--against", "native"});
    EXPECT_EQ(native.code, 0) << model << ": " << native.err << native.out;
    EXPECT_NE(native.out.find("every walk comes to the same leaf"), std::string::npos) << native.out;
  }
}

TEST_F(Commands, DiffSaysWhatDiffers) {
  const std::string other = file("other.fvm");
  ASSERT_EQ(forestvm({"compile", test_data("breast_cancer/model.json"), "-o", other}).code, 0);
  const std::string rows = test_data("diabetes/rows.npy");
  const Outcome shapes = forestvm({"diff", model_, rows, "--against", other});
  EXPECT_EQ(shapes.code, 1);
  EXPECT_NE(shapes.err.find("is a program of 30 features"), std::string::npos) << shapes.err;
  // The scores have the same shape; their sums are added in another order.
  const Outcome sums =
      forestvm({"diff", test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--contract",
                "reproducible", "--expected", test_data("digits/expected_raw.npy")});
  EXPECT_EQ(sums.code, 1);
  EXPECT_NE(sums.err.find("raw scores differ"), std::string::npos) << sums.err;
  EXPECT_NE(sums.out.find("row 0, output"), std::string::npos) << sums.out;
}

TEST_F(Commands, DiffNamesTheNodeWhereWalksPart) {
  std::ifstream in(model_, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string key = "\"split_conditions\":[";
  const std::size_t at = text.find(key);
  ASSERT_NE(at, std::string::npos);
  const std::size_t begin = at + key.size(), end = text.find(',', begin);
  text.replace(begin, end - begin, "-1E30");  // the first tree's root: now no row goes left
  const std::string other = file("other.fvm");
  ASSERT_EQ(forestvm({"compile", write("other.json", text), "-o", other}).code, 0);
  const Outcome outcome = forestvm({"diff", model_, test_data("diabetes/rows.npy"), "--against", other});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("tree 0: leaf"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("at node 0: f"), std::string::npos) << outcome.out;
}

TEST_F(Commands, DiffRefusesWhatMakesNoSense) {
  const std::string rows = test_data("diabetes/rows.npy");
  EXPECT_EQ(forestvm({"diff", model_, rows, "--against", "oracle"}).code, 2);
  EXPECT_EQ(forestvm({"diff", model_, rows, "--against", model_}).code, 2);
  EXPECT_EQ(forestvm({"diff", model_, rows, "--against", "native", "--expected", "x.npy"}).code, 2);
  EXPECT_EQ(forestvm({"diff", compiled(), rows}).code, 2);  // the reference needs a model
  const Outcome size = forestvm({"diff", model_, rows, "--expected", rows});
  EXPECT_EQ(size.code, 1);
  EXPECT_NE(size.err.find("diabetes/rows.npy: has 1330 raw scores, expected 133"), std::string::npos)
      << size.err;
}

TEST_F(Commands, ExportWritesC) {
  const Outcome out = forestvm({"export", model_, "--name", "sugar", "--report"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_NE(out.out.find("void sugar_predict_raw(const float *rows"), std::string::npos);
  EXPECT_NE(out.err.find(", stack "), std::string::npos) << out.err;
  EXPECT_EQ(forestvm({"export", compiled(), "-o", file("m.c")}).code, 0);
  EXPECT_EQ(forestvm({"export", model_, "--name", "a-b"}).code, 2);
  EXPECT_EQ(forestvm({"export", model_, "--language", "rust"}).code, 2);
  EXPECT_EQ(forestvm({"export", model_, "--schedule", "tahoe-direct"}).code, 1);
}

TEST_F(Commands, TheHostSaysWhyItDoesNotRunAMappedProgram) {
  const std::string mapped = file("mapped.fvm");
  ASSERT_EQ(forestvm({"compile", model_, "--schedule", "tahoe-direct", "-o", mapped}).code, 0);
  EXPECT_EQ(forestvm({"verify", mapped}).code, 0);
  EXPECT_NE(forestvm({"dump", mapped}).out.find("map r2, r0, grid.x"), std::string::npos);
  EXPECT_EQ(inspected(mapped)["runs_on"], "GPU backends (its loops are mapped)");
  const Outcome run = forestvm({"run", mapped, test_data("diabetes/rows.npy")});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("mapped to a GPU's grid and blocks"), std::string::npos) << run.err;
}

TEST_F(Commands, InspectSaysHowSumsAreMade) {
  const Outcome outcome = forestvm({"inspect", model_, "--contract", "reproducible", "--schedule", "trees"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("reproducible sums"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("private bytes per row"), std::string::npos) << outcome.out;
  EXPECT_EQ(forestvm({"inspect", compiled(), "--schedule", "trees"}).code, 2);
  EXPECT_EQ(forestvm({"inspect", model_, "--schedule", "no-such"}).code, 1);
}

TEST_F(Commands, LeafNumbersAreIntegers) {
  const Outcome out = forestvm({"run", model_, test_data("diabetes/rows.npy"), "--output", "leaf"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(out.out.find('.'), std::string::npos);
}

}  // namespace
}  // namespace forestvm::cli::test_program_commands
