// Plans of the schedule `auto` for calls of few rows, when it knows that several threads will predict.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/choose/walk_choice.hpp"

namespace forestvm::scheduler {

/// Lets threads share calls of few rows: rows that are walked one by one lie in blocks of a few, which run in parallel,
/// and calls of up to 45 rows that would be one block of rows are walked one by one, too, where that is predicted to
/// take clearly less time on so many threads. Forests whose rows take little time keep their plans. `rows` has the
/// numbers of rows per call that the plans are for, ascending; none means all.
void share_few_rows(const ForestFacts& facts, std::span<const std::uint32_t> rows, unsigned threads,
                    std::vector<PlanChoice>& plans);

}  // namespace forestvm::scheduler
