// The memory of the real program for models and rows whose numbers ask for much memory: at most 4 times the size of the
// file and 64 MiB, including the program itself.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "spawn.hpp"
#include "support/memory.hpp"

namespace forestvm::cli::test_program_memory {
namespace {

constexpr std::size_t kMax = 16'777'216;  ///< the most features, and categories, that a model may have

/// Returns XGBoost's JSON of `count` stumps. `columns` gives further fields of each, by its number.
template <class Columns>
std::string xgboost(std::size_t features, std::size_t classes, std::size_t stumps, const Columns& columns) {
  std::string trees, info;
  for (std::size_t i = 0; i < stumps; ++i) {
    trees +=
        (i == 0 ? "" : ",") +
        ("{\"tree_param\":{\"num_nodes\":\"3\"},\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],"
         "\"split_indices\":[" +
         std::to_string(i % features) + ",0,0],\"split_conditions\":[" + std::to_string(i) +
         ",1,2],\"default_left\":[0,0,0]") +
        columns(i) + "}";
    info += (i == 0 ? "" : ",") + std::to_string(i % classes);
  }
  const std::string outputs = classes > 1 ? std::to_string(classes) : "0";
  return "{\"learner\":{\"feature_names\":[],\"objective\":{\"name\":\"" +
         std::string(classes > 1 ? "multi:softprob" : "reg:squarederror") +
         "\"},\"learner_model_param\":{\"base_score\":\"5E-1\",\"num_feature\":\"" +
         std::to_string(features) + "\",\"num_class\":\"" + outputs +
         "\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"gbtree_model_param\":{\"num_trees\":\"" +
         std::to_string(stumps) + "\"},\"tree_info\":[" + info + "],\"trees\":[" + trees +
         "]}}},\"version\":[2,1,0]}";
}

std::string nothing(std::size_t) { return ""; }

class Memory : public ProgramTest {
 protected:
  /// Expects that memory stays within the bound for a file of `bytes` bytes.
  void expect_within(std::size_t bytes, const std::vector<std::string>& words, int code = 0) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, code) << words[0] << ": " << outcome.err;
    if (support::kMemoryIsMeasured) {
      EXPECT_LE(outcome.peak_mib, 64 + 4 * bytes / (1 << 20)) << words[0];
    }
  }

  /// Writes a file without holding it in memory: a child process's peak includes its parent's memory.
  std::string write_repeated(const std::string& name, const std::string& begin, const std::string& piece,
                             std::size_t count) const {
    std::string pieces;
    for (int i = 0; i < 1000; ++i) pieces += piece;
    std::ofstream out(file(name), std::ios::binary);
    out << begin;
    for (; count >= 1000; count -= 1000) out << pieces;
    out << pieces.substr(0, count * piece.size());
    return file(name);
  }

  void expect_all_within(const std::string& model) const {
    const std::string path = write("model.json", model), program = file("model.fvm");
    expect_within(model.size(), {"compile", path, "-o", program});
    EXPECT_LE(content_of(program).size(), std::size_t{8} << 20);
    for (const std::string& given : {path, program}) {
      expect_within(model.size(), {"inspect", given, "--json"});
      expect_within(model.size(), {"dump", given});
    }
    expect_within(model.size(), {"verify", program});
  }
};

TEST_F(Memory, FollowsTheSplitsAndNotTheNumberOfFeatures) {
  expect_all_within(xgboost(kMax, 1, 8, nothing));
  expect_all_within(xgboost(kMax, 65536, 8, nothing));
}

TEST_F(Memory, FollowsTheCategoriesThatSetsNameAndNotHowFarApartTheyAre) {
  const auto far_apart = [](std::size_t i) {
    return ",\"split_type\":[1,0,0],\"categories\":[0," + std::to_string(kMax - 1 - i) +
           "],\"categories_nodes\":[0],\"categories_segments\":[0],\"categories_sizes\":[2]";
  };
  expect_all_within(xgboost(4, 1, 40, far_apart));
  std::string rows;  // 0, then codes that are in the sets and codes that are not
  for (std::size_t i = 0; i < 200; ++i)
    for (std::size_t feature = 0; feature < 4; ++feature) {
      const std::size_t code = (7 * i + feature) % 45;
      rows += (code == 0   ? "0"
               : code == 1 ? ""
                           : std::to_string(kMax + 2 - code)) +
              (feature == 3 ? "\n" : ",");
    }
  const std::string path = write("rows.csv", rows);
  for (const char* backend : {"host", "emulator"}) {
    const Outcome outcome = forestvm({"diff", file("model.json"), path, "--backend", backend});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("every walk comes to the same leaf"), std::string::npos) << outcome.out;
  }
}

TEST_F(Memory, FollowsTheFileWhereItHasManyTrees) {
  expect_all_within(xgboost(4, 1, 20'000, nothing));
  expect_all_within(xgboost(4, 65536, 20'000, nothing));
}

/// A dense row has as many numbers as features.
TEST_F(Memory, OfAWideRowIsThatOfTheRow) {
  const std::string model = write("model.json", xgboost(kMax, 1, 8, nothing));
  const std::string rows = write_repeated("rows.csv", "1", ",1", kMax - 1);
  expect_within(2 * kMax, {"run", model, rows, "-o", file("out.csv")});
  EXPECT_EQ(content_of(file("out.csv")), "10.5\n");
}

TEST_F(Memory, EndsWithTheFirstCellTooMany) {
  const std::string model = write("model.json", xgboost(4, 1, 8, nothing));
  for (const char* begin : {"", "1,2,3,4\n", "a,b,c,d\n"})
    expect_within(0, {"run", model, write_repeated("rows.csv", begin, ",", 50'000'000)}, 1);
}

TEST_F(Memory, OfWhatIsNeitherModelNorRowsIsNone) {
  const std::string model = write("model.json", xgboost(4, 1, 8, nothing));
  expect_within(0, {"run", "/dev/zero", model}, 1);
  expect_within(0, {"run", model, "/dev/zero"}, 1);
  expect_within(0, {"verify", "/dev/zero"}, 1);
}

}  // namespace
}  // namespace forestvm::cli::test_program_memory
