// The verifier's rules for the paths of contributions, one test case for each, and the optional sections.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "support/small_models.hpp"
#include "vm/program/format.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_verify_explained_trees {
namespace {

/// Returns a program of one tree: f0 < 0.5 ? (f1 < 1 ? 1 : 2) : 3.
ProgramParts explained_parts() {
  Model model = support::model_of(
      {support::split(0, 0.5, support::split(1, 1, support::leaf(1), support::leaf(2)), support::leaf(3))});
  support::cover(model.trees[0], 0, 64);
  return parts_of(explained(model, "encode(u8)"));
}

/// Breaks one thing, and expects a refusal at `where` that says `what`.
template <class Break>
void expect_refused(Break breaks, const std::string& where, const std::string& what) {
  ProgramParts parts = explained_parts();
  breaks(parts);
  const auto program = build_program(parts);
  ASSERT_FALSE(program.ok()) << what;
  EXPECT_EQ(program.error().code, ErrorCode::Refused);
  EXPECT_EQ(program.error().where, where);
  EXPECT_NE(program.error().message.find(what), std::string::npos) << program.error().text();
}

TEST(VerifyExplainedTrees, AcceptsWhatIsCompiled) {
  const auto program = build_program(explained_parts());
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(program->paths().size(), 5u);
}

TEST(VerifyExplainedTrees, Nodes) {
  const std::string where = "paths section: record 1", leaf = "paths section: record 2";
  expect_refused([](ProgramParts& p) { p.paths[1].split = 2; }, where, "neither a split nor a leaf");
  expect_refused([](ProgramParts& p) { p.paths[1].reserved[5] = 1; }, where, "reserved");
  expect_refused([](ProgramParts& p) { p.paths[1].number = std::nan(""); }, where, "not finite");
  expect_refused([](ProgramParts& p) { p.paths[2].number = HUGE_VAL; }, leaf, "not finite");
  expect_refused([](ProgramParts& p) { p.paths[1].number = 0; }, where, "share");
  expect_refused([](ProgramParts& p) { p.paths[1].number = 1; }, where, "share");
  const auto share_of_both = [](ProgramParts& p, double share) {
    p.paths[1].code = kAlwaysLeft;
    p.paths[1].number = share;
  };
  expect_refused([&](ProgramParts& p) { share_of_both(p, 2.5); }, where, "share");
  ProgramParts doubled = explained_parts();
  share_of_both(doubled, 2);
  EXPECT_TRUE(build_program(doubled).ok());
  expect_refused([](ProgramParts& p) { p.paths[1].column = 2; }, where, "column does not exist");
  expect_refused([](ProgramParts& p) { p.paths[1].feature = 4; }, where, "feature lies outside the row");
  expect_refused([](ProgramParts& p) { p.paths[2].code = 1; }, leaf, "a leaf tests nothing");
}

TEST(VerifyExplainedTrees, Trees) {
  const std::string where = "explained_trees section: record 0";
  expect_refused([](ProgramParts& p) { p.explained_trees[0].output = 1; }, where, "output does not exist");
  expect_refused([](ProgramParts& p) { p.explained_trees[0].expected = HUGE_VAL; }, where, "not finite");
  expect_refused([](ProgramParts& p) { p.explained_trees[0].node_count = (1u << 24) + 1; }, where,
                 "more than 16777216 nodes");
  expect_refused([](ProgramParts& p) { p.explained_trees[0].node_count = 6; }, where,
                 "leave the paths section");
  expect_refused([](ProgramParts& p) { p.explained_trees[0].node_count = 4; }, where, "nodes are missing");
  expect_refused([](ProgramParts& p) { p.explained_trees[0].node_count = 0; }, where, "nodes are missing");
  expect_refused([](ProgramParts& p) { p.paths.push_back(p.paths[4]); }, "paths section",
                 "6 nodes, but the trees have 5");
  expect_refused([](ProgramParts& p) { std::swap(p.paths[0], p.paths[4]); }, "paths section: record 1",
                 "follows a whole tree");
}

TEST(VerifyExplainedTrees, Depths) {
  const auto chain = [](ProgramParts& p, std::uint32_t splits, std::uint32_t features) {
    const PathNode split = p.paths[0], leaf = p.paths[4];
    p.meta.num_features = features;
    p.paths.clear();
    for (std::uint32_t i = 0; i < splits; ++i) {
      p.paths.push_back(split);
      p.paths.back().feature = i % features;
    }
    p.paths.insert(p.paths.end(), splits + 1, leaf);
    p.explained_trees[0].node_count = 2 * splits + 1;
  };
  expect_refused([&](ProgramParts& p) { chain(p, 513, 4); }, "paths section: record 512", "too many splits");
  expect_refused([&](ProgramParts& p) { chain(p, 65, 65); }, "paths section: record 64", "too many features");
  ProgramParts parts = explained_parts();
  chain(parts, 512, 64);
  EXPECT_TRUE(build_program(parts).ok());
}

TEST(VerifyExplainedTrees, Meta) {
  expect_refused([](ProgramParts& p) { p.meta.contributions = 3; }, "meta section", "neither 0, 1 nor 2");
  expect_refused([](ProgramParts& p) { p.meta.contributions = 0; }, "meta section", "no contributions");
  expect_refused([](ProgramParts& p) { p.meta.num_features = 1u << 22; }, "meta section",
                 "4194305 contributions");
  const auto interacts = [](ProgramParts& p) {
    p.meta.contributions = 2;
    p.meta.num_features = 8192;
  };
  expect_refused(interacts, "meta section", "67125249 interactions");
  expect_refused([](ProgramParts& p) { p.meta.contributions = 2; }, "code section",
                 "the output is not written for every row (output interactions");
}

TEST(VerifyExplainedTrees, Code) {
  ProgramParts parts = explained_parts();
  std::size_t at = 0;
  while (parts.code[at].op != Op::Explain) ++at;
  const Inst explain = parts.code[at];
  const auto refusal = [](const ProgramParts& changed) {
    const auto program = build_program(changed);
    return program.ok() ? "" : program.error().text();
  };
  ProgramParts without = parts;
  without.code[at].op = Op::Encode;
  EXPECT_NE(refusal(without).find("the output is not written for every row (output contributions"),
            std::string::npos)
      << refusal(without);
  ProgramParts uncoded = parts;
  uncoded.code[at - 1] = explain;
  EXPECT_NE(refusal(uncoded).find("paths test rank codes, and these rows are not encoded here"),
            std::string::npos)
      << refusal(uncoded);
  ProgramParts elsewhere = parts;
  for (Inst& inst : elsewhere.code)
    if (inst.op == Op::Store) inst = pack(Op::Explain, std::vector<std::uint32_t>(kMaxOperands).data());
  EXPECT_NE(refusal(elsewhere).find("it writes contributions or interactions (output"), std::string::npos)
      << refusal(elsewhere);
  Model plain = support::small_model("small");
  ProgramParts none = parts_of(compiled(plain, "encode(u8)"));
  for (Inst& inst : none.code)
    if (inst.op == Op::Store) inst = pack(Op::Explain, std::vector<std::uint32_t>(kMaxOperands).data());
  EXPECT_NE(refusal(none).find("the program has no paths to explain"), std::string::npos) << refusal(none);
}

TEST(OptionalSections, EndWithTheLastThatIsNotEmpty) {
  const auto count_of = [](const Program& program) {
    bytecode::FileHeader header;
    std::memcpy(&header, program.image().data(), sizeof header);
    return header.section_count;
  };
  Model model = support::small_model("covered");
  const Program plain = compiled(model, "encode(u8)"), with = explained(model, "encode(u8)");
  EXPECT_EQ(count_of(plain), kCommonSections);
  EXPECT_EQ(count_of(with), static_cast<std::size_t>(Section::Paths) + 1);
  EXPECT_TRUE(plain.paths().empty());
  EXPECT_TRUE(plain.explained_trees().empty());
  EXPECT_FALSE(with.paths().empty());
  CompileOptions options;
  options.keeps_leaves = true;
  const Program keeps = compiled(model, "encode(u8)", options);
  EXPECT_EQ(count_of(keeps), static_cast<std::size_t>(Section::RoundBegins) + 1);
  EXPECT_TRUE(keeps.paths().empty());
}

}  // namespace
}  // namespace forestvm::test::test_verify_explained_trees
