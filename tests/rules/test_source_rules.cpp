// The rules of the source tree: each planted breach is found, each allowed line passes, and the tree itself
// is clean.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "source_rules.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::rules::test_source_rules {
namespace {

struct Case {
  std::string path;
  std::string line;
};

TEST(SourceRules, FindsEachPlantedBreach) {
  const std::vector<Case> cases = {
      {"vm/host/a.cpp", "#include \"frontend/json_events.hpp\""},
      {"vm/host/a.cpp", "#include \"../../scheduler/pipeline.hpp\""},
      {"frontend/a.cpp", "#include \"vm/program/format.hpp\""},
      {"scheduler/a.cpp", "#include \"include/forestvm/model.hpp\""},
      {"include/forestvm/a.hpp", "#include \"model.hpp\""},
      {"vm/host/a.cpp", "#include <forestvm/model.hpp>"},
      {"kernels/a.cu", "  #  include <forestvm/schedule.hpp>"},
      {"include/forestvm/core/a.hpp", "#include <vector>"},
      {"include/forestvm/core/a.hpp", "#include <forestvm/program.hpp>"},
      {"vm/program/a.cpp", "#include \"vm/host/machine.hpp\""},
      {"vm/call/a.cpp", "#include \"../host/machine.hpp\""},
      {"kernels/backend/a.cpp", "#include \"kernels/device/walk.hpp\""},
      {"vm/program/a.cpp", "#include <nlohmann/json.hpp>"},
      {"scheduler/a.cpp", "#include <tbb/parallel_for.h>"},
      {"vm/program/a.cpp", "#include <tbb/parallel_for.h>"},
      {"frontend/a.cpp", "#include <boost/program_options.hpp>"},
      {"cli/a.cpp", "#include <gtest/gtest.h>"},
      {"vm/host/a.cpp", "#include <benchmark/benchmark.h>"},
      {"frontend/a.cpp", "#include <somebody/else.hpp>"},
      {"vm/host/machine.cpp", "#if defined(__AVX2__)"},
      {"kernels/megakernel.cu", "#ifdef __CUDA_ARCH__"},
      {"bindings/c/a.cpp", "#include \"vm/host/executor.hpp\""},
      {"bindings/c/a.cpp", "#include <Python.h>"},
      {"cli/a.cpp",
       "// TO"
       "DO: later"},
      {"tests/a.py",
       "open('/ho"
       "me/me/rows.npy')"},
      {"tests/vm/a.cpp",
       "const auto path = testing::Temp"
       "Dir() + \"rows.csv\";"},
      {"tests/vm/a.cpp",
       "std::ofstream file(\"/t"
       "mp/rows.csv\");"},
      {"vm/host/a.cpp", "if (const auto* csr = std::get_if<CsrRows>(&rows)) csr->count;"},
      {"kernels/link/a.cpp", "    default:"},
      {"vm/call/a.cpp", "return Error{ErrorCode::Usage, \"\", \"no rows\"};"},
      {"cli/io/a.cpp", "return refused(\"\", \"is empty\");"},
      {"vm/call/a.cpp", "return fail(ErrorCode::Usage, \"\", \"no rows\");"},
      {"bindings/python/forestvm/a.py", "# " + std::string(119, 'x')},
      {"vm/host/a.cpp", "  /// " + std::string(115, 'x')},
      {"kernels/backend/a.cpp", "const bool coded = std::holds_alternative<CodedRows>(rows);"},
  };
  for (const Case& planted : cases) {
    EXPECT_EQ(breaches({{planted.path, "\n" + planted.line + "\n"}}).size(), 1U)
        << planted.path << ": " << planted.line;
  }
}

TEST(SourceRules, FindsTestsOutsideTheirNamespace) {
  const std::string opening = "\nnamespace forestvm::test::test_a {\nnamespace {\n";
  EXPECT_EQ(breaches({{"tests/vm/test_a.cpp", opening}}), std::vector<std::string>());
  EXPECT_EQ(
      breaches({{"tests/vm/test_b.cpp", opening}}),
      std::vector<std::string>{"tests/vm/test_b.cpp: its tests stand in no namespace forestvm::...::test_b"});
}

TEST(SourceRules, SaysWhere) {
  const auto found = breaches({{"vm/host/a.cpp", "\n#include <vector>\n#include \"frontend/gzip.hpp\"\n"}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "vm/host/a.cpp:3: vm includes frontend: a folder includes <forestvm/…> and itself");
}

TEST(SourceRules, FollowsSharedHeaders) {
  const Files files = {{"include/forestvm/model.hpp", ""},
                       {"include/forestvm/program.hpp", "#include <forestvm/model.hpp>\n"},
                       {"bindings/c/a.cpp", "#include <forestvm/program.hpp>\n"},
                       {"vm/host/a.cpp", "#include <forestvm/program.hpp>\n"}};
  const auto found = breaches(files);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0],
            "bindings/c/a.cpp > forestvm/program.hpp: what runs programs must not see <forestvm/model.hpp>");
  EXPECT_EQ(found[1],
            "vm/host/a.cpp > forestvm/program.hpp: what runs programs must not see <forestvm/model.hpp>");
}

TEST(SourceRules, LetsAllowedLinesPass) {
  const std::vector<Case> cases = {
      {"vm/host/a.cpp", "#include \"vm/program/format.hpp\""},
      {"vm/host/a.cpp", "#include \"walkers/walk.hpp\""},
      {"vm/host/a.cpp", "#include <tbb/parallel_for.h>"},
      {"vm/host/a.cpp", "#include <forestvm/program.hpp>"},
      {"bindings/c/a.cpp", "#include <forestvm/backend.hpp>"},
      {"bindings/python/a.cpp", "#include <Python.h>"},
      {"vm/host/targets/a.cpp", "#if defined(__AVX2__)"},
      {"kernels/vendor/cuda.hpp", "#ifdef __CUDA_ARCH__"},
      {"include/forestvm/core/a.hpp", "#include <cstdint>"},
      {"cli/run.cpp", "#include <boost/program_options.hpp>"},
      {"frontend/a.cpp", "#include <boost/container/static_vector.hpp>"},
      {"tests/vm/a.cpp", "#include \"vm/host/executor.hpp\""},
      {"cli/a.cpp", "#include <sys/stat.h>"},
      {"vm/call/row_reader.cpp", "if (std::holds_alternative<CodedRows>(rows)) return;"},
      {"README.md", "curl https://example.org/home/rows.csv"},
      {"cli/io/a.cpp", "return refused(\"is empty\");"},
      {"bench/load.cpp",
       "const auto folder = std::filesystem::temp_"
       "directory_path();"},
      {"tests/support/temporary_folder.cpp",
       "::mk"
       "dtemp(name.data());"},
  };
  for (const Case& allowed : cases) {
    const auto found = breaches({{allowed.path, allowed.line + "\n"}});
    EXPECT_TRUE(found.empty()) << found[0];
  }
}

TEST(SourceRules, TheTopLevelHasOnlyItsKnownEntries) {
  EXPECT_EQ(
      unknown_entries("README.md\nvm/host/machine.cpp\ncatboost_info/a.tsv\ncatboost_info/b.tsv\nlog.txt\n"),
      (std::vector<std::string>{"catboost_info", "log.txt"}));
  if (!std::filesystem::exists(FORESTVM_SOURCE_DIR "/.git")) GTEST_SKIP() << "no git checkout";
  const support::TemporaryFolder folder;
  const std::string list = folder.file("list");
  ASSERT_EQ(std::system(("git -C '" FORESTVM_SOURCE_DIR "' ls-files > '" + list + "'").c_str()), 0);
  const std::string paths = support::content_of(list);
  EXPECT_NE(paths.find("tests/rules/source_rules.cpp\n"), std::string::npos);
  EXPECT_EQ(unknown_entries(paths), std::vector<std::string>());
}

TEST(SourceRules, TheTreeIsClean) {
  const Files files = read_tree(FORESTVM_SOURCE_DIR);
  EXPECT_TRUE(files.contains("include/forestvm/program.hpp"));
  EXPECT_TRUE(files.contains("tests/rules/source_rules.cpp"));
  for (const std::string& breach : breaches(files)) ADD_FAILURE() << breach;
}

TEST(Documents, ListThePublicHeaders) {
  const std::filesystem::path root = FORESTVM_SOURCE_DIR;
  std::ifstream file(root / "docs/architecture.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::size_t headers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "include/forestvm")) {
    if (!entry.is_regular_file()) continue;
    ++headers;
    const std::string name = entry.path().filename();
    const std::size_t row = page.find("\n| `" + name + "` | ");
    ASSERT_NE(row, std::string::npos) << name;
    std::ifstream header(entry.path());
    const auto lines = std::count(std::istreambuf_iterator<char>(header), {}, '\n');
    const double stated = std::stod(page.substr(row + name.size() + 8));
    EXPECT_NEAR(stated, static_cast<double>(lines), std::max(10.0, 0.2 * stated)) << name;
  }
  EXPECT_GE(headers, 12u);
}

}  // namespace
}  // namespace forestvm::rules::test_source_rules
