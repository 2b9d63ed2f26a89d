// C text of numbers, tests and tables.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

template <class Bits>
std::string ordered_bits(Bits bits) {
  return std::to_string(bits >= 0 ? bits : std::numeric_limits<Bits>::min() - bits);
}

bool wide_rows(const Job& job) { return job.program.meta().row_type == ScalarType::Float64; }

}  // namespace

std::string number(std::uint64_t value) { return std::to_string(value) + (value > UINT32_MAX ? "ull" : "u"); }

std::string literal(double value) {
  if (std::isinf(value)) return value > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)";
  if (std::isnan(value)) return "(0.0 / 0.0)";
  char text[48];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

std::string literal(float value) {
  if (std::isinf(value)) return value > 0 ? "(1.0f / 0.0f)" : "(-1.0f / 0.0f)";
  if (std::isnan(value)) return "(0.0f / 0.0f)";
  return literal(static_cast<double>(value)) + "f";
}

std::string literal(ScalarType type, double value) {
  return type == ScalarType::Float64 ? literal(value) : literal(static_cast<float>(value));
}

std::string c_type(ScalarType type) { return type == ScalarType::Float64 ? "double" : "float"; }

std::string word(std::uint32_t value) {
  if (value < kMissingLeft) return number(value);
  char text[16];
  std::snprintf(text, sizeof text, "0x%xu", value);
  return text;
}

std::string threshold(const Job& job, double value) {
  if (job.options.thresholds == ExportOptions::Thresholds::Float)
    return literal(job.program.meta().row_type, value);
  if (wide_rows(job)) return ordered_bits(std::bit_cast<std::int64_t>(value)) + "ll";
  return ordered_bits(std::bit_cast<std::int32_t>(static_cast<float>(value)));
}

std::string threshold(const Job& job, const DecodedTest& test) {
  return threshold(job, test.category_set != nullptr ? 1.0 : test.threshold);
}

std::string threshold_type(const Job& job) {
  if (job.options.thresholds == ExportOptions::Thresholds::Float) return c_type(job.program.meta().row_type);
  return wide_rows(job) ? "int64_t" : "int32_t";
}

std::string sum_literal(const Job& job, AccumulatorKind kind, double value) {
  const SumScale scale(job.program.meta().sum_unit);
  switch (kind) {
    case AccumulatorKind::Exact64:
      return number(Exact64Sum::of(value, scale).count);
    case AccumulatorKind::Exact128: {
      const Exact128Sum sum = Exact128Sum::of(value, scale);
      return formatted("{{}, {}}", number(sum.low), number(sum.high));
    }
    case AccumulatorKind::F64:
    case AccumulatorKind::PerTree64:
      return literal(value);
    case AccumulatorKind::F32:
    case AccumulatorKind::PerTree:
      break;
  }
  return literal(static_cast<float>(value));
}

std::string sum_name(AccumulatorKind kind) {
  switch (kind) {
    case AccumulatorKind::F32:
    case AccumulatorKind::PerTree:
      return "f32";
    case AccumulatorKind::F64:
    case AccumulatorKind::PerTree64:
      return "f64";
    case AccumulatorKind::Exact64:
      return "exact64";
    case AccumulatorKind::Exact128:
      break;
  }
  return "exact128";
}

std::string sum_type(const Job& job, AccumulatorKind kind) {
  switch (kind) {
    case AccumulatorKind::F64:
    case AccumulatorKind::PerTree64:
      return "double";
    case AccumulatorKind::Exact64:
      return "uint64_t";
    case AccumulatorKind::Exact128:
      return job.name("u128");
    case AccumulatorKind::F32:
    case AccumulatorKind::PerTree:
      break;
  }
  return "float";
}

std::string table(const std::string& type, std::size_t element, const std::string& name,
                  const std::vector<std::string>& values, std::uint64_t& bytes) {
  constexpr std::size_t kWidth = 110;
  bytes += element * values.size();
  const std::string size = std::to_string(std::max<std::size_t>(values.size(), 1));
  std::string text = formatted("static const {} {}[{}] = {\n", type, name, size);
  std::string line = values.empty() ? "    0," : "   ";
  for (const std::string& value : values) {
    if (line.size() + value.size() + 2 > kWidth) {
      text += line + "\n";
      line = "   ";
    }
    line += formatted(" {},", value);
  }
  return formatted("{}{}\n};\n", text, line);
}

std::string record_table(const Job& job, const std::string& name,
                         const std::vector<std::vector<std::uint64_t>>& records, std::uint64_t& bytes) {
  const std::size_t width = records.empty() ? 1 : records.front().size();
  std::vector<std::string> rows;
  for (const std::vector<std::uint64_t>& record : records) {
    std::string row;
    for (const std::uint64_t value : record) row += (row.empty() ? "{" : ", ") + number(value);
    rows.push_back(row + "}");
  }
  std::string text = table("uint32_t", width * sizeof(std::uint32_t), job.name(name), rows, bytes);
  return text.insert(text.find(']') + 1, formatted("[{}]", width));
}

std::string words_table(const Job& job, const std::string& name, std::span<const std::uint32_t> words,
                        std::uint64_t& bytes) {
  std::vector<std::string> values;
  for (const std::uint32_t word : words) values.push_back(number(word));
  return table("uint32_t", sizeof(std::uint32_t), job.name(name), values, bytes);
}

std::string replaced(std::string_view text, std::initializer_list<Word> words) {
  std::string done(text);
  for (const auto& [word, with] : words)
    for (std::size_t at = 0; (at = done.find(word, at)) != std::string::npos; at += with.size())
      done.replace(at, word.size(), with);
  return done;
}

std::string in_file(const Job& job, std::string_view text, ScalarType score) {
  const ProgramMeta& meta = job.program.meta();
  const bool wide = score == ScalarType::Float64;
  return replaced(text, {{"@OUTPUTS", number(meta.num_outputs)},
                         {"@UNIT", literal(SumScale(meta.sum_unit).unit)},
                         {"@BITS", wide ? "f64" : "f32"},
                         {"@ROW", c_type(meta.row_type)},
                         {"@SCORE", c_type(score)},
                         {"@", job.name("")}});
}

}  // namespace forestvm::bytecode::export_c
