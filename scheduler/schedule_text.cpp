// The schedule language's text: tokens, directives, canonical print. The rows of schedule.def and
// schedule_words.def drive it; the meaning of directives is in directives/.
#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/nearest.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm {
namespace {

struct DirectiveInfo {
  DirectiveKind kind;
  std::string_view word;
  std::size_t required;
  std::span<const Parameter> parameters;
  std::string_view meaning;
};

template <Parameter... parameters>
constexpr Parameter kParameterList[] = {parameters...};

using enum Parameter;
constexpr DirectiveInfo kDirectives[] = {
#define FVM_PARAMETERS(...) kParameterList<__VA_ARGS__>
#define FVM_DIRECTIVE(Name, method, required, parameters, meaning) \
  {DirectiveKind::Name, #method, required, parameters, meaning},
#include <forestvm/internal/schedule.def>
#undef FVM_PARAMETERS
};

struct Word {
  Parameter parameter;
  std::string_view text;
};

constexpr Word kWords[] = {
#define FVM_WORD(parameter, text) {Parameter::parameter, text},
#include <forestvm/internal/schedule_words.def>
};

const DirectiveInfo& info(DirectiveKind kind) { return kDirectives[static_cast<std::size_t>(kind)]; }

std::string unknown_directive(std::string_view word) {
  std::vector<std::string_view> known;
  for (const DirectiveInfo& directive : kDirectives) known.push_back(directive.word);
  return formatted("unknown directive '{}'{}", word, did_you_mean(word, known));
}

/// Names of parameters, in the order of the enumeration.
constexpr std::string_view kParameterNames[] = {
    "loop", "loop, loop, ...", "new loop", "size", "count",     "layout",
    "code", "tiling",          "order",    "type", "dimension", "target"};

std::string signature(const DirectiveInfo& directive) {
  std::string text(directive.word);
  text += "(";
  for (std::size_t i = 0; i < directive.parameters.size(); ++i) {
    const std::string_view name = kParameterNames[static_cast<std::size_t>(directive.parameters[i])];
    text += i == 0 ? "" : ", ";
    const bool optional = i >= directive.required;
    text += (optional ? "[" : "") + std::string(name) + (optional ? "]" : "");
  }
  return text + ")";
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_identifier(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

/// Returns true if a name can be written in the text form: `name` or `outer.name`.
bool is_loop_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  return is_identifier(name.substr(0, dot)) &&
         (dot == std::string_view::npos || is_identifier(name.substr(dot + 1)));
}

/// Returns the words that a parameter takes; none if it takes loops or numbers.
std::vector<std::string_view> words_of(Parameter parameter) {
  std::vector<std::string_view> words;
  for (const Word& word : kWords) {
    const bool listed = std::find(words.begin(), words.end(), word.text) != words.end();
    if (word.parameter == parameter && !listed && is_loop_name(word.text)) words.push_back(word.text);
  }
  return words;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

/// Describes a parameter for help texts; one that takes words is described by their list.
std::string meaning_of(Parameter parameter) {
  switch (parameter) {
    case Loop:
    case Loops:
      return "batch, tree, or a loop that an earlier directive made; outer.inner is the copy of inner in outer";
    case NewLoop:
      return "a name that no loop has yet";
    case Size:
      return formatted("an integer from 1, {} or {}", kTreeCountName, kBatchSizeName);
    case Count:
      return "an integer from 1";
    case LayoutName:
    case EncodeName:
    case TilingName:
    case OrderName:
    case AccumulateName:
    case GpuDim:
    case TargetName:
      return joined(words_of(parameter));
  }
  __builtin_unreachable();  // the cases above are all parameters
}

/// Says what is wrong with an argument for a parameter; std::nullopt if nothing is.
std::optional<std::string> argument_problem(Parameter parameter, const Argument& argument) {
  const std::string shown =
      argument.is_number() ? std::to_string(argument.number()) : formatted("'{}'", argument.name());
  switch (parameter) {
    case Loop:
    case Loops:
      if (argument.is_number() || !is_loop_name(argument.name())) return "expected a loop, found " + shown;
      return std::nullopt;
    case NewLoop:
      if (argument.is_number() || !is_identifier(argument.name()))
        return "expected a name for a new loop, found " + shown;
      if (argument.name() == kTreeCountName || argument.name() == kBatchSizeName)
        return shown + " is the name of a size, not of a loop";
      return std::nullopt;
    case Size:
      if (!argument.is_number() && argument.name() != kTreeCountName && argument.name() != kBatchSizeName)
        return "expected a size (an integer, N_TREES or BATCH), found " + shown;
      [[fallthrough]];
    case Count:
      if (argument.is_number()) {
        if (argument.number() == 0) return "expected an integer from 1, found 0";
        if (argument.number() > UINT32_MAX) return shown + " is more than 4294967295";
      } else if (parameter == Count) {
        return "expected an integer, found " + shown;
      }
      return std::nullopt;
    case LayoutName:
    case EncodeName:
    case TilingName:
    case OrderName:
    case AccumulateName:
    case GpuDim:
    case TargetName:
      break;
  }
  const std::vector<std::string_view> known = words_of(parameter);
  if (!argument.is_number() && std::find(known.begin(), known.end(), argument.name()) != known.end())
    return std::nullopt;
  return formatted("expected one of {}, found {}", joined(known), shown);
}

/// Returns the parameter that argument number i fills; the last parameter of a list of loops repeats.
Parameter parameter_at(const DirectiveInfo& directive, std::size_t i) {
  return directive.parameters[std::min(i, directive.parameters.size() - 1)];
}

std::optional<std::string> count_problem(const DirectiveInfo& directive, std::size_t count) {
  const bool list = directive.parameters.back() == Loops;
  if (count >= directive.required && (list || count <= directive.parameters.size())) return std::nullopt;
  return formatted("expected {}, found {}{}", signature(directive), count,
                   count == 1 ? " argument" : " arguments");
}

/// Reads the text, one character at a time, keeping line and column.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Schedule> run() {
    Schedule schedule;
    for (;;) {
      skip_separators();
      if (at_end()) return schedule;
      FVM_ASSIGN(Directive directive, parse_directive());
      if (directive.kind == DirectiveKind::Plan) directive.remark = take_remark();
      schedule.directives.push_back(std::move(directive));
      skip_blanks();
      if (!at_end() && peek() != ';' && peek() != '\n')
        return wrong(location_, "expected ';' or a new line after the directive, found " + shown());
    }
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return text_[at_]; }
  void advance() {
    location_ = peek() == '\n' ? SourceLocation{location_.line + 1, 1}
                               : SourceLocation{location_.line, location_.column + 1};
    ++at_;
  }

  std::string shown() const {
    if (at_end()) return "the end";
    if (peek() == '\n') return "the end of the line";
    const auto byte = static_cast<unsigned char>(peek());
    if (byte < 32 || byte > 126) return formatted("byte {}", byte);
    return formatted("'{}'", peek());
  }

  static Error wrong(SourceLocation location, std::string_view what) {
    return refused(formatted("line {}, column {}", location.line, location.column), what);
  }

  void skip_comment() {
    if (!at_end() && peek() == '#')
      while (!at_end() && peek() != '\n') advance();
  }

  void skip_spaces() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) advance();
  }

  void skip_blanks() {
    skip_spaces();
    skip_comment();
  }

  /// Takes a comment behind a directive. Returns its text without the spaces around it; empty if there is none.
  std::string take_remark() {
    skip_spaces();
    const std::size_t begin = at_;
    skip_comment();
    std::string_view text = text_.substr(begin, at_ - begin);
    const std::size_t first = text.find_first_not_of("# \t\r");
    if (first == std::string_view::npos) return {};
    return std::string(text.substr(first, text.find_last_not_of(" \t\r") + 1 - first));
  }

  void skip_separators() {
    for (skip_blanks(); !at_end() && (peek() == ';' || peek() == '\n'); skip_blanks()) advance();
  }

  std::string_view take_name() {
    const std::size_t begin = at_;
    while (!at_end() && (is_letter(peek()) || is_digit(peek()))) advance();
    return text_.substr(begin, at_ - begin);
  }

  Result<void> expect(char c) {
    skip_blanks();
    if (at_end() || peek() != c) return wrong(location_, formatted("expected '{}', found {}", c, shown()));
    advance();
    return {};
  }

  Result<Argument> parse_argument() {
    skip_blanks();
    if (!at_end() && is_digit(peek())) {
      const SourceLocation begin = location_;
      const std::string_view digits = take_name();
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (end != digits.data() + digits.size())
        return wrong(begin, formatted("'{}' is not an integer", digits));
      if (error != std::errc()) return wrong(begin, formatted("{} is more than {}", digits, UINT32_MAX));
      return Argument(value);
    }
    if (at_end() || !is_letter(peek())) return wrong(location_, "expected an argument, found " + shown());
    std::string name(take_name());
    if (!at_end() && peek() == '.') {
      advance();
      if (at_end() || !is_letter(peek()))
        return wrong(location_, "expected a name after '.', found " + shown());
      name += "." + std::string(take_name());
    }
    return Argument(std::move(name));
  }

  Result<Directive> parse_directive() {
    const SourceLocation begin = location_;
    if (!is_letter(peek())) return wrong(begin, "expected a directive, found " + shown());
    const std::string_view word = take_name();
    const auto* row = std::find_if(std::begin(kDirectives), std::end(kDirectives),
                                   [&](const DirectiveInfo& directive) { return directive.word == word; });
    if (row == std::end(kDirectives)) return wrong(begin, unknown_directive(word));
    Directive directive{row->kind, {}, begin};
    FVM_TRY(expect('('));
    skip_blanks();
    if (!at_end() && peek() == ')') {
      advance();
    } else {
      for (bool more = true; more;) {
        skip_blanks();
        const SourceLocation location = location_;
        FVM_ASSIGN(Argument argument, parse_argument());
        if (const auto problem = argument_problem(parameter_at(*row, directive.arguments.size()), argument);
            problem && !too_many(*row, directive.arguments.size()))
          return wrong(location, *problem);
        directive.arguments.push_back(std::move(argument));
        skip_blanks();
        more = !at_end() && peek() == ',';
        if (more)
          advance();
        else
          FVM_TRY(expect(')'));
      }
    }
    if (const auto problem = count_problem(*row, directive.arguments.size())) return wrong(begin, *problem);
    return directive;
  }

  /// Returns true if the argument is one too many: then the error is about the count, not about the argument.
  static bool too_many(const DirectiveInfo& directive, std::size_t index) {
    return index >= directive.parameters.size() && directive.parameters.back() != Loops;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  SourceLocation location_{1, 1};
};

}  // namespace

Result<Schedule> parse_schedule(std::string_view text) { return Parser(text).run(); }

std::vector<LanguageRow> directive_rows() {
  std::vector<LanguageRow> rows;
  for (const DirectiveInfo& directive : kDirectives)
    rows.push_back({signature(directive), std::string(directive.meaning)});
  return rows;
}

std::vector<LanguageRow> parameter_rows() {
  std::vector<LanguageRow> rows;
  for (std::size_t i = 0; i < std::size(kParameterNames); ++i)
    if (static_cast<Parameter>(i) != Loops)
      rows.push_back({std::string(kParameterNames[i]), meaning_of(static_cast<Parameter>(i))});
  return rows;
}

Result<void> check_schedule(const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.directives.size(); ++i) {
    const Directive& directive = schedule.directives[i];
    const DirectiveInfo& row = info(directive.kind);
    if (const auto problem = count_problem(row, directive.arguments.size()))
      return refused(location_of(schedule, i), *problem);
    for (std::size_t k = 0; k < directive.arguments.size(); ++k)
      if (const auto problem = argument_problem(parameter_at(row, k), directive.arguments[k]))
        return refused(location_of(schedule, i), *problem);
  }
  return {};
}

std::string print(const Directive& directive) {
  std::string text(info(directive.kind).word);
  text += "(";
  for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
    const Argument& argument = directive.arguments[i];
    text +=
        (i == 0 ? "" : ", ") + (argument.is_number() ? std::to_string(argument.number()) : argument.name());
  }
  return text + ")";
}

std::string print(const Schedule& schedule) {
  std::string text;
  for (const Directive& directive : schedule.directives)
    text += formatted("{}{}\n", print(directive), directive.remark.empty() ? "" : "  # " + directive.remark);
  return text;
}

std::string location_of(const Schedule& schedule, std::size_t directive) {
  const SourceLocation location = schedule.directives[directive].location;
  if (location.line == 0) return formatted("directive {}", directive + 1);
  return formatted("line {}, column {}", location.line, location.column);
}

}  // namespace forestvm
