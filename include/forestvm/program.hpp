// The Program: bytecode and encoded forest in one versioned, little-endian, position-independent image.
// Memory holds what the .fvm file holds, byte for byte: loading maps and verifies it; nothing is parsed or
// relocated. Implemented by vm/program. Files of other byte orders are not supported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/core/attributions.hpp>
#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/categories.hpp>
#include <forestvm/core/contract.hpp>
#include <forestvm/core/derived_columns.hpp>
#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/leaf_functions.hpp>
#include <forestvm/core/leaf_lists.hpp>
#include <forestvm/core/path_data.hpp>
#include <forestvm/core/rounds.hpp>
#include <forestvm/core/transform.hpp>
#include <forestvm/core/uncertainty.hpp>
#include <forestvm/core/wide_values.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Format of new files, raised when older runtimes could not read them.
inline constexpr std::uint16_t kProgramFormat = 8;
inline constexpr std::uint16_t kOldestProgramFormat = 8;  ///< Oldest format that this build reads.
inline constexpr std::size_t kSectionAlignment = 64;      ///< Alignment of sections in bytes.
/// The most bytes that the private accumulators of one call may take.
inline constexpr std::uint64_t kMaxScratchBytes = std::uint64_t{64} << 20;

/// The shapes and facts of a program: the one record of the meta section.
struct ProgramMeta {
  std::uint32_t num_features;
  std::uint32_t num_outputs;  ///< Raw scores per row.
  std::uint32_t num_trees;
  Transform transform;
  ClassRule class_rule;
  Contract contract;
  std::uint8_t sums_in_model_order;  ///< 1 if every row's leaves are added in the trainer's order.
  std::uint64_t fingerprint;         ///< Identifies the model.
  std::uint64_t forest_nodes;        ///< Nodes of all trees: see ForestStatistics.
  std::uint64_t forest_leaves;
  double mean_depth;
  std::uint32_t min_depth;
  std::uint32_t max_depth;
  std::uint32_t num_feature_names;  ///< 0 or num_features.
  std::uint32_t num_class_labels;
  std::int32_t sum_unit;  ///< Exponent of the unit 2^sum_unit that exact accumulators count.
  ScalarType score_type;  ///< Type of leaves, sums and raw scores: see Model.
  ScalarType row_type;    ///< Type in which the trainer compares a row's values: see Model.
  Pair pair;              ///< Model::pair
  /// Rule of the rounds from which calls choose. In other programs Averages, if raw scores are divided by `divisor` and
  /// there are contributions, or None.
  RoundRule rounds;
  double divisor = 1;             ///< TransformParameters::divisor.
  double slope = 1;               ///< TransformParameters::slope.
  std::uint64_t category_splits;  ///< Categorical splits: see ForestStatistics.
  double offset;                  ///< TransformParameters::offset.
  double scale = 1;               ///< Model::scale
  std::uint32_t derived_columns;  ///< Columns derived from a row's features: see core/derived_columns.hpp.
  std::uint8_t takes_margins;     ///< Model::takes_margins
  EarlyStopRule early_stop;       ///< Model::early_stop
  /// 1 if the program gives contributions of features, 2 if it gives interactions too: see ExplainedTree.
  std::uint8_t contributions;
  std::uint8_t reserved2;    ///< Zero.
  std::uint64_t group_ends;  ///< TransformParameters::group_ends
};
static_assert(sizeof(ProgramMeta) == 128);

/// Returns the number of values of a row that walks and the encoder read: the features, then the derived columns.
inline std::uint32_t row_width(const ProgramMeta& meta) { return meta.num_features + meta.derived_columns; }

/// The number of things (such as thresholds) that a feature has. Lists are ascending by feature and leave out
/// features that have none, so that models with few splits and millions of features stay small.
struct FeatureCount {
  std::uint32_t feature;
  std::uint32_t count;

  bool operator==(const FeatureCount&) const = default;
};
static_assert(sizeof(FeatureCount) == 8);

/// The bytes of a text in the text section.
struct StringRef {
  std::uint32_t offset;
  std::uint32_t size;
};

/// A feature whose categories have names: see FeatureCategories. Their strings follow the class labels, feature by
/// feature and code by code.
struct CategoryNames {
  std::uint32_t feature;
  std::uint32_t count;          ///< Number of names; the first is code 0.
  double unseen;                ///< FeatureCategories::unseen; 0 if refuses_unseen.
  std::uint8_t refuses_unseen;  ///< 1: a text that is no name is refused.
  std::uint8_t reserved[7];     ///< Zero.
};
static_assert(sizeof(CategoryNames) == 24);

/// The first strings of the strings section.
enum class StringId : std::uint32_t {
  Format = 0,
  Trainer = 1,
  Version = 2,
  Objective = 3,
  Schedule = 4,
  Count
};

enum class Section : std::uint32_t {
#define FVM_SECTION(number, Name, name, Record, meaning) Name = number,
#include <forestvm/internal/sections.def>
};
inline constexpr std::size_t kSectionCount = 0
#define FVM_SECTION(number, Name, name, Record, meaning) +1
#include <forestvm/internal/sections.def>
    ;
/// The sections that every program file has. Of those after them, files leave out all behind the last that is not
/// empty.
inline constexpr std::size_t kCommonSections = static_cast<std::size_t>(Section::ExplainedTrees);

/// The extent to which load and from_bytes check an image before they return a program.
enum class Verification {
  Full,   ///< Checks the checksum and every rule of the verifier.
  Trust,  ///< Checks only the headers and small tables: for files that nobody else can write.
};

/// An immutable, verified program. Copies share the image. Any number of threads may use it at once.
class Program {
 public:
  /// Maps the file at `path` read-only. The file must not be changed while a Program of it exists.
  /// Environment if it cannot be read; Refused, with the section, offset or pc and the rule that it breaks,
  /// if it is no valid program.
  static Result<Program> load(const std::string& path, Verification verification = Verification::Full);

  /// Copies the image `bytes` into aligned memory.
  static Result<Program> from_bytes(std::span<const std::byte> bytes,
                                    Verification verification = Verification::Full);

  /// Takes the image where it lies, at a multiple of kSectionAlignment (Usage if it does not), until the last copy of
  /// the program is gone; `owner` is kept as long.
  static Result<Program> borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                Verification verification = Verification::Full);

  /// Writes the image to a file beside `path` and renames it, so that readers see either the old file or the
  /// new one.
  Result<void> save(const std::string& path) const;

  std::span<const std::byte> image() const;

  const ProgramMeta& meta() const;

  /// Each function returns the records of the section that it is named after.
#define FVM_RECORD(number, Name, name, Record, meaning)
#define FVM_SECTION(number, Name, name, Record, meaning) \
  std::span<const Record> name() const { return records<Record>(Section::Name); }
#include <forestvm/internal/sections.def>
  /// Returns the bytes of a section's records.
  std::span<const std::byte> section(Section section) const;

  std::string_view text(StringId id) const { return string(static_cast<std::size_t>(id)); }
  /// Returns the name of a feature; an empty text if the model has no names.
  std::string_view feature_name(std::uint32_t feature) const;
  /// Returns the label of a class by its index; an empty text if the model has no labels.
  std::string_view class_label(std::uint32_t label) const;

  /// Returns the names of a feature's categories, by code; none if they have no names.
  std::vector<std::string_view> category_names(std::uint32_t feature) const;

  /// Returns the record of a feature's named categories; null if they have no names.
  const CategoryNames* named_categories(std::uint32_t feature) const;
  /// Returns one of the names of a feature that has names.
  std::string_view category_name(std::uint32_t feature, std::uint32_t code) const;

  /// Returns whether some loop is mapped to a GPU's grid or blocks: only a GPU runs such a program.
  bool mapped() const;

  /// Returns the assembly of the program's code and tables.
  std::string disassemble() const;

 private:
  friend class ProgramImage;
  struct Image;
  explicit Program(std::shared_ptr<const Image> image) : image_(std::move(image)) {}

  std::string_view string(std::size_t index) const;
  /// Returns the index of the string of a feature's category 0.
  std::size_t first_category_string(std::uint32_t feature) const;
  template <class Record>
  std::span<const Record> records(Section which) const {
    const auto bytes = section(which);
    return {reinterpret_cast<const Record*>(bytes.data()), bytes.size() / sizeof(Record)};
  }

  std::shared_ptr<const Image> image_;
};

/// Returns the id of a program's encoder. Programs have equal ids if they turn every row into the same codes
/// and agree on what each code means. It is the XXH3-64 of the tables that define the encoder.
std::uint64_t encoder_id(const Program& program);

/// Returns the parameters of a program's transform.
TransformParameters parameters_of(const ProgramMeta& meta);

/// Returns whether `bytes` begin like a program file.
bool is_program(std::span<const std::byte> bytes);

}  // namespace forestvm
