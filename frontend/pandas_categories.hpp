// Sets Model::categories from the categories of a pandas data frame's columns, which LightGBM's Python package stores
// in its models as a list of lists.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/json_events.hpp"
#include "frontend/lightgbm_text.hpp"

namespace forestvm::frontend {

/// Receives a JSON value, null or a list of lists, and collects each list's members as texts: a string as it is, a
/// number as the document writes it, and a boolean as Python does (True, False).
class PandasCategories final : public EventSink {
 public:
  bool on_null() override;
  bool on_flag(bool value) override { return add(value ? "True" : "False"); }
  bool on_integer(std::int64_t value) override { return add(std::to_string(value)); }
  bool on_real(double value, std::string_view text) override;
  bool on_text(std::string& value) override { return add(std::move(value)); }
  bool on_key(const std::string&) override { return wrong("an object"); }
  bool on_object_begin() override { return wrong("an object"); }
  bool on_object_end() override { return wrong("an object"); }
  bool on_array_begin() override;
  bool on_array_end() override;
  Error error() const override { return error_; }
  std::string path() const override;

  /// Returns true after the whole value.
  bool done() const { return done_; }
  std::vector<std::vector<std::string>>& lists() { return lists_; }

 private:
  bool add(std::string name);
  bool wrong(const std::string& found);

  std::vector<std::vector<std::string>> lists_;
  std::size_t depth_ = 0;
  bool done_ = false;
  Error error_;
};

/// Adds the lists of header.pandas_categorical, or of header.pandas_lists, to the model, whose features are read. The
/// file does not say which feature a list belongs to. If there are as many lists as categorical features, they belong
/// to these in their order. Otherwise no feature gets names; ordered categories, which LightGBM takes as numbers, cause
/// this. A text that is not a category of its feature counts as missing.
Result<void> add_pandas_categories(const LightgbmHeader& header, const LoadLimits& limits, Model& model);

}  // namespace forestvm::frontend
