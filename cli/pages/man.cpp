// Man pages, in the macros of man(7).
#include <string>
#include <string_view>

#include <forestvm/internal/formatted.hpp>

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

std::string bold(std::string_view text) { return formatted("\\fB{}\\fR", roff(text)); }
std::string italic(std::string_view text) { return formatted("\\fI{}\\fR", roff(text)); }

std::string title(const std::string& name, const std::string& version, std::string_view meaning) {
  return formatted(
      ".\\\" Made from the tables of forestvm's commands.\n.TH {} 1 \"\" \"forestvm {}\" \"forestvm\"\n.SH NAME\n{} \\- {}\n",
      name, version, name, roff(meaning));
}

std::string as_it_is(std::string_view text) {
  std::string page = ".nf\n" + roff(text);
  if (!page.ends_with('\n')) page += '\n';
  return page + ".fi\n";
}

std::string item(const std::string& head, std::string_view meaning) {
  return formatted(".TP\n{}\n{}\n", head, roff(meaning));
}

std::string head(const Option& option) {
  std::string text = option.letter == '\0' ? "" : bold(std::string("-") + option.letter) + ", ";
  text += bold(std::string("--") + option.name);
  return *option.value == '\0' ? text : formatted("{} {}", text, italic(option.value));
}

std::string exit_status() { return ".SH EXIT STATUS\n" + roff(kExitCodes); }

}  // namespace

std::string man_overview(const std::string& version) {
  std::string page =
      formatted("{}.SH SYNOPSIS\n{} {} [arguments]\n.SH COMMANDS\n",
                title("forestvm", version, "predicts with trained decision forests on a bytecode VM"),
                bold("forestvm"), italic("COMMAND"));
  for (const Command* command : commands())
    page += item(formatted("\\fBforestvm\\-{}\\fR(1)", roff(command->name)), command->meaning);
  page += formatted(
      "{}.SH ENVIRONMENT\n{}{}.SH EXAMPLE\n{}.SH SEE ALSO\n", exit_status(),
      item(bold("FORESTVM_TARGET"), "the CPU target of the walkers, unless --target names one"),
      item(bold("FORESTVM_PLUGINS"), "the only folder in which the libraries for GPUs are looked for"),
      as_it_is("forestvm run model.json rows.csv -o predictions.npy"));
  std::string all;
  for (const Command* command : commands())
    all += formatted("{}{}\\fR(1)", (all.empty() ? "" : ",\n"), "\\fBforestvm\\-" + roff(command->name));
  return formatted("{}{}\n", page, all);
}

std::string man_page(const Command& command, const std::string& version) {
  std::string page =
      title(std::string("forestvm-") + command.name, version, command.meaning) + ".SH SYNOPSIS\n";
  for (const char* const usage : command.usages) page += as_it_is(std::string("forestvm ") + usage);
  if (command.positionals.size() != 0) page += ".SH ARGUMENTS\n";
  for (const Positional& row : command.positionals) page += item(italic(row.name), row.meaning);
  page += ".SH OPTIONS\n";
  for (const Option& option : command.options) page += item(head(option), option.meaning);
  page += item(formatted("{}, {}", bold("-h"), bold("--help")), "prints the same help");
  if (command.notes != nullptr) page += ".SH NOTES\n" + as_it_is(command.notes());
  return formatted("{}.SH EXAMPLE\n{}{}.SH SEE ALSO\n\\fBforestvm\\fR(1)\n", page, as_it_is(command.example),
                   exit_status());
}

}  // namespace forestvm::cli
