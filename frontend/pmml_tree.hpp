// Compiles a tree of a PMML document into a tree of two-way splits with the same answers. In PMML a node has any number
// of children, which are tried in order, and a predicate may be unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/pmml_fields.hpp"

namespace forestvm::frontend {

enum class PmmlOperator : std::uint8_t {
  True,
  False,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  In,
  NotIn,
  Missing,
  NotMissing,
  And,
  Or,
  Xor,
  Surrogate,
};

/// Returns whether the predicate is made of others.
constexpr bool is_compound(PmmlOperator op) { return op >= PmmlOperator::And; }

/// The predicate of a node, or a part of a compound one.
struct PmmlPredicate {
  PmmlOperator op = PmmlOperator::True;
  std::uint32_t field = 0;
  double value = 0;  ///< Number that a field is compared with.
  std::uint32_t begin =
      0;  ///< First category in PmmlTree::members (In, NotIn) or first part in predicates (compound).
  std::uint32_t count = 0;
};

/// A node. Nodes refer to one another by their indices in PmmlTree::nodes; -1 means none.
struct PmmlNode {
  std::uint32_t predicate = 0;  ///< Index in PmmlTree::predicates.
  std::int32_t first_child = -1, last_child = -1,
               next = -1;  ///< `next` is the next child of the same parent.
  std::int32_t default_child = -1;
  std::uint32_t distribution = UINT32_MAX;  ///< First number in PmmlTree::distributions, one for each class.
  double score = 0;                         ///< Number, or index of a class.
  bool has_score = false;
};

/// The strategies for a predicate whose outcome is unknown.
enum class PmmlUnknown : std::uint8_t { NextChild, NoAnswer, LastScore, DefaultChild };

struct PmmlTree {
  std::string where;  ///< Place in the document, for messages.
  PmmlUnknown unknown = PmmlUnknown::NextChild;
  bool last_score =
      false;  ///< A node none of whose children is true answers with its own score, if it has one.
  std::vector<PmmlNode> nodes;  ///< The root is the first.
  std::vector<PmmlPredicate> predicates;
  std::vector<std::uint32_t> members;  ///< Categories, ascending within a predicate.
  std::vector<double> distributions;   ///< Counts or probabilities of classes; NaN where a node gives none.
};

/// Writes the outputs of a leaf; `node` is null for the leaf of rows that have no answer.
using PmmlLeafRule = std::function<Result<void>(const PmmlNode* node, Node& leaf, Tree& tree)>;

/// Makes a tree of two-way splits. Its splits test fields by their numbers in `fields`. Refuses a tree that needs many
/// more splits than it has nodes.
Result<Tree> compile_pmml_tree(const PmmlTree& tree, const PmmlFields& fields, const PmmlLeafRule& leaf_rule);

}  // namespace forestvm::frontend
