// Turns the options --backend, --device and --target into a Predictor.
#pragma once

#include <memory>
#include <string>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"

namespace forestvm::cli {

extern const Option kBackendOption;
extern const Option kDeviceOption;
extern const Option kTargetOption;

enum class BackendKind { Auto, Host, Emulator, Cuda, Hip };

struct BackendChoice {
  BackendKind kind = BackendKind::Auto;
  int device = 0;         ///< Number of the device, for Cuda and Hip.
  BackendOptions host{};  ///< Options of the host backend, for Auto and Host.

  bool on_host() const { return kind == BackendKind::Auto || kind == BackendKind::Host; }
  /// Returns the schedule that is used when the command line names none.
  const char* schedule() const { return on_host() ? "auto" : "gpu"; }
};

/// Returns the backend that the options choose. Returns a Usage error for options that this backend does not have, such
/// as --threads for a GPU.
Result<BackendChoice> choose_backend(const Arguments& arguments);

/// Loads `program` into the chosen backend. `model` is the program's file, which errors about the program name.
Result<std::unique_ptr<Predictor>> make_predictor(const BackendChoice& choice, const Program& program,
                                                  const std::string& model);

/// Lists the CPU targets for help texts.
std::string target_notes();

}  // namespace forestvm::cli
