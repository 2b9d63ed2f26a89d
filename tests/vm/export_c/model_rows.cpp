#include "model_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <forestvm/core/derived_columns.hpp>

namespace forestvm::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<double> kSpecial = {std::numeric_limits<double>::quiet_NaN(),
                                      kInfinity,
                                      -kInfinity,
                                      0.0,
                                      -0.0,
                                      1e-35,
                                      -1e-35,
                                      kTiny,
                                      0x1p-149,
                                      -0x1p-149,
                                      5e-324,
                                      1.0,
                                      -1.0,
                                      -0.5,
                                      -0x1.fffffffffffffp-1,
                                      0.5,
                                      2.5,
                                      256.5,
                                      259.0,
                                      -253.0,
                                      16777215.0,
                                      16777216.0,
                                      1e300};

/// Returns the inverse modulo 2^64 of the odd factor by which keys are multiplied.
std::uint64_t inverse_of_factor() {
  std::uint64_t inverse = kKeyFactor;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kKeyFactor * inverse;
  return inverse;
}

class RowMaker {
 public:
  RowMaker(Dice& dice, const Model& model)
      : dice_(dice), model_(model), numbers_(num_columns(model)), hashed_(model.num_features) {
    for (const std::uint32_t feature : model.hashed_features) hashed_[feature] = true;
    for (const Tree& tree : model.trees)
      for (const Node& node : tree.nodes) add(tree, node);
    for (const Lookup& lookup : model.lookups) add(lookup);
  }

  double value(std::uint32_t feature) {
    const std::vector<double>& known = numbers_[feature];
    if (hashed_[feature])
      return known.empty() || dice_.percent(20) ? static_cast<double>(dice_.below(1000)) : dice_.pick(known);
    if (dice_.percent(15)) return dice_.pick(kSpecial);
    if (known.empty() || dice_.percent(10)) return dice_.real() * 8 - 4;
    return beside(dice_.pick(known));
  }

 private:
  void add(const Tree& tree, const Node& node) {
    if (node.kind == NodeKind::Less || node.kind == NodeKind::LessEqual)
      numbers_[node.feature].push_back(node.threshold);
    if (node.kind != NodeKind::Category) return;
    for (const std::uint32_t code : tree.category_sets[node.payload].codes)
      numbers_[node.feature].push_back(static_cast<double>(code));
  }

  void add(const Lookup& lookup) {
    for (const ValueTest& test : lookup.value_tests)
      numbers_[test.feature].push_back(static_cast<double>(test.border));
    for (const CodeTest& test : lookup.code_tests)
      numbers_[test.feature].push_back(static_cast<double>(test.code));
    if (lookup.categories.size() != 1 || lookup.value_tests.size() + lookup.code_tests.size() != 0) return;
    // The key of a single code is the factor's square times the code.
    const std::uint64_t inverse = inverse_of_factor();
    for (const std::uint64_t key : lookup.keys)
      if (const auto code = static_cast<std::int64_t>(key * inverse * inverse);
          code == static_cast<std::int32_t>(code))
        numbers_[lookup.categories[0]].push_back(static_cast<double>(code));
  }

  double beside(double x) {
    const double way = dice_.percent(50) ? kInfinity : -kInfinity;
    if (dice_.percent(40)) return x;
    if (dice_.percent(20)) return x + (dice_.percent(50) ? 0.5 : 1.0);
    if (model_.row_type == ScalarType::Float64 && dice_.percent(50)) return std::nextafter(x, way);
    return static_cast<double>(std::nextafter(static_cast<float>(x), static_cast<float>(way)));
  }

  Dice& dice_;
  const Model& model_;
  std::vector<std::vector<double>> numbers_;
  std::vector<bool> hashed_;
};

}  // namespace

std::vector<double> rows_for(Dice& dice, const Model& model, std::size_t count) {
  RowMaker maker(dice, model);
  std::vector<double> rows;
  rows.reserve(count * model.num_features);
  for (std::size_t row = 0; row < count; ++row)
    for (std::uint32_t feature = 0; feature < model.num_features; ++feature)
      rows.push_back(maker.value(feature));
  return rows;
}

}  // namespace forestvm::test
