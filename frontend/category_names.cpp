// See category_names.hpp.
#include "category_names.hpp"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "file_text.hpp"

namespace forestvm::frontend {

Result<void> add_category_names(std::uint32_t feature, std::vector<std::string> names,
                                std::optional<double> unseen, const std::string& where, Model& model) {
  if (names.empty()) return {};
  std::unordered_set<std::string_view> known;
  for (const std::string& name : names)
    if (!known.insert(name).second)
      return refused(
          where, "two categories of feature " + std::to_string(feature) + " have the name " + quoted(name));
  model.categories.push_back({feature, std::move(names), unseen});
  return {};
}

}  // namespace forestvm::frontend
