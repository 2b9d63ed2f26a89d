// See command.hpp. The only home of Boost.Program_options.
#include "cli/command.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/nearest.hpp>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

namespace po = boost::program_options;

/// Returns the name of the option by which Boost knows a positional. It starts with a space, so that nobody types it.
std::string hidden(const Positional& positional) { return std::string(" ") + positional.name; }

po::options_description described(const Command& command) {
  po::options_description options;
  const auto add = [&options](const Option& option) {
    const std::string names = option.name + (option.letter == '\0' ? "" : std::string(",") + option.letter);
    const po::value_semantic* const value =
        *option.value == '\0' ? static_cast<po::value_semantic*>(new po::untyped_value(true))
        : option.repeats
            ? static_cast<po::value_semantic*>(po::value<std::vector<std::string>>()->composing())
            : po::value<std::string>();
    options.add_options()(names.c_str(), value, "");  // options owns the value
  };
  for (const Option& option : command.options) add(option);
  add({"help", 'h', "", ""});
  for (const Positional& positional : command.positionals)
    options.add_options()(hidden(positional).c_str(), po::value<std::string>(), "");
  return options;
}

Error needs_value(const std::string& option) {
  return usage_error(formatted("option {} needs a value", single_quoted(option)));
}

Error takes_no_value(const std::string& option) {
  return usage_error(formatted("option {} takes no value", single_quoted(option)));
}

/// Returns whether a word is one of the command's options. Boost takes any word after an option for its value, but if
/// the word is an option, the value was forgotten.
bool is_option(const Command& command, const std::string& word) {
  return word == "-h" || word == "--help" ||
         std::any_of(command.options.begin(), command.options.end(), [&word](const Option& option) {
           return word == std::string("--") + option.name ||
                  (word.size() == 2 && word == std::string("-") + option.letter);
         });
}

Error unknown_option(const Command& command, const std::string& word) {
  std::vector<std::string> known{"--help"};
  for (const Option& option : command.options) known.push_back(std::string("--") + option.name);
  return usage_error(
      formatted("unknown option {}{}", single_quoted(word),
                did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()))));
}

/// Rewords an error of Boost.
Error complaint(const Command& command, const po::error& error) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    std::string name = unknown->get_option_name();
    name.resize(std::min(name.find('='), name.size()));
    return is_option(command, name) ? takes_no_value(name)
                                    : unknown_option(command, name);  // "-h=1" comes here
  }
  if (const auto* syntax = dynamic_cast<const po::invalid_command_line_syntax*>(&error)) {
    const std::string name = syntax->get_option_name();
    switch (syntax->kind()) {
      case po::invalid_syntax::missing_parameter:
      case po::invalid_syntax::empty_adjacent_parameter:
        return needs_value(name);
      case po::invalid_syntax::extra_parameter:
        return takes_no_value(name);
      default:
        break;
    }
  }
  if (dynamic_cast<const po::too_many_positional_options_error*>(&error) != nullptr)
    return usage_error("too many arguments");
  if (const auto* repeated = dynamic_cast<const po::multiple_occurrences*>(&error))
    return usage_error(formatted("option {} is given twice", single_quoted(repeated->get_option_name())));
  return usage_error(error.what());
}

/// Refuses words such as "-output", which Boost reads as -o with the value "utput".
Result<void> check_dashes(const Command& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    for (const Option& option : command.options)
      if (word == std::string("-") + option.name)
        return usage_error(formatted("unknown option {}; did you mean '-{}'?", single_quoted(word), word));
  }
  return {};
}

/// Removes the = from the value of "-o=x", which means --out=x. Boost gives the value "=x".
Result<void> drop_equals_sign(po::option& option) {
  const bool letter = !option.original_tokens.empty() && option.original_tokens.front().size() >= 3 &&
                      option.original_tokens.front()[0] == '-' && option.original_tokens.front()[1] != '-' &&
                      option.original_tokens.front()[2] == '=';
  if (!letter || option.position_key >= 0 || option.value.empty()) return {};
  option.value.front().erase(0, 1);
  return option.value.front().empty() ? Result<void>(needs_value("--" + option.string_key)) : Result<void>();
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

constexpr std::size_t kHelpWidth = 100;

std::string shown(const Option& option) {
  std::string text = option.letter == '\0' ? "    " : formatted("-{}, ", option.letter);
  text += std::string("--") + option.name;
  return *option.value == '\0' ? text : text + ' ' + option.value;
}

}  // namespace

const char* const kExitCodes =
    "Exit codes: 0 done, 1 input refused (model, rows, schedule, limits), 2 usage, 3 environment\n"
    "(absent file or device, I/O), 70 internal error.\n";

std::string Arguments::get(const std::string& name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second.front();
}

std::vector<std::string> Arguments::all(const std::string& name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector{otherwise} : found->second;
}

Result<std::uint64_t> Arguments::number(const std::string& name, std::uint64_t least, std::uint64_t most,
                                        std::uint64_t otherwise) const {
  if (!has(name)) return otherwise;
  const std::string text = get(name);
  if (const auto value = whole_number(text); value && *value >= least && *value <= most) return *value;
  return usage_error(
      formatted("--{} {}: expected a whole number from {} to {}", name, single_quoted(text), least, most));
}

Result<std::vector<std::uint64_t>> Arguments::numbers(const std::string& name, std::uint64_t least,
                                                      std::uint64_t most,
                                                      std::vector<std::uint64_t> otherwise) const {
  if (!has(name)) return otherwise;
  const std::string text = get(name);
  std::vector<std::uint64_t> values;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    const auto value = whole_number(std::string_view(text).substr(begin, end - begin));
    if (!value || *value < least || *value > most)
      return usage_error(formatted("--{} {}: expected whole numbers from {} to {}, separated by commas", name,
                                   single_quoted(text), least, most));
    values.push_back(*value);
  }
  return values;
}

Result<std::size_t> Arguments::choice(const std::string& name, std::span<const std::string_view> names,
                                      std::size_t otherwise) const {
  if (!has(name)) return otherwise;
  const std::string text = get(name);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string list;
  for (const std::string_view known : names) list += (list.empty() ? "" : ", ") + std::string(known);
  return usage_error(formatted("--{} {}: expected {}{}", name, single_quoted(text),
                               names.size() > 1 ? "one of " : "", list));
}

Result<Arguments> parse_arguments(const Command& command, const std::vector<std::string>& words) {
  const po::options_description options = described(command);
  po::positional_options_description positionals;
  for (const Positional& positional : command.positionals) positionals.add(hidden(positional).c_str(), 1);
  Arguments arguments;
  FVM_TRY(check_dashes(command, words));
  try {
    using po::command_line_style::allow_guessing;
    using po::command_line_style::unix_style;
    auto parsed = po::command_line_parser(words)
                      .options(options)
                      .positional(positionals)
                      .style(unix_style & ~allow_guessing)
                      .run();
    for (po::option& option : parsed.options) FVM_TRY(drop_equals_sign(option));
    po::variables_map values;
    po::store(parsed, values);
    for (const auto& [name, value] : values) {
      std::vector<std::string> texts(1);  // a flag has one empty text
      if (value.value().type() == typeid(std::string)) texts = {value.as<std::string>()};
      if (value.value().type() == typeid(texts)) texts = value.as<std::vector<std::string>>();
      for (const std::string& text : texts)
        if (is_option(command, text)) return needs_value("--" + name);
      arguments.values_[name.substr(name.find_first_not_of(' '))] = std::move(texts);
    }
  } catch (const po::error& error) {
    return complaint(command, error);
  }
  return arguments;
}

void append_row(std::string& to, const std::string& left, std::string_view meaning, std::size_t column) {
  std::string line = "  " + left;
  line.resize(std::max(column, line.size() + 2), ' ');
  while (line.size() + meaning.size() > kHelpWidth) {
    const std::size_t cut = meaning.rfind(' ', kHelpWidth - line.size());
    if (cut == std::string_view::npos) break;
    to += line.append(meaning.substr(0, cut)) + '\n';
    meaning.remove_prefix(cut + 1);
    line.assign(column, ' ');
  }
  to += line.append(meaning) + '\n';
}

std::string help(const Command& command) {
  std::string text = formatted("forestvm {}: {}\n\nUsage:\n", command.name, command.meaning);
  for (const char* usage : command.usages) text += std::string("  forestvm ") + usage + '\n';
  if (command.positionals.size() != 0) text += "\nArguments:\n";
  for (const Positional& row : command.positionals) append_row(text, row.name, row.meaning, 28);
  text += "\nOptions:\n";
  for (const Option& option : command.options) append_row(text, shown(option), option.meaning, 28);
  append_row(text, "-h, --help", "prints this", 28);
  if (command.notes != nullptr) text += '\n' + command.notes();
  return formatted("{}\nExample:\n{}\n{}", text, command.example, kExitCodes);
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::Refused:
      return 1;
    case ErrorCode::Usage:
      return 2;
    case ErrorCode::Environment:
      return 3;
    case ErrorCode::Internal:
      break;
  }
  return 70;
}

Error usage_error(std::string_view message) { return usage(message); }

Result<std::string> required(const Arguments& arguments, const std::string& name) {
  if (!arguments.has(name)) return usage_error(formatted("argument {} is missing", name));
  if (arguments.get(name).empty()) return usage_error(formatted("argument {} is empty", name));
  return arguments.get(name);
}

}  // namespace forestvm::cli
