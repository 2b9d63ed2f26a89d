// The graph of the libraries, as CMake writes it, follows the folders: each library links only the libraries in the
// table below, and there is no circle.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace forestvm::rules::test_link_graph {
namespace {

using Names = std::set<std::string>;
using Graph = std::map<std::string, Names>;

/// The libraries of this project that each library and program links.
const Graph kLinks = {
    {"forestvm_program", {}},
    {"forestvm_call", {"forestvm_program"}},
    {"forestvm_host", {"forestvm_call"}},
    {"forestvm_export_c", {"forestvm_call"}},
    {"forestvm_frontend", {}},
    {"forestvm_scheduler", {"forestvm_program", "forestvm_host"}},
    {"forestvm_gpu", {"forestvm_call"}},
    {"forestvm_kernels", {"forestvm_gpu"}},
    {"forestvm_runtime", {"forestvm_host", "forestvm_gpu"}},
    {"forestvm_runtime_static", {"forestvm_host", "forestvm_gpu"}},
    {"forestvm_cli",
     {"forestvm_frontend", "forestvm_scheduler", "forestvm_host", "forestvm_export_c", "forestvm_kernels"}},
    {"forestvm_c_api", {}},
    {"forestvm", {"forestvm_cli"}},
    {"forestvm_cli_pages", {"forestvm_cli"}},
    {"forestvm_pages", {"forestvm_cli_pages"}},
    {"forestvm_everything", {}},
};
/// Libraries that only some builds have. The walkers of each CPU target, forestvm_target_NAME, link nothing.
const Graph kOptional = {
    {"forestvm_cuda", {}},
    {"forestvm_hip", {}},
    {"forestvm_python", {"forestvm_frontend", "forestvm_scheduler", "forestvm_host", "forestvm_gpu"}},
};

/// Reads the graph. A line is a library, a colon, and CMake's LINK_LIBRARIES of the library.
Graph read_graph(std::istream& in) {
  Graph graph;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string library, word;
    words >> library;
    library.pop_back();
    Names& links = graph[library];
    while (words >> word) {
      if (const auto colons = word.find("::"); colons != std::string::npos && word.starts_with("forestvm::"))
        word = "forestvm_" + word.substr(colons + 2);
      if (word.starts_with("forestvm_") && word != "forestvm_options") links.insert(word);
    }
  }
  return graph;
}

TEST(LinkGraph, IsThatOfTheFolders) {
  std::ifstream in(FORESTVM_LINK_GRAPH);
  ASSERT_TRUE(in.is_open()) << FORESTVM_LINK_GRAPH;
  Graph graph = read_graph(in);
  std::erase_if(graph, [](const auto& entry) {
    const auto& [name, links] = entry;
    const auto optional = kOptional.find(name);
    if (optional != kOptional.end()) {
      EXPECT_EQ(links, optional->second) << name;
    }
    const bool is_target = name.starts_with("forestvm_target_");
    if (is_target) {
      EXPECT_EQ(links, Names()) << name;
    }
    return is_target || optional != kOptional.end();
  });
  EXPECT_EQ(graph, kLinks);
}

TEST(LinkGraph, ReadsWhatCMakeWrites) {
  std::istringstream in("forestvm_a: forestvm_options forestvm::b Threads::Threads\nforestvm_b: \n");
  EXPECT_EQ(read_graph(in), (Graph{{"forestvm_a", {"forestvm_b"}}, {"forestvm_b", {}}}));
}

}  // namespace
}  // namespace forestvm::rules::test_link_graph
