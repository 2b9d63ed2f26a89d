// Loads the model or program that a command line names, and compiles a model with --schedule and related options.
// Errors name the file that they are about.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>
#include <forestvm/schedule.hpp>

#include "cli/command.hpp"

namespace forestvm::cli {

/// Puts the file's name before the place: "FILE: where: what". "-" becomes "standard input".
Error in_file(const std::string& file, Error error);
template <class T>
Result<T> in_file(const std::string& file, Result<T> result) {
  return result ? std::move(result) : Result<T>(in_file(file, result.error()));
}

using ModelOrProgram = std::variant<Model, Program>;
Result<ModelOrProgram> load_file(const std::string& path);

/// Loads a model or a program, told apart by the content; "-" is standard input. A file that begins like neither is
/// refused after its first bytes. A model keeps the rounds that --rounds names; without that option, a message on
/// standard error says which rounds of a model that stopped early are used. The rounds of a program cannot be changed.
Result<ModelOrProgram> load_requested(const Arguments& arguments, const std::string& path);

/// Loads a program; "-" is standard input.
Result<Program> load_program(const std::string& path);

/// The option --rounds, which load_requested reads.
extern const Option kRoundsOption;

/// The options --schedule, --contract and --strict of the commands that compile. kSchedulesOption is the --schedule of
/// `bench`, which may be given several times.
extern const Option kScheduleOption;
extern const Option kSchedulesOption;
extern const Option kContractOption;
extern const Option kStrictOption;

/// The option --with of `compile`, which adds capabilities to the program. `run` has no --with: it adds the
/// capabilities that its other options need.
extern const Option kWithOption;

/// A schedule, and its name in messages: its file, "schedule NAME" or "--schedule".
struct ChosenSchedule {
  Schedule schedule;
  std::string called;
};

/// Returns the schedule that a value of --schedule names: a value with a parenthesis is the schedule's text, one with a
/// slash or a dot is a file.
Result<ChosenSchedule> choose_schedule(const std::string& value, const Model& model, Contract contract);

/// Compiles a model with --schedule, --contract, --strict, --with and --background. Warnings go to standard error.
/// `otherwise` is the schedule if there is no --schedule. The second form takes the model over, which needs less
/// memory.
Result<Program> compile_requested(const Arguments& arguments, const std::string& path, const Model& model,
                                  const std::string& otherwise = "auto");
Result<Program> compile_requested(const Arguments& arguments, const std::string& path, Model&& model,
                                  const std::string& otherwise = "auto");

/// Returns the program in a file, or compiles the model in it; `otherwise` is the schedule if there is no --schedule.
/// Refuses options that differ from what a program file was compiled with.
Result<Program> requested_program(const Arguments& arguments, const std::string& path,
                                  const std::string& otherwise = "auto");

/// A program, and the rounds that its calls must choose. A model's rounds are chosen before it is compiled, so `rounds`
/// is set only for a program file.
struct RequestedProgram {
  Program program;
  std::optional<Rounds> rounds;
};

/// Returns the program in a file, with the rounds that --rounds asks for, or compiles the model in it.
Result<RequestedProgram> program_to_call(const Arguments& arguments, const std::string& path,
                                         const std::string& otherwise);

/// Programs of one forest, and the model that they were compiled from; none if the file was a program.
struct RequestedPrograms {
  std::vector<Program> programs;
  std::optional<Model> model;
};

/// Returns a program for each --schedule, in their order, or for `otherwise` if there is none. If the file is a
/// program, returns only that.
Result<RequestedPrograms> requested_programs(const Arguments& arguments, const std::string& path,
                                             const std::string& otherwise);

/// Puts a name before an error of compile(): the schedule's if the error is about a line of the schedule, otherwise the
/// model file's.
Error blame(Error error, const ChosenSchedule& schedule, const std::string& path);

/// Returns the text of a file; "-" is standard input. Refuses a file of more than `limit` bytes; `kind` says in the
/// error what the file should be ("a schedule").
Result<std::string> read_text(const std::string& path, std::size_t limit, const std::string& kind);

/// Returns a Usage error if the output would replace one of the inputs.
Result<void> expect_other_file(const std::string& output, const std::string& input);

}  // namespace forestvm::cli
