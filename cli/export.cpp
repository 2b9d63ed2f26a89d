// forestvm export: writes a model or a program as C source code.
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include <forestvm/export.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array<std::string_view, 1> kLanguages = {"c"};
constexpr std::array<std::string_view, 2> kTrees = {"tables", "branches"};
constexpr std::array<std::string_view, 2> kThresholds = {"float", "integer"};

Result<void> run_export(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "MODEL"));
  const std::string out = arguments.get("out", "-");
  ExportOptions options;
  FVM_TRY(arguments.choice("language", kLanguages, 0));
  FVM_ASSIGN(const std::size_t trees, arguments.choice("trees", kTrees, 0));
  FVM_ASSIGN(const std::size_t thresholds, arguments.choice("thresholds", kThresholds, 0));
  options.trees = static_cast<ExportOptions::Trees>(trees);
  options.thresholds = static_cast<ExportOptions::Thresholds>(thresholds);
  options.prefix = arguments.get("name", options.prefix);
  FVM_TRY(expect_other_file(out, path));
  FVM_ASSIGN(const Program program, requested_program(arguments, path));
  auto exported = export_c(program, options);
  if (!exported && exported.error().code == ErrorCode::Usage)
    return usage_error("--name " + exported.error().message);
  if (!exported) return in_file(path, exported.error());
  if (arguments.has("report"))
    std::fprintf(stderr, "tables %llu bytes, stack %llu bytes (%u rows at a time), source %zu bytes\n",
                 static_cast<unsigned long long>(exported->table_bytes),
                 static_cast<unsigned long long>(exported->stack_bytes), exported->rows_at_a_time,
                 exported->text.size());
  return write_output(out, exported->text);
}

std::string export_notes() {
  return "The file has PREFIX_predict(rows, count, stride, out) and functions for one row, raw scores, labels and leaf\n"
         "numbers. A program that was compiled --with contributions, interactions, approx-contributions, trees, staged,\n"
         "uncertainty or quantile has PREFIX_predict_contributions and so on, too: forestvm compile MODEL -o P.fvm\n"
         "--with trees, then forestvm export P.fvm.\n";
}

}  // namespace

const Command kExport = {
    "export",
    "writes a model or a program as C source code",
    {"export MODEL [-o FILE.c] [--schedule S] [options]"},
    {{"MODEL", "a trainer's model file, or a .fvm program; - is standard input"}},
    {{"out", 'o', "FILE", "the file to write; - (default) is standard output", kFiles},
     {"language", '\0', "L", "c: C99 without dependencies (default)", {listed<kLanguages>}},
     {"trees",
      '\0',
      "FORM",
      "tables (default: in the schedule's layout) or branches (nested if and else)",
      {listed<kTrees>}},
     {"thresholds",
      '\0',
      "TYPE",
      "float (default) or integer: compares bits, for devices without float units",
      {listed<kThresholds>}},
     {"name", '\0', "PREFIX", "the prefix of the file's names, default forest"},
     {"report", '\0', "", "prints the sizes of tables, stack and source on standard error"},
     kScheduleOption,
     kRoundsOption,
     kContractOption,
     kStrictOption},
    "  forestvm export model.json -o forest.c --name forest\n"
    "  cc -std=c99 -O2 -ffp-contract=off -c forest.c\n",
    export_notes,
    run_export,
};

}  // namespace forestvm::cli
