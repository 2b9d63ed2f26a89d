// See pmml_tree.hpp. The compiler follows all rows at once from the root. At a predicate that the known values of the
// rows do not decide, it divides these values into parts, finds the position to which each part goes next, and writes
// splits that separate parts with different positions. It keeps a stack of its own instead of recursing, because trees
// may be deep.
#include "frontend/pmml_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <variant>

#include <forestvm/internal/formatted.hpp>

#include "frontend/pmml_values.hpp"

namespace forestvm::frontend {
namespace {

/// A position in the tree that rows reach: an answer, the lack of one, or a predicate that is to be tested.
struct Position {
  enum class Kind : std::uint8_t { Test, Answer, NoAnswer };
  Kind kind = Kind::NoAnswer;
  std::int32_t node = -1;   ///< Node that answers, or whose children are tried; -1 is above the root.
  std::int32_t child = -1;  ///< Child whose predicate is tested.
  std::uint32_t part = 0;   ///< Part of a compound predicate.
  Outcome so_far = Outcome::Unknown;  ///< Outcome of the parts before it.
  bool operator==(const Position&) const = default;
};

/// The most predicates that are evaluated for a small tree, which takes about a quarter of a second.
constexpr std::size_t kMaxSteps = 10'000'000;

/// Combines the outcomes of a compound predicate's parts.
Outcome combined(PmmlOperator op, Outcome left, Outcome right) {
  const Outcome decides = op == PmmlOperator::And ? Outcome::False : Outcome::True;
  if (op != PmmlOperator::Xor && (left == decides || right == decides)) return decides;
  if (left == Outcome::Unknown || right == Outcome::Unknown) return Outcome::Unknown;
  return op == PmmlOperator::Xor ? (left == right ? Outcome::False : Outcome::True) : left;
}

class Compiler {
 public:
  Compiler(const PmmlTree& tree, const PmmlFields& fields, const PmmlLeafRule& leaf_rule)
      : source_(tree), evaluator_(tree, fields), leaf_rule_(leaf_rule) {}

  Result<Tree> run();

 private:
  /// An entry of the stack, which sets the known values of a field. The other kind of entry, Visit, follows rows from a
  /// position on.
  struct SetValues {
    std::uint32_t field;
    PmmlValues values;
  };
  struct Visit {
    Position position;
    std::int32_t parent;
    bool left;
  };

  /// Returns the values of a field that the rows being followed may have.
  PmmlValues& known(std::uint32_t field) {
    const auto [at, is_new] = known_.try_emplace(field);
    if (is_new) at->second = evaluator_.all(field);
    return at->second;
  }

  const PmmlPredicate& predicate_at(const Position& position) const;
  Result<Position> enter(std::int32_t node) const;
  Result<Position> follow(Position position);
  Result<std::optional<Position>> take(Position& position, Outcome outcome) const;
  Result<Position> no_child(std::int32_t node) const;
  Result<Position> answer(std::int32_t node) const;
  Result<Position> after(const Position& position, std::uint32_t field, const PmmlValues& values);

  std::optional<std::uint32_t> unguarded(const Position& position);
  std::optional<double> missing_number(std::uint32_t field);
  void go_on(const Visit& visit, const Position& at, std::uint32_t field, PmmlValues values);
  Result<void> guard_missing_number(const Visit& visit, const Position& at, std::uint32_t field,
                                    double number);
  Result<void> guard_categories(const Visit& visit, const Position& at, std::uint32_t field);
  Result<void> guard(const Visit& visit, const Position& at, std::uint32_t field);
  Result<void> visit(const Visit& visit);
  Result<void> split(const Visit& visit, const Position& at, std::uint32_t field, PmmlParts& parts,
                     const Position (&positions)[3]);
  Result<std::int32_t> add_node(const Visit& visit, const Node& node);
  Result<void> add_leaf(const Visit& visit, const Position& position);
  Node separating(std::uint32_t field, const PmmlParts& parts, const PmmlValues& left,
                  const PmmlValues& right, bool numbers_apart);
  void wait(std::int32_t parent, std::uint32_t field, PmmlValues left, const Position& left_position,
            PmmlValues right, const Position& right_position);
  Error error(std::int32_t node, const std::string& message) const {
    return refused(formatted("{}, node {}", source_.where, node + 1), message);
  }

  const PmmlTree& source_;
  PmmlEvaluator evaluator_;
  const PmmlLeafRule& leaf_rule_;
  std::unordered_map<std::uint32_t, PmmlValues> known_;  ///< See known().
  std::vector<std::variant<SetValues, Visit>> waiting_;
  Tree tree_;
  std::size_t members_ = 0;  ///< Number of members in all category sets.
  std::size_t steps_ = 0;    ///< Number of predicates that were evaluated, and of words of categories.
};

const PmmlPredicate& Compiler::predicate_at(const Position& position) const {
  const PmmlPredicate& whole =
      source_.predicates[source_.nodes[static_cast<std::size_t>(position.child)].predicate];
  return is_compound(whole.op) ? source_.predicates[whole.begin + position.part] : whole;
}

Result<Position> Compiler::answer(std::int32_t node) const {
  if (!source_.nodes[static_cast<std::size_t>(node)].has_score)
    return error(node, "rows end at a node without a score");
  return Position{Position::Kind::Answer, node, -1, 0, Outcome::Unknown};
}

Result<Position> Compiler::enter(std::int32_t node) const {
  const std::int32_t child = source_.nodes[static_cast<std::size_t>(node)].first_child;
  if (child < 0) return answer(node);
  return Position{Position::Kind::Test, node, child, 0, Outcome::Unknown};
}

/// Returns the position to which rows go if none of the node's children is true for them.
Result<Position> Compiler::no_child(std::int32_t node) const {
  if (node >= 0 && source_.last_score && source_.nodes[static_cast<std::size_t>(node)].has_score)
    return answer(node);
  return Position{};
}

/// Takes the outcome of a child's predicate, or of one part of it. Returns the position of a leaf, or nothing and moves
/// `position` to the next predicate.
Result<std::optional<Position>> Compiler::take(Position& position, Outcome outcome) const {
  const PmmlNode& child = source_.nodes[static_cast<std::size_t>(position.child)];
  const PmmlPredicate& whole = source_.predicates[child.predicate];
  if (whole.op == PmmlOperator::Surrogate) {
    if (outcome == Outcome::Unknown && ++position.part < whole.count) return std::optional<Position>();
  } else if (is_compound(whole.op)) {
    position.so_far = position.part == 0 ? outcome : combined(whole.op, position.so_far, outcome);
    const Outcome decides = whole.op == PmmlOperator::And ? Outcome::False : Outcome::True;
    const bool decided = whole.op != PmmlOperator::Xor && position.so_far == decides;
    if (!decided && ++position.part < whole.count) return std::optional<Position>();
    outcome = position.so_far;
  }
  const auto go = [&](Result<Position> next) -> Result<std::optional<Position>> {
    if (!next.ok()) return next.error();
    position = *next;
    return position.kind == Position::Kind::Test ? std::optional<Position>() : std::optional(position);
  };
  if (outcome == Outcome::True) return go(enter(position.child));
  if (outcome == Outcome::Unknown) {
    if (position.node < 0 || source_.unknown == PmmlUnknown::NoAnswer) return std::optional(Position{});
    if (source_.unknown == PmmlUnknown::LastScore) return go(answer(position.node));
    if (source_.unknown == PmmlUnknown::DefaultChild) {
      const std::int32_t chosen = source_.nodes[static_cast<std::size_t>(position.node)].default_child;
      if (chosen < 0) return error(position.node, "no defaultChild, which its missing values need");
      return go(enter(chosen));
    }
  }
  if (child.next < 0) return go(no_child(position.node));
  position = {Position::Kind::Test, position.node, child.next, 0, Outcome::Unknown};
  return std::optional<Position>();
}

/// Follows rows from a position as far as their known values decide the predicates.
Result<Position> Compiler::follow(Position position) {
  while (position.kind == Position::Kind::Test) {
    if (unguarded(position)) break;
    const PmmlPredicate& predicate = predicate_at(position);
    // A test of one of many categories looks at all of them.
    steps_ += 1 + known(predicate.field).categories.size();
    if (steps_ > 100 * source_.predicates.size() + kMaxSteps)
      return refused(source_.where,
                     "the tree is too large: each of many children of a node is tested for many "
                     "sets of rows. Make it deeper");
    const std::optional<Outcome> outcome = evaluator_.decide(predicate, known(predicate.field));
    if (!outcome) break;
    FVM_ASSIGN(const std::optional<Position> end, take(position, *outcome));
    if (end) return *end;
  }
  return position;
}

/// Returns where rows go from a position if only some values of a field are left.
Result<Position> Compiler::after(const Position& position, std::uint32_t field, const PmmlValues& values) {
  PmmlValues kept = std::exchange(known(field), values);
  Result<Position> next = follow(position);
  known(field) = std::move(kept);
  return next;
}

Result<std::int32_t> Compiler::add_node(const Visit& visit, const Node& node) {
  constexpr std::size_t few = 1024;
  if (tree_.nodes.size() >= 5 * source_.nodes.size() + few ||
      members_ > 8 * (source_.members.size() + source_.nodes.size()) + few * few)
    return refused(source_.where, "the tree needs too many splits of two sides: {} nodes make more than {}",
                   source_.nodes.size(), tree_.nodes.size());
  const auto at = static_cast<std::int32_t>(tree_.nodes.size());
  if (visit.parent >= 0) {
    Node& parent = tree_.nodes[static_cast<std::size_t>(visit.parent)];
    (visit.left ? parent.left : parent.right) = at;
  }
  tree_.nodes.push_back(node);
  return at;
}

Result<void> Compiler::add_leaf(const Visit& visit, const Position& position) {
  Node leaf;
  const PmmlNode* node = position.kind == Position::Kind::Answer
                             ? &source_.nodes[static_cast<std::size_t>(position.node)]
                             : nullptr;
  FVM_TRY(leaf_rule_(node, leaf, tree_));
  FVM_TRY(add_node(visit, leaf));
  return {};
}

/// Returns the split that sends the values of `left` to the left.
Node Compiler::separating(std::uint32_t field, const PmmlParts& parts, const PmmlValues& left,
                          const PmmlValues& right, bool numbers_apart) {
  Node node;
  node.feature = field;
  node.missing_left = left.missing;
  if (!evaluator_.is_category(field)) {
    node.kind = numbers_apart && !parts.cut.after ? NodeKind::Less : NodeKind::LessEqual;
    node.threshold = numbers_apart ? parts.cut.number : std::numeric_limits<double>::infinity();
    return node;
  }
  // Values that are not listed cannot be members.
  const PmmlCategories& categories = evaluator_.fields().categories(evaluator_.fields().field(field));
  const auto size = [](const PmmlValues& values) {
    std::size_t members = 0;
    for (const std::uint64_t word : values.categories)
      members += static_cast<std::size_t>(__builtin_popcountll(word));
    return members;
  };
  CategorySet set;
  set.members_left = right.has(0) || (!left.has(0) && size(left) <= size(right));
  if (categories.numbers) set.rule = CategoryRule::Whole;
  // Elsewhere other numbers, which then have no answer, go where missing values go, which have none either.
  if (categories.other_invalid && !right.has(0)) set.members_left = !left.missing;
  const PmmlValues& members = set.members_left ? left : right;
  for (std::uint32_t i = 1; i < categories.count(); ++i)
    if (members.has(i)) set.codes.push_back(categories.codes[i - 1]);
  std::sort(set.codes.begin(), set.codes.end());
  members_ += set.codes.size();
  node.kind = NodeKind::Category;
  node.payload = static_cast<std::uint32_t>(tree_.category_sets.size());
  tree_.category_sets.push_back(std::move(set));
  return node;
}

/// Pushes both sides of a split on the stack, the left one on top.
void Compiler::wait(std::int32_t parent, std::uint32_t field, PmmlValues left, const Position& left_position,
                    PmmlValues right, const Position& right_position) {
  // The field's known values need not be restored afterwards if the next entry of the stack sets them.
  const bool set_again = !waiting_.empty() && std::holds_alternative<SetValues>(waiting_.back()) &&
                         std::get<SetValues>(waiting_.back()).field == field;
  if (!set_again) waiting_.emplace_back(SetValues{field, known(field)});
  waiting_.emplace_back(Visit{right_position, parent, false});
  waiting_.emplace_back(SetValues{field, std::move(right)});
  waiting_.emplace_back(Visit{left_position, parent, true});
  waiting_.emplace_back(SetValues{field, std::move(left)});
}

/// Returns the union of two sets, which are parts of one split.
PmmlValues united(PmmlValues a, const PmmlValues& b) {
  a.missing = a.missing || b.missing;
  for (std::size_t i = 0; i < a.categories.size(); ++i) a.categories[i] |= b.categories[i];
  if (b.low < b.high) {
    const bool empty = a.low >= a.high;
    a.low = empty ? b.low : std::min(a.low, b.low);
    a.high = empty ? b.high : std::max(a.high, b.high);
  }
  return a;
}

/// Writes a split of a field's values, whose parts go to `positions`. At least two positions differ. If all three
/// differ, the split separates the third part, and the others stay at the position `at`, where the next split
/// separates them.
Result<void> Compiler::split(const Visit& visit, const Position& at, std::uint32_t field, PmmlParts& parts,
                             const Position (&positions)[3]) {
  const auto same = [&](int a, int b) {
    return parts.empty[a] || parts.empty[b] || positions[a] == positions[b];
  };
  PmmlValues left = parts.parts[0], right = parts.parts[1];
  Position left_position = positions[0], right_position = positions[1];
  bool numbers_apart = true;
  if (!parts.empty[0] && !parts.empty[1] && positions[0] != positions[1] && (same(0, 2) || same(1, 2))) {
    if (!parts.empty[2] && positions[0] == positions[2])
      left = united(left, parts.parts[2]);
    else
      right = united(right, parts.parts[2]);
  } else {
    left_position = parts.empty[0] ? positions[1] : same(0, 1) ? positions[0] : at;
    left = parts.empty[0] ? right : parts.empty[1] ? left : united(left, right);
    right = parts.parts[2];
    right_position = positions[2];
    numbers_apart = false;
  }
  FVM_ASSIGN(const std::int32_t node, add_node(visit, separating(field, parts, left, right, numbers_apart)));
  wait(node, field, std::move(left), left_position, std::move(right), right_position);
  return {};
}

/// Follows rows from a position to the next split or leaf, which it writes.
Result<void> Compiler::visit(const Visit& visit) {
  FVM_ASSIGN(Position at, follow(visit.position));
  while (at.kind == Position::Kind::Test) {
    if (const auto field = unguarded(at)) return guard(visit, at, *field);
    const PmmlPredicate& predicate = predicate_at(at);
    PmmlParts parts = evaluator_.split(predicate, known(predicate.field));
    Position positions[3];
    const Position* first = nullptr;
    for (int i = 2; i >= 0; --i) {
      if (parts.empty[i]) continue;
      FVM_ASSIGN(positions[i], after(at, predicate.field, parts.parts[i]));
      first = &positions[i];
    }
    // Missing values may follow another part to a test if they reach their own position from that test. This saves a
    // split.
    for (const int side : {1, 0}) {
      if (parts.empty[side] || parts.empty[2] || positions[side].kind != Position::Kind::Test) continue;
      FVM_ASSIGN(const Position reached, after(positions[side], predicate.field, parts.parts[2]));
      if (positions[2] != positions[1 - side] && reached == positions[2]) positions[2] = positions[side];
    }
    const auto elsewhere = [&](int i) { return !parts.empty[i] && positions[i] != *first; };
    if (elsewhere(1) || elsewhere(2)) return split(visit, at, predicate.field, parts, positions);
    at = *first;
  }
  return add_leaf(visit, at);
}

/// Returns a field that is tested at a position and may still have numbers that are not valid, or that count as
/// missing; nothing if there is none. JPMML evaluates all parts of a compound predicate other than `surrogate`,
/// whatever the outcome of the first.
std::optional<std::uint32_t> Compiler::unguarded(const Position& position) {
  const PmmlPredicate& whole =
      source_.predicates[source_.nodes[static_cast<std::size_t>(position.child)].predicate];
  const bool all = is_compound(whole.op) && whole.op != PmmlOperator::Surrogate;
  const PmmlPredicate* first = all ? &source_.predicates[whole.begin] : &predicate_at(position);
  for (const PmmlPredicate* part = first; part != first + (all ? whole.count : 1); ++part) {
    if (part->op == PmmlOperator::True || part->op == PmmlOperator::False) continue;
    const PmmlField& field = evaluator_.fields().field(part->field);
    const PmmlValues& values = known(part->field);
    if (field.kind == PmmlKind::Category) {
      if (evaluator_.fields().categories(field).other_invalid && values.has(0)) return part->field;
      continue;
    }
    if (values.low >= values.high) continue;
    const std::optional<PmmlInterval>& valid = field.valid;
    if (valid && (values.low < valid->low || values.high > valid->high)) return part->field;
    if (missing_number(part->field)) return part->field;
  }
  return std::nullopt;
}

/// Returns the least number that counts as missing among the known ones of a field.
std::optional<double> Compiler::missing_number(std::uint32_t field) {
  const PmmlValues& values = known(field);
  for (const double number : evaluator_.fields().field(field).missing)
    if (const PmmlValues only = evaluator_.only(field, number);
        only.low >= values.low && only.high <= values.high)
      return number;
  return std::nullopt;
}

/// Follows rows on from a position, knowing more about their values of a field.
void Compiler::go_on(const Visit& visit, const Position& at, std::uint32_t field, PmmlValues values) {
  waiting_.emplace_back(SetValues{field, std::exchange(known(field), std::move(values))});
  waiting_.emplace_back(Visit{at, visit.parent, visit.left});
}

/// Sends numbers of a field that are not categories to leaves without an answer.
Result<void> Compiler::guard_categories(const Visit& visit, const Position& at, std::uint32_t field) {
  PmmlParts parts;
  PmmlValues rest = known(field), others = rest;
  rest.set(0, false);
  std::fill(others.categories.begin(), others.categories.end(), 0);
  if (others.missing && !evaluator_.fields().field(field).replacement) {
    // Splits send numbers that are no member the way of missing values, which may be the same leaves.
    FVM_ASSIGN(const Position missing, after(at, field, others));
    if (missing == Position{}) {
      go_on(visit, at, field, std::move(rest));
      return {};
    }
  }
  others.set(0, true);
  others.missing = false;
  FVM_ASSIGN(const std::int32_t node, add_node(visit, separating(field, parts, rest, others, true)));
  wait(node, field, std::move(rest), at, std::move(others), Position{});
  return {};
}

/// Separates a number that counts as missing, of known values with others: from the smaller ones or, if there are none,
/// from the larger ones. Missing values stay with it.
Result<void> Compiler::guard_missing_number(const Visit& visit, const Position& at, std::uint32_t field,
                                            double number) {
  const PmmlValues only = evaluator_.only(field, number);
  PmmlValues left = known(field), right = left;
  const bool smaller = left.low < only.low;
  if (!smaller && only.high == left.high) {
    go_on(visit, at, field, evaluator_.missing(field));
    return {};
  }
  PmmlParts parts;
  parts.cut = smaller ? only.low : only.high;
  left.high = right.low = parts.cut;
  (smaller ? left : right).missing = false;
  FVM_ASSIGN(const std::int32_t node, add_node(visit, separating(field, parts, left, right, true)));
  if (!smaller) left = evaluator_.missing(field);
  wait(node, field, std::move(left), at, std::move(right), at);
  return {};
}

/// Separates numbers that are not valid in a field. They count as missing, or go to leaves without an answer.
Result<void> Compiler::guard(const Visit& visit, const Position& at, std::uint32_t field) {
  if (evaluator_.is_category(field)) return guard_categories(visit, at, field);
  if (const auto number = missing_number(field)) return guard_missing_number(visit, at, field, *number);
  const PmmlField& rules = evaluator_.fields().field(field);
  const PmmlInterval& valid = *rules.valid;
  PmmlValues left = known(field), right = left;
  const bool below = left.low < valid.low;
  PmmlParts parts;
  parts.cut = below ? valid.low : valid.high;
  if (below ? parts.cut >= left.high : parts.cut <= left.low) {  // none is valid
    if (!rules.others_missing) return add_leaf(visit, Position{});
    go_on(visit, at, field, evaluator_.missing(field));
    return {};
  }
  left.high = right.low = parts.cut;
  PmmlValues &outside = below ? left : right, &inside = below ? right : left;
  (rules.others_missing ? inside : outside).missing = false;
  FVM_ASSIGN(const std::int32_t node, add_node(visit, separating(field, parts, left, right, true)));
  if (rules.others_missing) outside = evaluator_.missing(field);
  const Position there = rules.others_missing ? at : Position{};
  wait(node, field, std::move(left), below ? there : at, std::move(right), below ? at : there);
  return {};
}

Result<Tree> Compiler::run() {
  waiting_.emplace_back(Visit{Position{Position::Kind::Test, -1, 0, 0, Outcome::Unknown}, -1, false});
  while (!waiting_.empty()) {
    std::variant<SetValues, Visit> next = std::move(waiting_.back());
    waiting_.pop_back();
    if (auto* set = std::get_if<SetValues>(&next))
      known(set->field) = std::move(set->values);
    else
      FVM_TRY(this->visit(std::get<Visit>(next)));
  }
  tree_.nodes.shrink_to_fit();
  return std::move(tree_);
}

}  // namespace

Result<Tree> compile_pmml_tree(const PmmlTree& tree, const PmmlFields& fields,
                               const PmmlLeafRule& leaf_rule) {
  return Compiler(tree, fields, leaf_rule).run();
}

}  // namespace forestvm::frontend
