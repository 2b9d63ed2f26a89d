// Writes the reports of forestvm tune about a search: JSON, from which a later search can go on, and a page for people.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/core/contract.hpp>

#include "cli/tuning.hpp"

namespace forestvm::cli {

inline constexpr std::array<std::string_view, 3> kStrategyNames = {"heuristic", "exhaustive", "predict"};

/// The calls whose schedules a search compares, and the machine and program for which its times hold.
struct TunedCalls {
  std::string model;          ///< Name of the model's file.
  std::string rows;           ///< Description of the rows, for people.
  std::string machine;        ///< Target, threads and processor, or the GPU.
  std::uint64_t program = 0;  ///< Checksum of the program with the schedule auto or gpu.
  unsigned threads = 1;
  Contract contract = Contract::Trainer;
  std::vector<std::uint64_t> batches;  ///< Rows per call.
  const scheduler::ScheduleSpace* space = &scheduler::host_space();
  std::string automatic = "auto";  ///< Name of the schedule with which others are compared.
};

struct TuneReport {
  TunedCalls calls;
  Strategy strategy = Strategy::Heuristic;
  Seconds budget{0};
  std::string loops;  ///< Loop nests of the schedule that was found, one for each plan.
  Tuning tuning;
};

/// Returns all facts of a search as JSON.
std::string tune_json(const TuneReport& report);

/// Returns a page in HTML that needs no other file, no network and no script. For each number of rows it has the
/// distribution of times, the best schedules, and the times by the values of each parameter; at its end stand the
/// chosen plans with their loop nests.
std::string tune_page(const TuneReport& report);

/// Reads the trials from the JSON of an earlier search, `text`. Refuses other texts, and searches whose program,
/// machine, threads, contract or numbers of rows differ from those of `calls`, because times that were measured under
/// other conditions do not hold for these calls.
Result<std::vector<Trial>> earlier_trials(const std::string& text, const TunedCalls& calls);

}  // namespace forestvm::cli
