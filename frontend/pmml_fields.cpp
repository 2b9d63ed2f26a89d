// See pmml_fields.hpp.
#include "frontend/pmml_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/category_names.hpp"

namespace forestvm::frontend {
namespace {

/// The most categories of one field. Trees keep sets of them while they are read.
constexpr std::size_t kMaxFieldCategories = 65'536;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string text_of(std::optional<std::string_view> text) { return std::string(text.value_or("")); }

/// Returns an attribute that must be there.
Result<std::string_view> required(const XmlAttributes& attributes, const char* name,
                                  const std::string& where) {
  if (const auto found = attributes.find(name)) return *found;
  return refused(where, "no attribute \"{}\"", name);
}

/// Moves a cut to a number of the field's type, so that the cut separates the numbers of that type as before.
Cut cut_of(const Cut& cut, PmmlKind kind) {
  if (!std::isfinite(cut.number) || kind == PmmlKind::Double) return cut;
  if (kind == PmmlKind::Integer)
    return {cut.after ? std::floor(cut.number) : std::ceil(cut.number) - 1, true};
  const auto number = static_cast<double>(static_cast<float>(cut.number));
  if (number == cut.number) return cut;
  return {number, number < cut.number};
}

/// A float32 number above all numbers of a field of integers, which have 32 bits.
constexpr double kAboveIntegers = 0x1p31;

/// Returns whether rows may hold a number in a field of integers.
bool is_integer(double number) { return number == std::floor(number) && std::abs(number + 0.5) < 0x1p31; }

/// Returns whether a step gives one of a few values, which may be of any type.
bool gives_names(PmmlStepKind kind) {
  return kind == PmmlStepKind::IsMissing || kind == PmmlStepKind::IsPresent || kind == PmmlStepKind::Bins ||
         kind == PmmlStepKind::Map;
}

PmmlStep constant_step(PmmlStepKind kind) {
  PmmlStep step;
  step.kind = kind;
  return step;
}

const PmmlStep kRound = constant_step(PmmlStepKind::Round);
const PmmlStep kIsMissing = constant_step(PmmlStepKind::IsMissing);
const PmmlStep kIsPresent = constant_step(PmmlStepKind::IsPresent);

/// Returns whether `own` is an indicator of the truth value that `steps` give. If so, changes the last step so that it
/// gives the indicator.
bool indicates(const std::vector<PmmlStep>& own, std::vector<const PmmlStep*>& steps) {
  const bool table = own.size() == 1 && own[0].kind == PmmlStepKind::Map && own[0].table.size() == 1;
  if (!table || own[0].otherwise != 0 || steps.empty()) return false;
  const PmmlStepKind kind = steps.back()->kind;
  if (kind != PmmlStepKind::IsMissing && kind != PmmlStepKind::IsPresent) return false;
  const auto& [text, value] = own[0].table.front();
  if (value != 1 || (text != "true" && text != "false")) return false;
  const bool missing = (kind == PmmlStepKind::IsMissing) == (text == "true");
  steps.back() = missing ? &kIsMissing : &kIsPresent;
  return true;
}

bool is_numeric(std::string_view type) { return type == "integer" || type == "float" || type == "double"; }

}  // namespace

std::optional<double> pmml_number(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

Result<void> PmmlFields::begin_data_field(const XmlAttributes& attributes, const std::string& where) {
  DataField data;
  FVM_ASSIGN(const std::string_view name, required(attributes, "name", where));
  FVM_ASSIGN(const std::string_view optype, required(attributes, "optype", where));
  FVM_ASSIGN(const std::string_view type, required(attributes, "dataType", where));
  data.name = name;
  data.optype = optype;
  data.type = type;
  if (attributes.find("isCyclic").value_or("0") != "0") data.refused = "it is cyclic";
  if (!data_numbers_.emplace(data.name, data_fields_.size()).second)
    return refused(where, "two fields have the name {}", in_quotes(name));
  data_fields_.push_back(std::move(data));
  return {};
}

Result<void> PmmlFields::add_value(const XmlAttributes& attributes, const std::string& where) {
  DataField& data = data_fields_.back();
  FVM_ASSIGN(const std::string_view value, required(attributes, "value", where));
  const std::string_view property = attributes.find("property").value_or("valid");
  if (property == "valid") {
    data.values.emplace_back(value);
  } else if (property == "missing") {
    // Rows hold missing values as NaN, or as no text.
    if (value.empty() || value == "NaN") return {};
    const std::optional<double> number = pmml_number(value);
    if (data.optype == "continuous" && number && std::isfinite(*number))
      data.missing.push_back(*number);
    else
      data.refused = formatted("its value {} counts as missing", in_quotes(value));
  } else {
    data.refused = formatted("its value {} is {}", in_quotes(value), printable(property));
  }
  return {};
}

Result<void> PmmlFields::add_interval(const XmlAttributes& attributes, const std::string& where) {
  DataField& data = data_fields_.back();
  if (data.interval) data.refused = "it has more than one Interval";
  const auto margin = [&](const char* name, double otherwise) -> Result<double> {
    const auto text = attributes.find(name);
    if (!text) return otherwise;
    const std::optional<double> number = pmml_number(*text);
    if (!number || std::isnan(*number)) return refused(where, "{} {}", name, in_quotes(*text));
    return *number + 0.0;
  };
  FVM_ASSIGN(const double left, margin("leftMargin", -kInfinity));
  FVM_ASSIGN(const double right, margin("rightMargin", kInfinity));
  if (left > right) return refused(where, "a leftMargin above the rightMargin");
  const std::string_view closure = attributes.find("closure").value_or("");
  if (closure != "openClosed" && closure != "openOpen" && closure != "closedOpen" &&
      closure != "closedClosed")
    return refused(where, "closure {}", in_quotes(closure));
  // An infinite number is inside an interval that has no margin on its side.
  const bool opens = attributes.find("leftMargin") && closure.starts_with("open");
  const bool closes = !attributes.find("rightMargin") || closure.ends_with("Closed");
  data.interval = {{left, opens}, {right, closes}};
  return {};
}

Result<void> PmmlFields::begin_derived_field(const XmlAttributes& attributes, const std::string& where) {
  FVM_ASSIGN(const std::string_view name, required(attributes, "name", where));
  derived_name_ = name;
  DerivedField derived{{}, text_of(attributes.find("dataType")), "it has no expression", false};
  if (!derived_.emplace(name, std::move(derived)).second || data_numbers_.contains(derived_name_))
    return refused(where, "two fields have the name {}", in_quotes(name));
  return {};
}

Result<void> PmmlFields::set_expression(const std::optional<PmmlElement>& expression,
                                        const std::string& where) {
  DerivedField& derived = derived_[derived_name_];
  if (std::exchange(derived.has_expression, true)) return refused(where, "a DerivedField of two expressions");
  if (!expression) {
    derived.refused = "its expression is too large";
    return {};
  }
  Result<PmmlFunction> function = pmml_function(*expression);
  if (function.ok()) {
    derived.function = std::move(*function);
    derived.refused.clear();
  } else {
    derived.refused = function.error().message;
  }
  return {};
}

Result<std::uint32_t> PmmlFields::add_category(PmmlCategories& categories, std::string_view text,
                                               const std::string& where) {
  const std::uint32_t number = categories.count();
  if (number > kMaxFieldCategories)
    return refused(where, "a field of more than {} categories", kMaxFieldCategories);
  std::uint32_t code = number - 1;
  if (categories.numbers) {
    const std::optional<double> value = pmml_number(text);
    if (!value || *value != std::floor(*value) || *value < 0 || *value >= kMaxCategories)
      return refused(where, "category {}, which is not a whole number from 0 to {}", in_quotes(text),
                     kMaxCategories - 1);
    code = static_cast<std::uint32_t>(*value);
  }
  const auto [at, is_new] = categories.numbers_of.emplace(text, number);
  if (!is_new) return at->second;
  if (!categories.numbers) categories.names.emplace_back(text);
  categories.codes.push_back(code);
  return number;
}

Result<std::uint32_t> PmmlFields::category(const PmmlField& field, std::string_view text,
                                           const std::string& where) {
  PmmlCategories& categories = categories_[field.categories];
  std::string name(text);
  // One number may be written as 1 and as 1.0.
  if (categories.numbers)
    if (const auto value = pmml_number(text);
        value && *value == std::floor(*value) && std::abs(*value) < 1e15)
      name = std::to_string(static_cast<std::int64_t>(*value));
  const auto found = categories.numbers_of.find(name);
  if (found != categories.numbers_of.end()) return found->second;
  // If the dictionary declares all categories, another value is invalid or missing, so no row equals it.
  if (categories.declared && (!categories.other_possible || categories.other_missing))
    return std::uint32_t{0};
  return add_category(categories, name, where);
}

/// Sets how the values of a feature compare.
Result<void> PmmlFields::set_kind(const DataField& data, PmmlField& field, Feature& feature) {
  feature.refused = data.refused;
  if (data.optype == "continuous") {
    field.kind = data.type == "float"    ? PmmlKind::Float
                 : data.type == "double" ? PmmlKind::Double
                                         : PmmlKind::Integer;
    if (!is_numeric(data.type)) feature.refused = "its numbers are of type " + in_quotes(data.type);
    if (!data.values.empty()) feature.refused = "it lists numbers that are valid";
    return {};
  }
  field.kind = PmmlKind::Category;
  field.categories = static_cast<std::uint32_t>(categories_.size());
  feature.categories = field.categories;
  PmmlCategories& categories = categories_.emplace_back();
  categories.numbers = is_numeric(data.type);
  if (!categories.numbers && data.type != "string" && data.type != "boolean")
    feature.refused = "its categories are of type " + in_quotes(data.type);
  categories.declared = !data.values.empty() || data.type == "boolean";
  categories.truths = data.type == "boolean";
  if (categories.truths) {
    FVM_TRY(add_category(categories, "false", feature.name));
    FVM_TRY(add_category(categories, "true", feature.name));
    return {};
  }
  const std::string where = "DataField " + in_quotes(data.name);
  for (const std::string& value : data.values) FVM_TRY(category(field, value, where));
  return {};
}

/// Sets how invalid and missing values of a feature are treated.
Result<void> PmmlFields::set_treatments(const DataField& data, const XmlAttributes& attributes,
                                        PmmlField& field, Feature& feature, const std::string& where) {
  const std::string_view invalid = attributes.find("invalidValueTreatment").value_or("returnInvalid");
  if (field.kind == PmmlKind::Category) {
    PmmlCategories& categories = categories_[field.categories];
    categories.other_possible = !categories.declared || invalid == "asIs";
    categories.other_missing = categories.declared && invalid == "asMissing";
    categories.other_possible = categories.other_possible || categories.other_missing;
    if (data.type == "boolean" && invalid == "asIs") categories.other_possible = false;
    categories.other_invalid = (categories.numbers || categories.truths) && !categories.other_possible;
    if (data.type == "integer" && categories.other_possible && !categories.other_missing)
      feature.refused = "its whole numbers are categories, and numbers that are no category have an answer";
  } else {
    field.others_missing = invalid == "asMissing";
    for (const double number : data.missing)
      if (field.kind != PmmlKind::Integer || is_integer(number))
        field.missing.push_back(
            field.kind == PmmlKind::Float ? static_cast<double>(static_cast<float>(number)) : number);
    std::sort(field.missing.begin(), field.missing.end());
  }
  if (invalid != "returnInvalid" && invalid != "asIs" && invalid != "asMissing")
    feature.refused = formatted("invalidValueTreatment {} is not supported", in_quotes(invalid));
  if (attributes.find("invalidValueReplacement"))
    feature.refused = "invalidValueReplacement is not supported";
  if (attributes.find("outliers").value_or("asIs") != "asIs")
    feature.refused = "its outliers are replaced, which is not supported";
  if (attributes.find("missingValueTreatment").value_or("asIs") == "returnInvalid")
    feature.refused = "rows without its value are invalid, which is not supported";
  const auto replacement = attributes.find("missingValueReplacement");
  if (!replacement || !feature.refused.empty()) return {};
  if (field.kind == PmmlKind::Category) {
    FVM_ASSIGN(const std::uint32_t number, category(field, *replacement, where));
    if (number == 0)
      return refused(where, "missingValueReplacement {} is not a declared category", in_quotes(*replacement));
    field.replacement = number;
    return {};
  }
  const std::optional<double> number = pmml_number(*replacement);
  if (!number || !std::isfinite(*number) || (field.kind == PmmlKind::Integer && !is_integer(*number)))
    return refused(where, "missingValueReplacement {} is not a number of the field", in_quotes(*replacement));
  field.replacement = *number;
  return {};
}

Result<void> PmmlFields::add_feature(const DataField& data, const XmlAttributes& attributes,
                                     const std::string& where) {
  if (features_.size() >= limits_.max_features)
    return refused(where, "more features than the limit of {}", limits_.max_features);
  PmmlField field;
  field.feature = static_cast<std::uint32_t>(features_.size());
  Feature feature;
  feature.name = data.name;
  FVM_TRY(set_kind(data, field, feature));
  if (attributes.find("optype").value_or(data.optype) != data.optype)
    feature.refused = "a MiningField changes its optype";
  FVM_TRY(set_treatments(data, attributes, field, feature, where));
  if (field.kind == PmmlKind::Float && field.replacement)
    field.replacement = static_cast<double>(static_cast<float>(*field.replacement));
  // Numbers that are not integers count as infinity: see Model::whole_features.
  if (field.kind == PmmlKind::Integer) field.valid = {{-kInfinity, false}, {kAboveIntegers, true}};
  if (data.interval && field.kind != PmmlKind::Category &&
      attributes.find("invalidValueTreatment") != "asIs") {
    const PmmlInterval given{cut_of(data.interval->low, field.kind), cut_of(data.interval->high, field.kind)};
    field.valid = {given.low, field.valid ? std::min(given.high, field.valid->high) : given.high};
    const Cut replacement{field.replacement.value_or(0), false};
    if (field.replacement && (replacement < field.valid->low || replacement >= field.valid->high))
      feature.refused = "its missingValueReplacement is outside of its Interval";
  }
  if (field.replacement && std::binary_search(field.missing.begin(), field.missing.end(), *field.replacement))
    feature.refused = "its missingValueReplacement counts as missing";
  if (!numbers_.emplace(data.name, field.feature).second)
    return refused(where, "the model takes field {} twice", in_quotes(data.name));
  features_.push_back(std::move(feature));
  fields_.push_back(field);
  return {};
}

Result<void> PmmlFields::add_mining_field(const XmlAttributes& attributes, bool outermost,
                                          const std::string& where) {
  FVM_ASSIGN(const std::string_view name, required(attributes, "name", where));
  const std::string_view usage = attributes.find("usageType").value_or("active");
  const bool target = usage == "target" || usage == "predicted";
  const auto data = data_numbers_.find(std::string(name));
  if (!outermost) {
    for (const char* treatment : {"missingValueReplacement", "invalidValueReplacement", "outliers", "optype"})
      if (attributes.find(treatment))
        return refused(where, "{} in a model inside another is not supported", treatment);
    return {};
  }
  if (usage != "active" && !target) return {};
  if (data == data_numbers_.end())
    return refused(where, "field {} is not in the DataDictionary", in_quotes(name));
  if (!target) return add_feature(data_fields_[data->second], attributes, where);
  if (target_ != SIZE_MAX) return refused(where, "more than one target is not supported");
  target_ = data->second;
  return {};
}

/// Returns whether a number of the field is valid, or counts as missing, exactly if the number, cast to float, does.
bool casts_exactly(const PmmlField& field) {
  const auto exact = [](double number) { return std::isinf(number) || std::abs(number) < 0x1p24; };
  return field.kind == PmmlKind::Integer && exact(field.valid->low.number) &&
         (exact(field.valid->high.number) || field.valid->high.number == kAboveIntegers) &&
         std::all_of(field.missing.begin(), field.missing.end(), exact);
}

/// Adds a cast to float.
Result<std::uint32_t> PmmlFields::add_cast(std::string_view name, std::uint32_t number,
                                           const std::string& where) {
  if (fields_[number].kind == PmmlKind::Float) return numbers_.emplace(name, number).first->second;
  PmmlField cast = fields_[number];
  if (cast.kind == PmmlKind::Category)
    return refused(where, "field {} casts categories to numbers, which is not supported", in_quotes(name));
  if ((cast.valid || !cast.missing.empty()) && !casts_exactly(cast))
    return refused(where, "field {} casts a field with an Interval, or with numbers that count as missing",
                   in_quotes(name));
  cast.kind = PmmlKind::Float;
  if (cast.replacement) cast.replacement = static_cast<double>(static_cast<float>(*cast.replacement));
  fields_.push_back(cast);
  return numbers_.emplace(name, count() - 1).first->second;
}

/// Adds a field that is computed from field `number` by a chain of functions.
Result<std::uint32_t> PmmlFields::add_computed(std::string_view name, std::uint32_t number,
                                               const std::vector<const DerivedField*>& chain,
                                               const std::string& where) {
  const auto wrong = [&](const std::string& what) {
    return refused(where, "field {} cannot be tested: {}", in_quotes(name), what);
  };
  constexpr std::size_t most_steps = 32;
  Function function;
  std::vector<const PmmlStep*>& steps = function.steps;
  if (fields_[number].kind == PmmlKind::Float) steps.push_back(&kRound);
  bool is_double = fields_[number].kind == PmmlKind::Double;
  for (const DerivedField* const derived : chain) {
    const std::vector<PmmlStep>& own = derived->function.steps;
    if (steps.size() + own.size() > most_steps) return wrong("it is computed by too many steps");
    if (!indicates(own, steps))
      for (const PmmlStep& step : own) steps.push_back(&step);
    for (const PmmlStep& step : own) {
      if (step.whole && !is_double)
        return wrong("arithmetic of whole numbers, or of float and integer, is not supported");
      is_double = true;
    }
    const std::string& type = derived->type;
    is_double = is_double && type != "float";
    if (type == "float")
      steps.push_back(&kRound);
    else if (type != "double" &&
             !(!own.empty() && gives_names(own.back().kind) && (type == "integer" || type == "boolean")))
      return wrong(formatted("a derived field of the type {} is not supported here", in_quotes(type)));
  }
  const auto is = [](PmmlStepKind kind) {
    return [kind](const PmmlStep* step) { return step->kind == kind; };
  };
  const bool category = fields_[number].kind == PmmlKind::Category;
  if (category != is(PmmlStepKind::Map)(steps.front()) ||
      std::any_of(steps.begin() + 1, steps.end(), is(PmmlStepKind::Map)))
    return wrong("tables of values are supported for fields of categories, and arithmetic for numbers");
  if (std::any_of(steps.begin() + 1, steps.end(), is(PmmlStepKind::Replace)))
    return wrong("a number is replaced after other steps, which is not supported");
  if (!pmml_keeps_order(steps)) return wrong("its lines (NormContinuous) do not rise where they meet");
  if (category) FVM_TRY(fill_table(fields_[number], function, where));
  PmmlField computed = fields_[number];
  computed.source = number;
  computed.function = static_cast<std::uint32_t>(functions_.size());
  computed.kind = chain.back()->type == "float" ? PmmlKind::Float : PmmlKind::Double;
  functions_.push_back(std::move(function));
  fields_.push_back(computed);
  return numbers_.emplace(name, count() - 1).first->second;
}

/// Finds the values of a function that begins with a table.
Result<void> PmmlFields::fill_table(const PmmlField& source, Function& function, const std::string& where) {
  const PmmlStep& map = *function.steps.front();
  std::vector<std::optional<double>>& values = function.table;
  values.assign(categories(source).count(), map.otherwise);
  for (const auto& [text, value] : map.table) {
    FVM_ASSIGN(const std::uint32_t at, category(source, text, where));
    if (at >= values.size()) values.resize(std::size_t{at} + 1, map.otherwise);
    if (at != 0) values[at] = value;
  }
  for (std::optional<double>& value : values) value = pmml_value(PmmlSteps(function.steps).subspan(1), value);
  return {};
}

Result<std::uint32_t> PmmlFields::find(std::string_view name, const std::string& where) {
  std::string wanted(name);
  std::vector<const DerivedField*> chain;
  bool casts = true;
  const auto usable = [&](std::uint32_t number) {
    return number < features_.size() || chain.empty() || (casts && !fields_[number].source);
  };
  // A chain with more steps than there are derived fields would go in a circle.
  while (chain.size() <= derived_.size()) {
    const auto known = numbers_.find(wanted);
    if (known != numbers_.end() && (usable(known->second))) {
      const std::uint32_t number = known->second;
      if (number < features_.size() && !features_[number].refused.empty())
        return refused(where, "field {} cannot be tested: {}", in_quotes(wanted), features_[number].refused);
      if (chain.empty()) return number;
      std::reverse(chain.begin(), chain.end());
      return casts ? add_cast(name, number, where) : add_computed(name, number, chain, where);
    }
    const auto derived = derived_.find(wanted);
    if (derived == derived_.end()) break;
    const DerivedField& field = derived->second;
    if (!field.refused.empty())
      return refused(where, "field {} cannot be tested: {}", in_quotes(wanted), field.refused);
    if (field.function.steps.empty() && field.type != "float")
      return refused(where, "field {} is a cast to {}: only casts to float are supported", in_quotes(wanted),
                     in_quotes(field.type));
    casts = casts && field.function.steps.empty();
    chain.push_back(&field);
    wanted = field.function.source;
  }
  return refused(where, "field {} is not one that the model takes", in_quotes(name));
}

const std::vector<std::string>& PmmlFields::target_categories() const {
  static const std::vector<std::string> none;
  return target_ == SIZE_MAX ? none : data_fields_[target_].values;
}

std::string_view PmmlFields::target_type() const {
  return target_ == SIZE_MAX ? std::string_view() : std::string_view(data_fields_[target_].type);
}

Result<void> PmmlFields::add_features(Model& model) const {
  model.num_features = static_cast<std::uint32_t>(features_.size());
  for (std::uint32_t i = 0; i < model.num_features; ++i) {
    model.feature_names.push_back(features_[i].name);
    const bool is_category = features_[i].categories != UINT32_MAX;
    if (fields_[i].kind == PmmlKind::Integer || (is_category && categories_[features_[i].categories].truths))
      model.whole_features.push_back(i);
    if (!is_category) continue;
    const PmmlCategories& categories = categories_[features_[i].categories];
    std::optional<double> unseen;
    // JPMML also reads TRUE, 1 and the like, so other texts of truth values are refused.
    if (categories.other_missing && !categories.truths)
      unseen = std::numeric_limits<double>::quiet_NaN();
    else if (categories.other_possible && !categories.truths)
      unseen = static_cast<double>(categories.codes.size());
    FVM_TRY(add_category_names(i, categories.names, unseen, "DataDictionary", model));
  }
  return {};
}

}  // namespace forestvm::frontend
