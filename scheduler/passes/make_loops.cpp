// Loop tree -> loop nest: each loop a statement, and in the innermost ones the walk and its reduction.
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

std::vector<Statement> make(const Lowering& lowering, const std::vector<LoopId>& loops, std::size_t& site) {
  std::vector<Statement> body;
  for (const LoopId id : loops) {
    const Loop& loop = lowering.loops[id];
    Statement statement;
    statement.kind = Statement::Kind::Loop;
    statement.loop = id;
    statement.parallel = loop.parallel.has_value();
    if (loop.children.empty()) {
      Statement walk;
      walk.kind = Statement::Kind::Walk;
      walk.site = site++;  // sites were collected in the same order
      statement.body.push_back(std::move(walk));
    } else {
      statement.body = make(lowering, loop.children, site);
    }
    body.push_back(std::move(statement));
  }
  return body;
}

}  // namespace

Result<void> make_loops(Lowering& lowering) {
  std::size_t site = 0;
  lowering.nest.body = make(lowering, lowering.loops.roots(), site);
  FVM_CHECK(site == lowering.sites.size());
  return {};
}

}  // namespace forestvm::scheduler
