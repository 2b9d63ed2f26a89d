// forestvm assemble: makes a .fvm program from the text of `forestvm dump`, edited or not, and another program's
// forest.
#include <string>
#include <utility>
#include <variant>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kMaxAssemblyBytes = std::size_t{256} << 20;

Result<void> run(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "TEXT"));
  if (!arguments.has("data")) return usage_error("--data FROM.fvm is missing");
  if (!arguments.has("out")) return usage_error("-o OUT.fvm is missing");
  const std::string data = arguments.get("data");
  const std::string out = arguments.get("out");
  if (path == "-" && data == "-") return usage_error("TEXT and --data cannot both be standard input");
  FVM_TRY(expect_other_file(out, path));
  FVM_TRY(expect_other_file(out, data));
  FVM_ASSIGN(const ModelOrProgram loaded, load_file(data));
  const auto* const from = std::get_if<Program>(&loaded);
  if (from == nullptr)
    return usage_error(formatted("--data: {} is a model, not a program", single_quoted(data)));
  FVM_ASSIGN(const std::string text, read_text(path, kMaxAssemblyBytes, "assembly"));
  FVM_ASSIGN(const Program program, in_file(path, assemble(text, *from)));
  const auto image = program.image();
  return write_output(out, {reinterpret_cast<const char*>(image.data()), image.size()});
}

}  // namespace

const Command kAssemble = {
    "assemble",
    "makes a program file from the text that dump prints",
    {"assemble TEXT --data FROM.fvm -o OUT.fvm"},
    {{"TEXT",
      "instructions as dump prints them; ; begins a comment, pc numbers may be left out; - is standard "
      "input"}},
    {{"data", '\0', "FROM", "the .fvm program whose forest and tables the instructions use", kFiles},
     {"out", 'o', "OUT", "the program file to write; - is standard output", kFiles}},
    "  forestvm dump model.fvm > model.txt\n"
    "  forestvm assemble model.txt --data model.fvm -o edited.fvm\n",
    nullptr,
    run,
};

}  // namespace forestvm::cli
