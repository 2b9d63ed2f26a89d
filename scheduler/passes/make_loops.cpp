// Loop tree -> loop nest: each loop is a statement, the innermost ones contain the walk and its reduction; a
// loop's cache statement comes first in it.
#include <iterator>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

/// Makes the statement of a cache directive. By default the host prefetches the next iteration, and a GPU
/// keeps the current one in shared memory.
Statement cache(const Lowering& lowering, LoopId loop) {
  Statement statement;
  statement.kind = Statement::Kind::Cache;
  statement.loop = loop;
  const std::uint32_t said = lowering.loops[loop].cache->value;
  statement.ahead = said == 0 && !lowering.is_mapped() ? 1 : said;
  return statement;
}

std::vector<Statement> make(const Lowering& lowering, const std::vector<LoopId>& loops, std::size_t& site) {
  std::vector<Statement> body;
  for (const LoopId id : loops) {
    const Loop& loop = lowering.loops[id];
    Statement statement;
    statement.kind = Statement::Kind::Loop;
    statement.loop = id;
    statement.parallel = loop.parallel.has_value();
    if (loop.cache) statement.body.push_back(cache(lowering, id));
    if (loop.children.empty()) {
      Statement walk;
      walk.kind = Statement::Kind::Walk;
      walk.site = site++;  // sites were collected in the same order
      statement.body.push_back(std::move(walk));
    } else {
      std::vector<Statement> inner = make(lowering, loop.children, site);
      std::move(inner.begin(), inner.end(), std::back_inserter(statement.body));
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
