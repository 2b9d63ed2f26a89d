// Replaces predicates on derived fields that are functions of one field. In: a comparison of the derived field. Out:
// comparisons of its source that have the same outcome for every value. So trees test fields of the rows, and nothing
// needs to be computed for a row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/pmml_tree.hpp"

namespace forestvm::frontend {

/// Returns whether JPMML has no answer for a row whose value of a derived field is missing.
bool pmml_needs_value(const PmmlFields& fields, std::uint32_t field);

/// Returns the predicates on the source of the derived field `predicate.field` that together have the outcome of
/// `predicate`: one, or a compound predicate and its parts. Appends categories to `members`.
Result<std::vector<PmmlPredicate>> pmml_source_predicates(PmmlFields& fields, const PmmlPredicate& predicate,
                                                          std::vector<std::uint32_t>& members,
                                                          const std::string& where);

}  // namespace forestvm::frontend
