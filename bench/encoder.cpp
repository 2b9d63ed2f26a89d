// What does a rank code cost? Rows of 16 features in memory, by CPU target, thresholds of each feature and
// rows of a call. Compare rows of one run; `items_per_second` is values per second.
#include <benchmark/benchmark.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "vm/host/targets/target.hpp"

namespace forestvm::bench {
namespace {

constexpr std::uint32_t kFeatures = 16;

/// A feature's thresholds 0, 1, 2, … as searches want them.
struct Thresholds {
  explicit Thresholds(std::uint32_t count)
      : bits(static_cast<unsigned>(std::bit_width(count))),
        all(std::max(host::FeatureSearch::kFirst, std::size_t{1} << bits),
            std::numeric_limits<float>::quiet_NaN()),
        splitters(host::FeatureSearch::kSplitters, std::numeric_limits<float>::quiet_NaN()) {
    for (std::uint32_t i = 0; i < count; ++i) all[i] = static_cast<float>(i);
    host::set_splitters(all.data(), bits, splitters.data());
  }
  unsigned bits;
  std::vector<float> all, splitters;
};

void encode(benchmark::State& state, const host::Target& target, std::uint32_t count, std::uint32_t rows) {
  const Thresholds thresholds(count);
  std::vector<ColumnDesc> columns;
  for (std::uint32_t first = 0; first < count; first += kColumnThresholds)
    columns.push_back({first, static_cast<std::uint16_t>(std::min(kColumnThresholds, count - first)), 0, 0});
  const auto per_feature = static_cast<std::uint32_t>(columns.size());
  std::vector<host::FeatureSearch> searches;
  for (std::uint32_t f = 0; f < kFeatures; ++f)
    searches.push_back(
        {thresholds.all.data(), thresholds.splitters.data(), thresholds.bits, f, columns, f * per_feature});
  std::mt19937 random(1);
  std::vector<float> values(std::size_t{rows} * kFeatures);
  std::uniform_int_distribution<std::uint32_t> halves(0, 2 * count);
  for (float& value : values) value = static_cast<float>(halves(random)) / 2;
  const std::size_t all_columns = std::size_t{kFeatures} * per_feature;
  std::vector<std::uint8_t> codes(code_bytes(rows, all_columns));
  for (auto _ : state) {
    target.encode({searches, all_columns, {0, rows, 0}, values.data(), kFeatures, codes.data()});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(values.size()));
}

const bool registered = [] {
  for (const host::Target& target : host::targets())
    for (const std::uint32_t thresholds : {1u, 15u, 31u, 255u, 1023u})
      for (const std::uint32_t rows : {1u, 64u, 1024u})
        if (target.runs_here())
          benchmark::RegisterBenchmark(("encode/" + std::string(target.name) + "/thresholds:" +
                                        std::to_string(thresholds) + "/rows:" + std::to_string(rows))
                                           .c_str(),
                                       encode, target, thresholds, rows);
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
