// Describes the columns that a program computes from a row's features.
#include <bit>
#include <charconv>
#include <span>
#include <string>

#include <forestvm/core/derived_columns.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

namespace forestvm {
namespace {

std::string feature_text(std::uint32_t feature) { return formatted("f{}", feature); }

std::string number_text(float number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string part_text(const KeyPart& part) {
  const auto border = [&] { return number_text(std::bit_cast<float>(part.operand)); };
  switch (part.kind) {
    case KeyPartKind::Category:
      return feature_text(part.feature);
    case KeyPartKind::Above:
      return formatted("{} > {}", feature_text(part.feature), border());
    case KeyPartKind::AboveOrNan:
      return formatted("{} > {} or NaN", feature_text(part.feature), border());
    case KeyPartKind::HasCode:
      return formatted("{} == {}", feature_text(part.feature), std::bit_cast<std::int32_t>(part.operand));
  }
  return "";
}

std::string product_text(const ColumnTerm& term) {
  return formatted("{} * {}", number_text(term.first), feature_text(term.feature));
}

std::string column_text(const ColumnTerm& term) { return feature_text(term.feature); }

template <class Record, class Text>
std::string list_text(std::span<const Record> records, const char* between, const Text& text_of) {
  std::string text;
  for (const Record& record : records) text += (text.empty() ? "" : between) + text_of(record);
  return text;
}

}  // namespace

std::string computed_column_text(ColumnKind kind, std::span<const ColumnTerm> terms) {
  const auto list = [&] { return list_text(terms, ", ", column_text); };
  const auto x = [&](std::size_t term) { return feature_text(terms[term].feature); };
  const auto a = [&] { return number_text(terms[0].first); };
  const auto b = [&] { return number_text(terms[0].second); };
  switch (kind) {
    case ColumnKind::Sum:
      return list_text(terms, " + ", product_text);
    case ColumnKind::SumReplaced:
      return list_text(terms, " + ", product_text) + ", missing values replaced";
    case ColumnKind::Scaled:
      return formatted("({} - {}) * {}", x(0), a(), b());
    case ColumnKind::Divided:
      return formatted("{} / {}", x(0), a());
    case ColumnKind::Replaced:
      return formatted("{}, with {} in place of {}", x(0), b(), a());
    case ColumnKind::Clipped:
      return formatted("{} from {} to {}", x(0), a(), b());
    case ColumnKind::SizeSum:
      return "sum of the sizes of " + list();
    case ColumnKind::SquareSum:
      return "sum of the squares of " + list();
    case ColumnKind::Largest:
      return "largest of " + list();
    case ColumnKind::Share:
      return formatted("{} / {}", x(0), x(1));
    case ColumnKind::RootShare:
      return formatted("square root of {} squared / {}, with the sign of {}", x(0), x(1), x(0));
  }
  return "";
}

std::vector<std::string> derived_column_texts(const Program& program) {
  std::vector<std::string> texts;
  const auto lookups = program.lookups();
  for (std::size_t i = 0; i < lookups.size(); ++i) {
    const auto parts = program.key_parts().subspan(lookups[i].first_part, lookups[i].part_count);
    const std::string lookup = formatted("lookup {} of {} in {} slots, value ", i,
                                         list_text(parts, ", ", part_text), lookups[i].slot_count);
    for (std::uint32_t value = 0; value < lookups[i].width; ++value)
      texts.push_back(lookup + std::to_string(value));
  }
  for (const ComputedDesc& column : program.computed_columns())
    texts.push_back(computed_column_text(
        column.kind, program.column_terms().subspan(column.first_term, column.term_count)));
  return texts;
}

}  // namespace forestvm
