// Completions for bash, zsh and fish.
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "cli/commands.hpp"
#include "cli/pages/pages.hpp"

namespace forestvm::cli {
namespace {

std::vector<std::string_view> names_in(const Values& values) {
  return values.names == nullptr ? std::vector<std::string_view>{} : values.names();
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

/// Puts `escape` before each character of `special` in a text.
std::string escaped(std::string_view text, std::string_view special, std::string_view escape) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += escape;
    out += c;
  }
  return out;
}

/// Returns a word in single quotes for zsh.
std::string zsh_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string fish_quoted(std::string_view text) { return formatted("'{}'", escaped(text, "\\'", "\\")); }

/// Returns the option's names on the command line, short form first.
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> all;
  if (option.letter != '\0') all.push_back(std::string("-") + option.letter);
  all.push_back(std::string("--") + option.name);
  return all;
}

constexpr Option kHelpOption = {"help", 'h', "", "prints the command's help"};

std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.push_back(kHelpOption);
  return options;
}

/// Returns the command that fills bash's COMPREPLY with the values.
std::string bash_reply(const Values& values) {
  std::string reply;
  if (values.names != nullptr)
    reply = formatted("COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))", joined(names_in(values)));
  if (values.files)
    reply += std::string(reply.empty() ? "" : "; ") +
             "COMPREPLY+=($(compgen -f -- \"$word\")); compopt -o filenames";
  return reply.empty() ? ":" : reply;
}

std::string bash_case(const Command& command) {
  std::string text = formatted("    {})\n      case $before in\n", command.name);
  std::string options;
  for (const Option& option : options_of(command)) {
    std::string pattern;
    for (const std::string& spelling : spellings(option)) {
      pattern += (pattern.empty() ? "" : "|") + spelling;
      options += (options.empty() ? "" : " ") + spelling;
    }
    if (*option.value != '\0')
      text += formatted("        {}) {}; return ;;\n", pattern, bash_reply(option.values));
  }
  text += formatted(
      "      esac\n      case $word in\n        -*) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n",
      options);
  // Only a parser could tell which positional the word is, so the values of all of them are offered.
  Values values;
  for (const Positional& positional : command.positionals) {
    values.files |= positional.values.files;
    if (positional.values.names != nullptr) values.names = positional.values.names;
  }
  return formatted("{}        *) {} ;;\n      esac\n      ;;\n", text, bash_reply(values));
}

/// Returns the action with which zsh completes a value: the end of a specification for _arguments.
std::string zsh_values(const Values& values) {
  const std::string names = joined(names_in(values));
  if (values.files) return names.empty() ? "_files" : " _forestvm_names_or_files " + names;
  return names.empty() ? " " : formatted("({})", names);
}

std::string zsh_meaning(std::string_view meaning) { return escaped(meaning, "[]:\\", "\\"); }

std::string zsh_option(const Option& option) {
  const std::vector<std::string> names = spellings(option);
  std::string text;
  for (const std::string& name : names) {
    std::string spec;
    if (names.size() > 1) spec = formatted("({} {})", names[0], names[1]);
    spec += formatted("{}[{}]", name, zsh_meaning(option.meaning));
    if (*option.value != '\0')
      spec += formatted(":{}:{}", zsh_meaning(option.value), zsh_values(option.values));
    text += formatted("        {} \\\n", zsh_quoted(spec));
  }
  return text;
}

}  // namespace

std::string bash_completion() {
  std::string text = formatted(
      "# Completes forestvm's command lines in bash. Made from the tables of its commands.\n_forestvm() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n  COMPREPLY=()\n  # bash splits --output=raw into three words.\n  if [[ $word == '=' ]]; then word=\n  elif [[ $before == '=' && COMP_CWORD -ge 2 ]]; then before=${COMP_WORDS[COMP_CWORD-2]}\n  fi\n  if [[ COMP_CWORD -eq 1 ]]; then\n    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n",
      joined(command_names()));
  for (const Command* command : commands()) text += bash_case(*command);
  return text + "  esac\n}\ncomplete -F _forestvm forestvm\n";
}

std::string zsh_completion() {
  std::string text =
      "#compdef forestvm\n"
      "# Completes forestvm's command lines in zsh. Made from the tables of its commands.\n"
      "_forestvm_names_or_files() {\n"
      "  compadd -- \"$@\"\n"
      "  _files\n"
      "}\n"
      "_forestvm() {\n"
      "  local context state line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C '(- *)'{-h,--help}'[prints help]' \\\n"
      "    '(- *)'{-V,--version}'[prints the version]' \\\n"
      "    '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n"
      "    command)\n"
      "      local -a commands=(\n";
  for (const Command* command : commands())
    text += formatted("        {}\n",
                      zsh_quoted(formatted("{}:{}", command->name, escaped(command->meaning, ":\\", "\\"))));
  text +=
      "      )\n"
      "      _describe command commands\n"
      "      ;;\n"
      "    argument)\n"
      "      case $line[1] in\n";
  for (const Command* command : commands()) {
    text += formatted("      {})\n      _arguments \\\n", command->name);
    for (const Option& option : options_of(*command)) text += zsh_option(option);
    int number = 0;
    for (const Positional& positional : command->positionals) {
      ++number;
      text += formatted("        {} \\\n", zsh_quoted(formatted("{}:{}:{}", number, positional.name,
                                                                zsh_values(positional.values))));
    }
    text += "        && return\n        ;;\n";
  }
  return text + "      esac\n      ;;\n  esac\n}\n_forestvm \"$@\"\n";
}

std::string fish_completion() {
  std::string text =
      "# Completes forestvm's command lines in fish. Made from the tables of its commands.\n"
      "complete -c forestvm -n __fish_use_subcommand -f -s h -l help -d 'prints help'\n"
      "complete -c forestvm -n __fish_use_subcommand -f -s V -l version -d 'prints the version'\n";
  for (const Command* command : commands())
    text += formatted("complete -c forestvm -n __fish_use_subcommand -f -a {} -d {}\n", command->name,
                      fish_quoted(command->meaning));
  for (const Command* command : commands()) {
    const std::string here =
        formatted("complete -c forestvm -n '__fish_seen_subcommand_from {}'", command->name);
    bool files = false;
    for (const Positional& positional : command->positionals) {
      files |= positional.values.files;
      if (positional.values.names != nullptr)
        text += formatted("{} -a {}\n", here, fish_quoted(joined(names_in(positional.values))));
    }
    if (!files) text += here + " -f\n";
    for (const Option& option : options_of(*command)) {
      text += formatted("{}{} -l {}", here, option.letter == '\0' ? "" : std::string(" -s ") + option.letter,
                        option.name);
      if (*option.value != '\0') text += option.values.files ? " -r" : " -x";
      if (option.values.names != nullptr) text += " -a " + fish_quoted(joined(names_in(option.values)));
      text += formatted(" -d {}\n", fish_quoted(option.meaning));
    }
  }
  return text;
}

}  // namespace forestvm::cli
