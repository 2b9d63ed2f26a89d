// forestvm verify: checks that a program file can do no harm, or says what is wrong with it.
#include <string>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

Result<void> run_verify(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "PROGRAM"));
  FVM_ASSIGN(const Program program, load_program(path));
  return write_output("-", formatted("{}: verified: {} instructions, {} trees, {} bytes\n",
                                     path == "-" ? "standard input" : path, program.code().size(),
                                     program.meta().num_trees, program.image().size()));
}

}  // namespace

const Command kVerify = {
    "verify",
    "checks a program file",
    {"verify PROGRAM"},
    {{"PROGRAM", "a .fvm file; - is standard input"}},
    {},
    "  forestvm verify model.fvm\n",
    nullptr,
    run_verify,
};

}  // namespace forestvm::cli
