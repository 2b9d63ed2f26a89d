// Small forests and their programs for tests of the VM: compiled ones, and ones whose parts a test can change
// before it encodes them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/program_parts.hpp>
#include <forestvm/program.hpp>

namespace forestvm::test {

struct ForestShape {
  std::uint32_t trees = 6;
  std::uint32_t features = 3;
  std::uint32_t outputs = 3;
  std::uint32_t depth = 3;  ///< depth of the deepest trees; the others are shallower or lopsided
};

/// Returns a softmax forest drawn from `seed`, with feature names and class labels.
Model small_forest(const ForestShape& shape = {}, std::uint32_t seed = 1);

/// Returns a tree of `depth` splits, each the right child of the one before.
Tree chain_of(std::uint32_t depth);

/// Compiles a model; a refusal fails the test and throws.
Program compiled(const Model& model, const std::string& schedule, Contract contract = Contract::Trainer);
Program compiled(const Model& model, const std::string& schedule, const CompileOptions& options);

/// Compiles a model of trees with covers to a program with contributions; a refusal fails the test and throws.
Program explained(const Model& model, const std::string& schedule, Contract contract = Contract::Trainer);

/// Compiles such a model to a program with interactions, too.
Program interacting(const Model& model, const std::string& schedule, Contract contract = Contract::Trainer);

/// Returns the outputs that a program can give; a model without classes gives no labels, but its code may be asked.
std::vector<OutputKind> outputs_of(const Program& program);

/// A schedule with rows and trees in parallel, two layouts and private accumulators.
extern const char* const kRichSchedule;
Program rich_program();

/// A schedule and the forest for it. rich_cases() together use every kind of layout, accumulator and opcode that the
/// compiler makes for the host.
struct RichCase {
  std::string schedule;
  Contract contract;
  std::uint32_t depth = 3;  ///< depth of the forest; small if tiles need much padding
  ScalarType score_type = ScalarType::Float32;
  bool categories = false;     ///< true: every other split is categorical
  bool derived = false;        ///< true: every other split tests a derived column
  bool linear = false;         ///< true: leaves are linear functions of the row
  bool vectors = false;        ///< true: leaves are vectors, and the categories of a feature have names
  bool contributions = false;  ///< true: trees have covers, and the program has contributions
  bool keeps_leaves = false;   ///< true: the program has outputs of trees and stages
  bool background = false;     ///< true: the program has contributions against a background
};
/// Makes every other split categorical, with three sets of either side and rule.
void make_categorical(Tree& tree);

/// Derives two columns from two tests of values and two weighted sums, none from hashed features, and lets every other
/// split test one of the four.
void derive_columns(Model& model);

/// Makes zeros missing, the thresholds of feature 1 float64 numbers, and those of feature 2 numbers that float32 cannot
/// tell apart.
void make_wide(Model& model);

/// Returns the forest that a case is for.
Model forest_of(const RichCase& rich);
/// Compiles a model of forest_of with the schedule, contract and options of its case.
Program program_of(const Model& model, const RichCase& rich);
const std::vector<RichCase>& rich_cases();
std::vector<Program> rich_programs();

/// Returns a program of one output whose leaves keep targets.
Program sampled_program();
/// Gives four leaves of every tree targets, so that code may compute quantiles.
void keep_targets(ProgramParts& parts);

/// Returns a program with a hashed feature, for which rows hold whole numbers.
Program hashed_program();
/// Replaces the values of a program's hashed features in row-major rows by whole numbers.
void make_whole(std::vector<float>& rows, const Program& program);

/// Returns a program with virtual ensembles.
Program uncertain_program();

/// Returns the parts from which build_program would make `program`.
ProgramParts parts_of(const Program& program);

std::vector<std::byte> image_of(const Program& program);

/// Stores the right checksum in an image that has a header.
void repair_checksum(std::vector<std::byte>& image);

/// Returns `count` rows drawn from `seed`: ordinary values, NaN, infinities, zeros of both signs, denormals.
std::vector<float> small_rows(std::size_t count, std::size_t stride, std::uint32_t seed = 1);

/// All predictions of a program for some rows, as bits.
struct Answers {
  std::vector<std::uint32_t> raw, value;
  std::vector<std::int64_t> labels;
  std::vector<std::int32_t> leaves;
  bool operator==(const Answers&) const = default;
};
Answers answers(const Predictor& predictor, Context& context, const AnyRows& rows);
Answers answers(const Predictor& predictor, const AnyRows& rows);

}  // namespace forestvm::test
