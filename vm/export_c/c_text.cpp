// C text of numbers and tables.
#include <cmath>
#include <cstdio>

#include <forestvm/core/sums.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {

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

std::string sum_literal(const Job& job, float value) {
  const SumScale scale(job.program.meta().sum_unit);
  switch (job.sums) {
    case AccumulatorKind::Exact64:
      return number(Exact64Sum::of(value, scale).count);
    case AccumulatorKind::Exact128: {
      const Exact128Sum sum = Exact128Sum::of(value, scale);
      return "{" + number(sum.low) + ", " + number(sum.high) + "}";
    }
    case AccumulatorKind::F64:
      return literal(static_cast<double>(value));
    case AccumulatorKind::F32:
    case AccumulatorKind::PerTree:
    case AccumulatorKind::PerTree64:  // only in float64 models, which export_c refuses
      break;
  }
  return literal(value);
}

std::string sum_type(const Job& job, AccumulatorKind kind) {
  switch (kind) {
    case AccumulatorKind::F64:
      return "double";
    case AccumulatorKind::Exact64:
      return "uint64_t";
    case AccumulatorKind::Exact128:
      return job.name("u128");
    case AccumulatorKind::F32:
    case AccumulatorKind::PerTree:
    case AccumulatorKind::PerTree64:
      break;
  }
  return "float";
}

std::string table(const std::string& type, std::size_t element, const std::string& name,
                  const std::vector<std::string>& values, std::uint64_t& bytes) {
  constexpr std::size_t kWidth = 110;
  bytes += element * values.size();
  std::string text = "static const " + type + " " + name + "[" + std::to_string(values.size()) + "] = {\n";
  std::string line = "   ";
  for (const std::string& value : values) {
    if (line.size() + value.size() + 2 > kWidth) {
      text += line + "\n";
      line = "   ";
    }
    line += " " + value + ",";
  }
  return text + line + "\n};\n";
}

}  // namespace forestvm::bytecode::export_c
