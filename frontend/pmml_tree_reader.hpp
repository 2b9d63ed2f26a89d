// Reads the nodes of a PMML TreeModel, element by element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/pmml_tree.hpp"
#include "frontend/xml_events.hpp"

namespace forestvm::frontend {

/// The classes of a model: the categories of its target, in the dictionary's order.
struct PmmlClasses {
  std::vector<std::string> labels;
  std::unordered_map<std::string, std::uint32_t> numbers;
};

/// Takes the elements of one tree after the other. Messages call the place of an element `where`.
class PmmlTreeReader {
 public:
  /// A model without classes has trees whose scores are numbers. `room` is the number of values that the distributions
  /// of a tree may hold.
  PmmlTreeReader(PmmlFields& fields, const PmmlClasses& classes, const std::size_t& room)
      : fields_(fields), classes_(classes), room_(room) {}

  Result<void> begin_tree(const XmlAttributes& attributes, const std::string& where);
  Result<void> begin_node(const XmlAttributes& attributes, bool has_class, const std::string& where);
  Result<void> end_node(const std::string& where);
  Result<void> add_distribution(const XmlAttributes& attributes, const std::string& where);

  // These take the predicate of the innermost node, or a part of its compound predicate.
  Result<void> add_constant(bool truth, const std::string& where);
  Result<void> add_simple(const XmlAttributes& attributes, const std::string& where);
  Result<void> begin_set(const XmlAttributes& attributes, const std::string& where);
  Result<void> begin_array(const XmlAttributes& attributes, const std::string& where);
  Result<void> end_set(std::string_view array, const std::string& where);
  Result<void> begin_compound(const XmlAttributes& attributes, const std::string& where);
  Result<void> end_compound(const std::string& where);

  /// Returns the tree that has ended.
  Result<PmmlTree> take(const std::string& where);

 private:
  struct OpenNode {
    std::int32_t node;
    std::string default_child;
    std::int32_t last_class = -1;  ///< Class of the latest ScoreDistribution.
    bool probabilities = false;  ///< True if ScoreDistribution elements give probabilities, otherwise counts.
  };

  Result<void> add(PmmlPredicate predicate, const std::string& where);
  Result<void> begin_parts(PmmlPredicate whole, const std::string& where);
  Result<void> set_value(std::string_view text, PmmlPredicate& predicate, const std::string& where);

  PmmlFields& fields_;
  const PmmlClasses& classes_;
  const std::size_t& room_;
  PmmlTree tree_;
  std::vector<OpenNode> open_;
  bool in_compound_ = false;
  PmmlPredicate set_;                 ///< The SimpleSetPredicate that is being read.
  bool has_array_ = false;            ///< True if its Array has begun.
  std::optional<double> array_size_;  ///< Attribute n of its Array.
};

}  // namespace forestvm::frontend
