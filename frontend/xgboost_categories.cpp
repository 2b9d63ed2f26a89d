// See xgboost_categories.hpp.
#include "frontend/xgboost_categories.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "frontend/category_names.hpp"

namespace forestvm::frontend {
namespace {

using Names = std::vector<std::string>;

/// Cuts the bytes into texts. Returns no names if a byte is not ASCII.
Result<Names> texts_of(const XgboostCategories& column, const std::string& where) {
  const auto size = static_cast<std::int64_t>(column.values.size());
  if (!std::is_sorted(column.offsets.begin(), column.offsets.end()) || column.offsets.front() != 0 ||
      column.offsets.back() > size)
    return refused(where + ".offsets", "they do not ascend from 0 to at most the {} bytes", size);
  std::string bytes;
  for (const std::int64_t byte : column.values) {
    if (byte < -128 || byte > 255) return refused(where + ".values", "{} is not a byte", byte);
    if (byte < 0 || byte > 127) return Names{};
    bytes += static_cast<char>(byte);
  }
  Names names;
  for (std::size_t i = 1; i < column.offsets.size(); ++i) {
    const auto begin = static_cast<std::size_t>(column.offsets[i - 1]);
    const auto end = static_cast<std::size_t>(column.offsets[i]);
    if (!append_name(names, bytes.substr(begin, end - begin))) break;  // add_category_names refuses repeats
  }
  return names;
}

Names integers_of(const XgboostCategories& column) {
  Names names;
  for (const std::int64_t value : column.values)
    if (!append_name(names, std::to_string(value))) break;  // add_category_names refuses repeats
  return names;
}

}  // namespace

Result<void> add_xgboost_categories(const std::vector<XgboostCategories>& columns, const std::string& path,
                                    Model& model) {
  if (columns.empty()) return {};
  const std::string list = path + ".cats.enc";
  if (columns.size() != model.num_features)
    return refused(list, "{} columns for {} features", columns.size(), model.num_features);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string where = formatted("{}[{}]", list, i);
    Names names;
    if (columns[i].offsets.empty()) {
      names = integers_of(columns[i]);
    } else {
      FVM_ASSIGN(names, texts_of(columns[i], where));
    }
    FVM_TRY(add_category_names(static_cast<std::uint32_t>(i), std::move(names), {}, where, model));
  }
  return {};
}

}  // namespace forestvm::frontend
