// See pmml_tree_reader.hpp.
#include "frontend/pmml_tree_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/pmml_derived.hpp"

namespace forestvm::frontend {
namespace {

constexpr std::uint32_t kNoPredicate = UINT32_MAX;

struct OperatorRow {
  std::string_view text;
  PmmlOperator op;
};

constexpr OperatorRow kSimple[] = {
    {"equal", PmmlOperator::Equal},         {"notEqual", PmmlOperator::NotEqual},
    {"lessThan", PmmlOperator::Less},       {"lessOrEqual", PmmlOperator::LessEqual},
    {"greaterThan", PmmlOperator::Greater}, {"greaterOrEqual", PmmlOperator::GreaterEqual},
    {"isMissing", PmmlOperator::Missing},   {"isNotMissing", PmmlOperator::NotMissing}};
constexpr OperatorRow kSet[] = {{"isIn", PmmlOperator::In}, {"isNotIn", PmmlOperator::NotIn}};
constexpr OperatorRow kCompound[] = {{"and", PmmlOperator::And},
                                     {"or", PmmlOperator::Or},
                                     {"xor", PmmlOperator::Xor},
                                     {"surrogate", PmmlOperator::Surrogate}};

template <std::size_t N>
Result<PmmlOperator> operator_of(const OperatorRow (&rows)[N], std::optional<std::string_view> text,
                                 const std::string& where) {
  for (const OperatorRow& row : rows)
    if (text == row.text) return row.op;
  return refused(where, "unknown operator {}", in_quotes(text.value_or("")));
}

/// Reads an attribute that is a number.
Result<double> number_of(const XmlAttributes& attributes, const char* name, const std::string& where) {
  const auto text = attributes.find(name);
  if (!text) return refused(where, "no attribute \"{}\"", name);
  const std::optional<double> number = pmml_number(*text);
  if (!number || !std::isfinite(*number))
    return refused(where, "{} {} is not a finite number", name, in_quotes(*text));
  return *number;
}

/// Returns the next word of an array, without its quotes, and removes it; nothing at the end.
std::optional<std::string> next_word(std::string_view& text) {
  constexpr std::string_view spaces = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  if (text.empty()) return std::nullopt;
  if (text.front() != '"') {
    const std::size_t size = std::min(text.find_first_of(spaces), text.size());
    std::string word(text.substr(0, size));
    text.remove_prefix(size);
    return word;
  }
  std::string word;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '"') ++at;
    word += text[at];
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

}  // namespace

Result<void> PmmlTreeReader::begin_tree(const XmlAttributes& attributes, const std::string& where) {
  tree_ = {};
  tree_.where = where;
  open_.clear();
  const std::string_view unknown = attributes.find("missingValueStrategy").value_or("none");
  if (unknown == "none")
    tree_.unknown = PmmlUnknown::NextChild;
  else if (unknown == "nullPrediction")
    tree_.unknown = PmmlUnknown::NoAnswer;
  else if (unknown == "lastPrediction")
    tree_.unknown = PmmlUnknown::LastScore;
  else if (unknown == "defaultChild")
    tree_.unknown = PmmlUnknown::DefaultChild;
  else
    return refused(where, "missingValueStrategy {} is not supported", in_quotes(unknown));
  const std::string_view none = attributes.find("noTrueChildStrategy").value_or("returnNullPrediction");
  if (none != "returnNullPrediction" && none != "returnLastPrediction")
    return refused(where, "noTrueChildStrategy {} is not supported", in_quotes(none));
  tree_.last_score = none == "returnLastPrediction";
  return {};
}

Result<void> PmmlTreeReader::begin_node(const XmlAttributes& attributes, bool has_class,
                                        const std::string& where) {
  const auto at = static_cast<std::int32_t>(tree_.nodes.size());
  PmmlNode node;
  node.predicate = kNoPredicate;
  if (const auto score = attributes.find("score")) {
    node.has_score = true;
    if (has_class) {
      const auto known = classes_.numbers.find(std::string(*score));
      if (known == classes_.numbers.end())
        return refused(where, "score {} is not one of the target's values", in_quotes(*score));
      node.score = known->second;
    } else {
      FVM_ASSIGN(node.score, number_of(attributes, "score", where));
    }
  }
  if (!open_.empty()) {
    OpenNode& parent = open_.back();
    PmmlNode& above = tree_.nodes[static_cast<std::size_t>(parent.node)];
    (above.first_child < 0 ? above.first_child
                           : tree_.nodes[static_cast<std::size_t>(above.last_child)].next) = at;
    above.last_child = at;
    const auto id = attributes.find("id");
    if (above.default_child < 0 && !parent.default_child.empty() && id == parent.default_child)
      above.default_child = at;
  } else if (at != 0) {
    return refused(where, "a tree with two roots");
  }
  tree_.nodes.push_back(node);
  open_.push_back({at, std::string(attributes.find("defaultChild").value_or("")), -1, false});
  return {};
}

Result<void> PmmlTreeReader::end_node(const std::string& where) {
  const OpenNode& open = open_.back();
  const PmmlNode& node = tree_.nodes[static_cast<std::size_t>(open.node)];
  if (node.predicate == kNoPredicate) return refused(where, "a Node without a predicate");
  const bool needed = tree_.unknown == PmmlUnknown::DefaultChild && node.first_child >= 0;
  if (needed && node.default_child < 0 && !open.default_child.empty())
    return refused(where, "defaultChild {} is not a child of the Node", in_quotes(open.default_child));
  open_.pop_back();
  return {};
}

Result<void> PmmlTreeReader::add_distribution(const XmlAttributes& attributes, const std::string& where) {
  if (classes_.labels.empty()) return {};  // no regression depends on the distribution
  OpenNode& open = open_.back();
  PmmlNode& node = tree_.nodes[static_cast<std::size_t>(open.node)];
  const std::string_view value = attributes.find("value").value_or("");
  const auto known = classes_.numbers.find(std::string(value));
  if (known == classes_.numbers.end())
    return refused(where, "value {} is not one of the target's values", in_quotes(value));
  const auto number = static_cast<std::int32_t>(known->second);
  if (number <= open.last_class)
    return refused(where, "ScoreDistribution elements are not in the order of the target's values");
  if (node.distribution == UINT32_MAX) {
    if (tree_.distributions.size() + classes_.labels.size() > room_)
      return refused(where, "the ScoreDistribution elements would take much more memory than the document");
    open.probabilities = attributes.find("probability").has_value();
    node.distribution = static_cast<std::uint32_t>(tree_.distributions.size());
    tree_.distributions.resize(tree_.distributions.size() + classes_.labels.size(),
                               std::numeric_limits<double>::quiet_NaN());
  }
  open.last_class = number;
  const char* name = open.probabilities ? "probability" : "recordCount";
  FVM_ASSIGN(const double count, number_of(attributes, name, where));
  if (count < 0) return refused(where, "{} is negative", name);
  tree_.distributions[node.distribution + known->second] = count;
  return {};
}

Result<void> PmmlTreeReader::add(PmmlPredicate predicate, const std::string& where) {
  PmmlNode& node = tree_.nodes[static_cast<std::size_t>(open_.back().node)];
  if (in_compound_) {
    ++tree_.predicates[node.predicate].count;
  } else {
    if (node.predicate != kNoPredicate) return refused(where, "a Node with two predicates");
    node.predicate = static_cast<std::uint32_t>(tree_.predicates.size());
  }
  tree_.predicates.push_back(predicate);
  return {};
}

Result<void> PmmlTreeReader::add_constant(bool truth, const std::string& where) {
  PmmlPredicate predicate;
  predicate.op = truth ? PmmlOperator::True : PmmlOperator::False;
  return add(predicate, where);
}

/// Reads the value that a field is compared with, as a value of that field.
Result<void> PmmlTreeReader::set_value(std::string_view text, PmmlPredicate& predicate,
                                       const std::string& where) {
  const PmmlField& field = fields_.field(predicate.field);
  if (field.kind == PmmlKind::Category) {
    if (predicate.op != PmmlOperator::Equal && predicate.op != PmmlOperator::NotEqual)
      return refused(where, "categories have no order");
    predicate.op = predicate.op == PmmlOperator::Equal ? PmmlOperator::In : PmmlOperator::NotIn;
    predicate.begin = static_cast<std::uint32_t>(tree_.members.size());
    FVM_ASSIGN(const std::uint32_t category, fields_.category(field, text, where));
    if (category != 0) tree_.members.push_back(category);
    predicate.count = static_cast<std::uint32_t>(tree_.members.size()) - predicate.begin;
    return {};
  }
  std::optional<double> number = pmml_number(text);
  if (field.source && (text == "true" || text == "false")) number = text == "true" ? 1 : 0;
  if (field.kind == PmmlKind::Float) {
    // The text is rounded once, to float32.
    float rounded = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), rounded);
    const bool good = code == std::errc() && end == text.data() + text.size();
    number = good ? std::optional<double>(rounded) : std::nullopt;
  }
  if (!number || !std::isfinite(*number))
    return refused(where, "value {} is not a finite number of the field's type", in_quotes(text));
  predicate.value = *number + 0.0;  // -0 is 0
  return {};
}

Result<void> PmmlTreeReader::add_simple(const XmlAttributes& attributes, const std::string& where) {
  PmmlPredicate predicate;
  FVM_ASSIGN(predicate.field, fields_.find(attributes.find("field").value_or(""), where));
  FVM_ASSIGN(predicate.op, operator_of(kSimple, attributes.find("operator"), where));
  if (predicate.op != PmmlOperator::Missing && predicate.op != PmmlOperator::NotMissing) {
    const auto value = attributes.find("value");
    if (!value) return refused(where, "no attribute \"value\"");
    FVM_TRY(set_value(*value, predicate, where));
  }
  if (!fields_.field(predicate.field).source) return add(predicate, where);
  // JPMML refuses rows whose value is missing here, where such trees give no answer.
  if (pmml_needs_value(fields_, predicate.field) && (in_compound_ || tree_.unknown != PmmlUnknown::NoAnswer))
    return refused(where,
                   "\"threshold\" of a value that may be missing is supported in trees with "
                   "missingValueStrategy=\"nullPrediction\" only, outside of CompoundPredicate");
  FVM_ASSIGN(const std::vector<PmmlPredicate> parts,
             pmml_source_predicates(fields_, predicate, tree_.members, where));
  if (parts.size() == 1) return add(parts[0], where);
  FVM_TRY(begin_parts(parts[0], where));
  for (std::size_t i = 1; i < parts.size(); ++i) FVM_TRY(add(parts[i], where));
  in_compound_ = false;
  return {};
}

Result<void> PmmlTreeReader::begin_set(const XmlAttributes& attributes, const std::string& where) {
  set_ = {};
  has_array_ = false;
  array_size_.reset();
  FVM_ASSIGN(set_.field, fields_.find(attributes.find("field").value_or(""), where));
  FVM_ASSIGN(set_.op, operator_of(kSet, attributes.find("booleanOperator"), where));
  if (fields_.field(set_.field).source || fields_.field(set_.field).kind != PmmlKind::Category)
    return refused(where, "a set of values of a continuous field is not supported");
  return {};
}

Result<void> PmmlTreeReader::begin_array(const XmlAttributes& attributes, const std::string& where) {
  if (std::exchange(has_array_, true)) return refused(where, "a SimpleSetPredicate with two arrays");
  if (attributes.find("n")) {
    FVM_ASSIGN(array_size_, number_of(attributes, "n", where));
  }
  return {};
}

Result<void> PmmlTreeReader::end_set(std::string_view array, const std::string& where) {
  if (!has_array_) return refused(where, "a SimpleSetPredicate without an Array");
  set_.begin = static_cast<std::uint32_t>(tree_.members.size());
  std::size_t words = 0;
  for (; const auto word = next_word(array); ++words) {
    FVM_ASSIGN(const std::uint32_t category, fields_.category(fields_.field(set_.field), *word, where));
    if (category != 0) tree_.members.push_back(category);
  }
  if (array_size_ && *array_size_ != static_cast<double>(words))
    return refused(where, "an Array of {} values, whose n is another number", words);
  const auto begin = tree_.members.begin() + set_.begin;
  std::sort(begin, tree_.members.end());
  tree_.members.erase(std::unique(begin, tree_.members.end()), tree_.members.end());
  set_.count = static_cast<std::uint32_t>(tree_.members.size()) - set_.begin;
  return add(set_, where);
}

Result<void> PmmlTreeReader::begin_compound(const XmlAttributes& attributes, const std::string& where) {
  PmmlPredicate predicate;
  FVM_ASSIGN(predicate.op, operator_of(kCompound, attributes.find("booleanOperator"), where));
  return begin_parts(predicate, where);
}

/// Begins a compound predicate, whose parts are added next.
Result<void> PmmlTreeReader::begin_parts(PmmlPredicate whole, const std::string& where) {
  if (in_compound_)
    return refused(where,
                   "a CompoundPredicate inside another is not supported: write it as one, or as nodes");
  whole.begin = static_cast<std::uint32_t>(tree_.predicates.size()) + 1;
  FVM_TRY(add(whole, where));
  in_compound_ = true;
  return {};
}

Result<void> PmmlTreeReader::end_compound(const std::string& where) {
  in_compound_ = false;
  const PmmlNode& node = tree_.nodes[static_cast<std::size_t>(open_.back().node)];
  if (tree_.predicates[node.predicate].count < 2)
    return refused(where, "a CompoundPredicate of fewer than two predicates");
  return {};
}

Result<PmmlTree> PmmlTreeReader::take(const std::string& where) {
  if (tree_.nodes.empty()) return refused(where, "a tree without nodes");
  return std::move(tree_);
}

}  // namespace forestvm::frontend
