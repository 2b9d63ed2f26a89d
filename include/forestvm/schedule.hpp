// The Schedule: an ordered list of directives over index variables, as data. It is written in C++ with the
// methods below or as text (parse_schedule); parse(print(s)) == s. What a directive means is decided by the
// compiler, not here. Source: SilvanForge, section 3; docs/schedules.md describes the text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm {

/// The directives, one for each row of schedule.def.
enum class DirectiveKind : std::uint8_t {
#define FVM_DIRECTIVE(Name, method, required, parameters, meaning) Name,
#include <forestvm/internal/schedule.def>
};

/// The kinds of arguments that directives take.
enum class Parameter : std::uint8_t {
  Loop,     ///< A loop of the nest; `outer.inner` names the copy of `inner` inside `outer`.
  Loops,    ///< Two or more loops.
  NewLoop,  ///< A name that is not used yet.
  Size,     ///< An integer from 1, or N_TREES or BATCH.
  Count,    ///< An integer from 1.
  LayoutName,
  EncodeName,
  TilingName,
  OrderName,
  AccumulateName,
  GpuDim,
  TargetName,
};

/// The names of sizes that become known when a model is compiled or a batch arrives.
inline constexpr std::string_view kTreeCountName = "N_TREES";
inline constexpr std::string_view kBatchSizeName = "BATCH";

/// An argument: an integer, or a name (`b0`), possibly with a member (`grid.x`).
struct Argument {
  std::variant<std::uint64_t, std::string> value;

  Argument(std::string name) : value(std::move(name)) {}
  Argument(const char* name) : value(std::string(name)) {}
  Argument(std::string_view name) : value(std::string(name)) {}
  template <class Integer>
  requires std::is_integral_v<Integer> Argument(Integer number) : value(static_cast<std::uint64_t>(number)) {}

  bool is_number() const { return value.index() == 0; }
  std::uint64_t number() const { return std::get<0>(value); }
  const std::string& name() const { return std::get<1>(value); }
  bool operator==(const Argument&) const = default;
};

/// A line and column of a schedule's text, counted from 1; zero when it was built in C++.
struct SourceLocation {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Directive {
  DirectiveKind kind;
  std::vector<Argument> arguments;
  SourceLocation location;
  /// The reason for which a plan was chosen: the comment behind a plan directive. Other directives have none.
  std::string remark{};

  /// Compares what the directives say, not their locations and remarks.
  bool operator==(const Directive& other) const { return kind == other.kind && arguments == other.arguments; }
};

class Schedule {
 public:
  std::vector<Directive> directives;

  // The builder: schedule.tile("batch", "b0", "b1", 64).reorder("b0", "tree", "b1").parallel("b0").
#define FVM_DIRECTIVE(Name, method, required, parameters, meaning)                                          \
  template <class... Arguments>                                                                             \
  Schedule& method(Arguments&&... arguments) {                                                              \
    directives.push_back({DirectiveKind::Name, {Argument(std::forward<Arguments>(arguments))...}, {}, {}}); \
    return *this;                                                                                           \
  }
#include <forestvm/internal/schedule.def>

  bool operator==(const Schedule&) const = default;
};

/// Reads the text form. Refused with "line L, column C" for a wrong character, an unknown directive (the
/// error names the nearest known one), and a wrong number or kind of arguments.
Result<Schedule> parse_schedule(std::string_view text);

/// A line of the help on the language: a form, and its meaning.
struct LanguageRow {
  std::string form;
  std::string meaning;
};

/// Returns a row for each directive, such as "tile(loop, new loop, new loop, size)".
std::vector<LanguageRow> directive_rows();

/// Returns a row for each kind of argument, such as "size" or "layout".
std::vector<LanguageRow> parameter_rows();

/// Checks each directive's arguments against its row, as schedules built in C++ need.
Result<void> check_schedule(const Schedule& schedule);

/// Returns the canonical text: one directive per line, one space after commas, remarks as comments.
std::string print(const Schedule& schedule);
std::string print(const Directive& directive);

/// Returns the place of a directive for messages: "line 3, column 5", or "directive 2" if it was built in
/// C++.
std::string location_of(const Schedule& schedule, std::size_t directive);

}  // namespace forestvm
