// Plans of the schedule `auto` for calls of few rows, when it knows that several threads will predict.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/choose/walk_choice.hpp"

namespace forestvm::scheduler {

/// Lets threads share calls of few rows. Rows that are walked one by one are cut into blocks of a few rows, which run
/// in parallel. In calls of up to 45 rows that would be one block of rows, rows are walked one by one, too, where that
/// is predicted to take clearly less time on `threads` threads. Forests whose rows take little time keep their plans.
/// `rows` has the numbers of rows per call that the plans are for, ascending; none means all.
void share_few_rows(const ForestFacts& facts, std::span<const std::uint32_t> rows, unsigned threads,
                    std::vector<PlanChoice>& plans);

}  // namespace forestvm::scheduler
