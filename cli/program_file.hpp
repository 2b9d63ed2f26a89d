// From the FILE and --schedule of a command line to a model or a program. Errors name the file they are
// about.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include <forestvm/model.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>
#include <forestvm/schedule.hpp>

#include "cli/command.hpp"

namespace forestvm::cli {

/// Puts the file's name before the place: "FILE: where: what". "-" is called standard
/// input.
Error in_file(const std::string& file, Error error);
template <class T>
Result<T> in_file(const std::string& file, Result<T> result) {
  return result ? std::move(result) : Result<T>(in_file(file, result.error()));
}

/// What a FILE holds, by its content; "-" is standard input. What begins like neither is refused by its first
/// bytes.
using ModelOrProgram = std::variant<Model, Program>;
Result<ModelOrProgram> load_file(const std::string& path);

/// The program in a file; "-" is standard input.
Result<Program> load_program(const std::string& path);

/// The options that `run`, `compile` and `dump` share.
extern const Option kScheduleOption;
extern const Option kContractOption;
extern const Option kStrictOption;

/// A schedule and what messages call it: its file, "schedule NAME" or "--schedule".
struct ChosenSchedule {
  Schedule schedule;
  std::string called;
};

/// --schedule auto|NAME|TEXT|FILE: a value with a parenthesis is the schedule's text, else one with a slash
/// or a dot is a file. `otherwise`, here and below: the value if there is none.
Result<ChosenSchedule> choose_schedule(const Arguments& arguments, const Model& model,
                                       const std::string& otherwise = "auto");

/// Reads --schedule, --contract and --strict and compiles. Warnings go to standard error.
Result<Program> compile_as_asked(const Arguments& arguments, const std::string& path, const Model& model,
                                 const std::string& otherwise = "auto");
/// The same for a model that is not needed any more.
Result<Program> compile_as_asked(const Arguments& arguments, const std::string& path, Model&& model,
                                 const std::string& otherwise = "auto");

/// The program in a file, or that of the model in it: what a program file was compiled for cannot be asked
/// for again.
Result<Program> program_as_asked(const Arguments& arguments, const std::string& path,
                                 const std::string& otherwise = "auto");

/// An error of compile() about the schedule's line goes with the schedule's name, any other with the model's.
Error blame(Error error, const ChosenSchedule& schedule, const std::string& path);

/// The text of a file, "-" is standard input. Refused if it is longer than the `limit` bytes that
/// `kind` ("a schedule") may have.
Result<std::string> read_text(const std::string& path, std::size_t limit, const std::string& kind);

/// Usage error if the output would replace one of the inputs.
Result<void> expect_other_file(const std::string& output, const std::string& input);

}  // namespace forestvm::cli
