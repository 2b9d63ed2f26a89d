// Compares leaf bitmasks with the layout tables. Bitmasks are QuickScorer's idea, here over rank codes: a tree of up to
// 64 leaves has a bit for each leaf and row; every test clears, for the rows that go right, the leaves on its left; the
// lowest bit that remains is the leaf. The bitmasks run under the best conditions: AVX-512, blocks of 64 rows as
// vectors of bytes, rows that are already encoded, and bits of a node stored only for bytes that have any. The times of
// the tables include encoding the rows. Trees are complete, and there is one thread. Compare lines of one run only;
// `items_per_second` is rows per second.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/models.hpp"
#include "vm/host/simd/avx512.hpp"

namespace forestvm::bench {
namespace {

using Simd = host::Avx512Bytes;
constexpr std::size_t kBlock = 64, kRows = 4096;
constexpr std::uint32_t kTrees = 500, kFeatures = 32;

/// A complete tree, level by level: the feature and code of each test (right if above), and leaves from left
/// to right.
struct CompleteTree {
  std::vector<std::uint32_t> features;
  std::vector<std::uint8_t> codes;
  std::vector<float> leaves;
};

std::vector<CompleteTree> draw_trees(std::uint32_t depth) {
  std::mt19937 random(depth);
  std::vector<CompleteTree> trees(kTrees);
  for (CompleteTree& tree : trees) {
    for (std::uint32_t i = 0; i + 1 < 1u << depth; ++i) {
      tree.features.push_back(static_cast<std::uint32_t>(random() % kFeatures));
      tree.codes.push_back(static_cast<std::uint8_t>(random() % 255));
    }
    for (std::uint32_t i = 0; i < 1u << depth; ++i)
      tree.leaves.push_back(static_cast<float>(random() % 4096) / 4096.0f);
  }
  return trees;
}

/// The leaves on the left of a test, as far as they lie in one byte of the leaf bits.
struct Clearing {
  std::uint16_t plane;
  std::uint8_t bits;
};
struct Test {
  std::uint32_t offset;  ///< offset of the test's column in a block of codes
  std::uint8_t code;
  std::uint8_t clearings;  ///< number of the test's clearings, which follow the previous test's
};

/// A tree of 2^Depth leaves as bitmasks.
template <unsigned Depth>
struct BitTree {
  static constexpr unsigned kLeaves = 1u << Depth, kPlanes = kLeaves < 8 ? 1 : kLeaves / 8;
  std::vector<Test> tests;
  std::vector<Clearing> clearings;

  explicit BitTree(const CompleteTree& tree) {
    for (unsigned depth = 0, i = 0; depth < Depth; ++depth)
      for (unsigned at = 0; at < 1u << depth; ++at, ++i) {
        const unsigned width = kLeaves >> depth, first = at * width, end = first + width / 2;
        Test test{static_cast<std::uint32_t>(tree.features[i] * kBlock), tree.codes[i], 0};
        for (unsigned plane = first / 8; plane * 8 < end; ++plane, ++test.clearings) {
          unsigned bits = 0;
          for (unsigned bit = 0; bit < 8; ++bit)
            if (plane * 8 + bit >= first && plane * 8 + bit < end) bits |= 1u << bit;
          clearings.push_back({static_cast<std::uint16_t>(plane), static_cast<std::uint8_t>(bits)});
        }
        tests.push_back(test);
      }
  }

  /// Finds each row's leaf.
  void find(const std::uint8_t* codes, std::uint8_t* leaf) const {
    __m512i planes[kPlanes];
    for (__m512i& plane : planes) plane = Simd::all(0xff);
    const Clearing* clearing = clearings.data();
    for (const Test& test : tests) {
      const __m512i right =
          _mm512_movm_epi8(_mm512_cmpgt_epu8_mask(Simd::load(codes + test.offset), Simd::all(test.code)));
      for (unsigned i = 0; i < test.clearings; ++i, ++clearing)  // plane & ~(right & bits)
        planes[clearing->plane] =
            _mm512_ternarylogic_epi64(planes[clearing->plane], right, Simd::all(clearing->bits), 0x70);
    }
    __m512i found = Simd::all(0);
    for (unsigned plane = kPlanes; plane-- > 0;) {
      // The index of a byte's lowest bit is the number of zeros below it.
      const __m512i v = planes[plane];
      const __m512i number = _mm512_add_epi8(ones_below(v), Simd::all(static_cast<std::uint8_t>(8 * plane)));
      found = _mm512_mask_mov_epi8(found, _mm512_test_epi8_mask(v, v), number);
    }
    Simd::store(leaf, found);
  }

  static __m512i ones_below(__m512i v) {
    const __m512i below = _mm512_andnot_si512(v, _mm512_add_epi8(v, Simd::all(0xff)));
    const __m512i count =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i low = _mm512_and_si512(below, Simd::all(15));
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(below, 4), Simd::all(15));
    return _mm512_add_epi8(_mm512_shuffle_epi8(count, low), _mm512_shuffle_epi8(count, high));
  }
};

template <unsigned Depth>
void bitmasks(benchmark::State& state) {
  if (!__builtin_cpu_supports("avx512vbmi")) return state.SkipWithError("this CPU has no AVX-512 VBMI");
  const std::vector<CompleteTree> drawn = draw_trees(Depth);
  std::vector<BitTree<Depth>> trees(drawn.begin(), drawn.end());
  std::mt19937 random(1);
  std::vector<std::uint8_t> codes(kRows * kFeatures);
  for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
  std::vector<float> out(kRows);
  for (auto _ : state) {
    std::fill(out.begin(), out.end(), 0.0f);
    // The tables take 8 * kBlock rows at a time too.
    for (std::size_t row = 0; row < kRows; row += 8 * kBlock)
      for (std::size_t t = 0; t < kTrees; ++t)
        for (std::size_t r = row; r < row + 8 * kBlock; r += kBlock) {
          std::uint8_t leaf[kBlock];
          trees[t].find(codes.data() + r * kFeatures, leaf);
          Simd::template put_leaves<true>(out.data() + r, drawn[t].leaves.data(), 1u << Depth, leaf, kBlock);
        }
    benchmark::DoNotOptimize(out.data());
  }
  // A time is meaningless if the answers are wrong.
  for (std::size_t r = 0; r < kRows; r += 97) {
    float sum = 0;
    for (const CompleteTree& tree : drawn) {
      std::size_t at = 0;
      for (unsigned depth = 0; depth < Depth; ++depth) {
        const std::uint8_t x =
            codes[r / kBlock * kBlock * kFeatures + tree.features[at] * kBlock + r % kBlock];
        at = 2 * at + 1 + (x > tree.codes[at] ? 1 : 0);
      }
      sum += tree.leaves[at - (tree.leaves.size() - 1)];
    }
    if (sum != out[r]) return state.SkipWithError("a wrong sum");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}

Tree tree_of(const CompleteTree& complete) {
  Tree tree;
  const std::size_t tests = complete.codes.size();
  tree.nodes.resize(tests + complete.leaves.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    Node& node = tree.nodes[i];
    if (i >= tests) {
      node.value = static_cast<double>(complete.leaves[i - tests]);
      continue;
    }
    node.kind = NodeKind::Less;
    node.feature = complete.features[i];
    node.threshold = complete.codes[i];
    node.left = static_cast<std::int32_t>(2 * i + 1);
    node.right = static_cast<std::int32_t>(2 * i + 2);
  }
  return tree;
}

template <unsigned Depth>
void tables(benchmark::State& state) {
  std::vector<Tree> trees;
  for (const CompleteTree& complete : draw_trees(Depth)) trees.push_back(tree_of(complete));
  const Model model = model_of(std::move(trees), kFeatures, 0);
  const Loaded loaded = load(model, automatic_schedule(model), 1);
  const std::vector<float> rows = rows_between_thresholds(model, kRows);
  std::vector<float> out(kRows);
  for (auto _ : state)
    benchmark::DoNotOptimize(loaded.predictor->predict(
        *loaded.context, RowBlock{rows.data(), kRows, kFeatures}, OutputKind::Raw, out.data()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}

template <unsigned... Depths>
void add(std::integer_sequence<unsigned, Depths...>) {
  const auto name = [](const char* what, unsigned depth) {
    return std::string(what) + "/leaves:" + std::to_string(1u << depth);
  };
  (benchmark::RegisterBenchmark(name("bitmasks", Depths + 2).c_str(), bitmasks<Depths + 2>), ...);
  (benchmark::RegisterBenchmark(name("tables", Depths + 2).c_str(), tables<Depths + 2>), ...);
}

const bool registered = [] {
  add(std::make_integer_sequence<unsigned, 5>{});
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
