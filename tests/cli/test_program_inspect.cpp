// forestvm inspect --backend cuda: its estimates as golden files, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "spawn.hpp"
#include "support/golden.hpp"

namespace forestvm::cli::test_program_inspect {
namespace {

class Inspect : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json");

  Outcome accounted(const std::vector<std::string>& options) const {
    std::vector<std::string> words = {"inspect", model_, "--backend", "cuda"};
    words.insert(words.end(), options.begin(), options.end());
    return forestvm(words);
  }

  /// Compares the part about the GPU, which follows a heading, with a golden file.
  void expect_golden_of(const std::string& name, const std::vector<std::string>& options) const {
    const Outcome outcome = accounted(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::size_t begin = outcome.out.find("\ndevice ");
    ASSERT_NE(begin, std::string::npos) << outcome.out;
    std::string text = "# inspect tests/data/diabetes/model.json --backend cuda";
    for (const std::string& option : options) text += " " + option;
    support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/tests/golden/accounts/" + name + ".txt",
                           text + outcome.out.substr(begin));
  }
};

TEST_F(Inspect, AccountsAreAsReviewed) {
  expect_golden_of("gpu", {});
  expect_golden_of("gpu-reproducible", {"--contract", "reproducible", "--rows", "64"});
  expect_golden_of("rapids-fil", {"--schedule", "rapids-fil", "--rows", "1000", "--device-model", "a100"});
  expect_golden_of("tahoe-shared-forest", {"--schedule", "tahoe-shared-forest"});
  expect_golden_of("tahoe-shared-partial-forest",
                   {"--schedule", "tahoe-shared-partial-forest", "--device-model", "t4"});
}

TEST_F(Inspect, SaysWhatLinkingRefuses) {
  const Outcome outcome =
      accounted({"--json", "--device-model", "l4", "--schedule",
                 write("large.schedule", "tile(batch, b0, b1, 4096); cache(b0); gpuDimension(b0, grid.x)")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      nlohmann::json::parse(outcome.out)["refused"],
      "schedule: the cached rows take 163840 bytes of shared memory beside the 0 that are taken; a block "
      "has 101376");
}

TEST_F(Inspect, SaysWhichPlanADeviceOfLessMemoryTakes) {
  const std::string plans =
      "plan(500); tile(batch, b0, b1, 64); cache(b0); gpuDimension(b0, grid.x)\n"
      "plan(BATCH); tile(batch, b0, b1, 4096); cache(b0); gpuDimension(b0, grid.x)\n";
  const auto plan_on = [&](const std::string& device) {
    const Outcome outcome = accounted({"--json", "--rows", "10000", "--device-model", device, "--schedule",
                                       write("plans.schedule", plans)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["plan_rows"].get<unsigned>();
  };
  EXPECT_EQ(plan_on("h200"), 10'000u);
  EXPECT_EQ(plan_on("l4"), 500u);
}

TEST_F(Inspect, SaysHowManyStepsARowTakes) {
  const Outcome outcome =
      forestvm({"inspect", model_, "--json", "--schedule", write("array.schedule", "layout(tree, array)")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json document = nlohmann::json::parse(outcome.out);
  const std::size_t nodes =
      document["trees"].get<std::size_t>() * (document["depth"]["max"].get<std::size_t>() + 1);
  EXPECT_GE(document["steps_per_row_at_most"], nodes / 2);
  EXPECT_LE(document["steps_per_row_at_most"], 2 * nodes);
}

TEST_F(Inspect, AccountsOfAmdsGpus) {
  const Outcome outcome = forestvm({"inspect", model_, "--backend", "hip", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json account = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(account["device"], "AMD MI250X, one of its two GCDs (gfx90a), on paper");
  EXPECT_EQ(account["phases"][0]["warps_per_SM_at_most"], 32);
}

TEST_F(Inspect, RefusesWrongQuestions) {
  EXPECT_EQ(
      forestvm({"inspect", model_, "--rows", "5"}).err,
      "forestvm: inspect: --rows is for GPUs: say --backend cuda or hip too (see forestvm inspect --help)\n");
  EXPECT_EQ(accounted({"--device-model", "mi250x"}).err,
            "forestvm: inspect: --device-model mi250x: expected one of h100, h200, a100, l4, rtx4090, t4 "
            "(see forestvm inspect --help)\n");
  EXPECT_EQ(accounted({"--rows", "0"}).code, 2);
  const Outcome host = accounted({"--schedule", "xgboost"});
  EXPECT_EQ(host.code, 1);
  EXPECT_EQ(host.err,
            "forestvm: " + model_ + ": none of the program's loops is mapped to a GPU (gpuDimension)\n");
}

}  // namespace
}  // namespace forestvm::cli::test_program_inspect
