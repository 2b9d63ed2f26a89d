// The verifier's first half: the container and the small tables.
#include <cmath>
#include <cstring>

#include <forestvm/core/accumulators.hpp>
#include <forestvm/core/category_rules.hpp>
#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/program/format.hpp"
#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

Result<void> verify_header(const FileHeader& header, std::size_t size) {
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return refused("header", "not a program file; forestvm compile makes one from a model");
  if (header.format > kProgramFormat)
    return refused("header",
                   "program format {} is newer than this build's {}: use a newer forestvm, or "
                   "compile the model again",
                   header.format, kProgramFormat);
  if (header.format < kOldestProgramFormat)
    return refused("header",
                   "program format {} is older than this build's oldest, {}: compile the model again",
                   header.format, kOldestProgramFormat);
  if (header.feature_bits != 0)
    return refused("header", "the program needs features that this build does not know (bits {})",
                   header.feature_bits);
  if (header.file_size != size)
    return refused("header", "the file has {} bytes, its header says {}", size, header.file_size);
  if (header.section_count < kCommonSections || header.section_count > kSectionCount)
    return refused("header", "{} sections, expected {} to {}", header.section_count, kCommonSections,
                   kSectionCount);
  for (const std::uint8_t byte : header.unused)
    if (byte != 0) return refused("header", "a reserved byte is not zero");
  if (header.reserved != 0) return refused("header", "a reserved field is not zero");
  return {};
}

Result<void> verify_zeros(std::span<const std::byte> image, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t at = from; at < to; ++at)
    if (image[at] != std::byte{0})
      return refused(formatted("offset {}", at), "a byte between sections is not zero");
  return {};
}

Result<void> verify_section_table(std::span<const std::byte> image, std::size_t count) {
  std::uint64_t end = sizeof(FileHeader) + count * sizeof(SectionEntry);
  if (image.size() < end)
    return refused("header", "the file has {} bytes, too few for {} sections", image.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, image.data() + sizeof(FileHeader) + i * sizeof entry, sizeof entry);
    const std::string where = formatted("{} section", name_of(static_cast<Section>(i)));
    if (static_cast<std::size_t>(entry.id) != i || entry.reserved != 0)
      return refused(where, "entry {} of the section table names another section", i);
    if (entry.offset != align_up(end))
      return refused(where, "begins at offset {}, expected {}", entry.offset, align_up(end));
    if (entry.offset > image.size() || entry.size > image.size() - entry.offset)
      return refused(where, "{} bytes at offset {} leave the file of {} bytes", entry.size, entry.offset,
                     image.size());
    if (entry.size % kRecordSizes[i] != 0)
      return refused(where, "{} bytes are not a multiple of its record's {}", entry.size, kRecordSizes[i]);
    FVM_TRY(verify_zeros(image, end, entry.offset));
    end = entry.offset + entry.size;
  }
  if (end != image.size())
    return refused(formatted("offset {}", end), "{} bytes after the last section", image.size() - end);
  return {};
}

Result<void> verify_meta(const ProgramMeta& meta) {
  constexpr const char* kWhere = "meta section";
  // A leaf of a fixed-length walk reads feature 0 and ignores it: a row has at least one.
  if (meta.num_features == 0 || meta.num_features > kMaxFeatures)
    return refused(kWhere, "{} features, expected 1 to {}", meta.num_features, kMaxFeatures);
  if (meta.derived_columns > kMaxFeatures - meta.num_features)
    return refused(kWhere, "{} derived columns, expected at most {} with the features", meta.derived_columns,
                   kMaxFeatures);
  if (meta.num_outputs == 0 || meta.num_outputs > 65536)
    return refused(kWhere, "{} outputs, expected 1 to 65536", meta.num_outputs);
  if (!is_declared(meta.transform)) return refused(kWhere, "unknown transform");
  if (!is_declared(meta.class_rule)) return refused(kWhere, "unknown class rule");
  if (!is_declared(meta.contract)) return refused(kWhere, "unknown numeric contract");
  if (meta.sums_in_model_order > 1) return refused(kWhere, "sums_in_model_order is neither 0 nor 1");
  if (meta.num_feature_names != 0 && meta.num_feature_names != meta.num_features)
    return refused(kWhere, "{} feature names for {} features", meta.num_feature_names, meta.num_features);
  if (meta.sum_unit < kLowestUnit || meta.sum_unit > kHighestUnit)
    return refused(kWhere, "exact sums count 2^{}, expected 2^{} to 2^{}", meta.sum_unit, kLowestUnit,
                   kHighestUnit);
  if (static_cast<std::uint8_t>(meta.rounds) >= kRoundRules) return refused(kWhere, "unknown rule of rounds");
  if (meta.reserved2 != 0) return refused(kWhere, "a reserved byte is not zero");
  if (meta.contributions > 2) return refused(kWhere, "contributions is neither 0, 1 nor 2");
  if (meta.takes_margins > 1) return refused(kWhere, "takes_margins is neither 0 nor 1");
  if (static_cast<std::uint8_t>(meta.early_stop) >= kEarlyStopRules)
    return refused(kWhere, "unknown rule of early stop");
  if (meta.early_stop == EarlyStopRule::Lead && meta.num_outputs < 2)
    return refused(kWhere, "a lead of a single output");
  if (meta.score_type > ScalarType::Float64) return refused(kWhere, "unknown type of the scores");
  if (meta.row_type > ScalarType::Float64) return refused(kWhere, "unknown type of the rows");
  if (meta.row_type > meta.score_type) return refused(kWhere, "float64 rows and float32 scores");
  if (!is_declared(meta.pair)) return refused(kWhere, "unknown pair");
  if (meta.pair != Pair::None && meta.num_outputs != 1)
    return refused(kWhere, "pairs of values for more than one output");
  if (meta.transform == Transform::Uncertainty && meta.num_outputs != 2)
    return refused(kWhere, "means and variances for {} outputs", meta.num_outputs);
  if (meta.transform == Transform::WeightedMedian && meta.num_outputs % 2 != 0)
    return refused(kWhere, "a weighted median of {} outputs, which are scores and as many weights",
                   meta.num_outputs);
  if (!are_group_ends(meta.class_rule, meta.num_outputs, meta.group_ends))
    return refused(kWhere, "the groups of outputs do not cover {} outputs", meta.num_outputs);
  if (!std::isfinite(meta.divisor) || !std::isfinite(meta.slope) || meta.divisor == 0)
    return refused(kWhere, "the transform's divisor or slope is not a finite number, or the divisor is zero");
  if (!std::isfinite(meta.offset)) return refused(kWhere, "the transform's offset is not a finite number");
  if (!std::isfinite(meta.scale) || meta.scale == 0)
    return refused(kWhere, "the scale is zero or no finite number");
  if (!std::isfinite(meta.mean_depth)) return refused(kWhere, "the mean depth is not a number");
  return {};
}

/// Returns what is wrong with bound number `i` of a feature; null if nothing is.
const char* wrong_bound(const WideFeature& wide, std::span<const double> bounds, std::size_t i) {
  if (!std::isfinite(bounds[i])) return "a bound is not finite";
  if (i != 0 && !(bounds[i] > bounds[i - 1])) return "a bound does not ascend";
  if (wide.ranked != 0) return nullptr;
  const Neighbours around = neighbours(bounds[i]);
  if (around.down == around.up) return "a bound is a float32 number";
  if (i != 0 && around.up == neighbours(bounds[i - 1]).up)
    return "two bounds lie between two float32 numbers";
  return nullptr;
}

Result<void> verify_wide_features(const Program& program) {
  const ProgramMeta& meta = program.meta();
  const auto features = program.wide_features();
  const auto bounds = program.wide_bounds();
  std::size_t taken = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const WideFeature& wide = features[i];
    const auto wrong = [i](const char* what) { return record_error("wide_features", i, what); };
    const auto rule = static_cast<WideCategories>(wide.categories);
    if (meta.row_type != ScalarType::Float64 && (rule != WideCategories::Integers || wide.bound_count != 0))
      return wrong("the program does not compare in float64");
    if (wide.feature >= meta.num_features) return wrong("its feature lies outside the row");
    if (i != 0 && wide.feature <= features[i - 1].feature) return wrong("its feature does not ascend");
    if (wide.ranked > 1 || wide.categories >= kWideCategories || wide.reserved[0] != 0 ||
        wide.reserved[1] != 0)
      return wrong("a flag or reserved byte is not valid");
    if (wide.ranked != 0 && rule != WideCategories::None && rule != WideCategories::Integers)
      return wrong("categories have no ranks");
    if (wide.first_bound != taken) return wrong("its bounds do not follow the feature before");
    if (wide.bound_count > bounds.size() - taken) return wrong("its bounds leave the wide_bounds section");
    if (wide.ranked != 0 && wide.bound_count >= kMaxRankedBounds) return wrong("it has too many bounds");
    for (std::size_t bound = 0; bound < wide.bound_count; ++bound)
      if (const char* what = wrong_bound(wide, bounds.subspan(taken, wide.bound_count), bound))
        return wrong(what);
    taken += wide.bound_count;
  }
  if (taken != bounds.size())
    return refused("wide_bounds section", "{} bounds, but the features have {}", bounds.size(), taken);
  return {};
}

Result<void> verify_leaf_functions(const Program& program) {
  const ProgramMeta& meta = program.meta();
  const auto functions = program.leaf_functions();
  const auto terms = program.leaf_terms();
  const auto whole = [&](CText what) { return refused("leaf_functions section", what); };
  // Programs that compare in float64 have no derived columns or hashed features, which functions could not read.
  if (!functions.empty() && meta.row_type != ScalarType::Float64)
    return whole("the program does not compare in float64");
  if (!functions.empty() && !program.leaf_vectors().empty())
    return whole("the program's leaves have vectors, too");
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto wrong = [i](const char* what) { return record_error("leaf_functions", i, what); };
    if (!std::isfinite(functions[i].constant) || !std::isfinite(functions[i].value))
      return wrong("a number is not finite");
    if (functions[i].first_term != taken) return wrong("its terms do not follow the record before");
    taken += functions[i].term_count;
    if (taken > terms.size()) return wrong("its terms leave the leaf_terms section");
  }
  if (taken != terms.size())
    return refused("leaf_terms section", "{} terms, but the functions have {}", terms.size(), taken);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto wrong = [i](const char* what) { return record_error("leaf_terms", i, what); };
    if (terms[i].feature >= meta.num_features) return wrong("its feature lies outside the row");
    if (!std::isfinite(terms[i].coefficient)) return wrong("its coefficient is not finite");
    if (terms[i].reserved != 0) return wrong("a reserved field is not zero");
  }
  return {};
}

Result<void> verify_category_names(const Program& program) {
  const auto records = program.category_names();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const CategoryNames& named = records[i];
    const auto wrong = [i](const char* what) { return record_error("category_names", i, what); };
    if (named.feature >= program.meta().num_features) return wrong("its feature lies outside the row");
    if (i != 0 && named.feature <= records[i - 1].feature) return wrong("its feature does not ascend");
    if (named.count > kMaxCategories) return wrong("it has too many categories");
    if (named.refuses_unseen > 1) return wrong("refuses_unseen is neither 0 nor 1");
    const bool code = named.unseen >= 0 && named.unseen < kMaxCategories;
    if (!code && !(std::isnan(named.unseen) && named.refuses_unseen == 0))
      return wrong("the number for texts without a name is not a category");
    for (const std::uint8_t byte : named.reserved)
      if (byte != 0) return wrong("a reserved byte is not zero");
  }
  return {};
}

Result<void> verify_strings(const Program& program) {
  const auto strings = program.strings();
  const auto text = program.text();
  std::uint64_t expected = static_cast<std::uint64_t>(StringId::Count) + program.meta().num_feature_names +
                           program.meta().num_class_labels;
  for (const CategoryNames& named : program.category_names()) expected += named.count;
  if (strings.size() != expected)
    return refused("strings section", "{} strings, expected {}", strings.size(), expected);
  // Strings that shared their text could be longer together than the file is.
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].offset != end)
      return refused("strings section", "string {} does not follow the one before", i);
    end += strings[i].size;
    if (end > text.size()) return refused("strings section", "string {} leaves the text section", i);
  }
  if (end != text.size())
    return refused("text section", "{} bytes, but the strings have {}", text.size(), end);
  return {};
}

Result<void> verify_accumulators(const Program& program) {
  const auto accumulators = program.accumulators();
  const auto wrong = [](std::size_t i, CText what) {
    return refused("accumulators section", "a{}: {}", i, what);
  };
  if (accumulators.empty() || accumulators.size() > kAccumulators)
    return refused("accumulators section", "{} accumulators, expected 1 to {}", accumulators.size(),
                   kAccumulators);
  std::uint64_t scratch = 0;
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    const AccumulatorDesc& a = accumulators[i];
    for (const std::uint8_t byte : a.reserved)
      if (byte != 0) return wrong(i, "a reserved byte is not zero");
    if (!is_declared(a.kind)) return wrong(i, "unknown kind");
    if (a.parent > i) return wrong(i, "its parent must come before it");
    if (i == kResult && (a.kind != AccumulatorKind::F32 || a.stored_in != 0))
      return wrong(i, "the result is float32 and has memory of its own");
    if (a.parent == i) {
      if (a.iterations != 1 || a.copies != 1) return wrong(i, "what is not private exists once");
    } else {
      if (a.iterations == 0) return wrong(i, "no iterations");
      if (is_per_tree(a.kind)) return wrong(i, "per-tree values are never private");
      if (a.kind != accumulators[a.parent].kind) return wrong(i, "its parent is of another kind");
      if (std::uint64_t{a.iterations} * accumulators[a.parent].copies != a.copies)
        return wrong(i, formatted("{} copies are not its iterations times its parent's copies", a.copies));
    }
    // Chains of accumulators in one another go forward only, so they end.
    if (a.stored_in < i || a.stored_in >= accumulators.size())
      return wrong(i, "it lies in no later accumulator");
    if (a.stored_in != i && (accumulators[a.stored_in].parent != i || a.parent == i))
      return wrong(i, "it lies in an accumulator that is not a private copy of it");
    if (a.kind == AccumulatorKind::PerTree64 && program.meta().score_type != ScalarType::Float64)
      return wrong(i, "float64 leaves of a program that has none");
    if (i != kResult)  // the CodeMap, which has these bytes too, is made only of accumulators that passed
      scratch += accumulator_bytes(accumulators.data(), static_cast<std::uint32_t>(i),
                                   program.meta().num_outputs, program.meta().num_trees);
  }
  if (scratch > kMaxScratchBytes)
    return refused("accumulators section", "{} bytes of private accumulators a row, more than {}", scratch,
                   kMaxScratchBytes);
  return {};
}

/// Returns what is wrong with a shape; null if nothing is. Each node but the first, and each exit, must be
/// reached once, and a node from an earlier one.
const char* shape_rule(const TileShape& shape) {
  if (shape.size > kMaxTileSize) return "more nodes than a tile can have";
  unsigned nodes = 1, exits = 0;
  const auto visit = [&](std::uint8_t entry, unsigned from) {
    const bool exit = (entry & kTileExit) != 0;
    const unsigned to = entry & ~unsigned{kTileExit};
    unsigned& seen = exit ? exits : nodes;
    if (exit ? to > shape.size : to <= from || to >= shape.size) return false;
    if ((seen >> to & 1) != 0) return false;
    seen |= 1u << to;
    return true;
  };
  for (unsigned i = 0; i < kMaxTileSize; ++i) {
    if (i >= shape.size && (shape.left[i] != 0 || shape.right[i] != 0)) return "an unused entry is not zero";
    if (i < shape.size && (!visit(shape.left[i], i) || !visit(shape.right[i], i)))
      return "its nodes are not a binary tree";
  }
  return nullptr;
}

Result<void> verify_tile_shapes(const Program& program) {
  const auto shapes = program.tile_shapes();
  if (shapes.size() > kMaxTileShapes)
    return refused("tile_shapes section", "{} shapes, at most {}", shapes.size(), kMaxTileShapes);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string where = formatted("tile_shapes section: shape {}", i);
    if ((i == 0) != (shapes[i].size == 0))
      return refused(where, "the first shape, and no other, has no nodes");
    if (const char* rule = shape_rule(shapes[i])) return refused(where, rule);
  }
  return {};
}

Result<void> verify_uncertainty(const Program& program) {
  const auto all = program.uncertainty();
  if (all.empty()) return {};
  constexpr const char* kWhere = "uncertainty section";
  if (all.size() != 1) return refused(kWhere, "{} records, at most 1", all.size());
  const UncertaintyDesc& desc = all[0];
  const ProgramMeta& meta = program.meta();
  const auto rule = static_cast<std::uint8_t>(desc.rule);
  if (rule == 0 || rule >= kUncertaintyRules) return refused(kWhere, "there is no rule {}", rule);
  if (desc.reserved[0] != 0 || desc.reserved[1] != 0 || desc.reserved[2] != 0)
    return refused(kWhere, "a reserved byte is not zero");
  if (!(desc.shrinkage >= 0 && desc.shrinkage < 1))
    return refused(kWhere, "its shrinkage is not from 0 to below 1");
  if (program.round_begins().empty()) return refused(kWhere, "the program keeps no leaves");
  if ((desc.rule == UncertaintyRule::Trees) != (meta.rounds == RoundRule::Averages))
    return refused(kWhere, "its rule is for other rounds");
  if (desc.rule == UncertaintyRule::Trees) return {};
  if (meta.score_type != ScalarType::Float64) return refused(kWhere, "its rule is for float64 scores");
  const std::uint32_t outputs = desc.rule == UncertaintyRule::Gaussian  ? 2
                                : desc.rule == UncertaintyRule::Classes ? meta.num_outputs
                                                                        : 1;
  if (meta.num_outputs == outputs) return {};
  return refused(kWhere, "its rule is for {} outputs, the program has {}", outputs, meta.num_outputs);
}

Result<void> verify_rounds(const Program& program) {
  FVM_TRY(verify_uncertainty(program));
  const auto begins = program.round_begins();
  if (begins.empty()) {
    const ProgramMeta& meta = program.meta();
    const bool explains = meta.contributions != 0 || !program.attribution_base().empty();
    if (meta.rounds == RoundRule::None || (explains && meta.rounds == RoundRule::Averages)) return {};
    return refused("meta section", "a rule of rounds, but no rounds");
  }
  if (begins.front() != 0 || begins.back() != program.meta().num_trees)
    return refused("round_begins section", "the rounds do not cover the {} trees", program.meta().num_trees);
  for (std::size_t i = 1; i < begins.size(); ++i)
    if (begins[i] < begins[i - 1]) return record_error("round_begins", i, "it does not ascend");
  return {};
}

}  // namespace

Result<void> verify_container(std::span<const std::byte> image, bool with_checksum) {
  if (image.size() < table_end(kCommonSections))
    return refused("header", "the file has {} bytes, too few for a forestvm program", image.size());
  FileHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  FVM_TRY(verify_header(header, image.size()));
  if (with_checksum && header.checksum != checksum(image))
    return refused("header", "the checksum does not match: the file is damaged");
  return verify_section_table(image, header.section_count);
}

Result<void> verify_tables(const Program& program) {
  const std::size_t records = program.section(Section::Meta).size() / sizeof(ProgramMeta);
  if (records != 1) return refused("meta section", "{} records, expected 1", records);
  const ProgramMeta& meta = program.meta();
  FVM_TRY(verify_meta(meta));
  if (program.base().size() != meta.num_outputs)
    return refused("base section", "{} base scores for {} outputs", program.base().size(), meta.num_outputs);
  const auto thresholds = program.thresholds();
  for (std::size_t i = 0; i < thresholds.size(); ++i) {
    const auto wrong = [i](const char* what) { return record_error("thresholds", i, what); };
    if (thresholds[i].feature >= row_width(meta)) return wrong("its feature lies outside the row");
    if (i != 0 && thresholds[i].feature <= thresholds[i - 1].feature)
      return wrong("its feature does not ascend");
    if (thresholds[i].count == 0) return wrong("its feature has none");
  }
  const std::size_t wide = program.wide_leaves().size();
  if (wide != (meta.score_type == ScalarType::Float64 ? program.leaf_numbers().size() : 0))
    return refused("wide_leaves section",
                   "{} leaves: in a program of float64 scores one for each leaf number, {}, else none", wide,
                   program.leaf_numbers().size());
  const std::size_t vector_bytes = std::size_t{meta.num_outputs} * size_of(meta.score_type);
  if (program.leaf_vectors().size() % vector_bytes != 0 ||
      program.leaf_vectors().size() / vector_bytes > kMaxLeafVectors)
    return refused("leaf_vectors section", "{} bytes, expected whole vectors of {}, at most {}",
                   program.leaf_vectors().size(), vector_bytes, kMaxLeafVectors);
  const auto zero_missing = program.zero_missing();
  for (std::size_t i = 0; i < zero_missing.size(); ++i) {
    if (zero_missing[i] >= meta.num_features)
      return record_error("zero_missing", i, "its feature lies outside the row");
    if (i != 0 && zero_missing[i] <= zero_missing[i - 1])
      return record_error("zero_missing", i, "its feature does not ascend");
  }
  FVM_TRY(verify_wide_features(program));
  FVM_TRY(verify_leaf_functions(program));
  FVM_TRY(verify_category_names(program));
  FVM_TRY(verify_strings(program));
  FVM_TRY(verify_tile_shapes(program));
  FVM_TRY(verify_rounds(program));
  return verify_accumulators(program);
}

}  // namespace forestvm::bytecode
