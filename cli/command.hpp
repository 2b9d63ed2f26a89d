// Describes a subcommand of forestvm as data, and reads and checks the arguments that its function gets. Boost splits
// the command line. The tables of options make both the parser and the help text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/names.hpp>
#include <forestvm/result.hpp>

namespace forestvm::cli {

/// The values that shells offer when they complete an option or argument: names that are known in advance, and files.
struct Values {
  std::vector<std::string_view> (*names)() = nullptr;
  bool files = false;
};
inline constexpr Values kFiles{nullptr, true};

/// The largest value of --threads.
inline constexpr std::uint64_t kMaxThreads = 4096;
/// The largest value of --batch, in rows, for bench and tune.
inline constexpr std::uint64_t kMaxBatch = std::uint64_t{1} << 24;

/// Returns the names of an enumeration's values, in their order.
template <class Enum>
std::vector<std::string_view> names_of() {
  std::vector<std::string_view> names;
  while (name_of(static_cast<Enum>(names.size())) != "?")
    names.push_back(name_of(static_cast<Enum>(names.size())));
  return names;
}

/// Returns the names in a constant array.
template <const auto& names>
std::vector<std::string_view> listed() {
  return {std::begin(names), std::end(names)};
}

/// An option: "--name VALUE", or a flag when `value` is empty.
struct Option {
  const char* name;
  char letter;  ///< Letter of the short form; '\0' if there is none.
  const char* value;
  const char* meaning;
  Values values{};
  bool repeats = false;  ///< True if the option may be given several times.
};

/// An argument without a dash.
struct Positional {
  const char* name;
  const char* meaning;
  Values values = kFiles;
};

/// The options and arguments of a command line, as text.
class Arguments {
 public:
  bool has(const std::string& name) const { return values_.contains(name); }
  /// Returns the value of an option or positional; `otherwise` if it was not given.
  std::string get(const std::string& name, const std::string& otherwise = {}) const;

  /// Returns the values of an option that may be given several times, in their order; `otherwise` if there are none.
  std::vector<std::string> all(const std::string& name, const std::string& otherwise) const;

  /// Returns a whole number from `least` to `most`. Any other text is a Usage error.
  Result<std::uint64_t> number(const std::string& name, std::uint64_t least, std::uint64_t most,
                               std::uint64_t otherwise) const;
  /// Returns whole numbers from `least` to `most`, separated by commas. Any other text is a Usage error.
  Result<std::vector<std::uint64_t>> numbers(const std::string& name, std::uint64_t least, std::uint64_t most,
                                             std::vector<std::uint64_t> otherwise) const;
  /// Returns the index of the value among `names`. Any other text is a Usage error, which lists them.
  Result<std::size_t> choice(const std::string& name, std::span<const std::string_view> names,
                             std::size_t otherwise) const;
  /// Returns the enumerator that the value names. Any other text is a Usage error, which lists the names.
  template <class Enum>
  Result<Enum> choice(const std::string& name, Enum otherwise) const {
    FVM_ASSIGN(const std::size_t index, choice(name, names_of<Enum>(), static_cast<std::size_t>(otherwise)));
    return static_cast<Enum>(index);
  }

 private:
  friend Result<Arguments> parse_arguments(const struct Command& command,
                                           const std::vector<std::string>& words);
  std::map<std::string, std::vector<std::string>> values_;  // A flag has an empty value.
};

/// A subcommand. It has initializer lists instead of vectors, because constants need no allocation, and an allocation
/// that failed before main could not be reported.
struct Command {
  const char* name;
  const char* meaning;                        ///< Description in one line.
  std::initializer_list<const char*> usages;  ///< Usage lines without the leading "forestvm "
  std::initializer_list<Positional> positionals;
  std::initializer_list<Option> options;  ///< All options but --help, which every command has.
  const char* example;                    ///< Lines that can be typed as they are.
  std::string (*notes)();                 ///< Returns the last part of the help text; may be null.
  Result<void> (*run)(const Arguments& arguments);
};

/// Splits the words after the subcommand's name. Usage errors are an unknown or repeated option, a missing value, and
/// too many positionals. Absent positionals are no error here: the command decides whether it needs them.
Result<Arguments> parse_arguments(const Command& command, const std::vector<std::string>& words);

std::string help(const Command& command);

/// Appends "  left   meaning", the meaning wrapped at its column.
void append_row(std::string& to, const std::string& left, std::string_view meaning, std::size_t column);

/// The exit codes, with which every help text ends.
extern const char* const kExitCodes;

/// Returns the process's exit code for an error.
int exit_code(ErrorCode code);

/// Returns a usage error; its message should name the option.
Error usage_error(std::string_view message);

/// Returns a positional's value, or a usage error that names the missing argument.
Result<std::string> required(const Arguments& arguments, const std::string& name);

}  // namespace forestvm::cli
