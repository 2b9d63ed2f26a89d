// Finds the encoded rows that a program takes: see forestvm/internal/row_source.hpp.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/leaf_functions.hpp>
#include <forestvm/internal/row_source.hpp>

#include "vm/call/sorted.hpp"

namespace forestvm {
namespace {

/// Returns whether an instruction walks trees that read values.
bool walks_values(const Program& program, const InstFacts& inst) {
  const auto walkers = program.walkers().subspan(inst.first_walker, inst.walker_count);
  return std::ranges::any_of(
      walkers, [&](const WalkerDesc& desc) { return !takes_codes(program.groups()[desc.group].layout); });
}

/// The least and the most rows of some calls.
using CallRows = std::pair<std::uint32_t, std::uint32_t>;

/// Returns, ascending, the numbers of rows for which instructions run that walk trees which read values.
std::vector<CallRows> values_read(const Program& program) {
  std::vector<CallRows> found;
  for (const InstFacts& inst : code_map(program).insts)
    if (walks_values(program, inst)) found.emplace_back(inst.calls.least, inst.calls.most);
  sort_unique(found);
  return found;
}

/// Returns the numbers of rows, from 1 on, that are in none of `all`, which ascend.
std::vector<RowCounts> all_others(const std::vector<CallRows>& all) {
  std::vector<RowCounts> others;
  std::uint64_t next = 1;
  for (const auto& [least, most] : all) {
    if (next < least) others.push_back({static_cast<std::uint32_t>(next), least - 1});
    next = std::max(next, std::uint64_t{most} + 1);
  }
  if (next <= UINT32_MAX) others.push_back({static_cast<std::uint32_t>(next), UINT32_MAX});
  return others;
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  return {text, std::to_chars(text, text + sizeof text, number, 16).ptr};
}

/// Describes encoded rows for messages: "5 rows of 3 columns".
std::string rows_text(std::size_t rows, std::size_t columns) {
  return formatted("{} rows of {} columns", rows, columns);
}

}  // namespace

CodedPlans::CodedPlans(const Program& program)
    : plans_(all_others(values_read(program))),
      code_columns_(program.columns().size()),
      columns_(code_columns_ + leaf_features(program).size() * sizeof(double)),
      encoder_(encoder_id(program)) {}

Result<void> CodedPlans::check() const {
  if (!plans_.empty()) return {};
  return refused(code_columns_ == 0
                     ? "the program has no encoder: compile the model with a schedule that has encode(u8)"
                     : "in every plan of the program some walk reads the rows' values: compile the model "
                       "with a schedule of which a plan has encode(u8) for all trees");
}

Result<void> CodedPlans::check(const CodedRows& rows) const {
  FVM_TRY(check());
  if (rows.count == 0) return {};
  if (rows.encoder != encoder_)
    return refused(formatted("the rows are encoded for another program: its encoder is {}, this one's {}",
                             hexadecimal(rows.encoder), hexadecimal(encoder_)));
  const auto given = [&] { return rows_text(rows.count, rows.columns); };
  if (rows.columns != columns_) return usage("{} for a program of {}", given(), columns_);
  const std::size_t needed = coded_bytes(rows.count, rows.columns);
  if (needed == SIZE_MAX) return usage("{} are more than memory holds", given());
  if (rows.byte_count < needed)
    return usage("{} take {} bytes, given are {}", given(), needed, rows.byte_count);
  return rows.codes == nullptr ? no_buffer() : Result<void>();
}

Result<void> CodedPlans::check_room(std::size_t rows, std::size_t room) const {
  const std::size_t needed = coded_bytes(rows, columns_);
  if (room >= needed) return {};
  return usage("room for {} bytes of codes; {} take {}", room, rows_text(rows, columns_), needed);
}

const RowCounts& CodedPlans::plans_for(std::size_t rows) const {
  const auto ends_before = [](const RowCounts& counts, std::size_t n) { return counts.most < n; };
  const auto found = std::lower_bound(plans_.begin(), plans_.end(), rows, ends_before);
  return found == plans_.end() ? plans_.back() : *found;
}

bool CodedPlans::reads_values(std::size_t rows) const {
  return plans_.empty() || plans_for(rows).least > rows || plans_for(rows).most < rows;
}

std::uint32_t CodedPlans::plan_rows(std::uint32_t rows) const {
  const RowCounts& plans = plans_for(rows);
  return std::clamp(rows, plans.least, plans.most);
}

}  // namespace forestvm
