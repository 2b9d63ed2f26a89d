// The shared headers as device code: one thread interprets a program and counts the instructions of each
// kind, walks one tree of each layout, and transforms one row. It is compiled, not run: what breaks here
// would break a GPU backend.
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

namespace {

/// Runs every loop in the calling thread.
struct CountingMachine {
  forestvm::Range ranges[forestvm::kRangeRegisters];
  std::uint32_t plan_rows;
  const forestvm::Inst* code;
  forestvm::OutputKind output;
  std::uint32_t counts[forestvm::kOpCount];

  __device__ bool wants(forestvm::OutputKind kind) const { return kind == output; }
  __device__ void count(const forestvm::Inst& inst) { ++counts[static_cast<unsigned>(inst.op)]; }

  __device__ void parallel(const forestvm::Inst& inst, std::uint32_t body) {
    const forestvm::LoopOperands loop = forestvm::loop_operands(inst);
    const forestvm::Range over = ranges[loop.in];
    for (std::uint32_t i = 0; i < forestvm::iterations(over.size(), loop.step); ++i) {
      ranges[loop.out] = forestvm::chunk(over, loop.step, i);
      forestvm::interpret(code, body, *this);
    }
  }

  __device__ void cache_rows(const forestvm::Inst& inst) { count(inst); }
  __device__ void cache_trees(const forestvm::Inst& inst) { count(inst); }
  __device__ void init(const forestvm::Inst& inst) { count(inst); }
  __device__ void zero(const forestvm::Inst& inst) { count(inst); }
  __device__ void add_base(const forestvm::Inst& inst) { count(inst); }
  __device__ void privatize(const forestvm::Inst& inst) { count(inst); }
  __device__ void encode(const forestvm::Inst& inst) { count(inst); }
  __device__ void walk(const forestvm::Inst& inst) { count(inst); }
  __device__ void leaves(const forestvm::Inst& inst) { count(inst); }
  __device__ void reduce_inplace(const forestvm::Inst& inst) { count(inst); }
  __device__ void round(const forestvm::Inst& inst) { count(inst); }
  __device__ void sum_trees(const forestvm::Inst& inst) { count(inst); }
  __device__ void reduce_dim(const forestvm::Inst& inst) { count(inst); }
  __device__ void transform(const forestvm::Inst& inst) { count(inst); }
  __device__ void store(const forestvm::Inst& inst) { count(inst); }
  __device__ void label(const forestvm::Inst& inst) { count(inst); }
};

/// Sums of every kind, each rounded.
__device__ float sum_all_kinds(float leaf, int unit) {
  const forestvm::SumScale scale(unit);
  float total = 0;
#define FVM_ACCUMULATOR_KIND(Name, text, Element, meaning) \
  {                                                        \
    auto sum = forestvm::Element::of(leaf, scale);         \
    sum.add(sum);                                          \
    total += sum.rounded<float>(scale);                    \
  }
#include <forestvm/core/accumulator_kinds.def>
  return total;
}

template <class View>
__device__ float walk_tree(const forestvm::GroupData& group, std::uint32_t index, const float* row,
                           const std::uint8_t* codes) {
  const auto tree = View::tree(group, index);
  std::uint32_t at = 0;
  while (!View::is_leaf(tree, at)) {
    if constexpr (forestvm::kTakesCodes<View>)
      at = View::template next<forestvm::ScalarCompare>(tree, at, codes);
    else
      at = View::template next<forestvm::ScalarCompare>(tree, at, row);
  }
  return View::value(tree, at);
}

}  // namespace

extern "C" __global__ void forestvm_count_instructions(const forestvm::Inst* code, std::uint32_t rows,
                                                       std::uint32_t trees, forestvm::OutputKind output,
                                                       std::uint32_t* counts) {
  CountingMachine machine{};
  machine.code = code;
  machine.output = output;
  machine.plan_rows = rows;
  machine.ranges[0] = {0, rows, 0};
  machine.ranges[1] = {0, trees, 0};
  forestvm::interpret(code, 0, machine);
  for (unsigned i = 0; i < forestvm::kOpCount; ++i) counts[i] = machine.counts[i];
}

extern "C" __global__ void forestvm_walk(forestvm::GroupData group, forestvm::Layout layout,
                                         std::uint32_t tree, const float* row, const std::uint8_t* codes,
                                         int unit, forestvm::Transform transform, float* scores,
                                         std::int64_t* label) {
  switch (layout) {
#define FVM_LAYOUT(Name, text, word, View, meaning)                 \
  case forestvm::Layout::Name:                                      \
    scores[0] = walk_tree<forestvm::View>(group, tree, row, codes); \
    break;
#include <forestvm/core/layouts.def>
  }
  scores[1] = sum_all_kinds(scores[0], unit);
  forestvm::transform_row(transform, scores, 2);
  forestvm::label_row(forestvm::ClassRule::Argmax, scores, 2, label);
}
