// Compiles a model and a schedule into a program. Implemented by scheduler/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/core/contract.hpp>
#include <forestvm/model.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm {

class Background;
class Samples;

/// The intermediate forms that a compilation can show, in order.
enum class Stage { Model, Tiled, Loops, Legalized, Program };
inline constexpr std::string_view kStageNames[] = {"model", "tiled", "loops", "legalized", "program"};

struct CompileOptions {
  Contract contract = Contract::Trainer;
  bool strict = false;  ///< Turns warnings into refusals.
  /// Gives the program the model's rounds, of which a call can choose some (Rounds) or stop after some (EarlyStop), and
  /// lets walks keep every tree's leaf for outputs of single trees. Sums are then in the model's order under every
  /// contract.
  bool keeps_leaves = false;
  /// Gives the program what it needs to compute contributions of features (OutputKind::Contributions), which takes
  /// about as much memory as the trees. Refused, with tree and node, for models that do not say how many training rows
  /// went each way.
  bool contributions = false;
  /// Gives the program interactions of features, too (OutputKind::Interactions), whose constants take more memory.
  bool interactions = false;
  /// Gives the program approximate contributions of features (OutputKind::ApproxContributions). Refused, as
  /// contributions are, for models that do not say how many training rows went each way.
  bool approx_contributions = false;
  /// If set, contributions compare a row with these rows, whichever way the training rows went, and are the means over
  /// them (interventional SHAP values). The program then has contributions, but cannot have interactions. Usage error
  /// if the background was made for another model.
  std::shared_ptr<const Background> background;
  /// If set, the leaves of the program keep the targets of these training rows, of which it computes quantiles
  /// (OutputKind::Quantile). Usage error if the samples were made for another model.
  std::shared_ptr<const Samples> samples;
  /// If set, is called after each pass that completes a printable form; `print` makes its text.
  std::function<void(Stage, const std::function<std::string()>& print)> on_stage;
};

/// The time that a pass of the compiler took.
struct PassTime {
  std::string_view pass;
  double seconds;
};

struct Compiled {
  Program program;
  std::vector<std::string>
      warnings;  ///< Sentences that say where results differ from what the contract asks for.
  std::vector<PassTime> passes;
};

/// Compiles a model with a schedule. Refused with the directive's location in the schedule when a directive
/// cannot be honoured, or with the tree and node when the model needs what no backend runs yet.
Result<Compiled> compile(const Model& model, const Schedule& schedule, const CompileOptions& options = {});

/// Compiles a model that is not needed any more. Its trees are rewritten in place, which takes less memory
/// than a copy.
Result<Compiled> compile(Model&& model, const Schedule& schedule, const CompileOptions& options = {});

}  // namespace forestvm
