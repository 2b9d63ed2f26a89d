// forestvm compile: makes a .fvm program from a trainer's model and a schedule.
#include <string>
#include <utility>
#include <variant>

#include "cli/background.hpp"
#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"
#include "cli/samples.hpp"

namespace forestvm::cli {
namespace {

Result<void> run_compile(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "MODEL"));
  if (!arguments.has("out")) return usage_error("-o OUT.fvm is missing");
  const std::string out = arguments.get("out");
  if (arguments.get("background") == "-") return usage_error("--background: rows are read from a file");
  FVM_TRY(expect_other_file(out, path));
  FVM_TRY(expect_other_file(out, arguments.get("background")));
  if (arguments.has("samples")) {
    FVM_ASSIGN(const auto files, sample_files(arguments.get("samples")));
    FVM_TRY(expect_other_file(out, files.first));
    FVM_TRY(expect_other_file(out, files.second));
  }
  FVM_ASSIGN(ModelOrProgram loaded, load_requested(arguments, path));
  auto* const model = std::get_if<Model>(&loaded);
  if (model == nullptr) return usage_error(single_quoted(path) + " is a program already");
  FVM_ASSIGN(const Program program, compile_requested(arguments, path, std::move(*model)));
  const auto image = program.image();
  return write_output(out, {reinterpret_cast<const char*>(image.data()), image.size()});
}

}  // namespace

const Command kCompile = {
    "compile",
    "compiles a model into a program file",
    {"compile MODEL -o OUT.fvm [--schedule S] [--contract C] [--rounds A:B] [options]"},
    {{"MODEL", "a trainer's model file; - is standard input"}},
    {{"out", 'o', "OUT", "the program file to write; - is standard output", kFiles},
     kScheduleOption,
     {"for-rows", '\0', "LIST",
      "the numbers of rows per call that the schedule auto is to suit, e.g. 1 or 1,1000 (default: all): the program "
      "has only the plans for these, which makes it smaller; calls of other sizes run, too"},
     {"for-threads", '\0', "N",
      "the number of threads that will predict (default: 1): those of the schedule auto then share calls of few rows "
      "where these take long; the program runs with any number of threads"},
     kRoundsOption,
     kContractOption,
     kWithOption,
     kBackgroundOption,
     kSamplesOption,
     kStrictOption,
     {"timings", '\0', "", "prints the time of each pass of the compiler on standard error"}},
    "  forestvm compile model.json -o model.fvm\n"
    "  forestvm run model.fvm rows.csv\n",
    nullptr,
    run_compile,
};

}  // namespace forestvm::cli
