// The backend that emulates a GPU, for tests and the command line: it is not installed. Implemented by
// kernels/emulator.
#pragma once

#include <cstdint>
#include <memory>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

struct EmulatorOptions {
  std::uint64_t seed = 1;  ///< Seed of the order in which the threads of a block take turns.
  unsigned warp = 32;      ///< Threads of a warp: 32 or 64.
};

/// Loads a program into the emulator of a GPU, which runs each thread of a launch in turn, on the calling
/// thread, and is far slower than the host VM. It answers as a GPU does. Refused if no loop is mapped to a
/// GPU, or if launches are larger than a GPU allows. It encodes no rows.
Result<std::unique_ptr<Predictor>> emulator_backend(const Program& program,
                                                    const EmulatorOptions& options = {});

}  // namespace forestvm
