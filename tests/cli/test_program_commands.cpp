// The other subcommands through the real program: help, version, compile, dump, verify, inspect.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli {
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
                                                {"dump", "--help"},
                                                {"verify", "--help"},
                                                {"inspect", "--help"}}) {
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
  for (const char* command : {"run", "compile", "dump", "verify", "inspect"})
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

TEST_F(Commands, CompileRefuses) {
  EXPECT_EQ(forestvm({"compile", model_}).err,
            "forestvm: compile: -o OUT.fvm is missing (see forestvm compile --help)\n");
  EXPECT_EQ(forestvm({"compile", compiled(), "-o", file("n.fvm")}).code, 2);
  EXPECT_EQ(forestvm({"compile", file("absent"), "-o", file("n.fvm")}).code, 3);
  EXPECT_EQ(forestvm({"compile", model_, "-o", "/dev/full"}).code, 3);
  const std::string copy = write("copy.json", content_of(model_));
  EXPECT_EQ(forestvm({"compile", copy, "-o", copy}).code, 2);
  EXPECT_EQ(content_of(copy), content_of(model_));
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

TEST_F(Commands, InspectDescribesModelsAndPrograms) {
  const nlohmann::json model = inspected(model_);
  EXPECT_EQ(model["kind"], "model");
  EXPECT_EQ(model["objective"], "reg:squarederror");
  EXPECT_EQ(model["features"], 10);
  EXPECT_EQ(model["thresholds_per_feature"].size(), 10U);
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

}  // namespace
}  // namespace forestvm::cli
