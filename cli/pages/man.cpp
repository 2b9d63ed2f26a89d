// Man pages, in the macros of man(7).
#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/pages/pages.hpp"

namespace forestvm::cli {
namespace {

/// Escapes text for roff: backslashes are printed, hyphens can be copied, and no line is taken for a request.
std::string roff(std::string_view text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    line_begins = c == '\n';
  }
  return escaped;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string title(const std::string& name, const std::string& version, std::string_view meaning) {
  return ".\\\" Made from the tables of forestvm's commands.\n.TH " + name + " 1 \"\" \"forestvm " + version +
         "\" \"forestvm\"\n.SH NAME\n" + name + " \\- " + roff(meaning) + "\n";
}

std::string as_it_is(std::string_view text) {
  std::string page = ".nf\n" + roff(text);
  if (!page.ends_with('\n')) page += '\n';
  return page + ".fi\n";
}

std::string item(const std::string& head, std::string_view meaning) {
  return ".TP\n" + head + "\n" + roff(meaning) + "\n";
}

std::string head(const Option& option) {
  std::string text = option.letter == '\0' ? "" : bold(std::string("-") + option.letter) + ", ";
  text += bold(std::string("--") + option.name);
  return *option.value == '\0' ? text : text + " " + italic(option.value);
}

std::string exit_status() { return ".SH EXIT STATUS\n" + roff(kExitCodes); }

}  // namespace

std::string man_overview(const std::string& version) {
  std::string page = title("forestvm", version, "predicts with trained decision forests on a bytecode VM") +
                     ".SH SYNOPSIS\n" + bold("forestvm") + " " + italic("COMMAND") +
                     " [arguments]\n.SH COMMANDS\n";
  for (const Command* command : commands())
    page += item("\\fBforestvm\\-" + roff(command->name) + "\\fR(1)", command->meaning);
  page +=
      exit_status() + ".SH ENVIRONMENT\n" +
      item(bold("FORESTVM_TARGET"), "the CPU target of the walkers where --target says none") +
      item(bold("FORESTVM_PLUGINS"), "the folder of the libraries for GPUs; looked into before any other") +
      ".SH EXAMPLE\n" + as_it_is("forestvm run model.json rows.csv -o predictions.npy") + ".SH SEE ALSO\n";
  std::string all;
  for (const Command* command : commands())
    all += (all.empty() ? "" : ",\n") + ("\\fBforestvm\\-" + roff(command->name)) + "\\fR(1)";
  return page + all + "\n";
}

std::string man_page(const Command& command, const std::string& version) {
  std::string page =
      title(std::string("forestvm-") + command.name, version, command.meaning) + ".SH SYNOPSIS\n";
  for (const char* const usage : command.usages) page += as_it_is(std::string("forestvm ") + usage);
  if (command.positionals.size() != 0) page += ".SH ARGUMENTS\n";
  for (const Positional& row : command.positionals) page += item(italic(row.name), row.meaning);
  page += ".SH OPTIONS\n";
  for (const Option& option : command.options) page += item(head(option), option.meaning);
  page += item(bold("-h") + ", " + bold("--help"), "prints the same help");
  if (command.notes != nullptr) page += ".SH NOTES\n" + as_it_is(command.notes());
  return page + ".SH EXAMPLE\n" + as_it_is(command.example) + exit_status() +
         ".SH SEE ALSO\n\\fBforestvm\\fR(1)\n";
}

}  // namespace forestvm::cli
