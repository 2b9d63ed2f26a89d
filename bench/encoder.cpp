// Measures the time of a rank code: encodes rows in memory, all features of them, by CPU target, number of
// features, thresholds per feature and rows per call. Compare rows of one run; `items_per_second` is values
// per second.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

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

void encode(benchmark::State& state, const host::Target& target, const Shape& shape) {
  std::vector<float> thresholds;  // thresholds of each feature: 0, 1, 2, …
  for (std::uint32_t i = 0; i < shape.thresholds; ++i) thresholds.push_back(static_cast<float>(i));
  std::vector<EncodedFeature> features;
  std::vector<ColumnDesc> columns;
  for (std::uint32_t f = 0; f < shape.features; ++f) {
    const auto first_column = static_cast<std::uint32_t>(columns.size());
    for (std::uint32_t first = 0; first < shape.thresholds; first += kColumnThresholds)
      columns.push_back(
          {first, static_cast<std::uint16_t>(std::min(kColumnThresholds, shape.thresholds - first)), 0, 0});
    features.push_back(
        {f, 0, shape.thresholds, first_column, static_cast<std::uint32_t>(columns.size()) - first_column});
  }
  const host::LoadedEncoder encoder = host::load_encoder(features, thresholds, columns, {}, shape.features);
  std::mt19937 random(1);
  std::vector<float> values(std::size_t{shape.rows} * shape.features);
  std::uniform_int_distribution<std::uint32_t> halves(0, 2 * shape.thresholds);
  for (float& value : values) value = static_cast<float>(halves(random)) / 2;
  std::vector<std::uint8_t> codes(code_bytes(shape.rows, columns.size()));
  for (auto _ : state) {
    target.encode(
        {encoder.tiles, columns.size(), {0, shape.rows, 0}, values.data(), shape.features, codes.data()});
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
  return all;
}

const bool registered = [] {
  for (const host::Target& target : host::targets())
    for (const Shape& shape : shapes())
      if (target.runs_here())
        benchmark::RegisterBenchmark(("encode/" + std::string(target.name) + shape.name()).c_str(), encode,
                                     target, shape);
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
