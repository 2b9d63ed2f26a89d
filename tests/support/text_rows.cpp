// See text_rows.hpp.
#include "support/text_rows.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include <forestvm/internal/city_hash.hpp>

namespace forestvm::support {
namespace {

double number_of(const std::string& cell, ScalarType type) {
  if (cell.empty()) return std::numeric_limits<double>::quiet_NaN();
  char* end = nullptr;
  const double number = type == ScalarType::Float64 ? std::strtod(cell.c_str(), &end)
                                                    : static_cast<double>(std::strtof(cell.c_str(), &end));
  if (*end != '\0') throw std::runtime_error("rows: no number: " + cell);
  return number;
}

double category_of(const std::string& cell, const FeatureCategories& categories) {
  if (cell.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto& names = categories.names;
  const auto found = std::find(names.begin(), names.end(), cell);
  if (found != names.end()) return static_cast<double>(found - names.begin());
  if (!categories.unseen) throw std::runtime_error("rows: unknown category: " + cell);
  return *categories.unseen;
}

}  // namespace

std::vector<std::string> take_csv_line(const std::string& text, std::size_t& at) {
  std::vector<std::string> cells(1);
  for (bool quoted = false; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' && quoted && text.compare(at, 2, "\"\"") == 0)
      cells.back() += text[++at];
    else if (c == '"')
      quoted = !quoted;
    else if (quoted || (c != ',' && c != '\n'))
      cells.back() += c;
    else if (c == ',')
      cells.emplace_back();
    else
      return ++at, cells;
  }
  return cells;
}

std::vector<double> read_text_rows(const std::filesystem::path& file, const Model& model) {
  std::ifstream in(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  std::size_t at = 0;
  const std::vector<std::string> header = take_csv_line(text, at);
  if (header.size() != model.num_features || (!model.feature_names.empty() && header != model.feature_names))
    throw std::runtime_error("rows: other columns than the model's: " + file.string());
  std::vector<const FeatureCategories*> categories(model.num_features);
  for (const FeatureCategories& named : model.categories) categories[named.feature] = &named;
  const auto& hashed = model.hashed_features;
  const ScalarType type = model.whole_features.empty() ? model.row_type : ScalarType::Float64;
  std::vector<double> rows;
  while (at < text.size()) {
    const std::vector<std::string> cells = take_csv_line(text, at);
    if (cells.size() != categories.size())
      throw std::runtime_error("rows: a line of another width: " + cells[0]);
    for (std::uint32_t i = 0; i < cells.size(); ++i)
      rows.push_back(std::binary_search(hashed.begin(), hashed.end(), i) ? category_code(cells[i])
                     : categories[i] != nullptr ? category_of(cells[i], *categories[i])
                                                : number_of(cells[i], type));
  }
  return rows;
}

}  // namespace forestvm::support
