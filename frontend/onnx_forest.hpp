// Reads the attributes of a tree ensemble of the operator set ai.onnx.ml: TreeEnsembleClassifier and
// TreeEnsembleRegressor (versions 1 to 4) and TreeEnsemble (version 5), in one form. In: an operation. Out: nodes,
// which may be shared by several parents, and leaves that add to several outputs.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/load.hpp>

#include "frontend/onnx_proto.hpp"

namespace forestvm::frontend {

/// The tests of nodes; the numbers are TreeEnsemble's.
enum class OnnxMode : std::uint8_t {
  LessEqual = 0,
  Less = 1,
  GreaterEqual = 2,
  Greater = 3,
  Equal = 4,
  NotEqual = 5,
  Member = 6,  ///< x is one of a set of numbers.
  Leaf = 7,
};

/// A node. A row goes to `yes` if the test holds, or if x is NaN and `nan_yes` is set. NaN passes no test but NotEqual.
struct OnnxNode {
  double value = 0;
  /// In a split: index of a node. In a leaf: its weights begin at index `yes` and end before `no`.
  std::uint32_t yes = 0;
  std::uint32_t no = 0;
  std::uint32_t column = 0;
  OnnxMode mode = OnnxMode::Leaf;
  bool nan_yes = false;
};

/// The functions that combine the trees' leaves into a score, with the numbers that TreeEnsemble gives them.
enum class OnnxAggregate : std::uint8_t { Average = 0, Sum = 1, Min = 2, Max = 3 };

/// The transforms of scores, with the numbers that TreeEnsemble gives them.
enum class OnnxPost : std::uint8_t { None = 0, Softmax = 1, Logistic = 2, SoftmaxZero = 3, Probit = 4 };
/// The names of the transforms in files, in the order of their numbers.
inline constexpr std::string_view kOnnxPostNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                      "PROBIT"};

/// The largest number of a tree, node or feature that is read.
inline constexpr std::int64_t kMaxOnnxIndex = std::numeric_limits<std::int32_t>::max();

struct OnnxForest {
  std::string where;  ///< Place of the operation.
  std::vector<OnnxNode> nodes;
  std::vector<std::uint32_t> roots;
  std::vector<std::uint32_t> targets;  ///< Output to which a weight adds.
  std::vector<double> weights;
  /// The sets of the Member nodes, which are listed in ascending order: set i has the numbers from member_begins[i] to
  /// before member_begins[i + 1].
  std::vector<std::uint32_t> member_nodes;
  std::vector<std::uint32_t> member_begins;
  std::vector<double> members;

  std::uint32_t num_outputs = 1;
  std::vector<double> base;  ///< Base scores: none, or as many as the file gives.
  OnnxAggregate aggregate = OnnxAggregate::Sum;
  OnnxPost post = OnnxPost::None;
  std::vector<std::string> class_labels;  ///< Labels of a classifier; otherwise none.
  bool classifier = false;
  bool doubles = false;  ///< True if the thresholds or weights are float64 numbers.

  /// Returns the place of a node in the file, for messages.
  std::string location_of_node(std::size_t node) const {
    return where + ", entry " + std::to_string(node) + " of its nodes";
  }
};

/// Returns true for the three operations that are read.
bool is_tree_ensemble(const OnnxOperation& operation);

/// Reads the attributes. Refuses lists that disagree in length, numbers out of range, and nodes or outputs that do not
/// exist.
Result<OnnxForest> read_onnx_forest(const OnnxOperation& operation, const LoadLimits& limits);

}  // namespace forestvm::frontend
