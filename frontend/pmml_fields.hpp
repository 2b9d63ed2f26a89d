// Collects the fields of a PMML document. In: the fields that its DataDictionary declares, those that its models use,
// and those that are derived. Out: for each name in a predicate, the column of a row and how its values compare.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>

#include "frontend/pmml_function.hpp"
#include "frontend/xml_events.hpp"

namespace forestvm::frontend {

/// The ways in which the values of a field compare.
enum class PmmlKind : std::uint8_t {
  Float,     ///< A number that is rounded to float32 before it is compared.
  Double,    ///< A number.
  Integer,   ///< A whole number.
  Category,  ///< One of the categories of a field.
};

/// The categories of a field. Category 0 stands for all values that are not listed; the others are numbered in order.
struct PmmlCategories {
  bool numbers = false;        ///< True if rows hold the categories as whole numbers, otherwise as texts.
  bool truths = false;         ///< True if the categories are false and true, which rows may hold as 0 and 1.
  bool declared = false;       ///< True if the dictionary lists all valid categories.
  bool other_missing = false;  ///< True if values that are not listed count as missing.
  bool other_possible = true;  ///< True if rows with values that are not listed have an answer.
  bool other_invalid = false;  ///< True if rows may hold other numbers, and then have no answer.
  std::vector<std::string> names;    ///< Names of the categories from 1 on, unless `numbers`.
  std::vector<std::uint32_t> codes;  ///< Codes of the categories from 1 on, in rows.
  std::unordered_map<std::string, std::uint32_t> numbers_of;  ///< Categories by name.

  std::uint32_t count() const { return static_cast<std::uint32_t>(codes.size()) + 1; }
};

/// The numbers between two cuts.
struct PmmlInterval {
  Cut low, high;
};

/// A name that predicates may use.
struct PmmlField {
  std::uint32_t feature = 0;  ///< Column of a row.
  PmmlKind kind = PmmlKind::Double;
  std::uint32_t categories = 0;  ///< Index in PmmlFields::categories (Category).
  /// The number or the category by which a missing value is replaced.
  std::optional<double> replacement;
  std::optional<PmmlInterval> valid;  ///< Other numbers are not valid.
  /// True if such numbers count as missing; otherwise rows with them have no answer.
  bool others_missing = false;
  std::vector<double> missing;  ///< Other numbers that count as missing, ascending.
  /// Number of the field from which this one is computed; nothing if rows hold the field. Trees do not test such
  /// fields: see pmml_derived.hpp.
  std::optional<std::uint32_t> source;
  std::uint32_t function = 0;  ///< Index in PmmlFields::functions.
};

/// Collects the fields while a document is read. Messages call the place of an element `where`.
class PmmlFields {
 public:
  explicit PmmlFields(const LoadLimits& limits) : limits_(limits) {}

  // These take the elements of the document, in its order.
  Result<void> begin_data_field(const XmlAttributes& attributes, const std::string& where);
  Result<void> add_value(const XmlAttributes& attributes, const std::string& where);
  Result<void> add_interval(const XmlAttributes& attributes, const std::string& where);
  Result<void> begin_derived_field(const XmlAttributes& attributes, const std::string& where);
  /// Takes the expression of the derived field; nothing stands for one that has too many elements.
  Result<void> set_expression(const std::optional<PmmlElement>& expression, const std::string& where);
  /// Takes a field of the outermost model, or of one inside it, which may only repeat it.
  Result<void> add_mining_field(const XmlAttributes& attributes, bool outermost, const std::string& where);

  /// Returns the number of the field that a predicate calls `name`.
  Result<std::uint32_t> find(std::string_view name, const std::string& where);
  /// Returns the category of a field that a predicate calls `text`; 0 if no row can be of it.
  Result<std::uint32_t> category(const PmmlField& field, std::string_view text, const std::string& where);

  const PmmlField& field(std::uint32_t number) const { return fields_[number]; }
  const PmmlCategories& categories(const PmmlField& field) const { return categories_[field.categories]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(fields_.size()); }
  /// Returns the steps by which a field is computed from its source.
  PmmlSteps function(const PmmlField& field) const { return functions_[field.function].steps; }
  /// Returns the values that such a field's table has for the categories of its source that were known when the field
  /// was first tested, by category.
  const std::vector<std::optional<double>>& table(const PmmlField& field) const {
    return functions_[field.function].table;
  }
  /// Counts work that visits `categories` categories. Returns false once all of it together exceeds kMaxVisits.
  bool may_visit(std::size_t categories) {
    visits_ += categories;
    return visits_ <= kMaxVisits;
  }

  /// Returns the valid categories of the outermost model's target, in the dictionary's order; none if it has none.
  const std::vector<std::string>& target_categories() const;
  /// Returns the type of a target as the dictionary has it, such as "double"; "" if the model has no target.
  std::string_view target_type() const;
  bool is_declared(std::string_view name) const { return data_numbers_.contains(std::string(name)); }
  std::string_view type_of(std::string_view name) const {
    return data_fields_[data_numbers_.at(std::string(name))].type;
  }

  /// Writes the features' number and names, and the names of their categories.
  Result<void> add_features(Model& model) const;

 private:
  struct DataField {
    std::string name, optype, type;
    std::vector<std::string> values;  ///< Valid values.
    std::vector<double> missing;      ///< Numbers that count as missing.
    std::optional<PmmlInterval> interval;
    std::string refused;  ///< The reason why no model may use the field; empty if one may.
  };
  struct DerivedField {
    PmmlFunction function;
    std::string type;
    std::string refused;  ///< The reason why no predicate may use the derived field; empty if one may.
    bool has_expression = false;
  };
  struct Feature {
    std::string name;
    std::uint32_t categories = UINT32_MAX;
    std::string refused;  ///< The reason why no predicate may test the feature; empty if one may.
  };

  /// The most visits of categories by the predicates on all tables, which take about a tenth of a second.
  static constexpr std::size_t kMaxVisits = std::size_t{1} << 24;

  /// A function of a field.
  struct Function {
    std::vector<const PmmlStep*> steps;  ///< Steps of derived_, and others that are constants.
    std::vector<std::optional<double>> table;
  };

  Result<void> fill_table(const PmmlField& source, Function& function, const std::string& where);
  Result<void> add_feature(const DataField& data, const XmlAttributes& attributes, const std::string& where);
  Result<void> set_kind(const DataField& data, PmmlField& field, Feature& feature);
  Result<void> set_treatments(const DataField& data, const XmlAttributes& attributes, PmmlField& field,
                              Feature& feature, const std::string& where);
  Result<std::uint32_t> add_cast(std::string_view name, std::uint32_t number, const std::string& where);
  Result<std::uint32_t> add_computed(std::string_view name, std::uint32_t number,
                                     const std::vector<const DerivedField*>& chain, const std::string& where);
  static Result<std::uint32_t> add_category(PmmlCategories& categories, std::string_view text,
                                            const std::string& where);

  const LoadLimits& limits_;
  std::vector<DataField> data_fields_;
  std::unordered_map<std::string, std::size_t> data_numbers_;
  std::unordered_map<std::string, DerivedField> derived_;
  std::string derived_name_;  ///< The derived field that is being read.
  std::vector<Feature> features_;
  std::vector<PmmlField> fields_;  ///< Fields of the features, then derived ones that predicates use.
  std::vector<Function> functions_;
  std::size_t visits_ = 0;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<PmmlCategories> categories_;
  std::size_t target_ = SIZE_MAX;
};

}  // namespace forestvm::frontend
