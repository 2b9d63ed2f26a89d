// forestvm tune through the real program: the list of a space, what a search writes, and what is refused. Times are not
// tested.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_tune {
namespace {

class Tune : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json"), rows_ = test_data("diabetes/rows.npy");

  void expect_refused(const std::vector<std::string>& words, int code, const std::string& part) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
};

/// The strategy `predict` measures a few schedules for each number of rows, and refuses models whose costs cannot be
/// predicted.
TEST_F(Tune, MeasuresWhatIsPredictedToBeFastest) {
  const Outcome tuned = forestvm({"tune", model_, rows_, "-o", file("p.fvm"), "--batch", "1,64", "--budget",
                                  "2s", "--strategy", "predict", "--report", file("p.json")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const auto report = nlohmann::json::parse(content_of(file("p.json")));
  EXPECT_EQ(report["strategy"], "predict");
  EXPECT_GE(report["trials"].size(), 3U);
  EXPECT_LE(report["trials"].size(), 12U);  // three for each number of rows and each target
  EXPECT_EQ(forestvm({"run", file("p.fvm"), rows_}).out, forestvm({"run", model_, rows_}).out);
  expect_refused(
      {"tune", test_data("catboost/1.2.10_nan_max/model.cbm"), "-o", file("x.fvm"), "--strategy", "predict"},
      1,
      "--strategy predict: the costs of this model's schedules cannot be predicted: the trees are oblivious");
}

TEST_F(Tune, ListsTheSpacesWithReasons) {
  const Outcome gpu =
      forestvm({"tune", model_, "--rounds", ":20", "--list-space", "gpu", "--contract", "fast"});
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  for (const char* part : {"# space gpu: 5184 points\n", "# tree-threads: 2 10 20 50; ",
                           "\n0\tlegal\trows-per-block=8 rows-per-thread=1 tree-threads=2 cache-rows=yes ",
                           "\ttile(batch, b0, b, 8); tile(", "\n5183\t",
                           "makes blocks of 1280 threads, at most 1024: tile it smaller\n"})
    EXPECT_NE(gpu.out.find(part), std::string::npos) << part;
  const Outcome host = forestvm({"tune", model_, "--rounds", ":20", "--list-space", "host"});
  EXPECT_EQ(host.code, 0) << host.err;
  for (const char* part :
       {"# space host: 24576 points\n",
        "\n0\tlegal\tparallel=none block=16 lanes=rows interleave=1 layout=array ",
        "\trefused\tparallel=trees ",
        "parallel(t0): trees in parallel are summed in another order than the trainer's", "\tsame\t",
        "has the schedule of point ", " with the schedule of an earlier point\n"})
    EXPECT_NE(host.out.find(part), std::string::npos) << part;
}

TEST_F(Tune, WritesAProgramWithAPlanForEachBatch) {
  const Outcome tuned = forestvm({"tune", model_, rows_, "-o", file("t.fvm"), "--batch", "64,1", "--budget",
                                  "2s", "--report", file("t.json")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(tuned.out, "");
  for (const char* part :
       {"schedules ", " refused, of ", "auto us/row", "\n       1 ", "\n      64 ", "wrote "})
    EXPECT_NE(tuned.err.find(part), std::string::npos) << part << tuned.err;
  EXPECT_EQ(forestvm({"verify", file("t.fvm")}).code, 0);
  EXPECT_EQ(forestvm({"run", file("t.fvm"), rows_}).out, forestvm({"run", model_, rows_}).out);

  const auto report = nlohmann::json::parse(content_of(file("t.json")));
  ASSERT_EQ(report["batches"].size(), 2U);
  EXPECT_EQ(report["strategy"], "heuristic");
  EXPECT_NE(report["conditions"]["machine"].get<std::string>().find("target "), std::string::npos);
  EXPECT_EQ(report["batches"][0]["batch"], 1);
  EXPECT_EQ(report["batches"][1]["batch"], 64);
  for (const auto& batch : report["batches"]) {
    EXPECT_GT(batch["auto_us_per_row"].get<double>(), 0);
    ASSERT_GE(batch["finalists"].size(), 2U);
    int automatic = 0;
    for (const auto& finalist : batch["finalists"]) {
      automatic += finalist["name"] == "auto" ? 1 : 0;
      EXPECT_GT(finalist["us_per_row"].get<double>(), 0);
      const std::string schedule = write("f.schedule", finalist["schedule"].get<std::string>());
      EXPECT_EQ(forestvm({"compile", model_, "-o", file("f.fvm"), "--schedule", schedule}).code, 0);
    }
    EXPECT_EQ(automatic, 1);
  }

  const auto shown = nlohmann::json::parse(forestvm({"inspect", "--json", file("t.fvm")}).out);
  ASSERT_GE(shown["plans"].size(), 1U);
  EXPECT_NE(shown["plans"].dump().find("measured at 1 row: "), std::string::npos) << shown["plans"];
  const std::string text = forestvm({"inspect", file("t.fvm")}).out;
  EXPECT_NE(text.find("  because "), std::string::npos) << text;
  EXPECT_NE(text.find(", target "), std::string::npos) << text;
  EXPECT_NE(
      forestvm({"bench", file("t.fvm"), "--batch", "1", "--seconds", "0.001"}).out.find("\nplan      for "),
      std::string::npos);
}

/// Returns the points of a report's trials.
std::set<std::size_t> points_of(const nlohmann::json& report) {
  std::set<std::size_t> points;
  for (const auto& trial : report["trials"]) {
    EXPECT_TRUE(points.insert(trial["point"].get<std::size_t>()).second) << trial;
    EXPECT_EQ(trial["us_per_row"].size(), report["conditions"]["batch"].size());
    EXPECT_EQ(trial["of_auto"].size(), report["conditions"]["batch"].size());
  }
  return points;
}

TEST_F(Tune, GoesOnFromAReport) {
  const auto tune = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"tune", model_, rows_, "-o", file("t.fvm"), "--batch", "1,64"};
    words.insert(words.end(), more.begin(), more.end());
    return forestvm(words);
  };
  const Outcome first = tune({"--budget", "20s", "--report", file("1.json")});
  ASSERT_EQ(first.code, 0) << first.err;
  const auto before = nlohmann::json::parse(content_of(file("1.json")));
  const Outcome second = tune(
      {"--budget", "4s", "--strategy", "exhaustive", "--resume", file("1.json"), "--report", file("2.json")});
  ASSERT_EQ(second.code, 0) << second.err;
  const auto after = nlohmann::json::parse(content_of(file("2.json")));
  const std::set<std::size_t> old_points = points_of(before), all_points = points_of(after);
  EXPECT_GT(all_points.size(), old_points.size());
  EXPECT_EQ(before["complete"], true) << "all of the few dozen schedules were measured";
  ASSERT_EQ(tune({"--budget", "0.05s", "--strategy", "exhaustive", "--report", file("short.json")}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(content_of(file("short.json")))["complete"], false) << "of thousands";
  EXPECT_TRUE(std::includes(all_points.begin(), all_points.end(), old_points.begin(), old_points.end()));

  // Trials that are not among the best keep their times. A planted one that cannot be beaten is measured again.
  auto planted = before;
  for (auto& trial : planted["trials"]) {
    trial["us_per_row"] = {1e9, 1e9};
    trial["of_auto"] = {1e9, 1e9};
  }
  const auto best = planted["trials"][0]["point"];
  planted["trials"][0]["of_auto"] = {1e-9, 1e-9};
  const Outcome third =
      tune({"--budget", "4s", "--resume", write("3.json", planted.dump()), "--report", file("4.json")});
  ASSERT_EQ(third.code, 0) << third.err;
  const auto last = nlohmann::json::parse(content_of(file("4.json")));
  std::size_t kept = 0;
  for (const auto& trial : last["trials"]) {
    kept += trial["us_per_row"][0] == 1e9 ? 1U : 0U;
    if (trial["point"] == best) {
      EXPECT_GT(trial["of_auto"][0].get<double>(), 1e-6);
    }
  }
  EXPECT_EQ(kept + 8, planted["trials"].size()) << "the 8 best of each number of rows race";
}

TEST_F(Tune, RefusesReportsOfOtherSearches) {
  const auto resumed = [&](const std::string& from, const std::string& batch = "1") {
    return std::vector<std::string>{"tune", model_,     rows_, "-o",       file("x.fvm"), "--batch",
                                    batch,  "--budget", "1s",  "--resume", from};
  };
  ASSERT_EQ(forestvm({"tune", model_, rows_, "-o", file("t.fvm"), "--batch", "1", "--budget", "1s",
                      "--report", file("t.json")})
                .code,
            0);
  const auto good = nlohmann::json::parse(content_of(file("t.json")));
  expect_refused(resumed(file("absent.json")), 3, "absent.json");
  expect_refused(resumed(model_), 1,
                 "model.json: is not a report of forestvm tune: conditions or trials are missing");
  expect_refused(resumed(write("a", "{")), 1, "is not a report of forestvm tune: it is not JSON");
  expect_refused(resumed(file("t.json"), "1,2"), 1,
                 "its times hold for other searches: batch is '[1]', here '[1,2]'");
  expect_refused({"tune", test_data("breast_cancer/model.json"), "-o", file("x.fvm"), "--batch", "1",
                  "--resume", file("t.json")},
                 1, "its times hold for other searches: program is ");
  const auto with = [&](const std::function<void(nlohmann::json&)>& change) {
    auto page = good;
    change(page);
    return resumed(write("changed.json", page.dump()));
  };
  using Json = nlohmann::json;
  expect_refused(with([](Json& page) { page["conditions"].erase("threads"); }), 1,
                 "conditions.threads is missing");
  expect_refused(with([](Json& page) { page["conditions"]["machine"] = "PDP-11"; }), 1,
                 "machine is '\"PDP-11\"'");
  expect_refused(with([](Json& page) { page["trials"][1].erase("name"); }), 1, "trials[1] lacks point, name");
  expect_refused(with([](Json& page) { page["trials"][1]["name"] = "best"; }), 1,
                 "trials[1].name is not the name of point ");
  expect_refused(with([](Json& page) { page["trials"][1]["point"] = 24576; }), 1, "trials[1].point is 24576");
  expect_refused(with([](Json& page) { page["trials"][1] = page["trials"][0]; }), 1, "comes twice");
  for (const char* times : {"[-1.0]", "[\"1\"]", "[1.0, 2.0]", "1.0", "[null]"})
    expect_refused(with([&](Json& page) { page["trials"][0]["of_auto"] = Json::parse(times); }), 1,
                   "trials[0] lacks a time for each number of rows");
}

/// Expects that each tag of a page is closed in its order, and returns the values of an attribute.
std::vector<std::string> attributes_of_nested(const std::string& page, const std::string& attribute) {
  std::vector<std::string> open, values;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::string tag = page.substr(at + 1, page.find('>', at) - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n"));
    const std::size_t value = tag.find(' ' + attribute + "=\"");
    if (value != std::string::npos) {
      const std::size_t begin = value + attribute.size() + 3;
      values.push_back(tag.substr(begin, tag.find('"', begin) - begin));
    }
    if (name == "!DOCTYPE" || tag.ends_with('/')) continue;
    if (!name.starts_with('/')) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name.substr(1)) {
      ADD_FAILURE() << "byte " << at << ": <" << tag << "> closes <" << (open.empty() ? "" : open.back())
                    << '>';
      break;
    } else {
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
  return values;
}

TEST_F(Tune, WritesAPageThatNeedsNothingElse) {
  const std::string odd = write("a<b&\"c\".json", content_of(model_));
  const Outcome tuned = forestvm({"tune", odd, rows_, "-o", file("t.fvm"), "--batch", "1,64", "--budget",
                                  "2s", "--report", file("t.html")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const std::string page = content_of(file("t.html"));
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">\n"));
  for (const char* part : {"a&lt;b&amp;&quot;c&quot;.json</h1>", "<h2>Calls of 1 row</h2>",
                           "<h2>Calls of 64 rows</h2>", "Distribution of ", "<text class=\"strong\"",
                           ">auto ", "Times of schedules by the values of their parameters",
                           "<td>interleave</td>", "plan(", "for ", "@media (prefers-color-scheme: dark)"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const char* part : {"http:", "https:", "//", "<script", "src=", "url(", "@import", "nan", "inf"})
    EXPECT_EQ(page.find(part), std::string::npos) << part << ": " << page.substr(page.find(part), 80);
  const std::vector<std::string> ids = attributes_of_nested(page, "id");
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  for (const std::string& link : attributes_of_nested(page, "href")) {
    ASSERT_TRUE(link.starts_with('#')) << link;
    EXPECT_NE(std::find(ids.begin(), ids.end(), link.substr(1)), ids.end()) << link;
  }
}

TEST_F(Tune, ASignalEndsTheSearchAndKeepsTheBest) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto interrupt = [&](pid_t program) {
      while (content_of(file("stderr")).find("Ctrl-C ends the search") == std::string::npos)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::kill(program, signal);
    };
    const Outcome tuned =
        forestvm({"tune", model_, "-o", file("s.fvm"), "--strategy", "exhaustive", "--budget", "1h"},
                 {.meanwhile = interrupt});
    EXPECT_EQ(tuned.code, 0) << tuned.err;
    EXPECT_NE(tuned.err.find("stopped by a signal; keeping the best so far\n"), std::string::npos)
        << tuned.err;
    EXPECT_EQ(forestvm({"verify", file("s.fvm")}).code, 0);
    std::filesystem::remove(file("s.fvm"));
  }
}

/// Schedules of GPUs are compared by times that the accounting estimates: those of algorithm 1, with the schedule gpu.
TEST_F(Tune, EstimatesSchedulesOfGpus) {
  const std::string report = file("g.json");
  const std::vector<std::string> words = {"tune",     model_,    "-o",         file("g.fvm"), "--backend",
                                          "emulator", "--batch", "1,4096",     "--report",    report,
                                          "--budget", "600s",    "--contract", "fast"};
  const Outcome tuned = forestvm(words);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  for (const char* part : {"estimating schedules", " gpu us/row ", "runs on   NVIDIA H100", ", on paper\n"})
    EXPECT_NE(tuned.err.find(part), std::string::npos) << part << tuned.err;
  const auto found = nlohmann::json::parse(content_of(report));
  EXPECT_TRUE(found["complete"].get<bool>());
  // 36 points of algorithm 1 for each number of rows, of which the two have different ones, and the variants of six.
  EXPECT_GE(found["trials"].size(), 36U);
  EXPECT_LE(found["trials"].size(), 78U);
  for (const auto& trial : found["trials"])
    EXPECT_TRUE(trial["name"].get<std::string>().starts_with("rows-per-block=")) << trial;
  for (std::size_t b = 0; b < 2; ++b) {
    const auto& batch = found["batches"][b];
    const double best = batch["finalists"][0]["us_per_row"].get<double>();
    EXPECT_LE(best, batch["auto_us_per_row"].get<double>());
    for (const auto& trial : found["trials"])  // gpu stays where nothing is 2% faster
      EXPECT_LE(best, 1.02 * trial["us_per_row"][b].get<double>());
  }
  EXPECT_EQ(forestvm({"verify", file("g.fvm")}).code, 0);
  const std::string shown = forestvm({"inspect", file("g.fvm")}).out;
  EXPECT_NE(shown.find("estimated at 1 row: "), std::string::npos) << shown;
  EXPECT_NE(shown.find("GPU backends"), std::string::npos) << shown;
  EXPECT_EQ(
      forestvm({"run", file("g.fvm"), rows_, "--backend", "emulator", "--batch", "8", "--output", "classes"})
          .code,
      2);  // a regression model has no classes: the program is read, and judged by its model

  std::vector<std::string> again = words;
  again.insert(again.end(), {"--resume", report});
  EXPECT_EQ(forestvm(again).code, 0);
  expect_refused({"tune", model_, "-o", file("x.fvm"), "--resume", report}, 1,
                 "its times hold for other searches");
  const Outcome kept =
      forestvm({"tune", model_, "-o", file("k.fvm"), "--backend", "emulator", "--batch", "8"});
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_NE(kept.err.find("All others were refused. The contract trainer keeps the order"),
            std::string::npos);
  expect_refused({"tune", model_, rows_, "-o", file("x.fvm"), "--backend", "emulator"}, 2,
                 "--backend emulator estimates times and reads no ROWS");
  expect_refused({"tune", model_, "-o", file("x.fvm"), "--device-model", "h100"}, 2,
                 "--device-model is for --backend emulator");
  expect_refused({"tune", model_, "-o", file("x.fvm"), "--backend", "emulator", "--device-model", "mi250x"},
                 2, "--device-model mi250x: expected one of h100");
  expect_refused({"tune", model_, "-o", file("x.fvm"), "--backend", "emulator", "--threads", "2"}, 2,
                 "--threads is for the host");
  expect_refused({"tune", model_, "-o", file("x.fvm"), "--backend", "emulator", "--strategy", "predict"}, 1,
                 "costs are predicted for the host's schedules only");
}

TEST_F(Tune, RefusesBadCommandLines) {
  expect_refused({"tune"}, 2, "argument MODEL is missing");
  expect_refused({"tune", model_}, 2, "-o OUT.fvm is missing");
  const auto with = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"tune", model_, "-o", file("x.fvm"), option, value};
  };
  expect_refused({"tune", model_, "-o", model_}, 2, "would overwrite the input");
  expect_refused(with("--report", file("x.txt")), 2, "expected a name that ends in .html or .json");
  expect_refused({"tune", model_, "-o", file("x.json"), "--report", file("x.json")}, 2,
                 "--report and -o name the same file");
  expect_refused(
      {"tune", model_, "-o", file("x.fvm"), "--report", file("x.json"), "--report", file("x.json")}, 2,
      "given twice");
  write("x.fvm", "");
  expect_refused(with("--resume", file("x.fvm")), 2, "would overwrite the input");
  for (const char* budget : {"0", "-1s", "x", "s", "25h", "1 m", "nan"})
    expect_refused(with("--budget", budget), 2, "expected a time above 0, at most 24h, such as 30s or 2m");
  expect_refused(with("--batch", "0"), 2, "--batch '0': expected whole numbers from 1 to 16777216");
  expect_refused(with("--batch", "1,2,3,4,5,6,7,8,9"), 2, "--batch: more than 8 numbers of rows");
  expect_refused(with("--threads", "0"), 2, "--threads '0'");
  expect_refused(with("--strategy", "best"), 2,
                 "--strategy 'best': expected one of heuristic, exhaustive, predict");
  expect_refused(with("--target", "z80"), 2, "z80");
  expect_refused({"tune", model_, test_data("digits/rows.npy"), "-o", file("x.fvm")}, 1,
                 "has 64 columns, the model has 10 features");
  expect_refused({"tune", file("absent"), "-o", file("x.fvm")}, 3, "absent");
  expect_refused({"tune", model_, "--list-space", "cpu"}, 2, "--list-space 'cpu': expected one of host, gpu");
  expect_refused({"tune", model_, rows_, "--list-space", "host"}, 2, "--list-space takes no ROWS");
  expect_refused({"tune", model_, "--list-space", "host", "--budget", "1s"}, 2,
                 "--list-space takes no --budget");
  expect_refused({"tune", model_, "--list-space", "host", "--header", "no"}, 2,
                 "--list-space takes no --header");
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
  expect_refused({"tune", file("m.fvm"), "--list-space", "host"}, 2,
                 "is a program, which has its schedule already: tune the model");
}

/// Returns the milliseconds of a part in the table of run --profile; -1 if it is not there.
double part_of(const std::string& table, const std::string& part) {
  const std::size_t at = table.find("\n  " + part + " ");
  return at == std::string::npos ? -1 : std::stod(table.substr(at + part.size() + 3));
}

TEST_F(Tune, ProfilesOfRunsHaveAllParts) {
  const std::string expected = forestvm({"run", model_, rows_, "--output", "raw"}).out;
  const Outcome coded = forestvm({"run", model_, rows_, "--output", "raw", "--profile", "--threads", "1"});
  EXPECT_EQ(coded.code, 0) << coded.err;
  EXPECT_EQ(coded.out, expected);
  EXPECT_TRUE(coded.err.starts_with("profile: 133 rows in 1 batch, host, target ")) << coded.err;
  for (const char* part : {"prepare", "read", "encode", "walk", "write"})
    EXPECT_GT(part_of(coded.err, part), 0) << part << coded.err;
  EXPECT_NE(coded.err.find(": walks tables of codes, predicted to take "), std::string::npos) << coded.err;

  const Outcome few = forestvm({"run", model_, rows_, "--output", "raw", "--profile", "--batch", "4"});
  EXPECT_EQ(few.out, expected);
  EXPECT_NE(few.err.find("133 rows in 34 batches, "), std::string::npos) << few.err;
  EXPECT_NE(few.err.find("\n  plan for 1 to "), std::string::npos) << few.err;
  EXPECT_NE(few.err.find(", predicted to take "), std::string::npos) << few.err;
  EXPECT_EQ(few.err.find(" rows and more"), std::string::npos) << few.err;

  // Rows of leaves that are functions of a row are encoded with the values that the leaves read.
  const std::string linear = test_data("lightgbm/4.7.0_linear/");
  const Outcome leaves = forestvm({"run", linear + "model.txt", linear + "rows.npy", "--profile"});
  EXPECT_EQ(leaves.out, forestvm({"run", linear + "model.txt", linear + "rows.npy"}).out);
  EXPECT_GT(part_of(leaves.err, "encode"), 0) << leaves.err;

  const Outcome values =
      forestvm({"run", model_, rows_, "--output", "raw", "--profile", "--schedule", "rows-8"});
  EXPECT_EQ(values.out, expected);
  EXPECT_EQ(part_of(values.err, "encode"), 0) << values.err;
  EXPECT_GT(part_of(values.err, "walk"), 0) << values.err;
}

}  // namespace
}  // namespace forestvm::cli::test_program_tune
