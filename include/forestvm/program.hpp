// The Program: bytecode and encoded forest in one versioned, little-endian, position-independent image. What
// is in memory is what is in the .fvm file, byte for byte: loading maps it and proves it, nothing is parsed
// or relocated. Implemented by vm/program. Files of other byte orders are not supported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/contract.hpp>
#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/transform.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

inline constexpr std::uint16_t kProgramFormat = 8;  ///< raised when an older runtime cannot read a newer file
inline constexpr std::uint16_t kOldestProgramFormat = 8;  ///< that this build reads
inline constexpr std::size_t kSectionAlignment = 64;      ///< bytes
inline constexpr std::uint64_t kMaxScratchBytes = std::uint64_t{64}
                                                  << 20;  ///< private accumulators of one call

/// Shapes and facts of a program: the one record of the meta section.
struct ProgramMeta {
  std::uint32_t num_features;
  std::uint32_t num_outputs;  ///< raw scores per row
  std::uint32_t num_trees;
  Transform transform;
  ClassRule class_rule;
  Contract contract;
  std::uint8_t sums_in_model_order;  ///< 1 if every row's leaves are added in the trainer's order
  std::uint64_t fingerprint;         ///< of the model
  std::uint64_t forest_nodes;        ///< see ForestStatistics
  std::uint64_t forest_leaves;
  double mean_depth;
  std::uint32_t min_depth;
  std::uint32_t max_depth;
  std::uint32_t num_feature_names;  ///< 0 or num_features
  std::uint32_t num_class_labels;
  std::int32_t sum_unit;          ///< exact accumulators count 2^sum_unit
  ScalarType score_type;          ///< in which the trainer compares and sums
  std::uint8_t reserved[3];       ///< zero
  double divisor = 1;             ///< TransformParameters::divisor
  double slope = 1;               ///< TransformParameters::slope
  std::uint64_t category_splits;  ///< see ForestStatistics
  std::uint8_t reserved2[32];     ///< zero
};
static_assert(sizeof(ProgramMeta) == 128);

/// How many of something a feature has. Lists of these are ascending and leave out features that have none,
/// so that models of few splits and millions of features stay small.
struct FeatureCount {
  std::uint32_t feature;
  std::uint32_t count;

  bool operator==(const FeatureCount&) const = default;
};
static_assert(sizeof(FeatureCount) == 8);

/// Where a text lies in the text section.
struct StringRef {
  std::uint32_t offset;
  std::uint32_t size;
};

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
#define FVM_SECTION(number, Name, text, Record, meaning) Name = number,
#include <forestvm/internal/sections.def>
};
inline constexpr std::size_t kSectionCount = 0
#define FVM_SECTION(number, Name, text, Record, meaning) +1
#include <forestvm/internal/sections.def>
    ;

/// What the compiler fills in; encode_program makes a Program of it.
struct ProgramParts {
  ProgramMeta meta{};
  std::vector<Inst> code;
  std::vector<WalkerDesc> walkers;
  std::vector<GroupDesc> groups;
  std::vector<TreeDesc> trees;
  std::vector<TileShape> tile_shapes;
  std::vector<AccumulatorDesc> accumulators;
  std::vector<double> base;
  std::vector<FeatureCount> thresholds;
  std::vector<EncodedFeature> encoded_features;
  std::vector<ColumnDesc> columns;
  std::vector<float> ranks;
  std::vector<CategoryColumn> category_columns;
  std::vector<std::uint32_t> category_words;
  std::vector<std::string> strings;  ///< StringId::Count of them, then feature names, then class labels
  std::vector<std::uint32_t> leaf_numbers;
  std::vector<double> wide_leaves;
  std::vector<std::uint32_t> zero_missing;
  std::vector<std::byte> nodes;
};

/// Whether load and from_bytes prove the image before they return it.
enum class Verification {
  Full,   ///< checksum and every rule of the verifier
  Trust,  ///< only what is needed to find the sections: for files that nobody else can write
};

/// An immutable, verified program. Copies share the image. Thread-safe.
class Program {
 public:
  /// Maps the file at `path` read-only. The file must not be changed while a Program of it lives.
  /// Errors: Environment when it cannot be read, Refused with section, offset or pc and the rule it breaks.
  static Result<Program> load(const std::string& path, Verification verification = Verification::Full);

  /// Copies the image `bytes` into aligned memory.
  static Result<Program> from_bytes(std::span<const std::byte> bytes,
                                    Verification verification = Verification::Full);

  /// Writes the image to a file beside `path` and renames it, so that readers see the old file or the new
  /// one.
  Result<void> save(const std::string& path) const;

  std::span<const std::byte> image() const;

  const ProgramMeta& meta() const;
#define FVM_SECTION(number, Name, text, Record, meaning) \
  std::span<const Record> section_##Name() const { return records<Record>(Section::Name); }
#include <forestvm/internal/sections.def>

  std::span<const Inst> code() const { return section_Code(); }
  std::string_view text(StringId id) const { return string(static_cast<std::size_t>(id)); }
  std::string_view feature_name(std::uint32_t feature) const;  ///< empty if the model has no names
  std::string_view class_label(std::uint32_t label) const;     ///< empty if the model has no labels

  /// Whether some loop is mapped to a GPU's grid or blocks: such a program runs there only.
  bool mapped() const;

  /// The assembly of the program's code and tables.
  std::string disassemble() const;

 private:
  friend class ProgramImage;
  struct Image;
  explicit Program(std::shared_ptr<const Image> image) : image_(std::move(image)) {}

  std::span<const std::byte> section(Section section) const;
  std::string_view string(std::size_t index) const;
  template <class Record>
  std::span<const Record> records(Section which) const {
    const auto bytes = section(which);
    return {reinterpret_cast<const Record*>(bytes.data()), bytes.size() / sizeof(Record)};
  }

  std::shared_ptr<const Image> image_;
};

/// Makes the image of `parts` and verifies it: what comes back runs.
Result<Program> encode_program(const ProgramParts& parts);

/// Reads what Program::disassemble prints: one instruction a line, `;` begins a comment, the pc before an
/// instruction may be left out. The program is `data` with this code; its tables, forest and what it says of
/// its compilation are kept, so an unedited text gives the same image. Refused with "line L, column C" where
/// the text is no assembly, else with the pc and the verifier's rule.
Result<Program> assemble(std::string_view text, const Program& data);

/// The distinct thresholds of each feature that has some, ascending, read out of the forest's nodes: a tool's
/// question, not a call's. Categorical splits have none.
std::map<std::uint32_t, std::vector<float>> thresholds(const Program& program);

/// The most steps that a call takes for each of its rows, in a program that was loaded with full
/// verification: node visits, elements of sums that are read or written, thresholds that are compared,
/// instructions. The verifier refuses programs that take more than 2^22 steps and 64 for each byte of the
/// program.
std::uint64_t steps_per_row(const Program& program);

/// Which encoder a program has: programs that turn every row into the same codes, and agree on what each
/// means, have the same. XXH3-64 of what says so in the program.
std::uint64_t encoder_id(const Program& program);

/// XXH3-64 of some bytes, the checksum of files. `seed`: that of what comes before, where something does.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// True if `bytes` begin like a program file.
bool is_program(std::span<const std::byte> bytes);

/// The ISA as a Markdown page, made from the rows of opcodes.def and operands.def.
std::string isa_page();

}  // namespace forestvm
