// Measures the time of a rank code. Encodes all features of rows in memory, and of columns of some types ("columns/"),
// by CPU target, number of features, thresholds per feature and rows per call. Compare lines of one run only;
// `items_per_second` is values per second.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/value_rules.hpp>

#include "vm/call/read_column.hpp"
#include "vm/host/load_encoder.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::bench {
namespace {

struct Shape {
  std::uint32_t features, thresholds, rows;

  std::string name() const {
    return "/features:" + std::to_string(features) + "/thresholds:" + std::to_string(thresholds) +
           "/rows:" + std::to_string(rows);
  }
};

/// The encoder of a shape.
struct Encoder {
  explicit Encoder(const Shape& shape) {
    std::vector<float> thresholds;  // thresholds of each feature: 0, 1, 2, …
    for (std::uint32_t i = 0; i < shape.thresholds; ++i) thresholds.push_back(static_cast<float>(i));
    std::vector<EncodedFeature> features;
    for (std::uint32_t f = 0; f < shape.features; ++f) {
      const auto first_column = static_cast<std::uint32_t>(columns.size());
      for (std::uint32_t first = 0; first < shape.thresholds; first += kColumnThresholds)
        columns.push_back(
            {first, static_cast<std::uint16_t>(std::min(kColumnThresholds, shape.thresholds - first)), 0, 0});
      features.push_back(
          {f, 0, shape.thresholds, first_column, static_cast<std::uint32_t>(columns.size()) - first_column});
    }
    loaded = host::load_encoder(features, thresholds, columns, {}, shape.features);
  }

  std::vector<ColumnDesc> columns;
  host::LoadedEncoder loaded;
};

std::vector<float> drawn_values(const Shape& shape) {
  std::mt19937 random(1);
  std::vector<float> values(std::size_t{shape.rows} * shape.features);
  std::uniform_int_distribution<std::uint32_t> halves(0, 2 * shape.thresholds);
  for (float& value : values) value = static_cast<float>(halves(random)) / 2;
  return values;
}

void encode(benchmark::State& state, const host::Target& target, const Shape& shape) {
  const Encoder encoder(shape);
  const std::vector<float> values = drawn_values(shape);
  std::vector<std::uint8_t> codes(code_bytes(shape.rows, encoder.columns.size()));
  for (auto _ : state) {
    target.encode({encoder.loaded.tiles,
                   encoder.columns.size(),
                   {0, shape.rows, 0},
                   values.data(),
                   shape.features,
                   codes.data()});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
}

/// The types and arrangements of columns. A program that compares in float64 encodes the wide ones.
enum class ColumnKind { Float32, Unaligned, Float64, Wide, Nulls };

void read_column(const void* rules, const Column& column, std::uint32_t feature, std::size_t row,
                 std::size_t count, float* out) {
  host::read_column(*static_cast<const ValueRules*>(rules), column, feature, row, count, out);
}

/// Reads float64 values, which must all be float32 numbers.
void read_doubles(const void*, std::uint32_t, const double* values, std::size_t stride, std::size_t count,
                  float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[i * stride]);
}

/// The encoder's rules for a program without special features.
struct Rules {
  Rules(const Shape& shape, bool wide) : special(std::make_unique<bool[]>(shape.features)) {
    encoder = {&values, special.get(), wide, read_column, read_doubles};
  }

  ValueRules values;
  std::unique_ptr<bool[]> special;
  host::EncoderRules encoder{};
};

void encode_doubles(benchmark::State& state, const host::Target& target, const Shape& shape) {
  const Encoder encoder(shape);
  const Rules rules(shape, true);
  const std::vector<float> floats = drawn_values(shape);
  const std::vector<double> values(floats.begin(), floats.end());
  std::vector<std::uint8_t> codes(code_bytes(shape.rows, encoder.columns.size()));
  for (auto _ : state) {
    target.encode_doubles({encoder.loaded.strips,
                           {},
                           nullptr,
                           encoder.columns.size(),
                           shape.features,
                           {0, shape.rows, 0},
                           values.data(),
                           shape.features,
                           &rules.encoder,
                           codes.data()});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
}

void encode_columns(benchmark::State& state, const host::Target& target, const Shape& shape,
                    ColumnKind kind) {
  const Encoder encoder(shape);
  const std::vector<float> values = drawn_values(shape);
  constexpr std::size_t apart = 16;  // In values. Columns begin at cache lines or one value after.
  const std::size_t shift = kind == ColumnKind::Unaligned ? 1 : 0;
  const std::size_t stride = (shape.rows + apart + apart - 1) / apart * apart;
  std::vector<double> memory(stride * shape.features + apart);
  std::vector<std::uint8_t> validity(shape.rows / 8 + 1, 0xf7);
  const Rules rules(shape, kind == ColumnKind::Wide);
  const bool float64 = kind == ColumnKind::Float64 || kind == ColumnKind::Wide;
  std::vector<Column> columns(shape.features);
  void* start = memory.data();
  std::size_t room = memory.size() * sizeof(double);
  auto* const doubles = static_cast<double*>(std::align(64, room - apart * sizeof(double), start, room));
  for (std::uint32_t f = 0; f < shape.features; ++f) {
    float* const floats = reinterpret_cast<float*>(doubles) + f * stride + shift;
    for (std::uint32_t r = 0; r < shape.rows; ++r)
      if (float64)
        doubles[f * stride + r] = static_cast<double>(values[r * shape.features + f]);
      else
        floats[r] = values[r * shape.features + f];
    columns[f].values = float64 ? static_cast<void*>(doubles + f * stride) : floats;
    if (float64) columns[f].type = RowType::Float64;
    if (kind == ColumnKind::Nulls) columns[f].validity = validity.data();
  }
  std::vector<std::uint8_t> codes(code_bytes(shape.rows, encoder.columns.size()));
  for (auto _ : state) {
    target.encode_columns({encoder.loaded.searches,
                           {},
                           nullptr,
                           encoder.columns.size(),
                           {0, shape.rows, 0},
                           {.columns = columns.data()},
                           0,
                           &rules.encoder,
                           codes.data()});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::uint32_t thresholds : {1u, 15u, 31u, 255u, 1023u})
    for (const std::uint32_t rows : {1u, 64u, 1024u}) all.push_back({16, thresholds, rows});
  for (const std::uint32_t features : {28u, 128u, 1024u})
    for (const std::uint32_t thresholds : {31u, 63u, 255u})
      for (const std::uint32_t rows : {1u, 32u, 64u, 512u}) all.push_back({features, thresholds, rows});
  // Rows that do not fit the caches.
  for (const std::uint32_t features : {128u, 1024u, 2000u})
    for (const std::uint32_t thresholds : {10u, 63u}) all.push_back({features, thresholds, 16384});
  return all;
}

/// Returns the shapes for which columns are compared with rows.
std::vector<Shape> column_shapes() {
  return {{28, 100, 1},    {28, 100, 64},  {28, 100, 4096},  {28, 250, 4096}, {8, 60, 4096},
          {128, 60, 4096}, {1024, 60, 64}, {1024, 60, 4096}, {100, 30, 65536}};
}

const bool registered = [] {
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here()) continue;
    const auto name = [&](const std::string& kind, const Shape& shape) {
      return kind + "/" + std::string(target.name) + shape.name();
    };
    for (const Shape& shape : shapes())
      benchmark::RegisterBenchmark(name("encode", shape).c_str(), encode, target, shape);
    for (const Shape& shape : column_shapes()) {
      benchmark::RegisterBenchmark(name("columns/rows", shape).c_str(), encode, target, shape);
      benchmark::RegisterBenchmark(name("columns/wide_rows", shape).c_str(), encode_doubles, target, shape);
      for (const auto& [kind, text] :
           {std::pair(ColumnKind::Float32, "columns/f32"),
            std::pair(ColumnKind::Unaligned, "columns/unaligned"),
            std::pair(ColumnKind::Float64, "columns/f64"), std::pair(ColumnKind::Wide, "columns/wide"),
            std::pair(ColumnKind::Nulls, "columns/nulls")})
        benchmark::RegisterBenchmark(name(text, shape).c_str(), encode_columns, target, shape, kind);
    }
  }
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
