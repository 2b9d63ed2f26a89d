// See category_names.hpp.
#include "frontend/category_names.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

/// Returns a name that the list has twice, if there is one.
std::optional<std::string_view> repeated(const std::vector<std::string>& names) {
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  return twice == sorted.end() ? std::nullopt : std::optional(*twice);
}

}  // namespace

bool append_name(std::vector<std::string>& names, std::string name) {
  names.push_back(std::move(name));
  constexpr std::size_t few = 1024;
  return names.size() < few || !std::has_single_bit(names.size()) || !repeated(names);
}

Result<void> add_category_names(std::uint32_t feature, std::vector<std::string> names,
                                std::optional<double> unseen, const std::string& where, Model& model) {
  if (names.empty()) return {};
  if (const auto twice = repeated(names))
    return refused(where, "two categories of feature {} have the name {}", feature, in_quotes(*twice));
  model.categories.push_back({feature, std::move(names), unseen});
  return {};
}

}  // namespace forestvm::frontend
