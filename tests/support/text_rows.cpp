// See text_rows.hpp.
#include "support/text_rows.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace forestvm::support {
namespace {

template <class Number>
Number number_of(const std::string& cell, const FeatureCategories* categories) {
  if (cell.empty()) return std::numeric_limits<Number>::quiet_NaN();
  if (categories == nullptr) {
    char* end = nullptr;
    const Number number = sizeof(Number) == sizeof(float)
                              ? static_cast<Number>(std::strtof(cell.c_str(), &end))
                              : static_cast<Number>(std::strtod(cell.c_str(), &end));
    if (*end != '\0') throw std::runtime_error("rows: no number: " + cell);
    return number;
  }
  const auto& names = categories->names;
  const auto found = std::find(names.begin(), names.end(), cell);
  if (found != names.end()) return static_cast<Number>(found - names.begin());
  if (!categories->unseen) throw std::runtime_error("rows: unknown category: " + cell);
  return static_cast<Number>(*categories->unseen);
}

}  // namespace

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

template <class Number>
std::vector<Number> read_text_rows(const std::filesystem::path& file, const Model& model) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line) || cells_of(line) != model.feature_names)
    throw std::runtime_error("rows: other columns than the model's: " + file.string());
  std::vector<const FeatureCategories*> categories(model.num_features);
  for (const FeatureCategories& named : model.categories) categories[named.feature] = &named;
  std::vector<Number> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != categories.size()) throw std::runtime_error("rows: a line of another width: " + line);
    for (std::size_t i = 0; i < cells.size(); ++i) rows.push_back(number_of<Number>(cells[i], categories[i]));
  }
  return rows;
}

template std::vector<float> read_text_rows(const std::filesystem::path& file, const Model& model);
template std::vector<double> read_text_rows(const std::filesystem::path& file, const Model& model);

}  // namespace forestvm::support
