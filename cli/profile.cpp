// See profile.hpp.
#include "cli/profile.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/quote.hpp"
#include "cli/printed.hpp"
#include "cli/schedule_lines.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 5> kParts = {
    {{"prepare", "the model is loaded and compiled, or the program loaded"},
     {"read", "rows are read from the file and parsed"},
     {"encode", "values become rank codes; 0 where walks read values"},
     {"walk", "trees are walked, leaves summed, sums transformed"},
     {"write", "predictions are formatted and written"}}};

}  // namespace

Result<AnyRows> Profile::batch(const Predictor& predictor, Context& context, bool on_host,
                               const AnyRows& rows) {
  if (!on_) return rows;
  const std::size_t count = row_count(rows);
  rows_ += count;
  ++batches_;
  sizes_.insert(count);
  const CodedPlans plans(predictor.program());
  if (!on_host || std::holds_alternative<CodedRows>(rows) || !plans.check() || plans.reads_values(count))
    return rows;
  const std::size_t bytes = coded_bytes(count, predictor.coded_columns());
  std::uint8_t* const memory = codes_.resize(bytes);
  FVM_ASSIGN(const CodedRows coded, time(Part::Encode, [&] {
               return predictor.encode(context, rows, {memory, bytes});
             }));
  return AnyRows(coded);
}

std::string Profile::text(const Predictor& predictor) const {
  std::string text =
      printed("profile: %zu rows in %zu %s, ", rows_, batches_, batches_ == 1 ? "batch" : "batches");
  text += predictor.describe() + "\n  part            ms     us/row\n";
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const double seconds = spent_[i].count();
    text += printed("  %-8s %9.3f ", kParts[i].first, seconds * 1e3);
    const bool each_row = i != static_cast<std::size_t>(Part::Prepare) && rows_ != 0;
    text += each_row ? printed("%10.4f", seconds * 1e6 / static_cast<double>(rows_)) : std::string(10, ' ');
    text += std::string("  ") + kParts[i].second + '\n';
  }
  for (const PlanRemark& plan : plan_remarks(predictor.program().text(StringId::Schedule))) {
    const bool used = std::any_of(sizes_.begin(), sizes_.end(),
                                  [&](std::size_t rows) { return rows >= plan.least && rows <= plan.most; });
    if (used) text += formatted("  plan for {}: {}\n", plan.rows, escaped(plan.remark));
  }
  return text;
}

}  // namespace forestvm::cli
